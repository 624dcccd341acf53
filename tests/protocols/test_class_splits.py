"""Class splits: equal, disjoint, stable, and the two conventions of rotation."""

import hashlib

import pytest

from curation.benchmarks.rules.class_parts import rotation, split_classes
from curation.core.errors import ProtocolError

NAMES = [f"/m/{number:02}" for number in range(24)]


def test_parts_are_disjoint_equal_and_cover() -> None:
    parts = split_classes(NAMES)
    assert [len(part) for part in parts] == [6, 6, 6, 6]
    assert sorted(name for part in parts for name in part) == NAMES
    assert all(list(part) == sorted(part) for part in parts)
    assert parts == split_classes(NAMES[::-1])
    assert parts != split_classes(NAMES, seed=101)


def test_the_order_of_hashes() -> None:
    first = sorted(sorted(NAMES, key=lambda name: hashlib.sha256(f"100:{name}".encode()).hexdigest())[:6])
    assert split_classes(NAMES)[0] == tuple(first)


def test_rotations_and_their_two_conventions() -> None:
    parts = [("a",), ("b",), ("c",), ("d",)]
    assert rotation(parts, 2, "part_known") == (("b",), ("c", "d", "a"))
    assert rotation(parts, 2, "part_unknown") == (("c", "d", "a"), ("b",))
    sizes = [len(rotation(split_classes(NAMES), q, "part_known")[0]) for q in (1, 2, 3, 4)]
    assert sizes == [6] * 4


@pytest.mark.parametrize("names", [["a", "b", "c"], [], list("abcde")])
def test_classes_that_do_not_divide_into_parts_are_refused(names: list[str]) -> None:
    with pytest.raises(ProtocolError, match="equal parts"):
        split_classes(names)
