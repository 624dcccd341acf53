"""Baselines as functions: hand-checked cases and what must hold of each."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.baselines.score_vectors import ScoreVectors, read_score_vectors
from curation.baselines.suppression import keep_across_kinds, keep_within_labels
from curation.baselines.unknown_boxes import NaiveOptions, naive_unknown
from curation.errors import PredictionError, UsageError


def vectors(scores: Any, boxes: Any = None, images: Any = None) -> ScoreVectors:
    table = np.array(scores, np.float64)
    n = len(table)
    image = np.zeros(n, np.int64) if images is None else np.array(images, np.int64)
    given_boxes = np.array([[50.0 * k, 0, 40, 40] for k in range(n)] if boxes is None else boxes, np.float64)
    return ScoreVectors(tuple(image.tolist()), image, given_boxes, table, None, name="x", sha256="")


def random_vectors(seed: int, n: int = 12, k: int = 4) -> ScoreVectors:
    rng = np.random.default_rng(seed)
    boxes = np.concatenate([rng.integers(0, 60, (n, 2)), rng.integers(20, 60, (n, 2))], axis=1)
    return vectors(rng.dirichlet(np.ones(k), n), boxes, np.sort(rng.integers(0, 3, n)))


def test_naive_by_hand() -> None:
    found = naive_unknown(vectors([[0.6, 0.3, 0.1], [0.9, 0.05, 0.05], [0.04, 0.03, 0.02]]), NaiveOptions(4.0))
    # 0.6/0.3 = 2 < 4: unknown with score 1, once; 0.9/0.05 = 18: a cat; nothing above 0.05 in the third.
    assert found.row.tolist() == [0, 1]
    assert found.label.tolist() == [3, 0]
    assert found.scores.tolist() == pytest.approx([1.0, 0.9])


@given(st.integers(0, 300))
def test_naive_at_the_ends_of_gamma(seed: int) -> None:
    one = random_vectors(seed)
    assert not (naive_unknown(one, NaiveOptions(1.0)).label == 4).any()
    everything = naive_unknown(one, NaiveOptions(float("inf"), iou=1.0))
    assert (everything.label == 4).all()
    fewer = naive_unknown(one, NaiveOptions(1.5, iou=1.0)).label == 4
    more = naive_unknown(one, NaiveOptions(3.0, iou=1.0)).label == 4
    assert fewer.sum() <= more.sum()


def test_a_ratio_without_a_second_score_is_infinite() -> None:
    assert naive_unknown(vectors([[0.5, 0.0, 0.0]]), NaiveOptions(float("inf"))).label.tolist() == [0]


def test_naive_refuses() -> None:
    with pytest.raises(PredictionError, match="at least 3"):
        naive_unknown(vectors([[0.5, 0.5]]), NaiveOptions(2.0))
    with pytest.raises(PredictionError, match="not negative"):
        naive_unknown(vectors([[0.5, -0.5, 0.1]]), NaiveOptions(2.0))
    with pytest.raises(PredictionError, match="background"):
        naive_unknown(vectors([[0.5, 0.5, 0.1]]), NaiveOptions(2.0, compare_background=True))
    with pytest.raises(UsageError, match="parameters"):
        naive_unknown(vectors([[0.5, 0.5, 0.1]]), NaiveOptions(-1.0))


def test_a_chain_tells_the_two_readings_apart() -> None:
    boxes = np.array([[0, 0, 100, 100], [40, 0, 100, 100], [80, 0, 100, 100]], np.float64)
    scores, unknown, image = np.array([0.9, 0.8, 0.7]), np.array([False, True, False]), np.zeros(3, np.int64)
    assert keep_across_kinds(image, boxes, scores, unknown, 0.4, "pairwise").tolist() == [True, False, False]
    assert keep_across_kinds(image, boxes, scores, unknown, 0.4, "greedy").tolist() == [True, False, True]


@given(st.integers(0, 300), st.floats(0, 1))
def test_suppression_between_kinds(seed: int, iou: float) -> None:
    one = random_vectors(seed)
    scores, unknown = np.round(one.scores[:, 0], 1), one.scores[:, 1] > 0.2
    pairwise = keep_across_kinds(one.image, one.boxes, scores, unknown, iou, "pairwise")
    greedy = keep_across_kinds(one.image, one.boxes, scores, unknown, iou, "greedy")
    assert (pairwise <= greedy).all()
    assert keep_across_kinds(one.image, one.boxes, scores, unknown, 1.0).all()
    order = np.random.default_rng(seed).permutation(len(scores))
    distinct = scores + np.arange(len(scores)) / 1e6
    kept = keep_across_kinds(one.image, one.boxes, distinct, unknown, iou)
    moved = keep_across_kinds(one.image[order], one.boxes[order], distinct[order], unknown[order], iou)
    assert (kept[order] == moved).all()


def test_equal_boxes_both_survive_a_threshold_of_one() -> None:
    # Corners are sums of rounded numbers: the IoU of a box with itself comes out above 1 for one in three.
    boxes = np.repeat(np.random.default_rng(0).random((200, 4)) * 100, 2, axis=0)
    image, kinds = np.repeat(np.arange(200), 2), np.tile([False, True], 200)
    for reading in ("pairwise", "greedy"):
        assert keep_across_kinds(image, boxes, np.ones(400), kinds, 1.0, reading).all()  # type: ignore[arg-type]
    assert keep_within_labels(image, boxes, np.ones(400), 1.0).all()


def test_suppression_within_labels() -> None:
    boxes = np.array([[0, 0, 10, 10], [1, 0, 10, 10], [2, 0, 10, 10], [0, 0, 10, 10]], np.float64)
    kept = keep_within_labels(np.array([0, 0, 0, 1]), boxes, np.array([0.5, 0.9, 0.4, 0.1]), 0.5)
    assert kept.tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"image_id": 1, "bbox": [1, 2, 3], "scores": [1]}], "cannot be read"),
        ([{"image_id": 1, "bbox": [1, 2, -3, 4], "scores": [1]}], "cannot be read"),
        ([{"image_id": 1, "bbox": [1, 2, 3, 4], "scores": [1]}, {"image_id": 1, "bbox": [1, 2, 3, 4], "scores": []}],
         "Wrong number"),
        ([{"image_id": 1, "bbox": [1, 2, 3, 4], "scores": [1], "background_score": 1},
          {"image_id": 1, "bbox": [1, 2, 3, 4], "scores": [1]}], "background_score"),
        ([{"image_id": 1, "bbox": [1, 2, 3, 4], "scores": [1e308, 1e308]}], "cannot be read"),
        ([{"image_id": 1, "bbox": [1, 2, 3, 4], "scores": [1], "background_score": 1e308}], "cannot be read"),
        ({"a": 1}, "cannot be read"),
    ],
)  # fmt: skip
def test_score_files_that_are_refused(tmp_path: Path, rows: Any, words: str) -> None:
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(rows))
    with pytest.raises(PredictionError, match=words):
        read_score_vectors(path)
