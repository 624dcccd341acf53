"""VOC average precision of plain detection, in both flavours."""

from __future__ import annotations

from typing import Any

import numpy as np

from curation.evaluation.average_precision import full_curve
from curation.evaluation.columns import Detections, GroundTruth
from curation.evaluation.levels import wilderness_levels
from curation.evaluation.matching import Difficult, match, rows_by_class
from curation.evaluation.wilderness import average_precision_by_level

DEFINITIONS: dict[str, str] = {
    "matching": "per class, by falling score, ties in input order, IoU >= 0.5 with the object of highest IoU of the "
    "class (VOC's inclusive boxes with + 1 are these continuous ones); taken already: false positive; difficult "
    "and crowd: neither",
    "AP11": "mean over k = 0..10 of the highest precision at recall >= k/10 (VOC2007); equal scores make one point",
    "AP_area": "area under the precision envelope (VOC2010)",
    "mAP": "mean over the classes with objects; one without detections counts as 0",
}


def voc_average_precision(truth: GroundTruth, detections: Detections) -> dict[str, Any]:
    """Return VOC AP of each class and its mean, 11-point and area, difficult objects ignored.

    Returns
    -------
    dict
        ``mAP11``, ``mAP_area``, ``mAP11_ties_in_input_order``: None where no class has objects. ``AP11``, ``AP_area``:
        by class, None without objects. ``input_order`` (of ``mAP11_ties_in_input_order``), ``npos``, ``n_images``,
        ``n_detections``, ``classes_averaged``, ``classes_left_out`` with reasons, ``definitions``.
    """
    matches = match(truth, detections)
    levels = wilderness_levels(truth.n_images, 0, most=1)
    nothing = Detections(np.empty(0, np.int32), np.empty(0, np.int32), np.empty((0, 4)), np.empty(0))
    found = average_precision_by_level(truth.classes, detections, matches, nothing, levels)
    counts = matches.n_positive.tolist()
    positives = dict(zip(truth.classes, counts, strict=True))
    detected = np.bincount(detections.label, minlength=len(truth.classes)).tolist()
    return {
        "profile": "voc",
        "difficult": "ignore",
        "definitions": DEFINITIONS,
        "mAP11": found["mAP11"][0],
        "mAP_area": found["mAP_area"][0],
        "mAP11_ties_in_input_order": found["mAP11_ties_in_input_order"][0],
        "input_order": found["input_order"],
        "AP11": found["AP11"]["0.0"],
        "AP_area": found["AP_area"]["0.0"],
        "npos": positives,
        "n_images": truth.n_images,
        "n_detections": dict(zip(truth.classes, detected, strict=True)),
        "classes_averaged": [name for name, n in positives.items() if n],
        "classes_left_out": {name: "no ground truth" for name, n in positives.items() if not n},
    }


def precision_recall(
    truth: GroundTruth, detections: Detections, *, difficult: Difficult = "ignore"
) -> dict[str, dict[str, list[float]]]:
    """Return the precision-recall curve of each class with objects: ``recall``, ``precision``, ``score`` lists."""
    matches = match(truth, detections, difficult=difficult)
    curves = {}
    for number, rows in rows_by_class(detections.label, len(truth.classes)):
        counted = rows[matches.outcome[rows] >= 0]
        n = int(matches.n_positive[number])
        if n:
            curves[truth.classes[number]] = full_curve(
                detections.scores[counted], matches.outcome[counted] == 1, n
            )
    return curves
