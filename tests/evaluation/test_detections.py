import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.core.canonical import sha256_of_file
from curation.core.errors import PredictionError
from curation.evaluation.problem import GroundTruth
from curation.evaluation.readers import Policy, read_detections
from curation.sources.identity import ImageIndex
from tests.evaluation.worlds import truth_of
from tests.worlds.boxes import Thing

GOOD: dict[str, Any] = {"image_id": 2, "category_id": 1, "bbox": [1, 2, 3.5, 4], "score": 0.5}


@pytest.fixture
def truth() -> GroundTruth:
    return truth_of([Thing(0, 0, (0, 0, 9, 9))], 3, 2)


def written(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "results.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_columns_keep_input_order(tmp_path: Path, truth: GroundTruth) -> None:
    rows = [{**GOOD, "image_id": 3, "category_id": 2}, {**GOOD, "background_score": 0.25, "segmentation": []}]
    path = written(tmp_path, rows)
    found = read_detections(path, truth)
    assert found.detections.image.tolist() == [2, 1]
    assert found.detections.label.tolist() == [1, 0]
    assert found.detections.boxes.tolist() == [[1, 2, 3.5, 4]] * 2
    assert found.detections.background_scores is not None
    assert np.isnan(found.detections.background_scores[0])
    assert found.detections.background_scores[1] == 0.25
    assert (found.rows, found.sha256, found.reported) == (2, sha256_of_file(path), {})


@pytest.mark.parametrize("name", ["results.json", "results.csv"])
def test_ids_may_be_whole_floats(tmp_path: Path, truth: GroundTruth, name: str) -> None:
    """Pandas writes them where a column has gaps."""
    table = "image_id,category_id,x,y,w,h,score\n2.0,1.0,1,2,3.5,4,0.5\n3,2,1,2,3.5,4,0.5\n"
    rows = [{**GOOD, "image_id": 2.0, "category_id": 1.0}, {**GOOD, "image_id": 3, "category_id": 2}]
    path = tmp_path / name
    path.write_text(table if name.endswith(".csv") else json.dumps(rows))
    detections = read_detections(path, truth).detections
    assert (detections.image.tolist(), detections.label.tolist()) == ([1, 2], [0, 1])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**GOOD, "image_id": 7}, "image_id 7"),
        ({**GOOD, "image_id": "two"}, "image_id two"),
        ({**GOOD, "image_id": [2]}, "image_id"),
        ({**GOOD, "image_id": 2**70}, "image_id"),
        ({**GOOD, "image_id": 2.5}, "image_id"),
        ({**GOOD, "category_id": 5}, "category"),
        ({**GOOD, "category_id": -2}, "category"),
        ({**GOOD, "category_id": None}, "category"),
        ({**GOOD, "category": "elephant"}, "category"),
        ({**GOOD, "bbox": [1, 2, -3, 4]}, "box"),
        ({**GOOD, "bbox": [1, 2, 3, 1e300]}, "box"),
        ({**GOOD, "bbox": [1, 2, 3]}, "bbox"),
        ({**GOOD, "bbox": None}, "bbox"),
        ({**GOOD, "score": 1.5}, "score"),
        ({**GOOD, "score": -0.1}, "score"),
        ({**GOOD, "score": "high"}, "score"),
        ({key: value for key, value in GOOD.items() if key != "score"}, "score"),
    ],
)
def test_a_bad_record_is_refused_and_named(
    tmp_path: Path, truth: GroundTruth, row: dict[str, Any], message: str
) -> None:
    path = written(tmp_path, [GOOD, row, GOOD])
    with pytest.raises(PredictionError) as caught:
        read_detections(path, truth)
    assert str(path) in str(caught.value)
    assert "record 1" in str(caught.value) or "[1]" in str(caught.value)
    assert message in str(caught.value)


