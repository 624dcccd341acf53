"""By look: corpus images whose cosine with a benchmark image is above that image's own bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.engines.step import Step
from curation.errors import UsageError
from curation.leaks.evidence import as_table

if TYPE_CHECKING:
    import pyarrow

Vectors = npt.NDArray[np.float32]

MARGIN = 0.5
"""How far from the most similar other benchmark image to the same one a cosine must be."""
DECIMALS = 4
"""Cosines are told and compared so, since the last bits of a product depend on how many were computed at once."""
VARIANTS = ("whole", "mirrored")
_ROWS = 16


class Near(NamedTuple):
    """A row of vectors, the benchmark image that it is near to, which variant of that, the cosine and its bound."""

    row: int
    owner: int
    variant: str
    cosine: float
    bound: float


@dataclass(frozen=True, eq=False)
class Look:
    """What the images of a benchmark look like to an encoder.

    Attributes
    ----------
    vectors : ndarray of float32, shape (n * variants, d)
        Unit vectors: of each image whole, or whole and mirrored.
    bounds : ndarray of float32, shape (n,)
        The least cosine with each image that is told.
    """

    vectors: Vectors
    bounds: Vectors

    @classmethod
    def of(cls, vectors: Vectors, n: int, margin: float) -> Look:
        """Return the look of n images, bounded by a share of the way from the most similar other image to itself.

        How similar unrelated photos are depends on the encoder and on the photo; the benchmark's own images say it.

        Raises
        ------
        UsageError
            The margin is out of range.
        """
        if not 0 < margin <= 1:
            raise UsageError(
                "The margin of cosines is a share", where=f"--set margin={margin}", expected="above 0, at most 1"
            )
        vectors = unit(vectors)
        variants = len(vectors) // n if n else 1
        nearest = np.zeros(n, np.float32)
        whole = vectors[::variants]
        for start in range(0, n, _ROWS):
            cosines = (whole[start : start + _ROWS] @ vectors.T).reshape(-1, n, variants).max(axis=2)
            here = np.arange(len(cosines))
            cosines[here, start + here] = 0
            nearest[start : start + _ROWS] = cosines.max(axis=1, initial=0)
        bounds = np.round(nearest + np.float32(margin) * (1 - nearest), DECIMALS).astype(np.float32)
        return cls(vectors, bounds)

    def near(self, vectors: Vectors) -> Iterator[Near]:
        """Yield the pairs at or above a bound, by row; the whole image goes first where both are as similar."""
        n = len(self.bounds)
        for start in range(0, len(vectors) if n else 0, _ROWS):
            products = np.round(unit(vectors[start : start + _ROWS]) @ self.vectors.T, DECIMALS)
            cosines = products.reshape(len(products), n, -1)
            variant = cosines.argmax(axis=2)
            for row, owner in np.argwhere(cosines.max(axis=2) >= self.bounds).tolist():
                chosen = int(variant[row, owner])
                value, bound = cosines[row, owner, chosen], self.bounds[owner]
                told = (round(float(one), DECIMALS) for one in (value, bound))
                yield Near(start + row, owner, VARIANTS[chosen], *told)


def unit(vectors: Vectors) -> Vectors:
    """Return rows of length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
    return scaled


@dataclass(frozen=True, eq=False)
class FindAlike(Step):
    """Which images of an embedded corpus look like those of a benchmark.

    Attributes
    ----------
    ids : tuple of str, length n
        The benchmark's embedded images.
    look : Look
    """

    name: ClassVar[str] = "alike"
    version: ClassVar[int] = 1
    ids: tuple[str, ...]
    look: Look

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return the evidence of a table with columns ``id`` and ``vector``; rows without a vector are passed over."""
        table = table.filter(table.column("vector").is_valid())
        names: list[str] = table.column("id").to_pylist()
        values = table.column("vector").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        vectors = np.asarray(values, np.float32).reshape(len(names), -1)
        rows: list[tuple[Any, ...]] = [("embedded", "", "", "", float(len(names)), 0.0, None)]
        for row, owner, variant, value, bound in self.look.near(vectors) if names else ():
            rows.append(("embedding", self.ids[owner], names[row], variant, value, bound, None))
        return as_table(rows)
