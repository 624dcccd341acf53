"""Class trees that data sets and papers bring along, as hierarchies, and the classes below a super-class of one.

Text is ``parent child``, one edge a line, with names as ``id<TAB>name, synonyms``: the layouts of ImageNet's
``wordnet.is_a.txt`` and ``words.txt``, and of the files of BREEDS, whose ids need not be synsets (``dummy32``). Open
Images has a tree in JSON.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from curation.core.csv_table import csv_rows
from curation.core.errors import HierarchyError, UsageError
from curation.core.json_keys import decode_json
from curation.core.reading import read_bytes, utf8_text
from curation.signals.hierarchy.hierarchy import children, descendants, leaves_under, require_acyclic

if TYPE_CHECKING:
    from curation.signals.hierarchy.hierarchy import Graph

_MAX_BYTES = 256 << 20
_LONGEST_ID = 255
_LONGEST_NAME = 2_000


class LabelNode(msgspec.Struct, frozen=True):
    """A node of Open Images' tree: label name such as ``/m/0bt9lr``, nodes below, and parts of the thing."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x1f\x7f]{1,255}\Z")] = msgspec.field(name="LabelName")
    kinds: list[LabelNode] = msgspec.field(default_factory=list, name="Subcategory")
    parts: list[LabelNode] = msgspec.field(default_factory=list, name="Part")


SuperclassRule = Literal["leaves", "repeated_leaves", "descendants", "leaves_over_parts", "leaves_without_parts"]
SUPERCLASS_RULES: dict[str, str] = {
    "leaves": "every node without a subcategory, once (gives the paper's 96 animals and 24 vehicles)",
    "repeated_leaves": "the same, once for each way down to it",
    "descendants": "every node below, inner ones included",
    "leaves_over_parts": "leaves when Part counts as kinship too: a wheel is then a vehicle",
    "leaves_without_parts": "leaves that have no Part either: a bicycle has a wheel, so it is left out",
}


def read_edge_list(edges: Path, names: Path | None = None) -> Graph:
    """Return the hierarchy of an edge list; the parents of a node are in the order of their lines.

    A line that repeats an edge moves it to the end, so that ``as_tree(graph, "last")`` is what a reader gets that keeps
    one parent a child and overwrites it line by line.

    Parameters
    ----------
    edges : Path
        ``parent child``, separated by blanks; empty lines and lines starting with ``#`` are skipped.
    names : Path, optional
        ``id<TAB>name, synonym, …``; ids that are not in the hierarchy are skipped.

    Raises
    ------
    MissingFileError
        A file cannot be read.
    HierarchyError
        A line is malformed; there is no edge; the edges form a cycle.
    """
    import networkx as nx

    graph: Graph = nx.DiGraph(origin=edges.name)
    for number, line in _lines(edges):
        words = line.split()
        if len(words) != 2 or not all(_is_id(word) for word in words) or words[0] == words[1]:
            raise _malformed(edges, number, line, "two different ids, parent and child, separated by a blank")
        parent, child = words
        if graph.has_edge(child, parent):
            graph.remove_edge(child, parent)
        graph.add_edge(child, parent)
    if not graph:
        raise HierarchyError("The edge list is empty", where=str(edges), expected="parent child, one edge a line")
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
    data = read_bytes(path, kind="edge list", most=_MAX_BYTES, error=HierarchyError)
    lines = utf8_text(data, str(path), HierarchyError, "The file is not UTF-8 text").split("\n")
    return [
        (number, line.strip("\r "))
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#")
    ]


def _is_id(word: str) -> bool:
    return 0 < len(word) <= _LONGEST_ID and word.isprintable() and not any(sign.isspace() for sign in word)


def _malformed(path: Path, number: int, line: str, expected: str) -> HierarchyError:
    return HierarchyError(
        "Malformed line in the hierarchy", where=f"{path}, line {number}", expected=expected, found=repr(line[:80])
    )


