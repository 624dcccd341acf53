"""Small embeddings for the tests of proposals."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from curation.similarity.embeddings import Embeddings, EmbeddingStore, EncoderIdentity, Row, StoreHeader


def embedded(rows: Mapping[str, Sequence[float]], *, model: str = "drawn", prefix: str = "sha256:") -> Embeddings:
    """Return embeddings with these vectors, of images whose digests differ as their ids do."""
    identity = EncoderIdentity(model=model, weights="sha256:0", preprocessing="none", dtype="float32")
    return Embeddings(
        ids=tuple(rows),
        vectors=np.array(list(rows.values()), np.float32).reshape(len(rows), -1),
        encoder=identity,
        images=tuple(f"{prefix}{one}" for one in rows),
    )


def stored(folder: Path, rows: Mapping[str, Sequence[float]], *, model: str = "drawn") -> Path:
    """Return the folder of a store that holds these embeddings, as ``curation similarity embed`` would leave it."""
    made = embedded(rows, model=model)
    header = StoreHeader(kind="images", encoder=made.encoder, dimension=made.vectors.shape[1], batch=10)
    store = EmbeddingStore(folder, header)
    listed = [Row(one, image) for one, image in zip(made.ids, made.images, strict=True)]
    store.add(listed, made.vectors)
    store.finish(listed)
    return folder
