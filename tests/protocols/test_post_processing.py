"""Baselines as functions: hand-checked cases and what must hold of each."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.methods import (
    ClassThresholds,
    NaiveOptions,
    ScoreVectors,
    calibrate,
    confirm,
    expel,
    keep_across_kinds,
    keep_within_labels,
    merge_passes,
    merged_detections,
    naive_unknown,
    read_labelled,
    read_score_vectors,
    write_results,
)
from curation.core.errors import PredictionError, UsageError
from curation.evaluation.problem import GroundTruth


def vectors(scores: Any, boxes: Any = None, images: Any = None, **more: Any) -> ScoreVectors:
    table = np.array(scores, np.float64)
    n = len(table)
    image = np.zeros(n, np.int64) if images is None else np.array(images, np.int64)
    given_boxes = np.array([[50.0 * k, 0, 40, 40] for k in range(n)] if boxes is None else boxes, np.float64)
    columns = {"background": None, "objectness": None, "region": None} | more
    return ScoreVectors(tuple(image.tolist()), image, given_boxes, table, **columns, name="x", sha256="")


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


def truth(boxes: Any, labels: Any, k: int) -> GroundTruth:
    m = len(labels)
    off = np.zeros(m, np.bool_)
    return GroundTruth(
        np.arange(1),
        tuple(f"c{place}" for place in range(k)),
        tuple(range(k)),
        np.zeros(m, np.int32),
        np.array(labels, np.int32),
        np.array(boxes, np.float64).reshape(m, 4),
        off,
        off,
        np.ones(m),
    )


def test_expelling_by_hand() -> None:
    train = vectors([[0.8, 0.1], [0.6, 0.2], [0.3, 0.4]], [[0, 0, 10, 10], [0, 0, 10, 10], [50, 0, 10, 10]])
    found = calibrate(train, truth([[0, 0, 10, 10]], [0], 2))
    assert found.means.tolist() == [pytest.approx(0.7), 0.0]
    assert found.pairs.tolist() == [2, 0]
    assert found.uncalibrated == ("c1",)
    both = ClassThresholds(np.array([0.7, 0.5]), np.array([2, 1]), ())
    judged = vectors([[0.4, 0.3], [0.3, 0.26], [0.35, 0.25]])
    expelled = expel(judged, both)
    # Thresholds 0.35 and 0.25: equal is expelled.
    assert expelled.label.tolist() == [0, 1, 2]
    assert expelled.scores.tolist() == [0.4, 0.26, 1.0]
    assert expel(judged, both, unknown="max_score").scores.tolist() == [0.4, 0.26, 0.35]


@given(st.integers(0, 200))
def test_raising_alpha_never_makes_an_unknown_known(seed: int) -> None:
    one = random_vectors(seed)
    thresholds = ClassThresholds(np.full(4, 0.5), np.ones(4, np.int64), ())
    assert (expel(one, thresholds, alpha=0).label == one.scores.argmax(axis=1)).all()
    last = np.zeros(len(one), np.bool_)
    for alpha in (0.0, 0.5, 1.0, 1.5):
        unknown = expel(one, thresholds, alpha=alpha).label == 4
        assert (last <= unknown).all()
        last = unknown


@pytest.mark.parametrize("alpha", [-0.1, float("inf"), float("nan")])
def test_expelling_refuses(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha"):
        expel(vectors([[0.8, 0.1]]), ClassThresholds(np.array([0.7, 0.0]), np.array([2, 0]), ("c1",)), alpha=alpha)


def test_calibration_refuses() -> None:
    train = vectors([[0.8, 0.1]])
    with pytest.raises(PredictionError, match="unknown classes"):
        calibrate(train, truth([[0, 0, 1, 1]], [-1], 2))
    with pytest.raises(PredictionError, match="lacks the image of a box"):
        calibrate(vectors([[0.8, 0.1]], images=[7]), truth([[0, 0, 1, 1]], [0], 2))
    with pytest.raises(PredictionError, match="number of classes"):
        calibrate(train, truth([[0, 0, 1, 1]], [0], 3))


def test_confirmation_by_hand() -> None:
    image, boxes = np.zeros(3, np.int64), np.array([[0, 0, 10, 10], [50, 0, 10, 10], [0, 50, 10, 10]], float)
    score, other = np.array([0.9, 0.8, 0.7]), np.array([[0.0, 0, 10, 8], [50, 0, 10, 6]])
    zero = np.zeros(2, np.int64)
    assert confirm(image, boxes, score, zero, other).tolist() == [0]
    assert confirm(image, boxes, score, zero, other, theta=0).tolist() == [0, 1]
    twice = np.concatenate([other, other])
    assert confirm(image, boxes, score, np.zeros(4, np.int64), twice).tolist() == [0]
    assert confirm(image, boxes, score, zero, other, theta=0, top=1).tolist() == [0]
    # Repeats do not use up the places of other auxiliary boxes.
    assert confirm(image, boxes, score, zero, other, theta=0, top=2).tolist() == [0, 1]
    three = np.concatenate([other[:1], other[:1], other])
    assert confirm(image, boxes, score, np.zeros(4, np.int64), three, theta=0, top=2).tolist() == [0, 1]
    ranked = np.array([0.1, 0.9, 0.5, 0.8])
    assert confirm(image, boxes, score, np.zeros(4, np.int64), three, ranked, theta=0, top=1).tolist() == [0]
    assert confirm(image, boxes, score, np.ones(2, np.int64), other).tolist() == []


@given(st.integers(0, 100))
def test_dropout_merge(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one = random_vectors(seed, 6)
    with_regions = [
        vectors(rng.dirichlet(np.ones(4), 6), one.boxes + rng.integers(0, 3, (6, 4)), one.image,
                region=np.arange(6))
        for _ in range(3)
    ]  # fmt: skip
    forwards, backwards = merge_passes(with_regions), merge_passes(with_regions[::-1])
    assert (forwards.vectors.scores == backwards.vectors.scores).all()
    assert (forwards.vectors.boxes == backwards.vectors.boxes).all()
    same = merge_passes([with_regions[0]] * 4)
    assert same.vectors.scores == pytest.approx(with_regions[0].scores)
    assert same.passes.tolist() == [4] * 6


def test_the_order_of_passes_decides_no_tie() -> None:
    # Two regions of equal score overlap: suppression keeps the same one, whichever a pass names first.
    one = vectors([[0.5, 0.2], [0.5, 0.2]], [[0, 0, 10, 10], [1, 0, 10, 10]], [3, 3], region=np.array([1, 2]))
    other = vectors([[0.5, 0.2], [0.5, 0.2]], [[1, 0, 10, 10], [0, 0, 10, 10]], [3, 3], region=np.array([2, 1]))
    for passes in ([one, other], [other, one]):
        merged = merge_passes(passes)
        assert merged.vectors.region is not None
        assert merged.vectors.region.tolist() == [1, 2]
        assert merged.vectors.boxes[merged_detections(merged).row].tolist() == [[0, 0, 10, 10]] * 2


def test_a_region_missing_from_a_pass() -> None:
    full = vectors([[0.2, 0.8], [0.5, 0.5]], region=np.array([7, 8]))
    part = vectors([[0.6, 0.4]], region=np.array([7]))
    merged = merge_passes([full, part])
    assert merged.vectors.scores.tolist() == [[pytest.approx(0.4), pytest.approx(0.6)], [0.5, 0.5]]
    assert merged.passes.tolist() == [2, 1]
    assert merged.entropy[1] == pytest.approx(np.log(2))
    with pytest.raises(PredictionError, match="twice"):
        merge_passes([vectors([[0.5, 0.5], [0.5, 0.5]], region=np.array([1, 1]))])
    with pytest.raises(PredictionError, match="no record has a region"):
        merge_passes([vectors([[0.5, 0.5]])])


@pytest.mark.parametrize("setting", [{"floor": float("nan")}, {"iou": 1.5}, {"iou": -0.1}])
def test_merged_boxes_are_not_labelled_by_nonsense(setting: dict[str, float]) -> None:
    merged = merge_passes([vectors([[0.2, 0.8]], region=np.array([7]))])
    with pytest.raises(UsageError, match="cannot be labelled"):
        merged_detections(merged, **setting)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"image_id": 1, "bbox": [1, 2, 3], "scores": [1]}], "cannot be read"),
        ([{"image_id": 1, "bbox": [1, 2, -3, 4], "scores": [1]}], "cannot be read"),
        ([{"image_id": 1, "bbox": [1, 2, 3, 4], "scores": [1]}, {"image_id": 1, "bbox": [1, 2, 3, 4], "scores": []}],
         "Wrong number"),
        ([{"image_id": 1, "bbox": [1, 2, 3, 4], "scores": [1], "region": 1},
          {"image_id": 1, "bbox": [1, 2, 3, 4], "scores": [1]}], "region"),
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


@pytest.mark.parametrize("ids", [None, {"owl": 3, "elk": 1, "fox": 9, "cat": 4, "unknown": -1}])
def test_results_that_are_written_are_read_back(ids: dict[str, int] | None, tmp_path: Path) -> None:
    scored, known, path = random_vectors(7), ("owl", "elk", "fox", "cat"), tmp_path / "results.json"
    labelled = naive_unknown(scored, NaiveOptions(gamma=2))
    assert {*labelled.label.tolist()} >= {4}
    write_results(scored, labelled, known, path, ids=ids)
    boxes, again = read_labelled(path, known, ids)
    assert boxes.image_ids == tuple(scored.image_ids[row] for row in labelled.row)
    np.testing.assert_array_equal(boxes.boxes, scored.boxes[labelled.row])
    np.testing.assert_array_equal(again.label, labelled.label)
    np.testing.assert_array_equal(again.scores, labelled.scores)


@pytest.mark.parametrize(
    ("row", "ids", "label"),
    [
        ({"category_id": 2}, None, None),
        ({"category_id": 2, "category": "cat"}, {"cat": 1, "dog": 2, "unknown": -1}, None),
        ({"category_id": 2}, {"cat": 1, "dog": 2, "unknown": -1}, 1),
        ({"category_id": 2, "category": "cat"}, None, 0),
    ],
)
def test_category_ids_of_a_results_file(
    tmp_path: Path, row: dict[str, object], ids: dict[str, int] | None, label: int | None
) -> None:
    (tmp_path / "r.json").write_text(json.dumps([{"image_id": 1, "bbox": [10, 10, 100, 100], "score": 0.5, **row}]))
    if label is None:
        with pytest.raises(PredictionError, match="agree with category"):
            read_labelled(tmp_path / "r.json", ("cat", "dog"), ids)
    else:
        assert read_labelled(tmp_path / "r.json", ("cat", "dog"), ids)[1].label.tolist() == [label]
