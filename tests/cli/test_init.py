"""``curation init``: a task file with every class of the user's data, which builds as it stands."""

import json
import shlex
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.owod.tasks import parse_tasks, read_task_file, starter_task_file
from curation.cli import main
from curation.core.errors import ProtocolError
from curation.manifest.manifest import read_manifest
from tests.cli.test_build_owod import NAMES, SETTINGS, SOURCES, write_coco
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


@pytest.mark.parametrize("words", [["init"], ["init", "tasks"]])
@pytest.mark.parametrize("source", ["train.json", "train=train.json"])
def test_every_class_is_in_it_once_and_it_builds_as_it_stands(
    folder: Path, words: list[str], source: str, shell: Shell
) -> None:
    said = shell.out(*words, "--source", source)
    assert "next: curation build owod --tasks tasks.toml --source train=train.json --source test=PATH" in said
    groups = [task["classes"] for task in written()["tasks"]]
    # Five classes in four tasks, in the order of the file.
    assert groups == [["star", "disc"], ["square"], ["triangle"], ["blob"]]
    assert main(["build", "owod", "--tasks", "tasks.toml", *SOURCES, *SETTINGS, "--out", "m"]) == 0
    assert {entry.name for entry in read_manifest(folder / "m").header.classes} == set(NAMES)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--source", "validation=train.json"], "No such source"),
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
    assert main(["init", *more]) in (1, 2)
    assert message in capsys.readouterr().err
    assert not list(folder.glob("tasks.*"))


def test_a_folder_that_holds_both_parts_serves_as_it_is(folder: Path, shell: Shell) -> None:
    stems = [f"pic {number}" for number in range(40)]
    write_voc(folder / "my voc", {stem: document(DOG) for stem in stems}, "\n".join(stems[:30]), part="train")
    (folder / "my voc/ImageSets/Main/val.txt").write_text("\n".join(stems[30:]))
    said = shell.out("init", "--source", "my voc", "--source", "test@val=my voc", "--n-tasks", "1")
    words = shlex.split(said.rpartition("next: curation ")[2])
    assert words[4:8] == ["--source", "train=my voc", "--source", "test@val=my voc"]
    assert "next: curation verify" in shell.out(*words)


def test_boxes_that_are_left_out_are_so_in_the_next_command_too(folder: Path, shell: Shell) -> None:
    content = json.loads((folder / "test.json").read_text())
    content["annotations"][0]["bbox"] = [1, 1, -2, 3]
    (folder / "test.json").write_text(json.dumps(content))
    said = shell.out("init", *SOURCES, "--n-tasks", "2", "--on-error", "boxes=drop")
    assert "next: curation verify" in shell.out(*shlex.split(said.rpartition("next: curation ")[2]))


def test_fewer_tasks_than_were_asked_for_are_told(folder: Path, shell: Shell) -> None:
    assert "5 tasks in place of 99: no more classes have an object" in shell.err(
        "init", "--source", "train.json", "--n-tasks", "99", status=0
    )
    assert len(written()["tasks"]) == 5


def test_files_that_number_their_images_alike_get_names_of_their_own(folder: Path) -> None:
    write_coco(folder / "test.json", "train", 40, 2)
    assert main(["init", *SOURCES, "--name", "mylab/my-shapes"]) == 0
    assert written()["datasets"] == {"train": "my_shapes_train", "test": "my_shapes_test"}
    assert main(["build", "owod", "--tasks", "tasks.toml", *SOURCES, *SETTINGS, "--out", "m"]) == 0


def test_a_category_without_a_box_is_no_unknown_class(folder: Path) -> None:
    """Roboflow's exports begin with a root category that no box has."""
    for name in ("train", "test"):
        content = json.loads((folder / f"{name}.json").read_text())
        content["categories"].insert(0, {"id": 0, "name": "objects"})
        (folder / f"{name}.json").write_text(json.dumps(content))
    assert main(["init", "--source", "train=train.json", "--source", "test=test.json"]) == 0
    assert "objects" not in [*written()["unknown"], *(name for task in written()["tasks"] for name in task["classes"])]
    assert '#   "objects"' in Path("tasks.toml").read_text()


