"""Embeddings: vectors of images or texts with the identity of their encoder, and the store that holds them.

A store is the folder of a step (`curation.core.engines.shards`): ``step.json`` states the encoder, and the shards have
the columns id, image (digest of the file or prompt), vector and error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from curation.core.canonical import sha256_of_value
from curation.core.engines.shards import STEP, SUMMARY, Shards, open_shards
from curation.core.errors import EmbeddingError, MissingFileError, SimilarityError
from curation.core.files import read_bytes
from curation.core.json_text import decode_json

if TYPE_CHECKING:
    import pyarrow

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """The identity of an encoder: two vectors are comparable only if all fields are equal.

    Attributes
    ----------
    model : str
        Name of the architecture; of a configuration file, its stem and the digest of its content.
    weights : str
        ``sha256:<hex>`` of the weights file; ``random:SEED:sha256:<hex>`` of random weights; ``none`` for a formula.
    preprocessing : str
        Steps applied to an image before it is encoded.
    dtype : str
        Number type of the computation: ``float32``, ``float16 autocast``, ``bfloat16 autocast``.
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
    """Vectors of images or texts, as their encoder gave them.

    Attributes
    ----------
    ids : tuple of str, length n
        Unique: image ids ``namespace:native``, or texts as they were given.
    vectors : ndarray of float32, shape (n, d)
        Not normalised.
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
        return rows_of_unit_length(self.vectors)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> Embeddings:
        """Return the embeddings at some positions, in that order."""
        positions = [int(row) for row in rows]
        return Embeddings(
            tuple(self.ids[position] for position in positions),
            np.asarray(self.vectors[np.array(positions, np.int64)], np.float32),
            self.encoder,
            tuple(self.images[position] for position in positions),
        )


def rows_of_unit_length(vectors: Vectors) -> Vectors:
    """Return the rows of a matrix divided by their Euclidean length, shape (n, d); a zero row stays zero."""
    rows = np.asarray(vectors, np.float32)
    # In float64: the squares of large float32 features overflow.
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    lengths[lengths == 0] = 1
    unit: Vectors = (rows / lengths[:, None]).astype(np.float32)
    return unit


def require_same_encoder(first: Embeddings, second: Embeddings) -> None:
    """Raise `SimilarityError` unless two sets were made by one encoder."""
    expected, other = first.encoder, second.encoder
    if expected != other:
        raise SimilarityError(
            "The embeddings were made by different encoders",
            expected=f"{expected.model}, {expected.embedding}, weights {expected.weights[:19]}, {expected.dtype}",
            found=f"{other.model}, {other.embedding}, weights {other.weights[:19]}, {other.dtype}",
            hint="embed both sets with the same --model, --pretrained and --set embedding=…",
        )


class StoreHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about all rows of a store.

    Attributes
    ----------
    kind : str
        ``images`` or ``texts``.
    encoder : EncoderIdentity
    dimension : int
        Length of a vector.
    batch : int
        Images encoded at a time: it may change the last bits of a vector.
    template : str
        For texts: the prompt, with ``{}`` for the text.
    """

    kind: Literal["images", "texts"]
    encoder: EncoderIdentity
    dimension: Annotated[int, msgspec.Meta(gt=0, lt=1 << 20)]
    batch: int
    template: str = ""


class _StepFile(msgspec.Struct):
    step: Literal["embed"]
    parameters: StoreHeader


def read_header(folder: Path) -> StoreHeader:
    """Return the header of a store, which may be unfinished.

    Raises
    ------
    MissingFileError
        The folder is not a store.
    EmbeddingError
        The folder is that of another step, or damaged.
    """
    path = folder / STEP
    if not path.is_file():
        raise MissingFileError(
            "No embedding store found", where=str(folder), hint="curation similarity embed … --out DIR"
        )
    message = "Not an embedding store, or damaged"
    return decode_json(read_bytes(path), _StepFile, EmbeddingError, message, where=str(path)).parameters


def open_embeddings(folder: Path) -> Embeddings:
    """Return the embeddings of a finished store.

    Raises
    ------
    MissingFileError
        The store does not exist.
    EmbeddingError
        The store is unfinished or empty, or has malformed vectors or a repeated id.
    EngineError
        A shard is missing or does not match its digest.
    """
    parts = list(embedding_parts(folder))
    if not parts:
        raise EmbeddingError("The store holds no vectors", where=str(folder))
    (embeddings,) = parts
    if len(set(embeddings.ids)) != len(embeddings):
        raise EmbeddingError("Duplicate id in the store", where=str(folder))
    return embeddings


def embedding_parts(folder: Path, rows: int | None = None) -> Iterator[Embeddings]:
    """Yield the embeddings of a finished store in parts of a minimum number of rows (default: all at once).

    Raises
    ------
    MissingFileError, EmbeddingError, EngineError
        See `open_embeddings`.
    """
    import pyarrow

    header = read_header(folder)
    if not (folder / SUMMARY).is_file():
        raise EmbeddingError(
            "The store is not finished",
            where=str(folder),
            hint="run the same curation similarity embed command again: it continues",
        )
    shards: Shards = open_shards(folder)
    tables: list[pyarrow.Table] = []
    for table in shards.tables(["id", "image", "vector"]):
        tables.append(table.filter(table.column("vector").is_valid()))
        if rows is not None and sum(part.num_rows for part in tables) >= rows:
            yield _embeddings_of(pyarrow.concat_tables(tables), header, folder)
            tables = []
    if any(part.num_rows for part in tables):
        yield _embeddings_of(pyarrow.concat_tables(tables), header, folder)


def _embeddings_of(table: pyarrow.Table, header: StoreHeader, folder: Path) -> Embeddings:
    ids, images = (tuple(table.column(name).to_pylist()) for name in ("id", "image"))
    values = table.column("vector").combine_chunks().flatten().to_numpy(zero_copy_only=False)
    if values.dtype != np.float32 or values.size != len(ids) * header.dimension or not np.isfinite(values).all():
        raise EmbeddingError(
            "The store holds malformed vectors",
            where=str(folder),
            expected=f"{len(ids)} vectors of {header.dimension} finite float32 numbers",
            found=f"{values.size} numbers, {values.dtype}",
        )
    return Embeddings(ids, values.reshape(len(ids), header.dimension), header.encoder, images)
