"""Tables of images: CSV and its kin with or without a header, and one JSON object a line or an array of them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from curation.errors import AnnotationFormatError
from curation.sources.entries import (
    SHARE,
    SHOWN,
    Column,
    Form,
    OddLine,
    PublishedList,
    column_of,
    joined,
    name_classes,
)
from curation.sources.stems import FILE_NAME, normalised
from curation.sources.text_lines import require_utf8

if TYPE_CHECKING:
    from curation.sources.source import Bools, Int32s

    Rows = Iterator[tuple[int, Sequence[str]]]

PATH_COLUMNS = ("image_location", "file_name", "path", "image_id")
"""Columns that name images whatever they hold, the first before the others."""
_NAMED_SO = (
    *PATH_COLUMNS, "file", "filename", "image", "img", "img_path", "rel_path", "filepath", "image_path", "fpath_img",
    "imageid", "image_index", "image_name", "img_name", "image_file",
)  # fmt: skip
_ANY_IDS = ("id", "uid", "name")
_COMPANIONS = re.compile(r"mask|segm|depth|annot|label|right|target|gt(?:_|\Z)")
_CLASS_COLUMNS = ("class", "label", "decision", "category", "target", "finding", "dx")
_PARTS = ("split", "subset", "set", "partition", "fold")
_BOX = {"xmin", "x_min", "x1", "bbox", "bbox_x", "xcenter", "x_center", "gtboxes"}
_OTHER_CELLS = "it has another number of cells than the header"
_OTHER_LIST = re.compile(r"\.(?:txt|csv|tsv|json|jsonl|list|lst|py|zip|gz|tar)\Z", re.IGNORECASE)
_DECIMAL = re.compile(r"-?\d*\.\d+(?:e-?\d+)?", re.IGNORECASE)
_FLAGS = {"", "0", "1", "-1", "0.0", "1.0", "-1.0"}
_MOST_PARTS = 50
_FEWEST_FLAGS = 3
_CHUNK = 50_000
_HEAD = 1 << 16
_SAMPLE = 200


def read_table(data: bytes, where: str, suffix: str) -> dict[str, Any] | None:
    """Return the lists of a table; None where the text is none.

    Raises
    ------
    AnnotationFormatError
        It cannot be read, names a column twice, or by its suffix has to be a table and has no column of images.
    """
    sample = data[:_HEAD].decode("utf-8", "ignore").removesuffix("\n").split("\n")
    sample = (sample if len(data) <= _HEAD else sample[:-1] or sample)[:_SAMPLE]
    headers = {mark: _cells(sample[:1], mark)[0] for mark in ";\t,"}
    for mark, header in headers.items():
        rows = [row for row in _cells(sample[1:], mark) if len(row) == len(header)]
        if not any(header) or (len(header) == 1 and (mark != "," or not _heads_alone(header[0], rows))):
            continue
        whole = len(rows) >= SHARE * (len(sample) - 1)
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        heads = not any(map(FILE_NAME.search, header))
        if heads and (whole or any(name in PATH_COLUMNS for name in header)) and _images_in(header, columns):
            if len(set(header)) < len(header):
                raise AnnotationFormatError(
                    "The table names a column twice", where=where, found=ascii(",".join(header))[:200]
                )
            return _from_cells(data, mark, header, where)
        files = [place for place, cells in enumerate(columns) if _has_files((header[place], *cells))]
        numbers = (
            mark == "\t" and len(header) == 2 and all(len(files) == 2 or row[1].strip("-").isdigit() for row in rows)
        )
        if whole and files and len(header) > 1 and not numbers:
            names = [f"column {place + 1}" for place in range(len(header))]
            return _from_cells(data, mark, names, where, headed=False)
    header = max(headers.values(), key=len)
    if len(header) > 1 and suffix in (".csv", ".tsv"):
        raise AnnotationFormatError(
            "The table has no column of images", where=where,
            expected=f"one of {', '.join(_NAMED_SO)}, or a column of files", found=ascii(", ".join(header))[:200],
        )  # fmt: skip
    return None


def read_objects(rows: Iterable[tuple[int, Any]], form: Form, where: str) -> dict[str, Any]:
    """Return the lists of JSON objects, each with its line or place; what in them is no text or number is left."""
    given = iter(rows)
    first = list(islice(given, _CHUNK))
    header = list(
        dict.fromkeys(key for _, row in first if isinstance(row, dict) for key in row if _is_scalar(row[key]))
    )
    boxes = [key for _, row in first[:_SAMPLE] if isinstance(row, dict) for key in row if key.lower() in _BOX]

    def cells() -> Rows:
        for part in (first, given):
            for number, row in part:
                yield number, [_text(row.get(key)) for key in header] if isinstance(row, dict) else ()

    return {"form": form} | _lists_of(cells(), header, where, boxes=bool(boxes))


def read_json_lines(data: bytes, where: str) -> dict[str, Any]:
    """Return the lists of one JSON object a line; a line that is none is told."""
    decoder = msgspec.json.Decoder()

    def rows() -> Iterator[tuple[int, Any]]:
        for number, line in enumerate(io.BytesIO(data), start=1):
            if not line.isspace():
                try:
                    yield number, decoder.decode(line)
                except (msgspec.MsgspecError, UnicodeError, RecursionError):
                    yield number, line.decode("utf-8", "replace")

    return read_objects(rows(), "json lines", where)


def names_images(given: Sequence[Any]) -> bool:
    """Return whether an array holds objects that name images, and no scores of them."""
    rows = given[:_SAMPLE]
    if not all(isinstance(row, dict) for row in rows):
        return False
    header = list(dict.fromkeys(key for row in rows for key in row))
    columns = [[_text(row.get(key)) for row in rows] for key in header]
    return "score" not in header and bool(_images_in(header, columns))


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if _is_scalar(value) else ""


def _cells(lines: Sequence[str], mark: str) -> list[list[str]]:
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark)] or [[]]
    except csv.Error:
        # A carriage return stands in a line, or a cell is too long.
        return [[]]


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _heads_alone(name: str, rows: Sequence[Sequence[str]]) -> bool:
    return name in PATH_COLUMNS or (_key(name) in _NAMED_SO and bool(rows) and _has_files([row[0] for row in rows]))


def _has_files(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return bool(filled) and sum(map(bool, map(FILE_NAME.search, filled))) >= SHARE * len(filled)


def _images_in(header: Sequence[str], columns: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns that can name images, the likeliest first: files, then the most distinct values."""
    ranked = []
    for place, (name, cells) in enumerate(zip(header, columns, strict=True)):
        key, filled = _key(name), {cell for cell in cells if cell}
        files = _has_files(cells)
        old = PATH_COLUMNS.index(name) if name in PATH_COLUMNS else len(PATH_COLUMNS)
        named = key in _NAMED_SO or key.endswith(("_path", "_file"))
        good = files or old < len(PATH_COLUMNS)
        if not good and filled and (named or key in _ANY_IDS):
            few = len(filled) < SHARE * len(cells) or sum(map(bool, map(_OTHER_LIST.search, filled))) > len(filled) / 2
            counted = key in _ANY_IDS and all(cell.isdigit() for cell in filled)
            good = not few and not counted and not name_classes(sorted(filled))
        if good:
            ranked.append((not files, bool(_COMPANIONS.search(key)), -len(filled) if files else 0, old, place))
    return [rank[-1] for rank in sorted(ranked)]


