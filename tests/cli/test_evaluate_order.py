"""Every evaluator that goes by input order says in the result and in print where the order of a file decided."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation import osod3_rows
from tests.shell import Shell

BOX, ASIDE = [10, 10, 40, 40], [200, 200, 40, 40]


def truth(*names: str, category: int = 1, image: int = 1) -> dict[str, Any]:
    return {
        "images": [{"id": image, "file_name": f"{image:012d}.jpg", "width": 300, "height": 300}],
        "annotations": [{"id": 1, "image_id": image, "category_id": category, "bbox": BOX, "area": 1600, "iscrowd": 0}],
        "categories": [{"id": place, "name": name} for place, name in enumerate(names, 1)],
    }


def detections(first: float, second: float, **more: Any) -> list[dict[str, Any]]:
    """One on the object and one aside."""
    return [
        {"image_id": 1, "category_id": 1, "bbox": box, "score": score, **more}
        for box, score in ((BOX, first), (ASIDE, second))
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    content = {
        "truth": truth("cat", "lynx"),
        "wild": truth("cat", "lynx", category=2, image=2),
        "nothing": [],
        "classes": {"known": ["cat"], "unknown": ["lynx"]},
        "tasks": {"tasks": [{"name": "t1", "prev": [], "cur": ["cat"]}]},
        "id": {"scores": [9.0, 9.5]},
    }
    for name, data in content.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(data))
    return tmp_path


COMMANDS = {
    "voc": "--truth truth.json --detections d.json --on-error stray=error",
    "coco": "--truth truth.json --detections d.json --engine pycocotools",
    "elephant": "--truth closed=truth.json --truth wilderness=wild.json --detections closed=d.json "
    "--detections wilderness=nothing.json --classes classes.json --variant all",
    "owod": "--truth truth.json --detections d.json --classes tasks.json --variant all",
    "osod3": "--truth truth.json --detections d.json --classes classes.json --variant all",
    "findmeifyoucan": "--truth truth.json --detections d.json --scores id.json --set threshold=5",
}
SECTIONS = {
    "voc": lambda found: found["scored"],
    "coco": lambda found: found["scored"],
    "elephant": lambda found: [
        found["scored"][0],
        found["scored"][2],
        {"decided_by_order": found["decided_by_order"]["OWOD"]},
    ],
    "owod": lambda found: found["scored"],
    "osod3": lambda found: [{"decided_by_order": osod3_rows.of_result(found)["test"]["decided_by_order"]["AP"]}],
    "findmeifyoucan": lambda found: found["scored"],
}


def evaluate(protocol: str, folder: Path, rows: Any, shell: Shell) -> tuple[list[Any], str]:
    """Return what each section says of the order, and what is printed."""
    (folder / "d.json").write_text(json.dumps(rows))
    words = [
        word if not word.endswith(".json") else "=".join([*word.split("=")[:-1], str(folder / word.split("=")[-1])])
        for word in COMMANDS[protocol].split()
    ]  # fmt: skip
    given = ["evaluate", protocol, *words, "--no-cache"]
    found = shell.data(*given, "--json")
    return [section["decided_by_order"] for section in SECTIONS[protocol](found)], shell.out(*given)


@pytest.mark.parametrize("protocol", COMMANDS)
def test_equal_scores_are_told(protocol: str, folder: Path, shell: Shell) -> None:
    orders, printed = evaluate(protocol, folder, detections(0.5, 0.5, ood_score=1.0), shell)
    assert set(orders) == {1}
    assert "Decided by the order of the file" in printed


@pytest.mark.parametrize("protocol", COMMANDS)
def test_different_scores_are_not(protocol: str, folder: Path, shell: Shell) -> None:
    orders, printed = evaluate(protocol, folder, detections(0.5, 0.4, ood_score=1.0), shell)
    assert set(orders) == {0}
    assert "Decided by the order of the file" not in printed
