"""WordNet on disk, where the machine has one, and small hierarchies."""

import os
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest

from curation.errors import MissingFileError
from curation.hierarchy.wordnet import wordnet
from curation.hierarchy.wordnet_files import find_dict

Edges = Callable[..., "nx.DiGraph[str]"]


@pytest.fixture(scope="session")
def wordnet_folder() -> Path:
    """A dict folder of WordNet 3.0, from CURATION_WORDNET or Debian's package wordnet-base; the test skips without."""
    for named in (os.environ.get("CURATION_WORDNET"), "/usr/share/wordnet"):
        try:
            if named:
                return find_dict(Path(named))
        except MissingFileError:
            continue
    pytest.skip("WordNet is not at hand: install wordnet-base, or set CURATION_WORDNET to its folder")


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
