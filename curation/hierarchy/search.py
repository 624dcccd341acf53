"""Nodes by name: what a word may mean in a hierarchy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.errors import HierarchyError

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph


def find(graph: Graph, word: str) -> list[str]:
    """Return the nodes that bear a word as id, unique name or lemma, then those with a lemma that contains it.

    Upper and lower case, blanks and ``_`` are the same. Each group is sorted by id.
    """
    wanted = _plain(word)
    bearing: list[str] = []
    containing: list[str] = []
    for node, data in graph.nodes(data=True):
        lemmas = str(data.get("lemmas", "")).lower().split(" ")
        if wanted in lemmas or wanted in (node.lower(), str(data.get("name", "")).lower()):
            bearing.append(node)
        elif wanted and any(wanted in lemma for lemma in lemmas):
            containing.append(node)
    return sorted(bearing) + sorted(containing)


def node_of(graph: Graph, text: str) -> str:
    """Return the one node that a text means: an id, a unique name (``dog.n.01``), or a lemma that only one node has.

    Raises
    ------
    HierarchyError
        There is none, or several: the message lists them.
    """
    if text in graph:
        return text
    wanted = _plain(text)
    bearing = [
        node
        for node, data in graph.nodes(data=True)
        if str(data.get("name", "")) == wanted or wanted in str(data.get("lemmas", "")).lower().split(" ")
    ]
    named = [node for node in bearing if str(graph.nodes[node].get("name", "")) == wanted]
    found: list[str] = named or bearing
    if len(found) == 1:
        return found[0]
    raise HierarchyError(
        "The name stands for several nodes" if found else "The hierarchy has no such node",
        where=repr(text[:60]),
        expected="an id such as n02084071, a unique name such as dog.n.01, or a lemma of one node",
        found=", ".join(f"{node} {graph.nodes[node].get('name', '')}".strip() for node in sorted(found)[:8])
        or None,
        hint=f"curation hierarchy find {wanted[:40]}",
    )


def _plain(text: str) -> str:
    return text.strip().lower().replace(" ", "_")
