"""COCO's precision and recall by hotcoco, or by pycocotools if hotcoco is not installed.

hotcoco returns exactly the numbers of pycocotools in a small part of its time and memory (``python -m
tests.benchmarks coco-small``). It has wheels for fewer platforms (none for musl), so it is an extra.
ultrafast-pycocotools 0.1.14 is as exact, and tests compare with it; but it has no wheel for musl either, needs a wheel
for each Python version, and takes the truth only as dicts or as a path.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
from dataclasses import replace
from typing import Any

import numpy as np

from curation.core.process import require_memory
from curation.evaluation.problem import Detections, Floats, GroundTruth, Int64s, classes_in_use, of_classes
from curation.sources.integrity import MAX_COORDINATE
from curation.sources.source import FEDERATED

_BYTES_OF_A_CLASS = 260_000
"""Measured address space: 10 IoUs, 101 recalls and 4 ranges of area, of precision and of score, and copies."""
_EVERYWHERE = 2.0 * MAX_COORDINATE
_LARGEST_LIMIT = slice(-1, None)


def library() -> str:
    """Return the name of the library that computes precision and recall: hotcoco if installed, else pycocotools."""
    return "pycocotools" if importlib.util.find_spec("hotcoco") is None else "hotcoco"


def coco_precision(truth: GroundTruth, detections: Detections) -> dict[int, Floats]:
    """Return the interpolated precision at 10 IoUs (0.50 to 0.95) and 101 recalls, shape (10, 101), by class.

    All areas, at most 100 detections for each class and image. Keys are positions of classes in `truth`; a class
    without objects, or with crowd alone, is left out.
    """
    truth, detections, labels = with_classes_in_use(*labelled(truth, detections))
    precision, _ = CocoEvaluation(truth, detections).curves(ranges=1)
    columns = zip(labels, np.moveaxis(precision[..., 0, -1], 2, 0), strict=True)
    return {label: values for label, values in columns if values[0, 0] >= 0}


def with_classes_in_use(
    truth: GroundTruth, detections: Detections, *, at_once: int | None = None
) -> tuple[GroundTruth, Detections, list[int]]:
    """Return the objects and detections of the classes that have any, and the labels of these classes in `truth`.

    Parameters
    ----------
    at_once : int, optional
        Number of classes that the library gets at a time; all by default.

    Raises
    ------
    EvaluationError
        There is not enough memory for so many classes.
    """
    used = classes_in_use(truth, detections)
    # At least two classes, if there are two: NumPy adds the numbers of a single column in another order.
    used = np.union1d(used, np.arange(min(2, len(truth.classes)))) if len(used) < 2 else used
    require_memory(
        min(len(used), at_once or len(used)) * _BYTES_OF_A_CLASS,
        f"COCO's numbers of {len(used):,} classes with objects or detections",
        hint="--classes FILE names the classes to score",
    )
    if len(used) < len(truth.classes):
        truth, detections = of_classes(truth, detections, used)
    return truth, detections, used.tolist()


def labelled(truth: GroundTruth, detections: Detections) -> tuple[GroundTruth, Detections]:
    """Return the objects and detections that count; a ground truth that is not federated is returned unchanged.

    The rule is that of LVIS: a detection counts if its image shows an object of its class, or is known to show none. If
    not all objects of the class have boxes, a detection without an object is neither right nor wrong: an added crowd
    region, which covers the image, makes the library ignore it.
    """
    if truth.federated is None:
        return truth, detections
    n_classes = len(truth.classes)
    image, label, kind = truth.federated[truth.federated[:, 1] >= 0].T
    partly = kind == FEDERATED.index("partly boxed")
    known = truth.label >= 0
    cells = np.concatenate([image, truth.image[known]]).astype(np.int64) * n_classes
    cells += np.concatenate([label, truth.label[known]])
    cell = detections.image.astype(np.int64) * n_classes + detections.label
    empty = (detections.boxes[:, 2:] <= 0).any(axis=1)
    # A crowd region does not cover an empty box.
    counted = np.isin(cell, cells) & ~(empty & np.isin(cell, cells[: len(image)][partly]))
    n = int(partly.sum())
    order = np.argsort(np.concatenate([truth.image, image[partly]]), kind="stable")
    added: dict[str, Any] = {
        "image": image[partly],
        "label": label[partly],
        "boxes": np.tile([-_EVERYWHERE, -_EVERYWHERE, 2 * _EVERYWHERE, 2 * _EVERYWHERE], (n, 1)),
        "crowd": np.ones(n, bool),
        "difficult": np.zeros(n, bool),
        "areas": np.ones(n),
    }
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(truth, name), more])[order] for name, more in added.items()
    }
    return replace(truth, **columns, original=None, federated=None), detections.take(counted)


class CocoEvaluation:
    """Detections matched to objects by a library, with their precision and recall.

    Parameters
    ----------
    truth : GroundTruth
        A missing (not finite) area becomes ``w*h``; objects of unknown class (label -1) are left out.
    detections : Detections
    limit : int, optional
        Detections of an image and class that count; by default COCO's limits 1, 10 and 100.
    """

    def __init__(self, truth: GroundTruth, detections: Detections, *, limit: int | None = None) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            evaluator = _in_hotcoco if library() == "hotcoco" else _in_pycocotools
            self._evaluation = evaluator(truth, detections)
            if limit is not None:
                self._evaluation.params.maxDets = [limit]
            self._evaluation.evaluate()
        self._ranges, self._limits = self._evaluation.params.areaRng, self._evaluation.params.maxDets

    def curves(self, *, ranges: int = 4, limits: slice = _LARGEST_LIMIT) -> tuple[Floats, Floats]:
        """Return precision by IoU, recall, class, range of areas and limit; and recall by IoU, class, range and limit.

        Parameters
        ----------
        ranges : int
            How many of all, small, medium and large. A library finds its matches by the position of the range, so only
            the last ranges can be left out.
        limits : slice
            Limits to include, by default the largest. All pairs of range and limit would take twice the memory of the
            pairs in COCO's summary.
        """
        parameters = self._evaluation.params
        parameters.areaRng, parameters.maxDets = self._ranges[:ranges], self._limits[limits]
        with contextlib.redirect_stdout(io.StringIO()):
            self._evaluation.accumulate()
        numbers = self._evaluation.eval
        return np.asarray(numbers["precision"]), np.asarray(numbers["recall"])


def _in_hotcoco(truth: GroundTruth, detections: Detections) -> Any:
    """Return hotcoco's evaluator, built from columns instead of a record for each object."""
    import hotcoco

    known = np.flatnonzero(truth.label >= 0)
    annotated = hotcoco.COCO.from_arrays(
        [{"id": number} for number in range(1, truth.n_images + 1)],
        [{"id": number, "name": name} for number, name in enumerate(truth.classes, 1)],
        truth.image[known].astype(np.int64) + 1,
        truth.label[known].astype(np.int64) + 1,
        truth.boxes[known],
        area=_sizes(truth, known),
        iscrowd=truth.crowd[known],
    )
    records = np.column_stack([detections.image + 1, detections.boxes, detections.scores, detections.label + 1])
    return hotcoco.COCOeval(annotated, annotated.load_res(records), "bbox")


