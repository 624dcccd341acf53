"""The drawn world is what it says it is: the same bytes each time, in layouts the real readers read."""

from pathlib import Path

import pytest

from curation.core.canonical import sha256_of_file
from curation.extensions.demo.__main__ import regions
from curation.extensions.demo.world import HEIGHT, KNOWN, UNKNOWN, WIDTH, World, draw_world, read_picture
from curation.sources.coco import read_coco
from curation.sources.datasets import VOC_NAMES
from curation.sources.voc import read_voc


def draw(folder: Path) -> World:
    return draw_world(folder, n_train=4, n_test=40, n_coco=80, seed=3)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return draw(tmp_path_factory.mktemp("world"))


def test_two_drawings_are_equal_byte_for_byte(world: World, tmp_path: Path) -> None:
    draw(tmp_path)
    first = world.voc_root.parents[1]
    files = [path.relative_to(first) for path in sorted(first.rglob("*")) if path.is_file()]
    photos_xml_lists_and_json = 2 * (4 + 40) + 2 + 80 + 2
    assert len(files) == photos_xml_lists_and_json
    assert all(sha256_of_file(first / name) == sha256_of_file(tmp_path / name) for name in files)


def test_voc_shows_known_things_within_its_photos(world: World) -> None:
    source = read_voc(world.voc_root, dataset="voc2007", part="test")
    objects = source.require_objects("this test")
    assert set(objects.image.tolist()) == set(range(40))
    assert {source.categories.names[position] for position in objects.category} <= set(KNOWN) <= set(VOC_NAMES)
    assert (objects.boxes[:, :2] >= 0).all()
    assert (objects.boxes[:, :2] + objects.boxes[:, 2:] <= (WIDTH, HEIGHT)).all()


def test_coco_has_a_wilderness_and_empty_images(world: World) -> None:
    source = read_coco(world.coco_json, dataset="coco", part="train2017")
    assert not set(UNKNOWN) & set(VOC_NAMES)
    image, category = source.class_pairs()
    names = [source.categories.names[position] for position in category.tolist()]
    with_known = {number for number, name in zip(image.tolist(), names, strict=True) if name not in UNKNOWN}
    assert 80 * 0.4 < len(source.images) - len(with_known) < 80 * 0.85
    assert len(set(image.tolist())) < len(source.images)


def test_the_detector_finds_most_things_from_their_pixels(world: World) -> None:
    source = read_voc(world.voc_root, dataset="voc2007", part="test")
    objects = source.require_objects("this test")
    near = 0
    for number, name in enumerate(source.images.file_names.tolist()):
        found = regions(read_picture(world.voc_root / "JPEGImages" / name))
        true = objects.boxes[objects.image == number].tolist()
        near += sum(any(box == pytest.approx(list(region), abs=8) for region in found) for box in true)
    assert near > 0.7 * len(objects)
