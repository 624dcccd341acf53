from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from curation.errors import ReviewError
from curation.review.images import arranged, box_slices, part_images, source_images
from curation.sources.opening import open_source
from curation.sources.photos import PhotoFolder
from tests.review.review_world import BOX, ReviewWorld, coco_id, two_parts


def test_proposed_images_come_first_by_rank_then_the_others(world: ReviewWorld) -> None:
    images = world.images(batch_size=5)
    assert images.ids[:5] == tuple(coco_id(n) for n in (12, 11, 10, 9, 8))
    assert images.ids[5:] == tuple(coco_id(n) for n in range(1, 8))
    assert images.batches == ("0001",) * 5 + ("0002",) * 5 + ("0003",) * 2
    assert [one.rank if one else None for one in images.proposals] == [1, 2, 3, 4, 5] + [None] * 7


def test_boxes_follow_their_image(world: ReviewWorld) -> None:
    images = world.images()
    for row, among in enumerate(box_slices(images)):
        labels = images.boxes.labels[among]
        assert labels == images.classes[row]
        assert images.boxes.xywh[among].tolist() == [BOX]
    assert images.boxes.labels[:5] == ("person",) * 3 + ("zebra",) * 2


def test_only_what_is_proposed(world: ReviewWorld) -> None:
    found = source_images({"coco": world.source()}, {"": PhotoFolder(world.photos)})
    images = arranged(found, world.proposals(), batch_size=100, only_proposed=True)
    assert len(images) == 5
    assert images.left_out == {"not proposed": 7}


def test_a_part_is_seen_through_its_label_view(world: ReviewWorld) -> None:
    source = world.source()
    manifest = two_parts(source)
    photos = {"coco": PhotoFolder(world.photos)}
    images = arranged(part_images(manifest, [], {"coco": source}, photos), [], batch_size=100)
    assert images.parts == ("far",) * 7 + ("near",) * 5
    assert images.pools == images.parts
    # The view drops boxes of known classes and sets crowd aside.
    assert dict(zip(*np.unique(images.boxes.labels, return_counts=True), strict=True)) == {
        "pizza": 7,
        "zebra": 2,
    }
    assert set(images.boxes.roles) == {"unknown"}
    assert sum(images.boxes.ignore) == 1
    # The classes of an image name all its annotations, those that the view drops too.
    assert images.classes[-1] == ("person",)


def test_a_pool_may_be_named_and_a_part_chosen(world: ReviewWorld) -> None:
    source = world.source()
    photos = {"": PhotoFolder(world.photos)}
    images = part_images(two_parts(source), ["near"], {"coco": source}, photos, pool="coco")
    assert set(images.parts) == {"near"}
    assert set(images.pools) == {"coco"}


def test_without_sources_a_part_is_shown_without_boxes(world: ReviewWorld) -> None:
    images = part_images(two_parts(world.source()), ["near"], {}, {"": PhotoFolder(world.photos)})
    assert len(images) == 5
    assert len(images.boxes) == 0
    assert images.paths[0].name == "000000000008.jpg"


def test_photos_that_are_not_there_are_counted(world: ReviewWorld) -> None:
    for number in (3, 12):
        (world.photos / f"{number:012d}.jpg").unlink()
    images = world.images()
    assert len(images) == 10
    assert images.left_out == {"no photo at hand": 2, "proposed, but not among the images": 1}
    assert images.examples["no photo at hand"] == coco_id(3)


def test_broken_photos_are_counted_where_their_size_is_needed(world: ReviewWorld) -> None:
    text = world.annotations.read_text(encoding="utf-8").replace(', "width": 96, "height": 64', "")
    world.annotations.write_text(text, encoding="utf-8")
    (world.photos / "000000000002.jpg").write_bytes(b"\xff\xd8 no photo")
    images = world.images()
    assert len(images) == 11
    assert images.left_out == {"the photo cannot be read": 1}
    assert images.sizes.tolist() == [[96, 64]] * 11


def test_a_presence_only_table_shows_classes_without_boxes(world: ReviewWorld, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("image,classes\n000000000001,zebra|person\n000000000002,pizza\n", encoding="utf-8")
    source = open_source(table, dataset="coco", part="", cache=False)
    images = source_images({"coco": source}, {"": PhotoFolder(world.photos)})
    assert images.ids == (coco_id(1), coco_id(2))
    assert len(images.boxes) == 0


def test_no_photo_at_all_is_an_error_that_says_what_is_needed(world: ReviewWorld, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReviewError, match="No image has a photo") as caught:
        source_images({"coco": world.source()}, {"": PhotoFolder(tmp_path / "empty")})
    assert "--photos" in str(caught.value)


def test_two_proposals_of_one_image_are_refused(world: ReviewWorld) -> None:
    one = world.proposals()[0]
    with pytest.raises(ReviewError, match="Two proposals"):
        world.images([one, one])


def test_a_batch_needs_an_image(world: ReviewWorld) -> None:
    with pytest.raises(ReviewError, match="batch"):
        world.images(batch_size=0)


def test_photos_are_found_by_path_name_or_stem_and_never_outside(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    (folder / "sub").mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(folder / "sub" / "a.jpg")
    Image.new("RGB", (4, 4)).save(tmp_path / "secret.jpg")
    photos = PhotoFolder(folder)
    for name in ("sub/a.jpg", "a.jpg", "a", "elsewhere/a.jpg"):
        assert photos.find([name]) == folder / "sub" / "a.jpg"
    for name in ("../secret.jpg", str(tmp_path / "secret.jpg"), "", "b"):
        assert photos.find([name]) is None
