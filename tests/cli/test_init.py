"""``curation init tasks``: a file of tasks with every class of the user's data, which builds as it stands."""

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from curation.benchmarks.rules.starting import StartOptions
from curation.benchmarks.rules.tasks import start
from curation.cli import main
from curation.core.errors import ProtocolError
from curation.manifest.manifest import read_manifest
from tests.cli.test_build_owod import NAMES, SOURCES, write_coco
from tests.extensions.audit.benchmark_world import make_source
from tests.shell import Shell
from tests.sources.test_voc import DOG, document
from tests.sources.test_voc import write as write_voc


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    write_coco(tmp_path / "train.json", "train", 200, 1)
    write_coco(tmp_path / "test.json", "test", 40, 2)
    return tmp_path


def written(path: Path = Path("tasks.toml")) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("source", ["train.json", "train=train.json"])
def test_every_class_is_in_it_once_and_it_builds_as_it_stands(folder: Path, source: str, shell: Shell) -> None:
    said = shell.out("init", "tasks", "--source", source, "--out", "tasks.toml")
    assert "next: curation build tasks.toml --source train=train.json --source test=PATH" in said
    groups = [task["classes"] for task in written()["classes"]["tasks"]]
    # Five classes in four tasks, in the order of the file.
    assert groups == [["star", "disc"], ["square"], ["triangle"], ["blob"]]
    assert main(["build", "tasks.toml", *SOURCES, "--out", "m"]) == 0
    assert {entry.name for entry in read_manifest(folder / "m").header.classes} == set(NAMES)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--source", "validation=train.json"], "a training source and a test source"),
        (["--source", "train.json", "--source", "train=test.json"], "twice"),
        (["--source", "nothing.json"], "nothing.json"),
        (["--source", "train.json", "--n-tasks", "0"], "at least 1"),
        (["--source", "train.json", "--out", "tasks.json"], ".toml"),
        (["--source", "train.json", "--name", "My Lab"], "lower-case"),
        (["--source", "train.json", "--source", "test=table.csv"], "needs boxes"),
        (["--source", "train=voc", "--source", "test=voc"], "--source test@val=voc"),
    ],
)
def test_wrong_use(folder: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "table.csv").write_text("image_id,class\n1,star\n")
    write_voc(folder / "voc", {"1": document(DOG)}, part="train")
    (folder / "voc/ImageSets/Main/val.txt").write_text("1\n")
    assert main(["init", "tasks", *more, *([] if "--out" in more else ["--out", "tasks.toml"])]) in (1, 2)
    assert message in capsys.readouterr().err
    assert not list(folder.glob("tasks.*"))


def test_a_folder_that_holds_both_parts_serves_as_it_is(folder: Path, shell: Shell) -> None:
    stems = [f"pic {number}" for number in range(40)]
    write_voc(folder / "my voc", {stem: document(DOG) for stem in stems}, "\n".join(stems[:30]), part="train")
    (folder / "my voc/ImageSets/Main/val.txt").write_text("\n".join(stems[30:]))
    said = shell.out("init", "tasks", "--source", "my voc", "--source", "test@val=my voc", "--n-tasks", "1")
    words = shlex.split(said.rpartition("next: curation ")[2])
    assert words[2:6] == ["--source", "train=my voc", "--source", "test@val=my voc"]
    assert "next: curation verify" in shell.out(*words)


def test_boxes_that_are_left_out_are_so_in_the_next_command_too(folder: Path, shell: Shell) -> None:
    content = json.loads((folder / "test.json").read_text())
    content["annotations"][0]["bbox"] = [1, 1, -2, 3]
    (folder / "test.json").write_text(json.dumps(content))
    said = shell.out("init", "tasks", *SOURCES, "--n-tasks", "2", "--on-error", "boxes=drop")
    assert "next: curation verify" in shell.out(*shlex.split(said.rpartition("next: curation ")[2]))


HOSTILE = ['a"b', "c\\d", "e # f", "[[tasks]]", "''' \"\"\"", "ünïcode 犬", "=1+1", "$(rm)", "{x}"]


def test_hostile_names_come_back_as_they_are() -> None:
    names = [*HOSTILE, "x" * 200]
    lines = start({"train": make_source({"i": names})}, StartOptions(name="my/own", n_tasks=3))
    tasks = tomllib.loads("\n".join(lines))["classes"]["tasks"]
    assert [name for task in tasks for name in task["classes"]] == names
    assert len(tasks) == 3


def test_annotations_of_nothing_are_refused() -> None:
    with pytest.raises(ProtocolError, match="have no training objects"):
        start({"train": make_source({"i": []})}, StartOptions(name="my/own"))
