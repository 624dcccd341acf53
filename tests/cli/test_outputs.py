"""No verb replaces a file without ``--force``, nor ever an input of the same command or a file of a manifest."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import curation
from curation.cli import main, outputs, whole_parser
from curation.core.errors import OverwriteError
from tests.evaluation.leaderboard_cases import row_data, write_rows
from tests.small_world import write_elephant, write_small_world

PARAMETERS = {"ratios": ("1",), "orders": ("hash",), "salt": "test"}
FOREIGN = b"the only copy of something else\n"


def test_every_option_that_names_an_output_is_declared_as_one() -> None:
    names = {"--out", "--append", "--dry-run"}
    for parser in outputs.commands_of(whole_parser()):
        options = {name: action for action in parser._actions for name in action.option_strings}
        for name in names & options.keys():
            assert isinstance(options[name].type, outputs.Output), f"{parser.prog} {name}"
        writes = any(isinstance(one.type, outputs.Output) and one.type.replaces for one in parser._actions)
        assert not writes or "--force" in options, parser.prog
        for action in options.values():
            if isinstance(action.type, outputs.Output) or action.nargs == 0:
                continue
            assert not (action.help or "").startswith("write"), f"{parser.prog} {action.option_strings}"


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
    scored = [{"image_id": 1, "bbox": [1, 1, 9, 9], "scores": [0.5, 0.3, 0.1]}]
    for name, content in (("truth", truth), ("found", found), ("scored", scored)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / "names.json").write_text(json.dumps({"known": ["cat", "dog", "owl"], "unknown": []}))
    (folder / "classes.txt").write_text("cat\ndog\n")
    np.savez(folder / "test.npz", logits=np.eye(4, 3))
    write_rows(folder / "rows.jsonl", row_data("mine"))
    (folder / "verdicts.csv").write_text(
        "image_id,dataset,stage,action,reason,reviewer,date\n1,coco,manual,keep,,anna,\n"
    )
    for number in range(2):
        (folder / "photos").mkdir(exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), 40 * number, np.uint8)).save(folder / f"photos/{number}.png")
    store = ["similarity", "embed", "--photos", str(folder / "photos"), "--encoder", "colour"]
    assert main([*store, "--out", str(folder / "store")]) == 0
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
    "show csv": Case(
        "counts.csv",
        "coco/annotations/instances_train2017.json",
        lambda w, out: ["show", w / "manifest", "--composition", "--source", f"coco={w.coco}",
                        "--source", f"voc2007-test={w.voc}", "--out", out],
    ),
    "cut": Case(
        "cut.json",
        "truth.json",
        lambda w, out: ["cut", w / "truth.json", "-k", "2", "--out", out.parent],
    ),
    "scores": Case(
        "s.json", "test.npz", lambda w, out: ["scores", "--test", w / "test.npz", "--method", "msp", "--out", out]
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
    "decisions": Case(
        "all.jsonl", "verdicts.csv", lambda w, out: ["review", "summary", w / "verdicts.csv", "--out", out]
    ),
    "propose": Case(
        "proposals.jsonl",
        "classes.txt",
        lambda w, out: ["review", "propose", "--classes", w / "classes.txt", "--source", f"coco={w / 'truth.json'}",
                        "--out", out],
    ),
    "neighbors": Case(
        "neighbors.csv",
        "store/rows.json",
        lambda w, out: ["similarity", "neighbors", "--queries", w / "store", "--references", w / "store", "-k", "1",
                        "--out", out.parent],
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
    "export of another source": lambda w: (w.root / "small.json", ["--part", "closed", "--format", "coco"]),
    "export beside a list": lambda w: (w.voc / "ImageSets/Main/test.txt", ["--part", "closed", "--format", "txt"]),
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


def test_python_replaces_no_file(world: World) -> None:
    for path in (world.coco, world / "truth.json"):
        before = path.read_bytes()
        with pytest.raises(OverwriteError, match="exists already"):
            curation.export(world / "manifest", "wilderness", "coco", path, sources={"coco": world.coco})
        assert path.read_bytes() == before


@pytest.mark.parametrize("with_lists", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_no_file_of_a_manifest_is_replaced(
    name: str,
    with_lists: bool,
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The manifest is no input of the command."""
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other"
    shutil.copytree(world / "manifest", other)
    if not with_lists:
        shutil.rmtree(other / "ids")
    for number, path in enumerate(sorted(other.rglob("*.*"))):
        form = {".json": "coco", ".txt": "txt"}[path.suffix]
        (tmp_path / str(number) / "no").mkdir(parents=True)
        (path.parent / "no").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / str(number))
        target, before = NAMES[name](path, tmp_path / str(number)), path.read_bytes()
        words = ["export", world / "manifest", "--part", "closed", "--format", form]
        done = status([*words, "--source", f"voc2007-test={world.voc}", "--out", target, "--force"])
        assert path.read_bytes() == before
        # A link elsewhere may be replaced: the file that it leads to stays.
        assert done == 2 or name.endswith(" link")
        assert done == 0 or "a manifest, which no other file may join" in capsys.readouterr().err


