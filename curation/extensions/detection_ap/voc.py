"""VOC average precision of plain detection: 11-point and area."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from curation.core.process import stage
from curation.evaluation.curves import average_precision_by_level
from curation.evaluation.inputs import LISTED, READING, Listed, OnePart, Policy, Reading, Truth
from curation.evaluation.matching import assign
from curation.evaluation.measures import Measure, Measured, Value, definitions, percent
from curation.evaluation.open_set import wilderness_levels
from curation.evaluation.outcomes import outcomes_by_class
from curation.evaluation.problem import NO_DETECTIONS, Detections, GroundTruth, Stray
from curation.evaluation.readers import Boxes
from curation.evaluation.result import Column, Report, Result, Tidy
from curation.evaluation.variants import Rules

SUMMARY = "Plain detection by VOC average precision: 11-point and area, difficult objects ignored"
VOC = Rules(
    name="voc",
    meaning="best object of the class, free or not, IoU >= 0.5; difficult and crowd ignored; equal scores one point",
    average_precision="eleven_point",
    ties="grouped",
)
_VOC2007 = "Everingham et al., IJCV 2010 (the rule of VOC2007)"
_VOC2010 = "VOC2010 development kit"
_of_class = partial(Measure, unit="%", better="higher", undefined="the class has no object")
_mean = partial(Measure, unit="%", better="higher", undefined="no class has objects")
_OF_CLASS = (
    _of_class(
        "AP11",
        "average precision of a class, 11 points",
        "mean over k = 0..10 of the highest precision at recall >= k/10 (VOC2007); equal scores make one point",
        source=_VOC2007,
    ),
    _of_class(
        "AP_area", "average precision of a class, area", "area under the precision envelope (VOC2010)", source=_VOC2010
    ),
)
MEASURES = (
    _mean(
        "mAP11",
        "mean average precision, 11 points",
        "mean of AP11 over the classes with objects; one without detections counts as 0",
        source=_VOC2007,
        ranked=True,
    ),
    _mean(
        "mAP_area",
        "mean average precision, area",
        "mean of AP_area over the classes with objects; one without detections counts as 0",
        source=_VOC2010,
        ranked=True,
    ),
    _mean(
        "mAP11_ties_in_input_order",
        "mean average precision, 11 points, equal scores in input order",
        "mAP11 with a point of the curve after each detection, as older evaluators have it",
    ),
    *_OF_CLASS,
)
DEFINITIONS = definitions(
    _OF_CLASS,
    matching="per class, by falling score, ties in input order, IoU >= 0.5 with the object of highest IoU of the "
    "class (VOC's inclusive boxes with + 1 are these continuous ones); taken already: false positive; difficult "
    "and crowd: neither",
) | {"mAP": "mean over the classes with objects; one without detections counts as 0"}


@dataclass(frozen=True, kw_only=True)
class Lenient(Policy):
    """How VOC's evaluation code treats invalid detections."""

    stray: Stray = "drop"
    negative_sizes: Boxes = "empty"


LENIENT = Lenient()


def evaluate(
    *,
    truth: Annotated[Truth, "FILE"],
    detections: Path,
    classes: Path | None = None,
    reading: Reading = READING,
    policy: Lenient = LENIENT,
    listed: Listed = LISTED,
) -> Result:
    """Score plain detection by VOC average precision: 11-point and area, difficult objects ignored.

    Parameters
    ----------
    truth : Path or Source
        COCO JSON, or a dataset root
    detections : Path
        COCO results (a JSON list, or one record a line), a table (.csv), or a folder of label files of YOLO
        (data.yaml, labels/STEM.txt) or of VOC results (comp4_det_test_CLASS.txt); may be compressed by gzip
    classes : Path, optional
        {"known": [...], "unknown": [...]}; the categories of the truth by default
    reading : Reading
    policy : Lenient
    listed : Listed

    Raises
    ------
    MissingFileError, EvaluationError, PredictionError
        A file is missing or invalid.

    Examples
    --------
    >>> import curation, pandas
    >>> owl = {"image_id": 1, "category": "owl", "x": 0, "y": 0, "w": 9, "h": 9, "width": 60, "height": 60}
    >>> found = pandas.DataFrame([{**owl, "score": 0.9}])
    >>> curation.evaluate.voc(truth=pandas.DataFrame([owl]), detections=found)["mAP11"]
    100.0
    """
    inputs = OnePart.from_options(truth, detections, classes=classes, reading=reading, policy=policy, listed=listed)
    both = inputs.part.truth, inputs.read.detections
    with stage("average precision"):
        numbers = voc_average_precision(*both)
    return Result(
        REPORT,
        inputs.about | {"difficult": "ignore", "n_images": both[0].n_images, "definitions": DEFINITIONS},
        scored=[inputs.scored("voc", _measured(numbers), {"iou": ">= 0.5"})],
        outcomes=lambda: {"voc": [outcomes_by_class(*both, VOC)]},
    )


def _measured(numbers: Mapping[str, Any]) -> Measured:
    return Measured(
        [Value(measure.key, percent(numbers[measure.key])) for measure in MEASURES if measure not in _OF_CLASS],
        {
            "average_precision": {
                "class": list(numbers["npos"]),
                "objects": list(numbers["npos"].values()),
                "detections": list(numbers["n_detections"].values()),
                **{name: list(map(percent, numbers[name].values())) for name in ("AP11", "AP_area")},
            }
        },
    )


def voc_average_precision(truth: GroundTruth, detections: Detections) -> dict[str, Any]:
    """Return VOC AP of each class and its mean, 11-point and area, difficult objects ignored.

    Returns
    -------
    dict
        Fractions of 1: ``mAP11``, ``mAP_area``, ``mAP11_ties_in_input_order``, None if all classes lack objects;
        ``AP11``, ``AP_area`` by class, None without objects. ``npos`` and ``n_detections`` by class.
    """
    matches = assign(truth, detections, VOC)
    levels = wilderness_levels(truth.n_images, 0, most=1)
    precisions = average_precision_by_level(truth.classes, detections, matches, NO_DETECTIONS, levels)
    detected = np.bincount(detections.label, minlength=len(truth.classes)).tolist()
    return {
        "mAP11": precisions["mAP11"][0],
        "mAP_area": precisions["mAP_area"][0],
        "mAP11_ties_in_input_order": precisions["mAP11_ties_in_input_order"][0],
        "AP11": precisions["AP11"]["0.0"],
        "AP_area": precisions["AP_area"]["0.0"],
        "npos": dict(zip(truth.classes, matches.n_positive.tolist(), strict=True)),
        "n_detections": dict(zip(truth.classes, detected, strict=True)),
    }


REPORT = Report(
    "voc",
    MEASURES,
    # 2: numbers are in %.
    algorithm=2,
    files=("measures", "average_precision"),
    places=(),
    tidy=(
        Tidy(
            "average_precision",
            (
                Column("class"),
                Column("objects", "count"),
                Column("detections", "count"),
                Column("AP11", "%", "AP 11-point"),
                Column("AP_area", "%", "AP area"),
            ),
            title="VOC average precision in %, IoU 0.5, difficult ignored",
        ),
    ),
)
