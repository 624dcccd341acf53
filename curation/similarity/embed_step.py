"""Embedding as a step: a corpus into shards of vectors, or on Ray into the store that `embed_photos` makes."""

from __future__ import annotations

import shutil
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from curation.canonical import sha256_of_lines
from curation.engines.places import size_and_stamp
from curation.engines.running import EngineName, run_step
from curation.engines.shards import Shards, done_so_far
from curation.engines.step import Block, Step
from curation.similarity.embed import (
    BATCH,
    SHARD,
    Broken,
    EmbedResult,
    Photo,
    Picture,
    Progress,
    Skipped,
    begun,
    finished,
    pictures_of,
    quiet,
    shard_sizes,
    sort_out,
)
from curation.similarity.embeddings import HEADER, EmbeddingStore, Row, Vectors, batch_of, header_of, read_header
from curation.similarity.encoder import Encoder, one_core_each, require_finite
from curation.sources.corpus import corpus_blocks, photo_data
from curation.sources.photos import BrokenPhotoError

if TYPE_CHECKING:
    import pyarrow

STEPS = "steps"
"""Where in the folder of a store Ray's output lies until it is joined."""


class Recipe(Hashable, Protocol):
    """How a worker makes the encoder: `curation.similarity.from_files.EncoderOptions`."""

    def open(self) -> Encoder:
        """Return the encoder."""


@lru_cache(maxsize=1)
def _encoder(recipe: Recipe | None) -> Encoder:
    assert recipe is not None  # noqa: S101
    return recipe.open()


