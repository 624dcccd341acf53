"""A leaderboard in the forms of others, held against what those demand."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from curation.benchmarks.leaderboard.board import Leaderboard, leaderboard
from curation.benchmarks.leaderboard.exchange import Origin, csv, hub_entries, latex, markdown
from curation.cli import main
from curation.errors import UsageError
from tests.evaluation.leaderboard_cases import MANIFEST, row_data, write_rows

ORIGIN = Origin(repo="lab/open-set", date="2026-01-02")


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


def test_the_hub_gets_no_number_of_which_lower_is_better(board: Leaderboard, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one model"):
        hub_entries(board, ORIGIN)
    one = leaderboard(write_rows(tmp_path / "one.jsonl", rows()[0]))
    (entry,) = hub_entries(one, ORIGIN)
    assert entry["dataset"] == {"id": "lab/open-set", "task_id": "elephant/closed + wilderness/paper/mAP11"}
    assert (entry["value"], entry["date"]) == (51.0, "2026-01-02")
    assert MANIFEST["digest"] in entry["notes"]
    with pytest.raises(UsageError, match="name a dataset"):
        hub_entries(one, Origin())
    hub = pytest.importorskip("huggingface_hub")
    if hasattr(hub, "parse_eval_result_entries"):
        (read,) = hub.parse_eval_result_entries([entry])
        assert (read.dataset_id, read.value) == ("lab/open-set", 51.0)


@pytest.mark.parametrize("wrong", [{"repo": "../x"}, {"repo": "a b"}, {"date": "02.01.2026"}, {"date": "20260102"}])
def test_names_and_dates_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"name on the hub|Invalid date"):
        Origin(**wrong)


def test_the_command_prints_or_writes_each_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_rows(tmp_path / "results.jsonl", rows()[0])
    origin = ["--repo", "lab/open-set", "--date", "2026-01-02"]
    for form in ("text", "html", "markdown", "csv", "latex", "hub"):
        assert main(["leaderboard", str(file), "--format", form, *origin]) == 0
        printed = capsys.readouterr().out
        assert main(["leaderboard", str(file), "--format", form, "--out", str(tmp_path / form), *origin]) == 0
        assert (tmp_path / form).read_text(encoding="utf-8") == printed
        capsys.readouterr()
    assert yaml.safe_load((tmp_path / "hub").read_text(encoding="utf-8"))[0]["value"] == 51.0
