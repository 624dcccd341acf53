"""The automatic steps against the authors' loops, written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.building import read_parameters
from curation.benchmarks.findmeifyoucan.lists import (
    annotations_by_category,
    candidates,
    located,
    require_positions,
    split_pool,
    start_by_rule,
    wanted_categories,
)
from curation.benchmarks.findmeifyoucan.pairs import VOC, OodPool, Wanted
from curation.benchmarks.parts import images_with
from curation.benchmarks.registry import find_benchmark
from curation.core.errors import CurationError, PresenceOnlyError, ProtocolError
from curation.review.decisions.resolution import recorded_form
from curation.sources.source import Objects, Source
from tests.protocols.findmeifyoucan_world import coco, decided, listed

NAMES = ["person", "dog", "zebra", "kite", "truck"]


def natives(source: Source, positions: np.ndarray) -> list[int]:
    return [int(one) for one in source.images.native[positions]]


def test_the_rule_keeps_images_without_annotation_and_the_order_of_the_file(draw) -> None:
    source = draw(
        "coco", "val2017", {9: ["zebra"], 4: [], 7: ["zebra", "person"], 2: ["truck"], 5: ["dog"]}, names=NAMES
    )
    assert natives(source, start_by_rule(source, ["person", "dog"])) == [9, 4, 2]


def test_a_crowd_annotation_of_an_id_class_removes_the_image(draw) -> None:
    source = draw(
        "coco",
        "val2017",
        {1: ["zebra", "person"], 2: ["zebra"]},
        names=NAMES,
        flagged=lambda image, name: name == "person",
    )
    assert source.objects is not None
    assert source.objects.crowd.any()
    assert natives(source, start_by_rule(source, ["person"])) == [2]


def test_a_table_of_presence_cannot_start(draw) -> None:
    source = draw("coco", "val2017", {1: ["zebra"]}, names=NAMES, presence=True)
    with pytest.raises(PresenceOnlyError, match="start rule"):
        start_by_rule(source, ["person"])


@given(st.lists(st.lists(st.sampled_from(NAMES), max_size=4), min_size=1, max_size=12), st.sets(st.sampled_from(NAMES)))
def test_the_rule_is_that_of_vos_written_out(draw, shown: list[list[str]], id_names: set[str]) -> None:
    source = draw("coco", "val2017", dict(enumerate(shown)), names=NAMES)
    kept = [image for image, names in enumerate(shown) if all(name not in id_names for name in names)]
    assert natives(source, start_by_rule(source, id_names)) == kept
    with_one = [bool(set(names) & id_names) for names in shown]
    assert images_with(source, id_names).tolist() == with_one


def test_counts_and_wanted_categories() -> None:
    pool = OodPool(
        name="x", dataset="x", wanted_near=Wanted(more_than=20), wanted_far=Wanted(more_than=40, less_than=250)
    )
    far = {"kite": 40, "banana": 41, "clock": 249, "book": 250}
    near = {"kite": 21, "banana": 300, "clock": 20, "zebra": 9000}
    for_near, for_far = wanted_categories(pool, near, far)
    assert for_far == ("banana", "clock")
    assert for_near == ("kite", "zebra")
    assert wanted_categories(OodPool(name="x", dataset="x"), near, far) == ((), ())


def test_category_counts_are_of_these_images_alone(draw) -> None:
    source = draw("coco", "val2017", {1: ["zebra", "zebra"], 2: ["kite"], 3: ["zebra"]}, names=NAMES)
    assert annotations_by_category(source, np.array([0, 1])) == {
        "person": 0,
        "dog": 0,
        "zebra": 2,
        "kite": 1,
        "truck": 0,
    }


def test_images_that_a_source_lacks_are_named(draw) -> None:
    source = draw("coco", "val2017", {1: [], 2: []}, names=NAMES)
    ids = ["coco:000000000002", "coco:000000000003"]
    assert located(source, ids)[0].tolist() == [1]
    with pytest.raises(ProtocolError, match="1 of the 2 images of the list") as caught:
        require_positions(source, ids, "the list", "coco-val2017")
    assert caught.value.found == "coco:000000000003"


def test_the_trap_an_id_class_annotated_late_escapes_the_official_scan_alone(draw) -> None:
    # Annotations in file order: image 1 kite, image 2 kite, image 1 person. The scan stops at two candidates.
    source = in_file_order(draw, [(1, "kite"), (2, "kite"), (1, "person")])
    chosen = {"wanted": ["kite"], "refused": ["person"], "taken": [], "salt": "s/"}
    assert natives(source, candidates(source, **chosen, most=2, scan="official_scan")) == [1, 2]
    assert natives(source, candidates(source, **chosen, most=2, scan="whole_image")) == [2]
    # A larger limit lets the scan reach the person.
    assert natives(source, candidates(source, **chosen, most=3, scan="official_scan")) == [2]


@given(
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from(NAMES)), max_size=30),
    st.sets(st.integers(0, 7)),
    st.integers(1, 5),
)
def test_the_official_scan_is_the_authors_loop(draw, rows: list, taken: set[int], most: int) -> None:
    source = in_file_order(draw, rows, images=8)
    wanted, refused = {"kite", "zebra"}, {"person", "dog"}
    live: dict[int, None] = {}
    discarded: set[int] = set()
    for image, name in rows:
        if image in taken or image in discarded:
            continue
        if name in refused:
            discarded.add(image)
            live.pop(image, None)
        elif name in wanted:
            live.setdefault(image)
        if len(live) >= most:
            break
    ids = [f"coco:{image:012d}" for image in taken]
    found = candidates(source, wanted, refused, ids, most=most, scan="official_scan", salt="s/")
    assert natives(source, found) == list(live)


@given(st.lists(st.tuples(st.integers(0, 7), st.sampled_from(NAMES)), max_size=30), st.integers(0, 9))
def test_whole_images_never_show_a_refused_class_and_are_nested(draw, rows: list, most: int) -> None:
    source = in_file_order(draw, rows, images=8)
    shown = {image: {name for one, name in rows if one == image} for image in range(8)}
    fitting = {image for image, names in shown.items() if names & {"kite"} and not names & {"person"}}
    found, more = (
        natives(source, candidates(source, ["kite"], ["person"], [], most=n, scan="whole_image", salt="s/"))
        for n in (most, 9)
    )
    assert set(more) == fitting
    assert found == more[:most]


def in_file_order(draw, rows: list[tuple[int, str]], images: int | None = None) -> Source:
    """Return a source whose annotations stand in the file as given, not image by image."""
    numbers = range(images) if images else sorted({image for image, _ in rows})
    empty = draw("coco", "train2017", {number: [] for number in numbers}, names=NAMES)
    place = {number: position for position, number in enumerate(numbers)}
    m = len(rows)
    off = np.zeros(m, np.bool_)
    objects = Objects(
        image=np.array([place[image] for image, _ in rows], np.int32),
        category=np.array([NAMES.index(name) for _, name in rows], np.int32),
        boxes=np.ones((m, 4)),
        areas=np.ones(m),
        numbers=np.arange(m),
        crowd=off,
        difficult=off,
        truncated=off,
        occluded=off,
        pose=np.zeros(m, np.int8),
    )
    return Source(
        dataset=empty.dataset,
        part=empty.part,
        namespace=empty.namespace,
        images=empty.images,
        categories=empty.categories,
        objects=objects,
        files=empty.files,
        licence="",
    )


BENCHMARK = find_benchmark("findmeifyoucan")

SHOWN = [["kite"], ["zebra"], ["pizza"], ["zebra", "pizza"], []]
IMAGES = range(1, 11)
SOURCES = {
    "coco-val2017": coco("val2017", {one: SHOWN[one % 5] for one in IMAGES}),
    "coco-train2017": coco("train2017", {100 + one: ["kite"] for one in IMAGES}),
    "vos-coco-voc": listed("coco", [f"{one:012d}" for one in IMAGES]),
}
KINDS = [
    ("auto_override", "keep_near"),
    ("auto_override", "remove"),
    ("manual", "remove"),
    ("manual", "to_near"),
    ("manual", "to_far"),
]


def native(ids: set[str] | tuple[str, ...]) -> set[int]:
    return {int(one.partition(":")[2]) for one in ids}


# Each start image gets one verdict at most, as in the recorded decisions (finding b).
@given(st.dictionaries(st.sampled_from(list(IMAGES)), st.sampled_from(KINDS)), st.sets(st.integers(101, 110)))
def test_the_splits_keep_what_the_decisions_say(verdicts: dict[int, tuple[str, str]], added: set[int]) -> None:
    decisions = [one for image, kind in verdicts.items() for one in decided("coco", *kind, image)]
    decisions += decided("coco", "candidate", "add_near", *sorted(added))
    parameters = read_parameters(BENCHMARK, {"decisions": recorded_form(decisions)})
    splits = split_pool(VOC, VOC.pools[0], SOURCES, parameters)
    near, far = (native(splits.images(part)) for part in splits.pool.parts)
    assert not near & far
    assert near | far == (set(IMAGES) | added) - native(splits.outcome.removed)
    required, excluded = splits.constraints("coco-near")
    assert native(required) <= near
    assert not native(excluded) & near
    required, excluded = splits.constraints("coco-far")
    assert native(required) <= far
    # A removal by hand acts on far alone, and so an image that is near stays near.
    assert not native(excluded) & far


def test_a_near_verdict_on_what_is_not_a_start_image_is_an_error() -> None:
    recorded = recorded_form(decided("coco", "auto_override", "keep_near", 77))
    with pytest.raises(CurationError) as caught:
        split_pool(VOC, VOC.pools[0], SOURCES, read_parameters(BENCHMARK, {"decisions": recorded}))
    assert "77" in str(caught.value)
