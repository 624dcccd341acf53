"""Detections in nested JSON of other tools: a record for each image, COCO annotations, results of single images.

These are inputs of torchmetrics (``boxes``, ``scores``, ``labels``), files of MMDetection (``bboxes``, one for each
image), results of Ultralytics (``box`` with corners), and a COCO dictionary whose annotations have scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from curation.core.errors import PredictionError
from curation.core.json_text import refuse_repeated_keys
from curation.core.reading import InputFile
from curation.evaluation.problem import GroundTruth

NESTED = (
    'an object an image: {"image_id": …, "boxes": [[x1, y1, x2, y2], …], "scores": […], "labels": […]}; or COCO\'s '
    "images, annotations with a score each, and categories"
)
_HEAD = 1 << 12
_LISTS = re.compile(rb'"(?:boxes|bboxes|box)"\s*:')
_BOX = re.compile(rb'"bbox"\s*:')
_IMAGES = ("file_name", "image_id", "image", "img_path", "image_path", "filename", "path", "img_id")
_CORNERS = ("x1", "y1", "x2", "y2")
_WHOLE = ("predictions", "preds", "results", "detections")

Numbering = Literal["ids", "labels", "positions"]


class NestedBox(NamedTuple):
    """A detection in nested JSON.

    Attributes
    ----------
    image : int or str
        Id or name of the image.
    label : int or str
        Name or number of the class.
    box : sequence of float
        ``x, y, w, h``.
    score : float or None
    where : str
        File and record, for messages.
    numbering : {"ids", "labels", "positions"}
        Whether a number is an id of the truth, is an id or counts from 0, or counts the classes from 0.
    """

    image: int | str
    label: int | str
    box: Sequence[float]
    score: float | None
    where: str
    numbering: Numbering


def is_nested(data: bytes) -> bool:
    """Return whether a text looks like nested detections, and not like a list of COCO results."""
    head = data[:_HEAD]
    if data.lstrip()[:1] == b"{" and b'"annotations"' in data and b'"images"' in data:
        return b'"score"' in data
    return _LISTS.search(head) is not None and _BOX.search(head) is None


def nested_boxes(files: Mapping[str, InputFile], truth: GroundTruth) -> list[NestedBox]:
    """Return the detections in a file, or in a folder with a file for each image.

    Raises
    ------
    PredictionError
        A file is not JSON of a known form, or a record lacks a field; the message names the record.
    """
    several = len(files) > 1
    return [
        box
        for file in files.values()
        for box in _boxes(_content(file), str(file.path), file.path.stem if several else "", truth)
    ]


def nested_files(folder: Path) -> dict[str, Path]:
    """Return the JSON files of a folder, one for each image, as MMDetection writes them (in ``preds``)."""
    below = folder / "preds" if (folder / "preds").is_dir() else folder
    return {path.name: path for path in sorted(below.glob("*.json"))}


def _content(file: InputFile) -> Any:
    where = str(file.path)
    refuse_repeated_keys(file.data, where, PredictionError)
    try:
        return msgspec.json.decode(file.data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        try:
            return msgspec.json.Decoder().decode_lines(file.data)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise PredictionError(
                "The detections cannot be read", where=where, expected=NESTED, found=str(error)[:200]
            ) from None


def _boxes(content: Any, where: str, image: str, truth: GroundTruth) -> Iterator[NestedBox]:
    if isinstance(content, dict) and "annotations" in content:
        yield from _of_coco(content, where, truth)
        return
    if isinstance(content, dict) and (wrapper := next((key for key in _WHOLE if key in content), None)):
        content = content[wrapper]
    if isinstance(content, dict) and not _holds_boxes(content):
        if not all(map(_holds_boxes, content.values())):
            raise _refused(where, "objects with boxes, scores and labels by image", content)
        for name, record in content.items():
            yield from _of_image(record, f"{where}: {name!r:.80}", name)
        return
    for number, record in enumerate(content if isinstance(content, list) else [content]):
        record_at = f"{where}: record {number}"
        if not _holds_boxes(record):
            raise _refused(record_at, NESTED, record)
        image_name = next((record[key] for key in _IMAGES if isinstance(record.get(key), int | str)), image)
        if image_name == "":
            raise PredictionError(
                "A prediction names no image", where=record_at, expected=f"one of {', '.join(_IMAGES)}",
                found=", ".join(record)[:200],
                hint="write the name of the photo into each record, or use a folder with STEM.json for each image",
            )  # fmt: skip
        yield from _of_image(record, record_at, image_name)


def _holds_boxes(record: Any) -> bool:
    return isinstance(record, dict) and not {"boxes", "bboxes", "box"}.isdisjoint(record)


def _of_image(record: Mapping[str, Any], record_at: str, image: int | str) -> Iterator[NestedBox]:
    """Yield the detections of an image, or the single detection of an Ultralytics result."""
    if isinstance(corners := record.get("box"), dict):
        boxes: Any = [[corners.get(name) for name in _CORNERS]]
        scores: Any = [record.get("confidence", record.get("score"))]
        labels: Any = [record.get("name", record.get("class"))]
    else:
        boxes = record.get("boxes", record.get("bboxes"))
        labels = record.get("labels", record.get("classes"))
        scores = record.get("scores", [None] * len(boxes) if isinstance(boxes, list) else None)
    lists = (boxes, scores, labels)
    if not all(isinstance(values, list) for values in lists) or len({*map(len, lists)}) > 1:
        lengths = [len(values) if isinstance(values, list) else type(values).__name__ for values in lists]
        raise _refused(record_at, "boxes, scores and labels of equal length", lengths)
    for number, (box, score, label) in enumerate(zip(*lists, strict=True)):
        where = f"{record_at}, box {number}"
        x1, y1, x2, y2 = _numbers(box, where)
        box_of_image = (x1, y1, x2 - x1, y2 - y1)
        numbering: Numbering = "labels" if "boxes" in record else "positions"
        yield NestedBox(image, _label(label, where), box_of_image, _score(score, where), where, numbering)


def _of_coco(content: Mapping[str, Any], where: str, truth: GroundTruth) -> Iterator[NestedBox]:
    """Yield annotations with scores; the tables of the file translate numbers to photos and classes."""
    photos, names = _table(content, "images", "file_name", where), _table(content, "categories", "name", where)
    annotations = content["annotations"]
    if not isinstance(annotations, list) or not all(isinstance(record, dict) for record in annotations):
        raise _refused(where, "annotations: a list of objects", annotations)
    if all(record.get("score") is None for record in annotations):
        raise PredictionError(
            "This is not a list of detections, it is a ground-truth file", where=where, expected=NESTED,
            found="annotations without a score",
            hint="give annotation files to --truth and results files to --detections",
        )  # fmt: skip
    numbers = {record["category_id"] for record in annotations if isinstance(record.get("category_id"), int | str)}
    is_named = {names.get(number) for number in numbers} <= {*truth.classes}
    for number, record in enumerate(annotations):
        record_at = f"{where}: annotations[{number}]"
        image, label = _label(record.get("image_id"), record_at), _label(record.get("category_id"), record_at)
        yield NestedBox(
            photos.get(image) or image,
            names[label] if is_named else label,
            _numbers(record.get("bbox"), record_at),
            _score(record.get("score"), record_at),
            record_at,
            "ids",
        )


def _table(content: Mapping[str, Any], section: str, field: str, where: str) -> dict[int | str, str]:
    records = content.get(section) or []
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise _refused(where, f"{section}: a list of objects", records)
    name_of = {
        record["id"]: record[field]
        for record in records
        if isinstance(record.get("id"), int | str) and isinstance(record.get(field), str)
    }
    # Repeated names do not identify a record.
    return name_of if len({*name_of.values()}) == len(name_of) == len(records) else {}


def _label(value: Any, where: str) -> int | str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str) or (isinstance(value, int) and abs(value) >= 2**63):
        raise _refused(where, "a name or a whole number", value)
    return value


def _score(value: Any, where: str) -> float | None:
    return None if value is None else _numbers([value] * 4, where)[0]


def _numbers(box: Any, where: str) -> list[float]:
    if not isinstance(box, list) or len(box) != 4 or not all(type(side) in (int, float) for side in box):
        raise _refused(where, "four numbers, and a number as score", box)
    try:
        return [float(side) for side in box]
    except OverflowError:
        raise _refused(where, "finite numbers", box) from None


def _refused(where: str, expected: str, value: Any) -> PredictionError:
    return PredictionError(
        "A prediction cannot be read", where=where, expected=expected, found=ascii(value)[:120],
        hint="docs/detection_metrics.md, Files of detections, has the supported forms",
    )  # fmt: skip
