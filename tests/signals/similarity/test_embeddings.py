"""Embeddings and their stores: what is read, and that damaged or hostile files are refused."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from curation.core.errors import CurationError, EmbeddingError, MissingFileError
from curation.signals.similarity.embeddings import Embeddings, embedding_parts, open_embeddings, rows_of_unit_length
from tests.rounding import gamma
from tests.signals.similarity.vectors import IDENTITY, embedded, random_set, store


def test_a_store_returns_its_embeddings_at_once_or_in_parts(tmp_path: Path) -> None:
    made = random_set(25, 3, 1)
    folder = store(tmp_path / "s", made, block=4)
    read = open_embeddings(folder)
    assert (read.ids, read.images, read.encoder) == (made.ids, made.images, made.encoder)
    np.testing.assert_array_equal(read.vectors, made.vectors)
    parts = list(embedding_parts(folder, 10))
    assert [len(part) for part in parts] == [12, 12, 1]
    np.testing.assert_array_equal(np.concatenate([part.vectors for part in parts]), made.vectors)


def test_absent_unfinished_and_foreign_stores_are_refused(tmp_path: Path) -> None:
    folder = store(tmp_path / "s", random_set(3, 2, 1))
    with pytest.raises(MissingFileError, match="No embedding store"):
        open_embeddings(tmp_path / "none")
    (folder / "shards.json").unlink()
    with pytest.raises(EmbeddingError, match="not finished"):
        open_embeddings(folder)
    for text in ("", "[", "[" * 100_000, '{"step": "leaks", "parameters": {}}', '"\\ud800"'):
        (folder / "step.json").write_text(text)
        with pytest.raises(EmbeddingError, match="Not an embedding store"):
            open_embeddings(folder)


@pytest.mark.parametrize(
    "change", [{"kind": "videos"}, {"dimension": 3}, {"dimension": 10**30}, {"encoder": {"model": "m"}}, {"more": 1}]
)
def test_a_changed_header_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    folder = store(tmp_path / "s", random_set(5, 2, 1))
    content = json.loads((folder / "step.json").read_text())
    (folder / "step.json").write_text(json.dumps(content | {"parameters": content["parameters"] | change}))
    with pytest.raises(EmbeddingError):
        open_embeddings(folder)


def test_damaged_shards_repeated_ids_and_infinite_vectors_are_refused(tmp_path: Path) -> None:
    folder = store(tmp_path / "s", random_set(5, 2, 1))
    shard = next(folder.glob("shards/*.parquet"))
    shard.write_bytes(shard.read_bytes()[:-9])
    with pytest.raises(CurationError, match="damaged"):
        open_embeddings(folder)
    twice = dataclasses.replace(embedded({"a:1": [1, 0], "a:2": [0, 1]}), ids=("a:1", "a:1"))
    with pytest.raises(EmbeddingError, match="Duplicate id"):
        open_embeddings(store(tmp_path / "twice", twice))
    with pytest.raises(EmbeddingError, match="malformed vectors"):
        open_embeddings(store(tmp_path / "infinite", embedded({"a:1": [1, np.inf]})))


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(IDENTITY)])
def test_every_field_counts_for_the_digest(name: str) -> None:
    assert dataclasses.replace(IDENTITY).digest == IDENTITY.digest
    assert dataclasses.replace(IDENTITY, **{name: "other"}).digest != IDENTITY.digest


def test_normalised_rows_are_three_four_five() -> None:
    vectors = np.array([[3, 4], [0, 0], [-6, 8]], np.float32)
    unit = Embeddings(("a", "b", "c"), vectors, IDENTITY, ("", "", "")).normalised()
    np.testing.assert_array_equal(unit, np.array([[0.6, 0.8], [0, 0], [-0.6, 0.8]], np.float32))
    assert unit.dtype == np.float32


@given(hnp.arrays(np.float32, (3, 4), elements=st.floats(-(2.0**127), 2.0**127, width=32)))
def test_rows_have_unit_length_however_large_or_small(vectors: np.ndarray) -> None:
    lengths = np.linalg.norm(rows_of_unit_length(vectors).astype(np.float64), axis=1)
    zero = ~vectors.any(axis=1)
    assert (lengths[zero] == 0).all()
    # Each number is rounded once, from a quotient in float64.
    np.testing.assert_allclose(lengths[~zero], 1, rtol=0, atol=gamma(2))


def test_take_keeps_ids_vectors_and_digests_together() -> None:
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    taken = Embeddings(("a", "b", "c"), vectors, IDENTITY, ("x", "y", "z")).take([2, 0])
    assert (taken.ids, taken.images, len(taken)) == (("c", "a"), ("z", "x"), 2)
    np.testing.assert_array_equal(taken.vectors, [[4, 5], [0, 1]])