def test_detections_called_unknown_are_left_out_and_counted(tmp_path: Path, truth: GroundTruth) -> None:
    named = {key: value for key, value in GOOD.items() if key != "category_id"} | {"category": "unknown"}
    rows = [{**GOOD, "category_id": -1}, GOOD, named, {**GOOD, "category_id": -1, "image_id": 9}]
    found = read_detections(written(tmp_path, rows), truth, Policy(stray="drop"))
    assert found.detections.label.tolist() == [0]
    assert found.rows == 4
    assert found.reported == {
        "left out: detections called unknown, which no measure of known classes counts": 2,
        "left out: detections on images or of classes that are not in the ground truth": 1,
    }
    with pytest.raises(PredictionError, match="not in the ground truth"):
        read_detections(written(tmp_path, rows), truth)


def test_classes_may_be_named_and_a_name_that_contradicts_its_id_is_refused(tmp_path: Path, truth: GroundTruth) -> None:
    first, second = truth.classes
    rows = [{**GOOD, "category": first}, {**GOOD, "category_id": None, "category": second}]
    assert read_detections(written(tmp_path, rows), truth).detections.label.tolist() == [0, 1]
    with pytest.raises(PredictionError, match="name different classes") as caught:
        read_detections(written(tmp_path, [GOOD, {**GOOD, "category": second}]), truth)
    assert "record 1" in str(caught.value)


@pytest.mark.parametrize("packed", [False, True])
def test_json_lines_and_compressed_files_hold_the_same(tmp_path: Path, truth: GroundTruth, packed: bool) -> None:
    rows = [{**GOOD, "image_id": 3, "category_id": 2}, GOOD]
    expected = read_detections(written(tmp_path, rows), truth).detections
    for text in (json.dumps(rows), "".join(json.dumps(row) + "\n" for row in rows)):
        data = b"\xef\xbb\xbf" + text.encode()
        path = tmp_path / "other"
        path.write_bytes(gzip.compress(data) if packed else data)
        found = read_detections(path, truth)
        assert found.sha256 == sha256_of_file(path)
        for column in ("image", "label", "boxes", "scores"):
            assert np.array_equal(getattr(found.detections, column), getattr(expected, column))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(tmp_path: Path, truth: GroundTruth, number: str) -> None:
    for field in ('"bbox": [0, 0, 1, 1], "score": %s', '"bbox": [0, 0, %s, 1], "score": 0.5'):
        text = '[{"image_id": 1, "category_id": 1, ' + field % number + "}]"
        with pytest.raises(PredictionError):
            read_detections(written(tmp_path, text), truth)


def test_a_ground_truth_file_is_recognised(tmp_path: Path, truth: GroundTruth) -> None:
    content = {"images": [], "annotations": [], "categories": []}
    with pytest.raises(PredictionError, match="ground-truth file"):
        read_detections(written(tmp_path, content), truth)


def test_stray_images_can_be_dropped_and_are_counted(tmp_path: Path, truth: GroundTruth) -> None:
    rows = [GOOD, GOOD, {**GOOD, "image_id": 99}, {**GOOD, "image_id": 98}]
    found = read_detections(path := written(tmp_path, rows), truth, Policy(stray="drop"))
    assert len(found.detections) == 2
    assert list(found.reported.values()) == [2]
    with pytest.raises(PredictionError, match="--on-error stray=drop"):
        read_detections(path, truth)
    with pytest.raises(PredictionError, match="not in the ground truth") as caught:
        read_detections(written(tmp_path, rows[1:]), truth)
    assert "stray=drop" not in str(caught.value)


def test_swapped_files_are_recognised(tmp_path: Path, truth: GroundTruth) -> None:
    path = written(tmp_path, [{**GOOD, "image_id": 1001}])
    with pytest.raises(PredictionError, match="swapped"):
        read_detections(path, truth, others=replace(truth, image_numbers=np.array([1000, 1001])))


def test_negative_sizes_can_be_taken_as_empty_and_are_counted(tmp_path: Path, truth: GroundTruth) -> None:
    path = written(tmp_path, [{**GOOD, "bbox": [5, 6, -3, 4]}])
    found = read_detections(path, truth, Policy(negative_sizes="empty"))
    assert found.detections.boxes.tolist() == [[5, 6, 0, 4]]
    assert list(found.reported.values()) == [1]


