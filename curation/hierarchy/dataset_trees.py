"""Class trees that data sets bring along: Open Images' JSON, COCO's super-categories."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from curation.errors import HierarchyError
from curation.hierarchy.hierarchy import require_acyclic
from curation.json_keys import refuse_repeated_keys
from curation.storage import read_bytes

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph

COCO_ROOT = "coco"
GROUP_SUFFIX = " (group)"
"""COCO's super-categories bear it, since ``person`` is a class and a super-category."""


def read_open_images(tree: Path, names: Path | None = None, *, parts: bool = False) -> Graph:
    """Return Open Images' class hierarchy; nodes are its label names such as ``/m/0bt9lr``.

    Parameters
    ----------
    tree : Path
        ``bbox_labels_600_hierarchy.json``: nested ``LabelName``, ``Subcategory``, ``Part``.
    names : Path, optional
        ``class-descriptions-boxable.csv``: label name, name.
    parts : bool
        Whether ``Part`` counts as kinship too. It says that a wheel belongs to a car, not that it is one.

    Raises
    ------
    MissingFileError
        A file cannot be read.
    HierarchyError
        It is not such a tree, or runs in a circle.
    """
    import networkx as nx

    graph: Graph = nx.DiGraph(origin=tree.name)
    pending: list[tuple[Any, str]] = [(_decoded(tree), "")]
    while pending:
        entry, parent = pending.pop()
        node = _label_name(entry, tree)
        graph.add_node(node)
        if parent:
            graph.add_edge(node, parent)
        below = [*_entries(entry, "Subcategory", tree), *(_entries(entry, "Part", tree) if parts else ())]
        pending += [(one, node) for one in reversed(below)]
    require_acyclic(graph, str(tree))
    for node, name in _names(names) if names is not None else ():
        if node in graph:
            graph.nodes[node]["lemmas"] = name.replace(" ", "_")
    return graph


def coco_hierarchy(categories: Iterable[tuple[int, str, str]]) -> Graph:
    """Return a tree of root, super-categories and classes.

    Parameters
    ----------
    categories : iterable of (number, name, super-category)
        For example `curation.sources.coco_categories.COCO_CATEGORIES`, or those of a file.
    """
    import networkx as nx

    graph: Graph = nx.DiGraph(origin="COCO super-categories")
    graph.add_node(COCO_ROOT)
    for _, name, group in categories:
        over = f"{group}{GROUP_SUFFIX}" if group else COCO_ROOT
        if group:
            graph.add_edge(over, COCO_ROOT)
        graph.add_edge(name, over)
    require_acyclic(graph, "the super-categories")
    for node in graph:
        graph.nodes[node]["lemmas"] = node.removesuffix(GROUP_SUFFIX).replace(" ", "_")
    return graph


def _decoded(path: Path) -> Any:
    data = read_bytes(path, kind="class hierarchy")
    refuse_repeated_keys(data, str(path), HierarchyError)
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HierarchyError(
            "The class hierarchy is not JSON", where=str(path), found=str(error)[:200]
        ) from None


def _label_name(entry: Any, path: Path) -> str:
    name = entry.get("LabelName") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not 0 < len(name) <= 255 or not name.isprintable():
        raise HierarchyError(
            "An entry of the class hierarchy has no label name",
            where=str(path),
            expected='{"LabelName": "/m/…", "Subcategory": […]}',
            found=repr(entry)[:80],
        )
    return name


def _entries(entry: Any, key: str, path: Path) -> list[Any]:
    found = entry.get(key, [])
    if not isinstance(found, list):
        raise HierarchyError(
            f"{key} of the class hierarchy is no array", where=str(path), found=repr(found)[:80]
        )
    return found


def _names(path: Path) -> list[tuple[str, str]]:
    try:
        rows = list(csv.reader(io.StringIO(read_bytes(path, kind="list of class names").decode("utf-8-sig"))))
    except (UnicodeDecodeError, csv.Error) as error:
        raise HierarchyError(
            "The class names are not a CSV file", where=str(path), found=str(error)[:200]
        ) from None
    return [(row[0], row[1]) for row in rows if len(row) >= 2 and row[1].isprintable()]
