"""Exact nearest neighbours by scalar product, block by block.

What is ranked are products in double precision, rounded once to single precision: the same on every processor and with
any number of threads.
"""

from __future__ import annotations

import numpy as np

from curation.errors import SimilarityError
from curation.similarity.embeddings import Embeddings, Vectors
from curation.sources.source import Int64s

QUERY_BLOCK, REFERENCE_BLOCK = 1024, 2048
_MOST_PENDING = 1 << 21
_LARGEST = 1e38


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
        The vectors differ in length, hold NaN or numbers so large that products overflow, or there are fewer than k
        references.
    """
    _check(queries, references, k, block)
    found = [
        _best_of_block(queries[start : start + block].astype(np.float64), references, k)
        for start in range(0, len(queries), block)
    ] or [(np.empty((0, k), np.int64), np.empty((0, k), np.float32))]
    return np.concatenate([places for places, _ in found]), np.concatenate([scores for _, scores in found])


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
    places, scores = nearest(queries.normalised(), references.normalised(), k + bool(n_own))
    if n_own:
        # Where the image itself is not among the best k + 1 (as many copies rank before it), the last one is dropped.
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


def _best_of_block(queries: Vectors, references: Vectors, k: int) -> tuple[Int64s, Vectors]:
    """Return the best k references of a block of n queries, while blocks of products go by.

    A product matters only if it is above the k-th best so far; references come in order, so that one which equals it
    has lost already. A bound that is out of date lets more through and loses none: candidates are sorted only when the
    references seen have doubled, about log2(r / 2048) times.
    """
    n = len(queries)
    bounds = np.full(n, -np.inf, np.float32)
    rows, places, scores = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    pending, held, due = [(rows, places, scores)], 0, 0
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
            rows, places, scores = (np.concatenate(columns) for columns in zip(*pending, strict=True))
            # By row and falling score; equal ones stay as they came.
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
