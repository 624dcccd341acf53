"""The whole demo on a few images, as a stranger runs it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from curation.cli import main as curation_main


def command(out: Path, *sizes: int) -> list[str]:
    return [
        sys.executable, "-m", "curation.extensions.demo", "--out", str(out),
        "--images", *map(str, sizes or (40, 25, 70)),
    ]  # fmt: skip


def run_demo(out: Path, *sizes: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(out, *sizes), capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_demo_shows_what_it_computed_and_shows_it_again_after_a_kill(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run_demo(out)
    assert first.returncode == 0, first.stderr
    check_outcome(out, first.stdout)
    kill_after(3.0, out)
    again = run_demo(out)
    assert again.returncode == 0, again.stderr
    assert again.stdout == first.stdout


def check_outcome(out: Path, text: str) -> None:
    figure = out / "scores" / "wilderness-curve.png"
    assert f"Figure: {figure}" in text
    assert figure.read_bytes().startswith(b"\x89PNG")
    for name in ("bold", "cautious"):
        result = json.loads((out / "scores" / name / "results.json").read_text())
        assert result["manifest"]["name"] == "elephant/drawn-world"
        (value,) = (row["value"] for row in result["measures"] if row["measure"] == "mAP11")
        assert f"{value:.2f}" in text
        assert value > 30
    assert curation_main(["verify", str(out / "manifest")]) == 0


@pytest.mark.parametrize("delay", [0.3, 0.6])
def test_a_demo_killed_early_does_not_lock_its_folder(tmp_path: Path, delay: float) -> None:
    kill_after(delay, tmp_path / "out")
    done = run_demo(tmp_path / "out", 1, 1, 1)
    assert "not made by the demo" not in done.stderr
    assert "The training photos show a class less than twice" in done.stderr


def test_a_marker_half_written_by_a_killed_demo_does_not_lock_its_folder(tmp_path: Path) -> None:
    (tmp_path / "..made-by-curation-demo.partial-0123456789ab").write_text("This fol")
    done = run_demo(tmp_path, 1, 1, 1)
    assert "The training photos show a class less than twice" in done.stderr


def kill_after(seconds: float, out: Path) -> None:
    process = subprocess.Popen(command(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    done = run_demo(tmp_path)
    assert done.returncode == 2
    assert "not made by the demo" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_what_the_demo_did_not_make_survives_in_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / ".made-by-curation-demo").write_text("")
    (tmp_path / "notes.txt").write_text("keep")
    assert run_demo(tmp_path, 1, 1, 1).returncode == 2
    assert (tmp_path / "notes.txt").read_text() == "keep"


@pytest.mark.parametrize("sizes", [(0, 5, 5), (5, -1, 5), (5, 5, 10**6)])
def test_sizes_that_cannot_be_drawn_are_refused_before_anything_is_written(
    tmp_path: Path, sizes: tuple[int, int, int]
) -> None:
    done = run_demo(tmp_path / "out", *sizes)
    assert done.returncode == 2
    assert "error: The demo cannot draw that many" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
