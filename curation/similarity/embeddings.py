"""Embeddings: vectors of images, boxes or texts, with the identity of the encoder that made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from curation.canonical import sha256_of_value

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """What makes two vectors comparable: all of it equal, or their similarity means nothing.

    Attributes
    ----------
    model : str
        Name of the architecture; of a configuration file, its stem and the digest of its content.
    weights : str
        ``sha256:<hex>`` of the weights file; ``random:SEED:sha256:<hex>`` of random weights; ``none`` for a formula.
    preprocessing : str
        What is done to an image before it is encoded.
    dtype : str
        Of the computation: ``float32``, ``float16 autocast``, ``bfloat16 autocast``.
    embedding : str
        ``projected``: the space that images and texts share. ``pooled``: the class token after the last normalisation,
        before projection (FindMeIfYouCan's reading, its code's ``pooler_output``).
    """

    model: str
    weights: str
    preprocessing: str
    dtype: str
    embedding: str = "projected"

    @property
    def digest(self) -> str:
        """``sha256:<hex>`` of the record."""
        return sha256_of_value(asdict(self))


@dataclass(frozen=True)
class Embeddings:
    """Vectors of images, boxes or texts, as their encoder gave them.

    Attributes
    ----------
    ids : tuple of str, length n
        Unique: image ids ``namespace:native``, ``namespace:native#k`` for box k (from 0, in the order of the annotation
        file), or texts as they were given.
    vectors : ndarray of float32, shape (n, d)
        Not normalised; of a store, memory-mapped and read-only.
    encoder : EncoderIdentity
    images : tuple of str, length n
        ``sha256:<hex>`` of the image file; of a text, of the prompt's UTF-8 bytes.
    """

    ids: tuple[str, ...]
    vectors: Vectors
    encoder: EncoderIdentity
    images: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def normalised(self) -> Vectors:
        """Return the vectors divided by their Euclidean length, shape (n, d); a zero vector stays zero."""
        return unit_rows(self.vectors)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> Embeddings:
        """Return the embeddings at some positions, in that order."""
        places = [int(row) for row in rows]
        return Embeddings(
            tuple(self.ids[place] for place in places),
            np.asarray(self.vectors[np.array(places, np.int64)], np.float32),
            self.encoder,
            tuple(self.images[place] for place in places),
        )


def unit_rows(vectors: Vectors) -> Vectors:
    """Return the rows of a matrix divided by their Euclidean length, shape (n, d); a zero row stays zero."""
    rows = np.asarray(vectors, np.float32)
    # In float64: the squares of large float32 features overflow.
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    lengths[lengths == 0] = 1
    unit: Vectors = (rows / lengths[:, None]).astype(np.float32)
    return unit
