"""The evaluation of ImageNet-OOD: ``curation evaluate imagenetood``."""

from __future__ import annotations

from curation.benchmarks.facts import facts_of
from curation.benchmarks.imagenetood.report import REPORT
from curation.evaluation.image_ood.evaluation import Benchmark, evaluation_as
from curation.evaluation.image_ood.measures import OodRules

_EXACT = OodRules(
    name="exact", meaning="ID positive; the largest score that 95 % of the ID images reach counts", fpr="FPR95_first"
)
SETS = Benchmark(**facts_of(__package__)["evaluation"], variants={"exact": _EXACT})
evaluate = evaluation_as(REPORT, SETS)
