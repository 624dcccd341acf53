"""Views of a hierarchy: trees, leaves, what a tree loses, and nodes by name."""

from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import HierarchyError
from curation.signals.hierarchy.hierarchy import (
    above,
    ancestors,
    as_tree,
    children,
    descendants,
    dropped_leaves,
    find_nodes,
    label,
    leaves_under,
    node_of,
    parents,
    require_acyclic,
    tree_lines,
)

Edges = Callable[..., Any]


@pytest.fixture
def animals(edges: Edges) -> Any:
    """A greyhound is a hound and a racer; a racer is no dog."""
    lines = "animal; dog animal; racer animal; hound dog; greyhound hound racer; whippet greyhound; beagle hound"
    return edges(*lines.split("; "))


def test_parents_keep_their_order_and_children_are_sorted(animals: Any) -> None:
    assert parents(animals, "greyhound") == ("hound", "racer")
    assert children(animals, "hound") == ("beagle", "greyhound")
    assert ancestors(animals, ["whippet"]) == {"whippet", "greyhound", "hound", "racer", "dog", "animal"}
    assert descendants(animals, ["hound"]) == {"hound", "greyhound", "whippet", "beagle"}


def test_a_leaf_is_not_below_itself(animals: Any) -> None:
    assert leaves_under(animals, "dog") == ("beagle", "whippet")
    assert leaves_under(animals, "greyhound", ["greyhound", "whippet"]) == ("whippet",)
    assert leaves_under(animals, "whippet", ["whippet"]) == ()


def test_the_chosen_parent_decides_what_falls_out(animals: Any) -> None:
    first, last = as_tree(animals), as_tree(animals, "last")
    assert leaves_under(first, "dog") == ("beagle", "whippet")
    assert leaves_under(last, "dog") == ("beagle",)
    chosen = as_tree(animals, "first", {"greyhound": "racer"})
    assert list(chosen.edges) == list(last.edges)
    with pytest.raises(HierarchyError, match="has no such parent"):
        as_tree(animals, choices={"beagle": "racer"})
    assert dropped_leaves(animals, last, ["dog", "racer"], ["beagle", "whippet"]) == {"dog": ("whippet",)}


def test_unknown_nodes_are_named(animals: Any) -> None:
    for ask in (
        lambda: parents(animals, "cat"),
        lambda: leaves_under(animals, "cat"),
        lambda: as_tree(animals, choices={"cat": "animal"}),
        lambda: above(animals, ["cat"]),
    ):
        with pytest.raises(HierarchyError, match="no such node") as raised:
            ask()
        assert raised.value.found == "'cat'"


def test_a_tree_is_printed_to_its_depth(animals: Any) -> None:
    animals.nodes["dog"]["lemmas"] = "domestic_dog Canis"
    assert label(animals, "dog") == "dog domestic dog"
    assert list(tree_lines(animals, "dog", depth=1)) == ["dog domestic dog", "└─ hound  (3 below)"]
    assert list(tree_lines(animals, "hound", depth=5, leaves=["whippet", "cat"])) == [
        "hound",
        "└─ greyhound",
        "   └─ whippet",
    ]


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40), st.randoms())
def test_a_tree_never_gains_a_leaf(pairs: list[tuple[int, int]], random: Any) -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(map(str, range(12)))
    graph.add_edges_from((str(max(pair)), str(min(pair))) for pair in pairs if pair[0] != pair[1])
    choices = {node: random.choice(list(graph.adj[node])) for node in graph if graph.adj[node]}
    tree = as_tree(graph, choices=choices)
    require_acyclic(tree, "tree")
    assert all(len(tree.adj[node]) == min(1, len(graph.adj[node])) for node in graph)
    leaves = [node for node in graph if not graph.pred[node]]
    for node in graph:
        assert set(leaves_under(tree, node, leaves)) <= set(leaves_under(graph, node, leaves))
        assert set(leaves_under(graph, node)) == {
            one for one in leaves if one != node and nx.has_path(graph, one, node)
        }


def test_words_with_several_meanings(nouns: Any) -> None:
    found = find_nodes(nouns, "Hunting Dog")
    assert found[0] == "n02087122"
    assert {"n02012849", "n03126707"} <= set(find_nodes(nouns, "crane"))
    # Of that very name, then under another name too, then such that hold the word, then parts of words.
    assert [nouns.nodes[node]["name"] for node in find_nodes(nouns, "crane")][:7] == [
        "crane.n.05", "crane.n.04", "crane.n.02", "crane.n.01", "grus.n.01", "whooping_crane.n.01", "crane_fly.n.01",
    ]  # fmt: skip
    assert {nouns.nodes[node]["name"].partition(".")[0] for node in find_nodes(nouns, "crane")[7:]} == {
        "cranesbill", "wild_geranium", "meadow_cranesbill",
    }  # fmt: skip
    assert [nouns.nodes[node]["name"] for node in find_nodes(nouns, "dog")][:3] == [
        "dog.n.01",
        "dog.n.03",
        "andiron.n.01",
    ]
    assert find_nodes(nouns, "n02012849")[0] == find_nodes(nouns, "crane.n.05")[0] == "n02012849"
    assert find_nodes(nouns, "no such word") == []


def test_a_name_that_means_none_or_several(nouns: Any) -> None:
    with pytest.raises(HierarchyError, match="ambiguous") as raised:
        node_of(nouns, "crane")
    assert "n03126707 crane.n.04" in (raised.value.found or "")
    with pytest.raises(HierarchyError, match="no such node"):
        node_of(nouns, "xyzzy")
