"""The open-world metrics on RWD, as `clean` and as FOMO's code has them: ``curation evaluate rwd``."""

from __future__ import annotations

from dataclasses import replace

from curation.benchmarks.rwd.report import REPORT, at_the_end
from curation.evaluation.open_world.evaluation import evaluation_as
from curation.evaluation.open_world.measures import CLEAN, TEXT

FOMO = replace(
    TEXT,
    name="fomo",
    meaning=f"FOMO's code (open_world_eval), {TEXT.meaning}, + 1 pixel in widths, heights and areas, 11-point AP at "
    "the recalls numpy.arange(0, 1.1, 0.1) in floating point",
    average_precision="eleven_point_in_floats",
)
PROFILES = {one.name: one for one in (CLEAN, FOMO)}
evaluate = evaluation_as(REPORT, PROFILES, more=at_the_end)
