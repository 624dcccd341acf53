"""The box CSV of Open Images as columns: `read_boxes`, in one pass and without a second copy."""

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
from curation.sources.hex_ids import Keys, id_text, runs_of
from curation.sources.integrity import BadBoxes
from curation.sources.openimages_lines import Scan, rows_of, scan_lines
from curation.sources.openimages_rows import COORDINATES, EMPTY, FLAGS, REQUIRED, UNSTATED, Labels, RowBlock
from curation.sources.source import Bools, Floats, Int32s, Int64s
from curation.sources.streamed_csv import StreamedCsv

_FLAGS = dict(zip(("occluded", "truncated", "crowd", "depiction", "inside"), FLAGS, strict=True))
"""Column of the file by name in `Objects`."""
_ROW_BYTES = 76
"""Of a short row: the usual ones have about 80."""
_THREADS = 4
_AHEAD = 8
"""Blocks of lines in memory at once, whatever the number of threads: an error is the same on every machine."""
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
    for scan in _scans(file, reading.labels):
        reading.add(scan)
    return reading.rows()


def _scans(file: StreamedCsv, labels: Labels) -> Iterator[Scan]:
    """Yield the lines of a file, scanned ahead by some threads, in file order."""
    with ThreadPoolExecutor(min(os.cpu_count() or 1, _THREADS)) as scanners:
        pending: deque[Future[Scan]] = deque()
        for lines in file.lines():
            pending.append(scanners.submit(scan_lines, lines, file, labels))
            if len(pending) == _AHEAD:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


