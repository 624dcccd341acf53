"""Lists of categories: an ID class in a near list is found, and files of another kind are refused."""

import json
from pathlib import Path

import pytest

from curation.benchmarks.findmeifyoucan.pairs import CategoryLists, check_categories, read_category_lists
from curation.errors import DecisionError, MissingFileError
from tests.real_files import real_files


def test_an_id_class_in_the_near_list_and_one_removed_too_are_found() -> None:
    lists = CategoryLists(
        id_names={"coco": ("dog",), "openimages": ("Dog", "Cat")},
        removed={"coco": ("fork",)},
        near={"coco": ("Fork", "zebra"), "openimages": ("Fox", "dog")},
    )
    assert [(one.problem, one.dataset, one.name) for one in check_categories(lists)] == [
        ("id_class_is_near", "openimages", "dog"),
        ("removed_and_near", "coco", "Fork"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"VOC_CLASSES": ["dog"]},
        {"VOC_CLASSES": {"coco": "dog"}},
        {"VOC_CLASSES": {"coco": [1]}},
        {"VOC_CLASSES": {"coco": ["\u001b"]}},
        {"VOC_CLASSES": {}, "BDD_CLASSES": {}},
    ],
    ids=str,
)
def test_what_holds_no_category_lists_is_refused(content: object, tmp_path: Path) -> None:
    for name in ("c.json", "c.yaml"):
        (tmp_path / name).write_text(json.dumps(content))
        with pytest.raises(DecisionError):
            read_category_lists(tmp_path / name)
    with pytest.raises(MissingFileError):
        read_category_lists(tmp_path / "none.json")


@real_files("decisions")
def check_dog_stands_in_the_published_near_list(shared: Path) -> None:
    voc = read_category_lists(shared / "data/findmeifyoucan/categories_voc.json")
    found = [(one.dataset, one.name) for one in check_categories(voc) if one.problem == "id_class_is_near"]
    assert found == [("openimages", "Dog")]
    also = {(one.dataset, one.name) for one in check_categories(voc) if one.problem == "removed_and_near"}
    assert also == {("coco", "spoon"), ("coco", "fork")}
    bdd = read_category_lists(shared / "data/findmeifyoucan/categories_bdd.json")
    assert not [one for one in check_categories(bdd) if one.problem == "id_class_is_near"]
