"""Evidence from pixels: the look of ID images, and a detector."""

import dataclasses
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.core.errors import ProposalError
from curation.review.proposals.evidence import detector_evidence, digest_of, look_cut, look_evidence, read_categories
from curation.review.proposals.id_classes import IdClass
from curation.signals.similarity.neighbors import SetSimilarity
from tests.review.proposals.proposal_world import source_of
from tests.signals.similarity.vectors import embedded

CLASSES = (IdClass("dog", ("hound",)), IdClass("cat"))


def test_an_image_is_suspect_from_the_median_of_id_images() -> None:
    similarity = np.array([0.7, 0.6, 0.5], np.float32)
    look = SetSimilarity(("a", "b", "z"), ("x", "b", "z"), similarity, similarity)
    found = look_evidence(look, look_cut(0.5, 0.1, Decimal("1")))
    assert {image: (one.score, one.threshold, one.detail) for image, one in found.items()} == {
        "a": ("0.7000", "0.6000", "looks like x"),
        "b": ("0.6000", "0.6000", "is itself among the ID images"),
    }


def test_the_digest_speaks_of_images_and_encoder() -> None:
    one = embedded({"coco:1": [1, 0]})
    assert digest_of(one) == digest_of(embedded({"coco:1": [0, 1]}))
    assert digest_of(one) != digest_of(embedded({"coco:2": [1, 0]}))
    assert digest_of(one) != digest_of(embedded({"coco:1": [1, 0]}, model="another"))
    assert digest_of(one) != digest_of(dataclasses.replace(one, images=("sha256:f",)))


SOURCE = source_of({"000000000001": [], "000000000002": []}, ["fox"])
NUMBERED = {1: "dog", 2: "cat"}


def detections(tmp_path: Path, rows: Any) -> Path:
    path = tmp_path / "detections.json"
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows))
    return path


def row(image: int | str, category: int, score: float) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "score": score, "bbox": [0, 0, 1, 1]}


def test_the_best_confident_detection_of_each_class_is_told(tmp_path: Path) -> None:
    rows = [row(1, 1, 0.9), row(1, 1, 0.95), row(1, 2, 0.5), row(1, 3, 0.99), row(2, 1, 0.49), row(7, 1, 0.9)]
    found = detector_evidence(detections(tmp_path, rows), SOURCE, NUMBERED, threshold=Decimal("0.5"), pool="coco")
    pieces = found.by_image["coco:000000000001"]
    assert [(one.detail, one.score, one.id_class) for one in pieces] == [
        ("2 detections of dog", "0.9500", "dog"),
        ("1 detection of cat", "0.5000", "cat"),
    ]
    assert list(found.by_image) == ["coco:000000000001"]
    assert found.left_out == {
        "detections on other images": 1,
        "detections of other classes": 1,
        "detections below the threshold": 1,
    }


def test_ids_may_be_texts(tmp_path: Path) -> None:
    source = source_of({"00166893b16a03ab": []}, ["fox"], dataset="openimages")
    rows = [row("00166893b16a03ab", 1, 0.9)]
    found = detector_evidence(detections(tmp_path, rows), source, NUMBERED, threshold=Decimal("0.5"), pool="oi")
    assert list(found.by_image) == ["openimages:00166893b16a03ab"]


@pytest.mark.parametrize(
    "rows",
    [
        "",
        "{}",
        "[1]",
        [row(1, 1, 1.5)],
        [row(1, 1, -0.1)],
        '[{"image_id": 1, "category_id": 1, "score": NaN}]',
        '[{"image_id": 1, "category_id": 1}]',
        [row(-1, 1, 0.9)],
        [row(5, 1, 0.9)],
        "[" * 100_000,
    ],
)
def test_a_malformed_or_foreign_file_is_refused(tmp_path: Path, rows: Any) -> None:
    with pytest.raises(ProposalError) as caught:
        detector_evidence(detections(tmp_path, rows), SOURCE, NUMBERED, threshold=Decimal("0.5"), pool="coco")
    assert "detections.json" in str(caught.value)


def test_category_numbers_come_from_an_annotation_file(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text('{"images": [], "categories": [{"id": 5, "name": "Dog"}, {"id": 6, "name": "fox"}]}')
    assert read_categories(path, [IdClass("dog"), IdClass("cat")]) == {5: "dog"}
    with pytest.raises(ProposalError, match="No category"):
        read_categories(path, [IdClass("cow")])
