"""An encoder without weights: where which colours and which edges are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from curation.errors import SimilarityError
from curation.similarity.embeddings import EncoderIdentity, Vectors

if TYPE_CHECKING:
    from PIL.Image import Image

_SIDE, _CELLS = 96, 3
_HUES, _GREYS, _ORIENTATIONS = 12, 4, 8
_GREY_BELOW = 0.15


class ColourEncoder:
    """Histograms of hue (weighted by saturation), of grey levels and of gradient directions in a grid of 3 x 3 cells.

    No model and no download: 216 numbers, the square root of the shares (Hellinger), so that the scalar product of two
    unit vectors compares distributions. It finds near copies and scenes of the same colours, not the same classes.
    """

    @property
    def identity(self) -> EncoderIdentity:
        """What decides its numbers."""
        return EncoderIdentity(
            "colour",
            "",
            f"exif orientation, RGB, bicubic {_SIDE}x{_SIDE}, {_CELLS}x{_CELLS} cells, {_HUES} hues, {_GREYS} greys, "
            f"{_ORIENTATIONS} orientations, square root",
        )

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return _CELLS * _CELLS * (_HUES + _GREYS + _ORIENTATIONS)

    def prepare(self, image: Image) -> Vectors:
        """Return the vector of an RGB image, shape (216,)."""
        from PIL.Image import Resampling

        pixels: Vectors = np.asarray(image.resize((_SIDE, _SIDE), Resampling.BICUBIC), np.float32) / np.float32(255)
        hue, saturation, value = _hsv(pixels)
        grey = pixels @ np.array([0.299, 0.587, 0.114], np.float32)
        down, right = np.gradient(grey)
        strength = np.hypot(right, down)
        angle = np.mod(np.arctan2(down, right) / np.pi, 1.0)
        coloured = saturation * value
        plain = np.where(coloured < _GREY_BELOW, 1.0, 0.0)
        histograms = np.concatenate(
            [
                _cells(hue, coloured, _HUES),
                _cells(value, plain, _GREYS),
                _cells(angle, strength, _ORIENTATIONS),
            ],
            axis=1,
        )
        vector: Vectors = np.sqrt(histograms).astype(np.float32).ravel()
        return vector

    def encode_prepared(self, batch: Sequence[Vectors]) -> Vectors:
        """Return the vectors of prepared images, shape (b, 216)."""
        return np.stack(batch) if batch else np.empty((0, self.dimension), np.float32)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Raise `SimilarityError`: colours have no words."""
        raise SimilarityError(
            "The encoder 'colour' has no text tower",
            expected="a model with one, such as --model ViT-B-32 --pretrained FILE",
            found=f"{len(texts)} texts",
        )


def _hsv(pixels: Vectors) -> tuple[Vectors, Vectors, Vectors]:
    """Return hue in [0, 1), saturation and value of RGB pixels in [0, 1]."""
    value, low = pixels.max(axis=2), pixels.min(axis=2)
    span = value - low
    safe = np.where(span > 0, span, 1)
    red, green, blue = (pixels[..., channel] for channel in range(3))
    hue = np.where(
        value == red,
        (green - blue) / safe,
        np.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    return np.mod(hue / 6, 1.0), span / np.where(value > 0, value, 1), value


def _cells(values: Vectors, weights: Vectors, bins: int) -> Vectors:
    """Return the weighted histogram of each grid cell as shares of the cell's pixels, shape (cells, bins)."""
    size = _SIDE // _CELLS
    number = np.minimum((values * bins).astype(np.int64), bins - 1)
    cell = (np.arange(_SIDE) // size)[:, None] * _CELLS + (np.arange(_SIDE) // size)[None, :]
    counts = np.bincount((cell * bins + number).ravel(), weights.ravel(), minlength=_CELLS * _CELLS * bins)
    shares: Vectors = (counts.reshape(_CELLS * _CELLS, bins) / (size * size)).astype(np.float32)
    return shares
