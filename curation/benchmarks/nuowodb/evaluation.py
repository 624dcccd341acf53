"""The open-world metrics on nu-OWODB, as `clean` and as YOLO-UniOW's code has them: ``curation evaluate nuowodb``."""

from __future__ import annotations

from dataclasses import replace

from curation.benchmarks.nuowodb.report import REPORT
from curation.evaluation.open_world.evaluation import evaluation_as
from curation.evaluation.open_world.measures import CLEAN, TEXT

YOLO_UNIOW = replace(
    TEXT,
    name="yolo-uniow",
    meaning=f"the code of YOLO-UniOW (ow_metric.py), {TEXT.meaning}, area AP; detections of known classes count "
    "above a score of 0.05, those called unknown at any; left and upper edges of detections get + 1 twice; recalls "
    "divide by the objects + 0.00001",
    known_above=0.05,
    further_shift=1,
    added_objects=1e-5,
)
PROFILES = {one.name: one for one in (CLEAN, YOLO_UNIOW)}
NOT_COMPARABLE = (
    "nu-OWODB's numbers are not comparable with those of ORE-style benchmarks: the authors' code has a score limit for "
    "known classes alone, shifts boxes, and takes the area under the curve"
)
evaluate = evaluation_as(REPORT, PROFILES, notes=(NOT_COMPARABLE,))
