"""The twelve numbers of COCO's summary, and the AP of each class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Any

import numpy as np

from curation.core.columns import distinct
from curation.evaluation.coco_precision import CocoEvaluation, labelled, library, with_classes_in_use
from curation.evaluation.measures import Measure, definitions
from curation.evaluation.problem import Detections, Floats, GroundTruth, Int64s, of_classes

_SUMMARY = (
    ("AP", "average precision", "IoU 0.50:0.95, all areas, at most 100 detections an image"),
    ("AP50", "average precision at IoU 0.50", "IoU 0.50"),
    ("AP75", "average precision at IoU 0.75", "IoU 0.75"),
    ("APs", "average precision of small objects", "IoU 0.50:0.95, objects below 32^2 pixels"),
    ("APm", "average precision of medium objects", "IoU 0.50:0.95, objects of 32^2 to 96^2 pixels"),
    ("APl", "average precision of large objects", "IoU 0.50:0.95, objects above 96^2 pixels"),
    ("AR1", "average recall, 1 detection", "recall, at most 1 detection an image"),
    ("AR10", "average recall, 10 detections", "recall, at most 10 detections an image"),
    ("AR100", "average recall, 100 detections", "recall, at most 100 detections an image"),
    ("ARs", "average recall of small objects", "recall, objects below 32^2 pixels"),
    ("ARm", "average recall of medium objects", "recall, objects of 32^2 to 96^2 pixels"),
    ("ARl", "average recall of large objects", "recall, objects above 96^2 pixels"),
)
MEASURES = tuple(
    Measure(
        key,
        name,
        formula,
        unit="%",
        better="higher",
        source="cocodataset.org/#detection-eval; pycocotools, COCOeval.summarize",
        undefined="no object qualifies, crowd aside",
        ranked=key.startswith("AP") or key == "AR100",
    )
    for key, name, formula in _SUMMARY
)
STATISTICS = definitions(MEASURES)
"""The twelve numbers of COCO's summary, in its order, with their definitions."""

_CLASSES_AT_ONCE = 2000
"""More classes are passed to the library in groups, because it stores several copies of 4,040 numbers for each class.

Means of groups may differ in the last digit from those of all classes at once.
"""
_AREA_WORDS = {"s": "below 32^2 pixels", "m": "of 32^2 to 96^2 pixels", "l": "above 96^2 pixels"}


def coco_average_precision(truth: GroundTruth, detections: Detections) -> dict[str, Any]:
    """Return COCO's twelve numbers and the AP of each class, for plain (closed-set) detection.

    In a federated dataset (LVIS) an image counts for the classes that it was labelled for
    (`curation.evaluation.coco_precision.labelled`). Crowd regions are ignored as in COCO; *difficult* objects count as
    ordinary ones, because COCO has no such flag; objects of unknown class (label -1) are left out. Inputs are not
    changed.

    Parameters
    ----------
    truth : GroundTruth
        Its `areas` define small, medium and large; a missing (not finite) area becomes ``w*h``.
    detections : Detections

    Returns
    -------
    dict
        The keys of `STATISTICS` as fractions of 1, None if no object qualifies (-1 in COCO's tools); ``per_class``: AP
        by class name; ``undefined``: the reason of each None; ``engine``: the library that computed them;
        ``difficult``; ``n_images``, ``n_objects``, ``n_detections``, ``left_out`` (objects of unknown class);
        ``n_detections_not_labelled`` of a federated dataset.
    """
    known = truth.label >= 0
    result: dict[str, Any] = {
        "engine": library(),
        "difficult": "counted",
        "n_images": truth.n_images,
        "n_objects": int(known.sum()),
        "n_detections": len(detections),
        "left_out": int((~known).sum()),
    }
    if truth.federated is not None:
        truth, detections = labelled(truth, detections)
        result["n_detections_not_labelled"] = result["n_detections"] - len(detections)
    statistics, by_label = _statistics(truth, detections)
    result |= {name: defined(value) for name, value in zip(STATISTICS, statistics.tolist(), strict=True)}
    result["per_class"] = per_class = values_by_name(truth.classes, by_label)
    result["undefined"] = _reasons(result, per_class)
    return result


