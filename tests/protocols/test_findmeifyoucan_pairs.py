"""ID classes among the categories of a pool, and decisions as a manifest holds them."""

import json
import random
import shlex
from pathlib import Path

import msgspec
import pytest

from curation.benchmarks.rules.ood_pools import OodPair, OodPool, id_class_of, id_class_overlaps
from curation.benchmarks.rules.replay import decisions_in, read_recorded
from curation.cli import main
from curation.core.errors import CurationError, DecisionConflictError, DecisionError, ProtocolError
from curation.review.decisions.files import write_decisions
from curation.review.decisions.resolution import recorded_form
from curation.sources.datasets import COCO_CATEGORIES
from tests.protocols.findmeifyoucan_world import BDD, VOC, decided

COCO_POOL, OI_POOL = VOC.pools


def near_lists(pair: OodPair) -> list[str]:
    return [
        one for pool in pair.pools for one in id_class_overlaps(pair, pool, "near list", dict.fromkeys(pool.near, 0))
    ]


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


def test_objects_in_a_split_are_counted_most_first() -> None:
    counts = {"Dog": 2, "Duck": 7, "Fox": 30, "Bird": 0}
    assert id_class_overlaps(VOC, OI_POOL, "openimages-near", {name: n for name, n in counts.items() if n}) == [
        "openimages, openimages-near: 'Duck' (7 objects) is a kind of the ID class 'bird'.",
        "openimages, openimages-near: 'Dog' (2 objects) is the ID class 'dog'.",
    ]


def test_without_a_synset_map_names_alone_count() -> None:
    plain = msgspec.structs.replace(VOC, synsets="")
    assert set(id_class_of(plain, OI_POOL, ["Duck", "Dog"])) == {"Dog"}
    own = OodPair(
        name="lab/pets",
        id_classes=("dog",),
        synsets="voc",
        pools=(OodPool(name="zoo", dataset="zoo", start="zoo", candidates="", near={"DOG": "dog", "wolf": "dog"}),),
    )
    assert [one.split("'")[1] for one in near_lists(own)] == ["DOG"]


DECISIONS = [
    *decided("coco", "manual", "remove", 7, 3, reason="person"),
    *decided("coco", "manual", "remove", 3, reason="car"),
    *decided("coco-far", "manual", "to_near", 9),
    *decided("openimages", "candidate", "add_far", "00ab"),
]


def test_order_and_repeats_change_nothing_and_reasons_stay_apart() -> None:
    text = recorded_form(DECISIONS)
    shuffled = [*DECISIONS, *DECISIONS]
    random.Random(3).shuffle(shuffled)
    assert recorded_form(shuffled) == text
    assert read_recorded(text) == text
    assert json.loads(text)[0] == ["coco", "manual", "remove", "car", ["coco:000000000003"]]
    on_coco = filter(VOC.pools[0].concerns, decisions_in(text))
    assert sorted(map(str, on_coco)) == sorted(map(str, DECISIONS[:4]))


def test_a_pool_with_reasons_hears_its_removals_alone() -> None:
    voc, bdd = VOC.pools[0], BDD.pools[0]
    on_pool = [row for row in decisions_in(recorded_form(DECISIONS)) if bdd.concerns(row)]
    assert [(row.image_id, row.reason) for row in on_pool if bdd.counts(row)] == [
        ("coco:000000000003", "person"),
        ("coco:000000000007", "person"),
    ]
    assert (len(on_pool), all(map(voc.counts, on_pool))) == (3, True)


def test_a_file_that_is_cut_off_or_contradicts_itself_is_refused_with_the_command_that_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near, far = decided("coco", "manual", "to_near", 9), decided("coco", "manual", "to_far", 9)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my decisions").mkdir()
    log = tmp_path / "my decisions" / "log.jsonl"
    write_decisions(log, near)

    def follow(error: CurationError) -> str:
        command = str(error.hint).partition(", and build")[0]
        assert main([*shlex.split(command)[1:], "--force"]) == 0
        return read_recorded("RESOLVED.jsonl")

    log.write_bytes(log.read_bytes() + b'{"image_id": "coc')
    with pytest.raises(DecisionError, match="cut off") as caught:
        read_recorded(str(log))
    assert follow(caught.value) == recorded_form(near)
    both = tmp_path / "both.jsonl"
    write_decisions(both, [*near, *far])
    with pytest.raises(DecisionConflictError) as refused:
        read_recorded(str(both))
    assert "--rule majority --out" in str(refused.value.hint)
    print("FOLLOWED", follow(refused.value))


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "[1]",
        '[["coco"]]',
        '[["coco","manual","explode","",["coco:000000000001"]]]',
        '[["coco","manual","remove","",[1]]]',
        '[["coco","manual","remove",NaN,[]]]',
        "[" * 100_000,
    ],
    ids=range(7),
)
def test_what_is_no_recorded_form_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError, match="not in the form"):
        read_recorded(text)
