"""Exact nearest neighbours by scalar product, block by block."""

from __future__ import annotations

import importlib.util
from typing import Any, Literal, Protocol, get_args

import numpy as np

from curation.errors import MissingExtraError, SimilarityError, UsageError
from curation.similarity.embeddings import Embeddings, Vectors
from curation.sources.source import Int64s

Engine = Literal["auto", "torch", "numpy", "faiss"]
ENGINES: tuple[str, ...] = get_args(Engine)
QUERY_BLOCK, REFERENCE_BLOCK = 1024, 2048
_WORTH_TORCH = 20_000_000
_MOST_PENDING = 1 << 21
_LARGEST = 1e38


def nearest(
    queries: Vectors, references: Vectors, k: int, *, block: int = QUERY_BLOCK, engine: Engine = "auto"
) -> tuple[Int64s, Vectors]:
    """Return the k references with the largest scalar product for each query, best first.

    Every product is computed: there is no index and nothing is approximate. Equal products go to the smaller row of
    `references`. What is guaranteed is the order of the products as they were computed in float32, in blocks of fixed
    size; another machine, library or number of threads may round a product otherwise (by about 1e-6 for unit vectors),
    and with it swap references whose products are that close.

    Parameters
    ----------
    queries, references : ndarray of float32, shapes (q, d), (r, d)
        Rows of length 1 make the product the cosine.
    k : int
        At most r.
    engine : {"auto", "torch", "numpy", "faiss"}
        ``auto``: torch for large sets where it is installed (on a GPU where there is one), else numpy. ``faiss``:
        `IndexFlatIP`, which chooses for itself among equal products at the k-th place.

    Returns
    -------
    indices : ndarray of int64, shape (q, k)
    scores : ndarray of float32, shape (q, k)

    Raises
    ------
    SimilarityError
        The vectors differ in length, hold NaN or numbers so large that products overflow, or there are fewer than k
        references.
    """
    _check(queries, references, k, block)
    chosen = _engine(engine, len(queries) * len(references))
    if not len(queries):
        return np.empty((0, k), np.int64), np.empty((0, k), np.float32)
    if chosen == "faiss":
        return _by_faiss(queries, references, k)
    table = _on_device(references) if chosen == "torch" else references
    found = []
    for start in range(0, len(queries), block):
        rows = queries[start : start + block]
        products = _TorchProducts(rows, table) if chosen == "torch" else _NumpyProducts(rows, table)
        found.append(_best_of_block(products, len(rows), len(references), k))
    return np.concatenate([one for one, _ in found]), np.concatenate([two for _, two in found])


def nearest_others(
    queries: Embeddings, references: Embeddings, k: int, *, engine: Engine = "auto"
) -> tuple[Int64s, Vectors, int]:
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
            "There are not so many neighbours",
            expected=f"1 to {len(references.ids) - 1}: an image is not its own neighbour",
            found=str(k),
        )
    places, scores = nearest(queries.normalised(), references.normalised(), k + bool(n_own), engine=engine)
    if n_own:
        # Where the image itself is not among the best k + 1 (as many copies stand before it), the last one goes.
        gone = np.where((places == own[:, None]).any(axis=1), (places == own[:, None]).argmax(axis=1), k)
        kept = np.ones(places.shape, bool)
        kept[np.arange(len(places)), gone] = False
        places, scores = places[kept].reshape(-1, k), scores[kept].reshape(-1, k)
    return places, scores, n_own


def _check(queries: Vectors, references: Vectors, k: int, block: int) -> None:
    if queries.ndim != 2 or references.ndim != 2 or queries.shape[1] != references.shape[1]:
        raise SimilarityError(
            "The vectors do not compare",
            expected="queries and references of equal length",
            found=f"{queries.shape} and {references.shape}",
            hint="were both sets embedded by the same encoder?",
        )
    if not 1 <= k <= len(references) or block < 1:
        raise SimilarityError("There are not so many neighbours", expected=f"1 to {len(references)}", found=str(k))
    largest = 1.0
    for name, rows in (("queries", queries), ("references", references)):
        # NaN passes through both extremes, and neither needs a table of flags.
        extremes = (float(rows.min(initial=0)), float(rows.max(initial=0)))
        if not np.isfinite(extremes).all():
            raise SimilarityError(f"The {name} hold NaN or an infinity")
        largest *= max(map(abs, extremes))
    if largest * queries.shape[1] > _LARGEST:
        raise SimilarityError("The vectors are so long that their products overflow", hint="scale them to length 1")


def _engine(engine: Engine, products: int) -> str:
    if engine not in ENGINES:
        raise UsageError("Unknown engine", expected=", ".join(ENGINES), found=repr(engine)[:80])
    if engine == "auto":
        # Importing torch takes longer than a few million products.
        return "torch" if products > _WORTH_TORCH and importlib.util.find_spec("torch") else "numpy"
    if engine in ("torch", "faiss") and importlib.util.find_spec(engine) is None:
        raise MissingExtraError(
            f"The engine {engine} is not installed",
            hint="pip install 'curation[clip]'" if engine == "torch" else "pip install faiss-cpu",
        )
    return engine


