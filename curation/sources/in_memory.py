"""Conversion of annotations and detections in memory to the bytes of an equivalent file.

The same reader then checks both, with the same messages. Nothing is rounded, guessed or left out: a value that JSON
cannot represent is rejected here; NaN is written, and the reader rejects it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from pathlib import PurePath
from typing import Any

from curation.core.arguments import shown, values_of_array
from curation.core.errors import AnnotationFormatError, UsageError
from curation.core.json_text import EXACT, as_integer
from curation.sources.coco import record_place

_BOX = ("x", "y", "w", "h")
_OF_IMAGE = ("file_name", "width", "height")
_OF_CLASS = ("category_id", "supercategory")
_FLAGS = ("iscrowd", "difficult", "ignore", "truncated", "occluded")
_READ = (
    *("image_id", "category", "score", "background_score", "bbox", *_BOX),
    *(*_OF_IMAGE, *_OF_CLASS, *_FLAGS, "area", "pose"),
)
_IDS = ("image_id", "category_id")
_NEEDED = ("image_id", "score", "bbox", *_BOX)
_BYTES = (bytes, bytearray, memoryview)
_KINDS = "a path, a COCO dictionary, a DataFrame or list of boxes, a FiftyOne dataset or view, or a Source"
_BY_IMAGE = "by image id {boxes: x1, y1, x2, y2; scores; labels}"
_DETECTIONS = (
    "a path, a list of COCO results, a FiftyOne view with predictions, a DataFrame: image_id, category_id, score, bbox "
    f"or x, y, w, h; or {_BY_IMAGE}"
)


def coco_bytes(annotations: Any) -> tuple[bytes, bool]:
    """Return annotations in memory as the bytes of a COCO file, and whether they state category ids.

    Parameters
    ----------
    annotations : mapping, DataFrame, or several mappings
        A COCO dictionary. Or one row a box, with ``image_id``, ``category`` and ``bbox`` or ``x``, ``y``, ``w``, ``h``
        (pixels, origin top left), and optionally: ``category_id``, ``supercategory``, ``file_name``,
        ``width``, ``height``, ``area``, ``iscrowd``, ``difficult``, ``ignore``, ``truncated``, ``occluded``, ``pose``;
        a row without category and box is an image without a box. Or one mapping an image, with ``image_id``, ``boxes``
        (``x1, y1, x2, y2``) and ``labels``, as torchvision and torchmetrics have them.

    Raises
    ------
    UsageError
        The type is another one, a column is missing or repeated, or JSON cannot represent a value.
    AnnotationFormatError
        Rows disagree about an image or a class, or a box has no class.
    """
    if isinstance(annotations, Mapping):
        return encoded_json(annotations), True
    rows = _rows(annotations)
    if rows is None:
        raise UsageError("Unsupported annotation type", expected=_KINDS, found=shown(annotations))
    name = type(annotations).__name__
    if rows and {"boxes", "labels"} <= rows[0].keys():
        rows = [box for number, row in enumerate(rows) for box in _rows_of_image(row, number, name)]
    columns = (
        dict.fromkeys(key for row in rows for key in row) if rows or not _is_frame(annotations) else annotations.columns
    )
    _require_columns(columns)
    coco, has_category_ids = _coco_of_rows(rows, name)
    return encoded_json(coco), has_category_ids


def results_bytes(detections: Any) -> bytes:
    """Return detections in memory as the bytes of a COCO results file.

    Parameters
    ----------
    detections : DataFrame, or several mappings
        One row a detection, with ``image_id`` or ``file_name``, ``category_id`` or ``category``, ``score``, and
        ``bbox`` or ``x``, ``y``, ``w``, ``h``; or one mapping an image, with ``image_id`` or ``file_name``, ``boxes``
        (``x1, y1, x2, y2``), ``scores`` and ``labels``.

    Raises
    ------
    UsageError
        The type is another one, a column is repeated, or JSON cannot represent a value.
    """
    rows = None if isinstance(detections, Mapping) else _rows(detections)
    if rows is None:
        raise UsageError("Unsupported detection type", expected=_DETECTIONS, found=shown(detections))
    if rows and {"boxes", "scores", "labels"} <= rows[0].keys():
        column_names = {"scores": "score", "labels": "category"}
        rows = [
            box
            for number, row in enumerate(rows)
            for box in _boxes_of_image(row, column_names, f"detections[{number}]")
        ]
        for row in rows:
            if not isinstance(row["category"], str):
                row["category_id"] = row.pop("category")
    return encoded_json([_with_bbox(row) for row in rows])


def encoded_json(value: Any) -> bytes:
    """Return a value as JSON, including NumPy and torch numbers, arrays, Series and DataFrames.

    Raises
    ------
    UsageError
        It contains itself, or a value that JSON cannot represent.
    """
    compact = partial(json.dumps, value, default=_plain, separators=(",", ":"))
    try:
        try:
            return compact(ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return compact().encode()
    except TypeError as error:
        raise _not_allowed(str(error)) from None
    except (RecursionError, ValueError):
        raise UsageError("Circular or too deeply nested value", found=type(value).__name__) from None


def _not_allowed(text: str) -> UsageError:
    expected = "numbers, texts, True, False, None, and lists and mappings of them"
    return UsageError("Value not allowed in an annotation file", expected=expected, found=text[:200])


def _plain(value: Any) -> Any:
    """Return a JSON value for a value that JSON cannot represent directly."""
    if isinstance(value, _BYTES):
        raise UsageError(
            "Bytes where a text is needed",
            expected="a text",
            found=shown(bytes(value)),
            hint="decode them: value.decode(), also the counts of a pycocotools mask",
        )
    if _is_frame(value):
        return [{key: cell for key, cell in row.items() if not _is_missing(cell)} for row in _rows(value) or ()]
    if hasattr(value, "tolist"):
        return values_of_array(value)
    if _is_missing(value):
        return None
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return _listed(value)
    raise _not_allowed(shown(value))


def _listed(values: Iterable[Any]) -> list[Any]:
    """Return the values of an iterable with a length; raise `UsageError` for a generator, which may be endless."""
    if isinstance(values, Iterator):
        raise UsageError("Generators are not supported", expected="a list", found=shown(values), hint="pass list(...)")
    if not isinstance(values, Sized):
        raise UsageError("This object is neither rows nor a source", expected="a list of rows", found=shown(values))
    return list(values)


def _is_frame(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("columns", "to_dict", "itertuples"))


def _is_missing(value: Any) -> bool:
    """Return whether a cell is empty: None, or what pandas writes for it (NaN, NA, NaT)."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _rows(frame_or_rows: Any) -> list[dict[str, Any]] | None:
    """Return the rows of a DataFrame, or several mappings, as plain dictionaries; None for another value."""
    if _is_frame(frame_or_rows):
        names = list(frame_or_rows.columns)
        if twice := sorted({str(name) for name in names if name in _READ and names.count(name) > 1}):
            raise UsageError(
                "A column appears twice in the table", expected="each column once", found=", ".join(twice)[:200]
            )
        table = frame_or_rows.loc[:, ~frame_or_rows.columns.duplicated()].to_dict("records")
        rows = [{str(key): _cell(str(key), cell) for key, cell in row.items()} for row in table]
        # Joining tables turns an integer column into floats.
        for name in [column for column in _IDS if column in names and frame_or_rows[column].dtype.kind == "f"]:
            for row in rows:
                row[name] = as_integer(row[name])
        return rows
    if isinstance(frame_or_rows, str | bytes | Mapping) or not isinstance(frame_or_rows, Iterable):
        return None
    several = _listed(frame_or_rows)
    if not all(isinstance(row, Mapping) for row in several):
        return None
    return [{key: _scalar(cell) for key, cell in row.items()} for row in several]