def mean_of_defined(values: Floats) -> float:
    """Return the mean of the values above -1, summed as pycocotools sums them; -1 if there are none."""
    values = values[values > -1]
    return float(values.mean()) if len(values) else -1.0


def defined(value: float) -> float | None:
    """Return a number of COCO's tools, or None for -1."""
    return None if value < 0 else float(value)


def values_by_name(classes: Sequence[str], by_label: Iterable[tuple[int, float]]) -> dict[str, float | None]:
    """Return AP by class name, None for a class without objects."""
    per_class: dict[str, float | None] = dict.fromkeys(classes)
    for label, value in by_label:
        per_class[classes[label]] = defined(value)
    return per_class


def _statistics(
    truth: GroundTruth, detections: Detections, *, at_once: int = _CLASSES_AT_ONCE
) -> tuple[Floats, list[tuple[int, float]]]:
    """Return COCO's numbers, -1 where undefined, and the AP of each class that objects or detections have, by label."""
    truth, detections, labels = with_classes_in_use(truth, detections, at_once=at_once)
    n_groups = max(1, -(-len(labels) // at_once))
    if n_groups == 1:
        statistics, precisions, _ = _numbers(truth, detections)
        return statistics, list(zip(labels, precisions.tolist(), strict=True))
    groups = [
        _numbers(*_of_group(truth, detections, group)) for group in np.array_split(np.arange(len(labels)), n_groups)
    ]
    counts = np.array([n for *_, n in groups])
    total = counts.sum(axis=0)
    sums = np.array([fsum(column) for column in (np.array([means for means, *_ in groups]) * counts).T])
    precisions = np.concatenate([of_group for _, of_group, _ in groups])
    return np.where(total, sums / np.maximum(total, 1), -1.0), list(zip(labels, precisions.tolist(), strict=True))


def _of_group(truth: GroundTruth, detections: Detections, group: Int64s) -> tuple[GroundTruth, Detections]:
    """Return the objects and detections of some classes, on the images that have any of them."""
    rows = np.flatnonzero(np.isin(truth.label, group))
    names = ("image", "label", "boxes", "crowd", "difficult", "areas")
    columns: dict[str, Any] = {name: getattr(truth, name)[rows] for name in names}
    truth, detections = of_classes(
        replace(truth, **columns, original=None, federated=None),
        detections.take(np.isin(detections.label, group)),
        group,
    )
    images = distinct(np.concatenate([truth.image, detections.image]))
    image, detected = (np.searchsorted(images, side.image).astype(np.int32) for side in (truth, detections))
    truth = replace(truth, image_numbers=truth.image_numbers[images], image=image)
    return truth, replace(detections, image=detected)


def _numbers(truth: GroundTruth, detections: Detections) -> tuple[Floats, Floats, Int64s]:
    """Return COCO's numbers and the AP of each class, -1 if undefined, and how many values each number averages.

    The values are precisions at an IoU, a recall and a class, or recalls at an IoU and a class.
    """
    evaluation = CocoEvaluation(truth, detections)
    _, at_lower_limits = evaluation.curves(ranges=1, limits=slice(-1))
    precision, recall = (values[..., -1] for values in evaluation.curves())
    every, *of_sizes = np.moveaxis(precision, -1, 0)
    lower = np.moveaxis(at_lower_limits, -1, 0)
    numbers = (every, every[0], every[5], *of_sizes, *lower, *np.moveaxis(recall, -1, 0))
    counts = np.array([np.count_nonzero(values > -1) for values in numbers])
    return np.array([*map(mean_of_defined, numbers)]), every.mean(axis=(0, 1)), counts


def _reasons(result: Mapping[str, Any], per_class: Mapping[str, float | None]) -> dict[str, str]:
    reasons = {}
    for name in STATISTICS:
        if result[name] is None:
            size = _AREA_WORDS.get(name[-1])
            reasons[name] = f"no object {size}, crowd aside" if size else "no object of a known class, crowd aside"
    reasons |= {name: "no object of this class, crowd aside" for name, ap in per_class.items() if ap is None}
    return reasons
