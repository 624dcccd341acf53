"""CPython's set order: the iteration order of ``set(images) - removed`` of image numbers, emulated.

The notebook of the Elephant paper (``Protocol_Creator.ipynb`` of Vastlab/Elephant-of-object-detection, commit 645a4c3)
takes ``list(set(coco.imgs) - known)[:n]``: no seed and no shuffle, but the order in which CPython 3.7 to 3.13 walks a
set of ints (``Objects/setobject.c``). The hash table is emulated here, so that no list depends on the interpreter; the
tests compare it with the interpreter's own sets. ``hash(n) == n`` for every number admitted here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curation.core.errors import ProtocolError
from curation.sources.source import Bools, Int64s, Source

_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""An odd number: multiples of it modulo 2^64 put image numbers into an order unrelated to their size."""


def image_numbers(source: Source) -> Int64s:
    """Return the integer ids of the images of a source; text ids must be decimal numbers.

    Raises
    ------
    ProtocolError
        An id is not a number, so the set of integers does not exist.
    """
    numbers = source.images.numbers
    if len(numbers) and not np.array_equal(numbers, np.arange(len(numbers))):
        return numbers
    # A reader numbers images 0..n-1 where the file's ids are texts.
    try:
        return source.images.native.astype(np.int64)
    except (ValueError, OverflowError):
        raise ProtocolError(
            "CPython's set order needs image ids that are numbers",
            where=f"source {source.dataset}",
            found=repr(source.images.native[0])[:80],
            hint=_HINT,
        ) from None


def ascending_order(numbers: Int64s, removed: Bools) -> Int64s:
    """Return `difference_order` of a set that the numbers enter in ascending order: no shuffled file changes it."""
    return _filled(numbers, removed, np.argsort(numbers, kind="stable"))


def _filled(numbers: Int64s, removed: Bools, filling: Int64s) -> Int64s:
    return filling[difference_order(numbers[filling], removed[filling])]


def depends_on_filling(numbers: Int64s, removed: Bools, sizes: Sequence[int], *, as_listed: bool = False) -> bool:
    """Return whether another order of insertion gives other first images of the set.

    The notebook's set is filled in the order of images in the JSON. Collisions in the hash table only permute
    neighbours, so the first n are the same images from any filling order unless the cut falls among such neighbours.
    Two orders are tried that follow from the numbers alone, so that the answer is the same for every shuffled file:
    descending, which exchanges any two images that collide, and a scrambled one. True is proved: another order of the
    same images gives other first images. False is evidence.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of first images.
    as_listed : bool
        Whether to try the order of the file too.
    """
    walk = ascending_order(numbers, removed)
    fillings = [np.argsort(numbers)[::-1], np.argsort(numbers.astype(np.uint64) * _MIXER, kind="stable")]
    others = [_filled(numbers, removed, filling) for filling in (*fillings, *[np.arange(len(numbers))] * as_listed)]
    return any(not np.array_equal(np.sort(walk[:size]), np.sort(other[:size])) for other in others for size in sizes)


_HINT = 'orders = ["hash"] in [parameters], or --set orders=hash'
_SMALLEST_TABLE = 8
_LINEAR_PROBES = 9
_PERTURB_SHIFT = 5
_LARGE_SET = 50_000
_LARGEST_PLAIN_HASH = 2**61 - 2


def difference_order(numbers: Int64s, removed: Bools) -> Int64s:
    """Return the positions of the elements of ``set(dict.fromkeys(numbers)) - set(numbers[removed])``, in its order.

    Parameters
    ----------
    numbers : ndarray of int64, shape (n,)
        Keys of the dict that the left set is made from (``coco.imgs``), in insertion order; unique, 0 to 2^61 - 2.
    removed : ndarray of bool, shape (n,)
        Which of them the right set contains, in any order.

    Returns
    -------
    ndarray of int64
        Positions in `numbers`: ``numbers[result]`` is the list that CPython makes.

    Raises
    ------
    ProtocolError
        A number is negative, or so large that its hash is another number.
    """
    walk = walk_of_dict(numbers)
    remaining = walk[~removed[walk]]
    # CPython copies the left set and deletes from the copy when the right one has fewer than a quarter of its
    # elements. The copy has the same slots, and so few deletions never make it shrink: the order stays.
    if len(numbers) >> 2 > int(removed.sum()):
        return remaining
    return remaining[walk_of_additions(numbers[remaining])]


def walk_of_dict(numbers: Int64s) -> Int64s:
    """Return the positions of a dict's keys in the order of ``set(d)``, whose table is sized once, above twice n."""
    _check(numbers)
    presized = len(numbers) * 5 >= (_SMALLEST_TABLE - 1) * 3
    return _walk(numbers, _size_above(2 * len(numbers)) if presized else _SMALLEST_TABLE)


def walk_of_additions(numbers: Int64s) -> Int64s:
    """Return the positions of numbers in the order of a set to which they were added one by one."""
    _check(numbers)
    size = _SMALLEST_TABLE
    limit = _fill_limit(size)
    arrivals = np.arange(min(limit, len(numbers)))
    walk = arrivals[_walk(numbers[arrivals], size)]
    while len(numbers) >= limit:
        # The grown table receives the elements of the old one in slot order, then the next additions.
        size = _size_above(limit * 2 if limit > _LARGE_SET else limit * 4)
        arrivals = np.concatenate([walk, np.arange(limit, min(_fill_limit(size), len(numbers)))])
        walk = arrivals[_walk(numbers[arrivals], size)]
        limit = _fill_limit(size)
    return walk


def _fill_limit(size: int) -> int:
    """Return the number of elements whose arrival makes a table grow: the least with ``fill * 5 >= mask * 3``."""
    return -(-3 * (size - 1) // 5)


def _size_above(least: int) -> int:
    return max(_SMALLEST_TABLE, 1 << least.bit_length())


def _walk(numbers: Int64s, size: int) -> Int64s:
    """Return the positions of numbers in slot order, after each took the first free slot of its probe sequence."""
    table = [-1] * size
    for position, number in enumerate(numbers.tolist()):
        start = slot = number & (size - 1)
        perturb = number
        while table[slot] >= 0:
            # Nine linear probes where they fit, then a jump.
            if start + _LINEAR_PROBES < size and slot < start + _LINEAR_PROBES:
                slot += 1
            else:
                perturb >>= _PERTURB_SHIFT
                start = slot = (start * 5 + 1 + perturb) & (size - 1)
        table[slot] = position
    walk = np.array(table)
    return walk[walk >= 0]


def _check(numbers: Int64s) -> None:
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() <= _LARGEST_PLAIN_HASH):
        raise ProtocolError(
            "CPython's set order is only defined here for image numbers that are their own hash",
            expected=f"0 to {_LARGEST_PLAIN_HASH}",
            found=f"{numbers.min()} to {numbers.max()}",
            hint=_HINT,
        )
