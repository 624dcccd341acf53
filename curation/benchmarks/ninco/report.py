"""How the results of ``curation evaluate ninco`` show themselves: as those of image-level OOD detection do."""

from __future__ import annotations

from curation.evaluation.image_ood.report import report_as

# 2: FPR95 of ninco at the quantile 1 - 0.95 of floating point, a hair above 0.05.
REPORT = report_as("ninco", algorithm=2)
