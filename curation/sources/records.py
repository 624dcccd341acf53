"""Reader of image lists in tables and JSON.

Tables are CSV, TSV and the like with or without a header, and Parquet. JSON is an array, an object of arrays at any
depth, an array of objects, one object a line, COCO JSON, or classes.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from curation.core.columns import values_of
from curation.core.errors import AnnotationFormatError, DamagedFileError
from curation.core.json_text import refuse_repeated_keys
from curation.core.wording import slug
from curation.sources.entries import (
    LONGEST_LINE,
    MOST_CLASS_NAMES,
    SHARE,
    SHOWN,
    WNID,
    EmptyListError,
    OddLine,
    PublishedList,
    TextColumn,
    column_of,
    name_classes,
    texts_and_codes,
)
from curation.sources.list_roles import are_parts, read_role
from curation.sources.object_rows import image_columns
from curation.sources.stems import FILE_NAME, normalised_lines, text_of
from curation.sources.text_lines import VALUES, are_values, require_utf8

PATH_COLUMNS = ("image_location", "file_name", "path", "image_id")
"""Columns that name images regardless of their content, in order of preference."""
_IMAGE_NAMES = (
    *PATH_COLUMNS, "file", "filename", "image", "img", "img_path", "rel_path", "filepath", "image_path", "fpath_img",
    "imageid", "image_index", "image_name", "img_name", "image_file", "images", "imgs", "photo", "picture", "rgb",
    "file_path", "img_file", "image_filename", "img_filename", "imagepath", "imgpath", "images_path",
)  # fmt: skip
_ANY_IDS = ("id", "uid", "name", "slide_id", "video_id", "youtube_id", "ytid", "clip_id", "dicom_id")
_COMPANIONS = re.compile(
    r"mask|seg(?:_|m|\Z)|depth|annot|label|right|target|gt(?:_|\Z)|maps?(?:_|\Z)|salien|edges?(?:_|\Z)|flow|normals?(?:_|\Z)"
    r"|dispar|trimap|alpha|matte|pred|output|result|caption|xml|json|thumb|feature|embedding|noise|derived"
)
"""Names of columns with a second file of an image, such as a derived mask."""
_IMAGE_WORDS = re.compile(r"image|img|photo|picture|rgb|path|file")
_CLASS_COLUMNS = ("class", "label", "decision", "category", "target", "finding", "dx")
_PARTS = ("split", "subset", "set", "partition", "fold")
_BOX = {"xmin", "x_min", "x1", "bbox", "bbox_x", "xcenter", "x_center", "gtboxes"}
_OTHER_CELLS = "it has another number of cells than the header"
_NO_IMAGE = "it names no image"
_OTHER_LIST = re.compile(r"\.(?:txt|csv|tsv|json|jsonl|list|lst|py|zip|gz|tar)\Z", re.IGNORECASE)
_DECIMAL = re.compile(r"-?\d*\.\d+(?:e-?\d+)?", re.IGNORECASE)
_NO_NAME = re.compile(r"-?\d*\.?\d*(?:e-?\d+)?|(?i:true|false|yes|no|nan|none)")
_FLAGS = {"", "0", "1", "-1", "0.0", "1.0", "-1.0"}
_REST = "\0"
"""Key of the remaining cells of a row; no column has this name."""
_MOST_PARTS = 50
_FEWEST_FLAGS = 3
_FEWEST_RECORDS = 20
_CHUNK = 50_000
_BLOCK = 16 << 20
_HEAD = 1 << 16
_SAMPLE = 200


def read_list_table(data: bytes, where: str, suffix: str) -> dict[str, Any] | None:
    """Return the lists of a table, or None if the text is not a table.

    Raises
    ------
    AnnotationFormatError
        The table cannot be read, names a column twice, or has the suffix of a table but no column of images.
    """
    sample = data[:_HEAD].decode("utf-8", "ignore").removesuffix("\n").split("\n")
    sample = (sample if len(data) <= _HEAD else sample[:-1] or sample)[:_SAMPLE]
    headers = {mark: _cells(sample[:1], mark)[0] for mark in ";\t,"}
    for mark, header in headers.items():
        rows = [row for row in _cells(sample[1:], mark) if len(row) == len(header)]
        if not any(header) or (len(header) == 1 and (mark != "," or not _heads_alone(header[0], rows))):
            continue
        is_regular = len(rows) >= SHARE * (len(sample) - 1)
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        heads = not any(map(FILE_NAME.search, header))
        is_split = is_regular and len(set(header)) == len(header)
        if heads and is_split and _part_columns(dict(zip(header, columns, strict=True))):
            return _from_cells(data, mark, [name or f"column {at + 1}" for at, name in enumerate(header)], where)
        if heads and (is_regular or any(name in PATH_COLUMNS for name in header)) and _images_in(header, columns):
            if len(set(header)) < len(header):
                raise AnnotationFormatError(
                    "The table names a column twice", where=where, found=ascii(",".join(header))[:200]
                )
            return _from_cells(data, mark, header, where)
        files = [position for position, cells in enumerate(columns) if _has_files((header[position], *cells))]
        numbers = (
            mark == "\t" and len(header) == 2 and all(len(files) == 2 or row[1].strip("-").isdigit() for row in rows)
        )
        if is_regular and files and len(header) > 1 and not numbers:
            names = [f"column {number}" for number in range(1, len(header) + 1)]
            return _from_cells(data, mark, names, where, headed=False)
    header = max(headers.values(), key=len)
    if len(header) > 1 and suffix in (".csv", ".tsv"):
        raise AnnotationFormatError(
            "The table has no column of images", where=where,
            expected=f"one of {', '.join(_IMAGE_NAMES)}, or a column of files", found=ascii(", ".join(header))[:200],
        )  # fmt: skip
    return None


def read_objects(rows: Sequence[Any], where: str) -> dict[str, Any]:
    """Return the lists of an array of JSON objects; their lines are positions in the array."""
    return read_json_lines(msgspec.json.Encoder().encode_lines(rows), where)


def read_json_lines(data: bytes, where: str) -> dict[str, Any]:
    """Return the lists of a text with a JSON object in each line; other lines are reported."""
    import pyarrow

    sample = data[:_HEAD].split(b"\n")
    header, nested, boxes = _keys([row for _, row in _decoded(msgspec.json.Decoder(), sample[:-1] or sample)])
    fields = [(f"f{number}", Any, msgspec.field(name=key, default="")) for number, key in enumerate(header + nested)]
    lines = data.split(b"\n")
    rows = dict(_decoded(msgspec.json.Decoder(msgspec.defstruct("Row", fields, gc=False)), lines))
    odd = [
        OddLine(number, "it is not an object", ascii(line[:240].decode("utf-8", "replace"))[1:61])
        for number, line in enumerate(lines, start=1)
        if number not in rows and line.strip()
    ]
    cells = [
        pyarrow.array(map(_text if at < len(header) else str, map(attrgetter(name), rows.values())), pyarrow.string())
        for at, (name, *_) in enumerate(fields)
    ]
    numbers, table = np.array(list(rows), np.int32), pyarrow.table(cells, header + nested)
    return {"form": "json lines"} | _lists_of(table, numbers, odd, len(odd), where, nested=nested, boxes=boxes)


def read_parquet(path: Path) -> dict[str, Any]:
    """Return the lists of a Parquet file; their lines are rows, from 1."""
    table = image_columns(path)
    return {"form": "parquet"} | _lists_of(table, np.arange(1, len(table) + 1, dtype=np.int32), [], 0, str(path))


def _decoded(decoder: msgspec.json.Decoder[Any], lines: Sequence[bytes]) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                yield number, decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue


def _keys(rows: Sequence[Any]) -> tuple[list[str], list[str], bool]:
    """Return the keys of texts or numbers in objects, all other keys, and whether the objects have boxes."""
    rows = [row for row in rows[:_CHUNK] if isinstance(row, dict)]
    keys = {key: None for row in rows for key in row if _is_scalar(row[key])}
    nested = list(dict.fromkeys(key for row in rows for key in row if key not in keys))
    # Tasks and classes have names too, but the names of images are files.
    if "name" in keys and not _has_files([_text(row.get("name")) for row in rows[:_SAMPLE]]):
        del keys["name"]
    return list(keys), nested, any(key.lower() in _BOX for row in rows[:_SAMPLE] for key in row)


def image_name_key(array: Sequence[Any]) -> str:
    """Return the key under which objects name images; an empty text for other arrays, and for scores of images."""
    rows = array[:_SAMPLE]
    if not all(isinstance(row, dict) for row in rows):
        return ""
    header = list(dict.fromkeys(key for row in rows for key in row))
    columns = [[_text(row.get(key)) for row in rows] for key in header]
    images = _images_in(header, columns)
    if "score" in header or not images:
        return ""
    return header[images[0]] if slug(header[images[0]]) not in _ANY_IDS or _has_files(columns[images[0]]) else ""


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if _is_scalar(value) else ""


def _cells(lines: Sequence[str], mark: str) -> list[list[str]]:
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark)] or [[]]
    except csv.Error:
        # A line holds a carriage return, or a cell is too long.
        return [[]]


def _heads_alone(name: str, rows: Sequence[Sequence[str]]) -> bool:
    return name in PATH_COLUMNS or (slug(name) in _IMAGE_NAMES and bool(rows) and _has_files([row[0] for row in rows]))


def _has_files(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return bool(filled) and sum(map(bool, map(FILE_NAME.search, filled))) >= SHARE * len(filled)


def _images_in(header: Sequence[str], columns: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns that can name images, the most likely first: files, then others, then by name.

    The name decides, not the number of values: tables with the same header are read alike, and an image precedes
    files made from it, such as a mask.
    """
    ranked, boxes = [], not _BOX.isdisjoint(map(slug, header))
    for position, (name, cells) in enumerate(zip(header, columns, strict=True)):
        key, filled = slug(name), {cell for cell in cells if cell}
        files = _has_files(cells)
        old = PATH_COLUMNS.index(name) if name in PATH_COLUMNS else len(PATH_COLUMNS)
        is_image_name = key in _IMAGE_NAMES or key.endswith(("_path", "_file"))
        good = files or old < len(PATH_COLUMNS)
        if not good and filled and (is_image_name or key in _ANY_IDS):
            others = sum(map(bool, map(_OTHER_LIST.search, filled))) > len(filled) / 2
            few = others or (len(filled) < SHARE * len(cells) and not boxes)
            counted = key in _ANY_IDS and all(cell.isdigit() for cell in filled)
            good = not few and not counted and not name_classes(sorted(filled))
        if good:
            ranked.append(
                (not files, key in _ANY_IDS, len(filled) < min(len(cells), 2), *_name_rank(name), old, position)
            )
    return [rank[-1] for rank in sorted(ranked)]


