"""Confirmation of unknown proposals by auxiliary ones (the first half of PAD)."""

from __future__ import annotations

import numpy as np

from curation.errors import UsageError
from curation.evaluation.columns import Detections, Floats, GroundTruth, Int64s
from curation.evaluation.matching import best_overlap

THETA, TOP = 0.7, 50


def confirm(
    image: Int64s,
    boxes: Floats,
    objectness: Floats,
    auxiliary_image: Int64s,
    auxiliary_boxes: Floats,
    auxiliary_scores: Floats | None = None,
    *,
    theta: float = THETA,
    top: int = TOP,
) -> Int64s:
    """Return the proposals that an auxiliary box confirms, in input order.

    *Revisiting Open World Object Detection*, section 4.1, equation 4: ``S_i [max_j IoU(P_i, Q_j) > theta]``; proposals
    whose score becomes 0 are dropped. Of each image the `top` proposals by objectness and the `top` auxiliary boxes
    (by score, or the first ones) take part; equal auxiliary boxes count as one.

    Parameters
    ----------
    image, auxiliary_image : ndarray of int64, shapes (n,), (m,)
        The same numbering of images.
    boxes, auxiliary_boxes : ndarray of float64, shapes (n, 4), (m, 4)
        ``x, y, w, h`` in pixels.

    Raises
    ------
    UsageError
        Theta is outside [0, 1], or `top` is below 1.
    """
    if not 0 <= theta <= 1 or top < 1:
        raise UsageError(
            "The confirmation cannot be done so",
            expected="an IoU from 0 to 1, top of at least 1",
            found=f"{theta}, {top}",
        )
    chosen = best_of_each(image, objectness, top)
    ranks = (
        -np.arange(len(auxiliary_image), dtype=np.float64) if auxiliary_scores is None else auxiliary_scores
    )
    first = _first_of_equal(auxiliary_image, auxiliary_boxes, ranks)
    others = first[best_of_each(auxiliary_image[first], ranks[first], top)]
    truth = _as_truth(auxiliary_image[others], auxiliary_boxes[others])
    proposals = Detections(
        image[chosen].astype(np.int32), np.zeros(len(chosen), np.int32), boxes[chosen], objectness[chosen]
    )
    _, iou = best_overlap(truth, proposals, same_class=False)
    confirmed: Int64s = chosen[(iou > theta) & (objectness[chosen] != 0)]
    return confirmed


def best_of_each(image: Int64s, scores: Floats, most: int) -> Int64s:
    """Return the rows with the highest scores of each image, ties by input order, in input order."""
    rows = np.arange(len(image))
    order = np.lexsort((rows, -scores, image))
    starts = np.flatnonzero(np.r_[True, np.diff(image[order]) != 0]) if len(order) else np.empty(0, np.int64)
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return np.sort(order[place < most])


def _first_of_equal(image: Int64s, boxes: Floats, ranks: Floats) -> Int64s:
    """Return the rows without those that repeat a box of their image at a lower or equal rank, in input order."""
    order = np.lexsort((np.arange(len(image)), -ranks))
    keys = np.column_stack([image, boxes])[order]
    _, first = np.unique(keys, axis=0, return_index=True)
    return np.sort(order[first])


def _as_truth(image: Int64s, boxes: Floats) -> GroundTruth:
    order = np.argsort(image, kind="stable")
    off = np.zeros(len(image), np.bool_)
    return GroundTruth(
        image_numbers=np.arange(int(image.max(initial=-1)) + 1),
        classes=("object",),
        class_numbers=(1,),
        image=image[order].astype(np.int32),
        label=np.zeros(len(image), np.int32),
        boxes=boxes[order],
        crowd=off,
        difficult=off,
        areas=boxes[order, 2] * boxes[order, 3],
    )
