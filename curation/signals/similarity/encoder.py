"""`Encoder`: the interface of encoders of pictures and texts; `ColourEncoder`: an encoder without weights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from curation.core.errors import EncoderError
from curation.core.wording import counted
from curation.signals.similarity.embeddings import EncoderIdentity, Vectors

if TYPE_CHECKING:
    from PIL.Image import Image

Prepared = npt.NDArray[Any]
"""One picture, ready to be stacked with others; all of an encoder have the same shape and dtype."""


class Encoder(Protocol):
    """Turns RGB pictures into vectors.

    Encoding has two steps: `prepare` may run in many threads at once; `encode_prepared` runs in one, unless the encoder
    has a method ``one_core_each`` (see `one_core_each`).
    """

    @property
    def identity(self) -> EncoderIdentity:
        """Identity of the encoder: vectors are comparable if it is equal."""

    @property
    def dimension(self) -> int:
        """Length d of a vector."""

    def prepare(self, image: Image) -> Prepared:
        """Return a picture resized and cropped as the model requires."""

    def encode_prepared(self, batch: Sequence[Prepared]) -> Vectors:
        """Return the vectors of prepared pictures, float32, shape (b, d)."""

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, float32, shape (b, d).

        Raises
        ------
        EncoderError
            The encoder has no text tower, or a text is longer than it reads.
        """


def one_core_each(encoder: Encoder) -> AbstractContextManager[bool]:
    """Let `encode_prepared` run in several threads at once, on one core each; the context is False if it cannot.

    A model that uses all cores competes with the threads that decode the next batches. Batches that run side by side,
    each on one core, leave no core idle.
    """
    method = getattr(encoder, "one_core_each", None)
    return nullcontext(False) if method is None else method()


def require_finite(vectors: Vectors, ids: Sequence[str]) -> None:
    """Raise `EncoderError` naming the first id whose vector holds NaN or infinity."""
    finite = np.asarray(np.isfinite(vectors).all(axis=1), np.bool_)
    if not finite.all():
        first = int(np.argmin(finite))
        raise EncoderError(
            "The encoder gave a vector that is not finite",
            where=ids[first],
            found=f"{int((~finite).sum())} of {len(finite)} vectors of the batch",
            hint="--set precision=float32, or other weights: these may be damaged",
        )


SIDE = 128
_RGB_LEVELS = 4
_HUES, _SATURATIONS, _GREYS = 12, 3, 4
_COLOUR_CELLS = 2
_EDGE_CELLS = 4
_GREY_BELOW = 26
"""Of 255: pixels whose largest and smallest channel differ by less count as grey."""
_DIRECTIONS = ((1000, 0), (924, 383), (707, 707), (383, 924), (0, 1000), (-383, 924), (-707, 707), (-924, 383))
"""Eight directions of half a circle, in thousandths: whole numbers, so that all machines round angles alike."""
_COLOUR_BINS = _HUES * _SATURATIONS + _GREYS
_DIMENSION = _RGB_LEVELS**3 + _COLOUR_CELLS**2 * _COLOUR_BINS + _EDGE_CELLS**2 * len(_DIRECTIONS)

Ints = npt.NDArray[np.int64]


