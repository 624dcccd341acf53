"""Exact nearest neighbours by scalar product, block by block; in a corpus, whose parts go by and whose best meet.

What is ranked are products in double precision, rounded once to single precision: the same on every processor and with
any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from curation.core.canonical import sha256_of_file, sha256_of_lines
from curation.core.engines.running import run_step
from curation.core.engines.shards import STEP, SUMMARY, Entry, Shards, open_shards
from curation.core.engines.step import Block, Step
from curation.core.errors import SimilarityError
from curation.core.reading import read_bytes
from curation.signals.similarity.embeddings import ROWS, Embeddings, Vectors, open_embeddings, require_same_encoder
from curation.sources.source import Int64s

if TYPE_CHECKING:
    import pyarrow

QUERY_BLOCK, REFERENCE_BLOCK = 1024, 2048
_MOST_PENDING = 1 << 21


def nearest(queries: Vectors, references: Vectors, k: int, *, block: int = QUERY_BLOCK) -> tuple[Int64s, Vectors]:
    """Return the k references with the largest scalar product for each query, best first.

    Every product is computed: there is no index and nothing is approximate. What is ranked, and returned, are products
    in float64, rounded to float32; equal ones go to the smaller row of `references`. Between machines such a product
    differs by some 1e-16, and hardly ever rounds to another float32 therefore.

    Parameters
    ----------
    queries, references : ndarray of float32, shapes (q, d), (r, d)
        Rows of length 1 make the product the cosine.
    k : int
        At most r.

    Returns
    -------
    indices : ndarray of int64, shape (q, k)
    scores : ndarray of float32, shape (q, k)

    Raises
    ------
    SimilarityError
        The vectors differ in length or hold NaN, or there are fewer than k references.
    """
    _check(queries, references, k, block)
    found = [
        _best_of_block(queries[start : start + block].astype(np.float64), references, k)
        for start in range(0, len(queries), block)
    ] or [(np.empty((0, k), np.int64), np.empty((0, k), np.float32))]
    return np.concatenate([rows for rows, _ in found]), np.concatenate([scores for _, scores in found])


def nearest_others(queries: Embeddings, references: Embeddings, k: int) -> tuple[Int64s, Vectors, int]:
    """Return the k nearest references of each query as `nearest` does, an image never its own neighbour.

    A reference of the same id that was made of the same file is the query itself.

    Returns
    -------
    indices : ndarray of int64, shape (q, k)
    scores : ndarray of float32, shape (q, k)
        Cosines.
    itself : int
        Queries that are among the references.

    Raises
    ------
    SimilarityError
        There are not so many other references; see also `nearest`.
    """
    row_of = {key: row for row, key in enumerate(zip(references.ids, references.images, strict=True))}
    own = np.array([row_of.get(key, -1) for key in zip(queries.ids, queries.images, strict=True)], np.int64)
    n_own = int((own >= 0).sum())
    if n_own and not 1 <= k < len(references.ids):
        raise SimilarityError(
            "Too few references for so many neighbours",
            expected=f"1 to {len(references.ids) - 1}: an image is not its own neighbour",
            found=str(k),
        )
    rows, scores = nearest(queries.normalised(), references.normalised(), k + bool(n_own))
    if n_own:
        # Where the image itself is not among the best k + 1 (as many copies rank before it), the last one is dropped.
        gone = np.where((rows == own[:, None]).any(axis=1), (rows == own[:, None]).argmax(axis=1), k)
        kept = np.ones(rows.shape, bool)
        kept[np.arange(len(rows)), gone] = False
        rows, scores = rows[kept].reshape(-1, k), scores[kept].reshape(-1, k)
    return rows, scores, n_own


def _check(queries: Vectors, references: Vectors, k: int, block: int) -> None:
    if queries.ndim != 2 or references.ndim != 2 or queries.shape[1] != references.shape[1]:
        raise SimilarityError(
            "The vectors cannot be compared",
            expected="queries and references of equal length",
            found=f"{queries.shape} and {references.shape}",
            hint="were both sets embedded by the same encoder?",
        )
    if not 1 <= k <= len(references) or block < 1:
        raise SimilarityError(
            "Too few references for so many neighbours", expected=f"1 to {len(references)}", found=str(k)
        )
    for name, rows in (("queries", queries), ("references", references)):
        # NaN passes through both extremes, and neither needs a table of flags.
        if not np.isfinite((float(rows.min(initial=0)), float(rows.max(initial=0)))).all():
            raise SimilarityError(f"The {name} hold NaN or an infinity")


def _best_of_block(queries: Vectors, references: Vectors, k: int) -> tuple[Int64s, Vectors]:
    """Return the best k references of a block of n queries, while blocks of products go by.

    A product matters only if it is above the k-th best so far; references come in order, so that one which equals it
    has lost already. A bound that is out of date lets more through and loses none: candidates are sorted only when the
    references seen have doubled, about log2(r / 2048) times.
    """
    n = len(queries)
    bounds = np.full(n, -np.inf, np.float32)
    rows, found, scores = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    pending, held, due = [(rows, found, scores)], 0, 0
    for start in range(0, len(references), REFERENCE_BLOCK):
        stop = min(start + REFERENCE_BLOCK, len(references))
        products = (queries @ references[start:stop].T.astype(np.float64)).astype(np.float32)
        if start == 0 and stop > k:
            bounds = np.partition(products, stop - k, axis=1)[:, stop - k]
            row, column = np.nonzero(products >= bounds[:, None])
        else:
            row, column = np.nonzero(products > bounds[:, None])
        pending.append((row, column + start, products[row, column]))
        held += len(row)
        if stop >= due or held > _MOST_PENDING or stop == len(references):
            kept = min(k, stop)
            rows, found, scores = (np.concatenate(columns) for columns in zip(*pending, strict=True))
            # By row and falling score; equal ones stay as they came.
            order = np.argsort(-scores, kind="stable")
            order = order[np.argsort(rows[order].astype(np.min_scalar_type(n)), kind="stable")]
            firsts = np.searchsorted(rows[order], np.arange(n))
            chosen = order[(firsts[:, None] + np.arange(kept)).ravel()]
            pending = [(rows[chosen], found[chosen], scores[chosen])]
            if kept == k:
                bounds = scores[chosen[k - 1 :: k]]
            held, due = 0, 2 * stop
    _, found, scores = pending[0]
    # Adding zero makes one of the two zeros.
    return found.reshape(n, k), (scores + np.float32(0)).reshape(n, k)


PART = 32_768
"""References of a block, about: much more than there are neighbours of a query."""


@dataclass(frozen=True, eq=False)
class NearestOf(Step):
    """The k nearest of a table's images for each query, an image never its own neighbour (see `nearest_others`).

    Attributes
    ----------
    queries : Embeddings
    k : int
    """

    name = "neighbors"
    version = 1
    queries: Embeddings
    k: int

    @property
    def parameters(self) -> dict[str, Any]:
        """Queries by their digest."""
        pairs = zip(self.queries.ids, self.queries.images, strict=True)
        rows = sha256_of_lines(f"{name}\t{image}" for name, image in pairs)
        return {"queries": rows, "encoder": self.queries.encoder.digest, "k": self.k}

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return a row a neighbour: query (its place), id, score; and without a score each query that is itself there.

        Of a table with the columns id, image and vector; rows without a vector are passed over.
        """
        import pyarrow

        table = table.filter(table.column("vector").is_valid())
        ids, images = (tuple(table.column(name).to_pylist()) for name in ("id", "image"))
        values = table.column("vector").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        vectors = np.asarray(values, np.float32).reshape(len(ids), -1)
        references = Embeddings(ids, vectors, self.queries.encoder, images)
        there = set(zip(ids, images, strict=True))
        pairs = zip(self.queries.ids, self.queries.images, strict=True)
        own = [number for number, key in enumerate(pairs) if key in there]
        k = min(self.k, len(ids) - bool(own))
        rows, scores = np.empty((len(self.queries), 0), np.int64), np.empty((len(self.queries), 0), np.float32)
        if k > 0:
            rows, scores, _ = nearest_others(self.queries, references, k)
        query = np.concatenate([np.repeat(np.arange(len(self.queries)), max(k, 0)), np.array(own, np.int64)])
        found = [*(ids[row] for row in rows.ravel().tolist()), *(self.queries.ids[number] for number in own)]
        known = np.concatenate([np.zeros(scores.size, bool), np.ones(len(own), bool)])
        return pyarrow.table(
            {
                "query": pyarrow.array(query.astype(np.int32)),
                "id": pyarrow.array(found, pyarrow.string()),
                "score": pyarrow.array(np.concatenate([scores.ravel(), np.zeros(len(own), np.float32)]), mask=known),
            }
        )