def _from_cells(data: bytes, mark: str, header: Sequence[str], where: str, *, headed: bool = True) -> dict[str, Any]:
    require_utf8(data, where)
    reader = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=mark)

    def rows() -> Rows:
        try:
            if headed:
                next(reader)
            for row in reader:
                if row:
                    yield reader.line_num, row
        except csv.Error as error:
            raise AnnotationFormatError(
                "The table cannot be read", where=f"{where}, line {reader.line_num}", found=str(error)[:200]
            ) from None

    return {"form": "csv"} | _lists_of(rows(), header, where, mark=mark, headed=headed)


class _Encoder:
    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._of: list[Int32s] = []

    def take(self, cells: Sequence[str]) -> None:
        places = self._places
        self._of.append(np.fromiter((places.setdefault(cell, len(places)) for cell in cells), np.int32, len(cells)))

    @property
    def raw(self) -> tuple[tuple[str, ...], Int32s]:
        return tuple(self._places), np.concatenate(self._of)


def _lists_of(
    rows: Rows, header: Sequence[str], where: str, *, mark: str = ", ", headed: bool = True, boxes: bool = False
) -> dict[str, Any]:
    width, texts, numbers, odd, cut = len(header), list[bytes](), list["Int32s"](), list[OddLine](), list[OddLine]()
    encoders: dict[int, _Encoder] = {}
    place, images = 0, list[int]()
    while chunk := list(islice(rows, _CHUNK)):
        good = [one for one in chunk if len(one[1]) == width]
        if width and not images:
            columns = list(zip(*(row for _, row in good), strict=True)) or [()] * width
            images = _images_in(header, columns)
            if not images:
                break
            place = images[0]
            encoders = {other: _Encoder() for other in range(width) if other != place and not _decimal(columns[other])}
        named = [one[1][place].strip() for one in good]
        if not "".join(named).isprintable() or not all(named):
            good = [one for one, text in zip(good, named, strict=True) if text and text.isprintable()]
            named = [text for text in named if text and text.isprintable()]
        if len(good) < len(chunk):
            kept = {number for number, _ in good}
            for number, row in chunk:
                if number not in kept:
                    reason = "it names no image" if len(row) == width else _OTHER_CELLS
                    odd.append(OddLine(number, reason, mark.join(row)[:60]))
                    cut += [odd[-1]] * (len(row) < width)
        texts.append(joined(named))
        numbers.append(np.fromiter((number for number, _ in good), np.int32, len(good)))
        columns = list(zip(*(row for _, row in good), strict=True)) or [()] * width
        for other, encoder in encoders.items():
            encoder.take(columns[other])
    if not sum(map(len, numbers)):
        name = header[place] if header else "its objects"
        raise AnnotationFormatError("The table names no image", where=where, expected=f"rows below {name}")
    beside = {other: encoder.raw for other, encoder in encoders.items()}
    one = PublishedList(
        "", b"".join(texts), np.concatenate(numbers), odd=len(odd), odd_lines=tuple(odd[:SHOWN]), short=len(cut),
        short_lines=tuple(cut[:SHOWN]),
    )  # fmt: skip
    return _described(
        one, header, beside, [other for other in images if other != place], headed=headed, boxes=boxes
    ) | {"notes": _choice(header, images) if headed else (f"it has no header; column {place + 1} holds files",)}


