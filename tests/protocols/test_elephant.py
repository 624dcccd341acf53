"""The paper's rule on images whose fate is written out by hand, and every way in which it can be asked wrongly."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.benchmarks.elephant.lists import FILE, build
from curation.benchmarks.parts import voc_classes as class_entries
from curation.benchmarks.registry import find_benchmark
from curation.benchmarks.rules.benchmark_file import decimal_text
from curation.benchmarks.rules.wilderness import WildernessParameters
from curation.core.errors import PresenceOnlyError, ProtocolError
from curation.evaluation.open_set import wilderness_levels
from curation.manifest.manifest import Manifest
from curation.manifest.validation import check_header, check_lists
from curation.manifest.verify import verify_lists, verify_sources
from curation.sources.datasets import COCO_CATEGORIES, COCO_NAMES_OF_VOC
from curation.sources.source import Source
from tests.real_files import real_files

BENCHMARK = find_benchmark("elephant")
KNOWN = tuple(COCO_NAMES_OF_VOC.items())
UNKNOWN = {name for _, name, _ in COCO_CATEGORIES} - set(COCO_NAMES_OF_VOC.values())

Draw = Callable[..., Source]
CLOSED = {1: ["cat"], 2: ["dog", "aeroplane"], 4: ["person"], 9: ["cat"], 12: []}
COCO = {
    9: ["elephant"],
    30: ["airplane", "elephant"],
    12: [],
    500: ["zebra", "zebra", "pizza"],
    131_081: ["kite"],
    77: ["dining table"],
    78: ["tv", "couch"],
    131_084: ["bear"],
    5: ["motorcycle"],
    600: ["toaster"],
}
WILDERNESS = [9, 12, 500, 600, 131_081, 131_084]


def parameters(**settings: str) -> dict[str, Any]:
    return {one.name: one.read(settings.get(one.name, one.default)) for one in BENCHMARK.parameters}


def built(
    draw: Draw, closed: dict[int, list[str]] = CLOSED, coco: dict[int, list[str]] = COCO, **settings: str
) -> Manifest:
    sources = {"voc2007-test": draw("voc2007", "test", closed), "coco": draw("coco", "val2017", coco)}
    return build(sources, parameters(**settings))


def coco_ids(numbers: list[int]) -> tuple[str, ...]:
    return tuple(f"coco:{number:012d}" for number in sorted(numbers))


def test_class_map_is_that_of_the_paper() -> None:
    entries = class_entries()
    known = [entry for entry in entries if entry.role == "known"]
    assert [(entry.index, entry.name) for entry in known] == [
        (index, name) for index, name in enumerate(sorted(voc for voc, _ in KNOWN), start=1)
    ]
    renamed = {entry.name: entry.aliases[0] for entry in known if entry.aliases}
    assert renamed == {
        "aeroplane": "airplane",
        "diningtable": "dining table",
        "motorbike": "motorcycle",
        "pottedplant": "potted plant",
        "sofa": "couch",
        "tvmonitor": "tv",
    }
    # COCO's category ids in the order of VOC's: the dict of the notebook, cell 4.
    numbers = {name: number for number, name, _ in COCO_CATEGORIES}
    by_voc = [5, 2, 16, 9, 44, 6, 3, 17, 62, 21, 67, 18, 19, 4, 1, 64, 20, 63, 7, 72]
    assert [numbers[(entry.aliases or (entry.name,))[0]] for entry in known] == by_voc
    unknown = [entry for entry in entries if entry.role == "unknown"]
    assert len(unknown) == len(set(UNKNOWN)) == 60
    assert {entry.index for entry in unknown} == {-1}
    assert len({name for pair in KNOWN for name in pair} | set(UNKNOWN)) == 86


@real_files("coco")
def check_the_80_classes_are_those_of_coco(shared: Any) -> None:
    import json

    content = json.loads((shared / "data/coco/instances_val2017_rebuilt.json").read_text(encoding="utf-8"))
    assert {category["name"] for category in content["categories"]} == {name for _, name in KNOWN} | set(UNKNOWN)


def test_parts_by_hand(draw: Draw) -> None:
    manifest = built(draw, ratios="1.0,0.4", orders="cpython_set,hash,id")
    assert manifest.ids("closed") == tuple(f"voc2007:{number:06d}" for number in CLOSED)
    assert manifest.ids("wilderness") == coco_ids(WILDERNESS)
    # floor(0.4 * 5) = 2 and floor(1.0 * 5) = 5 images. By id they are the smallest; CPython's own set says the rest.
    walk = list(set(dict.fromkeys(COCO)) - (set(COCO) - set(WILDERNESS)))
    assert manifest.ids("wr1") == coco_ids(walk[:5])
    assert manifest.ids("wr0.4") == coco_ids(walk[:2])
    assert manifest.ids("wr0.4-id") == coco_ids([9, 12])
    assert manifest.ids("wr1-id") == coco_ids([9, 12, 500, 600, 131_081])
    assert set(manifest.ids("wr0.4-hash")) < set(manifest.ids("wr1-hash")) < set(manifest.ids("wilderness"))
    check_header(manifest.header, where="")
    check_lists(manifest.header, manifest.lists, where="")


def test_counts_by_hand(draw: Draw) -> None:
    closed = draw("voc2007", "test", CLOSED, flagged=lambda image, name: (image, name) == (2, "dog"))
    coco = draw("coco", "val2017", COCO, flagged=lambda image, name: name in ("pizza", "tv"))
    sources = {"voc2007-test": closed, "coco": coco}
    manifest = build(sources, parameters())
    assert manifest.part("closed").boxes == {"known": 5, "difficult": 1, "crowd": 0}
    assert manifest.part("closed").annotated_images == 4
    assert manifest.part("wilderness").boxes == {"unknown": 7, "difficult": 0, "crowd": 1}
    assert (manifest.part("wilderness").images, manifest.part("wilderness").annotated_images) == (6, 5)
    assert manifest.part("closed").view.difficult == "ignore"
    findings = verify_lists(manifest) + verify_sources(manifest, sources, strict=True)
    assert {one.outcome for one in findings} == {"ok"}


def test_a_crowd_region_of_a_known_class_keeps_an_image_out(draw: Draw) -> None:
    coco = {**COCO, 9: ["elephant", "person"]}
    sources = {
        "voc2007-test": draw("voc2007", "test", CLOSED),
        "coco": draw("coco", "val2017", coco, flagged=lambda image, name: name == "person"),
    }
    assert build(sources, parameters()).ids("wilderness") == coco_ids([one for one in WILDERNESS if one != 9])


@given(st.randoms(use_true_random=False), st.integers(8, 60))
@settings(max_examples=40)
def test_order_of_images_and_objects_changes_no_byte(draw: Draw, rng: random.Random, size: int) -> None:
    numbers = rng.sample(range(1, 600_000), size)
    coco = {number: rng.choices(["elephant", "zebra", "person"], [3, 3, 1], k=rng.randint(0, 3)) for number in numbers}
    coco[numbers[0]] = ["zebra"]
    names = ["elephant", "zebra", "person"]
    ratio = "0.2"
    closed = draw("voc2007", "test", CLOSED)

    def manifest_of(order: list[int]) -> Manifest:
        source = draw("coco", "x", {number: coco[number] for number in order}, names=rng.sample(names, 3))
        return build({"voc2007-test": closed, "coco": source}, parameters(ratios=ratio))

    first = manifest_of(numbers)
    again = manifest_of(rng.sample(numbers, size))
    assert again.lists == first.lists
    assert again.header.parts == first.header.parts
    # The classes' order in the file is free as well, and so is whether filling order matters: both follow from ids.
    assert again.digest == first.digest


def test_dependence_on_the_file_order_is_found_and_told(draw: Draw) -> None:
    # Two images with the same residue: whoever comes first in the file comes first in the set.
    closed = {1: ["cat"]}
    for order in ([8, 0], [0, 8]):
        coco = {number: ["zebra"] for number in order}
        manifest = built(draw, closed, coco, orders="cpython_set,cpython_set_as_listed")
        assert manifest.ids("wr1") == coco_ids([0])
        assert manifest.ids("wr1-as-listed") == coco_ids([order[0]])
        assert manifest.header.rule.parameters["wr1_depends_on_file_order"] is True
        assert any("order in which the set is filled" in note for note in manifest.header.notes)


def test_a_table_of_presence_is_marked_approximate(draw: Draw) -> None:
    table = draw("coco", "train2017", COCO, presence=True)
    manifest = build({"voc2007-test": draw("voc2007", "test", CLOSED), "coco": table}, parameters())
    assert manifest.ids("wilderness") == coco_ids(WILDERNESS)
    assert manifest.part("wilderness").boxes == {}
    assert manifest.part("wilderness").annotated_images == 5
    assert manifest.header.rule.parameters["wilderness_evidence"] == "presence"
    assert manifest.header.notes[0].startswith("APPROXIMATE")
    figures = {figure.name: figure for figure in manifest.header.figures}
    assert figures["wr1.non_crowd_boxes"].obtained is None
    assert all(one.explanation for one in figures.values() if one.paper != one.obtained)
    no_boxes = {"voc2007-test": draw("voc2007", "test", CLOSED, presence=True), "coco": draw("coco", "x", COCO)}
    with pytest.raises(PresenceOnlyError):
        build(no_boxes, parameters())


@pytest.mark.parametrize(
    ("closed", "coco", "message"),
    [
        ({1: ["cat", "elephant"]}, COCO, "classes that are not known"),
        (COCO, CLOSED, "classes that are not known"),  # swapped
        ({1: []}, COCO, "has no objects"),
        ({}, COCO, "has no objects"),
        (CLOSED, CLOSED, "No wilderness image shows"),
        (CLOSED, {1: ["person"]}, "No wilderness image shows"),
        (CLOSED, {1: ["person"], 2: []}, "No wilderness image shows"),
        (CLOSED, {}, "No wilderness image shows"),
        (CLOSED, {9: ["zebra"], 10: ["bear"]}, "not enough wilderness images"),
    ],
)
def test_sources_that_cannot_work(
    draw: Draw, closed: dict[int, list[str]], coco: dict[int, list[str]], message: str
) -> None:
    with pytest.raises(ProtocolError, match=message) as caught:
        built(draw, closed, coco)
    assert caught.value.hint


def test_too_small_a_wilderness_names_the_sizes(draw: Draw) -> None:
    with pytest.raises(ProtocolError) as caught:
        built(draw, ratios="2")
    text = str(caught.value)
    assert "1 to 6 images: so many show no known class" in text
    assert "10 images" in text
    assert "--set ratios=1.2" in text
    assert len(built(draw, ratios="1.2").ids("wr1.2")) == 6
    with pytest.raises(ProtocolError):
        built(draw, ratios="0.1")  # floor(0.5) = 0


@pytest.mark.parametrize("part", ["train2017", "val2017"])
@pytest.mark.parametrize("presence", [False, True])
def test_a_file_that_only_calls_itself_official_does_not_get_the_name(draw: Draw, part: str, presence: bool) -> None:
    coco = draw("coco", part, COCO, presence=presence)
    manifest = build({"voc2007-test": draw("voc2007", "test", CLOSED), "coco": coco}, parameters())
    assert manifest.header.name == "elephant/custom" + ("-approximate" if presence else "")
    assert part not in manifest.header.title


def padded(images: int, bare: int) -> dict[int, list[str]]:
    """So many images: the first `bare` show nothing, three an unknown class, the others a known one."""
    shown = {number: ["cat"] for number in range(1, images + 1)}
    return shown | {number: ["bear"] for number in range(1, bare + 4)} | {n: [] for n in range(1, bare + 1)}


def test_as_many_images_as_the_official_part_are_no_evidence_alone(draw: Draw) -> None:
    closed = draw("voc2007", "test", CLOSED)
    for bare, name in ((966, "elephant/val2017"), (965, "elephant/custom")):
        coco = draw("coco", "val2017", padded(5000, bare))
        assert len(coco.images) == 5000
        # The paper: 969 of the 5,000 images of val2017 show none of the known classes.
        assert build({"voc2007-test": closed, "coco": coco}, parameters()).header.name == name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("ratios", text) for text in ("", "0", "x", "-1", "inf", "nan", "1,1.00", "1e-999999999", "1e9", "1" * 30)),
        *(("orders", text) for text in ("", "cpython", "hash,hash", "hash,")),
    ],
)
def test_parameters_that_the_rule_refuses(name: str, text: str) -> None:
    """They are read as in a benchmark file: a wrong, a repeated and an endless value are one error."""
    with pytest.raises(ProtocolError, match=f"One of the {name}"):
        parameters(**{name: text})


def test_defaults_are_those_of_the_file() -> None:
    """``extends`` inherits what ``build`` takes; every spelling of a ratio is one."""
    rule = FILE.parameters_as(WildernessParameters)
    expected = {"ratios": tuple(map(decimal_text, rule.ratios)), "orders": rule.orders, "salt": rule.salt}
    assert parameters() == expected
    assert parameters(ratios=" 1.00 , 0.50,10")["ratios"] == ("1", "0.5", "10")


def test_figures_add_up() -> None:
    counts = {name: figure.value for name, figure in FILE.expect.items()}
    assert counts["closed.boxes"] == counts["closed.non_difficult_boxes"] + counts["closed.difficult_boxes"]
    assert (
        counts["wilderness.images"] == counts["wilderness.annotated_images"] + counts["wilderness.unannotated_images"]
    )
    assert counts["coco.images"] - counts["coco.annotated_images"] == counts["wilderness.unannotated_images"]
    assert counts["wr1.images"] == counts["closed.images"]
    # VOC2007 trainval has 5,011 images and 15,662 objects; VOC2012 trainval 11,540 and 31,561.
    for year, images, boxes in (("2007", 5011, 15662), ("2012", 11540, 31561)):
        assert counts[f"voc{year}-train.images"] + counts[f"voc{year}-val.images"] == images
        assert counts[f"voc{year}-train.boxes"] + counts[f"voc{year}-val.boxes"] == boxes


def test_the_paper_has_47_levels() -> None:
    assert len(wilderness_levels(4952, 23008)) == FILE.expect["wilderness.levels"].value