class ColourEncoder:
    """Square roots of three kinds of histograms, 352 numbers: the dot product of two vectors is their likeness.

    A picture is reduced to 128 x 128 pixels by averaging, its aspect ratio aside. Then: 64 bins of RGB over the whole
    picture; 40 bins of hue, saturation and grey in each of 2 x 2 cells; 8 bins of edge direction, weighted by strength,
    in each of 4 x 4 cells. Each kind weighs the same; the dot product of two histograms' roots is their Bhattacharyya
    coefficient, from 0 to 1. All counting is in whole numbers, so vectors differ between machines only if Pillow's
    decoding or averaging does. It compares colours and layout, not objects: use it for trials and to find copies.
    """

    @property
    def identity(self) -> EncoderIdentity:
        """Identity of the encoder: vectors are comparable if it is equal."""
        return EncoderIdentity("colour-1", "none", f"RGB, stored orientation, box {SIDE} x {SIDE}", "float32")

    @property
    def dimension(self) -> int:
        """Length of a vector: 352."""
        return _DIMENSION

    def prepare(self, image: Image) -> Prepared:
        """Return a picture of 128 x 128 pixels, uint8, shape (128, 128, 3)."""
        from PIL.Image import Resampling

        return np.asarray(image.convert("RGB").resize((SIDE, SIDE), Resampling.BOX), np.uint8)

    def encode_prepared(self, batch: Sequence[Prepared]) -> Vectors:
        """Return the vectors of prepared pictures, float32, shape (b, 352)."""
        return np.stack([_vector(pixels.astype(np.int64)) for pixels in batch])

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Raise `EncoderError`: histograms have no texts."""
        raise EncoderError(
            "The colour encoder has no text tower",
            found=counted(len(texts), "text"),
            hint="--model ViT-B-32 --pretrained TAG in place of --encoder",
        )


def _vector(pixels: Ints) -> Vectors:
    colours = pixels * _RGB_LEVELS // 256
    rgb = (colours[..., 0] * _RGB_LEVELS + colours[..., 1]) * _RGB_LEVELS + colours[..., 2]
    direction, strength = _edges(pixels)
    kinds = (
        _histograms(rgb, np.ones_like(rgb), 1, _RGB_LEVELS**3),
        _histograms(_hues(pixels), np.ones_like(rgb), _COLOUR_CELLS, _COLOUR_BINS),
        _histograms(direction, strength, _EDGE_CELLS, len(_DIRECTIONS)),
    )
    # Square roots of shares: the rows together have unit length, or less where a cell has no edge.
    totals = [np.maximum(counts.sum(axis=1, keepdims=True), 1) for counts in kinds]
    roots = [np.sqrt(counts / (total * len(counts))).ravel() for counts, total in zip(kinds, totals, strict=True)]
    return np.concatenate(roots).astype(np.float32)


def _hues(pixels: Ints) -> Ints:
    """Return the bin of hue and saturation, or of grey, of each pixel."""
    ordered = np.sort(pixels, axis=-1)
    low, middle, high = ordered[..., 0], ordered[..., 1], ordered[..., 2]
    spread = high - low
    # The largest and the smallest channel define a sixth of the circle; the middle one halves it.
    largest, smallest = pixels.argmax(axis=-1), 2 - pixels[..., ::-1].argmin(axis=-1)
    sixth = 2 * largest + (smallest == (largest + 1) % 3)
    hue = 2 * sixth + (2 * middle > high + low)
    saturation = np.minimum(spread * _SATURATIONS // np.maximum(high, 1), _SATURATIONS - 1)
    grey = _HUES * _SATURATIONS + high * _GREYS // 256
    bins: Ints = np.where(spread < _GREY_BELOW, grey, hue * _SATURATIONS + saturation)
    return bins


def _edges(pixels: Ints) -> tuple[Ints, Ints]:
    """Return the direction bin and the strength of the brightness gradient at each pixel; strength 0 at the border."""
    grey = pixels @ np.array([299, 587, 114], np.int64)
    across, down = np.zeros_like(grey), np.zeros_like(grey)
    across[1:-1, 1:-1] = grey[1:-1, 2:] - grey[1:-1, :-2]
    down[1:-1, 1:-1] = grey[2:, 1:-1] - grey[:-2, 1:-1]
    along = np.abs(np.stack([across * x + down * y for x, y in _DIRECTIONS]))
    return along.argmax(axis=0), np.abs(across) + np.abs(down)


def _histograms(bins: Ints, weights: Ints, cells: int, size: int) -> Ints:
    """Return one histogram for each cell of a grid, shape (cells * cells, size)."""
    step = SIDE // cells
    cell = np.arange(SIDE) // step
    index = (cell[:, None] * cells + cell[None, :]) * size + bins
    # Weights of bincount are float64: sums of whole numbers below 2**53 are exact in any order.
    counts = np.bincount(index.ravel(), weights.ravel(), cells * cells * size)
    return counts.reshape(cells * cells, size).astype(np.int64)
