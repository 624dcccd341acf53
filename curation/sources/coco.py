"""Reader of COCO JSON files: `read_coco`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import AnnotationFormatError, ImageIdError
from curation.ids import ImageId, check_native, native_of
from curation.sources.coco_json import (
    AnnotationRecord,
    CategoryRecord,
    ImageRecord,
    PlainFile,
    decode_instances,
    decode_plain,
    record_place,
)
from curation.sources.content import FileContent
from curation.sources.datasets import COCO_CATEGORIES, family, namespace_of
from curation.sources.integrity import (
    BadBoxes,
    Ids,
    Where,
    check_policy,
    check_resolved,
    check_unique,
    positions,
    select,
    sound_boxes,
)
from curation.sources.source import (
    POSES,
    Bools,
    Categories,
    FileRecord,
    Floats,
    Images,
    Int32s,
    Int64s,
    Objects,
    Source,
    Texts,
    texts,
)

_MAX_PIXELS = 2**31 - 1


def read_coco(
    path: Path,
    *,
    dataset: str = "coco",
    part: str = "",
    namespace: str | None = None,
    bad_boxes: BadBoxes = "error",
) -> Source:
    """Return the source that a COCO instances file holds, crowd regions included, masks skipped.

    Fields beyond COCO's own are read where present: ``difficult`` and ``ignore`` (either makes an object difficult),
    ``truncated``, ``occluded``, ``pose``, and ``orig_category`` or ``orig_category_id``. A file without annotations
    is a source without objects.

    Parameters
    ----------
    path : Path
    dataset, part : str
        For example ``coco`` and ``train2017``. Native ids are COCO's twelve digits in the namespace ``coco``, the stem
        of the file name for a dataset ``voc…`` (``000001``, ``2008_000008``), else the id as it stands.
    namespace : str, optional
        Of the image ids; by default the dataset's own.
    bad_boxes : {"error", "drop"}
        Whether a box that is not finite, negative in size or beyond any image stops the reading or is left out and
        counted in `Source.dropped`.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    AnnotationFormatError, DuplicateIdError, DanglingIdError, BoxError
        The file is not what it should be; the error names the record.
    """
    return parse_coco(FileContent(path), dataset=dataset, part=part, namespace=namespace, bad_boxes=bad_boxes)


def parse_coco(
    content: FileContent,
    *,
    dataset: str,
    part: str,
    namespace: str | None = None,
    bad_boxes: BadBoxes = "error",
) -> Source:
    """Return the source in a file that is in memory already (see `read_coco`)."""
    check_policy(bad_boxes)
    space = ImageId(namespace, "0").namespace if namespace else namespace_of(dataset)
    decoded = decode_plain(content.data) or decode_instances(content.data, content.name)
    categories, category_ids = _categories(decoded.categories, content.name)
    images, image_ids = _images(decoded.images, content.name, dataset, space)
    if isinstance(decoded, PlainFile):
        where = _where_numbered(content.name, decoded.numbers)
        objects = _plain_objects(decoded, image_ids, category_ids, where)
    else:
        records = decoded.annotations
        where = _where(content.name, "annotations", records)
        objects = _objects(records, image_ids, category_ids, where)
        objects = replace(objects, original=_originals(records, categories, space))
    keep, dropped = sound_boxes(objects.boxes, objects.areas, bad_boxes, where)
    return Source.of(
        dataset,
        part,
        namespace=space,
        images=images,
        categories=categories,
        objects=objects if keep is None else select(objects, keep),
        files=(FileRecord(content.name, content.sha256, content.size, len(objects)),),
        dropped=dropped,
    )


def _where(name: str, section: str, records: Sequence[Any]) -> Where:
    return lambda row: record_place(name, section, row, records[row].id)


def _where_numbered(name: str, numbers: Int64s) -> Where:
    return lambda row: record_place(name, "annotations", row, int(numbers[row]))


def _column(records: Sequence[Any], attribute: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    return np.fromiter(map(attrgetter(attribute), records), dtype, len(records))


def _ids(records: Sequence[Any], attribute: str, where: Where) -> Ids:
    """Return ids as int64 or as texts; a file that mixes both is malformed."""
    kinds = set(map(type, map(attrgetter(attribute), records)))
    if str in kinds and len(kinds) == 1:
        return [getattr(record, attribute) for record in records]
    if kinds <= {int}:
        try:
            return _column(records, attribute, np.int64)
        except OverflowError:
            row = next(i for i, record in enumerate(records) if abs(getattr(record, attribute)) >= 2**63)
            raise _malformed(where(row), f"{attribute} below 2^63", getattr(records[row], attribute)) from None
    first = type(getattr(records[0], attribute))
    row = next(i for i, record in enumerate(records) if type(getattr(record, attribute)) is not first)
    raise _malformed(where(row), f"{attribute} of one type in all records", getattr(records[row], attribute))


def _malformed(where: str, expected: str, found: object) -> AnnotationFormatError:
    return AnnotationFormatError(
        "A record of the annotation file is malformed", where=where, expected=expected, found=repr(found)[:80]
    )


def _categories(records: list[CategoryRecord], name: str) -> tuple[Categories, Ids]:
    where = _where(name, "categories", records)
    ids = _ids(records, "id", where)
    check_unique(ids, "category id", where)
    names = tuple(record.name for record in records)
    check_unique(names, "category name", where)
    numbers = tuple(range(1, len(ids) + 1)) if isinstance(ids, list) else tuple(ids.tolist())
    return Categories(numbers, names, tuple(record.supercategory for record in records)), ids


def _images(records: list[ImageRecord], name: str, dataset: str, space: str) -> tuple[Images, Ids]:
    where = _where(name, "images", records)
    ids = _ids(records, "id", where)
    check_unique(ids, "image id", where)
    natives = _natives(records, ids, dataset, space, where)
    check_unique(natives, "native image id", where)
    images = Images.of(
        natives,
        numbers=np.arange(len(ids), dtype=np.int64) if isinstance(ids, list) else ids,
        file_names=[record.file_name for record in records],
        widths=_pixels(records, "width", where),
        heights=_pixels(records, "height", where),
    )
    return images, ids


def _pixels(records: list[ImageRecord], attribute: str, where: Where) -> Int32s:
    values = _column(records, attribute, np.float64)
    bad = np.flatnonzero(~((values >= 0) & (values <= _MAX_PIXELS) & (values == np.floor(values))))
    if len(bad):
        row = int(bad[0])
        raise _malformed(where(row), f"{attribute} a whole number of pixels", getattr(records[row], attribute))
    return values.astype(np.int32)


def _natives(records: list[ImageRecord], ids: Ids, dataset: str, space: str, where: Where) -> list[str]:
    if family(dataset) == "voc":
        found = [PurePosixPath(record.file_name.replace("\\", "/")).stem for record in records]
    elif isinstance(ids, list):
        found = [native_of(text, space) for text in ids] if space == "coco" else ids
    elif space == "coco":
        if not len(ids) or (ids.min() >= 0 and ids.max() < 10**12):
            return [f"{number:012d}" for number in ids.tolist()]
        found = []
        row = int(np.flatnonzero((ids < 0) | (ids >= 10**12))[0])
        raise _malformed(where(row), "an image id from 0 to 999999999999", int(ids[row]))
    else:
        return [str(number) for number in ids.tolist()]
    _check_natives(found, where, "file_name" if family(dataset) == "voc" else "id")
    return found


def _check_natives(natives: list[str], where: Where, field: str) -> None:
    for row, native in enumerate(natives):
        try:
            check_native(native)
        except ImageIdError as error:
            raise _malformed(where(row), f"{field} that gives an image id of {error.expected}", native) from None


def _plain_objects(plain: PlainFile, image_ids: Ids, category_ids: Ids, where: Where) -> Objects:
    check_unique(plain.numbers, "annotation id", where)
    return Objects.of(
        _places(plain.image_ids, image_ids, "an image", where),
        _places(plain.category_ids, category_ids, "a category", where),
        plain.boxes,
        areas=plain.areas,
        numbers=plain.numbers,
        crowd=plain.crowd,
    )


def _objects(records: list[AnnotationRecord], image_ids: Ids, category_ids: Ids, where: Where) -> Objects:
    boxes = np.fromiter(chain.from_iterable(map(attrgetter("bbox"), records)), np.float64, 4 * len(records))
    boxes = boxes.reshape(-1, 4)
    return Objects(
        image=_places(_ids(records, "image_id", where), image_ids, "an image", where),
        category=_places(_ids(records, "category_id", where), category_ids, "a category", where),
        boxes=boxes,
        areas=_areas(records, boxes),
        numbers=_numbers(records, where),
        crowd=_flags(records, "iscrowd", where),
        difficult=_flags(records, "difficult", where) | _flags(records, "ignore", where),
        truncated=_flags(records, "truncated", where),
        occluded=_flags(records, "occluded", where),
        pose=_poses(records, where),
    )


def _places(references: Ids, known: Ids, kind: str, where: Where) -> Int32s:
    places = positions(known, references)
    check_resolved(places, references, kind, where)
    return places


def _numbers(records: list[AnnotationRecord], where: Where) -> Int64s:
    counted = np.arange(1, len(records) + 1, dtype=np.int64)
    if all(record.id is None for record in records):
        return counted
    ids = _ids(records, "id", where)
    check_unique(ids, "annotation id", where)
    return counted if isinstance(ids, list) else ids


def _areas(records: list[AnnotationRecord], boxes: Floats) -> Floats:
    # An absent area becomes NaN here, which no JSON number can be.
    stated: Floats = _column(records, "area", np.float64)
    return np.where(np.isnan(stated), boxes[:, 2] * boxes[:, 3], stated)


def _flags(records: list[AnnotationRecord], attribute: str, where: Where) -> Bools:
    values = set(map(attrgetter(attribute), records))
    if values <= {0}:
        return np.zeros(len(records), np.bool_)
    if not values <= {0, 1}:
        row = next(i for i, record in enumerate(records) if getattr(record, attribute) not in (0, 1))
        raise _malformed(where(row), f"{attribute} 0 or 1", getattr(records[row], attribute))
    return _column(records, attribute, np.bool_)


def _poses(records: list[AnnotationRecord], where: Where) -> npt.NDArray[np.int8]:
    place = {pose: position for position, pose in enumerate(POSES)}
    stated = set(map(attrgetter("pose"), records))
    if stated <= {""}:
        return np.zeros(len(records), np.int8)
    if not stated <= place.keys():
        row = next(i for i, record in enumerate(records) if record.pose not in place)
        raise _malformed(where(row), f"pose one of {', '.join(POSES[1:])}", records[row].pose)
    return np.fromiter((place[record.pose] for record in records), np.int8, len(records))


def _originals(records: list[AnnotationRecord], categories: Categories, space: str) -> Texts | None:
    """Return the class each object had before a protocol renamed it, None where no record states one.

    A number alone is looked up where it comes from: COCO's own table for COCO images, else the file's categories.
    """
    unnamed = set(map(attrgetter("orig_category"), records)) <= {""}
    if unnamed and set(map(attrgetter("orig_category_id"), records)) <= {None}:
        return None
    own = dict(zip(categories.numbers, categories.names, strict=True))
    names = {number: name for number, name, _ in COCO_CATEGORIES} if space == "coco" else own
    return texts(
        [
            record.orig_category or ("" if record.orig_category_id is None else names.get(record.orig_category_id, ""))
            for record in records
        ]
    )
