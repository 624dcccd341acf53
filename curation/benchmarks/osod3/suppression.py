"""Boxes thinned out: suppression within a label and across known and unknown, and dropout passes made one set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from curation.benchmarks.osod3.score_vectors import Labelled, ScoreVectors, image_positions
from curation.core.errors import PredictionError, UsageError
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
        for rank, row in enumerate(order.tolist()):
            rest = order[rank + 1 :]
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
        for rank, row in enumerate(order.tolist()):
            rest = order[rank + 1 :]
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


@dataclass(frozen=True, slots=True)
class Merged:
    """Regions of interest with the mean of their passes.

    Attributes
    ----------
    vectors : ScoreVectors
        Mean boxes and scores, one a region, by image and region.
    passes : ndarray of int64, shape (r,)
        Passes in which each region is present.
    entropy : ndarray of float64, shape (r,)
        Of the mean score vector scaled to sum 1, in nats: the usual uncertainty; NaN where it sums to 0.
    """

    vectors: ScoreVectors
    passes: Int64s
    entropy: Floats


def merge_passes(passes: Sequence[ScoreVectors]) -> Merged:
    """Return the mean of the boxes and scores of every region over the passes that hold it.

    *The Overlooked Elephant of Object Detection*, section 3.2, after Miller et al. (2018): every box carries the
    index of its region of interest. A region missing from some passes is averaged over the others, and its count
    kept.

    Raises
    ------
    PredictionError
        A pass has no regions, names one twice in an image, or has another number of classes.
    UsageError
        There are no passes.
    """
    if not passes:
        raise UsageError("No passes to merge", expected="at least one file")
    for run in passes:
        _check_pass(run, passes[0])
    keys = [
        (image, region) for run in passes for image, region in zip(run.image_ids, _regions(run).tolist(), strict=True)
    ]
    # By image and region, numbers before texts: of equal scores suppression keeps the first, whatever pass came first.
    ordered = sorted(set(keys), key=lambda key: (isinstance(key[0], str), key))
    number = {key: position for position, key in enumerate(ordered)}
    group = np.array([number[key] for key in keys], np.int64)
    counts = np.bincount(group, minlength=len(number)).astype(np.int64)
    boxes = _mean(np.concatenate([run.boxes for run in passes]), group, counts)
    scores = _mean(np.concatenate([run.scores for run in passes]), group, counts)
    ids = tuple(image for image, _ in number)
    merged = replace(
        passes[0],
        image_ids=ids,
        image=image_positions(ids),
        boxes=boxes,
        scores=scores,
        background=None,
        objectness=None,
        region=np.array([region for _, region in number], np.int64),
    )
    return Merged(merged, counts, _entropy(scores))


def detections_of(merged: Merged, *, floor: float = 0.05, iou: float = 0.5) -> Labelled:
    """Return the labelled boxes of the mean scores: every class above `floor`, suppressed within each label.

    Raises
    ------
    UsageError
        The floor is no number, or the IoU is outside [0, 1].
    """
    if not (np.isfinite(floor) and 0 <= iou <= 1):
        raise UsageError(
            "The merged boxes cannot be labelled",
            expected="a finite floor, an IoU from 0 to 1",
            found=f"floor {floor}, IoU {iou}",
        )
    row, label = np.nonzero(merged.vectors.scores > floor)
    scores = merged.vectors.scores[row, label]
    groups = merged.vectors.image[row] * max(merged.vectors.scores.shape[1], 1) + label
    kept = keep_within_labels(groups, merged.vectors.boxes[row], scores, iou)
    return Labelled(row[kept], label[kept], scores[kept])


def _check_pass(run: ScoreVectors, first: ScoreVectors) -> None:
    keys = list(zip(run.image_ids, _regions(run).tolist(), strict=True)) if run.region is not None else []
    wrong = ""
    if run.region is None and len(run):
        wrong = "no record says which region a box belongs to"
    elif run.scores.shape[1] != first.scores.shape[1] and len(run) and len(first):
        wrong = f"{run.scores.shape[1]} classes, and {first.scores.shape[1]} in the first"
    elif len(set(keys)) < len(keys):
        image, region = next(key for key in keys if keys.count(key) > 1)
        wrong = f"image {image} has region {region} twice"
    if wrong:
        raise PredictionError("Invalid pass of dropout", where=run.name, found=wrong)


def _regions(run: ScoreVectors) -> Int64s:
    return np.empty(0, np.int64) if run.region is None else run.region


def _mean(values: Floats, group: Int64s, counts: Int64s) -> Floats:
    columns = []
    for column in range(values.shape[1]):
        # Sorted before they are added, so that the order of the passes does not show in the last bits.
        order = np.lexsort((values[:, column], group))
        columns.append(np.bincount(group[order], values[order, column], minlength=len(counts)) / counts)
    return np.stack(columns, axis=1) if columns else np.empty((len(counts), 0))


def _entropy(scores: Floats) -> Floats:
    total = scores.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = scores / total
        terms = np.where(shares > 0, shares * np.log(shares), 0.0)
    entropy: Floats = np.where(total[:, 0] > 0, -terms.sum(axis=1), np.nan)
    return entropy
