"""Exact nearest neighbours by inner product, computed in blocks; the similarity of sets of images to the ID set.

Products are computed in double precision and rounded once to single precision before they are ranked: the result is the
same on every processor and with any number of threads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from curation.core.arguments import checked
from curation.core.errors import SimilarityError, UsageError
from curation.core.figures import SERIES, bins_of, label_outer, plain, save_figure, set_title, small_multiples
from curation.core.tables import as_csv
from curation.core.writing import publishing_files, write_text
from curation.signals.similarity.embeddings import (
    Embeddings,
    Vectors,
    embedding_parts,
    open_embeddings,
    require_same_encoder,
)
from curation.sources.source import Int64s

if TYPE_CHECKING:
    from matplotlib.figure import Figure


QUERY_BLOCK, REFERENCE_BLOCK = 1024, 2048


def nearest(queries: Vectors, references: Vectors, k: int, *, block: int = QUERY_BLOCK) -> tuple[Int64s, Vectors]:
    """Return the k references with the largest scalar product for each query, best first.

    Every product is computed, without an index or approximation, in float64. Products rounded to float32 are ranked; of
    equal ones, the smaller row of `references` comes first. Between machines a product differs by about 1e-16, which
    rarely changes the rounded value.

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


def _check(queries: Vectors, references: Vectors, k: int, block: int) -> None:
    if queries.ndim != 2 or references.ndim != 2 or queries.shape[1] != references.shape[1]:
        raise SimilarityError(
            "The vectors cannot be compared",
            expected="queries and references of equal length",
            found=f"{queries.shape} and {references.shape}",
            hint="embed both sets with the same encoder",
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
    """Return the best k references of a block of n queries, from blocks of products.

    Only a product above the k-th best so far matters: an equal one of a later reference loses.
    """
    n = len(queries)
    rows, reference_rows, scores = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    bounds = np.full(n, -np.inf, np.float32)
    for start in range(0, len(references), REFERENCE_BLOCK):
        stop = min(start + REFERENCE_BLOCK, len(references))
        products = (queries @ references[start:stop].T.astype(np.float64)).astype(np.float32)
        if start == 0 and stop > k:
            row, column = np.nonzero(products >= np.partition(products, stop - k, axis=1)[:, [stop - k]])
        else:
            row, column = np.nonzero(products > bounds[:, None])
        rows, reference_rows = np.concatenate([rows, row]), np.concatenate([reference_rows, column + start])
        scores = np.concatenate([scores, products[row, column]])
        order = np.lexsort((reference_rows, -scores, rows))
        firsts = np.searchsorted(rows[order], np.arange(n))
        chosen = order[(firsts[:, None] + np.arange(min(k, stop))).ravel()]
        rows, reference_rows, scores = rows[chosen], reference_rows[chosen], scores[chosen]
        if stop >= k:
            bounds = scores[k - 1 :: k]
    # Adding zero turns -0 into 0.
    return reference_rows.reshape(n, k), (scores + np.float32(0)).reshape(n, k)


PART = 32_768
"""References that are searched at a time, many more than neighbours of a query."""


def nearest_others(queries: Embeddings, references: Embeddings, k: int) -> tuple[Int64s, Vectors, int]:
    """Return the k nearest references of each query (see `nearest`); an image is not its own neighbour.

    A reference with the same id and the same file is the query itself. If there are fewer than k other references, all
    are returned.

    Returns
    -------
    indices : ndarray of int64, shape (q, k)
    scores : ndarray of float32, shape (q, k)
        Cosines.
    itself : int
        Queries that are among the references.
    """
    row_of = {key: row for row, key in enumerate(zip(references.ids, references.images, strict=True))}
    own_rows = np.array([row_of.get(key, -1) for key in zip(queries.ids, queries.images, strict=True)], np.int64)
    n_own = int((own_rows >= 0).sum())
    k = min(k, len(references) - bool(n_own))
    if k == 0:
        return np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0), np.float32), n_own
    rows, scores = nearest(queries.normalised(), references.normalised(), k + bool(n_own))
    if n_own:
        # Where the image itself is not among the best k + 1 (as many copies rank before it), the last one is dropped.
        is_own = rows == own_rows[:, None]
        dropped = np.where(is_own.any(axis=1), is_own.argmax(axis=1), k)
        is_other = np.arange(k + 1) != dropped[:, None]
        rows, scores = rows[is_other].reshape(-1, k), scores[is_other].reshape(-1, k)
    return rows, scores, n_own


@dataclass(frozen=True)
class Neighbours:
    """The k nearest references of each query, best first.

    Attributes
    ----------
    nearest : list of list of (str, float)
        Ids and cosines, for each query; of equal cosines the earlier reference comes first.
    references : int
        References that were searched.
    itself : int
        Queries that are among the references.
    """

    nearest: list[list[tuple[str, float]]]
    references: int
    itself: int


def nearest_in_store(queries: Embeddings, references: Path, k: int) -> Neighbours:
    """Return the k nearest references of each query; memory does not grow with the store.

    Raises
    ------
    SimilarityError
        The store was made by another encoder, or there are fewer references.
    """
    scores, ids = np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), object)
    n_references = itself = 0
    for part in embedding_parts(references, PART):
        require_same_encoder(queries, part)
        rows, values, n_own = nearest_others(queries, part, k)
        n_references, itself = n_references + len(part), itself + n_own
        scores = np.concatenate([scores, values], axis=1)
        ids = np.concatenate([ids, np.array(part.ids, object)[rows]], axis=1)
        # Stable: of equal cosines the one of the earlier part comes first.
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        scores, ids = np.take_along_axis(scores, order, axis=1), np.take_along_axis(ids, order, axis=1)
    if not 1 <= k <= scores.shape[1]:
        expected = f"1 to {scores.shape[1]}: an image is not its own neighbour"
        raise SimilarityError("Too few references for so many neighbours", expected=expected, found=str(k))
    rows_of = [list(zip(*row, strict=True)) for row in zip(ids.tolist(), scores.tolist(), strict=True)]
    return Neighbours(rows_of, n_references, itself)


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


