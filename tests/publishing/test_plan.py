"""The writer of every export: all files or none, never over something that is there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.core.errors import CurationError, ExportError, PathEscapeError
from curation.publishing.formats.plan import SUMMARY_FILE, Plan, PlannedFile, lines, safe_name, single_chunk, write_plan


def plan_of(*files: PlannedFile) -> Plan:
    return Plan(files=files, records=len(files), counts={})


def failing() -> Iterator[bytes]:
    yield b"half"
    raise ExportError("in the middle")


def test_a_folder_holds_the_files_and_the_summary(tmp_path: Path) -> None:
    out = tmp_path / "out"
    files = [PlannedFile("a.txt", lines(["x", "ü"])), PlannedFile("d/1.x", single_chunk("1"), "d/*.x")]
    files += [PlannedFile("d/2.x", single_chunk("22"), "d/*.x")]
    written = write_plan(plan_of(*files), out, single=False, summary={"format": "txt"})
    assert (out / "a.txt").read_bytes() == "x\nü\n".encode()
    assert (out / "d" / "2.x").read_bytes() == b"22"
    first, second = (hashlib.sha256(text).hexdigest() for text in (b"1", b"22"))
    group = hashlib.sha256("".join(sorted([f"{first}  d/1.x\n", f"{second}  d/2.x\n"])).encode()).hexdigest()
    assert [(one.name, one.files, one.size) for one in written] == [("a.txt", 1, 5), ("d/*.x", 2, 3)]
    assert written[1].sha256 == f"sha256:{group}"
    summary = json.loads((out / SUMMARY_FILE).read_text())
    assert summary["format"] == "txt"
    assert [one["name"] for one in summary["files"]] == ["a.txt", "d/*.x"]


@pytest.mark.parametrize("single", [True, False])
def test_a_failure_in_the_middle_leaves_nothing(single: bool, tmp_path: Path) -> None:
    plan = plan_of(PlannedFile("a.json", failing))
    with pytest.raises(ExportError, match="middle"):
        write_plan(plan, tmp_path / "a.json", single=single, summary={})
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    file, folder = tmp_path / "mine.json", tmp_path / "full"
    file.write_text("precious")
    folder.mkdir()
    (folder / "thing").write_text("precious")
    plan = plan_of(PlannedFile("a.json", single_chunk("new")))
    for out in (file, folder):
        with pytest.raises(CurationError, match="exists already"):
            write_plan(plan, out, single=out is file, summary={})
    assert file.read_text() == "precious"
    assert [one.name for one in folder.iterdir()] == ["thing"]


def test_a_plan_cannot_leave_its_folder(tmp_path: Path) -> None:
    with pytest.raises(PathEscapeError):
        write_plan(plan_of(PlannedFile("../a", single_chunk("x"))), tmp_path / "out", single=False, summary={})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "/a", "a/../b", "..", ".", "./a", "a\\b", "C:a", "a\nb", "a\0b", "a/", "x" * 241])
def test_unsafe_names(name: str) -> None:
    with pytest.raises(ExportError):
        safe_name(name, "an image")
