"""A scene says truly what can be seen in it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.demo.world import HEIGHT, PROPORTIONS, WIDTH, draw_scene, draw_thing


@settings(max_examples=25)
@given(st.lists(st.sampled_from(sorted(PROPORTIONS)), max_size=4), st.integers(0, 2**32 - 1))
def test_boxes_are_tight_and_masks_disjoint(names: list[str], seed: int) -> None:
    photo, things = draw_scene(names, np.random.default_rng(seed))
    assert photo.shape == (HEIGHT, WIDTH, 3)
    assert len(things) <= len(names)
    for thing in things:
        x, y, width, height = thing.box
        inside = thing.mask[y : y + height, x : x + width]
        assert inside.sum() == thing.mask.sum()
        assert inside[0].any()
        assert inside[-1].any()
        assert inside[:, 0].any()
        assert inside[:, -1].any()
        assert 0 <= thing.hidden < 1
        assert not thing.crowd
    shown = np.sum([thing.mask for thing in things], axis=0)
    assert np.max(shown) <= 1


def test_a_thing_changes_the_pixels_where_it_is_said_to_be() -> None:
    photo, (thing,) = draw_scene(["pizza"], np.random.default_rng(1))
    change = np.abs(photo.astype(float) - np.median(photo.astype(float), axis=1, keepdims=True)).max(axis=2)
    assert change[thing.mask].mean() > 3 * change[~thing.mask].mean()


def test_a_herd_is_one_crowd() -> None:
    _, things = draw_scene(["boat"], np.random.default_rng(2), herd="zebra")
    assert [(thing.name, thing.crowd) for thing in things] == [("zebra", True), ("boat", False)]


@pytest.mark.parametrize("name", sorted(PROPORTIONS))
def test_no_two_drawings_of_a_thing_are_equal(name: str) -> None:
    rng = np.random.default_rng(5)
    first, coverage = draw_thing(name, 40, 30, rng)
    second, _ = draw_thing(name, 40, 30, rng)
    assert first.shape == (30, 40, 3)
    assert 0.15 < coverage.mean() < 1
    assert not np.array_equal(first, second)