def test_a_class_without_an_object_stays_unknown(folder: Path) -> None:
    content = json.loads((folder / "train.json").read_text())
    content["annotations"] = [one for one in content["annotations"] if one["category_id"] != 3]
    (folder / "train.json").write_text(json.dumps(content))
    assert main(["init", "--source", "train.json"]) == 0
    assert written()["unknown"] == ["square"]
    assert "square" not in [name for task in written()["tasks"] for name in task["classes"]]


HOSTILE = ['a"b', "c\\d", "e # f", "[[tasks]]", "''' \"\"\"", "ünïcode 犬", "=1+1", "$(rm)", "{x}"]


def test_hostile_names_come_back_as_they_are() -> None:
    names = [*HOSTILE, "x" * 200]
    text = starter_task_file({"train": make_source({"i": names})}, name="my/own", n_tasks=3)
    tasks = tomllib.loads(text)["tasks"]
    assert [name for task in tasks for name in task["classes"]] == names
    assert len(tasks) == 3


@pytest.mark.parametrize("names", [["unknown"], ["Cat", "cat"], ["a\nb"], [" a"], ["y" * 201], ["a\x7f"], ["\ud800"]])
def test_names_that_no_task_file_can_hold_are_refused(names: list[str]) -> None:
    with pytest.raises(ProtocolError, match="cannot stand in a task file") as caught:
        starter_task_file({"train": make_source({"i": [*names, "dog"]})}, name="my/own")
    assert "rename the category" in str(caught.value)


def test_annotations_of_nothing_are_refused() -> None:
    with pytest.raises(ProtocolError, match="No class has an object"):
        starter_task_file({"train": make_source({"i": []})}, name="my/own")


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


@given(st.lists(texts, min_size=1, max_size=9, unique_by=str.casefold), st.integers(1, 12))
def test_what_is_written_is_a_task_file_with_every_class_in_order(names: list[str], n_tasks: int) -> None:
    # make_source reads a mark at the end of a name as a flag.
    source = make_source({"i": [f"{name}." for name in names]})
    try:
        text = starter_task_file({"train": source}, name="my/own", n_tasks=n_tasks)
    except ProtocolError:
        assert any(not name.isprintable() or name != name.strip() for name in (f"{one}." for one in names))
        return
    tasks = tomllib.loads(text)["tasks"]
    assert [one for task in tasks for one in task["classes"]] == [f"{name}." for name in names]
    sizes = [len(task["classes"]) for task in tasks]
    assert len(sizes) == min(n_tasks, len(names))
    assert max(sizes) - min(sizes) <= 1


def test_the_same_file_every_time(folder: Path) -> None:
    for out in ("a.toml", "b.toml"):
        assert main(["init", *SOURCES, "--out", out]) == 0
    assert (folder / "a.toml").read_bytes() == (folder / "b.toml").read_bytes()
    declared = parse_tasks(read_task_file(folder / "a.toml"))
    assert [task.name for task in declared.tasks] == ["t1", "t2", "t3", "t4"]


@pytest.mark.parametrize("name", ["my/2shapes", "mylab/" + "a" * 40, "x"])
def test_any_name_of_a_manifest_gives_ids_a_first_word(name: str) -> None:
    text = starter_task_file({"train": make_source({"i": ["a"]}), "test": make_source({"i": ["a"]})}, name=name)
    declared = parse_tasks(json.dumps(tomllib.loads(text)))
    assert declared.name == name
    assert declared.dataset_of("train") != declared.dataset_of("test")


def test_the_time_grows_with_the_classes_and_not_with_their_square() -> None:
    names = [f"class {number}" for number in range(20_000)]
    source = make_source({f"i{number}": [name] for number, name in enumerate(names)})
    started = time.process_time()
    text = starter_task_file({"train": source}, name="my/own")
    assert time.process_time() - started < 5
    assert [name for task in tomllib.loads(text)["tasks"] for name in task["classes"]] == names
