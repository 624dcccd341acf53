"""WordNet in memory, and small hierarchies."""

from collections.abc import Callable

import networkx as nx
import pytest

from curation.signals.hierarchy.wordnet import wordnet

Edges = Callable[..., "nx.DiGraph[str]"]


@pytest.fixture(scope="session")
def edges() -> Edges:
    """Return ``edges("child parent …", …)``: a graph from texts, each naming a child and its parents in order."""

    def graph(*lines: str) -> "nx.DiGraph[str]":
        made: nx.DiGraph[str] = nx.DiGraph(origin="drawn")
        for line in lines:
            child, *parents = line.split()
            made.add_node(child)
            made.add_edges_from((child, parent) for parent in parents)
        return made

    return graph


@pytest.fixture(scope="session")
def nouns() -> "nx.DiGraph[str]":
    """All nouns of WordNet 3.0, without instances; not to be changed."""
    return wordnet()
