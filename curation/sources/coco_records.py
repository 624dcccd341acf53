"""The records of a COCO JSON file and their decoding: types checked, masks skipped, errors told with their record."""

from __future__ import annotations

import re
from typing import Annotated, Any, NoReturn

import msgspec

from curation.errors import AnnotationFormatError
from curation.ids import MAX_NATIVE_LENGTH
from curation.json_keys import refuse_repeated_keys

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
    if start.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise AnnotationFormatError(
            "The annotation file begins with a byte order mark",
            where=f"{name}: byte 0",
            expected="UTF-8 without a mark",
            found=repr(start[:3]),
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
