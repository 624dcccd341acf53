"""Hierarchies as networkx graphs: an edge goes from a child to a parent, and the order of the parents is kept.

Node attributes: ``lemmas`` (names joined by blanks, ``_`` within a name), ``name`` (one that is unique, such as
``dog.n.01``). Graph attribute ``origin`` names the source of the hierarchy.

Files: ``parent child``, one edge a line, with names as ``id<TAB>name, synonyms``: the layouts of ImageNet's
``wordnet.is_a.txt`` and ``words.txt``, and of the files of BREEDS, whose ids need not be synsets (``dummy32``). Open
Images has a tree in JSON.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec

from curation.core.errors import HierarchyError
from curation.core.files import read_bytes
from curation.core.json_text import decode_json
from curation.core.reading import utf8_text

if TYPE_CHECKING:
    import networkx as nx

    Graph: TypeAlias = "nx.DiGraph[str]"


ParentRule = Literal["first", "last"]
_SENSE = re.compile(r"\.n\.\d+$")


def parents(graph: Graph, node: str) -> tuple[str, ...]:
    """Return the parents of a node in their order."""
    _require(graph, [node])
    return tuple(graph.adj[node])


def children(graph: Graph, node: str) -> tuple[str, ...]:
    """Return the children of a node, sorted."""
    _require(graph, [node])
    return tuple(sorted(graph.pred[node]))


def ancestors(graph: Graph, nodes: Iterable[str]) -> set[str]:
    """Return every node that is reached upwards from some nodes, themselves included."""
    return _reached(graph, nodes, graph.adj)


def descendants(graph: Graph, nodes: Iterable[str]) -> set[str]:
    """Return every node that is reached downwards from some nodes, themselves included."""
    return _reached(graph, nodes, graph.pred)


def leaves_under(graph: Graph, node: str, leaves: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the sorted leaves below a node: those of `leaves`, by default the nodes without a child.

    A leaf is not below itself.
    """
    _require(graph, [node])
    below = descendants(graph, [node]) - {node}
    if leaves is None:
        return tuple(sorted(leaf for leaf in below if not graph.pred[leaf]))
    return tuple(sorted(below.intersection(leaves)))


def above(graph: Graph, leaves: Collection[str]) -> Graph:
    """Return the part of a hierarchy that lies above some leaves, the leaves included."""
    _require(graph, leaves)
    nodes = ancestors(graph, leaves)
    part = graph.__class__(**graph.graph)
    part.add_nodes_from((node, graph.nodes[node]) for node in graph if node in nodes)
    part.add_edges_from((node, parent) for node in part for parent in graph.adj[node])
    return part


def as_tree(graph: Graph, rule: ParentRule = "first", choices: Mapping[str, str] | None = None) -> Graph:
    """Return the hierarchy with a single parent for each node: the first, the last, or the chosen one.

    Parameters
    ----------
    rule : {"first", "last"}
        ``last`` is the parent that a reader of an edge list keeps if each line overwrites the one before.
    choices : mapping of child to parent, optional
        Take precedence over the rule.

    Raises
    ------
    HierarchyError
        A choice names a node that does not exist, or a parent that the node does not have.
    """
    chosen = dict(choices or {})
    for child, parent in chosen.items():
        _require(graph, [child])
        if parent not in graph.adj[child]:
            expected = ", ".join(graph.adj[child]) or "none: it is a root"
            raise HierarchyError("The node has no such parent", where=f"{child} -> {parent}", expected=expected)
    tree = graph.__class__(**graph.graph)
    tree.add_nodes_from(graph.nodes(data=True))
    for node in graph:
        options = list(graph.adj[node])
        if options:
            tree.add_edge(node, chosen.get(node) or options[0 if rule == "first" else -1])
    return tree


