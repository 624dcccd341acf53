"""The evaluation of open-set classifiers: ``curation evaluate ssb``."""

from __future__ import annotations

from curation.benchmarks.ssb.report import REPORT
from curation.evaluation.classification import evaluation_as

evaluate = evaluation_as(REPORT)