def test_detections_beside_the_output_are_refused_before_anything_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(world.root)
    shutil.copy(world / "found.json", world / "results.json")
    (world / "truth.json").write_text("this is not read")
    words: list[object] = ["evaluate", "coco", "--truth", "truth.json", "--detections", "results.json"]
    for more in ((), ("--force",)):
        assert status([*words, "--out", "."], *more) == 2
        assert "input of the same command" in capsys.readouterr().err
    assert (world / "results.json").read_bytes() == (world / "found.json").read_bytes()


def test_rows_are_appended_but_never_to_an_input(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = CASES["evaluate"].words(world, tmp_path / "out/results.json")
    for count in (1, 2):
        assert status([*words, "--force", "--append", tmp_path / "rows.jsonl", "--name", f"m{count}"]) == 0
        assert len((tmp_path / "rows.jsonl").read_bytes().splitlines()) == count
    (world / "names.jsonl").symlink_to(world / "names.json")
    assert status([*words, "--force", "--classes", world / "names.json", "--append", world / "names.jsonl"]) == 2
    assert "input of the same command" in capsys.readouterr().err


def test_a_folder_is_never_replaced(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    sources = ["--source", f"voc2007-test={world.voc}", "--source", f"coco={world.coco}"]
    (world / "thesis").mkdir()
    (world / "thesis/thesis.tex").write_bytes(FOREIGN)
    for words in (
        ["build", "elephant", *sources],
        ["import", "owod/reowod-published", "--lists", world / "photos"],
        ["audit", world / "manifest", *sources],
        ["export", world / "manifest", "--part", "closed", "--format", "voc", *sources],
        ["pull", "mylab/shapes@1.0.0"],
    ):
        assert status([*words, "--out", world / "thesis", "--force"]) == 2
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


@pytest.mark.parametrize(("name", "place"), list(zip(CASES, cycle(["pipe", "/dev/zero"]), strict=False)))
def test_an_input_that_is_a_pipe_or_a_device_is_refused(
    name: str, place: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    case = CASES[name]
    read = world / case.reads
    read.unlink()
    read.symlink_to(tmp_path / place)
    assert status(case.words(world, tmp_path / "out" / case.target)) in (0, 2)
    told = capsys.readouterr().err
    # A manifest or a store without its file is none.
    assert "a regular file" in told or name in ("export", "neighbors")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"garbage", b"\0" * 100, b"garbage\n", b"[1]", b"{'a': 1}", b'{"a": 1'])
def test_a_log_of_nothing_but_garbage_is_an_error(
    content: bytes, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    for words in (
        ["leaderboard", path],
        ["review", "summary", path],
        ["review", "apply", world / "manifest", "--decisions", path, "--version", "9.0.0", "--out", tmp_path / "m"],
    ):
        assert status(words) == 2
        assert str(path.name) in capsys.readouterr().err
    if not content.startswith(b'{"'):
        words = CASES["evaluate"].words(world, tmp_path / "out/results.json")
        assert status([*words, "--append", path]) == 2
    assert path.read_bytes() == content
