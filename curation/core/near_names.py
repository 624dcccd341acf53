"""Names of classes that differ in case, blanks or Unicode form alone: two classes to a program, one to a reader."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Sequence
from itertools import chain

import numpy as np

from curation.core.errors import CurationWarning

_SHOWN = 3


def near_names(names: Sequence[str], others: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """Return the groups of different names that are one without case, blanks and Unicode form, all in code point order.

    Parameters
    ----------
    names, others : sequence of str
        Both are searched together; a name may be in both.

    Examples
    --------
    >>> near_names(["dog", "cat"], ["Dog", "cat", "dog "])
    [('Dog', 'dog', 'dog ')]
    """
    n = len(names) + len(others)
    # A million names take 32 MB so, and several times that as keys of a dictionary.
    key = np.fromiter((hash(plain_name(name)) for name in chain(names, others)), np.int64, n)
    own = np.fromiter(map(hash, chain(names, others)), np.int64, n)
    order = np.lexsort((own, key))
    near = np.flatnonzero((np.diff(key[order]) == 0) & (np.diff(own[order]) != 0))
    groups: dict[str, set[str]] = {}
    for row in (*order[near].tolist(), *order[near + 1].tolist()):
        name = names[row] if row < len(names) else others[row - len(names)]
        groups.setdefault(plain_name(name), set()).add(name)
    return sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1)


def plain_name(name: str) -> str:
    """Return a name in lower case, without needless blanks, in one Unicode form."""
    if not name.isascii():
        name = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    return " ".join(name.lower().split())


def warn_of_near_names(where: str, names: Sequence[str], others: Sequence[str] = ()) -> None:
    """Warn where names of classes differ in case, blanks or Unicode form alone, and show them with escapes."""
    found = near_names(names, others)
    if found:
        groups = (" and ".join(ascii(name)[:80] for name in group) for group in found[:_SHOWN])
        shown = "; ".join(groups) + ("; …" if len(found) > _SHOWN else "")
        warnings.warn(
            f"{where}: names that differ in case, blanks or Unicode form alone are different classes: {shown}",
            CurationWarning,
            stacklevel=3,
        )
