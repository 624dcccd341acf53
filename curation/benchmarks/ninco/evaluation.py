"""The evaluation of NINCO: each class an OOD set, the mean over classes first: ``curation evaluate ninco``."""

from __future__ import annotations

from curation.benchmarks.facts import facts_of
from curation.benchmarks.ninco.report import REPORT
from curation.evaluation.image_ood.evaluation import Benchmark, evaluation_as
from curation.evaluation.image_ood.measures import OodRules

_RULES = (
    OodRules(
        name="exact",
        meaning="ID positive; the largest score that 95 % of the ID images reach counts",
        fpr="FPR95_first",
    ),
    OodRules(
        name="ninco",
        meaning="the authors' code: an interpolated quantile of the ID scores; AUROC with NaN and infinities repaired",
        fpr="FPR95_quantile_ninco",
        not_finite="repair",
    ),
)
SETS = Benchmark(**facts_of(__package__)["evaluation"], variants={one.name: one for one in _RULES})
evaluate = evaluation_as(REPORT, SETS)
