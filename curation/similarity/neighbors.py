"""Exact nearest neighbours by scalar product, block by block.

What is ranked are products in double precision, rounded once to single precision: the same on every processor and with
any number of threads, whatever found the candidates. For large sets torch multiplies in single precision, or in
bfloat16 where the processor has units for it. Every reference stays a candidate whose product is so near to the k-th
that rounding might have decided, and the products of these alone are taken again.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import numpy as np

from curation.errors import MissingExtraError, SimilarityError, UsageError
from curation.similarity.embeddings import Embeddings, Vectors
from curation.sources.source import Int64s

Engine = Literal["auto", "torch", "numpy"]
ENGINES: tuple[str, ...] = get_args(Engine)
QUERY_BLOCK, REFERENCE_BLOCK = 1024, 2048
_WORTH_TORCH = 20_000_000
_MOST_PENDING = 1 << 21
_LARGEST, _TINY = 1e38, 1.2e-38
_WIDE = 4
"""Blocks of references that torch multiplies at once."""
_MOST_OF = 64
"""More candidates than one in so many references cost more than another way to find them."""
_BFLOAT16 = 2.0**-9
"""What rounding to eight binary digits changes at most, as a share."""


def nearest(
    queries: Vectors, references: Vectors, k: int, *, block: int = QUERY_BLOCK, engine: Engine = "auto"
) -> tuple[Int64s, Vectors]:
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
    engine : {"auto", "torch", "numpy"}
        ``auto``: torch for large sets where it is installed (on a GPU where there is one), else numpy; both return the
        same.

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
    ways = _ways(queries, references, k) if chosen == "torch" else []
    found = []
    for start in range(0, len(queries), block):
        rows = queries[start : start + block]
        best = None
        while ways and best is None:
            best = _best_of_candidates(ways[0](rows), rows, references, k)
            if best is None:
                # Too many products are too close for this; the next block will be no better.
                del ways[0]
        found.append(best or _best_of_block(_Doubles(rows, references), len(rows), len(references), k))
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
            "Too few references for so many neighbours",
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
            "The vectors cannot be compared",
            expected="queries and references of equal length",
            found=f"{queries.shape} and {references.shape}",
            hint="were both sets embedded by the same encoder?",
        )
    if not 1 <= k <= len(references) or block < 1:
        raise SimilarityError(
            "Too few references for so many neighbours", expected=f"1 to {len(references)}", found=str(k)
        )
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
    if engine == "torch" and importlib.util.find_spec("torch") is None:
        raise MissingExtraError("The engine torch is not installed", hint="pip install 'curation[clip]'")
    return engine


def _best_of_block(block: _Doubles, n: int, references: int, k: int) -> tuple[Int64s, Vectors]:
    """Return the best k references of a block of n queries, while blocks of products go by.

    A product matters only if it is above the k-th best so far; references come in order, so that one which equals it
    has lost already. A bound that is out of date lets more through and loses none: candidates are sorted only when the
    references seen have doubled, about log2(r / 2048) times.
    """
    bounds = np.full(n, -np.inf, np.float32)
    rows, places, scores = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    pending, held, due = [(rows, places, scores)], 0, 0
    for start, stop in _blocks(references, REFERENCE_BLOCK):
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
            order, firsts = _ordered(rows, scores, n)
            chosen = order[(firsts[:, None] + np.arange(kept)).ravel()]
            pending = [(rows[chosen], places[chosen], scores[chosen])]
            if kept == k:
                bounds = scores[chosen[k - 1 :: k]]
            held, due = 0, 2 * stop
    _, places, scores = pending[0]
    # Adding zero makes one of the two zeros.
    return places.reshape(n, k), (scores + np.float32(0)).reshape(n, k)


def _best_of_candidates(
    block: _Rounded, queries: Vectors, references: Vectors, k: int
) -> tuple[Int64s, Vectors] | None:
    """Return the best k references of a block of queries by products with an error, None where most may be the best.

    No product is further than ``block.error`` from the true one. The k with the largest products truly reach the k-th
    largest product less the error; so whatever is among the best comes within twice the error of it.
    """
    n, most = len(queries), len(queries) * max(4 * k, len(references) // _MOST_OF)
    width = 2 * block.error
    bounds = np.full(n, -np.inf, np.float32)
    pending: list[tuple[Int64s, Int64s, Vectors]] = []
    held, due = 0, 0
    for start, stop in _blocks(len(references), _WIDE * REFERENCE_BLOCK):
        block.multiply(start, stop)
        if start == 0:
            bounds = block.kth_largest(k) - width
        flat, found = block.above(bounds)
        if len(flat) > most:
            return None
        row, column = np.divmod(flat, stop - start)
        pending.append((row, column + start, found))
        held += len(flat)
        if stop >= due or held > _MOST_PENDING or stop == len(references):
            rows, places, scores = (np.concatenate(columns) for columns in zip(*pending, strict=True))
            order, firsts = _ordered(rows, scores, n)
            bounds = scores[order[firsts + k - 1]] - width
            near = scores >= bounds[rows]
            pending = [(rows[near], places[near], scores[near])]
            held, due = int(near.sum()), 2 * stop
            if held > most:
                return None
    rows, places, _ = pending[0]
    places = places[np.argsort(rows, kind="stable")]
    ends = np.cumsum(np.bincount(rows, minlength=n)).tolist()
    best, products = np.empty((n, k), np.int64), np.empty((n, k), np.float32)
    for number, (start, stop) in enumerate(zip([0, *ends], ends, strict=False)):
        own = places[start:stop]
        exact = (references[own].astype(np.float64) @ queries[number].astype(np.float64)).astype(np.float32)
        order = np.argsort(-exact, kind="stable")[:k]
        best[number], products[number] = own[order], exact[order]
    return best, products + np.float32(0)


def _blocks(references: int, width: int) -> Iterator[tuple[int, int]]:
    for start in range(0, references, width):
        yield start, min(start + width, references)


def _ordered(rows: Int64s, scores: Vectors, n: int) -> tuple[Int64s, Int64s]:
    """Return the order by row and falling score, equal ones as they came, and where each of n rows begins in it."""
    order = np.argsort(-scores, kind="stable")
    order = order[np.argsort(rows[order].astype(np.min_scalar_type(n)), kind="stable")]
    return order, np.searchsorted(rows[order], np.arange(n))


class _Doubles:
    """The products of a block of queries with one block of references after the other, in float64, then float32."""

    def __init__(self, queries: Vectors, references: Vectors) -> None:
        self._queries = queries.astype(np.float64)
        self._references = references

    def multiply(self, start: int, stop: int) -> None:
        """Compute those with references `start` to `stop`."""
        self._scores = (self._queries @ self._references[start:stop].T.astype(np.float64)).astype(np.float32)

    def kth_largest(self, k: int) -> Vectors:
        """Return the k-th largest product of each query, shape (n,)."""
        return _kth_largest(self._scores, k)

    def above(self, bounds: Vectors, *, or_equal: bool) -> tuple[Int64s, Vectors]:
        """Return the products above each bound, or also equal to it: flat positions, ascending, and values."""
        compare = np.greater_equal if or_equal else np.greater
        flat = np.flatnonzero(compare(self._scores, bounds[:, None]))
        return flat, self._scores.ravel()[flat]


class _Rounded:
    """The same by torch, with an error.

    Attributes
    ----------
    error : ndarray of float32, shape (n,)
        No product of a query is further from the true one.
    """

    def __init__(self, queries: Vectors, table: Any, *, error: Vectors) -> None:
        import torch

        self._torch = torch
        self._references = table
        self._queries = torch.from_numpy(_writable(queries)).to(table.device, table.dtype)
        self._table = torch.empty(len(queries) * _WIDE * REFERENCE_BLOCK, device=table.device, dtype=table.dtype)
        self._mask = torch.empty(len(self._table), dtype=torch.bool, device=table.device)
        self.error = error

    def multiply(self, start: int, stop: int) -> None:
        """Compute those with references `start` to `stop`."""
        shape = (len(self._queries), stop - start)
        self._scores = self._table[: shape[0] * shape[1]].view(shape)
        self._torch.mm(self._queries, self._references[start:stop].T, out=self._scores)

    def kth_largest(self, k: int) -> Vectors:
        """Return a bound that k products of each query reach, shape (n,)."""
        if self._scores.is_cuda:
            return np.asarray(self._torch.topk(self._scores, k, dim=1).values[:, -1].cpu().numpy())
        return _kth_largest(self._scores[:, : max(k, REFERENCE_BLOCK)].float().numpy(), k)

    def above(self, bounds: Vectors) -> tuple[Int64s, Vectors]:
        """Return the products that reach the bounds: flat positions, ascending, and values."""
        torch = self._torch
        mask = self._mask[: self._scores.numel()].view(self._scores.shape)
        # Rounding to the type of the products must not raise a bound.
        lower = torch.from_numpy(bounds - 2 * _BFLOAT16 * np.abs(bounds)).to(mask.device, self._scores.dtype)
        torch.ge(self._scores, lower[:, None], out=mask)
        if mask.is_cuda:
            flat = mask.view(-1).nonzero()[:, 0]
            return flat.cpu().numpy(), self._scores.view(-1)[flat].cpu().numpy()
        # NumPy skips eight empty places at once: several times quicker than torch where next to none is taken.
        taken = np.flatnonzero(mask.numpy())
        return taken, self._scores.view(-1)[torch.from_numpy(taken)].float().numpy()


def _ways(queries: Vectors, references: Vectors, k: int) -> list[Callable[[Vectors], _Rounded]]:
    """Return how candidates may be found, the quickest first; none where the k best are no small share of all.

    The error of a product is at most a share of the product of the lengths: of float32 less than ``d * 2^-23``, the
    rounding of the exact product to float32 with it; of bfloat16 that of each factor and of the product besides.
    """
    import torch

    if k > min(len(references) // 16, REFERENCE_BLOCK):
        return []
    longest = float(np.sqrt(np.einsum("ij,ij->i", references, references).max(initial=0)))
    rounding = (references.shape[1] + 2) * 2.0**-23
    table = torch.from_numpy(_writable(references))
    kinds = [(torch.float32, rounding)]
    if torch.cuda.is_available():
        table = table.to("cuda")
    elif _has_bfloat16():
        kinds.insert(0, (torch.bfloat16, 3 * _BFLOAT16 + 2.0**-16 + rounding))

    def way(kind: Any, share: float) -> Callable[[Vectors], _Rounded]:
        rounded = table.to(kind)

        def products(rows: Vectors) -> _Rounded:
            lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
            # What is smaller than any normal number may be lost besides.
            error = 1.001 * share * longest * lengths + references.shape[1] * _TINY
            return _Rounded(rows, rounded, error=error.astype(np.float32))

        return products

    return [way(kind, share) for kind, share in kinds]


def _has_bfloat16() -> bool:
    """Return whether the processor multiplies matrices of bfloat16 several times as fast as of float32 (AMX)."""
    import torch

    ask = getattr(torch.cpu, "_is_amx_tile_supported", None)
    return bool(ask and ask())


def _kth_largest(scores: Vectors, k: int) -> Vectors:
    place = scores.shape[1] - k
    return np.partition(scores, place, axis=1)[:, place]


def _writable(rows: Vectors) -> Vectors:
    """Return rows that torch takes without a warning: a memory-mapped array is read-only."""
    if rows.flags.writeable:
        return np.ascontiguousarray(rows, np.float32)
    return np.array(rows, np.float32)
