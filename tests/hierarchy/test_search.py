"""Nodes by name."""

from typing import Any

import pytest

from curation.errors import HierarchyError
from curation.hierarchy.hierarchy import find, node_of


def test_words_with_several_meanings(nouns: Any) -> None:
    found = find(nouns, "Hunting Dog")
    assert found[0] == "n02087122"
    assert {"n02012849", "n03126707"} <= set(find(nouns, "crane"))
    # Of that very name, then under another name too, then such that hold the word, then parts of words.
    assert [nouns.nodes[node]["name"] for node in find(nouns, "crane")][:7] == [
        "crane.n.05", "crane.n.04", "crane.n.02", "crane.n.01", "grus.n.01", "whooping_crane.n.01", "crane_fly.n.01",
    ]  # fmt: skip
    assert {nouns.nodes[node]["name"].partition(".")[0] for node in find(nouns, "crane")[7:]} == {
        "cranesbill", "wild_geranium", "meadow_cranesbill",
    }  # fmt: skip
    assert [nouns.nodes[node]["name"] for node in find(nouns, "dog")][:3] == ["dog.n.01", "dog.n.03", "andiron.n.01"]
    assert find(nouns, "n02012849")[0] == find(nouns, "crane.n.05")[0] == "n02012849"
    assert find(nouns, "no such word") == []


def test_a_name_that_means_one_node(nouns: Any) -> None:
    assert node_of(nouns, "n02084071") == node_of(nouns, "dog.n.01") == node_of(nouns, "domestic dog") == "n02084071"


def test_a_name_that_means_none_or_several(nouns: Any) -> None:
    with pytest.raises(HierarchyError, match="ambiguous") as raised:
        node_of(nouns, "crane")
    assert "n03126707 crane.n.04" in (raised.value.found or "")
    with pytest.raises(HierarchyError, match="no such node"):
        node_of(nouns, "xyzzy")
