"""Bootstrap confidence intervals over images for AUROC, FPR95 and the open-set metrics of one OOD split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.benchmarks.findmeifyoucan.profiles import (
    OpenSetOutcomes,
    open_set_outcomes,
    unknown_detections,
)
from curation.evaluation.columns import Bools, Floats, GroundTruth, Int64s
from curation.evaluation.curves import weighted_auroc
from curation.evaluation.id_scores import IdScores
from curation.evaluation.ood.detections import OodDetections
from curation.evaluation.resample import GENERATOR, resample, weights_of
from curation.evaluation.variants import Rules

DEFINITION = (
    "Percentile bootstrap, 95 %, over images. Each replicate draws as many OOD images, and as many ID images, as there "
    "are, with replacement, the two apart; an image drawn twice counts twice. ID images are those with detections; "
    "where the ID file names no images its detections are drawn one by one: intervals are too narrow. The threshold "
    "stays that of the data, and a detection keeps its outcome, for matching is per image. AP_U is not resampled."
)
_TAIL = 0.025


@dataclass(frozen=True, slots=True)
class _Rates:
    """Counts of one profile by image, shape (images,) each."""

    tp: Int64s
    counted: Int64s
    misclassified: Int64s
    objects: Int64s


@dataclass(frozen=True, slots=True)
class ImageSample:
    """What the replicates draw from: scores with the image of each, and counts by image.

    Attributes
    ----------
    scores, image : ndarray, shape (d,)
        OOD scores in ascending order, and their images.
    id_scores, id_image : ndarray, shape (n,)
        The same of the ID set.
    n_images, n_id_images : int
    rates : dict of str to counts by image
    """

    scores: Floats
    image: Int64s
    id_scores: Floats
    id_image: Int64s
    n_images: int
    n_id_images: int
    rates: dict[str, _Rates]

    @classmethod
    def of(
        cls,
        truth: GroundTruth,
        detections: OodDetections,
        id_scores: IdScores,
        method: str,
        threshold: float,
        profiles: tuple[Rules, ...],
    ) -> ImageSample:
        """Return the sample of one split and one score."""
        oods, ids = detections.scores[method], id_scores.scores[method]
        named = range(len(ids)) if id_scores.images is None else id_scores.images
        id_names, id_image = np.unique(np.array(named), return_inverse=True)
        order, id_order = np.argsort(oods, kind="stable"), np.argsort(ids, kind="stable")
        unknown = unknown_detections(detections, method, threshold)
        return cls(
            oods[order],
            detections.image[order].astype(np.int64),
            ids[id_order],
            id_image[id_order].astype(np.int64),
            truth.n_images,
            len(id_names),
            {
                one.name: _rates(truth, detections, open_set_outcomes(truth, detections, unknown, one), one)
                for one in profiles
            },
        )

    def statistics(self, weights: Int64s, id_weights: Int64s) -> dict[str, float]:
        """Return every number, images counted with weights; NaN where it is undefined."""
        return {
            **_separability(self.id_scores, id_weights[self.id_image], self.scores, weights[self.image]),
            **{
                f"{profile}.{name}": value
                for profile, rates in self.rates.items()
                for name, value in _open_set(rates, weights).items()
            },
        }


def bootstrap_intervals(sample: ImageSample, *, replicates: int, seed: int = 0) -> dict[str, Any]:
    """Return 95 % intervals: ``{"estimate", "low", "high", "undefined"}`` by metric; `DEFINITION` says what is drawn.

    The same seed gives the same intervals on every machine; replicate i is the same whatever their number.

    Parameters
    ----------
    replicates : int
        At least 1.
    seed : int
        0 to 2**64 - 1.

    Raises
    ------
    UsageError
        Parameters out of range.
    """

    def statistics(drawn: Sequence[Int64s]) -> dict[str, float]:
        return sample.statistics(
            *(weights_of(one, n) for one, n in zip(drawn, (sample.n_images, sample.n_id_images), strict=True))
        )

    found = resample(statistics, (sample.n_images, sample.n_id_images), replicates=replicates, seed=seed)
    return {
        "definition": DEFINITION,
        "generator": GENERATOR.format("image count"),
        "replicates": replicates,
        "seed": seed,
        "metrics": {name: found.intervals(name, _TAIL) for name in found.estimate},
    }


def _rates(truth: GroundTruth, detections: OodDetections, one: OpenSetOutcomes, rules: Rules) -> _Rates:
    def by_image(chosen: Bools) -> Int64s:
        return np.bincount(detections.image[chosen], minlength=truth.n_images)

    def objects(chosen: Bools) -> Int64s:
        return np.bincount(truth.image[chosen], minlength=truth.n_images)

    return _Rates(
        tp=by_image(one.correct),
        counted=by_image(one.counted),
        misclassified=objects(one.misclassified()) if rules.errors == "objects" else by_image(one.on_object),
        objects=objects(np.ones(len(truth.image), bool)),
    )


def _open_set(rates: _Rates, weights: Int64s) -> dict[str, float]:
    n, counted, tp = (int(column @ weights) for column in (rates.objects, rates.counted, rates.tp))
    return {
        "nOSE": 100 * int(rates.misclassified @ weights) / n if n else np.nan,
        "P_U": (100 * tp / counted if counted else 0.0) if n else np.nan,
        "R_U": 100 * tp / n if n else np.nan,
    }


def _separability(ids: Floats, id_weights: Int64s, oods: Floats, weights: Int64s) -> dict[str, float]:
    """Return AUROC and FPR95 (rule ``first``) of weighted scores in ascending order; ID positive."""
    n, m = int(id_weights.sum()), int(weights.sum())
    if not n or not m:
        return {"AUROC": np.nan, "FPR95_first": np.nan}
    less, at_most = (np.searchsorted(oods, ids, side=side) for side in ("left", "right"))
    at_least = np.cumsum(id_weights[::-1])[::-1]
    # The largest ID score at which TPR reaches 0.95; equal scores below it count too, hence the first of them.
    place = int(np.flatnonzero(20 * at_least >= 19 * n)[-1])
    return {
        "AUROC": weighted_auroc(id_weights, weights, less, at_most),
        "FPR95_first": float((m - weights[: less[place]].sum()) / m),
    }
