"""The file of original categories beside a COCO export: every annotation, its category in the raw file, a warning."""

from __future__ import annotations

import json

import pytest

from curation.manifest.manifest import Manifest
from curation.publishing.formats.coco import plan_coco
from curation.publishing.formats.plan import FormatOptions, Plan
from curation.sources.source import Source
from tests.task_world import NUMBERS, TaskWorld, write_task_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> TaskWorld:
    return write_task_world(tmp_path_factory.mktemp("tasks"))


def bytes_of(plan: Plan) -> dict[str, bytes]:
    return {file.name: b"".join(file.chunks()) for file in plan.files}


def test_the_sidecar_names_the_class_of_every_annotation(world: TaskWorld) -> None:
    plan = plan_coco(world.manifest, ["t1-test"], world.sources, FormatOptions(sidecar=True))
    files = bytes_of(plan)
    assert list(files) == ["t1-test.json", "t1-test.original_categories.json"]
    sidecar = json.loads(files["t1-test.original_categories.json"])
    truth = json.loads(files["t1-test.json"])
    names = {number: name for name, number in NUMBERS.items()}
    by_id = {one["id"]: one["category_id"] for one in json.loads(world.val_json.read_bytes())["annotations"]}
    assert [one["id"] for one in sidecar["annotations"]] == [one["id"] for one in truth["annotations"]]
    assert all(one["category_id"] == by_id[one["id"]] for one in sidecar["annotations"])
    assert all(one["name"] == names[one["category_id"]] for one in sidecar["annotations"])
    assert "must not be given to a detector" in sidecar["info"]["warning"]
    assert any("must not be given to a detector" in note for note in plan.notes)


def test_ids_are_those_of_the_export_also_where_they_are_new(manifest: Manifest, sources: dict[str, Source]) -> None:
    files = bytes_of(plan_coco(manifest, ["wilderness"], sources, FormatOptions(sidecar=True)))
    sidecar = json.loads(files["wilderness.original_categories.json"])["annotations"]
    assert sidecar == [{"id": number, "category_id": 22, "name": "elephant"} for number in (1, 2, 3)]