def _name_rank(name: str) -> tuple[bool, int]:
    """Return whether a column name refers to derived files, and its distance from the name of an image column."""
    key = slug(name)
    distance = 0 if key in _IMAGE_NAMES else 1 if _IMAGE_WORDS.search(key) else 2
    return bool(_COMPANIONS.search(key)), distance


def _from_cells(data: bytes, mark: str, header: Sequence[str], where: str, *, headed: bool = True) -> dict[str, Any]:
    import pyarrow
    from pyarrow import compute
    from pyarrow import csv as tables

    require_utf8(data, where)
    others = list[Any]()

    def skip(row: Any) -> str:
        others.append(row)
        return "skip"

    try:
        table = tables.read_csv(
            pyarrow.BufferReader(data),
            tables.ReadOptions(use_threads=False, column_names=header, block_size=_BLOCK),
            tables.ParseOptions(
                delimiter=mark, newlines_in_values=b'"' in data, ignore_empty_lines=False,
                invalid_row_handler=skip,
            ),
            tables.ConvertOptions(check_utf8=False, column_types=dict.fromkeys(header, pyarrow.string())),
        )  # fmt: skip
    except pyarrow.ArrowInvalid as error:
        raise AnnotationFormatError("The table cannot be read", where=where, found=str(error)[:200]) from None
    odd = [OddLine(row.number, _OTHER_CELLS, row.text[:60]) for row in others]
    numbers = np.delete(np.arange(1, len(table) + len(odd) + 1), [row.line - 1 for row in odd]).astype(np.int32)
    if b'"' in data:
        breaks = sum(compute.count_substring(column, "\n").to_numpy() for column in table.columns)
        numbers += np.cumsum(breaks, dtype=np.int32)
    # A row without any cell is an empty line.
    filled = sum(compute.binary_length(column).to_numpy() for column in table.columns) > 0
    filled[:headed] = False
    if not filled.all():
        table, numbers = table.filter(filled), numbers[filled]
    short = sum(row.actual_columns < len(header) for row in others)
    return {"form": "csv"} | _lists_of(table, numbers, odd, short, where, headed=headed)


