"""No verb replaces a file without ``--force``, nor ever an input of the same command or a file of a manifest."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import pytest

from curation.cli import main
from curation.cli.outputs import Output
from tests.evaluation.leaderboard_cases import row_data, write_rows
from tests.shell import parsers
from tests.small_world import write_elephant, write_small_world

PARAMETERS = {"ratios": ("1",), "orders": ("hash",), "salt": "test"}
FOREIGN = b"the only copy of something else\n"


def test_every_option_that_names_an_output_is_declared_as_one() -> None:
    names = {"--out", "--append", "--dry-run"}
    for parser in parsers():
        options = {option.flag: option for members in parser._defaults["groups"].values() for option in members}
        for name in names & options.keys():
            assert isinstance(options[name].word, Output), f"{parser.prog} {name}"
        outputs = [option.word for option in options.values() if isinstance(option.word, Output)]
        assert ("--force" in parser.format_help()) == any(one.replaces for one in outputs), parser.prog
        for option in options.values():
            assert isinstance(option.word, Output) or option.kind == "flag" or not option.help.startswith("write")
    offers = {parser.prog for parser in parsers() if "--force" in parser.format_help()}
    assert not offers & {"curation build", "curation pull", "curation import"}


@dataclass(frozen=True)
class World:
    """Files of every kind that the verbs read; `tables` are lists of what each verb is called with."""

    root: Path

    @property
    def coco(self) -> Path:
        return self.root / "coco/annotations/instances_train2017.json"

    @property
    def voc(self) -> Path:
        return self.root / "VOCdevkit/VOC2007"

    def __truediv__(self, name: str) -> Path:
        return self.root / name


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("made")
    write_elephant(write_small_world(folder, n_closed=3, n_wilderness=10), PARAMETERS)
    truth = {
        "images": [{"id": 1, "file_name": "1.jpg", "width": 50, "height": 50}],
        "annotations": [
            {"id": n, "image_id": 1, "category_id": n, "bbox": [1, 1, 9, 9], "area": 81, "iscrowd": 0}
            for n in (1, 2, 3)
        ],
        "categories": [{"id": n, "name": name} for n, name in ((1, "cat"), (2, "dog"), (3, "owl"))],
    }
    found = [{"image_id": 1, "category_id": 1, "bbox": [1, 1, 9, 9], "score": 0.5}]
    for name, content in (("truth", truth), ("found", found)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / "names.json").write_text(json.dumps({"known": ["cat", "dog", "owl"], "unknown": []}))
    write_rows(folder / "rows.jsonl", row_data("mine"))
    return World(folder)


@pytest.fixture
def world(made: World, tmp_path: Path) -> World:
    """A copy, so that a command which replaced an input would harm no other test."""
    shutil.copytree(made.root, tmp_path / "world")
    return World(tmp_path / "world")


@dataclass(frozen=True)
class Case:
    """A command whose output falls on a file, and which of its inputs is one of these."""

    target: str
    reads: str
    words: Callable[[World, Path], list[object]]


CASES = {
    "evaluate": Case(
        "results.json",
        "found.json",
        lambda w, out: ["evaluate", "coco", "--truth",
                        w / "truth.json", "--detections", w / "found.json", "--out", out.parent],
    ),
    "audit": Case(
        "report.html",
        "coco/annotations/instances_train2017.json",
        lambda w, out: ["audit", w / "manifest", "--rules", "DS1", "--source",
                        f"coco@train2017={w.coco}", "--out", out],
    ),
    "leaderboard": Case(
        "page.html", "rows.jsonl", lambda w, out: ["leaderboard", w / "rows.jsonl", "--out", out]
    ),
    "export": Case(
        "closed.json",
        "manifest/manifest.json",
        lambda w, out: ["export", w / "manifest", "--part", "closed", "--format", "coco",
                        "--source", f"voc2007-test={w.voc}", "--out", out],
    ),
}  # fmt: skip


def status(words: list[object], *more: str) -> int:
    return main([*map(str, words), *more])


@pytest.mark.parametrize("name", CASES)
def test_a_file_that_exists_is_replaced_by_force_alone(
    name: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    target = tmp_path / "out" / case.target
    target.parent.mkdir()
    target.write_bytes(FOREIGN)
    words = case.words(world, target)
    assert status(words) == 2
    told = capsys.readouterr().err
    assert str(target) in told
    assert "--force" in told
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    assert target.read_bytes() == FOREIGN
    assert status(words, "--force") == 0
    written = target.read_bytes()
    assert written != FOREIGN
    assert status(words) == 2
    assert status(words, "--force") == 0
    assert target.read_bytes() == written
    assert not [path for path in target.parent.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(("name", "link"), list(zip(CASES, cycle([os.symlink, os.link, None]), strict=False)))
def test_an_input_is_never_replaced(
    name: str,
    link: Callable[[Path, Path], None] | None,
    world: World,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = CASES[name]
    read = world / case.reads
    before = read.read_bytes()
    target = tmp_path / "out" / case.target
    target.parent.mkdir()
    if link is None:
        # The input itself bears the name of the output, and the command names it.
        read.rename(target)
        read.symlink_to(target)
    else:
        link(read, target)
    for more in ((), ("--force",)):
        assert status(case.words(world, target), *more) == 2
        assert str(target) in capsys.readouterr().err
    assert target.read_bytes() == before
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_the_type_of_an_option_decides_what_is_an_input(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is no input where a folder of that name exists; a source is, whatever its key."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my").mkdir()
    words = ["init", "tasks", "--source", f"train={world / 'truth.json'}", "--n-tasks", "2", "--name", "my"]
    assert status([*words, "--out", "my/t.toml"]) == 0
    assert status([*words, "--out", "my/t.toml", "--force"]) == 0
    assert status([*words, "--out", world / "truth.json", "--force"]) == 2


def _linked_folder(path: Path, folder: Path) -> Path:
    (folder / "link").symlink_to(path.parent)
    return folder / "link" / path.name


NAMES: dict[str, Callable[[Path, Path], Path]] = {
    "itself": lambda path, _: path,
    "by a detour": lambda path, _: path.parent / "no" / ".." / path.name,
    "relative": lambda path, folder: Path(os.path.relpath(path, folder)),
    "in a linked folder": _linked_folder,
    "hard link": lambda path, folder: (os.link(path, folder / path.name), folder / path.name)[1],
    "symbolic link": lambda path, folder: ((folder / path.name).symlink_to(path), folder / path.name)[1],
}
"""Ways to name a file, by a folder that holds the links."""

REMEMBERED: dict[str, Callable[[World], tuple[Path, list[object]]]] = {
    "export of the very source": lambda w: (w.root / "small.json", ["--part", "wilderness", "--format", "coco"]),
    "export over an unread file": lambda w: (w.voc / "notes.txt", ["--part", "closed", "--format", "txt"]),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", REMEMBERED)
def test_a_source_that_a_build_remembers_is_never_replaced(
    case: str,
    name: str,
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    world.coco.rename(world / "small.json")
    (world.voc / "notes.txt").write_bytes(FOREIGN)
    sources = ["--source", f"coco@train2017={world / 'small.json'}", "--source", f"voc2007-test={world.voc}"]
    assert status(["build", "elephant", *sources, "--out", world / "built"]) == 0
    source, words = REMEMBERED[case](world)
    assert status(["show", world / "built", "--composition"]) == 0
    (tmp_path / "no").mkdir()
    (source.parent / "no").mkdir(exist_ok=True)
    target, before = NAMES[name](source, tmp_path), source.read_bytes()
    for more in ((), ("--force",)):
        done = status(["export", world / "built", *words, "--out", target], *more)
        told = capsys.readouterr().err
        # A hard link elsewhere to a file of a folder may be replaced: the file itself stays.
        assert done == 2 or (more and name == "hard link" and source.is_relative_to(world.voc))
        if more and done:
            assert "input" in told or "folder that this command reads" in told
    assert source.read_bytes() == before
    assert status(["show", world / "built", "--composition"]) == 0


def test_a_folder_is_never_replaced(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    sources = ["--source", f"voc2007-test={world.voc}", "--source", f"coco={world.coco}"]
    (world / "thesis").mkdir()
    (world / "thesis/thesis.tex").write_bytes(FOREIGN)
    for words in (
        ["build", "elephant", *sources],
        ["import", "owod/reowod-published", "--lists", world / "coco"],
        ["audit", world / "manifest", *sources],
        ["export", world / "manifest", "--part", "closed", "--format", "voc", *sources],
        ["pull", "mylab/shapes@1.0.0"],
    ):
        assert status([*words, "--out", world / "thesis"]) == 2
        told = capsys.readouterr().err
        assert "exists already" in told
    assert status(["publish", world / "manifest", "--repo", "a/b", "--dry-run", world / "thesis"]) == 2
    assert [path.name for path in (world / "thesis").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("place", ["/dev/null", "pipe"])
def test_an_output_that_is_no_regular_file_is_refused(
    place: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    target = tmp_path / place
    assert status(CASES["leaderboard"].words(world, target), "--force") == 2
    assert "not a regular file" in capsys.readouterr().err
    assert not target.is_file()


@pytest.mark.parametrize("place", ["pipe", "/dev/zero"])
def test_an_input_that_is_a_pipe_or_a_device_is_refused(
    place: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    case = CASES["evaluate"]
    (world / case.reads).unlink()
    (world / case.reads).symlink_to(tmp_path / place)
    assert status(case.words(world, tmp_path / "out" / case.target)) == 2
    assert "a regular file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
