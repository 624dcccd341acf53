"""The evaluation of owls: average precision of the known classes, by the engine for it."""

from pathlib import Path
from typing import Annotated

from curation.evaluation.inputs import POLICY, READING, OnePart, Policy, Reading, Truth
from curation.evaluation.result import Result
from curation.evaluation.voc import voc_average_precision
from owls_bench.report import REPORT


def evaluate(
    *,
    truth: Annotated[Truth, "FILE"],
    detections: Path,
    classes: Path | None = None,
    reading: Reading = READING,
    policy: Policy = POLICY,
) -> Result:
    """Score detections of owls and finches.

    Parameters
    ----------
    truth : Path or Source
        COCO JSON
    detections : Path
        COCO results
    classes : Path, optional
        {"known": [...], "unknown": [...]}
    """
    given = OnePart.of(truth, detections, classes=classes, reading=reading, policy=policy)
    return Result(REPORT, given.about, voc_average_precision(given.part.truth, given.read.detections))