def _decimal(cells: Sequence[str]) -> bool:
    """Return whether a column holds measures, which are many and tell nothing of an image's kin."""
    found = [cell for cell in cells[:_SAMPLE] if cell]
    return bool(found) and all(map(_DECIMAL.fullmatch, found)) and len(set(found)) > len(_FLAGS)


def _choice(header: Sequence[str], images: Sequence[int]) -> tuple[str, ...]:
    named = [header[place] for place in images]
    if len(named) == 1 and named[0] in PATH_COLUMNS:
        return ()
    others = f", not {', '.join(map(ascii, named[1:]))}"[:200] if len(named) > 1 else ""
    return (f"its images are those of the column {named[0]!a}{others}",)


def _described(
    one: PublishedList, header: Sequence[str], beside: Mapping[int, tuple[tuple[str, ...], Int32s]],
    files: Sequence[int], *, headed: bool, boxes: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return lists with what stands beside their images: classes, second files, labels in columns, parts."""
    keys = {other: _key(header[other]) if headed else "" for other in beside}
    label = next((other for name in _CLASS_COLUMNS for other in keys if keys[other] == name), None)
    if not headed and len(beside) == 1 and not files:
        [label] = beside
    second = next((other for other in files if _COMPANIONS.search(keys[other]) or not headed), None)
    part = next((other for name in _PARTS for other in keys if keys[other] == name), None)
    if part is not None and len(beside[part][0]) > _MOST_PARTS:
        part = None
    flags = [other for other, (values, _) in beside.items() if set(values) <= _FLAGS and other != part]
    if label is None and len(flags) >= _FEWEST_FLAGS:
        hot = np.stack([np.isin(beside[other][0], ("1", "1.0"))[beside[other][1]] for other in flags], axis=1)
        if (hot.sum(1) == 1).all():
            one = replace(one, groups=tuple(header[other] for other in flags), group_of=hot.argmax(1).astype(np.int32))
        else:
            one = replace(one, label_counts=hot.sum(1).astype(np.int32))
    else:
        flags = []
    if boxes or (headed and _BOX & {_key(name) for name in header}):
        one = replace(one, label_counts=np.ones(len(one), np.int32))
    if label is not None:
        one = replace(one, groups=beside[label][0], group_of=beside[label][1])
    if second is not None:
        values, of = beside[second]
        lines = normalised(joined(values)).split(b"\n")
        one = replace(one, companions=b"".join(lines[place] + b"\n" for place in of.tolist()))
    columns = {
        header[other] or f"column {other + 1}": column_of(*beside[other])
        for other in beside
        if other not in (label, second, part, *flags)
    }
    one = replace(one, columns=columns)
    if part is None:
        return {"lists": (one,)}
    values, of = beside[part]
    return {
        "lists": tuple(
            replace(_selected(one, of == place), name=f"{header[part]}={value}", **_odd_of(one, first=not place))
            for place, value in enumerate(values)
        )
    }


def _odd_of(one: PublishedList, *, first: bool) -> dict[str, Any]:
    # Lines of a table that are no entry belong to no part of it: the first tells them.
    names = "odd", "odd_lines", "short", "short_lines"
    return {name: getattr(one, name) if first else type(getattr(one, name))() for name in names}


def _selected(one: PublishedList, rows: Bools) -> PublishedList:
    """Return some of the entries of a list."""
    if rows.all():
        return one
    kept, given = np.flatnonzero(rows).tolist(), dict[str, Any]()
    for name in ("paths", "companions"):
        if (text := getattr(one, name)) is not None:
            lines = text.split(b"\n")
            given[name] = b"".join(lines[row] + b"\n" for row in kept)
    return replace(
        one,
        lines=one.lines[rows],
        group_of=None if one.group_of is None else one.group_of[rows],
        label_counts=None if one.label_counts is None else one.label_counts[rows],
        columns={name: Column(column.values, column.of[rows]) for name, column in one.columns.items()},
        **given,
    )
