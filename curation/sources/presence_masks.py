"""Which groups of classes each image shows, for many groups in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from curation.errors import UsageError
from curation.sources.source import Source

MOST_GROUPS = 64


def presence_masks(source: Source, groups: Sequence[Iterable[int]]) -> npt.NDArray[np.uint64]:
    """Return, for each image, the groups it shows an object of: bit g for group g, shape (n,).

    Every selection that asks for "at least one of", "none of" these groups follows without another look at the objects:
    with the four parts of a class split as groups, all four rotations.

    Parameters
    ----------
    source : Source
        With or without boxes; crowd objects count.
    groups : sequence of iterables of int
        Positions in `Source.categories`, at most 64 groups; a class may be in several or in none.

    Raises
    ------
    UsageError
        There are more than 64 groups, or a position is none.
    """
    if len(groups) > MOST_GROUPS:
        raise UsageError(
            "There are too many groups of classes", expected=f"at most {MOST_GROUPS}", found=str(len(groups))
        )
    of_category = np.zeros(len(source.categories), np.uint64)
    for number, group in enumerate(groups):
        positions = np.unique(np.fromiter(group, np.int64))
        if len(positions) and not (positions[0] >= 0 and positions[-1] < len(of_category)):
            raise UsageError(
                "A group names a class that the source lacks",
                where=f"group {number}",
                expected=f"positions from 0 to {len(of_category) - 1}",
                found=f"{positions[0]} to {positions[-1]}",
            )
        of_category[positions] |= np.uint64(1 << number)
    image, category = source.class_pairs()
    masks = np.zeros(len(source.images), np.uint64)
    shown = of_category[category]
    for number in range(len(groups)):
        bit = np.uint64(1 << number)
        masks[image[(shown & bit) != 0]] |= bit
    return masks
