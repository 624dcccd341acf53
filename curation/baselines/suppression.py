"""Boxes thinned out: suppression within a label, and across known and unknown."""

from __future__ import annotations

from typing import Literal

import numpy as np

from curation.errors import UsageError
from curation.evaluation.matching import pair_iou
from curation.evaluation.problem import Bools, Floats, Int64s

CrossVariant = Literal["pairwise", "greedy"]
CROSS_VARIANTS: dict[str, str] = {
    "pairwise": "of every overlapping pair of a known and an unknown box the lower score goes, all at once; a box that "
    "is gone still removes others; of equal scores the unknown one goes (the paper's code)",
    "greedy": "by falling score, known first of equal ones; only a box that is kept removes another",
}


def keep_within_labels(groups: Int64s, boxes: Floats, scores: Floats, iou: float) -> Bools:
    """Return which boxes survive greedy suppression within their group, shape (n,).

    By falling score, ties in input order, a kept box removes later ones of its group with IoU > `iou`.

    Parameters
    ----------
    groups : ndarray of int64, shape (n,)
        One number for each image and label.
    """
    kept = np.ones(len(groups), np.bool_)
    for rows in _in_groups(groups):
        order = rows[np.argsort(-scores[rows], kind="stable")]
        for place, row in enumerate(order.tolist()):
            rest = order[place + 1 :]
            if kept[row] and len(rest):
                kept[rest[_overlap(boxes, row, rest) > iou]] = False
    return kept


def keep_across_kinds(
    image: Int64s, boxes: Floats, scores: Floats, is_unknown: Bools, iou: float, variant: CrossVariant = "pairwise"
) -> Bools:
    """Return which boxes survive suppression between known and unknown ones of an image, shape (n,).

    *Rectifying Open-Set Object Detection*, section 4.4 and Fig. 5; the variants are those of `CROSS_VARIANTS`. Two
    known boxes, or two unknown ones, are never compared. An IoU threshold of 1 removes nothing.

    Raises
    ------
    UsageError
        The threshold is outside [0, 1], or the variant has another name.
    """
    if not 0 <= iou <= 1 or variant not in CROSS_VARIANTS:
        raise UsageError(
            "Invalid arguments of the suppression",
            expected=f"an IoU from 0 to 1, a variant of {', '.join(CROSS_VARIANTS)}",
            found=f"{iou!r}, {variant!r}"[:80],
        )
    kept = np.ones(len(image), np.bool_)
    for rows in _in_groups(image):
        # Falling score, known before unknown of equal scores, then input order.
        order = rows[np.lexsort((rows, is_unknown[rows], -scores[rows]))]
        for place, row in enumerate(order.tolist()):
            rest = order[place + 1 :]
            rest = rest[is_unknown[rest] != is_unknown[row]]
            if not len(rest) or (variant == "greedy" and not kept[row]):
                continue
            kept[rest[_overlap(boxes, row, rest) > iou]] = False
    return kept


def _overlap(boxes: Floats, row: int, others: Int64s) -> Floats:
    """Return the IoU of a box with others, 1 at most: rounding lifts that of equal boxes above it, by some 1e-11."""
    first = np.broadcast_to(boxes[row], (len(others), 4))
    overlap: Floats = np.minimum(pair_iou(first, boxes[others]), 1.0)
    return overlap


def _in_groups(groups: Int64s) -> list[Int64s]:
    """Return the rows of each group, in input order."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if len(order) else []
