"""Class splits: equal, disjoint, stable, and the two conventions of rotation."""

import hashlib
import random
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.osod3.problems import Generator, rotation, split_classes
from curation.core.errors import ProtocolError

NAMES = [f"/m/{number:02}" for number in range(24)]


@pytest.mark.parametrize("generator", get_args(Generator))
def test_parts_are_disjoint_equal_and_cover(generator: str) -> None:
    parts = split_classes(NAMES, generator=generator)  # type: ignore[arg-type]
    assert [len(part) for part in parts] == [6, 6, 6, 6]
    assert sorted(name for part in parts for name in part) == NAMES
    assert all(list(part) == sorted(part) for part in parts)
    assert parts == split_classes(NAMES[::-1], generator=generator)  # type: ignore[arg-type]
    assert parts != split_classes(NAMES, generator=generator, seed=101)  # type: ignore[arg-type]


def test_the_order_of_hashes() -> None:
    first = sorted(sorted(NAMES, key=lambda name: hashlib.sha256(f"100:{name}".encode()).hexdigest())[:6])
    assert split_classes(NAMES)[0] == tuple(first)


def test_named_generators_are_those_of_the_libraries() -> None:
    letters = list("abcdefgh")
    order = [letters[place] for place in np.random.RandomState(7).permutation(8)]
    shuffled = list(letters)
    random.Random(7).shuffle(shuffled)
    for generator, expected in (("numpy", order), ("python", shuffled)):
        parts = split_classes(letters[::-1], seed=7, generator=generator)  # type: ignore[arg-type]
        assert parts == tuple(tuple(sorted(expected[start : start + 2])) for start in (0, 2, 4, 6))


@given(st.integers(4, 60), st.integers(0, 10**6))
def test_uneven_numbers(n: int, seed: int) -> None:
    names = [f"c{number:03}" for number in range(n)]
    if n % 4:
        with pytest.raises(ProtocolError, match="equal parts"):
            split_classes(names, seed=seed)
    sizes = [len(part) for part in split_classes(names, seed=seed, uneven="first")]
    assert sum(sizes) == n
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1


def test_rotations_and_their_two_conventions() -> None:
    parts = [("a",), ("b",), ("c",), ("d",)]
    assert rotation(parts, 2, "part_known") == (("b",), ("c", "d", "a"))
    assert rotation(parts, 2, "part_unknown") == (("c", "d", "a"), ("b",))
    sizes = [len(rotation(split_classes(NAMES), q, "part_known")[0]) for q in (1, 2, 3, 4)]
    assert sizes == [6] * 4


@pytest.mark.parametrize("names", [["a", "b", "c"], []])
def test_fewer_classes_than_parts_are_refused(names: list[str]) -> None:
    with pytest.raises(ProtocolError, match="equal parts"):
        split_classes(names, uneven="first")
