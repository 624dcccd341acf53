"""The orders in which the Elephant protocol takes wilderness images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.errors import ProtocolError
from curation.protocols.elephant_facts import COCO
from curation.protocols.hashrank import hash_rank
from curation.protocols.setorder import difference_order
from curation.sources.source import Bools, Int64s, Source


@dataclass(frozen=True, slots=True)
class Walks:
    """The wilderness images in each order asked for, as positions, and whether the file's order had a say."""

    by_order: Mapping[str, Int64s]
    depends_on_file_order: bool


def walks_of(coco: Source, shows_known: Bools, parameters: Mapping[str, Any], sizes: Sequence[int]) -> Walks:
    """Return the wilderness images in each order.

    The notebook's set is filled in the order of images in the JSON. Collisions in the hash table only permute
    neighbours, so at the paper's size the first n are the same images from any filling order. ``cpython_set`` fills
    it in ascending order, so that no shuffled file changes a list; ``cpython_set_as_listed`` takes the file
    at its word; and `Walks.depends_on_file_order` tells whether the two part ways.
    """
    by_order: dict[str, Int64s] = {}
    depends = False
    wilderness = np.flatnonzero(~shows_known)
    if "hash" in parameters["orders"]:
        ids = np.strings.add(f"{coco.namespace}:", coco.images.native[wilderness]).tolist()
        by_order["hash"] = wilderness[hash_rank(ids, parameters["salt"])]
    if "id" in parameters["orders"]:
        by_order["id"] = wilderness[np.argsort(coco.images.native[wilderness], kind="stable")]
    if {"cpython_set", "cpython_set_as_listed"} & set(parameters["orders"]):
        ascending, as_listed, depends = _set_walks(image_numbers(coco), shows_known, sizes)
        by_order |= {"cpython_set": ascending, "cpython_set_as_listed": as_listed}
    return Walks(by_order=by_order, depends_on_file_order=depends)


def _set_walks(numbers: Int64s, shows_known: Bools, sizes: Sequence[int]) -> tuple[Int64s, Int64s, bool]:
    """Return the walk from ascending numbers, the one from the file's order, and whether the order picks the images.

    A file that ascends itself is held against descending numbers.
    """
    ascending = np.argsort(numbers, kind="stable")
    walk = ascending[difference_order(numbers[ascending], shows_known[ascending])]
    if np.array_equal(numbers[ascending], numbers):
        descending = ascending[::-1]
        as_listed = walk
        other = descending[difference_order(numbers[descending], shows_known[descending])]
    else:
        as_listed = other = difference_order(numbers, shows_known)
    depends = any(not np.array_equal(np.sort(walk[:size]), np.sort(other[:size])) for size in sizes)
    return walk, as_listed, depends


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
