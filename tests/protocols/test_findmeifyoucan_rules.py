"""The automatic steps against the authors' loops, written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from curation.benchmarks.parts import images_with
from curation.benchmarks.rules.ood_pools import split_pool
from curation.core.errors import PresenceOnlyError
from curation.review.decisions.resolution import recorded_form
from curation.sources.source import Source
from tests.protocols.findmeifyoucan_world import VOC, coco, decided, listed

NAMES = ["person", "dog", "zebra", "kite", "truck"]


def by_rule(source: Source, id_names: set[str]) -> list[int]:
    """Return the images that the start rule lets in."""
    pool = replace(VOC.pools[0], id_names=tuple(id_names))
    splits = split_pool(VOC, pool, {pool.start: source}, "", "rule")
    return [int(image.partition(":")[2]) for image in splits.rule or ()]


def test_crowds_count_and_a_table_of_presence_cannot_start(draw) -> None:
    shown = {9: ["zebra"], 4: [], 7: ["zebra", "person"], 2: ["truck"], 5: ["dog"]}
    source = draw("coco", "val2017", shown, names=NAMES, flagged=lambda image, name: name == "person")
    assert source.objects is not None
    assert source.objects.crowd.any()
    assert by_rule(source, {"person", "dog"}) == [9, 4, 2]
    with pytest.raises(PresenceOnlyError, match="start list"):
        by_rule(draw("coco", "val2017", shown, names=NAMES, presence=True), {"person"})


@given(
    st.lists(st.lists(st.sampled_from(NAMES), max_size=4), min_size=1, max_size=12),
    st.sets(st.sampled_from(NAMES), min_size=1),
)
def test_the_rule_is_that_of_vos_written_out(draw, shown: list[list[str]], id_names: set[str]) -> None:
    source = draw("coco", "val2017", dict(enumerate(shown)), names=NAMES)
    kept = [image for image, names in enumerate(shown) if all(name not in id_names for name in names)]
    assert by_rule(source, id_names) == kept
    assert images_with(source, id_names).tolist() == [bool(set(names) & id_names) for names in shown]


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
    splits = split_pool(VOC, VOC.pools[0], SOURCES, recorded_form(decisions), "published")
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