def _cell(name: str, value: Any) -> Any:
    """Return a cell of a DataFrame, None if it is missing; the reader then reports a missing number."""
    return None if name not in _NEEDED and _is_missing(value) else _scalar(value)


def _scalar(value: Any) -> Any:
    """Return a number of NumPy or torch as a Python number; other values are unchanged."""
    return values_of_array(value) if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def _key(value: Any) -> tuple[type, Any]:
    """Return a key that distinguishes ids and names: 1, "1" and True differ. The reader rejects lists later."""
    return type(value), value if isinstance(value, int | float | str) else repr(value)


def _numbers(value: Any) -> Any:
    """Return a box as floats; another value is returned unchanged, and the reader rejects it."""
    value = values_of_array(value) if hasattr(value, "tolist") else value
    if not isinstance(value, list | tuple):
        return value
    plain = [_scalar(number) for number in value]
    return [float(number) if type(number) is int and abs(number) <= EXACT else number for number in plain]


def _box_of(row: Mapping[str, Any]) -> Any:
    """Return the box that a row states as ``bbox``, else as ``x, y, w, h``; None for a row without a box."""
    box = row.get("bbox")
    if box is None or (not hasattr(box, "__len__") and _is_missing(box)):
        box = [row.get(name) for name in _BOX]
        return None if all(map(_is_missing, box)) else _numbers(box)
    return _numbers(box)


