"""Long commands say on a terminal's standard error what they are doing, and nothing to a pipe."""

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.evaluation.ood_worlds import example_files
from tests.evaluation.osod3_world import write_world


def commands(folder: Path) -> dict[str, list[str]]:
    """Small inputs of the verbs, by name."""
    (folder / "ood").mkdir()
    ood, world = example_files(folder / "ood"), write_world(folder)
    (folder / "id.txt").write_text("horse\n")
    truth, detections = str(world["gt"]), str(world["detections"])
    return {
        "osod3": ["evaluate", "osod3", "--truth", truth, "--detections", detections, "--classes",
                  str(world["classes"])],
        "findmeifyoucan": ["evaluate", "findmeifyoucan", "--truth", str(ood["truth"]), "--detections",
                           str(ood["detections"]), "--scores", str(ood["id"])],
        "propose": ["review", "propose", "--classes", str(folder / "id.txt"), "--source", f"coco={truth}"],
    }  # fmt: skip


TOLD = {
    "osod3": ("reading cases", "evaluating cases"),
    "findmeifyoucan": ("reading splits", "evaluating ood"),
    "propose": ("reading OOD sources", "looking into OOD sources"),
}


def read(terminal: int) -> bytes:
    """Return what was written next; nothing once the other end is closed."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


@pytest.mark.parametrize("name", TOLD)
def test_progress_is_shown_on_a_terminal_alone(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "curation", *commands(tmp_path)[name], "--no-cache", "--json"]
    piped = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not any(words in piped.stderr + piped.stdout for words in TOLD[name])
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 100))
    out = tmp_path / "printed.json"
    with out.open("w") as stream, subprocess.Popen(command, stdout=stream, stderr=end) as process:
        os.close(end)
        shown = b"".join(iter(lambda: read(terminal), b""))
    os.close(terminal)
    assert process.returncode == 0
    assert all(words in shown.decode() for words in TOLD[name])
    assert out.read_text() == piped.stdout
