"""Replay against a plain walk through the steps as the specification writes them."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.rules.replay import Replayed, replay
from curation.core.errors import DecisionError
from curation.review.decisions.decision import Decision
from tests.protocols.findmeifyoucan_world import overlap_counts

KINDS = [
    ("auto_override", "keep_near"),
    ("auto_override", "remove"),
    ("manual", "remove"),
    ("manual", "to_near"),
    ("manual", "to_far"),
    ("manual", "keep"),
    ("candidate", "add_near"),
    ("candidate", "add_far"),
    ("candidate", "reject"),
]
IMAGES = st.sets(st.integers(0, 9))


def decided(stage: str, action: str, *numbers: int) -> list[Decision]:
    return [
        Decision(image_id=f"a:{one}", dataset="a", stage=stage, action=action)
        for one in numbers  # type: ignore[arg-type]
    ]


def ids(numbers: set[int]) -> set[str]:
    return {f"a:{one}" for one in numbers}


def by_the_letter(
    start: set[int], remove: set[int], near: set[int], of: dict[tuple[str, str], set[int]]
) -> tuple[set[int], set[int]]:
    """Go image by image through sections 1.3 and 1.4."""
    near_now, far_now = set(), set()
    for one in start:
        removed = (one in remove or one in of[KINDS[1]]) and one not in of[KINDS[0]]
        is_near = (one in near or one in of[KINDS[0]]) and one not in of[KINDS[1]] and not removed
        place = "out" if removed else "near" if is_near else "far"
        if place == "far" and one in of["manual", "remove"]:
            place = "out"
        if place == "far" and one in of["manual", "to_near"]:
            place = "near"
        if place == "near" and one in of["manual", "to_far"]:
            place = "far"
        if place == "near":
            near_now.add(one)
        elif place == "far":
            far_now.add(one)
    return near_now, far_now


@given(
    start=IMAGES,
    remove=IMAGES,
    near=IMAGES,
    asked=st.fixed_dictionaries(dict.fromkeys(KINDS, IMAGES)),
    seed=st.integers(0, 9),
)
def test_replay_is_the_algebra_of_the_specification_in_any_order_of_rows(
    start: set[int], remove: set[int], near: set[int], asked: dict[tuple[str, str], set[int]], seed: int
) -> None:
    asked[KINDS[0]] &= start
    remove, near = remove & start, near & start
    rows = [row for kind, numbers in asked.items() for row in decided(*kind, *sorted(numbers))]
    shuffled = [*rows, *rows]
    random.Random(seed).shuffle(shuffled)
    found = replay(ids(start), remove=ids(remove), near=ids(near), decisions=shuffled)
    assert found == replay(sorted(ids(start)), remove=ids(remove), near=ids(near), decisions=rows)
    near_now, far_now = by_the_letter(start, remove, near, asked)
    assert (set(found.near), set(found.far)) == (ids(near_now), ids(far_now))
    assert set(found.removed) == ids(start - near_now - far_now)
    assert set(found.added_near) == ids(asked["candidate", "add_near"])
    assert set(found.added_far) == ids(asked["candidate", "add_far"])
    assert set(found.shared) == ids(
        (near_now | asked["candidate", "add_near"]) & (far_now | asked["candidate", "add_far"])
    )


def run(*rows: list[Decision], start: int = 6, remove: tuple[int, ...] = (), near: tuple[int, ...] = ()) -> Replayed:
    return replay(
        ids(set(range(start))),
        remove=ids(set(remove)),
        near=ids(set(near)),
        decisions=[one for several in rows for one in several],
        where="pool a",
    )


def test_an_image_kept_and_removed_by_override_ends_in_far_and_is_told() -> None:
    rows = [*decided("auto_override", "keep_near", 1), *decided("auto_override", "remove", 1)]
    found = run(rows, near=(1,))
    assert "a:1" in found.far
    assert any("keep_near" in note and "a:1" in note and "far" in note for note in found.notes)


def test_remove_acts_on_far_alone() -> None:
    found = run(decided("manual", "remove", 0, 1, 2, 99), remove=(2,), near=(1,))
    assert (found.near, found.removed) == (("a:1",), ("a:0", "a:2"))
    told = {one.why: one.images for one in found.ineffective}
    assert told == {
        "are not in far but in near": ("a:1",),
        "were removed before": ("a:2",),
        "are not in the start list": ("a:99",),
    }


def test_candidates_in_the_start_list_or_in_both_splits_are_told() -> None:
    found = run(decided("candidate", "add_near", 1, 50), decided("candidate", "add_far", 50))
    assert found.shared == ("a:1", "a:50")
    assert {one.why for one in found.ineffective} == {"stand in the start list", "are added to far too"}
    assert found.far[1] == "a:1"


def test_a_near_image_outside_the_start_list_is_an_error() -> None:
    with pytest.raises(DecisionError, match="start list") as caught:
        run(decided("auto_override", "keep_near", 77))
    assert caught.value.where == "pool a"
    assert "a:77" in str(caught.value.found)
    # One that is removed by override too is not near, and so no error.
    run(decided("auto_override", "keep_near", 77), decided("auto_override", "remove", 77))


def test_removals_are_counted_by_set_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "selection.json"
    removals = {
        "coco": {"person": [1, 2], "car": [3]},
        "openimages": {"Person": ["a" * 16, "a" * 16], "Other": ["b" * 16]},
    }
    path.write_text(json.dumps({"UNFILTERED_IMAGES_TO_REMOVE": removals}))
    # Of BDD100k's sets, persons alone are removed.
    assert overlap_counts(path) == [
        ("coco (voc)", "car", 1, 1), ("coco (voc)", "person", 2, 2),
        ("openimages (voc)", "Other", 1, 1), ("openimages (voc)", "Person", 2, 1),
        ("coco (bdd)", "person", 2, 2), ("openimages (bdd)", "Person", 2, 1),
    ]  # fmt: skip
