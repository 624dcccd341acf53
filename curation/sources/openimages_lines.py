"""Lines of a box CSV of Open Images as columns: most by arithmetic on whole words, the others with pyarrow.

The file of the training part is written by one program, and most of its lines have one form: sixteen digits, source,
key, ``1``, four coordinates of eight characters, five flags of one, or all five ``-1``. Such lines need no search for
separators, on which readers of CSV spend their time. A line of any other form is left to pyarrow, with the same result.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from curation.sources.hex_ids import id_text
from curation.sources.openimages_rows import (
    COORDINATES,
    FLAGS,
    UNSTATED,
    Labels,
    RowBlock,
    Words,
    rows_by_arrow,
)
from curation.sources.source import Bools, Floats, Int64s
from curation.sources.streamed_csv import StreamedCsv

_LAYOUT = ("ImageID", "Source", "LabelName", "Confidence", *COORDINATES, *FLAGS)
_WORD = 8
_HEAD = 32
"""Bytes looked at from the start of a line: id, source, and the start of the key."""
_KEY = 2 * _WORD
_TAIL = 48
"""Length of ``,1,0.012500,0.195312,0.148438,0.587500,0,1,0,0,0``: confidence, coordinates and flags."""
_REACH = _KEY + _TAIL
"""Bytes looked at up to the end of a line: the end of the key, and the tail."""
_BEFORE_KEY = len("0123456789abcdef,xclick,")
_LEAST = _BEFORE_KEY + 1 + _TAIL


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text, "little"))


_ZERO = _word(b"0.000000")
_BEYOND_DIGIT = _word(bytes([0x76, 0x7F, *[0x76] * 6]))
"""Added to the value of each character, sets its high bit where that is no digit, or not the point."""
_HIGH = np.uint64(0x8080808080808080)
_STATED, _UNSTATED = b",0,0,0,0,0", b",-1,-1,-1,-1,-1"
_FORM = b",1,........,........,........,........" + _STATED
_FIXED = bytes({ord("."): 0x00, ord("0"): 0xFE}.get(character, 0xFF) for character in _FORM)
"""The bits in which a tail is as `_FORM`: none of a coordinate, all but the last one of a flag."""
_FORM_WORDS, _FIXED_WORDS = (np.frombuffer(one, np.uint64) for one in (_FORM, _FIXED))
_XCLICK, _ACTIVEMIL, _IL = _word(b",xclick,"), _word(b",activem"), np.frombuffer(b"il,/", np.uint32)[0]
_LAST = np.array([(1 << 64) - (1 << 64 - 8 * count) for count in range(_WORD + 1)], np.uint64)
"""The last bytes of a word, by their number."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Some whole lines, and what is known of those that have the usual form.

    Attributes
    ----------
    lines : bytes
    starts, ends : ndarray of int64, shape (n,)
        First byte of each line that is not blank, and its line feed.
    block : RowBlock or None
        All n rows; those in `others` are still to be filled in. None: no line has the usual form.
    others : ndarray of int64
    """

    lines: bytes
    starts: Int64s
    ends: Int64s
    block: RowBlock | None
    others: Int64s


def scan_lines(lines: bytes, file: StreamedCsv, labels: Labels) -> Scan:
    """Return what can be said of some lines without the lines before; for any number of threads.

    Parameters
    ----------
    lines : bytes
        Each line with its line feed.
    """
    data = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1] + 1
    lengths = ends - starts
    if lengths.min(initial=2) < 2:
        filled = (lengths > 1) | ((lengths == 1) & (data[starts] != ord("\r")))
        starts, ends, lengths = starts[filled], ends[filled], lengths[filled]
    usual = file.header == _LAYOUT and sys.byteorder == "little"
    shortest, longest = (int(lengths.min()), int(lengths.max())) if usual and len(lengths) else (0, 0)
    if longest < _LEAST:
        return Scan(lines, starts, ends, None, np.arange(len(starts)))
    plain, first_bytes, feeds = np.ones(len(starts), np.bool_), starts, ends
    if shortest < _LEAST:
        # What is too short to be looked at is replaced by a line that is not: nothing beyond the block is read.
        plain = lengths >= _LEAST
        instead = int(np.argmax(plain))
        first_bytes, feeds = np.where(plain, starts, starts[instead]), np.where(plain, ends, ends[instead])
    block, found = rows_by_words(lines, first_bytes, feeds, labels)
    found &= plain
    return Scan(lines, starts, ends, block, np.flatnonzero(~found))


def rows_of(scan: Scan, file: StreamedCsv, labels: Labels, row: int) -> RowBlock:
    """Return the rows of some lines; those of one file are asked for in its order, as keys may be added to `labels`.

    Parameters
    ----------
    file : StreamedCsv
        Has the columns `curation.sources.openimages_rows.REQUIRED`.
    row : int
        The row of the file that the first line is, for messages; blank lines are no rows.

    Raises
    ------
    AnnotationFormatError
        A row has another number of columns than the header, or a value does not fit.
    """
    others = scan.others
    if scan.block is not None and not len(others):
        return scan.block
    rest = rows_by_arrow(scan.lines, scan.starts[others], scan.ends[others], file, labels, row + others)
    return rest if scan.block is None else _joined(scan.block, rest, others)


def rows_by_words(lines: bytes, starts: Int64s, ends: Int64s, labels: Labels) -> tuple[RowBlock, Bools]:
    """Return all lines as if they had the usual form, and which ones have it."""
    tails = _gathered(lines, ends - _REACH, _REACH)
    octets = tails.view(np.uint8).reshape(-1, _REACH)
    stops = ends
    unstated = np.flatnonzero(octets[:, -2] == ord("-"))
    unstated = unstated[_gathered(lines, ends[unstated] - len(_UNSTATED), len(_UNSTATED)) == _UNSTATED]
    if len(unstated):
        stops = ends.copy()
        stops[unstated] -= len(_UNSTATED) - len(_STATED)
        tails[unstated] = _gathered(lines, stops[unstated] - _REACH, _REACH)
        octets[unstated, -len(_STATED) :] = np.frombuffer(_STATED, np.uint8)
    words = np.ascontiguousarray(tails.view(np.uint64).reshape(-1, _REACH // _WORD).T)
    corners, strange = _shares(tails)
    for word, form, fixed in zip(words[_KEY // _WORD :], _FORM_WORDS, _FIXED_WORDS, strict=True):
        strange |= (word ^ form) & fixed
    ids, is_mil, good, lengths = _heads(lines, starts, stops)
    good &= strange == 0
    words[0] &= _LAST[np.maximum(lengths - _WORD, 0)]
    words[1] &= _LAST[np.minimum(lengths, _WORD)]
    category = labels.of_words(words[0], words[1])
    good &= category >= 0
    flags = np.ascontiguousarray(octets[:, 1 - len(_STATED) :: 2].T).view(np.int8) & np.int8(1)
    flags[:, unstated] = UNSTATED
    block = RowBlock(
        ids=ids,
        category=category,
        corners=corners.T,
        flags=flags.T,
        confidence=np.ones(len(starts), np.float32),
        origin=is_mil.view(np.int8) + np.int8(1),
    )
    return block, good


def _heads(lines: bytes, starts: Int64s, stops: Int64s) -> tuple[Words, Bools, Bools, Int64s]:
    """Return ids; which lines name activemil; which begin as usual; and how long the key is, 0 where it cannot be."""
    heads = _gathered(lines, starts, _HEAD)
    words = heads.view(np.uint64).reshape(-1, _HEAD // _WORD)
    octets = heads.view(np.uint8).reshape(-1, _HEAD)
    is_mil: Bools = words[:, 2] == _ACTIVEMIL
    # A key is compared with NULs before it: it must not begin with one.
    good: Bools = (words[:, 2] == _XCLICK) & (octets[:, _BEFORE_KEY] == ord("/"))
    lengths = stops - starts - (_BEFORE_KEY + _TAIL)
    if len(mil := np.flatnonzero(is_mil)):
        good[mil] = words[mil, 3].astype(np.uint32) == _IL
        lengths[mil] -= len("activemil") - len("xclick")
    fits = (lengths > 0) & (lengths <= _KEY)
    good &= fits
    lengths *= fits
    return words[:, :2], is_mil, good, lengths


def _gathered(lines: bytes, places: Int64s, width: int) -> Any:
    """Return the bytes from each place on, one after the other: words at any address are copied at once."""
    windows = np.ndarray((max(len(lines) - width + 1, 0),), f"S{width}", buffer=lines, strides=(1,))
    return windows[places]


def _words(gathered: Any, offset: int) -> Words:
    return np.ndarray(
        (len(gathered),), np.uint64, buffer=gathered, offset=offset, strides=(gathered.itemsize,)
    )


def _shares(tails: Any) -> tuple[Floats, Words]:
    """Return the four coordinates of each tail, and words that are not 0 where one is not of the form ``0.123456``."""
    # One division of whole numbers rounds as a parser of ``0.123456`` does.
    words = np.empty((len(COORDINATES), len(tails)), np.uint64)
    for place in range(len(COORDINATES)):
        words[place] = _words(tails, _KEY + 3 + 9 * place)
    words ^= _ZERO
    other = words + _BEYOND_DIGIT
    other |= words
    other &= _HIGH
    odd = other[0] | other[1]
    odd |= other[2]
    odd |= other[3]
    # Neighbours are joined ten fold; then the pairs ``0.``, ``12``, ``34`` and ``56``, two by one product.
    np.right_shift(words, np.uint64(8), out=other)
    words *= np.uint64(10)
    words += other
    np.right_shift(words, np.uint64(16), out=other)
    for half, low, high in ((words, 100, 100_000), (other, 1, 10_000)):
        half &= np.uint64(0xFF000000FF)
        half *= np.uint64(low | high << 32)
    words += other
    words >>= np.uint64(32)
    return words.view(np.int64) / 1e6, odd


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
