"""Super-classes: the counts of five readings, and what must not matter."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.errors import HierarchyError, UsageError
from curation.hierarchy.class_trees import SUPERCLASS_RULES, superclass
from tests.real_files import real_files

TREE = {
    "LabelName": "/m/root",
    "Subcategory": [
        {
            "LabelName": "/m/vehicle",
            "Subcategory": [
                {"LabelName": "/m/car", "Subcategory": [{"LabelName": "/m/taxi"}, {"LabelName": "/m/van"}]},
                {"LabelName": "/m/cab", "Subcategory": [{"LabelName": "/m/taxi"}]},
                {"LabelName": "/m/bike", "Part": [{"LabelName": "/m/wheel"}]},
            ],
            "Part": [{"LabelName": "/m/plate"}],
        },
        {"LabelName": "/m/wheel"},
    ],
}
EXPECTED = {
    "leaves": ("/m/bike", "/m/taxi", "/m/van"),
    "repeated_leaves": ("/m/bike", "/m/taxi", "/m/taxi", "/m/van"),
    "descendants": ("/m/bike", "/m/cab", "/m/car", "/m/taxi", "/m/van"),
    "leaves_over_parts": ("/m/plate", "/m/taxi", "/m/van", "/m/wheel"),
    "leaves_without_parts": ("/m/taxi", "/m/van"),
}


def turned(entry: Any) -> Any:
    """The same tree with every list of children the other way round."""
    return {
        key: [turned(one) for one in reversed(value)] if isinstance(value, list) else value
        for key, value in reversed(entry.items())
    }


@pytest.mark.parametrize("rule", sorted(SUPERCLASS_RULES))
def test_readings_of_a_small_tree(tmp_path: Path, rule: Any) -> None:
    for name, tree in (("a", TREE), ("b", turned(TREE))):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(tree))
        assert superclass(path, "/m/vehicle", rule) == EXPECTED[rule]


@real_files("openimages")
@pytest.mark.parametrize(
    ("rule", "animals", "vehicles"),
    [
        ("leaves", 96, 24),
        ("repeated_leaves", 100, 24),
        ("descendants", 110, 29),
        ("leaves_over_parts", 96, 28),
        ("leaves_without_parts", 96, 23),
    ],
)
def check_the_real_tree(shared: Path, rule: Any, animals: int, vehicles: int) -> None:
    tree = shared / "data/openimages/bbox_labels_600_hierarchy.json"
    assert len(superclass(tree, "/m/0jbk", rule)) == animals
    assert len(superclass(tree, "/m/07yv9", rule)) == vehicles


@real_files("openimages")
def check_other_superclasses_of_the_real_tree(shared: Path) -> None:
    folder = shared / "data/openimages"
    rows = (folder / "oidv6-class-descriptions.csv").read_text().splitlines()
    label = {name: mid for mid, _, name in (row.partition(",") for row in rows)}
    tree = folder / "bbox_labels_600_hierarchy.json"
    expected = {"Food": 64, "Mammal": 48, "Kitchenware": 44, "Tool": 42, "Clothing": 40, "Furniture": 23}
    assert {name: len(superclass(tree, label[name])) for name in expected} == expected
    vehicles = superclass(tree, "/m/07yv9")
    assert {label["Limousine"], label["Taxi"], label["Barge"]} < set(vehicles)
    assert not {label["Car"], label["Boat"], label["Bicycle wheel"]} & set(vehicles)


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(TREE))
    with pytest.raises(HierarchyError, match="no such node"):
        superclass(path, "Vehicle")
    with pytest.raises(HierarchyError, match="no descendants"):
        superclass(path, "/m/taxi")
    with pytest.raises(UsageError, match="Unknown rule"):
        superclass(path, "/m/vehicle", "nodes")  # type: ignore[arg-type]
