"""Exact nearest neighbours by scalar product, block by block."""

from __future__ import annotations

import importlib.util
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from curation.errors import MissingExtraError, SimilarityError, UsageError
from curation.similarity.embeddings import Vectors

Int64s = npt.NDArray[np.int64]
Engine = Literal["auto", "torch", "numpy", "faiss"]
ENGINES = ("auto", "torch", "numpy", "faiss")
QUERY_BLOCK, FIRST_BLOCK, REFERENCE_BLOCK = 1024, 8192, 2048
_WORTH_TORCH = 20_000_000


def nearest(
    queries: Vectors, references: Vectors, k: int, *, block: int = QUERY_BLOCK, engine: Engine = "auto"
) -> tuple[Int64s, Vectors]:
    """Return the k references with the largest scalar product for each query, best first.

    Every product is computed: there is no index and nothing is approximate. Equal products go to the smaller row of
    `references`. Blocks are fixed, so that the same input gives the same bits on one machine for any number of threads
    that its linear algebra splits rows by; another machine may differ in the last bits of a product, and with it in the
    order of references whose products agree to about 1e-6.

    Parameters
    ----------
    queries, references : ndarray of float32, shapes (q, d), (r, d)
        Rows of length 1 make the product the cosine.
    k : int
        At most r.
    engine : {"auto", "torch", "numpy", "faiss"}
        ``auto``: torch for large sets where it is installed (on a GPU where there is one), else numpy. ``faiss``:
        `IndexFlatIP`.

    Returns
    -------
    indices : ndarray of int64, shape (q, k)
    scores : ndarray of float32, shape (q, k)

    Raises
    ------
    SimilarityError
        The vectors differ in length, hold NaN, or there are fewer than k references.
    """
    _check(queries, references, k, block)
    chosen = _engine(engine, len(queries) * len(references))
    if not len(queries):
        return np.empty((0, k), np.int64), np.empty((0, k), np.float32)
    if chosen == "faiss":
        return _by_faiss(queries, references, k)
    search = _torch_block if chosen == "torch" else _numpy_block
    found = [search(queries[start : start + block], references, k) for start in range(0, len(queries), block)]
    return np.concatenate([one for one, _ in found]), np.concatenate([two for _, two in found])


def _check(queries: Vectors, references: Vectors, k: int, block: int) -> None:
    if queries.ndim != 2 or references.ndim != 2 or queries.shape[1] != references.shape[1]:
        raise SimilarityError(
            "The vectors do not compare",
            expected="queries and references of equal length",
            found=f"{queries.shape} and {references.shape}",
            hint="were both sets embedded by the same encoder?",
        )
    if not 1 <= k <= len(references) or block < 1:
        raise SimilarityError(
            "There are not so many neighbours", expected=f"1 to {len(references)}", found=str(k)
        )
    for name, rows in (("queries", queries), ("references", references)):
        # A sum is NaN or infinite if any number is, and needs no table of flags.
        if not np.isfinite(np.sum(rows, dtype=np.float64)):
            raise SimilarityError(f"The {name} hold NaN or an infinity")


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


def _numpy_block(queries: Vectors, references: Vectors, k: int) -> tuple[Int64s, Vectors]:
    """Return the best k of one block of queries, keeping k candidates while blocks of references go by."""
    n = len(queries)
    best = np.full((n, k), -np.inf, np.float32)
    place = np.full((n, k), len(references), np.int64)
    for start in range(0, len(references), REFERENCE_BLOCK):
        scores = queries @ references[start : start + REFERENCE_BLOCK].T
        # Only what beats the k-th best so far can matter: after a few blocks that is next to nothing.
        rows, columns = np.nonzero(scores > best[:, -1:])
        if not len(rows):
            continue
        hit, first = np.unique(rows, return_index=True)
        for row, low, high in zip(
            hit.tolist(), first.tolist(), [*first[1:].tolist(), len(rows)], strict=True
        ):
            chosen = columns[low:high]
            values = np.concatenate([best[row], scores[row, chosen]])
            places = np.concatenate([place[row], chosen + start])
            order = np.lexsort((places, -values))[:k]
            best[row], place[row] = values[order], places[order]
    return place, best


