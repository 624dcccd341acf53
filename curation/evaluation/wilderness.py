"""Wilderness impact and average precision at every wilderness level: profile ``paper``."""

from __future__ import annotations

from typing import Any

import numpy as np

from curation.evaluation.average_precision import Ranking, area, eleven_point
from curation.evaluation.columns import Bools, Detections, Floats, Int64s
from curation.evaluation.input_order import decided_by_order, joined
from curation.evaluation.levels import Levels
from curation.evaluation.matching import Matches, OperatingPoints, recall_names, rows_by_class

READINGS: dict[str, str] = {
    "macro": "mean over classes of FP_o / (TP_c + FP_c)",
    "pooled": "sum over classes of FP_o / sum over classes of (TP_c + FP_c)",
    "ratio_of_mean_precision": "mean over classes of closed precision / mean of open precision - 1",
}
"""How wilderness impact is averaged over classes; the paper does not say (`macro` is the default)."""

Values = list[float | None]


def average_precision_by_level(
    classes: tuple[str, ...],
    closed: Detections,
    matches: Matches,
    wilderness: Detections,
    levels: Levels,
) -> dict[str, Any]:
    """Return AP of each class and its mean at each level, 11-point and area.

    Ignored detections take no part; every detection on a wilderness image is a false positive. The mean is over the
    classes with ground truth; one that has no detections counts as 0.

    Returns
    -------
    dict
        ``mAP11``, ``mAP_area``, ``mAP11_ties_in_input_order``: lists over levels, None where no class has ground
        truth. ``AP11``, ``AP_area``: ``[level][class]``, None for a class without ground truth. ``input_order``: what
        the order of the detections decided of ``mAP11_ties_in_input_order``, the others being free of it
        (`curation.evaluation.input_order.InputOrder.record`).
    """
    first_level = levels.first_level(wilderness.image)
    flavours: dict[str, list[Floats]] = {"mAP11": [], "mAP_area": [], "mAP11_ties_in_input_order": []}
    parts = zip(
        rows_by_class(closed.label, len(classes)), rows_by_class(wilderness.label, len(classes)), strict=True
    )
    for (number, inside), (_, outside) in parts:
        counted = inside[matches.outcome[inside] >= 0]
        ranking = Ranking(
            np.concatenate([closed.scores[counted], wilderness.scores[outside]]),
            np.concatenate([matches.outcome[counted] == 1, np.zeros(len(outside), bool)]),
            int(matches.n_positive[number]),
            level=np.concatenate([np.zeros(len(counted), np.int64), first_level[outside]]),
            n_levels=len(levels),
        )
        curve = ranking.curve()
        flavours["mAP11"].append(eleven_point(curve))
        flavours["mAP_area"].append(area(curve))
        flavours["mAP11_ties_in_input_order"].append(eleven_point(ranking.curve("input_order")))
    outcome = np.append(matches.outcome, np.zeros(len(wilderness), np.int8))
    order = decided_by_order(
        joined(closed, wilderness),
        outcome,
        counted=outcome >= 0,
        claim=np.append(matches.claim, np.full(len(wilderness), -1)),
    )
    defined = matches.n_positive > 0
    tables = {name: np.stack(values, axis=1) for name, values in flavours.items()}
    result: dict[str, Any] = {name: _means(table, defined) for name, table in tables.items()}
    result["AP11"] = _named(tables["mAP11"], classes, defined, levels)
    result["AP_area"] = _named(tables["mAP_area"], classes, defined, levels)
    result["input_order"] = order.record("mAP11_ties_in_input_order alone")
    return result


def wilderness_impact(
    classes: tuple[str, ...],
    matches: Matches,
    points: OperatingPoints,
    wilderness: Detections,
    levels: Levels,
) -> dict[str, Any]:
    """Return wilderness impact ``FP_o / (TP_c + FP_c)`` per recall and level (Elephant paper, Fig. 5, Table 2).

    FP_o counts all detections of the class with score >= its threshold on the wilderness images of the level; the
    threshold is that of the closed set at every level. A class that never reaches the recall, or has no ground truth,
    is left out of the averages and listed.

    Returns
    -------
    dict
        ``thresholds[recall][class]``: threshold, TP_c, FP_c, recall; None with a reason where unreachable.
        ``WI[recall]``: ``per_class`` and ``fp_open`` (lists over levels by class), the three `READINGS` (lists over
        levels, None where no class is left), ``classes_averaged``, ``classes_left_out`` with reasons.
        ``AWI[recall][reading]``: ``excl_level0`` (mean over k >= 1, None where there is none) and ``incl_level0``.
    """
    opened = _open_false_positives(points, wilderness, levels, len(classes))
    result: dict[str, Any] = {"thresholds": {}, "WI": {}, "AWI": {}}
    for row, recall in enumerate(recall_names(points)):
        left_out = _left_out(classes, matches, points, row)
        result["thresholds"][recall] = {
            name: _operating_point(points, matches, row, number, left_out.get(name))
            for number, name in enumerate(classes)
        }
        impact = _impact_at(classes, points.tp[row], points.fp[row], opened[row], left_out)
        result["WI"][recall] = impact
        result["AWI"][recall] = {reading: average_impact(impact[reading]) for reading in READINGS}
    return result