def _require_columns(columns: Iterable[Any]) -> None:
    names = [str(column) for column in columns]
    missing = [name for name in ("image_id", "category") if name not in names]
    if "bbox" not in names:
        missing += [name for name in _BOX if name not in names]
    if missing:
        raise UsageError(
            "The table of boxes lacks a column",
            expected="image_id, category, and bbox or x, y, w, h",
            found=", ".join(names)[:200] or "no column",
            hint=f"rename or add {', '.join(missing)}",
        )


def _coco_of_rows(rows: Sequence[Mapping[str, Any]], name: str) -> tuple[dict[str, Any], bool]:
    """Return the COCO dictionary of rows of boxes, and whether the rows have category ids.

    Classes without ids are numbered from 1 in the order of names.
    """
    images: dict[Any, dict[str, Any]] = {}
    classes: dict[Any, dict[str, Any]] = {}
    annotations: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        where = record_place(name, "rows", number)
        image_id = row.get("image_id")
        image = images.setdefault(_key(image_id), {"id": image_id})
        _state(image, row, _OF_IMAGE, f"{where}, image {image_id!s:.80}")
        category, box = row.get("category"), _box_of(row)
        if _is_missing(category):
            if box is not None and (not isinstance(box, list | tuple) or any(value != 0 for value in box)):
                raise AnnotationFormatError("A box has no class", where=where, expected="a category", found=str(box))
            continue
        category = as_integer(category)
        kind = classes.setdefault(_key(category), {"name": category})
        _state(kind, row, _OF_CLASS, f"{where}, class {category!s:.80}")
        flags = {flag: row[flag] for flag in _FLAGS if not _is_missing(row.get(flag))}
        area = row.get("area")
        annotations.append(
            {
                "id": len(annotations) + 1,
                "image_id": image_id,
                "category_id": kind,
                "bbox": box,
                "area": _product(box) if _is_missing(area) else area,
                **{flag: int(value) if isinstance(value, bool) else as_integer(value) for flag, value in flags.items()},
                **({} if _is_missing(row.get("pose")) else {"pose": row["pose"]}),
            }
        )
    categories, has_category_ids = _numbered(list(classes.values()), name)
    for annotation in annotations:
        annotation["category_id"] = annotation["category_id"]["id"]
    for image in images.values():
        image["file_name"] = image.get("file_name") or str(image["id"])
    order = ("id", "file_name", "width", "height")
    images_in_order = [{key: image[key] for key in order if key in image} for image in images.values()]
    return {"images": images_in_order, "annotations": annotations, "categories": categories}, has_category_ids


def _product(box: Any) -> Any:
    """Return the area of a box, or None for a malformed box, which the reader rejects."""
    if not isinstance(box, list) or len(box) != 4 or not all(isinstance(side, float) for side in box[2:]):
        return None
    return box[2] * box[3]


