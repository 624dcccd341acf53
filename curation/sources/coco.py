"""Reader of COCO JSON files: `read_coco`."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NoReturn

import msgspec
import numpy as np
import numpy.typing as npt

from curation.core.errors import AnnotationFormatError, CurationError, CurationWarning, ImageIdError
from curation.core.ids import MAX_NATIVE_LENGTH, check_native, native_of
from curation.core.json_text import SMALL, as_integer, record_pieces, refuse_repeated_keys, repeated_at_the_top
from curation.core.reading import InputFile
from curation.core.wording import counted
from curation.sources.datasets import COCO_CATEGORIES, NUMBERED_CLASSES, named_by_file, namespace_of
from curation.sources.integrity import KIND, Finder, Ids, Where, check_unique, finder, sound_objects
from curation.sources.source import (
    POSES,
    Bools,
    Categories,
    FileRecord,
    Images,
    Int32s,
    Int64s,
    Objects,
    Source,
    Texts,
    texts,
)
from curation.sources.source_specs import BadBoxes

_Text = Annotated[str, msgspec.Meta(max_length=MAX_NATIVE_LENGTH)]
_FileName = Annotated[str, msgspec.Meta(max_length=4096)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Id = _Int64 | _Text
_Pixels = Annotated[float, msgspec.Meta(ge=0, le=2**31 - 1, multiple_of=1)]
_Flag = Annotated[float, msgspec.Meta(ge=0, le=1, multiple_of=1)] | bool
_Pose = Literal["", "Unspecified", "Frontal", "Rear", "Left", "Right"]
_POSE_NUMBERS = {pose: number for number, pose in enumerate(POSES)}
_RECORD = re.compile(r"\$\.(images|annotations|categories)\[(\d+)\]")
_OPENING = re.compile(rb'"annotations"\s*:\s*\[\s*(?=\{\s*("[a-z_]{1,40}"))')
_MARK = b"8113420171017"
_MOST_COPIED = 1 << 20
_BYTE = re.compile(r"\(byte (\d+)\)")
_LEAVE_OUT = (
    "curation inspect FILE prints the command that leaves such annotations out or corrects them, or what to do instead"
)
_REPEATED = "curation inspect FILE --renumber NEW.json, if files with rising ids were joined; or curation inspect FILE"
_RENUMBER = "curation inspect FILE --renumber NEW.json numbers the annotations from 1"


def read_coco(path: Path, *, dataset: str = "coco", part: str = "", bad_boxes: BadBoxes = "error") -> Source:
    """Return the source of a COCO instances file, including crowd regions but without masks.

    Fields beyond COCO's own are read where present: ``difficult`` and ``ignore`` (either makes an object difficult),
    ``truncated``, ``occluded``, ``pose``, and ``orig_category`` or ``orig_category_id``; of images, LVIS's fields on
    searched classes (``neg_category_ids``, ``not_exhaustive_category_ids``). A file without annotations
    is a source without objects.

    Parameters
    ----------
    path : Path
    dataset, part : str
        For example ``coco`` and ``train2017``. Native ids are COCO's twelve digits in the namespace ``coco``, the stem
        of the file name for a year of VOC (``000001``, ``2008_000008``), RWD, DIOR or ``nuimages``, else the id
        itself.
    bad_boxes : {"error", "drop"}
        Whether a box that is not finite, negative in size or beyond any image stops the reading or is left out and
        counted in `Source.dropped`.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    AnnotationFormatError, DuplicateIdError, DanglingIdError, BoxError
        The file is malformed; the error names the record.
    """
    return parse_coco(InputFile(path, kind=KIND), dataset=dataset, part=part, bad_boxes=bad_boxes)


def parse_coco(content: InputFile, *, dataset: str, part: str, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source of a file whose content is in memory (see `read_coco`)."""
    # If a piece fails, the whole file is decoded: errors and their positions refer to all records.
    with suppress(CurationError, ValueError, LookupError, RecursionError):
        return source_of_records(content, *_in_pieces(content.data), dataset, part, bad_boxes)
    decoded = decode_instances(content.data, content.name)
    return source_of_records(content, decoded, [decoded.annotations], dataset, part, bad_boxes)


