"""Reader of BDD100K's labels, one Scalabel record for each frame, as records of COCO: `read_frames`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from curation.core.errors import AnnotationFormatError
from curation.core.reading import InputFile
from curation.sources.coco import AnnotationRecord, CategoryRecord, ImageRecord, Instances, source_of_records
from curation.sources.source import Source
from curation.sources.source_specs import BadBoxes

_NAMES_2020 = (
    "pedestrian", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle", "traffic light", "traffic sign",
)  # fmt: skip
_NAMES_2018 = ("person", *_NAMES_2020[1:6], "motor", "bike", *_NAMES_2020[8:])
"""The detection classes in the order in which the dataset's converter numbers them, from 1."""


class _Box(msgspec.Struct):
    x1: float
    y1: float
    x2: float
    y2: float


class _Attributes(msgspec.Struct):
    # Measures do not use these two.
    occluded: Any = False
    truncated: Any = False
    crowd: bool | None = False


class _Label(msgspec.Struct):
    category: str
    box2d: _Box | None = None
    attributes: _Attributes | None = None


class _Size(msgspec.Struct):
    width: int = 0
    height: int = 0


class _Frame(msgspec.Struct):
    name: str
    labels: list[_Label] | None = None
    size: _Size | None = None


class _Frames(msgspec.Struct):
    frames: list[_Frame]


def is_frames(data: bytes) -> bool:
    """Return whether a text holds frames with labels rather than records of COCO."""
    return b'"box2d"' in data and data[:1] in b"[{" and b'"annotations"' not in data[:4096]


def read_frames(content: InputFile, *, dataset: str, part: str, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source of a file of frames (see `frame_instances`); `Source.dropped` counts labels without a box."""
    records, left_out = frame_instances(content.data, content.name)
    source = source_of_records(content, records, [records.annotations], dataset, part, bad_boxes)
    return replace(source, dropped=source.dropped | {"labels without a box": left_out} if left_out else source.dropped)


def frame_instances(data: bytes, name: str) -> tuple[Instances, int]:
    """Return the frames of a file as records of COCO, and the number of labels without a box, which are left out.

    Images and classes have the numbers of the dataset's own converter. If a class has another name, all classes are
    numbered from 1 in the order of their names. Corners are continuous: a width is ``x2 - x1``.

    Raises
    ------
    AnnotationFormatError
        A frame is malformed; the error names it.
    """
    try:
        frames = (
            msgspec.json.decode(data, type=list[_Frame])
            if data[:1] == b"["
            else msgspec.json.decode(data, type=_Frames).frames
        )
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        reason, _, field = str(error).partition(" - at ")
        raise AnnotationFormatError(
            "A frame of the labels cannot be read", where=f"{name}: {field.strip('`').removeprefix('$') or 'JSON'}",
            expected='[{"name": "a.jpg", "labels": [{"category": "car", "box2d": {"x1", "y1", "x2", "y2"}}]}]',
            found=reason[:200],
        ) from None  # fmt: skip
    labels = [(number, label) for number, frame in enumerate(frames, 1) for label in frame.labels or ()]
    boxes = [(number, label, label.box2d) for number, label in labels if label.box2d is not None]
    used = {label.category for _, label, _ in boxes}
    names = next((order for order in (_NAMES_2020, _NAMES_2018) if used <= {*order}), tuple(sorted(used)))
    numbers: dict[str, Any] = {category: number for number, category in enumerate(names, 1)}
    annotations = []
    for row, (image, label, box) in enumerate(boxes, 1):
        flags = label.attributes or _Attributes()
        annotations.append(
            AnnotationRecord(
                image, numbers[label.category], (box.x1, box.y1, box.x2 - box.x1, box.y2 - box.y1), id=row,
                iscrowd=bool(flags.crowd), occluded=bool(flags.occluded), truncated=bool(flags.truncated),
            )
        )  # fmt: skip
    images = []
    for number, frame in enumerate(frames, 1):
        size = frame.size or _Size()
        images.append(ImageRecord(number, file_name=frame.name, width=size.width, height=size.height))
    categories = [CategoryRecord(number, category) for category, number in numbers.items()]
    return Instances(images, annotations, categories), len(labels) - len(boxes)
