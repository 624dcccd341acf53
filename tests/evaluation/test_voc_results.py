from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curation.core.errors import PredictionError
from curation.evaluation.problem import GroundTruth
from curation.evaluation.readers import Policy, read_detections
from curation.sources.identity import ImageIndex
from tests.evaluation.worlds import truth_of
from tests.worlds.boxes import Thing

NAMES = ("000001", "2008_000008")
LINE = "000001 0.5 1 1 10 20\n"


@pytest.fixture
def truth() -> GroundTruth:
    return named(NAMES)


def named(names: tuple[str, ...]) -> GroundTruth:
    index = ImageIndex(np.arange(len(names)), [f"JPEGImages/{name}.jpg" for name in names])
    return replace(truth_of([Thing(0, 0, (0, 0, 10, 20))], len(names), 2), index=index)


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / f"comp4_det_test_{name}.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_corners_are_one_based_and_inclusive(tmp_path: Path, truth: GroundTruth) -> None:
    written(tmp_path, "b", "2008_000008 1.0 3 4 3 4\n")
    written(tmp_path, "a", LINE + "\n")
    (tmp_path / "readme.txt").write_text("not a results file")
    found = read_detections(tmp_path, truth)
    assert found.detections.boxes.tolist() == [[0, 0, 10, 20], [2, 3, 1, 1]]
    assert found.detections.label.tolist() == [0, 1]
    assert found.detections.image.tolist() == [0, 1]
    assert (found.rows, found.reported) == (2, {})


@pytest.mark.parametrize(
    "line",
    [
        "000001 0.5 1 1 10\n",
        "000001 0.5 1 1 10 20 30\n",
        "000001 high 1 1 10 20\n",
        "000001 nan 1 1 10 20\n",
        "000001 0.5 inf 1 10 20\n",
        "000001 1.5 1 1 10 20\n",
        "000001 0.5 10 10 5 5\n",
        "000009 0.5 1 1 10 20\n",
        "\n",
        "\x00\xff 0.5 1 1\n",
    ],
)
def test_a_bad_line_is_refused_and_numbered(tmp_path: Path, truth: GroundTruth, line: str) -> None:
    path = written(tmp_path, "a", LINE + line + LINE)
    with pytest.raises(PredictionError) as caught:
        read_detections(tmp_path, truth)
    assert f"{path}: line 2" in str(caught.value)


def test_files_of_other_classes_are_refused_or_counted(tmp_path: Path, truth: GroundTruth) -> None:
    written(tmp_path, "a", LINE)
    written(tmp_path, "zebra", LINE * 3)
    with pytest.raises(PredictionError, match="zebra"):
        read_detections(tmp_path, truth)
    for policy in (Policy(other_classes="drop"), Policy(stray="drop")):
        found = read_detections(tmp_path, truth, policy)
        assert len(found.detections) == 1
        assert list(found.reported.values()) == [3]


def test_two_competitions_in_one_folder_are_refused(tmp_path: Path, truth: GroundTruth) -> None:
    written(tmp_path, "a", LINE)
    (tmp_path / "comp3_det_test_a.txt").write_text(LINE)
    with pytest.raises(PredictionError, match="Two results files"):
        read_detections(tmp_path, truth)


@pytest.mark.parametrize("line", ["x" * 300 + " 0.5 1 1 10 20\n", "000001 0." + "5" * 100_000 + " 1 1 10 20\n"])
def test_endless_tokens_are_refused(tmp_path: Path, truth: GroundTruth, line: str) -> None:
    written(tmp_path, "a", LINE + line)
    with pytest.raises(PredictionError, match="cannot be read") as caught:
        read_detections(tmp_path, truth)
    assert "line 2" in str(caught.value)
    assert len(str(caught.value)) < 1000
