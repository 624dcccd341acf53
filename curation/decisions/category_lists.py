"""The authors' lists of categories (``VOC_CLASSES``, ``CATS_TO_NEAR_OOD``, …), and what is odd about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.decisions.trees import TEXT, Keyed, Leaf, parse_json_tree, parse_yaml_tree
from curation.errors import DecisionError
from curation.storage import read_bytes

NEAR, REMOVED = "CATS_TO_NEAR_OOD", "CATS_TO_REMOVE"
_ID_SUFFIX = "_CLASSES"
_LAYOUT = f"VOC{_ID_SUFFIX} or BDD{_ID_SUFFIX}, {REMOVED}, {NEAR}: each by data set, then names"


@dataclass(frozen=True, slots=True)
class CategoryLists:
    """Category names by data set: those of ID classes, those that remove an image, those that make it near."""

    id_names: Mapping[str, tuple[str, ...]]
    removed: Mapping[str, tuple[str, ...]]
    near: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class CategoryFinding:
    """One category that stands where it should not.

    Attributes
    ----------
    problem : {"id_class_is_near", "removed_and_near"}
        An ID class in the near list: such images show what the detector knows. Or a category in both lists: removal
        wins, so that it is near only where an override keeps the image.
    """

    dataset: str
    name: str
    problem: str

    def text(self) -> str:
        """Return this as one sentence."""
        if self.problem == "id_class_is_near":
            return f"{self.dataset}: the near list names {self.name!r}, an ID class."
        return f"{self.dataset}: {self.name!r} is to be removed and near; removal wins."


def read_category_lists(path: Path) -> CategoryLists:
    """Return the category lists of a ``.yaml`` or ``.json`` file of the authors; other keys are passed over.

    Raises
    ------
    MissingFileError
        There is no such file.
    DecisionError
        It is no such file.
    """
    data = read_bytes(path, kind="file of category lists")
    is_json = path.suffix.lower() == ".json"
    root = (parse_json_tree if is_json else parse_yaml_tree)(data, path.name)
    if not isinstance(root, Keyed):
        raise _malformed(path.name)
    lists = dict(root.items)
    id_keys = [key for key in lists if key.endswith(_ID_SUFFIX)]
    if len(id_keys) != 1:
        raise _malformed(path.name, f"{len(id_keys)} lists of ID classes")
    return CategoryLists(
        id_names=_names(lists[id_keys[0]], path.name),
        removed=_names(lists.get(REMOVED), path.name),
        near=_names(lists.get(NEAR), path.name),
    )


def check_categories(lists: CategoryLists) -> tuple[CategoryFinding, ...]:
    """Return what is odd about category lists, sorted by data set and name; case does not count."""
    found = []
    for dataset, near in lists.near.items():
        known, removed = (_folded(one.get(dataset, ())) for one in (lists.id_names, lists.removed))
        for name in near:
            if name.casefold() in known:
                found.append(CategoryFinding(dataset, name, "id_class_is_near"))
            if name.casefold() in removed:
                found.append(CategoryFinding(dataset, name, "removed_and_near"))
    return tuple(sorted(found, key=lambda one: (one.problem, one.dataset, one.name)))


def _folded(names: Collection[str]) -> set[str]:
    return {name.casefold() for name in names}


def _names(value: Any, name: str) -> dict[str, tuple[str, ...]]:
    if value is None:
        return {}
    if not isinstance(value, Keyed):
        raise _malformed(name)
    return {dataset: _texts(several, name) for dataset, several in value.items}


def _texts(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _malformed(name)
    for one in value:
        if not isinstance(one, Leaf) or one.kind != TEXT or not one.text.isprintable():
            raise _malformed(getattr(one, "where", name), "a category that is no line of text")
    return tuple(one.text for one in value)


def _malformed(where: str, found: str | None = None) -> DecisionError:
    return DecisionError("The file holds no category lists", where=where, expected=_LAYOUT, found=found)
