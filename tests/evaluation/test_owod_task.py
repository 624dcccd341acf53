import json
from pathlib import Path
from typing import Any

import pytest

from curation.core.errors import EvaluationError
from curation.evaluation.problem import ClassRoles, known_classes_of_task, tasks_of_file
from curation.sources.opening import open_path
from curation.sources.source import Source


def source_of(folder: Path, *names: str, shown: tuple[int, ...] = (1,)) -> Source:
    data = {
        "images": [{"id": 1, "file_name": "1.jpg", "width": 9, "height": 9}],
        "annotations": [
            {"id": k, "image_id": 1, "category_id": c, "bbox": [0, 0, 5, 5], "area": 25, "iscrowd": 0}
            for k, c in enumerate(shown, 1)
        ],
        "categories": [{"id": k, "name": name} for k, name in enumerate(names, 1)],
    }
    path = folder / "truth.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return open_path(path, dataset="coco", part="test")


def file_of(folder: Path, *tasks: dict[str, Any]) -> Path:
    path = folder / "tasks.json"
    path.write_text(json.dumps({"tasks": tasks}), encoding="utf-8")
    return path


def test_tasks_are_read_in_file_order_with_known_classes_previous_first(tmp_path: Path) -> None:
    tasks = tasks_of_file(
        file_of(tmp_path, {"name": "t1", "cur": ["b"], "rest": ["a"]}, {"name": "t2", "prev": ["b"], "cur": ["a"]})
    )
    assert [(task.name, task.known, task.rest) for task in tasks] == [("t1", ("b",), ("a",)), ("t2", ("b", "a"), None)]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"name": "t", "cur": ["a"], "prev": ["a"]}, "twice"),
        ({"name": "t", "cur": ["Forceps", "fOrceps"]}, "twice"),
        ({"name": "t", "cur": ["a"], "rest": ["a"]}, "twice"),
        ({"name": "t", "cur": ["unknown"]}, "'unknown' is listed"),
        ({"name": "t", "cur": []}, "knows no class"),
        ({"name": "t"}, "cannot be read"),
        ({"name": "t", "cur": "ab"}, "cannot be read"),
    ],
)
def test_lists_of_tasks_that_cannot_be(tmp_path: Path, task: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluationError, match=message) as caught:
        tasks_of_file(file_of(tmp_path, task))
    assert "tasks.json" in (caught.value.where or "")


def test_aliases_and_ids_of_a_manifest_go_before_those_of_the_truth(tmp_path: Path) -> None:
    task = ClassRoles("t", (), ("airplane",), (), "here", {"airplane": 0}, (1,), {"aeroplane": "airplane"})
    known = known_classes_of_task(task, source_of(tmp_path, "aeroplane"))
    assert (known.names, known.numbers, dict(known.aliases)) == (("airplane",), (0,), {"aeroplane": "airplane"})


def test_a_class_the_truth_lacks_and_one_the_task_lacks(tmp_path: Path) -> None:
    source = source_of(tmp_path, "a", "x", "idle", shown=(1, 2))
    with pytest.raises(EvaluationError, match="lacks the categories of 1 known") as caught:
        known_classes_of_task(ClassRoles("t", (), ("a", "b"), None, "here"), source)
    assert caught.value.found == "b"
    with pytest.raises(EvaluationError, match="does not name") as caught:
        known_classes_of_task(ClassRoles("t", (), ("a",), (), "here"), source)
    # A category without objects asks nothing of the task.
    assert caught.value.found == "x"
    assert known_classes_of_task(ClassRoles("t", (), ("a",), ("x",), "here"), source).names == ("a",)
