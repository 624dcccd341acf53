"""Long commands say on a terminal's standard error what they are doing, and nothing to a pipe."""

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

from tests.evaluation.osod3_world import write_world

TOLD = ("reading cases", "evaluating cases")


def read(terminal: int) -> bytes:
    """Return what was written next; nothing once the other end is closed."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def test_progress_is_shown_on_a_terminal_alone(tmp_path: Path) -> None:
    world = write_world(tmp_path)
    given = [
        f"--{option}={world[key]}"
        for option, key in {"truth": "gt", "detections": "detections", "classes": "classes"}.items()
    ]
    command = [sys.executable, "-m", "curation", "evaluate", "osod3", *given, "--json"]
    piped = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not any(words in piped.stderr + piped.stdout for words in TOLD)
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 100))
    out = tmp_path / "printed.json"
    with out.open("w") as stream, subprocess.Popen(command, stdout=stream, stderr=end) as process:
        os.close(end)
        shown = b"".join(iter(lambda: read(terminal), b""))
    os.close(terminal)
    assert process.returncode == 0
    assert all(words in shown.decode() for words in TOLD)
    assert out.read_text() == piped.stdout
