"""Reader of plain tables of image and class, CSV, TSV or Parquet: `read_table`; and of their cells: `read_cells`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

import numpy as np

from curation.csv_table import csv_header
from curation.errors import AnnotationFormatError, DanglingIdError, UsageError
from curation.ids import native_of
from curation.parquet_limits import largest_text, text_columns, values_in
from curation.sources.content import FileContent, check_name
from curation.sources.datasets import COCO_CATEGORIES, VOC_NAMES, family, namespace_of
from curation.sources.integrity import check_unique
from curation.sources.source import Categories, FileRecord, Images, Source

IMAGE_COLUMNS = ("image", "image_id", "file_name")
CLASS_COLUMNS = ("class", "category", "label", "category_id")
LIST_COLUMNS = ("classes", "categories", "labels", "category_ids", "category_ids_91")
_PART_COLUMN = re.compile(r"(?:split|part|subset)_?[0-9]*\Z", re.IGNORECASE)
_COCO_PREFIX = re.compile(r"COCO_[a-z0-9]+_(?=[0-9]{1,12}\Z)")
_IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png")

Split = tuple[str, str]


def read_table(path: Path, *, dataset: str, part: str, split: Split | None = None) -> Source:
    """Return a presence-only source: which classes each image shows, no boxes.

    The table has a header. Its image column is called ``image``, ``image_id`` or ``file_name``. Classes stand one a row
    (``class``, ``category``, ``label``, ``category_id``) or several in a cell (``classes``, ``categories``,
    ``labels``, ``category_ids``, ``category_ids_91``): numbers separated by blanks, names by ``;`` or ``|``, or a
    Parquet list. An empty cell states that the image is in the dataset and shows no class.

    Parameters
    ----------
    path : Path
        ``.csv``, ``.tsv`` or ``.parquet``.
    dataset, part : str
        For example ``coco`` and ``train2017``. A table that has the part as a value of one of its other columns is
        read for these rows only; one that tells parts apart in a column called ``split``, ``part`` or ``subset`` (a
        year may follow) has to hold it. A table without such a column is the part.
    split : (str, str), optional
        Column and value that choose the rows, in place of `part`.

    Raises
    ------
    MissingFileError, AnnotationFormatError, DuplicateIdError, DanglingIdError
        The file cannot be read, or is not what it should be; the error names the row.
    UsageError
        The table tells parts apart and this is none of them, or which is meant is not said; two columns hold the
        part's name; the chosen split column does not exist or never has that value.
    """
    return parse_table(FileContent(path), dataset=dataset, part=part, split=split)


def parse_table(content: FileContent, *, dataset: str, part: str, split: Split | None = None) -> Source:
    """Return the source in a table that is in memory already (see `read_table`)."""
    cells = read_cells(content)
    image_column = _column(cells, IMAGE_COLUMNS, "image")
    class_column = _column(cells, CLASS_COLUMNS + LIST_COLUMNS, "class")
    many = class_column in LIST_COLUMNS
    rows = _rows(cells, part, split, {image_column, class_column})
    stated = [cells.values(class_column, row, many=many) for row in rows]
    names = [cells.text(image_column, row) for row in rows]
    natives = [_native(name, namespace_of(dataset), cells.where(row)) for row, name in zip(rows, names, strict=True)]
    if many:
        check_unique(natives, "image", lambda index: cells.where(rows[index]))
    first = dict(zip(reversed(natives), reversed(names), strict=True))
    place = {native: number for number, native in enumerate(dict.fromkeys(natives))}
    categories, class_of = _classes(dataset, stated)
    pairs = set()
    for row, native, values in zip(rows, natives, stated, strict=True):
        for value in values:
            if value not in class_of:
                raise DanglingIdError(
                    "A row names a class that is not known",
                    where=cells.where(row),
                    expected=", ".join(categories.names)[:200] or "names of classes",
                    found=repr(value)[:80],
                    hint="write the names of classes in place of numbers",
                )
            pairs.add((place[native], class_of[value]))
    return Source.of(
        dataset,
        part,
        images=Images.of(list(place), file_names=[first[one] if _is_file_name(first[one]) else "" for one in place]),
        categories=categories,
        objects=None,
        presence=np.array(sorted(pairs), np.int32).reshape(-1, 2),
        files=(FileRecord(content.name, content.sha256, content.size, cells.rows),),
    )


def _column(cells: Cells, names: Sequence[str], kind: str) -> str:
    found = [name for name in names if name in cells.columns]
    # A file name beside an id says the same twice; two class columns would be two different statements.
    if len(found) == 1 or (found and kind == "image"):
        return found[0]
    what = f"The table has {'no' if not found else 'more than one'} {kind} column"
    where, expected = f"{cells.name}: header", f"one column called {', '.join(names)}"
    raise AnnotationFormatError(what, where=where, expected=expected, found=", ".join(found or cells.columns)[:200])


def _rows(cells: Cells, part: str, split: Split | None, taken: set[str]) -> Sequence[int]:
    split = split or _split_of(cells, part, [name for name in cells.columns if name not in taken])
    if split is None:
        return range(cells.rows)
    column, value = split
    if column not in cells.columns:
        expected = ", ".join(cells.columns)[:200]
        raise UsageError("The table has no such column", where=cells.name, expected=expected, found=column[:80])
    if value not in cells.distinct(column):
        raise _no_such_part(cells, value, [column])
    return [row for row in range(cells.rows) if cells.text(column, row) == value]


def _split_of(cells: Cells, part: str, columns: Sequence[str]) -> Split | None:
    """Return the column that tells the table's parts apart, with the wanted part; None where all rows are one part."""
    named = [name for name in columns if _PART_COLUMN.match(name)]
    holding = [name for name in columns if part and part in cells.distinct(name)]
    # A column that is called so outranks one that holds the same word by chance.
    chosen = [name for name in holding if name in named] or holding
    if len(chosen) > 1:
        raise UsageError(
            "Two columns of the table hold the name of the part",
            where=f"{cells.name}: header",
            expected=f"one of them, or one called split, with the value {part!r}"[:200],
            found=", ".join(chosen)[:200],
            hint="call the column that tells the parts apart split, and the others otherwise",
        )
    if chosen:
        return chosen[0], part
    if named and (part or any(len(cells.distinct(name)) > 1 for name in named)):
        raise _no_such_part(cells, part, named)
    return None


