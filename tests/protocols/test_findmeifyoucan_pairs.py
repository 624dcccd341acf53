"""Declarations of one's own pair of ID classes and OOD sources."""

import json
from pathlib import Path

import pytest

from curation.benchmarks.findmeifyoucan.pairs import BDD, EXAMPLE, VOC, Wanted, pair_of, read_pair
from curation.errors import CurationError, ProtocolError

BASE = {"name": "lab/pets", "id_classes": ["cat"], "pools": [{"name": "zoo", "dataset": "zoo"}]}


def test_the_example_is_read_from_toml_and_again_from_its_own_form(tmp_path: Path) -> None:
    path = tmp_path / "pair.toml"
    path.write_text(EXAMPLE)
    text = read_pair(str(path))
    pair = pair_of(text)
    assert (pair.name, pair.id_classes, pair.aliases) == ("mylab/pets", ("cat", "dog"), {"dog": ("puppy",)})
    (pool,) = pair.pools
    assert (pool.start, pool.candidates, pool.published) == ("zoo", "zoo-candidates", "zoo-list")
    assert pool.parts == ("zoo-near", "zoo-far")
    assert pair.id_names(pool) == ("cat", "dog", "puppy")
    assert read_pair(text) == text
    as_json = tmp_path / "pair.json"
    as_json.write_text(text)
    assert read_pair(str(as_json)) == text


def test_the_papers_pairs_have_six_splits() -> None:
    assert [part for pair in (VOC, BDD) for pool in pair.pools for part in pool.parts] == [
        "coco-near",
        "coco-far",
        "openimages-near",
        "openimages-far",
        "coco-farther",
        "openimages-farther",
    ]
    assert pair_of("voc") is VOC
    slots = {slot.name: (slot.dataset, slot.part) for slot in VOC.slots()}
    assert slots["coco-val2017"] == ("coco", "val2017")
    assert slots["openimages"] == ("openimages", "")


def test_bounds_are_excluded() -> None:
    wanted = Wanted(more_than=40, less_than=250)
    assert [count in wanted for count in (40, 41, 249, 250)] == [False, True, True, False]
    assert 10**9 in Wanted(more_than=20)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "Not A Name"}, "name"),
        ({"name": "findmeifyoucan/voc"}, "name"),
        ({"id_classes": []}, "id_classes"),
        ({"id_classes": ["cat", "cat"]}, "id_classes"),
        ({"id_classes": [" cat"]}, "names"),
        ({"id_classes": ["\x1b[31mcat"]}, "names"),
        ({"aliases": {"dog": ["x"]}}, "aliases"),
        ({"aliases": {"cat": ["x", "x"]}}, "aliases"),
        ({"synsets": "lvis"}, "synsets"),
        ({"pools": []}, "pools"),
        ({"pools": [{"name": "zoo", "dataset": "zoo"}] * 2}, "pools"),
        ({"pools": [{"name": "../zoo", "dataset": "zoo"}]}, "name"),
        ({"pools": [{"name": "zoo", "dataset": "Zoo"}]}, "dataset"),
        ({"pools": [{"name": "zoo", "dataset": "zoo", "distance": "wide"}]}, "distance"),
        ({"pools": [{"name": "zoo", "dataset": "zoo", "distance": "farther", "near": {"a": "b"}}]}, "near"),
        ({"pools": [{"name": "zoo", "dataset": "zoo", "wanted_far": {"more_than": -1}}]}, "wanted_far"),
        ({"pools": [{"name": "zoo", "dataset": "zoo", "remove": {"a\x00": "b"}}]}, "names"),
    ],
)
def test_what_does_not_hold_together_is_refused(change: dict, field: str) -> None:
    with pytest.raises(ProtocolError, match=r"inconsistent|cannot be read") as caught:
        read_pair(json.dumps({**BASE, **change}))
    assert field in f"{caught.value.where} {caught.value.found}"


@pytest.mark.parametrize(
    "text",
    ['{"name":', '{"name": "a", "strange": 1}', "{}", "{" * 10_000, "a" * 10_000, "nowhere.toml", '{"name": NaN}'],
    ids=range(7),
)
def test_what_is_no_declaration_is_refused(text: str) -> None:
    with pytest.raises(CurationError):
        read_pair(text)


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    for name, content in (("a.toml", "name = ["), ("b.toml", 'name = "x"\nother = 1'), ("c.json", "\xff")):
        path = tmp_path / name
        path.write_text(content)
        with pytest.raises(ProtocolError):
            read_pair(str(path))
