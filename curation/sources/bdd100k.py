"""Reader of BDD100K's label JSON, as published in 2018 and in 2020: `read_bdd100k`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec
import numpy as np

from curation.errors import AnnotationFormatError, MissingFileError
from curation.json_keys import decode_json
from curation.sources.content import SmallFiles, check_name, require_one
from curation.sources.integrity import LabelledBox, check_label, check_policy, check_unique, objects_of
from curation.sources.source import Categories, Images, Source
from curation.sources.source_specs import BadBoxes
from curation.storage import open_binary

PARTS = ("train", "val", "test")
WIDTH, HEIGHT = 1280, 720
"""Of every image of the dataset; its label files do not repeat it."""

_CLASSES = (
    ("pedestrian", "person"),
    ("rider",),
    ("car",),
    ("truck",),
    ("bus",),
    ("train",),
    ("motorcycle", "motor"),
    ("bicycle", "bike"),
    ("traffic light",),
    ("traffic sign",),
)
"""The ten classes in the order of their published numbers, each as called in 2020 and in 2018."""
_PLACES = (
    "labels/det_20/det_{part}.json",
    "det_20/det_{part}.json",
    "det_{part}.json",
    "labels/bdd100k_labels_images_{part}.json",
    "bdd100k_labels_images_{part}.json",
    "labels/100k/{part}",
    "100k/{part}",
)
_BELOW = ("", "bdd100k")
_SHAPES = ("lane", "drivable area", "area")


class _Box(msgspec.Struct):
    x1: float
    y1: float
    x2: float
    y2: float


class _Attributes(msgspec.Struct, frozen=True):
    occluded: bool | None = None
    truncated: bool | None = None
    crowd: bool | None = None


class _Label(msgspec.Struct):
    category: str
    box2d: _Box | None = None
    attributes: _Attributes | None = None


class _Frame(msgspec.Struct):
    name: str = ""
    labels: list[_Label] | None = None
    objects: list[_Label] | None = None


class _File(msgspec.Struct):
    frames: list[_Frame]
    name: str = ""


def read_bdd100k(path: Path, part: str = "", *, dataset: str = "bdd100k", bad_boxes: BadBoxes = "error") -> Source:
    """Return the source that BDD100K's labels hold for one part; lanes and drivable areas are counted and left out.

    Native ids are image names without suffix. Boxes are ``x1, y1, x2-x1, y2-y1``: corners are continuous here, while
    the dataset's own converter to COCO adds a pixel to width and height. The ten classes have their published numbers
    and the names of the file (2018: person, motor, bike; 2020: pedestrian, motorcycle, bicycle); others follow by name.

    Parameters
    ----------
    path : Path
        A label file (``det_val.json``, ``bdd100k_labels_images_val.json``), a folder of one JSON file an image
        (``labels/100k/val``), or a root that holds one of these.
    part : str
        ``train`` or ``val``; for a file or folder of labels any name.
    bad_boxes : {"error", "drop"}

    Raises
    ------
    MissingFileError, UsageError
        There are no labels of the part, or several kinds.
    AnnotationFormatError, DuplicateIdError, BoxError
        A file is not what it should be; the error names the record.
    """
    place = locate_bdd100k(path, part)
    return parse_bdd100k(SmallFiles(place.root, place.names), part=place.part, dataset=dataset, bad_boxes=bad_boxes)


@dataclass(frozen=True, slots=True)
class Bdd100kPlace:
    """Where the labels of a part lie: file names below a root."""

    root: Path
    names: tuple[str, ...]
    part: str


def locate_bdd100k(path: Path, part: str) -> Bdd100kPlace:
    """Return the label files of a part (see `read_bdd100k` for parameters and errors)."""
    if path.is_file():
        return Bdd100kPlace(path.parent, (path.name,), part or path.stem.rpartition("_")[2])
    if names := _json_names(path):
        return Bdd100kPlace(path, names, part or path.name)
    offered = bdd100k_parts(path)
    part = part or (offered[0] if len(offered) == 1 else "")
    found = _found(path, part) if part else []
    if not found:
        raise MissingFileError(
            f"The folder holds no labels of BDD100K {part}".rstrip(),
            where=str(path),
            expected=", ".join(place.format(part=part or "PART") for place in _PLACES),
            found=f"labels of {', '.join(offered)}" if offered else None,
        )
    require_one(found, path, f"The folder holds labels of {part} of several kinds", f"bdd100k@{part}")
    return locate_bdd100k(found[0], part)


def bdd100k_parts(root: Path) -> tuple[str, ...]:
    """Return the parts whose labels lie below a root."""
    return tuple(part for part in PARTS if _found(root, part))


def is_bdd100k_file(path: Path) -> bool:
    """Return whether a JSON file is a list of frames, or an object of such, and not COCO's."""
    try:
        with open_binary(path) as stream:
            start = stream.read(1 << 12).lstrip(b"\xef\xbb\xbf \t\r\n")
    except OSError:
        return False
    return start.startswith(b"[") or b'"frames"' in start


