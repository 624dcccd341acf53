from dataclasses import replace
from pathlib import Path

import pytest

from curation.core.errors import EvaluationError
from curation.evaluation.problem import ClassRoles
from curation.evaluation.truth import task_truth
from curation.sources.opening import open_path
from curation.sources.source import Source
from tests.evaluation.owod_files import truth_file

TASK = ClassRoles("t", ("cat",), ("dog",), ("cup",), "here")


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """Images 1 to 3: a cat and a cup, a dog, nothing."""
    path = truth_file(tmp_path, ("dog", "cat", "cup"), 3, [(1, "cat"), (1, "cup"), (2, "dog")])
    return open_path(path, dataset="coco", part="test")


def test_unknown_is_the_last_class_and_known_ones_stand_in_task_order(source: Source) -> None:
    found = task_truth(source, TASK)
    assert found.truth.classes == ("cat", "dog", "unknown")
    assert found.truth.label.tolist() == [0, 2, 1]
    assert found.truth.class_numbers == (2, 1, -1)
    assert (found.unknown, found.lines.tolist(), found.file["repeated_lines"]) == (2, [1, 1, 1], 0)


@pytest.mark.parametrize(("repeats", "counted"), [("keep", [1, 3]), ("drop", [1, 1])])
def test_lines_of_repeated_images(source: Source, repeats: str, counted: list[int]) -> None:
    ids = ("2", "000000000002", "1", "coco:000000000002")
    with pytest.raises(EvaluationError, match="more than once") as caught:
        task_truth(source, TASK, ids)
    assert "2 further lines for 1 images: coco:000000000002 (3 lines)" in (caught.value.found or "")
    found = task_truth(source, TASK, ids, repeats=repeats)  # type: ignore[arg-type]
    assert found.lines.tolist() == counted
    assert (found.list_lines.tolist(), found.repeated_lines) == ([1, 3], 2)


def test_images_of_voc_keep_their_corners(source: Source) -> None:
    assert task_truth(source, TASK).voc_corners.tolist() == [False] * 3
    mixed = ("coco:000000000001", "voc2007:000000000002")
    assert task_truth(source, TASK, mixed).voc_corners.tolist() == [False, True]
    assert task_truth(replace(source, dataset="voc2007"), TASK).voc_corners.tolist() == [True] * 3