def source_of_records(
    content: InputFile | FileRecord, decoded: Instances, pieces: _Pieces, dataset: str, part: str, bad_boxes: BadBoxes
) -> Source:
    """Return the source of decoded records (see `read_coco`); `pieces` hold the annotations in order."""
    space = namespace_of(dataset)
    if decoded.annotations and not decoded.categories:
        raise AnnotationFormatError(
            "The annotation file lists no categories",
            where=content.name,
            expected='"categories": [{"id": 1, "name": "circle"}, ...], each class that an annotation refers to',
            found=f"{len(decoded.annotations)} annotations",
        )
    categories, category_ids = _categories(decoded.categories, content.name, numbered=dataset in NUMBERED_CLASSES)
    # The records of a million classes take 50 MB, and their columns contain the same data.
    decoded.categories.clear()
    images, image_ids = _images(decoded.images, content.name, dataset, space)
    where = _where(content.name, "annotations", decoded.annotations)
    image_of = finder(image_ids, "an image", hint=_LEAVE_OUT)
    category_of = finder(category_ids, "a category", hint=_LEAVE_OUT)

    @cache
    def names() -> Mapping[int, str]:
        # A bare number is resolved by its origin: COCO's own table for COCO images, else the file's categories.
        if space == "coco":
            return {number: name for number, name, _ in COCO_CATEGORIES}
        return dict(zip(categories.numbers, categories.names, strict=True))

    read = [_objects(piece, image_of, category_of, names, where) for piece in pieces]
    objects = Objects.joined(read)
    check_unique(objects.numbers, "annotation id", where, hint=_RENUMBER)
    sound, dropped = sound_objects(objects, bad_boxes, where)
    return Source.of(
        dataset,
        part,
        namespace=space,
        images=images,
        categories=categories,
        objects=sound,
        files=(FileRecord(content.name, content.sha256, content.size, len(objects)),),
        dropped=dropped,
        federated=_federated(decoded.images, category_ids, _where(content.name, "images", decoded.images)),
    )


class ImageRecord(msgspec.Struct, gc=False):
    """One entry of ``images``; a width of 0 means that the file does not state it."""

    id: _Id
    file_name: _FileName = ""
    coco_url: _FileName | None = None
    curation_id: _FileName = ""
    width: _Pixels = 0
    height: _Pixels = 0
    neg_category_ids: list[_Id] | None = None
    not_exhaustive_category_ids: list[_Id] | None = None


class AnnotationRecord(msgspec.Struct, gc=False):
    """One entry of ``annotations``, without its mask: the decoder skips fields that are not declared."""

    image_id: _Id
    category_id: _Id
    bbox: tuple[float, float, float, float]
    id: _Id | None = None
    area: float | None = None
    iscrowd: _Flag = 0
    difficult: _Flag = 0
    ignore: _Flag = 0
    truncated: _Flag = 0
    occluded: _Flag = 0
    pose: _Pose = ""
    orig_category: _Text = ""
    orig_category_id: int | None = None


class _Numbered(AnnotationRecord, gc=False, kw_only=True):
    image_id: _Int64
    category_id: _Int64
    id: _Int64


_Pieces = Iterable[Sequence[AnnotationRecord]]
_TEXT_FIELDS = frozenset({"supercategory", "frequency"})
_ID_FIELDS = frozenset({"id", "image_id", "category_id"})
_UNUSED = {"pose": _POSE_NUMBERS, "supercategory": {}, "coco_url": {}}
"""Text fields that no measure uses, with their usual values: other values count as missing."""


class CategoryRecord(msgspec.Struct, gc=False):
    """One entry of ``categories``."""

    id: _Id
    name: _Text
    supercategory: _Text | None = ""
    frequency: _Text | None = ""


class Instances(msgspec.Struct, gc=False):
    """A whole file; a file without labels (COCO's ``image_info_test``) has no annotations."""

    images: list[ImageRecord]
    annotations: list[AnnotationRecord] = []
    categories: list[CategoryRecord] = []


class _Frame(Instances, gc=False):
    annotations: msgspec.Raw = msgspec.Raw()  # type: ignore[assignment]


