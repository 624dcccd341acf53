"""Small embeddings for the tests of proposals."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from curation.signals.similarity.embeddings import EmbeddingStore, Row, StoreHeader
from tests.signals.similarity.vectors import embedded


def stored(folder: Path, rows: Mapping[str, Sequence[float]], *, model: str = "drawn") -> Path:
    """Return the folder of a store that holds these embeddings, as ``curation similarity embed`` would leave it."""
    made = embedded(rows, model=model)
    header = StoreHeader(kind="images", encoder=made.encoder, dimension=made.vectors.shape[1], batch=10)
    store = EmbeddingStore(folder, header)
    listed = [Row(one, image) for one, image in zip(made.ids, made.images, strict=True)]
    store.add(listed, made.vectors)
    store.finish(listed)
    return folder
