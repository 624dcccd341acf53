"""How many decisions of a number rest on the order of a file: detections of one class and equal score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.evaluation.problem import Bools, Detections, Int32s, Int64s

_Whole = npt.NDArray[np.integer[Any]]


def count_tie_sensitive(
    detections: Detections,
    kind: _Whole,
    *,
    counted: Bools | None = None,
    claim: _Whole | None = None,
    contested: Bools | None = None,
    free: bool = False,
    read_at_first: bool = False,
) -> int:
    """Return how many groups of one class and equal score give other numbers where the file has another order.

    One of the group is right (`kind` above 0), they differ in kind or contest an object, and are not copies of each
    other: copies, and those that claim one object, come in the same order of kinds however the file is sorted.

    Parameters
    ----------
    kind : ndarray of int, shape (d,)
        What became of each detection; 0 wrong, above 0 right.
    counted : ndarray of bool, shape (d,), optional
        The detections that take part; all by default.
    claim : ndarray of int, shape (d,), optional
        The object that each is compared with, -1 for none: the first of equal score gets it, whichever that is.
    contested : ndarray of bool, shape (d,), optional
        Detections of which it is not known what becomes of them.
    free : bool
        Whether each takes the best object that is still free: then the order of equal scores in an image says which
        objects are left.
    read_at_first : bool
        A number is read at the first detection of a class too, be it right or wrong (wilderness impact at recall 0).
    """
    label, scores, image = detections.label, detections.scores, detections.image
    decisive = kind > 0 if counted is None else (kind > 0) & counted
    if read_at_first:
        highest = np.full(int(label.max(initial=-1)) + 1, -np.inf)
        np.maximum.at(highest, label, scores)
        decisive |= scores == highest[label]
    values, rank = np.unique(scores, return_inverse=True)
    shared = np.zeros(len(values), bool)
    shared[rank[decisive]] = True
    rows = np.flatnonzero(shared[rank] if counted is None else shared[rank] & counted)
    group = label[rows].astype(np.int64) * len(values) + rank[rows]
    order = np.argsort(group)
    again = np.diff(group[order]) == 0
    # Few have an equal: the rest is asked of these alone.
    order = order[np.append(again, False)[: len(order)] | np.append(False, again)[: len(order)]]
    if not len(order):
        return 0
    if free:
        order = order[np.lexsort((image[rows[order]], group[order]))]
    rows, group = rows[order], group[order]
    begins = np.append(True, np.diff(group) != 0)
    starts = np.flatnonzero(begins)
    firsts = np.repeat(rows[starts], np.diff(np.append(starts, len(rows))))
    matters = kind[rows] != kind[firsts]
    if contested is not None:
        matters |= contested[rows]
    if free:
        matters[1:] |= ~begins[1:] & (np.diff(image[rows]) == 0)
    differs = np.zeros(len(rows), bool)
    for column in (*detections.boxes.T, image):
        differs |= column[rows] != column[firsts]
    if claim is not None:
        differs = (claim[rows] != claim[firsts]) | (differs & (claim[rows] < 0))
    found = [np.logical_or.reduceat(mask, starts) for mask in (decisive[rows], matters, differs)]
    return int(np.logical_and.reduce(found).sum())


def equal_rows(detections: Detections, rows: Int64s) -> Int64s:
    """Return a number for each of some rows, the same for rows of the same image, class, box and score."""
    columns = [*detections.boxes[rows].T, detections.scores[rows], detections.label[rows], detections.image[rows]]
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
    return replace(Detections.joined(parts), image=_counted_on([part.image for part in parts]))


def joined_claims(*parts: _Whole) -> Int64s:
    """Return the claims of all parts, objects counted on from part to part; -1 stays -1."""
    claim = np.concatenate(parts)
    return np.where(claim < 0, -1, _counted_on(parts)).astype(np.int64)


def _counted_on(parts: Sequence[_Whole]) -> Int32s:
    used, columns = 0, []
    for part in parts:
        columns.append(part.astype(np.int64) + used)
        used += int(part.max(initial=-1)) + 1
    return np.concatenate(columns).astype(np.int32)
