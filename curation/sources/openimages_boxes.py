"""The box CSV of Open Images as columns: `read_boxes`, in one pass and without a second copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import AnnotationFormatError, BoxError, DanglingIdError
from curation.sources.growing_array import GrowingArray
from curation.sources.hex_ids import Keys, id_text
from curation.sources.integrity import BadBoxes
from curation.sources.openimages_blocks import BoxBlock, read_blocks
from curation.sources.openimages_rows import COORDINATES, EMPTY, FLAGS, REQUIRED, UNSTATED, Labels, RowBlock
from curation.sources.source import Bools, Floats, Int32s, Int64s
from curation.sources.streamed_csv import StreamedCsv

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
        kinds |= {
            flag: np.bool_ for flag, name in _FLAGS.items() if name in file.header or flag in _NEEDED_BY_ALL
        }
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
                self._count(
                    f"{name} flags that are not stated (read as 0)", flags[:, place] == UNSTATED, keep
                )
