"""The edge of the process: encodings, a reader that goes away, a full stream, an interrupt."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.core import edge
from curation.core.errors import CurationError

SHOW = ["show", "elephant/val2017"]
INTERRUPTED = b"interrupted; no partial output is left\n"


@pytest.fixture(autouse=True)
def _interrupts_are_met() -> Iterator[None]:
    """A shell starts what runs in its background with interrupts ignored, and what that starts inherits it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def at_shell(words: list[str], redirection: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = f'exec "$0" -m curation "$@" {redirection}'
    return subprocess.run(
        ["bash", "-c", command, sys.executable, *words],
        capture_output=True,
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1", "utf-8"])
def test_json_stays_json_in_any_encoding(encoding: str, tmp_path: Path) -> None:
    name = "É↑\N{GRINNING FACE}"
    (tmp_path / "edges.txt").write_text(f"root\t{name}\n", encoding="utf-8")
    words = ["hierarchy", "show", "root", "--edges", str(tmp_path / "edges.txt"), "--leaves", "all"]
    printed = at_shell(words, PYTHONIOENCODING=encoding)
    assert printed.returncode == 0, printed.stderr
    assert name.encode(encoding, "backslashreplace") in printed.stdout
    finished = at_shell([*words, "--json"], PYTHONIOENCODING=encoding)
    text = finished.stdout.decode(encoding)
    assert json.loads(text)
    assert ("É↑\U0001f600" in text) == (encoding == "utf-8")
    assert "É↑\U0001f600" in json.dumps(json.loads(text), ensure_ascii=False)


@pytest.mark.parametrize("words", [SHOW, ["list", "--json"]])
def test_an_answer_that_cannot_be_written_is_one_line_and_status_2(words: list[str]) -> None:
    finished = at_shell(words, ">/dev/full")
    assert finished.returncode == 2
    assert finished.stderr.startswith(b"error: ")
    assert len(finished.stderr.splitlines()) == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_nothing_else(closed: str) -> None:
    finished = at_shell([*SHOW, "--json"], closed)
    assert (finished.returncode, finished.stderr) == (0, b"")
    assert at_shell(["show", "nowhere"], closed).returncode == 2


@pytest.mark.parametrize(("words", "status"), [("show nowhere --json", 2), ("list manifests --json", 0), ("--help", 0)])
def test_a_reader_that_goes_away_leaves_the_status_of_the_check(words: str, status: int) -> None:
    command = f"{sys.executable} -m curation {words} | head -c 0"
    finished = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, timeout=60)
    assert finished.returncode == status
    assert b"roken pipe" not in finished.stderr
    assert b"Traceback" not in finished.stderr


INTERRUPTING = """
import os, signal, sys
left = int(os.environ["AT_IMPORT"])
def hook(event, arguments):
    global left
    if event == "import" and arguments[0].startswith("curation.") and arguments[0] != "curation.core":
        left -= 1
        if left == 0:
            signal.raise_signal(signal.SIGINT)
sys.addaudithook(hook)
"""


@pytest.mark.parametrize("nth", [4, 9, 17, 33])
def test_an_interrupt_is_one_line(nth: int, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", str(Path(__file__).parents[2]))])
    finished = subprocess.run(
        [sys.executable, "-m", "curation", *SHOW],
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path, "AT_IMPORT": str(nth)},
    )
    assert (finished.returncode, finished.stderr) == (130, INTERRUPTED)


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (RecursionError("deep"), "nested too deeply"),
        (MemoryError(), "not enough memory"),
        (OSError(28, "No space left on device", "x"), "No space left on device"),
        (UnicodeEncodeError("ascii", "é", 0, 1, "no"), "encoding"),
    ],
)
def test_what_the_machine_refuses_is_an_error_of_the_tree(raised: Exception, told: str) -> None:
    def work() -> int:
        raise raised

    found: list[CurationError] = []
    assert edge.outcome(work, found.append) == 2
    assert told in str(found[0])
