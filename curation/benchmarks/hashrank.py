"""Selection without seeds: images ranked by the SHA-256 of a salt and their id."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from curation.sources.source import Int64s


def hash_rank(ids: Sequence[str], salt: str) -> Int64s:
    """Return the positions of the ids in the order of ``sha256(salt + id)``.

    The first n are a selection that is the same in every language, stays nested as n grows, and moves no image when
    others are added.

    Parameters
    ----------
    ids : sequence of str
        Namespaced ids, unique.
    salt : str
        Names the selection, so that two protocols do not pick the same images.
    """
    sha256 = hashlib.sha256
    digests = b"".join([sha256(text).digest() for text in _salted(ids, salt)])
    columns = np.frombuffer(digests, ">u8").reshape(-1, 4).astype(np.uint64)
    order = np.argsort(columns[:, 0], kind="stable")
    first = columns[order, 0]
    # Two digests that agree in 64 bits are not to be expected, and still have their order.
    return order if (first[1:] != first[:-1]).all() else np.lexsort(columns.T[::-1])


def _salted(ids: Sequence[str], salt: str) -> list[bytes]:
    """Return ``salt + id`` of each id in UTF-8: all encoded at once, unless one holds a line end."""
    together = (salt + f"\n{salt}".join(ids)).encode()
    if len(ids) and together.count(b"\n") == len(ids) - 1:
        return together.split(b"\n")
    return [(salt + one).encode() for one in ids]
