"""A leaderboard in the forms of others, held against what those demand."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from curation.benchmarks.leaderboard import FORMS, Leaderboard, csv, latex, leaderboard, markdown
from curation.cli import main
from tests.evaluation.leaderboard_cases import MANIFEST, row_data, write_rows


def rows() -> list[dict[str, Any]]:
    return [
        row_data("ours", 0.25, metrics=metrics(51.0, 0.25)),
        row_data("100% of_theirs & more", 0.5, metrics=metrics(60.0, 0.5)),
        row_data("nothing", None, metrics=metrics(60.004, None)),
    ]


def metrics(percent: float, ratio: float | None) -> dict[str, Any]:
    return {
        "mAP11": {"value": percent, "unit": "%", "better": "higher"},
        "AWI@0.3": {"value": ratio, "unit": "ratio", "better": "lower"},
    }


@pytest.fixture
def board(tmp_path: Path) -> Leaderboard:
    return leaderboard(write_rows(tmp_path / "results.jsonl", *rows()))


def test_csv_holds_every_digit_and_an_empty_cell_for_what_is_undefined(board: Leaderboard, tmp_path: Path) -> None:
    (tmp_path / "board.csv").write_text(csv(board), encoding="utf-8")
    frame = pd.read_csv(tmp_path / "board.csv").set_index("method")
    assert frame.loc["ours", "AWI@0.3"] == 0.25
    assert pd.isna(frame.loc["nothing", "AWI@0.3"])
    assert frame.loc["nothing", "mAP11"] == 60.004
    assert set(frame["data"]) == {" ".join(MANIFEST.values())}


def test_the_best_is_bold_and_equal_digits_are_equally_good(board: Leaderboard) -> None:
    text = markdown(board)
    assert text.count("**60.00**") == 2
    assert "**0.2500**" in text
    assert "| rank | method |" in text
    tables = latex(board)
    assert r"100\% of\_theirs \& more" in tables
    assert tables.count(r"\textbf{60.00}") == 2
    assert r"mAP11 $\uparrow$" in tables
    assert MANIFEST["digest"] in tables
    assert "|" not in re.search(r"begin\{tabular\}\{(.*)\}", tables)[1]  # type: ignore[index]
    for line in tables.splitlines():
        assert line.startswith("%") or re.fullmatch(r"(\\(begin|end)\{tabular\}.*|\\\w+rule|.* \\\\|)", line), line


def test_latex_compiles(board: Leaderboard, tmp_path: Path) -> None:
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("no LaTeX is at hand: the grammar is checked above")
    text = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\\end{document}\n"
    (tmp_path / "table.tex").write_text(text % latex(board), encoding="utf-8")
    command = [program, "-interaction=batchmode", "-halt-on-error", "-no-shell-escape", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, (tmp_path / "table.log").read_text(errors="replace")[-2000:]


def test_the_command_prints_or_writes_each_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_rows(tmp_path / "results.jsonl", rows()[0])
    for form in FORMS:
        assert main(["leaderboard", str(file), "--format", form]) == 0
        printed = capsys.readouterr().out
        assert main(["leaderboard", str(file), "--format", form, "--out", str(tmp_path / form)]) == 0
        assert (tmp_path / form).read_text(encoding="utf-8") == printed
        capsys.readouterr()