def _torch_block(queries: Vectors, references: Vectors, k: int) -> tuple[Int64s, Vectors]:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.inference_mode():
        block = torch.from_numpy(_writable(queries)).to(device)
        table = torch.empty((len(queries), FIRST_BLOCK), device=device)
        best = place = None
        start = 0
        while start < len(references):
            size = FIRST_BLOCK if best is None else REFERENCE_BLOCK
            part = torch.from_numpy(_writable(references[start : start + max(size, k)])).to(device)
            scores = table[:, : len(part)] if len(part) <= FIRST_BLOCK else torch.empty(len(block), len(part))
            torch.mm(block, part.T, out=scores)
            if best is None:
                best, place = _largest(torch, scores, k)
            else:
                _merge(torch, best, place, scores, start)
            start += len(part)
    return place.cpu().numpy(), best.cpu().numpy()  # type: ignore[union-attr]


def _writable(rows: Vectors) -> Vectors:
    """Return rows that torch takes without a warning: a memory-mapped array is read-only."""
    return np.ascontiguousarray(rows) if rows.flags.writeable else np.array(rows, np.float32)


def _largest(torch: Any, scores: Any, k: int) -> tuple[Any, Any]:
    """Return the k largest of each row and their columns, best first, the smaller column of equal ones first."""
    # One more than k shows whether equal products cross the border; topk takes any of them.
    top = torch.topk(scores, min(k + 1, scores.shape[1]), dim=1)
    values, columns = top.values, top.indices
    if scores.shape[1] > k:
        torn = (values[:, -1] == values[:, -2]).nonzero()[:, 0]
        for row in torn.tolist():
            ordered = torch.sort(scores[row], descending=True, stable=True)
            values[row], columns[row] = ordered.values[: k + 1], ordered.indices[: k + 1]
    by_place = torch.sort(columns, dim=1, stable=True).indices
    values, columns = values.gather(1, by_place), columns.gather(1, by_place)
    by_value = torch.sort(values, dim=1, descending=True, stable=True).indices[:, :k]
    return values.gather(1, by_value), columns.gather(1, by_value)


def _merge(torch: Any, best: Any, place: Any, scores: Any, start: int) -> None:
    """Take into the best of each row what beats the last of them, in place."""
    # After the first block that is a handful of products in each row.
    rows, columns = (scores > best[:, -1:]).nonzero(as_tuple=True)
    if not len(rows):
        return
    k = best.shape[1]
    hit, counts = rows.unique_consecutive(return_counts=True)
    starts = counts.cumsum(0) - counts
    slot = torch.arange(len(rows), device=rows.device) - starts.repeat_interleave(counts)
    number = torch.arange(len(hit), device=rows.device).repeat_interleave(counts)
    width = int(counts.max())
    values = torch.full((len(hit), k + width), -torch.inf, device=best.device)
    places = torch.full((len(hit), k + width), torch.iinfo(torch.int64).max, device=best.device)
    values[:, :k], places[:, :k] = best[hit], place[hit]
    values[number, k + slot] = scores[rows, columns]
    places[number, k + slot] = columns + start
    # Kept ones come from earlier rows and stand in order; new ones come in order of their row: a stable sort is enough.
    by_value = torch.sort(values, dim=1, descending=True, stable=True).indices[:, :k]
    best[hit] = values.gather(1, by_value)
    place[hit] = places.gather(1, by_value)


def _by_faiss(queries: Vectors, references: Vectors, k: int) -> tuple[Int64s, Vectors]:
    import faiss

    index = faiss.IndexFlatIP(references.shape[1])
    index.add(np.ascontiguousarray(references, np.float32))
    scores, places = index.search(np.ascontiguousarray(queries, np.float32), k)
    order = np.lexsort((places, -scores), axis=1)
    return np.take_along_axis(places, order, axis=1), np.take_along_axis(scores, order, axis=1)
