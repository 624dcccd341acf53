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
import numpy.typing as npt

from curation.sources.hex_ids import id_text
from curation.sources.openimages_rows import COORDINATES, FLAGS, Labels, RowBlock, Words, rows_by_arrow
from curation.sources.source import Bools, Floats, Int64s
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
_FORM = b",1,........,........,........,........,0,0,0,0,0"
_FORM_WORDS = [_word(_FORM[at : at + _WORD]) for at in range(0, _TAIL, _WORD)]
_FIXED = bytes({ord("."): 0x00, ord("0"): 0xFE}.get(character, 0xFF) for character in _FORM)
"""The bits in which a tail is as `_FORM`: none of a coordinate, all but the last one of a flag."""
_FIXED_WORDS = [_word(_FIXED[at : at + _WORD]) for at in range(0, _TAIL, _WORD)]
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


def rows_by_words(lines: bytes, starts: Int64s, ends: Int64s, labels: Labels) -> tuple[RowBlock, Bools]:
    """Return all lines as if they had the usual form, and which ones have it."""
    tails = _gathered(lines, ends - _TAIL)
    strange = np.zeros(len(starts), np.uint64)
    for place, (form, fixed) in enumerate(zip(_FORM_WORDS, _FIXED_WORDS, strict=True)):
        strange |= (_words(tails, _WORD * place) ^ form) & fixed
    digits = np.stack([_words(tails, 3 + 9 * place) for place in range(4)], axis=1) ^ _ZERO
    checked = (digits | (digits + _BEYOND_DIGIT)) & _HIGH
    for place in range(4):
        strange |= checked[:, place]
    heads = _gathered(lines, starts)
    is_mil, key, begin, good = _keys(heads)
    lengths = ends - _TAIL - starts - begin
    fits = (lengths > 0) & (lengths <= 2 * _WORD)
    lengths = np.where(fits, lengths, 0)
    key[:, 0] &= _MASKS[np.minimum(lengths, _WORD)]
    key[:, 1] &= _MASKS[np.maximum(lengths - _WORD, 0)]
    category = labels.of_words(key)
    block = RowBlock(
        ids=np.stack([_words(heads, 0), _words(heads, _WORD)], axis=1),
        category=category,
        corners=_shares(digits),
        flags=(_octets(tails)[:, 39::2] & 1).astype(np.int8),
        confidence=np.ones(len(starts), np.float32),
        origin=is_mil.astype(np.int8) + np.int8(1),
    )
    return block, good & fits & (category >= 0) & (strange == 0)


def _keys(heads: Any) -> tuple[Bools, Words, Int64s, Bools]:
    """Return which lines name activemil; sixteen bytes from the key on, and where it begins; and which are as usual."""
    origin, octets = _words(heads, 17), _octets(heads)
    is_mil: Bools = origin == _ACTIVEMIL
    good: Bools = (octets[:, 16] == ord(",")) & (is_mil | (origin == _XCLICK))
    key = np.stack([_words(heads, 24), _words(heads, 24 + _WORD)], axis=1)
    begin = np.full(len(is_mil), 24, np.int64)
    if len(mil := np.flatnonzero(is_mil)):
        begin[mil] = 27
        key[mil, 0], key[mil, 1] = _words(heads, 27)[mil], _words(heads, 27 + _WORD)[mil]
        good[mil] &= (octets[mil, 25:28] == np.frombuffer(b"l,/", np.uint8)).all(axis=1)
    return is_mil, key, begin, good


def _gathered(lines: bytes, places: Int64s) -> Any:
    """Return the `_TAIL` bytes from each place on, one after the other: words at any address are copied at once."""
    windows = np.ndarray((max(len(lines) - _TAIL + 1, 0),), f"V{_TAIL}", buffer=lines, strides=(1,))
    return windows[places]


def _words(gathered: Any, offset: int) -> Words:
    return np.ndarray((len(gathered),), np.uint64, buffer=gathered, offset=offset, strides=(_TAIL,))


def _octets(gathered: Any) -> npt.NDArray[np.uint8]:
    octets: npt.NDArray[np.uint8] = gathered.view(np.uint8).reshape(len(gathered), _TAIL)
    return octets


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
