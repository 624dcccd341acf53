"""The value of a partition: the formula in loops, networkx, and what leaves it alone."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import CutError
from curation.signals.cooccurrence.graph import (
    between_clusters,
    cluster_labels,
    normalized_cut_value,
    partition_of,
    refine,
)
from tests.signals.cooccurrence.graphs import small_graph
from tests.worlds.graphs import ncut


@given(st.integers(0, 500), st.lists(st.integers(0, 2), min_size=9, max_size=9))
def test_formula(seed: int, labels: list[int]) -> None:
    graph = small_graph(seed)
    labels[:3] = [0, 1, 2]
    between = between_clusters(graph, np.array(labels), 3)
    if (between.sum(axis=1) == 0).any():
        with pytest.raises(CutError, match="co-occurs with nothing"):
            normalized_cut_value(graph, labels)
        return
    value = normalized_cut_value(graph, labels)
    assert value == ncut(graph.weights.tolist(), labels)
    shares = (np.diagonal(between) / between.sum(axis=1)).sum()
    assert float(value) == pytest.approx(3 - shares, abs=1e-12)
    assert 0 <= value <= 3
    refined = refine(graph.weights, np.array(labels), 3)
    assert normalized_cut_value(graph, refined) <= value
    assert len(set(refined.tolist())) == 3


def test_two_clusters_as_networkx_has_it() -> None:
    graph = small_graph(3)
    theirs = networkx.from_numpy_array(graph.weights)
    half = [0, 1, 2, 3]
    labels = [0 if vertex in half else 1 for vertex in range(9)]
    expected = networkx.normalized_cut_size(theirs, half, weight="weight")
    assert float(normalized_cut_value(graph, labels)) == pytest.approx(expected, abs=1e-12)


def test_partition_and_labels() -> None:
    names = ("a", "b", "c", "d", "e")
    partition = partition_of(names, [1, 0, 1, 2, 2])
    assert partition == (("a", "c"), ("d", "e"), ("b",))
    assert partition_of(names, cluster_labels(names, partition)) == partition
