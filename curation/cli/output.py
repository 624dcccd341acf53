"""The one place where results are printed: tables for people, or one JSON document with ``--json``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
<<<<<<< HEAD
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from curation.hierarchy import Wordnet
=======
from typing import Annotated, Any
>>>>>>> main

from curation.cli.signature import OneOf
from curation.progress import stage, steps
from curation.text_table import Table, printable, table_lines

__all__ = [
    "Table",
    "add_amount_options",
    "counted_examples",
    "emit",
    "printable",
    "stage",
    "steps",
    "table_lines",
    "warn",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command has to say.

    Attributes
    ----------
    data : mapping or sequence
        What ``--json`` prints.
    lines : iterable of str
        What is printed else.
    status : int
        The exit status: 0 done, 1 the check failed.
    then : callable, optional
        What is done once the answer is printed.
    """

    data: Mapping[str, Any] | Sequence[Any]
    lines: Iterable[str]
    status: int = 0
    then: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """How much a check prints beside what needs attention.

    Attributes
    ----------
    all
        print everything, not only what needs attention
    quiet
        print the last line alone, the result
    """

    all: Annotated[bool, OneOf("amount")] = False
    quiet: Annotated[bool, OneOf("amount")] = False


def emit(data: Mapping[str, Any] | Sequence[Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result: the data as JSON, or the lines."""
    if as_json:
        print(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False))
        return
    for line in lines:
        print(line)


def add_amount_options(parser: argparse.ArgumentParser, whole: str) -> None:
    """Declare ``--all`` and ``--quiet``: how much a check prints beside what needs attention."""
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--all", action="store_true", help=f"print {whole}, not only what needs attention")
    amount.add_argument("--quiet", action="store_true", help="print the last line alone, the result")


def warn(text: str) -> None:
    """Print a warning to standard error."""
    print(f"warning: {printable(text)}", file=sys.stderr)


<<<<<<< HEAD
def tell_wordnet(chosen: Wordnet) -> None:
    """Say on standard error which WordNet answers, where it is not the built-in one, and how it differs."""
    if chosen.difference:
        print(printable(f"{chosen.name}: {chosen.difference}"), file=sys.stderr)


def steps(items: Iterable[Item], what: str) -> Iterable[Item]:
    """Return items that show their progress on standard error while they are taken, where that is a terminal."""
    from tqdm import tqdm

    shown: Iterable[Item] = tqdm(items, desc=what, disable=None, leave=False)
    return shown


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Name a long piece of work on standard error while it lasts, where that is a terminal."""
    from tqdm import tqdm

    with tqdm(desc=what, total=1, disable=None, leave=False, bar_format="{desc} …"):
        yield


def printable(text: str) -> str:
    """Return a text from a file without the control characters that could steer a terminal."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def table_lines(table: Table, *, width: int | None = None) -> list[str]:
    """Return the lines of a table: a title, the column names, aligned rows; the last column wraps.

    Parameters
    ----------
    width : int, optional
        Characters in a line; that of the terminal, or 120 where there is none.
    """
    limit = width or (shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 120)
    rows = [[printable(cell) for cell in row] for row in table.rows]
    heads = [list(table.columns)] if any(table.columns) else []
    widths = [
        max((len(row[column]) for row in heads + rows), default=0) for column in range(len(table.columns))
    ]
    room = _shared_widths(widths, _least_widths(rows, widths, limit), limit)
    lines = [printable(table.title)]
    for row in heads + rows:
        lines += _row_lines(row, room)
    return [*lines, ""]


=======
>>>>>>> main
def counted_examples(ids: Sequence[str], shown: int = 3) -> str:
    """Return ``12 (a, b, c, …)``: a number and its first ids."""
    if not ids:
        return "0"
    return (
        f"{len(ids)} ({', '.join(printable(one) for one in ids[:shown])}{', …' if len(ids) > shown else ''})"
    )
