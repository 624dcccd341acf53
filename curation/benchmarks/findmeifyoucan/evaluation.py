"""Everything measured of one OOD split of FindMeIfYouCan, or of a user's own, for one score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from curation.benchmarks.findmeifyoucan.measures import (
    ImageSample,
    bootstrap_intervals,
    open_set_metrics,
    open_set_outcomes,
    profiles_of,
    unknown_detections,
)
from curation.errors import EvaluationError, UsageError
from curation.evaluation.ood import separability as ood
from curation.evaluation.ood.detections import UNNAMED, OodDetections, ReadOodDetections
from curation.evaluation.ood.id_scores import IdScores
from curation.evaluation.ood.separability import FPR_KEYS, threshold_of
from curation.evaluation.problem import Floats, GroundTruth, KnownClasses

NO_KNOWN = KnownClasses((), (), "none: every object of an OOD split is unknown")


@dataclass(frozen=True, slots=True)
class OodOptions:
    """What to compute.

    Attributes
    ----------
    profile : {"official", "paper", "all"}
    threshold : str
        ``zscore``, ``quantile``, or a number.
    fpr : {"first", "nearest", "ood_positive"}
        The rule that ``FPR95`` follows; all three are in the result.
    t_star : str
        The detector's confidence cut as the user states it, ``""`` where unstated.
    bootstrap : int
        Replicates of confidence intervals; 0 for none.
    seed : int
    """

    profile: str = "all"
    threshold: str = "zscore"
    fpr: str = "first"
    t_star: str = ""
    bootstrap: int = 0
    seed: int = 0


def evaluate_split(
    truth: GroundTruth,
    detections: OodDetections,
    id_scores: IdScores,
    method: str,
    options: OodOptions | None = None,
) -> dict[str, Any]:
    """Return every number of one split under one score; undefined ones are None, with the reason under ``undefined``.

    ``AUROC``, ``AUPR_…`` and ``FPR95_…`` are shares in [0, 1]; ``official`` and ``paper`` hold the open-set metrics
    (`curation.benchmarks.findmeifyoucan.measures.open_set_metrics`), None where there is no threshold.

    Parameters
    ----------
    truth : GroundTruth
        The images and objects of the split, made with `NO_KNOWN`.
    method : str
        Which score.

    Raises
    ------
    UsageError
        An option has no such value.
    """
    options = options or OodOptions()
    if options.fpr not in FPR_KEYS:
        raise UsageError("Unknown FPR rule", expected=", ".join(FPR_KEYS), found=repr(options.fpr)[:80])
    ids, oods = id_scores.scores[method], detections.scores[method]
    found = ood.separability(ids, oods)
    undefined: dict[str, str] = dict(found.pop("undefined"))
    threshold = threshold_of(ids, options.threshold)
    sections: dict[str, Any] = {}
    for profile in profiles_of(options.profile):
        if threshold.value is None:
            sections[profile.name] = None
            undefined[profile.name] = "there are no ID scores, hence no threshold"
            continue
        unknown = unknown_detections(detections, method, threshold.value)
        outcomes = open_set_outcomes(truth, detections, unknown, profile)
        sections[profile.name] = {"meaning": profile.meaning, **open_set_metrics(outcomes, profile)}
    return {
        "method": method,
        "threshold": threshold.value,
        "threshold_rule": threshold.rule,
        "threshold_margin": threshold.margin(oods),
        "threshold_zscore": ood.zscore_threshold(ids),
        "threshold_quantile": ood.quantile_threshold(ids),
        "id_share_at_least_threshold": _share_at_least(ids, threshold.value),
        **found,
        "FPR95": {
            "rule": options.fpr,
            "meaning": ood.FPR_RULES[options.fpr],
            "value": found[FPR_KEYS[options.fpr]],
        },
        **images_without_predictions(truth, detections),
        **sections,
        "counts": _counts(truth, detections, ids, method, threshold.value),
        "intervals": _intervals(truth, detections, id_scores, method, threshold.value, options),
        "undefined": undefined,
    }


def images_without_predictions(truth: GroundTruth, detections: OodDetections) -> dict[str, Any]:
    """Return how many images have no detection, and their share in per cent, 2 decimals (Table 1)."""
    without = truth.n_images - len(np.unique(detections.image))
    return {
        "images": truth.n_images,
        "images_without_predictions": without,
        "pct_images_without_predictions": round(100 * without / truth.n_images, 2)
        if truth.n_images
        else None,
    }


def choose_methods(
    read: ReadOodDetections, id_scores: IdScores, wanted: tuple[str, ...] | None = None
) -> tuple[str, ...]:
    """Return the scores that both files give, or those `wanted`; see `paired` for files without names.

    The order is that of `wanted`, else: scores that the files name, then those that follow from logits.

    Raises
    ------
    EvaluationError
        A score is missing from one of the files, or they have none in common.
    """
    ours, theirs = list(read.detections.scores), list(id_scores.scores)
    common = [name for name in ours if name in theirs]
    missing = [name for name in wanted or () if name not in common]
    if missing or not common:
        raise EvaluationError(
            f"The score {missing[0]!r} is not in both files"
            if missing
            else "The files have no OOD score in common",
            where=f"{read.name} and {id_scores.name}"[:300],
            expected="a score of one name in the detections and in the ID scores",
            found=f"detections: {', '.join(ours) or 'none'}; ID: {', '.join(theirs) or 'none'}"[:300],
            hint="curation scores computes MSP, energy, GEN, kNN and others from logits and features",
        )
    if wanted:
        return tuple(dict.fromkeys(wanted))
    return (UNNAMED,) if UNNAMED in common else tuple(common)


def paired(read: ReadOodDetections, id_scores: IdScores) -> tuple[ReadOodDetections, IdScores]:
    """Return both with names that agree: a score without a name is the only one of the other file.

    A detections file without records takes the names of the ID scores.
    """
    ours, theirs = dict(read.detections.scores), dict(id_scores.scores)
    if not len(read.detections) and not ours:
        ours = {name: np.empty(0) for name in theirs}
    elif UNNAMED in ours and UNNAMED not in theirs and len(theirs) == 1:
        ours = {next(iter(theirs)): ours[UNNAMED]}
    elif UNNAMED in theirs and UNNAMED not in ours and len(ours) == 1:
        theirs = {next(iter(ours)): theirs[UNNAMED]}
    return replace(read, detections=replace(read.detections, scores=ours)), replace(id_scores, scores=theirs)


def check_apart(read: ReadOodDetections, id_scores: IdScores, *, shared: str = "error") -> list[str]:
    """Return what to tell about images that the ID file and the OOD file share; none is the rule.

    Parameters
    ----------
    shared : {"error", "report"}
        Integer ids of two datasets may be equal and mean different images (VOC 000009, COCO 9): then ``report``.

    Raises
    ------
    EvaluationError
        They are one file, the logits have different lengths, or they share images under ``error``.
    """
    if read.sha256 == id_scores.sha256 and read.rows:
        raise EvaluationError(
            "The ID scores and the OOD detections are one file",
            where=f"{id_scores.name}, {read.name}",
            found=read.sha256,
        )
    lengths = (read.logits_length, id_scores.logits_length)
    if None not in lengths and lengths[0] != lengths[1]:
        raise EvaluationError(
            "The logits of the ID file and of the OOD file have different lengths",
            where=f"{id_scores.name}, {read.name}",
            expected="one detector's output on both",
            found=f"{lengths[1]} (ID) and {lengths[0]} (OOD)",
        )
    common = sorted(read.image_ids & set(id_scores.images or ()))
    if not common:
        return []
    told = f"the ID file and the OOD file share {len(common)} image ids: {', '.join(common[:3])}"
    if shared == "error":
        raise EvaluationError(
            "The ID file and the OOD file share images",
            where=f"{id_scores.name}, {read.name}",
            expected="no image in both",
            found=f"{len(common)}: {', '.join(common[:3])}"[:300],
            hint="where equal numbers mean different images (VOC 000009 and COCO 9): --shared-ids report",
        )
    return [told]


def _share_at_least(ids: Floats, threshold: float | None) -> float | None:
    return None if threshold is None or not len(ids) else float((ids >= threshold).mean())


def _counts(
    truth: GroundTruth, detections: OodDetections, ids: Floats, method: str, threshold: float | None
) -> dict[str, Any]:
    return {
        "id_detections": len(ids),
        "ood_detections": len(detections),
        "ood_detections_below_threshold": None
        if threshold is None
        else int((detections.scores[method] < threshold).sum()),
        "background_taken_as_unknown": int(detections.background.sum()),
        "objects": len(truth.image),
        "crowd": int(truth.crowd.sum()),
        "images_with_objects": len(np.unique(truth.image)),
        "images_without_annotation": truth.n_images - len(np.unique(truth.image)),
    }


def _intervals(
    truth: GroundTruth,
    detections: OodDetections,
    id_scores: IdScores,
    method: str,
    threshold: float | None,
    options: OodOptions,
) -> dict[str, Any] | None:
    if not options.bootstrap or threshold is None:
        return None
    sample = ImageSample.of(truth, detections, id_scores, method, threshold, profiles_of(options.profile))
    return bootstrap_intervals(sample, replicates=options.bootstrap, seed=options.seed)