def _found(root: Path, part: str) -> list[Path]:
    places = [root / below / place.format(part=part) for below in _BELOW for place in _PLACES]
    return [place for place in places if place.is_file() or _json_names(place)]


def _json_names(folder: Path) -> tuple[str, ...]:
    """Return the label files of a folder of one an image; a root holds files of whole parts in place of these."""
    if not folder.is_dir():
        return ()
    names = sorted(entry.name for entry in folder.glob("*.json"))
    of_parts = any(name.startswith(("det_", "bdd100k_labels_")) for name in names)
    return () if of_parts else tuple(names)


def parse_bdd100k(content: SmallFiles, *, part: str, dataset: str, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source in files that are in memory already (see `read_bdd100k`)."""
    check_policy(bad_boxes)
    frames = [frame for name, data in content.data.items() for frame in _frames(data, name)]
    natives = [PurePosixPath(frame.name.replace("\\", "/")).name for frame in frames]
    natives = [name.removesuffix(".jpg").removesuffix(".png") for name in natives]
    single = next(iter(content.data)) if len(content.data) == 1 else f"{part}/*.json"
    for place, native in enumerate(natives):
        check_name(native, f"{single}: image {place}")
    check_unique(natives, "image name", lambda row: f"{single}: image {row}")
    rows, dropped = _rows(frames, single)
    names = _names(rows)
    objects, bad = objects_of(rows, names, bad_boxes)
    return Source.of(
        dataset,
        part,
        images=Images.of(
            natives,
            file_names=[f"{native}.jpg" for native in natives],
            widths=np.full(len(natives), WIDTH, np.int32),
            heights=np.full(len(natives), HEIGHT, np.int32),
        ),
        categories=Categories.counted(names),
        objects=objects,
        files=(content.record(single, list(content.data), len(rows)),),
        dropped=dropped | bad,
    )


def _frames(data: bytes, name: str) -> Sequence[_Frame]:
    """Return the images of a file: a list of them, an object that holds it, or one image with its frames."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    what = "The label file is malformed"
    expected = "a list of frames with name and labels, or one image with name and frames"
    if data.lstrip().startswith(b"["):
        return decode_json(data, list[_Frame], AnnotationFormatError, what, where=name, expected=expected)
    file = decode_json(data, _File, AnnotationFormatError, what, where=name, expected=expected)
    if not file.name:
        return file.frames
    return [_Frame(file.name, [label for frame in file.frames for label in frame.objects or ()])]


def _rows(frames: Sequence[_Frame], name: str) -> tuple[list[LabelledBox], dict[str, int]]:
    """Return the labels with a box, and how many have none, by kind."""
    rows, dropped = list[LabelledBox](), Counter[str]()
    for image, frame in enumerate(frames):
        for number, label in enumerate(frame.labels or ()):
            where = f"{name}: {frame.name[:80]}: labels[{number}]"
            check_label(label.category, where)
            if (box := label.box2d) is None:
                kind = label.category.partition("/")[0]
                dropped[f"label without box: {kind if kind in _SHAPES else 'other'}"] += 1
                continue
            size = box.x1, box.y1, box.x2 - box.x1, box.y2 - box.y1
            stated = msgspec.structs.asdict(label.attributes or _Attributes())
            flags = {flag: bool(value) for flag, value in stated.items()}
            rows.append(LabelledBox(image, label.category, size, where, **flags))
    return rows, dict(sorted(dropped.items()))


def _names(rows: Sequence[LabelledBox]) -> list[str]:
    found = {row.label for row in rows}
    names = [next((name for name in spelled if name in found), spelled[0]) for spelled in _CLASSES]
    return names + sorted(found - set(names))
