"""Rows of a box CSV of Open Images as columns: most by arithmetic on whole words, the others with pyarrow.

The file of the training part is written by one program, and most of its lines have one form: sixteen digits, source,
key, ``1``, four coordinates of eight characters, five flags of one, or all five ``-1``. Such lines need no search for
separators, on which readers of CSV spend their time. A line of any other form is left to pyarrow, with the same result.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import AnnotationFormatError
from curation.sources.openimages.keys import id_text, id_words
from curation.sources.openimages.streamed_csv import StreamedCsv
from curation.sources.source import BOX_ORIGINS, Bools, Floats, Int32s, Int64s

COORDINATES = ("XMin", "XMax", "YMin", "YMax")
FLAGS = ("IsOccluded", "IsTruncated", "IsGroupOf", "IsDepiction", "IsInside")
REQUIRED = ("ImageID", "LabelName", *COORDINATES)
UNSTATED, EMPTY = -1, 2

_PLAIN = re.compile(rb'[^\0\n\r",]{1,16}')
"""Keys that stand in a line as they are, and take no more than two words."""
_TABLE_BITS = 18
_MIXERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_WORD = 8
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Some rows of a box CSV, unchecked; all arrays have the same length n.

    Attributes
    ----------
    ids : list of str or ndarray of uint64, shape (n, 2)
        Image ids, as texts where one of them has not sixteen bytes, else as their bytes.
    category : ndarray of int32, shape (n,)
        Positions in `Labels`, -1 for a key that is none of them.
    corners : ndarray of float64, shape (n, 4)
        `COORDINATES`; NaN for an empty cell.
    flags : ndarray of int8, shape (n, 5)
        `FLAGS`: -1, 0 or 1, whatever else the file has, or -1 for a column that it lacks; 2 for an empty cell.
    confidence : ndarray of float32, shape (n,)
        NaN where the file states none.
    origin : ndarray of int8, shape (n,)
        Positions in `BOX_ORIGINS`, -1 for a source that is none of them.
    """

    ids: list[str] | Words
    category: Int32s
    corners: Floats
    flags: npt.NDArray[np.int8]
    confidence: npt.NDArray[np.float32]
    origin: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.category)


class Labels:
    """Class keys and the place of each, by text and by the words of its bytes.

    Parameters
    ----------
    keys : sequence of str or None
        The keys there are; None: every key that is met is added.

    Attributes
    ----------
    place : dict of str to int
    is_open : bool
    """

    def __init__(self, keys: Sequence[str] | None) -> None:
        self.is_open = keys is None
        self.place = {key: place for place, key in enumerate(keys or ())}
        self._index()

    def places(self, keys: Sequence[str]) -> Int32s:
        """Return the place of each of some distinct keys, -1 for one that is not there and may not be added."""
        if self.is_open:
            known = len(self.place)
            for key in keys:
                self.place.setdefault(key, len(self.place))
            if len(self.place) > known:
                self._index()
        return np.array([self.place.get(key, -1) for key in keys], np.int32)

    def of_words(self, first: Words, second: Words) -> Int32s:
        """Return the place of keys given as two words of bytes, NULs before the key; -1 where in doubt."""
        table, firsts, seconds = self._indexed
        found = table[_mixed(first, second)]
        same = firsts[found] == first
        same &= seconds[found] == second
        return np.where(same, found, -1).astype(np.int32)

    def _index(self) -> None:
        packed = [key.encode() for key in self.place]
        fitting = [key if _PLAIN.fullmatch(key) else b"" for key in packed]
        words = np.frombuffer(b"".join(key.rjust(2 * _WORD, b"\0") for key in (*fitting, b"")), np.uint64)
        # Place -1 is the pair of zeros at the end, which no key has. Of two keys with one slot the last has it.
        first, second = np.ascontiguousarray(words.reshape(-1, 2).T)
        table = np.full(1 << _TABLE_BITS, -1, np.int64)
        table[_mixed(first[:-1], second[:-1])] = np.arange(len(packed))
        # One name for all three: threads that look keys up meanwhile see all of the old or all of the new.
        self._indexed = (table, first, second)


def _mixed(first: Words, second: Words) -> Int64s:
    mixed = first * _MIXERS[0]
    mixed ^= second * _MIXERS[1]
    mixed *= _MIXERS[0]
    mixed >>= np.uint64(64 - _TABLE_BITS)
    return mixed.view(np.int64)


