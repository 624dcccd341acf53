import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from curation.similarity.embeddings import Embeddings, EncoderIdentity, unit_rows
from tests.rounding import gamma

IDENTITY = EncoderIdentity("m", "sha256:1", "p", "float32")


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(EncoderIdentity)])
def test_every_field_counts_for_the_digest(name: str) -> None:
    assert dataclasses.replace(IDENTITY, **{name: "other"}).digest != IDENTITY.digest


def test_equal_identities_have_equal_digests() -> None:
    assert EncoderIdentity("m", "sha256:1", "p", "float32", "projected").digest == IDENTITY.digest


def test_normalised_rows_are_three_four_five() -> None:
    vectors = np.array([[3, 4], [0, 0], [-6, 8]], np.float32)
    unit = Embeddings(("a", "b", "c"), vectors, IDENTITY, ("", "", "")).normalised()
    np.testing.assert_array_equal(unit, np.array([[0.6, 0.8], [0, 0], [-0.6, 0.8]], np.float32))
    assert unit.dtype == np.float32


@given(hnp.arrays(np.float32, (3, 4), elements=st.floats(-(2.0**127), 2.0**127, width=32)))
def test_rows_have_unit_length_however_large_or_small(vectors: np.ndarray) -> None:
    lengths = np.linalg.norm(unit_rows(vectors).astype(np.float64), axis=1)
    zero = ~vectors.any(axis=1)
    assert (lengths[zero] == 0).all()
    # Each number is rounded once, from a quotient in float64.
    np.testing.assert_allclose(lengths[~zero], 1, rtol=0, atol=gamma(2))


def test_take_keeps_ids_vectors_and_digests_together() -> None:
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    taken = Embeddings(("a", "b", "c"), vectors, IDENTITY, ("x", "y", "z")).take([2, 0])
    assert (taken.ids, taken.images, len(taken)) == (("c", "a"), ("z", "x"), 2)
    np.testing.assert_array_equal(taken.vectors, [[4, 5], [0, 1]])
    assert Embeddings((), vectors[:0], IDENTITY, ()).take([]).vectors.shape[0] == 0
