"""How the results of ``curation evaluate rwd`` show themselves: as open-world ones do, with P50 and R50 besides."""

from __future__ import annotations

from typing import Any

from curation.evaluation.measures import Data, Measure
from curation.evaluation.open_world.report import report_as

GROUPS = {
    "both": ("previous", "current"),
    "prev": ("previous",),
    "cur": ("current",),
    "unknown": ("unknown",),
}
"""Roles of the classes that FOMO's keys K, PK, CK and U take the mean of."""
_KEYS = {"both": "K", "prev": "PK", "cur": "CK", "unknown": "U"}


def at_the_end(section: Data) -> dict[str, Any]:
    """Return precision and recall at the end of the list, all detections, as means over groups of classes in %."""
    found: dict[str, Any] = {}
    undefined = dict(section["undefined"])
    for group, roles in GROUPS.items():
        rows = [row for row in section["classes"] if row["role"] in roles and row["n"]]
        counted = [(row["tp"], row["tp"] + row["fp"], row["n"]) for row in rows]
        values = {
            f"P50_{group}": [100 * tp / total if total else 0.0 for tp, total, _ in counted],
            f"R50_{group}": [100 * tp / n for tp, _, n in counted],
        }
        for key, of_classes in values.items():
            found[key] = sum(of_classes) / len(of_classes) if of_classes else None
            if not of_classes:
                undefined[key] = "no such class has objects"
    return {**found, "undefined": undefined}


_MORE = tuple(
    Measure(
        f"{letter}50_{group}",
        f"{name} at the end of the list, {_KEYS[group]} of FOMO",
        formula,
        unit="%",
        better="higher",
        source="FOMO, datasets/open_world_eval.py",
        undefined="no such class has objects",
    )
    for group in GROUPS
    for letter, name, formula in (
        (
            "P",
            "precision",
            "TP / (TP + FP) over all detections of a class, 0 without any; mean over such classes",
        ),
        ("R", "recall", "TP / objects over all detections of a class; mean over classes with objects"),
    )
)
# 2: WI of fomo reads a class without objects at its first detection.
REPORT = report_as("rwd", more=_MORE, algorithm=2)
