"""Similarities between nodes: worked cases, properties, and NLTK as oracle."""

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.core.errors import HierarchyError
from curation.signals.hierarchy.related_classes import kinship, lowest_common, nearest_known, wu_palmer
from curation.signals.hierarchy.wordnet import wordnet
from tests.signals.hierarchy.nltk_oracle import nltk_reader

Edges = Callable[..., Any]


def test_worked_case(edges: Edges) -> None:
    # Depths in nodes: thing 1, animal 2, dog 3, hound 4, cat 3.
    graph = edges("thing", "animal thing", "dog animal", "hound dog", "cat animal", "stone")
    kin = kinship(graph, ["hound", "cat", "stone"])
    assert kin.nodes[int(lowest_common(kin, ["hound"], ["cat"])[0, 0])] == "animal"
    assert wu_palmer(kin, ["hound"], ["cat"])[0, 0] == pytest.approx(2 * 2 / (4 + 3))
    assert math.isnan(wu_palmer(kin, ["hound"], ["stone"])[0, 0])
    assert nearest_known(kin, ["hound"], ["stone", "cat"])[0][0] == "cat"


def test_a_node_that_was_not_asked_for_is_refused(edges: Edges) -> None:
    kin = kinship(edges("a", "b a", "c a"), ["b"])
    with pytest.raises(HierarchyError, match="not among"):
        wu_palmer(kin, ["b"], ["c"])


@st.composite
def hierarchies(draw: st.DrawFn) -> Any:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("0")
    for node in range(1, draw(st.integers(2, 14))):
        over = draw(st.lists(st.integers(0, node - 1), min_size=1, max_size=3, unique=True))
        graph.add_edges_from((str(node), str(parent)) for parent in over)
    return graph


@settings(deadline=None)
@given(hierarchies())
def test_wu_palmer_follows_its_definition(graph: Any) -> None:
    nodes = list(graph)
    kin = kinship(graph, nodes)
    up = dict(nx.all_pairs_shortest_path_length(graph))
    steps = {(a, b): min(up[a][one] + up[b][one] for one in up[a] if one in up[b]) for a in nodes for b in nodes}
    scores, lowest = wu_palmer(kin, nodes, nodes), lowest_common(kin, nodes, nodes)
    for row, one in enumerate(nodes):
        for column, other in enumerate(nodes):
            common = kin.nodes[lowest[row, column]]
            depth = max(map(len, nx.all_simple_paths(graph, common, "0")), default=1) if common != "0" else 1
            expected = 2 * depth / (steps[one, common] + steps[other, common] + 2 * depth)
            assert scores[row, column] == pytest.approx(expected)


def test_nltk_agrees_on_random_pairs(wordnet_folder: Path) -> None:
    graph = wordnet(instances=True)
    generator = random.Random(20)
    nodes = list(graph)
    firsts, seconds = ([generator.choice(nodes) for _ in range(500)] for _ in range(2))
    reader = nltk_reader(wordnet_folder)
    for start in range(0, 500, 100):
        several = firsts[start : start + 100], seconds[start : start + 100]
        kin = kinship(graph, [*several[0], *several[1]])
        for first, second in zip(*several, strict=True):
            one, other = (reader.synset_from_pos_and_offset("n", int(node[1:])) for node in (first, second))
            pair = kin, [first], [second]
            assert wu_palmer(*pair)[0, 0] == pytest.approx(one.wup_similarity(other), abs=1e-12), (first, second)


def test_the_example_of_nltk_s_documentation() -> None:
    dog, cat = "n02084071", "n02121620"
    kin = kinship(wordnet(instances=True), [dog, cat])
    assert wu_palmer(kin, [dog], [cat])[0, 0] == pytest.approx(0.8571428571428571, abs=1e-12)


def test_a_node_may_be_unlike_itself_as_in_nltk(edges: Edges) -> None:
    # Chosen by shallow depth, the lowest common hypernym of `x` with itself is its parent `c`.
    graph = edges("r", "a r", "b a", "c b", "x c r")
    kin = kinship(graph, ["x"])
    assert kin.nodes[int(lowest_common(kin, ["x"], ["x"])[0, 0])] == "c"
    assert wu_palmer(kin, ["x"], ["x"])[0, 0] == pytest.approx(2 * 4 / (5 + 5))
