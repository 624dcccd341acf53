"""Average precision of known classes and of ``unknown``, and A-OSE and WI as functions of the confidence threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from curation.benchmarks.osod3.truth import OUTSIDE, OpenSetTruth
from curation.errors import UsageError
from curation.evaluation.coco_engine import Engine, coco_input_order, coco_precision
from curation.evaluation.columns import Bools, Detections
from curation.evaluation.input_order import InputOrder, contested_objects, decided_by_order
from curation.evaluation.matching import assign, positives
from curation.evaluation.open_set import counts_at_thresholds, lies_on
from curation.evaluation.variants import Rules

Profile = Literal["clean", "voc"]
VARIANTS: dict[str, Rules] = {
    one.name: one
    for one in (
        Rules(
            name="clean",
            meaning="a detection takes the best object of its class that is still free, IoU >= 0.5; crowd regions are "
            "ignored",
            taken="best_free",
            crowd="cover",
        ),
        Rules(
            name="voc",
            meaning="a detection is compared with its best object of the class, free or not, IoU >= 0.5; crowd is "
            "ignored",
        ),
    )
}
PROFILES: dict[str, str] = {name: rules.meaning for name, rules in VARIANTS.items()}
THETAS = tuple(f"{step / 20:.2f}" for step in range(21))
_TAXONOMY_NOTES = {
    "OSOD-I": "OSOD-I detects known classes alone: AP_unk is not defined",
    "OSOD-II": "OSOD-II does not define which unknown objects must be found: unannotated ones count as false positives "
    "in AP_unk",
}


def evaluate_osod3(
    truth: OpenSetTruth,
    detections: Detections,
    *,
    profiles: Sequence[Profile] = ("clean",),
    thetas: Sequence[str] = THETAS,
    engine: Engine | None = None,
) -> dict[str, Any]:
    """Return all measures of one case.

    Parameters
    ----------
    truth : OpenSetTruth
    detections : Detections
        Labels of `OpenSetTruth.truth`: the last one is unknown.
    profiles : sequence of {"clean", "voc"}
        Readings of the matching behind A-OSE and WI; AP is the same in both.
    thetas : sequence of str
        Confidence thresholds as decimal numbers, ascending.

    Returns
    -------
    dict
        ``AP_known``, ``AP_unk`` and the same at IoU 0.50 and 0.75, ``AP_per_class``, ``curves`` by profile, counts,
        ``input_order`` by ``AP`` and profile, ``notes``, and ``undefined``: the reason of each None.
    """
    values = _thresholds(thetas)
    result: dict[str, Any] = {"taxonomy": truth.classes.taxonomy, "outside": OUTSIDE[truth.outside]}
    result |= average_precisions(truth, detections, engine=engine)
    result["curves"] = {name: threshold_curve(truth, detections, name, values) for name in profiles}
    result["n"] = {
        "images": truth.truth.n_images,
        "objects": truth.file["known_objects"] + truth.file["unknown_objects"],
        "unknown_objects": truth.file["unknown_objects"],
        "outside_objects": truth.outside_objects,
        "detections": len(detections),
        "unknown_detections": int((detections.label == truth.unknown).sum()),
    }
    orders = {"AP": coco_input_order(truth.truth, detections)}
    orders |= {name: _curve_order(truth, detections, name) for name in profiles}
    numbers = {"AP": "AP (equal scores keep input order)"}
    numbers |= {name: f"A-OSE and WI of {name} (equal scores keep input order)" for name in profiles}
    result["input_order"] = {name: order.record(numbers[name]) for name, order in orders.items()}
    result["notes"] = [
        *([_TAXONOMY_NOTES[truth.classes.taxonomy]] if truth.classes.taxonomy in _TAXONOMY_NOTES else []),
        *(order.note(numbers[name]) for name, order in orders.items() if order),
    ]
    return result


def _curve_order(truth: OpenSetTruth, detections: Detections, profile: Profile) -> InputOrder:
    """Return what input order decided of A-OSE and WI: which of some equal scores finds an object that they contest."""
    known = detections.label < truth.unknown
    if profile == "clean":
        contested = contested_objects(truth.truth, detections, positives(truth.truth, VARIANTS[profile]))
        counted = contested & known
        return decided_by_order(
            detections, np.ones(len(detections), np.int8), counted=counted, contested=contested
        )
    claim = assign(truth.truth, detections, VARIANTS[profile]).claim
    # Each object is a ranking of its own: a threshold keeps equal scores or none.
    by_object = replace(detections, label=claim)
    is_open = _flags(truth, detections, profile)[1]
    return decided_by_order(by_object, 1 + is_open.astype(np.int8), counted=known & (claim >= 0))


def average_precisions(
    truth: OpenSetTruth, detections: Detections, *, engine: Engine | None = None
) -> dict[str, Any]:
    """Return AP of the known classes and of unknown, over IoU 0.50:0.95 and at 0.50 and 0.75, in percent.

    A class without objects (crowd aside) has no AP and leaves the mean; one with objects and no detections has 0.
    """
    precision = coco_precision(truth.truth, detections, engine=engine)
    names = truth.truth.classes
    result: dict[str, Any] = {}
    for suffix, rows in (("", slice(None)), ("50", slice(0, 1)), ("75", slice(5, 6))):
        each = [_mean(precision[rows, :, place]) for place in range(len(names))]
        defined = [one for one in each[: truth.unknown] if one is not None]
        result[f"AP_known{suffix}"] = float(np.mean(defined)) if defined else None
        result[f"AP_unk{suffix}"] = None if truth.classes.taxonomy == "OSOD-I" else each[truth.unknown]
        if not suffix:
            result["AP_per_class"] = dict(zip(names, each, strict=True))
    if truth.classes.taxonomy == "OSOD-I":
        result["AP_per_class"]["unknown"] = None
    result["undefined"] = _reasons(result, truth)
    return result


def _mean(precision: Any) -> float | None:
    return None if (precision < 0).all() else float(100 * precision.mean())


def _reasons(result: Mapping[str, Any], truth: OpenSetTruth) -> dict[str, str]:
    reasons: dict[str, str] = {}
    if result["AP_known"] is None:
        reasons["AP_known"] = "no object of a known class, crowd aside"
    if result["AP_unk"] is None:
        reasons["AP_unk"] = (
            _TAXONOMY_NOTES["OSOD-I"]
            if truth.classes.taxonomy == "OSOD-I"
            else "no unknown object, crowd aside"
        )
    return reasons


def threshold_curve(
    truth: OpenSetTruth, detections: Detections, profile: Profile, thetas: Sequence[float]
) -> list[dict[str, Any]]:
    """Return A-OSE and WI of the detections of known classes with score >= theta, for each theta.

    Matching goes from the highest score down, so that a threshold never changes what a kept detection is.
    """
    known = detections.label < truth.unknown
    outcome, is_open = _flags(truth, detections, profile)
    return counts_at_thresholds(detections.scores[known], outcome[known], is_open[known], thetas)


def _flags(truth: OpenSetTruth, detections: Detections, profile: Profile) -> tuple[Any, Bools]:
    """Return the outcome of each detection, and which lie on an unknown object."""
    if profile not in VARIANTS:
        raise UsageError("Unknown profile", expected=", ".join(PROFILES), found=repr(profile)[:80])
    outcome = assign(truth.truth, detections, VARIANTS[profile]).outcome
    unknown = (truth.truth.label == truth.unknown) & ~truth.truth.crowd
    return outcome, lies_on(truth.truth, detections, unknown, VARIANTS[profile])


def _thresholds(thetas: Sequence[str]) -> list[float]:
    try:
        values = [float(theta) for theta in thetas]
    except ValueError:
        values = []
    if not values or not all(np.isfinite(values)) or values != sorted(set(values)):
        raise UsageError(
            "The confidence thresholds are not usable",
            expected="finite decimal numbers in ascending order",
            found=", ".join(thetas)[:80],
        )
    return values


def over_cases(cases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return mean and standard deviation over cases of every AP, both with ddof 0 (default) and 1, and their number.

    The paper prints mean and deviation over 4 (Open Images, CUB) or 3 (MTSD) cases and does not say which deviation.
    """
    found: dict[str, Any] = {}
    for name in ("AP_known", "AP_unk", "AP_known50", "AP_unk50", "AP_known75", "AP_unk75"):
        values = [float(case[name]) for case in cases.values() if case[name] is not None]
        found[name] = {
            "n": len(values),
            "mean": float(np.mean(values)) if values else None,
            "std_population": float(np.std(values)) if values else None,
            "std_sample": float(np.std(values, ddof=1)) if len(values) > 1 else None,
            "left_out": [case for case, result in cases.items() if result[name] is None],
        }
    return found
