import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.open_world_rows import of_result
from tests.evaluation.owod_cases import EXAMPLE
from tests.shell import Shell
from tests.worlds.coco_file import coco_content

NAMES = ("person", "dog", "truck", "bench", "kite", "apple", "bed", "cup")
NUMBERS = {name: 10 + place for place, name in enumerate(NAMES)}
TASK = {"name": "t1", "prev": [], "cur": ["person", "dog"], "rest": list(NAMES[2:])}
NEXT = {"name": "t2", "prev": ["person", "dog"], "cur": ["truck"], "rest": list(NAMES[3:])}


def numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(",")]


def truth(*, unknown: bool = False) -> dict[str, Any]:
    """The worked example with original classes, or as the test view of task 1."""
    names = (*NAMES[:2], "unknown") if unknown else NAMES
    rows = []
    for image, (objects, _) in EXAMPLE.items():
        for name, box in objects:
            kind = name.split()[0]
            crowd = {"area": 1, "iscrowd": int(name.endswith("crowd"))}
            rows.append((image, kind if kind in names else "unknown", numbers(box), crowd))
    return coco_content(EXAMPLE.keys(), rows, {name: NUMBERS.get(name, 99) for name in names})


def results(*, by_name: bool = False, unknown: int = -1) -> list[dict[str, Any]]:
    rows = []
    for image, (_, found) in EXAMPLE.items():
        for name, score, box in found:
            kind = {"category": name} if by_name else {"category_id": NUMBERS.get(name, unknown)}
            rows.append({"image_id": image, "bbox": numbers(box), "score": float(score), **kind})
    return rows


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    content = {"truth": truth(), "detections": results(), "classes": {"tasks": [TASK]}}
    return {name: write(tmp_path / f"{name}.json", data) for name, data in content.items()}


def arguments(files: dict[str, Path], *more: str) -> list[str]:
    given = [text for name, path in files.items() for text in (f"--{name}", str(path))]
    return ["evaluate", "owod", *given, *more]


def evaluate(files: dict[str, Path], shell: Shell, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = shell.data(*arguments(files, "--json", *more))
    return found | of_result(found)


@pytest.mark.usefixtures("unpainted")
def test_several_tasks_each_with_its_detections(files: dict[str, Path], tmp_path: Path, shell: Shell) -> None:
    write(files["classes"], {"tasks": [TASK, NEXT]})
    assert "--detections t1=FILE" in shell.err(*arguments(files))
    assert "No such task" in shell.err(*arguments(files, "--task", "t3"))
    one = evaluate(files, shell, "--task", "t2")
    # Trucks are known now: those detections called dog on a truck are no open-set errors.
    assert one["t2/clean"]["num_unknown_gt"] == 4
    assert one["t2/clean"]["mAP_prev"] is not None
    named = {name: path for name, path in files.items() if name != "detections"}
    per_task = [f"--detections=t{k}={files['detections']}" for k in (1, 2)]
    out = tmp_path / "out"
    both = evaluate(named, shell, *per_task, "--out", str(out))
    assert list(both["tasks"]) == ["t1", "t2"]
    assert both["t2/clean"] == one["t2/clean"]
    assert "missing for task t2" in shell.err(*arguments(named, per_task[0], "--task", "t2"))
    assert "twice" in shell.err(*arguments(named, per_task[0], per_task[0]))
    with (out / "measures.csv").open(encoding="utf-8") as stream:
        rows = {(row["task"], row["measure"]): row["value"] for row in csv.DictReader(stream)}
    assert float(rows["t1", "UR"]) == both["t1/clean"]["UR"]
    assert rows["t1", "mAP_prev"] == ""


def test_detections_without_the_class_unknown_are_scored_and_warned_of(files: dict[str, Path], shell: Shell) -> None:
    write(files["detections"], [row for row in results() if row["category_id"] != -1])
    assert 'no detection has class "unknown", so UR is 0' in shell.err(*arguments(files), status=0)
    # Without unknown objects UR is undefined, and nothing says that it is 0.
    known = truth()
    known["annotations"] = [row for row in known["annotations"] if row["category_id"] < NUMBERS["truck"]]
    write(files["truth"], known)
    assert "UR is 0" not in shell.err(*arguments(files), status=0)
    assert evaluate(files, shell)["t1/clean"]["UR"] is None


def test_the_metrics_of_the_paper_stand_in_the_table(files: dict[str, Path], shell: Shell) -> None:
    printed = shell.out(*arguments(files))
    for name in ("UR", "UDR", "UDP", "AOSE", "WI", "mAP_both"):
        assert re.search(rf"\b{name}\b", printed), printed


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("detections", "[", "cannot be read"),
        ("detections", truth(), "ground-truth file"),
        ("detections", [{**results()[0], "category_id": 77}], "does not name"),
        ("detections", [{**results()[0], "category_id": NUMBERS["cup"]}], "unknown in task t1"),
        ("detections", [{**results()[0], "score": 2}], "score"),
        ("classes", {"tasks": [{**TASK, "prev": ["dog"]}]}, "listed twice"),
        ("classes", {"known": ["dog"]}, "cannot be read"),
    ],
)
def test_bad_input_is_one_clear_error_and_writes_nothing(
    files: dict[str, Path], tmp_path: Path, shell: Shell, name: str, content: object, message: str
) -> None:
    write(files[name], content)
    assert message in shell.err(*arguments(files, "--out", str(tmp_path / "out")))
    assert not (tmp_path / "out").exists()
