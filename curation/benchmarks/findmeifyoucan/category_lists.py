"""The category lists of the FindMeIfYouCan authors (``categories_voc.json``), and what is odd about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.decisions.authors_files import as_form, parse_tree
from curation.errors import DecisionError
from curation.input_files import read_plain

Names = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class CategoryLists:
    """Category names by data set: those of ID classes, those that remove an image, those that make it near."""

    id_names: Mapping[str, list[str]]
    removed: Mapping[str, list[str]]
    near: Mapping[str, list[str]]


@dataclass(frozen=True, slots=True, order=True)
class CategoryFinding:
    """A category in the wrong list.

    Attributes
    ----------
    problem : {"id_class_is_near", "removed_and_near"}
        An ID class in the near list: such images show what the detector knows. Or a category in both lists: removal
        wins, so that it is near only where an override keeps the image.
    """

    problem: str
    dataset: str
    name: str

    def text(self) -> str:
        """Return this as one sentence."""
        if self.problem == "id_class_is_near":
            return f"{self.dataset}: the near list names {self.name!r}, an ID class."
        return f"{self.dataset}: {self.name!r} is to be removed and near; removal wins."


def read_category_lists(path: Path) -> CategoryLists:
    """Return the category lists of a ``.yaml`` or ``.json`` file of the authors; other keys are ignored.

    Raises
    ------
    MissingFileError
        There is no such file.
    DecisionError
        It is not such a file.
    """
    layout = "VOC_CLASSES or BDD_CLASSES, CATS_TO_REMOVE, CATS_TO_NEAR_OOD: each by data set, then names"
    tree = parse_tree(read_plain(path, kind="file of category lists"), path.name)
    lists = as_form(tree, dict[str, Any], path.name, layout)
    id_lists = [value for key, value in lists.items() if key.endswith("_CLASSES")]
    if len(id_lists) != 1:
        raise DecisionError("No category lists in the file", where=path.name, expected=layout)
    several = (id_lists[0], lists.get("CATS_TO_REMOVE", {}), lists.get("CATS_TO_NEAR_OOD", {}))
    found = [as_form(value, Names, path.name, layout) for value in several]
    if not all(name.isprintable() for names in found for listed in names.values() for name in listed):
        raise DecisionError("A category is not a line of text", where=path.name, expected=layout)
    return CategoryLists(*found)


def check_categories(lists: CategoryLists) -> tuple[CategoryFinding, ...]:
    """Return what is odd about category lists, sorted by data set and name; case does not count."""
    others = {"id_class_is_near": lists.id_names, "removed_and_near": lists.removed}
    return tuple(
        sorted(
            CategoryFinding(problem, dataset, name)
            for dataset, near in lists.near.items()
            for name in near
            for problem, names in others.items()
            if name.casefold() in {one.casefold() for one in names.get(dataset, ())}
        )
    )
