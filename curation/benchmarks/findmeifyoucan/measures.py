"""FMIYC's open-set metrics as the authors' code and as the paper's text read them, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from curation.benchmarks.benchmark import benchmark_facts, fact
from curation.benchmarks.findmeifyoucan.detections import IdScores, OodDetections
from curation.core.errors import UsageError
from curation.evaluation.curves import average_precision
from curation.evaluation.matching import assign
from curation.evaluation.problem import LARGEST_SCORE, Bools, Detections, Floats, GroundTruth, Int32s, Int64s
from curation.evaluation.resample import resample, weights_of
from curation.evaluation.separability import (
    RankedScores,
    aupr_step,
    aupr_trapezoid,
    auroc,
    fpr95_first,
    fpr95_nearest,
    fpr95_ood_positive,
)
from curation.evaluation.variants import Rules, round_decimal

FPR_KEYS: dict[str, str] = {
    "first": "FPR95_first",
    "nearest": "FPR95_nearest_vos",
    "ood_positive": "FPR95_ood_positive",
}
"""The measure behind FPR95 by requested rule."""
SEPARABILITY: dict[str, Callable[[RankedScores], float]] = {
    "AUROC": auroc,
    "AUPR_trapezoid": aupr_trapezoid,
    "AUPR_step": aupr_step,
    "FPR95_first": fpr95_first,
    "FPR95_nearest_vos": fpr95_nearest,
    "FPR95_ood_positive": fpr95_ood_positive,
}


def separability(id_scores: Floats, ood_scores: Floats) -> dict[str, float | None]:
    """Return every number of `SEPARABILITY`, None if ID or OOD has no scores.

    Parameters
    ----------
    id_scores, ood_scores : ndarray, shapes (n_id,) and (n_ood,)
        Finite; higher is more ID.
    """
    if not len(id_scores) or not len(ood_scores):
        return dict.fromkeys(SEPARABILITY)
    ranked = RankedScores.from_scores(id_scores, ood_scores)
    return {name: function(ranked) for name, function in SEPARABILITY.items()}


THRESHOLD_RULES = fact(__package__, "thresholds", dict[str, str])


def zscore_threshold(id_scores: Floats) -> float | None:
    """Return ``mean - 1.645 * std`` (ddof 0) of the ID scores, or None without scores."""
    return float(np.mean(id_scores) - 1.645 * np.std(id_scores)) if len(id_scores) else None


def quantile_threshold(id_scores: Floats) -> float | None:
    """Return the ID score of ascending rank ``floor(0.05 n)``, or None without scores."""
    if not len(id_scores):
        return None
    rank = len(id_scores) // 20
    return float(np.partition(id_scores, rank)[rank])


def decimal_value(text: str) -> float:
    """Return the decimal number of a text, NaN for other texts."""
    try:
        return float(text) if len(text) <= 40 else math.nan
    except ValueError:
        return math.nan


def threshold_of(id_scores: Floats, rule: str) -> float | None:
    """Return the threshold of a rule: ``zscore``, ``quantile``, or a decimal number as text.

    Returns
    -------
    float or None
        None if the rule needs ID scores and there are none.

    Raises
    ------
    UsageError
        The text is neither a rule nor a finite number.
    """
    if rule == "zscore":
        return zscore_threshold(id_scores)
    if rule == "quantile":
        return quantile_threshold(id_scores)
    value = decimal_value(rule)
    if not abs(value) <= LARGEST_SCORE:
        raise UsageError(
            "The threshold is neither a rule nor a number",
            expected="zscore, quantile, or a finite number",
            found=repr(rule)[:80],
        )
    return value


VARIANTS = {rules["name"]: Rules(**rules) for rules in benchmark_facts(__package__)["variants"]}
RATES = ("nOSE", "AP_U", "P_U", "R_U")


@dataclass(frozen=True, slots=True)
class OpenSetOutcomes:
    """The outcome of each detection and object under a variant and threshold.

    Attributes
    ----------
    rules : Rules
        Rules of the variant.
    unknown : ndarray of bool, shape (d,)
        Detections classified as unknown.
    counted : ndarray of bool, shape (d,)
        Unknown detections that are a true or a false positive.
    correct : ndarray of bool, shape (d,)
        Unknown detections that are a true positive.
    on_object : ndarray of bool, shape (d,)
        Known detections on an object, which AOSE counts.
    target : ndarray of int32, shape (d,)
        The object of highest IoU in the image, -1 in an image without objects.
    confidence : ndarray of float64, shape (d,)
        Confidence that ranks the detections in the variant.
    n_objects : int
        N_U: objects of the split, crowd and group regions included.
    """

    rules: Rules
    unknown: Bools
    counted: Bools
    correct: Bools
    on_object: Bools
    target: Int32s
    confidence: Floats
    n_objects: int

    def found_objects(self) -> Bools:
        """Return which objects an unknown detection matches, shape (N_U,)."""
        return _marked(self.target[self.correct], self.n_objects)

    def misclassified(self) -> Bools:
        """Return which objects are under a known detection and matched by no unknown one, shape (N_U,)."""
        return _marked(self.target[self.on_object], self.n_objects) & ~self.found_objects()


def unknown_detections(detections: OodDetections, method: str, threshold: float) -> Bools:
    """Return a mask of the unknown detections, shape (d,): score < threshold, or background (official_compat)."""
    return np.asarray((detections.scores[method] < threshold) | detections.background, np.bool_)


def open_set_outcomes(truth: GroundTruth, detections: OodDetections, unknown: Bools, rules: Rules) -> OpenSetOutcomes:
    """Return the outcome of each detection and object (Appendix D; ``open_set_evaluation.py`` of the code).

    By falling confidence, ties in input order, an unknown detection matches the object of highest IoU of its image if
    none matched it before; an object of lower IoU is never tried. A known detection lies on the object of highest IoU.

    Parameters
    ----------
    truth : GroundTruth
        Every object is unknown, crowd included.
    unknown : ndarray of bool, shape (d,)
    """
    confidence = round_decimal(detections.confidence, 3) if rules.text else detections.confidence
    objects, boxes = _boxes(truth, detections, rules)
    columns = Detections(detections.image, np.zeros(len(detections), np.int32), boxes, confidence)
    matches = assign(objects, columns, rules, competing=unknown)
    correct = matches.outcome == 1
    on_object = matches.claim >= 0
    counted = unknown & (matches.truth >= 0) if rules.text else unknown
    known = on_object & ~unknown
    return OpenSetOutcomes(rules, unknown, counted, correct, known, matches.truth, confidence, len(truth.image))


def open_set_rates(outcomes: OpenSetOutcomes) -> dict[str, float | None]:
    """Return nOSE, AP_U, P_U and R_U in percent, with all digits.

    Without unknown detections P_U, R_U and AP_U are 0 by convention; without objects (N_U = 0) all are None.
    """
    n, counted = outcomes.n_objects, int(outcomes.counted.sum())
    if not n:
        return dict.fromkeys(RATES)
    errors = outcomes.misclassified() if outcomes.rules.errors == "objects" else outcomes.on_object
    tp = int(outcomes.correct.sum())
    return {
        "nOSE": 100 * int(errors.sum()) / n,
        "AP_U": 100
        * average_precision(
            outcomes.confidence[outcomes.counted], outcomes.correct[outcomes.counted], n, outcomes.rules
        ),
        "P_U": 100 * tp / counted if counted else 0.0,
        "R_U": 100 * tp / n,
    }


def open_set_counts(outcomes: OpenSetOutcomes) -> dict[str, int]:
    """Return the numbers of objects that are found, classified as known (AOSE counts detections) and ignored."""
    tp, misclassified = int(outcomes.correct.sum()), int(outcomes.misclassified().sum())
    return {
        "n_unknown_gt": outcomes.n_objects,
        "TP_U": tp,
        "FP_U": int(outcomes.counted.sum()) - tp,
        "AOSE": int(outcomes.on_object.sum()),
        "objects_misclassified": misclassified,
        "objects_ignored": outcomes.n_objects - tp - misclassified,
    }


def why_zero(outcomes: OpenSetOutcomes) -> list[str]:
    """Return notes that explain a rate of 0."""
    if not outcomes.n_objects:
        return ["the split has no objects: N_U = 0"]
    if not len(outcomes.unknown):
        return ["there are no detections: P_U, R_U and AP_U are 0 by convention"]
    if not outcomes.unknown.any():
        return ["no detection is called unknown: P_U, R_U and AP_U are 0 by convention"]
    if not outcomes.counted.any():
        return ["all unknown detections lie on images without annotation, which this variant leaves out: P_U is 0"]
    return [] if outcomes.correct.any() else ["no unknown detection matches an object: P_U, R_U and AP_U are 0"]


def _boxes(truth: GroundTruth, detections: OodDetections, rules: Rules) -> tuple[GroundTruth, Floats]:
    """Return the ground truth and the boxes ``x, y, w, h`` of detections that the variant compares."""
    corners = detections.corners
    if not rules.text:
        return truth, np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], axis=1)
    # Inclusive pixels are one wider. In tenths of a pixel the corners of detections are whole numbers.
    start = np.rint(10 * round_decimal(corners[:, :2] + 1, 1))
    end = np.rint(10 * round_decimal(corners[:, 2:], 1))
    objects = replace(truth, boxes=10 * truth.boxes + np.array([0, 0, 10, 10]))
    return objects, np.concatenate([start, end - start + 10], axis=1)


def _marked(positions: Int32s, n: int) -> Bools:
    marked = np.zeros(n, bool)
    marked[positions] = True
    return marked


@dataclass(frozen=True, slots=True)
class ImageSample:
    """Data of the replicates: the scores of a method with the image of each, and counts by image.

    Attributes
    ----------
    scores, image : ndarray, shape (d,)
        OOD scores and their images.
    id_scores, id_image : ndarray, shape (n,)
        The same for the ID set.
    n_images, n_id_images : int
    counts : dict of str to dict of str to ndarray of int64, shape (images,)
        Detections and objects of each image by outcome, by variant.
    """

    scores: Floats
    image: Int32s
    id_scores: Floats
    id_image: Int64s
    n_images: int
    n_id_images: int
    counts: dict[str, dict[str, Int64s]]

    @classmethod
    def from_matches(
        cls,
        truth: GroundTruth,
        detections: OodDetections,
        id_scores: IdScores,
        method: str,
        outcomes: Iterable[OpenSetOutcomes],
    ) -> ImageSample:
        """Build the sample of a split and a score from the outcomes of some variants."""
        ids = id_scores.scores[method]
        id_images = range(len(ids)) if id_scores.images is None else id_scores.images
        id_names, id_image = np.unique(np.array(id_images), return_inverse=True)

        def counts(variant: OpenSetOutcomes) -> dict[str, Int64s]:
            by_object = variant.rules.errors == "objects"
            errors = truth.image[variant.misclassified()] if by_object else detections.image[variant.on_object]
            images = {
                "tp": detections.image[variant.correct],
                "counted": detections.image[variant.counted],
                "errors": errors,
                "objects": truth.image,
            }
            return {name: np.bincount(image, minlength=truth.n_images) for name, image in images.items()}

        return cls(
            detections.scores[method],
            detections.image,
            ids,
            id_image,
            truth.n_images,
            len(id_names),
            {variant.rules.name: counts(variant) for variant in outcomes},
        )

    def statistics(self, weights: Int64s, id_weights: Int64s) -> dict[str, float]:
        """Return every number for weighted images; NaN if it is undefined."""
        ids, oods = np.repeat(self.id_scores, id_weights[self.id_image]), np.repeat(self.scores, weights[self.image])
        values = dict.fromkeys(("AUROC", "FPR95_first"), np.nan)
        if len(ids) and len(oods):
            ranked = RankedScores.from_scores(ids, oods)
            values = {"AUROC": auroc(ranked), "FPR95_first": fpr95_first(ranked)}
        for variant, by_image in self.counts.items():
            total = {name: int(counts @ weights) for name, counts in by_image.items()}
            n, counted = total["objects"], total["counted"]
            values[f"{variant}.nOSE"] = 100 * total["errors"] / n if n else np.nan
            values[f"{variant}.P_U"] = (100 * total["tp"] / counted if counted else 0.0) if n else np.nan
            values[f"{variant}.R_U"] = 100 * total["tp"] / n if n else np.nan
        return values


def bootstrap_intervals(sample: ImageSample, *, replicates: int, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Return 95 % intervals: ``{"estimate", "low", "high", "undefined"}`` by metric.

    Metrics of a variant have names such as ``variant.nOSE``. The same seed gives the same intervals on every machine;
    replicate i does not depend on the number of replicates.
    """
    sizes = (sample.n_images, sample.n_id_images)

    def statistics(drawn: Sequence[Int64s]) -> dict[str, float]:
        return sample.statistics(*map(weights_of, drawn, sizes))

    replicated = resample(statistics, sizes, replicates=replicates, seed=seed)
    return {name: replicated.intervals(name) for name in replicated.estimate}
