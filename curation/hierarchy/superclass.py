"""The classes below a super-class of a data set's own tree, under five readings of "sub-class"."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from curation.canonical import sha256_of_lines
from curation.errors import HierarchyError, UsageError
from curation.hierarchy.dataset_trees import read_open_images
from curation.hierarchy.hierarchy import children, descendants, leaves_under

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph

SuperclassRule = Literal[
    "leaves", "repeated_leaves", "descendants", "leaves_over_parts", "leaves_without_parts"
]
SUPERCLASS_RULES: dict[str, str] = {
    "leaves": "every node without a sub-category, once (gives the paper's 96 animals and 24 vehicles)",
    "repeated_leaves": "the same, once for each way down to it",
    "descendants": "every node below, inner ones included",
    "leaves_over_parts": "leaves when Part counts as kinship too: a wheel is then a vehicle",
    "leaves_without_parts": "leaves that have no Part either: a bicycle, which has a wheel, is then none",
}
OPEN_IMAGES_ROOTS = {"animal": "/m/0jbk", "vehicle": "/m/07yv9"}
"""The two super-classes of *Rectifying Open-Set Object Detection*."""


def superclass(tree: Path, root: str, rule: SuperclassRule = "leaves") -> tuple[str, ...]:
    """Return the label names below a node of an Open Images tree, sorted by code point.

    Matching is by label name (``/m/0jbk``) alone: names are for the eye, and one circulating copy lacks one. Under
    ``repeated_leaves`` a label stands as often as there are ways down to it.

    Raises
    ------
    MissingFileError
        The tree cannot be read.
    HierarchyError
        It is no tree, runs in a circle, or has no such node; nothing lies below the node.
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
        raise HierarchyError(
            "Nothing lies below the node", where=f"{tree.name}: {root}", expected="an inner node"
        )
    return found


def superclass_digest(labels: tuple[str, ...]) -> str:
    """Return the digest of a super-class: of its labels, sorted, one a line."""
    return sha256_of_lines(labels)


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
        return sum((below(one) for one in kinds), Counter()) if kinds else Counter({node: 1})

    return below(root) if children(graph, root) else Counter()
