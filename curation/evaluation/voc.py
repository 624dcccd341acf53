"""VOC average precision of plain detection, in both flavours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from curation.evaluation.curves import average_precision_by_level, full_curve
from curation.evaluation.inputs import READING, OnePart, Policy, Reading, Truth
from curation.evaluation.matching import assign, overlapping_pairs, positives, rows_by_class
from curation.evaluation.measures import Measure, definitions
from curation.evaluation.open_set import wilderness_levels
from curation.evaluation.outcomes import Outcomes
from curation.evaluation.problem import NO_DETECTIONS, Detections, GroundTruth, Stray
from curation.evaluation.readers import Boxes
from curation.evaluation.result import (
    Column,
    Data,
    Drawing,
    Report,
    Result,
    Scored,
    Table,
    inputs_table,
    order_table,
    stem_of,
    truth_digests,
)
from curation.evaluation.variants import IOU, Difficult, Rules
from curation.progress import stage

VOC = Rules(
    name="voc",
    meaning="best object of the class, free or not, IoU >= 0.5; difficult and crowd ignored; equal scores one point",
    average_precision="eleven_point",
    ties="grouped",
)
_OF_CLASS = (
    Measure(
        "AP11",
        "average precision of a class, 11 points",
        "mean over k = 0..10 of the highest precision at recall >= k/10 (VOC2007); equal scores make one point",
        unit="share",
        better="higher",
        source="Everingham et al., IJCV 2010 (the rule of VOC2007)",
        undefined="the class has no object",
        paths=(),
    ),
    Measure(
        "AP_area",
        "average precision of a class, area",
        "area under the precision envelope (VOC2010)",
        unit="share",
        better="higher",
        source="VOC2010 development kit",
        undefined="the class has no object",
        paths=(),
    ),
)
MEASURES = (
    Measure(
        "mAP11",
        "mean average precision, 11 points",
        "mean of AP11 over the classes with objects; one without detections counts as 0",
        unit="share",
        better="higher",
        source="Everingham et al., IJCV 2010 (the rule of VOC2007)",
        undefined="no class has objects",
        ranked=True,
    ),
    Measure(
        "mAP_area",
        "mean average precision, area",
        "mean of AP_area over the classes with objects; one without detections counts as 0",
        unit="share",
        better="higher",
        source="VOC2010 development kit",
        undefined="no class has objects",
        ranked=True,
    ),
    Measure(
        "mAP11_ties_in_input_order",
        "mean average precision, 11 points, equal scores in input order",
        "mAP11 with a point of the curve after each detection, as older evaluators have it",
        unit="share",
        better="higher",
        undefined="no class has objects",
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
    """What VOC's evaluation code does about detections that do not belong."""

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
) -> Result:
    """Score plain detection by VOC average precision: 11-point and area, difficult objects ignored.

    Parameters
    ----------
    truth : Path or Source
        COCO JSON, or a dataset root
    detections : Path
        COCO results, as a JSON list or one record a line, or a folder of VOC results (comp4_det_test_CLASS.txt); may be
        compressed by gzip
    classes : Path, optional
        {"known": [...], "unknown": [...]}; the categories of the truth by default
    reading : Reading
    policy : Lenient

    Raises
    ------
    MissingFileError, EvaluationError, PredictionError
        A file is not there, or does not hold what it should.
    """
    given = OnePart.of(truth, detections, classes=classes, reading=reading, policy=policy)
    both = given.part.truth, given.read.detections
    with stage("average precision"):
        sections = voc_average_precision(*both)
    return Result(
        REPORT,
        given.about,
        sections,
        columns=lambda: precision_recall(*both),
        notes=given.notes,
        outcomes=lambda: {"voc": [outcomes_by_class(*both, VOC)]},
    )


def outcomes_by_class(truth: GroundTruth, detections: Detections, rules: Rules, **more: Any) -> Outcomes:
    """Return what became of detections of known classes, where unknown objects have the label -1.

    Parameters
    ----------
    rules : Rules
        Of the matching, and of which overlap with an unknown object is an open-set error.
    **more
        As `curation.evaluation.outcomes.Outcomes.of` takes it; ``strict`` for open-set errors of an IoU above 0.5.
    """
    matches = assign(truth, detections, rules)
    unknown = truth.label < 0
    strict = more.pop("strict", rules.strict)
    pairs = overlapping_pairs(truth, detections, same_class=False, mask=unknown, iou_threshold=IOU, strict=strict)
    return Outcomes.of(
        truth,
        detections,
        rules,
        outcome=matches.outcome,
        taken=matches.truth,
        pairs=pairs,
        unknown=unknown,
        counted=positives(truth, rules) | (unknown & ~truth.crowd & ~truth.difficult),
        **more,
    )


