import io
import struct
import zlib
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image

from curation.core.errors import ReviewError
from curation.review.app.images import arranged, box_slices, known_names, part_images, source_images
from curation.review.proposals.proposal import CategoryJudgement, Evidence, ProposalSet
from curation.sources.opening import open_path
from curation.sources.photos import PhotoFolder
from tests.review.app.review_world import BOX, ReviewWorld, coco_id, two_parts


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
    assert dict(zip(*np.unique(images.boxes.labels, return_counts=True), strict=True)) == {"pizza": 7, "zebra": 2}
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


def spoil(world: ReviewWorld) -> dict[str, list[str]]:
    """Break photos 1 to 8 in as many ways; return what shall be said of them."""
    whole = (world.photos / "000000000001.jpg").read_bytes()
    png = io.BytesIO()
    Image.effect_noise((60, 40), 90).save(png, "PNG")
    (world.photos / "000000000001.jpg").write_bytes(b"")
    (world.photos / "000000000002.jpg").unlink()
    (world.photos / "000000000003.jpg").write_bytes(whole[: len(whole) * 3 // 4])
    (world.photos / "000000000004.jpg").write_bytes(png.getvalue()[:-1000])
    (world.photos / "000000000005.jpg").write_bytes(b"<html>404 Not Found</html>")
    # A claim of 40,000 x 40,000 pixels in 57 bytes.
    (world.photos / "000000000006.jpg").write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0))
        + chunk(b"IEND", b"")
    )
    Image.new("RGB", (9, 9)).save(world.photos / "000000000007.jpg", "TIFF")
    # Only the head of a photo that goes on to claim more.
    (world.photos / "000000000008.jpg").write_bytes(whole[:100])
    # Whole, with something behind the end: cameras write such files.
    (world.photos / "000000000009.jpg").write_bytes(whole + b"\0" * 9 + b"extra" * 2000)
    (world.photos / "000000000010.jpg").write_bytes(png.getvalue())
    return {
        "missing": [coco_id(2)],
        "empty": [coco_id(1)],
        "no image": [coco_id(5)],
        "unsupported": [coco_id(7)],
        "truncated": [coco_id(3), coco_id(4), coco_id(8)],
        "huge": [coco_id(6)],
    }


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_images_whose_photo_cannot_be_shown_are_named_and_left_out(world: ReviewWorld) -> None:
    expected = spoil(world)
    images = world.images(batch_size=3)
    assert images.bad_photos == expected
    assert images.left_out == {}
    assert images.batches == ("0001",) * 3 + ("0002",)
    assert images.ids == tuple(coco_id(n) for n in (12, 11, 10, 9))
    for number in range(9, 13):
        (world.photos / f"{number:012d}.jpg").write_bytes(b"")
    with pytest.raises(ReviewError, match="No photo can be shown"):
        world.images()


def test_a_photo_without_a_stated_size_is_measured(world: ReviewWorld) -> None:
    text = world.annotations.read_text(encoding="utf-8").replace(', "width": 96, "height": 64', "")
    world.annotations.write_text(text, encoding="utf-8")
    (world.photos / "000000000002.jpg").write_bytes(b"\xff\xd8 no photo")
    images = world.images()
    assert images.bad_photos == {"no image": [coco_id(2)]}
    assert images.sizes.tolist() == [[96, 64]] * 11


def test_the_nearest_id_image_is_shown_where_its_photo_lies(world: ReviewWorld, tmp_path: Path) -> None:
    (tmp_path / "voc").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "voc" / "2008_000008.jpg")
    # One that cannot be shown is not handed to the browser either.
    (tmp_path / "voc" / "2008_000009.jpg").write_bytes(b"\xff\xd8\xff")
    details = ("looks like voc2012:2008_000008", "looks like voc2012:2008_000009", "is itself among the ID images")
    made = [
        msgspec.structs.replace(
            one, evidence=(*one.evidence, Evidence(kind="image_image", detail=detail, score="0.9", threshold="0.8"))
        )
        for one, detail in zip(world.proposals(), details, strict=False)
    ]
    found = source_images({"coco": world.source()}, {"": PhotoFolder(world.photos)})
    folders = {"voc2012": PhotoFolder(tmp_path / "voc"), "": PhotoFolder(world.photos)}
    images = arranged(found, made, batch_size=5, id_photos=folders)
    assert images.nearest[:4] == ("voc2012:2008_000008", "voc2012:2008_000009", coco_id(10), "")
    assert [path and path.name for path in images.nearest_paths[:4]] == [
        "2008_000008.jpg",
        None,
        "000000000010.jpg",
        None,
    ]


def test_without_a_manifest_the_proposals_say_what_is_known(world: ReviewWorld) -> None:
    judged = CategoryJudgement(
        pool="coco", category="zebra", images=2, objects=2, judgement="overlap", reason="a horse"
    )
    proposals = ProposalSet(id_classes=("Person",), thresholds={}, inputs=(), proposals=(), categories=(judged,))
    found = source_images({"coco": world.source()}, {"": PhotoFolder(world.photos)})
    images = arranged(found, [], batch_size=5, known=known_names(proposals))
    roles = dict(zip(images.boxes.labels, images.boxes.roles, strict=True))
    assert roles == {"person": "known", "zebra": "known", "pizza": "unknown"}
    # A manifest's own word goes first.
    manifest, photos = two_parts(world.source()), {"coco": PhotoFolder(world.photos)}
    images = arranged(
        part_images(manifest, [], {"coco": world.source()}, photos), [], batch_size=5, known=known_names(proposals)
    )
    assert set(images.boxes.roles) == {"unknown"}


def test_a_presence_only_table_shows_classes_without_boxes(world: ReviewWorld, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("image,classes\n000000000001,zebra|person\n000000000002,pizza\n", encoding="utf-8")
    source = open_path(table, dataset="coco", part="")
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
    with pytest.raises(ReviewError, match="two proposals"):
        world.images([one, one])


def test_proposals_of_other_images_are_refused(world: ReviewWorld) -> None:
    proposal = msgspec.structs.replace(world.proposals()[0], image_id="other:1")
    with pytest.raises(ReviewError, match=r"No image to review[^$]*other:1[^$]*1 image: proposed"):
        world.images([proposal])


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
