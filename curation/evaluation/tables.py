"""Tables of a result: raw values, declared once for text, CSV, DataFrame, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curation.core.tables import Table as TextTable
from curation.core.tables import as_csv, html_table, latex_table, table_lines
from curation.evaluation.measures import Scored

if TYPE_CHECKING:
    import pandas as pd

ARROWS = {"higher": "↑", "lower": "↓"}
_FORMATS = {"share": ".4f", "%": ".2f", "ratio": ".4f", "mean": ".1f", "score": ".4g"}
_DIGEST = 19


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        Name in files and DataFrames.
    unit : str
        ``""`` for text, ``digest``, ``mean``, or a unit of a measure; it sets the format of the printed cells.
    head : str, optional
        Head in a terminal; by default the name.
    show : str
        Another format, as `format` takes it; ``+.2f`` shows the sign.
    text : bool
        Whether a terminal shows it; files have every column.
    """

    name: str
    unit: str = ""
    head: str | None = None
    show: str = ""
    text: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A table of raw values, declared once for all of its forms.

    Attributes
    ----------
    name : str
        Stem of its file, and its name in `Result.table`; ``""`` for a table that is only printed.
    columns : sequence of Column or str
        A text is the name of a plain column.
    rows : sequence of rows, or a function that returns them
        Texts, numbers, and None for undefined values.
    title : str
        Heading in a terminal; ``""`` for a table that is not printed.
    printed : sequence of rows, optional
        Rows that a terminal shows instead of `rows`.
    file : bool
        Whether `Result.save` writes it as CSV.
    """

    name: str
    columns: Sequence[Any]
    rows: Iterable[Sequence[Any]] | Callable[[], Iterable[Sequence[Any]]]
    title: str = ""
    printed: Iterable[Sequence[Any]] | None = None
    file: bool = False

    def __post_init__(self) -> None:
        """Convert names to columns."""
        columns = tuple(Column(column) if isinstance(column, str) else column for column in self.columns)
        object.__setattr__(self, "columns", columns)

    def all_rows(self) -> Iterable[Sequence[Any]]:
        """Return the rows."""
        return self.rows() if callable(self.rows) else self.rows

    def cells(self) -> list[tuple[str, ...]]:
        """Return the printed rows as texts."""
        columns = [(number, column) for number, column in enumerate(self.columns) if column.text]
        rows = self.all_rows() if self.printed is None else self.printed
        return [tuple(formatted(row[number], column.unit, column.show) for number, column in columns) for row in rows]

    @property
    def heads(self) -> tuple[str, ...]:
        """Return the heads of the printed columns."""
        return tuple(column.name if column.head is None else column.head for column in self.columns if column.text)

    def lines(self, width: int | None = None) -> list[str]:
        """Return the table for a terminal, `width` characters in a line."""
        return table_lines(TextTable(self.title, self.heads, tuple(self.cells())), width=width)

    def csv(self) -> str:
        """Return the table as CSV with all digits; undefined values are empty cells."""
        return as_csv([column.name for column in self.columns], self.all_rows())

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dicts by column name, as in JSON."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.all_rows()]

    def frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame."""
        import pandas as pd

        return pd.DataFrame([tuple(row) for row in self.all_rows()], columns=[column.name for column in self.columns])

    def latex(self) -> str:
        """Return the table in LaTeX, ruled by the package booktabs."""
        numeric = [column.unit not in ("", "digest") for column in self.columns if column.text]
        return latex_table(self.heads, self.cells(), numeric=numeric)

    def html(self) -> str:
        """Return the table as HTML for a notebook, every text escaped."""
        return html_table(self.heads, self.cells(), caption=self.title)


@dataclass(frozen=True, slots=True)
class Tidy:
    """A table to which each scored entry adds rows (`curation.evaluation.measures.Measured.tables`).

    Attributes
    ----------
    name : str
    columns : tuple of Column
        Columns besides those that identify the scored entry.
    title : str
        Heading in a terminal; ``""`` for a table that is not printed.
    json : bool
        Whether JSON contains it; false if it has a row for each detection.
    printed : callable, optional
        Returns whether a terminal shows a row.
    """

    name: str
    columns: tuple[Column, ...]
    title: str = ""
    json: bool = True
    printed: Callable[[Sequence[Any]], bool] | None = None

    def table(self, scored: Sequence[Scored], places: Sequence[str]) -> Table:
        """Return the table of all scored entries: the fields in `places`, then the columns of its rows."""

        def rows() -> list[tuple[Any, ...]]:
            return [
                (*(getattr(entry, name) for name in places), *row)
                for entry in scored
                if entry.found is not None and self.name in entry.found.tables
                for row in zip(*(entry.found.tables[self.name][column.name] for column in self.columns), strict=True)
            ]

        columns = (*map(Column, places), *self.columns)
        shown_rows = self.printed and [row for row in rows() if self.printed(row[len(places) :])]
        there = any(entry.found and self.name in entry.found.tables for entry in scored)
        title = "" if shown_rows == [] or not there else self.title
        return Table(self.name, columns, rows, title, printed=shown_rows, file=there)


def formatted(value: Any, unit: str = "", show: str = "") -> str:
    """Return a value as printed: ``-`` for None, a number with the decimals of its unit."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value[:_DIGEST] if unit == "digest" else value
    form = show or _FORMATS.get(unit, "")
    return format(value, form).removesuffix("%") if form else str(value)


def shown_unit(unit: str, units: Iterable[str]) -> str:
    """Return the unit in which a table shows a measure: shares become percentages beside other percentages."""
    return "%" if unit == "share" and "%" in units else unit


def in_unit(value: Any, unit: str, shown_in: str) -> Any:
    """Return a number in the unit in which a table shows it.

    >>> in_unit(0.5, "share", shown_unit("share", ["%", "share"]))
    50.0
    """
    return 100 * value if value is not None and (unit, shown_in) == ("share", "%") else value


def sign_of(better: str | None, unit: str) -> str:
    """Return the second line of a measure's head: an arrow in the better direction, and ``%`` for percentages.

    >>> sign_of("lower", "%")
    '↓ %'
    """
    return " ".join(filter(None, (ARROWS.get(better or "", ""), "%" * (unit == "%"))))
