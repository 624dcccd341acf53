"""The normalized cut of a partition, exactly.

``Ncut(A_1..A_k) = sum_c cut(A_c, V - A_c) / vol(A_c) = k - sum_c assoc(A_c) / vol(A_c)`` (Shi and Malik, 2000,
k-way); ``vol`` sums degrees, ``assoc`` the weights inside, each edge twice. Weights are whole numbers: values are
fractions, and two partitions compare without rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from curation.cooccurrence.graph import ClassGraph
from curation.errors import CutError
from curation.sources.source import Int64s

Partition = tuple[tuple[str, ...], ...]


def between_clusters(graph: ClassGraph, labels: Int64s, k: int) -> Int64s:
    """Return the weight between every two clusters, shape (k, k); inside a cluster each edge counts twice."""
    members = np.zeros((k, len(labels)), np.int64)
    members[labels, np.arange(len(labels))] = 1
    # Integer products do not go through BLAS: exact, and the same on every machine.
    rows = np.array([graph.weights[labels == cluster].sum(axis=0) for cluster in range(k)], np.int64)
    return np.array([[row[members[c] == 1].sum() for c in range(k)] for row in rows], np.int64)


def normalized_cut_value(graph: ClassGraph, labels: Sequence[int] | Int64s) -> Fraction:
    """Return the exact Ncut of a labelling; every cluster must have company.

    Raises
    ------
    CutError
        A cluster is empty or its volume is 0: the value is undefined.
    """
    numbers = np.asarray(labels, np.int64)
    k = int(numbers.max(initial=-1)) + 1
    return value_of(between_clusters(graph, numbers, k))


def value_of(between: Int64s) -> Fraction:
    """Return the Ncut from the table of weights between clusters."""
    volumes = [int(volume) for volume in between.sum(axis=1)]
    if not volumes or min(volumes) <= 0:
        raise CutError("A cluster without company has no normalized cut", expected="every volume above 0")
    return sum(
        (Fraction(volume - int(between[c, c]), volume) for c, volume in enumerate(volumes)), Fraction(0)
    )


def partition_of(names: Sequence[str], labels: Sequence[int] | Int64s) -> Partition:
    """Return the clusters, each sorted, by size (largest first), then first name: the canonical form of a labelling."""
    clusters: dict[int, list[str]] = {}
    for name, label in zip(names, np.asarray(labels).tolist(), strict=True):
        clusters.setdefault(label, []).append(name)
    return tuple(
        sorted((tuple(sorted(one)) for one in clusters.values()), key=lambda one: (-len(one), one[0]))
    )


def labels_of(names: Sequence[str], partition: Partition) -> Int64s:
    """Return the label of each name: the place of its cluster."""
    label = {name: place for place, cluster in enumerate(partition) for name in cluster}
    return np.array([label[name] for name in names], np.int64)
