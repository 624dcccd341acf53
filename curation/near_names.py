"""Names of classes that differ in case, blanks or Unicode form alone: two classes to a program, one to a reader."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Sequence

from curation.errors import CurationWarning
from curation.grouping import grouped

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
    groups = grouped({*names, *others}, _plain).values()
    return sorted(tuple(sorted(group)) for group in groups if len(group) > 1)


def _plain(name: str) -> str:
    if not name.isascii():
        name = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    return " ".join(name.lower().split())


def warn_of_near_names(where: str, names: Sequence[str], others: Sequence[str] = ()) -> None:
    """Warn where names of classes differ in case, blanks or Unicode form alone, and show them with escapes."""
    found = near_names(names, others)
    if found:
        shown = "; ".join(_shown(group) for group in found[:_SHOWN]) + ("; …" if len(found) > _SHOWN else "")
        warnings.warn(
            f"{where}: names that differ in case, blanks or Unicode form alone are different classes: {shown}",
            CurationWarning,
            stacklevel=3,
        )


def _shown(group: Iterable[str]) -> str:
    return " and ".join(ascii(name)[:80] for name in group)
