"""Which classes of two sets are near by their names, or by what images look like, in a joint space of CLIP."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from curation.errors import EmbeddingError, SimilarityError
from curation.similarity.embeddings import Embeddings, EncoderIdentity, Vectors
from curation.similarity.neighbors import nearest
from curation.similarity.set_similarity import require_same_encoder
from curation.storage import read_bytes

_LARGEST_ARRAY = 1 << 30


@dataclass(frozen=True, slots=True)
class NearClass:
    """One class with one that is near it.

    Attributes
    ----------
    name, other : str
    similarity : float
        Cosine.
    margin : float
        How much more similar this one is than the next.
    """

    name: str
    other: str
    similarity: float
    margin: float


def nearest_classes(classes: Embeddings, others: Embeddings, k: int = 1) -> list[NearClass]:
    """Return the k nearest of some other classes for each class, best first, by the embeddings of their names.

    Raises
    ------
    SimilarityError
        The encoders differ, or there are fewer than k other classes.
    """
    require_same_encoder(classes, others)
    places, scores = nearest(classes.normalised(), others.normalised(), min(k + 1, len(others.ids)))
    if not 1 <= k <= len(others.ids):
        raise SimilarityError(
            "There are not so many classes", expected=f"1 to {len(others.ids)}", found=str(k)
        )
    found = []
    for name, row, values in zip(classes.ids, places.tolist(), scores.tolist(), strict=True):
        for place in range(k):
            after = values[place + 1] if place + 1 < len(values) else float("nan")
            found.append(NearClass(name, others.ids[row[place]], values[place], values[place] - after))
    return found


def classes_of_images(images: Embeddings, prompts: Embeddings) -> list[NearClass]:
    """Return the prompt that each image is nearest to, with the margin to the next (zero-shot, as CLIP does).

    Raises
    ------
    SimilarityError
        The encoders differ: images and texts must be projected into one space by one model.
    """
    return nearest_classes(images, prompts, 1)


def read_class_embeddings(vectors: Path, names: Sequence[str], model: str) -> Embeddings:
    """Return published embeddings of class names: a ``.npy`` of one row a class, in the order of the names.

    Raises
    ------
    MissingFileError
        There is no such file.
    EmbeddingError
        It is no array of floats with a finite row for each name, or names repeat.
    """
    size = vectors.stat().st_size if vectors.is_file() else 0
    if size > _LARGEST_ARRAY:
        raise EmbeddingError("The array is too large", where=str(vectors), found=f"{size:,} bytes")
    data = read_bytes(vectors, kind="array of class embeddings")
    try:
        table = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise EmbeddingError("The file holds no array", where=str(vectors), found=str(error)[:120]) from None
    if (
        not isinstance(table, np.ndarray)
        or table.ndim != 2
        or table.dtype.kind != "f"
        or len(table) != len(names)
        or len(set(names)) < len(names)
        or not np.isfinite(table).all()
    ):
        raise EmbeddingError(
            "The array does not hold the classes",
            where=str(vectors),
            expected=f"{len(set(names))} finite rows of floats, one a different name",
            found=f"{getattr(table, 'dtype', '?')}, shape {getattr(table, 'shape', '?')}; {len(names)} names",
        )
    rows: Vectors = table.astype(np.float32)
    identity = EncoderIdentity(model, "published", "class names, as published", str(table.dtype))
    return Embeddings(tuple(names), rows, identity, tuple("" for _ in names))
