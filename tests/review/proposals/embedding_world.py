"""Small embeddings for the tests of proposals."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.signals.similarity.vectors import embedded, store


def stored(folder: Path, rows: Mapping[str, Sequence[float]], *, model: str = "drawn") -> Path:
    """Return the folder of a store that holds these embeddings."""
    return store(folder, embedded(rows, model=model))
