"""How the results of ``curation evaluate imagenetood`` show themselves: as those of image-level OOD detection do."""

from __future__ import annotations

from curation.evaluation.image_ood.report import report_as

REPORT = report_as("imagenetood")
