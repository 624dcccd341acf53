"""Numbers from scores alone: AUROC, OSCR, image-level OOD, beside one sort or scikit-learn's route."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.own_process import Clock

SCORES = 10_000_000
SAMPLES, CLASSES = 100_000, 1_000
N_ID, N_OOD = 45_000, 49_000


def _halves(dtype: str) -> tuple[Any, Any]:
    """Return ID and OOD scores, float64 with equal ones among them as logits of few digits have."""
    rng = np.random.default_rng(11)
    ids, oods = rng.normal(1, 1, SCORES // 2), rng.normal(0, 1, SCORES // 2)
    return (ids.round(6), oods.round(6)) if dtype == "float64" else (ids.astype(dtype), oods.astype(dtype))


def auroc(folder: Path, clock: Clock, dtype: str) -> None:
    """AUROC of ten million scores."""
    from curation.evaluation.separability import RankedScores
    from curation.evaluation.separability import auroc as area

    ids, oods = _halves(dtype)
    area(RankedScores.from_scores(ids[:1000], oods[:1000]))
    with clock:
        area(RankedScores.from_scores(ids, oods))


def one_sort(folder: Path, clock: Clock, dtype: str) -> None:
    """One ``numpy.sort`` of the same ten million scores."""
    scores = np.concatenate(_halves(dtype))
    np.sort(scores[:1000])
    with clock:
        np.sort(scores)


def _table() -> tuple[Any, Any]:
    """Return labels (half known, a quarter negative and unknown each) and scores whose true class stands out."""
    rng = np.random.default_rng(11)
    labels = np.where(rng.random(SAMPLES) < 0.5, rng.integers(0, CLASSES, SAMPLES), rng.choice([-1, -2], SAMPLES))
    scores = rng.standard_normal((SAMPLES, CLASSES), np.float32)
    known = np.flatnonzero(labels >= 0)
    scores[known, labels[known]] += np.float32(3)
    return labels, scores


def oscr(folder: Path, clock: Clock) -> None:
    """The OSCR curve of a table of scores, checks included."""
    from curation.evaluation.class_scores import class_scores
    from curation.evaluation.oscr import margins_of, oscr_curve

    labels, scores = _table()
    with clock:
        oscr_curve(margins_of(class_scores(labels, scores), "unknown"))


def argmax_and_sort(folder: Path, clock: Clock) -> None:
    """One ``argmax`` over the table and one sort of the highest scores, the least that any evaluator has to do."""
    _, scores = _table()
    with clock:
        best = scores.argmax(axis=1)
        np.sort(scores[np.arange(len(scores)), best])


def _images() -> tuple[Any, Any]:
    rng = np.random.default_rng(14)
    return rng.normal(1, 1, N_ID).astype(np.float32), rng.normal(0, 1, N_OOD).astype(np.float32)


def image_ood(folder: Path, clock: Clock) -> list[float | None]:
    """Return OpenOOD's numbers of one OOD set, twenty times over."""
    from curation.extensions.image_ood.measures import OodRules, numbers_of

    ids, oods = _images()
    rules = OodRules(name="openood", meaning="", fpr="FPR95_ood_positive_vertices")
    with clock:
        for _ in range(20):
            found = numbers_of(ids.astype(np.float64), oods.astype(np.float64), [rules])[0]
    return [found[name] for name in ("AUROC", "AUPR_IN", "AUPR_OUT", "FPR95")]


def image_ood_sklearn(folder: Path, clock: Clock) -> list[float]:
    """Return the same by what OpenOOD 1.5 calls."""
    from sklearn import metrics

    ids, oods = _images()
    with clock:
        for _ in range(20):
            conf, indicator = np.concatenate([ids, oods]), np.repeat([0, 1], [N_ID, N_OOD])
            fpr, tpr, _ = metrics.roc_curve(indicator, -conf)
            precision_in, recall_in, _ = metrics.precision_recall_curve(1 - indicator, conf)
            precision_out, recall_out, _ = metrics.precision_recall_curve(indicator, -conf)
            areas = (fpr, tpr), (recall_in, precision_in), (recall_out, precision_out)
            found = [*(float(metrics.auc(*points)) for points in areas), float(fpr[np.argmax(tpr >= 0.95)])]
    return found
