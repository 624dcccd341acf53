"""Which boxes of a detector are unknown objects by its scores alone: the naive baseline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curation.baselines.score_vectors import Labelled, ScoreVectors
from curation.baselines.suppression import keep_within_labels
from curation.errors import PredictionError, UsageError
from curation.evaluation.problem import Floats, Int64s


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
    kept = kept[_best_of_each(vectors.image[row[kept]], scores[kept], options.top)]
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


def _best_of_each(image: Int64s, scores: Floats, most: int) -> Int64s:
    """Return the rows with the highest scores of each image, ties by input order, in input order."""
    rows = np.arange(len(image))
    order = np.lexsort((rows, -scores, image))
    starts = np.flatnonzero(np.r_[True, np.diff(image[order]) != 0]) if len(order) else np.empty(0, np.int64)
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return np.sort(order[place < most])
