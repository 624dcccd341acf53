"""Rows of a leaderboard: made of a result, written, and read again by a reader that trusts no line."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.benchmarks.leaderboard import leaderboard, ranked_groups
from curation.benchmarks.registry import report_of
from curation.core.errors import LeaderboardError, UsageError
from curation.evaluation.leaderboard_rows import LeaderboardRow, append_rows, read_leaderboard_rows, rows_of
from curation.evaluation.measures import Measured, Value
from curation.evaluation.result import Result, Scored, stem_of, truth_digests
from tests.evaluation.leaderboard_cases import row_data, write_rows

DIGEST = "sha256:" + "b" * 64


def voc_result(*, file: str = "model.json", truth: str = "a", dropped: int = 0, classes: str = "") -> Result:
    found = {"name": file, "sha256": DIGEST, "rows": 3, "reported": {"stray": 2}}
    data: dict[str, Any] = {
        "manifest": None,
        "option_files": {"classes": {"name": "c.json", "sha256": f"sha256:{classes * 64}"}} if classes else {},
        "inputs": {
            "test": {
                "truth": {
                    "files": [{"name": "t.json", "sha256": "sha256:" + truth * 64, "rows": 1}],
                    "reported": {"boxes": dropped} if dropped else {},
                },
                "detections": found,
            }
        },
    }
    scored = Scored(
        part="test",
        method=stem_of(found),
        variant="voc",
        truth=truth_digests(data),
        predictions={"test": found},
        found=Measured([Value("mAP11", 50.0), Value("mAP_area", None)], {}),
    )
    return Result(report_of("voc"), data, scored=[scored])


def row(name: str | None = None, **more: object) -> LeaderboardRow:
    (one,) = rows_of(voc_result(**more), name)  # type: ignore[arg-type]
    return one


def test_the_truth_is_named_by_all_that_changes_it() -> None:
    ways = [row(), row(truth="c"), row(dropped=1), row(classes="d"), row(classes="e")]
    assert len({one.truth for one in ways}) == len(ways)
    assert row("other", file="again.json").truth == row().truth


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\nb", "a\x1b[2J", "a\u202eb"])
def test_a_name_that_no_table_can_show_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="Invalid method name"):
        row(name)


@pytest.mark.parametrize(
    ("protocol", "name", "unit", "better", "value", "holds"),
    [
        ("owod", "mAP_both", "%", "higher", 8139, False),
        ("owod", "mAP_both", "%", "higher", 81.39, True),
        ("owod", "mAP_both", "%", "higher", 100.00000000000001, True),
        ("owod", "mAP_both", "%", "higher", -0.5, False),
        ("elephant", "mAP11", "%", "higher", 8139, False),
        ("elephant", "mAP11", "%", "higher", 100.00000000000001, True),
        ("elephant", "mAP11", "%", "higher", -1, False),
        ("elephant", "AWI@0.3", "ratio", "lower", -1.5, False),
        ("elephant", "AWI@0.3", "ratio", "lower", -1, True),
        ("elephant", "AWI@0.3", "ratio", "lower", 12.5, True),
        ("owod", "AOSE", "count", "lower", -3, False),
        ("owod", "AOSE", "count", "lower", 10**9, True),
        ("findmeifyoucan", "nOSE", "%", "lower", 130.0, True),
        ("somebody's", "AP", "%", "higher", 8139, False),
        ("somebody's", "energy", "score", "higher", -8139, True),
        ("somebody's", "seconds", "s", "lower", 8139, True),
    ],
)
def test_a_number_outside_the_range_of_its_measure_is_refused(
    protocol: str, name: str, unit: str, better: str, value: float, holds: bool, tmp_path: Path
) -> None:
    """81.39 % that was multiplied by a hundred once more stood first."""
    metrics = {name: {"value": value, "unit": unit, "better": better}}
    path = write_rows(tmp_path / "rows.jsonl", row_data("theirs", protocol=protocol, metrics=metrics))
    if holds:
        assert leaderboard(path, metric=name).groups
        return
    with pytest.raises(LeaderboardError, match="outside the range") as found:
        leaderboard(path, metric=name)
    assert found.value.found == str(value)
    assert str(found.value.where).endswith(name)


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.jsonl"
    first, second = (msgspec.convert(row_data(name), type=LeaderboardRow) for name in ("ours", "theirs é"))
    append_rows(path, [first])
    append_rows(path, [second, first])
    assert read_leaderboard_rows(path).rows == ((1, first), (2, second), (3, first))


def test_blank_lines_are_passed_over_and_a_torn_last_line_is_told(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", row_data("a"), row_data("b"))
    text = path.read_text()
    path.write_text(text.replace("\n", "\r\n\n") + '{"schema_version": 1, "na\x1bme')
    read = read_leaderboard_rows(path)
    assert [line for line, _ in read.rows] == [1, 3]
    assert read.torn == '{"schema_version": 1, "na?me'


def damage(change: Callable[[dict[str, Any]], Any]) -> str:
    data = copy.deepcopy(row_data("a"))
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "not a leaderboard row"),
        ("7", "not a leaderboard row"),
        ("{", "not JSON"),
        ("[" * 30_000, "not JSON"),
        ('{"schema_version": 1, "schema_version": 1}', "not JSON"),
        (damage(lambda row: row.update(schema_version=3)), "schema version.*\n(.*\n)*.*install a newer"),
        (damage(lambda row: row.update(schema_version=1)), "schema version.*\n(.*\n)*.*curation evaluate"),
        (damage(lambda row: row.update(clock="now")), "not a leaderboard row"),
        (damage(lambda row: row.pop("part")), "not a leaderboard row"),
        (damage(lambda row: row.update(name=" ")), "not a leaderboard row"),
        (damage(lambda row: row.update(name="a\x1b[2J")), "Invalid text in a row"),
        (damage(lambda row: row.update(variant="p" * 201)), "Invalid text in a row"),
        (damage(lambda row: row["settings"].update({"k": "a\nb"})), "Invalid text in a row"),
        (damage(lambda row: row.update(predictions="sha256:no")), "not a leaderboard row"),
        (damage(lambda row: row.update(manifest=None)), "pinned by a manifest"),
        (damage(lambda row: row.update(metrics={})), "not a leaderboard row"),
        (damage(lambda row: row.update(reported={str(k): 1 for k in range(65)})), "not a leaderboard row"),
        (damage(lambda row: row.update(reported={"x": -1})), "not a leaderboard row"),
        (damage(lambda row: row["metrics"]["mAP11"].update(value="0.5")), "not a leaderboard row"),
        (damage(lambda row: row["metrics"]["mAP11"].update(value=True)), "not a leaderboard row"),
        (damage(lambda row: row["metrics"]["mAP11"].update(value=float("nan"))), "not JSON"),
        (damage(lambda row: row["metrics"]["mAP11"].update(value=0)).replace(": 0,", ": 1e999,"), "outside the range"),
        (damage(lambda row: row["metrics"]["AWI@0.3"].update(better="higher")), "what the benchmark defines"),
        (damage(lambda row: row["metrics"]["mAP11"].update(unit="share")), "what the benchmark defines"),
        (
            damage(lambda row: row["metrics"]["mAP11"].update(value=0)).replace(": 0,", f": 1{'0' * 400},"),
            "not a leaderboard row",
        ),
        (damage(lambda row: row["reported"].update(lost=-(10**40))), "not a leaderboard row"),
        (damage(lambda row: row["evaluator"].update(algorithm=10**40)), "not a leaderboard row"),
        ('{"x": "' + "y" * (64 << 10) + '"}', "too long"),
    ],
)
def test_a_line_that_is_no_row_is_one_error_that_names_it(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row_data("a")) + "\n" + line + "\n")
    with pytest.raises(LeaderboardError, match=message) as found:
        ranked_groups(read_leaderboard_rows(path).rows)
    assert "line 2" in str(found.value.where)
    assert str(found.value).replace("\n", "").isprintable()
