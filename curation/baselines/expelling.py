"""The class-specific expelling classifier (CEC): a box that every known class expels is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from curation.baselines.score_vectors import Labelled, ScoreVectors
from curation.errors import PredictionError, UsageError
from curation.evaluation.columns import Detections, Floats, GroundTruth, Int64s
from curation.evaluation.matching import overlapping_pairs

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


def calibrate(
    vectors: ScoreVectors, image: Int64s, truth: GroundTruth, *, phi: float = PHI
) -> ClassThresholds:
    """Return the mean score of each known class on its training objects (equation 6, section 4.2).

    *Revisiting Open World Object Detection*: over all pairs of a predicted box and an object of class c in the same
    image with IoU > phi, the mean of the score of c. (The printed subscript of the score is that of the box to be
    judged; only the training box makes sense.)

    Parameters
    ----------
    vectors : ScoreVectors
        Predictions on training images.
    image : ndarray of int64, shape (n,)
        Position of each box's image in `truth`.
    truth : GroundTruth
        Training objects of the known classes, in the order of the scores.

    Raises
    ------
    PredictionError
        The calibration holds unknown objects (the principle Annotation Specificity forbids it), or has another number
        of classes.
    UsageError
        Phi is outside [0, 1].
    """
    if not 0 <= phi <= 1:
        raise UsageError("Phi is an IoU", expected="0 to 1", found=str(phi))
    if (truth.label < 0).any():
        raise PredictionError(
            "The calibration holds objects of unknown classes",
            expected="training annotations of the known classes alone: thresholds must not be chosen with unknown ones",
            found=f"{int((truth.label < 0).sum())} such objects",
        )
    if len(truth.classes) != vectors.scores.shape[1]:
        raise PredictionError(
            "The calibration has another number of classes",
            where=vectors.name,
            expected=f"{len(truth.classes)} scores a box",
            found=str(vectors.scores.shape[1]),
        )
    boxes = Detections(
        image.astype(np.int32), np.zeros(len(vectors), np.int32), vectors.boxes, np.zeros(len(vectors))
    )
    found = overlapping_pairs(
        truth, boxes, same_class=False, iou_threshold=phi, strict=True, mask=~truth.crowd
    )
    label = truth.label[found.position]
    total = np.bincount(label, vectors.scores[found.row, label], minlength=len(truth.classes))
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
            "The expelling classifier cannot be used so",
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
