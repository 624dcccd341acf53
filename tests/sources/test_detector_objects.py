"""Detections as supervision, Ultralytics and torchmetrics have them: the same numbers as from COCO results.

The classes have exactly the documented attributes of these packages' objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import curation
from curation.core.errors import CurationError

TRUTH = {
    "images": [{"id": n, "width": 100, "height": 80, "file_name": f"im_{n:03}.jpg"} for n in (1, 2, 3)],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 10, 30, 20], "area": 600, "iscrowd": 0},
        {"id": 2, "image_id": 2, "category_id": 2, "bbox": [5, 5, 50, 60], "area": 3000, "iscrowd": 0},
    ],
    "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
}
FOUND = [
    {"image_id": 1, "category_id": 1, "bbox": [12, 10, 30, 20], "score": 0.75},
    {"image_id": 2, "category_id": 2, "bbox": [6, 5, 50, 60], "score": 0.5},
    {"image_id": 2, "category_id": 1, "bbox": [60, 5, 10, 10], "score": 0.875},
]
CORNERS = {1: [[12, 10, 42, 30]], 2: [[6, 5, 56, 65], [60, 5, 70, 15]], 3: []}
SCORES = {1: [0.75], 2: [0.5, 0.875], 3: []}
LABELS = {1: [1], 2: [2, 1], 3: []}


@dataclass
class Detections:
    """As ``supervision.Detections``."""

    xyxy: Any
    confidence: Any = None
    class_id: Any = None
    data: dict[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Any:
        return iter(())


@dataclass
class Boxes:
    """As ``ultralytics.engine.results.Boxes``."""

    xyxy: Any
    conf: Any
    cls: Any


@dataclass
class Results:
    """As ``ultralytics.engine.results.Results``."""

    boxes: Any
    names: dict[int, str]
    path: str


def results(n: int, path: str = "", names: dict[int, str] | None = None) -> Results:
    labels = np.array(LABELS[n], np.float32) - 1
    boxes = Boxes(np.array(CORNERS[n], np.float32).reshape(-1, 4), np.array(SCORES[n]), labels)
    return Results(boxes, names or {0: "cat", 1: "dog"}, path or f"/data/im_{n:03}.jpg")


def detections(n: int, *, named: bool = False) -> Detections:
    labels = np.array(LABELS[n])
    names = {"class_name": np.array(["", "cat", "dog"])[labels]} if named and len(labels) else {}
    corners = np.array(CORNERS[n], float).reshape(-1, 4)
    return Detections(corners, np.array(SCORES[n]), labels * 0 + 77 if named else labels, names)


def per_image(n: int) -> dict[str, Any]:
    columns = {"boxes": CORNERS[n], "scores": SCORES[n], "labels": LABELS[n]}
    return {name: np.array(column) for name, column in columns.items()}


IMAGES = (1, 2, 3)


@pytest.mark.parametrize(
    "given",
    [
        {n: detections(n) for n in IMAGES},
        {f"im_{n:03}": detections(n) for n in IMAGES},
        {n: detections(n, named=True) for n in IMAGES},
        {1: detections(1), 2: detections(2), 3: Detections(np.empty((0, 4)))},
        [results(n) for n in IMAGES],
        {n: results(n, path="image0.jpg") for n in IMAGES},
        {n: per_image(n) for n in IMAGES},
        [per_image(n) | {"image_id": n} for n in IMAGES],
    ],
)
def test_every_form_gives_the_numbers_of_coco_results(given: Any) -> None:
    expected = curation.evaluate.coco(truth=TRUTH, detections=FOUND)
    assert expected["AP50"] == pytest.approx(75, abs=0.5)
    found = curation.evaluate.coco(truth=TRUTH, detections=given)
    assert found.measures.equals(expected.measures)
    assert found.table("average_precision").equals(expected.table("average_precision"))


def test_parts_may_each_have_their_own() -> None:
    nothing = {"images": [{"id": 9, "width": 9, "height": 9, "file_name": "9.jpg"}], "annotations": []}
    truth = {"closed": TRUTH, "wilderness": TRUTH | nothing}
    outside = Results(Boxes(np.array([[1.0, 1, 5, 5]]), np.array([0.9]), np.array([0.0])), {0: "cat"}, "9.jpg")
    given = {"closed": {n: detections(n) for n in IMAGES}, "wilderness": [outside]}
    rows = {"closed": FOUND, "wilderness": [{"image_id": 9, "category_id": 1, "bbox": [1, 1, 4, 4], "score": 0.9}]}
    found, expected = (curation.evaluate.elephant(truth=truth, detections=one) for one in (given, rows))
    assert found.measures.equals(expected.measures)


NO_LABELS = Detections(np.zeros((1, 4)), np.array([0.5]))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (detections(1), "do not say which image"),
        ([detections(1), detections(2)], "dict(zip(image_ids, detections))"),
        ([per_image(1)], "dict(zip(image_ids, detections))"),
        ({1: Detections(np.zeros((1, 4)))}, "have no scores"),
        ({1: NO_LABELS}, "have no labels"),
        ([Results(None, {0: "cat"}, "im_001.jpg")], "have no boxes"),
        ([results(2, names={0: "cat"})], "a class that its names lack"),
        ([results(1, names={0: "zebra"})], "category 'zebra'"),
        ([results(1, path="image0.jpg")], "image image0.jpg"),
        ([results(1), "im_002"], "type of an image's detections"),
        ({1: detections(1), 2: None}, "type of an image's detections"),
        ({1: per_image(1) | {"scores": [0.5, 0.5]}}, "Malformed boxes of an image"),
        ({1: per_image(1) | {"boxes": [[0, 0, 1]]}}, "Malformed boxes of an image"),
        ({1: per_image(1) | {"scores": [75.0]}}, "outside [0, 1]"),
        ({1: Detections("corners", [0.5], [1])}, "are not a list"),
    ],
)
def test_what_is_missing_is_named(given: Any, words: str) -> None:
    with pytest.raises(CurationError) as refused:
        curation.evaluate.coco(truth=TRUTH, detections=given)
    assert words in str(refused.value)
