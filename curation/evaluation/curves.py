"""Precision, recall and average precision in its flavours, from the detections of a class, sorted once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from curation.evaluation.matching import Matches, rows_by_class
from curation.evaluation.open_set import Levels, Values
from curation.evaluation.problem import Bools, Detections, Floats, Int64s
from curation.evaluation.variants import Rules

Ties = Literal["grouped", "input_order"]
"""``grouped``: a point of the curve exists only after the last detection of equal score (default).
``input_order``: after each detection, equal scores in input order, as most evaluators do."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Precision-recall points of a class at L levels: counts at the D ranks of true positives.

    At other ranks precision falls and recall is constant: they affect neither the envelope nor the area.

    Attributes
    ----------
    tp, retained : ndarray of int64, shape (L, D)
        True positives, and all detections that count, up to and with each rank.
    envelope : ndarray of float64, shape (L, D)
        Highest precision at this rank or a later one.
    n_positive : float
        Denominator of recall: the number of objects that count.
    """

    tp: Int64s
    retained: Int64s
    envelope: Floats
    n_positive: float


class Ranking:
    """Detections of a class by falling score, ties in input order.

    Parameters
    ----------
    scores : ndarray of float64, shape (d,)
        Detections that count (true or false positives), in input order.
    correct : ndarray of bool, shape (d,)
        Which of them are true positives.
    n_positive : float
    level : ndarray of int64, shape (d,), optional
        The first level that contains the image of the detection; `n_levels` or more if none does. All 0 by default.
    n_levels : int
    """

    def __init__(
        self, scores: Floats, correct: Bools, n_positive: float, *, level: Int64s | None = None, n_levels: int = 1
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
        ranks = rank[self.correct]
        points = ranks[np.diff(ranks, prepend=-1) > 0]
        column = np.searchsorted(points, rank)
        counted = (column < len(points)) & (self.level < self.n_levels)
        shape = (self.n_levels, len(points))
        retained = _cumulated(self.level[counted], column[counted], shape)
        counted &= self.correct
        tp = _cumulated(self.level[counted], column[counted], shape)
        precision = tp / np.maximum(retained, 1)
        envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        return Curve(tp, retained, envelope, self.n_positive)


def _cumulated(row: Int64s, column: Int64s, shape: tuple[int, int]) -> Int64s:
    counts = np.bincount(row * shape[1] + column, minlength=shape[0] * shape[1]).reshape(shape)
    return counts.cumsum(axis=0).cumsum(axis=1).astype(np.int64, copy=False)


def precision_at_recall(curve: Curve, tenths: int) -> Floats:
    """Return the highest precision at recall >= ``tenths / 10`` at each level, shape (L,); 0 if never reached."""
    if not curve.tp.shape[1] or not curve.n_positive:
        return np.zeros(len(curve.tp))
    return _highest(curve, curve.tp * 10 >= tenths * curve.n_positive)


def eleven_point(curve: Curve) -> Floats:
    """Return VOC2007's 11-point AP at each level, shape (L,): mean over k of max precision at recall >= k/10."""
    return np.asarray(np.mean([precision_at_recall(curve, tenths) for tenths in range(11)], axis=0), np.float64)


def eleven_point_in_floats(curve: Curve) -> Floats:
    """Return the 11-point AP at each level, shape (L,), with the recalls of ``numpy.arange(0, 1.1, 0.1)`` in doubles.

    This is the ``voc_ap`` of OW-DETR and PROB: the fourth, seventh and eighth point, ``k * 0.1``, are slightly above
    0.3, 0.6 and 0.7, so that exactly three of ten objects do not reach the fourth point.
    """
    total = np.zeros(len(curve.tp))
    if curve.tp.shape[1] and curve.n_positive:
        recall = curve.tp / curve.n_positive
        for k in range(11):
            total += _highest(curve, recall >= k * 0.1) / 11
    return total


def _highest(curve: Curve, reached: Bools) -> Floats:
    """Return the highest precision from the first point of each level that reaches a recall; 0 if none does."""
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
    """Return the AP of a class under a variant, in [0, 1], from the detections that count."""
    if not len(scores):
        return 0.0
    flavours = {"area": area, "eleven_point": eleven_point, "eleven_point_in_floats": eleven_point_in_floats}
    recalled = n_positive + rules.added_objects if n_positive else 0
    curve = Ranking(scores, correct, recalled).curve(rules.ties)
    return float(flavours[rules.average_precision](curve)[0])


