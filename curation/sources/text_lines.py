"""Lines of a text as columns of positions: where each begins and ends, and what stands last in it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.errors import DamagedFileError
from curation.sources.entries import LONGEST_LINE, NO_LABEL, OUTER_BLANKS, RETURNS, SHOWN, OddLine
from curation.sources.stems import FILE_SUFFIXES, before_suffix, blocks_of, firsts, gathered

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
