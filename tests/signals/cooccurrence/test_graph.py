"""Weightings of a co-occurrence table."""

import numpy as np

from curation.signals.cooccurrence.graph import UNIT, Cooccurrence, class_graph

PAIRS = np.array([[0, 4, 0], [4, 0, 1], [0, 1, 0]], np.int64)
COUNTS = Cooccurrence(("a", "b", "c"), np.array([5, 8, 2], np.int64), PAIRS, 20)


def test_weightings() -> None:
    assert (class_graph(COUNTS).weights == PAIRS).all()
    assert class_graph(COUNTS, "binary").weights.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    jaccard = class_graph(COUNTS, "jaccard").weights
    assert jaccard[0, 1] == round(4 / 9 * UNIT)
    assert jaccard[1, 2] == round(1 / 9 * UNIT)
    pmi = class_graph(COUNTS, "pmi").weights
    assert pmi[0, 1] == round(float(np.log(4 * 20 / (5 * 8))) * UNIT)
    assert pmi[1, 2] == round(float(np.log(1 * 20 / (8 * 2))) * UNIT)
    for weighting in ("counts", "binary", "jaccard", "pmi"):
        weights = class_graph(COUNTS, weighting).weights
        assert (weights == weights.T).all()
        assert not np.diagonal(weights).any()


def test_components_and_isolated() -> None:
    weights = np.zeros((6, 6), np.int64)
    for a, b in ((0, 3), (3, 4), (1, 5)):
        weights[a, b] = weights[b, a] = 2
    graph = class_graph(Cooccurrence(tuple("abcdef"), np.full(6, 2, np.int64), weights, 9))
    assert graph.isolated() == ("c",)
    assert graph.components() == [("a", "d", "e"), ("b", "f")]
    assert graph.restricted(["f", "b"]).weights.tolist() == [[0, 2], [2, 0]]
