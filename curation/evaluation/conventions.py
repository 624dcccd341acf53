"""Conventions of boxes in files of detections: their layouts and units, and boxes brought into pixels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from curation.evaluation.problem import Floats

Id = int | str

LAYOUTS = ("xywh", "xyxy", "cxcywh", "yxhw", "yxyx", "cycxhw")
"""Orders of the four numbers of a box: corner and size, two corners, centre and size; the last three with y first."""
UNITS = ("", "0-1", "0-1000")
_BOXES = re.compile(
    rf"(?P<layout>{'|'.join(LAYOUTS)})(?::(?:0-(?P<top>[1-9]\d{{0,17}}(?:\.\d{{1,9}})?)"
    r"|(?P<square>letterbox|corner)-(?P<side>[1-9]\d{0,4})"
    r"|x(?P<factor>\d{1,18}(?:\.\d{1,9})?)(?:/(?P<part>[1-9]\d{0,9}))?|(?P<x>[+-]\d{1,18}),(?P<y>[+-]\d{1,18})))?"
)

VALUES = {
    "image_ids": "+N or -N (added to each id), number (texts of digits), file_name, stem (of the file's name), "
    "stem_number (the number that the stem is: 1 of 0001.jpg), listed (the number in a manifest's id of the image, "
    "curation_id), index0 or index1 (position in the truth, from 0 or 1), rank0 or rank1 (position among the ascending "
    "ids)",
    "boxes": f"{', '.join(LAYOUTS)}; then :0-1, :0-1000 (or another size of the network's input), :letterbox-N or "
    ":corner-N (the network's square input, the image in its middle or its top left corner), :xN or :xN/M (times a "
    "factor), or :+DX,+DY (pixels)",
    "category_ids": "+N or -N, number, name, index0, index1, coco91 (COCO's 1 to 90 for a truth of 80 classes in its "
    "order), A:B,C:D (each id and what it becomes), matched (the class of the objects that its boxes lie on)",
    "scores": "percent, logits, inverted, number (texts of numbers)",
    "records": "drop (those without four numbers in bbox, or of classes that the truth lacks)",
    "duplicates": "drop",
}


def is_form(value: str) -> bool:
    """Return whether a text is a form of boxes, ``LAYOUT`` or ``LAYOUT:UNIT``."""
    return _BOXES.fullmatch(value) is not None


def unique(names: Sequence[str], ids: Sequence[Id]) -> dict[Any, Id]:
    """Return the id of each name that one id alone has."""
    counts = Counter(names)
    return {name: number for name, number in zip(names, ids, strict=True) if counts[name] == 1}


def boxes_in_pixels(boxes: Floats, value: str, sizes: Floats) -> Floats:
    """Return boxes of a layout and unit as ``x, y, w, h`` in pixels, shape (n, 4).

    Parameters
    ----------
    boxes : ndarray of float64, shape (n, 4)
    value : str
        ``LAYOUT`` or ``LAYOUT:UNIT``, as in `VALUES`.
    sizes : ndarray of float64, shape (n, 2)
        Width and height of each box's image; used by units of the image's size alone.
    """
    if (match := _BOXES.fullmatch(value)) is None:
        raise ValueError(value)
    layout = match["layout"]
    if LAYOUTS.index(layout) >= 3:
        boxes = boxes[:, [1, 0, 3, 2]]
    corner, size = boxes[:, :2], boxes[:, 2:]
    if layout in ("xyxy", "yxyx"):
        size = size - corner
    elif layout[0] == "c":
        corner = corner - size / 2
    in_pixels: Floats = np.concatenate([corner, size], axis=1)
    if match["top"]:
        return in_pixels * np.tile(sizes, 2) / float(match["top"])
    if match["square"]:
        longest = sizes.max(axis=1, keepdims=True)
        in_pixels *= longest / float(match["side"])
        in_pixels[:, :2] -= (longest - sizes) / 2 if match["square"] == "letterbox" else 0
        return in_pixels
    if match["factor"]:
        return in_pixels * float(match["factor"]) / float(match["part"] or 1)
    return in_pixels + np.array([int(match["x"]), int(match["y"]), 0, 0], np.float64) if match["x"] else in_pixels
