"""Files are whole or absent, folders too, and no name leads outside its root."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from curation.errors import MissingFileError, PathEscapeError, UsageError
from curation.ledger import LEDGER
from curation.storage import (
    inside,
    make_folder,
    publishing_folder,
    read_bytes,
    replacing,
    write_bytes,
    write_text,
)


class WriteFailedError(Exception):
    """Stands for whatever may go wrong while a file is written."""


def names(folder: Path) -> list[str]:
    """Return the names in a folder, without the ledger of what was written."""
    return sorted(path.name for path in folder.iterdir() if path.name != LEDGER)


def test_write_creates_folders_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a/b/c.txt"
    write_text(path, "one\r\ntwo\n")
    assert path.read_bytes() == b"one\r\ntwo\n"
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["c.txt"]


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    write_bytes(path, b"old")

    def fail() -> None:
        with replacing(path) as partial:
            assert partial.suffix == ".csv"
            partial.write_bytes(b"half")
            raise WriteFailedError

    with pytest.raises(WriteFailedError):
        fail()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["c.csv"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "out/m"

    def fail() -> None:
        with publishing_folder(target) as partial:
            (partial / "a").write_bytes(b"1")
            assert not target.exists()
            raise WriteFailedError

    with pytest.raises(WriteFailedError):
        fail()
    assert names(tmp_path) == []
    with publishing_folder(target) as partial:
        (partial / "sub").mkdir()
        (partial / "sub/a").write_bytes(b"1")
    assert (target / "sub/a").read_bytes() == b"1"
    assert names(tmp_path / "out") == ["m"]


def test_an_empty_folder_may_be_filled_and_a_full_one_not(tmp_path: Path) -> None:
    target = tmp_path / "m"
    target.mkdir()
    with publishing_folder(target) as partial:
        (partial / "a").write_bytes(b"1")

    def again() -> None:
        with publishing_folder(target):
            raise AssertionError("must not be entered")

    with pytest.raises(UsageError, match="exists already"):
        again()
    (tmp_path / "file").write_bytes(b"")
    target = tmp_path / "file"
    with pytest.raises(UsageError, match="exists already"):
        again()


def test_what_a_killed_process_left_is_removed_and_a_living_one_is_not(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    dead = tmp_path / f".m.partial-{finished.stdout.decode().strip()}-aaaa"
    living = tmp_path / f".m.partial-{os.getppid()}-bbbb"
    for folder in (dead, living):
        folder.mkdir()
        (folder / "x").write_bytes(b"")
    with publishing_folder(tmp_path / "m") as partial:
        (partial / "a").write_bytes(b"1")
    assert names(tmp_path) == [living.name, "m"]


def test_a_file_in_the_way_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for folder in (tmp_path / "file", tmp_path / "file/below"):
        with pytest.raises(UsageError, match="A file stands"):
            make_folder(folder)


@pytest.mark.parametrize("name", [".", "folder"])
def test_a_folder_in_the_way_of_a_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="folder stands where a file"):
        write_text(Path(name), "x")
    assert [one.name for one in tmp_path.rglob("*")] == ["folder"]


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="The id list does not exist"):
        read_bytes(tmp_path / "no", kind="id list")
    with pytest.raises(MissingFileError, match="is a folder"):
        read_bytes(tmp_path)
    (tmp_path / "yes").write_bytes(b"1")
    with pytest.raises(MissingFileError, match="cannot be read"):
        read_bytes(tmp_path / "yes/below")
    assert read_bytes(tmp_path / "yes") == b"1"


@pytest.mark.parametrize("name", ["a.txt", "a/b.txt", "./a", "a//b", "a b", "a..b", "..a"])
def test_names_inside(tmp_path: Path, name: str) -> None:
    assert inside(tmp_path, name).resolve().is_relative_to(tmp_path.resolve())


@pytest.mark.parametrize(
    "name",
    [
        "../a",
        "a/../../b",
        "/etc/passwd",
        "..",
        "a/..\\..\\b",
        "\\\\host\\x",
        "C:\\x",
        "C:/x",
        "a\0b",
        "link/x",
    ],
)
def test_names_that_lead_outside(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(PathEscapeError):
        inside(root, name)
