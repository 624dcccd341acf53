"""The upstream layout, against upstream's own arithmetic and its loader, both written plainly here."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from defusedxml import ElementTree
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.owod.layout import plan_owod_layout, upstream_corners, upstream_lists
from curation.core.errors import ExportError
from curation.manifest.manifest import Manifest
from curation.publishing.formats.plan import Plan
from curation.sources.source import Source
from tests.made_source import make_source
from tests.task_world import NUMBERS, TaskWorld, make_task_manifest, write_task_world

SIDES = ("xmin", "ymin", "xmax", "ymax")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> TaskWorld:
    return write_task_world(tmp_path_factory.mktemp("tasks"))


def bytes_of(plan: Plan) -> dict[str, bytes]:
    return {file.name: b"".join(file.chunks()) for file in plan.files}


def names_of(manifest: Manifest) -> list[str]:
    return [part.name for part in manifest.header.parts]


def test_lists_have_their_upstream_names(world: TaskWorld) -> None:
    lists = upstream_lists(world.manifest, names_of(world.manifest))
    assert sorted(lists) == [*("all_task_test", "all_task_val", "t1_train", "t2_ft", "t2_train", "t3_ft", "t3_train")]
    ids = world.manifest.ids
    assert lists["all_task_test"] == ids("t1-test") == ids("t3-test")
    assert lists["all_task_val"] == (*ids("t1-val"), *ids("t2-val"), *ids("t3-val"))
    assert lists["t2_ft"] == ids("t2-finetune")


def test_the_xml_says_what_upstream_would_write(world: TaskWorld) -> None:
    plan = plan_owod_layout(world.manifest, names_of(world.manifest), world.sources)
    files = bytes_of(plan)
    names = {number: name for name, number in NUMBERS.items()}
    expected: dict[str, list[Any]] = {}
    for path in (world.train_json, world.val_json):
        for one in json.loads(path.read_bytes())["annotations"]:
            x, y, w, h = one["bbox"]
            corners = [int(x + 1), int(y + 1), int(x + w + 1), int(y + h + 1)]
            expected.setdefault(f"{one['image_id']:012d}", []).append((names[one["category_id"]], corners))
    listed = {image.partition(":")[2] for ids in world.manifest.lists.values() for image in ids}
    assert {name for name in files if name.endswith(".xml")} == {f"Annotations/{one}.xml" for one in listed}
    for stem in listed:
        root = ElementTree.fromstring(files[f"Annotations/{stem}.xml"])
        found = [
            (one.findtext("name"), [int(one.findtext(f"bndbox/{side}") or "") for side in SIDES])
            for one in root.findall("object")
        ]
        assert found == expected[stem]
        assert {one.findtext("difficult") for one in root.findall("object")} == {"0"}
        assert root.findtext("filename") == f"{stem}.jpg"


def test_crowd_regions_are_ordinary_objects_and_marked(world: TaskWorld) -> None:
    plan = plan_owod_layout(world.manifest, names_of(world.manifest), world.sources)
    files = bytes_of(plan)
    listed = {int(image.partition(":")[2]) for ids in world.manifest.lists.values() for image in ids}
    expected = sum(
        one["iscrowd"] and one["image_id"] in listed
        for path in (world.train_json, world.val_json)
        for one in json.loads(path.read_bytes())["annotations"]
    )
    assert expected == plan.changed["crowd_written_as_ordinary_objects"] > 0
    marked = sum(data.count(b"<crowd>1</crowd>") for data in files.values())
    assert marked == expected
    assert any("crowd" in note for note in plan.notes)


def test_image_sets_keep_order_and_repeats(world: TaskWorld) -> None:
    ids = world.manifest.ids("t1-test")
    published = make_task_manifest(
        world.sources, {"t1-test": (*ids, ids[2]), "t2-test": (*ids, ids[2])}, origin="as_published"
    )
    plan = plan_owod_layout(published, ["t1-test", "t2-test"], world.sources)
    files = bytes_of(plan)
    stems = files["ImageSets/Main/all_task_test.txt"].decode().splitlines()
    assert stems == [image.partition(":")[2] for image in (*ids, ids[2])]
    assert sum(name.endswith(".xml") for name in files) == len(ids)
    assert plan.counts["lines"] == len(ids) + 1


def voc_source() -> Source:
    return make_source(
        "voc2007",
        "voc2007",
        [("000009", 9, "000009.jpg", 50, 40)],
        [(0, "aeroplane", (5, 6, 7, 8), {"difficult": 1}), (0, "cat", (0, 0, 50, 40), {"pose": "Left"})],
        {1: "aeroplane", 8: "cat"},
    )


def test_boxes_of_voc_are_its_own_and_keep_their_flags(world: TaskWorld) -> None:
    manifest = make_task_manifest({"val": voc_source()}, {"t1-test": ("voc2007:000009",)})
    plan = plan_owod_layout(manifest, ["t1-test"], {"val": voc_source()})
    root = ElementTree.fromstring(bytes_of(plan)["Annotations/000009.xml"])
    first, second = root.findall("object")
    # x 5, w 7 is xmin 6, xmax 12 in the file that VOC publishes: upstream copies that file.
    assert [first.findtext(f"bndbox/{side}") for side in SIDES] == [*("6", "7", "12", "14")]
    assert first.findtext("difficult") == "1"
    assert first.findtext("name") == "airplane"
    assert [second.findtext(f"bndbox/{side}") for side in ("xmin", "xmax")] == ["1", "50"]
    assert plan.changed == {}


@given(
    st.tuples(
        st.floats(-3, 5000, allow_nan=False),
        st.floats(0, 5000, allow_nan=False),
        st.floats(0, 5000, allow_nan=False),
        st.floats(0, 5000, allow_nan=False),
    )
)
def test_corners_are_pythons_and_lose_at_most_a_pixel_a_side(box: tuple[float, ...]) -> None:
    x, y, w, h = box
    (corners,) = upstream_corners(np.array([box])).tolist()
    assert corners == [int(x + 1), int(y + 1), int(x + w + 1), int(y + h + 1)]
    if x >= 0:
        start, end = corners[0] - 1, corners[2]
        assert x - 1 - 1e-9 < start <= x + 1e-9
        assert x + w - 1e-9 <= end <= x + w + 1 + 1e-9


def test_refusals(world: TaskWorld) -> None:
    header = msgspec.structs.replace(
        world.manifest.header,
        tasks=(),
        parts=tuple(msgspec.structs.replace(part, task="") for part in world.manifest.header.parts),
    )
    with pytest.raises(ExportError, match="needs tasks"):
        plan_owod_layout(Manifest(header, world.manifest.lists), ["t1-test"], world.sources)
    for parts in ([], ["t1-test", "t1-test"]):
        with pytest.raises(ExportError, match="exported once"):
            plan_owod_layout(world.manifest, parts, world.sources)
    twin = msgspec.structs.replace(world.manifest.part("t1-train"), name="t1_train")
    header = msgspec.structs.replace(world.manifest.header, parts=(*world.manifest.header.parts, twin))
    lists = {**world.manifest.lists, "t1_train": world.manifest.ids("t1-train")}
    with pytest.raises(ExportError, match="same upstream name"):
        plan_owod_layout(Manifest(header, lists), ["t1-train", "t1_train"], world.sources)
    *classes, last = world.manifest.header.classes
    nameless = msgspec.structs.replace(last, index=-1, role="unknown")
    header = msgspec.structs.replace(
        world.manifest.header, classes=(*classes, nameless), tasks=world.manifest.header.tasks[:2]
    )
    parts = tuple(part for part in header.parts if part.task != "t3")
    header = msgspec.structs.replace(header, parts=parts)
    with pytest.raises(ExportError, match="without an index"):
        plan_owod_layout(Manifest(header, world.manifest.lists), ["t1-test"], world.sources)
