"""The box CSV of Open Images as columns: `read_boxes`, in one pass and without a second copy.

Some threads find out of the next blocks all that can be found without those before them: most of the time goes there.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import AnnotationFormatError, BoxError, DanglingIdError
from curation.sources.openimages.keys import Keys, id_text, runs_of
from curation.sources.openimages.rows import (
    COORDINATES,
    EMPTY,
    FLAGS,
    REQUIRED,
    UNSTATED,
    Labels,
    RowBlock,
    Scan,
    rows_of,
    scan_lines,
)
from curation.sources.openimages.streamed_csv import StreamedCsv
from curation.sources.slots import BadBoxes
from curation.sources.source import Bools, Floats, Int32s, Int64s

_FLAGS = dict(zip(("occluded", "truncated", "crowd", "depiction", "inside"), FLAGS, strict=True))
"""Column of the file by name in `Objects`."""
_ROW_BYTES = 76
"""Of a short row: the usual ones have about 80."""
_NEEDED_BY_ALL = ("occluded", "truncated", "crowd")


@dataclass(frozen=True, slots=True)
class BoxRows:
    """The rows of a box CSV, in file order; all arrays have the same length m where nothing else is said.

    Attributes
    ----------
    runs : ndarray of uint64, shape (r,)
        Image id of each run of rows that follow each other (one run an image, as published).
    run : ndarray of int32, shape (m,)
        Position in `runs`.
    labels : tuple of str
        Class keys (MIDs): those that were given, or else those that occur, in the order of their first row.
    category : ndarray of int32, shape (m,)
        Position in `labels`.
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` as shares of the image, 0 to 1, w and h the differences of the file's corners.
    numbers : ndarray of int64, shape (m,)
        Rows of the file, 1 for the first after the header.
    columns : dict of str to ndarray
        Columns of `Objects` by name: the flags, ``confidence`` and ``origin``, where the file has them.
    rows : int
        Rows read, those included that were left out.
    dropped : dict of str to int
    """

    runs: Keys
    run: Int32s
    labels: tuple[str, ...]
    category: Int32s
    boxes: Floats
    numbers: Int64s
    columns: dict[str, npt.NDArray[Any]]
    rows: int
    dropped: dict[str, int]


def read_boxes(file: StreamedCsv, labels: tuple[str, ...] | None, bad_boxes: BadBoxes) -> BoxRows:
    """Return the boxes of a file, read block by block.

    Parameters
    ----------
    labels : tuple of str or None
        The class keys there are; None: those that occur.
    bad_boxes : {"error", "drop"}
        Whether a box with a coordinate that is not finite or not within 0 to 1, with ``XMin > XMax`` or ``YMin >
        YMax``, or of a class that `labels` lacks stops the reading or is left out and counted.

    Raises
    ------
    AnnotationFormatError
        A column is missing, an image id is not sixteen digits of 0-9a-f, a flag is not -1, 0 or 1, a row is malformed.
    BoxError, DanglingIdError
        See `bad_boxes`.
    """
    file.require(REQUIRED)
    reading = _Reading(file, Labels(labels), bad_boxes)
    for block in read_blocks(file, reading.labels):
        reading.add(block)
    return reading.rows()


class _Reading:
    """What has been read so far."""

    def __init__(self, file: StreamedCsv, labels: Labels, bad_boxes: BadBoxes) -> None:
        self._file = file
        self.labels = labels
        self._drop = bad_boxes == "drop"
        self._read = 0
        self._dropped: dict[str, int] = {}
        room = file.size // _ROW_BYTES
        self._runs = GrowingArray(np.uint64, room)
        kinds: dict[str, npt.DTypeLike] = {"run": np.int32, "category": np.int32}
        kinds |= {flag: np.bool_ for flag, name in _FLAGS.items() if name in file.header or flag in _NEEDED_BY_ALL}
        kinds |= {"confidence": np.float32} if "Confidence" in file.header else {}
        kinds |= {"origin": np.int8} if "Source" in file.header else {}
        self._columns = {name: GrowingArray(kind, room) for name, kind in kinds.items()}
        self._columns["boxes"] = GrowingArray(np.float64, room, 4)
        self._left_out: list[Int64s] = []

    def add(self, block: BoxBlock) -> None:
        rows = block.rows
        run = self._images(block)
        keep = None if block.is_sound else self._sound(block)
        if not block.is_stated:
            self._check_flags(rows, keep)
        self._count("Source words of no known kind", rows.origin < 0, keep)
        found: dict[str, npt.NDArray[Any]] = {"run": run, "category": rows.category, "boxes": block.boxes}
        found |= {"confidence": rows.confidence, "origin": np.maximum(rows.origin, 0)}
        found |= dict(zip(_FLAGS, block.set_flags, strict=True))
        for name, grown in self._columns.items():
            grown.extend(found[name] if keep is None else found[name][keep])
        if keep is not None:
            self._left_out.append(self._read + np.flatnonzero(~keep))
        self._read += len(rows)

    def rows(self) -> BoxRows:
        columns = {name: grown.whole() for name, grown in self._columns.items()}
        numbers = np.arange(1, self._read + 1, dtype=np.int64)
        return BoxRows(
            runs=self._runs.whole(),
            run=columns.pop("run"),
            labels=tuple(self.labels.place),
            category=columns.pop("category"),
            boxes=columns.pop("boxes"),
            numbers=np.delete(numbers, np.concatenate(self._left_out)) if self._left_out else numbers,
            columns=columns,
            rows=self._read,
            dropped=dict(sorted(self._dropped.items())),
        )

    def _where(self, row: int) -> str:
        return f"{self._file.name}: row {self._read + row + 2}"

    def _count(self, reason: str, mask: Bools, keep: Bools | None = None) -> None:
        number = int(np.count_nonzero(mask if keep is None else mask & keep))
        if number:
            self._dropped[reason] = self._dropped.get(reason, 0) + number

    def _images(self, block: BoxBlock) -> Int32s:
        if block.bad >= 0:
            raise AnnotationFormatError(
                "An image id of Open Images is malformed",
                where=self._where(block.bad),
                expected="sixteen digits of 0-9a-f",
                found=repr(id_text(block.rows.ids, block.bad))[:80],
            )
        known, keys = len(self._runs), block.keys
        lengths = np.diff(block.starts, append=len(block.rows))
        # A block may begin in the middle of an image.
        goes_on = bool(known and len(keys) and self._runs.last() == keys[0])
        self._runs.extend(keys[goes_on:])
        return np.repeat(np.arange(len(keys), dtype=np.int32) + np.int32(known - goes_on), lengths)

    def _sound(self, block: BoxBlock) -> Bools:
        """Return which boxes to keep."""
        corners, category = block.rows.corners, block.rows.category
        finite: Any = np.isfinite(corners).all(axis=1)
        inside: Any = ((corners >= 0) & (corners <= 1)).all(axis=1)
        positive: Any = (block.boxes[:, 2:] >= 0).all(axis=1)
        reasons: dict[str, Bools] = {
            "not finite": ~finite,
            "not within 0 to 1": finite & ~inside,
            "negative in size": finite & inside & ~positive,
        }
        sound: Bools = finite & inside & positive
        strange: Bools = np.logical_and(sound, category < 0)
        if not self._drop:
            self._refuse_boxes(reasons, corners)
            self._refuse_classes(strange)
        for reason, mask in reasons.items():
            self._count(f"box {reason}", mask)
        self._count("box of a class without description", strange)
        keep: Bools = np.logical_and(sound, category >= 0)
        return keep

    def _refuse_boxes(self, reasons: dict[str, Bools], corners: Floats) -> None:
        first = {reason: int(np.flatnonzero(mask)[0]) for reason, mask in reasons.items() if mask.any()}
        if not first:
            return
        reason, row = min(first.items(), key=lambda item: item[1])
        raise BoxError(
            f"A box is {reason}",
            where=self._where(row),
            expected="0 <= XMin <= XMax <= 1 and 0 <= YMin <= YMax <= 1",
            found=", ".join(f"{name} {corners[row, place]:g}" for place, name in enumerate(COORDINATES)),
            hint="--on-error boxes=drop (bad_boxes='drop') leaves such records out and counts them",
        )

    def _refuse_classes(self, strange: Bools) -> None:
        if not strange.any():
            return
        raise DanglingIdError(
            "A box is of a class that has no description",
            where=self._where(int(np.flatnonzero(strange)[0])),
            expected="a LabelName of the file of class descriptions",
            hint="--on-error boxes=drop (bad_boxes='drop') leaves such boxes out and counts them",
        )

    def _check_flags(self, rows: RowBlock, keep: Bools | None) -> None:
        flags = rows.flags
        if flags.min() < UNSTATED or flags.max() > 1:
            row, place = np.argwhere((flags < UNSTATED) | (flags > 1))[0].tolist()
            raise AnnotationFormatError(
                f"{FLAGS[place]} is none of -1, 0 and 1",
                where=self._where(row),
                found="nothing" if flags[row, place] == EMPTY else str(flags[row, place]),
            )
        for place, (flag, name) in enumerate(_FLAGS.items()):
            if flag in self._columns:
                self._count(f"{name} flags that are not stated (read as 0)", flags[:, place] == UNSTATED, keep)


_THREADS = 4
_AHEAD = 8
"""Blocks in memory at once, whatever the number of threads."""


@dataclass(frozen=True, slots=True)
class BoxBlock:
    """Some rows of a box CSV, and what is to be checked of them.

    Attributes
    ----------
    rows : RowBlock
    keys, starts : ndarray
        See `runs_of`.
    bad : int
        First row whose image id is none, or -1.
    boxes : ndarray of float64, shape (n, 4)
        ``x, y, w, h``.
    set_flags : ndarray of bool, shape (5, n)
        Which of `FLAGS` are 1.
    is_sound : bool
        All boxes are within the image and of a known class.
    is_stated : bool
        All flags are 0 or 1.
    """

    rows: RowBlock
    keys: Keys
    starts: Int64s
    bad: int
    boxes: Floats
    set_flags: Bools
    is_sound: bool
    is_stated: bool


def read_blocks(file: StreamedCsv, labels: Labels) -> Iterator[BoxBlock]:
    """Yield the rows of a file in its order.

    Parameters
    ----------
    labels : Labels
        Keys that are met are added in the order of their first row, if they may be.

    Raises
    ------
    AnnotationFormatError
        A row is malformed.
    """
    row = 2
    for found in _ahead(file, labels):
        block = found if isinstance(found, BoxBlock) else _checked(rows_of(found, file, labels, row))
        row += len(block.rows)
        yield block


def _ahead(file: StreamedCsv, labels: Labels) -> Iterator[BoxBlock | Scan]:
    with ThreadPoolExecutor(min(os.cpu_count() or 1, _THREADS)) as scanners:
        pending: deque[Future[BoxBlock | Scan]] = deque()
        for lines in file.lines():
            pending.append(scanners.submit(_scanned, lines, file, labels))
            if len(pending) == _AHEAD:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _scanned(lines: bytes, file: StreamedCsv, labels: Labels) -> BoxBlock | Scan:
    """Return a block that is done, or one of which some rows take their number in the file, or keys to be added."""
    scan = scan_lines(lines, file, labels)
    return scan if scan.block is None or len(scan.others) else _checked(scan.block)


def _checked(rows: RowBlock) -> BoxBlock:
    keys, starts, bad = runs_of(rows.ids)
    left, right, top, bottom = rows.corners.T
    # Corners that are not finite are found below; of two of them numpy would warn.
    with np.errstate(invalid="ignore"):
        width, height = right - left, bottom - top
    boxes = np.empty((len(rows), 4))
    for place, side in enumerate((left, top, width, height)):
        boxes[:, place] = side
    # Minima and maxima clear a sound block; a NaN fails every comparison.
    is_sound = not len(rows) or bool(
        rows.category.min() >= 0
        and rows.corners.min() >= 0
        and rows.corners.max() <= 1
        and width.min() >= 0
        and height.min() >= 0
    )
    is_stated = not len(rows) or bool(rows.flags.min() >= 0 and rows.flags.max() <= 1)
    return BoxBlock(rows, keys, starts, bad, boxes, rows.flags.T == 1, is_sound, is_stated)


class GrowingArray:
    """An array that is lengthened in place; room that is reserved and not used takes no memory.

    Parameters
    ----------
    dtype : dtype
    room : int
        How many rows are expected.
    width : tuple of int
        Length of a row.
    """

    def __init__(self, dtype: npt.DTypeLike, room: int, *width: int) -> None:
        self._values: npt.NDArray[Any] = np.empty((room, *width), dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, more: npt.NDArray[Any]) -> None:
        """Add rows at the end."""
        end = self._length + len(more)
        if end > len(self._values):
            self._resize(max(end, 5 * len(self._values) // 4))
        self._values[self._length : end] = more
        self._length = end

    def last(self) -> Any:
        """Return the last row."""
        return self._values[self._length - 1]

    def whole(self) -> npt.NDArray[Any]:
        """Return all rows; none may be added afterwards."""
        self._resize(self._length)
        return self._values

    def _resize(self, length: int) -> None:
        # Large blocks of memory are moved by the kernel, not copied: a list of parts would be in memory twice.
        self._values.resize((length, *self._values.shape[1:]), refcheck=False)
