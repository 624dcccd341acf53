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
        In files and DataFrames.
    unit : str
        ``""`` for text, ``digest``, ``mean``, or a unit of a measure; it formats the cells for the eye.
    head : str, optional
        In a terminal; by default the name.
    show : str
        Another format, as `format` takes it; ``+.2f`` shows the sign.
    text : bool
        Whether a terminal has it; files have every column.
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
        Stem of its file, and what `Result.table` calls it; ``""`` for a table that is for the eye alone.
    columns : sequence of Column or str
        A text is the name of a column that is nothing else.
    rows : sequence of rows, or a function that makes them
        Texts, numbers, and None for what is undefined.
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
        """Make columns of names."""
        columns = tuple(Column(column) if isinstance(column, str) else column for column in self.columns)
        object.__setattr__(self, "columns", columns)

    def all_rows(self) -> Iterable[Sequence[Any]]:
        """Return the rows."""
        return self.rows() if callable(self.rows) else self.rows

    def cells(self) -> list[tuple[str, ...]]:
        """Return the rows for the eye, as texts."""
        columns = [(number, column) for number, column in enumerate(self.columns) if column.text]
        rows = self.all_rows() if self.printed is None else self.printed
        return [tuple(formatted(row[number], column.unit, column.show) for number, column in columns) for row in rows]

    @property
    def heads(self) -> tuple[str, ...]:
        """Return the heads of the columns for the eye."""
        return tuple(column.name if column.head is None else column.head for column in self.columns if column.text)

    def lines(self, width: int | None = None) -> list[str]:
        """Return the table for a terminal, `width` characters in a line."""
        return table_lines(TextTable(self.title, self.heads, tuple(self.cells())), width=width)

    def csv(self) -> str:
        """Return the table as CSV with all digits; undefined values are empty cells."""
        return as_csv([column.name for column in self.columns], self.all_rows())

    def records(self) -> list[dict[str, Any]]:
        """Return the rows by the names of the columns, as JSON holds them."""
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
    """A table of which each thing scored has some rows (`curation.evaluation.measures.Measured.tables`).

    Attributes
    ----------
    name : str
    columns : tuple of Column
        Besides those that say what was scored.
    title : str
        Heading in a terminal; ``""`` for a table that is not printed.
    json : bool
        Whether JSON holds it: not where it has a row a detection.
    printed : callable, optional
        Which rows a terminal shows.
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
    """Return a value for the eye: ``-`` for None, a number with the decimals of its unit."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value[:_DIGEST] if unit == "digest" else value
    form = show or _FORMATS.get(unit, "")
    return format(value, form).removesuffix("%") if form else str(value)


def shown_unit(unit: str, units: Iterable[str]) -> str:
    """Return the unit in which a table shows a measure: shares are percentages where others of the table are."""
    return "%" if unit == "share" and "%" in units else unit


def in_unit(value: Any, unit: str, shown_in: str) -> Any:
    """Return a number in the unit in which a table shows it.

    >>> in_unit(0.5, "share", shown_unit("share", ["%", "share"]))
    50.0
    """
    return 100 * value if value is not None and (unit, shown_in) == ("share", "%") else value


def sign_of(better: str | None, unit: str) -> str:
    """Return the second line of a measure's head: an arrow in the direction of better, and the sign of percent.

    >>> sign_of("lower", "%")
    '↓ %'
    """
    return " ".join(filter(None, (ARROWS.get(better or "", ""), "%" * (unit == "%"))))
