"""Small embeddings for the tests of neighbours and sets."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL.Image import Image

from curation.signals.similarity.embeddings import Embeddings, EncoderIdentity, Vectors
from curation.signals.similarity.encoder import Encoder

IDENTITY = EncoderIdentity("drawn", "none", "none", "float32")


def embedded(rows: Mapping[str, Sequence[float]], **identity: Any) -> Embeddings:
    encoder = EncoderIdentity(
        **{"model": "drawn", "weights": "none", "preprocessing": "none", "dtype": "float32"} | identity
    )
    vectors = np.array(list(rows.values()), np.float32).reshape(len(rows), -1)
    return Embeddings(tuple(rows), vectors, encoder, tuple(f"sha256:{one}" for one in rows))


def random_set(n: int, d: int, seed: int, prefix: str = "coco") -> Embeddings:
    rng = np.random.default_rng(seed)
    return embedded({f"{prefix}:{row:06}": rng.normal(size=d).tolist() for row in range(n)})


def encode_images(encoder: Encoder, images: Sequence[Image]) -> Vectors:
    """The vectors of RGB pictures as one batch, float32, shape (b, d)."""
    if not images:
        return np.empty((0, encoder.dimension), np.float32)
    return encoder.encode_prepared([encoder.prepare(image) for image in images])
