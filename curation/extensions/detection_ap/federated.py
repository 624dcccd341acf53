"""LVIS AP and Fixed AP: which detections and objects of a federated ground truth count, and thirteen numbers.

The rules are those of lvis-api (7d7f07d). `coco_engine` computes precision and recall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from curation.core.errors import EvaluationError
from curation.evaluation.measures import Measure
from curation.evaluation.problem import Bools, Detections, Floats, GroundTruth, Int32s, Int64s
from curation.extensions.detection_ap.coco_summary import mean_of_defined
from curation.sources.source import FEDERATED

GROUPS = {"r": "rare", "c": "common", "f": "frequent"}
"""LVIS's names of classes by their number of training images: 1 to 10, 11 to 100, more."""
_IN_WORDS = {"r": "1 to 10", "c": "11 to 100", "f": "over 100"}
_measure = partial(Measure, unit="%", better="higher", source="lvis-api, LVISEval.summarize")
MEASURES = (
    *(
        _measure(
            f"AP{key}",
            f"average precision of {name} classes",
            f"IoU 0.50:0.95, mean over classes of {_IN_WORDS[key]} training images (`frequency` {key} of the truth)",
            undefined="no such class has an object that counts",
            ranked=True,
        )
        for key, name in GROUPS.items()
    ),
    _measure(
        "AR", "average recall", "recall at IoU 0.50:0.95, under the variant's limit", undefined="no object qualifies"
    ),
)
KEYS = ("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf", "AR", "ARs", "ARm", "ARl")
"""The thirteen numbers, in LVIS's order."""
NO_FREQUENCY = {f"AP{key}": "the truth states no `frequency` of its categories" for key in GROUPS}
IGNORED_AREA = 4e10
"""An area outside every range: an object of this area is matched once, and its match is ignored."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Number of detections that count: the best `most` of each image (all classes) or of each class (all images)."""

    group: Literal["image", "class"]
    most: int

    def within_limit(self, detections: Detections) -> Bools:
        """Return which detections are within the limit, equal scores in input order."""
        group = (detections.image if self.group == "image" else detections.label).astype(np.int64)
        order = np.lexsort((-detections.scores, group))
        begins = np.searchsorted(group[order], group[order])
        is_within = np.zeros(len(order), bool)
        is_within[order] = np.arange(len(order)) - begins < self.most
        return is_within


def counted_objects(truth: GroundTruth, detections: Detections, limit: Limit) -> tuple[GroundTruth, Detections]:
    """Return the objects and detections that LVIS counts.

    In this order: the limit is applied; boxes without area, or of classes that the truth lacks, are dropped; a
    detection counts if its image shows the class, or lists it in ``neg_category_ids``. Crowd regions count as objects;
    objects with ``ignore``, and difficult objects, are ignored.

    Parameters
    ----------
    truth : GroundTruth
        Ground truth with `GroundTruth.federated`.
    detections : Detections
        A negative label is a class that the truth lacks; each such class has its own label.

    Raises
    ------
    EvaluationError
        The truth is not federated.
    """
    federated = require_federated(truth)
    n_classes = len(truth.classes)
    limited = detections.take(limit.within_limit(detections))
    sized = limited.take((limited.label >= 0) & (limited.boxes[:, 2:] > 0).all(axis=1))
    areas = np.where(np.isfinite(truth.areas), truth.areas, truth.boxes[:, 2] * truth.boxes[:, 3])
    rows = np.flatnonzero((truth.label >= 0) & (areas > 0))
    image, label, kind = federated[federated[:, 1] >= 0].T
    absent = kind == FEDERATED.index("absent")
    cells = np.concatenate([_cells(truth.image[rows], truth.label[rows], n_classes),
                            _cells(image[absent], label[absent], n_classes)])  # fmt: skip
    left = sized.take(np.isin(_cells(sized.image, sized.label, n_classes), cells))
    none = np.zeros(len(rows), bool)
    objects = replace(
        truth,
        image=truth.image[rows],
        label=truth.label[rows],
        boxes=truth.boxes[rows],
        crowd=none,
        difficult=none,
        areas=np.where(truth.difficult[rows], IGNORED_AREA, areas[rows]),
        original=None,
    )
    return objects, left


def require_federated(truth: GroundTruth) -> Int32s:
    """Return the federated labels of a truth; raise `EvaluationError` if it has none."""
    if truth.federated is None:
        raise EvaluationError(
            "The truth does not say which classes its images were labelled for",
            expected="LVIS JSON: neg_category_ids and not_exhaustive_category_ids of each image",
            found="a truth that labels every image for every class",
            hint="--variant=coco scores it",
        )
    return truth.federated


def _cells(image: Any, label: Any, n_classes: int) -> Int64s:
    """Return a distinct number for each pair of image and class."""
    cells: Int64s = image.astype(np.int64) * n_classes + label
    return cells


def thirteen(precision: Floats, recall: Floats, frequency: Sequence[str]) -> Floats:
    """Return the numbers of `KEYS`, -1 where undefined.

    Parameters
    ----------
    precision : ndarray of float64, shape (10, 101, K, 4)
        By IoU, recall, class and range of areas; -1 if a class has no object.
    recall : ndarray of float64, shape (10, K, 4)
    frequency : sequence of str, length K
        ``r``, ``c``, ``f``, or ``""`` for each class.
    """
    letters = np.array(frequency, object)
    return np.array(
        [
            mean_of_defined(precision[..., 0]),
            *(mean_of_defined(precision[level, ..., 0]) for level in (0, 5)),
            *(mean_of_defined(precision[..., size]) for size in (1, 2, 3)),
            *(mean_of_defined(precision[:, :, letters == letter, 0]) for letter in GROUPS),
            *(mean_of_defined(recall[..., size]) for size in range(4)),
        ]
    )
