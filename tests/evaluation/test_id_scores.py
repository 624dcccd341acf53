from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.benchmarks.findmeifyoucan.detections import ClassReading, read_id_scores
from curation.core.errors import PredictionError
from tests.evaluation.ood_worlds import write

ROWS = [
    {"image_id": 9, "score": 0.5, "bbox": [0, 0, 1, 1], "ood_score": 1.5},
    {"image_id": 9, "score": 0.2, "bbox": [0, 0, 1, 1], "ood_score": 2.5},
]


@pytest.mark.parametrize("content", [{"scores": [1.5, 2.5]}, ROWS, {"scores": {"ood_score": [1.5, 2.5]}}])
def test_every_form_of_json_is_the_same_scores(tmp_path: Path, content: Any) -> None:
    found = read_id_scores(write(tmp_path / "id.json", content))
    assert {name: values.tolist() for name, values in found.scores.items()} == {"ood_score": [1.5, 2.5]}


def test_an_array_and_a_table(tmp_path: Path) -> None:
    np.save(tmp_path / "id.npy", np.array([1.5, 2.5], np.float32))
    assert read_id_scores(tmp_path / "id.npy").scores["ood_score"].tolist() == [1.5, 2.5]
    table = write(tmp_path / "id.csv", "image_id,energy,msp\r\n000000000139,1.5,.5\r\n140,2.5,.25\r\n")
    found = read_id_scores(table)
    assert {name: values.tolist() for name, values in found.scores.items()} == {
        "energy": [1.5, 2.5],
        "msp": [0.5, 0.25],
    }
    assert found.images == ("139", "140")
    assert found.file["images_with_detections"] == 2


def test_t_star_cuts_a_detections_file(tmp_path: Path) -> None:
    found = read_id_scores(write(tmp_path / "id.json", ROWS), t_star=0.5)
    assert found.scores["ood_score"].tolist() == [1.5]
    assert sum(found.reported.values()) == 1


def test_t_star_cuts_by_the_confidence_of_the_best_class_not_of_the_background(tmp_path: Path) -> None:
    # Softmax 0.1, 0.1, 0.8, and 0.7, 0.1, 0.2; the last column is the background.
    rows = [
        {"image_id": image, "logits": np.log(shares).tolist(), "ood_score": float(image)}
        for image, shares in enumerate(([0.1, 0.1, 0.8], [0.7, 0.1, 0.2]))
    ]
    path = write(tmp_path / "id.json", rows)
    cut = read_id_scores(path, t_star=0.5, classes=ClassReading(2))
    assert cut.scores["ood_score"].tolist() == [1]
    assert sum(cut.reported.values()) == 1
    official = read_id_scores(path, t_star=0.5, classes=ClassReading(2, official_compat=True))
    assert official.scores["ood_score"].tolist() == [0, 1]


def test_t_star_that_cannot_be_applied_is_told(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "score"} for row in ROWS]
    for content in ({"scores": [1.5, 2.5]}, rows):
        found = read_id_scores(write(tmp_path / "id.json", content), t_star=0.5)
        assert len(found.scores["ood_score"]) == 2
        assert "not applied to id.json" in found.notes[0]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("id.json", "", "cannot be read"),
        ("id.json", '{"scores": [1, NaN]}', "cannot be read"),
        ("id.json", '{"scores": "many"}', "cannot be read"),
        ("id.json", {"scores": [1.0], "image_ids": [1, 2]}, "unequal lengths"),
        ("id.json", {"scores": {"a": [1.0], "b": []}}, "unequal lengths"),
        ("id.csv", "", "is empty"),
        ("id.csv", "energy,energy\n1,2\n", "Duplicate"),
        ("id.csv", "energy,msp\n1\n", "cannot be read"),
        ("id.csv", "energy\nhigh\n", "cannot be read"),
        ("id.csv", "energy\nnan\n", "not finite"),
        ("id.csv", "energy\n1e999\n", "not finite"),
        ("id.json", {"scores": [1e300]}, "is too large"),
        ("id.csv", "image_id\n1\n", "cannot be read"),
        ("id.csv", 'energy\n"1\n', "cannot be read"),
        ("id.npy", "no array", "cannot be read"),
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, name: str, content: Any, told: str) -> None:
    with pytest.raises(PredictionError, match=told):
        read_id_scores(write(tmp_path / name, content))