@lru_cache(maxsize=1)
def _opened(folder: Path) -> Embeddings:
    return open_embeddings(folder)


@dataclass(frozen=True)
class _Rows:
    """Rows `start` to `stop` of a store of embeddings."""

    folder: Path
    key: str
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Its first row."""
        return f"rows {self.start}"

    def tables(self) -> Iterator[pyarrow.Table]:
        """Yield ids, digests of images, and vectors."""
        import pyarrow

        store = _opened(self.folder)
        part = slice(self.start, self.stop)
        vectors = np.asarray(store.vectors[part], np.float32)
        yield pyarrow.table(
            {
                "id": pyarrow.array(store.ids[part], pyarrow.string()),
                "image": pyarrow.array(store.images[part], pyarrow.string()),
                "vector": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), vectors.shape[1]),
            }
        )


@dataclass(frozen=True)
class _Parts:
    """Some shards of an embedded corpus."""

    shards: Shards

    @property
    def name(self) -> str:
        """Its first block."""
        return self.shards.entries[0].block

    @property
    def key(self) -> str:
        """What the shards hold."""
        return self.shards.digest

    def tables(self) -> Iterator[pyarrow.Table]:
        """Yield all of them as one table: a part is searched at once."""
        import pyarrow

        yield pyarrow.concat_tables(self.shards.tables(["id", "image", "vector"]))


def reference_blocks(references: Path, encoder: str) -> Iterator[Block]:
    """Yield the blocks of a store of embeddings, or of the shards that `embed_corpus` made.

    Parameters
    ----------
    encoder : str
        Digest of the encoder that made the queries.

    Raises
    ------
    SimilarityError
        The shards are of another encoder, or of another step.
    """
    if not (references / SUMMARY).is_file():
        store = open_embeddings(references)
        key = sha256_of_file(references / ROWS)
        for start in range(0, len(store), PART):
            yield _Rows(references, key, start, min(start + PART, len(store)))
        return
    step = msgspec.json.decode(read_bytes(references / STEP))
    if step.get("step") != "embed" or step.get("parameters", {}).get("encoder") != encoder:
        raise SimilarityError(
            "The corpus was not embedded by the encoder of the queries",
            where=str(references),
            expected=encoder,
            found=str(step.get("parameters", step))[:200],
            hint="curation similarity embed --corpus … with the same encoder",
        )
    shards = open_shards(references)
    part: list[Entry] = []
    for number, entry in enumerate(shards.entries, start=1):
        part.append(entry)
        if sum(shard.rows for shard in part) >= PART or number == len(shards.entries):
            if any(shard.rows for shard in part):
                yield _Parts(Shards(references, tuple(part), shards.step))
            part = []


def nearest_in_corpus(
    queries: Embeddings, references: Path, k: int, *, workers: int | None = None, out: Path | None = None
) -> tuple[list[list[tuple[str, float]]], int]:
    """Return the k nearest references of each query, best first; memory does not grow with the corpus.

    Parameters
    ----------
    references : Path
        A store of embeddings, or shards of `embed_corpus`.
    workers, out
        See `curation.core.engines.running.run_step`; without a folder nothing is kept.

    Returns
    -------
    neighbours : list of list of (str, float)
        Ids and cosines, for each query; of equal cosines the earlier reference comes first.
    itself : int
        Queries that are among the references.

    Raises
    ------
    SimilarityError
        See `reference_blocks`; or there are fewer references.
    """
    if not (references / SUMMARY).is_file():
        require_same_encoder(queries, open_embeddings(references))
    step = NearestOf(queries, k)
    with TemporaryDirectory(prefix="curation-neighbors-") if out is None else nullcontext(out) as folder:
        blocks = reference_blocks(references, queries.encoder.digest)
        shards = run_step(step, blocks, out=Path(folder), workers=workers)
        return _met(shards, len(queries), k)


def _met(shards: Shards, queries: int, k: int) -> tuple[list[list[tuple[str, float]]], int]:
    """Put the best of all parts together, part by part."""
    scores, ids = np.empty((queries, 0), np.float32), np.empty((queries, 0), object)
    itself = 0
    for table in shards.tables():
        found = table.filter(table.column("score").is_valid())
        itself += table.num_rows - found.num_rows
        scores = np.concatenate([scores, found.column("score").to_numpy().reshape(queries, -1)], axis=1)
        names = np.array(found.column("id").to_pylist(), object)
        ids = np.concatenate([ids, names.reshape(queries, -1)], axis=1)
        # Stable: of equal cosines the one of the earlier part comes first.
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        scores, ids = np.take_along_axis(scores, order, axis=1), np.take_along_axis(ids, order, axis=1)
    if scores.shape[1] < k:
        raise SimilarityError(
            "Too few references for so many neighbours", expected=f"1 to {scores.shape[1]}", found=str(k)
        )
    rows = [list(zip(*row, strict=True)) for row in zip(ids.tolist(), scores.tolist(), strict=True)]
    return rows, itself
