"""The weight-free encoder, on pictures whose histograms are known by hand."""

import colorsys

import numpy as np
import pytest

from curation.signals.similarity.embeddings import rows_of_unit_length
from curation.signals.similarity.encoder import ColourEncoder, _hues
from tests.rounding import cosine_error
from tests.signals.similarity.clip_world import picture
from tests.signals.similarity.vectors import encode_images

image_module = pytest.importorskip("PIL.Image")


def flat(*colour: int) -> object:
    return image_module.new("RGB", (50, 40), colour)


def likeness(*images: object) -> np.ndarray:
    unit = rows_of_unit_length(encode_images(ColourEncoder(), list(images)))
    return unit @ unit.T


def test_a_flat_picture_fills_one_bin_of_each_histogram() -> None:
    vector = encode_images(ColourEncoder(), [flat(255, 0, 0)])[0]
    # 64 bins of RGB: red 3, green 0, blue 0; then four cells of 40 bins, a quarter of the weight each; no edges.
    assert vector[3 * 16] == 1
    assert np.count_nonzero(vector[:64]) == 1
    np.testing.assert_array_equal(vector[64:224].reshape(4, 40).max(axis=1), 0.5)
    assert np.count_nonzero(vector[64:224]) == 4
    assert not vector[224:].any()
    assert vector.shape == (ColourEncoder().dimension,) == (352,)


def test_hue_bins_are_twelfths_of_the_circle() -> None:
    degrees = np.arange(5, 360, 10)
    pixels = np.array([[round(255 * part) for part in colorsys.hsv_to_rgb(d / 360, 1, 1)] for d in degrees])
    bins = _hues(pixels[None].astype(np.int64))[0] // 3
    # Bins need no order around the circle: the same bin for the same twelfth, another for each other one.
    pairs = set(zip((degrees // 30).tolist(), bins.tolist(), strict=True))
    assert len(pairs) == len({bin_ for _, bin_ in pairs}) == 12


def test_edges_lie_in_the_bin_of_their_direction() -> None:
    stripes = np.zeros((128, 128, 3), np.uint8)
    stripes[:, ::8] = stripes[:, 1::8] = 255
    across = encode_images(ColourEncoder(), [image_module.fromarray(stripes)])[0][224:].reshape(16, 8)
    down = encode_images(ColourEncoder(), [image_module.fromarray(stripes.transpose(1, 0, 2))])[0][224:]
    assert set(across.argmax(axis=1)) == {0}
    assert set(down.reshape(16, 8).argmax(axis=1)) == {4}


def test_likeness_is_one_for_copies_and_falls_with_difference() -> None:
    photo = image_module.fromarray(picture(1, (300, 200)))
    smaller, other = photo.resize((150, 100)), image_module.fromarray(picture(2, (300, 200)))
    like = likeness(photo, photo.copy(), smaller, other)
    assert like[0, 1] == pytest.approx(1, rel=0, abs=cosine_error(352))
    assert like[0, 2] > 0.97
    assert like[0, 3] < 0.8
