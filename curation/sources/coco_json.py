"""Decoding of COCO JSON files: types checked, masks skipped, errors told with their record.

`decode_instances` reads a file of any form. `decode_plain` is the fast way through one of the official form:
annotations are decoded and turned into columns piece by piece. Records of one piece stay in the processor's cache while
they become columns, and their memory serves the next piece: half the time and two thirds of the memory of decoding all
of them first. Where the pieces lie is guessed from the bytes, and proved afterwards: a file is taken only if the rest
of it, with a mark in place of the annotations, decodes with exactly that mark as its annotations, and each piece is a
list of annotations by itself. Any other file is read the slow way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import starmap
from operator import attrgetter
from struct import Struct
from typing import Annotated, Any, NoReturn

import msgspec
import numpy as np

from curation.errors import AnnotationFormatError
from curation.ids import MAX_NATIVE_LENGTH
from curation.json_keys import SMALL, refuse_repeated_keys, repeated_key
from curation.sources.source import Bools, Floats, Int64s

_Text = Annotated[str, msgspec.Meta(max_length=MAX_NATIVE_LENGTH)]
_FileName = Annotated[str, msgspec.Meta(max_length=4096)]
_Flag = int | float | bool
_RECORD = re.compile(r"\$\.(images|annotations|categories)\[(\d+)\]")
_BYTE = re.compile(r"\(byte (\d+)\)")


class ImageRecord(msgspec.Struct, gc=False):
    """One entry of ``images``; a width of 0 is one that the file does not state."""

    id: int | _Text
    file_name: _FileName = ""
    width: int | float = 0
    height: int | float = 0


class AnnotationRecord(msgspec.Struct, gc=False):
    """One entry of ``annotations``, without its mask: a field that is not declared is skipped, never built."""

    image_id: int | _Text
    category_id: int | _Text
    bbox: tuple[float, float, float, float]
    id: int | _Text | None = None
    area: float | None = None
    iscrowd: _Flag = 0
    difficult: _Flag = 0
    ignore: _Flag = 0
    truncated: _Flag = 0
    occluded: _Flag = 0
    pose: _Text = ""
    orig_category: _Text = ""
    orig_category_id: int | None = None


class CategoryRecord(msgspec.Struct, gc=False):
    """One entry of ``categories``."""

    id: int | _Text
    name: _Text
    supercategory: _Text = ""


class Instances(msgspec.Struct, gc=False):
    """A whole file; a file without labels (COCO's ``image_info_test``) has no annotations."""

    images: list[ImageRecord]
    annotations: list[AnnotationRecord] = []
    categories: list[CategoryRecord] = []


def decode_instances(data: bytes, name: str) -> Instances:
    """Return the records of a COCO instances file of any form.

    Raises
    ------
    AnnotationFormatError
        The bytes are not JSON, end too early, name a key twice, or a record has a wrong type or lacks a field.
    """
    _check_start(data, name)
    refuse_repeated_keys(data, name, AnnotationFormatError)
    try:
        return msgspec.json.decode(data, type=Instances)
    except msgspec.ValidationError as error:
        _refuse_record(data, name, str(error))
    except msgspec.DecodeError as error:
        _refuse_syntax(data, name, str(error))
    except UnicodeDecodeError as error:
        raise AnnotationFormatError(
            "A text of the annotation file is not UTF-8", where=name, expected="UTF-8", found=str(error)[:200]
        ) from None
    except RecursionError:
        raise AnnotationFormatError(
            "The annotation file is nested deeper than any COCO file",
            where=name,
            expected="lists of flat records",
        ) from None


def _check_start(data: bytes, name: str) -> None:
    expected = "a JSON object with images, annotations and categories, in UTF-8"
    start = data[:1024].lstrip()
    if not start:
        raise AnnotationFormatError("The annotation file is empty", where=name, expected=expected)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise AnnotationFormatError(
            "The annotation file begins with the byte order mark of UTF-16",
            where=f"{name}: byte 0",
            expected="UTF-8",
            found=repr(start[:2]),
        )
    if start.startswith(b"["):
        raise AnnotationFormatError(
            "The annotation file is a list, as a file of detections is",
            where=name,
            expected=expected,
            hint="give detections as --detections, and the annotations here",
        )
    if not start.startswith(b"{"):
        raise AnnotationFormatError(
            "The annotation file is not JSON",
            where=f"{name}: byte 0",
            expected=expected,
            found=repr(start[:40]),
        )


def _refuse_record(data: bytes, name: str, message: str) -> NoReturn:
    reason, _, path = message.partition(" - at ")
    place = _RECORD.search(path)
    if place is None:
        where = name if not path else f"{name}: {path.strip('`').removeprefix('$.')}"
    else:
        where = record_place(name, place[1], int(place[2]), _id_of(data, place[1], int(place[2])))
    field = path.strip("`").rpartition("].")[2] if place else ""
    raise AnnotationFormatError(
        "A record of the annotation file is malformed",
        where=where,
        found=f"{field}: {reason}".replace("`", "").removeprefix(": "),
    )


def _id_of(data: bytes, section: str, row: int) -> object:
    """Return the id of a malformed record, or None: the whole file is read anew, which only an error pays for."""
    try:
        content: Any = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        record: Any = msgspec.json.decode(content[section], type=list[msgspec.Raw])[row]
        found: Any = msgspec.json.decode(record)
        return found.get("id") if isinstance(found, dict) else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError, LookupError):
        return None


def _refuse_syntax(data: bytes, name: str, message: str) -> NoReturn:
    if "truncated" not in message:
        position = _BYTE.search(message)
        place = int(position[1]) if position else 0
        raise AnnotationFormatError(
            "The annotation file is not JSON",
            where=f"{name}: byte {place}",
            expected="strict JSON (NaN and Infinity are not part of it)",
            found=f"{message}: {data[max(0, place - 30) : place + 30]!r}",
        )
    raise AnnotationFormatError(
        "The annotation file ends too early",
        where=f"{name}: byte {len(data)}",
        expected="a whole JSON object",
        found=f"{len(data):,} bytes that end in {data[-30:]!r}",
        hint="compare its size and checksum with the publisher's, and fetch it again",
    )


def record_place(name: str, section: str, row: int, identity: object = None) -> str:
    """Return how errors name a record: ``instances.json: annotations[17] (id 42)``."""
    known = "" if identity is None else f" (id {str(identity)[:80]})"
    return f"{name}: {section}[{row}]{known}"


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
    return PlainFile(skeleton.images, skeleton.categories, numbers, image_ids, category_ids, boxes, areas, crowd)


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
