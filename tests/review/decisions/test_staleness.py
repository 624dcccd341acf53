"""Decisions that do not fit a manifest: image gone, no such part, another version."""

import pytest

from curation.manifest.manifest import Manifest
from curation.review.decisions.application import find_stale, parts_spoken_of
from curation.review.decisions.decision import Decision
from curation.sources.source import Source


def row(
    image: str, dataset: str = "wilderness", stage: str = "manual", action: str = "keep", manifest: str = ""
) -> Decision:
    return Decision(
        image_id=image,
        dataset=dataset,
        stage=stage,
        action=action,
        manifest=manifest,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("dataset", "parts"),
    [
        ("", ["closed", "wilderness", "wr1", "wr1-hash"]),
        ("closed", ["closed"]),
        ("wr1", ["wr1"]),
        ("coco", ["wilderness", "wr1", "wr1-hash"]),
        ("voc2007", ["closed"]),
        ("openimages", []),
    ],
)
def test_what_a_data_set_means(base: Manifest, dataset: str, parts: list[str]) -> None:
    assert list(parts_spoken_of(base.header, dataset)) == parts


def test_each_kind_is_told(base: Manifest) -> None:
    other = "sha256:" + "2" * 64
    rows = [
        row("coco:000000000000"),
        row(base.ids("closed")[0]),
        row("x:1", "nowhere"),
        row(base.ids("wilderness")[0], manifest=other),
    ]
    found = find_stale(base, rows)
    assert found.gone == ("coco:000000000000", base.ids("closed")[0])
    assert (found.unmatched_datasets, found.other_manifests) == ({"nowhere": 1}, {other: 1})
    assert len(found.notes()) == 3


def test_a_candidate_may_stand_in_any_part_or_source(base: Manifest, raw: dict[str, Source]) -> None:
    listed = set().union(*base.lists.values())
    outside = next(one for one in raw["coco"].image_ids.tolist() if one not in listed)
    rows = [
        row(outside, stage="candidate", action="add_far"),
        row(base.ids("closed")[0], stage="candidate", action="add_far"),
    ]
    assert find_stale(base, rows).gone == (outside,)
    assert find_stale(base, rows, raw).gone == ()
    # A verdict on what should be listed already is not saved by a source.
    assert find_stale(base, [row(outside)], raw).gone == (outside,)
