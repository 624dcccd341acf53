from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.benchmarks.findmeifyoucan.detections import (
    ReadOodDetections,
    image_key,
    method_scores,
    read_ood_detections,
    read_records,
)
from curation.benchmarks.findmeifyoucan.evaluation import NO_KNOWN
from curation.core.errors import PredictionError
from curation.evaluation.problem import GroundTruth
from curation.evaluation.readers import Policy
from curation.evaluation.truth import ground_truth
from curation.sources.opening import open_path
from tests.evaluation.ood_reference import EXAMPLE
from tests.evaluation.ood_worlds import columns, hexadecimal, plain, results_content, truth_content, write

ROW: dict[str, Any] = {"image_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5, "ood_score": 1.0}


def truth(folder: Path, name: Any = plain) -> GroundTruth:
    path = write(folder / "truth.json", truth_content(EXAMPLE, name))
    return ground_truth(open_path(path, dataset="coco", part="ood"), NO_KNOWN).truth


def read(folder: Path, content: Any, name: Any = plain, policy: Policy | None = None, **more: Any) -> ReadOodDetections:
    return read_ood_detections(write(folder / "d.json", content), truth(folder, name), policy, **more)


@pytest.mark.parametrize("name", [plain, hexadecimal])
def test_integer_and_text_ids_are_the_same_detections(tmp_path: Path, name: Any) -> None:
    found = read(tmp_path, results_content(EXAMPLE, name), name).detections
    expected = columns(EXAMPLE)[1]
    assert found.image.tolist() == expected.image.tolist()
    assert np.array_equal(found.corners, expected.corners)
    assert found.scores["ood_score"].tolist() == expected.scores["s"].tolist()


def test_corners_keep_every_digit_of_the_file(tmp_path: Path) -> None:
    # x1 + (x2 - x1) is not x2 in binary, and .1f rounds at 20.25.
    row = {**{key: value for key, value in ROW.items() if key != "bbox"}, "bbox_xyxy": [0.1, 0.1, 20.25, 20.25]}
    assert read(tmp_path, [row]).detections.corners[0].tolist() == [0.1, 0.1, 20.25, 20.25]


def test_detections_below_t_star_are_left_out_and_counted(tmp_path: Path) -> None:
    found = read(tmp_path, [ROW, {**ROW, "score": 0.25}], t_star=0.5)
    assert found.detections.confidence.tolist() == [0.5]
    assert found.reported == {"left out: detections of confidence below t*": 1}


def test_strays_are_refused_or_counted(tmp_path: Path) -> None:
    with pytest.raises(PredictionError, match="not in the ground truth"):
        read(tmp_path, [ROW, {**ROW, "image_id": 99}])
    found = read(tmp_path, [ROW, {**ROW, "image_id": 99}], policy=Policy(stray="drop"))
    assert (len(found.detections), found.rows, sum(found.reported.values())) == (1, 2, 1)
    assert found.image_ids == {"1"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"bbox": None}, "no box"),
        ({"bbox_xyxy": [0, 0, 1, 1]}, "two boxes"),
        ({"bbox": [0, 0, -1, 5]}, "an impossible box"),
        ({"bbox": [0, 0, 1e300, 5]}, "an impossible box"),
        ({"bbox_xyxy": [9, 9, 1, 1], "bbox": None}, "an impossible box"),
        ({"score": 1.5}, "score"),
        ({"score": None}, "no confidence"),
        ({"ood_score": 1e300}, "is too large"),
    ],
)
def test_unusable_records_are_named(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(PredictionError, match=told) as caught:
        read(tmp_path, [ROW, {**ROW, **change}])
    assert "record 1" in str(caught.value)


def test_a_folder_of_label_files_has_no_ood_scores(tmp_path: Path) -> None:
    with pytest.raises(PredictionError, match="one file") as caught:
        read_ood_detections(tmp_path, truth(tmp_path))
    assert "ood_score" in str(caught.value)


@pytest.mark.parametrize(
    ("number", "text"), [(139, "000000000139"), (0, "000"), ("0010e235a0f3bb5c", "0010e235a0f3bb5c")]
)
def test_an_id_is_one_text_however_it_is_written(number: int | str, text: str) -> None:
    assert image_key(number) == image_key(text)


def test_a_flood_of_methods_is_refused(tmp_path: Path) -> None:
    row = {**ROW, "scores": {f"m{k}": 0.0 for k in range(100)}}
    with pytest.raises(PredictionError, match="too many"):
        method_scores(read_records(write(tmp_path / "d.json", [row])), None)
