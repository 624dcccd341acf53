"""Groups of values that have something in common, and values once each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Value = TypeVar("Value")
Key = TypeVar("Key", bound=Hashable)
Kind = TypeVar("Kind", bound="np.generic")


def grouped(values: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """Return the values of each key, keys and values in the order in which they come."""
    found: dict[Key, list[Value]] = {}
    for value in values:
        found.setdefault(key(value), []).append(value)
    return found


def distinct(values: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
    """Return the values of a long array of whole numbers once each, ascending."""
    import numpy as np

    # Asked for counts, every NumPy sorts; else newer ones hash, which takes up to forty times as long.
    found: npt.NDArray[Kind] = np.unique(values, return_counts=True)[0]
    return found
