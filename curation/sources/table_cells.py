"""The cells of a CSV, TSV or Parquet table as texts, read with pyarrow."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from curation.errors import AnnotationFormatError
from curation.sources.content import FileContent

SUFFIXES = (".csv", ".tsv", ".parquet")
_MAX_CELL = 1 << 16
_MAX_PARQUET = 4 << 30
_MAX_HEADER = 1 << 16
_BLOCK = 1 << 26
_NAME_SEPARATOR = re.compile(r"[;|]")


class Cells:
    """A table of texts, or of lists of texts.

    Attributes
    ----------
    name : str
    columns : tuple of str
    rows : int
    """

    def __init__(self, name: str, columns: dict[str, list[Any]], first_line: int) -> None:
        self.name = name
        self.columns = tuple(columns)
        self.rows = len(next(iter(columns.values()), []))
        self._columns = columns
        self._first_line = first_line

    def where(self, row: int) -> str:
        """Return how errors name a row."""
        return f"{self.name}: row {row + self._first_line}"

    def distinct(self, column: str) -> frozenset[str]:
        """Return the different texts in a column, ``""`` for empty cells; none for a column of lists."""
        values = self._columns[column]
        if any(isinstance(value, list) for value in values):
            return frozenset()
        return frozenset("" if value is None else str(value).strip() for value in set(values))

    def text(self, column: str, row: int) -> str:
        """Return the text of a cell, ``""`` where it is empty."""
        value = self._columns[column][row]
        if isinstance(value, list):
            raise AnnotationFormatError(
                "A cell holds a list", where=self.where(row), expected=f"one {column}"
            )
        return self._checked(value, row)

    def values(self, column: str, row: int, *, many: bool) -> Sequence[str]:
        """Return the classes of a cell: blanks separate numbers, ``;`` and ``|`` names; one class unless `many`."""
        value = self._columns[column][row]
        if isinstance(value, list):
            return [self._checked(str(item), row) for item in value if item is not None]
        text = self._checked(value, row)
        if not many:
            return [text] if text else []
        parts = text.split()
        if not all(part.lstrip("-").isdigit() for part in parts):
            parts = [part.strip() for part in _NAME_SEPARATOR.split(text)]
        return [part for part in parts if part]

    def _checked(self, value: Any, row: int) -> str:
        text = "" if value is None else str(value).strip()
        if len(text) > _MAX_CELL:
            limit = f"at most {_MAX_CELL:,} characters"
            found = f"{len(text):,}"
            raise AnnotationFormatError(
                "A cell is too long", where=self.where(row), expected=limit, found=found
            )
        return text


def read_cells(content: FileContent) -> Cells:
    """Return the cells of a table in memory; its suffix tells the format.

    Raises
    ------
    AnnotationFormatError
        The bytes are not such a table.
    """
    import pyarrow

    suffix = PurePath(content.name.lower().removesuffix(".gz")).suffix
    if not content.data[:_MAX_HEADER].strip():
        raise AnnotationFormatError("The table is empty", where=content.name, expected="a header and rows")
    try:
        if suffix == ".parquet":
            return Cells(content.name, _parquet(content), first_line=0)
        return Cells(content.name, _delimited(content, "\t" if suffix == ".tsv" else ","), first_line=2)
    except (pyarrow.ArrowException, OSError) as error:
        raise AnnotationFormatError(
            "The table cannot be read",
            where=content.name,
            expected=f"{suffix[1:]} in UTF-8",
            found=str(error)[:300],
        ) from None


def _delimited(content: FileContent, delimiter: str) -> dict[str, list[Any]]:
    import pyarrow
    from pyarrow import csv as arrow_csv

    names = _header(content, delimiter)
    table = arrow_csv.read_csv(
        pyarrow.BufferReader(content.data),
        # Cells stay texts: a reader that guesses types would turn 000012 into 12.
        read_options=arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=False
        ),
    )
    return {name: table.column(name).to_pylist() for name in names}


def _header(content: FileContent, delimiter: str) -> list[str]:
    line = content.data[:_MAX_HEADER].split(b"\n", 1)[0].rstrip(b"\r")
    try:
        names = next(csv.reader([line.decode("utf-8")], delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error, StopIteration) as error:
        raise AnnotationFormatError(
            "The header of the table cannot be read", where=f"{content.name}: row 1", found=str(error)[:200]
        ) from None
    if len(set(names)) != len(names):
        raise AnnotationFormatError(
            "Two columns of the table have one name",
            where=f"{content.name}: row 1",
            found=", ".join(names)[:200],
        )
    return names


def _parquet(content: FileContent) -> dict[str, list[Any]]:
    import pyarrow
    from pyarrow import parquet

    file = parquet.ParquetFile(pyarrow.BufferReader(content.data))
    groups = range(file.metadata.num_row_groups)
    size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
    if size > _MAX_PARQUET:
        raise AnnotationFormatError(
            "The table unpacks to more than any table of image and class",
            where=content.name,
            expected=f"at most {_MAX_PARQUET:,} bytes",
            found=f"{size:,}",
        )
    table = file.read(use_threads=False)
    return {name: table.column(name).to_pylist() for name in dict.fromkeys(table.column_names)}
