"""The authors' layout: boxes with corners, images in CPython's set order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curation.benchmarks.elephant import lists as elephant
from curation.benchmarks.elephant.layout import plan_elephant_json
from curation.core.errors import ExportError
from curation.manifest.manifest import Manifest
from curation.publishing.formats.plan import Plan
from curation.sources.coco import read_coco
from curation.sources.source import Source
from tests.small_world import COCO_NAMES, KNOWN, write_small_world

PARAMETERS = {"ratios": ("1",), "orders": ("cpython_set", "hash"), "salt": "test"}


def contents(plan: Plan) -> dict[str, bytes]:
    return {file.name: b"".join(file.chunks()) for file in plan.files}


class World:
    """The small world, its manifest, and its COCO file as plain JSON."""

    def __init__(self, folder: Path) -> None:
        from curation.sources.voc import read_voc

        small = write_small_world(folder)
        self.coco_json = small.coco_json
        self.sources: dict[str, Source] = {
            "voc2007-test": read_voc(small.voc_root, "voc2007", "test"),
            "coco": read_coco(small.coco_json, dataset="coco", part="train2017"),
        }
        self.manifest: Manifest = elephant.build(self.sources, PARAMETERS)
        self.raw: dict[str, Any] = json.loads(small.coco_json.read_bytes())

    def plan(self, *parts: str) -> Plan:
        return plan_elephant_json(self.manifest, parts, self.sources)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


def notebook(raw: dict[str, Any]) -> list[int]:
    """The notebook's own expression (cell 10), run by this interpreter."""
    imgs = {image["id"]: image for image in raw["images"]}
    known = {one["image_id"] for one in raw["annotations"] if one["category_id"] in KNOWN.values()}
    return list(set(imgs) - known)


def test_wilderness_stands_in_the_notebooks_order(world: World) -> None:
    files = contents(world.plan("wilderness", "wr1", "wr1-hash"))
    assert list(files) == ["Mixed_Unknowns.json", "WR1_Mixed_Unknowns.json", "WR1-hash_Mixed_Unknowns.json"]
    ids = {name: [one["id"] for one in json.loads(data)["images"]] for name, data in files.items()}
    assert ids["Mixed_Unknowns.json"] == notebook(world.raw)
    assert ids["WR1_Mixed_Unknowns.json"] == notebook(world.raw)[:40]
    assert ids["WR1-hash_Mixed_Unknowns.json"] == sorted(ids["WR1-hash_Mixed_Unknowns.json"])


def test_boxes_areas_and_ids_are_those_of_the_file(world: World) -> None:
    data = json.loads(contents(world.plan("wilderness"))["Mixed_Unknowns.json"])
    order = notebook(world.raw)
    images = {one["id"]: one for one in world.raw["images"]}
    assert list(data) == ["images", "annotations", "categories"]
    fields = ("file_name", "height", "width", "id")
    assert data["images"] == [{key: images[number][key] for key in fields} for number in order]
    expected = [
        {
            **{key: one[key] for key in ("id", "image_id", "bbox", "area", "iscrowd")},
            "category_id": -1,
            "orig_category_id": one["category_id"],
            "orig_category": COCO_NAMES[one["category_id"]],
        }
        for number in order
        for one in world.raw["annotations"]
        if one["image_id"] == number
    ]
    assert [{key: one[key] for key in one if key != "segmentation"} for one in data["annotations"]] == expected
    assert len(expected) > 50


def test_closed_part(world: World) -> None:
    plan = world.plan("closed")
    data = json.loads(contents(plan)["custom_voc_2007_test.json"])
    objects = world.sources["voc2007-test"].objects
    assert list(data) == ["images", "annotations", "categories"]
    assert data["images"][0] == {"file_name": "000001.jpg", "height": 320, "width": 320, "id": 1}
    assert [one["id"] for one in data["annotations"]] == list(range(1, len(objects) + 1))
    for one, box, difficult in zip(data["annotations"], objects.boxes, objects.difficult, strict=True):
        x, y, w, h = map(int, box)
        assert one["bbox"] == [x, y, w, h]
        assert one["area"] == w * h
        assert one["segmentation"] == [[x, y, x, y + h, x + w, y + h, x + w, y]]
        assert (one["iscrowd"], one["difficult"]) == (0, int(difficult))
    assert all(isinstance(value, int) for one in data["annotations"] for value in one["bbox"])
    assert len(data["categories"]) == 21
    assert data["categories"][0] == {"supercategory": "none", "id": 1, "name": "aeroplane"}
    assert data["categories"][-1] == {"supercategory": "none", "id": -1, "name": "unknown"}


def test_a_part_twice_is_refused(world: World) -> None:
    with pytest.raises(ExportError, match="once"):
        world.plan("closed", "closed")
    with pytest.raises(ExportError, match="once"):
        world.plan()
