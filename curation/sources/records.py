"""Tables of images: CSV and its kin with or without a header, and one JSON object a line or an array of them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from curation.errors import AnnotationFormatError
from curation.sources.entries import (
    SHARE,
    SHOWN,
    Column,
    OddLine,
    PublishedList,
    coded,
    column_of,
    name_classes,
)
from curation.sources.stems import FILE_NAME, blocks_of, firsts, gathered, lines_at, normalised
from curation.sources.text_lines import require_utf8

if TYPE_CHECKING:
    from curation.sources.source import Bools, Int32s

    _Chunk = tuple[Int32s, list[bytes], list[OddLine], int]
    """Lines, the cells of each column one a line, lines that are no row, and how many of these have less cells."""

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


def read_objects(rows: Sequence[Any], where: str) -> dict[str, Any]:
    """Return the lists of an array of JSON objects, as of one a line: lines are places in the array."""
    return read_json_lines(msgspec.json.Encoder().encode_lines(rows), where)


def read_json_lines(data: bytes, where: str) -> dict[str, Any]:
    """Return the lists of one JSON object a line; a line that is none is told."""
    sample = data[:_HEAD].split(b"\n")
    header, boxes = _keys([row for _, row in _decoded(msgspec.json.Decoder(), sample[:-1] or sample)])
    fields = [(f"f{place}", Any, msgspec.field(name=key, default="")) for place, key in enumerate(header)]
    decoder = msgspec.json.Decoder(msgspec.defstruct("Row", fields, gc=False))

    def chunks() -> Iterator[_Chunk]:
        number = 0
        for block in blocks_of(data, 1 << 20):
            lines = block.count(b"\n") + (not block.endswith(b"\n"))
            odd: list[OddLine] = []
            numbers: Any = np.arange(number + 1, number + lines + 1, dtype=np.int32)
            try:
                rows = decoder.decode_lines(block)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                rows = []
            if len(rows) < lines:
                split = block.split(b"\n")
                good = list(_decoded(decoder, split))
                rows, kept = [row for _, row in good], {place for place, _ in good}
                numbers = np.array([number + place for place, _ in good], np.int32)
                odd = [
                    OddLine(number + place, "it is no object", ascii(line[:240].decode("utf-8", "replace"))[1:61])
                    for place, line in enumerate(split, start=1)
                    if place not in kept and line.strip()
                ]
            texts = [_joined([_text(value) for value in map(attrgetter(name), rows)]) for name, *_ in fields]
            yield numbers, texts, odd, len(odd)
            number += lines

    return {"form": "json lines"} | _lists_of(chunks(), header, where, boxes=boxes)


def _decoded(decoder: msgspec.json.Decoder[Any], lines: Sequence[bytes]) -> Iterator[tuple[int, Any]]:
    for place, line in enumerate(lines, start=1):
        try:
            if line.strip():
                yield place, decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue


def _keys(rows: Sequence[Any]) -> tuple[list[str], bool]:
    """Return the keys under which objects have texts or numbers, and whether they have boxes."""
    keys = {key: None for row in rows[:_CHUNK] if isinstance(row, dict) for key in row if _is_scalar(row[key])}
    # Tasks and classes have names too: those of images are files.
    if "name" in keys and not _has_files([_text(row.get("name")) for row in rows[:_SAMPLE] if isinstance(row, dict)]):
        del keys["name"]
    return list(keys), any(key.lower() in _BOX for row in rows[:_SAMPLE] if isinstance(row, dict) for key in row)


def names_images(given: Sequence[Any]) -> bool:
    """Return whether an array holds objects that name images, and no scores of them."""
    rows = given[:_SAMPLE]
    if not all(isinstance(row, dict) for row in rows):
        return False
    header = list(dict.fromkeys(key for row in rows for key in row))
    columns = [[_text(row.get(key)) for row in rows] for key in header]
    images = _images_in(header, columns)
    return (
        "score" not in header
        and bool(images)
        and (_key(header[images[0]]) not in _ANY_IDS or _has_files(columns[images[0]]))
    )


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
            ranked.append(
                (not files, key in _ANY_IDS, bool(_COMPANIONS.search(key)), -len(filled) if files else 0, old, place)
            )
    return [rank[-1] for rank in sorted(ranked)]


def _from_cells(data: bytes, mark: str, header: Sequence[str], where: str, *, headed: bool = True) -> dict[str, Any]:
    require_utf8(data, where)
    simple = b'"' not in data and data.count(b"\r") == data.count(b"\r\n")
    chunks = (_split if simple else _parsed)(data, mark, len(header), where, headed)
    return {"form": "csv"} | _lists_of(chunks, header, where, headed=headed)


def _split(data: bytes, mark: str, width: int, where: str, headed: bool) -> Iterator[_Chunk]:
    """Yield the cells of a table without quotes."""
    number = 0
    for block in blocks_of(data if data.endswith(b"\n") else data + b"\n"):
        buffer = np.frombuffer(block, np.uint8)
        breaks, marks = np.flatnonzero(buffer == ord("\n")), np.flatnonzero(buffer == ord(mark))
        starts = firsts(breaks)
        ends = np.maximum(breaks - (buffer[breaks - 1] == ord("\r")), starts)
        counts = np.diff(np.searchsorted(marks, breaks), prepend=0)
        filled = ends > starts
        filled[0] &= bool(number) or not headed
        good = filled & (counts == width - 1)
        inner = marks[np.repeat(good, counts)].reshape(-1, width - 1)
        lefts = np.column_stack([starts[good], inner + 1])
        rights = np.column_stack([inner, ends[good]])
        closing = breaks[good], breaks[good] + 1
        texts = [gathered(buffer, (lefts[:, place], rights[:, place]), closing) for place in range(width)]
        others = filled & ~good
        odd = [
            OddLine(number + row + 1, _OTHER_CELLS, block[starts[row] : ends[row]][:240].decode("utf-8", "ignore")[:60])
            for row in np.flatnonzero(others).tolist()
        ]
        yield (
            (np.flatnonzero(good) + number + 1).astype(np.int32),
            texts,
            odd,
            int((others & (counts < width - 1)).sum()),
        )
        number += len(breaks)


def _parsed(data: bytes, mark: str, width: int, where: str, headed: bool) -> Iterator[_Chunk]:
    """Yield the cells of a table with quotes."""
    reader = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=mark)
    try:
        if headed:
            next(reader)
        while chunk := [(reader.line_num, row) for row in islice(reader, _CHUNK)]:
            good = [one for one in chunk if len(one[1]) == width]
            others = [one for one in chunk if one[1] and len(one[1]) != width] if len(good) < len(chunk) else []
            odd = [OddLine(number, _OTHER_CELLS, mark.join(row)[:60]) for number, row in others]
            texts = [_joined(cells) for cells in zip(*(row for _, row in good), strict=True)] or [b""] * width
            numbers = np.array([number for number, _ in good], np.int32)
            yield numbers, texts, odd, sum(len(row) < width for _, row in others)
    except csv.Error as error:
        raise AnnotationFormatError(
            "The table cannot be read", where=f"{where}, line {reader.line_num}", found=str(error)[:200]
        ) from None


def _joined(cells: Sequence[str]) -> bytes:
    """Return cells one a line; a line feed within one becomes what no name holds."""
    text = "".join([f"{cell}\n" for cell in cells])
    if text.count("\n") > len(cells):
        text = "".join([cell.replace("\n", "\0") + "\n" for cell in cells])
    return text.encode("utf-8", "replace")


def _lists_of(
    chunks: Iterator[_Chunk], header: Sequence[str], where: str, *, headed: bool = True, boxes: bool = False
) -> dict[str, Any]:
    images, texts, numbers, odd, short = list[int](), list[list[bytes]](), list[Any](), list[OddLine](), 0
    for own, columns, others, cut in chunks:
        if not images:
            sample = [text.decode().split("\n", _CHUNK)[: min(_CHUNK, len(own))] for text in columns]
            images = _images_in(header, sample)
            if not images:
                break
            kept = [place for place in range(len(header)) if place == images[0] or not _decimal(sample[place])]
            texts = [[] for _ in kept]
        paths = columns[images[0]]
        if b" " in paths or b"\t" in paths:
            paths = b"".join(line.strip() + b"\n" for line in paths.split(b"\n")[:-1])
        cells = paths.decode()
        if b"\n\n" in b"\n" + paths or not cells.replace("\n", "").isprintable():
            good = np.array([bool(cell) and cell.isprintable() for cell in cells.split("\n")[:-1]])
            others = [*others, *(OddLine(int(one), "it names no image", "") for one in own[~good])]
            own, paths, columns = own[good], lines_at(paths, good), [lines_at(text, good) for text in columns]
        for place, column in zip(kept, texts, strict=True):
            column.append(paths if place == images[0] else columns[place])
        numbers.append(own)
        odd += others
        short += cut
    if not sum(map(len, numbers)):
        name = header[images[0]] if images else "a column of images"
        raise AnnotationFormatError("The table names no image", where=where, expected=f"rows below {name}")
    whole = {place: b"".join(column) for place, column in zip(kept, texts, strict=True)}
    odd.sort(key=lambda one: one.line)
    cut_lines = [one for one in odd if one.reason != "it names no image"] if short else []
    one = PublishedList(
        "", whole.pop(images[0]), np.concatenate(numbers), odd=len(odd), odd_lines=tuple(odd[:SHOWN]), short=short,
        short_lines=tuple(cut_lines[:SHOWN]),
    )  # fmt: skip
    notes = _choice(header, images) if headed else (f"it has no header; column {images[0] + 1} holds files",)
    return _described(one, header, whole, images[1:], headed=headed, boxes=boxes) | {"notes": notes}


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
    one: PublishedList, header: Sequence[str], texts: Mapping[int, bytes], files: Sequence[int], *, headed: bool,
    boxes: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return lists with what stands beside their images: classes, second files, labels in columns, parts."""
    beside = {other: coded(text) for other, text in texts.items()}
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
        one = replace(one, groups=tuple(beside[label][0]), group_of=beside[label][1])
    if second is not None:
        one = replace(one, companions=normalised(texts[second]))
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
    return replace(
        one,
        lines=one.lines[rows],
        group_of=None if one.group_of is None else one.group_of[rows],
        label_counts=None if one.label_counts is None else one.label_counts[rows],
        columns={name: Column(column.values, column.of[rows]) for name, column in one.columns.items()},
        paths=lines_at(one.paths, rows),
        companions=None if one.companions is None else lines_at(one.companions, rows),
    )
