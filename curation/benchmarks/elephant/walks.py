"""The orders in which the Elephant protocol takes wilderness images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from curation.benchmarks.elephant.facts import COCO
from curation.benchmarks.hashrank import hash_rank
from curation.benchmarks.setorder import difference_order
from curation.errors import ProtocolError
from curation.sources.source import Bools, Int64s, Source

_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""An odd number: multiples of it modulo 2^64 put image numbers into an order that has nothing to do with theirs."""


@dataclass(frozen=True, slots=True)
class Walks:
    """The wilderness images in each order asked for, as positions, and whether the order of filling has a say.

    Attributes
    ----------
    by_order : mapping of str to ndarray of int64
    depends_on_file_order : bool
        True is proved: the notebook's set, filled in another order of the same images, begins with other images. False
        is evidence: of the orders tried (see `walks_of`) none does.
    """

    by_order: Mapping[str, Int64s]
    depends_on_file_order: bool


def walks_of(coco: Source, shows_known: Bools, parameters: Mapping[str, Any], sizes: Sequence[int]) -> Walks:
    """Return the wilderness images in each order.

    The notebook's set is filled in the order of images in the JSON. Collisions in the hash table only permute
    neighbours, so the first n are the same images from any filling order unless the cut falls among such neighbours.
    ``cpython_set`` fills it in ascending order, so that no shuffled file changes a list; ``cpython_set_as_listed``
    takes the file at its word.

    Whether the order of filling has a say is a question about every order there is. It is tried on two that follow
    from the numbers alone, so that the answer is the same for every shuffled file: descending, which exchanges any two
    images that collide, and a scrambled one. ``cpython_set_as_listed``, where asked for, is held against it too.
    """
    by_order: dict[str, Int64s] = {}
    wilderness = np.flatnonzero(~shows_known)
    if "hash" in parameters["orders"]:
        ids = np.strings.add(f"{coco.namespace}:", coco.images.native[wilderness]).tolist()
        by_order["hash"] = wilderness[hash_rank(ids, parameters["salt"])]
    if "id" in parameters["orders"]:
        by_order["id"] = wilderness[np.argsort(coco.images.native[wilderness], kind="stable")]
    asked = {"cpython_set", "cpython_set_as_listed"} & set(parameters["orders"])
    if not asked:
        return Walks(by_order=by_order, depends_on_file_order=False)
    numbers = image_numbers(coco)
    ascending = np.argsort(numbers, kind="stable")
    by_order["cpython_set"] = walk = _set_walk(numbers, shows_known, ascending)
    others: Iterable[Int64s] = (
        _set_walk(numbers, shows_known, filling) for filling in _other_fillings(numbers, ascending)
    )
    if "cpython_set_as_listed" in asked:
        by_order["cpython_set_as_listed"] = listed = difference_order(numbers, shows_known)
        others = chain([listed], others)
    depends = any(_begins_otherwise(walk, other, sizes) for other in others)
    return Walks(by_order=by_order, depends_on_file_order=depends)


def _set_walk(numbers: Int64s, shows_known: Bools, filling: Int64s) -> Int64s:
    """Return the walk through the notebook's set when its numbers enter in the order of `filling`."""
    return filling[difference_order(numbers[filling], shows_known[filling])]


def _other_fillings(numbers: Int64s, ascending: Int64s) -> Iterator[Int64s]:
    yield ascending[::-1]
    yield np.argsort(numbers.astype(np.uint64) * _MIXER, kind="stable")


def _begins_otherwise(walk: Int64s, other: Int64s, sizes: Sequence[int]) -> bool:
    return any(not np.array_equal(np.sort(walk[:size]), np.sort(other[:size])) for size in sizes)


def image_numbers(coco: Source) -> Int64s:
    """Return the integer ids that the notebook's set held; text ids must be decimal numbers.

    Raises
    ------
    ProtocolError
        An id is not a number, so there is no set of ints.
    """
    numbers = coco.images.numbers
    if len(numbers) and not np.array_equal(numbers, np.arange(len(numbers))):
        return numbers
    # A reader numbers images 0..n-1 where the file's ids are texts.
    try:
        return coco.images.native.astype(np.int64)
    except (ValueError, OverflowError):
        raise ProtocolError(
            "CPython's set order needs image ids that are numbers",
            where=f"source {COCO}: {coco.files[0].name if coco.files else coco.dataset}",
            found=repr(coco.images.native[0])[:80],
            hint="--set orders=hash",
        ) from None
