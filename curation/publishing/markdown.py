"""Markdown that shows texts from files as they are: no text opens a link, a tag, a heading or another cell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARKS = re.compile(r"([\\`*_\[\]<>|~#$&])")
# What begins a list, or underlines a heading, at the beginning of a line.
_FIRST = re.compile(r"^(\d{0,9})([-+.)](?= |$)|[-=](?=[-=]*$))")


def plain(text: object) -> str:
    """Return a text as one line in which no character means anything to Markdown; an address may show as a link."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)).split())
    return _FIRST.sub(r"\1\\\2", _MARKS.sub(r"\\\1", line))


def code(text: object) -> str:
    """Return a text as code within a line or a cell."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)).split())
    return f"`{line.replace('`', chr(0x2CB)).replace('|', '¦')}`" if line else ""


def link(address: str) -> str:
    """Return an address that is our own as a link; escaped signs would become part of it."""
    return f"<{address}>" if address else ""


def block(text: str, language: str = "") -> list[str]:
    """Return lines of a code block whose fence no line of the text closes."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    lines = ["".join(sign if sign.isprintable() else " " for sign in line) for line in text.splitlines()]
    return [f"{fence}{language}", *lines, fence, ""]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return lines of a table whose cells are Markdown already; a table without rows is empty."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return []
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *lines, ""]


def count(number: int | None) -> str:
    """Return a number with thousands set off, ``-`` for none."""
    return "-" if number is None else f"{number:,}"
