"""Exact neighbours against a stable sort of all products; ties and blocks; a corpus in parts, on either engine."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import SimilarityError, UsageError
from curation.signals.similarity import neighbors
from curation.signals.similarity.embeddings import EmbeddingStore, Row, StoreHeader, open_embeddings
from curation.signals.similarity.encoder import ColourEncoder
from curation.signals.similarity.from_files import Pairs, embed
from curation.signals.similarity.from_files import neighbors as search
from curation.signals.similarity.neighbors import nearest, nearest_in_corpus, nearest_others
from tests.rounding import cosine_error
from tests.signals.similarity.clip_world import write_photos


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
    """Rising: every reference is the best so far, and candidates are sorted out before the table of them overflows."""
    monkeypatch.setattr(neighbors, "REFERENCE_BLOCK", 64)
    monkeypatch.setattr(neighbors, "_MOST_PENDING", 500)
    line = np.arange(-1000, 1000, dtype=np.float32)[:, None]
    references = {"rising": line, "falling": -line, "equal": 0 * line - 3}[order]
    queries = np.array([[1], [-1], [0], [-0.0], [2]], np.float32)
    for k in (1, 63, 64, 65, 700, 2000):
        places, scores = nearest(queries, references, k, block=2)
        expected, values = by_sorting(queries, references, k)
        assert (places == expected).all()
        assert (scores == values).all()


def test_the_smallest_differences_count() -> None:
    """Neighbouring floats, of both signs and around zero, are told apart."""
    tiny = np.finfo(np.float32).smallest_normal
    steps = [np.float32(1)]
    for _ in range(5):
        steps.append(np.nextafter(steps[-1], np.float32(2)))
    values = np.array([*steps, *(-one for one in steps), 0, -0.0, tiny, -tiny], np.float32)
    references = np.random.default_rng(5).permutation(np.tile(values, 3))[:, None]
    query = np.ones((1, 1), np.float32)
    places, scores = nearest(query, references, len(references))
    expected, ordered = by_sorting(query, references, len(references))
    assert (places == expected).all()
    assert (scores == ordered).all()


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


ERROR = 2 * cosine_error(6)


def store(folder: Path, count: int, seed: int, first: int = 0) -> Path:
    vectors = np.random.default_rng(seed).integers(-3, 4, (count, 6)).astype(np.float32)
    rows = [Row(f"toy:{number}", f"sha256:{seed}-{number}") for number in range(first, first + count)]
    made = EmbeddingStore(folder, StoreHeader(kind="images", encoder=ColourEncoder().identity, dimension=6, batch=32))
    made.add(rows, vectors)
    made.finish(rows)
    return folder


def test_a_store_in_parts_gives_what_one_search_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbors, "PART", 60)
    references = store(tmp_path / "r", 130, 1)
    queries = open_embeddings(store(tmp_path / "q", 20, 2))
    for asked, workers in ((queries, 2), (open_embeddings(references).take(range(5, 120, 9)), 1)):
        places, scores, itself = nearest_others(asked, open_embeddings(references), 7)
        parts = tmp_path / f"{len(asked)}"
        found, own = nearest_in_corpus(asked, references, 7, workers=workers, out=parts)
        assert own == itself
        # Products of parts of other sizes may be rounded otherwise, so equal ones need not be in one order.
        wide = [dict(row) for row in nearest_in_corpus(asked, references, 20, workers=1)[0]]
        np.testing.assert_allclose([[score for _, score in row] for row in found], scores, rtol=0, atol=ERROR)
        for row, all_near, values in zip(found, wide, scores, strict=True):
            assert all(all_near.get(name, values[-1]) >= values[-1] - ERROR for name, _ in row)
        assert len(places) == len(found)


def test_neighbours_in_an_embedded_corpus(tmp_path: Path) -> None:
    paths = write_photos(tmp_path / "p", 12)
    (tmp_path / "q").mkdir()
    shutil.copy(paths[3], tmp_path / "q" / "x.png")
    paths[7].write_bytes(b"no photo")
    embed(photos=tmp_path / "q", out=tmp_path / "queries")
    embed(corpus=tmp_path / "p", out=tmp_path / "corpus")
    made = search(queries=tmp_path / "queries", references=tmp_path / "corpus", k=2)
    assert isinstance(made, Pairs)
    assert made.rows[0][:3] == ("photos:x", 1, "003.png")
    assert made.facts["references"] == 12
    with pytest.raises(SimilarityError, match="Too few references"):
        search(queries=tmp_path / "queries", references=tmp_path / "corpus", k=12)
    with pytest.raises(SimilarityError, match="not embedded by the encoder"):
        nearest_in_corpus(changed(open_embeddings(tmp_path / "queries")), tmp_path / "corpus", 1)
    for wrong in ({"workers": 2}, {"parts": tmp_path / "x"}):
        with pytest.raises(UsageError, match="do not apply to --set-similarity"):
            search(queries=tmp_path / "queries", references=tmp_path / "queries", set_similarity=True, **wrong)  # type: ignore[arg-type]


def changed(embeddings: Any) -> Any:
    other = dataclasses.replace(embeddings.encoder, weights="others")
    return dataclasses.replace(embeddings, encoder=other)
