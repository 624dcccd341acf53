from pathlib import Path
from typing import Any

import pytest

from curation.benchmarks.leaderboard import leaderboard
from curation.benchmarks.registry import report_of
from curation.errors import LeaderboardError, UsageError
from curation.evaluation.leaderboard_rows import Row, rows_of
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


def row(name: str | None = None, **more: object) -> Row:
    (one,) = rows_of(voc_result(**more), name)  # type: ignore[arg-type]
    return one


def test_a_row_holds_numbers_with_their_meaning_and_what_they_rest_on() -> None:
    one = row()
    assert (one.name, one.predictions, one.reported) == ("model", DIGEST, {"stray": 2})
    assert {name: (found.value, found.better) for name, found in one.metrics.items()} == {
        "mAP11": (50.0, "higher"),
        "mAP_area": (None, "higher"),
    }
    assert not one.pinned


def test_the_truth_is_named_by_all_that_changes_it() -> None:
    ways = [row(), row(truth="c"), row(dropped=1), row(classes="d"), row(classes="e")]
    assert len({one.truth for one in ways}) == len(ways)
    assert row("other", file="again.json").truth == row().truth


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\nb", "a\x1b[2J", "a\u202eb"])
def test_a_name_that_no_table_can_show_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="Invalid method name"):
        row(name)


def test_a_file_name_that_no_table_can_show_asks_for_a_name() -> None:
    with pytest.raises(UsageError, match="Invalid method name") as found:
        row(file="a\x1b[2J.json")
    assert "--name" in str(found.value.hint)
    assert row("mine", file="a\x1b[2J.json").name == "mine"


def test_one_name_for_several_classifiers_is_refused() -> None:
    scored = [
        Scored(method=name, variant="exact", truth={}, predictions={}, of_several=True, found=measured)
        for name in ("a", "b")
        for measured in (Measured([Value("accuracy", 0.5)], {}),)
    ]
    result = Result(report_of("imagenet"), {}, scored=scored)
    assert [found.name for found in rows_of(result)] == ["a", "b"]
    with pytest.raises(UsageError, match="several classifiers"):
        rows_of(result, "mine")


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