def read_open_images(tree: Path, *, parts: bool = False) -> Graph:
    """Return Open Images' class hierarchy; nodes are its label names such as ``/m/0bt9lr``.

    Parameters
    ----------
    tree : Path
        ``bbox_labels_600_hierarchy.json``: nested ``LabelName``, ``Subcategory``, ``Part``.
    parts : bool
        Whether ``Part`` counts as kinship too. It says that a wheel belongs to a car, not that it is one.

    Raises
    ------
    MissingFileError
        A file cannot be read.
    HierarchyError
        It is not such a tree, or it contains a cycle.
    """
    import networkx as nx

    graph: Graph = nx.DiGraph(origin=tree.name)
    pending = [(read_label_tree(tree), "")]
    while pending:
        entry, parent = pending.pop()
        graph.add_node(entry.name)
        if parent:
            graph.add_edge(entry.name, parent)
        below = [*entry.kinds, *(entry.parts if parts else ())]
        pending += [(node, entry.name) for node in reversed(below)]
    require_acyclic(graph, str(tree))
    return graph


def read_label_tree(path: Path) -> LabelNode:
    """Return the class hierarchy that Open Images publishes in JSON.

    Raises
    ------
    MissingFileError, HierarchyError
        No such file, or it is not such a tree.
    """
    expected = 'an object {"LabelName": "/m/…", "Subcategory": […]} of such objects'
    what = "The class hierarchy cannot be read"
    data = read_bytes(path, kind="class hierarchy")
    return decode_json(data, LabelNode, HierarchyError, what, where=str(path), expected=expected)


def read_open_images_names(path: Path) -> dict[str, str]:
    """Return the name of each label of ``class-descriptions-boxable.csv``; rows without a printable one are skipped."""
    data = read_bytes(path, kind="list of class names")
    rows = csv_rows(data, HierarchyError, "The class names are not a CSV file", where=str(path))
    return {row[0]: row[1] for row in rows if len(row) >= 2 and row[1].isprintable()}


def superclass(tree: Path, root: str, rule: SuperclassRule = "leaves") -> tuple[str, ...]:
    """Return the label names below a node of an Open Images tree, sorted by code point.

    Matching is by label name (``/m/0jbk``) alone: names are for the eye, and one circulating copy lacks one. Under
    ``repeated_leaves`` a label occurs as often as there are ways down to it.

    Raises
    ------
    MissingFileError
        The tree cannot be read.
    HierarchyError
        It is not such a tree, contains a cycle, or has no such node; or the node has no descendants.
    UsageError
        The rule has another name.
    """
    if rule not in SUPERCLASS_RULES:
        raise UsageError("Unknown rule", expected=", ".join(SUPERCLASS_RULES), found=repr(rule)[:80])
    graph = read_open_images(tree, parts=rule == "leaves_over_parts")
    if root not in graph:
        raise HierarchyError(
            "The tree has no such node",
            where=tree.name,
            expected="a label name such as /m/0jbk (Animal) or /m/07yv9 (Vehicle)",
            found=repr(root)[:80],
        )
    found = _below(graph, root, rule, tree)
    if not found:
        raise HierarchyError("The node has no descendants", where=f"{tree.name}: {root}", expected="an inner node")
    return found


def _below(graph: Graph, root: str, rule: SuperclassRule, tree: Path) -> tuple[str, ...]:
    if rule == "descendants":
        return tuple(sorted(descendants(graph, [root]) - {root}))
    if rule == "repeated_leaves":
        return tuple(sorted(_ways(graph, root).elements()))
    leaves = leaves_under(graph, root)
    if rule == "leaves_without_parts":
        with_parts = read_open_images(tree, parts=True)
        whole = read_open_images(tree)
        return tuple(leaf for leaf in leaves if set(children(with_parts, leaf)) <= set(children(whole, leaf)))
    return leaves


def _ways(graph: Graph, root: str) -> Counter[str]:
    """Return each leaf below a node with the number of ways down to it."""

    @cache
    def below(node: str) -> Counter[str]:
        kinds = children(graph, node)
        return sum((below(kind) for kind in kinds), Counter()) if kinds else Counter({node: 1})

    return below(root) if children(graph, root) else Counter()