def distinct_points(scores: Floats, correct: Bools) -> tuple[Floats, Any, Any]:
    """Return each distinct score, falling, and the true positives and all detections at or above it."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    ends = np.flatnonzero(np.append(np.diff(ranked) != 0, True)[: len(ranked)])
    return ranked[ends], np.cumsum(correct[order])[ends], ends + 1


def full_curve(scores: Floats, correct: Bools, n_positive: int) -> dict[str, list[float]]:
    """Return every point of the precision-recall curve, ties grouped: ``recall``, ``precision``, ``score`` lists."""
    score, tp, count = distinct_points(scores, correct)
    return {"recall": (tp / max(n_positive, 1)).tolist(), "precision": (tp / count).tolist(), "score": score.tolist()}


def precision_recall(
    classes: tuple[str, ...], detections: Detections, matches: Matches
) -> dict[str, dict[str, list[float]]]:
    """Return the precision-recall curve of each class with objects: ``recall``, ``precision``, ``score`` lists."""
    curves = {}
    rows_of = dict(rows_by_class(detections.label, len(classes), empty=False))
    for number in np.flatnonzero(matches.n_positive).tolist():
        rows = rows_of.get(number, np.empty(0, np.int64))
        counted = rows[matches.outcome[rows] >= 0]
        n = int(matches.n_positive[number])
        curves[classes[number]] = full_curve(detections.scores[counted], matches.outcome[counted] == 1, n)
    return curves


@dataclass(frozen=True, slots=True)
class Pool:
    """The detections of a closed part and of a wilderness together; every detection on a wilderness image is wrong.

    Attributes
    ----------
    detections : Detections
    outcome : ndarray of int8, shape (d,)
        `Matches.outcome`, 0 on wilderness images.
    n_positive : ndarray of int64, shape (K,)
    """

    detections: Detections
    outcome: npt.NDArray[np.int8]
    n_positive: Int64s

    @classmethod
    def from_parts(cls, inside: Detections, matches: Matches, outside: Detections) -> Pool:
        """Build the pool from the detections of both parts, and the matches of the closed part."""
        outcome = np.append(matches.outcome, np.zeros(len(outside), np.int8))
        return cls(Detections.joined([inside, outside]), outcome, matches.n_positive)

    def rankings(self, level: Int64s, n_levels: int, *, empty: bool = False) -> Iterator[tuple[int, Ranking]]:
        """Yield each class with the ranking of its detections that count.

        Parameters
        ----------
        level : ndarray of int64, shape (d,)
            The first level that contains the image of each detection.
        empty : bool
            Whether classes without detections are yielded.
        """
        for number, rows in rows_by_class(self.detections.label, len(self.n_positive), empty=empty):
            rows = rows[self.outcome[rows] >= 0]
            scores, correct = self.detections.scores[rows], self.outcome[rows] == 1
            yield number, Ranking(scores, correct, int(self.n_positive[number]), level=level[rows], n_levels=n_levels)


def average_precision_by_level(
    classes: tuple[str, ...], closed: Detections, matches: Matches, wilderness: Detections, levels: Levels
) -> dict[str, Any]:
    """Return AP of each class and its mean at each level, 11-point and area.

    Ignored detections do not count; every detection on a wilderness image is a false positive. The mean is over the
    classes with ground truth; a class without detections counts as 0.

    Returns
    -------
    dict
        ``mAP11``, ``mAP_area``, ``mAP11_ties_in_input_order``: lists over levels, None if no class has ground
        truth. ``AP11``, ``AP_area``: ``[level][class]``, None for a class without ground truth. Only
        ``mAP11_ties_in_input_order`` depends on the order of the file.
    """
    level = np.append(np.zeros(len(closed), np.int64), levels.first_level(wilderness.image))
    pool = Pool.from_parts(closed, matches, wilderness)
    names = ("mAP11", "mAP_area", "mAP11_ties_in_input_order")
    # A class without detections is 0 throughout.
    tables: dict[str, Floats] = {name: np.zeros((len(levels), len(classes))) for name in names}
    for number, ranking in pool.rankings(level, len(levels)):
        curve = ranking.curve()
        tables["mAP11"][:, number] = eleven_point(curve)
        tables["mAP_area"][:, number] = area(curve)
        tables["mAP11_ties_in_input_order"][:, number] = eleven_point(ranking.curve("input_order"))
    defined = matches.n_positive > 0
    return {
        **{name: _means(table, defined) for name, table in tables.items()},
        "AP11": _ap_by_class(tables["mAP11"], classes, defined, levels),
        "AP_area": _ap_by_class(tables["mAP_area"], classes, defined, levels),
    }


def _means(table: Floats, defined: Bools) -> Values:
    """Return the mean over the defined classes at each level, from shape (L, K)."""
    if not defined.any():
        return [None] * len(table)
    means: Values = table[:, defined].mean(axis=1).tolist()
    return means


def _ap_by_class(
    table: Floats, classes: tuple[str, ...], defined: Bools, levels: Levels
) -> dict[str, dict[str, float | None]]:
    return {
        level: {name: float(value) if known else None for name, value, known in zip(classes, row, defined, strict=True)}
        for level, row in zip(levels.names, table, strict=True)
    }
