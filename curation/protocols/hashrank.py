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
    digests = np.array([sha256((salt + one).encode()).digest() for one in ids], "S32")
    return np.argsort(digests, kind="stable")
