"""Every id of some lists as a small number: what is equal, repeated or shared is then a matter of integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curation.sources.source import Int32s, Texts


def numbered(lists: Sequence[Sequence[str]]) -> tuple[Texts, list[Int32s]]:
    """Return every id once, in the order of its first line, and each list as positions among them.

    Returns
    -------
    ids : ndarray of object, shape (u,)
    members : list of ndarray of int32
        One array a list, one entry a line, repeats kept.
    """
    import pandas as pd

    lines = np.empty(sum(len(one) for one in lists), object)
    start = 0
    for one in lists:
        lines[start : start + len(one)] = one
        start += len(one)
    codes, distinct = pd.factorize(lines)
    ends = np.cumsum([len(one) for one in lists]).tolist()
    return np.asarray(distinct, object), np.split(codes.astype(np.int32), ends)[:-1]
