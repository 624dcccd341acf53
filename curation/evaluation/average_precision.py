"""Average precision of one class at every wilderness level, from one sort of its detections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from curation.evaluation.columns import Bools, Floats, Int64s
from curation.evaluation.variants import Rules

Ties = Literal["grouped", "input_order"]
"""``grouped``: a point of the curve exists only after the last detection of equal score (default).
``input_order``: after each detection, equal scores in input order, as most evaluators do."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The precision-recall points of one class at L levels: counts at each of D ranks where a true positive stands.

    Elsewhere precision only falls while recall stands still, so no envelope and no area needs the other ranks.

    Attributes
    ----------
    tp, kept : ndarray of int64, shape (L, D)
        True positives, and all detections that count, up to and with each rank.
    envelope : ndarray of float64, shape (L, D)
        Highest precision at this rank or a later one.
    n_positive : int
    """

    tp: Int64s
    kept: Int64s
    envelope: Floats
    n_positive: int


class Ranking:
    """The detections of one class by falling score, ties in input order.

    Parameters
    ----------
    scores : ndarray of float64, shape (d,)
        Detections that count (true or false positives), in input order.
    correct : ndarray of bool, shape (d,)
        Which are true positives.
    n_positive : int
    level : ndarray of int64, shape (d,), optional
        The first level whose images hold the detection; `n_levels` or more: none. All 0 by default.
    n_levels : int
    """

    def __init__(
        self,
        scores: Floats,
        correct: Bools,
        n_positive: int,
        *,
        level: Int64s | None = None,
        n_levels: int = 1,
    ) -> None:
        order = np.argsort(-scores, kind="stable")
        self.scores, self.correct, self.n_positive = scores[order], correct[order], n_positive
        self.level = np.zeros(len(order), np.int64) if level is None else level[order]
        self.n_levels = n_levels

    def curve(self, ties: Ties = "grouped") -> Curve:
        """Return the points of the precision-recall curve at every level."""
        if ties == "grouped":
            rank = np.cumsum(np.diff(self.scores, prepend=self.scores[:1]) != 0)
        else:
            rank = np.arange(len(self.scores))
        points = np.unique(rank[self.correct])
        column = np.searchsorted(points, rank)
        counted = (column < len(points)) & (self.level < self.n_levels)
        shape = (self.n_levels, len(points))
        kept = _cumulated(self.level[counted], column[counted], shape)
        counted &= self.correct
        tp = _cumulated(self.level[counted], column[counted], shape)
        precision = tp / np.maximum(kept, 1)
        envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        return Curve(tp, kept, envelope, self.n_positive)


def _cumulated(row: Int64s, column: Int64s, shape: tuple[int, int]) -> Int64s:
    counts = np.bincount(row * shape[1] + column, minlength=shape[0] * shape[1]).reshape(shape)
    return counts.cumsum(axis=0).cumsum(axis=1).astype(np.int64, copy=False)


def precision_at_recall(curve: Curve, tenths: int) -> Floats:
    """Return the highest precision at recall >= ``tenths / 10`` at each level, shape (L,); 0 where never reached."""
    if not curve.tp.shape[1] or not curve.n_positive:
        return np.zeros(len(curve.tp))
    return _highest(curve, curve.tp * 10 >= tenths * curve.n_positive)


def eleven_point(curve: Curve) -> Floats:
    """Return VOC2007's 11-point AP at each level, shape (L,): mean over k of max precision at recall >= k/10."""
    return np.asarray(
        np.mean([precision_at_recall(curve, tenths) for tenths in range(11)], axis=0), np.float64
    )


def eleven_point_in_floats(curve: Curve) -> Floats:
    """Return the 11-point AP at each level, shape (L,), with the recalls of ``numpy.arange(0, 1.1, 0.1)`` in doubles.

    As the ``voc_ap`` that OW-DETR and PROB use: the fourth, seventh and eighth point, ``k * 0.1``, lie a hair above
    0.3, 0.6 and 0.7, so that exactly three of ten objects do not reach the fourth one.
    """
    total = np.zeros(len(curve.tp))
    if curve.tp.shape[1] and curve.n_positive:
        recall = curve.tp / curve.n_positive
        for k in range(11):
            total += _highest(curve, recall >= k * 0.1) / 11
    return total


def _highest(curve: Curve, reached: Bools) -> Floats:
    """Return the highest precision from the first point of each level that reaches a recall; 0 where none does."""
    first = reached.argmax(axis=1)
    rows = np.arange(len(first))
    highest: Floats = np.where(reached[rows, first], curve.envelope[rows, first], 0.0)
    return highest


def area(curve: Curve) -> Floats:
    """Return the area under the precision envelope at each level, shape (L,): VOC2010's all-point AP."""
    if not curve.n_positive:
        return np.zeros(len(curve.tp))
    gained = np.diff(curve.tp, axis=1, prepend=0)
    return np.asarray((gained * curve.envelope).sum(axis=1) / curve.n_positive, np.float64)


def average_precision(scores: Floats, correct: Bools, n_positive: int, rules: Rules) -> float:
    """Return the AP of one class in the flavour of a variant, in [0, 1], from its detections that count."""
    flavours = {
        "area": area,
        "eleven_point": eleven_point,
        "eleven_point_in_floats": eleven_point_in_floats,
    }
    curve = Ranking(scores, correct, n_positive).curve(rules.ties)
    return float(flavours[rules.average_precision](curve)[0])


def full_curve(scores: Floats, correct: Bools, n_positive: int) -> dict[str, list[float]]:
    """Return every point of the precision-recall curve, ties grouped: ``recall``, ``precision``, ``score`` lists."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    ends = np.flatnonzero(np.append(np.diff(ranked) != 0, True)[: len(ranked)])
    tp = np.cumsum(correct[order])[ends]
    return {
        "recall": (tp / max(n_positive, 1)).tolist(),
        "precision": (tp / (ends + 1)).tolist(),
        "score": ranked[ends].tolist(),
    }
