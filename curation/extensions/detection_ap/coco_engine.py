"""Plain detection by COCO AP, LVIS AP, Fixed AP, or without scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from curation.core.errors import UsageError
from curation.core.process import stage
from curation.core.wording import counted as counted_words
from curation.evaluation.coco_precision import CocoEvaluation, labelled, library, with_classes_in_use
from curation.evaluation.inputs import LISTED, POLICY, READING, Listed, OnePart, Policy, Reading, Truth
from curation.evaluation.measures import Measured, Scored, Value, definitions, percent
from curation.evaluation.outcomes import Outcomes, outcomes_by_class
from curation.evaluation.problem import Detections, GroundTruth
from curation.evaluation.readers import Accepted
from curation.evaluation.result import Column, Report, Result, Tidy
from curation.evaluation.variants import Rules
from curation.extensions.detection_ap import federated
from curation.extensions.detection_ap.coco_summary import (
    MEASURES,
    STATISTICS,
    coco_average_precision,
    defined,
    values_by_name,
)
from curation.extensions.detection_ap.federated import (
    IGNORED_AREA,
    KEYS,
    NO_FREQUENCY,
    Limit,
    counted_objects,
    require_federated,
    thirteen,
)
from curation.extensions.detection_ap.score_free import LMMS, LMMS_MEANING, MATCHING, lmms_numbers, score_free
from curation.extensions.detection_ap.score_free import MEASURES as SCORE_FREE_MEASURES
from curation.extensions.detection_ap.score_free import TABLES as SCORE_FREE_TABLES

SUMMARY = "Plain detection by COCO AP, LVIS AP, Fixed AP, or without scores, and each class"
Variant = Literal[
    "coco", "coco-federated", "lvis", "lvis-fixed", "score-free", "score-free-best", "score-free-in-order", "lmms-eval",
    "all",
]  # fmt: skip
VARIANTS: dict[str, str] = {
    "coco": "COCO: every image counts for every class, 100 detections an image and class",
    "coco-federated": "LVIS's rules for images and classes under COCO's limit of 100 detections an image and class",
    "lvis": "LVIS AP: a limit of detections an image over all classes, then what images were labelled for",
    "lvis-fixed": "Fixed AP: a limit of detections a class over all images, then what images were labelled for",
    **{name: f"boxes without scores; {rule}" for name, rule in MATCHING.items()},
    LMMS: LMMS_MEANING,
}
"""Meaning of each variant."""
_LIMITED = ("lvis", "lvis-fixed")
_SCORELESS = (*MATCHING, LMMS)
_MOST = 100
_RULES = Rules(name="coco", taken="best_free", crowd="cover", difficult="count")
_FACTS = (
    "engine", "difficult", "n_images", "n_objects", "n_detections", "left_out", "n_detections_not_labelled",
)  # fmt: skip


def evaluate(
    *,
    truth: Annotated[Truth, "FILE"],
    detections: Path,
    classes: Path | None = None,
    variant: tuple[Variant, ...] | Variant = (),
    image_limit: int = 300,
    class_limit: int = 10_000,
    reading: Reading = READING,
    policy: Policy = POLICY,
    listed: Listed = LISTED,
) -> Result:
    """Score plain detection by COCO AP, LVIS AP, Fixed AP, or without scores, and each class.

    Parameters
    ----------
    truth : Path or Source
        COCO JSON, or a dataset root
    detections : Path
        COCO results (a JSON list, or one record a line), a table (.csv), or a folder of label files of YOLO
        (data.yaml, labels/STEM.txt) or of VOC results (comp4_det_test_CLASS.txt); may be compressed by gzip
    classes : Path, optional
        {"known": [...], "unknown": [...]}; the categories of the truth by default
    variant : str or tuple of str, optional
        variant of the measures, repeatable (default: coco; of an LVIS truth coco-federated): coco, as pycocotools;
        coco-federated, LVIS's rules for images and classes under COCO's limit; lvis; lvis-fixed; score-free,
        score-free-best and score-free-in-order, for detections without scores; lmms-eval, that harness's rule; all that
        suit the files
    image_limit : int
        of variant lvis: detections of an image that count
    class_limit : int
        of variant lvis-fixed: detections of a class that count
    reading : Reading
    policy : Policy
    listed : Listed

    Raises
    ------
    MissingFileError, EvaluationError, PredictionError
        A file is missing or invalid.
    UsageError
        Options do not fit together.

    Examples
    --------
    >>> import curation, pandas
    >>> owl = {"image_id": 1, "category": "owl", "x": 0, "y": 0, "w": 9, "h": 9, "width": 60, "height": 60}
    >>> found = pandas.DataFrame([{**owl, "score": 0.9}])
    >>> round(curation.evaluate.coco(truth=pandas.DataFrame([owl]), detections=found)["AP"], 6)
    100.0
    """
    requested = (variant,) if isinstance(variant, str) else variant or ("",)
    if (least := min(image_limit, class_limit)) < 1:
        raise UsageError("Invalid setting", where="--set", expected="limits of at least 1", found=str(least))
    accepted = Accepted(
        scoreless=requested == ("all",) or {*requested} <= {*_SCORELESS},
        other_classes="all" in requested or any(name in _LIMITED for name in requested),
        folded=requested == (LMMS,),
    )
    inputs = OnePart.from_options(
        truth, detections, classes=classes, reading=reading, policy=policy, listed=listed, accepted=accepted
    )
    variants = _variants(requested, inputs)
    limits = {"lvis": Limit("image", image_limit), "lvis-fixed": Limit("class", class_limit)}
    scored, facts, settings_of_variants, notes = [], dict[str, Any](), dict[str, Any](), list[str]()
    with stage("COCO evaluation"):
        for name in variants:
            new, numbers = _scored(inputs, name, limits.get(name))
            scored.append(new)
            settings_of_variants[name] = {"meaning": VARIANTS[name], **new.settings}
            facts = {key: numbers[key] for key in _FACTS if key in numbers} | facts
            notes += new.found.notes
    keys = {row.measure for entry in scored for row in entry.found.values}
    meanings = {key: text for key, text in definitions(REPORT.measures).items() if key in keys}
    return Result(
        REPORT if len(variants) == 1 else replace(REPORT, places=("variant",)),
        inputs.about
        | {"definitions": meanings, **facts}
        | ({} if variants == ("coco",) else {"variants": settings_of_variants}),
        scored=scored,
        notes=notes,
        outcomes=(lambda: {"coco": [_outcomes(inputs)]}) if variants == ("coco",) else None,
    )


def _outcomes(inputs: OnePart) -> Outcomes:
    """Return the outcomes, at IoU 0.5, of the 100 detections of highest score in each image and class."""
    truth, detections = replace(inputs.part.truth, federated=None), inputs.read.detections
    detections = detections.take(detections.label >= 0)
    order = np.lexsort((-detections.scores, detections.label, detections.image))
    cell = detections.image[order].astype(np.int64) * len(truth.classes) + detections.label[order]
    rank = np.arange(len(order)) - np.searchsorted(cell, cell)
    detections = detections.take(np.sort(order[rank < _MOST]))
    return outcomes_by_class(truth, detections, _RULES)


def _variants(requested: tuple[str, ...], inputs: OnePart) -> tuple[str, ...]:
    """Return the requested variants; by default, and for ``all``, those that fit the files."""
    federated = inputs.part.truth.federated is not None
    if requested == ("",):
        return ("coco-federated" if federated else "coco",)
    if "all" not in requested:
        if "coco-federated" in requested:
            require_federated(inputs.part.truth)
        return requested
    if np.isnan(inputs.read.detections.scores).any():
        return tuple(MATCHING)
    return ("coco", "coco-federated", *_LIMITED) if federated else ("coco",)


def _scored(inputs: OnePart, name: str, limit: Limit | None) -> tuple[Scored, dict[str, Any]]:
    """Return the measured values of a variant, and facts about them."""
    truth, detections = inputs.part.truth, inputs.read.detections
    if name in MATCHING:
        measured = score_free(truth, detections, name)
        settings = {"iou": ">= 0.5", "matching": MATCHING[name]}
        n_scored = int(np.isfinite(detections.scores).sum())
        note = f"variant {name} passes over the scores that {n_scored} of {len(detections)} detections state"
        measured = measured._replace(notes=[note] if n_scored else [])
        return replace(inputs.scored(name, measured, {}), settings=settings), {}
    of_classes = detections.take(detections.label >= 0)
    if name == LMMS:
        numbers = coco_average_precision(truth, of_classes.unscored())
        measured = _measured(numbers)
        precisions = [value for value in measured.values if value.measure in ("AP", "AP50", "AP75")]
        measured = measured._replace(values=[*lmms_numbers(truth, of_classes), *precisions])
        settings = {"iou": "> 0", "matching": LMMS_MEANING}
        return replace(inputs.scored(name, measured, {"engine": numbers["engine"]}), settings=settings), numbers
    if limit is None:
        plain = replace(truth, federated=None) if name == "coco" else truth
        numbers = coco_average_precision(plain, of_classes)
        return inputs.scored(name, _measured(numbers), {"engine": numbers["engine"]}), numbers
    frequency = [inputs.frequencies.get(class_name, "") for class_name in truth.classes]
    numbers = federated_average_precision(truth, detections, limit, frequency)
    left_out = len(detections) - len(of_classes)
    dropped = f"{counted_words(left_out, 'detection')} of classes that the truth lacks took places under the limit"
    notes = [f"{dropped} and then counted for nothing, as in LVIS"] * bool(left_out)
    measured = _measured(numbers, KEYS)
    measured = measured._replace(notes=notes)
    settings = {"limit": f"{limit.most} detections of each {limit.group}"}
    return replace(inputs.scored(name, measured, {"engine": numbers["engine"]}), settings=settings), numbers


def federated_average_precision(
    truth: GroundTruth, detections: Detections, limit: Limit, frequency: Sequence[str]
) -> dict[str, Any]:
    """Return the thirteen numbers of LVIS AP, or of Fixed AP if the limit is one for each class.

    Parameters
    ----------
    truth : GroundTruth
        Ground truth with `GroundTruth.federated`.
    detections : Detections
        A negative label is a class that the truth lacks.
    limit : Limit
        LVIS: 300 detections of an image; Fixed AP: 10,000 of a class.
    frequency : sequence of str, length K
        ``r``, ``c``, ``f``, or ``""`` for each class.

    Returns
    -------
    dict
        `curation.extensions.detection_ap.federated.KEYS` as fractions of 1, None if undefined; and ``per_class``,
        ``undefined``, ``engine`` and counts as in `coco_average_precision`.

    Raises
    ------
    EvaluationError
        The truth is not federated.
    """
    objects, guesses = counted_objects(truth, detections, limit)
    n_objects = int((objects.areas != IGNORED_AREA).sum())
    objects, guesses, labels = with_classes_in_use(*labelled(objects, guesses))
    precision, recall = CocoEvaluation(objects, guesses, limit=max(1, len(guesses))).curves()
    letters = np.array(frequency, object)[labels].tolist()
    statistics = thirteen(precision[..., -1], recall[..., -1], letters)
    result: dict[str, Any] = dict(zip(KEYS, map(defined, statistics.tolist()), strict=True))
    result |= {"engine": library(), "n_images": truth.n_images, "n_objects": n_objects}
    result["per_class"] = per_class = values_by_name(
        truth.classes, zip(labels, precision[..., 0, -1].mean(axis=(0, 1)).tolist(), strict=True)
    )
    empty = {name: "no object of this class counts" for name, ap in per_class.items() if ap is None}
    result["undefined"] = empty if any(frequency) else empty | NO_FREQUENCY
    return result


def _measured(numbers: Mapping[str, Any], keys: Iterable[str] = STATISTICS) -> Measured:
    names, why = numbers["per_class"], numbers["undefined"]
    return Measured(
        [Value(key, percent(numbers[key]), n=numbers["n_objects"], undefined=why.get(key, "")) for key in keys],
        {
            "average_precision": {
                "class": list(names),
                "AP": list(map(percent, names.values())),
                "undefined": [why.get(name, "") for name in names],
            }
        },
    )


REPORT = Report(
    "coco",
    (*MEASURES, *federated.MEASURES, *SCORE_FREE_MEASURES),
    # 2: numbers are in %.
    algorithm=2,
    files=("measures", "average_precision", "score_free"),
    places=(),
    tidy=(
        Tidy(
            "average_precision",
            (Column("class"), Column("AP", "%"), Column("undefined", text=False)),
            title="AP of each class in %",
        ),
        *SCORE_FREE_TABLES,
    ),
)