def sample_rows(embeddings: Embeddings, rule: SampleRule = "hashrank", *, n_train: int | None = None) -> Int64s:
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
        ranked = sorted(range(n), key=lambda row: hashlib.sha256(f"id-sample/{embeddings.ids[row]}".encode()).digest())
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
    # The authors' helper would keep two images of a set above 2,000 (the length of a dict); their sets are smaller.
    return np.sort(generator.choice(n, min(SAMPLE, n), replace=False))


def set_similarity(embeddings: Embeddings, reference: Embeddings) -> SetSimilarity:
    """Return the nearest ID image of each image of a set (FindMeIfYouCan, section 3.1 and Fig. 3).

    Parameters
    ----------
    reference : Embeddings
        Embeddings of a sample of the ID set (see `sample_rows`), by the same encoder.

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
            axis.legend(loc="upper left", frameon=True, framealpha=0.9, edgecolor="none")
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


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of images, neighbours or duplicates, as rows of a table; and facts about the search."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    facts: Mapping[str, Any]

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**self.facts, self.name: [dict(zip(self.columns, row, strict=True)) for row in self.rows]}

    @checked
    def save(self, folder: Path | str) -> list[Path]:
        """Write the table as CSV."""
        return [_write_csv(Path(folder), self.name, self.columns, self.rows)]


@dataclass(frozen=True, slots=True)
class SetComparison:
    """How similar whole sets are to a sample of the references: the similarities of each set, and statistics."""

    sets: Mapping[str, SetSimilarity]
    facts: Mapping[str, Any] = field(repr=False)

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dict(self.facts)

    @checked
    def save(self, folder: Path | str) -> list[Path]:
        """Write ``similarity.csv``, histograms and ``statistics.json``, together."""
        folder = Path(folder)
        rows = [
            (name, image, other, score, margin)
            for name, compared in self.sets.items()
            for image, other, score, margin in zip(
                compared.ids, compared.nearest, compared.similarity.tolist(), compared.margin.tolist(), strict=True
            )
        ]
        panel = {"nearest ID image": {name: compared.similarity for name, compared in self.sets.items()}}
        with publishing_files(folder) as new:
            written = [_write_csv(new, "similarity", ("set", "id", "nearest", "similarity", "margin"), rows)]
            written += similarity_histograms(panel, new / "histograms")
            written.append(new / "statistics.json")
            text = json.dumps(self.data(), indent=1, ensure_ascii=False, allow_nan=False)
            write_text(written[-1], text + "\n")
        return [folder / path.name for path in written]


@checked
def neighbors(
    *,
    queries: Annotated[Mapping[str, Path] | Path, "[NAME=]STORE"],
    references: Annotated[Path, "STORE"],
    k: Annotated[int, "K"] = 10,
    set_similarity: bool = False,
    sample: SampleRule = "hashrank",
    n_train: int | None = None,
) -> Pairs | SetComparison:
    """Return the nearest images of a reference set, or how similar whole sets are to it.

    Parameters
    ----------
    queries
        a store of curation similarity embed; several with --set-similarity
    references
        a store
    k
        neighbours per image, the image itself not among them
    set_similarity
        compare whole sets: similarity of each image to its nearest in a sample of the references
    sample
        of the references
    n_train
        training images of the ID set, for --set sample=paper
    """
    paths = {queries.name: queries} if isinstance(queries, Path) else queries
    stores = {name: open_embeddings(path) for name, path in paths.items()}
    if set_similarity:
        return _sets(stores, open_embeddings(references), sample, n_train)
    if len(stores) > 1:
        raise UsageError("Neighbours are listed for one set", expected="one --queries STORE, or --set-similarity")
    (store,) = stores.values()
    neighbours = nearest_in_store(store, references, k)
    facts = {
        "queries": len(store),
        "references": neighbours.references,
        "k": k,
        "queries_among_references": neighbours.itself,
        "encoder": store.encoder.digest,
    }
    rows = [
        (name, rank, *row)
        for name, near in zip(store.ids, neighbours.nearest, strict=True)
        for rank, row in enumerate(near, 1)
    ]
    return Pairs("neighbors", ("id", "rank", "neighbor", "similarity"), rows, facts)


def _sets(stores: Mapping[str, Embeddings], known: Embeddings, rule: SampleRule, n_train: int | None) -> SetComparison:
    sample = known.take(sample_rows(known, rule, n_train=n_train).tolist())
    compared_sets = {name: set_similarity(embeddings, sample) for name, embeddings in stores.items()}
    base = reference_statistics(sample)
    facts = {
        "encoder": known.encoder.digest,
        "sample": {"rule": rule, "meaning": SAMPLE_RULES[rule], "n": len(sample)},
        "reference": asdict(base),
        "sets": {name: compared.statistics() for name, compared in compared_sets.items()},
    }
    return SetComparison(compared_sets, facts)


def _write_csv(folder: Path, stem: str, header: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> Path:
    path = folder / f"{stem}.csv"
    write_text(path, as_csv(header, rows))
    return path