def voc_average_precision(truth: GroundTruth, detections: Detections) -> dict[str, Any]:
    """Return VOC AP of each class and its mean, 11-point and area, difficult objects ignored.

    Returns
    -------
    dict
        ``mAP11``, ``mAP_area``, ``mAP11_ties_in_input_order``: None where no class has objects. ``AP11``, ``AP_area``:
        by class, None without objects. ``decided_by_order`` (of ``mAP11_ties_in_input_order``), ``npos``, ``n_images``,
        ``n_detections``, ``classes_averaged``, ``classes_left_out`` with reasons, ``definitions``.
    """
    matches = assign(truth, detections, VOC)
    levels = wilderness_levels(truth.n_images, 0, most=1)
    found = average_precision_by_level(truth.classes, detections, matches, NO_DETECTIONS, levels)
    counts = matches.n_positive.tolist()
    positives = dict(zip(truth.classes, counts, strict=True))
    detected = np.bincount(detections.label, minlength=len(truth.classes)).tolist()
    return {
        "profile": "voc",
        "difficult": "ignore",
        "definitions": DEFINITIONS,
        "mAP11": found["mAP11"][0],
        "mAP_area": found["mAP_area"][0],
        "mAP11_ties_in_input_order": found["mAP11_ties_in_input_order"][0],
        "decided_by_order": found["decided_by_order"],
        "AP11": found["AP11"]["0.0"],
        "AP_area": found["AP_area"]["0.0"],
        "npos": positives,
        "n_images": truth.n_images,
        "n_detections": dict(zip(truth.classes, detected, strict=True)),
        "classes_averaged": [name for name, n in positives.items() if n],
        "classes_left_out": {name: "no ground truth" for name, n in positives.items() if not n},
    }


def precision_recall(
    truth: GroundTruth, detections: Detections, *, difficult: Difficult = "ignore"
) -> dict[str, dict[str, list[float]]]:
    """Return the precision-recall curve of each class with objects: ``recall``, ``precision``, ``score`` lists."""
    matches = assign(truth, detections, replace(VOC, difficult=difficult))
    curves = {}
    rows_of = dict(rows_by_class(detections.label, len(truth.classes), empty=False))
    for number in np.flatnonzero(matches.n_positive).tolist():
        rows = rows_of.get(number, np.empty(0, np.int64))
        counted = rows[matches.outcome[rows] >= 0]
        n = int(matches.n_positive[number])
        curves[truth.classes[number]] = full_curve(detections.scores[counted], matches.outcome[counted] == 1, n)
    return curves


def scored_of_plain(data: Data) -> Iterator[Scored]:
    """Yield the one thing that a plain evaluation scores."""
    detections = data["inputs"]["test"]["detections"]
    yield Scored(
        part="test",
        variant=data["protocol"],
        numbers=data,
        truth=truth_digests(data),
        predictions={"test": detections},
        operating_point={"engine": data["engine"]} if "engine" in data else {"iou": ">= 0.5"},
        method=stem_of(detections),
    )


def _tables(result: Result) -> Iterator[Table]:
    data = result.data
    rows = [
        (name, data["npos"][name], data["n_detections"][name], ap, data["AP_area"][name])
        for name, ap in data["AP11"].items()
    ]
    yield inputs_table(data)
    yield Table(
        "average_precision",
        (
            Column("class"),
            Column("objects", "count"),
            Column("detections", "count", file=False),
            Column("AP11", "share", "AP 11-point"),
            Column("AP_area", "share", "AP area"),
        ),
        rows,
        title="VOC average precision in %, IoU 0.5, difficult ignored",
        printed=[*rows, ("mean", "", "", data["mAP11"], data["mAP_area"])],
        file=True,
    )
    yield order_table({"voc": data["decided_by_order"]})


def _drawings(result: Result) -> Iterator[Drawing]:
    from curation.evaluation.figures import precision_recall_curves

    def draw(stem: Path) -> list[Path]:
        name = stem_of(result.data["inputs"]["test"]["detections"])
        return precision_recall_curves({name: result.columns}, stem, note="VOC, IoU 0.5")

    drawable = any(result.data["npos"].values())
    yield Drawing("precision_recall", draw if drawable else None, "no class has objects")


REPORT = Report(
    "voc",
    MEASURES,
    scored_of_plain,
    _tables,
    _drawings,
    files=("average_precision",),
    figures=("precision_recall",),
)
