"""Speed of image-level OOD numbers: OpenOOD's five of 45,000 ID and 49,000 OOD images, against scikit-learn's route.

The peer is what OpenOOD 1.5 computes of one OOD set: ``roc_curve``, ``precision_recall_curve`` twice, ``auc`` of each,
and the accuracy. Both get the same float32 scores, predictions and labels; where scikit-learn is absent only our own
time is given.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from curation.evaluation.image_ood.measures import OodRules, numbers_of
from tests.benchmarks.measured import best, measured

N_ID, N_OOD = 45_000, 49_000
REPEATS = 25
"""Of milliseconds: other work on the machine must not decide."""
RULES = OodRules(name="openood", meaning="", fpr="FPR95_ood_positive_vertices")


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement; `out` is not used, the input is drawn in memory."""
    rng = np.random.default_rng(14)
    ids, oods = rng.normal(1, 1, N_ID).astype(np.float32), rng.normal(0, 1, N_OOD).astype(np.float32)
    labels, predictions = rng.integers(0, 1000, (2, N_ID))
    note = f"{N_ID:,} ID and {N_OOD:,} OOD scores, float32"

    def own() -> dict[str, float | None]:
        numbers = numbers_of(ids.astype(np.float64), oods.astype(np.float64), [RULES])[0]
        return {**numbers, "ACC": float(np.mean(predictions == labels))}

    ours, found = best(own, REPEATS)
    rows = [measured("five numbers", ours, note=note)]
    try:
        from sklearn import metrics
    except ImportError:
        return rows

    def peer() -> dict[str, float]:
        conf, indicator = np.concatenate([ids, oods]), np.repeat([0, 1], [N_ID, N_OOD])
        fpr, tpr, _ = metrics.roc_curve(indicator, -conf)
        precision_in, recall_in, _ = metrics.precision_recall_curve(1 - indicator, conf)
        precision_out, recall_out, _ = metrics.precision_recall_curve(indicator, -conf)
        return {
            "AUROC": metrics.auc(fpr, tpr),
            "AUPR_IN": metrics.auc(recall_in, precision_in),
            "AUPR_OUT": metrics.auc(recall_out, precision_out),
            "FPR95": fpr[np.argmax(tpr >= 0.95)],
            "ACC": metrics.accuracy_score(labels, predictions),
        }

    theirs, expected = best(peer, REPEATS)
    gap = max(abs(found[name] - expected[name]) for name in expected)
    return [
        *rows,
        measured("scikit-learn's route", theirs, note=note),
        measured("scikit-learn's route / five numbers", theirs / ours, note=note, least=5.0),
        measured("largest difference", gap, "share", note=note, most=1e-12),
    ]
