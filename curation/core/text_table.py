"""Tables of texts: as lines for a terminal, aligned, wide columns wrapped; as LaTeX; as Markdown.

No character of a cell steers a terminal or means anything to LaTeX or Markdown.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest

_PLAIN = 120
_NOTEBOOK = 100
"""Characters of a line in a notebook's output: longer ones are wrapped by the browser, and columns fall apart."""
_WHOLE = (32, 24)
"""Characters of a word that is not cut where its column is narrow, and of one where the line has no room for these:
names of manifests are copied from tables."""
_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "·": r"$\cdot$",
    "\N{REPLACEMENT CHARACTER}": "?",
} | {character: f"\\{character}" for character in "&%$#_{}"}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under column names."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def printable(text: str, instead: str = "\N{REPLACEMENT CHARACTER}") -> str:
    """Return a text from a file with a sign instead of each control character, which could steer a terminal."""
    return "".join(character if character.isprintable() else instead for character in text)


def tex(text: str) -> str:
    """Return a text for LaTeX, in which no character of it means anything."""
    return "".join(_TEX.get(character, character) for character in printable(text))


def latex_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: Sequence[bool],
    bold: Collection[tuple[int, int]] = (),
) -> str:
    """Return a table in LaTeX, ruled by the package booktabs, without vertical rules.

    Parameters
    ----------
    numeric : sequence of bool
        Which columns hold numbers: these stand to the right.
    bold : collection of (int, int)
        Row and column of each cell that is set in bold.
    """
    columns = "".join("r" if right else "l" for right in numeric)
    body = [
        [rf"\textbf{{{tex(cell)}}}" if (number, column) in bold else tex(cell) for column, cell in enumerate(row)]
        for number, row in enumerate(rows)
    ]
    head, *lines = (" & ".join(row) + r" \\" for row in ([tex(name) for name in heads], *body))
    ruled = "\n".join([head, r"\midrule", *lines])
    return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{ruled}\n\\bottomrule\n\\end{{tabular}}\n"


def table_lines(table: Table, *, width: int | None = None) -> list[str]:
    """Return the lines of a table: a title, the column names, aligned rows; the last column wraps.

    Parameters
    ----------
    width : int, optional
        Characters in a line; that of the terminal, 100 in a notebook, or 120 where there is neither.
    """
    limit = width or _line_width()
    rows = [[printable(cell) for cell in row] for row in table.rows]
    heads = [list(table.columns)] if any(table.columns) else []
    widths = [max((len(row[column]) for row in heads + rows), default=0) for column in range(len(table.columns))]
    room = _shared_widths(widths, heads + rows, limit - 2 * len(widths))
    lines = [printable(table.title)]
    for row in heads + rows:
        lines += _row_lines(row, room)
    return [*lines, ""]


def _line_width() -> int:
    """Return how many characters a line holds where the output is read."""
    if type(sys.stdout).__module__.partition(".")[0] == "ipykernel":
        return _NOTEBOOK
    return shutil.get_terminal_size((_PLAIN, 24)).columns if sys.stdout.isatty() else _PLAIN


def _row_lines(row: Sequence[str], room: Sequence[int]) -> list[str]:
    """Return one row; every wide column is wrapped to its share of the line."""
    cells = [textwrap.wrap(cell, size, break_on_hyphens=False) or [""] for cell, size in zip(row, room, strict=True)]
    return [
        ("  " + "  ".join(f"{text:<{size}}" for text, size in zip(texts, room, strict=True))).rstrip()
        for texts in zip_longest(*cells, fillvalue="")
    ]


def _shared_widths(widths: Sequence[int], rows: Sequence[Sequence[str]], available: int) -> list[int]:
    """Return column widths that fit into a line: the widest shrink first, none below its longest word if that can be.

    Parameters
    ----------
    widths : sequence of int
        Of the longest cells.
    rows : sequence of sequence of str
    available : int
        Characters of all columns together.
    """
    room = [max(1, width) for width in widths]
    columns = [" ".join(cells).split() for cells in zip(*rows, strict=True)]
    words = [max(map(len, column), default=1) for column in columns]
    for whole in _WHOLE:
        least = [min(word, whole) for word in words]
        if sum(least) <= available:
            break
    while sum(room) > available and (able := [column for column, width in enumerate(room) if width > least[column]]):
        widest = max(able, key=room.__getitem__)
        others = max((room[column] for column in able if column != widest), default=0)
        excess = sum(room) - available
        room[widest] = max(least[widest], room[widest] - excess, min(others, room[widest] - 1))
    return room
