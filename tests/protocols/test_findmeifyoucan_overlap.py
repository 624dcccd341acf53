"""The overlap linter: an ID class in a near list or in the annotations does not go unnoticed."""

from pathlib import Path

import msgspec

from curation.benchmarks.findmeifyoucan.pairs import (
    BDD,
    NEAR_LIST,
    VOC,
    Pair,
    Pool,
    annotated_overlaps,
    id_class_of,
    near_list_overlaps,
)
from curation.hierarchy import open_wordnet
from curation.hierarchy.synset_maps import synset_map
from curation.sources.datasets import COCO_CATEGORIES
from tests.hierarchy.drawn_wordnet import database, rows_above, written

COCO_POOL, OI_POOL = VOC.pools


def test_dog_in_the_published_near_list_is_flagged_and_nothing_else() -> None:
    (found,) = near_list_overlaps(VOC)
    assert (found.pool, found.place, found.category, found.id_class) == ("openimages", NEAR_LIST, "Dog", "dog")
    assert "Dog" in str(found)
    assert near_list_overlaps(BDD) == ()


def test_the_categories_of_coco_that_are_voc_classes_are_the_twenty_of_the_rule() -> None:
    names = [name for _, name, _ in COCO_CATEGORIES]
    assert set(id_class_of(VOC, COCO_POOL, names)) == set(COCO_POOL.id_names)
    assert set(id_class_of(BDD, BDD.pools[0], names)) == set(BDD.pools[0].id_names)


def test_kinds_are_found_by_hierarchy_and_look_alikes_are_not() -> None:
    found = id_class_of(VOC, OI_POOL, ["Duck", "Wheelchair", "Canoe", "Leopard", "Fox", "Truck", "Bed"])
    assert {name: owner for name, (owner, _) in found.items()} == {
        "Duck": "bird",
        "Wheelchair": "chair",
        "Canoe": "boat",
    }
    assert {how for _, how in found.values()} == {"kind"}


def test_aliases_are_told_from_names() -> None:
    found = id_class_of(VOC, OI_POOL, ["Television", "Bird", "Houseplant"])
    assert found == {
        "Television": ("tvmonitor", "alias"),
        "Bird": ("bird", "name"),
        "Houseplant": ("pottedplant", "alias"),
    }


def test_objects_in_a_split_are_counted_most_first() -> None:
    counts = {"Dog": 2, "Duck": 7, "Fox": 30, "Bird": 0}
    found = annotated_overlaps(VOC, OI_POOL, "openimages-near", counts)
    assert [(one.category, one.objects) for one in found] == [("Duck", 7), ("Dog", 2)]
    assert "7 objects" in str(found[0])


def test_without_a_synset_map_names_alone_count() -> None:
    plain = msgspec.structs.replace(VOC, synsets="")
    assert set(id_class_of(plain, OI_POOL, ["Duck", "Dog"])) == {"Dog"}
    own = Pair(
        name="lab/pets",
        id_classes=("dog",),
        synsets="voc",
        pools=(Pool(name="zoo", dataset="zoo", near={"DOG": "dog", "wolf": "dog"}),),
    )
    assert [one.category for one in near_list_overlaps(own)] == ["DOG"]


def test_another_wordnet_says_what_is_a_kind(nltk_corpora: Path) -> None:
    # Of the names below this WordNet has the bird and the duck alone.
    written(nltk_corpora / "ducks", database(rows_above([synset_map("openimages")["Duck"]])))
    wordnet = open_wordnet("nltk:ducks")
    names = ["Duck", "Wheelchair", "Canoe", "Bird"]
    assert id_class_of(VOC, OI_POOL, names, wordnet) == {"Duck": ("bird", "kind"), "Bird": ("bird", "name")}
