"""Reader of the Mapillary Traffic Sign Dataset, which has a JSON file for each image: `read_mtsd`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from curation.core.errors import AnnotationFormatError, MissingFileError
from curation.core.files import inside, read_bytes
from curation.core.json_text import decode_json
from curation.sources.integrity import SmallFiles, listed_names, paths_below, sound_objects
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
    """Return the files of a split's source: the split, and the JSON files of its images if any exists."""
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
    """Return the source of a split in a folder of the fully annotated set, including ``other-sign``.

    Native ids are image keys. Classes are the labels that occur, sorted, numbered from 1. ``occluded`` and
    ``out-of-frame`` become `Objects.occluded` and `Objects.truncated`; other properties are ignored. A split
    without annotation files (``test``, as published) becomes a source without boxes.

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
        The split does not exist, or only some of its images have an annotation file.
    PathEscapeError
        A split names a file outside ``annotations``.
    AnnotationFormatError, DuplicateIdError, BoxError
        A file is malformed; the error names it.
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
    signs = [
        (image, sign, f"{name}: objects[{number}]")
        for image, (photo, name) in enumerate(zip(photos, annotations, strict=True))
        for number, sign in enumerate(photo.objects)
        if not _crosses_seam(photo, sign.bbox)
    ]
    crossing = sum(len(photo.objects) for photo in photos) - len(signs)
    classes = sorted({sign.label for _, sign, _ in signs})
    number = {name: position for position, name in enumerate(classes)}
    corners = np.array([(box.xmin, box.ymin, box.xmax, box.ymax) for _, sign, _ in signs for box in [sign.bbox]])
    low, high = np.hsplit(corners.reshape(-1, 4), 2)
    sign_objects = Objects.of(
        [image for image, *_ in signs],
        [number[sign.label] for _, sign, _ in signs],
        np.hstack([low, high - low]),
        truncated=np.array([sign.properties.out_of_frame for _, sign, _ in signs], np.bool_),
        occluded=np.array([sign.properties.occluded for _, sign, _ in signs], np.bool_),
    )
    objects, dropped = sound_objects(sign_objects, bad_boxes, lambda row: signs[row][2])
    if crossing:
        dropped["sign across the seam of a panorama: left out"] = crossing
    records = [content.record(split, [split], len(keys))]
    if photos:
        records.append(content.record("annotations/*.json", annotations, len(signs) + crossing))
    sizes = np.array([(photo.width, photo.height) for photo in photos] or [(0, 0)] * len(keys), np.int32)
    sizes = sizes.reshape(-1, 2)
    return Source.of(
        dataset,
        part,
        images=Images.of(keys, file_names=[f"{key}.jpg" for key in keys], widths=sizes[:, 0], heights=sizes[:, 1]),
        categories=Categories.counted(classes),
        objects=objects if photos else None,
        presence=None if photos else np.empty((0, 2), np.int32),
        files=tuple(records),
        dropped=dropped,
    )


def _crosses_seam(photo: _Photo, box: _Box) -> bool:
    """Return whether a sign lies across the seam of a panorama."""
    return box.xmin > box.xmax and (photo.ispano or box.cross_boundary is not None)