def _state(known: dict[str, Any], row: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    """Add the fields of an image or class in a row to those of earlier rows; raise an error if they disagree."""
    for name in names:
        value = row.get(name)
        if _is_missing(value) or value == "":
            continue
        value = as_integer(value)
        if known.setdefault(name, value) != value or isinstance(known[name], str) != isinstance(value, str):
            raise AnnotationFormatError(
                f"Two rows differ in {name}",
                where=where,
                expected=f"the same {name} in all rows of {'an image' if name in _OF_IMAGE else 'a class'}",
                found=f"{known[name]!r:.80} and {value!r:.80}",
            )


def _numbered(classes: list[dict[str, Any]], name: str) -> tuple[list[dict[str, Any]], bool]:
    """Return the categories of a file, each with an id, and whether the rows state these ids.

    The id is the stated one, else the class name if it is a number, else the rank of the name.
    """
    kinds = {type(category["name"]) for category in classes}
    if kinds == {str, int}:
        both = [next(category["name"] for category in classes if type(category["name"]) is kind) for kind in (str, int)]
        raise AnnotationFormatError(
            "Some classes are texts, others are numbers",
            where=name,
            expected="only texts, or only whole numbers",
            found=f"{both[0]!r:.80} and {both[1]!r:.80}",
        )
    if len(kinds) == 1 and kinds <= {str, int}:
        classes.sort(key=lambda category: category["name"])
    with_ids = [category for category in classes if "category_id" in category]
    if with_ids and len(with_ids) < len(classes):
        without = next(category["name"] for category in classes if "category_id" not in category)
        raise AnnotationFormatError(
            "A class has no category_id",
            where=name,
            expected="category_id in the rows of all classes, or in no row",
            found=f"{without!r:.80}",
        )
    for rank, category in enumerate(classes, 1):
        category["id"] = category.pop("category_id", category["name"] if kinds == {int} else rank)
        category["name"] = str(category["name"]) if kinds == {int} else category["name"]
    if all(type(category["id"]) is int for category in classes):
        classes.sort(key=lambda category: category["id"])
    keys = ("id", "name", "supercategory")
    categories = [{key: category[key] for key in keys if key in category} for category in classes]
    return categories, bool(with_ids) or kinds == {int}


def _with_bbox(row: dict[str, Any]) -> dict[str, Any]:
    """Return a detection with its box as ``bbox`` and without missing class fields."""
    detection = row | {key: None for key in ("category", "category_id") if key in row and _is_missing(row[key])}
    if "bbox" in row or not all(key in row for key in _BOX):
        return detection
    rest = {key: value for key, value in detection.items() if key not in _BOX}
    return rest | {"bbox": [row[key] for key in _BOX]}


def _boxes_of_image(row: Mapping[str, Any], column_names: Mapping[str, str], where: str) -> list[dict[str, Any]]:
    """Return a row for each box of an image in the form of torchmetrics and torchvision: corners, equally long columns.

    Parameters
    ----------
    column_names : mapping of str to str
        Names of the other columns in the rows.
    """
    cells_of_image: list[Any] = [row.get(key) for key in ("boxes", *column_names)]
    columns: list[Any] = [values_of_array(column) if hasattr(column, "tolist") else column for column in cells_of_image]
    reference = {key: row[key] for key in ("image_id", "file_name") if key in row}
    fit = bool(reference) and all(isinstance(column, list | tuple) for column in columns)
    if not fit or len(set(map(len, columns))) != 1 or not all(map(_is_box, columns[0])):
        raise UsageError(
            "Malformed boxes of an image",
            where=where,
            expected=f"image_id, boxes of x1, y1, x2, y2 (pixels), and as many {', '.join(column_names)}",
            found=", ".join(f"{key}: {shown(value)}" for key, value in row.items())[:300],
            hint=None if reference else "detections by image id: dict(zip(image_ids, detections))",
        )
    rows = []
    for (x1, y1, x2, y2), *cells in zip(*columns, strict=True):
        others = dict(zip(column_names.values(), map(_scalar, cells), strict=True))
        rows.append({**reference, "bbox": [x1, y1, x2 - x1, y2 - y1], **others})
    return rows


def _is_box(box: Any) -> bool:
    plain = values_of_array(box) if hasattr(box, "tolist") else box
    return isinstance(plain, list | tuple) and len(plain) == 4 and all(isinstance(edge, int | float) for edge in plain)


def _rows_of_image(row: Mapping[str, Any], number: int, name: str) -> list[dict[str, Any]]:
    """Return the rows of an image's boxes, or one row without a box if it has none; labels are class names."""
    column_names = {key: key for key in ("area", "iscrowd") if key in row} | {"labels": "category"}
    rows = _boxes_of_image(row, column_names, record_place(name, "images", number))
    facts = {key: row[key] for key in ("image_id", *_OF_IMAGE) if key in row}
    return [box | facts for box in rows] or [{**facts, "bbox": None, "category": None}]


def is_by_image(detections: Any) -> bool:
    """Return whether a mapping has the boxes, scores and labels of each image by its id."""
    return isinstance(detections, Mapping) and any(map(_is_of_image, detections.values()))


def _is_of_image(value: Any) -> bool:
    return isinstance(value, Mapping) and "boxes" in value and "image_id" not in value


def rows_by_image(detections: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Return the boxes of each image in the form that `results_bytes` accepts.

    Raises
    ------
    UsageError
        A value is not a mapping.
    """
    for image, boxes in detections.items():
        if not isinstance(boxes, Mapping):
            where = f"detections[{image!r:.60}]"
            raise UsageError("Unsupported detections of an image", where=where, expected=_BY_IMAGE, found=shown(boxes))
    return [{**boxes, "image_id": image} for image, boxes in detections.items()]
