"""The best partition of a small graph, by looking at all of them."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb, factorial

import numpy as np

from curation.cooccurrence.graph import ClassGraph
from curation.cooccurrence.objective import normalized_cut_value, partition_of
from curation.sources.source import Int64s

MOST_PARTITIONS = 400_000
"""Partitions of 12 vertices into 3 are 86,526, into 4 are 611,501."""
_NEAR = 1e-9
_ROWS = 20_000


def number_of_partitions(n: int, k: int) -> int:
    """Return in how many ways n vertices fall into k clusters (Stirling number of the second kind)."""
    signed = sum((-1 if j % 2 else 1) * comb(k, j) * int((k - j) ** n) for j in range(k + 1))
    return signed // factorial(k)


def best_labels(graph: ClassGraph, k: int) -> Int64s:
    """Return the labelling of lowest Ncut; of equal ones that of the canonically first partition.

    Every partition into k clusters of positive volume is valued; those within 1e-9 of the best are compared exactly.
    """
    weights = graph.weights.astype(np.float64)
    degrees = weights.sum(axis=1)
    best, near = np.inf, []
    for block in _blocks(len(graph.names), k):
        values = np.zeros(len(block))
        for cluster in range(k):
            members = (block == cluster).astype(np.float64)
            volume = members @ degrees
            inside = ((members @ weights) * members).sum(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                values += np.where(volume > 0, 1 - inside / volume, np.inf)
        best = min(best, float(values.min(initial=np.inf)))
        near += [
            (value, row) for value, row in zip(values.tolist(), block, strict=True) if value <= best + _NEAR
        ]
    finalists = [row for value, row in near if value <= best + _NEAR]
    return min(finalists, key=lambda row: (normalized_cut_value(graph, row), partition_of(graph.names, row)))


def _blocks(n: int, k: int) -> Iterator[Int64s]:
    """Yield all labellings as restricted growth strings: a new label is always the next one. Shape (rows, n) each."""
    rows: list[tuple[int, ...]] = []
    for row in _growth(n, k):
        rows.append(row)
        if len(rows) == _ROWS:
            yield np.array(rows, np.int64)
            rows = []
    if rows:
        yield np.array(rows, np.int64)


def _growth(n: int, k: int) -> Iterator[tuple[int, ...]]:
    stack: list[tuple[tuple[int, ...], int]] = [((0,), 1)]
    while stack:
        row, used = stack.pop()
        left = n - len(row)
        if not left:
            if used == k:
                yield row
            continue
        if used + left > k:
            stack += [((*row, label), used) for label in reversed(range(used))]
        if used < k:
            stack.append(((*row, used), used + 1))