def rows_by_arrow(
    lines: bytes, starts: Int64s, ends: Int64s, file: StreamedCsv, labels: Labels, numbers: Int64s
) -> RowBlock:
    """Return the rows on some lines, each of which may have any form that CSV allows.

    Parameters
    ----------
    lines : bytes
    starts, ends : ndarray of int64, shape (n,)
        First byte of each line, and its line feed.
    numbers : ndarray of int64, shape (n,)
        Row of the file that each line is, for messages.

    Raises
    ------
    AnnotationFormatError
        A row has another number of columns than the header, or a value does not fit.
    """
    try:
        table = _table(_text(lines, starts, ends), file)
    except ValueError as error:
        raise _refusal(error, lines, starts, ends, file, numbers) from None
    if len(table) != len(starts):
        raise AnnotationFormatError(
            "A line of the table is no row",
            where=f"{file.name}: rows {numbers[0]} to {numbers[-1]}",
            expected="one row a line",
            found=f"{len(starts)} lines with {len(table)} rows",
        )
    return _columns(table, file, labels)


def _text(lines: bytes, starts: Int64s, ends: Int64s) -> bytes:
    if len(lines) == int((ends - starts).sum()) + len(starts):
        return lines
    return b"".join([lines[start : end + 1] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])


def _table(text: bytes, file: StreamedCsv) -> Any:
    """Return the needed columns of some lines; what pyarrow raises are kinds of `ValueError`."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    words = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    known = {"ImageID": pyarrow.string(), "LabelName": words, "Source": words}
    known |= dict.fromkeys(COORDINATES, pyarrow.float64())
    known |= {"Confidence": pyarrow.float32()} | dict.fromkeys(FLAGS, pyarrow.int8())
    types = {name: kind for name, kind in known.items() if name in file.header}
    return arrow_csv.read_csv(
        pyarrow.BufferReader(text),
        read_options=arrow_csv.ReadOptions(column_names=list(file.header), block_size=max(len(text), 1 << 16)),
        parse_options=arrow_csv.ParseOptions(ignore_empty_lines=False),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=list(types), column_types=types, null_values=[""], strings_can_be_null=False
        ),
    ).combine_chunks()


def _refusal(
    error: ValueError, lines: bytes, starts: Int64s, ends: Int64s, file: StreamedCsv, numbers: Int64s
) -> AnnotationFormatError:
    """Return an error that names the first row pyarrow refuses; it is found by halving, as rows are many."""
    low, high = 0, len(starts)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _table(_text(lines, starts[low:middle], ends[low:middle]), file)
        except ValueError as found:
            high, error = middle, found
        else:
            low = middle
    return AnnotationFormatError(
        "A row of the table cannot be read",
        where=f"{file.name}: row {numbers[low]}" if len(numbers) else file.name,
        expected=f"CSV in UTF-8 with {len(file.header)} columns: {', '.join(file.header)}"[:300],
        found=str(error)[:200],
    )


def _columns(table: Any, file: StreamedCsv, labels: Labels) -> RowBlock:
    n = len(table)

    def column(name: str) -> Any:
        found = table.column(name)
        return found.chunk(0) if found.num_chunks else found.combine_chunks()

    def coded(name: str, places: Any) -> Any:
        values = column(name)
        if not n:
            return np.empty(0, np.int32)
        return places(values.dictionary.to_pylist())[values.indices.to_numpy()]

    flags = np.full((n, len(FLAGS)), UNSTATED, np.int8)
    for place, name in enumerate(FLAGS):
        if name in file.header:
            flags[:, place] = column(name).fill_null(EMPTY).to_numpy(zero_copy_only=False)
    corners = [column(name).to_numpy(zero_copy_only=False) for name in COORDINATES]
    confidence = np.full(n, np.nan, np.float32)
    if "Confidence" in file.header:
        confidence[:] = column("Confidence").to_numpy(zero_copy_only=False)
    origin = np.zeros(n, np.int8)
    if "Source" in file.header:
        origin[:] = coded("Source", _origins)
    return RowBlock(
        ids=id_words(column("ImageID")),
        category=coded("LabelName", labels.places).astype(np.int32),
        corners=np.stack(corners, axis=1),
        flags=flags,
        confidence=confidence,
        origin=origin,
    )


def _origins(listed: Sequence[str]) -> npt.NDArray[np.int8]:
    known = {name: place for place, name in enumerate(BOX_ORIGINS)}
    return np.array([known.get(name, -1) for name in listed], np.int8)


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
        Has the columns `curation.sources.openimages.rows.REQUIRED`.
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
    return np.ndarray((len(gathered),), np.uint64, buffer=gathered, offset=offset, strides=(gathered.itemsize,))


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
