"""Which image of a source an id in somebody's list means: by native id, by file name, or by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

import numpy as np

from curation.sources.source import Int32s, Source


def positions_in(source: Source, wanted: Sequence[str]) -> Int32s:
    """Return the position of each id among the images of a source, -1 where it has none.

    Lists name images by the dataset's own id, by the stem of the file name, or by the number in the annotation file.
    One way of naming holds for the whole source: the one that finds the most ids, in this order where several do.
    """
    best = np.full(len(wanted), -1, np.int32)
    for find in (_by_native(source), _by_stem(source), _by_number(source)):
        if len(wanted) and (best >= 0).all():
            break
        found = np.array([find(text) for text in wanted], np.int32)
        if int((found >= 0).sum()) > int((best >= 0).sum()):
            best = found
    return best


def _by_native(source: Source) -> Callable[[str], int]:
    rows = {native: row for row, native in enumerate(source.images.native.tolist())}
    return lambda text: rows.get(text, -1)


def _by_stem(source: Source) -> Callable[[str], int]:
    names = source.images.file_names.tolist()
    rows = {PurePosixPath(name.replace("\\", "/")).stem: row for row, name in enumerate(names) if name}
    return lambda text: rows.get(text, -1)


def _by_number(source: Source) -> Callable[[str], int]:
    # As the annotation file writes it: with leading zeros, COCO's 000000000005 and VOC's 000005 would be one number.
    rows = {str(number): row for row, number in enumerate(source.images.numbers.tolist())}
    return lambda text: rows.get(text, -1)
