"""Reader of the Mapillary Traffic Sign Dataset, one JSON file an image: `read_mtsd`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from curation.core.errors import AnnotationFormatError, MissingFileError
from curation.core.files import inside, read_bytes
from curation.core.json_text import decode_json
from curation.sources.content import SmallFiles, listed_names, paths_below
from curation.sources.integrity import sound_objects
from curation.sources.source import Categories, Images, Objects, Source
from curation.sources.source_specs import BadBoxes

OTHER_SIGN = "other-sign"
"""The label of a sign outside the 400 classes."""

_BELOW = ("", "mtsd_v2_fully_annotated", "mtsd_fully_annotated")


_Side = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
_Label = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00-\x1f\x7f-\x9f]{1,200}\Z")]


class _Box(msgspec.Struct):
    xmin: float
    ymin: float
    xmax: float
    ymax: float
    cross_boundary: Any = None


class _Properties(msgspec.Struct, rename="kebab"):
    occluded: bool = False
    out_of_frame: bool = False


class _Sign(msgspec.Struct):
    label: _Label
    bbox: _Box
    properties: _Properties = msgspec.field(default_factory=_Properties)


class _Photo(msgspec.Struct):
    width: _Side
    height: _Side
    objects: list[_Sign]
    ispano: bool = False


def locate_mtsd(root: Path) -> Path:
    """Return the folder at or below `root` that has MTSD's two folders, or raise `MissingFileError`."""
    for below in _BELOW:
        if (root / below / "splits").is_dir() and (root / below / "annotations").is_dir():
            return root / below
    raise MissingFileError(
        "Folder of the Mapillary Traffic Sign Dataset not found",
        where=str(root),
        expected=f"splits/ and annotations/ in it or in {_BELOW[1]}",
    )


def mtsd_parts(root: Path) -> tuple[str, ...]:
    """Return the splits that a folder offers."""
    return tuple(part for part in ("train", "val", "test") if (root / "splits" / f"{part}.txt").is_file())


def _split(part: str) -> str:
    return f"splits/{part}.txt"


def _names(root: Path, part: str) -> tuple[str, ...]:
    """Return the files that a split's source is read from: the split, and its images' JSON files if one is there."""
    path = inside(root, _split(part))
    if not path.is_file():
        raise MissingFileError(
            f"The folder has no split {part!r}",
            where=str(path),
            expected=", ".join(mtsd_parts(root)) or "splits/train.txt",
        )
    keys = listed_names(read_bytes(path, kind="split"), _split(part))
    names = tuple(f"annotations/{key}.json" for key in keys)
    present = [Path(path).is_file() for path in paths_below(root, names)]
    return (_split(part), *(names if any(present) else ()))


def read_mtsd(path: Path, *, dataset: str, part: str, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source that a folder of the fully annotated set holds for one split, ``other-sign`` included.

    Native ids are image keys. Classes are the labels that occur, sorted, numbered from 1. ``occluded`` and
    ``out-of-frame`` become `Objects.occluded` and `Objects.truncated`; no other property is read. A split of
    which no image has an annotation file (``test``, as published) is a source without boxes.

    Parameters
    ----------
    path : Path
        A folder with ``splits`` and ``annotations``, or one that holds it.
    part : str
        ``train``, ``val`` or ``test``.
    bad_boxes : {"error", "drop"}
        A sign across the seam of a panorama, ``xmin > xmax``, is left out in either case; `Source.dropped` counts them.

    Raises
    ------
    MissingFileError
        The split is not there, or an image of it has no annotation file while others have.
    PathEscapeError
        A split names a file outside ``annotations``.
    AnnotationFormatError, DuplicateIdError, BoxError
        A file is not what it should be; the error names it.
    """
    root = locate_mtsd(path)
    content = SmallFiles(root, _names(root, part))
    split, *annotations = content.data
    keys = listed_names(content.data[split], split)
    message, expected = "The annotation file is malformed", "width, height, ispano and objects with label and bbox"
    photos = [
        decode_json(content.data[name], _Photo, AnnotationFormatError, message, where=name, expected=expected)
        for name in annotations
    ]
    signs, crossing = _signs(photos, annotations)
    classes = sorted({sign.label for sign in signs})
    number = {name: position for position, name in enumerate(classes)}
    sign_objects = Objects.of(
        [sign.image for sign in signs],
        [number[sign.label] for sign in signs],
        np.array([sign.box for sign in signs], np.float64).reshape(-1, 4),
        truncated=np.array([sign.truncated for sign in signs], np.bool_),
        occluded=np.array([sign.occluded for sign in signs], np.bool_),
    )
    objects, dropped = sound_objects(sign_objects, bad_boxes, lambda row: signs[row].where)
    if crossing:
        dropped["sign across the seam of a panorama: left out"] = crossing
    records = [content.record(split, [split], len(keys))]
    if photos:
        n_signs = sum(len(photo.objects) for photo in photos)
        records.append(content.record("annotations/*.json", annotations, n_signs))
    return Source.of(
        dataset,
        part,
        images=_images(keys, photos),
        categories=Categories.counted(classes),
        objects=objects if photos else None,
        presence=None if photos else np.empty((0, 2), np.int32),
        files=tuple(records),
        dropped=dropped,
    )


class _Object(NamedTuple):
    image: int
    label: str
    box: tuple[float, float, float, float]
    where: str
    truncated: bool
    occluded: bool


def _signs(photos: Sequence[_Photo], names: Sequence[str]) -> tuple[list[_Object], int]:
    """Return the objects of all photos, and how many signs lie across the seam of a panorama and are left out."""
    rows, crossing = list[_Object](), 0
    for image, (photo, name) in enumerate(zip(photos, names, strict=True)):
        for number, sign in enumerate(photo.objects):
            box, properties = sign.bbox, sign.properties
            if box.xmin > box.xmax and (photo.ispano or box.cross_boundary is not None):
                crossing += 1
                continue
            size = (box.xmin, box.ymin, box.xmax - box.xmin, box.ymax - box.ymin)
            where = f"{name}: objects[{number}]"
            rows.append(_Object(image, sign.label, size, where, properties.out_of_frame, properties.occluded))
    return rows, crossing


def _images(keys: Sequence[str], photos: Sequence[_Photo]) -> Images:
    sizes = np.zeros((len(keys), 2), np.int32)
    if photos:
        sizes[:] = [(photo.width, photo.height) for photo in photos]
    return Images.of(
        keys,
        file_names=[f"{key}.jpg" for key in keys],
        widths=np.ascontiguousarray(sizes[:, 0]),
        heights=np.ascontiguousarray(sizes[:, 1]),
    )
