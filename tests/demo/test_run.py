"""The whole demo on a few images, as a stranger runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def run_demo(out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "curation.demo", "--out", str(out), "--images", "40", "30", "80"]
    return subprocess.run(command, capture_output=True, text=True, timeout=180)


@pytest.mark.slow
def test_demo_shows_table_and_figure_and_can_be_run_again(tmp_path: Path) -> None:
    first = run_demo(tmp_path / "out")
    assert first.returncode == 0, first.stderr
    assert "average wilderness impact" in first.stdout
    assert (tmp_path / "out" / "scores" / "wilderness-curve.png").stat().st_size > 10_000
    scores = json.loads((tmp_path / "out" / "scores" / "bold" / "results.json").read_text())
    assert scores["paper"]["mAP11"][0] > 0.2
    assert run_demo(tmp_path / "out").stdout == first.stdout


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    finished = run_demo(tmp_path)
    assert finished.returncode == 2
    assert "not made by the demo" in finished.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
