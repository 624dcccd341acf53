"""``curation audit`` as a user runs it: exit codes, roles, reports, refusals."""

import json
from pathlib import Path

import pytest

from curation.cli import main
from tests.extensions.audit.benchmark_world import LISTS, TASKS, TEST, TRAIN
from tests.worlds.coco_file import coco_content, write_json

NUMBERS = {name: number for number, name in enumerate([n for names in TASKS.values() for n in names], start=1)}


def coco(path: Path, images: dict[str, list[str]]) -> None:
    """Write the images of a small benchmark as COCO JSON."""
    rows = [
        (k, text.rstrip("*~"), [10.25 + 40 * place, 9.5, 30, 20.5], {"iscrowd": int(text.endswith("*"))})
        for k, texts in enumerate(images.values(), 1)
        for place, text in enumerate(texts)
    ]
    names = {k: f"{native}.jpg" for k, native in enumerate(images, 1)}
    write_json(path, coco_content(names, rows, NUMBERS))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of lists, two annotation files beside it, and the task file."""
    lists = tmp_path / "lists"
    lists.mkdir()
    for name, ids in LISTS.items():
        (lists / f"{name.replace('-', '_')}.txt").write_text("".join(f"{one}\n" for one in ids))
    coco(tmp_path / "train.json", TRAIN)
    coco(tmp_path / "test.json", TEST)
    tasks = {"tasks": [{"name": name, "introduced": names} for name, names in TASKS.items()]}
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    return lists


def arguments(folder: Path, *more: str) -> list[str]:
    beside = folder.parent
    given = ["audit", str(folder), "--tasks", str(beside / "tasks.json"), "--set", "exemplars=1"]
    given += ["--source", f"mine-train={beside / 'train.json'}", "--source", f"mine-test={beside / 'test.json'}"]
    given += ["--exhaustive", "mine-train", "--exhaustive", "mine-test"]
    return [*given, *more]


def verdicts(text: str) -> dict[str, str]:
    """The strongest gravity of each rule: statements stand gravest first."""
    return {one["rule"]: one["gravity"] for one in reversed(json.loads(text)["statements"])}


def test_a_sound_folder_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declared = [text for role in ("train", "finetune", "val", "test") for text in ("--view", f"{role}={role}")]
    assert main(arguments(folder, *declared, "--json")) == 0
    found = verdicts(capsys.readouterr().out)
    assert {name for name, verdict in found.items() if verdict == "undecidable"} == {"DS3", "PL7"}
    assert not {"error", "warning"} & set(found.values())


def test_a_breach_fails_and_is_told_with_its_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t1_train.txt").write_text("a1\na2\na3\nv3\n")
    assert main(arguments(folder)) == 1
    text = capsys.readouterr().out
    assert "t3_val in t1_train" in text
    assert "v3 (t1_train line 4; t3_val line 1)" in text
    assert "remove the shared images" in text
    assert text.startswith(
        "lists: t3_val in t1_train: t1_train holds all 1 image of t3_val (1 error, 0 warnings)\nchecked: "
    )
    assert "1 error, 0 warnings" in text.splitlines()[-1]


def test_reports_are_written_whole(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, out = tmp_path / "page.html", tmp_path / "out"
    assert main(arguments(folder, "--out", str(page), "--out", str(out))) == 0
    assert {path.name for path in out.iterdir()} >= {"audit.json", "report.html"}
    assert page.read_text() == (out / "report.html").read_text()
    assert json.loads((out / "audit.json").read_text())["statements"]
    capsys.readouterr()
    assert main(arguments(folder, "--out", str(out))) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "more",
    [
        ["--role", "nothing=train:1"],
        ["--role", "t1_train"],
        ["--view", "train"],
        ["--view", "train=train", "--view", "train=val"],
        ["--view", "tests=test"],
        ["--labels", "t1_train=/no/such/file.json"],
        ["--exhaustive", "other"],
        ["--photos", "mine-train=/no/such/folder"],
        ["--set", "exemplars=0"],
        ["--source", "Mine=/no/such/file.json"],
    ],
)
def test_wrong_use_is_told(folder: Path, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(folder, *more)) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_hostile_file_names_do_not_steer_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a\x1b[31m.txt").write_text("1\n1\n")
    assert main(["audit", str(folder)]) == 1
    assert "\x1b" not in capsys.readouterr().out