def _no_such_part(cells: Cells, part: str, columns: Sequence[str]) -> UsageError:
    values = (f"{name}: {', '.join(sorted(cells.distinct(name))[:10])}" for name in columns)
    return UsageError(
        f"The table holds no rows of part {part[:80]!r}" if part else "The table holds several parts",
        where=f"{cells.name}: column {', '.join(columns)}"[:300],
        expected="one of the values of such a column",
        found="; ".join(values)[:300],
        hint="--source NAME@PART=PATH chooses the rows of a part",
    )


def _is_file_name(text: str) -> bool:
    return text.lower().endswith(_IMAGE_SUFFIXES)


def _native(text: str, namespace: str, where: str) -> str:
    name = PurePosixPath(text.replace("\\", "/")).stem if _is_file_name(text) else text
    native = native_of(_COCO_PREFIX.sub("", name) if namespace == "coco" else name, namespace)
    check_name(native, where)
    return native


def _classes(dataset: str, stated: Sequence[Sequence[str]]) -> tuple[Categories, Mapping[str, int]]:
    """Return the classes of a table, and the position of each by what a cell calls it: its name, or its number."""
    if family(dataset) == "coco":
        names = {number: name for number, name, _ in COCO_CATEGORIES}
    elif dataset in ("voc2007", "voc2012"):
        names = dict(enumerate(VOC_NAMES, start=1))
    else:
        found = sorted({value for values in stated for value in values if not value.isdigit()})
        return Categories.counted(found), {name: place for place, name in enumerate(found)}
    parents = {name: parent for _, name, parent in COCO_CATEGORIES} if family(dataset) == "coco" else {}
    listed = tuple(names.values())
    places = {str(number): place for place, number in enumerate(names)} | {name: i for i, name in enumerate(listed)}
    return Categories(tuple(names), listed, tuple(parents.get(name, "") for name in listed)), places


SUFFIXES = (".csv", ".tsv", ".parquet")
_MAX_CELL = 1 << 16
_MAX_PARQUET = 1 << 30
_MAX_VALUES = 1 << 27
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
            raise AnnotationFormatError("A cell holds a list", where=self.where(row), expected=f"one {column}")
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
            limit, found = f"at most {_MAX_CELL:,} characters", f"{len(text):,}"
            raise AnnotationFormatError("A cell is too long", where=self.where(row), expected=limit, found=found)
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
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise AnnotationFormatError(
            "The table cannot be read", where=content.name, expected=f"{suffix[1:]} in UTF-8", found=str(error)[:300]
        ) from None


def _delimited(content: FileContent, delimiter: str) -> dict[str, list[Any]]:
    import pyarrow
    from pyarrow import csv as arrow_csv

    line = content.data[:_MAX_HEADER].split(b"\n", 1)[0]
    names = csv_header(line, AnnotationFormatError, where=f"{content.name}: row 1", delimiter=delimiter)
    table = arrow_csv.read_csv(
        pyarrow.BufferReader(content.data),
        # Cells stay texts: a reader that guesses types would turn 000012 into 12.
        read_options=arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=False
        ),
    )
    if table.column_names != list(names):
        # A quote that is never closed, say: the two readers of the header part ways.
        raise AnnotationFormatError(
            "The header of the table cannot be read",
            where=f"{content.name}: row 1",
            expected="names without quotes in them",
            found=", ".join(names)[:200],
        )
    return {name: table.column(name).to_pylist() for name in names}


def _parquet(content: FileContent) -> dict[str, list[Any]]:
    import pyarrow
    from pyarrow import parquet

    file = parquet.ParquetFile(pyarrow.BufferReader(content.data))
    groups, texts = range(file.metadata.num_row_groups), text_columns(file)
    size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
    if size <= _MAX_PARQUET and sum(values_in(file, group) for group in groups) <= _MAX_VALUES:
        folded = parquet.ParquetFile(pyarrow.BufferReader(content.data), read_dictionary=texts)
        size = sum(largest_text(folded, group, texts)[0] for group in groups)
    else:
        size = max(size, _MAX_PARQUET + 1)
    if size > _MAX_PARQUET:
        raise AnnotationFormatError(
            "The table unpacks to more than any table of image and class",
            where=content.name,
            expected=f"at most {_MAX_PARQUET:,} bytes and {_MAX_VALUES:,} values",
            found=f"{size:,} bytes" if size > _MAX_PARQUET + 1 else "more values",
        )
    table = file.read(use_threads=False)
    return {name: table.column(name).to_pylist() for name in dict.fromkeys(table.column_names)}
