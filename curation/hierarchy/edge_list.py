"""Hierarchies from text: one ``parent child`` edge a line, names as ``id<TAB>name, synonyms``.

These are the layouts of ImageNet's ``wordnet.is_a.txt`` and ``words.txt``, and of the files of BREEDS, whose ids need
not be synsets (``dummy32``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from curation.errors import HierarchyError
from curation.hierarchy.hierarchy import require_acyclic
from curation.storage import read_bytes

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph

_MAX_BYTES = 256 << 20
_LONGEST_ID = 255
_LONGEST_NAME = 2_000


def read_edge_list(edges: Path, names: Path | None = None) -> Graph:
    """Return the hierarchy of an edge list; the parents of a node stand in the order of their lines.

    A line that repeats an edge moves it to the end, so that ``as_tree(graph, "last")`` is what a reader gets that keeps
    one parent a child and overwrites it line by line.

    Parameters
    ----------
    edges : Path
        ``parent child``, separated by blanks; empty lines and lines that begin with ``#`` are skipped.
    names : Path, optional
        ``id<TAB>name, synonym, …``; ids that are not in the hierarchy are skipped.

    Raises
    ------
    MissingFileError
        A file cannot be read.
    HierarchyError
        A line is malformed; there is no edge; the edges run in a circle.
    """
    import networkx as nx

    graph: Graph = nx.DiGraph(origin=edges.name)
    for number, line in _lines(edges):
        words = line.split()
        if len(words) != 2 or not all(_is_id(word) for word in words) or words[0] == words[1]:
            raise _malformed(edges, number, line, "parent and child, two different ids separated by a blank")
        parent, child = words
        if graph.has_edge(child, parent):
            graph.remove_edge(child, parent)
        graph.add_edge(child, parent)
    if not graph:
        raise HierarchyError(
            "The edge list is empty", where=str(edges), expected="parent child, one edge a line"
        )
    require_acyclic(graph, str(edges))
    if names is not None:
        _add_names(graph, names)
    return graph


def _add_names(graph: Graph, path: Path) -> None:
    for number, line in _lines(path):
        node, tab, text = line.partition("\t")
        if not tab or not _is_id(node) or not text.isprintable() or len(text) > _LONGEST_NAME:
            raise _malformed(path, number, line, "id, a tab, names separated by commas")
        if node in graph:
            lemmas = [name.strip().replace(" ", "_") for name in text.split(",")]
            graph.nodes[node]["lemmas"] = " ".join(lemma for lemma in lemmas if lemma)


def _lines(path: Path) -> list[tuple[int, str]]:
    data = read_bytes(path, kind="edge list")
    if len(data) > _MAX_BYTES:
        raise HierarchyError(
            "The file is too large to be a class hierarchy", where=str(path), found=f"{len(data)} bytes"
        )
    try:
        lines = data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise HierarchyError("The file is not UTF-8 text", where=str(path), found=str(error)[:200]) from None
    return [
        (number, line.strip("\r "))
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#")
    ]


def _is_id(word: str) -> bool:
    return 0 < len(word) <= _LONGEST_ID and word.isprintable() and not any(sign.isspace() for sign in word)


def _malformed(path: Path, number: int, line: str, expected: str) -> HierarchyError:
    return HierarchyError(
        "A line of the hierarchy cannot be read",
        where=f"{path}, line {number}",
        expected=expected,
        found=repr(line[:80]),
    )
