"""One pool: constraints that follow from its decisions hold for what is built, whatever the decisions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.building import read_parameters
from curation.benchmarks.findmeifyoucan.lists import split_pool
from curation.benchmarks.findmeifyoucan.pairs import VOC
from curation.benchmarks.registry import find_benchmark
from curation.decisions.resolution import recorded_form
from curation.errors import CurationError
from tests.protocols.findmeifyoucan_world import coco, decided, listed

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