def _in_pieces(data: bytes) -> tuple[Instances, Iterator[list[_Numbered]]]:
    """Return a large file without its annotations, and these in pieces; raise `ValueError` for other files.

    The position of the annotations is guessed from the bytes. Decoding the rest of the file with a mark in their place
    proves the guess. So nothing is parsed twice, and the records of a piece are in the processor's cache when they
    become columns: 436 MB take two thirds of the time and memory.
    """
    opening = _OPENING.search(data, data.index(b'"annotations"')) if len(data) > SMALL and data[:1] == b"{" else None
    if not opening:
        raise ValueError
    start, before = opening.end(), data[: opening.end()]
    later = [data.rindex(key) for key in (b'"images"', b'"categories"') if key not in before]
    end = data.rindex(b"]", start, min(later, default=len(data)))
    # The rest is copied, so it must be small.
    if len(data) - (end - start) > max(_MOST_COPIED, len(data) // 2):
        raise ValueError
    rest = b"".join((before, _MARK, data[end:]))
    frame = msgspec.json.decode(rest, type=_Frame)
    is_proved = bytes(frame.annotations).strip(b"[] \n\r\t") == _MARK and rest.count(_MARK) == 1
    if not is_proved or not frame.categories or repeated_at_the_top(rest) is not None:
        raise ValueError
    pieces = record_pieces(data, start, end, opening[1], _Numbered)
    return Instances(frame.images, [], frame.categories), pieces


def decode_instances(data: bytes, name: str) -> Instances:
    """Return the records of a COCO instances file of any form.

    Raises
    ------
    AnnotationFormatError
        The bytes are not JSON, end too early or have a duplicate key, or a record has a wrong type or lacks a field.
    """
    _check_start(data, name)
    refuse_repeated_keys(data, name, AnnotationFormatError)
    try:
        return msgspec.json.decode(data, type=Instances)
    except msgspec.ValidationError as error:
        records = _as_other_tools_write(data)
        return _refuse_record(name, str(error)) if records is None else records
    except msgspec.DecodeError as error:
        _refuse_syntax(data, name, str(error))
    except (UnicodeDecodeError, RecursionError) as error:
        expected = "a JSON object of lists of flat records, in UTF-8"
        raise AnnotationFormatError(
            "The annotation file is not JSON", where=name, expected=expected, found=str(error)[:200]
        ) from None


def _as_other_tools_write(data: bytes) -> Instances | None:
    """Return the records of a file with null fields, ids such as 1.0, or masks without boxes; None for another file."""
    try:
        file = msgspec.json.decode(data, type=dict[str, Any])
        notes: Counter[str] = Counter()
        if "segments_info" in next(iter(file.get("annotations") or ()), ()):
            file["annotations"] = _of_segments(file, notes)
        for section in ("images", "annotations", "categories"):
            records = file.get(section)
            if isinstance(records, list):
                file[section] = [
                    _plain_fields(record, notes) if isinstance(record, dict) else record for record in records
                ]
        instances = msgspec.convert(file, Instances)
    except (msgspec.MsgspecError, RecursionError, LookupError, TypeError, AttributeError):
        return None
    if notes:
        warnings.warn(
            "; ".join(f"{counted(count, 'annotation')} {note}" for note, count in notes.items()),
            CurationWarning,
            stacklevel=2,
        )
    return instances


def _of_segments(file: dict[str, Any], notes: Counter[str]) -> list[Any]:
    """Return each segment of a panoptic file that shows a thing as an annotation."""
    thing_ids = {record["id"] for record in file["categories"] if record.get("isthing", 1)}
    segments = [
        # Ids of segments are colours, which repeat in other images.
        {**segment, "id": None, "image_id": image["image_id"]}
        for image in file["annotations"]
        for segment in image["segments_info"]
    ]
    annotations = [segment for segment in segments if segment["category_id"] in thing_ids]
    file["categories"] = [record for record in file["categories"] if record["id"] in thing_ids]
    if len(annotations) < len(segments):
        notes["left out: segments of stuff, which has no boxes"] = len(segments) - len(annotations)
    return annotations


def _plain_fields(record: dict[str, Any], notes: Counter[str]) -> dict[str, Any]:
    """Return the readable fields of a record: nulls removed, whole ids as integers, and a box computed from a mask."""
    fields: dict[str, Any] = {
        key: as_integer(value)
        if key in _ID_FIELDS
        else str(value)
        if key in _TEXT_FIELDS and type(value) in (int, float)
        else value
        for key, value in record.items()
        if value is not None
    }
    # Measures do not use these fields.
    for key in ("truncated", "occluded"):
        extent: Any = fields.get(key, 0)
        if extent not in (0, 1):
            fields[key] = isinstance(extent, int | float) and extent > 0
    for key, usual in _UNUSED.items():
        if not isinstance(value := fields.get(key, ""), str) or (usual and value not in usual):
            fields.pop(key, None)
    if not fields.get("bbox") and (box := box_of_mask(fields.get("segmentation"))) is not None:
        fields["bbox"] = box
        notes["without bbox: their boxes are those around their masks"] += 1
    return fields


def box_of_mask(mask: Any) -> list[float] | None:
    """Return the box around polygons, or around a run-length mask; None for anything else."""
    try:
        if isinstance(mask, dict):
            height, width = mask["size"]
            return _box_of_runs(height, width, mask["counts"])
        polygons = [np.array(polygon, np.float64).reshape(-1, 2) for polygon in mask if isinstance(polygon, list)]
        corners = np.concatenate(polygons)
        low = corners.min(axis=0)
        return [*low.tolist(), *(corners.max(axis=0) - low).tolist()]
    except (ValueError, TypeError, LookupError, OverflowError):
        return None


def _box_of_runs(height: int, width: int, counts: list[int] | str) -> list[float]:
    """Return the box around a mask of runs along its columns; raise `ValueError` if the runs exceed the image."""
    ends = np.cumsum(_runs(counts) if isinstance(counts, str) else np.array(counts, np.int64))
    starts, ends = ends[:-1:2], ends[1::2]
    starts, ends = starts[: len(ends)][ends > starts[: len(ends)]], ends[ends > starts[: len(ends)]]
    if not len(starts) or starts[0] < 0 or ends[-1] > height * width or (starts[1:] < ends[:-1]).any():
        raise ValueError
    left, right = int(starts[0] // height), int((ends[-1] - 1) // height)
    # A run that continues in the next column touches both sides.
    goes_on = starts // height < (ends - 1) // height
    top = int(np.where(goes_on, 0, starts % height).min())
    bottom = int(np.where(goes_on, height - 1, (ends - 1) % height).max())
    return [float(left), float(top), float(right - left + 1), float(bottom - top + 1)]


def _runs(text: str) -> Int64s:
    """Return the runs of COCO's text form: five bits a character, as differences from the run before last."""
    runs: list[int] = []
    value = shift = 0
    for code in text.encode("ascii"):
        bits = code - 48
        value |= (bits & 0x1F) << shift
        shift += 5
        if not 0 <= bits < 64 or shift > 60:
            raise ValueError
        if not bits & 0x20:
            value -= (1 << shift) * bool(bits & 0x10)
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value = shift = 0
    return np.array(runs, np.int64)


def _check_start(data: bytes, name: str) -> None:
    expected = "a JSON object with images, annotations and categories, in UTF-8"
    start = data[:1024].lstrip()
    if start.startswith(b"["):
        raise AnnotationFormatError(
            "The annotation file is a list, like a file of detections",
            where=name,
            expected=expected,
            hint="give this file as --detections, and the annotations here",
        )
    if not start.startswith(b"{"):
        beginning = repr(start[:40]) if start else "an empty file"
        raise AnnotationFormatError(
            "The annotation file is not JSON", where=f"{name}: byte 0", expected=expected, found=beginning
        )


def _refuse_record(name: str, message: str) -> NoReturn:
    reason, _, path = message.partition(" - at ")
    record = _RECORD.search(path)
    if record is None:
        where = name if not path else f"{name}: {path.strip('`').removeprefix('$.')}"
    else:
        where = record_place(name, record[1], int(record[2]))
    field = path.strip("`").rpartition("].")[2] if record else ""
    raise AnnotationFormatError(
        "A record of the annotation file is malformed",
        where=where,
        found=f"{field}: {reason}".replace("`", "").removeprefix(": "),
        hint=_LEAVE_OUT
        if record and record[1] == "annotations" and field.partition("[")[0] in ("image_id", "category_id", "bbox")
        else None,
    )


def _refuse_syntax(data: bytes, name: str, message: str) -> NoReturn:
    if "truncated" not in message:
        position = _BYTE.search(message)
        start = int(position[1]) if position else 0
        raise AnnotationFormatError(
            "The annotation file is not JSON",
            where=f"{name}: byte {start}",
            expected="strict JSON (NaN and Infinity are not part of it)",
            found=f"{message}: {data[max(0, start - 30) : start + 30]!r}",
            hint=_LEAVE_OUT if data[start : start + 2] in (b"Na", b"In", b"-I") else None,
        )
    raise AnnotationFormatError(
        "The annotation file ends too early",
        where=f"{name}: byte {len(data)}",
        expected="a whole JSON object",
        found=f"{len(data):,} bytes that end in {data[-30:]!r}",
        hint="compare its size and checksum with the publisher's, and download it again",
    )


def record_place(name: str, section: str, row: int, identity: object = None) -> str:
    """Return the position of a record for errors: ``instances.json: annotations[17] (id 42)``."""
    suffix = "" if identity is None else f" (id {str(identity)[:80]})"
    return f"{name}: {section}[{row}]{suffix}"


def _where(name: str, section: str, records: Sequence[Any]) -> Where:
    return lambda row: record_place(name, section, row, records[row].id)


def _column(records: Sequence[Any], attribute: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    return np.fromiter(map(attrgetter(attribute), records), dtype, len(records))


def _flags(records: Sequence[AnnotationRecord], attribute: str) -> Bools:
    # numpy takes five times as long to read truth values from objects.
    return _column(records, attribute, np.int8).astype(np.bool_)


def _ids(records: Sequence[Any], attribute: str, where: Where) -> Ids:
    """Return ids as int64 or as texts; a file that mixes both is malformed."""
    is_numbered = records and isinstance(records[0], _Numbered)
    kinds = {int} if is_numbered else set(map(type, map(attrgetter(attribute), records)))
    if kinds == {str}:
        return [getattr(record, attribute) for record in records]
    if kinds <= {int}:
        return _column(records, attribute, np.int64)
    first = type(getattr(records[0], attribute))
    row = next(i for i, record in enumerate(records) if type(getattr(record, attribute)) is not first)
    raise _malformed(where(row), f"the same type of {attribute} in all records", getattr(records[row], attribute))


def _malformed(where: str, expected: str, value: object) -> AnnotationFormatError:
    return AnnotationFormatError(
        "A record of the annotation file is malformed", where=where, expected=expected, found=repr(value)[:80]
    )


def _categories(records: list[CategoryRecord], name: str, *, numbered: bool) -> tuple[Categories, Ids]:
    where = _where(name, "categories", records)
    ids = _ids(records, "id", where)
    check_unique(ids, "category id", where)
    names = tuple(str(record.id) if numbered else record.name for record in records)
    check_unique(names, "category name", where)
    numbers: Any = range(1, len(ids) + 1) if isinstance(ids, list) else (record.id for record in records)
    frequencies = tuple(record.frequency or "" for record in records)
    supercategories = tuple(record.supercategory or "" for record in records)
    return Categories(tuple(numbers), names, supercategories, frequencies=frequencies * any(frequencies)), ids


def _images(records: list[ImageRecord], name: str, dataset: str, space: str) -> tuple[Images, Ids]:
    where = _where(name, "images", records)
    ids = _ids(records, "id", where)
    check_unique(ids, "image id", where, hint=_REPEATED)
    # LVIS states only the URL of each photo.
    names = [record.file_name or "/".join((record.coco_url or "").split("/")[-2:]) for record in records]
    natives = _natives(names, ids, dataset, space, where)
    check_unique(natives, "native image id", where)
    listed = [record.curation_id for record in records]
    images = Images.of(
        natives,
        **{"text_ids": texts(ids)} if isinstance(ids, list) else {"numbers": ids},
        file_names=names,
        widths=_column(records, "width", np.int32),
        heights=_column(records, "height", np.int32),
        listed=texts(listed) if any(listed) else None,
    )
    return images, ids


def _federated(records: list[ImageRecord], category_ids: Ids, where: Where) -> Int32s | None:
    """Return the federated labels of the images (see `Source.federated`), or None if no image has any."""
    statements = [
        (row, kind, listed)
        for row, record in enumerate(records)
        for kind, listed in enumerate((record.neg_category_ids, record.not_exhaustive_category_ids))
        if listed is not None
    ]
    if not statements:
        return None
    lengths = [len(listed) for _, _, listed in statements]
    images, kinds = np.repeat([(row, kind) for row, kind, _ in statements], lengths, axis=0).T
    category_references = list[Any](chain.from_iterable(listed for _, _, listed in statements))
    numbers = isinstance(category_ids, np.ndarray) and all(isinstance(number, int) for number in category_references)
    references: Ids = np.array(category_references, np.int64) if numbers else category_references
    category = finder(category_ids, "a category")(references, lambda row: where(images[row]))
    return np.column_stack([images, category, kinds]).astype(np.int32).reshape(-1, 3)


def _natives(names: list[str], ids: Ids, dataset: str, space: str, where: Where) -> list[str]:
    if named_by_file(dataset):
        natives = [PurePosixPath(name.replace("\\", "/")).stem for name in names]
    elif isinstance(ids, list):
        natives = [native_of(text, space) for text in ids] if space == "coco" else ids
    elif space == "coco":
        if not len(ids) or (ids.min() >= 0 and ids.max() < 10**12):
            return [f"{number:012d}" for number in ids.tolist()]
        natives = []
        row = int(np.flatnonzero((ids < 0) | (ids >= 10**12))[0])
        raise _malformed(where(row), "an image id from 0 to 999999999999", int(ids[row]))
    else:
        return [str(number) for number in ids.tolist()]
    _check_natives(natives, where, "file_name" if named_by_file(dataset) else "id")
    return natives


def _check_natives(natives: list[str], where: Where, field: str) -> None:
    for row, native in enumerate(natives):
        try:
            check_native(native)
        except ImageIdError as error:
            raise _malformed(where(row), f"{field} that gives an image id of {error.expected}", native) from None


def _objects(
    records: Sequence[AnnotationRecord],
    image_of: Finder,
    category_of: Finder,
    names: Callable[[], Mapping[int, str]],
    where: Where,
) -> Objects:
    boxes = np.fromiter(chain.from_iterable([record.bbox for record in records]), np.float64, 4 * len(records))
    boxes = boxes.reshape(-1, 4)
    image = image_of(_ids(records, "image_id", where), where)
    category = category_of(_ids(records, "category_id", where), where)
    # An absent area becomes NaN here; JSON has no NaN.
    areas = _column(records, "area", np.float64)
    areas = np.where(np.isnan(areas), boxes[:, 2] * boxes[:, 3], areas)
    columns = {"areas": areas, "numbers": _numbers(records, where), "crowd": _flags(records, "iscrowd")}
    # Few files state these fields. Listing the records that do takes a fifth of the time of building their columns.
    if [box for box in records if box.difficult or box.ignore or box.truncated or box.occluded or box.pose]:
        columns |= {name: _flags(records, name) for name in ("difficult", "truncated", "occluded")}
        columns["difficult"] |= _flags(records, "ignore")
        pose = map(_POSE_NUMBERS.__getitem__, map(attrgetter("pose"), records))
        columns["pose"] = np.fromiter(pose, np.int8, len(records))
    return Objects.of(image, category, boxes, original=_originals(records, names), **columns)


def _numbers(records: Sequence[AnnotationRecord], where: Where) -> Int64s:
    counted = np.arange(1, len(records) + 1, dtype=np.int64)
    if not records or (records[0].id is None and set(map(attrgetter("id"), records)) == {None}):
        return counted
    ids = _ids(records, "id", where)
    if isinstance(ids, list):
        check_unique(ids, "annotation id", where, hint=_RENUMBER)
    return counted if isinstance(ids, list) else ids


def _originals(records: Sequence[AnnotationRecord], names: Callable[[], Mapping[int, str]]) -> Texts | None:
    """Return the class of each object before a protocol renamed it, or None if no record states one."""
    if not [box for box in records if box.orig_category or box.orig_category_id is not None]:
        return None
    return texts(
        [
            record.orig_category
            or ("" if record.orig_category_id is None else names().get(record.orig_category_id, ""))
            for record in records
        ]
    )
