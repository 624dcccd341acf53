"""Detections by image, as torchmetrics and torchvision have them: the same numbers as from COCO results."""

from __future__ import annotations

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


def per_image(n: int) -> dict[str, Any]:
    columns = {"boxes": CORNERS[n], "scores": SCORES[n], "labels": LABELS[n]}
    return {name: np.array(column) for name, column in columns.items()}


IMAGES = (1, 2, 3)


@pytest.mark.parametrize(
    "given",
    [
        {f"/data/im_{n:03}.jpg": per_image(n) for n in IMAGES},
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


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([per_image(1)], "dict(zip(image_ids, detections))"),
        ({1: per_image(1), 2: None}, "Unsupported detections of an image"),
        ({1: object()}, "Unsupported detection type"),
        ({1: per_image(1) | {"scores": [0.5, 0.5]}}, "Malformed boxes of an image"),
        ({1: per_image(1) | {"boxes": [[0, 0, 1]]}}, "Malformed boxes of an image"),
        ({1: per_image(1) | {"scores": [75.0]}}, "outside [0, 1]"),
    ],
)
def test_what_is_missing_is_named(given: Any, words: str) -> None:
    with pytest.raises(CurationError) as refused:
        curation.evaluate.coco(truth=TRUTH, detections=given)
    assert words in str(refused.value)
