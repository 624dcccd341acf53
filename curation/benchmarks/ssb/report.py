"""How the results of ``curation evaluate ssb`` show themselves: as those of open-set classification do."""

from __future__ import annotations

from curation.evaluation.classification_report import report_as

REPORT = report_as("ssb")
