"""The drawn world is what it says it is: the same bytes each time, in layouts the real readers read."""

from pathlib import Path

import pytest

from curation.canonical import sha256_of_file
from curation.demo.world import COCO_CATEGORIES, KNOWN, World, draw_world
from curation.sources.coco import read_coco
from curation.sources.voc import read_voc


def draw(folder: Path) -> World:
    return draw_world(folder, n_train=4, n_test=6, n_coco=30)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return draw(tmp_path_factory.mktemp("world"))


def test_two_drawings_are_equal_byte_for_byte(world: World, tmp_path: Path) -> None:
    draw(tmp_path)
    first = world.voc_root.parents[1]
    files = [path.relative_to(first) for path in sorted(first.rglob("*")) if path.is_file()]
    assert len(files) == 4 + 6 + 30 + 10 + 2 + 1
    assert all(sha256_of_file(first / name) == sha256_of_file(tmp_path / name) for name in files)


def test_voc_part_shows_known_things_only(world: World) -> None:
    source = read_voc(world.voc_root, dataset="voc2007", part="test")
    assert len(source.images) == 6
    objects = source.require_objects("this test")
    assert {source.categories.names[position] for position in objects.category} <= set(KNOWN)


def test_coco_part_has_a_wilderness_with_empty_images(world: World) -> None:
    source = read_coco(world.coco_json, dataset="coco", part="train2017")
    image, category = source.class_pairs()
    known = {COCO_CATEGORIES[name][1] for name in KNOWN}
    with_known = {int(i) for i, c in zip(image, category, strict=True) if source.categories.names[c] in known}
    assert 0 < len(source.images) - len(with_known) < 30
