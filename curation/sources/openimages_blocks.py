"""Blocks of the box CSV of Open Images, with all that can be found out of one without those before it: `read_blocks`.

Some threads do so for the next blocks, as most of the time of a reading goes there.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from curation.sources.hex_ids import Keys, runs_of
from curation.sources.openimages_lines import Scan, rows_of, scan_lines
from curation.sources.openimages_rows import Labels, RowBlock
from curation.sources.source import Bools, Floats, Int64s
from curation.sources.streamed_csv import StreamedCsv

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
