"""Reader of plain tables of image and class, CSV or TSV: `parse_table`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.core.columns import distinct
from curation.core.errors import AnnotationFormatError, CurationError, DanglingIdError, UsageError
from curation.core.ids import is_native, native_of
from curation.core.tables import csv_header
from curation.sources.datasets import COCO_CATEGORIES, NUMBERED_CLASSES, VOC_NAMES, family, is_known, namespace_of
from curation.sources.integrity import check_image_name, check_label, check_unique
from curation.sources.source import Categories, FileRecord, Images, Source

if TYPE_CHECKING:
    import pandas as pd

    from curation.core.reading import InputFile

IMAGE_COLUMNS = ("image", "image_id", "file_name")
CLASS_COLUMNS = ("class", "category", "label", "category_id")
LIST_COLUMNS = ("classes", "categories", "labels", "category_ids", "category_ids_91")
SUFFIXES = (".csv", ".tsv")
_PART_COLUMN = re.compile(r"(?:split|part|subset)_?[0-9]*\Z", re.IGNORECASE)
_COCO_PREFIX = re.compile(r"COCO_[a-z0-9]+_(?=[0-9]{1,12}\Z)")
_IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png")
_NAME_SEPARATOR = re.compile(r"[;|]")
_MAX_HEADER = 1 << 16
_BLOCK = 1 << 26


def parse_table(content: InputFile, *, dataset: str, part: str) -> Source:
    """Return a presence-only source: which classes each image shows, no boxes.

    The table has a header. Its image column is called ``image``, ``image_id`` or ``file_name``. Classes are one a row
    (``class``, ``category``, ``label``, ``category_id``) or several in a cell (``classes``, ``categories``,
    ``labels``, ``category_ids``, ``category_ids_91``): numbers separated by blanks, names by ``;`` or ``|``. An empty
    cell states that the image is in the dataset and shows no class. The id of an image is the stem of its file; of a
    user's table in which two files share a stem, ids are the paths.

    Parameters
    ----------
    content : InputFile
        Of a ``.csv`` or ``.tsv`` file.
    dataset, part : str
        For example ``coco`` and ``train2017``. A table that has the part as a value of one of its other columns is
        read for these rows only; one that tells parts apart in a column called ``split``, ``part`` or ``subset`` (a
        year may follow) has to hold it. A table without such a column is the part.

    Raises
    ------
    AnnotationFormatError, DuplicateIdError, DanglingIdError
        The file is not what it should be; the error names the row.
    UsageError
        The table tells parts apart and this is none of them, or which is meant is not said; two columns hold the
        part's name.
    """
    chosen, natives, n_rows = rows_by_image(content, dataset, part)
    image_column = _column(chosen, IMAGE_COLUMNS, "image", content.name)
    class_column = _column(chosen, CLASS_COLUMNS + LIST_COLUMNS, "class", content.name)
    many = class_column in LIST_COLUMNS
    rows, names, namespace = chosen.index.tolist(), chosen[image_column].tolist(), namespace_of(dataset)

    def where(row: int) -> str:
        return f"{content.name}: row {rows[row] + 2}"

    if many:
        check_unique(natives, "image", where)
    # A hundred thousand images show a few thousand combinations of classes: each cell is read once.
    cell_of, cells = chosen[class_column].factorize()
    cell_classes = [_several(cell) if many else [cell] if cell else [] for cell in cells]
    first_rows = np.unique(cell_of, return_index=True)[1]
    categories, class_of = _classes(dataset, cell_classes, lambda cell: where(first_rows[cell]))
    classes = [[class_of[value] for value in values] for values in cell_classes]
    position = {native: number for number, native in enumerate(dict.fromkeys(natives))}
    pairs = [
        position[native] * len(categories) + number
        for native, cell in zip(natives, cell_of.tolist(), strict=True)
        for number in classes[cell]
    ]
    if namespace != "coco" and len(position) < len(natives):
        native_of_file = {
            name.replace("\\", "/"): native for name, native in zip(names, natives, strict=True) if _is_file_name(name)
        }
        hint = "the id of an image is the stem of its file: give each an id of its own, in a column image_id"
        check_unique(
            [*native_of_file.values()], "image name", lambda row: f"{content.name}: {[*native_of_file][row]}", hint=hint
        )
    first = dict(zip(reversed(natives), reversed(names), strict=True))
    files = [name if _is_file_name(name := first[native]) else "" for native in position]
    return Source.of(
        dataset,
        part,
        images=Images.of(list(position), file_names=files),
        categories=categories,
        objects=None,
        presence=np.stack(np.divmod(distinct(np.array(pairs, np.int64)), len(categories)), 1).astype(np.int32),
        files=(FileRecord(content.name, content.sha256, content.size, n_rows),),
    )


def rows_by_image(content: InputFile, dataset: str, part: str) -> tuple[pd.DataFrame, list[str], int]:
    """Return the rows of a part as texts, the native id of the image of each, and the rows of all parts."""
    table = read_texts(content)
    image_column = _column(table, IMAGE_COLUMNS, "image", content.name)
    class_column = _column(table, CLASS_COLUMNS + LIST_COLUMNS, "class", content.name)
    chosen = _rows_of_part(table, part, {image_column, class_column}, content.name)
    rows, namespace = chosen.index.tolist(), namespace_of(dataset)
    # Class folders number their photos alike, cat/001.jpg and dog/001.jpg: ids are then the paths, as of the folders.
    by_path = not is_known(dataset) and _share_stems(table[image_column].tolist())
    natives = [_native(name, namespace, by_path=by_path) for name in chosen[image_column].tolist()]
    for row, native in enumerate(natives):
        if not is_native(native):
            check_image_name(native, f"{content.name}: row {rows[row] + 2}")
    return chosen, natives, len(table)


def read_texts(content: InputFile, error: type[CurationError] = AnnotationFormatError) -> pd.DataFrame:
    """Return the cells of a table with a header as trimmed texts; raise `error` for anything else."""
    from pyarrow import Table, compute

    # Cells stay texts: a reader that guesses types would turn 000012 into 12.
    table = read_columns(content, None, error=error)
    cells = [compute.utf8_trim_whitespace(column) for column in table.columns]
    texts: pd.DataFrame = Table.from_arrays(cells, table.column_names).to_pandas()
    return texts


def read_columns(
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


def _column(table: pd.DataFrame, names: Sequence[str], kind: str, where: str) -> str:
    present = [name for name in names if name in table]
    # A file name beside an id says the same twice; two class columns would be two different statements.
    if len(present) == 1 or (present and kind == "image"):
        return present[0]
    raise AnnotationFormatError(
        f"The table has {'no' if not present else 'more than one'} {kind} column",
        where=f"{where}: header",
        expected=f"one column called {', '.join(names)}",
        found=", ".join(present or table.columns)[:200],
    )


def _rows_of_part(table: pd.DataFrame, part: str, used_columns: set[str], where: str) -> pd.DataFrame:
    """Return the rows of the wanted part by the column that tells the table's parts apart; else all rows."""
    others = [name for name in table.columns if name not in used_columns]
    part_columns = [name for name in others if _PART_COLUMN.match(name)]
    holding = [name for name in others if part and (table[name] == part).any()]
    # A column that is called so outranks one that holds the same word by chance.
    chosen = [name for name in holding if name in part_columns] or holding
    if len(chosen) > 1:
        raise UsageError(
            "Two columns of the table hold the name of the part",
            where=f"{where}: header",
            expected=f"one of them, or one called split, with the value {part!r}"[:200],
            found=", ".join(chosen)[:200],
            hint="call the column that tells the parts apart split, and the others otherwise",
        )
    if chosen:
        return table[table[chosen[0]] == part]
    if part_columns and (part or any(table[name].nunique() > 1 for name in part_columns)):
        values = (f"{name}: {', '.join(sorted(set(table[name]))[:10])}" for name in part_columns)
        raise UsageError(
            f"The table holds no rows of part {part[:80]!r}" if part else "The table holds several parts",
            where=f"{where}: column {', '.join(part_columns)}"[:300],
            expected="one of the values of such a column",
            found="; ".join(values)[:300],
            hint="--source NAME@PART=PATH chooses the rows of a part",
        )
    return table


