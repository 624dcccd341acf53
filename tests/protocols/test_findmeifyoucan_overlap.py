"""The overlap linter: an ID class in a near list or in the annotations does not go unnoticed."""

import msgspec

from curation.benchmarks.findmeifyoucan.pairs import BDD, VOC, Pair, Pool, id_class_of, overlaps
from curation.sources.datasets import COCO_CATEGORIES

COCO_POOL, OI_POOL = VOC.pools


def near_lists(pair: Pair) -> list[str]:
    return [one for pool in pair.pools for one in overlaps(pair, pool, "near list", dict.fromkeys(pool.near, 0))]


def test_dog_in_the_published_near_list_is_flagged_and_nothing_else() -> None:
    assert near_lists(VOC) == ["openimages, near list: 'Dog' is the ID class 'dog'."]
    assert near_lists(BDD) == []


def test_the_categories_of_coco_that_are_voc_classes_are_the_twenty_of_the_rule() -> None:
    names = [name for _, name, _ in COCO_CATEGORIES]
    assert set(id_class_of(VOC, COCO_POOL, names)) == set(COCO_POOL.id_names)
    assert set(id_class_of(BDD, BDD.pools[0], names)) == set(BDD.pools[0].id_names)


def test_kinds_are_found_by_hierarchy_and_look_alikes_are_not() -> None:
    kinds = {"Duck": "bird", "Wheelchair": "chair", "Canoe": "boat"}
    found = id_class_of(VOC, OI_POOL, ["Duck", "Wheelchair", "Canoe", "Leopard", "Fox", "Truck", "Bed"])
    assert found == {name: ("is a kind of", of) for name, of in kinds.items()}


def test_aliases_are_told_from_names() -> None:
    found = id_class_of(VOC, OI_POOL, ["Television", "Bird", "Houseplant"])
    assert found == {
        "Television": ("is another name of", "tvmonitor"),
        "Bird": ("is", "bird"),
        "Houseplant": ("is another name of", "pottedplant"),
    }


def test_objects_in_a_split_are_counted_most_first() -> None:
    counts = {"Dog": 2, "Duck": 7, "Fox": 30, "Bird": 0}
    assert overlaps(VOC, OI_POOL, "openimages-near", {name: n for name, n in counts.items() if n}) == [
        "openimages, openimages-near: 'Duck' (7 objects) is a kind of the ID class 'bird'.",
        "openimages, openimages-near: 'Dog' (2 objects) is the ID class 'dog'.",
    ]


def test_without_a_synset_map_names_alone_count() -> None:
    plain = msgspec.structs.replace(VOC, synsets="")
    assert set(id_class_of(plain, OI_POOL, ["Duck", "Dog"])) == {"Dog"}
    own = Pair(
        name="lab/pets",
        id_classes=("dog",),
        synsets="voc",
        pools=(Pool(name="zoo", dataset="zoo", near={"DOG": "dog", "wolf": "dog"}),),
    )
    assert [one.split("'")[1] for one in near_lists(own)] == ["DOG"]
