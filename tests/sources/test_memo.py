import os
import time
from pathlib import Path

import pytest

from curation.sources.cache import Memo, Stamp

DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that has not changed for as long as an entry needs to be trusted."""
    path = tmp_path / "file.json"
    path.write_text("{}")
    later = time.time_ns() + 10_000_000_000
    monkeypatch.setattr("curation.sources.cache.time.time_ns", lambda: later)
    return path


def test_an_unchanged_file_is_remembered(tmp_path: Path, settled: Path) -> None:
    memo = Memo(tmp_path / "memo")
    assert memo.find(Stamp([str(settled)])) is None
    memo.record(Stamp([str(settled)]), DIGEST, 2)
    assert memo.find(Stamp([str(settled)])) == (DIGEST, 2)


def test_a_changed_touched_or_replaced_file_is_not(tmp_path: Path, settled: Path) -> None:
    memo = Memo(tmp_path / "memo")
    memo.record(Stamp([str(settled)]), DIGEST, 2)
    facts = settled.stat()
    settled.write_text("[]")
    # The size is the same and the times are set back: the change time cannot be.
    os.utime(settled, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert memo.find(Stamp([str(settled)])) is None


def test_a_file_that_changed_a_moment_ago_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text("{}")
    memo = Memo(tmp_path / "memo")
    memo.record(Stamp([str(path)]), DIGEST, 2)
    assert memo.find(Stamp([str(path)])) is None


def test_one_changed_file_among_many_counts(tmp_path: Path, settled: Path) -> None:
    other = tmp_path / "other.xml"
    other.write_text("<a/>")
    memo = Memo(tmp_path / "memo")
    memo.record(Stamp([str(settled), str(other)]), DIGEST, 6)
    assert memo.find(Stamp([str(settled), str(other)])) == (DIGEST, 6)
    assert memo.find(Stamp([str(other), str(settled)])) is None
    other.write_text("<b/>")
    assert memo.find(Stamp([str(settled), str(other)])) is None


@pytest.mark.parametrize("data", [b"", b"{}", b"[1, 2]", b'{"listing": 3}', b"\xff\xfe", b'{"digest": "sha256:'])
def test_a_damaged_entry_is_no_entry(tmp_path: Path, settled: Path, data: bytes) -> None:
    memo = Memo(tmp_path / "memo")
    memo.record(Stamp([str(settled)]), DIGEST, 2)
    (entry,) = (tmp_path / "memo").iterdir()
    entry.write_bytes(data)
    assert memo.find(Stamp([str(settled)])) is None
