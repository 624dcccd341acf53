"""The authors' layout: VOC boxes with corners, COCO records byte for byte, images in CPython's set order."""

from __future__ import annotations

import json
import re
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
from tests.real_files import real_files
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
        self.files = {"coco": small.coco_json}

    def plan(self, *parts: str, strict: bool = False) -> Plan:
        return plan_elephant_json(self.manifest, parts, self.sources, self.files, strict_layout=strict)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


def notebook(raw: dict[str, Any]) -> list[int]:
    """The notebook's own expression (cell 10), run by this interpreter."""
    imgs = {image["id"]: image for image in raw["images"]}
    known = {one["image_id"] for one in raw["annotations"] if one["category_id"] in KNOWN.values()}
    return list(set(imgs) - known)


def test_records_are_the_files_but_for_the_category(world: World) -> None:
    data = json.loads(contents(world.plan("wilderness"))["Mixed_Unknowns.json"])
    order = notebook(world.raw)
    images = {one["id"]: one for one in world.raw["images"]}
    assert list(data) == ["images", "annotations", "categories"]
    assert data["images"] == [images[number] for number in order]
    expected = [
        {
            **one,
            "category_id": -1,
            "orig_category_id": one["category_id"],
            "orig_category": COCO_NAMES[one["category_id"]],
        }
        for number in order
        for one in world.raw["annotations"]
        if one["image_id"] == number
    ]
    assert data["annotations"] == expected
    assert len(expected) > 50


def test_strict_layout_has_the_authors_fields_alone(world: World) -> None:
    files = contents(world.plan("wr1", "closed", strict=True))
    wild, closed = (json.loads(data) for data in files.values())
    assert set(wild["annotations"][0]) == set(world.raw["annotations"][0])
    assert set(closed["annotations"][0]) == {"segmentation", "area", "iscrowd", "image_id", "bbox", "category_id", "id"}


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


def test_digits_and_spaces_inside_a_value_are_kept(tmp_path: Path, world: World) -> None:
    text = world.coco_json.read_text()
    first = next(one for one in world.raw["annotations"] if one["image_id"] in notebook(world.raw))
    number = first["id"]
    odd = re.sub(
        rf'("id": {number}, .*?"area": )[^,]*(, "iscrowd": 0, "segmentation": )\[\[.*?\]\]',
        r'\g<1>7.50e1\g<2>{"counts" : [1,2 ,3.0], "size":[4 ,5]}',
        text,
        count=1,
    )
    assert odd != text
    path = tmp_path / "instances_train2017.json"
    path.write_text(odd)
    sources = {**world.sources, "coco": read_coco(path, dataset="coco", part="train2017")}
    manifest = elephant.build(sources, PARAMETERS)
    written = contents(plan_elephant_json(manifest, ["wilderness"], sources, {"coco": path}))["Mixed_Unknowns.json"]
    assert b'"area":7.50e1' in written
    assert b'"segmentation":{"counts" : [1,2 ,3.0], "size":[4 ,5]}' in written


def test_another_file_is_refused(world: World, tmp_path: Path) -> None:
    path = tmp_path / "instances_train2017.json"
    path.write_bytes(world.coco_json.read_bytes() + b"\n")
    with pytest.raises(ExportError, match="not the one") as caught:
        plan_elephant_json(world.manifest, ["wr1"], world.sources, {"coco": path})
    assert caught.value.expected == world.manifest.header.sources[1].files[0].sha256
    with pytest.raises(ExportError, match="there is none"):
        plan_elephant_json(world.manifest, ["wr1"], world.sources, {})


@real_files("coco_table")
def check_official_records_with_masks_and_crowds(shared: Path) -> None:
    data = shared / "data"
    path = data / "coco" / "mini" / "annotations" / "instances_val2017.json"
    sources = {
        "voc2007-test": read_coco(data / "voc2007" / "test_with_difficult.json", dataset="voc2007", part="test"),
        "coco": read_coco(path, dataset="coco", part="val2017"),
    }
    raw = json.loads(path.read_bytes())
    manifest = elephant.build(sources, {**PARAMETERS, "ratios": ("0.002",)})
    written = contents(plan_elephant_json(manifest, ["wilderness"], sources, {"coco": path}))["Mixed_Unknowns.json"]
    found = json.loads(written)
    by_id = {one["id"]: one for one in raw["annotations"]}
    wilderness = {int(image.partition(":")[2]) for image in manifest.ids("wilderness")}
    assert len(found["annotations"]) == sum(one["image_id"] in wilderness for one in raw["annotations"])
    for one in found["annotations"]:
        original = dict(by_id[one["id"]])
        assert one["orig_category_id"] == original.pop("category_id")
        assert {key: one[key] for key in original} == original
        assert one["category_id"] == -1
    crowds = [one["segmentation"] for one in found["annotations"] if one["iscrowd"]]
    # One wilderness image of this sample has a crowd of books, whose mask is a run-length code.
    assert [set(mask) for mask in crowds] == [{"counts", "size"}]
    assert [one["id"] for one in found["categories"]] == [*range(1, 21), -1]
    assert all({"license", "coco_url", "flickr_url", "date_captured"} <= set(one) for one in found["images"])
