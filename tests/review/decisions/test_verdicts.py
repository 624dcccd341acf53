from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import CurationError
from curation.review.decisions import verdicts
from curation.review.decisions.decision import ACTIONS, Decision
from curation.review.decisions.files import DecisionLog, read_decisions
from curation.review.decisions.resolution import standing_verdicts
from curation.review.decisions.verdicts import (
    CONFLICT,
    VerdictBook,
    checked_reason,
    checked_reviewer,
    standing_rows,
    word_of,
)

KEYS = [("pool", f"coco:{number:012d}") for number in range(4)]


def with_batch(keys: list[tuple[str, str]]) -> list[tuple[tuple[str, str], str]]:
    return [(key, "0001") for key in keys]


def test_undo_takes_back_call_by_call_and_gives_back_what_stood_before(tmp_path: Path) -> None:
    book = VerdictBook(tmp_path / "decisions.jsonl", stage="manual")
    book.record(with_batch(KEYS), "far", reason="sea", reviewer="anna")
    book.record(with_batch(KEYS[:2]), "near", reason="", reviewer="anna")
    assert [book.standing(key).verdict for key in KEYS] == ["near", "near", "far", "far"]
    assert len(book.undo("anna")) == 2
    assert [book.standing(key).verdict for key in KEYS] == ["far"] * 4
    assert book.standing(KEYS[0]).texts() == ["anna: far (sea)"]
    assert len(book.undo("anna")) == 4
    assert [book.standing(key).verdict for key in KEYS] == [None] * 4
    assert book.undo("anna") == []
    # Nothing was taken out of the file.
    assert len(read_decisions(tmp_path / "decisions.jsonl").decisions) == 4 + 2 + 2 + 4


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["anna", "ben"]),
        st.sampled_from([*ACTIONS["manual"], "undo"]),
        st.sets(st.integers(0, 3), min_size=1),
    ),
    max_size=12,
)


@given(calls=CALLS)
def test_the_log_alone_tells_what_stands(calls: list[tuple[str, str, set[int]]], tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("log") / "decisions.jsonl"
    book = VerdictBook(path, stage="manual")
    # The model: for each reviewer a list of calls; an undo drops the last call that any image still shows.
    model: dict[str, list[tuple[str, set[int]]]] = {"anna": [], "ben": []}
    for reviewer, verdict, places in calls:
        if verdict == "undo":
            book.undo(reviewer)
            if model[reviewer]:
                model[reviewer].pop()
        else:
            keys = [KEYS[place] for place in sorted(places)]
            book.record(with_batch(keys), verdict, reason="", reviewer=reviewer)
            # An image that says so already is no part of the call.
            says = {one: next((word for word, them in reversed(model[reviewer]) if one in them), "") for one in places}
            if changed := {one for one in places if says[one] != verdict}:
                model[reviewer].append((verdict, changed))
    fresh = VerdictBook(path, stage="manual")
    fresh.refresh()
    for place, key in enumerate(KEYS):
        expected = {
            name: next(verdict for verdict, places in reversed(made) if place in places)
            for name, made in model.items()
            if any(place in places for _, places in made)
        }
        for one in (book, fresh):
            assert {row.reviewer: word_of(row) for row in one.standing(key).verdicts} == expected
    rows = standing_rows(read_decisions(path).decisions) if path.exists() else []
    assert len(rows) == sum(len(fresh.standing(key).verdicts) for key in KEYS)


@pytest.mark.parametrize("name", ["", "  ", None, 7, "a" * 101, "anna, ben", "an\x1b[2Jna", "anna\nben", ["anna"]])
def test_a_reviewer_is_a_short_line_of_text(name: object) -> None:
    with pytest.raises(CurationError):
        checked_reviewer(name)


@pytest.mark.parametrize("reason", [7, "a" * 1001, "\x1b[2J", "two\nlines", "undo", "undo: sea", {"a": 1}])
def test_a_reason_is_a_short_line_of_text_and_no_undo(reason: object) -> None:
    with pytest.raises(CurationError):
        checked_reason(reason)


def test_a_row_that_another_program_appends_in_between_is_not_overlooked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "decisions.jsonl"
    mine, other = (VerdictBook(path, stage="manual") for _ in range(2))
    mine.record(with_batch(KEYS[:1]), "far", reason="", reviewer="anna")

    class Overtaken(DecisionLog):
        def extend(self, decisions: Sequence[Decision]) -> int:
            monkeypatch.undo()
            other.record(with_batch(KEYS[:1]), "near", reason="", reviewer="ben")
            return super().extend(decisions)

    monkeypatch.setattr(verdicts, "DecisionLog", Overtaken)
    mine.record(with_batch(KEYS[1:2]), "far", reason="", reviewer="anna")
    mine.refresh()
    assert mine.standing(KEYS[0]).verdict == CONFLICT
    assert mine.standing(KEYS[1]).verdict == "far"


def test_a_clock_that_is_set_back_changes_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last verdict stands for every reader of the log; dates of a reviewer never go back, across starts neither."""
    path = tmp_path / "decisions.jsonl"
    clock = iter([f"2026-03-29T0{hour}:30:00.000000Z" for hour in (3, 2, 2, 1)])
    monkeypatch.setattr(verdicts, "now", lambda: next(clock))
    for verdict in ("near", "far", "remove"):
        VerdictBook(path, stage="manual").record(with_batch(KEYS[:1]), verdict, reason="", reviewer="anna")
    rows = read_decisions(path).decisions
    assert [row.date[11:] for row in rows] == ["03:30:00.000000Z", "03:30:00.000001Z", "03:30:00.000002Z"]
    assert [row.action for row in standing_verdicts(rows)] == ["remove"]
    # Another reviewer's clock is another's.
    VerdictBook(path, stage="candidate").record(with_batch(KEYS[:1]), "far", reason="", reviewer="ben")
    assert read_decisions(path).decisions[-1].date == "2026-03-29T01:30:00.000000Z"
