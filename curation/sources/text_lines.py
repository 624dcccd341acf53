"""Lines of a text as columns of positions: where each begins and ends, what stands last in it, and its words.

Of lines with several words a word is a file by its suffix. ``COVID 70 COVID(70).png COVID-19 sirm`` has one: the image
is that word, what stands before it is one field, and the class follows. In ``2011_09_26/drive_0001 5 l`` all columns
name the image together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.errors import DamagedFileError
from curation.sources.entries import (
    LONGEST_LINE,
    NO_LABEL,
    OUTER_BLANKS,
    RETURNS,
    SHARE,
    SHOWN,
    Column,
    Form,
    OddLine,
    PublishedList,
    count_distinct,
    encoded,
)
from curation.sources.stems import FILE_SUFFIXES, before_suffix, blocks_of, firsts, gathered, normalised

if TYPE_CHECKING:
    from curation.sources.source import Bools, Int32s, Int64s

_LONGEST_NAME = 255
LABEL_DIGITS = 9
_LINE_FEED, _SLASH, _MINUS, _ZERO = 10, 47, 45, 48
BLANK = np.zeros(256, np.bool_)
BLANK[[32, 9, 13]] = True
_CONTROL = np.zeros(256, np.bool_)
_CONTROL[[*range(9), 11, 12, *range(14, 32), 127]] = True
_AFTER_FOLDERS = re.compile(rb"[/\\]")
_REASONS = (
    "", "it names a folder", "it holds a control character", "it is not printable", "the line is too long",
    f"its name is longer than {_LONGEST_NAME} characters",
)  # fmt: skip


@dataclass(frozen=True)
class Lines:
    """Spans of the filled lines of a text, and of what would stand before a label."""

    text: bytes
    numbers: Int32s
    starts: Int32s
    ends: Int32s
    breaks: Int32s
    before: Int32s
    labels: Int32s
    is_imglist: Bools
    is_voc: Bools
    is_sentence: Bools
    is_spaced: Bools

    def odd(self, rows: Bools, reason: str) -> list[OddLine]:
        """Return what is shown of some lines, the first few."""
        return [
            OddLine(int(self.numbers[row]), reason, shown(self.text, self.starts[row], self.ends[row]))
            for row in np.flatnonzero(rows)[:SHOWN].tolist()
        ]

    def at(self, rows: Bools) -> Lines:
        """Return some of the lines."""
        return Lines(self.text, *(column[rows] for name, column in vars(self).items() if name != "text"))

    def texts(self, ends: Any = None) -> bytes:
        """Return the lines, or what stands before other ends, a line feed after each."""
        closing = self.breaks.astype(np.int64)
        spans = self.starts, self.ends if ends is None else ends
        return gathered(np.frombuffer(self.text, np.uint8), spans, (closing, closing + 1))


def shown(text: bytes, start: int, end: int) -> str:
    """Return the beginning of a line."""
    return text[start : min(end, start + 240)].decode("utf-8", "ignore")[:60]


def numbers_alone(data: bytes) -> int | None:
    """Return the number of lines where each is a number and nothing else: most lists are, and one look tells."""
    buffer = np.frombuffer(data, np.uint8)
    if buffer[:_LONGEST_NAME].max() > _ZERO + 9 or data.startswith(b"\n") or buffer.max() > _ZERO + 9:
        return None
    lower = int(np.count_nonzero(buffer < _ZERO))
    width = data.index(b"\n") + 1
    if width * lower == len(data) and (buffer[width - 1 :: width] == _LINE_FEED).all():
        return lower if width <= _LONGEST_NAME else None
    breaks = np.flatnonzero(buffer == _LINE_FEED)
    widths = np.diff(breaks, prepend=-1)
    return lower if len(breaks) == lower and widths.min() > 1 and widths.max() <= _LONGEST_NAME else None


def require_utf8(block: bytes, where: str) -> None:
    """Refuse bytes that are no UTF-8."""
    if block.isascii():
        return
    try:
        block.decode()
    except UnicodeDecodeError as error:
        raise DamagedFileError("The file is not UTF-8 text", where=where, found=str(error)[:200]) from None


def lines_of(data: bytes, where: str) -> tuple[Lines, int, int, list[OddLine], Counter[str]]:
    """Return the filled lines of a text, the number of all, that of those that are no entry, the first, and traits."""
    parts, odd, traits, number, refused, start = list[Any](), list[OddLine](), Counter[str](), 0, 0, 0
    for block in blocks_of(data):
        require_utf8(block, where)
        columns, count, strange, reasons = _lines_of(block, number, start, traits)
        parts.append(columns)
        odd += reasons[: SHOWN - len(odd)]
        number, refused, start = number + count, refused + strange, start + len(block)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Lines(data, *columns), number, refused, odd, +traits


def _lines_of(block: bytes, before: int, offset: int, traits: Counter[str]) -> tuple[Any, int, int, list[OddLine]]:
    buffer = np.frombuffer(block, np.uint8)
    breaks = np.flatnonzero(buffer == _LINE_FEED)
    first = firsts(breaks)
    starts, ends = first.copy(), breaks.copy()
    short = breaks - first <= LONGEST_LINE
    for step, bound in ((-1, ends), (1, starts)):
        rows = np.flatnonzero(short & (ends > starts))
        while len(rows):
            rows = rows[BLANK[buffer[bound[rows] - (step < 0)]]]
            bound[rows] += step
            rows = rows[ends[rows] > starts[rows]]
    filled = ends > starts
    if b"\r" in block:
        by_return = (breaks > first) & (buffer[breaks - 1] == ord("\r"))
        traits[RETURNS] += int(by_return.sum())
        inner = np.flatnonzero(buffer == ord("\r"))
        rows = np.searchsorted(breaks, inner)
        lone = np.unique(rows[(inner >= starts[rows]) & (inner < ends[rows])])
    else:
        by_return, lone = np.zeros(len(breaks), np.bool_), np.empty(0, np.int64)
    traits[OUTER_BLANKS] += int((filled & (breaks - first - by_return > ends - starts)).sum())
    reasons = np.zeros(len(breaks), np.int8)
    reasons[filled] = (buffer[ends[filled] - 1] == _SLASH) | (buffer[ends[filled] - 1] == ord("\\"))
    reasons[lone] = 2
    if np.count_nonzero(buffer < 32) > len(breaks) + block.count(b"\t") + block.count(b"\r") or b"\x7f" in block:
        control = np.flatnonzero(_CONTROL[buffer])
        reasons[np.searchsorted(breaks, control)] = 2
    for row in () if block.isascii() else np.flatnonzero(filled).tolist():
        text = block[starts[row] : min(ends[row], starts[row] + LONGEST_LINE + 3)]
        if not text.isascii() and not text.decode("utf-8", "ignore").replace("\t", " ").isprintable():
            reasons[row] = 3
    for row in np.flatnonzero(short & (ends - starts > _LONGEST_NAME)).tolist():
        name = _AFTER_FOLDERS.split(block[starts[row] : ends[row]])[-1]
        if max(len(word.decode("utf-8", "ignore")) for word in name.split() or [b""]) > _LONGEST_NAME:
            reasons[row] = 5
    reasons[~short] = 4
    strange = np.flatnonzero(reasons)
    odd = [
        OddLine(before + row + 1, _REASONS[reasons[row]], shown(block, starts[row], ends[row]))
        for row in strange[:SHOWN].tolist()
    ]
    rows = np.flatnonzero(filled & (reasons == 0))
    ends = ends[rows]
    labelled = _with_labels(buffer, starts[rows], ends)
    positions = (starts[rows], ends, breaks[rows], labelled[0])
    columns = [rows + before + 1, *(one + offset for one in positions)]
    return [*(one.astype(np.int32) for one in columns), *labelled[1:]], len(breaks), len(strange), odd


def _with_labels(buffer: Any, starts: Int64s, ends: Int64s) -> tuple[Int64s, Int32s, Bools, Bools, Bools, Bools]:
    """Return where the text before a label ends, the labels, and which lines are of which kind (see `Lines`)."""
    before, labels = ends.copy(), np.full(len(ends), NO_LABEL, np.int32)
    has_path, is_bare, is_sentence, is_spaced = np.zeros((4, len(ends)), np.bool_)
    blanks = np.flatnonzero((buffer == 32) | (buffer == 9))
    if len(blanks):
        last = np.searchsorted(blanks, ends) - 1
        place = blanks[last]
        rows = np.flatnonzero((last >= 0) & (place > starts) & (place < ends))
        values, good = numbers_of(buffer, place[rows] + 1, ends[rows])
        rows = rows[good]
        labels[rows], before[rows] = values[good], place[rows]
        moving = rows
        while len(moving):
            moving = moving[BLANK[buffer[before[moving] - 1]]]
            before[moving] -= 1
        has_path[rows] = before_suffix(buffer, starts[rows], before[rows], FILE_SUFFIXES) < before[rows]
        rows = rows[~has_path[rows]]
        has_path[rows] = _hold_folder(buffer, starts[rows], before[rows])
        is_bare[rows] = np.searchsorted(blanks, before[rows]) == np.searchsorted(blanks, starts[rows])
        words = np.flatnonzero((last >= 0) & (place > starts) & (place < ends) & ~has_path)
        here, there = starts[words], ends[words]
        is_sentence[words] = before_suffix(buffer, here, there, FILE_SUFFIXES) == there
        is_sentence[words] &= ~_hold_folder(buffer, here, there)
        following = np.append(blanks, len(buffer))[np.searchsorted(blanks, starts)]
        is_spaced = following < before
    is_flag = np.abs(labels) <= 1
    return before, labels, (labels != NO_LABEL) & has_path, is_flag & ~has_path & is_bare, is_sentence, is_spaced


def _hold_folder(buffer: Any, starts: Int64s, ends: Int64s) -> Bools:
    """Return which spans hold a slash."""
    slashes = np.flatnonzero((buffer == _SLASH) | (buffer == ord("\\"))) if len(starts) else starts
    return np.searchsorted(slashes, ends) > np.searchsorted(slashes, starts)


def numbers_of(buffer: Any, starts: Int32s | Int64s, ends: Int32s | Int64s) -> tuple[Int64s, Bools]:
    """Return the integers that stand in spans, and which spans hold one of at most nine digits."""
    negative = buffer[starts] == _MINUS
    starts = starts + negative
    widths = ends - starts
    good = (widths > 0) & (widths <= LABEL_DIGITS)
    values = np.zeros(len(starts), np.int64)
    for place in range(int(widths[good].max()) if good.any() else 0):
        rows = np.flatnonzero(good & (widths > place))
        digits = buffer[starts[rows] + place].astype(np.int64) - _ZERO
        values[rows] = values[rows] * 10 + digits
        good[rows] &= (digits >= 0) & (digits <= 9)
    return np.where(negative, -values, values), good


_WORD, _NUMERIC, _DIGIT = 1, 2, 4
_KINDS = bytes(
    0 if char in b" \t\r\n" else _WORD | _NUMERIC * (char in b"0123456789+-.,eE") | _DIGIT * (char in b"0123456789")
    for char in range(256)
)
_SIDES = {"l", "r", "left", "right"}
_FRAMES = 0.7
"""Of the lines, or fewer, have folders of their own where what stands beside them are frames."""
_HEADER = 2
_FEW_CLASSES = 20
_FEWEST_IN_PAIR = 3


class _Words:
    """The words of lines, the positions of those that matter in each line, and which lines are entries."""

    def __init__(self, lines: Lines) -> None:
        self.lines, self.odd, self.left_out = lines, list[OddLine](), 0
        buffer, kinds = (np.frombuffer(one, np.uint8) for one in (lines.text, lines.text.translate(_KINDS)))
        edges = np.flatnonzero(np.diff(kinds > 0, prepend=False, append=False)).astype(np.int32)
        starts, ends = edges[::2], edges[1::2]
        first, stop = np.searchsorted(starts, lines.starts), np.searchsorted(starts, lines.ends)
        if (stop - first).sum() < len(starts):
            marks = np.zeros(len(starts) + 1, np.int8)
            marks[first] += 1
            marks[stop] -= 1
            kept = np.cumsum(marks[:-1]) > 0
            starts, ends = starts[kept], ends[kept]
            first = np.searchsorted(starts, lines.starts)
        negative = (buffer[starts] == ord("-")) & (ends - starts > 1)
        inner = starts + negative
        kind = np.bitwise_and.reduceat(kinds, np.stack([inner, ends], axis=1).ravel())[::2]
        digit = buffer[inner].astype(np.int8) - ord("0")
        flags = np.where((ends - inner == 1) & (digit <= 1), np.where(negative, -digit, digit), 2)
        self.flags = np.where(kind & _DIGIT > 0, flags, 3).astype(np.int8)
        self.is_file = before_suffix(buffer, starts, ends, FILE_SUFFIXES) < ends
        self.buffer, self.starts, self.ends, self.kind = buffer, starts, ends, kind
        self.first = first.astype(np.int32)
        self.last = np.append(self.first[1:], len(starts)).astype(np.int32) - 1
        self.rows = np.ones(len(self.first), np.bool_)
        words, is_file, count = np.arange(len(starts), dtype=np.int32), self.is_file, self.last - self.first + 1
        self.count, self.files = count, self.sums(is_file)
        # The last file of each line; of a line without one, the word before it.
        self.file = np.maximum(np.maximum.reduceat(np.where(is_file, words, -1), self.first), self.first - 1)
        self.first_file = np.minimum(self._lowest(words, is_file), self.last)
        is_second = is_file & (words > np.repeat(self.first_file, count))
        self.second_file = np.where(self.files > 1, self._lowest(words, is_second), -1)
        self.after, is_behind = self.last - self.file, words > np.repeat(self.file, count)
        self.after_are_numbers = self.sums((kind & _NUMERIC > 0) & is_behind) == self.after
        self.after_are_flags = self.sums((np.abs(self.flags) < 2) & is_behind) == self.after
        self.after_is_integer = (self.after == 1) & (self.flags[self.last] < 3)
        self.ones = self.sums((self.flags == 1) & is_behind)

    def sums(self, marks: Any) -> Any:
        """Return how many words of each line are marked."""
        return np.add.reduceat(marks, self.first, dtype=np.int32)

    def _lowest(self, words: Int32s, marks: Bools) -> Int32s:
        found: Int32s = np.minimum.reduceat(np.where(marks, words, np.int32(len(words))), self.first)
        return found

    def texts(self, start: str, end: str) -> bytes:
        """Return what stands between two words of the entries; ``file+`` is the one behind the file, if it has one."""
        rows = self.rows
        here, there = (
            getattr(self, name.rstrip("+-"))[rows] + name.count("+") - name.count("-") for name in (start, end)
        )
        missing = (here > there) | (there > self.last[rows])
        starts = self.starts[np.minimum(here, self.last[rows])]
        ends = np.where(missing, starts, self.ends[np.where(missing, 0, there)])
        closing = self.lines.breaks[rows].astype(np.int64)
        return gathered(self.buffer, (starts, ends), (closing, closing + 1))

    def encoded(self, start: str, end: str = "") -> Column:
        """Return the same as a column."""
        return encoded(self.texts(start, end or start))

    def leave_out(self, rows: Bools, reason: str) -> None:
        """Count and show lines that have less than the others."""
        self.left_out += int(rows.sum())
        self.odd += self.lines.odd(rows, reason)

    def read(self, form: Form, paths: bytes, **columns: Any) -> dict[str, Any]:
        """Return the list of the entries."""
        odd = tuple(sorted(self.odd, key=lambda one: one.line)[:SHOWN])
        counts: dict[str, Any] = {"odd": self.left_out, "odd_lines": odd, "short": self.left_out, "short_lines": odd}
        return {"form": form, "lists": (PublishedList("", paths, self.lines.numbers[self.rows], **counts, **columns),)}


def read_files(lines: Lines) -> dict[str, Any] | None:
    """Return a list whose lines name files beside other words; None where the lines are no such."""
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
        read = _numbered(table) if mostly((before == 1) & (table.kind[table.first] & _DIGIT > 0)) else None
    elif not mostly(one := table.after_is_integer) and mostly(table.after_are_numbers & (after > 0)):
        read = table.read("file and labels", table.texts("first", "file"))
    else:
        read = _classes(table, after, fielded=mostly(before > 0), numbers=mostly(one))
    if read is not None and header.any():
        read["notes"] = tuple(f"line {one.line} is a header: {one.text!a}" for one in lines.odd(header, ""))
    return read


def _two_files(table: _Words, files: Int32s) -> dict[str, Any]:
    """Return files with their companions, or pairs of them, where files that stand first stand second too."""
    table.leave_out(files == 1, "it names one file, the others two")
    paths, second = table.texts("first", "first_file"), table.texts("first_file+", "second_file")
    one, other = (next(blocks_of(text)).split(b"\n")[:-1] for text in (paths, second))
    if len(set(one)) < SHARE * len(one) and not set(one).isdisjoint(other):
        pairs = zip(paths.split(b"\n")[:-1], second.split(b"\n")[:-1], strict=True)
        return _paired(table, [b"%s\n%s\n" % pair for pair in pairs])
    return table.read("two files", paths, companions=normalised(second))


def _flags(table: _Words, after: Int32s) -> dict[str, Any]:
    usual = int(np.bincount(after[table.rows]).argmax())
    table.leave_out(table.rows & (after < usual), f"it has fewer labels than the others, which have {usual}")
    return table.read("file and label vector", table.texts("first", "file"), label_counts=table.ones[table.rows])


def _numbered(table: _Words) -> dict[str, Any]:
    """Return files behind a number: the file alone names the image. Numbers that repeat are labels."""
    numbers, paths = table.encoded("first", "file-"), table.texts("file", "file")
    if len(numbers.values) == len(numbers.of):
        return table.read("numbered files", paths)
    return table.read("imglist", paths, labels=_labels(numbers))


def _labels(column: Column) -> Int32s:
    values = [int(one) if len(one) <= LABEL_DIGITS and one.lstrip("-").isdigit() else NO_LABEL for one in column.values]
    return np.array([*values, NO_LABEL], np.int32)[column.of]


def _classes(table: _Words, after: Int32s, *, fielded: bool, numbers: bool) -> dict[str, Any] | None:
    """Return files with a class, a field before them that is no part of their path, and a source."""
    label, rest = table.encoded("file+"), table.encoded("file++", "last")
    columns = _fields(table, label) if fielded else {}
    if numbers and not columns:
        return None
    if len(rest.values) and (columns or _are_apart(label, rest)):
        columns["source"] = rest
    elif len(rest.values):
        label = table.encoded("file+", "last")
    table.leave_out(table.rows & (after == 0), "it has no label")
    own = label.of[-1]
    if (
        own >= 0
        and (label.of == own).sum() == 1
        and any(one != label.values[own] and one.startswith(label.values[own]) for one in label.values)
    ):
        table.leave_out(np.arange(len(table.rows)) == np.flatnonzero(table.rows)[-1], "its label may be cut")
    paths = table.texts("file" if columns.keys() - {"source"} else "first", "file")
    if numbers:
        return table.read("imglist", paths, labels=_labels(label), columns=columns)
    if len(label.values) > max(_FEW_CLASSES, len(label.of) / 2):
        # What differs on most lines is no class.
        return table.read("file and labels", paths, columns=columns)
    return table.read("file and labels", paths, groups=label.values, group_of=label.of, columns=columns)


def _fields(table: _Words, label: Column) -> dict[str, Column]:
    """Return what stands before the files if it is a column, and no part of a path that holds blanks."""
    texts, files = table.texts("first", "file-"), count_distinct(table.texts("file", "file"))
    before = encoded(texts)
    if len(before.values) < 2 or b"/" in texts or b"\\" in texts:
        return {}
    if files < len(before.of) and files < count_distinct(table.texts("first", "file")):
        return {}
    if len(before.values) == len(label.values) == len(np.unique(_both(before, label))):
        return {}
    counted = len(before.values) == len(before.of) and all(map(str.isdigit, before.values))
    return {"number" if counted else "patient": before}


def _are_apart(label: Column, rest: Column) -> bool:
    """Return whether two words behind a file are a class and a source, and no class of two words.

    Words of a name follow each other: ``hot`` has ``dog`` behind it. A class has several sources, or none too.
    """
    found = np.unique(_both(label, rest)[label.of >= 0]) // (len(rest.values) + 1)
    sources = np.bincount(found, minlength=len(label.values))
    counts = np.bincount(label.of[label.of >= 0], minlength=len(label.values))
    return bool(counts[sources > 1].sum() >= len(label.of) / 2)


def _both(one: Column, other: Column) -> Int64s:
    return one.of * np.int64(len(other.values) + 1) + other.of + 1


def read_names(lines: Lines) -> dict[str, Any] | None:
    """Return a list of frames of sequences, or of pairs, whose lines name no file; None where they are no such."""
    table = _Words(lines)
    if table.files.any():
        return None
    count, second = table.count, np.minimum(table.first + 1, table.last)
    numbered = (table.kind[second] & _DIGIT > 0) & (count > 1)
    for width in (2, 3):
        table.rows = numbered & (count == width)
        if table.rows.sum() < SHARE * len(count):
            continue
        folders, last = table.encoded("first"), table.encoded("last")
        columns = {"sequence": folders} | ({"side": last} if width == 3 else {})
        are_sides = {value.lower() for value in last.values} <= _SIDES
        paths = table.texts("first", "last")
        if are_sides if width == 3 else are_frames(folders, paths):
            table.leave_out(~table.rows, "it has other columns than the other lines")
            return table.read("frames", paths, by_columns=True, columns=columns)
    return _pairs(table)


def are_frames(folders: Column, entries: bytes) -> bool:
    """Return whether folders repeat, and are told apart by what stands beside them."""
    lines = len(folders.of)
    return len(folders.values) <= _FRAMES * lines and count_distinct(entries) >= SHARE * lines


def _pairs(table: _Words) -> dict[str, Any] | None:
    """Return the pairs of LFW: ``NAME 1 4`` are two photos of a name, ``NAME 1 NAME2 3`` of two names."""
    table.rows = np.ones(len(table.first), np.bool_)
    lines = table.texts("first", "last").split(b"\n")[:-1]
    header = len(lines[0].split()) < _FEWEST_IN_PAIR and all(map(bytes.isdigit, lines[0].split()))
    fits, found, widths = list[bool](), list[bytes](), {0}
    for line in lines:
        one = line.split()
        # Numbers behind a name are labels, and one photo is no pair.
        apart = one[1] != one[2] if len(one) == _FEWEST_IN_PAIR else len(one) == 4 and not one[2].isdigit()
        fits.append(apart and one[1].isdigit() and one[-1].isdigit() and not one[0].isdigit())
        if fits[-1]:
            widths.add(len(one))
            found.append(b"%s %s\n%s %s\n" % (one[0], one[1], one[2 if len(one) > _FEWEST_IN_PAIR else 0], one[-1]))
    if not (header or 4 in widths) or len(found) < max(SHARE * (len(lines) - header), 1):
        return None
    table.rows = np.array(fits)
    others = ~table.rows
    others[0] &= not header
    table.leave_out(others, "it is no pair")
    return _paired(table, found, by_columns=True)


def _paired(table: _Words, members: Sequence[bytes], **columns: Any) -> dict[str, Any]:
    """Return both members of each pair, which share their line."""
    read = table.read("pairs", b"".join(members), pairs=True, **columns)
    [one] = read["lists"]
    return read | {"lists": (replace(one, lines=np.repeat(one.lines, 2)),)}
