"""The authors' selection file: what its lists mean, ids as they are written, and hostile trees."""

import json
import time
from pathlib import Path

import pytest

from curation.core.errors import DecisionConflictError, DecisionError
from curation.review.decisions.agreement import count_lists
from curation.review.decisions.files import parse_selection, parse_tree, read_decisions
from curation.review.decisions.resolution import resolve
from tests.real_files import real_files

YAML = b"""FROM_CANDIDATES:
  coco: [13159]
  coco_near: [4760, 4760]
  openimages_near: ['000a9c6e22a06877']
KEEP_TO_NEAR_IDS: {coco: [358427], openimages: ["057d2471d6724d66"]}
REMOVE_IDS: {coco: [352900]}
UNFILTERED_IMAGES_TO_FAR:
  coco: {Banana: [9]}
UNFILTERED_IMAGES_TO_REMOVE:
  coco: {person: [10], car: [10]}
UNFILTERED_IMAGES_TO_NEAR:
  openimages: {Food/Kitchen: ['0010e23500000000']}
"""
MEANING = [
    ("coco:000000013159", "coco", "candidate", "add_far", ""),
    ("coco:000000004760", "coco", "candidate", "add_near", ""),
    ("coco:000000004760", "coco", "candidate", "add_near", ""),
    ("openimages:000a9c6e22a06877", "openimages", "candidate", "add_near", ""),
    ("coco:000000358427", "coco", "auto_override", "keep_near", ""),
    ("openimages:057d2471d6724d66", "openimages", "auto_override", "keep_near", ""),
    ("coco:000000352900", "coco", "auto_override", "remove", ""),
    ("coco:000000000009", "coco", "manual", "to_far", "Banana"),
    ("coco:000000000010", "coco", "manual", "remove", "person"),
    ("coco:000000000010", "coco", "manual", "remove", "car"),
    ("openimages:0010e23500000000", "openimages", "manual", "to_near", "Food/Kitchen"),
]


def test_every_list_has_its_meaning_in_yaml_and_json() -> None:
    import yaml

    found = parse_selection(YAML, "f.yaml")
    assert [(one.image_id, one.dataset, one.stage, one.action, one.reason) for one in found] == MEANING
    assert all(one.reviewer == one.date == "" for one in found)
    assert parse_selection(json.dumps(yaml.safe_load(YAML)).encode(), "f.json") == found


def test_an_id_is_read_as_it_is_written() -> None:
    text = "REMOVE_IDS:\n  openimages: ['aaaaaaaaaaaaaaaa', 0010235000000000, 0010e23500000000]\n"
    images = [one.image_id.partition(":")[2] for one in parse_selection(text.encode(), "m.yaml")]
    assert images == ["aaaaaaaaaaaaaaaa", "0010235000000000", "0010e23500000000"]
    with pytest.raises(DecisionError):
        parse_selection(text.replace("0010235", "0x10235").encode(), "m.yaml")


@pytest.mark.parametrize("value", ["010", "1_000", "1.0", "-5", "1e3", "9999999999999", "[1]", "null"])
def test_a_coco_id_that_is_no_plain_number_is_refused(value: str) -> None:
    with pytest.raises(DecisionError):
        parse_selection(f"REMOVE_IDS: {{coco: [1, {value}]}}".encode(), "m.yaml")


@pytest.mark.parametrize(
    "content",
    [
        {"REMOVE_IDS": {"openimages": [16]}},
        {"REMOVE_IDS": {"openimages": ["00ab"]}},
        {"REMOVE_IDS": {"coco": [1.0]}},
        {"REMOVE_IDS": {"coco": [True]}},
        {"REMOVE_IDS": {"coco": [10**40]}},
        {"REMOVE_IDS": {"coco": 1}},
        {"REMOVE_IDS": {"coco": {"person": {"a": [1]}}}},
        {"REMOVE_IDS": {"../x": ["a"]}},
        {"REMOVE_IDS": {"zoo": ["a\u001b"]}},
        {"REMOVE_IDS": [1]},
        {"OTHER": {"coco": [1]}},
        [1],
    ],
    ids=str,
)
def test_what_is_no_selection_is_refused(content: object) -> None:
    with pytest.raises(DecisionError) as caught:
        parse_selection(json.dumps(content).encode(), "m.json")
    assert "\x1b" not in str(caught.value)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + k)}: &{chr(98 + k)} [{','.join(['*' + chr(97 + k)] * 9)}]\n" for k in range(20)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "anchors"),
        ("a: *nowhere", "anchors"),
        ("<<: &x {a: [1]}", "anchors"),
        ("a: !!python/object/apply:os.system ['true']", "tags"),
        ("a: !!binary aGk=", "tags"),
        ("a: [1]\n---\nb: [2]", "several documents"),
        ("a: " + "[" * 20_000, "nested too deep"),
        ("a: [1]\na: [2]", "Duplicate key"),
        ("? [a]\n: b", "Duplicate key"),
        ("", "empty"),
        ("a: [1", "not YAML"),
        ("a: '\x07'", "not YAML"),
    ],
    ids=range(12),
)
def test_hostile_yaml_is_refused_at_once(text: str, message: str) -> None:
    began = time.perf_counter()
    with pytest.raises(DecisionError, match=message):
        parse_tree(text.encode(), "f.yaml")
    assert time.perf_counter() - began < 5


@real_files("decisions")
def check_the_published_file_has_the_counts_of_the_specification(shared: Path) -> None:
    found = read_decisions(shared / "data/findmeifyoucan/manual_selection.json")
    counts = {(one.dataset, one.stage, one.action): one for one in count_lists(found.decisions)}
    sizes = {key: (one.listed, one.unique, len(one.repeated)) for key, one in counts.items()}
    assert sizes == {
        ("coco", "candidate", "add_far"): (450, 450, 0),
        ("coco", "candidate", "add_near"): (880, 878, 2),
        ("openimages", "candidate", "add_far"): (320, 320, 0),
        ("openimages", "candidate", "add_near"): (265, 265, 0),
        ("coco", "auto_override", "keep_near"): (18, 18, 0),
        ("openimages", "auto_override", "keep_near"): (13, 13, 0),
        ("coco", "auto_override", "remove"): (99, 73, 24),
        ("openimages", "auto_override", "remove"): (16, 16, 0),
        ("coco", "manual", "to_far"): (32, 32, 0),
        ("openimages", "manual", "to_far"): (1, 1, 0),
        ("coco", "manual", "remove"): (16, 16, 0),
        ("openimages", "manual", "remove"): (183, 173, 10),
        ("coco", "manual", "to_near"): (66, 66, 0),
        ("openimages", "manual", "to_near"): (108, 108, 0),
    }
    assert sum(len(one.repeated) for one in counts.values()) == 36
    assert counts["coco", "candidate", "add_near"].repeated == ("coco:000000285388", "coco:000000495348")
    assert counts["openimages", "manual", "remove"].reasons == {
        "Person": (45, 45),
        "Dining table": (134, 132),
        "Other": (4, 4),
    }
    assert counts["coco", "manual", "to_far"].reasons == {"Banana": (2, 2), "Other": (30, 30)}


@real_files("decisions")
def check_one_published_image_is_near_and_far(shared: Path) -> None:
    rows = read_decisions(shared / "data/findmeifyoucan/manual_selection.json").decisions
    with pytest.raises(DecisionConflictError, match="on 1 image") as caught:
        resolve(rows)
    assert "00166893b16a03ab" in str(caught.value.where)
    allowed = resolve(rows, allow_conflicts=True)
    assert [one.image_id for one in allowed.both] == ["openimages:00166893b16a03ab"]
