import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.evaluation.open_set import wilderness_levels


def test_the_papers_47_levels() -> None:
    levels = wilderness_levels(4952, 23008)
    assert len(levels) == 47
    assert levels.names[0] == "0.0"
    assert levels.names[-1] == "4.6"
    assert levels.images[:6].tolist() == [0, 495, 990, 1485, 1980, 2476]
    assert levels.images[-1] == 22779
    # The official curve has its 47 points at the same image counts: all 50 products agree for this N.
    assert wilderness_levels(4952, 23008, counts="float32", most=50).images.tolist() == levels.images.tolist()


@pytest.mark.parametrize(("n", "name", "count"), [(40, "0.7", 27), (60, "2.1", 125), (10, "0.7", 6), (10, "0.9", 8)])
def test_float32_products_lose_an_image_where_the_official_code_does(n: int, name: str, count: int) -> None:
    levels = wilderness_levels(n, 10 * n, counts="float32")
    assert levels.images[levels.names.index(name)] == count
    exact = wilderness_levels(n, 10 * n)
    assert exact.images[exact.names.index(name)] == count + 1


@given(n_closed=st.integers(1, 6000), k=st.integers(0, 49))
def test_float32_counts_are_numpy_1s_product_whatever_numpy_is_installed(n_closed: int, k: int) -> None:
    # NumPy 1: a float32 scalar times an integer is a double. Without NumPy: four bytes, then Python's own floats.
    (single,) = struct.unpack("<f", struct.pack("<f", k / 10))
    levels = wilderness_levels(n_closed, 5 * n_closed, counts="float32", most=50)
    assert levels.images[k] == int(single * n_closed)


@given(n_closed=st.integers(1, 200), n_wild=st.integers(0, 700))
def test_levels_take_all_that_fit_and_nest(n_closed: int, n_wild: int) -> None:
    levels = wilderness_levels(n_closed, n_wild)
    k = len(levels)
    assert levels.images.tolist() == [j * n_closed // 10 for j in range(k)]
    assert (k - 1) * n_closed // 10 <= n_wild < k * n_closed // 10
    first = levels.first_level(np.arange(n_wild))
    for level, size in enumerate(levels.images.tolist()):
        assert np.flatnonzero(first <= level).tolist() == list(range(size))