def _best_of_block(block: _Products, n: int, references: int, k: int) -> tuple[Int64s, Vectors]:
    """Return the best k references of a block of n queries, while blocks of products go by.

    A product matters only if it is above the k-th best so far; references come in order, so that one which equals it
    has lost already. A bound that is out of date lets more through and loses none: candidates are sorted only when the
    references seen have doubled, about log2(r / 2048) times.
    """
    bounds = np.full(n, -np.inf, np.float32)
    rows, places, scores = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    pending, held, due = [(rows, places, scores)], 0, 0
    for start in range(0, references, REFERENCE_BLOCK):
        stop = min(start + REFERENCE_BLOCK, references)
        block.multiply(start, stop)
        is_first = start == 0 and stop > k
        if is_first:
            bounds = block.kth_largest(k)
        flat, found = block.above(bounds, or_equal=is_first)
        row, column = np.divmod(flat, stop - start)
        pending.append((row, column + start, found))
        held += len(flat)
        if stop >= due or held > _MOST_PENDING or stop == references:
            kept = min(k, stop)
            rows, places, scores = (np.concatenate(columns) for columns in zip(*pending, strict=True))
            # Stable sorts keep equal products in the order of their places, in which they came.
            order = np.argsort(-scores, kind="stable")
            order = order[np.argsort(rows[order].astype(np.min_scalar_type(n)), kind="stable")]
            firsts = np.searchsorted(rows[order], np.arange(n))
            chosen = order[(firsts[:, None] + np.arange(kept)).ravel()]
            pending = [(rows[chosen], places[chosen], scores[chosen])]
            if kept == k:
                bounds = scores[chosen[k - 1 :: k]]
            held, due = 0, 2 * stop
    _, places, scores = pending[0]
    # Adding zero makes one of the two zeros.
    return places.reshape(n, k), (scores + np.float32(0)).reshape(n, k)


class _Products(Protocol):
    """The products of a block of queries with one block of references after the other."""

    def multiply(self, start: int, stop: int) -> None:
        """Compute those with references `start` to `stop`."""

    def kth_largest(self, k: int) -> Vectors:
        """Return the k-th largest product of each query, shape (n,)."""

    def above(self, bounds: Vectors, *, or_equal: bool) -> tuple[Int64s, Vectors]:
        """Return the products above each bound, or also equal to it: flat positions, ascending, and values."""


class _NumpyProducts:
    def __init__(self, queries: Vectors, references: Vectors) -> None:
        self._queries = np.ascontiguousarray(queries, np.float32)
        self._references = references
        self._table = np.empty(len(queries) * REFERENCE_BLOCK, np.float32)
        self._mask = np.empty(len(queries) * REFERENCE_BLOCK, np.bool_)

    def multiply(self, start: int, stop: int) -> None:
        shape = (len(self._queries), stop - start)
        self._scores = self._table[: shape[0] * shape[1]].reshape(shape)
        np.matmul(self._queries, self._references[start:stop].T, out=self._scores)

    def kth_largest(self, k: int) -> Vectors:
        return _kth_largest(self._scores, k)

    def above(self, bounds: Vectors, *, or_equal: bool) -> tuple[Int64s, Vectors]:
        mask = self._mask[: self._scores.size].reshape(self._scores.shape)
        compare = np.greater_equal if or_equal else np.greater
        flat = np.flatnonzero(compare(self._scores, bounds[:, None], out=mask))
        return flat, self._scores.ravel()[flat]


class _TorchProducts:
    def __init__(self, queries: Vectors, references: Any) -> None:
        import torch

        self._torch = torch
        self._references = references
        self._queries = torch.from_numpy(_writable(queries)).to(references.device)
        self._table = torch.empty(len(queries) * REFERENCE_BLOCK, device=references.device)
        self._mask = torch.empty(len(self._table), dtype=torch.bool, device=references.device)

    def multiply(self, start: int, stop: int) -> None:
        shape = (len(self._queries), stop - start)
        self._scores = self._table[: shape[0] * shape[1]].view(shape)
        self._torch.mm(self._queries, self._references[start:stop].T, out=self._scores)

    def kth_largest(self, k: int) -> Vectors:
        if self._scores.is_cuda:
            return np.asarray(self._torch.topk(self._scores, k, dim=1).values[:, -1].cpu().numpy())
        return _kth_largest(self._scores.numpy(), k)

    def above(self, bounds: Vectors, *, or_equal: bool) -> tuple[Int64s, Vectors]:
        torch = self._torch
        mask = self._mask[: self._scores.numel()].view(self._scores.shape)
        compare = torch.ge if or_equal else torch.gt
        compare(self._scores, torch.from_numpy(bounds).to(mask.device)[:, None], out=mask)
        if mask.is_cuda:
            places = mask.view(-1).nonzero()[:, 0]
            return places.cpu().numpy(), self._scores.view(-1)[places].cpu().numpy()
        # NumPy skips eight empty places at once: several times quicker than torch where next to none is taken.
        flat = np.flatnonzero(mask.numpy())
        return flat, self._scores.numpy().ravel()[flat]


def _kth_largest(scores: Vectors, k: int) -> Vectors:
    place = scores.shape[1] - k
    return np.partition(scores, place, axis=1)[:, place]


def _on_device(references: Vectors) -> Any:
    """Return the references as a tensor, on the GPU where there is one."""
    import torch

    return torch.from_numpy(_writable(references)).to("cuda" if torch.cuda.is_available() else "cpu")


def _writable(rows: Vectors) -> Vectors:
    """Return rows that torch takes without a warning: a memory-mapped array is read-only."""
    if rows.flags.writeable:
        return np.ascontiguousarray(rows, np.float32)
    return np.array(rows, np.float32)


def _by_faiss(queries: Vectors, references: Vectors, k: int) -> tuple[Int64s, Vectors]:
    import faiss

    index = faiss.IndexFlatIP(references.shape[1])
    index.add(np.ascontiguousarray(references, np.float32))
    scores, places = index.search(np.ascontiguousarray(queries, np.float32), k)
    order = np.lexsort((places, -scores), axis=1)
    return np.take_along_axis(places, order, axis=1), np.take_along_axis(scores, order, axis=1)
