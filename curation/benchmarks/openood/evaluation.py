"""The evaluation of image-level OOD detection: ``curation evaluate openood``."""

from __future__ import annotations

from curation.benchmarks.facts import facts_of
from curation.benchmarks.openood.report import REPORT
from curation.evaluation.image_ood.evaluation import Benchmark, evaluation_as
from curation.evaluation.image_ood.measures import OodRules

_RULES = (
    OodRules(name="exact", meaning="OOD positive; the first score that finds 95 % of the OOD images counts"),
    OodRules(
        name="openood",
        meaning="OpenOOD 1.5's code: the same, at a vertex of scikit-learn's ROC, which may leave that score out",
        fpr="FPR95_ood_positive_openood_vertices",
    ),
    OodRules(
        name="ssb",
        meaning="the Semantic Shift Benchmark's example: ID positive, threshold by rank; AUPR begins at precision 0.5",
        fpr="FPR95_rank_ssb",
        nothing_found=0.5,
    ),
)
SETS = Benchmark(**facts_of(__package__)["evaluation"], variants={one.name: one for one in _RULES})
evaluate = evaluation_as(REPORT, SETS)
