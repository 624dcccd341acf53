"""How records show themselves at a prompt: one short line, whatever they hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from curation.core.text_table import printable

_LONGEST_LINE = 240
_LONGEST_TEXT = 60


def short_repr(record: Any) -> str:
    """Return one line for a dataclass or msgspec struct: short fields as they are, of others how much they hold.

    Fields that hold nothing are left out, and those beyond a line's length. Serves as ``__repr__``.

    >>> from curation.manifest.header import ClassEntry
    >>> ClassEntry(name="airplane", role="known", index=0, aliases=("aeroplane",))
    ClassEntry(name='airplane', role='known', index=0, aliases=1 item)
    """
    shown = f"{type(record).__name__}("
    for index, (name, value) in enumerate(_fields(record)):
        text = f"{', ' if index else ''}{name}={_short(value)}"
        if len(shown) + len(text) > _LONGEST_LINE - 4:
            return f"{shown}, …)"
        shown += text
    return f"{shown})"


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", shown: int = 24) -> str:
    """Return a small HTML table for a notebook; of many rows the first ones, and how many more there are."""
    head = "".join(f"<th>{escape(printable(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(printable(cut(cell, 80)))}</td>" for cell in row) + "</tr>"
        for row in rows[:shown]
    )
    more = len(rows) - shown
    rest = f'<tr><td colspan="{len(columns)}">and {more} more</td></tr>' if more > 0 else ""
    return f"<table><caption>{escape(printable(caption))}</caption><tr>{head}</tr>{body}{rest}</table>"


def cut(text: str, limit: int) -> str:
    """Return a text that is not longer than `limit`, an ellipsis at its end where it was."""
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
