"""The authors' files: names, fields, counts, integer ids."""

import json
from typing import Any

import pytest

from curation.benchmarks.findmeifyoucan.layout import plan_findmeifyoucan, split_parts, upstream_name
from curation.errors import ExportError
from curation.manifest.manifest import Manifest
from curation.sources.source import Source
from tests.protocols.findmeifyoucan_world import TABLE, decided_world


@pytest.fixture(scope="module")
def made() -> tuple[Manifest, dict[str, Source]]:
    return decided_world()


def contents(made: tuple[Manifest, dict[str, Source]], part: str, table: Any = ()) -> dict[str, Any]:
    plan = plan_findmeifyoucan(made[0], [part], made[1], table)
    files = {file.name: b"".join(file.chunks()) for file in plan.files}
    return {name: json.loads(data) if name.endswith(".json") else data.decode() for name, data in files.items()}


def test_the_names_are_those_of_the_code(made: tuple[Manifest, dict[str, Source]]) -> None:
    names = {part: upstream_name(made[0], part) for part in split_parts(made[0].header)}
    assert names == {
        "coco-near": "near_coco_wrt_voc",
        "coco-far": "far_coco_wrt_voc",
        "openimages-near": "near_oi_wrt_voc",
        "openimages-far": "far_oi_wrt_voc",
    }
    with pytest.raises(ExportError, match="near, far and farther"):
        upstream_name(made[0], "coco-rule")


def test_a_coco_split_holds_the_annotations_of_both_sources(made: tuple[Manifest, dict[str, Source]]) -> None:
    files = contents(made, "coco-far")
    assert set(files) == {"far_coco_wrt_voc.json", "far_coco_wrt_voc.txt"}
    data = files["far_coco_wrt_voc.json"]
    assert list(data) == ["info", "licenses", "images", "annotations", "categories"]
    assert data["images"][0] == {"id": 1, "file_name": "000000000001.jpg", "height": 480, "width": 640}
    assert [one["id"] for one in data["images"]] == [1, 3, 101]
    assert files["far_coco_wrt_voc.txt"] == "000000000001\n000000000003\n000000000101\n"
    assert [one["image_id"] for one in data["annotations"]] == [1, 101, 101]
    assert data["annotations"][0] == {
        "id": 2,
        "image_id": 1,
        "category_id": 34,
        "bbox": [10.123456, 20, 30.005, 40],
        "iscrowd": 0,
        "area": 7.5,
    }
    counts = {one["name"]: one["count"] for one in data["categories"]}
    assert len(counts) == 80
    assert {name for name, count in counts.items() if count} == {"kite"}
    assert counts["kite"] == 3


def test_open_images_ids_stay_texts_and_an_int_variant_counts_positions(
    made: tuple[Manifest, dict[str, Source]],
) -> None:
    files = contents(made, "openimages-near", TABLE)
    assert set(files) == {"near_oi_wrt_voc.json", "near_oi_wrt_voc_int_id.json", "near_oi_wrt_voc.txt"}
    texts, numbers = files["near_oi_wrt_voc.json"], files["near_oi_wrt_voc_int_id.json"]
    assert [one["id"] for one in texts["images"]] == ["bb02", "cc03"]
    assert [one["id"] for one in numbers["images"]] == [1, 2]
    assert [one["file_name"] for one in numbers["images"]] == ["bb02.jpg", "cc03.jpg"]
    position = {one["id"]: place for place, one in enumerate(texts["images"], start=1)}
    renumbered = [{**one, "image_id": position[one["image_id"]]} for one in texts["annotations"]]
    assert renumbered == numbers["annotations"]
    # Rounded to two decimals, no area, ids counted from 0; Fox is the table's number, not the source's.
    assert texts["annotations"][0] == {
        "id": 0,
        "image_id": "bb02",
        "category_id": 97,
        "bbox": [10.12, 20.0, 30.0, 40.0],
        "iscrowd": 0,
    }
    fox = next(one for one in texts["categories"] if one["name"] == "Fox")
    assert fox == {"id": 97, "name": "Fox", "supercategory": "Parent", "metacategory": "Grandparent", "count": 2}


def test_an_annotation_id_of_zero_is_told(made: tuple[Manifest, dict[str, Source]]) -> None:
    plan = plan_findmeifyoucan(made[0], ["openimages-near"], made[1])
    assert any("id 0" in note for note in plan.notes)
    assert plan.counts == {"images": 2, "annotations": 3}


def test_a_class_that_the_table_lacks_is_an_error(made: tuple[Manifest, dict[str, Source]]) -> None:
    with pytest.raises(ExportError, match="lacks a class"):
        plan_findmeifyoucan(made[0], ["openimages-near"], made[1], TABLE[:3])
    with pytest.raises(ExportError, match="once"):
        plan_findmeifyoucan(made[0], [], made[1])
