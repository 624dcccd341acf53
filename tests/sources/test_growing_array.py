"""An array that grows says what a list of the same rows would say."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from curation.sources.openimages.boxes import GrowingArray

rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20)


@given(st.lists(rows, max_size=8), st.integers(0, 30))
def test_rows_stay_in_order_whatever_room_was_expected(parts: list[list[tuple[int, int]]], room: int) -> None:
    grown = GrowingArray(np.int32, room, 2)
    added: list[tuple[int, int]] = []
    for part in parts:
        grown.extend(np.array(part, np.int64).reshape(-1, 2))
        added += part
        assert len(grown) == len(added)
        if added:
            assert tuple(grown.last().tolist()) == added[-1]
    whole = grown.whole()
    assert whole.dtype == np.int32
    assert whole.shape == (len(added), 2)
    assert [tuple(row) for row in whole.tolist()] == added
