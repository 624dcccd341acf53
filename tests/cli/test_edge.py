"""The edge of the process: odd encodings, streams that are closed or full, interrupts at any moment."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from curation.cli import main
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


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1", "cp037", "utf-16", "idna", "undefined"])
def test_no_encoding_fails(encoding: str) -> None:
    finished = at_shell(["list", "elephant"], PYTHONIOENCODING=encoding)
    assert (finished.returncode, finished.stderr) == (0, b"")
    if encoding not in ("idna", "undefined"):
        assert finished.stdout.decode(encoding).startswith("elephant: VOC2007 test")
    assert (b"G\\xfcnther" in finished.stdout) == (encoding == "ascii")


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


@pytest.mark.parametrize("words", [SHOW, ["list", "--json"], ["--version"], ["--help"], ["list", "--help"]])
@pytest.mark.parametrize("closed", [">&-", ">/dev/full"])
def test_an_answer_that_cannot_be_written_is_one_line_and_status_2(words: list[str], closed: str) -> None:
    finished = at_shell(words, closed)
    assert finished.returncode == 2
    assert finished.stderr.startswith(b"error: The answer cannot be written to standard output: ")
    assert len(finished.stderr.splitlines()) == 1


@pytest.mark.parametrize("closed", [">&- 2>&-", ">/dev/full 2>/dev/full", ">&- 2>/dev/full", "<&- >&- 2>&-"])
def test_with_nowhere_to_write_the_status_is_left(closed: str) -> None:
    assert at_shell(SHOW, closed).returncode == 2


@cache
def shown() -> bytes:
    return at_shell(SHOW).stdout


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", "<&-", "<&- 2>&-"])
def test_a_lost_standard_error_changes_nothing(closed: str) -> None:
    """An error line must not come out among the answers, as ``print(file=None)`` has it."""
    assert at_shell(SHOW, closed).stdout == shown()
    finished = at_shell(["show", "nowhere"], closed)
    assert (finished.returncode, finished.stdout) == (2, b"")
    assert at_shell(["show", "--nope"], closed).returncode == 2


@pytest.mark.parametrize("closed", [">&-", ">/dev/full", ">&- 2>&-", "<&- >&- 2>&-"])
def test_files_are_whole_though_nothing_can_be_printed(closed: str, tmp_path: Path) -> None:
    words = ["export", "elephant/val2017", "--part", "all", "--format", "txt", "--out"]
    assert main([*words, str(tmp_path / "reference")]) == 0
    finished = at_shell([*words, str(tmp_path / "out")], closed)
    assert finished.returncode == 2, finished.stderr
    names = sorted(one.name for one in (tmp_path / "reference").iterdir())
    assert names == sorted(one.name for one in (tmp_path / "out").iterdir())
    assert all((tmp_path / "out" / n).read_bytes() == (tmp_path / "reference" / n).read_bytes() for n in names)


def test_a_reader_that_goes_away_leaves_the_status_of_the_check() -> None:
    """It was 0 before, whatever the check found."""
    command = f"{sys.executable} -m curation show nowhere --json | head -c 0"
    finished = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, timeout=60)
    assert finished.returncode == 2
    assert b"Broken pipe" not in finished.stderr


# Raises SIGINT at the nth import after the edge is in force; Python's own start is before that, and cannot be met.
AT_IMPORT = """
import os, signal, sys
left = int(os.environ["AT_IMPORT"])
def hook(event, arguments):
    global left
    if event == "import" and getattr(signal.getsignal(signal.SIGINT), "__name__", "") == "_interrupt":
        left -= 1
        if left == 0:
            signal.raise_signal(signal.SIGINT)
sys.addaudithook(hook)
"""


@pytest.mark.parametrize("nth", [1, 2, 3, 5, 9, 17, 33, 60, 100, 180, 300])
@pytest.mark.parametrize("module", ["curation", "curation.extensions.demo"])
def test_an_interrupt_in_any_import_is_one_line(nth: int, module: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(AT_IMPORT)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", str(Path(__file__).parents[2]))])
    words = SHOW if module == "curation" else ["--out", str(tmp_path / "demo")]
    finished = subprocess.run(
        [sys.executable, "-m", module, *words],
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path, "AT_IMPORT": str(nth)},
    )
    if nth <= 60:  # Later ones may come after the last import of the command.
        assert finished.returncode == 130
    if finished.returncode == 130:
        assert finished.stderr == INTERRUPTED


def test_an_interrupt_that_a_library_swallows_comes_again() -> None:
    program = """
import signal, time
def main():
    try:
        signal.raise_signal(signal.SIGINT)
    except BaseException:
        pass
    class Finalized:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)
    Finalized()
    time.sleep(20)
    return 0
"""
    command = f"import sys, types; sys.modules['it'] = it = types.ModuleType('it'); exec({program!r}, it.__dict__)"
    finished = subprocess.run(
        [sys.executable, "-c", f"{command}; from curation.core import edge; sys.exit(edge.enter('it:main'))"],
        capture_output=True,
        timeout=15,
    )
    assert (finished.returncode, finished.stderr) == (130, INTERRUPTED)


def test_an_interrupt_waits_for_what_removes_half_written_files(tmp_path: Path) -> None:
    program = f"""
import signal, time, pathlib
def main():
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        time.sleep(0.4)
        pathlib.Path({str(tmp_path / "cleared")!r}).touch()
"""
    command = f"import sys, types; sys.modules['it'] = it = types.ModuleType('it'); exec({program!r}, it.__dict__)"
    finished = subprocess.run(
        [sys.executable, "-c", f"{command}; from curation.core import edge; sys.exit(edge.enter('it:main'))"],
        capture_output=True,
        timeout=15,
    )
    assert (finished.returncode, finished.stderr) == (130, INTERRUPTED)
    assert (tmp_path / "cleared").exists()


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
