"""Texts for people: numbers and names in a sentence, records at a prompt, and names that are easily confused."""

from __future__ import annotations

import dataclasses
import difflib
import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from curation.core.errors import CurationWarning


def examples(values: Iterable[str], shown: int = 3, joint: str = ", ") -> str:
    """Return the first few texts: ``a, b, c, …``."""
    listed = list(values)
    return joint.join(listed[:shown]) + (f"{joint}…" if len(listed) > shown else "")


def slug(text: str, joint: str = "_") -> str:
    """Return a text as a name of lower-case letters and digits: ``Caracal (2)`` is caracal_2."""
    return re.sub(r"[^a-z0-9]+", joint, text.lower()).strip(joint)


def did_you_mean(
    name: str, names: Iterable[str], otherwise: str | None = None, form: str = "did you mean {}?"
) -> str | None:
    """Return a hint with the most similar name, or another hint if no name is similar."""
    by_plain_name = {plain_name(each): each for each in names}
    near = get_close_matches(plain_name(name), by_plain_name, 1)
    return form.replace("{}", by_plain_name[near[0]]) if near else otherwise


def counted(number: int, singular: str, several: str = "") -> str:
    """Return ``1 image`` or ``2 images``."""
    return f"{number:,} {singular if number == 1 else several or f'{singular}s'}"


_LONGEST_LINE = 240
_LONGEST_TEXT = 60


def short_repr(record: Any) -> str:
    """Return a one-line repr: short fields in full, long ones as their length.

    Empty fields, and fields beyond the length of a line, are left out. Serves as ``__repr__``.

    >>> from curation.manifest.header import ClassEntry
    >>> ClassEntry(name="airplane", role="known", index=0, aliases=("aeroplane",))
    ClassEntry(name='airplane', role='known', index=0, aliases=1 item)
    """
    line = f"{type(record).__name__}("
    for index, (name, value) in enumerate(_fields(record)):
        text = f"{', ' if index else ''}{name}={_short(value)}"
        if len(line) + len(text) > _LONGEST_LINE - 4:
            return f"{line}, …)"
        line += text
    return f"{line})"


def cut(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters; a longer text ends in an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _fields(record: Any) -> Iterator[tuple[str, Any]]:
    names = (
        [field.name for field in dataclasses.fields(record) if field.repr]
        if dataclasses.is_dataclass(record)
        else record.__struct_fields__
    )
    for name in names:
        value = getattr(record, name)
        if value is not None and not (isinstance(value, str | tuple | frozenset | Mapping) and not value):
            yield name, value


def _short(value: Any) -> str:
    if isinstance(value, str):
        return repr(cut(value, _LONGEST_TEXT))
    if isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, Path):
        return repr(cut(str(value), _LONGEST_TEXT))
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"array{value.shape}"
    if isinstance(value, tuple | list | set | frozenset | Mapping):
        return f"{len(value):,} {'item' if len(value) == 1 else 'items'}"
    return f"{type(value).__name__}({f'{len(value):,} rows' if hasattr(value, '__len__') else '…'})"


_SHOWN = 3


def near_names(names: Sequence[str], others: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """Return the groups of names that differ only in case, blanks or Unicode form, all in code point order.

    Parameters
    ----------
    names, others : sequence of str
        Both are searched together; a name may be in both.

    Examples
    --------
    >>> near_names(["dog", "cat"], ["Dog", "cat", "dog "])
    [('Dog', 'dog', 'dog ')]
    """
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys((*names, *others)):
        groups.setdefault(plain_name(name), []).append(name)
    return sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1)


def plain_name(name: str) -> str:
    """Return a name in lower case, with single blanks, in one Unicode form."""
    if not name.isascii():
        name = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    return " ".join(name.lower().split())


def warn_of_near_names(where: str, names: Sequence[str], others: Sequence[str] = ()) -> None:
    """Warn if names of classes differ only in case, blanks or Unicode form; the warning shows them with escapes."""
    near = near_names(names, others)
    if near:
        groups = (" and ".join(ascii(name)[:80] for name in group) for group in near[:_SHOWN])
        listing = "; ".join(groups) + ("; …" if len(near) > _SHOWN else "")
        warnings.warn(
            f"{where}: names that differ only in case, blanks or Unicode form are different classes: {listing}",
            CurationWarning,
            stacklevel=3,
        )


_ALIKE, _MOST_COMPARED, _RARE = 0.7, 400, 4


def odd_names(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the names of classes that look like mistakes, each with the reason, in the order of `counts`.

    Parameters
    ----------
    counts : mapping of str to int
        Boxes of each class.

    Examples
    --------
    >>> odd_names({"*": 2, "freight_car": 23, "feright car": 2, "bus": 26, "trolley": 1})
    {'*': 'no letter or digit', 'feright car': "like 'freight_car' (23)", 'trolley': 'one box'}
    """
    plain = {name: slug(plain_name(name), "") or plain_name(name) for name in counts}
    first: dict[str, str] = {}
    for name in sorted(counts, key=lambda name: -counts[name]):
        first.setdefault(plain[name], name)
    likely_name = dict(first)
    for key, name in first.items() if len(counts) <= _MOST_COMPARED else ():
        # Similar names of similar frequency are different classes: mouse and house. So are class 1 and class 2.
        frequent = [other for other, usual in first.items() if counts[usual] >= _RARE * max(counts[name], 1)]
        others = [other for other in frequent if other.strip("0123456789") != key.strip("0123456789")]
        likely_name[key] = next((first[near] for near in difflib.get_close_matches(key, others, 1, _ALIKE)), name)
    doubts: dict[str, str] = {}
    for name, number in counts.items():
        likely = likely_name[plain[name]]
        if not any(map(str.isalnum, name)):
            doubts[name] = "no letter or digit"
        elif likely != name:
            doubts[name] = f"like {cut(likely, _LONGEST_TEXT)!r} ({counts[likely]:,})"
        elif number == 1:
            doubts[name] = "one box"
    return doubts


def odd_names_text(counts: Mapping[str, int]) -> str:
    """Return the classes whose names look like mistakes in one line, ``""`` for none (see `odd_names`)."""
    odd = odd_names(counts)
    texts = (f"{cut(name, _LONGEST_TEXT)!r} ({counts[name]:,}) {why}" for name, why in odd.items())
    return examples(texts, 8, "; ")
