"""The detector's parts against plain oracles, and the whole against chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.demo.detector import Example, loss_gradient, overlaps, softmax, suppress, train
from curation.demo.world import KNOWN, UNKNOWN, draw_scene

BOXES = st.lists(
    st.tuples(
        st.integers(0, 30), st.integers(0, 30), st.integers(1, 20), st.integers(1, 20), st.integers(0, 50)
    ),
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


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    rng = np.random.default_rng(5)
    made = []
    for _ in range(60):
        photo, things = draw_scene([str(rng.choice(KNOWN)) for _ in range(2)], rng)
        boxes = np.array([thing.box for thing in things], np.float64)
        made.append(Example(photo, boxes, np.array([KNOWN.index(thing.name) for thing in things])))
    return made


def test_it_finds_lone_known_things_far_above_chance(examples: list[Example]) -> None:
    detector = train(examples, len(KNOWN))
    rng = np.random.default_rng(9)
    right = 0
    for turn in range(48):
        photo, (thing,) = draw_scene([KNOWN[turn % len(KNOWN)]], rng)
        found = max(detector.detect(photo, cautious=False), key=lambda one: one["score"], default=None)
        if found and KNOWN[found["label"]] == thing.name:
            right += overlaps(np.array([found["bbox"]], float), np.array([thing.box], float))[0, 0] >= 0.5
    assert right / 48 > 0.6  # chance is below 1/6


def test_caution_lowers_the_scores_of_unknown_things(examples: list[Example]) -> None:
    detector = train(examples, len(KNOWN))
    rng = np.random.default_rng(11)
    total = {True: 0.0, False: 0.0}
    for turn in range(28):
        photo, _ = draw_scene([UNKNOWN[turn % len(UNKNOWN)]], rng)
        for cautious in total:
            total[cautious] += sum(one["score"] for one in detector.detect(photo, cautious=cautious))
    assert total[True] < 0.9 * total[False]


def test_training_twice_gives_the_same_weights(examples: list[Example]) -> None:
    assert np.array_equal(train(examples[:20], 6).weights, train(examples[:20], 6).weights)
