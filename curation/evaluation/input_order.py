"""Whether the order of a file decided a number: equal scores, and duplicates that are not listed by score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.evaluation.matching import overlapping_pairs
from curation.evaluation.problem import Bools, Detections, Floats, GroundTruth, Int32s, Int64s

_Whole = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class InputOrder:
    """What input order decided among the detections of an evaluation.

    Attributes
    ----------
    groups, detections : int
        Groups of detections of one class and equal score that differ in what they find, and detections in them:
        another order puts other ones first.
    unsorted : int
        Objects that go to the detection listed first though another one of the same class has a higher score.
    """

    groups: int = 0
    detections: int = 0
    unsorted: int = 0

    def __bool__(self) -> bool:
        return bool(self.groups or self.unsorted)

    def __add__(self, other: InputOrder) -> InputOrder:
        return InputOrder(
            self.groups + other.groups, self.detections + other.detections, self.unsorted + other.unsorted
        )

    def note(self, numbers: str) -> str:
        """Return in words what input order decided, ``""`` for nothing; `numbers` names what depends on it."""
        told = []
        if self.groups:
            told.append(
                f"{self.detections} detections of equal score, in {self.groups} groups of one class, find different "
                "things"
            )
        if self.unsorted:
            told.append(
                f"{self.unsorted} objects go to the detection that is listed first, not to that of highest score"
            )
        return f"the order of the detections decided {numbers}: {'; '.join(told)}" if told else ""

    def record(self, numbers: str) -> dict[str, Any]:
        """Return what a result says: ``decided``, the three counts, and the note (None where nothing depends on it)."""
        return {
            "decided": bool(self),
            "equal_score_groups": self.groups,
            "equal_score_detections": self.detections,
            "objects_to_first_listed": self.unsorted,
            "note": self.note(numbers) or None,
        }


def decided_by_order(
    detections: Detections,
    kind: _Whole,
    *,
    counted: Bools | None = None,
    claim: _Whole | None = None,
    contested: Bools | None = None,
    read_at_first: bool = False,
) -> InputOrder:
    """Return the groups of one class and equal score whose order matters to a ranking.

    A group matters where one of its detections is right (`kind` above 0), they differ in kind or contest an object, and
    are not copies of each other: copies, and those that claim one object, come in the same order of kinds however
    the file is sorted.

    Parameters
    ----------
    kind : ndarray of int, shape (d,)
        What became of each detection; 0 wrong, above 0 right.
    counted : ndarray of bool, shape (d,), optional
        The detections that take part; all by default.
    claim : ndarray of int, shape (d,), optional
        The object that each is compared with, -1 for none: the first of equal score gets it, whichever that is.
    contested : ndarray of bool, shape (d,), optional
        See `contested_objects`.
    read_at_first : bool
        A number is read at the first detection of a class too, be it right or wrong (wilderness impact at recall 0).
    """
    rows = np.arange(len(detections)) if counted is None else np.flatnonzero(counted)
    if not len(rows):
        return InputOrder()
    order, group = sorted_by_score(detections.label[rows], detections.scores[rows])
    rows = rows[order]
    starts = _starts(group)
    matters = np.maximum.reduceat(kind[rows], starts) > np.minimum.reduceat(kind[rows], starts)
    if contested is not None:
        matters |= np.logical_or.reduceat(contested[rows], starts)
    told = np.maximum.reduceat(kind[rows], starts) > 0
    if read_at_first:
        told |= np.append(True, np.diff(detections.label[rows[starts]]) != 0)
    matters &= told
    rows = rows[matters[group]]
    if not len(rows):
        return InputOrder()
    sizes = np.bincount(group)[matters]
    starts = np.cumsum(sizes) - sizes
    # A group is of one kind where each is as its first.
    differs = _differ(detections, rows, np.repeat(rows[starts], sizes), claim)
    varied = np.logical_or.reduceat(differs, starts)
    return InputOrder(int(varied.sum()), int(sizes[varied].sum()))


def sorted_by_score(group: _Whole, scores: Floats) -> tuple[Int64s, Int64s]:
    """Return an order by group and falling score, and for each place in it the number of its group and score.

    Numbers ascend from 0, and equal scores of one group have one; their order among each other is undefined.

    Parameters
    ----------
    group : ndarray of int, shape (d,)
    scores : ndarray of float64, shape (d,)
    """
    if not len(scores):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    # Two sorts of one key each take a quarter of the time of one by two keys.
    order = np.argsort(-scores)
    rank = np.empty(len(order), np.int64)
    rank[order] = _counted(scores[order])
    key = group.astype(np.int64) * len(order) + rank
    order = np.argsort(key)
    return order, _counted(key[order])


def _counted(ordered: npt.NDArray[Any]) -> Int64s:
    """Return the number of each run of equal values, from 0."""
    return np.append(0, np.cumsum(ordered[1:] != ordered[:-1]))


def _starts(numbers: Int64s) -> Int64s:
    """Return where each of ascending numbers first stands."""
    return np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))


def _differ(detections: Detections, rows: Int64s, others: Int64s, claim: _Whole | None) -> Bools:
    """Return which of some rows differ from others in image, class, box or score, or in the object that they claim."""
    columns = (*detections.boxes.T, detections.scores, detections.label, detections.image)
    found = np.zeros(len(rows), bool)
    for column in columns:
        found |= column[rows] != column[others]
    if claim is None:
        return found
    return np.asarray((claim[rows] != claim[others]) | (found & (claim[rows] < 0)))


def equal_rows(detections: Detections, rows: Int64s) -> Int64s:
    """Return a number for each of some rows, the same for rows of the same image, class, box and score."""
    columns = [
        *detections.boxes[rows].T,
        detections.scores[rows],
        detections.label[rows],
        detections.image[rows],
    ]
    order = np.lexsort(columns)
    changes = np.zeros(len(order), bool)
    for column in columns:
        changes[1:] |= np.diff(column[order]) != 0
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(changes)
    return number


def kinds(outcome: _Whole, on_unknown: Bools) -> Int64s:
    """Return what became of each detection for `decided_by_order`, overlaps with an unknown object told apart."""
    return np.where(outcome == 1, 1 + on_unknown, np.where(outcome == 0, 0, -2) - on_unknown).astype(np.int64)


def joined(*parts: Detections) -> Detections:
    """Return the detections of all parts, images counted on from part to part."""
    return replace(Detections.joined(parts), image=_counted_on([one.image for one in parts]))


def joined_claims(*parts: _Whole) -> Int64s:
    """Return the claims of all parts, objects counted on from part to part; -1 stays -1."""
    claim = np.concatenate(parts)
    return np.where(claim < 0, -1, _counted_on(parts)).astype(np.int64)


def _counted_on(parts: Sequence[_Whole]) -> Int32s:
    used, columns = 0, []
    for one in parts:
        columns.append(one.astype(np.int64) + used)
        used += int(one.max(initial=-1)) + 1
    return np.concatenate(columns).astype(np.int32)


def contested_objects(truth: GroundTruth, detections: Detections, mask: Bools) -> Bools:
    """Return which detections may find an object that another of their image, class and score may find too, shape (d,).

    Where each takes the best object that is still free (IoU >= 0.5), the order among these says which objects are left.

    Parameters
    ----------
    mask : ndarray of bool, shape (m,)
        The objects that can be found.
    """
    contested = np.zeros(len(detections), bool)
    columns = (detections.scores, detections.label, detections.image)
    order = np.lexsort(columns)
    equal = np.ones(max(len(order) - 1, 0), bool)
    for column in columns:
        equal &= np.diff(column[order]) == 0
    tied = np.zeros(len(order), bool)
    tied[order[1:][equal]] = True
    tied[order[:-1][equal]] = True
    rows = np.flatnonzero(tied)
    if not len(rows):
        return contested
    group = np.append(0, np.cumsum(~equal))
    number = np.empty(len(order), np.int64)
    number[order] = group[: len(order)]
    chosen = detections.take(rows)
    pairs = overlapping_pairs(truth, chosen, same_class=True, mask=mask, iou_threshold=0.5, strict=False)
    same = equal_rows(detections, rows)
    # Within a group and object, copies of one detection aside.
    claimed = np.unique(np.stack([number[rows[pairs.row]], pairs.position, same[pairs.row]], axis=1), axis=0)
    _, place, count = np.unique(claimed[:, :2], axis=0, return_inverse=True, return_counts=True)
    groups = np.unique(claimed[count[place.ravel()] > 1, 0])
    contested[rows] = np.isin(number[rows], groups)
    return contested
