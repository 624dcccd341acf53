"""Whether the order in which the notebook's set is filled has a say, held against every order there is."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.benchmarks.elephant.lists import walks_of
from curation.sources.source import Source

Draw = Callable[..., Source]
PARAMETERS = {"orders": ("cpython_set",), "salt": "x"}


def walked(draw: Draw, numbers: list[int], known: set[int], size: int) -> bool:
    source = draw("coco", "x", {number: ["zebra"] for number in numbers})
    shows_known = np.array([number in known for number in numbers])
    return walks_of(source, shows_known, PARAMETERS, [size])[1]


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


def test_two_images_with_one_residue_depend_on_the_order_wherever_the_file_lists_them(draw: Draw) -> None:
    for numbers in permutations([0, 8, 1]):
        assert walked(draw, list(numbers), set(), 1)
        # Both of them, or neither, are the same images in any order.
        assert not walked(draw, list(numbers), set(), 3)
    assert len(beginnings([0, 8, 1], set(), 1)) == 2


def test_without_collisions_the_order_has_no_say(draw: Draw) -> None:
    for size in range(1, 5):
        assert not walked(draw, [3, 1, 2, 0], set(), size)
        assert len(beginnings([3, 1, 2, 0], set(), size)) == 1
