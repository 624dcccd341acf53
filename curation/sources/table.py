"""Reader of plain tables of image and class, CSV or TSV: `parse_table`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from curation.core.columns import distinct, encoded, first_places, text_array, values_of
from curation.core.errors import AnnotationFormatError, CurationError, DanglingIdError, UsageError
from curation.core.ids import MAX_NATIVE_LENGTH, is_native, native_of
from curation.core.tables import csv_header
from curation.core.wording import did_you_mean
from curation.sources.datasets import COCO_CATEGORIES, NUMBERED_CLASSES, VOC_NAMES, family, is_known, namespace_of
from curation.sources.integrity import check_image_name, check_label, check_unique
from curation.sources.source import Categories, FileRecord, Images, Int64s, Source

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    import pyarrow

    from curation.core.reading import InputFile

IMAGE_COLUMNS = ("image", "image_id", "file_name")
CLASS_COLUMNS = ("class", "category", "label", "category_id")
LIST_COLUMNS = ("classes", "categories", "labels", "category_ids", "category_ids_91")
SUFFIXES = (".csv", ".tsv")
_PART_COLUMN = re.compile(r"(?:split|part|subset)_?[0-9]*\Z", re.IGNORECASE)
_COCO_PREFIX = re.compile(r"COCO_[a-z0-9]+_(?=[0-9]{1,12}\Z)")
_IMAGE_SUFFIX = r"(?i)\.(?:jpg|jpeg|png)\z"
_NAME_SEPARATOR = re.compile(r"[;|]")
_MAX_HEADER = 1 << 16
_BLOCK = 1 << 26


def parse_table(content: InputFile, *, dataset: str, part: str) -> Source:
    """Return the presence-only source of a table: the classes of each image, without boxes.

    The table has a header. Its image column is called ``image``, ``image_id`` or ``file_name``. Classes are one per row
    (``class``, ``category``, ``label``, ``category_id``) or several in a cell (``classes``, ``categories``,
    ``labels``, ``category_ids``, ``category_ids_91``): numbers separated by blanks, names by ``;`` or ``|``. An empty
    cell states that the image is in the dataset and shows no class. The id of an image is the stem of its file; of a
    user's table in which two files share a stem, ids are the paths.

    Parameters
    ----------
    content : InputFile
        A ``.csv`` or ``.tsv`` file.
    dataset, part : str
        For example ``coco`` and ``train2017``. If another column of the table contains the name of the part, only these
        rows are read. A table with a column ``split``, ``part`` or ``subset`` (a year may follow) must contain the
        part. A table without such a column is the part.

    Raises
    ------
    AnnotationFormatError, DuplicateIdError, DanglingIdError
        The file is malformed; the error names the row.
    UsageError
        The table has several parts and `part` is empty or not one of them; or two columns contain the name of the part.
    """
    rows = image_rows(content, dataset, part)
    class_column = _column(rows.table, CLASS_COLUMNS + LIST_COLUMNS, "class", content.name)
    many = class_column in LIST_COLUMNS
    if many:
        check_unique(rows.natives.to_pylist(), "image", lambda row: rows.location(row))
    # A hundred thousand images have a few thousand distinct class cells: each is parsed once.
    cell_of, cells = encoded(rows.table[class_column])
    cell_classes = [_several(cell) if many else [cell] if cell else [] for cell in cells.to_pylist()]
    first_rows = first_places(cell_of, len(cells))
    categories, class_of = _classes(dataset, cell_classes, lambda cell: rows.location(first_rows[cell]))
    classes = np.array([class_of[value] for values in cell_classes for value in values], np.int64)
    image_of, images = encoded(rows.natives)
    # For each row, the positions of its cell's classes, which are consecutive in `classes`.
    counts = np.array([*map(len, cell_classes)], np.int64)
    starts, repeats = (np.cumsum(counts) - counts)[cell_of], counts[cell_of]
    steps = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    pairs = np.repeat(image_of, repeats) * len(categories) + classes[np.repeat(starts, repeats) + steps]
    if namespace_of(dataset) != "coco" and len(images) < len(image_of):
        pairs_of_names = zip(rows.files.to_pylist(), rows.natives.to_pylist(), strict=True)
        native_of_file = {name.replace("\\", "/"): native for name, native in pairs_of_names if name}
        hint = "the id of an image is the stem of its file: add a column image_id with distinct ids"
        check_unique(
            [*native_of_file.values()], "image name", lambda row: f"{content.name}: {[*native_of_file][row]}", hint=hint
        )
    files = rows.files.take(first_places(image_of, len(images)))
    return Source.of(
        dataset,
        part,
        images=Images.of(images.to_pylist(), file_names=files.to_pylist()),
        categories=categories,
        objects=None,
        presence=np.stack(np.divmod(distinct(pairs), len(categories)), 1).astype(np.int32),
        files=(FileRecord(content.name, content.sha256, content.size, rows.total),),
    )


class ImageRows(NamedTuple):
    """Rows of a table, each for one image.

    Attributes
    ----------
    table : pyarrow.Table
        The rows of a part, as trimmed texts.
    natives, files : pyarrow.LargeStringArray
        Native id of the image of each row, and its file name; ``""`` for a row without an image file.
    numbers : ndarray of int64, shape (n,)
        Number of each row in the file, from 0.
    total : int
        Number of rows of all parts.
    table_name : str
        Name of the file.
    """

    table: pyarrow.Table
    natives: pyarrow.LargeStringArray
    files: pyarrow.LargeStringArray
    numbers: Int64s
    total: int
    table_name: str

    def location(self, row: int) -> str:
        """Return the position of a row in the file for messages."""
        return f"{self.table_name}: row {self.numbers[row] + 2}"


def image_rows(content: InputFile, dataset: str, part: str) -> ImageRows:
    """Return the rows of a part, with the native id of the image of each."""
    table = read_texts(content)
    image_column = _column(table, IMAGE_COLUMNS, "image", content.name)
    numbers, total = _rows_of_part(table, part, content.name), len(table)
    natives, files = _names_of_images(table[image_column], dataset)
    if len(numbers) < len(table):
        table, natives, files = (each.take(numbers) for each in (table, natives, files))
    rows = ImageRows(table, natives, files, numbers, total, content.name)
    for row in np.flatnonzero(~_are_plain(natives)).tolist():
        if not is_native(native := natives[row].as_py()):
            check_image_name(native, rows.location(row))
    return rows


def texts_of_part(content: InputFile, part: str) -> pyarrow.Table:
    """Return the rows of a part as trimmed texts."""
    table = read_texts(content)
    return table.take(_rows_of_part(table, part, content.name))


def without_fraction(column: pd.Series) -> pd.Series:
    """Return a column of numbers such as 1.0, as programs write columns with gaps, as whole numbers; else unchanged."""
    is_whole = len(column) and column.str.fullmatch(r"-?[0-9]{1,15}(\.0+)?").all()
    return column.str.partition(".")[0] if is_whole else column


def read_texts(content: InputFile, error: type[CurationError] = AnnotationFormatError) -> pyarrow.Table:
    """Return the cells of a table with a header as trimmed texts; raise `error` for another file."""
    from pyarrow import Table, compute

    # Cells stay texts: a reader that guesses types would turn 000012 into 12.
    table = read_csv_columns(content, None, error=error)
    cells = [
        compute.utf8_trim_whitespace(column.cast("large_string").combine_chunks()) for column in table.itercolumns()
    ]
    return Table.from_arrays(cells, table.column_names)


def read_csv_columns(
    content: InputFile,
    kinds: Mapping[str, Any] | None,
    *,
    required: Sequence[str] | None = None,
    error: type[CurationError] = AnnotationFormatError,
) -> Any:
    """Return columns of a CSV or TSV file with a header as a pyarrow.Table; other columns are skipped.

    An empty cell is null in a column of numbers and ``""`` in one of texts.

    Parameters
    ----------
    kinds : mapping of str to pyarrow.DataType or str, optional
        Types of the columns; by default all columns are texts.
    required : sequence of str, optional
        Columns that must be there; by default all of `kinds`.
    error : type of CurationError
        Raised where a column is missing, a row has another number of cells, or a value does not fit.
    """
    import pyarrow
    from pyarrow import csv as arrow_csv

    suffix = PurePath(content.name.lower().removesuffix(".gz")).suffix
    delimiter = "\t" if suffix == ".tsv" else ","
    line = content.data[:_MAX_HEADER].split(b"\n", 1)[0]
    header = csv_header(line, error, where=f"{content.name}: row 1", delimiter=delimiter)
    kinds = dict.fromkeys(header, "string") if kinds is None else kinds
    missing = [name for name in (kinds if required is None else required) if name not in header]
    if missing:
        expected, names = ", ".join(missing), ", ".join(header)[:300]
        raise error("The table lacks a column", where=f"{content.name}: row 1", expected=expected, found=names)
    types = {
        name: pyarrow.type_for_alias(kind) if isinstance(kind, str) else kind
        for name, kind in kinds.items()
        if name in header
    }
    try:
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(content.data),
            # Without threads errors name the row.
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(types), column_types=types, null_values=[""], strings_can_be_null=False
            ),
        )
    except pyarrow.ArrowException as reason:
        row = re.search(r"Row #(\d+)", str(reason))
        raise error(
            "The table cannot be read",
            where=f"{content.name}: row {row[1]}" if row else content.name,
            expected=f"{suffix[1:]} in UTF-8 with {len(header)} columns in each row",
            found=str(reason)[:300],
        ) from None
    return table


def _column(table: pyarrow.Table, names: Sequence[str], kind: str, where: str) -> str:
    present = [name for name in names if name in table.column_names]
    # A file name beside an id is redundant, but two class columns would contradict each other.
    if len(present) == 1 or (present and kind == "image"):
        return present[0]
    raise AnnotationFormatError(
        f"The table has {'no' if not present else 'more than one'} {kind} column",
        where=f"{where}: header",
        expected=f"one column called {', '.join(names)}",
        found=", ".join(present or table.column_names)[:200],
    )


def _rows_of_part(table: pyarrow.Table, part: str, where: str) -> Int64s:
    """Return the rows of a part by the column that states the part, or all rows if the table has no such column."""
    from pyarrow import compute

    used = (_column(table, IMAGE_COLUMNS, "image", where), _column(table, CLASS_COLUMNS + LIST_COLUMNS, "class", where))
    others = [name for name in table.column_names if name not in used]
    part_columns = [name for name in others if _PART_COLUMN.match(name)]
    holding = [name for name in others if part and compute.index(table[name], part).as_py() >= 0]
    # A column with such a name takes precedence over one that contains the same word by chance.
    chosen = [name for name in holding if name in part_columns] or holding
    if len(chosen) > 1:
        raise UsageError(
            "Two columns of the table hold the name of the part",
            where=f"{where}: header",
            expected=f"one of them, or one called split, with the value {part!r}"[:200],
            found=", ".join(chosen)[:200],
            hint="rename the column with the parts to split, and the other column to another name",
        )
    if chosen:
        return np.flatnonzero(values_of(compute.equal(table[chosen[0]], part).combine_chunks()))
    values_in = {name: sorted(table[name].unique().to_pylist()) for name in part_columns}
    if part_columns and (part or any(len(values) > 1 for values in values_in.values())):
        values = (f"{name}: {', '.join(several[:10])}" for name, several in values_in.items())
        raise UsageError(
            f"The table holds no rows of part {part[:80]!r}" if part else "The table holds several parts",
            where=f"{where}: column {', '.join(part_columns)}"[:300],
            expected="one of the values of such a column",
            found="; ".join(values)[:300],
            hint="--source NAME@PART=PATH chooses the rows of a part",
        )
    return np.arange(len(table))


def _several(cell: str) -> list[str]:
    """Return the classes of a cell: blanks separate numbers, ``;`` and ``|`` names."""
    parts = cell.split()
    if not all(part.lstrip("-").isdigit() for part in parts):
        parts = [part.strip() for part in _NAME_SEPARATOR.split(cell)]
    return [part for part in parts if part]


def _names_of_images(names: Any, dataset: str) -> tuple[Any, Any]:
    """Return the native ids for the image names of a table, and the names that are image files."""
    from pyarrow import compute, scalar

    is_file = compute.match_substring_regex(names, _IMAGE_SUFFIX)
    paths = compute.replace_substring(names, "\\", "/")
    last = compute.replace_substring_regex(paths, r"(?s)^.*/", "")
    stems = compute.replace_substring_regex(last, r"(?s)(.)\.[^.]*\z", r"\1")
    # Class folders may repeat file names (cat/001.jpg, dog/001.jpg): the ids are then paths, as for class folders.
    n_files = len(files := stems.filter(is_file))
    by_path = not is_known(dataset) and (n := len(files.unique())) < n_files and n < len(paths.filter(is_file).unique())
    natives = compute.if_else(is_file, paths if by_path else stems, names).combine_chunks()
    if (namespace := namespace_of(dataset)) in ("coco", "voc2007", "voc2012"):
        texts = natives.to_pylist()
        texts = [_COCO_PREFIX.sub("", text) for text in texts] if namespace == "coco" else texts
        natives = text_array([native_of(text, namespace) for text in texts])
    return natives, compute.if_else(is_file, names, scalar("", names.type)).combine_chunks()


def _are_plain(natives: Any) -> npt.NDArray[np.bool_]:
    """Return a mask of the texts that are native ids of printable ASCII; `is_native` decides on the others."""
    from pyarrow import compute

    trimmed = compute.ascii_trim_whitespace(natives)
    length = values_of(compute.binary_length(natives))
    printable = values_of(compute.and_(compute.ascii_is_printable(natives), compute.equal(trimmed, natives)))
    return np.asarray(printable & (length > 0) & (length <= MAX_NATIVE_LENGTH), np.bool_)


def _classes(
    dataset: str, cell_classes: Sequence[Sequence[str]], where: Callable[[int], str]
) -> tuple[Categories, Mapping[str, int]]:
    """Return the classes of a table, and the position of each class by the text in a cell: its name or number."""
    first = {value: row for row, values in reversed(list(enumerate(cell_classes))) for value in values}
    if family(dataset) == "coco":
        numbers, names, supercategories = zip(*COCO_CATEGORIES, strict=True)
        categories = Categories(numbers, names, supercategories)
    elif dataset in ("voc2007", "voc2012"):
        categories = Categories.counted(VOC_NAMES)
    else:
        categories = Categories.counted(
            sorted(value for value in first if dataset in NUMBERED_CLASSES or not value.isdigit())
        )
    positions = categories.index()
    if categories.names and family(dataset) in ("coco", "voc"):
        positions |= {str(number): position for position, number in enumerate(categories.numbers)}
    for value, row in sorted(first.items(), key=lambda item: item[1]):
        check_label(value, where(row))
        if value not in positions:
            raise DanglingIdError(
                "Unknown class in a row",
                where=where(row),
                expected=", ".join(categories.names)[:200] or "names of classes",
                found=repr(value)[:80],
                hint="write class names instead of numbers"
                if value.isdigit()
                else did_you_mean(value, categories.names),
            )
    return categories, positions
