"""`ClassGraph`: classes as vertices, company as whole-number weights, and what to do where the graph falls apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from curation.cooccurrence.counts import Cooccurrence
from curation.errors import CutError
from curation.sources.source import Int64s

Weighting = Literal["counts", "binary", "jaccard", "pmi"]
WEIGHTINGS: dict[Weighting, str] = {
    "counts": "images that show both classes",
    "binary": "1 where any image shows both",
    "jaccard": "images with both / images with either, in units of 1e-9",
    "pmi": "positive pointwise mutual information log(p_ij / (p_i p_j)), natural, in units of 1e-9",
}
UNIT = 10**9
"""Fractional weights are rounded to whole multiples of 1e-9, so that every sum is exact in any order."""
LARGEST_TOTAL = 2**62


@dataclass(frozen=True)
class ClassGraph:
    """An undirected graph with whole-number weights; vertices are sorted by name.

    Attributes
    ----------
    names : tuple of str, length n
    weights : ndarray of int64, shape (n, n)
        Symmetric, not negative, the diagonal is 0.
    weighting : str
        What a weight is; a key of `WEIGHTINGS`, or ``given``.
    """

    names: tuple[str, ...]
    weights: Int64s
    weighting: str = "given"

    @property
    def degrees(self) -> Int64s:
        """Sum of each vertex's weights, shape (n,)."""
        degrees: Int64s = self.weights.sum(axis=1)
        return degrees

    def isolated(self) -> tuple[str, ...]:
        """Return the vertices without any company."""
        return tuple(
            name for name, degree in zip(self.names, self.degrees.tolist(), strict=True) if not degree
        )

    def components(self) -> list[tuple[str, ...]]:
        """Return the connected components, isolated vertices left out, largest first, then by first name."""
        import networkx

        graph = networkx.Graph()
        rows, columns = np.nonzero(self.weights)
        graph.add_edges_from(zip(rows.tolist(), columns.tolist(), strict=True))
        found = [
            tuple(self.names[place] for place in sorted(one)) for one in networkx.connected_components(graph)
        ]
        return sorted(found, key=lambda one: (-len(one), one[0]))

    def restricted(self, names: Sequence[str]) -> ClassGraph:
        """Return the graph on some of its vertices."""
        chosen = set(names)
        places = [place for place, name in enumerate(self.names) if name in chosen]
        return ClassGraph(
            tuple(self.names[place] for place in places), self.weights[np.ix_(places, places)], self.weighting
        )


def class_graph(counts: Cooccurrence, weighting: Weighting = "counts") -> ClassGraph:
    """Return the graph of a co-occurrence table under a weighting; `WEIGHTINGS` has the formulas."""
    pairs, either = counts.pairs, counts.images[:, None] + counts.images[None, :] - counts.pairs
    if weighting == "counts":
        weights = pairs.copy()
    elif weighting == "binary":
        weights = (pairs > 0).astype(np.int64)
    elif weighting == "jaccard":
        weights = np.rint(pairs / np.maximum(either, 1) * UNIT).astype(np.int64)
    else:
        expected = np.maximum(counts.images[:, None] * counts.images[None, :], 1) / max(counts.total, 1)
        ratio = np.where(pairs > 0, pairs / expected, 1.0)
        weights = np.rint(np.log(np.maximum(ratio, 1.0)) * UNIT).astype(np.int64)
    np.fill_diagonal(weights, 0)
    return ClassGraph(counts.names, weights, weighting)


def graph_of(names: Sequence[str], weights: Int64s) -> ClassGraph:
    """Return a checked graph of given whole-number weights, vertices in any order.

    Raises
    ------
    CutError
        Names repeat, or the weights are not square, symmetric, whole, free of negatives and of a diagonal.
    """
    table = np.asarray(weights)
    if len(set(names)) < len(names):
        raise CutError("Two vertices have one name", found=next(n for n in names if list(names).count(n) > 1))
    if table.shape != (len(names), len(names)) or table.dtype.kind not in "iu":
        raise CutError(
            "The weights are no table of whole numbers",
            expected=f"integers, shape ({len(names)}, {len(names)})",
            found=f"{table.dtype}, shape {table.shape}",
        )
    if (table != table.T).any() or (table < 0).any() or np.diagonal(table).any():
        raise CutError("The weights must be symmetric, not negative, and 0 on the diagonal")
    if sum(int(row.astype(object).sum()) for row in table) > LARGEST_TOTAL:
        raise CutError("The weights are too large to add up", expected=f"a sum of at most {LARGEST_TOTAL}")
    order = np.array(sorted(range(len(names)), key=lambda place: names[place]), np.int64)
    return ClassGraph(
        tuple(names[place] for place in order.tolist()), table.astype(np.int64)[np.ix_(order, order)]
    )
