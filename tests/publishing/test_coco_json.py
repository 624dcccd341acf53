"""COCO JSON of a part: ids, categories, numbers to the last bit, and what pycocotools makes of it."""

from __future__ import annotations

import contextlib
import io
import json
import math
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from curation.manifest.manifest import Manifest
from curation.publishing.formats.coco import plain_number, plan_coco
from curation.publishing.formats.plan import Plan
from curation.sources.source import Source


def content(plan: Plan) -> dict:
    (file,) = plan.files
    return json.loads(b"".join(file.chunks()))


def by_original(data: dict) -> dict[tuple[str, int], dict]:
    images = {one["id"]: one["curation_id"] for one in data["images"]}
    return {(images[one["image_id"]], one["original_id"]): one for one in data["annotations"]}


def test_a_part_keeps_its_integer_ids_and_its_order(manifest: Manifest, sources: dict[str, Source]) -> None:
    plan = plan_coco(manifest, ["wilderness"], sources)
    data = content(plan)
    assert [one["id"] for one in data["images"]] == [9, 100]
    assert [one["id"] for one in data["annotations"]] == [1, 2, 3]
    # Grouped by image in list order, then file order; the image outside the part gives nothing.
    assert [(one["image_id"], one["original_id"]) for one in data["annotations"]] == [(9, 901), (100, 4), (100, 2)]
    assert plan.changed == {}
    assert data["info"]["manifest_digest"] == manifest.digest


def test_no_digit_of_a_box_changes(manifest: Manifest, sources: dict[str, Source]) -> None:
    found = by_original(content(plan_coco(manifest, ["wilderness"], sources)))
    assert found["coco:000000000100", 4]["bbox"] == [0.1, 1 / 3, 10.25, 0.001]
    assert found["coco:000000000100", 4]["area"] == 7.7
    assert [type(value) for value in found["coco:000000000009", 901]["bbox"]] == [int] * 4


def test_flags_are_the_sources_and_ignore_is_the_views(manifest: Manifest, sources: dict[str, Source]) -> None:
    closed = by_original(content(plan_coco(manifest, ["closed"], sources)))
    wild = by_original(content(plan_coco(manifest, ["wilderness"], sources)))
    assert [(one["difficult"], one["ignore"], one["iscrowd"]) for one in closed.values()] == [
        (0, 0, 0),
        (0, 0, 0),
        (1, 1, 0),
    ]
    assert wild["coco:000000000009", 901]["iscrowd"] == 1
    assert wild["coco:000000000009", 901]["ignore"] == 0
    assert wild["coco:000000000100", 4]["ignore"] == 0


def test_colliding_ids_are_renumbered_and_told(manifest: Manifest, sources: dict[str, Source]) -> None:
    plan = plan_coco(manifest, ["closed", "wilderness"], sources)
    data = content(plan)
    assert [one["id"] for one in data["images"]] == [1, 2, 3, 4]
    assert [one["original_id"] for one in data["images"]] == [9, 12, 9, 100]
    assert len({one["id"] for one in data["annotations"]}) == len(data["annotations"]) == 6
    assert [one["part"] for one in data["images"]] == ["closed", "closed", "wilderness", "wilderness"]
    boxes = {(one["orig_category"], tuple(one["bbox"])): one["image_id"] for one in data["annotations"]}
    assert boxes["cat", (0, 0, 50, 40)] == 1
    assert boxes["elephant", (3, 4, 5, 6)] == 3
    assert plan.changed == {"images_renumbered": 4}
    assert "renumbered" in plan.notes[0]


def test_an_ignored_role_is_flagged(manifest: Manifest, sources: dict[str, Source]) -> None:
    cat, dog, elephant = manifest.header.classes
    classes = (cat, msgspec.structs.replace(dog, role="ignored"), elephant)
    ignoring = Manifest(msgspec.structs.replace(manifest.header, classes=classes), manifest.lists)
    flags = by_original(content(plan_coco(ignoring, ["closed"], sources)))
    assert {one["orig_category"]: one["ignore"] for one in flags.values() if not one["difficult"]} == {
        "cat": 0,
        "dog": 1,
    }


def test_pycocotools_reads_it(manifest: Manifest, sources: dict[str, Source], tmp_path: Path) -> None:
    from pycocotools import mask
    from pycocotools.coco import COCO

    (file,) = plan_coco(manifest, ["closed", "wilderness"], sources).files
    path = tmp_path / "both.json"
    path.write_bytes(b"".join(file.chunks()))
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(path))
    assert len(coco.imgs) == 4
    assert len(coco.anns) == 6
    # A box polygon covers exactly the box: pycocotools' mask of the 7 x 8 dog.
    dog = coco.loadAnns(coco.getAnnIds(catIds=[2]))[0]
    assert int(mask.area(coco.annToRLE(dog))) == 7 * 8


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_survives_json(value: float) -> None:
    written = json.loads(json.dumps(plain_number(value)))
    assert float(written) == value
    assert (
        isinstance(written, int) or not math.isclose(value, round(value), rel_tol=0, abs_tol=0) or abs(value) >= 2**53
    )


def test_hostile_names_are_data(manifest: Manifest, sources: dict[str, Source]) -> None:
    name = '</x>"\\\u2028 \x07.jpg'
    sources["voc"].images.file_names[0] = name
    data = content(plan_coco(manifest, ["closed"], sources))
    assert data["images"][0]["file_name"] == name
    sources["voc"].images.file_names[0] = ""
    plan = plan_coco(manifest, ["closed"], sources)
    assert content(plan)["images"][0]["file_name"] == "000009.jpg"
    assert plan.changed == {"file_names_made_from_ids": 1}