def _in_pycocotools(truth: GroundTruth, detections: Detections) -> Any:
    from pycocotools.cocoeval import COCOeval

    known = np.flatnonzero(truth.label >= 0)
    annotated = _loaded(
        truth,
        image_id=truth.image[known] + 1,
        category_id=truth.label[known] + 1,
        bbox=truth.boxes[known],
        area=_sizes(truth, known),
        iscrowd=truth.crowd[known].astype(int),
    )
    detected = _loaded(
        truth,
        image_id=detections.image + 1,
        category_id=detections.label + 1,
        bbox=detections.boxes,
        area=detections.boxes[:, 2] * detections.boxes[:, 3],
        score=detections.scores,
        iscrowd=np.zeros(len(detections), int),
    )
    return COCOeval(annotated, detected, "bbox")


def _loaded(truth: GroundTruth, **columns: Any) -> Any:
    """Return a `COCO` object that supports only queries of all images and classes, and so needs no index."""
    from pycocotools.coco import COCO

    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    # Ids start at 1, because pycocotools treats a match with annotation 0 as no match.
    annotations = [{"id": number, **dict(zip(columns, row, strict=True))} for number, row in enumerate(rows, 1)]
    dataset = COCO()
    dataset.dataset = {
        "images": [{"id": number} for number in range(1, truth.n_images + 1)],
        "categories": [{"id": number, "name": name} for number, name in enumerate(truth.classes, 1)],
        "annotations": annotations,
    }
    dataset.imgs = {image["id"]: image for image in dataset.dataset["images"]}
    dataset.getAnnIds = lambda **_: range(len(annotations))
    dataset.loadAnns = lambda ids: annotations
    return dataset


def _sizes(truth: GroundTruth, rows: Int64s) -> Floats:
    """Return the area of each object in the file, else the area of its box."""
    areas = truth.areas[rows]
    return np.where(np.isfinite(areas), areas, truth.boxes[rows, 2] * truth.boxes[rows, 3])
