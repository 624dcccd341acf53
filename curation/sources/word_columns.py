"""Lists of several columns a line, apart by blanks: which words name the image, and what the others say of it.

A word is a file by its suffix. ``COVID 70 COVID(70).png COVID-19 sirm`` has one: the image is that word, what stands
before it is one field, and the class follows. In ``2011_09_26/drive_0001 5 l`` all columns name the image together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.sources.entries import (
    NO_LABEL,
    SHARE,
    SHOWN,
    Column,
    Form,
    OddLine,
    PublishedList,
    count_distinct,
    encoded,
)
from curation.sources.stems import FILE_SUFFIXES, before_suffix, blocks_of, gathered, normalised
from curation.sources.text_lines import LABEL_DIGITS, Lines

if TYPE_CHECKING:
    from curation.sources.source import Bools, Int32s, Int64s

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
    """The words of lines, the places of those that tell a line from others, and which lines are entries."""

    def __init__(self, lines: Lines) -> None:
        self.lines, self.odd, self.told = lines, list[OddLine](), 0
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

    def __getattr__(self, name: str) -> Any:
        """Return a column of `_COLUMNS`, computed once."""
        self.__dict__[name] = found = _COLUMNS[name](self)
        return found

    def sums(self, marks: Any) -> Any:
        """Return how many words of each line are marked."""
        return np.add.reduceat(marks, self.first, dtype=np.int32)

    def places(self, marks: Any, missing: int) -> Any:
        """Return the place of each word that is marked."""
        return np.where(marks, np.arange(len(self.starts), dtype=np.int32), missing)

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

    def tell(self, rows: Bools, reason: str) -> None:
        """Tell of lines that have less than the others."""
        self.told += int(rows.sum())
        self.odd += self.lines.odd(rows, reason)

    def read(self, form: Form, paths: bytes, **columns: Any) -> dict[str, Any]:
        """Return the list of the entries."""
        odd = tuple(sorted(self.odd, key=lambda one: one.line)[:SHOWN])
        told: dict[str, Any] = {"odd": self.told, "odd_lines": odd, "short": self.told, "short_lines": odd}
        return {"form": form, "lists": (PublishedList("", paths, self.lines.numbers[self.rows], **told, **columns),)}


_COLUMNS: dict[str, Callable[[_Words], Any]] = {
    "count": lambda one: one.last - one.first + 1,
    "files": lambda one: one.sums(one.is_file),
    # The last file of each line; of a line without one, the word before it.
    "file": lambda one: np.maximum(np.maximum.reduceat(one.places(one.is_file, -1), one.first), one.first - 1),
    "first_file": lambda one: np.minimum(
        np.minimum.reduceat(one.places(one.is_file, len(one.starts)), one.first), one.last
    ),
    "is_second": lambda one: one.is_file & (np.arange(len(one.starts)) > np.repeat(one.first_file, one.count)),
    "second_file": lambda one: np.where(
        one.files > 1, np.minimum.reduceat(one.places(one.is_second, len(one.starts)), one.first), -1
    ),
    "after": lambda one: one.last - one.file,
    "is_behind": lambda one: np.arange(len(one.starts)) > np.repeat(one.file, one.count),
    "after_are_numbers": lambda one: one.sums((one.kind & _NUMERIC > 0) & one.is_behind) == one.after,
    "after_are_flags": lambda one: one.sums((np.abs(one.flags) < 2) & one.is_behind) == one.after,
    "after_is_integer": lambda one: (one.after == 1) & (one.flags[one.last] < 3),
    "ones": lambda one: one.sums((one.flags == 1) & one.is_behind),
}


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
    table.tell(~table.rows & ~header, "it names no file")
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
    table.tell(files == 1, "it names one file, the others two")
    paths, second = table.texts("first", "first_file"), table.texts("first_file+", "second_file")
    one, other = (next(blocks_of(text)).split(b"\n")[:-1] for text in (paths, second))
    if len(set(one)) < SHARE * len(one) and not set(one).isdisjoint(other):
        pairs = zip(paths.split(b"\n")[:-1], second.split(b"\n")[:-1], strict=True)
        return _paired(table, [b"%s\n%s\n" % pair for pair in pairs])
    return table.read("two files", paths, companions=normalised(second))


def _flags(table: _Words, after: Int32s) -> dict[str, Any]:
    usual = int(np.bincount(after[table.rows]).argmax())
    table.tell(table.rows & (after < usual), f"it has fewer labels than the others, which have {usual}")
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
    table.tell(table.rows & (after == 0), "it has no label")
    own = label.of[-1]
    if (
        own >= 0
        and (label.of == own).sum() == 1
        and any(one != label.values[own] and one.startswith(label.values[own]) for one in label.values)
    ):
        table.tell(np.arange(len(table.rows)) == np.flatnonzero(table.rows)[-1], "its label may be cut")
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
            table.tell(~table.rows, "it has other columns than the other lines")
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
    table.tell(others, "it is no pair")
    return _paired(table, found, by_columns=True)


def _paired(table: _Words, members: Sequence[bytes], **columns: Any) -> dict[str, Any]:
    """Return both members of each pair, which share their line."""
    read = table.read("pairs", b"".join(members), pairs=True, **columns)
    [one] = read["lists"]
    return read | {"lists": (replace(one, lines=np.repeat(one.lines, 2)),)}
