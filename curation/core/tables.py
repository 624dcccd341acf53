"""Tables: grouped rows, CSV that is safe in spreadsheets, aligned lines, LaTeX and HTML.

Names come from files of others. A spreadsheet takes a text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a
carriage return for a formula (OWASP, "CSV Injection"), and a formula may start programs or send the table away. Such a
text gets an apostrophe in front, and so does one that begins with an apostrophe: `cell_text` removes exactly one.
Numbers are not changed, also as texts. Control characters and LaTeX's special characters are replaced or escaped.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import Any, TypeVar

from curation.core.errors import CurationError
from curation.core.wording import cut

Value = TypeVar("Value")
Key = TypeVar("Key", bound=Hashable)


def grouped(values: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """Return the values of each key; keys and values are in their order of appearance."""
    groups: dict[Key, list[Value]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups


_MARK = "'"
_MARKED = (_MARK, "=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-inf|-nan")


def as_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""Return a table as CSV text with line feeds; None is an empty cell.

    Examples
    --------
    >>> as_csv(("class", "n"), [("=1+2", -3), ("cat", None)])
    "class,n\n'=1+2,-3\ncat,\n"
    """
    stream = io.StringIO(newline="")
    # Only with this terminator does every version of Python quote a cell that holds a carriage return.
    writer = csv.writer(stream, lineterminator="\r\n")
    lines: list[str] = []
    for row in (header, *rows):
        writer.writerow([inert_cell(cell) for cell in row])
        # An empty line would not be a row.
        lines.append(stream.getvalue().removesuffix("\r\n") or '""')
        stream.seek(0)
        stream.truncate()
    return "\n".join([*lines, ""])


def csv_rows(
    data: bytes, error: type[CurationError], message: str, *, where: str, delimiter: str = ",", strict: bool = False
) -> list[list[str]]:
    """Return the rows of CSV in UTF-8; raise `error` with `message` for anything else.

    Parameters
    ----------
    strict : bool
        Whether a quote that is not closed, or followed by text, is refused.
    """
    try:
        text = data.decode("utf-8-sig")
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict))
    except (UnicodeDecodeError, csv.Error) as problem:
        raise error(message, where=where, found=str(problem)[:200]) from None


def csv_header(line: bytes, error: type[CurationError], *, where: str, delimiter: str = ",") -> tuple[str, ...]:
    """Return the column names of a table's first line; raise `error` for invalid CSV or UTF-8, or a duplicate name."""
    try:
        names = tuple(next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")], delimiter=delimiter), ()))
    except (UnicodeDecodeError, csv.Error) as problem:
        raise error("The header of the table cannot be read", where=where, found=str(problem)[:200]) from None
    if len(set(names)) != len(names):
        raise error("Two columns of the table have one name", where=where, found=", ".join(names)[:200])
    return names


def inert_cell(value: Any) -> Any:
    """Return a cell that a spreadsheet shows as text instead of running it as a formula."""
    if isinstance(value, str) and value.startswith(_MARKED) and not _NUMBER.fullmatch(value):
        return f"{_MARK}{value}"
    return value


def cell_text(cell: str) -> str:
    """Return the text of a cell that `inert_cell` returned; other cells are returned unchanged."""
    if cell[:1] == _MARK and cell[1:].startswith(_MARKED):
        return cell[1:]
    return cell


_PLAIN = 120
_NOTEBOOK = 100
"""Characters of a line in a notebook's output: the browser wraps longer lines, which breaks the columns."""
_WHOLE = (32, 24)
"""Lengths up to which a word is not cut in a narrow column: the second applies if the line has no room for the first.
Names of manifests are copied from tables."""
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
    """Return a text with control characters replaced, since they could control a terminal."""
    return "".join(character if character.isprintable() else instead for character in text)


def tex(text: str) -> str:
    """Return a text for LaTeX with special characters escaped."""
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
        Which columns hold numbers: these are aligned to the right.
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


def number_lines(table: Table, signs: Sequence[str], *, leading: int, width: int | None = None) -> list[str]:
    """Return the lines of a table of many numbers, split into blocks of columns that fit into a line.

    Every block repeats the leading columns, which identify the row. The title is above the first block.

    Parameters
    ----------
    signs : sequence of str
        Second line of each head, such as ``↑ %``.
    leading : int
    width : int, optional
        Characters in a line, by default at most 100.

    Examples
    --------
    >>> scores = Table("Scores", ("method", "UR", "WI"), (("ours", "81.20", "0.0310"), ("theirs", "79.00", "0.0450")))
    >>> for line in number_lines(scores, ("", "↑ %", "↓"), leading=1)[:-1]:
    ...     print(line)
    Scores
      method  UR     WI
              ↑ %    ↓
      ours    81.20  0.0310
      theirs  79.00  0.0450
    """
    limit = width or min(_NOTEBOOK, _line_width())
    rows = [table.columns, tuple(signs), *table.rows]
    widths = [2 + max(len(row[column]) for row in rows) for column in range(len(table.columns))]
    first = sum(min(size, 2 + _WHOLE[0]) for size in widths[:leading])
    pieces: list[list[int]] = [[]]
    for column in range(leading, len(widths)):
        if pieces[-1] and first + sum(widths[number] for number in (*pieces[-1], column)) > limit:
            pieces.append([])
        pieces[-1].append(column)
    lines = [printable(table.title)]
    for piece in pieces:
        columns = [*range(leading), *piece]
        texts = [tuple(row[column] for column in columns) for row in rows]
        lines += table_lines(Table("", texts[0], tuple(texts[1:])), width=limit)[1:]
    return lines


def _line_width() -> int:
    """Return the number of characters in a line of the terminal, notebook or file that shows the output."""
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
    """Return column widths that fit into a line: the widest shrink first, if possible not below their longest word.

    Parameters
    ----------
    widths : sequence of int
        Widths of the longest cells.
    rows : sequence of sequence of str
    available : int
        Characters of all columns together.
    """
    room = [max(1, width) for width in widths]
    columns = [" ".join(cells).split() for cells in zip(*rows, strict=True)]
    words = [max(map(len, column), default=1) for column in columns]
    for limit in _WHOLE:
        least = [min(word, limit) for word in words]
        if sum(least) <= available:
            break
    while sum(room) > available and (wide := [column for column, width in enumerate(room) if width > least[column]]):
        widest = max(wide, key=room.__getitem__)
        others = max((room[column] for column in wide if column != widest), default=0)
        excess = sum(room) - available
        room[widest] = max(least[widest], room[widest] - excess, min(others, room[widest] - 1))
    return room


_NOTEBOOK_ROWS = 24


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str) -> str:
    """Return a small HTML table for a notebook: the first 24 rows, and the number of further rows."""
    head = "".join(f"<th>{escape(printable(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(printable(cut(cell, 80)))}</td>" for cell in row) + "</tr>"
        for row in rows[:_NOTEBOOK_ROWS]
    )
    more = len(rows) - _NOTEBOOK_ROWS
    rest = f'<tr><td colspan="{len(columns)}">and {more} more</td></tr>' if more > 0 else ""
    return f"<table><caption>{escape(printable(caption))}</caption><tr>{head}</tr>{body}{rest}</table>"
