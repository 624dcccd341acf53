"""The emulated set order equals that of the interpreter's own sets, on any CPython that the paper's code ran on."""

import platform
import random
import sys
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.benchmarks.rules.set_order import (
    depends_on_filling,
    difference_order,
    image_numbers,
    walk_of_additions,
    walk_of_dict,
)
from curation.sources.source import Source

same_implementation = pytest.mark.skipif(
    platform.python_implementation() != "CPython" or not (3, 7) <= sys.version_info < (3, 14),
    reason="the oracle is the set type of CPython 3.7 to 3.13",
)
small = st.lists(st.integers(0, 300), unique=True)
clashing = st.lists(st.integers(0, 2000).map(lambda number: number * 1024), unique=True)
wide = st.lists(st.integers(0, 2**61 - 2), unique=True, max_size=400)
numbers = st.one_of(small, clashing, wide)


def array(keys: list[int]) -> np.ndarray:
    return np.array(keys, np.int64)


def walk_of_difference(keys: list[int], excluded: list[int]) -> list[int]:
    return array(keys)[difference_order(array(keys), np.isin(array(keys), array(excluded)))].tolist()


@same_implementation
@given(numbers)
@settings(max_examples=200)
def test_set_of_a_dict_walks_as_in_cpython(keys: list[int]) -> None:
    assert array(keys)[walk_of_dict(array(keys))].tolist() == list(set(dict.fromkeys(keys)))


@same_implementation
@given(numbers)
@settings(max_examples=200)
def test_set_filled_one_by_one_walks_as_in_cpython(keys: list[int]) -> None:
    real: set[int] = set()
    for key in keys:
        real.add(key)
    assert array(keys)[walk_of_additions(array(keys))].tolist() == list(real)


@same_implementation
@given(numbers, st.randoms(use_true_random=False), st.floats(0, 1))
@settings(max_examples=300)
def test_difference_walks_as_in_cpython_whatever_the_size_of_the_right_set(
    keys: list[int], rng: random.Random, share: float
) -> None:
    excluded = [key for key in keys if rng.random() < share]
    assert walk_of_difference(keys, excluded) == list(set(dict.fromkeys(keys)) - set(excluded))


@same_implementation
@pytest.mark.parametrize("share", [0.05, 0.24, 0.26, 0.5, 0.8])
def test_difference_of_the_real_size_walks_as_in_cpython(share: float) -> None:
    rng = random.Random(int(share * 100))
    images = rng.sample(range(1, 581_930), 118_287)
    known = rng.sample(images, int(share * len(images)))
    assert walk_of_difference(images, known) == list(set(dict.fromkeys(images)) - set(known))


def test_walks_worked_out_by_hand_from_setobject_c() -> None:
    # 8 slots: 8 clashes with 0, there is no room for nine linear probes, and 0 * 5 + 1 + (8 >> 5) = 1 is free.
    assert array([0, 8, 3])[walk_of_additions(array([0, 8, 3]))].tolist() == [0, 8, 3]
    # 1 clashes with 33 in 8 slots and jumps to 6; the fifth element makes the table grow to 32 slots, where 33, 2, 3
    # and 4 find their homes 1 to 4 before 1 comes and probes on to 5.
    keys = [33, 1, 2, 3, 4]
    assert array(keys)[walk_of_additions(array(keys))].tolist() == [33, 2, 3, 4, 1]
    # A set made from a dict of five keys has 16 slots at once: 17 clashes with 1 and takes the
    # next slot, so 2 moves on to 3.
    keys = [1, 17, 2, 30, 4]
    assert array(keys)[walk_of_dict(array(keys))].tolist() == [1, 17, 2, 4, 30]


Draw = Callable[..., Source]


def walked(draw: Draw, numbers: list[int], known: set[int], size: int) -> bool:
    source = draw("coco", "x", {number: ["zebra"] for number in numbers})
    shows_known = np.array([number in known for number in numbers])
    return depends_on_filling(image_numbers(source), shows_known, [size])


def beginnings(numbers: list[int], known: set[int], size: int) -> set[frozenset[int]]:
    """Return the first images of the interpreter's own set, filled in every order."""
    found = set()
    for order in permutations(numbers):
        remaining = set(dict.fromkeys(order)) - known
        found.add(frozenset(list(remaining)[:size]))
    return found


@settings(max_examples=60)
@given(
    numbers=st.lists(st.integers(0, 40), min_size=2, max_size=5, unique=True),
    n_known=st.integers(0, 1),
    size=st.integers(1, 4),
)
# Neither ascending nor descending, and its own order picks what the ascending one picks.
@example(numbers=[0, 8, 1], n_known=0, size=1)
def test_a_say_is_proved_and_told_for_every_order_of_the_file(
    draw: Draw, numbers: list[int], n_known: int, size: int
) -> None:
    known = set(numbers[:n_known])
    size = min(size, len(numbers) - n_known)
    told = {
        walked(draw, list(listed), known, size) for listed in (numbers, sorted(numbers), sorted(numbers, reverse=True))
    }
    assert len(told) == 1
    if told == {True}:
        assert len(beginnings(numbers, known, size)) > 1
