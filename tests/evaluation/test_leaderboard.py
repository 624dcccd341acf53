"""A leaderboard in the forms of others, held against what those demand."""

import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from curation.benchmarks.leaderboard import Group, Leaderboard, latex, leaderboard, markdown, ranked_groups
from curation.core.errors import LeaderboardError
from tests.evaluation.leaderboard_cases import MANIFEST, numbered, row_data, write_rows

AWI = "AWI@0.3"


def only(groups: list[Group]) -> Group:
    (group,) = groups
    return group


def ranks(group: Group) -> list[tuple[str, int | None]]:
    return [(one.row.name, one.rank) for one in group.rows]


def test_lower_is_better_where_it_is_and_equal_numbers_share_a_rank(tmp_path: Path) -> None:
    values = {"a": 0.3, "b": 0.1, "c": 0.3, "d": 0.7, "e": None, "f": 0}
    rows = numbered(tmp_path, *(row_data(name, value) for name, value in values.items()))
    group = only(ranked_groups(rows, AWI))
    assert ranks(group) == [("f", 1), ("b", 2), ("a", 3), ("c", 3), ("d", 5), ("e", None)]


def test_the_order_of_the_lines_has_no_effect(tmp_path: Path) -> None:
    data = [
        row_data(name, value, variant=variant)
        for name, value in (("a", 0.5), ("b", 0.5), ("c", None), ("d", 0.1))
        for variant in ("paper", "official")
    ]
    expected = [ranks(group) for group in ranked_groups(numbered(tmp_path, *data), AWI)]
    rng = random.Random(3)
    for _ in range(5):
        rng.shuffle(data)
        assert [ranks(group) for group in ranked_groups(numbered(tmp_path, *data), AWI)] == expected


OTHERS = {
    "protocol": {"protocol": "new"},
    "manifest": {"manifest": MANIFEST | {"digest": "sha256:" + "9" * 64}},
    "part": {"part": "closed + wr1"},
    "variant": {"variant": "official"},
    "settings": {"settings": {"difficult": "count"}},
    "program": {"evaluator": {"curation": "1.2.4", "algorithm": 1}},
    "algorithm": {"evaluator": {"curation": "1.2.3", "algorithm": 2}},
    "no manifest": {"manifest": None, "pinned": False},
    "images not pinned": {"pinned": False},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_rows_of_another_ground_are_never_ranked_together(tmp_path: Path, other: dict[str, Any]) -> None:
    groups = ranked_groups(numbered(tmp_path, row_data("a", 0.1), row_data("b", 0.2, **other)), AWI)
    assert sorted(ranks(group) for group in groups) == [[("a", 1)], [("b", 1)]]


def test_without_a_manifest_the_truth_tells_rows_apart(tmp_path: Path) -> None:
    plain = {"manifest": None, "pinned": False}
    other = plain | {"truth": "sha256:" + "3" * 64}
    rows = numbered(tmp_path, row_data("a", **plain), row_data("b", **plain), row_data("c", **other))
    assert sorted(len(group.rows) for group in ranked_groups(rows)) == [1, 2]


def test_an_evaluation_that_stands_twice_is_shown_once_and_told(tmp_path: Path) -> None:
    again = row_data("a", 0.25 + 1e-13)
    group = only(ranked_groups(numbered(tmp_path, row_data("a", 0.25), row_data("b", 0.5), again), AWI))
    assert ranks(group) == [("a", 1), ("b", 2)]
    assert group.notes() == ["line 3 duplicates line 1; shown once"]
    same_name = row_data("a", 0.25, predictions="sha256:" + "7" * 64)
    group = only(ranked_groups(numbered(tmp_path, row_data("a", 0.25), same_name), AWI))
    assert (ranks(group), group.repeated) == ([("a", 1), ("a", 1)], ())


@pytest.mark.parametrize("value", [0.26, None])
def test_two_lines_that_contradict_each_other_are_refused(tmp_path: Path, value: float | None) -> None:
    with pytest.raises(LeaderboardError, match="different numbers") as found:
        ranked_groups(numbered(tmp_path, row_data("a", 0.25), row_data("a", value)))
    assert found.value.where == "lines 1 and 2: a, AWI@0.3"


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
