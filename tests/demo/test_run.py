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
        sys.executable, "-m", "curation.demo", "--out", str(out), "--images", *map(str, sizes or (40, 25, 70))
    ]  # fmt: skip


def run_demo(out: Path, *sizes: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(out, *sizes), capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder and the output of a demo that ran where others were killed before."""
    out = tmp_path_factory.mktemp("demo") / "out"
    for delay in (0.4, 2.0, 4.0):
        process = subprocess.Popen(command(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    done = run_demo(out)
    assert done.returncode == 0, done.stderr
    return out, done.stdout


@pytest.mark.slow
def test_demo_shows_table_and_figure(finished: tuple[Path, str]) -> None:
    out, text = finished
    assert "average wilderness impact" in text
    figure = out / "scores" / "wilderness-curve.png"
    assert f"Figure: {figure}" in text
    assert figure.read_bytes().startswith(b"\x89PNG")
    scores = json.loads((out / "scores" / "bold" / "results.json").read_text())["paper"]
    assert f"{scores['mAP11'][0]:.4f}" in text
    assert scores["mAP11"][0] > 0.3


@pytest.mark.slow
def test_commands_shown_work_when_typed(
    finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = finished
    assert curation_main(["verify", str(out / "manifest")]) == 0
    assert "elephant/drawn-world" in capsys.readouterr().out


@pytest.mark.slow
def test_another_run_in_the_same_folder_shows_the_same(finished: tuple[Path, str]) -> None:
    out, text = finished
    assert run_demo(out).stdout == text


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
