"""Exact neighbours against a stable sort of all products; ties and blocks; a store in parts."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import SimilarityError
from curation.signals.similarity import neighbors
from curation.signals.similarity.neighbors import nearest, nearest_in_store, nearest_others
from tests.rounding import cosine_error
from tests.signals.similarity.vectors import embedded, random_set, store


def by_sorting(queries: Any, references: Any, k: int) -> tuple[Any, Any]:
    products = queries @ references.T
    order = np.argsort(-products, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(products, order, axis=1)


@given(st.integers(1, 9), st.integers(1, 60), st.integers(1, 4), st.integers(0, 10**6))
def test_whole_numbers_with_many_ties(q: int, r: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    queries = rng.integers(-2, 3, (q, d)).astype(np.float32)
    references = rng.integers(-2, 3, (r, d)).astype(np.float32)
    k = int(rng.integers(1, r + 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbors, "REFERENCE_BLOCK", 8)
        places, scores = nearest(queries, references, k, block=4)
    expected, values = by_sorting(queries, references, k)
    assert (places == expected).all()
    assert (scores == values).all()


@pytest.mark.parametrize("order", ["rising", "falling", "equal"])
def test_any_order_of_references(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rising: every reference is the best so far."""
    monkeypatch.setattr(neighbors, "REFERENCE_BLOCK", 64)
    line = np.arange(-1000, 1000, dtype=np.float32)[:, None]
    references = {"rising": line, "falling": -line, "equal": 0 * line - 3}[order]
    queries = np.array([[1], [-1], [0], [-0.0], [2]], np.float32)
    for k in (1, 63, 64, 65, 700, 2000):
        places, scores = nearest(queries, references, k, block=2)
        expected, values = by_sorting(queries, references, k)
        assert (places == expected).all()
        assert (scores == values).all()


@pytest.mark.parametrize("spread", [1.0, 0.02])
def test_products_of_float64_decide(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Near copies and exact ones are among the references."""
    monkeypatch.setattr(neighbors, "REFERENCE_BLOCK", 256)
    rng = np.random.default_rng(6)
    middle = rng.normal(size=64)
    queries, references = ((middle + spread * rng.normal(size=(n, 64))).astype(np.float32) for n in (90, 5000))
    references[1000:1100] = references[0:100]
    references[2000:2100] = np.nextafter(references[0:100], np.float32(9))
    queries, references = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries, references))
    exact = (queries.astype(np.float64) @ references.astype(np.float64).T).astype(np.float32)
    expected = np.argsort(-exact, axis=1, kind="stable")[:, :30]
    for block in (32, 90):
        places, products = nearest(queries, references, 30, block=block)
        np.testing.assert_array_equal(places, expected)
        np.testing.assert_array_equal(products, np.take_along_axis(exact, expected, axis=1))


@pytest.mark.parametrize(
    ("queries", "references", "k", "words"),
    [
        (np.ones((1, 2)), np.ones((1, 3)), 1, "cannot be compared"),
        (np.ones(2), np.ones((1, 2)), 1, "cannot be compared"),
        (np.ones((1, 2)), np.ones((1, 2)), 2, "Too few references"),
        (np.ones((1, 2)), np.ones((1, 2)), 0, "Too few references"),
        (np.full((1, 2), np.nan), np.ones((1, 2)), 1, "NaN"),
        (np.ones((1, 2)), np.full((1, 2), np.inf), 1, "NaN or an infinity"),
    ],
)
def test_what_is_refused(queries: Any, references: Any, k: int, words: str) -> None:
    with pytest.raises(SimilarityError, match=words):
        nearest(queries.astype(np.float32), references.astype(np.float32), k)


def test_a_store_in_parts_gives_what_one_search_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of other sizes may round products otherwise, so equal ones need not be in one order."""
    monkeypatch.setattr(neighbors, "PART", 60)
    error = 2 * cosine_error(6)
    made = dataclasses.replace(random_set(130, 6, 1), vectors=vectors_with_ties(130, 1))
    references = store(tmp_path / "r", made, block=20)
    other = dataclasses.replace(random_set(20, 6, 2, "voc"), vectors=vectors_with_ties(20, 2))
    for queries in (other, made.take(range(5, 120, 9))):
        _, scores, itself = nearest_others(queries, made, 7)
        result = nearest_in_store(queries, references, 7)
        assert (result.itself, result.references) == (itself, 130)
        wide = [dict(row) for row in nearest_in_store(queries, references, 20).nearest]
        np.testing.assert_allclose([[score for _, score in row] for row in result.nearest], scores, rtol=0, atol=error)
        for row, all_near, values in zip(result.nearest, wide, scores, strict=True):
            assert all(all_near.get(name, values[-1]) >= values[-1] - error for name, _ in row)
    for k in (0, 130):
        with pytest.raises(SimilarityError, match="Too few references"):
            nearest_in_store(made.take([3]), references, k)
    with pytest.raises(SimilarityError, match="different encoders"):
        nearest_in_store(embedded({"a:1": [1] * 6}, weights="others"), references, 1)


def vectors_with_ties(count: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(-3, 4, (count, 6)).astype(np.float32)