def test_a_text_that_is_no_id_may_be_the_stem_of_one_file(tmp_path: Path, truth: GroundTruth) -> None:
    """Ultralytics names images by stems, and makes numbers of those that are one."""
    stems = ("photo a", "photo b", "photo c")
    named = replace(truth, index=ImageIndex(truth.image_numbers, stems))
    rows = [{**GOOD, "image_id": "photo b"}, {**GOOD, "image_id": 1}]
    assert read_detections(written(tmp_path, rows), named).detections.image.tolist() == [1, 0]
    assert read_detections(written(tmp_path, [{**GOOD, "image_id": "photo b.jpg"}]), named).detections.image == [1]
    twice = replace(truth, index=ImageIndex(truth.image_numbers, ("photo b",) * truth.n_images))
    with pytest.raises(PredictionError, match="Two images of the ground truth have the name"):
        read_detections(written(tmp_path, rows), twice)


def test_a_truth_that_names_images_by_texts(tmp_path: Path, truth: GroundTruth) -> None:
    named = replace(truth, index=ImageIndex(("a-1", "b/2", "c"), ("",) * 3))
    rows = [{**GOOD, "image_id": "c"}, {**GOOD, "image_id": "a-1"}]
    assert read_detections(written(tmp_path, rows), named).detections.image.tolist() == [2, 0]
    with pytest.raises(PredictionError, match="are numbers, those of the ground truth are texts") as caught:
        read_detections(written(tmp_path, [rows[0], {**GOOD, "image_id": 1}]), named)
    assert "record 1" in str(caught.value)
    with pytest.raises(PredictionError, match="not in the ground truth"):
        read_detections(written(tmp_path, [{**GOOD, "image_id": "d"}]), named)


def test_a_large_plain_file_gives_the_columns_of_any_other(tmp_path: Path) -> None:
    """Columns are made of pieces; what is not plain, or not sound, is read and told as in a small file."""
    rng = np.random.default_rng(3)
    truth = truth_of([Thing(0, 0, (0, 0, 9, 9))], 3, 2)
    rows: list[dict[str, Any]] = [
        {"image_id": int(image), "category_id": int(label), "bbox": box, "score": score, "note": '}, {"image_id": 1'}
        for image, label, box, score in zip(
            rng.integers(1, 4, 9_000),
            rng.choice([-1, 1, 2], 9_000),
            rng.uniform(0, 99, (9_000, 4)).tolist(),
            rng.random(9_000).tolist(),
            strict=True,
        )
    ]
    path = written(tmp_path, rows)
    assert path.stat().st_size > 1 << 20
    found = read_detections(path, truth)
    named = [{**row, "category": ("unknown", "", *truth.classes)[row["category_id"] + 1]} for row in rows]
    other = written(tmp_path, named)
    expected = read_detections(other, truth)
    assert (found.rows, found.reported) == (expected.rows, expected.reported)
    for name in ("image", "label", "boxes", "scores"):
        np.testing.assert_array_equal(getattr(found.detections, name), getattr(expected.detections, name), strict=True)
    for change, message in (
        ({"image_id": 7}, "image_id 7; 1 such"),
        ({"category_id": 9}, "category_id 9"),
        ({"bbox": [0, 0, -1, 1]}, "impossible box"),
        ({"score": 2}, "score"),
        ({"score": "high"}, "score"),
        ({"bbox": [1, 2, 3]}, "bbox"),
        ({"image_id": 2**70}, "image_id"),
    ):
        bad = written(tmp_path, [*rows[:5_000], {**rows[0], **change}, *rows[5_000:]])
        with pytest.raises(PredictionError) as caught:
            read_detections(bad, truth)
        assert "5000" in str(caught.value)
        assert message in str(caught.value)
    path.write_bytes(json.dumps(rows).encode()[:-1])
    with pytest.raises(PredictionError, match="truncated"):
        read_detections(path, truth)
    whole = json.dumps(rows).encode()
    for strange in (b"\x0b" + whole, whole + b"\x0c", whole.replace(b"}, {", b"}\x0b, {")):
        path.write_bytes(strange)
        with pytest.raises(PredictionError, match="malformed"):
            read_detections(path, truth)
