"""Tables as CSV: the rows of users' files, and the one place where cells are written, which no spreadsheet can run.

Names come from somebody's files. A spreadsheet takes a text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a
carriage return for a formula (OWASP, "CSV Injection"), and a formula may start programs or send the table away. Such a
text gets an apostrophe in front, and so does one that begins with an apostrophe: `cell_text` takes exactly one away.
Numbers stay as they are, also where they are given as text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import msgspec

from curation.core.errors import CurationError

_MARK = "'"
_MANY = 1000
"""Numbers of a column from which on they are written together."""
_MARKED = (_MARK, "=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-inf|-nan")


def as_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""Return a table as CSV text with line feeds; None is an empty cell.

    Examples
    --------
    >>> as_csv(("class", "n"), [("=1+2", -3), ("cat", None)])
    "class,n\n'=1+2,-3\ncat,\n"
    """
    written: list[str] = []
    # Only with this terminator does every version of Python quote a cell that holds a carriage return.
    writer = csv.writer(SimpleNamespace(write=written.append), lineterminator="\r\n")

    def written_as(cell: Any) -> str:
        writer.writerow((inert_cell(cell), None))
        return written.pop().removesuffix(",\r\n")

    # Tables of many rows repeat their names; what one needs is found out once.
    quick: dict[type, Callable[[Any], str]] = {float: repr, int: str, str: lru_cache(4096)(written_as)}

    def texts(column: tuple[Any, ...]) -> Iterable[str]:
        kinds = set(map(type, column))
        if kinds == {float} and len(column) > _MANY:
            return _float_texts(column)
        if len(kinds) == 1:
            return map(quick.get(kinds.pop(), written_as), column)
        return (quick.get(type(cell), written_as)(cell) for cell in column)

    # Column by column, since most columns hold one type of cell. A line without a character would be no row.
    lines = (line or '""' for line in map(",".join, zip(*map(texts, zip(*rows, strict=True)), strict=True)))
    return "\n".join([",".join(map(written_as, header)) or '""', *lines, ""])


def _float_texts(column: Sequence[float]) -> list[str]:
    """Return `repr` of each number: msgspec writes the same digits in a third of the time, but other exponents."""
    import numpy as np

    texts = msgspec.json.encode(column)[1:-1].decode().split(",")
    size = np.abs(np.array(column))
    for row in np.flatnonzero(~((size == 0) | ((size >= 1e-4) & (size < 1e16)))).tolist():
        texts[row] = repr(column[row])
    return texts


def csv_rows(
    data: bytes, error: type[CurationError], what: str, *, where: str, delimiter: str = ",", strict: bool = False
) -> list[list[str]]:
    """Return the rows of CSV in UTF-8; other bytes, and what is no CSV, are an `error` that says `what`.

    Parameters
    ----------
    strict : bool
        Whether a quote that is not closed, or followed by text, is refused.
    """
    try:
        text = data.decode("utf-8-sig")
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict))
    except (UnicodeDecodeError, csv.Error) as found:
        raise error(what, where=where, found=str(found)[:200]) from None


def csv_header(line: bytes, error: type[CurationError], *, where: str, delimiter: str = ",") -> tuple[str, ...]:
    """Return the column names of a table's first line; no CSV in UTF-8, or a name that stands twice, is an `error`."""
    try:
        names = tuple(next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")], delimiter=delimiter), ()))
    except (UnicodeDecodeError, csv.Error) as found:
        raise error("The header of the table cannot be read", where=where, found=str(found)[:200]) from None
    if len(set(names)) != len(names):
        raise error("Two columns of the table have one name", where=where, found=", ".join(names)[:200])
    return names


def inert_cell(value: Any) -> Any:
    """Return a cell so that a spreadsheet shows it and does not run it."""
    if isinstance(value, str) and value.startswith(_MARKED) and not _NUMBER.fullmatch(value):
        return f"{_MARK}{value}"
    return value


def cell_text(cell: str) -> str:
    """Return the text that `inert_cell` made a cell of; a cell that it did not make stays as it is."""
    if cell[:1] == _MARK and cell[1:].startswith(_MARKED):
        return cell[1:]
    return cell
