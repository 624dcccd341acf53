import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.benchmarks.leaderboard import grouped
from curation.errors import LeaderboardError
from curation.evaluation import leaderboard_rows
from curation.evaluation.leaderboard_rows import Row, append_rows, read_rows
from tests.evaluation.leaderboard_cases import row_data, write_rows


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.jsonl"
    first, second = (msgspec.convert(row_data(name), type=Row) for name in ("ours", "theirs é"))
    append_rows(path, [first])
    append_rows(path, [second, first])
    assert read_rows(path).rows == ((1, first), (2, second), (3, first))


def test_blank_lines_are_passed_over_and_a_torn_last_line_is_told(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", row_data("a"), row_data("b"))
    text = path.read_text()
    path.write_text(text.replace("\n", "\r\n\n") + '{"schema_version": 1, "na\x1bme')
    read = read_rows(path)
    assert [line for line, _ in read.rows] == [1, 3]
    assert read.torn == '{"schema_version": 1, "na?me'


def damage(change: Callable[[dict[str, Any]], Any]) -> str:
    data = copy.deepcopy(row_data("a"))
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "no row of a leaderboard"),
        ("7", "no row of a leaderboard"),
        ("{", "not JSON"),
        ("[" * 30_000, "not JSON"),
        ('{"schema_version": 1, "schema_version": 1}', "not JSON"),
        (damage(lambda row: row.update(schema_version=3)), "schema version.*\n(.*\n)*.*pip install"),
        (damage(lambda row: row.update(schema_version=1)), "schema version.*\n(.*\n)*.*evaluate again"),
        (damage(lambda row: row.update(clock="now")), "no row of a leaderboard"),
        (damage(lambda row: row.pop("part")), "no row of a leaderboard"),
        (damage(lambda row: row.update(name=" ")), "no row of a leaderboard"),
        (damage(lambda row: row.update(name="a\x1b[2J")), "Invalid text in a row"),
        (damage(lambda row: row.update(variant="p" * 201)), "Invalid text in a row"),
        (damage(lambda row: row["settings"].update({"k": "a\nb"})), "Invalid text in a row"),
        (damage(lambda row: row.update(predictions="sha256:no")), "no row of a leaderboard"),
        (damage(lambda row: row.update(manifest=None)), "pinned by a manifest"),
        (damage(lambda row: row.update(metrics={})), "no row of a leaderboard"),
        (damage(lambda row: row.update(reported={str(k): 1 for k in range(65)})), "no row of a leaderboard"),
        (damage(lambda row: row.update(reported={"x": -1})), "no row of a leaderboard"),
        (damage(lambda row: row["metrics"]["mAP11"].update(value="0.5")), "no row of a leaderboard"),
        (damage(lambda row: row["metrics"]["mAP11"].update(value=True)), "no row of a leaderboard"),
        (damage(lambda row: row["metrics"]["mAP11"].update(value=float("nan"))), "not JSON"),
        (damage(lambda row: row["metrics"]["mAP11"].update(value=0)).replace(": 0,", ": 1e999,"), "outside the range"),
        (damage(lambda row: row["metrics"]["AWI@0.3"].update(better="higher")), "what the benchmark defines"),
        (damage(lambda row: row["metrics"]["mAP11"].update(unit="share")), "what the benchmark defines"),
        (
            damage(lambda row: row["metrics"]["mAP11"].update(value=0)).replace(": 0,", f": 1{'0' * 400},"),
            "no row of a leaderboard",
        ),
        (damage(lambda row: row["reported"].update(lost=-(10**40))), "no row of a leaderboard"),
        (damage(lambda row: row["evaluator"].update(algorithm=10**40)), "no row of a leaderboard"),
        ('{"x": "' + "y" * (64 << 10) + '"}', "too long"),
    ],
)
def test_a_line_that_is_no_row_is_one_error_that_names_it(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row_data("a")) + "\n" + line + "\n")
    with pytest.raises(LeaderboardError, match=message) as found:
        grouped(read_rows(path).rows)
    assert "line 2" in str(found.value.where)
    assert str(found.value).replace("\n", "").isprintable()


def test_another_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for work in (read_rows, lambda path: append_rows(path, [])):
        with pytest.raises(LeaderboardError, match="JSON Lines"):
            work(tmp_path / "results.json")
    monkeypatch.setattr(leaderboard_rows, "MAX_BYTES", 10)
    with pytest.raises(LeaderboardError, match="too large"):
        read_rows(write_rows(tmp_path / "rows.jsonl", row_data("a")))


def test_a_row_that_no_reader_would_take_is_not_written(tmp_path: Path) -> None:
    long = {f"{key:0>199}": "v" * 199 for key in range(200)}
    row = msgspec.structs.replace(msgspec.convert(row_data("a"), type=Row), operating_point=long)
    with pytest.raises(LeaderboardError, match="too long"):
        append_rows(tmp_path / "rows.jsonl", [row])
    assert not list(tmp_path.iterdir())
