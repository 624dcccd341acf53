"""Versioned edits from a file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curation.errors import HierarchyError
from curation.hierarchy.hierarchy import edited, parents, read_edits

Edges = Callable[..., Any]


def test_toml_and_json_say_the_same(tmp_path: Path, edges: Edges) -> None:
    toml, plain = tmp_path / "edits.toml", tmp_path / "edits.json"
    toml.write_text('name = "mine"\nversion = "1.2.0"\nnew = ["c"]\n[parents]\nb = ["a2"]\nc = ["a1"]\n')
    plain.write_text(
        json.dumps({"name": "mine", "version": "1.2.0", "new": ["c"], "parents": {"b": ["a2"], "c": ["a1"]}})
    )
    assert read_edits(toml) == read_edits(plain)
    graph = edited(edges("a1", "a2", "b a1 a2", "c a2"), read_edits(toml))
    assert parents(graph, "b") == ("a2",)
    assert parents(graph, "c") == ("a1",)
    assert graph.graph["origin"] == "drawn, edits mine 1.2.0"


def test_a_parent_of_ones_own_making_must_be_called_new(tmp_path: Path, edges: Edges) -> None:
    path = tmp_path / "edits.toml"
    path.write_text('name = "mine"\nversion = "1"\n[parents]\nc = ["a1"]\n')
    with pytest.raises(HierarchyError, match="has no such parent"):
        edited(edges("a1", "a2", "c a2"), read_edits(path))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name = ",
        'name = "x"\nversion = "1"\nparents = 3',
        'name = "x"\nversion = "1"\n[parents]\n',
        'name = "x"\nversion = "1"\nnew = ["z"]\n[parents]\na = ["b"]',
        'name = "x"\nversion = "1"\nwhat = 1\n[parents]\na = ["b"]',
    ],
)
def test_malformed_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "edits.toml"
    path.write_text(text)
    with pytest.raises(HierarchyError):
        read_edits(path)
