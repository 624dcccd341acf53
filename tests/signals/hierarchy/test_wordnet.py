"""WordNet 3.0's nouns as built in: figures of the database, and facts that anyone can look up."""

import doctest
import sys
from typing import Any

import pytest

from curation.core.errors import HierarchyError
from curation.signals.hierarchy.hierarchy import ancestors, parents
from curation.signals.hierarchy.wordnet import wordnet


def test_figures_of_the_database(nouns: Any) -> None:
    graph = nouns
    assert len(graph) == 82_115
    assert graph.number_of_edges() == 75_850
    assert wordnet(instances=True).number_of_edges() == 75_850 + 8_577
    assert len({name for _, name in graph.nodes(data="name")}) == 82_115
    assert next(node for node in graph if not graph.adj[node] and graph.pred[node]) == "n00001740"


def test_known_synsets(nouns: Any) -> None:
    graph = nouns
    assert graph.nodes["n02084071"] == {"lemmas": "dog domestic_dog Canis_familiaris", "name": "dog.n.01"}
    assert parents(graph, "n02084071") == ("n02083346", "n01317541")
    assert graph.nodes["n01440764"]["name"] == "tench.n.01"
    assert graph.nodes["n02119789"]["lemmas"].startswith("kit_fox")
    assert "n00015388" in ancestors(graph, ["n02084071"])


def test_instances_are_no_kinship_unless_asked_for(nouns: Any) -> None:
    # Einstein is an instance of a physicist.
    (einstein,) = [node for node, lemmas in nouns.nodes(data="lemmas") if "Albert_Einstein" in lemmas]
    assert parents(nouns, einstein) == ()
    assert len(parents(wordnet(instances=True), einstein)) == 1


def test_a_part_is_the_same_as_in_the_whole(nouns: Any) -> None:
    whole, part = nouns, wordnet(above=["n02084071", "n02958343"])
    assert set(part) == ancestors(whole, ["n02084071", "n02958343"])
    assert all(list(part.adj[node]) == list(whole.adj[node]) for node in part)


def test_ids_of_another_wordnet_are_told() -> None:
    # dog in WordNet 3.1.
    with pytest.raises(HierarchyError, match=r"Not a noun synset of WordNet 3\.0") as raised:
        wordnet(above=["n02086723", "dog"])
    assert "3.1" in (raised.value.hint or "")


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(sys.modules[wordnet.__module__]) == (0, 4)
