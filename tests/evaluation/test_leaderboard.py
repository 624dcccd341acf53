"""A leaderboard in the forms of others, held against what those demand."""

import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from curation.benchmarks.leaderboard import FORMS, Group, Leaderboard, csv, latex, leaderboard, markdown, ranked_groups
from curation.cli import main
from curation.core.errors import LeaderboardError, UsageError
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


def test_higher_is_better_where_it_is(tmp_path: Path) -> None:
    def row(name: str, value: float) -> dict[str, Any]:
        metric = {"value": value, "unit": "%", "better": "higher"}
        return row_data(name, metrics={"mAP11": metric})

    group = only(ranked_groups(numbered(tmp_path, row("a", 0.1), row("b", 0.9), row("c", 0.4))))
    assert (group.metric, ranks(group)) == ("mAP11", [("b", 1), ("c", 2), ("a", 3)])


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


def test_with_a_manifest_another_truth_is_told(tmp_path: Path) -> None:
    rows = numbered(tmp_path, row_data("a"), row_data("b", truth="sha256:" + "3" * 64))
    assert "2 different sets of ground-truth files" in only(ranked_groups(rows)).notes()[0]


def test_an_evaluation_that_stands_twice_is_shown_once_and_told(tmp_path: Path) -> None:
    again = row_data("a", 0.25 + 1e-13)
    group = only(ranked_groups(numbered(tmp_path, row_data("a", 0.25), row_data("b", 0.5), again), AWI))
    assert ranks(group) == [("a", 1), ("b", 2)]
    assert group.notes() == ["line 3 says again what line 1 says: shown once"]
    same_name = row_data("a", 0.25, predictions="sha256:" + "7" * 64)
    group = only(ranked_groups(numbered(tmp_path, row_data("a", 0.25), same_name), AWI))
    assert (ranks(group), group.repeated) == ([("a", 1), ("a", 1)], ())


def test_one_method_may_be_read_at_two_points(tmp_path: Path) -> None:
    one, other = (row_data("a", value, operating_point={"t_star": str(value)}) for value in (0.25, 0.26))
    group = only(ranked_groups(numbered(tmp_path, other, one), AWI))
    assert (ranks(group), group.repeated) == ([("a", 1), ("a", 2)], ())


@pytest.mark.parametrize("value", [0.26, None])
def test_two_lines_that_contradict_each_other_are_refused(tmp_path: Path, value: float | None) -> None:
    with pytest.raises(LeaderboardError, match="different numbers") as found:
        ranked_groups(numbered(tmp_path, row_data("a", 0.25), row_data("a", value)))
    assert found.value.where == "lines 1 and 2: a, AWI@0.3"


def test_rows_that_disagree_on_a_number_of_their_own_are_refused(tmp_path: Path) -> None:
    rows = [
        row_data(name, protocol="new", metrics={"x": {"value": 1, "unit": unit, "better": better}})
        for name, unit, better in (("a", "count", "lower"), ("b", "count", "higher"))
    ]
    with pytest.raises(LeaderboardError, match="disagree"):
        ranked_groups(numbered(tmp_path, *rows))


def test_groups_without_a_metric_are_left_out_and_keep_their_numbers(tmp_path: Path) -> None:
    new = row_data("b", protocol="a-new-one", metrics={"x": {"value": 1, "unit": "count", "better": "lower"}})
    rows = numbered(tmp_path, new, row_data("a"))
    assert [group.number for group in ranked_groups(rows)] == [1, 2]
    assert [group.number for group in ranked_groups(rows, AWI)] == [2]
    with pytest.raises(UsageError, match="No row has this metric"):
        ranked_groups(rows, "mAP")


def test_by_default_the_first_number_that_is_defined_ranks(tmp_path: Path) -> None:
    undefined = {"value": None, "unit": "share", "better": "higher"}
    found = {"value": 0.5, "unit": "share", "better": "higher"}
    rows = [
        row_data(name, protocol="imagenet", metrics={"AUROC": found, "CCR@0.001": undefined, "CCR@1": found})
        for name in "ab"
    ]
    group = only(ranked_groups(numbered(tmp_path, *rows)))
    assert (group.metric, list(group.metrics)) == ("CCR@1", ["CCR@0.001", "CCR@1", "AUROC"])


def test_a_file_without_rows_has_no_group() -> None:
    assert ranked_groups([]) == []


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
