"""What is embedded: photos found for sources and folders, boxes as whole pixels."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import DuplicateIdError, EmbeddingError, PresenceOnlyError
from curation.similarity.embed import box_text, crop_of, photos_of_folder, photos_of_sources
from curation.sources.opening import open_source
from curation.sources.photos import PhotoFolder
from curation.sources.source import Source


def source(folder: Path) -> Source:
    path = folder / "instances_val2017.json"
    images = [{"id": n, "file_name": f"{n:012d}.jpg", "width": 40, "height": 30} for n in (7, 3, 5)]
    boxes = [(3, [1.5, 2, 3, 4]), (7, [0, 0, 40, 30]), (3, [5, 5, 1, 1])]
    annotations = [
        {"id": n, "image_id": image, "category_id": 1, "bbox": box, "area": 1, "iscrowd": 0}
        for n, (image, box) in enumerate(boxes, start=1)
    ]
    content = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "cat"}]}
    path.write_text(json.dumps(content))
    return open_source(path, dataset="coco", part="val2017", cache=False)


def folder_with(folder: Path, *names: str) -> PhotoFolder:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return PhotoFolder(folder)


def test_photos_come_in_file_order_and_missing_ones_have_no_path(tmp_path: Path) -> None:
    photos = photos_of_sources(
        {"coco": source(tmp_path)}, {"": folder_with(tmp_path / "p", "000000000003.jpg", "v/000000000005.PNG")},
        boxes=False,
    )  # fmt: skip
    assert [photo.id for photo in photos] == ["coco:000000000007", "coco:000000000003", "coco:000000000005"]
    assert [photo.path and photo.path.name for photo in photos] == [None, "000000000003.jpg", "000000000005.PNG"]
    assert [photo.pictures for photo in photos] == [((photo.id, None),) for photo in photos]


def test_boxes_are_numbered_within_their_image_and_images_without_have_none(tmp_path: Path) -> None:
    photos = photos_of_sources({"coco": source(tmp_path)}, {"coco": folder_with(tmp_path / "p")}, boxes=True)
    assert [picture for photo in photos for picture in photo.pictures] == [
        ("coco:000000000007#0", (0, 0, 40, 30)),
        ("coco:000000000003#0", (1.5, 2, 3, 4)),
        ("coco:000000000003#1", (5, 5, 1, 1)),
    ]
    assert photos[0].size == (40, 30)


def test_a_source_given_twice_or_without_photos_is_refused(tmp_path: Path) -> None:
    one, folder = source(tmp_path), folder_with(tmp_path / "p")
    with pytest.raises(DuplicateIdError, match="same id"):
        photos_of_sources({"a": one, "b": one}, {"": folder}, boxes=False)
    with pytest.raises(EmbeddingError, match="no folder of photos"):
        photos_of_sources({"a": one}, {"b": folder}, boxes=False)


def test_a_list_of_ids_has_photos_and_no_boxes(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("3\n")
    one = open_source(tmp_path / "ids.txt", dataset="coco", part="", cache=False)
    folder = folder_with(tmp_path / "p", "000000000003.jpg")
    assert photos_of_sources({"coco": one}, {"": folder}, boxes=False)[0].path is not None
    with pytest.raises(PresenceOnlyError):
        photos_of_sources({"coco": one}, {"": folder}, boxes=True)


def test_ids_of_a_folder_are_paths_without_suffix(tmp_path: Path) -> None:
    photos = photos_of_folder(folder_with(tmp_path, "b/1.JPG", "a.v2.png", "139.webp", "notes.txt"), "coco")
    assert [photo.id for photo in photos] == ["coco:000000000139", "coco:a.v2", "coco:b/1"]


def test_photos_that_differ_in_suffix_only_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="no photos"):
        photos_of_folder(folder_with(tmp_path), "x")
    with pytest.raises(DuplicateIdError):
        photos_of_folder(folder_with(tmp_path, "1.jpg", "1.png"), "x")


FLOATS = st.floats(-50, 150)


@given(st.tuples(FLOATS, FLOATS, st.floats(0.01, 100), st.floats(0.01, 100)))
def test_a_crop_holds_the_visible_part_of_its_box_and_at_most_a_pixel_more(
    box: tuple[float, float, float, float],
) -> None:
    x, y, w, h = box
    left, right = max(x, 0), min(x + w, 80)
    upper, lower = max(y, 0), min(y + h, 60)
    crop = crop_of(box, (80, 60))
    if left < right and upper < lower:
        assert crop is not None
        assert crop[0] <= left < crop[0] + 1
        assert crop[1] <= upper < crop[1] + 1
        assert crop[2] - 1 < right <= crop[2]
        assert crop[3] - 1 < lower <= crop[3]
    elif x > 80 or x + w < 0 or y > 60 or y + h < 0:
        assert crop is None


@pytest.mark.parametrize("box", [(1, 1, 0, 5), (1, 1, -3, 5), (float("nan"), 1, 1, 1), (1, 1, float("inf"), 1)])
def test_boxes_without_pixels_have_no_crop(box: tuple[float, float, float, float]) -> None:
    assert crop_of(box, (10, 10)) is None


def test_the_text_of_a_box_is_exact() -> None:
    assert box_text(None) == ""
    assert box_text((0.1, 2, 3, 1e-7)) == "0.1,2.0,3.0,1e-07"
