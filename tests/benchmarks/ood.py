"""Speed of the OOD metrics: AUROC of ten million scores against scikit-learn, and a whole split at published size.

The peer is ``sklearn.metrics.roc_auc_score``, called as users call it: one label a score. Both get the same
float64 scores, half of them ID, some of them tied; where scikit-learn is absent only our own times are given.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from curation.benchmarks.findmeifyoucan.evaluation import evaluate_split
from curation.benchmarks.findmeifyoucan.measures import separability
from curation.evaluation.ood.detections import OodDetections
from curation.evaluation.ood.id_scores import IdScores
from curation.evaluation.ood.separability import RankedScores, auroc
from curation.evaluation.problem import GroundTruth
from tests.benchmarks.measured import best, measured

SCORES, IMAGES, OBJECTS, DETECTIONS = 10_000_000, 1_873, 12_000, 200_000


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement; `out` is not used, the input is drawn in memory."""
    rng = np.random.default_rng(11)
    ids = rng.normal(1, 1, SCORES // 2).round(6)
    oods = rng.normal(0, 1, SCORES // 2).round(6)
    note = f"{SCORES:,} float64 scores, half ID, rounded to 6 decimals (ties)"
    ours, value = best(lambda: auroc(RankedScores.of(ids, oods)))
    rows = [measured("AUROC", ours, note=note)]
    rows.append(measured("AUROC, AUPR twice, FPR95 three times", best(lambda: separability(ids, oods))[0], note=note))
    rows += _against_sklearn(ids, oods, ours, value, note)
    truth, detections, id_scores = _split(rng)
    seconds, _ = best(lambda: evaluate_split(truth, detections, id_scores, "energy"))
    split_note = f"{IMAGES:,} images, {OBJECTS:,} objects, {DETECTIONS:,} detections, both variants, from arrays"
    return [*rows, measured("one split", seconds, note=split_note)]


def _against_sklearn(ids: Any, oods: Any, ours: float, value: float, note: str) -> list[dict[str, Any]]:
    try:
        from sklearn.metrics import roc_auc_score
    except ImportError:
        return []
    labels, scores = np.repeat([1, 0], [len(ids), len(oods)]), np.concatenate([ids, oods])
    theirs, expected = best(lambda: roc_auc_score(labels, scores))
    if abs(value - expected) > 1e-9:
        raise AssertionError(f"the two AUROCs disagree: {value} and {expected}")
    return [
        measured("roc_auc_score", theirs, note=note),
        measured("roc_auc_score / AUROC", theirs / ours, note=note, least=1.0),
    ]


def _split(rng: np.random.Generator) -> tuple[GroundTruth, OodDetections, IdScores]:
    image = np.sort(rng.integers(0, IMAGES, OBJECTS)).astype(np.int32)
    size = rng.uniform(20, 240, (OBJECTS, 2))
    boxes = np.hstack([rng.uniform(0, 1, (OBJECTS, 2)) * (600 - size), size]).round(2)
    truth = GroundTruth(
        image_numbers=np.arange(IMAGES),
        classes=(),
        class_numbers=(),
        image=image,
        label=np.full(OBJECTS, -1, np.int32),
        boxes=boxes,
        crowd=np.zeros(OBJECTS, bool),
        difficult=np.zeros(OBJECTS, bool),
        areas=size.prod(axis=1),
    )
    near = np.sort(rng.integers(0, OBJECTS, DETECTIONS))
    moved = boxes[near] + rng.normal(0, 12, (DETECTIONS, 4))
    corners = np.hstack([moved[:, :2], moved[:, :2] + np.abs(moved[:, 2:]) + 1])
    detections = OodDetections(
        image[near],
        corners,
        rng.uniform(0.4, 1, DETECTIONS),
        np.zeros(DETECTIONS, bool),
        {"energy": rng.normal(0, 1, DETECTIONS)},
    )
    return truth, detections, IdScores({"energy": rng.normal(1.5, 1, 40_000)}, None, "drawn", "", {})
