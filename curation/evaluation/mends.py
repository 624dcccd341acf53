"""Mends of a file of detections: what turns boxes, ids and scores of another convention into those of the truth.

A mend is ``KEY=VALUE``; `VALUES` says what each key takes. It changes what it names and nothing else: a record keeps
its other fields and its position in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from curation.errors import UsageError
from curation.evaluation.problem import Floats, Int64s

Id = int | str
Mapped = Callable[[Any], Id | None]
"""What an id becomes; None where the mend knows nothing of it, and it stays."""

LAYOUTS = ("xywh", "xyxy", "cxcywh", "yxhw", "yxyx", "cycxhw")
"""Orders of the four numbers of a box: corner and size, two corners, centre and size; the last three with y first."""
UNITS = ("", "0-1", "0-1000")
_UNIT = re.compile(r"0-(?P<top>\d+(?:\.\d+)?)\Z|x(?P<factor>\d+(?:\.\d+)?(?:/\d+)?)\Z|(?P<x>[+-]\d+),(?P<y>[+-]\d+)\Z")
_SHIFT = re.compile(r"[+-]\d{1,18}\Z")
_PAIRS = re.compile(r"[^:,]+:-?\d{1,18}(?:,[^:,]+:-?\d{1,18})*\Z")
_NOT_IN_COCO = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83, 91})
"""The numbers up to 91 that no class of COCO 2017 has."""

VALUES = {
    "image_ids": "+N or -N (added to each id), number (texts of digits), file_name, stem (of the file's name), "
    "index0 or index1 (position in the truth, from 0 or 1), rank0 or rank1 (position among the ascending ids)",
    "boxes": f"{', '.join(LAYOUTS)}; then :0-1, :0-1000 (or another size of the network's input), "
    ":xN or :xN/M (times a factor), or :+DX,+DY (pixels)",
    "category_ids": "+N or -N, number, name, index0, index1, coco91 (COCO's 1 to 90 for a truth of 80 classes in its "
    "order), A:B,C:D (each id and what it becomes), matched (the class of the objects that its boxes lie on)",
    "scores": "percent, logits, inverted",
    "duplicates": "drop",
}


@dataclass(frozen=True, slots=True)
class Columns:
    """Detections of any convention as columns of n rows, in file order.

    Attributes
    ----------
    images : list of int or str
        As the file names them.
    classes : list of int, str or None
    boxes : ndarray of float64, shape (n, 4)
        Four numbers of any layout and unit; NaN where a record has none.
    scores : ndarray of float64, shape (n,)
        NaN where a record has none.
    """

    images: Sequence[Id]
    classes: Sequence[Id | None]
    boxes: Floats
    scores: Floats

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, rows: Int64s) -> Columns:
        """Return some rows."""
        places = rows.tolist()
        return Columns(
            [self.images[row] for row in places],
            [self.classes[row] for row in places],
            self.boxes[rows],
            self.scores[rows],
        )


@dataclass(frozen=True)
class Objects:
    """The images, classes and objects of a truth that detections are held against.

    Attributes
    ----------
    images : list of int or str
        Ids, in file order.
    files : list of str
        File names, ``""`` where unstated.
    sizes : ndarray of float64, shape (n, 2)
        Width and height in pixels, NaN where unstated.
    categories, names
        Ids and names of the classes, in file order.
    image, category : ndarray of int64, shape (m,)
        Positions in `images` and `categories`; `image` ascends.
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels, origin top left.
    """

    images: Sequence[Id]
    files: Sequence[str]
    sizes: Floats
    categories: Sequence[Id]
    names: Sequence[str]
    image: Int64s
    category: Int64s
    boxes: Floats

    @cached_property
    def place(self) -> dict[Id, int]:
        """The position of each image id."""
        return _first(self.images)

    @cached_property
    def category_place(self) -> dict[Id, int]:
        """The position of each category id."""
        return _first(self.categories)

    @cached_property
    def count(self) -> Int64s:
        """Objects of each image, shape (n,)."""
        return np.bincount(self.image, minlength=len(self.images)).astype(np.int64)


def _first(keys: Sequence[Any]) -> dict[Any, int]:
    return {key: place for place, key in reversed([*enumerate(keys)])}


def parse(mends: Sequence[str]) -> dict[str, str]:
    """Return mends by key, in the order in which they are applied.

    Raises
    ------
    UsageError
        A text is no ``KEY=VALUE`` of `VALUES`, or a key is given twice.
    """
    found: dict[str, str] = {}
    for text in mends:
        key, _, value = text.partition("=")
        if key not in VALUES or not value or key in found or not _is_value(key, value):
            raise UsageError(
                "A mend is given twice" if key in found else "There is no such mend",
                where=f"--mend {text}"[:200],
                expected=f"{key}={VALUES[key]}" if key in VALUES else f"KEY=VALUE with KEY of {', '.join(VALUES)}",
            )
        found[key] = value
    return {key: found[key] for key in VALUES if key in found}


def _is_value(key: str, value: str) -> bool:
    if key == "boxes":
        return is_form(value)
    if key in ("image_ids", "category_ids"):
        words = VALUES[key].replace("(", " ").replace(",", " ").split()
        named = value in {
            "number",
            "index0",
            "index1",
            "file_name",
            "stem",
            "rank0",
            "rank1",
            "name",
            "coco91",
            "matched",
        }
        return (named and value in words) or bool(_SHIFT.match(value)) or (key[0] == "c" and bool(_PAIRS.match(value)))
    return value in VALUES[key].split(", ")


def is_form(value: str) -> bool:
    """Return whether a text is a form of boxes, ``LAYOUT`` or ``LAYOUT:UNIT``."""
    layout, _, unit = value.partition(":")
    return layout in LAYOUTS and (not unit or bool(_UNIT.match(unit)))


def image_map(value: str, truth: Objects) -> Mapped:
    """Return what an image id becomes under a mend."""
    if value in ("file_name", "stem"):
        names = list(truth.files) if value == "file_name" else [PurePosixPath(one).stem for one in truth.files]
        return _unique(names, truth.images).get
    return _number_map(value, truth.images, {"rank": sorted(truth.images, key=lambda one: (isinstance(one, str), one))})


def category_map(value: str, truth: Objects) -> Mapped:
    """Return what a category id, or name, becomes under a mend other than ``matched``."""
    if value == "name":
        return _unique(list(truth.names), truth.categories).get
    if value == "coco91":
        numbers = [number for number in range(1, 91) if number not in _NOT_IN_COCO]
        return dict(zip(numbers, truth.categories, strict=False)).get
    if ":" in value:
        pairs = (one.split(":") for one in value.split(","))
        return {_number(old) if _number(old) is not None else old: int(new) for old, new in pairs}.get
    return _number_map(value, truth.categories, {})


def _unique(names: Sequence[str], ids: Sequence[Id]) -> dict[Any, Id]:
    found = dict(zip(names, ids, strict=True))
    if len(found) == len(names):
        return found
    twice = {name for name in found if names.count(name) > 1} if len(names) < 10_000 else _repeated(names)
    return {name: one for name, one in found.items() if name not in twice}


def _repeated(names: Sequence[str]) -> set[str]:
    seen: set[str] = set()
    return {name for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]


def _number_map(value: str, ids: Sequence[Id], orders: Mapping[str, Sequence[Id]]) -> Mapped:
    if value == "number":
        return _number
    if value[0] in "+-":
        shift = int(value)
        return lambda one: None if (number := _number(one)) is None else number + shift
    order, first = orders.get(value[:-1], ids), int(value[-1])

    def at(one: Any) -> Id | None:
        number = _number(one)
        return order[number - first] if number is not None and 0 <= number - first < len(order) else None

    return at


def _number(one: Any) -> int | None:
    if isinstance(one, int):
        return one
    return int(one) if isinstance(one, str) and re.fullmatch(r"-?\d{1,18}", one) else None


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
    layout, _, unit = value.partition(":")
    first, second, third, fourth = boxes.T
    if layout in ("yxhw", "yxyx", "cycxhw"):
        first, second, third, fourth = second, first, fourth, third
    if layout in ("xyxy", "yxyx"):
        third, fourth = third - first, fourth - second
    elif layout in ("cxcywh", "cycxhw"):
        first, second = first - third / 2, second - fourth / 2
    found = np.stack([first, second, third, fourth], axis=1)
    said = _UNIT.match(unit) if unit else None
    if said is None:
        return found
    if said["top"]:
        return found * np.tile(sizes, 2) / float(said["top"])
    if said["factor"]:
        above, _, below = said["factor"].partition("/")
        return found * float(above) / float(below or 1)
    return found + np.array([int(said["x"]), int(said["y"]), 0, 0], np.float64)


def apply_mends(columns: Columns, mends: Mapping[str, str], truth: Objects) -> tuple[Columns, Int64s]:
    """Return detections after mends, and which rows of the file are left, ascending.

    Boxes on images that the truth lacks keep a unit of the image's size; ids that a mend knows nothing of stay.
    """
    rows = np.arange(len(columns))
    for key, value in mends.items():
        if key == "image_ids":
            columns = replace(columns, images=_mapped(columns.images, image_map(value, truth)))
        elif key == "boxes":
            columns = replace(columns, boxes=boxes_in_pixels(columns.boxes, value, sizes_of(columns, truth)))
        elif key == "category_ids":
            known = matched_classes(columns, truth).get if value == "matched" else category_map(value, truth)
            columns = replace(columns, classes=_mapped(columns.classes, known))
        elif key == "scores":
            columns = replace(columns, scores=_scores(columns.scores, value))
        else:
            rows = first_of_each(columns)
            columns = columns.take(rows)
    return columns, rows


def mend_records(
    records: Sequence[dict[str, Any]], before: Columns, after: Columns, rows: Int64s
) -> list[dict[str, Any]]:
    """Return records of a results file with the values that mends changed."""
    found = []
    for place, row in enumerate(rows.tolist()):
        record = dict(records[row])
        if after.images[place] != before.images[row]:
            record["image_id"] = after.images[place]
        if after.classes[place] != before.classes[row]:
            record.pop("category", None)
            record["category_id"] = after.classes[place]
        if not np.array_equal(after.boxes[place], before.boxes[row], equal_nan=True):
            record["bbox"] = after.boxes[place].tolist()
        if after.scores[place] != before.scores[row] and np.isfinite(after.scores[place]):
            record["score"] = float(after.scores[place])
        found.append(record)
    return found


def _mapped(ids: Sequence[Any], known: Mapped) -> list[Any]:
    table = {one: known(one) for one in dict.fromkeys(ids)}
    return [one if table[one] is None else table[one] for one in ids]


def sizes_of(columns: Columns, truth: Objects) -> Floats:
    """Return width and height of the image of each detection, shape (n, 2); of an image that is not there 1, 1."""
    places = np.array([truth.place.get(one, -1) for one in columns.images], np.int64)
    sizes = np.ones((len(columns), 2))
    known = places >= 0
    sizes[known] = truth.sizes[places[known]]
    return sizes


def _scores(scores: Floats, value: str) -> Floats:
    if value == "percent":
        return scores / 100
    if value == "logits":
        return 1 / (1 + np.exp(-scores))
    return 1 - scores if not (np.nan_to_num(scores) > 1).any() else 1 / (1 + np.maximum(scores, 0))


def first_of_each(columns: Columns) -> Int64s:
    """Return the rows that repeat no earlier one in image, class, box and score, ascending."""
    boxes, scores = columns.boxes.tolist(), columns.scores.tolist()
    keys: dict[Hashable, int] = {}
    for row, (image, number, box, score) in enumerate(zip(columns.images, columns.classes, boxes, scores, strict=True)):
        keys.setdefault((image, number, *map(str, box), str(score)), row)
    return np.array([*keys.values()], np.int64)


def best_overlaps(boxes: Floats, places: Int64s, truth: Objects) -> tuple[Floats, Int64s]:
    """Return, for each box, its highest IoU with an object of its image, and the object; 0 and -1 where none overlaps.

    Parameters
    ----------
    boxes : ndarray of float64, shape (n, 4)
        ``x, y, w, h`` in pixels.
    places : ndarray of int64, shape (n,)
        Position of the image of each box; -1 where the truth lacks it.
    """
    best, partner = np.zeros(len(boxes)), np.full(len(boxes), -1, np.int64)
    counts = np.where(places >= 0, truth.count[places], 0)
    rows = np.repeat(np.arange(len(boxes)), counts)
    if not len(rows):
        return best, partner
    begins = np.concatenate([[0], np.cumsum(truth.count)[:-1]])
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    objects = begins[places[rows]] + within
    with np.errstate(invalid="ignore", over="ignore"):
        low = np.maximum(boxes[rows, :2], truth.boxes[objects, :2])
        high = np.minimum(boxes[rows, :2] + boxes[rows, 2:], truth.boxes[objects, :2] + truth.boxes[objects, 2:])
        shared = np.prod(np.maximum(high - low, 0), axis=1)
        sides = np.maximum(boxes[rows, 2:], 0)
        union = sides.prod(axis=1) + truth.boxes[objects, 2:].prod(axis=1) - shared
        iou = np.nan_to_num(np.where(union > 0, shared / np.where(union > 0, union, 1), 0))
    order = np.lexsort((-objects, iou, rows))
    last = np.flatnonzero(np.diff(rows[order], append=-1))
    top = order[last]
    touching = top[iou[top] > 0]
    best[rows[touching]], partner[rows[touching]] = iou[touching], objects[touching]
    return best, partner


def matched_classes(columns: Columns, truth: Objects) -> dict[Id | None, Id]:
    """Return the classes that category ids stand for, by the objects that their boxes lie on (IoU of at least 0.5).

    The class is that of most of these objects, at least three and six of ten; ids of which that is not so are left
    out, and so are ids of which two would become one class.
    """
    places = np.array([truth.place.get(one, -1) for one in columns.images], np.int64)
    best, partner = best_overlaps(columns.boxes, places, truth)
    votes: dict[Id | None, dict[int, int]] = {}
    for row, place in zip(
        np.flatnonzero(best >= 0.5).tolist(), truth.category[partner[best >= 0.5]].tolist(), strict=True
    ):
        tally = votes.setdefault(columns.classes[row], {})
        tally[place] = tally.get(place, 0) + 1
    found: dict[Id | None, Id] = {}
    for number, tally in votes.items():
        place, most = max(tally.items(), key=lambda item: (item[1], -item[0]))
        if most >= 3 and most >= 0.6 * sum(tally.values()):
            found[number] = truth.categories[place]
    wanted = [*found.values()]
    return {number: one for number, one in found.items() if wanted.count(one) == 1}
