"""Which boxes of a detector are unknown objects: naive baseline, expelling classifier, confirmation of proposals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from curation.benchmarks.osod3.score_vectors import Labelled, ScoreVectors
from curation.benchmarks.osod3.suppression import keep_within_labels
from curation.core.errors import PredictionError, UsageError
from curation.evaluation.matching import best_overlap, overlapping_pairs
from curation.evaluation.problem import Detections, Floats, GroundTruth, Int64s
from curation.evaluation.readers import locate

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
        The same numbering of images: `curation.benchmarks.osod3.score_vectors.image_positions` of the ids of both
        together.
    boxes, auxiliary_boxes : ndarray of float64, shapes (n, 4), (m, 4)
        ``x, y, w, h`` in pixels.

    Raises
    ------
    UsageError
        Theta is outside [0, 1], or `top` is below 1.
    """
    if not 0 <= theta <= 1 or top < 1:
        raise UsageError(
            "Invalid arguments of the confirmation",
            expected="an IoU from 0 to 1, top of at least 1",
            found=f"{theta}, {top}",
        )
    chosen = best_of_each(image, objectness, top)
    ranks = -np.arange(len(auxiliary_image), dtype=np.float64) if auxiliary_scores is None else auxiliary_scores
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
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return np.sort(order[rank < most])


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


@dataclass(frozen=True, slots=True)
class NaiveOptions:
    """Parameters of the baseline, defaults as in the paper's code.

    Attributes
    ----------
    gamma : float
        A box is unknown where its best score is less than gamma times the second best (Open Images: FCOS 4, Faster
        R-CNN 15; CUB and MTSD: 1.5 and 3).
    floor : float
        A class takes part above this score.
    iou : float
        Overlap above which suppression within a label removes a box.
    top : int
        Boxes kept in an image.
    compare_background : bool
        Whether the background's score is one of those compared.
    """

    gamma: float
    floor: float = 0.05
    iou: float = 0.5
    top: int = 100
    compare_background: bool = False


def naive_unknown(vectors: ScoreVectors, options: NaiveOptions) -> Labelled:
    """Return labelled boxes, unknown ones among them (*Rectifying Open-Set Object Detection*, section 4.2).

    1. Every class with a score above `floor` makes a candidate of its box. 2. Where ``t1 / t2 < gamma`` (best over
    second best; without a second the ratio is infinite) each candidate of the box becomes unknown, with the sum of the
    three best scores, which may exceed 1. 3. Suppression within each label, unknown being one. 4. The best of an image.

    Raises
    ------
    UsageError
        Gamma or another number is out of range.
    PredictionError
        There are fewer than three classes, a score is negative, or the background is asked for and absent.
    """
    best, total = _best_three(vectors, options)
    row, label = np.nonzero(vectors.scores > options.floor)
    scores = vectors.scores[row, label]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(best[:, 1] > 0, best[:, 0] / best[:, 1], np.inf)
    doubtful = ratio[row] < options.gamma
    label = np.where(doubtful, vectors.scores.shape[1], label)
    scores = np.where(doubtful, total[row], scores)
    groups = vectors.image[row] * (vectors.scores.shape[1] + 1) + label
    kept = np.flatnonzero(keep_within_labels(groups, vectors.boxes[row], scores, options.iou))
    kept = kept[best_of_each(vectors.image[row[kept]], scores[kept], options.top)]
    return Labelled(row[kept], label[kept], scores[kept])


def _best_three(vectors: ScoreVectors, options: NaiveOptions) -> tuple[Floats, Floats]:
    """Return the three best scores of each box in falling order, shape (n, 3), and their sum."""
    if not (options.gamma >= 0 and 0 <= options.iou <= 1 and options.top > 0 and np.isfinite(options.floor)):
        raise UsageError(
            "Invalid parameters of the baseline",
            expected="gamma of 0 or more, an IoU from 0 to 1, at least one box an image",
            found=f"gamma {options.gamma}, IoU {options.iou}, top {options.top}, floor {options.floor}",
        )
    scores = vectors.scores
    lacking = {
        "at least 3 classes": bool(len(vectors)) and scores.shape[1] < 3,
        "scores that are not negative, such as probabilities: apply softmax or sigmoid first": (scores < 0).any(),
        "background_score in every record": options.compare_background and vectors.background is None,
    }
    if any(lacking.values()):
        expected = "; ".join(text for text, lacks in lacking.items() if lacks)
        raise PredictionError("The baseline cannot compare these scores", where=vectors.name, expected=expected)
    if options.compare_background and vectors.background is not None:
        scores = np.concatenate([scores, vectors.background[:, None]], axis=1)
    best = -np.sort(-scores, axis=1)[:, :3] if len(vectors) else np.empty((0, 3))
    return best, best.sum(axis=1)


