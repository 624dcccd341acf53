"""Reader of text lines as columns: the entry before a label, and the words of lines with several words.

In lines with several words, a suffix marks a word as a file. ``COVID 70 COVID(70).png COVID-19 sirm`` has one file: the
image. The text before it is a field, and the class follows. In ``2011_09_26/drive_0001 5 l`` all columns together name
the image.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.core.columns import arrow_of, distinct, values_of
from curation.core.errors import AnnotationFormatError, DamagedFileError
from curation.sources.entries import (
    LONGEST_LINE,
    NO_LABEL,
    SHARE,
    SHOWN,
    Form,
    OddLine,
    PublishedList,
    TextColumn,
    text_column,
)
from curation.sources.stems import (
    ANY_FILE,
    blocks_of,
    cells_of,
    match_pattern,
    normalised_lines,
    suffix_widths,
    text_of,
)

if TYPE_CHECKING:
    from curation.sources.source import Bools, Int32s, Int64s

_LONGEST_NAME = 255
LABEL_DIGITS = 9
_LABEL = re.compile(f"-?[0-9]{{1,{LABEL_DIGITS}}}")
_SLASHES = r"[/\\]"
_LINE_FEED = 10
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_FEWEST_NUMBERS = 4
"""Minimum count of numbers in a line of a box; lines of lists have fewer."""
_BOX_SHARE = 0.25
"""Minimum share of box lines in a file of boxes; its other lines may be image names and counts."""
_FLAG_WORDS = {"0", "1", "-1"}
_FRACTION = re.compile(r"[+-]?0?\.\d+(?:[eE][+-]?\d+)?|[01](?:\.0*)?")
_FEWEST_VALUES, _OFTEN = 20, 4
"""Entries that show what numbers are, and how often labels occur on average."""
VALUES = "The entries are values, such as labels, without names of images"
_HEAD, SAMPLED_LINES = 1 << 16, 200
_COMMENT = r"^#(?:$|\w*[\s:])"
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f]"


@dataclass(frozen=True)
class Lines:
    """The entries of a text; `before` is the text before a label."""

    cells: Any
    numbers: Int32s
    before: Any
    labels: Int32s
    is_imglist: Bools
    is_voc: Bools
    is_sentence: Bools
    is_spaced: Bools

    def __len__(self) -> int:
        return len(self.numbers)

    def odd(self, rows: Bools, reason: str) -> list[OddLine]:
        """Return the first few of some lines, with a reason, for reports."""
        return [OddLine(int(self.numbers[row]), reason, _excerpt(self.cells, row)) for row in _first(rows)]

    def at(self, rows: Bools) -> Lines:
        """Return the selected lines."""
        return Lines(**{name: column.take(np.flatnonzero(rows)) for name, column in vars(self).items()})


def _first(rows: Bools) -> list[int]:
    positions: list[int] = np.flatnonzero(rows)[:SHOWN].tolist()
    return positions


def _excerpt(cells: Any, row: int) -> str:
    text: str = cells[row].as_py()
    return text[:60]


def are_numbers(cells: Any) -> bool:
    """Return whether every line is a bare number, as in most lists."""
    from pyarrow import compute

    lengths = values_of(compute.binary_length(cells))
    return bool(lengths.max() <= _LONGEST_NAME and compute.all(compute.ascii_is_decimal(cells)).as_py())


def are_values(entries: Sequence[Any]) -> bool:
    """Return whether entries are labels or weights of images: numbers that repeat often, or fractions of 1."""
    texts = [str(entry).strip() for entry in entries[:SAMPLED_LINES]]
    if len(texts) < _FEWEST_VALUES or not all(map(_DECIMAL.fullmatch, texts)):
        return False
    return _OFTEN * len({*texts}) <= len(texts) or all(map(_FRACTION.fullmatch, texts))


def require_utf8(data: bytes, where: str) -> None:
    """Raise `DamagedFileError` for bytes that are not UTF-8."""
    try:
        data.isascii() or data.decode()
    except UnicodeDecodeError as error:
        raise DamagedFileError("The file is not UTF-8 text", where=where, found=str(error)[:200]) from None


def box_line(data: bytes) -> int | None:
    """Return the count of numbers in a line of a file of boxes, or None for another text.

    Such lines have at least four numbers, not only flags, and no file: annotations of YOLO, VisDrone, MOT,
    KITTI, DOTA and WIDER, and tables of detections.
    """
    head = data[:_HEAD]
    # Most lists have one word a line.
    if head.isascii() and not any(mark in head for mark in b" \t\v\f,;"):
        return None
    lines = [line for line in head.decode("utf-8", "ignore").split("\n")[:SAMPLED_LINES] if line.strip()]
    counts = [count for count in map(_box_numbers, lines) if count]
    return counts[0] if counts and len(counts) >= _BOX_SHARE * len(lines) else None


def _box_numbers(line: str) -> int:
    """Return the count of numbers in a box line, 0 for another line."""
    words = [word for word in re.split(r"[\s,;]+", line) if word]
    numbers = list(filter(_DECIMAL.fullmatch, words))
    others = [word for word in words if not _DECIMAL.fullmatch(word)]
    values = numbers if others else numbers[1:]
    if len(numbers) < _FEWEST_NUMBERS or len(others) > 1 or set(values) <= _FLAG_WORDS:
        return 0
    names_file = any("/" in word or "\\" in word or re.search(ANY_FILE, word) for word in others)
    return 0 if names_file else len(numbers)


def read_entries(data: bytes) -> tuple[Lines, int, list[OddLine]]:
    """Return the lines that can be entries, the number of other non-blank lines, and the first of these."""
    from pyarrow import concat_arrays

    parts, number = list[Any](), 0
    for block in blocks_of(data):
        cells = cells_of(block)
        parts.append(_entries_of_block(cells, number))
        number += len(cells)
    columns = zip(*(vars(lines).values() for lines, *_ in parts), strict=True)
    lines = Lines(
        *(np.concatenate(column) if isinstance(column[0], np.ndarray) else concat_arrays(column) for column in columns)
    )
    return lines, sum(refused for _, refused, _ in parts), [line for *_, odd in parts for line in odd]


def _entries_of_block(cells: Any, number: int) -> tuple[Lines, int, list[OddLine]]:
    from pyarrow import compute

    trimmed = compute.ascii_trim(cells, " \t\r")
    raw, widths = (values_of(compute.binary_length(column)) for column in (cells, trimmed))
    filled = (widths > 0) & ~match_pattern(trimmed, _COMMENT)
    printable = values_of(compute.ascii_is_printable(trimmed)).copy()
    others = compute.replace_substring(trimmed.filter(arrow_of(~printable)), "\t", " ")
    printable[~printable] = values_of(compute.utf8_is_printable(others))
    is_long = filled & (widths > _LONGEST_NAME)
    is_long[is_long] = [_has_long_name(text.as_py()) for text in trimmed.filter(arrow_of(is_long))]
    reasons = {
        "the line is too long": raw > LONGEST_LINE,
        f"its name is longer than {_LONGEST_NAME} characters": is_long,
        "it holds a control character": ~printable & (printable.all() or match_pattern(trimmed, _CONTROL)),
        "it is not printable": ~printable,
        "it names a folder": values_of(compute.match_substring_regex(trimmed, r"[/\\]$")),
    }
    strange = filled & np.logical_or.reduce(list(reasons.values()))
    odd = [
        OddLine(number + row + 1, next(why for why, rows in reasons.items() if rows[row]), _excerpt(trimmed, row))
        for row in _first(strange)
    ]
    rows = np.flatnonzero(filled & ~strange)
    lines = _with_labels(trimmed.take(arrow_of(rows)), (number + rows + 1).astype(np.int32))
    return lines, int(strange.sum()), odd


def _has_long_name(text: str) -> bool:
    name = re.split(r"[/\\]", text[: LONGEST_LINE + 1])[-1]
    return max(map(len, name.split()), default=0) > _LONGEST_NAME


def _with_labels(cells: Any, numbers: Int32s) -> Lines:
    """Split trailing numbers off entries, and classify the lines."""
    from pyarrow import compute

    parts = compute.ascii_split_whitespace(cells, max_splits=1, reverse=True)
    edges = values_of(parts.offsets)
    several = np.diff(edges) == 2
    if not several.any():
        none = np.zeros(len(cells), np.bool_)
        return Lines(cells, numbers, cells, np.full(len(cells), NO_LABEL, np.int32), none, none, none, none)
    last = text_column(parts.values.take(arrow_of(edges[1:] - 1)))
    labels = np.where(several, _labels(last), NO_LABEL).astype(np.int32)
    has_label = labels != NO_LABEL
    before = compute.if_else(arrow_of(has_label), parts.values.take(arrow_of(edges[:-1])), cells)
    is_spaced = np.diff(values_of(compute.ascii_split_whitespace(before, max_splits=1).offsets)) == 2
    has_path = has_label.copy()
    has_path[has_label] = _are_paths(before.filter(arrow_of(has_label)))
    is_sentence = several & ~has_path
    is_sentence[is_sentence] = ~_are_paths(cells.filter(arrow_of(is_sentence)))
    is_flag = has_label & (np.abs(labels) <= 1) & ~has_path & ~is_spaced
    return Lines(cells, numbers, before, labels, has_path, is_flag, is_sentence, is_spaced)


def _are_paths(cells: Any) -> Bools:
    is_path = match_pattern(cells, _SLASHES).copy()
    is_path[~is_path] = suffix_widths(cells.filter(arrow_of(~is_path)), ANY_FILE) > 0
    return is_path


_NUMERIC, _INTEGER = r"^[0-9+\-.,eE]+$", "^-?[0-9]+$"
_ARE_WORDS = bytes(char not in b" \t\r\n" for char in range(256))
_BLANKS_TO_BREAKS = bytes.maketrans(b" \t\r", b"\n\n\n")
_SIDES = {"l", "r", "left", "right"}
_FRAMES = 0.7
"""At most this share of the lines has a distinct folder in a list of frames."""
_HEADER = 2
_FEW_CLASSES = 20
_SAMPLE = 100_000
"""Maximum number of lines that are read to distinguish pairs from files with companions."""


class _Words:
    """The words of lines, the positions of the relevant words in each line, and which lines are entries."""

    def __init__(self, lines: Lines) -> None:
        self.lines, self.odd, self.left_out = lines, list[OddLine](), 0
        text = text_of(lines.cells)
        self.buffer = np.frombuffer(text, np.uint8)
        is_word = np.frombuffer(text.translate(_ARE_WORDS), np.bool_)
        edges = np.flatnonzero(np.diff(is_word, prepend=False, append=False)).astype(np.int32)
        self.starts, self.ends = edges[::2], edges[1::2]
        self.breaks = np.flatnonzero(self.buffer == _LINE_FEED)
        self.first = np.searchsorted(self.starts, np.append(0, self.breaks[:-1] + 1)).astype(np.int32)
        self.last = np.append(self.first[1:], len(self.starts)).astype(np.int32) - 1
        self.rows = np.ones(len(self.first), np.bool_)
        apart = np.frombuffer(text.translate(_BLANKS_TO_BREAKS), np.uint8)
        spelled = cells_of(_gathered(apart, (self.starts, self.ends + 1))).dictionary_encode()
        each, index = spelled.dictionary, values_of(spelled.indices)
        self.is_integer = match_pattern(each, _INTEGER)[index]
        numeric, is_file, is_one, is_flag = (
            match_pattern(each, pattern)[index] for pattern in (_NUMERIC, ANY_FILE, "^1$", "^-?[01]$")
        )
        words, count = np.arange(len(self.starts), dtype=np.int32), self.last - self.first + 1
        self.count, self.files = count, self.sums(is_file)
        # The last file of each line, or the word before the line if it has no file.
        self.file = np.maximum(np.maximum.reduceat(np.where(is_file, words, -1), self.first), self.first - 1)
        self.first_file = np.minimum(self._lowest(words, is_file), self.last)
        is_second = is_file & (words > np.repeat(self.first_file, count))
        self.second_file = np.where(self.files > 1, self._lowest(words, is_second), -1)
        self.after, is_behind = self.last - self.file, words > np.repeat(self.file, count)
        self.after_are_numbers = self.sums(numeric & is_behind) == self.after
        self.after_are_flags = self.sums(is_flag & is_behind) == self.after
        before = self.file - self.first
        self.before_are_integers = self.sums(self.is_integer & (words < np.repeat(self.file, count))) == before
        self.after_is_integer = (self.after == 1) & self.is_integer[self.last]
        self.ones = self.sums(is_one & is_behind)

    def sums(self, marks: Any) -> Any:
        """Return the number of marked words in each line."""
        return np.add.reduceat(marks, self.first, dtype=np.int32)

    def _lowest(self, words: Int32s, marks: Bools) -> Int32s:
        lowest: Int32s = np.minimum.reduceat(np.where(marks, words, np.int32(len(words))), self.first)
        return lowest

    def texts(self, start: str, end: str = "") -> Any:
        """Return the text of the entries between two words: ``file+`` is the word after the file."""
        rows = self.rows
        here, there = (
            getattr(self, name.rstrip("+-"))[rows] + name.count("+") - name.count("-") for name in (start, end or start)
        )
        missing = (here > there) | (there > self.last[rows])
        starts = self.starts[np.minimum(here, self.last[rows])]
        ends = np.where(missing, starts, self.ends[np.where(missing, 0, there)])
        closing = self.breaks[rows]
        return cells_of(_gathered(self.buffer, (starts, ends), (closing, closing + 1)))

    def text_column(self, start: str, end: str = "") -> TextColumn:
        """Return the same texts as a column."""
        return text_column(self.texts(start, end))

    def leave_out(self, rows: Bools, reason: str) -> None:
        """Leave out lines with fewer words than the others; count and report them."""
        self.left_out += int(rows.sum())
        self.odd += self.lines.odd(rows, reason)

    def read(self, form: Form, cells: Any, **columns: Any) -> dict[str, Any]:
        """Return the entries as a list."""
        odd = tuple(sorted(self.odd, key=lambda entry: entry.line)[:SHOWN])
        counts: dict[str, Any] = {"odd": self.left_out, "odd_lines": odd, "short": self.left_out, "short_lines": odd}
        listed = PublishedList("", text_of(cells), self.lines.numbers[self.rows], **counts, **columns)
        return {"form": form, "lists": (listed,)}


def _gathered(buffer: Any, *spans: tuple[Any, Any]) -> bytes:
    """Return the bytes of spans that do not overlap, in their order."""
    edges = np.stack([np.stack(span, axis=1) for span in spans], axis=1).astype(np.int64)
    lengths = np.diff(edges.ravel(), prepend=0, append=len(buffer))
    return bytes(buffer[np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)])


def read_file_lines(lines: Lines) -> dict[str, Any] | None:
    """Return a list whose lines contain files and other words, or None for other lines."""
    table = _Words(lines)
    files, after, before = table.files, table.after, table.file - table.first
    header = np.arange(len(files)) < (0 if files[0] else 1 + (not files[1:_HEADER].any()))
    table.rows = files > 0

    def mostly(marks: Bools) -> bool:
        return bool((marks & table.rows).sum() >= max(SHARE * (~header).sum(), 1))

    if not mostly(table.rows):
        return None
    table.leave_out(~table.rows & ~header, "it names no file")
    read: dict[str, Any] | None
    if mostly(files > 1):
        read = _two_files(table, files)
    elif mostly(table.after_are_flags & (after > 1)):
        read = _flags(table, after)
    elif mostly(after == 0):
        # A name with blanks may hold numbers: several are columns below a header only.
        most = table.count.max() if header.any() else 1
        are_numbered = (before > 0) & (before <= most) & table.before_are_integers
        read = _numbered(table) if mostly(are_numbered) else None
    elif not mostly(integers := table.after_is_integer) and mostly(table.after_are_numbers & (after > 0)):
        read = table.read("file and labels", table.texts("first", "file"))
    else:
        read = _classes(table, after, fielded=mostly(before > 0), numbers=mostly(integers))
    if read is not None and header.any():
        read["notes"] = tuple(f"line {line.line} is a header: {line.text!a}" for line in lines.odd(header, ""))
    return read


def _two_files(table: _Words, files: Int32s) -> dict[str, Any]:
    """Return files with their companions; raise an error for pairs, whose first files also occur as second files."""
    table.leave_out(files == 1, "it names one file, the others two")
    cells, second = table.texts("first", "first_file"), table.texts("first_file+", "second_file")
    left, right = (set(texts.slice(0, _SAMPLE).to_pylist()) for texts in (cells, second))
    if len(left) < SHARE * min(len(cells), _SAMPLE) and not left.isdisjoint(right):
        raise AnnotationFormatError(
            "The lines pair images instead of listing them", where=f"line {table.lines.numbers[0]}",
            expected="one image a line", found=_excerpt(table.lines.cells, 0),
        )  # fmt: skip
    return table.read("two files", cells, companions=normalised_lines(text_of(second)))


def _flags(table: _Words, after: Int32s) -> dict[str, Any]:
    usual = int(np.bincount(after[table.rows]).argmax())
    table.leave_out(table.rows & (after < usual), f"it has fewer labels than the others, which have {usual}")
    return table.read("file and label vector", table.texts("first", "file"), label_counts=table.ones[table.rows])


def _numbered(table: _Words) -> dict[str, Any]:
    """Return files that follow a number; only the file names the image. Numbers that repeat are labels."""
    numbers = table.text_column("first", "file-")
    labels = None if len(numbers.values) == len(numbers.of) else _labels(numbers)
    return table.read("imglist", table.texts("file"), labels=labels)


def _labels(column: TextColumn) -> Int32s:
    values = [int(text) if _LABEL.fullmatch(text) else NO_LABEL for text in column.values]
    return np.array([*values, NO_LABEL], np.int32)[column.of]


def _classes(table: _Words, after: Int32s, *, fielded: bool, numbers: bool) -> dict[str, Any] | None:
    """Return files with a class, a field before them outside their path, and a source."""
    label, rest = table.text_column("file+"), table.text_column("file++", "last")
    columns = _fields(table, label) if fielded else {}
    if numbers and not columns:
        return None
    if len(rest.values) and (columns or _are_apart(label, rest)):
        columns["source"] = rest
    elif len(rest.values):
        label = table.text_column("file+", "last")
    table.leave_out(table.rows & (after == 0), "it has no label")
    last_label = label.of[-1]
    if (
        last_label >= 0
        and (label.of == last_label).sum() == 1
        and any(
            value != label.values[last_label] and value.startswith(label.values[last_label]) for value in label.values
        )
    ):
        table.leave_out(np.arange(len(table.rows)) == np.flatnonzero(table.rows)[-1], "its label may be cut")
    paths = table.texts("file" if columns.keys() - {"source"} else "first", "file")
    if numbers:
        return table.read("imglist", paths, labels=_labels(label), columns=columns)
    if len(label.values) > max(_FEW_CLASSES, len(label.of) / 2):
        # Texts that differ on most lines are not classes.
        return table.read("file and labels", paths, columns=columns)
    return table.read("file and labels", paths, groups=label.values, group_of=label.of, columns=columns)


def _fields(table: _Words, label: TextColumn) -> dict[str, TextColumn]:
    """Return the text before the files if it is a column rather than part of a path with blanks."""
    cells, files = table.texts("first", "file-"), len(table.texts("file").unique())
    before = text_column(cells)
    if len(before.values) < 2 or match_pattern(cells, _SLASHES).any():
        return {}
    if files < len(before.of) and files < len(table.texts("first", "file").unique()):
        return {}
    if len(before.values) == len(label.values) == len(distinct(_both(before, label))):
        return {}
    counted = len(before.values) == len(before.of) and all(map(str.isdigit, before.values))
    return {"number" if counted else "patient": before}


def _are_apart(label: TextColumn, rest: TextColumn) -> bool:
    """Return whether two words after a file are a class and a source rather than a class of two words.

    The words of a name always follow each other, as in ``hot dog``. A class has several sources, or sometimes none.
    """
    label_of = distinct(_both(label, rest)[label.of >= 0]) // (len(rest.values) + 1)
    sources = np.bincount(label_of, minlength=len(label.values))
    counts = np.bincount(label.of[label.of >= 0], minlength=len(label.values))
    return bool(counts[sources > 1].sum() >= len(label.of) / 2)


def _both(first: TextColumn, second: TextColumn) -> Int64s:
    return first.of * np.int64(len(second.values) + 1) + second.of + 1


def read_names(lines: Lines) -> dict[str, Any] | None:
    """Return a list of frames of sequences, whose lines have no file name; None for other lines."""
    table = _Words(lines)
    if table.files.any():
        return None
    count, second = table.count, np.minimum(table.first + 1, table.last)
    numbered = table.is_integer[second] & (count > 1)
    for width in (2, 3):
        table.rows = numbered & (count == width)
        if table.rows.sum() < SHARE * len(count):
            continue
        folders, last = table.text_column("first"), table.text_column("last")
        columns = {"sequence": folders} | ({"side": last} if width == 3 else {})
        are_sides = {value.lower() for value in last.values} <= _SIDES
        cells = table.texts("first", "last")
        if are_sides if width == 3 else are_frames(folders, cells):
            table.leave_out(~table.rows, "it has other columns than the other lines")
            return table.read("frames", cells, by_columns=True, columns=columns)
    return None


def are_frames(folders: TextColumn, entries: Any) -> bool:
    """Return whether folders repeat and the words after them distinguish the entries."""
    lines = len(folders.of)
    return len(folders.values) <= _FRAMES * lines and len(entries.unique()) >= SHARE * lines