@dataclass(frozen=True)
class EmbedPhotos(Step):
    """Vectors of photos, or of boxes of photos (see `embed_photos` for how they are made).

    Attributes
    ----------
    recipe : Recipe
    encoder : str
        Digest of the encoder's identity: what the output is known by.
    dimension : int
    batch : int
        Pictures encoded at a time.
    """

    name = "embed"
    version = 1
    recipe: Recipe | None = field(repr=False)
    encoder: str
    dimension: int
    batch: int = BATCH

    @property
    def parameters(self) -> dict[str, Any]:
        """What the vectors depend on: paths of weights, say, are not among it."""
        return {"encoder": self.encoder, "batch": self.batch}

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return a row a picture: id, image (digest of the file), box, vector, file, error.

        Of photos with the columns ``boxes``, ``size`` and ``known`` (see `_Photos`), each box is a picture, and a
        picture that is known has no vector.
        """
        import pyarrow

        encoder = _encoder(self.recipe)
        rows: list[tuple[str, str | None, str, str, str | None]] = []
        is_new: list[bool] = []
        waiting: list[Picture] = []
        vectors = [np.empty((0, self.dimension), np.float32)]
        with quiet(), one_core_each(encoder):
            for photo, data, known in _photos_in(table):
                for one in pictures_of(photo, data, encoder, known):
                    is_new.append(isinstance(one, Picture) and one.prepared is not None)
                    if isinstance(one, Skipped):
                        rows.append((one.id, None, "", one.file, one.reason))
                        continue
                    rows.append((*one.row, "", None))
                    waiting += [one] * is_new[-1]
                    if len(waiting) == self.batch:
                        vectors.append(_encoded(encoder, waiting))
                        waiting.clear()
            if waiting:
                vectors.append(_encoded(encoder, waiting))
        columns = zip(*rows, strict=True) if rows else [()] * 5
        names = ("id", "image", "box", "file", "error")
        texts = {name: pyarrow.array(one, pyarrow.string()) for name, one in zip(names, columns, strict=True)}
        offsets = np.concatenate([[0], np.cumsum(np.array(is_new, np.int64) * self.dimension)])
        values = pyarrow.array(np.concatenate(vectors).ravel())
        nothing = pyarrow.array([not one for one in is_new], pyarrow.bool_())
        lists = pyarrow.LargeListArray.from_arrays(offsets.astype(np.int64), values, mask=nothing)
        return pyarrow.table({**texts, "vector": lists})


def _encoded(encoder: Encoder, pictures: Sequence[Picture]) -> Vectors:
    vectors = encoder.encode_prepared([picture.prepared for picture in pictures if picture.prepared is not None])
    require_finite(vectors, [picture.row.id for picture in pictures])
    return vectors


def _photos_in(table: pyarrow.Table) -> Iterator[tuple[Photo, bytes | BrokenPhotoError, frozenset[Row]]]:
    """Yield the photos of a table with their bytes, and the rows of them that a store holds already."""
    paths = table.column("path").to_pylist()
    nothing = [None] * len(paths)
    boxes, sizes, known = (
        table.column(name).to_pylist() if name in table.column_names else nothing for name in ("boxes", "size", "known")
    )
    photos = zip(photo_data(table), paths, boxes, sizes, known, strict=True)
    for (name, data), path, of_photo, size, there in photos:
        cut = None if of_photo is None else tuple((x, y, w, h) for x, y, w, h in of_photo)
        photo = Photo(name, path and Path(path), cut, tuple(size) if size else (0, 0))
        yield photo, data, frozenset(Row(*one.split("\t")) for one in there or ())


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


@dataclass(frozen=True)
class _Photos:
    """Photos of one shard of a store, with what the store holds of them already."""

    name: str
    photos: tuple[Photo, ...]
    known: tuple[tuple[str, ...], ...]

    @property
    def key(self) -> str:
        """Files and their stamps, boxes, and what is known."""
        stamps = (
            size_and_stamp(str(photo.path))[1] if photo.path and photo.path.exists() else "" for photo in self.photos
        )
        return sha256_of_lines(f"{one!r}\t{stamp}\t{known}" for one, stamp, known in
                               zip(self.photos, stamps, self.known, strict=True))  # fmt: skip

    def tables(self) -> Iterator[pyarrow.Table]:
        """Yield one table of all: batches of pictures go from one photo to the next."""
        import pyarrow

        paths = [photo.path and str(photo.path) for photo in self.photos]
        nothing = [None] * len(paths)
        yield pyarrow.table(
            {
                "id": pyarrow.array([photo.id for photo in self.photos], pyarrow.string()),
                "path": pyarrow.array(paths, pyarrow.string()),
                "data": pyarrow.array(nothing, pyarrow.large_binary()),
                "error": pyarrow.array(nothing, pyarrow.string()),
                "boxes": pyarrow.array(
                    [photo.boxes for photo in self.photos], pyarrow.list_(pyarrow.list_(pyarrow.float64()))
                ),
                "size": pyarrow.array([photo.size for photo in self.photos], pyarrow.list_(pyarrow.int64())),
                "known": pyarrow.array(self.known, pyarrow.list_(pyarrow.string())),
            }
        )


def embed_on_ray(
    photos: Sequence[Photo],
    recipe: Recipe,
    folder: Path,
    *,
    encoder: Encoder,
    batch: int | None = None,
    broken: Broken = "skip",
    workers: int | None = None,
    shard: int = SHARD,
) -> EmbedResult:
    """Embed photos or boxes into a store on Ray: the same store as `embed_photos` makes, with the same digests.

    Either goes on where the other was interrupted. Each worker opens the encoder for itself and uses one core.

    Raises
    ------
    EngineError
        See `curation.engines.running.run_step`.
    EmbeddingError
        See `embed_photos`.
    """
    kind = "boxes" if any(photo.boxes is not None for photo in photos) else "images"
    batch = batch or batch_of(folder) or BATCH
    step = EmbedPhotos(recipe, encoder.identity.digest, encoder.dimension, batch)
    with begun(folder, header_of(encoder.identity, encoder.dimension, kind=kind, batch=batch)) as store:
        _take_in(store, done_so_far(folder / STEPS, step))
        before, progress = len(store), Progress()
        made = run_step(step, _blocks(photos, store, batch, shard), out=folder / STEPS, engine="ray", workers=workers)
        _take_in(store, made, progress, broken)
        return finished(store, progress, before, kind)


def import_ray_shards(folder: Path, encoder: Encoder) -> None:
    """Add to a store what an interrupted `embed_on_ray` has finished, so that `embed_photos` goes on with it."""
    if (folder / HEADER).is_file() and (folder / STEPS).is_dir():
        header = read_header(folder)
        own = header_of(encoder.identity, encoder.dimension, kind=header.kind, batch=header.batch)
        step = EmbedPhotos(None, encoder.identity.digest, encoder.dimension, header.batch)
        _take_in(EmbeddingStore(folder, own), done_so_far(folder / STEPS, step))


def _take_in(store: EmbeddingStore, made: Shards, progress: Progress | None = None, broken: Broken = "skip") -> None:
    """Add the vectors of shards to a store, and remove the shards; tell `progress` of every picture."""
    for table in made.tables():
        rows = list(zip(*(table.column(name).to_pylist() for name in ("id", "image", "box")), strict=True))
        vectors = table.column("vector").combine_chunks()
        is_new = vectors.is_valid().to_pylist()
        new = [Row(*row) for row, one in zip(rows, is_new, strict=True) if one]
        if new and not all(row in store for row in new):
            values = vectors.flatten().to_numpy(zero_copy_only=False)
            store.add(new, values.reshape(len(new), -1))
        if progress is not None:
            progress.computed += len(new)
            listed = zip(rows, table.column("file").to_pylist(), table.column("error").to_pylist(), strict=True)
            done = [Picture(Row(*row)) if why is None else Skipped(row[0], file, why) for row, file, why in listed]
            sort_out(done, [], progress, broken)
    shutil.rmtree(made.folder, ignore_errors=True)


def _blocks(photos: Sequence[Photo], store: EmbeddingStore, batch: int, shard: int) -> Iterator[Block]:
    known: dict[str, list[str]] = {}
    for row in store:
        known.setdefault(row.id, []).append("\t".join(row))
    rest = iter(photos)
    for number, size in enumerate(shard_sizes(photos, batch, shard)):
        chosen = tuple(islice(rest, size))
        there = tuple(tuple(text for name, _ in one.pictures for text in known.get(name, ())) for one in chosen)
        yield _Photos(f"shard {number}", chosen, there)
