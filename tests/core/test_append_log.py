"""A log of lines: whatever a kill left of the last one, the next line stands whole behind whole ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from curation.core.append_log import append_lines, parsed_line
from curation.core.errors import CurationError, LeaderboardError

FIRST, SECOND, THIRD = b'{"a": "\xc3\xa9"}\n', b'{"b": [1, 2]}\n', b'{"c": {}}\n'


@pytest.mark.parametrize("cut", range(len(SECOND) + 1))
def test_a_file_cut_anywhere_is_mended_before_the_next_line(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(FIRST + SECOND[:cut])
    is_whole = SECOND[:cut] in (b"", SECOND[:-1], SECOND)
    assert append_lines(path, THIRD) == (0 if is_whole else 1)
    kept = SECOND if is_whole and cut else b""
    assert path.read_bytes() == FIRST + kept + THIRD


def test_processes_at_once_interleave_whole_writes(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from curation.core.append_log import append_lines
for _ in range(30):
    append_lines(Path(sys.argv[1]), b"".join(b'{"n": %d}\\n' % int(sys.argv[2]) for _ in range(50)))
"""
    path = tmp_path / "log.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), str(n)]) for n in range(3)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    lines = path.read_bytes().splitlines()
    blocks = [set(lines[start : start + 50]) for start in range(0, len(lines), 50)]
    assert len(blocks) == 90
    assert all(len(block) == 1 for block in blocks)


def test_a_full_disk_takes_back_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(FIRST)
    real = os.write

    def full(handle: int, data: bytes) -> int:
        if len(data) < len(SECOND):
            raise OSError(28, "No space left on device")
        return real(handle, data[:5])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        append_lines(path, SECOND)
    assert path.read_bytes() == FIRST


def test_a_folder_in_its_place_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(CurationError, match="leaderboard file cannot be written"):
        append_lines(tmp_path, FIRST, kind="leaderboard file")


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"\\udfff": 1}'])
def test_half_a_character_is_refused(text: str) -> None:
    with pytest.raises(LeaderboardError, match="not JSON"):
        parsed_line(text.encode(), LeaderboardError, "line 1")
    assert parsed_line(rb'{"a": "\ud83d\ude00"}', LeaderboardError, "line 1") == {"a": "\U0001f600"}
