"""Decisions applied to a built manifest: lists, provenance, and the same bytes however often it is done."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.core.errors import DecisionError, UsageError
from curation.manifest.manifest import Manifest, manifest_files, read_manifest, write_manifest
from curation.review.decisions.application import Application, apply_decisions
from curation.review.decisions.decision import Decision
from curation.review.decisions.resolution import resolve
from curation.sources.source import Source


def decided(dataset: str, action: str, *images: str, stage: str = "manual", **fields: str) -> list[Decision]:
    return [
        Decision(image_id=one, dataset=dataset, stage=stage, action=action, **fields)  # type: ignore[arg-type]
        for one in images
    ]


def applied(base: Manifest, *rows: list[Decision], version: str = "2.0.0", **options: object) -> Application:
    flat = [one for several in rows for one in several]
    resolution = resolve(flat, allow_conflicts=True)
    return apply_decisions(base, resolution, version=version, **options)  # type: ignore[arg-type]


def test_a_removed_image_leaves_its_part_and_the_subsets_of_it(base: Manifest, tmp_path: Path) -> None:
    image = base.ids("wr1")[0]
    found = applied(base, decided("wilderness", "remove", image))
    for part in ("wilderness", "wr1", "wr1-hash"):
        assert found.manifest.ids(part) == tuple(one for one in base.ids(part) if one != image)
    assert found.manifest.ids("closed") == base.ids("closed")
    write_manifest(found.manifest, tmp_path / "m")
    assert read_manifest(tmp_path / "m") == found.manifest


def test_provenance(base: Manifest) -> None:
    rows = decided("wilderness", "remove", base.ids("wilderness")[0], reviewer="anna")
    found = applied(base, rows, reason="hidden cats").manifest.header
    assert (found.origin, found.version, found.completes) == ("reviewed", "2.0.0", None)
    assert found.decisions == resolve(rows).digest
    assert found.supersedes is not None
    assert (found.supersedes.version, found.supersedes.digest) == (base.header.version, base.digest)
    assert found.supersedes.reason == "hidden cats"
    assert found.rule.parameters["review_rule"] == "error"
    assert found.rule.parameters.items() > base.header.rule.parameters.items()
    assert any("1 decisions" in note and "wilderness lost 1" in note for note in found.notes)


def test_near_and_far_are_made_from_the_part_that_was_reviewed(base: Manifest, raw: dict[str, Source]) -> None:
    images = base.ids("wilderness")
    rows = [
        *decided("wilderness", "to_near", *images[:3]),
        *decided("wilderness", "to_far", *images[3:5]),
        *decided("wilderness", "keep", images[5]),
    ]
    found = applied(base, rows, near={"": "ood-near"}, far={"": "ood-far"}, sources=raw)
    made = found.manifest
    assert made.ids("ood-near") == tuple(sorted(images[:3]))
    assert made.ids("ood-far") == tuple(sorted(images[3:5]))
    assert set(made.ids("wilderness")) == set(images[5:])
    near, origin = made.part("ood-near"), base.part("wilderness")
    assert (near.role, near.view, near.sources) == (origin.role, origin.view, origin.sources)
    assert near.annotated_images is not None
    again = applied(made, rows, version="3.0.0", near={"": "ood-near"}, far={"": "ood-far"}, sources=raw)
    assert again.changes == again.ineffective == ()
    assert again.manifest.lists == made.lists


def test_moves_between_parts_that_are_there(base: Manifest) -> None:
    near, far = {"": "wr1"}, {"": "closed"}
    first = base.ids("closed")[0]
    # Images of closed are not in wilderness, which is to contain wr1.
    with pytest.raises(DecisionError, match="subset"):
        applied(base, decided("closed", "to_near", first), near=near, far=far)
    moved = applied(base, decided("closed", "to_near", first), near={"": "wilderness"}, far=far)
    assert first in moved.manifest.ids("wilderness")
    assert first not in moved.manifest.ids("closed")
    assert set(moved.manifest.part("wilderness").sources) == {"coco", "voc2007-test"}


def test_candidates_join_from_a_part_or_from_a_source(base: Manifest, raw: dict[str, Source]) -> None:
    listed = set(base.ids("wilderness"))
    outside = next(one for one in raw["coco"].image_ids.tolist() if one not in listed)
    inside = base.ids("wilderness")[0]
    rows = [
        *decided("coco", "add_near", outside, stage="candidate"),
        *decided("coco", "add_near", inside, stage="candidate"),
    ]
    found = applied(base, rows, near={"coco": "closed"}, sources=raw)
    assert {outside, inside} <= set(found.manifest.ids("closed"))
    assert inside in found.manifest.ids("wilderness")
    assert not found.staleness
    # Without the source nobody knows the image.
    without = applied(base, rows, near={"coco": "closed"})
    assert without.staleness.gone == (outside,)
    assert [one.images for one in without.ineffective] == [(outside,)]


def test_an_image_in_near_and_far_is_told_and_refused_when_strict(base: Manifest) -> None:
    one = base.ids("closed")[0]
    rows = [
        *decided("closed", "add_near", one, stage="candidate"),
        *decided("closed", "add_far", one, stage="candidate"),
    ]
    options = {"near": {"": "near"}, "far": {"": "far"}}
    assert applied(base, rows, **options).shared == (one,)
    with pytest.raises(DecisionError, match="Unresolved or stale"):
        applied(base, rows, strict=True, **options)


@pytest.mark.parametrize(
    "rows",
    [
        decided("wilderness", "remove", "coco:000000000000"),
        decided("elsewhere", "remove", "coco:000000000000"),
        decided("wilderness", "keep", "coco:000000000000", manifest="sha256:" + "1" * 64),
    ],
    ids=["gone", "unmatched_datasets", "other manifest"],
)
def test_stale_decisions_are_told_and_refused_when_strict(base: Manifest, rows: list[Decision]) -> None:
    found = applied(base, rows)
    assert found.staleness
    assert found.changes == ()
    with pytest.raises(DecisionError, match="Unresolved or stale"):
        applied(base, rows, strict=True)


def test_what_cannot_work_is_refused(base: Manifest) -> None:
    one = base.ids("wilderness")[0]
    for version in ("1.0.0", "0.9.0", "2", "2.0", "x", "02.0.0"):
        with pytest.raises(UsageError, match="version"):
            applied(base, version=version)
    with pytest.raises(UsageError, match="name of a part"):
        applied(base, decided("wilderness", "to_near", one))
    with pytest.raises(UsageError, match="the same"):
        applied(base, decided("wilderness", "to_near", one), near={"": "x"}, far={"": "x"})
    with pytest.raises(UsageError, match="Invalid name"):
        applied(base, near={"": "../x"})


ACTIONS = st.sampled_from(
    [
        ("manual", "keep"),
        ("manual", "remove"),
        ("manual", "to_near"),
        ("manual", "to_far"),
        ("auto_override", "remove"),
        ("auto_override", "keep_near"),
        ("candidate", "add_near"),
        ("candidate", "add_far"),
        ("candidate", "reject"),
    ]
)
ASKED = st.lists(
    st.tuples(st.sampled_from(["", "wilderness", "closed", "coco"]), ACTIONS, st.integers(0, 29)), max_size=12
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=ASKED, seed=st.integers(0, 9))
def test_order_and_repeats_change_no_byte_and_a_second_time_changes_no_list(
    base: Manifest, asked: list[tuple[str, tuple[str, str], int]], seed: int
) -> None:
    images = [*base.ids("closed"), *base.ids("wilderness")]
    rows = [
        one
        for dataset, (stage, action), number in asked
        for one in decided(dataset, action, images[number % len(images)], stage=stage)
    ]
    options = {"near": {"": "near"}, "far": {"": "far"}}
    found = applied(base, rows, **options)
    shuffled = [*rows, *rows]
    random.Random(seed).shuffle(shuffled)
    assert manifest_files(applied(base, shuffled, **options).manifest) == manifest_files(found.manifest)
    again = applied(found.manifest, rows, version="3.0.0", **options)
    assert again.manifest.lists == found.manifest.lists
    everything = set().union(*found.manifest.lists.values())
    assert everything <= set(images)
    # Whoever was only removed, by a row that speaks of its part, is gone from there.
    moved = {one.image_id for one in rows if one.action in ("add_near", "add_far", "to_near", "to_far", "keep_near")}
    for one in rows:
        if one.action == "remove" and one.dataset in ("wilderness", "closed") and one.image_id not in moved:
            assert one.image_id not in found.manifest.ids(one.dataset)