UnknownScore = Literal["one", "max_score"]
UNKNOWN_SCORES: dict[str, str] = {
    "one": "an unknown box has the score 1 (the paper)",
    "max_score": "an unknown box has its highest expelled score, so that unknown boxes can be ranked",
}
PHI, ALPHA = 0.9, 0.5


@dataclass(frozen=True, slots=True)
class ClassThresholds:
    """What a known class scores on its own training objects.

    Attributes
    ----------
    means : ndarray of float64, shape (K,)
        Mean score of the class over its pairs; 0 where it has none: such a class never expels.
    pairs : ndarray of int64, shape (K,)
        Predicted boxes that overlap an object of the class with IoU > phi.
    uncalibrated : tuple of str
        Classes without a pair.
    """

    means: Floats
    pairs: Int64s
    uncalibrated: tuple[str, ...]


def calibrate(vectors: ScoreVectors, truth: GroundTruth, *, phi: float = PHI) -> ClassThresholds:
    """Return the mean score of each known class on its training objects (equation 6, section 4.2).

    *Revisiting Open World Object Detection*: over all pairs of a predicted box and an object of class c in the same
    image with IoU > phi, the mean of the score of c. (The printed subscript of the score is that of the box to be
    judged; only the training box makes sense.)

    Parameters
    ----------
    vectors : ScoreVectors
        Predictions on training images.
    truth : GroundTruth
        Training objects of the known classes, in the order of the scores.

    Raises
    ------
    PredictionError
        The calibration holds unknown objects (the principle Annotation Specificity forbids it), or has another number
        of classes; or a box lies on another image.
    UsageError
        Phi is outside [0, 1].
    """
    if not 0 <= phi <= 1:
        raise UsageError("Phi is an IoU", expected="0 to 1", found=str(phi))
    unknown, k = int((truth.label < 0).sum()), vectors.scores.shape[1]
    if unknown or len(truth.classes) != k:
        raise PredictionError(
            "The calibration holds objects of unknown classes" if unknown else "Wrong number of classes to calibrate",
            where=vectors.name,
            expected="training annotations of the known classes alone: thresholds must not be chosen with unknown ones"
            if unknown
            else f"{len(truth.classes)} scores a box",
            found=f"{unknown} such objects" if unknown else str(k),
        )
    image, found, _ = locate(vectors.image_ids, truth, lambda row: f"{vectors.name}: record {row}")
    if not found.all():
        row = int(np.argmin(found))
        raise PredictionError(
            "Image of a training box not in the training truth",
            where=f"{vectors.name}: record {row}",
            found=str(vectors.image_ids[row])[:80],
        )
    boxes = Detections(image.astype(np.int32), np.zeros(len(vectors), np.int32), vectors.boxes, np.zeros(len(vectors)))
    near = overlapping_pairs(truth, boxes, same_class=False, iou_threshold=phi, strict=True, mask=~truth.crowd)
    label = truth.label[near.position]
    total = np.bincount(label, vectors.scores[near.row, label], minlength=len(truth.classes))
    pairs = np.bincount(label, minlength=len(truth.classes)).astype(np.int64)
    return ClassThresholds(
        np.divide(total, pairs, out=np.zeros(len(pairs)), where=pairs > 0),
        pairs,
        tuple(name for name, count in zip(truth.classes, pairs.tolist(), strict=True) if not count),
    )


def expel(
    vectors: ScoreVectors, thresholds: ClassThresholds, *, alpha: float = ALPHA, unknown: UnknownScore = "one"
) -> Labelled:
    """Return one label a box: the best class that does not expel it, or unknown (equation 7, section 4.2).

    Class c expels a box where ``score - alpha * mean <= 0``.

    Raises
    ------
    UsageError
        Alpha is negative or infinite, or `unknown` has another name.
    """
    if not 0 <= alpha < np.inf or unknown not in UNKNOWN_SCORES:
        raise UsageError(
            "Invalid arguments of the expelling classifier",
            expected=f"a finite alpha of 0 or more, an unknown score of {', '.join(UNKNOWN_SCORES)}",
            found=f"{alpha}, {unknown}"[:80],
        )
    # A class that was never calibrated has threshold 0 and never expels, not even a score of 0.
    kept = (vectors.scores - alpha * thresholds.means > 0) | (thresholds.pairs == 0)
    scores = np.where(kept, vectors.scores, -np.inf)
    expelled = ~kept.any(axis=1)
    n, k = vectors.scores.shape
    label = scores.argmax(axis=1)
    given = vectors.scores.max(axis=1) if unknown == "max_score" else np.ones(n)
    values = np.where(expelled, given, scores[np.arange(n), label])
    return Labelled(np.arange(n), np.where(expelled, k, label).astype(np.int64), values)
