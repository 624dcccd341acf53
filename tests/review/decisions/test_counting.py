"""Counts after a review: equal to a count of the file where sources are given, and honestly absent where not."""

import json

from curation.manifest.manifest import Manifest
from curation.manifest.verify import verify_sources
from curation.review.decisions.application import apply_decisions
from curation.review.decisions.decision import Decision
from curation.review.decisions.resolution import resolve
from curation.sources.source import Source
from tests.small_world import SmallWorld


def removal(base: Manifest) -> Decision:
    return Decision(image_id=base.ids("wilderness")[0], dataset="wilderness", stage="manual", action="remove")


def test_counts_are_those_of_the_annotation_file(base: Manifest, raw: dict[str, Source], world: SmallWorld) -> None:
    made = apply_decisions(base, resolve([removal(base)]), version="2.0.0", sources=raw).manifest
    content = json.loads(world.coco_json.read_text())
    numbers = {int(one[5:]) for one in made.ids("wilderness")}
    objects = [one["image_id"] for one in content["annotations"] if one["image_id"] in numbers]
    part = made.part("wilderness")
    assert part.boxes["unknown"] == len(objects)
    assert part.annotated_images == len(set(objects))
    assert part.images == len(base.ids("wilderness")) - 1
    assert made.part("closed") == base.part("closed")
    assert not [one for one in verify_sources(made, raw) if one.outcome == "failure"]


def test_counts_without_sources_are_dropped_and_figures_with_them(base: Manifest) -> None:
    made = apply_decisions(base, resolve([removal(base)]), version="2.0.0").manifest
    part = made.part("wilderness")
    assert (part.boxes, part.annotated_images) == ({}, None)
    assert "1 images left and 0 joined" in part.selection
    before = {one.name: one for one in base.header.figures}
    after = {one.name: one for one in made.header.figures}
    assert after["closed.boxes"] == before["closed.boxes"]
    assert after["wilderness.images"].obtained == part.images
    assert "decisions" in after["wilderness.images"].explanation
    assert after["wilderness.annotated_images"].obtained is None
    assert after["coco.images"].obtained is None
