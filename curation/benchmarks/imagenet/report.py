"""What the evaluation of open-set classification measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Iterator

from curation.evaluation import confidence, oscr
from curation.evaluation.measures import Measure, formulas
from curation.evaluation.result import Data, Report, Scored

_PAPER = "Palechor et al., WACV 2023"
_OSCR = "Dhamija et al., NeurIPS 2018"

MEASURES = (
    Measure(
        "CCR@{fpr}",
        "correct classification rate at a false positive rate",
        "known samples that are classified right with a score above the threshold / known samples, at the threshold "
        "where the share of unknown samples above it is the rate, as the grid says",
        unit="share",
        better="higher",
        source=f"{_OSCR}; {_PAPER}",
        undefined="the rate is not reached",
        paths=(("rates", "ccr_at_fpr", "{fpr}"),),
        count=("n", "known"),
        ranked=True,
    ),
    Measure(
        "AUROC",
        "area under the ROC curve against unknown samples",
        "highest known score of known samples against that of unknown samples, ties half",
        unit="share",
        better="higher",
        undefined="there are no unknown samples, or no known ones",
        paths=(("auroc", "unknown", "auroc"),),
        count=("n", "unknown"),
        ranked=True,
    ),
    Measure(
        "gamma",
        "confidence against unknown samples",
        "mean of gamma_plus and gamma_minus",
        unit="share",
        better="higher",
        source=_PAPER,
        undefined="there are no unknown samples, or the scores are no probabilities",
        paths=(("confidence", "unknown", "gamma"),),
        ranked=True,
    ),
    Measure(
        "accuracy",
        "closed-set accuracy",
        "known samples whose highest known score is that of their class / known samples (closed set)",
        unit="share",
        better="higher",
        undefined="no sample of a known class",
        count=("n", "known"),
        ranked=True,
    ),
    Measure(
        "macro_accuracy",
        "closed-set accuracy, mean over classes",
        "mean over known classes with samples of the accuracy on each",
        unit="share",
        better="higher",
        undefined="no sample of a known class",
    ),
    Measure(
        "macro_CCR@{fpr}",
        "CCR at FPR, mean over classes",
        "mean over known classes of each class's CCR at the same threshold",
        unit="share",
        better="higher",
        undefined="the rate is not reached",
        paths=(("rates", "macro_ccr_at_fpr", "{fpr}"),),
    ),
    Measure(
        "sum_ccr",
        "sum of CCR at FPR",
        "sum of CCR@FPR over the queries that are defined (openset-imagenet-comparison)",
        unit="ratio",
        better="higher",
        paths=(("rates", "sum_ccr", "value"),),
    ),
    Measure(
        "gamma_plus",
        "confidence of known samples",
        "mean probability of the true class over known samples, also misclassified ones",
        unit="share",
        better="higher",
        source=_PAPER,
        paths=(("confidence", "unknown", "gamma_plus"),),
        count=("n", "known"),
    ),
    Measure(
        "gamma_minus",
        "confidence of unknown samples",
        "mean over the group of 1 - highest known probability + 1/K (without 1/K where there is a background class)",
        unit="share",
        better="higher",
        source=_PAPER,
        paths=(("confidence", "unknown", "gamma_minus"),),
        count=("n", "unknown"),
    ),
    Measure(
        "iosa",
        "best open-set accuracy",
        "highest over all thresholds of (right answers that pass + samples of the group that do not) / both",
        unit="share",
        better="higher",
        paths=(("openset_accuracy", "unknown", "strict", "iosa"),),
    ),
    Measure(
        "oosa",
        "open-set accuracy at the validation threshold",
        "the same at the threshold that is best on validation (known and negative); of equal ones the lowest",
        unit="share",
        better="higher",
        undefined="no validation scores",
        paths=(("openset_accuracy", "unknown", "strict", "oosa"),),
    ),
)
DEFINITIONS: dict[str, str] = {
    **formulas(MEASURES, "accuracy", "macro_accuracy"),
    "auroc": "highest known score of known samples against the group's, ties half; auroc_rest_as_known: samples of the "
    "other group count as known (openset-imagenet)",
    **formulas(MEASURES, "sum_ccr"),
    "confidence": confidence.DEFINITION,
    "openset_accuracy": oscr.ACCURACY_DEFINITION,
}


def scored(data: Data) -> Iterator[Scored]:
    """Yield what was scored: each classifier on each grid, against unknown samples."""
    part = data["manifest"] and data["manifest"]["parts"]["scores"]
    for name, one in data["classifiers"].items():
        file = data["inputs"][name]["scores"]
        for grid, rates in one["oscr"].items():
            yield Scored(
                part=part or "",
                variant=grid,
                numbers={**one, "rates": rates["unknown"]},
                truth={"labels": file["labels_sha256"]},
                predictions={name: file},
                operating_point={"scores": file["kind"], "background": one["background"]},
                method=name,
                pinned=bool(part),
                of_several=True,
            )


REPORT = Report("imagenet", MEASURES, scored, lambda result: ())
