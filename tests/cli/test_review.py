from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.review.decisions.files import read_decisions
from curation.review.decisions.review_folder import ReviewRecord, write_record
from curation.review.decisions.verdicts import VerdictBook
from tests.review.app.review_world import write_world
from tests.shell import Shell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A review of eight images in two batches, with verdicts of two people, one of them undone."""
    path = tmp_path / "review"
    batches = {"0001": 4, "0002": 4}
    write_record(path, ReviewRecord(dataset="d", stage="manual", manifest="", inputs="", batches=batches))
    book = VerdictBook(path / "decisions.jsonl", stage="manual")
    keys = [(("pool", f"coco:{number:012d}"), "0001") for number in range(4)]
    book.record(keys, "near", reason="stripes", reviewer="anna")
    book.record(keys[:3], "near", reason="", reviewer="ben")
    book.record(keys[2:3], "far", reason="", reviewer="ben")
    book.record(keys[:1], "remove", reason="", reviewer="anna")
    book.undo("anna")
    return path


def test_status_needs_no_database(folder: Path, shell: Shell) -> None:
    text = shell.out("review", "status", "--folder", folder)
    assert "4 of 8 images decided: near 3, conflict 1" in text
    assert ["anna", "ben", "3", "2", "0.000"] in [line.split() for line in text.splitlines()]
    assert "to_far: ben; to_near: anna (stripes)" in text


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_export_writes_what_stands(
    folder: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"out{suffix}"
    with (folder / "decisions.jsonl").open("a") as log:
        log.write('{"image_id": "coco:')
    assert main(["review", "export", "--folder", str(folder), "--out", str(path)]) == 0
    assert "warning: decisions.jsonl: the last line is cut off" in capsys.readouterr().err
    rows = read_decisions(path).decisions
    assert [(row.image_id[-1], row.reviewer, row.action) for row in rows] == [
        ("0", "anna", "to_near"),
        ("0", "ben", "to_near"),
        ("1", "anna", "to_near"),
        ("1", "ben", "to_near"),
        ("2", "anna", "to_near"),
        ("2", "ben", "to_far"),
        ("3", "anna", "to_near"),
    ]
    assert {row.reason for row in rows if row.reviewer == "anna"} == {"stripes"}


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["start", "--photos", "."], "There is nothing to review"),
        (["start", "--source", "coco=x.json"], "A review needs the photos"),
        (["start", "--source", "coco=x.json", "--photos", "nowhere"], "folder of photos does not exist"),
        (["start", "no-such-manifest", "--photos", "."], "No such manifest"),
        (["start", "--source", "coco=x.json", "--photos", "coc=."], "an unknown source"),
        (["start", "elephant/val2017", "--photos", "cocoo=."], "expected: voc2007-test, coco"),
        (["start"], "The folder holds no review"),
        (["status"], "The folder holds no review"),
        (["export", "--out", "x.jsonl"], "The folder holds no review"),
    ],
)
def test_wrong_use_is_told(arguments: list[str], message: str, tmp_path: Path, shell: Shell) -> None:
    more = ["--reviewer", "anna", "--port", "0"] if arguments[0] == "start" else []
    assert message in shell.err("review", *arguments, *more, "--folder", tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.mark.mongo
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_start_without_app_then_again(fiftyone: Any, tmp_path: Path, shell: Shell) -> None:
    world = write_world(tmp_path / "world")
    start = ("review", "start", "--folder", tmp_path / "cli-review", "--no-app", "--json")
    inputs = ("--source", f"coco={world.annotations}", "--photos", world.photos)
    first = shell.data(*start, *inputs, "--set", "batch_size=5")
    assert (first["images"], first["batches"], first["built"], first["dataset"]) == (12, 3, True, "cli-review")
    second = shell.data(*start)
    assert (second["built"], second["replayed"]) == (False, 0)
    fiftyone.delete_dataset("cli-review")
