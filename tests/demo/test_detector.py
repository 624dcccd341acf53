"""The detector's parts against plain oracles, and the whole against chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.demo.detector import (
    Detector,
    Example,
    loss_gradient,
    overlaps,
    softmax,
    suppress,
    train,
    unexplained,
)
from curation.demo.world import KNOWN, UNKNOWN, draw_scene
from curation.errors import UsageError

BOXES = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 20), st.integers(1, 20), st.integers(0, 50)),
    max_size=12,
)


def plain_iou(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    width = min(first[0] + first[2], second[0] + second[2]) - max(first[0], second[0])
    height = min(first[1] + first[3], second[1] + second[3]) - max(first[1], second[1])
    common = max(width, 0) * max(height, 0)
    return common / (first[2] * first[3] + second[2] * second[3] - common)


@given(BOXES)
def test_suppress_equals_the_plain_loop(rows: list[tuple[int, ...]]) -> None:
    kept: list[int] = []
    for row in sorted(range(len(rows)), key=lambda row: -rows[row][4]):
        if all(plain_iou(rows[row], rows[other]) <= 0.5 for other in kept):
            kept.append(row)
    table = np.array(rows, np.float64).reshape(-1, 5)
    assert suppress(table[:, :4], table[:, 4], 0.5).tolist() == kept


def test_gradient_equals_finite_differences() -> None:
    rng = np.random.default_rng(3)
    inputs, weights = rng.normal(size=(12, 5)), rng.normal(size=(5, 4))
    targets = np.eye(4)[rng.integers(0, 4, 12)]

    def loss(values: np.ndarray) -> float:
        return float(-(targets * np.log(softmax(inputs @ values))).sum() / 12 + 0.5e-3 * (values**2).sum())

    numeric = np.zeros_like(weights)
    for place in np.ndindex(weights.shape):
        step = np.zeros_like(weights)
        step[place] = 1e-6
        numeric[place] = (loss(weights + step) - loss(weights - step)) / 2e-6
    assert loss_gradient(weights, inputs, targets) == pytest.approx(numeric, abs=1e-7)


def test_unexplained_is_the_distance_from_a_plane() -> None:
    # A plane through (0, 0, 5), spanned by the first two axes: what is left is the height above it.
    centres, directions = np.array([[0.0, 0.0, 5.0]]), np.eye(3)[None, :, :2]
    points = np.array([[7.0, -2.0, 5.0], [1.0, 1.0, 9.0], [0.0, 0.0, 0.0]])
    assert unexplained(points, centres, directions)[:, 0] == pytest.approx([0, 4, 5])


def draw_example(names: list[str], rng: np.random.Generator) -> Example:
    photo, things = draw_scene(names, rng)
    boxes = np.array([thing.box for thing in things], np.float64).reshape(-1, 4)
    return Example(photo, boxes, np.array([KNOWN.index(thing.name) for thing in things], np.int64))


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    rng = np.random.default_rng(5)
    return [draw_example([str(rng.choice(KNOWN)) for _ in range(2)], rng) for _ in range(80)]


@pytest.fixture(scope="module")
def detector(examples: list[Example]) -> Detector:
    return train(examples, len(KNOWN))


@pytest.mark.parametrize("cautious", [False, True])
def test_it_finds_lone_known_things_far_above_chance(detector: Detector, cautious: bool) -> None:
    rng = np.random.default_rng(9)
    right = 0
    for turn in range(60):
        photo, (thing,) = draw_scene([KNOWN[turn % len(KNOWN)]], rng)
        regions = detector.look(photo)
        found = max(detector.detect(regions, cautious=cautious), key=lambda one: one["score"], default=None)
        if found and KNOWN[found["label"]] == thing.name:
            right += overlaps(np.array([found["bbox"]], float), np.array([thing.box], float))[0, 0] >= 0.5
    assert right / 60 > 0.6  # naming a class at random would be right in 1 of 6


def test_caution_costs_unknown_things_more_than_known_ones(detector: Detector) -> None:
    kept = {}
    for names in (KNOWN, UNKNOWN):
        rng = np.random.default_rng(11)
        photos = [draw_scene([names[turn % len(names)]], rng)[0] for turn in range(54)]
        seen = [detector.look(photo) for photo in photos]
        totals = {
            cautious: sum(one["score"] for regions in seen for one in detector.detect(regions, cautious=cautious))
            for cautious in (False, True)
        }
        kept[names] = totals[True] / totals[False]
    assert kept[UNKNOWN] < kept[KNOWN] - 0.05


def test_scores_of_a_region_sum_to_one_at_most(detector: Detector, examples: list[Example]) -> None:
    photo = examples[0].photo
    for cautious in (False, True):
        for found in detector.detect(detector.look(photo), cautious=cautious):
            assert 0 < found["score"] <= 1
            assert 0 <= found["background_score"] <= 1
            assert found["score"] + found["background_score"] <= 1 + 2e-6


def test_training_twice_gives_the_same_weights(examples: list[Example]) -> None:
    first, second = (train(examples[:40], 6) for _ in range(2))
    assert np.array_equal(first.weights, second.weights)
    assert np.array_equal(first.reach, second.reach)


def test_a_class_without_examples_is_refused(examples: list[Example]) -> None:
    with pytest.raises(UsageError, match="a class less than twice"):
        train(examples[:40], len(KNOWN) + 1)
