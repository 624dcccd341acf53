"""The evaluation of open-set classifiers: ``curation evaluate imagenet``."""

from __future__ import annotations

from curation.benchmarks.imagenet.report import REPORT
from curation.evaluation.classification import evaluation_as

evaluate = evaluation_as(REPORT)
