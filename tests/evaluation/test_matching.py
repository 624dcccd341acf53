import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from curation.evaluation import matching
from curation.evaluation.matching import best_overlap, thresholds
from tests.evaluation import reference
from tests.evaluation.reference import World
from tests.evaluation.worlds import columns_of, detections_of, match, truth_of, worlds
from tests.worlds.boxes import Guess, Thing

UNIT = (0, 0, 10, 10)


@pytest.mark.parametrize(("strict", "outcome"), [(False, 1), (True, 0)])
def test_an_iou_of_exactly_one_half_matches_only_where_equality_counts(strict: bool, outcome: int) -> None:
    truth = truth_of([Thing(0, 0, UNIT)], 1, 1)
    found = match(truth, detections_of([Guess(0, 0, (0, 0, 10, 5), 500)]), strict=strict)
    assert found.outcome.tolist() == [outcome]
    assert found.iou.tolist() == [0.5]


def test_the_best_object_counts_even_when_it_is_taken() -> None:
    # The second detection overlaps both objects enough, the taken one more: VOC calls it a false positive.
    truth = truth_of([Thing(0, 0, UNIT), Thing(0, 0, (3, 0, 10, 10))], 1, 1)
    found = match(truth, detections_of([Guess(0, 0, UNIT, 900), Guess(0, 0, (1, 0, 10, 10), 800)]))
    assert found.truth.tolist() == [0, 0]
    assert found.outcome.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("thing", "difficult", "outcome", "n"),
    [
        (Thing(0, 0, UNIT, difficult=True), "ignore", -1, 0),
        (Thing(0, 0, UNIT, difficult=True), "count", 1, 1),
        (Thing(0, 0, UNIT, crowd=True), "ignore", -1, 0),
        (Thing(0, 0, UNIT, crowd=True), "count", -1, 0),
        (Thing(0, -1, UNIT), "ignore", 0, 0),
    ],
)
def test_difficult_crowd_and_unknown_objects(thing: Thing, difficult: str, outcome: int, n: int) -> None:
    found = match(truth_of([thing], 1, 1), detections_of([Guess(0, 0, UNIT, 500)]), difficult=difficult)  # type: ignore[arg-type]
    assert found.outcome.tolist() == [outcome]
    assert found.n_positive.tolist() == [n]


@pytest.mark.parametrize("n", [1, 3, 7, 10, 244])
def test_thresholds_reach_a_recall_exactly_when_ten_tp_is_at_least_k_n(n: int) -> None:
    truth = truth_of([Thing(image, 0, UNIT) for image in range(n)], n, 1)
    detections = detections_of([Guess(image, 0, UNIT, 999 - image) for image in range(n)])
    found = thresholds(match(truth, detections), detections, tuple(range(1, 11)))
    needed = [next(tp for tp in range(1, n + 1) if tp * 10 >= k * n) for k in range(1, 11)]
    assert found.tp[:, 0].tolist() == needed
    assert found.threshold[:, 0].tolist() == [(999 - tp + 1) / 1000 for tp in needed]


def test_detections_tied_with_the_threshold_count_and_an_unreachable_recall_has_none() -> None:
    truth = truth_of([Thing(0, 0, UNIT), Thing(1, 0, UNIT)], 2, 2)
    detections = detections_of([Guess(0, 0, UNIT, 500), Guess(1, 0, (50, 50, 5, 5), 500)])
    found = thresholds(match(truth, detections), detections, (5, 6))
    assert (found.threshold[0, 0], found.tp[0, 0], found.fp[0, 0]) == (0.5, 1, 1)
    assert np.isnan(found.threshold[1, 0])
    assert np.isnan(found.threshold[:, 1]).all()


@settings(max_examples=60)
@given(world=worlds())
def test_best_overlap_is_the_first_object_of_highest_iou(world: World) -> None:
    closed, inside, _, _ = columns_of(world)
    for same_class in (False, True):
        position, iou = best_overlap(closed, inside, same_class=same_class)
        for k, guess in enumerate(world.inside):
            things = [(n, t) for n, t in enumerate(world.closed) if t.label == guess.label or not same_class]
            best, overlap = reference.best_of(guess, things)
            assert position[k] == best
            assert iou[k] == pytest.approx(float(overlap) if best >= 0 else 0.0, abs=1e-15)


def test_chunks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)

    def box() -> tuple[int, int, int, int]:
        return rng.randint(1, 8), rng.randint(1, 8), rng.randint(1, 8), rng.randint(1, 8)

    things = [Thing(image, rng.randint(-1, 2), box()) for image in range(9) for _ in range(9)]
    guesses = [Guess(rng.randrange(9), 0, box(), 500) for _ in range(90)]
    truth, detections = truth_of(things, 9, 3), detections_of(guesses)
    whole = best_overlap(truth, detections, same_class=False)
    monkeypatch.setattr(matching, "_PAIRS_AT_ONCE", 7)
    pieces = best_overlap(truth, detections, same_class=False)
    assert all(np.array_equal(a, b) for a, b in zip(whole, pieces, strict=True))


@settings(max_examples=40)
@given(world=worlds())
def test_moving_everything_moves_no_outcome(world: World) -> None:
    closed, inside, _, _ = columns_of(world)
    shift = np.array([64.0, 32.0, 0.0, 0.0])
    moved = match(replace(closed, boxes=closed.boxes + shift), replace(inside, boxes=inside.boxes + shift))
    assert moved.outcome.tolist() == match(closed, inside).outcome.tolist()
