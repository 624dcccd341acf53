"""Lines of a box CSV of Open Images as columns: most by arithmetic on whole words, the others with pyarrow.

The file of the training part is written by one program, and most of its lines have one form: sixteen digits, source,
key, ``1``, four coordinates of eight characters, five flags of one. Such lines need no search for separators, on which
readers of CSV spend their time. A line of any other form is left to pyarrow, with the same result.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from curation.sources.hex_ids import id_text
from curation.sources.openimages_rows import COORDINATES, FLAGS, Labels, RowBlock, Words, rows_by_arrow
from curation.sources.source import Bools, Floats, Int32s, Int64s
from curation.sources.streamed_csv import StreamedCsv

_LAYOUT = ("ImageID", "Source", "LabelName", "Confidence", *COORDINATES, *FLAGS)
_TAIL = 48
"""Length of ``,1,0.012500,0.195312,0.148438,0.587500,0,1,0,0,0``: confidence, coordinates and flags."""
_LEAST = 16 + len(",xclick,") + 1 + _TAIL
_WORD = 8


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text, "little"))


_ZERO = _word(b"0.000000")
_BEYOND_DIGIT = _word(bytes([0x76, 0x7F, *[0x76] * 6]))
"""Added to the value of each character, sets its high bit where that is no digit, or not the point."""
_HIGH = np.uint64(0x8080808080808080)
_NO_FLAGS = _word(b",0,0,0,0")
_FLAG_BITS = _word(bytes([0, 1] * 4))
_XCLICK, _ACTIVEMIL = _word(b"xclick,/"), _word(b"activemi")
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)


def parse_rows(lines: bytes, file: StreamedCsv, labels: Labels, row: int) -> RowBlock:
    """Return the rows that some whole lines hold, blank lines passed over.

    Parameters
    ----------
    lines : bytes
        Each line with its line feed.
    file : StreamedCsv
        Has the columns `curation.sources.openimages_rows.REQUIRED`.
    row : int
        The row of the file that the first line is, for messages.

    Raises
    ------
    AnnotationFormatError
        A row has another number of columns than the header, or a value does not fit.
    """
    data = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1] + 1
    lengths = ends - starts
    if lengths.min(initial=2) < 2:
        filled = (lengths > 1) | ((lengths == 1) & (data[starts] != ord("\r")))
        starts, ends, lengths = starts[filled], ends[filled], lengths[filled]
    numbers = np.arange(row, row + len(starts))
    plain = lengths >= _LEAST
    # A NUL behind a key would pass for the end of it.
    usual = file.header == _LAYOUT and sys.byteorder == "little" and b"\0" not in lines
    if not usual or not plain.any():
        return rows_by_arrow(lines, starts, ends, file, labels, numbers)
    # What is too short to be looked at is replaced by a line that is not, so that nothing beyond the block is read.
    first = int(np.flatnonzero(plain)[0])
    block, found = rows_by_words(
        lines, np.where(plain, starts, starts[first]), np.where(plain, ends, ends[first]), labels
    )
    others = np.flatnonzero(~(plain & found))
    if not len(others):
        return block
    rest = rows_by_arrow(lines, starts[others], ends[others], file, labels, numbers[others])
    return _joined(block, rest, others)


def _windows(lines: bytes, dtype: str) -> Any:
    """Return the words that begin at each byte; gathering from them copies a word at any address."""
    width = np.dtype(dtype).itemsize
    return np.ndarray((max(len(lines) - width + 1, 0),), dtype, buffer=lines, strides=(1,))


def rows_by_words(lines: bytes, starts: Int64s, ends: Int64s, labels: Labels) -> tuple[RowBlock, Bools]:
    """Return all lines as if they had the usual form, and which ones have it."""
    n = len(starts)
    tails = _windows(lines, f"V{_TAIL}")[ends - _TAIL]
    octets = tails.view(np.uint8).reshape(n, _TAIL)
    digits = np.ndarray((n, 4), np.uint64, buffer=tails, offset=3, strides=(_TAIL, 9)).copy() ^ _ZERO
    beyond = ((digits | (digits + _BEYOND_DIGIT)) & _HIGH).any(axis=1)
    late = np.ndarray((n,), np.uint64, buffer=tails, offset=40, strides=(_TAIL,)) ^ _NO_FLAGS
    good = ~beyond & ((late & ~_FLAG_BITS) == 0) & (octets[:, 1] == ord("1"))
    for comma in (0, 2, 11, 20, 29, 38):
        good &= octets[:, comma] == ord(",")
    flags = (octets[:, 39::2] - np.uint8(ord("0"))).view(np.int8)
    good &= flags[:, 0].view(np.uint8) < 2
    words = _windows(lines, "u8")
    origin = words[starts + 17]
    is_mil = origin == _ACTIVEMIL
    good &= is_mil | (origin == _XCLICK)
    data = np.frombuffer(lines, np.uint8)
    key = starts + np.where(is_mil, 27, 24)
    good &= (data[starts + 16] == ord(",")) & (data[key] == ord("/"))
    good &= ~is_mil | ((data[key - 2] == ord("l")) & (data[key - 1] == ord(",")))
    category, known = _keys(words, key, ends - _TAIL - key, labels)
    block = RowBlock(
        ids=np.stack([words[starts], words[starts + _WORD]], axis=1),
        category=category,
        corners=_shares(digits),
        flags=flags,
        confidence=np.ones(n, np.float32),
        origin=np.where(is_mil, np.int8(2), np.int8(1)),
    )
    return block, good & known


def _keys(words: Words, starts: Int64s, lengths: Int64s, labels: Labels) -> tuple[Int32s, Bools]:
    fits = (lengths > 0) & (lengths <= 2 * _WORD)
    kept = np.where(fits, lengths, 0)
    first, second = np.minimum(kept, _WORD), np.maximum(kept - _WORD, 0)
    both = np.empty((len(starts), 2), np.uint64)
    both[:, 0] = words[starts] & _MASKS[first]
    both[:, 1] = words[starts + _WORD] & _MASKS[second]
    category = labels.of_words(both)
    return category, fits & (category >= 0)


def _shares(digits: Words) -> Floats:
    """Return ``0.123456`` of words that hold the value of each character: one division, rounded as a parser rounds."""
    # The leading digit takes the place of the point; then neighbours are joined, ten, a hundred, ten thousand fold.
    found = (digits & ~np.uint64(0xFFFF)) | (digits & np.uint64(0xFF)) << np.uint64(8)
    found = (found * np.uint64(10) + (found >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    found = (found * np.uint64(100) + (found >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    found = (found * np.uint64(10_000) + (found >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return found / 1e6


def _joined(block: RowBlock, rest: RowBlock, others: Int64s) -> RowBlock:
    """Return a block in which some rows are replaced, in place but for ids that have to become texts."""
    for name in ("category", "corners", "flags", "confidence", "origin"):
        getattr(block, name)[others] = getattr(rest, name)
    if isinstance(block.ids, np.ndarray) and isinstance(rest.ids, np.ndarray):
        block.ids[others] = rest.ids
        return block
    texts = [id_text(block.ids, row) for row in range(len(block))]
    for place, row in enumerate(others.tolist()):
        texts[row] = id_text(rest.ids, place)
    return replace(block, ids=texts)