def _lists_of(
    table: Any, numbers: Any, odd: list[OddLine], short: int, where: str, *, headed: bool = True,
    nested: Sequence[str] = (), boxes: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the lists of a table of texts: the images of a column, and the other columns beside them.

    Columns of `nested` values and of measures only distinguish rows.
    """
    from pyarrow import compute

    header = [name for name in table.column_names if name not in nested]
    sample = {name: table[name].slice(0, _CHUNK).to_pylist() for name in header}
    if headed and (parts := _part_columns(sample)):
        return _of_part_columns(table, numbers, parts, where)
    images = [header[position] for position in _images_in(header, list(sample.values()))]
    used_columns = [name for name in header if name in images[:1] or not _decimal(sample[name])]
    cells = {name: table[name].combine_chunks() for name in used_columns} if images else {}
    if cells and len(used_columns) < len(table.column_names):
        rest = [table[name].combine_chunks() for name in table.column_names if name not in used_columns]
        cells[_REST] = compute.binary_join_element_wise(*rest, "\t")
    for name, column in cells.items():
        if compute.any(compute.match_substring(column, "\n")).as_py():
            # The separator becomes a character that names do not contain.
            cells[name] = compute.replace_substring(column, "\n", "\0")
    if images:
        cells[images[0]] = paths = compute.ascii_trim_whitespace(cells[images[0]])
        good = compute.and_(compute.utf8_is_printable(paths), compute.greater(compute.binary_length(paths), 0))
        if not compute.all(good).as_py():
            cells = {name: column.filter(good) for name, column in cells.items()}
            is_good = good.to_numpy(zero_copy_only=False)
            odd = odd + [OddLine(int(number), _NO_IMAGE, "") for number in numbers[~is_good]]
            numbers = numbers[is_good]
    if not images or not len(numbers):
        name = images[0] if images else "a column of images"
        raise AnnotationFormatError("The table names no image", where=where, expected=f"rows below {name}")
    odd.sort(key=attrgetter("line"))
    cut = tuple(row for row in odd if short and row.reason != _NO_IMAGE)[:SHOWN]
    oddities = {"odd": len(odd), "odd_lines": tuple(odd[:SHOWN]), "short": short, "short_lines": cut}
    doubts = _doubts(images, sample)
    notes = _choice(images) if headed else (f"it has no header; column {header.index(images[0]) + 1} holds files",)
    is_whole = bool(read_role(Path(where).name).roles)
    lists = _described(cells, numbers, header, images, oddities, headed=headed, boxes=boxes, is_whole=is_whole)
    return {"lists": tuple(lists), "notes": notes, "doubts": doubts}


def _part_columns(sample: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the columns that are lists of train, val and test, by name, with the mark of their images.

    They name the images themselves (mark ``""``), as ``train_slide_path`` does; or they hold ``True`` and ``False``
    beside a column of images, with at most one True in each row.
    """
    words = {name: re.sub(r"(?i)slides?|paths?|names?", "", name) for name in sample}
    guesses = {name: read_role(word) for name, word in words.items() if word}
    roles = {name: guess for name, guess in guesses.items() if len(guess.roles) == 1 and not guess.family}
    if len({guess.roles for guess in roles.values()}) < max(len(roles), 2):
        return {}
    cells = {name: [cell for cell in sample[name] if cell] for name in roles}
    if all(map(_are_names, cells.values())):
        return dict.fromkeys(roles, "")
    is_flagged = len(sample) == len(roles) + 1 and all({*values} <= {"True", "False"} for values in cells.values())
    return dict.fromkeys(roles, "True") if is_flagged and any(cells.values()) else {}


def _are_names(cells: Sequence[str]) -> bool:
    """Return whether the distinct cells of a column are names rather than numbers or flags; one may be empty."""
    return 2 * len(set(cells)) >= len(cells) and not any(map(_NO_NAME.fullmatch, cells))


def _of_part_columns(table: Any, numbers: Any, parts: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return a list for each column, from its cells or from the images that it marks."""
    from pyarrow import compute

    [other] = [name for name in table.column_names if name not in parts] if any(parts.values()) else [""]
    lists = []
    for name, mark in parts.items():
        cells = compute.ascii_trim_whitespace((table[other] if mark else table[name]).combine_chunks())
        filled = compute.greater(compute.binary_length(cells), 0)
        good = compute.and_(compute.and_(filled, compute.utf8_is_printable(cells)),
                            compute.equal(table[name].combine_chunks(), mark) if mark else filled)  # fmt: skip
        rows = good.to_numpy(zero_copy_only=False)
        lists.append(PublishedList(name, text_of(cells.filter(good)), numbers[rows]))
    if not any(map(len, lists)):
        raise AnnotationFormatError("The table names no image", where=where, expected=f"cells below {', '.join(parts)}")
    return {"lists": tuple(lists), "notes": (f"each of the columns {', '.join(parts)} is a list",)}


def _decimal(cells: Sequence[str]) -> bool:
    """Return whether a column holds measures: many decimal numbers, which do not group images."""
    filled = [cell for cell in cells[:_SAMPLE] if cell]
    return bool(filled) and all(map(_DECIMAL.fullmatch, filled)) and len(set(filled)) > len(_FLAGS)


def _doubts(images: Sequence[str], sample: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return a doubt if the names do not decide which of several columns of files holds the images."""
    first, *others = [name for name in images if _has_files(sample[name])] or [""]
    values = {name: len(set(sample[name])) for name in (first, *others) if name}
    # Columns that distinguish the same images, such as a name and its path, are not a doubt.
    alike = [
        name
        for name in others
        if _name_rank(name) == _name_rank(first) and (_name_rank(name)[1] or values[name] != values[first])
    ]
    if not alike and not (others and _name_rank(first)[0]):
        return ()
    columns = ", ".join(map(ascii, alike or others))[:200]
    return (
        f"its images may be those of the column {columns}; {first!a} was read: name the column of images file_name",
    )


def _choice(images: Sequence[str]) -> tuple[str, ...]:
    if len(images) == 1 and images[0] in PATH_COLUMNS:
        return ()
    others = f", not {', '.join(map(ascii, images[1:]))}"[:200] if len(images) > 1 else ""
    return (f"its images are those of the column {images[0]!a}{others}",)


def _described(
    cells: dict[str, Any], lines: Any, header: Sequence[str], images: Sequence[str], oddities: dict[str, Any], *,
    headed: bool, boxes: bool, is_whole: bool,
) -> Iterator[PublishedList]:  # fmt: skip
    """Yield lists with their further columns: classes, second files, labels, parts.

    The name of a file that `is_whole` states its role: only a column with the name of parts divides it.
    """
    paths = cells.pop(images[0])
    rest = values_of(cells.pop(_REST).dictionary_encode().indices) if _REST in cells else None
    coded_columns = {name: texts_and_codes(column) for name, column in cells.items()}
    keys = {name: slug(name) if headed else "" for name in coded_columns}

    def column_with(known: Sequence[str]) -> str | None:
        return next((name for key in known for name in keys if keys[name] == key), None)

    label, part = column_with(_CLASS_COLUMNS), column_with(_PARTS)
    if not headed and len(coded_columns) == 1 and len(images) == 1:
        [label] = coded_columns
    second = next(
        (name for name in images[1:] if name in keys and (_COMPANIONS.search(keys[name]) or not headed)), None
    )
    if part is None and not is_whole:
        part = next((name for name, (values, _) in coded_columns.items() if are_parts(values)), None)
        label = label if label != part else None
    if part is not None and len(coded_columns[part][0]) > _MOST_PARTS:
        part = None
    flags = [name for name, (values, _) in coded_columns.items() if set(values) <= _FLAGS and name != part]
    groups, group_of = coded_columns[label] if label is not None else ([], None)
    counts = None
    if label is None and len(flags) >= _FEWEST_FLAGS:
        hot = np.stack(
            [np.isin(coded_columns[name][0], ("1", "1.0"))[coded_columns[name][1]] for name in flags], axis=1
        )
        if (hot.sum(1) == 1).all():
            groups, group_of = flags, hot.argmax(1).astype(np.int32)
        else:
            counts = hot.sum(1).astype(np.int32)
    else:
        flags = []
    if boxes or (headed and _BOX & set(map(slug, header))):
        counts = np.ones(len(lines), np.int32)
    columns = {
        name or f"column {header.index(name) + 1}": column_of(*coded_columns[name])
        for name in coded_columns
        if name not in (label, second, part, *flags)
    }
    values, part_of = coded_columns[part] if part is not None else ([""], np.zeros(len(lines), np.int32))
    for number, value in enumerate(values):
        rows = part_of == number
        yield PublishedList(
            f"{part}={value}" if part is not None else "", text_of(paths.filter(rows)), lines[rows],
            groups=tuple(groups), group_of=None if group_of is None else group_of[rows],
            label_counts=None if counts is None else counts[rows],
            companions=None if second is None else normalised_lines(text_of(cells[second].filter(rows))),
            columns={name: TextColumn(column.values, column.of[rows]) for name, column in columns.items()},
            rest=None if rest is None else rest[rows],
            # Lines of a table that are not entries do not belong to a part: the first part reports them.
            **(oddities if not number else {}),
        )  # fmt: skip


_GROUPS = 50
_PART_NAME = re.compile(r"(?:.*[._/-])?(?:train|val|valid|validation|test)(?:[._/-].*|ing|[0-9]*)", re.IGNORECASE)
_SPLIT_NAME = re.compile(r"train|val|test|split|known|\bi?ood\b|\bid\b|all", re.IGNORECASE)
_DEEPEST = 32
_LARGEST_WALKED = 256 << 20
_MOST_LISTS = 4096
_FORMS = (
    "an array of texts, of objects that name images, an object of such arrays at any depth, COCO JSON, "
    "one object a line, known_classes and unknown_classes, or an object of texts"
)


class _Image(msgspec.Struct, frozen=True):
    id: int | str = ""
    file_name: str = ""


class _Coco(msgspec.Struct, frozen=True):
    images: list[_Image]
    annotations: msgspec.Raw = msgspec.Raw(b"[]")

    @property
    def annotated(self) -> bool:
        """Whether the file has an annotation."""
        return bytes(self.annotations)[:1] == b"[" and bytes(self.annotations)[1:].strip() != b"]"


def read_json(data: bytes, where: str, suffix: str = "") -> dict[str, Any]:
    """Return the lists or class names of a JSON text.

    Raises
    ------
    EmptyListError
        The text lists nothing.
    DamagedFileError
        The text is not JSON.
    AnnotationFormatError
        The JSON has an unknown form.
    """
    line, _, others = data[:_LARGEST_WALKED].lstrip().partition(b"\n")
    if (
        line[:1] == b"{"
        and line.rstrip()[-1:] == b"}"
        and (suffix in (".jsonl", ".odgt") or others.lstrip(b" \r\n\t")[:1] == b"{")
    ):
        return read_json_lines(data, where)
    try:
        return _json_lists(data, where)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        if isinstance(error, msgspec.ValidationError) and len(data) <= _LARGEST_WALKED:
            refuse_repeated_keys(data, where, AnnotationFormatError)
            try:
                read = _walked(msgspec.json.decode(data), where)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                read = None
            if read is not None:
                return read
        kind = AnnotationFormatError if isinstance(error, msgspec.ValidationError) else DamagedFileError
        raise kind("The JSON has an unknown form", where=where, expected=_FORMS, found=str(error)[:200]) from None


def _json_lists(data: bytes, where: str) -> dict[str, Any]:
    if data[:LONGEST_LINE].lstrip()[:1] == b"[":
        return _from_array(msgspec.json.decode(data, type=list[str | int]), where)
    keys = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    refuse_repeated_keys(data, where, AnnotationFormatError)
    if "images" in keys and bytes(keys["images"])[:1] == b"[" and keys.keys() & {"annotations", "categories"}:
        coco = msgspec.json.decode(data, type=_Coco)
        return _from_coco(coco.images, where) | {"annotated": coco.annotated}
    if keys.keys() >= {"known_classes", "unknown_classes"}:
        roles = {role: msgspec.json.decode(keys[f"{role}_classes"]) for role in ("known", "unknown")}
        return {"form": "class roles", "classes": dict(_roles(roles, "", where))}
    if _name_images(keys):
        return read_objects(_named_records(msgspec.json.decode(data)), where)
    if all(bytes(value)[:1] == b"[" for value in keys.values()) and keys:
        return _from_arrays(msgspec.json.decode(data, type=dict[str, list[str | int]]), where)
    msgspec.json.decode(data, type=dict[str, str | dict[str, str]])
    return {"form": "map"}


def _name_images(keys: Collection[str]) -> bool:
    """Return whether the keys of an object are files, as in ``{"cat/1.jpg": 3}``, but no lists such as ``val.txt``."""
    files = sum(bool(FILE_NAME.search(key) and not _OTHER_LIST.search(key)) for key in keys)
    return len(keys) >= _FEWEST_FLAGS and files >= SHARE * len(keys)


def _named_records(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the values of an object whose keys name images as records with these names."""
    return [
        {"file_name": name} | (value if isinstance(value, dict) else {"label": value}) for name, value in values.items()
    ]


def _walked(value_tree: Any, where: str) -> dict[str, Any] | None:
    """Return the lists at any depth, named by the keys that lead to them, or None if there are none."""
    parts = list[dict[str, Any]]()
    for keys, value in _arrays(value_tree, ()):
        name = "/".join(keys)
        if isinstance(value, Mapping):
            read = _from_arrays(value, where)
        elif _are_pairs(value):
            raise AnnotationFormatError(
                "The arrays pair images instead of listing them", where=where, expected="one image an entry",
                found=ascii(value[0])[:200],
            )  # fmt: skip
        elif isinstance(value[0], Mapping):
            read = read_objects(value, where)
        else:
            read = _from_array(value, where)
        lists = tuple(replace(part, name="/".join(filter(None, (name, part.name)))) for part in read.get("lists", ()))
        classes = {"/".join(filter(None, (name, key))): names for key, names in read.get("classes", {}).items()}
        parts.append(read | {"lists": lists, "classes": classes})
    lists = tuple(listed for read in parts for listed in read["lists"])
    if len(lists) > _MOST_LISTS:
        raise AnnotationFormatError(
            "The JSON holds too many lists", where=where, expected=f"at most {_MOST_LISTS:,}", found=f"{len(lists):,}"
        )
    if lists:
        forms = {read["form"] for read in parts if read["lists"]}
        notes = tuple(note for read in parts for note in read.get("notes", ()))
        return {"form": forms.pop() if len(forms) == 1 else "json lists", "lists": lists, "notes": notes}
    classes = {key: names for read in parts for key, names in read["classes"].items()}
    return {"form": "class roles", "classes": classes} if classes else None


def _arrays(value_tree: Any, keys: tuple[str, ...], *, numbers: bool = True) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield arrays of entries, and objects of such arrays; arrays of numbers count only outside other arrays."""
    if len(keys) > _DEEPEST:
        raise RecursionError
    kinds = str | int if numbers else str
    if isinstance(value_tree, dict) and _name_images(value_tree):
        yield keys, _named_records(value_tree)
    elif isinstance(value_tree, dict):
        filled = {key: value for key, value in value_tree.items() if value or not isinstance(value, list)}
        if filled and all(_is_array(value, kinds) for value in filled.values()):
            if not all(map(_are_values, filled, filled.values())):
                yield keys, filled
        else:
            for key, value in value_tree.items():
                yield from _arrays(value, (*keys, key), numbers=numbers)
    elif isinstance(value_tree, list) and value_tree and not (keys and _are_values(keys[-1], value_tree)):
        if rows := _rows_as_objects(value_tree):
            yield keys, rows
        elif _is_array(value_tree, kinds) or _are_pairs(value_tree) or image_name_key(value_tree):
            yield keys, value_tree
        elif images := _images_of_records(value_tree):
            yield keys, images
        elif isinstance(value_tree[0], dict | list):
            for position, value in enumerate(value_tree):
                yield from _arrays(value, (*keys, str(position)), numbers=False)


def _rows_as_objects(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return rows ``["cat/1.jpg", 0, "cat"]`` and ``["1.jpg", "1_mask.png"]`` as objects; nothing for others.

    Only the second file of a row is named: further files are derived from the first, too.
    """
    if not all(isinstance(row, list) for row in rows):
        return []
    # A row may end in cells that others lack, such as boxes.
    files = [all(FILE_NAME.search(str(cell)) for cell in column) for column in zip(*rows, strict=False)]
    if not any(files) or len(files) < 2 or (all(files) and not _second_is_of_first(rows)):
        return []
    names = {True: iter(("file_name", "mask")), False: iter(("label",))}
    keys = [next(names[is_file], "" if is_file else f"column {at}") for at, is_file in enumerate(files, start=1)]
    return [{key: cell for key, cell in zip(keys, row, strict=False) if key} for row in rows]


def _second_is_of_first(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the second file of each row has the number of the first in its name, as a mask has."""
    named = [[cell.rpartition("/")[2] for cell in row[:2]] for row in rows]
    numbers = [re.search("[0-9]+", first) for first, _ in named]
    of_first = sum(number is not None and number[0] in name[1] for number, name in zip(numbers, named, strict=True))
    return len({*map(len, rows)}) == 1 and of_first >= SHARE * len(rows)


def _images_of_records(records: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the images of records such as exams, prefixed with the record's name; nothing for other arrays.

    Each record may number its images from 0. A few records are parts or folds, not exams.
    """
    if len(records) < _FEWEST_RECORDS or not all(isinstance(record, dict) for record in records):
        return []
    inner = [key for key, value in records[0].items() if isinstance(value, list) and value and image_name_key(value)]
    names = [key for key in records[0] if len({_text(record.get(key)) for record in records} - {""}) == len(records)]
    if len(inner) != 1 or not names or _SPLIT_NAME.search(inner[0]):
        return []
    entries_of = [record.get(inner[0]) or [] for record in records]
    image = image_name_key(records[0][inner[0]])
    if not all(isinstance(entry, dict) for entries in entries_of for entry in entries):
        return []
    return [
        {key: value for key, value in record.items() if key != inner[0]}
        | entry
        | {image: f"{_text(record[names[0]])}/{_text(entry.get(image))}"}
        for record, entries in zip(records, entries_of, strict=True)
        for entry in entries
    ]


def _is_array(array: Any, kinds: Any) -> bool:
    return isinstance(array, list) and bool(array) and all(isinstance(value, kinds) for value in array)


def _are_values(key: str, array: Sequence[Any]) -> bool:
    """Return whether an array holds labels, or few numbers such as a size or a box, under a key that names no part."""
    few = len(array) < _FEWEST_RECORDS and not _SPLIT_NAME.search(key)
    return are_values(array) or (few and all(isinstance(value, int) for value in array))


def _are_pairs(array: Sequence[Any]) -> bool:
    return all(_is_array(pair, str) and len(pair) > 1 for pair in array)


def _from_array(array: Sequence[str | int], where: str) -> dict[str, Any]:
    if not array:
        raise EmptyListError("The list is empty", where=where, expected="at least one entry")
    if are_values(array):
        raise AnnotationFormatError(VALUES, where=where, expected=_FORMS)
    texts = [text for text in array if isinstance(text, str)]
    if len(texts) == len(array) <= MOST_CLASS_NAMES and name_classes(texts):
        return {"form": "class names", "classes": {"": tuple(texts)}}
    return {"form": "json array", "lists": (_listed("", array, where),)}


def _from_coco(images: Sequence[_Image], where: str) -> dict[str, Any]:
    listed = _listed("", [image.file_name or image.id for image in images], where)
    ids = len({image.id for image in images})
    notes = (f"image ids repeat: {len(images):,} images have {ids:,} ids",) if ids < len(images) else ()
    return {"form": "coco json", "lists": (listed,), "notes": notes}


def _from_arrays(arrays: Mapping[str, Sequence[str | int]], where: str) -> dict[str, Any]:
    """Return the lists of an object of arrays: a list with classes if its keys are classes, else one for each key."""
    wnids = all(WNID.fullmatch(key) for key in arrays)
    if wnids or (len(arrays) > _GROUPS and not all(_SPLIT_NAME.search(key) for key in arrays)):
        groups = np.repeat(np.arange(len(arrays), dtype=np.int32), [*map(len, arrays.values())])
        flat = _listed("", [text for array in arrays.values() for text in array], where)
        return {"form": "json groups", "lists": (replace(flat, groups=tuple(arrays), group_of=groups[flat.lines - 1]),)}
    if columns := _columns(arrays):
        rows = _rows_as_objects([*map(list, zip(*map(arrays.__getitem__, columns), strict=True))])
        classes = {key: tuple(map(str, arrays[key])) for key in arrays if key not in columns}
        return read_objects(rows, where) | {"classes": classes}
    lists = tuple(_listed(key, array, where) for key, array in arrays.items() if array and not _are_values(key, array))
    if not lists and any(arrays.values()):
        raise AnnotationFormatError(VALUES, where=where, expected=_FORMS)
    if not lists:
        raise EmptyListError("The lists are empty", where=where, expected="at least one entry")
    parts = all(_PART_NAME.fullmatch(key) for key in arrays)
    if {"known", "unknown"} <= arrays.keys() or (
        not parts and all(name_classes([str(text) for text in arrays[listed.name]]) for listed in lists)
    ):
        return {"form": "class roles", "classes": {key: tuple(map(str, arrays[key])) for key in arrays}}
    empty = ", ".join(key for key in arrays if not arrays[key])
    return {"form": "json lists", "lists": lists, "notes": (f"empty: {ascii(empty)[1:-1][:200]}",) if empty else ()}


def _columns(arrays: Mapping[str, Sequence[str | int]]) -> tuple[str, str] | None:
    """Return the keys of files and labels if arrays are columns: ``image_names``, ``image_labels``."""
    files = [key for key, array in arrays.items() if array and all(FILE_NAME.search(str(text)) for text in array)]
    labels = [
        key for key, array in arrays.items() if array and "label" in key and all(isinstance(n, int) for n in array)
    ]
    both = [(name, label) for name in files for label in labels if len(arrays[name]) == len(arrays[label])]
    return both[0] if len(files) == len(labels) == len(both) == 1 else None


def _listed(name: str, values: Sequence[str | int], where: str) -> PublishedList:
    """Return entries of JSON as a list; empty and unprintable entries are left out and reported."""
    texts = [str(value).strip() for value in values]
    fits = np.array([0 < len(text) <= LONGEST_LINE and text.isprintable() for text in texts], np.bool_)
    good = np.flatnonzero(fits).astype(np.int32)
    odd = [
        OddLine(row + 1, "it is empty, too long or not printable", ascii(texts[row])[:60])
        for row in np.flatnonzero(~fits).tolist()
    ]
    if not texts:
        raise EmptyListError("The list is empty", where=where, expected="texts that name images")
    if not len(good):
        raise AnnotationFormatError(
            "No text names an image", where=where, expected="printable texts", found=f"{odd[0].reason}: {odd[0].text}"
        )
    return PublishedList(
        name, "".join(f"{text}\n" for text in compress(texts, fits)).encode(), good + 1, odd=len(odd),
        odd_lines=tuple(odd[:SHOWN]), integers=any(isinstance(value, int) for value in values),
    )  # fmt: skip


def _roles(classes: Any, role: str, where: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the classes of each role; unknown classes may be nested by difficulty."""
    if isinstance(classes, dict):
        for key, value in classes.items():
            yield from _roles(value, f"{role}/{key}" if role else key, where)
    elif isinstance(classes, list) and all(isinstance(name, str | int) for name in classes):
        yield role, tuple(map(str, classes))
    else:
        raise AnnotationFormatError(
            "The classes of a role are not an array", where=where, expected="names or numbers of classes",
            found=f"{role}: {ascii(classes)[:80]}",
        )  # fmt: skip
