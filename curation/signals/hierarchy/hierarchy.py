"""Hierarchies as networkx graphs: an edge goes from a child to a parent, and the order of the parents is kept.

Node attributes: ``lemmas`` (names joined by blanks, ``_`` within a name), ``name`` (one that is unique, such as
``dog.n.01``). Graph attribute ``origin`` says where the hierarchy comes from.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from curation.core.errors import HierarchyError
from curation.core.reading import read_declaration

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
    """Return the leaves strictly below a node, sorted: those given, or else the nodes without a child.

    A leaf is not below itself, so a class that is asked for as superclass has no leaves.
    """
    _require(graph, [node])
    below = descendants(graph, [node]) - {node}
    if leaves is None:
        return tuple(sorted(leaf for leaf in below if not graph.pred[leaf]))
    return tuple(sorted(below.intersection(leaves)))


def above(graph: Graph, leaves: Collection[str]) -> Graph:
    """Return the part of a hierarchy that lies above some leaves, the leaves included."""
    _require(graph, leaves)
    kept = ancestors(graph, leaves)
    part = graph.__class__(**graph.graph)
    part.add_nodes_from((node, graph.nodes[node]) for node in graph if node in kept)
    part.add_edges_from((node, parent) for node in part for parent in graph.adj[node])
    return part


def as_tree(graph: Graph, rule: ParentRule = "first", choices: Mapping[str, str] | None = None) -> Graph:
    """Return the hierarchy with one parent a node: the first or last in its order, or the one chosen for it.

    Parameters
    ----------
    rule : {"first", "last"}
        ``last`` on an edge list is what a reader does that overwrites the parent line by line.
    choices : mapping of child to parent, optional
        Go before the rule.

    Raises
    ------
    HierarchyError
        A choice names a node that does not exist, or a parent that the node does not have.
    """
    chosen = dict(choices or {})
    _require_parents(graph, chosen.items())
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
    """Return, of each node that lost any, the leaves below it in the hierarchy that are not below it in the tree."""
    lost = {}
    for node in nodes:
        kept = set(leaves_under(tree, node, leaves))
        lost[node] = tuple(leaf for leaf in leaves_under(graph, node, leaves) if leaf not in kept)
    return {node: dropped for node, dropped in lost.items() if dropped}


def require_acyclic(graph: Graph, where: str) -> None:
    """Raise `HierarchyError` if a node is its own ancestor."""
    import networkx as nx

    if nx.is_directed_acyclic_graph(graph):
        return
    # On the whole graph the search for the edges takes quadratic time; within a strong component it is quick.
    components = nx.strongly_connected_components(graph)
    knot = next(nodes for nodes in components if len(nodes) > 1 or graph.has_edge(*[*nodes] * 2))
    cycle = nx.find_cycle(graph.subgraph(knot), min(knot))
    found = " -> ".join(child for child, _ in cycle[:6]) + f" -> {cycle[0][0]}"
    raise HierarchyError("The hierarchy contains a cycle", where=where, found=found)


def tree_lines(graph: Graph, node: str, *, depth: int = 3, leaves: Collection[str] | None = None) -> Iterator[str]:
    """Yield a node and what lies below it as indented lines, down to a depth."""
    _require(graph, [node])
    shown = descendants(graph, [node])
    if leaves is not None:
        shown &= ancestors(graph, [leaf for leaf in leaves if leaf in graph])
    yield from _lines(graph, node, shown, depth, "", "")


def label(graph: Graph, node: str) -> str:
    """Return a node's id with its first name: ``n02084071 dog``."""
    lemmas = str(graph.nodes[node].get("lemmas", ""))
    first = lemmas.split(" ", 1)[0].replace("_", " ")
    return f"{node} {first}" if first and first != node else node


def _lines(graph: Graph, node: str, shown: set[str], depth: int, head: str, tail: str) -> Iterator[str]:
    below = [child for child in children(graph, node) if child in shown]
    hidden = f"  ({len(descendants(graph, [node]) & shown) - 1} below)" if below and not depth else ""
    yield f"{head}{label(graph, node)}{hidden}"
    if depth:
        for child in below:
            branch, indent = ("└─ ", "   ") if child == below[-1] else ("├─ ", "│  ")
            yield from _lines(graph, child, shown, depth - 1, tail + branch, tail + indent)


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


