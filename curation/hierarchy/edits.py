"""Versioned edits of a hierarchy: other parents for some nodes, from a file that can be cited."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from curation.errors import HierarchyError
from curation.hierarchy.declarations import read_declaration
from curation.hierarchy.hierarchy import with_edits

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph


class Edits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Other parents for some nodes.

    Attributes
    ----------
    name, version : str
        What to cite.
    parents : mapping of str to tuple of str
        The parents that a node is to have, in order. Each must be one that it has, so that an edit chooses or leaves
        out; a parent of its own making is a mistake unless listed in `new`.
    new : tuple of str
        Nodes for which parents that they did not have are meant.
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
    strangers = sorted(set(edits.new) - set(edits.parents))
    if not edits.parents or strangers:
        raise HierarchyError(
            "The edits do not hold together",
            where=str(path),
            expected="parents of at least one node; new names some of these nodes",
            found=", ".join(strangers)[:200] or "no parents",
        )
    return edits


def edited(graph: Graph, edits: Edits) -> Graph:
    """Return the hierarchy with some edits, which are named in its ``origin``.

    Raises
    ------
    HierarchyError
        A node is not there; a parent is not one of it and not meant as new; the edits make a circle.
    """
    checked = {node: new for node, new in edits.parents.items() if node not in edits.new}
    forced = {node: edits.parents[node] for node in edits.new}
    result = with_edits(with_edits(graph, checked), forced, force=True)
    result.graph["origin"] = f"{graph.graph.get('origin', 'hierarchy')}, edits {edits.name} {edits.version}"
    return result
