"""`GrowingArray`: rows of which nobody knows how many there will be, in memory once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class GrowingArray:
    """An array that is lengthened in place; room that is reserved and not used takes no memory.

    Parameters
    ----------
    dtype : dtype
    room : int
        How many rows are expected.
    width : tuple of int
        Length of a row.
    """

    def __init__(self, dtype: npt.DTypeLike, room: int, *width: int) -> None:
        self._values: npt.NDArray[Any] = np.empty((room, *width), dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, more: npt.NDArray[Any]) -> None:
        """Add rows at the end."""
        end = self._length + len(more)
        if end > len(self._values):
            self._resize(max(end, 5 * len(self._values) // 4))
        self._values[self._length : end] = more
        self._length = end

    def last(self) -> Any:
        """Return the last row."""
        return self._values[self._length - 1]

    def whole(self) -> npt.NDArray[Any]:
        """Return all rows; none may be added afterwards."""
        self._resize(self._length)
        return self._values

    def _resize(self, length: int) -> None:
        # Large blocks of memory are moved by the kernel, not copied: a list of parts would be in memory twice.
        self._values.resize((length, *self._values.shape[1:]), refcheck=False)
