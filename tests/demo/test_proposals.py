"""Regions against plain search, and features that do not depend on the size of a box."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from curation.demo.detector import connected_boxes, describe, propose

MASKS = hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12))


def flood_boxes(mask: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Bounding boxes by flood fill, one pixel at a time."""
    left = {(int(y), int(x)) for y, x in np.argwhere(mask)}
    boxes = []
    while left:
        region, queue = set(), [left.pop()]
        while queue:
            y, x = queue.pop()
            region.add((y, x))
            near = {(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)} & left
            left -= near
            queue += near
        ys, xs = zip(*region, strict=True)
        boxes.append((min(xs), min(ys), max(xs) - min(xs) + 1, max(ys) - min(ys) + 1))
    return boxes


@given(MASKS)
def test_connected_boxes_equal_flood_fill(mask: np.ndarray) -> None:
    assert sorted(connected_boxes(mask)) == sorted(flood_boxes(mask))


def test_a_lone_square_is_proposed() -> None:
    photo = np.full((60, 80, 3), 120, np.uint8)
    photo[20:40, 30:50] = (250, 20, 20)
    boxes = propose(photo)
    assert len(boxes)
    x, y, width, height = boxes[0]
    assert abs(x - 30) <= 1
    assert abs(y - 20) <= 1
    assert abs(width - 20) <= 2
    assert abs(height - 20) <= 2


def test_an_even_photo_has_no_regions() -> None:
    assert propose(np.full((60, 80, 3), 99, np.uint8)).shape == (0, 4)


@given(st.integers(1, 30), st.integers(1, 30))
def test_any_box_gives_finite_features(width: int, height: int) -> None:
    photo = np.random.default_rng(0).integers(0, 255, (40, 40, 3)).astype(np.uint8)
    features = describe(photo, np.array([[2, 3, width, height]]))
    assert features.shape == (1, 266)
    assert np.isfinite(features).all()


def test_features_of_an_even_patch_do_not_depend_on_its_size() -> None:
    photo = np.full((64, 64, 3), 200, np.uint8)
    small, large = describe(photo, np.array([[4, 4, 9, 9], [4, 4, 40, 40]]))
    assert small[:-2] == pytest.approx(large[:-2])
