"""Embedding as a step: a corpus of any size into shards of vectors, on this machine or on Ray."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from curation.engines.running import EngineName, run_step
from curation.engines.shards import Shards
from curation.engines.step import Step
from curation.similarity.embed import BATCH, Photo, Picture, pictures_of, quiet
from curation.similarity.embeddings import Vectors
from curation.similarity.encoder import Encoder, one_core_each, require_finite
from curation.sources.corpus import corpus_blocks, photo_data

if TYPE_CHECKING:
    import pyarrow


class Recipe(Hashable, Protocol):
    """How a worker makes the encoder: `curation.similarity.from_files.EncoderOptions`."""

    def open(self) -> Encoder:
        """Return the encoder."""


@lru_cache(maxsize=1)
def _encoder(recipe: Recipe) -> Encoder:
    return recipe.open()


@dataclass(frozen=True)
class EmbedPhotos(Step):
    """Vectors of the photos of a table.

    Attributes
    ----------
    recipe : Recipe
    encoder : str
        Digest of the encoder's identity: what the output is known by.
    dimension : int
    batch : int
        Photos encoded at a time.
    """

    name = "embed"
    version = 2
    recipe: Recipe = field(repr=False)
    encoder: str
    dimension: int
    batch: int = BATCH

    @property
    def parameters(self) -> dict[str, Any]:
        """What the vectors depend on: paths of weights, say, are not among it."""
        return {"encoder": self.encoder, "batch": self.batch}

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return a row for each photo: id, image (digest of the file), vector, error."""
        import pyarrow

        encoder = _encoder(self.recipe)
        rows: list[tuple[str, str | None, str | None]] = []
        waiting: list[Picture] = []
        vectors = [np.empty((0, self.dimension), np.float32)]
        with quiet(), one_core_each(encoder):
            for name, data in photo_data(table):
                (one,) = pictures_of(Photo(name, None), data, encoder, ())
                if not isinstance(one, Picture):
                    rows.append((name, None, one.reason))
                    continue
                rows.append((name, one.row.image, None))
                waiting.append(one)
                if len(waiting) == self.batch:
                    vectors.append(_encoded(encoder, waiting))
                    waiting.clear()
            if waiting:
                vectors.append(_encoded(encoder, waiting))
        columns = zip(*rows, strict=True) if rows else [()] * 3
        ids, images, errors = (pyarrow.array(column, pyarrow.string()) for column in columns)
        found = np.array([why is None for _, _, why in rows], bool)
        offsets = np.concatenate([[0], np.cumsum(found * self.dimension)]).astype(np.int64)
        values = pyarrow.array(np.concatenate(vectors).ravel())
        lists = pyarrow.LargeListArray.from_arrays(offsets, values, mask=pyarrow.array(~found))
        return pyarrow.table({"id": ids, "image": images, "vector": lists, "error": errors})


def _encoded(encoder: Encoder, pictures: Sequence[Picture]) -> Vectors:
    vectors = encoder.encode_prepared([picture.prepared for picture in pictures if picture.prepared is not None])
    require_finite(vectors, [picture.row.id for picture in pictures])
    return vectors


def embed_corpus(
    corpus: str | Path,
    recipe: Recipe,
    out: Path,
    *,
    encoder: Encoder,
    batch: int | None = None,
    engine: EngineName = "local",
    workers: int | None = None,
) -> Shards:
    """Embed the photos of a corpus of any size into shards with the columns that `EmbedPhotos` returns.

    Parameters
    ----------
    corpus : str or Path
        See `curation.sources.corpus.corpus_blocks`.
    out, engine, workers
        See `curation.engines.running.run_step`.
    """
    step = EmbedPhotos(recipe, encoder.identity.digest, encoder.dimension, batch or BATCH)
    return run_step(step, corpus_blocks(corpus), out=out, engine=engine, workers=workers)
