"""The VOC layout: pixels that the reader's conversion undoes, flags that VOC readers understand, safe stems."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import ExportError
from curation.manifest.manifest import Manifest
from curation.publishing.formats.plan import Plan
from curation.publishing.formats.voc import inclusive_corners, plan_voc
from curation.sources.source import Source

whole_numbers = st.integers(0, 10_000)
edges = st.floats(0, 2000, allow_nan=False)


def contents(plan: Plan) -> dict[str, bytes]:
    return {file.name: b"".join(file.chunks()) for file in plan.files}


def annotation(files: dict[str, bytes], stem: str) -> Element:
    return fromstring(files[f"Annotations/{stem}.xml"])


def rows(files: dict[str, bytes], stem: str) -> list[tuple[Any, ...]]:
    return [
        (one.findtext("name"), *(int(one.findtext(f"bndbox/{edge}")) for edge in ("xmin", "ymin", "xmax", "ymax")))
        for one in annotation(files, stem).findall("object")
    ]


@given(st.lists(st.tuples(whole_numbers, whole_numbers, st.integers(1, 999), st.integers(1, 999)), max_size=5))
def test_whole_boxes_come_back_from_their_corners(boxes: list[tuple[int, ...]]) -> None:
    array = np.array(boxes, np.float64).reshape(-1, 4)
    corners, changed = inclusive_corners(array, np.zeros((len(boxes), 2), np.int32))
    # The reader's conversion (spec 1.6): xmin-1, ymin-1, xmax-xmin+1, ymax-ymin+1.
    back = np.concatenate([corners[:, :2] - 1, corners[:, 2:] - corners[:, :2] + 1], axis=1)
    assert np.array_equal(back, array)
    assert not any(changed.values())


@given(edges, edges, st.floats(0, 500), st.floats(0, 500), st.integers(1, 2500), st.integers(1, 2500))
def test_any_box_becomes_pixels_inside_the_image(
    x: float, y: float, w: float, h: float, width: int, height: int
) -> None:
    corners, changed = inclusive_corners(np.array([[x, y, w, h]]), np.array([[width, height]], np.int32))
    xmin, ymin, xmax, ymax = corners[0].tolist()
    assert 1 <= xmin <= xmax <= width
    assert 1 <= ymin <= ymax <= height
    if not changed["boxes_clipped_to_the_image"] and not changed["boxes_widened_to_a_pixel"]:
        assert max(abs(xmin - 1 - x), abs(xmax - (x + w)), abs(ymin - 1 - y), abs(ymax - (y + h))) <= 0.5


def test_small_and_outlying_boxes_by_hand() -> None:
    boxes = np.array([[3.2, 7.0, 0.2, 1.0], [-4.0, 2.0, 10.0, 3.0], [95.0, 0.0, 20.0, 5.0], [0.6, 0.4, 2.0, 2.0]])
    corners, changed = inclusive_corners(boxes, np.array([[0, 0], [0, 0], [100, 50], [100, 50]], np.int32))
    assert corners.tolist() == [[4, 8, 4, 8], [1, 3, 6, 5], [96, 1, 100, 5], [2, 1, 3, 2]]
    assert changed == {"boxes_rounded": 2, "boxes_widened_to_a_pixel": 1, "boxes_clipped_to_the_image": 2}


def test_classes_corners_and_flags(manifest: Manifest, sources: dict[str, Source]) -> None:
    plan = plan_voc(manifest, ["closed"], sources)
    files = contents(plan)
    assert files["ImageSets/Main/closed.txt"] == b"000009\n000012\n"
    assert rows(files, "000012") == [("dog", 6, 7, 12, 14), ("cat", 11, 12, 22, 24)]
    dog, cat = annotation(files, "000012").findall("object")
    flags = ("difficult", "truncated", "occluded", "pose")
    assert [cat.findtext(flag) for flag in flags] == ["1", "0", "1", "Frontal"]
    assert [dog.findtext(flag) for flag in flags] == ["0", "0", "0", "Unspecified"]
    assert annotation(files, "000009").findtext("object/truncated") == "1"
    assert plan.changed == {}


def test_equal_stems_of_two_sources_carry_their_namespace(manifest: Manifest, sources: dict[str, Source]) -> None:
    apart = plan_voc(manifest, ["closed", "wilderness"], sources)
    assert apart.notes == ()
    sources["coco"].images.native[1] = "000009"
    manifest.lists["wilderness"] = ("coco:000009", "coco:000000000100")
    plan = plan_voc(manifest, ["closed", "wilderness"], sources)
    files = contents(plan)
    assert "namespace" in plan.notes[0]
    assert files["ImageSets/Main/wilderness.txt"] == b"coco_000009\ncoco_000000000100\n"
    assert rows(files, "voc2007_000009") == [("cat", 1, 1, 50, 40)]
    assert rows(files, "coco_000009") == [("unknown", 4, 5, 8, 10)]


@pytest.mark.parametrize("native", ["../../etc/x", "a/b", "..", "C:x", "back\\slash", "n" * 250])
def test_stems_that_would_leave_the_folder_are_refused(
    native: str, manifest: Manifest, sources: dict[str, Source]
) -> None:
    images = sources["voc"].images
    object.__setattr__(images, "native", np.array([native, "000012"]))
    manifest.lists["closed"] = (f"voc2007:{native}", "voc2007:000012")
    with pytest.raises(ExportError):
        plan_voc(manifest, ["closed"], sources)


def test_markup_in_a_name_is_text_and_control_characters_are_refused(
    manifest: Manifest, sources: dict[str, Source]
) -> None:
    hostile = '<!ENTITY x "&y;">]]>.jpg'
    sources["voc"].images.file_names[0] = hostile
    assert annotation(contents(plan_voc(manifest, ["closed"], sources)), "000009").findtext("filename") == hostile
    sources["voc"].images.file_names[0] = "bell\x07.jpg"
    with pytest.raises(ExportError, match="XML"):
        plan_voc(manifest, ["closed"], sources)
