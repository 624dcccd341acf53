import json
from pathlib import Path
from typing import Any

import pytest

from curation.errors import MissingFileError, PredictionError
from curation.evaluation.ood.detections import image_key, method_scores, read_records
from tests.evaluation.ood_reference import EXAMPLE
from tests.evaluation.ood_worlds import by_image, results_content, write

ROW = {"image_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5, "ood_score": 1.0}


def test_both_forms_of_file_hold_the_same_records(tmp_path: Path) -> None:
    rows = results_content(EXAMPLE)
    listed = read_records(write(tmp_path / "list.json", rows)).records
    grouped = read_records(write(tmp_path / "map.json", by_image(rows))).records
    assert [str(one.image_id) for one in listed] == [one.image_id for one in grouped]
    assert [(one.bbox_xyxy, one.ood_score) for one in listed] == [(one.bbox_xyxy, one.ood_score) for one in grouped]


def test_scores_have_the_names_of_their_methods(tmp_path: Path) -> None:
    row = {**ROW, "scores": {"energy": 2.0, "msp": 0.5}}
    file = read_records(write(tmp_path / "d.json", [row]))
    found = {name: values.tolist() for name, values in method_scores(file, None).items()}
    assert found == {"energy": [2.0], "msp": [0.5], "ood_score": [1.0]}


@pytest.mark.parametrize(
    ("number", "text"), [(139, "000000000139"), (0, "000"), ("0010e235a0f3bb5c", "0010e235a0f3bb5c")]
)
def test_an_id_is_one_text_however_it_is_written(number: int | str, text: str) -> None:
    assert image_key(number) == image_key(text)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "cannot be read"),
        ("[1]", "cannot be read"),
        ("{}", "cannot be read"),
        ('[{"image_id": 1, "ood_score": NaN}]', "cannot be read"),
        ('[{"image_id": 1, "ood_score": "high"}]', "cannot be read"),
        ('[{"image_id": 99999999999999999999}]', "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('{"images": {"1": [' * 1, "cannot be read"),
        (json.dumps({"images": [], "annotations": [], "categories": []}), "ground-truth file"),
        ([{"bbox": [1, 2, 3, 4]}], "names no image"),
        ('{"images": {"1": [], "2": [], "1": []}}', "twice"),
        ('{"images": {"1": [{"image_id": 2}]}}', "disagrees with its key"),
        ('[{"image_id": 1}]\xff'.encode("latin-1"), "cannot be read"),
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, content: Any, told: str) -> None:
    path = tmp_path / "d.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write(path, content)
    with pytest.raises(PredictionError, match=told):
        read_records(path)


def test_records_must_agree_on_their_scores(tmp_path: Path) -> None:
    other = {"image_id": 7, "bbox": [1, 2, 3, 4], "score": 0.5, "scores": {"energy": 1.0}}
    file = read_records(write(tmp_path / "d.json", [ROW, other]))
    with pytest.raises(PredictionError, match="different OOD scores") as caught:
        method_scores(file, None)
    assert "record 1 (image 7)" in str(caught.value)


def test_a_flood_of_methods_is_refused(tmp_path: Path) -> None:
    row = {**ROW, "scores": {f"m{k}": 0.0 for k in range(100)}}
    with pytest.raises(PredictionError, match="too many"):
        method_scores(read_records(write(tmp_path / "d.json", [row])), None)


def test_an_absent_file_is_said_to_be_absent(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        read_records(tmp_path / "none.json")
