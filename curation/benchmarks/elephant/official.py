"""Wilderness impact and mAP as the paper's own code (``eval.py``, ``WIC.py``) computes them: profile ``official``.

It differs from the paper's text: matching against objects of any class, float32 IoU, difficult objects ordinary,
interpolated precision instead of a threshold, a ratio of class means, and images without annotation always counted
as wilderness. Its float32 level counts are a variant (`curation.evaluation.open_set.LEVEL_COUNTS`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.benchmarks.elephant.variants import OFFICIAL
from curation.evaluation.curves import Ranking, eleven_point, precision_at_recall
from curation.evaluation.input_order import InputOrder, decided_by_order, joined
from curation.evaluation.matching import assign, rows_by_class
from curation.evaluation.open_set import (
    LEVEL_COUNTS,
    OFFICIAL_LEVELS,
    LevelCounts,
    Values,
    average_impact,
    wilderness_levels,
)
from curation.evaluation.problem import Bools, Detections, Floats, GroundTruth, Int64s


@dataclass(frozen=True, slots=True)
class _Pool:
    """All detections of both parts in input order; `place` counts wilderness images, -1 on a closed one.

    `claimed` is the object that a detection is right about, be it the first or not; -1 for none.
    """

    detections: Detections
    claimed: Int64s

    correct: Bools
    place: Int64s
    n_wilderness: int
    n_closed_as_wilderness: int
    n_positive: Int64s


def official_profile(
    closed: GroundTruth,
    closed_detections: Detections,
    wilderness: GroundTruth,
    wilderness_detections: Detections,
    *,
    recalls_tenths: Sequence[int] = (1, 3, 5),
    counts: LevelCounts = "integer",
) -> dict[str, Any]:
    """Return mAP and wilderness impact of the official code at each level.

    The level counts refer to the images of the closed file that are not wilderness by the code's rule: those without
    annotation (or with an unknown object) are, and leave N. Means run over the classes that have a detection on the
    images of the level; a class without ground truth counts as 0. Two faults of the code are not imitated: it breaks
    off on empty detections, and a crowd region shifts the list of objects it matches against (here crowd only counts
    in the number of positives).

    Returns
    -------
    dict
        ``levels``, ``n_closed_images`` (N), ``n_closed_as_wilderness``, ``n_wild_images``, ``npos``, ``mAP``,
        ``WI[recall]``, ``mean_interp_precision[recall]`` (lists over levels, None where undefined, the reason under
        ``undefined``), ``AWI[recall]``, ``n_classes_with_detections``, ``input_order`` (`InputOrder.record`).
    """
    pool = _pool(closed, closed_detections, wilderness, wilderness_detections)
    n_known = closed.n_images - pool.n_closed_as_wilderness
    # Without an image that stays closed every level is level 0.
    levels = wilderness_levels(
        max(n_known, 1), pool.n_wilderness, counts=counts, most=OFFICIAL_LEVELS if n_known else 1
    )
    entered = np.where(pool.place < 0, 0, levels.first_level(pool.place))
    shape = (len(levels), len(closed.classes))
    average, detected = np.zeros(shape), np.zeros(shape, bool)
    precision = np.zeros((len(recalls_tenths), *shape))
    for number, rows in rows_by_class(pool.detections.label, shape[1]):
        ranking = Ranking(
            pool.detections.scores[rows],
            pool.correct[rows],
            int(pool.n_positive[number]),
            level=entered[rows],
            n_levels=len(levels),
        )
        curve = ranking.curve("input_order")
        average[:, number] = eleven_point(curve)
        detected[:, number] = entered[rows].min(initial=len(levels)) <= np.arange(len(levels))
        for row, tenths in enumerate(recalls_tenths):
            precision[row, :, number] = precision_at_recall(curve, tenths)
    result: dict[str, Any] = {
        "levels": list(levels.names),
        "level_counts": levels.counts,
        "level_counts_meaning": LEVEL_COUNTS[levels.counts],
        "n_closed_images": n_known,
        "n_closed_as_wilderness": pool.n_closed_as_wilderness,
        "n_wild_images": levels.images.tolist(),
        "npos": dict(zip(closed.classes, pool.n_positive.tolist(), strict=True)),
        "n_classes_with_detections": detected.sum(axis=1).tolist(),
        "mAP": _means(average, detected),
        "input_order": _order(pool).record("mAP and WI (duplicates and equal scores go by input order)"),
    }
    return result | _impacts(precision, detected, recalls_tenths)


def _pool(closed: GroundTruth, inside: Detections, wilderness: GroundTruth, outside: Detections) -> _Pool:
    annotated = np.zeros(closed.n_images, bool)
    annotated[closed.image] = True
    # Also a closed image is wilderness when it has no annotation or an unknown object.
    wild = ~annotated
    wild[closed.image[closed.label < 0]] = True
    place = np.where(wild, np.cumsum(wild) - 1, -1)
    n_inside = int(wild.sum())
    matches = assign(closed, inside, OFFICIAL)
    return _Pool(
        detections=joined(inside, outside),
        claimed=np.append(matches.claim, np.full(len(outside), -1)).astype(np.int64),
        correct=np.append(matches.outcome == 1, np.zeros(len(outside), bool)),
        place=np.concatenate([place[inside.image], outside.image.astype(np.int64) + n_inside]),
        n_wilderness=n_inside + wilderness.n_images,
        n_closed_as_wilderness=n_inside,
        n_positive=matches.n_positive,
    )


def _order(pool: _Pool) -> InputOrder:
    """Return what input order decided: equal scores in the ranking, and objects that go to the first listed."""
    right, scores = np.flatnonzero(pool.claimed >= 0), pool.detections.scores
    highest = np.full(int(pool.claimed.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(highest, pool.claimed[right], scores[right])
    first = np.flatnonzero(pool.correct)
    unsorted = int((scores[first] < highest[pool.claimed[first]]).sum())
    ranked = decided_by_order(pool.detections, pool.correct.astype(np.int64), claim=pool.claimed)
    return ranked + InputOrder(unsorted=unsorted)


def _impacts(precision: Floats, detected: Bools, recalls_tenths: Sequence[int]) -> dict[str, Any]:
    result: dict[str, Any] = {"WI": {}, "AWI": {}, "mean_interp_precision": {}, "undefined": {}}
    if not detected.all(axis=0).any():
        result["undefined"]["level 0.0"] = "no class has a detection on the closed images"
    for row, tenths in enumerate(recalls_tenths):
        recall = f"{tenths // 10}.{tenths % 10}"
        means = _means(precision[row], detected)
        impact: Values = [_ratio(means[0], mean) for mean in means]
        result["mean_interp_precision"][recall] = means
        result["WI"][recall] = impact
        result["AWI"][recall] = average_impact(impact)
        if None in impact:
            result["undefined"][f"WI at recall {recall}"] = "the mean interpolated precision is 0 or has no class"
    return result


def _ratio(at_home: float | None, mean: float | None) -> float | None:
    return None if not at_home or not mean else at_home / mean - 1


def _means(table: Floats, detected: Bools) -> Values:
    return [float(row[some].mean()) if some.any() else None for row, some in zip(table, detected, strict=True)]
