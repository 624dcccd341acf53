"""Confusion matrix of detected against true classes, unknown ones included (Elephant paper, Fig. 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curation.benchmarks.elephant.diagnosis import kept_in_wr1, take
from curation.errors import UsageError
from curation.evaluation.columns import Bools, Detections, GroundTruth
from curation.evaluation.matching import OperatingPoints, best_overlap, recall_names

UNKNOWN = "unknown"
"""Name of an unknown object whose original class the annotation file does not say."""


def confusion(
    closed: GroundTruth,
    closed_detections: Detections,
    wilderness: GroundTruth,
    wilderness_detections: Detections,
    points: OperatingPoints,
    *,
    minimum_iou: float = 0.1,
) -> dict[str, Any]:
    """Return what the kept detections of each class lie on, per recall, on the closed set and on closed set + WR1.

    Each kept detection goes to the object of highest IoU of any class, crowd and difficult ones included, when that
    IoU is at or above `minimum_iou`; else to the background.

    Parameters
    ----------
    points : OperatingPoints
        A detection is kept when its score is at or above the threshold of its class; without one, nothing is.

    Returns
    -------
    dict
        ``result[recall][section]`` for ``closed`` and ``wr1``: ``confusion[detected][true]`` with the counts above
        zero, and ``background[detected]`` for every class. A true class is a known one or the original class of an
        unknown object. ``wr1`` is None when there are fewer wilderness than closed images.
    """
    if not 0 < minimum_iou <= 1:
        raise UsageError(
            "The IoU limit is out of range", expected="above 0, at most 1", found=repr(minimum_iou)
        )
    columns = column_names(closed, wilderness)
    result: dict[str, Any] = {}
    for recall, limits in zip(recall_names(points), points.threshold, strict=True):
        kept = closed_detections.scores >= limits[closed_detections.label]
        counts = _counts(closed, closed_detections, kept, columns, minimum_iou)
        kept = kept_in_wr1(wilderness_detections, limits, closed.n_images)
        opened = counts + _counts(wilderness, wilderness_detections, kept, columns, minimum_iou)
        has_wr1 = wilderness.n_images >= closed.n_images
        result[recall] = {
            "closed": _section(closed.classes, columns, counts),
            "wr1": _section(closed.classes, columns, opened) if has_wr1 else None,
        }
    return result


def column_names(closed: GroundTruth, wilderness: GroundTruth) -> tuple[str, ...]:
    """Return the true classes: the known ones in their order, then all others by code point."""
    others = {name for truth in (closed, wilderness) for name in _object_names(truth)}
    return closed.classes + tuple(sorted(others.difference(closed.classes)))


def full_matrix(section: Mapping[str, Any], rows: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    """Return one section of `confusion` as a table: ``rows``, ``columns``, ``counts`` (R x C), ``background``."""
    entries = section["confusion"]
    return {
        "rows": list(rows),
        "columns": list(columns),
        "counts": [[entries.get(row, {}).get(column, 0) for column in columns] for row in rows],
        "background": [section["background"][row] for row in rows],
    }


def _object_names(truth: GroundTruth) -> list[str]:
    original = truth.original or ("",) * len(truth.label)
    return [
        truth.classes[label] if label >= 0 else name or UNKNOWN
        for label, name in zip(truth.label.tolist(), original, strict=True)
    ]


def _counts(
    truth: GroundTruth, detections: Detections, kept: Bools, columns: Sequence[str], minimum_iou: float
) -> Any:
    """Return counts, shape (K, columns + 1); the last column is the background."""
    number = {name: position for position, name in enumerate(columns)}
    names = np.array([number[name] for name in _object_names(truth)], np.int64)
    some = take(detections, np.flatnonzero(kept))
    position, overlap = best_overlap(truth, some, same_class=False)
    on_object = overlap >= minimum_iou
    column = np.full(len(some), len(columns))
    column[on_object] = names[position[on_object]]
    width = len(columns) + 1
    cells = some.label.astype(np.int64) * width + column
    return np.bincount(cells, minlength=len(truth.classes) * width).reshape(-1, width)


def _section(classes: Sequence[str], columns: Sequence[str], counts: Any) -> dict[str, Any]:
    entries = {
        row: {column: n for column, n in zip(columns, line, strict=True) if n}
        for row, line in zip(classes, counts[:, :-1].tolist(), strict=True)
    }
    return {
        "confusion": {row: line for row, line in entries.items() if line},
        "background": dict(zip(classes, counts[:, -1].tolist(), strict=True)),
    }
