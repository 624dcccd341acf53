"""Rows of a box CSV of Open Images as columns, read with pyarrow; and the class keys in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import AnnotationFormatError
from curation.sources.hex_ids import id_words
from curation.sources.source import BOX_ORIGINS, Floats, Int32s, Int64s
from curation.sources.streamed_csv import StreamedCsv

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
    return b"".join(
        [lines[start : end + 1] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    )


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
        read_options=arrow_csv.ReadOptions(
            column_names=list(file.header), block_size=max(len(text), 1 << 16)
        ),
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
        where=f"{file.name}: row {numbers[low]}",
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
