"""Files of decisions: what is written is read back; a log survives a kill at any moment and several writers."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import DecisionError, MissingFileError
from curation.review.decisions import files
from curation.review.decisions.decision import ACTIONS, Decision
from curation.review.decisions.files import DecisionLog, read_decisions, write_decisions

LINES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.just(" "), max_size=30)
NAMES = LINES.filter(lambda text: not set(text) & set(",;|&+/") and " and " not in text.lower())
DECISIONS = st.builds(
    lambda pair, **fields: Decision(stage=pair[0], action=pair[1], **fields),
    st.sampled_from([(stage, action) for stage, actions in ACTIONS.items() for action in actions.values()]),
    image_id=st.integers(0, 10**12 - 1).map("coco:{:012d}".format),
    dataset=st.sampled_from(["", "coco", "coco-far"]),
    reason=LINES,
    reviewer=NAMES,
    date=st.sampled_from(["", "2025-03-01", "2025-03-01T01:02:03.4Z"]),
    manifest=st.sampled_from(["", "sha256:" + "f" * 64]),
    batch=LINES,
)


def decision(number: int, **fields: str) -> Decision:
    return Decision(image_id=f"coco:{number:012d}", dataset="coco", stage="manual", action="remove", **fields)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@given(rows=st.lists(DECISIONS, max_size=5))
def test_round_trip(suffix: str, rows: list[Decision]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"d{suffix}")
        write_decisions(path, rows)
        found = read_decisions(path)
        assert list(found.decisions) == rows
        assert found.sha256 == sha256_of_bytes(path.read_bytes())
        assert (found.rows, found.torn) == (len(rows), "")


def test_what_is_no_decisions_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d.txt").write_text("")
    for name, error in (("d.txt", DecisionError), ("none.csv", MissingFileError)):
        with pytest.raises(error):
            read_decisions(tmp_path / name)
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(MissingFileError):
        read_decisions(tmp_path / "folder.jsonl")
    for target in (lambda path: write_decisions(path, []), DecisionLog):
        with pytest.raises(DecisionError):
            target(tmp_path / "d.parquet")
    monkeypatch.setattr(files, "MAX_BYTES", 10)
    (tmp_path / "large.jsonl").write_text(" " * 11)
    with pytest.raises(DecisionError, match="too large"):
        read_decisions(tmp_path / "large.jsonl")


@pytest.mark.parametrize("cut", [1, 7, 5000])
def test_a_line_that_a_kill_cut_off_is_taken_away_before_the_next(tmp_path: Path, cut: int) -> None:
    log = DecisionLog(tmp_path / "log.jsonl")
    log.extend([decision(1)])
    with log.path.open("ab") as stream:
        stream.write(b'{"image_id":"' + b"x" * cut)
    assert read_decisions(log.path).torn.startswith('{"image_id')
    assert read_decisions(log.path).notes()
    log.extend([decision(2)])
    assert read_decisions(log.path).decisions == (decision(1), decision(2))
    assert read_decisions(log.path).torn == ""


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = DecisionLog(tmp_path / "log.jsonl")
    log.extend([decision(1)])
    before = log.path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        log.extend([decision(2)])
    assert log.path.read_bytes() == before


WRITER = """
import sys
from pathlib import Path
from curation.review.decisions.decision import Decision
from curation.review.decisions.files import DecisionLog
log, first = DecisionLog(Path(sys.argv[1])), int(sys.argv[2])
for number in range(first, first + int(sys.argv[3])):
    one = Decision(image_id=f"coco:{number:012d}", dataset="coco", stage="manual", action="keep", reason="x" * 900)
    log.extend([one])
    print(number, flush=True)
"""


def writer(path: Path, first: int, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(first), str(count)], stdout=subprocess.PIPE, text=True
    )


def test_whatever_a_killed_writer_confirmed_is_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    confirmed: set[int] = set()
    for attempt in range(8):
        process = writer(path, attempt * 1_000_000, 1_000_000)
        assert process.stdout is not None
        confirmed.add(int(process.stdout.readline()))
        time.sleep(0.003 * attempt)
        process.send_signal(signal.SIGKILL)
        rest = process.communicate(timeout=60)[0].split("\n")
        # The pipe may hold a line that the kill cut off.
        confirmed |= {int(one) for one in rest[:-1]}
        numbers = [int(one.image_id[5:]) for one in read_decisions(path).decisions]
        assert confirmed <= set(numbers)
        assert len(numbers) == len(set(numbers))
    DecisionLog(path).extend([decision(999)])
    found = read_decisions(path)
    assert found.torn == ""
    assert confirmed < {int(one.image_id[5:]) for one in found.decisions}


def test_several_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    processes = [writer(path, 1000 * number, 40) for number in range(3)]
    for process in processes:
        process.communicate(timeout=60)
    numbers = sorted(int(one.image_id[5:]) for one in read_decisions(path).decisions)
    assert numbers == sorted(1000 * number + k for number in range(3) for k in range(40))
