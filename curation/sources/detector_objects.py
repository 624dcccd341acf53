"""Detections as detectors return them in Python: objects of supervision and Ultralytics, dictionaries of torchmetrics.

They are known by their documented attributes, so none of these packages is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from curation.core.arguments import shown, values_of_array
from curation.core.errors import UsageError
from curation.sources.fiftyone_view import is_view

_FORMS = (
    "{image_id: supervision.Detections}, {image_id: {boxes, scores, labels}}, or Ultralytics Results, one an image, "
    "whose path names it"
)


def is_by_image(given: Any) -> bool:
    """Return whether something holds the detections of each image: of a mapping, keys are the ids of images."""
    if isinstance(given, Mapping):
        return any(map(_is_of_image, given.values()))
    return _is_object(given) or (
        isinstance(given, Sequence) and not isinstance(given, str) and any(map(_is_object, given))
    )


def rows_by_image(given: Any) -> list[dict[str, Any]]:
    """Return the detections of each image as `curation.sources.in_memory.results_bytes` takes them.

    Parameters
    ----------
    given : mapping, or several objects
        By image id: ``supervision.Detections`` (``xyxy``, ``confidence``, ``class_id``; of ``data["class_name"]`` the
        names are taken), Ultralytics ``Results`` (``boxes.xyxy``, ``.conf``, ``.cls``, ``names``), or what
        torchmetrics takes of an image (``boxes`` as x1, y1, x2, y2, ``scores``, ``labels``: category ids of the truth).
        Without ids Ultralytics ``Results`` alone: their ``path`` names the image.

    Raises
    ------
    UsageError
        Something is none of these, has no image, no boxes, no scores or no classes.
    """
    if isinstance(given, Mapping):
        return [_row(image, detections, f"detections[{image!r:.60}]") for image, detections in given.items()]
    several = [given] if _is_object(given) else list(given)
    return [_row(None, detections, f"detections[{number}]") for number, detections in enumerate(several)]


def _is_object(value: Any) -> bool:
    return not is_view(value) and (
        hasattr(value, "xyxy") or (hasattr(value, "boxes") and hasattr(value, "names") and hasattr(value, "path"))
    )


def _is_of_image(value: Any) -> bool:
    return _is_object(value) or (isinstance(value, Mapping) and "boxes" in value and "image_id" not in value)


def _row(image: Any, detections: Any, where: str) -> dict[str, Any]:
    """Return image, boxes, scores and labels of one object; labels are names where it states names."""
    path = None
    if isinstance(detections, Mapping):
        return {**detections, "image_id": image}
    if hasattr(detections, "xyxy"):
        names = (getattr(detections, "data", None) or {}).get("class_name")
        boxes, scores, labels = detections.xyxy, detections.confidence, detections.class_id if names is None else names
    elif _is_object(detections):
        found = _needed(detections.boxes, "boxes", where)
        boxes, scores = found.xyxy, found.conf
        labels = [_name(detections.names, number, where) for number in _list(found.cls, "boxes.cls", where)]
        path = None if image is not None else str(detections.path)
    else:
        raise UsageError(
            "Unsupported type of an image's detections", where=where, expected=_FORMS, found=shown(detections)
        )
    if image is None and path is None:
        raise UsageError(
            "The detections do not say which image they belong to",
            where=where, expected=_FORMS, found=shown(detections),
            hint="dict(zip(image_ids, detections)): the ids of the truth, or the stems of its files",
        )  # fmt: skip
    if not len(_list(boxes, "boxes", where)):
        scores = labels = []
    columns = {"boxes": boxes, "scores": scores, "labels": labels}
    reference = {"image_id": image} if path is None else {"file_name": path}
    return reference | {name: _list(column, name, where) for name, column in columns.items()}


def _needed(value: Any, name: str, where: str) -> Any:
    if value is None:
        raise UsageError(
            f"The detections of an image have no {name}", where=where,
            expected="boxes, scores and classes: of supervision xyxy, confidence and class_id; of Ultralytics boxes",
            found=f"{name}: None",
        )  # fmt: skip
    return value


def _list(column: Any, name: str, where: str) -> list[Any]:
    value = _needed(column, name, where)
    listed = values_of_array(value) if hasattr(value, "tolist") else value
    if not isinstance(listed, Iterable) or isinstance(listed, str):
        raise UsageError(f"The {name} of an image are not a list", where=where, expected="an array", found=shown(value))
    return list(listed)


def _name(names: Any, number: float, where: str) -> str:
    try:
        return str(names[int(number)])
    except (LookupError, TypeError, ValueError):
        raise UsageError(
            "A detection has a class that its names lack", where=where, expected=shown(names), found=f"class {number}"
        ) from None
