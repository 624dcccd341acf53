"""Wilderness impact and average precision at every wilderness level: profile ``paper``."""

from __future__ import annotations

from typing import Any

import numpy as np

from curation.evaluation.average_precision import Ranking, area, eleven_point
from curation.evaluation.columns import Bools, Detections, Floats
from curation.evaluation.input_order import decided_by_order, joined
from curation.evaluation.matching import Matches, rows_by_class
from curation.evaluation.open_set import Levels

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
