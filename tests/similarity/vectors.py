"""Small embeddings for the tests of neighbours and sets."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curation.similarity.embeddings import Embeddings, EncoderIdentity

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
