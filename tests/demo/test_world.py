"""The drawn world is what it says it is: the same bytes each time, in layouts the real readers read."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pycocotools import mask as coco_mask

from curation.canonical import sha256_of_file
from curation.demo.world import COCO_CATEGORIES, HEIGHT, KNOWN, UNKNOWN, WIDTH, World, draw_world, run_lengths
from curation.sources.coco import read_coco
from curation.sources.datasets import COCO_CATEGORIES as OFFICIAL_CATEGORIES
from curation.sources.datasets import VOC_NAMES
from curation.sources.voc import read_voc


def draw(folder: Path, *, seed: int = 3) -> World:
    return draw_world(folder, n_train=4, n_test=40, n_coco=80, seed=seed)


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


def test_another_seed_draws_another_world(world: World, tmp_path: Path) -> None:
    other = draw_world(tmp_path, n_train=1, n_test=1, n_coco=1, seed=4)
    name = Path("JPEGImages") / "000001.jpg"
    assert sha256_of_file(other.voc_root / name) != sha256_of_file(world.voc_root / name)


def test_names_and_numbers_are_those_of_voc_and_coco() -> None:
    assert set(KNOWN) <= set(VOC_NAMES)
    assert {(number, name) for number, name, _ in COCO_CATEGORIES.values()} <= {
        (number, name) for number, name, _ in OFFICIAL_CATEGORIES
    }
    assert not set(UNKNOWN) & set(VOC_NAMES)


def test_voc_part_shows_known_things_only_some_of_them_difficult(world: World) -> None:
    source = read_voc(world.voc_root, dataset="voc2007", part="test")
    objects = source.require_objects("this test")
    assert len(source.images) == 40
    assert set(objects.image.tolist()) == set(range(40))
    assert {source.categories.names[position] for position in objects.category} <= set(KNOWN)
    assert 0 < objects.difficult.sum() < objects.truncated.sum() < len(objects)


def test_voc_boxes_lie_within_their_photos(world: World) -> None:
    boxes = read_voc(world.voc_root, dataset="voc2007", part="test").require_objects("this test").boxes
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] >= 1).all()
    assert (boxes[:, :2] + boxes[:, 2:] <= (WIDTH, HEIGHT)).all()


def test_coco_part_has_a_wilderness_with_empty_images_and_crowds(world: World) -> None:
    source = read_coco(world.coco_json, dataset="coco", part="train2017")
    image, category = source.class_pairs()
    known = {COCO_CATEGORIES[name][1] for name in KNOWN}
    with_known = {int(i) for i, c in zip(image, category, strict=True) if source.categories.names[c] in known}
    assert 80 * 0.4 < len(source.images) - len(with_known) < 80 * 0.85
    assert len(set(image.tolist())) < len(source.images)
    assert source.require_objects("this test").crowd.any()


def test_coco_lists_its_images_in_no_order_of_their_numbers(world: World) -> None:
    numbers = [image["id"] for image in json.loads(world.coco_json.read_text())["images"]]
    assert len(set(numbers)) == 80
    assert numbers != sorted(numbers)


def test_crowd_boxes_and_areas_are_those_of_their_masks(world: World) -> None:
    crowds = [one for one in json.loads(world.coco_json.read_text())["annotations"] if one["iscrowd"]]
    assert crowds
    for crowd in crowds:
        code = coco_mask.frPyObjects(crowd["segmentation"], HEIGHT, WIDTH)
        assert coco_mask.toBbox(code).tolist() == crowd["bbox"]
        assert coco_mask.area(code) == crowd["area"]


# pycocotools hands numpy an array type without the `copy` keyword of numpy 2.
@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning")
@given(hnp.arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(1, 9))))
def test_run_lengths_decode_to_the_mask(mask: np.ndarray) -> None:
    code = coco_mask.frPyObjects(run_lengths(mask), *mask.shape)
    assert np.array_equal(coco_mask.decode(code).astype(bool), mask)