def _several(cell: str) -> list[str]:
    """Return the classes of a cell: blanks separate numbers, ``;`` and ``|`` names."""
    parts = cell.split()
    if not all(part.lstrip("-").isdigit() for part in parts):
        parts = [part.strip() for part in _NAME_SEPARATOR.split(cell)]
    return [part for part in parts if part]


def _is_file_name(text: str) -> bool:
    return text.lower().endswith(_IMAGE_SUFFIXES)


def _share_stems(names: Iterable[str]) -> bool:
    """Return whether two files of different paths have the same stem."""
    paths = {name.replace("\\", "/") for name in names if _is_file_name(name)}
    return len(set(map(_stem, paths))) < len(paths)


def _stem(path: str) -> str:
    last = path.rpartition("/")[2]
    return last.rpartition(".")[0] or last


def _native(text: str, namespace: str, *, by_path: bool) -> str:
    name = text
    if _is_file_name(text):
        name = text.replace("\\", "/")
        name = name if by_path else _stem(name)
    return native_of(_COCO_PREFIX.sub("", name), namespace) if namespace == "coco" else native_of(name, namespace)


def _classes(
    dataset: str, cell_classes: Sequence[Sequence[str]], where: Callable[[int], str]
) -> tuple[Categories, Mapping[str, int]]:
    """Return the classes of a table, and the position of each by what a cell calls it: its name, or its number."""
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
                "A row names a class that is not known",
                where=where(row),
                expected=", ".join(categories.names)[:200] or "names of classes",
                found=repr(value)[:80],
                hint="write the names of classes in place of numbers",
            )
    return categories, positions
