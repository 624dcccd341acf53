"""From all verdicts to those replayed: later ones replace earlier ones, and differing ones follow a rule."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.canonical import sha256_of_value
from curation.core.errors import DecisionConflictError, UsageError
from curation.review.decisions.decision import Decision, row_of
from curation.review.decisions.resolution import RULES, Rule, decisions_digest, resolve, standing_verdicts


def verdict(image: int, action: str, reviewer: str = "", date: str = "", **fields: str) -> Decision:
    return Decision(
        image_id=f"coco:{image:012d}",
        dataset="coco",
        stage="manual",
        action=action,  # type: ignore[arg-type]
        reviewer=reviewer,
        date=date,
        **fields,
    )


ONE_EACH = st.dictionaries(
    st.tuples(st.integers(0, 4), st.sampled_from(["anna", "ben", "cleo", "dan"])),
    st.sampled_from(["keep", "remove", "to_near", "unsure"]),
    max_size=16,
).map(lambda given: [verdict(image, action, name) for (image, name), action in given.items()])


def actions(rows: tuple[Decision, ...]) -> list[tuple[int, str, str]]:
    return [(int(one.image_id[5:]), one.reviewer, one.action) for one in rows]


def test_dates_go_before_the_order_of_rows() -> None:
    rows = [
        verdict(1, "remove", "anna", "2025-03-02"),
        verdict(1, "keep", "anna", "2025-03-01T23:59:59Z"),
        verdict(1, "to_far", "anna"),
    ]
    for order in (rows, rows[::-1]):
        assert actions(standing_verdicts(order)) == [(1, "anna", "remove")]


def test_unnamed_verdicts_all_stand_and_may_conflict() -> None:
    rows = [verdict(1, "remove"), verdict(1, "to_near"), verdict(2, "remove"), verdict(2, "remove", reason="x")]
    with pytest.raises(DecisionConflictError, match=r"on 1 image\b") as caught:
        resolve(rows)
    assert "remove by unnamed; to_near by unnamed" in str(caught.value.where)
    found = resolve(rows, allow_conflicts=True)
    assert len(found.decisions) == 4
    assert [one.outcome for one in found.both] == [None]


def test_majority_and_ties() -> None:
    rows = [
        *(verdict(1, action, name) for name, action in zip("abc", ("remove", "keep", "remove"), strict=True)),
        *(verdict(2, action, name) for name, action in zip("ab", ("remove", "keep"), strict=True)),
        *(verdict(3, action, name) for name, action in zip("abc", ("remove", "unsure", "unsure"), strict=True)),
    ]
    found = resolve(rows, "majority")
    assert actions(found.decisions) == [(1, "a", "remove"), (1, "c", "remove"), (3, "a", "remove")]
    assert [(one.image_id[-1], one.outcome) for one in found.conflicts] == [("1", "remove"), ("2", None)]
    assert [one.image_id[-1] for one in found.undecided] == ["2"]


def test_seniors_in_their_order() -> None:
    rows = [
        *(verdict(1, action, name) for name, action in zip("abc", ("remove", "keep", "keep"), strict=True)),
        *(verdict(2, action, name) for name, action in zip("bc", ("remove", "keep"), strict=True)),
        *(verdict(3, action, name) for name, action in zip("cd", ("remove", "keep"), strict=True)),
        *(verdict(4, action, name) for name, action in zip("acd", ("unsure", "remove", "keep"), strict=True)),
    ]
    found = resolve(rows, "senior", seniors=["a", "b"])
    assert actions(found.decisions) == [(1, "a", "remove"), (2, "b", "remove")]
    assert [one.image_id[-1] for one in found.undecided] == ["3", "4"]


def test_rules_that_cannot_work_are_refused() -> None:
    for rule, seniors in (("senior", []), ("majority", ["a"]), ("dice", [])):
        with pytest.raises(UsageError):
            resolve([], rule, seniors=seniors)  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", RULES)
@given(rows=ONE_EACH, seed=st.integers(0, 99))
def test_order_and_repeats_change_nothing_and_resolving_again_neither(
    rule: Rule, rows: list[Decision], seed: int
) -> None:
    seniors = ["ben", "anna"] if rule == "senior" else []
    found = resolve(rows, rule, seniors=seniors, allow_conflicts=True)
    shuffled = [*rows, *rows]
    random.Random(seed).shuffle(shuffled)
    again = resolve(shuffled, rule, seniors=seniors, allow_conflicts=True)
    assert (again.decisions, again.conflicts, again.digest) == (found.decisions, found.conflicts, found.digest)
    assert again.repeated == len(rows)
    assert resolve(found.decisions, rule, seniors=seniors, allow_conflicts=True).decisions == found.decisions
    assert set(found.decisions) <= set(rows)


@given(rows=ONE_EACH)
def test_majority_against_a_count_of_votes(rows: list[Decision]) -> None:
    found = resolve(rows, "majority")
    for image in {one.image_id for one in rows}:
        votes = [one.action for one in rows if one.image_id == image and one.action != "unsure"]
        chosen = {one.action for one in found.decisions if one.image_id == image}
        most = max((votes.count(action) for action in votes), default=0)
        winners = {action for action in votes if votes.count(action) == most}
        expected = {"unsure"} if not votes else winners if len(winners) == 1 else set()
        assert chosen == expected


def test_the_digest_is_that_of_the_sorted_rows() -> None:
    rows = [verdict(2, "keep"), verdict(1, "remove", "anna", "2025-03-01")]
    assert decisions_digest([*rows, *rows]) == sha256_of_value([row_of(rows[1]), row_of(rows[0])])
    assert decisions_digest([]) == sha256_of_value([])
