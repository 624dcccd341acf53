"""What the order of a file decided: whenever shuffling changes a number, the result has said so."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.benchmarks.elephant.evaluation import ElephantOptions, evaluate_elephant
from curation.benchmarks.elephant.measures import official
from curation.evaluation.problem import Detections, GroundTruth, Scene
from curation.extensions.detection_ap.coco_summary import coco_average_precision
from curation.extensions.detection_ap.voc import voc_average_precision
from tests.evaluation.elephant_rows import of_evaluated, of_measured
from tests.evaluation.owod_cases import cases, evaluated, once_a_line
from tests.evaluation.owod_reference import Case
from tests.evaluation.reference import World
from tests.evaluation.worlds import columns_of, detections_of, truth_of, worlds
from tests.worlds.boxes import Guess, Thing

BOX, ASIDE = (0, 0, 10, 10), (50, 50, 10, 10)
NOTHING = detections_of([])


def bare(found: Any) -> Any:
    """A result without what it says of the order, and without the last digits of its sums."""
    if isinstance(found, dict):
        return {key: bare(value) for key, value in found.items() if key not in ("decided_by_order", "notes")}
    if isinstance(found, list):
        return [bare(value) for value in found]
    return round(found, 9) if isinstance(found, float) else found


def shuffled(world: World, seed: int) -> World:
    order = random.Random(seed)
    inside, outside = list(world.inside), list(world.outside)
    order.shuffle(inside)
    order.shuffle(outside)
    return replace(world, inside=tuple(inside), outside=tuple(outside))


@settings(max_examples=80)
@given(world=worlds(), seed=st.integers(0, 99))
def test_numbers_of_the_official_code_change_only_where_it_was_told(world: World, seed: int) -> None:
    one, other = (of_measured(official(columns_of(w))) for w in (world, shuffled(world, seed)))
    if bare(one) != bare(other):
        assert one["decided_by_order"] or other["decided_by_order"]


@settings(max_examples=60)
@given(world=worlds(), seed=st.integers(0, 99))
def test_numbers_of_the_papers_profile_change_only_where_it_was_told(world: World, seed: int) -> None:
    options = ElephantOptions(betas=("1.0",))
    one, other = (of_evaluated(evaluate_elephant(columns_of(w), options)) for w in (world, shuffled(world, seed)))
    free = {key: value for key, value in one["paper"].items() if key != "mAP11_ties_in_input_order"}
    again = {key: value for key, value in other["paper"].items() if key != "mAP11_ties_in_input_order"}
    assert bare(free) == bare(again)
    for section in ("paper", "owod"):
        if bare(one[section]) != bare(other[section]):
            assert one[section]["decided_by_order"]
            assert other[section]["decided_by_order"]


@settings(max_examples=80)
@given(case=cases(), seed=st.integers(0, 99))
def test_numbers_of_an_owod_task_change_only_where_it_was_told(case: Case, seed: int) -> None:
    guesses = list(case.guesses)
    random.Random(seed).shuffle(guesses)
    one, other = evaluated(case), evaluated(replace(case, guesses=tuple(guesses)))
    for profile, section in one.items():
        if bare(section) != bare(other[profile]):
            assert section["decided_by_order"], profile
            assert other[profile]["decided_by_order"], profile


@given(case=cases(repeats=True, distinct=True))
def test_distinct_scores_and_copies_of_them_leave_nothing_to_the_order(case: Case) -> None:
    found = evaluated(once_a_line(case))
    assert not found["clean"]["decided_by_order"]


@settings(max_examples=60)
@given(world=worlds(), seed=st.integers(0, 99))
def test_coco_and_voc_numbers_change_only_where_it_was_told(world: World, seed: int) -> None:
    for evaluate in (coco, voc_average_precision):
        one, other = (evaluate(*columns_of(w)[:2]) for w in (world, shuffled(world, seed)))
        if bare(one) != bare(other):
            assert one["decided_by_order"]
            assert other["decided_by_order"]


def coco(truth: GroundTruth, detections: Detections) -> dict[str, Any]:
    return coco_average_precision(truth, detections)


@given(world=worlds(distinct_scores=True))
def test_distinct_scores_that_are_listed_by_score_leave_nothing_to_the_order(world: World) -> None:
    by_score = [tuple(sorted(one, key=lambda guess: -guess.score)) for one in (world.inside, world.outside)]
    world = replace(world, inside=by_score[0], outside=by_score[1])
    found = of_evaluated(evaluate_elephant(columns_of(world), ElephantOptions(variant="all", betas=("1.0",))))
    assert not found["paper"]["decided_by_order"]
    assert found["official"]["decided_by_order"] == 0
    assert not coco(*columns_of(world)[:2])["decided_by_order"]


def test_a_right_and_a_wrong_detection_of_equal_score() -> None:
    # By hand, 11 points: right first is AP 1, wrong first is AP 1/2.
    closed, guesses = truth_of([Thing(0, 0, BOX)], 1, 1), [Guess(0, 0, BOX, 500), Guess(0, 0, ASIDE, 500)]
    for listed, expected in ((guesses, 1.0), (guesses[::-1], 0.5)):
        found = of_measured(official(Scene(closed, detections_of(listed), truth_of([], 0, 1), NOTHING)))
        assert found["mAP"][0] == pytest.approx(expected)
        assert found["decided_by_order"] == 1
        assert voc_average_precision(closed, detections_of(listed))["decided_by_order"] == 1


def test_duplicates_that_are_not_listed_by_score() -> None:
    closed = truth_of([Thing(0, 0, BOX)], 1, 1)
    low_first = detections_of([Guess(0, 0, BOX, 300), Guess(0, 0, BOX, 900)])
    high_first = detections_of([Guess(0, 0, BOX, 900), Guess(0, 0, BOX, 300)])
    found = [of_measured(official(Scene(closed, one, truth_of([], 0, 1), NOTHING))) for one in (low_first, high_first)]
    assert [one["decided_by_order"] for one in found] == [1, 0]


def test_equal_scores_that_all_find_the_same_are_no_decision() -> None:
    closed = truth_of([Thing(0, 0, BOX), Thing(1, 0, BOX)], 2, 1)
    for guesses in (
        [Guess(0, 0, BOX, 500), Guess(1, 0, BOX, 500)],
        [Guess(0, 0, ASIDE, 500), Guess(1, 0, ASIDE, 500)],
        # Two of one object: the first is right and the second wrong, whichever they are.
        [Guess(0, 0, BOX, 500), Guess(0, 0, (1, 0, 10, 10), 500)],
    ):
        found = of_measured(official(Scene(closed, detections_of(guesses), truth_of([], 0, 1), NOTHING)))
        assert not found["decided_by_order"]


def test_a_background_gap_between_equal_scores_is_told() -> None:
    closed = truth_of([Thing(0, 0, BOX)], 1, 1)
    two = detections_of([Guess(0, 0, BOX, 500), Guess(0, 0, BOX, 500)])
    gaps = []
    for scores in ([0.1, 0.2], [0.2, 0.1], [0.1, 0.1]):
        inside = replace(two, background_scores=np.array(scores))
        found = evaluate_elephant(Scene(closed, inside, truth_of([], 0, 1), NOTHING))
        (gap,) = found.shared["background_gaps"]
        gaps.append((gap["mean"], gap["decided_by_order"]))
    assert gaps == [(pytest.approx(0.4), 1), (pytest.approx(0.3), 1), (pytest.approx(0.4), 0)]
