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

    The notebook's order starts from the order of images in the JSON. Collisions in the hash table only permute
    neighbours, so the first n are nearly always the same images from any starting order. Where they are not, the file's
    own order decides and the manifest says so.
    """
    by_order: dict[str, Int64s] = {}
    depends = False
    wilderness = np.flatnonzero(~shows_known)
    if "hash" in parameters["orders"]:
        ids = np.strings.add(f"{coco.namespace}:", coco.images.native[wilderness]).tolist()
        by_order["hash"] = wilderness[hash_rank(ids, parameters["salt"])]
    if "id" in parameters["orders"]:
        by_order["id"] = wilderness[np.argsort(coco.images.native[wilderness], kind="stable")]
    if "cpython_set" in parameters["orders"]:
        by_order["cpython_set"], depends = _set_walk(image_numbers(coco), shows_known, sizes)
    return Walks(by_order=by_order, depends_on_file_order=depends)


def _set_walk(numbers: Int64s, shows_known: Bools, sizes: Sequence[int]) -> tuple[Int64s, bool]:
    """Return the notebook's walk from the file's order, and whether a walk from another order picks other images.

    The other order is that of ascending ids, or of descending ones where the file ascends.
    """
    from_file = difference_order(numbers, shows_known)
    other = np.argsort(numbers, kind="stable")
    if np.array_equal(numbers[other], numbers):
        other = other[::-1]
    from_other = other[difference_order(numbers[other], shows_known[other])]
    depends = any(not np.array_equal(np.sort(from_file[:size]), np.sort(from_other[:size])) for size in sizes)
    return from_file, depends


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
