"""The category table of FindMeIfYouCan's Open Images files: numbers along the class tree, parent, grandparent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.errors import HierarchyError
from curation.hierarchy.class_trees import read_json_tree, read_open_images_names


@dataclass(frozen=True, slots=True)
class OpenImagesCategory:
    """One row of the table.

    Attributes
    ----------
    number : int
        Position in the walk, from 1.
    label : str
        Label name such as ``/m/0bt9lr``.
    name, supercategory, metacategory : str
    """

    number: int
    label: str
    name: str
    supercategory: str
    metacategory: str


def open_images_categories(tree: Path, names: Path) -> tuple[OpenImagesCategory, ...]:
    """Return the classes in the order of a depth-first walk along ``Subcategory`` (``unfold_oi_categories``).

    Below the root, a class of depth 0 is its own super- and metacategory, one of depth 1 has its parent as both, a
    deeper one its parent and its grandparent. A class that is met again keeps its first number and takes the parents of
    the last visit. ``Part`` is not followed.

    Parameters
    ----------
    tree : Path
        ``bbox_labels_600_hierarchy.json``.
    names : Path
        ``class-descriptions-boxable.csv``: label name, name; no header.

    Raises
    ------
    MissingFileError
        A file cannot be read.
    HierarchyError
        A file is not what it should be, or a class has no name.
    """
    named = read_open_images_names(names)
    found: dict[str, OpenImagesCategory] = {}
    pending: list[tuple[Any, tuple[str, ...]]] = [(one, ()) for one in reversed(_below(read_json_tree(tree), tree))]
    visits = 0
    while pending:
        entry, line = pending.pop()
        label = entry.get("LabelName") if isinstance(entry, dict) else None
        if not isinstance(label, str) or label not in named:
            raise HierarchyError("A class of the tree has no name", where=str(tree), found=repr(label)[:80])
        # A tree that repeats its branches without end would be walked for ever.
        visits += 1
        if visits > 1_000_000:
            raise HierarchyError("The class tree has more than a million entries", where=str(tree))
        name = named[label]
        parents = (*line, name)
        number = found[label].number if label in found else len(found) + 1
        found[label] = OpenImagesCategory(
            number, label, name, parents[max(len(parents) - 2, 0)], parents[max(len(parents) - 3, 0)]
        )
        pending += [(one, parents) for one in reversed(_below(entry, tree))]
    return tuple(found.values())


def _below(entry: Any, path: Path) -> list[Any]:
    found = entry.get("Subcategory", []) if isinstance(entry, dict) else None
    if not isinstance(found, list):
        raise HierarchyError("Subcategory of the class hierarchy is no array", where=str(path), found=repr(found)[:80])
    return found
