"""Wilderness levels: how many images, in ascending image number, belong to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from curation.errors import EvaluationError, UsageError
from curation.evaluation.columns import Int32s, Int64s

LevelCounts = Literal["integer", "float32"]
LEVEL_COUNTS: dict[str, str] = {
    "integer": "n_k = k*N // 10 in integers",
    "float32": "n_k = int(float32(k/10) * N), the ratio rounded to single precision and multiplied in double: what the "
    "official code computes under NumPy 1, which it needs; under NumPy 2 the product would be single too, and some "
    "levels would have one image more (N = 40, level 0.7: 27 here, 28 there)",
}
OFFICIAL_LEVELS = 50
"""The official code asks for ``arange(0, 5, 0.1)`` and stops earlier where the images run out."""


@dataclass(frozen=True, slots=True)
class Levels:
    """The wilderness levels that the images at hand allow.

    Attributes
    ----------
    names : tuple of str, length L
        Wilderness ratios as decimal texts: ``0.0``, ``0.1``, …
    images : ndarray of int64, shape (L,)
        How many wilderness images belong to each; never falling.
    counts : {"integer", "float32"}
    """

    names: tuple[str, ...]
    images: Int64s
    counts: str

    def __len__(self) -> int:
        return len(self.names)

    def first_level(self, position: Int32s | Int64s) -> Int64s:
        """Return the first level that holds the image at each position of the wilderness; L where none does."""
        return np.searchsorted(self.images, position, side="right")


def wilderness_levels(
    n_closed: int, n_wilderness: int, *, counts: LevelCounts = "integer", most: int | None = None
) -> Levels:
    """Return the levels k/10 for k = 0, 1, … while ``n_k`` wilderness images are at hand.

    Parameters
    ----------
    n_closed, n_wilderness : int
        Images of the two parts.
    counts : {"integer", "float32"}
        See `LEVEL_COUNTS`.
    most : int, optional
        Highest number of levels.
    """
    if counts not in LEVEL_COUNTS:
        raise UsageError(
            "Unknown rule for level counts", expected=", ".join(LEVEL_COUNTS), found=repr(counts)[:80]
        )
    if n_closed < 1:
        raise EvaluationError("The closed part has no images", expected="at least one image")
    # n_k > k*N/10 - 1, so no level beyond this one can fit.
    end = 10 * (n_wilderness + 1) // n_closed + 2
    k = np.arange(end if most is None else min(end, most), dtype=np.int64)
    images = k * n_closed // 10 if counts == "integer" else _float32_counts(k, n_closed)
    images = images[images <= n_wilderness]
    return Levels(tuple(f"{n // 10}.{n % 10}" for n in range(len(images))), images, counts)


def _float32_counts(k: Int64s, n_closed: int) -> Int64s:
    return ((k / 10).astype(np.float32).astype(np.float64) * n_closed).astype(np.int64)
