from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image

from curation.core.errors import ReviewError
from curation.review.app.images import arranged, box_slices, known_names, part_images, source_images
from curation.review.decisions.sampling import SAMPLE_SALT, by_hash_rank
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
    # The classes of an image name all its annotations, those that the view drops too.
    assert images.classes[-1] == ("person",)


def test_images_whose_photo_cannot_be_shown_are_named_and_left_out(world: ReviewWorld) -> None:
    # The annotations state no size: it is measured. A photo that is cut off is shown as far as it goes.
    text = world.annotations.read_text(encoding="utf-8").replace(', "width": 96, "height": 64', "")
    world.annotations.write_text(text, encoding="utf-8")
    whole = (world.photos / "000000000001.jpg").read_bytes()
    (world.photos / "000000000001.jpg").write_bytes(b"")
    (world.photos / "000000000002.jpg").unlink()
    (world.photos / "000000000003.jpg").write_bytes(whole[: len(whole) * 3 // 4])
    (world.photos / "000000000005.jpg").write_bytes(b"<html>404 Not Found</html>")
    images = world.images(batch_size=3)
    assert images.bad_photos == {"missing": [coco_id(2)], "unreadable": [coco_id(1), coco_id(5)]}
    assert images.batches == ("0001",) * 3 + ("0002",) * 3 + ("0003",) * 3
    assert images.ids == tuple(coco_id(n) for n in (12, 11, 10, 9, 8, 3, 4, 6, 7))
    assert images.sizes.tolist() == [[96, 64]] * 9
    for path in world.photos.iterdir():
        path.write_bytes(b"")
    with pytest.raises(ReviewError, match="No photo can be shown"):
        world.images()


def test_the_nearest_id_image_is_shown_where_its_photo_lies(world: ReviewWorld, tmp_path: Path) -> None:
    (tmp_path / "voc").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "voc" / "2008_000008.jpg")
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
    judged = CategoryJudgement(pool="coco", category="zebra", images=2, judgement="overlap", reason="a horse")
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


def test_proposals_of_other_images_are_refused(world: ReviewWorld) -> None:
    proposal = msgspec.structs.replace(world.proposals()[0], image_id="other:1")
    with pytest.raises(ReviewError, match=r"No image to review[^$]*other:1[^$]*1 image: proposed"):
        world.images([proposal])


def test_a_sample_follows_what_is_proposed_or_all_goes_by_hash_rank(world: ReviewWorld) -> None:
    found = source_images({"coco": world.source()}, {"": PhotoFolder(world.photos)})
    proposals = world.proposals()
    proposed, others = [row.image_id for row in proposals], [coco_id(number) for number in range(1, 8)]
    drawn = by_hash_rank(others, SAMPLE_SALT)[:3]
    made = arranged(found, proposals, batch_size=5, sample=3)
    assert list(made.ids) == [*proposed, *drawn]
    assert [(one.name, one.images, list(one.drawn)) for one in made.sample] == [("without a proposal", 7, drawn)]
    assert made.left_out == {"not drawn": 4}
    # The gold image is shown in any case, and at its rank.
    gold = by_hash_rank(others, SAMPLE_SALT)[-1]
    assert list(arranged(found, proposals, batch_size=5, sample=3, gold=[gold]).ids) == [*proposed, *drawn, gold]
    every = by_hash_rank([*proposed, *others], SAMPLE_SALT)
    assert list(arranged(found, proposals, batch_size=5, order="random").ids) == every
    at_random = arranged(found, proposals, batch_size=5, order="random", sample=4)
    assert (list(at_random.ids), at_random.sample[0].images) == (every[:4], 12)
    stratified = arranged(found, proposals, batch_size=5, order="stratified", sample=6)
    assert {one.name: (one.images, len(one.drawn)) for one in stratified.sample} == {
        "proposed: remove": (3, 2),
        "proposed: near": (2, 1),
        "without a proposal": (7, 3),
    }


def test_two_people_share_each_batch(world: ReviewWorld) -> None:
    found = source_images({"coco": world.source()}, {"": PhotoFolder(world.photos)})
    gold = coco_id(12)
    made = arranged(found, [], batch_size=4, reviewers=["ben", "anna"], overlap=0.25, gold=[gold])
    for batch in ("0001", "0002", "0003"):
        names = [who for who, one in zip(made.assigned, made.batches, strict=True) if one == batch]
        assert sum(len(who) == 2 for who in names) in (1, 2)
    assert made.assigned[made.ids.index(gold)] == ("anna", "ben")