def dropped_leaves(
    graph: Graph, tree: Graph, nodes: Iterable[str], leaves: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Return for each node the leaves below it in the hierarchy that are not below it in the tree, if any."""
    lost = {}
    for node in nodes:
        tree_leaves = set(leaves_under(tree, node, leaves))
        lost[node] = tuple(leaf for leaf in leaves_under(graph, node, leaves) if leaf not in tree_leaves)
    return {node: dropped for node, dropped in lost.items() if dropped}


def require_acyclic(graph: Graph, where: str) -> None:
    """Raise `HierarchyError` if a node is its own ancestor."""
    import networkx as nx

    if nx.is_directed_acyclic_graph(graph):
        return
    # On the whole graph the search for the edges takes quadratic time; within a strong component it is quick.
    components = nx.strongly_connected_components(graph)
    cyclic = next(nodes for nodes in components if len(nodes) > 1 or graph.has_edge(*[*nodes] * 2))
    cycle = nx.find_cycle(graph.subgraph(cyclic), min(cyclic))
    edges = " -> ".join(child for child, _ in cycle[:6]) + f" -> {cycle[0][0]}"
    raise HierarchyError("The hierarchy contains a cycle", where=where, found=edges)


def tree_lines(graph: Graph, node: str, *, depth: int = 3, leaves: Collection[str] | None = None) -> Iterator[str]:
    """Yield a node and its descendants as indented lines, down to a depth."""
    _require(graph, [node])
    visible = descendants(graph, [node])
    if leaves is not None:
        visible &= ancestors(graph, [leaf for leaf in leaves if leaf in graph])
    yield from _lines(graph, node, visible, depth, "", "")


def label(graph: Graph, node: str) -> str:
    """Return a node's id with its first name: ``n02084071 dog``."""
    lemmas = str(graph.nodes[node].get("lemmas", ""))
    first = lemmas.split(" ", 1)[0].replace("_", " ")
    return f"{node} {first}" if first and first != node else node


def _lines(graph: Graph, node: str, visible: set[str], depth: int, head: str, tail: str) -> Iterator[str]:
    below = [child for child in children(graph, node) if child in visible]
    hidden = f"  ({len(descendants(graph, [node]) & visible) - 1} below)" if below and not depth else ""
    yield f"{head}{label(graph, node)}{hidden}"
    if depth:
        for child in below:
            branch, indent = ("└─ ", "   ") if child == below[-1] else ("├─ ", "│  ")
            yield from _lines(graph, child, visible, depth - 1, tail + branch, tail + indent)


def _reached(graph: Graph, nodes: Iterable[str], step: Mapping[str, Mapping[str, object]]) -> set[str]:
    pending = list(nodes)
    _require(graph, pending)
    seen = set(pending)
    while pending:
        for node in step[pending.pop()]:
            if node not in seen:
                seen.add(node)
                pending.append(node)
    return seen


def _require(graph: Graph, nodes: Iterable[str]) -> None:
    missing = [node for node in nodes if node not in graph]
    if missing:
        raise HierarchyError(
            "The hierarchy has no such node",
            where=str(graph.graph.get("origin", "hierarchy")),
            found=", ".join(repr(node[:60]) for node in missing[:5]),
            hint="curation hierarchy find WORD",
        )


def find_nodes(graph: Graph, word: str) -> list[str]:
    """Return the nodes that a word may mean, the most likely first.

    Nodes with the word as id or as their own name come first; then as another lemma; as a word of a lemma; as part of
    such a word. Case, and blanks or ``_``, make no difference. Each group is sorted by id.
    """
    key = _plain(word)
    groups: list[list[str]] = [[], [], [], []]
    word_pattern = re.compile(rf"(?<![^\W_]){re.escape(key)}(?![^\W_])")
    for node, data in graph.nodes(data=True):
        name, lemmas = str(data.get("name", "")).lower(), str(data.get("lemmas", "")).lower()
        if not key or key not in f"{node.lower()} {name} {lemmas}":
            continue
        if key in (node.lower(), name, _SENSE.sub("", name)):
            groups[0].append(node)
        elif key in lemmas.split(" "):
            groups[1].append(node)
        elif key in lemmas:
            groups[2 if word_pattern.search(lemmas) else 3].append(node)
    return [node for group in groups for node in sorted(group)]


def node_of(graph: Graph, text: str) -> str:
    """Return the node of a text: an id, a unique name (``dog.n.01``), or a lemma that only one node has.

    Raises
    ------
    HierarchyError
        No such node, or several: the message lists them.
    """
    if text in graph:
        return text
    key = _plain(text)
    unique = [node for node, name in graph.nodes(data="name") if name == key]
    matches: list[str] = unique or [
        node for node, lemmas in graph.nodes(data="lemmas") if key in str(lemmas or "").lower().split(" ")
    ]
    if len(matches) == 1:
        return matches[0]
    raise HierarchyError(
        "The name is ambiguous" if matches else "The hierarchy has no such node",
        where=repr(text[:60]),
        expected="an id such as n02084071, a unique name such as dog.n.01, or a lemma that belongs to a single node",
        found=", ".join(f"{node} {graph.nodes[node].get('name', '')}".strip() for node in sorted(matches)[:8]) or None,
        hint=f"curation hierarchy find {shlex.quote(key[:40])}",
    )


def _plain(text: str) -> str:
    return text.strip().lower().replace(" ", "_")


_MAX_BYTES = 256 << 20
_LONGEST_ID = 255
_LONGEST_NAME = 2_000


class LabelNode(msgspec.Struct, frozen=True):
    """A node of Open Images' tree: label name such as ``/m/0bt9lr``, and the nodes below."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x1f\x7f]{1,255}\Z")] = msgspec.field(name="LabelName")
    kinds: list[LabelNode] = msgspec.field(default_factory=list, name="Subcategory")


def read_edge_list(edges: Path, names: Path | None = None) -> Graph:
    """Return the hierarchy of an edge list; the parents of a node are in the order of their lines.

    A repeated edge moves to the end: ``as_tree(graph, "last")`` is then the tree of a reader that keeps one parent for
    each child and overwrites it line by line.

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
        A line is malformed; the file has no edges; the edges form a cycle.
    """
    import networkx as nx

    graph: Graph = nx.DiGraph(origin=edges.name)
    for number, line in _text_lines(edges):
        words = line.split()
        if len(words) != 2 or not all(_is_id(word) for word in words) or words[0] == words[1]:
            raise _malformed_line(edges, number, line, "two different ids, parent and child, separated by a blank")
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
    for number, line in _text_lines(path):
        node, tab, text = line.partition("\t")
        if not tab or not _is_id(node) or not text.isprintable() or len(text) > _LONGEST_NAME:
            raise _malformed_line(path, number, line, "id, a tab, names separated by commas")
        if node in graph:
            lemmas = [name.strip().replace(" ", "_") for name in text.split(",")]
            graph.nodes[node]["lemmas"] = " ".join(lemma for lemma in lemmas if lemma)


def _text_lines(path: Path) -> list[tuple[int, str]]:
    data = read_bytes(path, kind="edge list", most=_MAX_BYTES, error=HierarchyError)
    lines = utf8_text(data, str(path), HierarchyError, "The file is not UTF-8 text").split("\n")
    return [
        (number, line.strip("\r "))
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#")
    ]


def _is_id(word: str) -> bool:
    return 0 < len(word) <= _LONGEST_ID and word.isprintable() and not any(sign.isspace() for sign in word)


def _malformed_line(path: Path, number: int, line: str, expected: str) -> HierarchyError:
    return HierarchyError(
        "Malformed line in the hierarchy", where=f"{path}, line {number}", expected=expected, found=repr(line[:80])
    )


def read_open_images(tree: Path) -> Graph:
    """Return Open Images' class hierarchy; nodes are its label names such as ``/m/0bt9lr``.

    Parameters
    ----------
    tree : Path
        ``bbox_labels_600_hierarchy.json``: nested ``LabelName``, ``Subcategory``, ``Part``. A ``Part`` is left out: a
        wheel is a part of a car, not a kind of car.

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
        pending += [(node, entry.name) for node in reversed(entry.kinds)]
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
    message = "The class hierarchy cannot be read"
    data = read_bytes(path, kind="class hierarchy")
    return decode_json(data, LabelNode, HierarchyError, message, where=str(path), expected=expected)


def superclass(tree: Path, root: str) -> tuple[str, ...]:
    """Return the label names without a subcategory below a node of an Open Images tree, sorted by code point.

    These are the paper's 96 animals and 24 vehicles. Matching is by label name (``/m/0jbk``): one circulating copy
    lacks a display name.

    Raises
    ------
    MissingFileError
        The tree cannot be read.
    HierarchyError
        It is not such a tree, contains a cycle, or has no such node; or the node has no descendants.
    """
    graph = read_open_images(tree)
    if root not in graph:
        raise HierarchyError(
            "The tree has no such node",
            where=tree.name,
            expected="a label name such as /m/0jbk (Animal) or /m/07yv9 (Vehicle)",
            found=repr(root)[:80],
        )
    labels = leaves_under(graph, root)
    if not labels:
        raise HierarchyError("The node has no descendants", where=f"{tree.name}: {root}", expected="an inner node")
    return labels