class _Grown:
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
        end = self._length + len(more)
        if end > len(self._values):
            self._resize(max(end, 5 * len(self._values) // 4))
        self._values[self._length : end] = more
        self._length = end

    def last(self) -> Any:
        return self._values[self._length - 1]

    def whole(self) -> npt.NDArray[Any]:
        self._resize(self._length)
        return self._values

    def _resize(self, length: int) -> None:
        # Large blocks of memory are moved by the kernel, not copied: a list of parts would be in memory twice.
        self._values.resize((length, *self._values.shape[1:]), refcheck=False)


class _Reading:
    """What has been read so far."""

    def __init__(self, file: StreamedCsv, labels: Labels, bad_boxes: BadBoxes) -> None:
        self._file = file
        self.labels = labels
        self._drop = bad_boxes == "drop"
        self._read = 0
        self._dropped: dict[str, int] = {}
        room = file.size // _ROW_BYTES
        self._runs = _Grown(np.uint64, room)
        self._fixed = {
            "run": _Grown(np.int32, room),
            "category": _Grown(np.int32, room),
            "boxes": _Grown(np.float64, room, 4),
            "numbers": _Grown(np.int64, room),
        }
        flags = [flag for flag, name in _FLAGS.items() if name in file.header or flag in _NEEDED_BY_ALL]
        self._own = {flag: _Grown(np.bool_, room) for flag in flags}
        if "Confidence" in file.header:
            self._own["confidence"] = _Grown(np.float32, room)
        if "Source" in file.header:
            self._own["origin"] = _Grown(np.int8, room)

    def add(self, scan: Scan) -> None:
        block = rows_of(scan, self._file, self.labels, self._read + 2)
        run = self._images(block)
        left, right, top, bottom = block.corners.T
        boxes = np.empty((len(block), 4))
        boxes[:, 0], boxes[:, 1], boxes[:, 2], boxes[:, 3] = left, top, right - left, bottom - top
        keep = self._sound(block, boxes)
        numbers = np.arange(self._read + 1, self._read + len(block) + 1, dtype=np.int64)
        found: dict[str, npt.NDArray[Any]] = {"run": run, "category": block.category, "boxes": boxes}
        found |= {"numbers": numbers, "confidence": block.confidence}
        found |= self._flags(block, keep)
        if "origin" in self._own:
            found["origin"] = self._origins(block, keep)
        for name, grown in (self._fixed | self._own).items():
            grown.extend(found[name] if keep is None else found[name][keep])
        self._read += len(block)

    def rows(self) -> BoxRows:
        fixed: dict[str, Any] = {name: grown.whole() for name, grown in self._fixed.items()}
        return BoxRows(
            runs=self._runs.whole(),
            labels=tuple(self.labels.place),
            columns={name: grown.whole() for name, grown in self._own.items()},
            rows=self._read,
            dropped=dict(sorted(self._dropped.items())),
            **fixed,
        )

    def _where(self, row: int) -> str:
        return f"{self._file.name}: row {self._read + row + 2}"

    def _count(self, reason: str, mask: Bools, keep: Bools | None = None) -> None:
        number = int((mask if keep is None else mask & keep).sum())
        if number:
            self._dropped[reason] = self._dropped.get(reason, 0) + number

    def _images(self, block: RowBlock) -> Int32s:
        keys, starts, bad = runs_of(block.ids)
        if bad >= 0:
            raise AnnotationFormatError(
                "An image id of Open Images is malformed",
                where=self._where(bad),
                expected="sixteen digits of 0-9a-f",
                found=repr(id_text(block.ids, bad))[:80],
            )
        known = len(self._runs)
        lengths = np.diff(starts, append=len(block))
        # A block may begin in the middle of an image.
        goes_on = bool(known and len(keys) and self._runs.last() == keys[0])
        self._runs.extend(keys[goes_on:])
        return np.repeat(np.arange(len(keys), dtype=np.int32) + np.int32(known - goes_on), lengths)

    def _sound(self, block: RowBlock, boxes: Floats) -> Bools | None:
        """Return which boxes to keep, None for all of them."""
        corners, category = block.corners, block.category
        # Minima and maxima clear a sound block; a NaN fails every comparison.
        if not len(boxes) or (
            category.min() >= 0 and corners.min() >= 0 and corners.max() <= 1 and boxes[:, 2:].min() >= 0
        ):
            return None
        finite: Any = np.isfinite(corners).all(axis=1)
        inside: Any = ((corners >= 0) & (corners <= 1)).all(axis=1)
        positive: Any = (boxes[:, 2:] >= 0).all(axis=1)
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
            hint="--bad-boxes drop (bad_boxes='drop') leaves such records out and counts them",
        )

    def _refuse_classes(self, strange: Bools) -> None:
        if not strange.any():
            return
        raise DanglingIdError(
            "A box is of a class that has no description",
            where=self._where(int(np.flatnonzero(strange)[0])),
            expected="a LabelName of the file of class descriptions",
            hint="--bad-boxes drop (bad_boxes='drop') leaves such boxes out and counts them",
        )

    def _flags(self, block: RowBlock, keep: Bools | None) -> dict[str, Bools]:
        flags = block.flags
        if flags.min(initial=0) < 0 or flags.max(initial=0) > 1:
            strange = np.argwhere((flags < UNSTATED) | (flags > 1))
            if len(strange):
                row, place = strange[0].tolist()
                raise AnnotationFormatError(
                    f"{FLAGS[place]} is none of -1, 0 and 1",
                    where=self._where(row),
                    found="nothing" if flags[row, place] == EMPTY else str(flags[row, place]),
                )
            for flag in set(_NEEDED_BY_ALL) | set(self._own) & set(_FLAGS):
                place = FLAGS.index(_FLAGS[flag])
                self._count(
                    f"{_FLAGS[flag]} flags that are not stated (read as 0)", flags[:, place] == UNSTATED, keep
                )
        return {flag: flags[:, place] == 1 for place, flag in enumerate(_FLAGS)}

    def _origins(self, block: RowBlock, keep: Bools | None) -> npt.NDArray[np.int8]:
        self._count("Source words of no known kind", block.origin < 0, keep)
        return np.maximum(block.origin, 0)
