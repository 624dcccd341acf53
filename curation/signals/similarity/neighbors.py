"""Exact nearest neighbours by inner product, computed in blocks; the similarity of sets of images to the ID set.

The shards of a corpus are merged by their best matches. Products are computed in double precision and rounded once to
single precision before they are ranked: the result is the same on every processor and with any number of threads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from curation.core.canonical import sha256_of_file, sha256_of_lines
from curation.core.engines.running import run_step
from curation.core.engines.shards import STEP, SUMMARY, Block, Entry, Shards, Step, open_shards
from curation.core.errors import SimilarityError, UsageError
from curation.core.figures import SERIES, bins_of, label_outer, plain, save_figure, set_title, small_multiples
from curation.core.files import read_bytes
from curation.signals.similarity.embeddings import ROWS, Embeddings, Vectors, open_embeddings, require_same_encoder
from curation.sources.source import Int64s

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.figure import Figure


QUERY_BLOCK, REFERENCE_BLOCK = 1024, 2048
_MOST_PENDING = 1 << 21


def nearest(queries: Vectors, references: Vectors, k: int, *, block: int = QUERY_BLOCK) -> tuple[Int64s, Vectors]:
    """Return the k references with the largest scalar product for each query, best first.

    Every product is computed, without an index or approximation. What is ranked, and returned, are products
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
    blocks = [
        _best_of_block(queries[start : start + block].astype(np.float64), references, k)
        for start in range(0, len(queries), block)
    ] or [(np.empty((0, k), np.int64), np.empty((0, k), np.float32))]
    return np.concatenate([rows for rows, _ in blocks]), np.concatenate([scores for _, scores in blocks])


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
    own_rows = np.array([row_of.get(key, -1) for key in zip(queries.ids, queries.images, strict=True)], np.int64)
    n_own = int((own_rows >= 0).sum())
    if n_own and not 1 <= k < len(references.ids):
        raise SimilarityError(
            "Too few references for so many neighbours",
            expected=f"1 to {len(references.ids) - 1}: an image is not its own neighbour",
            found=str(k),
        )
    rows, scores = nearest(queries.normalised(), references.normalised(), k + bool(n_own))
    if n_own:
        # Where the image itself is not among the best k + 1 (as many copies rank before it), the last one is dropped.
        gone = np.where((rows == own_rows[:, None]).any(axis=1), (rows == own_rows[:, None]).argmax(axis=1), k)
        is_other = np.ones(rows.shape, bool)
        is_other[np.arange(len(rows)), gone] = False
        rows, scores = rows[is_other].reshape(-1, k), scores[is_other].reshape(-1, k)
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
    rows, reference_rows, scores = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    pending, held, due = [(rows, reference_rows, scores)], 0, 0
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
            count = min(k, stop)
            rows, reference_rows, scores = (np.concatenate(columns) for columns in zip(*pending, strict=True))
            # By row and falling score; equal ones stay as they came.
            order = np.argsort(-scores, kind="stable")
            order = order[np.argsort(rows[order].astype(np.min_scalar_type(n)), kind="stable")]
            firsts = np.searchsorted(rows[order], np.arange(n))
            chosen = order[(firsts[:, None] + np.arange(count)).ravel()]
            pending = [(rows[chosen], reference_rows[chosen], scores[chosen])]
            if count == k:
                bounds = scores[chosen[k - 1 :: k]]
            held, due = 0, 2 * stop
    _, reference_rows, scores = pending[0]
    # Adding zero makes one of the two zeros.
    return reference_rows.reshape(n, k), (scores + np.float32(0)).reshape(n, k)


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
        own_rows = [number for number, key in enumerate(pairs) if key in there]
        k = min(self.k, len(ids) - bool(own_rows))
        rows, scores = np.empty((len(self.queries), 0), np.int64), np.empty((len(self.queries), 0), np.float32)
        if k > 0:
            rows, scores, _ = nearest_others(self.queries, references, k)
        query = np.concatenate([np.repeat(np.arange(len(self.queries)), max(k, 0)), np.array(own_rows, np.int64)])
        neighbor_ids = [
            *(ids[row] for row in rows.ravel().tolist()),
            *(self.queries.ids[number] for number in own_rows),
        ]
        known = np.concatenate([np.zeros(scores.size, bool), np.ones(len(own_rows), bool)])
        return pyarrow.table(
            {
                "query": pyarrow.array(query.astype(np.int32)),
                "id": pyarrow.array(neighbor_ids, pyarrow.string()),
                "score": pyarrow.array(
                    np.concatenate([scores.ravel(), np.zeros(len(own_rows), np.float32)]), mask=known
                ),
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
        scored = table.filter(table.column("score").is_valid())
        itself += table.num_rows - scored.num_rows
        scores = np.concatenate([scores, scored.column("score").to_numpy().reshape(queries, -1)], axis=1)
        names = np.array(scored.column("id").to_pylist(), object)
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


SampleRule = Literal["hashrank", "paper", "all"]
SAMPLE_RULES: dict[str, str] = {
    "hashrank": "the 2,000 images of lowest sha256(salt + id): stable when the set grows",
    "paper": "2,000 images by NumPy's RandomState(42), without replacement, after a choice of 4,000 training images "
    "(FindMeIfYouCan's code)",
    "all": "every image",
}
SAMPLE, PAPER_TRAIN_SAMPLE, PAPER_SEED = 2000, 4000, 42
MAD_TO_SIGMA = 1.4826
"""Of a normal distribution: standard deviation over median absolute deviation."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BINS, RANGE = 200, (0.1, 0.81)
"""Of Fig. 3 of FindMeIfYouCan; the range grows where similarities lie outside."""


@dataclass(frozen=True)
class SetSimilarity:
    """The images of a set, each with its nearest ID image.

    Attributes
    ----------
    ids, nearest : tuple of str, length n
    similarity : ndarray of float32, shape (n,)
        Cosine of each image and its nearest ID image: the largest over the sample, with no averaging.
    margin : ndarray of float32, shape (n,)
        How much more similar the nearest is than the second nearest; NaN where the sample has one image.
    """

    ids: tuple[str, ...]
    nearest: tuple[str, ...]
    similarity: Vectors
    margin: Vectors

    def statistics(self) -> dict[str, Any]:
        """Return n, mean, standard deviation (population), standard error and quantiles; None without images."""
        n = len(self.ids)
        values = self.similarity.astype(np.float64)
        std = float(values.std()) if n else None
        return {
            "n": n,
            "mean": float(values.mean()) if n else None,
            "std": std,
            "standard_error": None if std is None else std / float(np.sqrt(n)),
            "quantiles": {str(q): float(np.quantile(values, q)) if n else None for q in QUANTILES},
        }


@dataclass(frozen=True, slots=True)
class Reference:
    """How similar ID images are to one another, each without itself.

    Attributes
    ----------
    n : int
    median, sigma : float or None
        Median m0 of the nearest-neighbour similarities, and 1.4826 times their median absolute deviation; None with
        fewer than three images.
    """

    n: int
    median: float | None
    sigma: float | None


_MOST_TRAIN = 50_000_000
"""The legacy generator permutes them all in memory."""


def sample_rows(
    embeddings: Embeddings, rule: SampleRule = "hashrank", *, n_train: int | None = None, salt: str = "id-sample/"
) -> Int64s:
    """Return the rows of the ID sample, ascending.

    Parameters
    ----------
    rule : {"hashrank", "paper", "all"}
        See `SAMPLE_RULES`.
    n_train : int
        Training images of the ID set: under ``paper`` the generator has drawn 4,000 of them before.

    Raises
    ------
    UsageError
        ``paper`` lacks the number of training images.
    """
    n = len(embeddings.ids)
    if rule == "all" or (rule == "hashrank" and n <= SAMPLE):
        return np.arange(n)
    if rule == "hashrank":
        ranked = sorted(range(n), key=lambda row: hashlib.sha256((salt + embeddings.ids[row]).encode()).digest())
        return np.sort(np.array(ranked[:SAMPLE], np.int64))
    if n_train is None or not 1 <= n_train <= _MOST_TRAIN:
        raise UsageError(
            "The paper's sample depends on the number of training images",
            expected=f"the training images of the ID set, 1 to {_MOST_TRAIN:,}",
            found=str(n_train)[:40],
        )
    # Legacy generator on purpose: its sequences never change.
    generator = np.random.RandomState(PAPER_SEED)
    generator.choice(n_train, min(PAPER_TRAIN_SAMPLE, n_train), replace=False)
    # The authors' helper would keep two images of a set above 2,000 (it takes the length of a dict); theirs never is.
    return np.sort(generator.choice(n, min(SAMPLE, n), replace=False))


def set_similarity(embeddings: Embeddings, reference: Embeddings) -> SetSimilarity:
    """Return the nearest ID image of each image of a set (FindMeIfYouCan, section 3.1 and Fig. 3).

    Parameters
    ----------
    reference : Embeddings
        Of the sample of the ID set (see `sample_rows`), by the same encoder.

    Raises
    ------
    SimilarityError
        The encoders differ, or the sample is empty.
    """
    require_same_encoder(embeddings, reference)
    n = len(reference.ids)
    if not n:
        raise SimilarityError("No ID image to compare with", expected="at least one embedding")
    rows, scores = nearest(embeddings.normalised(), reference.normalised(), min(2, n))
    margin = scores[:, 0] - scores[:, 1] if n > 1 else np.full(len(scores), np.nan, np.float32)
    nearest_ids = tuple(reference.ids[row] for row in rows[:, 0].tolist())
    return SetSimilarity(embeddings.ids, nearest_ids, scores[:, 0].copy(), margin.astype(np.float32))


def leave_one_out(embeddings: Embeddings) -> Vectors:
    """Return the cosine of each embedding and the nearest other one, shape (n,)."""
    n = len(embeddings.ids)
    if n < 2:
        return np.empty(0, np.float32)
    unit = embeddings.normalised()
    rows, scores = nearest(unit, unit, 2)
    # An exact copy with a smaller row may rank before the image itself.
    itself = rows[:, 0] == np.arange(n)
    similar: Vectors = np.where(itself, scores[:, 1], scores[:, 0])
    return similar


def reference_statistics(embeddings: Embeddings) -> Reference:
    """Return median and robust sigma of the leave-one-out similarities of an ID sample."""
    similar = leave_one_out(embeddings)
    if len(similar) < 3:
        return Reference(len(similar), None, None)
    median = float(np.median(similar))
    return Reference(len(similar), median, MAD_TO_SIGMA * float(np.median(np.abs(similar - median))))


def similarity_histograms(panels: Mapping[str, Mapping[str, Vectors]], stem: Path, *, bins: int = BINS) -> list[Path]:
    """Draw the similarities of several sets to the ID set, one panel a source (Fig. 3 of FindMeIfYouCan).

    Parameters
    ----------
    panels : mapping of str to mapping of str to ndarray of float32
        By source, then by set: the similarity of each image to its nearest ID image.
    stem : Path
        Path without suffix.
    bins : int
        At most; a small set has fewer.

    Returns
    -------
    list of Path
        PNG, SVG, and the CSV of the densities drawn (source, set, bin edges, density).
    """
    values = [scores for sets in panels.values() for scores in sets.values() if len(scores)]
    low = min([RANGE[0], *(float(value.min()) for value in values)])
    high = max([RANGE[1], *(float(value.max()) for value in values)])
    bins = bins_of(min((len(value) for value in values), default=0), bins)
    edges = np.linspace(low, high, bins + 1)
    densities = {
        (source, name): np.histogram(scores, edges, density=True)[0] if len(scores) else np.zeros(bins)
        for source, sets in panels.items()
        for name, scores in sets.items()
    }

    # A set of several sources has one colour.
    names = list(dict.fromkeys(name for _, name in densities))

    def draw() -> Figure:
        figure, axes = small_multiples(len(panels), most=2, height=2.3, sharex=True, sharey=True)
        for axis, (source, sets) in zip(axes, panels.items(), strict=True):
            for name, scores in sets.items():
                colour = SERIES[names.index(name) % len(SERIES)]
                label = f"{plain(name)} (n = {len(scores):,})"
                axis.stairs(densities[source, name], edges, color=colour, fill=True, alpha=0.12)
                axis.stairs(densities[source, name], edges, color=colour, linewidth=1.4, label=label)
                if len(scores):
                    axis.axvline(float(np.mean(scores)), color=colour, linewidth=1, linestyle="--")
            axis.set_title(plain(source))
            axis.legend(loc="upper left")
        # Each set of a source has a legend entry: room for them above the steps.
        axes[0].set_ylim(0, axes[0].get_ylim()[1] * (1.1 + 0.1 * max(len(sets) for sets in panels.values())))
        label_outer(axes, "cosine similarity to the nearest ID image", "density")
        set_title(figure, "Similarity of the sets to the ID images", "dashed: means")
        return figure

    rows = [
        (source, name, float(edges[number]), float(edges[number + 1]), float(density))
        for (source, name), steps in densities.items()
        for number, density in enumerate(steps)
    ]
    return save_figure(draw, stem, ("source", "set", "from", "to", "density"), rows)
