"""The facts of FindMeIfYouCan agree with each other, and with the published category files."""

import json
from pathlib import Path

from curation.benchmarks.findmeifyoucan.lists import ADDED, KEPT, START
from curation.benchmarks.findmeifyoucan.pairs import BDD, VOC
from curation.sources.datasets import COCO_CATEGORIES
from tests.real_files import real_files

COCO = {name for _, name, _ in COCO_CATEGORIES}


def test_the_six_splits_have_the_sizes_of_the_paper() -> None:
    sizes = {part: kept + ADDED[pair][part] for pair, several in KEPT.items() for part, kept in several.items()}
    assert sizes == {
        "coco-near": 1174,
        "coco-far": 938,
        "openimages-near": 908,
        "openimages-far": 1179,
        "coco-farther": 1873,
        "openimages-farther": 1695,
    }
    assert sum(sizes.values()) == 7767


def test_what_is_removed_is_the_start_list_less_the_kept_images() -> None:
    removed = {
        (pair, pool): size - sum(n for part, n in KEPT[pair].items() if part.startswith(pool))
        for pair, pools in START.items()
        for pool, size in pools.items()
    }
    assert removed == {("voc", "coco"): 146, ("voc", "openimages"): 259, ("bdd", "coco"): 7, ("bdd", "openimages"): 66}


def test_the_start_rules_leave_60_and_71_categories() -> None:
    assert len(COCO - set(VOC.pools[0].id_names)) == 60
    assert len(COCO - set(BDD.pools[0].id_names)) == 71
    assert "truck" not in VOC.pools[0].id_names
    assert "truck" in BDD.pools[0].id_names
    assert set(VOC.pools[0].id_names) | set(BDD.pools[0].id_names) <= COCO


@real_files("decisions")
def check_category_tables_are_those_of_the_authors(shared: Path) -> None:
    voc = json.loads((shared / "data/findmeifyoucan/categories_voc.json").read_text())
    bdd = json.loads((shared / "data/findmeifyoucan/categories_bdd.json").read_text())
    assert set(voc["VOC_CLASSES"]["coco"]) == set(VOC.pools[0].id_names)
    assert set(voc["VOC_CLASSES"]["openimages"]) == set(VOC.pools[1].id_names)
    assert set(voc["CATS_TO_REMOVE"]["coco"]) == set(VOC.pools[0].remove)
    assert set(voc["CATS_TO_REMOVE"]["openimages"]) == set(VOC.pools[1].remove)
    assert set(voc["CATS_TO_NEAR_OOD"]["coco"]) == set(VOC.pools[0].near)
    assert set(voc["CATS_TO_NEAR_OOD"]["openimages"]) == set(VOC.pools[1].near)
    assert set(bdd["BDD_CLASSES"]["openimages"]) == set(BDD.pools[1].id_names)
    assert set(bdd["CATS_TO_REMOVE"]["openimages"]) == set(BDD.pools[1].remove)
    assert bdd["CATS_TO_REMOVE"]["coco"] == []


@real_files("openimages")
def check_names_of_id_classes_that_open_images_has_not(shared: Path) -> None:
    rows = (shared / "data/openimages/class-descriptions-boxable.csv").read_text(encoding="utf-8").splitlines()
    names = {row.split(",")[1] for row in rows}
    assert set(VOC.pools[1].id_names) - names == {"Human", "Body part", "Cow", "Dining table", "Potted plant"}
    assert {"Cattle", "Kitchen & dining room table", "Houseplant"} <= names
    assert set(VOC.pools[1].remove) | set(VOC.pools[1].near) <= names
