"""The evaluation of owls: average precision of the known classes, by the engine for it."""

from pathlib import Path
from typing import Annotated

from curation.evaluation.inputs import POLICY, READING, OnePart, Policy, Reading, Truth
from curation.evaluation.measures import Measured, Value, percent
from curation.evaluation.result import Result
from curation.extensions.detection_ap.voc import voc_average_precision
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
    given = OnePart.from_options(truth, detections, classes=classes, reading=reading, policy=policy)
    found = voc_average_precision(given.part.truth, given.read.detections)
    measured = Measured(
        [Value("mAP_area", percent(found["mAP_area"]))],
        {"classes": {"class": list(found["AP_area"]), "AP": [percent(one) for one in found["AP_area"].values()]}},
    )
    return Result(REPORT, given.about, scored=[given.scored("owls", measured, {})])