def average_impact(values: Values) -> dict[str, float | None]:
    """Return the mean of wilderness impact over levels, without and with level 0; None where any level is undefined."""
    if any(value is None for value in values):
        return {"excl_level0": None, "incl_level0": None}
    numbers = np.array(values, np.float64)
    return {
        "excl_level0": float(numbers[1:].mean()) if len(numbers) > 1 else None,
        "incl_level0": float(numbers.mean()),
    }


def _open_false_positives(
    points: OperatingPoints, wilderness: Detections, levels: Levels, n_classes: int
) -> Int64s:
    """Return FP_o, shape (R, K, L): wilderness detections at or above the threshold, cumulated over levels."""
    width = len(levels) + 1
    cell = wilderness.label.astype(np.int64) * width + levels.first_level(wilderness.image)
    counts = [
        np.bincount(cell[wilderness.scores >= limits[wilderness.label]], minlength=n_classes * width)
        for limits in points.threshold
    ]
    table = np.array(counts, np.int64).reshape(len(counts), n_classes, width)
    return table[:, :, :-1].cumsum(axis=2)


def _impact_at(
    classes: tuple[str, ...], tp: Int64s, fp: Int64s, opened: Int64s, left_out: dict[str, str]
) -> dict[str, Any]:
    impacts = {
        name: None if name in left_out else (opened[number] / (tp[number] + fp[number])).tolist()
        for number, name in enumerate(classes)
    }
    kept = np.array([name not in left_out for name in classes], bool)
    n_levels = opened.shape[1]
    result: dict[str, Any] = {
        "per_class": impacts,
        "fp_open": {
            name: None if name in left_out else opened[number].tolist() for number, name in enumerate(classes)
        },
        **(
            _readings(tp[kept], fp[kept], opened[kept])
            if kept.any()
            else dict.fromkeys(READINGS, [None] * n_levels)
        ),
        "classes_averaged": [name for name in classes if name not in left_out],
        "classes_left_out": left_out,
    }
    if not kept.any():
        result["reason"] = "no class reaches this recall on the closed set"
    return result


def _readings(tp: Int64s, fp: Int64s, opened: Int64s) -> dict[str, Values]:
    """Return the three averages over the classes that have a threshold, shapes (C,), (C,), (C, L)."""
    kept = (tp + fp)[:, None]
    closed_precision = (tp[:, None] / kept).mean(axis=0)
    open_precision = (tp[:, None] / (kept + opened)).mean(axis=0)
    return {
        "macro": (opened / kept).mean(axis=0).tolist(),
        "pooled": (opened.sum(axis=0) / kept.sum()).tolist(),
        "ratio_of_mean_precision": (closed_precision / open_precision - 1).tolist(),
    }


def _left_out(
    classes: tuple[str, ...], matches: Matches, points: OperatingPoints, row: int
) -> dict[str, str]:
    return {
        name: "no ground truth" if matches.n_positive[number] == 0 else "never reaches this recall"
        for number, name in enumerate(classes)
        if np.isnan(points.threshold[row, number])
    }


def _operating_point(
    points: OperatingPoints, matches: Matches, row: int, number: int, reason: str | None
) -> dict[str, Any]:
    if reason is not None:
        return {"threshold": None, "TP_c": None, "FP_c": None, "recall": None, "reason": reason}
    tp, fp = int(points.tp[row, number]), int(points.fp[row, number])
    return {
        "threshold": float(points.threshold[row, number]),
        "TP_c": tp,
        "FP_c": fp,
        "recall": tp / int(matches.n_positive[number]),
    }


def _means(table: Floats, defined: Bools) -> Values:
    """Return the mean over the defined classes at each level, from shape (L, K)."""
    if not defined.any():
        return [None] * len(table)
    means: Values = table[:, defined].mean(axis=1).tolist()
    return means


def _named(
    table: Floats, classes: tuple[str, ...], defined: Bools, levels: Levels
) -> dict[str, dict[str, float | None]]:
    return {
        level: {
            name: float(value) if known else None
            for name, value, known in zip(classes, row, defined, strict=True)
        }
        for level, row in zip(levels.names, table, strict=True)
    }
