"""The open-world metrics of one detector, task by task: ``curation evaluate owod``."""

from __future__ import annotations

from curation.benchmarks.owod.measures import PROFILES
from curation.benchmarks.owod.report import REPORT
from curation.evaluation.open_world.evaluation import evaluation_as

evaluate = evaluation_as(REPORT, PROFILES)
