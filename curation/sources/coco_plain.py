"""The fast way through a COCO file of the official form: annotations decoded and turned into columns piece by piece.

Records of one piece stay in the processor's cache while they become columns, and their memory serves the next piece:
half the time and half the memory of decoding all of them first. Where the pieces lie is guessed from the bytes, and
proved afterwards: a file is taken only if the rest of it, with a mark in place of the annotations, decodes with exactly
that mark as its annotations, and each piece is a list of annotations by itself. Any other file is read the slow way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import starmap
from operator import attrgetter
from struct import Struct
from typing import Any

import msgspec
import numpy as np

from curation.json_keys import SMALL, repeated_key
from curation.sources.coco_records import CategoryRecord, ImageRecord
from curation.sources.source import Bools, Floats, Int64s

_PIECE = 1 << 18
_OPENING = re.compile(rb'"annotations"\s*:\s*\[\s*(?=\{\s*("[a-z_]{1,40}"))')
_CLOSING = re.compile(rb'\]\s*(?:,\s*"(?:categories|images|info|licenses|type)"\s*:|\}\s*\Z)')
_LEFT, _RIGHT = b"[]"
_WHOLE = ("id", "image_id", "category_id")
_pack_box = Struct("=4d").pack
_MARK = -8_113_420_171_017


class _Annotation(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    id: int
    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]
    area: float
    iscrowd: int
    segmentation: msgspec.Raw = msgspec.Raw()


class _Skeleton(msgspec.Struct, gc=False):
    images: list[ImageRecord]
    annotations: list[_Annotation]
    categories: list[CategoryRecord]


@dataclass(frozen=True, slots=True)
class PlainFile:
    """A file whose annotations have COCO's own fields and whole numbers for ids, in columns of length m.

    Attributes
    ----------
    images, categories : list
        Decoded records.
    numbers, image_ids, category_ids : ndarray of int64, shape (m,)
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels, unchecked.
    areas : ndarray of float64, shape (m,)
    crowd : ndarray of bool, shape (m,)
    """

    images: list[ImageRecord]
    categories: list[CategoryRecord]
    numbers: Int64s
    image_ids: Int64s
    category_ids: Int64s
    boxes: Floats
    areas: Floats
    crowd: Bools


def decode_plain(data: bytes) -> PlainFile | None:
    """Return the records and columns of a file of the official form, None for any other and for a malformed one."""
    opening = _OPENING.search(data)
    if opening is None:
        return None
    start = opening.end()
    end = _end_of_list(data, start)
    mark = {"id": _MARK, "image_id": 0, "category_id": 0, "bbox": [0, 0, 0, 0], "area": 0, "iscrowd": 0}
    try:
        rest = data[:start] + msgspec.json.encode(mark) + data[end:]
        if repeated_key(data if len(data) <= SMALL else rest) is not None:
            return None
        skeleton = msgspec.json.decode(rest, type=_Skeleton)
        if [record.id for record in skeleton.annotations] != [_MARK]:
            return None
        columns = list(_columns(data, start, end, opening[1]))
    # A number beyond its column's type is an OverflowError, or a ValueError among the flags.
    except (msgspec.MsgspecError, RecursionError, OverflowError, ValueError):
        return None
    numbers, image_ids, category_ids, crowd, boxes, areas = (
        np.concatenate(parts) for parts in zip(*columns, strict=True)
    )
    if crowd.max() > 1:
        return None
    crowd = crowd.astype(np.bool_)
    return PlainFile(
        skeleton.images, skeleton.categories, numbers, image_ids, category_ids, boxes, areas, crowd
    )


def _end_of_list(data: bytes, start: int) -> int:
    """Return where the list of annotations probably ends: at the last bracket that a key of the file follows."""
    # Annotations are most of a file; what follows them (categories) is small, so the search begins near the end.
    for reach in (1 << 16, 1 << 24, len(data)):
        low = max(start, len(data) - reach)
        found = _CLOSING.search(data, low)
        if found is not None:
            return found.start()
    return start


def _columns(data: bytes, start: int, end: int, key: bytes) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of each piece; one buffer serves all, so that no piece costs fresh memory."""
    boundary = re.compile(rb"\}\s*,\s*(?=\{\s*" + re.escape(key) + rb"\s*:)")
    decoder = msgspec.json.Decoder(list[_Annotation])
    buffer = bytearray(2 * _PIECE)
    whole = memoryview(data)
    while start < end:
        found = boundary.search(data, min(start + _PIECE, end), end)
        stop = end if found is None else found.start() + 1
        size = stop - start
        if size + 2 > len(buffer):
            buffer = bytearray(size + 2)
        buffer[0] = _LEFT
        buffer[1 : size + 1] = whole[start:stop]
        buffer[size + 1] = _RIGHT
        yield _piece_columns(decoder.decode(memoryview(buffer)[: size + 2]))
        start = end if found is None else found.end()


def _piece_columns(records: list[_Annotation]) -> tuple[Any, ...]:
    count = len(records)
    boxes = b"".join(starmap(_pack_box, map(attrgetter("bbox"), records)))
    return (
        *(np.fromiter(map(attrgetter(name), records), np.int64, count) for name in _WHOLE),
        np.frombuffer(bytes(map(attrgetter("iscrowd"), records)), np.uint8),
        np.frombuffer(boxes, np.float64).reshape(-1, 4),
        np.fromiter(map(attrgetter("area"), records), np.float64, count),
    )
