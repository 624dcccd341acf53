"""Matching of detections to ground truth, and the operating points that follow, for all images and classes at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.evaluation.problem import Bools, Detections, Floats, GroundTruth, Int32s, Int64s
from curation.evaluation.variants import IOU, Rules

_PAIRS_AT_ONCE = 1 << 17
_LARGEST_TABLE = 1 << 22


@dataclass(frozen=True, slots=True)
class Matches:
    """Outcome of each detection, in input order.

    Attributes
    ----------
    outcome : ndarray of int8, shape (d,)
        1 true positive, 0 false positive, -1 ignored (its best object is difficult or crowd).
    truth : ndarray of int32, shape (d,)
        Position of the object in the image that it is compared with, -1 where there is none: the one of highest IoU,
        kept below the IoU threshold too; where the best free object is taken, the one that it took.
    iou : ndarray of float64, shape (d,)
        IoU with that object, 0 where there is none.
    n_positive : ndarray of int64, shape (K,)
        Objects of each class that count as positives.
    claim : ndarray of int32, shape (d,)
        `truth` if the object counts and the IoU suffices, even if another detection takes the object; else -1.
    """

    outcome: npt.NDArray[np.int8]
    truth: Int32s
    iou: Floats
    n_positive: Int64s
    claim: Int32s


@dataclass(frozen=True, slots=True)
class OperatingPoints:
    """The thresholds at which each class first reaches a recall; one row a recall, one column a class.

    Attributes
    ----------
    recalls_tenths : tuple of int, length R
    threshold : ndarray of float64, shape (R, K)
        NaN where the class never reaches the recall or has no positives.
    tp, fp : ndarray of int64, shape (R, K)
        Detections with score >= threshold; 0 without a threshold.
    """

    recalls_tenths: tuple[int, ...]
    threshold: Floats
    tp: Int64s
    fp: Int64s


@dataclass(frozen=True, slots=True)
class OverlappingPairs:
    """Pairs of a detection and an object, by detection in input order, then by object in file order.

    Attributes
    ----------
    row, position : ndarray of int64, shape (p,)
        Position of the detection and of the object.
    iou : ndarray of float64, shape (p,)
    """

    row: Int64s
    position: Int64s
    iou: Floats


def assign(truth: GroundTruth, detections: Detections, rules: Rules, *, competing: Bools | None = None) -> Matches:
    """Return the outcome of each detection, after matching detections to objects under the rules of a variant.

    Under the default rules (VOC's), within each class and by falling score with ties in input order, a detection takes
    the object of highest IoU in its image, even if it is already taken: a second detection of an object is a false
    positive. A detection whose best object is crowd or difficult is ignored.

    Parameters
    ----------
    rules : Rules
        See `curation.evaluation.variants.Rules` for every way in which variants differ.
    competing : ndarray of bool, shape (d,), optional
        The detections that may take an object; all by default.
    """
    positive = positives(truth, rules)
    labels = np.zeros_like(truth.label) if rules.objects == "all" else truth.label
    counts = np.bincount(labels[positive], minlength=len(truth.classes)).astype(np.int64)
    if rules.taken == "best_free":
        return _best_free(truth, detections, rules, positive, counts)
    position, overlap = best_overlap(
        truth,
        detections,
        same_class=rules.objects == "own_class",
        mask=~truth.crowd if rules.crowd == "pass_over" else None,
        dtype=rules.dtype,
    )
    matched = (position >= 0) & rules.reached(overlap)
    if rules.objects == "any_class":
        rows = np.flatnonzero(matched)
        matched[rows] = truth.label[position[rows]] == detections.label[rows]
    ignored = matched.copy()
    ignored[matched] = ~positive[position[matched]]
    claims = matched & ~ignored
    candidates = np.flatnonzero(claims if competing is None else claims & competing)
    if rules.order == "score":
        candidates = candidates[np.argsort(-detections.scores[candidates], kind="stable")]
    # Written from the last to the first: of an object's candidates the first one stays.
    first = np.full(len(truth.label), -1, np.int64)
    first[position[candidates[::-1]]] = candidates[::-1]
    outcome = np.zeros(len(detections), np.int8)
    outcome[first[first >= 0]] = 1
    outcome[ignored] = -1
    return Matches(outcome, position, overlap, counts, np.where(claims, position, -1).astype(np.int32))


def positives(truth: GroundTruth, rules: Rules) -> Bools:
    """Return which objects have to be found: of known class, neither crowd nor difficult where rules ignore these."""
    counted = np.ones(len(truth.label), bool) if rules.objects == "all" else truth.label >= 0
    if rules.crowd in ("ignore", "cover"):
        counted &= ~truth.crowd
    return counted & ~truth.difficult if rules.difficult == "ignore" else counted


def _best_free(truth: GroundTruth, detections: Detections, rules: Rules, positive: Bools, counts: Int64s) -> Matches:
    """Return the outcome when each detection, by falling score, takes the best object that none has taken yet.

    One that is left over is ignored where its intersection with an ignored object of its class is at least half of
    its own area (an IoU of a half implies that); else it is a false positive.
    """
    strict = rules.strict
    pairs = overlapping_pairs(truth, detections, same_class=True, mask=positive, iou_threshold=IOU, strict=strict)
    matched, iou = first_come(pairs, detections.scores, len(truth.label))
    outcome = np.zeros(len(detections), np.int8)
    outcome[covering(truth, detections, ~positive, IOU)] = -1
    outcome[matched >= 0] = 1
    return Matches(outcome, matched, iou, counts, matched)


def first_come(pairs: OverlappingPairs, scores: Floats, n_objects: int) -> tuple[Int32s, Floats]:
    """Return the object of each detection when they choose one after the other, by falling score, and their IoU.

    All choose at once and the highest-ranked candidate of an object keeps it, until none is turned away: objects agree
    on who comes first, so that this ends where choosing one by one does (the only stable matching).
    """
    order = np.lexsort((pairs.position, -pairs.iou, pairs.row))
    preference = pairs.position[order]
    candidates, first, count = np.unique(pairs.row[order], return_index=True, return_counts=True)
    last = first + count
    current, keeper = first.copy(), np.full(n_objects, len(candidates), np.int64)
    # Candidates in rank order, so that the lowest position in this order is the highest-ranked.
    by_rank = np.argsort(-scores[candidates], kind="stable")
    current, last, candidates = current[by_rank], last[by_rank], candidates[by_rank]
    active = np.arange(len(candidates))
    while len(active):
        choices = preference[current[active]]
        before = keeper[choices]
        np.minimum.at(keeper, choices, active)
        turned_away = np.concatenate([active, before[before < len(candidates)]])
        turned_away = np.unique(turned_away[keeper[preference[current[turned_away]]] != turned_away])
        current[turned_away] += 1
        active = turned_away[current[turned_away] < last[turned_away]]
    matched, iou = np.full(len(scores), -1, np.int32), np.zeros(len(scores))
    held = np.flatnonzero(keeper < len(candidates))
    matched[candidates[keeper[held]]] = held
    iou[candidates[keeper[held]]] = pairs.iou[order[current[keeper[held]]]]
    return matched, iou


def covering(truth: GroundTruth, detections: Detections, ignored: Bools, least: float) -> Int64s:
    """Return the detections of whose area such a share, or more, lies in an ignored object of their class."""
    pairs = overlapping_pairs(truth, detections, same_class=True, mask=ignored, iou_threshold=0, strict=True)
    boxes = detections.boxes[pairs.row]
    common = pair_intersection(boxes, truth.boxes[pairs.position])
    covering: Int64s = pairs.row[common >= least * boxes[:, 2] * boxes[:, 3]]
    return covering


def thresholds(matches: Matches, detections: Detections, recalls_tenths: Sequence[int] = (1, 3, 5)) -> OperatingPoints:
    """Return the score of the first true positive at which ``tp * 10 >= r10 * n``, per recall and class.

    Recall is tested in integers (`np.arange(0, 1.1, .1)[3]` loses 3/10). False positives count every detection with
    score >= the threshold, those tied with it included. The paper fixes the recall, not the rule for ties.
    """
    tenths = tuple(recalls_tenths)
    shape = (len(tenths), len(matches.n_positive))
    points = OperatingPoints(tenths, np.full(shape, np.nan), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    for label, rows in rows_by_class(detections.label, shape[1], empty=False):
        scores, outcome = detections.scores[rows], matches.outcome[rows]
        tp_scores = -np.sort(-scores[outcome == 1])
        for row, r10 in enumerate(tenths):
            needed = -(-r10 * int(matches.n_positive[label]) // 10)
            if 0 < needed <= len(tp_scores):
                above = scores >= tp_scores[needed - 1]
                points.threshold[row, label] = tp_scores[needed - 1]
                points.tp[row, label] = np.count_nonzero(outcome[above] == 1)
                points.fp[row, label] = np.count_nonzero(outcome[above] == 0)
    return points


def rows_by_class(
    label: npt.NDArray[np.integer[Any]], n_classes: int, *, empty: bool = True
) -> Iterator[tuple[int, Int64s]]:
    """Yield each class with the rows that carry it, in input order; a class without rows has an empty array.

    Parameters
    ----------
    empty : bool
        Whether classes without rows are yielded.
    """
    # Numbers of 16 bits are sorted digit by digit, the others by comparison.
    order = np.argsort(label.astype(np.int16) if n_classes < 1 << 15 else label, kind="stable")
    edges = np.cumsum(np.bincount(label + 1, minlength=n_classes + 1))
    for number in range(n_classes) if empty else np.flatnonzero(np.diff(edges)).tolist():
        yield number, order[edges[number] : edges[number + 1]]


def best_overlap(
    truth: GroundTruth,
    detections: Detections,
    *,
    same_class: bool,
    mask: Bools | None = None,
    dtype: type[np.float64] | type[np.float32] = np.float64,
) -> tuple[Int32s, Floats]:
    """Return, per detection, the object of its image with the highest IoU: its position, and the IoU.

    Parameters
    ----------
    same_class : bool
        Whether only objects of the detected class take part.
    mask : ndarray of bool, shape (m,), optional
        The objects that take part; all by default.
    dtype : type
        ``np.float32`` computes the IoU as the official code does.

    Returns
    -------
    position : ndarray of int32, shape (d,)
        -1 where no object takes part in the image. Equal IoU: the first object in file order.
    iou : ndarray of float64, shape (d,)
        0 where position is -1.
    """
    pairs = _Candidates(truth, detections, same_class=same_class, mask=mask)
    position = np.full(len(detections), -1, np.int32)
    best = np.zeros(len(detections), np.float64)
    corners = _corners(truth.boxes.astype(dtype)[pairs.objects])
    detected = _corners(detections.boxes.astype(dtype))
    for rows, starts, slots in pairs.chunks():
        counts = np.diff(np.append(starts, len(slots)))
        iou = _iou([np.repeat(column[rows], counts) for column in detected], [column[slots] for column in corners])
        highest = np.maximum.reduceat(iou, starts)
        hits = np.flatnonzero(iou == np.repeat(highest, counts))
        # The first hit at or after each start is the first object, in file order, that has the highest IoU.
        position[rows] = pairs.objects[slots[hits[np.searchsorted(hits, starts)]]]
        best[rows] = highest
    return position, best


def overlapping_pairs(
    truth: GroundTruth,
    detections: Detections,
    *,
    same_class: bool,
    iou_threshold: float,
    strict: bool,
    mask: Bools | None = None,
) -> OverlappingPairs:
    """Return every pair of a detection and an object of its image whose IoU reaches (``strict``: exceeds) a threshold.

    Parameters
    ----------
    same_class : bool
        Whether only objects of the detected class take part.
    mask : ndarray of bool, shape (m,), optional
        The objects that take part; all by default.
    """
    pairs = _Candidates(truth, detections, same_class=same_class, mask=mask)
    corners, detected = _corners(truth.boxes[pairs.objects]), _corners(detections.boxes)
    row, position, overlap = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    for rows, starts, slots in pairs.chunks():
        counts = np.diff(np.append(starts, len(slots)))
        iou = _iou([np.repeat(column[rows], counts) for column in detected], [column[slots] for column in corners])
        reached = np.flatnonzero(iou > iou_threshold if strict else iou >= iou_threshold)
        row.append(np.repeat(rows, counts)[reached])
        position.append(pairs.objects[slots[reached]])
        overlap.append(iou[reached])
    return OverlappingPairs(np.concatenate(row), np.concatenate(position), np.concatenate(overlap))


def pair_intersection(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the common area of boxes ``x, y, w, h`` row by row, shapes (n, 4), in square pixels."""
    return _common_area(_corners(first), _corners(second))


def pair_iou(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the IoU of boxes ``x, y, w, h`` row by row, shapes (n, 4), in their dtype; 0 where both are empty."""
    return _iou(_corners(first), _corners(second))


class _Candidates:
    """The objects that each detection has to be compared with: consecutive slots of `objects`."""

    def __init__(self, truth: GroundTruth, detections: Detections, *, same_class: bool, mask: Bools | None) -> None:
        self.objects = np.arange(len(truth.image)) if mask is None else np.flatnonzero(mask)
        object_key, key = truth.image[self.objects].astype(np.int64), detections.image.astype(np.int64)
        if same_class:
            width = len(truth.classes) + 1
            object_key = object_key * width + truth.label[self.objects] + 1
            key = key * width + detections.label + 1
        order = np.argsort(object_key, kind="stable")
        self.objects = self.objects[order]
        object_key = object_key[order]
        start, count = _ranges(object_key, key)
        self.rows = np.flatnonzero(count)
        self.first, self.count = start[self.rows], count[self.rows]

    def chunks(self) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
        """Yield detections, where the pairs of each start, and the slot of each pair; memory stays bounded."""
        total = np.cumsum(self.count)
        low = 0
        while low < len(self.rows):
            done = total[low - 1] if low else 0
            high = max(int(np.searchsorted(total, done + _PAIRS_AT_ONCE, side="right")), low + 1)
            count = self.count[low:high]
            starts = np.cumsum(count) - count
            slots = np.arange(count.sum()) + np.repeat(self.first[low:high] - starts, count)
            yield self.rows[low:high], starts, slots
            low = high


def _ranges(ascending: Int64s, keys: Int64s) -> tuple[Int64s, Int64s]:
    """Return the first position and the count of each key in an ascending array."""
    if not len(ascending) or not len(keys):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    span = int(max(ascending[-1], keys.max())) + 1
    if span > _LARGEST_TABLE:
        start = np.searchsorted(ascending, keys)
        return start, np.searchsorted(ascending, keys, side="right") - start
    # A table of all keys answers faster than half a million binary searches.
    count = np.bincount(ascending, minlength=span)
    return (np.cumsum(count) - count)[keys], count[keys]


def _corners(boxes: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return the columns x1, y1, x2, y2 and area."""
    x, y, w, h = np.ascontiguousarray(boxes.T)
    return [x, y, x + w, y + h, w * h]


def _iou(first: list[npt.NDArray[Any]], second: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    common = _common_area(first, second)
    union = first[4] + second[4] - common
    overlap: npt.NDArray[Any] = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return overlap


def _common_area(first: list[npt.NDArray[Any]], second: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    width = np.minimum(first[2], second[2]) - np.maximum(first[0], second[0])
    height = np.minimum(first[3], second[3]) - np.maximum(first[1], second[1])
    common: npt.NDArray[Any] = np.maximum(width, 0) * np.maximum(height, 0)
    return common


def recall_names(points: OperatingPoints) -> tuple[str, ...]:
    """Return the recalls as the decimal texts that results use for keys."""
    return tenth_names(points.recalls_tenths)


def tenth_names(tenths: Iterable[int]) -> tuple[str, ...]:
    """Return tenths as decimal texts: ``"0.3"`` for 3."""
    return tuple(f"{tenth // 10}.{tenth % 10}" for tenth in tenths)
