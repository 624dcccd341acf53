"""The category table of Open Images as the authors unfold it."""

import json
from pathlib import Path

import pytest

from curation.benchmarks.findmeifyoucan.layout import Category, open_images_categories
from curation.errors import HierarchyError
from tests.real_files import real_files

TREE = {
    "LabelName": "/m/root",
    "Subcategory": [
        {
            "LabelName": "/m/animal",
            "Subcategory": [
                {"LabelName": "/m/mammal", "Subcategory": [{"LabelName": "/m/dog"}, {"LabelName": "/m/bat"}]},
                {"LabelName": "/m/flier", "Subcategory": [{"LabelName": "/m/bat"}]},
            ],
            "Part": [{"LabelName": "/m/paw"}],
        },
        {"LabelName": "/m/coin"},
    ],
}
NAMES = {"animal": "Animal", "mammal": "Mammal", "dog": "Dog", "bat": "Bat", "flier": "Flier", "coin": "Coin"}


def files(folder: Path, tree: object = TREE) -> tuple[Path, Path]:
    (folder / "tree.json").write_text(json.dumps(tree))
    (folder / "names.csv").write_text("".join(f"/m/{key},{name}\n" for key, name in NAMES.items()))
    return folder / "tree.json", folder / "names.csv"


def test_numbers_follow_the_walk_and_a_repeated_class_keeps_its_first_number(tmp_path: Path) -> None:
    assert open_images_categories(*files(tmp_path)) == (
        Category(1, "Animal", "Animal", "Animal"),
        Category(2, "Mammal", "Animal", "Animal"),
        Category(3, "Dog", "Mammal", "Animal"),
        Category(4, "Bat", "Flier", "Animal"),
        Category(5, "Flier", "Animal", "Animal"),
        Category(6, "Coin", "Coin", "Coin"),
    )


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"LabelName": "/m/root", "Subcategory": [{"LabelName": "/m/none"}]}, "no name"),
        ({"LabelName": "/m/root", "Subcategory": [17]}, "cannot be read"),
        ([], "cannot be read"),
    ],
)
def test_what_is_no_tree_is_refused(tmp_path: Path, tree: object, message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        open_images_categories(*files(tmp_path, tree))


@real_files("openimages")
def check_the_real_tree_has_601_classes_each_once(shared: Path) -> None:
    folder = shared / "data/openimages"
    table = open_images_categories(folder / "bbox_labels_600_hierarchy.json", folder / "class-descriptions-boxable.csv")
    assert [one.number for one in table] == list(range(1, 602))
    by_name = {one.name: one for one in table}
    assert len(by_name) == 601
    assert (by_name["Loveseat"].supercategory, by_name["Loveseat"].metacategory) == ("Couch", "Furniture")
    assert (by_name["Coin"].supercategory, by_name["Coin"].metacategory) == ("Coin", "Coin")
