"""The facts of FindMeIfYouCan agree with each other, and with the published category files."""

import json
from pathlib import Path

from curation.benchmarks.findmeifyoucan.lists import paper_file
from curation.sources.datasets import COCO_CATEGORIES
from tests.protocols.findmeifyoucan_world import BDD, VOC
from tests.real_files import real_files

COCO = {name for _, name, _ in COCO_CATEGORIES}


EXPECTED = {case: {name: figure.value for name, figure in paper_file(case).expect.items()} for case in ("voc", "bdd")}
PARTS = {(case, part) for case, pair in (("voc", VOC), ("bdd", BDD)) for pool in pair.pools for part in pool.parts}


def test_the_six_splits_have_the_sizes_of_the_paper() -> None:
    sizes = {part: EXPECTED[case][f"{part}.images"] for case, part in PARTS}
    assert sizes == {
        "coco-near": 1174,
        "coco-far": 938,
        "openimages-near": 908,
        "openimages-far": 1179,
        "coco-farther": 1873,
        "openimages-farther": 1695,
    }
    assert sum(sizes.values()) == 7767
    for case, part in PARTS:
        kept, added = (EXPECTED[case][f"{part}.{kind}_images"] for kind in ("kept", "added"))
        assert kept + added == sizes[part]


def test_what_is_removed_is_the_start_list_less_the_kept_images() -> None:
    removed = {}
    for case, pool in (("voc", "coco"), ("voc", "openimages"), ("bdd", "coco"), ("bdd", "openimages")):
        figures = EXPECTED[case]
        kept = sum(figures[f"{part}.kept_images"] for at, part in PARTS if at == case and part.startswith(pool))
        assert figures[f"{pool}.removed_images"] == figures[f"{pool}-start.images"] - kept
        removed[case, pool] = figures[f"{pool}.removed_images"]
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