def _require_parents(graph: Graph, chosen: Iterable[tuple[str, str]]) -> None:
    for child, parent in chosen:
        _require(graph, [child])
        if parent not in graph.adj[child]:
            expected = ", ".join(graph.adj[child]) or "none: it is a root"
            raise HierarchyError("The node has no such parent", where=f"{child} -> {parent}", expected=expected)


def find(graph: Graph, word: str) -> list[str]:
    """Return the nodes that a word may mean, the likelier first.

    Those with the word as id, or as the name of the node itself; as another lemma; as a word of a lemma; as part of
    such a word. Upper and lower case, blanks and ``_`` are the same. Each group is sorted by id.
    """
    wanted = _plain(word)
    groups: list[list[str]] = [[], [], [], []]
    whole = re.compile(rf"(?<![^\W_]){re.escape(wanted)}(?![^\W_])")
    for node, data in graph.nodes(data=True):
        name, lemmas = str(data.get("name", "")).lower(), str(data.get("lemmas", "")).lower()
        if not wanted or wanted not in f"{node.lower()} {name} {lemmas}":
            continue
        if wanted in (node.lower(), name, _SENSE.sub("", name)):
            groups[0].append(node)
        elif wanted in lemmas.split(" "):
            groups[1].append(node)
        elif wanted in lemmas:
            groups[2 if whole.search(lemmas) else 3].append(node)
    return [node for group in groups for node in sorted(group)]


def node_of(graph: Graph, text: str) -> str:
    """Return the one node that a text means: an id, a unique name (``dog.n.01``), or a lemma that only one node has.

    Raises
    ------
    HierarchyError
        No such node, or several: the message lists them.
    """
    if text in graph:
        return text
    wanted = _plain(text)
    named = [node for node, name in graph.nodes(data="name") if name == wanted]
    found: list[str] = named or [
        node for node, lemmas in graph.nodes(data="lemmas") if wanted in str(lemmas or "").lower().split(" ")
    ]
    if len(found) == 1:
        return found[0]
    raise HierarchyError(
        "The name is ambiguous" if found else "The hierarchy has no such node",
        where=repr(text[:60]),
        expected="an id such as n02084071, a unique name such as dog.n.01, or a lemma of one node",
        found=", ".join(f"{node} {graph.nodes[node].get('name', '')}".strip() for node in sorted(found)[:8]) or None,
        hint=f"curation hierarchy find {wanted[:40]}",
    )


def _plain(text: str) -> str:
    return text.strip().lower().replace(" ", "_")


class Edits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Other parents for some nodes.

    Attributes
    ----------
    name, version : str
        What to cite.
    parents : mapping of str to tuple of str
        The parents that a node is to have, in order. Each must be one that it has, so that an edit chooses or leaves
        out; any other parent is an error unless the node is listed in `new`.
    new : tuple of str
        Nodes that are meant to get parents they did not have.
    reason : str
    """

    name: str
    version: str
    parents: dict[str, tuple[str, ...]]
    new: tuple[str, ...] = ()
    reason: str = ""


def read_edits(path: Path) -> Edits:
    """Return the edits of a TOML or JSON file.

    Raises
    ------
    MissingFileError, HierarchyError
        The file cannot be read, or is not such a file; nothing is edited; `new` names a node that is not edited.
    """
    edits = read_declaration(path, Edits, HierarchyError)
    unmatched = sorted(set(edits.new) - set(edits.parents))
    if not edits.parents or unmatched:
        expected = "parents of at least one node; new lists some of these nodes"
        found = ", ".join(unmatched)[:200] or "no parents"
        raise HierarchyError("Inconsistent edits", where=str(path), expected=expected, found=found)
    return edits


def edited(graph: Graph, edits: Edits) -> Graph:
    """Return the hierarchy with some edits, which are named in its ``origin``.

    Raises
    ------
    HierarchyError
        A node does not exist; a parent is neither one of the node nor listed as new; the edits create a cycle.
    """
    _require(graph, [node for child, new in edits.parents.items() for node in (child, *new)])
    _require_parents(
        graph, [(child, parent) for child, new in edits.parents.items() if child not in edits.new for parent in new]
    )
    result: Graph = graph.copy()
    for child, new in edits.parents.items():
        result.remove_edges_from([(child, parent) for parent in graph.adj[child]])
        result.add_edges_from((child, parent) for parent in new)
    require_acyclic(result, "the edits")
    result.graph["origin"] = f"{graph.graph.get('origin', 'hierarchy')}, edits {edits.name} {edits.version}"
    return result
