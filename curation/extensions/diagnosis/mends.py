"""Mends of a file of detections: conversion of boxes, ids and scores to the conventions of the truth.

A mend is ``KEY=VALUE``; `VALUES` lists the values of each key. It changes only the named field: a record keeps its
other fields and its position in the file.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from curation.core.errors import PredictionError, UsageError
from curation.core.wording import examples, plain_name
from curation.evaluation.matching import best_overlap
from curation.evaluation.problem import (
    MAX_COORDINATE,
    UNKNOWN,
    UNKNOWN_NUMBER,
    Bools,
    Detections,
    Floats,
    GroundTruth,
    Int64s,
)
from curation.sources.identity import NUMBERINGS, ImageIndex, end_of, normalised_path, without_suffix

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
    "image_ids": "+N or -N (added to each id), number (strings of digits), file_name, stem (of the file's name), "
    "stem_number (the number that the stem is: 1 of 0001.jpg), listed (the number in a manifest's id of the image, "
    "curation_id), index0 or index1 (position in the truth, from 0 or 1), rank0 or rank1 (position among the ascending "
    "ids)",
    "boxes": f"{', '.join(LAYOUTS)}; then :0-1, :0-1000 (or another size of the network's input), :letterbox-N or "
    ":corner-N (the network's square input, the image in its middle or its top left corner), :xN or :xN/M (times a "
    "factor), or :+DX,+DY (pixels)",
    "category_ids": "+N or -N, number, name, index0, index1, coco91 (COCO's 1 to 90 for a truth of 80 classes in its "
    "order), A:B,C:D (each id and what it becomes), matched (the class of the objects that its boxes lie on)",
    "scores": "percent, logits, inverted, number (strings of numbers)",
    "records": "drop (those without four numbers in bbox, or of classes that the truth lacks)",
    "duplicates": "drop",
}
Mapped = Callable[[Any], Id | None]
"""Maps an id to its new value; None for an id that the mend does not cover, which stays unchanged."""
Votes = dict[Id | None, Counter[int]]
"""For each category id, the number of boxes on objects of each class, by position in `Objects.categories`."""
_SHIFT = r"[+-]\d{1,20}"
_FORMS = {
    "image_ids": rf"{_SHIFT}|number|file_name|stem|(?:index|rank)[01]|{'|'.join(NUMBERINGS)}",
    "boxes": _BOXES.pattern,
    "category_ids": rf"{_SHIFT}|number|name|index[01]|coco91|matched|[^:,]+:-?\d{{1,19}}(?:,[^:,]+:-?\d{{1,19}})*",
    "scores": "percent|logits|inverted|number",
    "records": "drop",
    "duplicates": "drop",
}
MOST_ROWS = 20_000
"""Maximum number of detections that a test examines; with more, it examines every k-th image."""
_MANY = 10
_OF_IMAGE = 10
"""Number of detections with the highest, and with the lowest, scores that are examined in an image with many."""
_NOT_IN_COCO = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83, 91})
"""The numbers up to 91 that no class of COCO 2017 has."""


def is_form(value: str) -> bool:
    """Return whether a text is a form of boxes, ``LAYOUT`` or ``LAYOUT:UNIT``."""
    return _BOXES.fullmatch(value) is not None


def unique(names: Sequence[str], ids: Sequence[Id]) -> dict[Any, Id]:
    """Return the id of each name that only one id has."""
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


@dataclass(frozen=True, slots=True)
class Columns:
    """Detections of any convention as columns of n rows, in file order.

    Attributes
    ----------
    images : list of int or str, or ndarray of int64
        Names in the file, or ids of the truth for images that a reader finds.
    classes : list of int, str or None, or ndarray of int64
    boxes : ndarray of float64, shape (n, 4)
        Four numbers of any layout and unit; NaN for a record without a box.
    scores : ndarray of float64, shape (n,)
        NaN for a record without a score.
    references : list of int or str, ndarray of int64, or None
        Names of the images in the file, if `images` may differ from them.
    """

    images: Sequence[Id] | Int64s
    classes: Sequence[Id | None] | Int64s
    boxes: Floats
    scores: Floats
    references: Sequence[Id] | Int64s | None = None

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def names(self) -> Any:
        """Names of the images in the file."""
        return self.images if self.references is None else self.references

    def take(self, rows: Int64s) -> Columns:
        """Return the selected rows; their ids and classes are lists."""

        def some(column: Any) -> Any:
            if isinstance(column, np.ndarray):
                return column[rows].tolist()
            return None if column is None else [column[row] for row in rows.tolist()]

        columns = self.boxes[rows], self.scores[rows], some(self.references)
        return Columns(some(self.images), some(self.classes), *columns)


@dataclass(frozen=True)
class Objects:
    """The images, classes and objects of the truth that detections are compared with.

    Attributes
    ----------
    images : list of int or str
        Ids, in file order.
    files : list of str
        File names, ``""`` if not stated.
    sizes : ndarray of float64, shape (n, 2)
        Width and height in pixels, NaN if not stated.
    categories, names
        Ids and names of the classes, in file order.
    image, category : ndarray of int64, shape (m,)
        Positions in `images` and `categories`; `image` ascends.
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels, origin top left.
    listed : sequence of str
        Ids by which a manifest lists the images; empty, or one for each image.
    namespaced : sequence of str
        ``namespace:native`` of the images; empty, or one for each image.
    """

    images: Sequence[Id]
    files: Sequence[str]
    sizes: Floats
    categories: Sequence[Id]
    names: Sequence[str]
    image: Int64s
    category: Int64s
    boxes: Floats
    listed: Sequence[str] = ()
    namespaced: Sequence[str] = ()

    @cached_property
    def index(self) -> ImageIndex:
        """The images, indexed by the references that detections may use."""
        are_numbers = all(isinstance(image, int) for image in self.images)
        ids: Any = np.array(self.images, np.int64) if are_numbers else [str(image) for image in self.images]
        return ImageIndex(ids, self.files, self.listed, self.namespaced)

    @cached_property
    def image_position(self) -> dict[Id, int]:
        """The position of each image id."""
        return {image: position for position, image in reversed([*enumerate(self.images)])}

    @cached_property
    def category_position(self) -> dict[Id | None, int]:
        """The position of each category id, and of -1, which is ``unknown`` in every truth that has such a class."""
        pairs = reversed([*enumerate(self.categories)])
        positions: dict[Id | None, int] = {category: position for position, category in pairs}
        if UNKNOWN in self.names:
            positions.setdefault(UNKNOWN_NUMBER, list(self.names).index(UNKNOWN))
        return positions

    @cached_property
    def count(self) -> Int64s:
        """Objects of each image, shape (n,)."""
        return np.bincount(self.image, minlength=len(self.images)).astype(np.int64)

    @cached_property
    def truth(self) -> GroundTruth:
        """The same as a `GroundTruth` for matching: images are numbered by position, without difficult or crowd."""
        none = np.zeros(len(self.image), bool)
        return GroundTruth(
            image_numbers=np.arange(len(self.images)),
            classes=tuple(self.names),
            class_numbers=tuple(number if isinstance(number, int) else None for number in self.categories),
            image=self.image.astype(np.int32),
            label=self.category.astype(np.int32),
            boxes=self.boxes,
            crowd=none,
            difficult=none,
            areas=np.zeros(len(self.image)),
            index=self.index,
            sizes=np.nan_to_num(self.sizes).clip(0, 2**31 - 1).astype(np.int32),
        )

    def positions(self, images: Sequence[Id] | Int64s) -> Int64s:
        """Return the position of each image; -1 if the truth lacks it."""
        if isinstance(images, np.ndarray):
            values, rows = np.unique(images, return_inverse=True)
            return self.positions(values.tolist())[rows]
        return np.array([self.image_position.get(image, -1) for image in images], np.int64)


def parse(mends: Sequence[str]) -> dict[str, str]:
    """Return mends by key, in the order in which they are applied.

    Raises
    ------
    UsageError
        A text is not a ``KEY=VALUE`` of `VALUES`, or a key is repeated.
    """
    chosen: dict[str, str] = {}
    for text in mends:
        key, _, value = text.partition("=")
        if key not in VALUES or key in chosen or not re.fullmatch(_FORMS[key], value):
            raise UsageError(
                "A mend is given twice" if key in chosen else "No such mend",
                where=f"--mend {text}"[:200],
                expected=f"{key}={VALUES[key]}" if key in VALUES else f"KEY=VALUE with KEY of {', '.join(VALUES)}",
            )
        chosen[key] = value
    return {key: chosen[key] for key in VALUES if key in chosen}


def image_map(value: str, truth: Objects) -> Mapped:
    """Return the mapping of image ids under a mend."""
    if value in ("file_name", "stem"):
        ids_by_name = unique([_name_of(file, value) for file in truth.files], truth.images)
        return lambda image_id: ids_by_name.get(_name_of(image_id, value)) if isinstance(image_id, str) else None
    if value in NUMBERINGS:
        numbered = truth.index.numbered(value)
        return lambda image_id: None if (row := numbered.get(number_of(image_id))) is None else truth.images[row]
    is_ranked = value.startswith("rank")
    ids = sorted(truth.images, key=lambda image: (isinstance(image, str), image)) if is_ranked else truth.images
    return _number_map(value, ids)


def _name_of(path: str, value: str) -> str:
    name = end_of(normalised_path(path.strip()), 0)
    return without_suffix(name) if value == "stem" else name


def category_map(value: str, truth: Objects) -> Mapped:
    """Return the mapping of category ids, or names, under a mend other than ``matched``."""
    if value == "name":
        ids = unique([*map(plain_name, truth.names)], truth.categories) | unique(truth.names, truth.categories)
        return lambda name: ids.get(name, ids.get(plain_name(name))) if isinstance(name, str) else None
    if value == "coco91":
        numbers = [number for number in range(1, 91) if number not in _NOT_IN_COCO]
        return dict(zip(numbers, truth.categories, strict=False)).get
    if ":" in value:
        pairs = (pair.split(":") for pair in value.split(","))
        return {old if (number := number_of(old)) is None else number: int(new) for old, new in pairs}.get
    return _number_map(value, truth.categories)


def _number_map(value: str, ids: Sequence[Id]) -> Mapped:
    def known(old_id: Any) -> Id | None:
        number = number_of(old_id)
        if number is None or value == "number":
            return number
        if value[0] in "+-":
            return number + int(value)
        position = number - int(value[-1])
        return ids[position] if 0 <= position < len(ids) else None

    return known


def number_of(value: Any) -> int | None:
    """Return an id as an integer; None for a text that is not an integer."""
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value) else None


def apply_mends(columns: Columns, mends: Mapping[str, str], truth: Objects) -> tuple[Columns, Int64s]:
    """Return detections after mends, and the remaining rows of the file, ascending.

    Boxes on images that the truth lacks keep a unit of the image's size; ids that a mend does not cover stay.
    """
    rows = np.arange(len(columns))
    for key, value in mends.items():
        if key == "image_ids":
            images = _mapped(columns.names, image_map(value, truth), columns.images)
            columns = replace(columns, images=images)
        elif key == "boxes":
            # Missing images get the size 1, 1.
            sizes = np.concatenate([truth.sizes, [[1, 1]]])[truth.positions(columns.images)]
            columns = replace(columns, boxes=boxes_in_pixels(columns.boxes, value, sizes))
        elif key == "category_ids":
            known = _matched(columns, truth) if value == "matched" else category_map(value, truth)
            columns = replace(columns, classes=_mapped(columns.classes, known, columns.classes))
        elif key == "scores":
            columns = replace(columns, scores=_scores(columns.scores, value))
        else:
            retained = first_of_each(columns) if key == "duplicates" else np.flatnonzero(usable(columns, truth))
            columns, rows = columns.take(retained), rows[retained]
    return columns, rows


def usable(columns: Columns, truth: Objects) -> Bools:
    """Return whether each detection has a box of four finite numbers, and a class of the truth or ``unknown``."""
    known = {*truth.category_position, UNKNOWN, UNKNOWN_NUMBER}
    return np.isfinite(columns.boxes).all(axis=1) & has_class(columns, known)


def has_class(columns: Columns, known: Collection[Id | None]) -> Bools:
    """Return whether the class of each detection is in `known`."""
    if isinstance(columns.classes, np.ndarray):
        return np.isin(columns.classes, np.array([number for number in known if isinstance(number, int)], np.int64))
    return np.fromiter((category in known for category in columns.classes), np.bool_, len(columns))


def _matched(columns: Columns, truth: Objects) -> Mapped:
    some = columns.take(sample(columns))
    rename = renaming(some, truth, class_votes(some, truth))
    if rename.blocking:
        raise PredictionError(
            "The boxes do not decide the class of every category id",
            where="--mend category_ids=matched",
            expected="category_ids=A:B,C:D with each id that changes and what it becomes",
            found=f"undecided: {short_list(rename.undecided)}; keep a number that another id would get: "
            f"{short_list(rename.blocking)}",
        )
    return rename.moved.get


def short_list(ids: Iterable[Any]) -> str:
    """Return the first few ids as text."""
    ordered = sorted(ids, key=lambda category: (isinstance(category, str), category))
    return examples([f"{category!s:.40}" for category in ordered], shown=6)


def mend_records(
    records: Sequence[dict[str, Any]], before: Columns, after: Columns, rows: Int64s, mends: Collection[str]
) -> list[dict[str, Any]]:
    """Return the records of a results file with the values that mends changed, and with numbers instead of texts."""
    mended = []
    for index, row in enumerate(rows.tolist()):
        record = dict(records[row])
        if "image_ids" in mends:
            record["image_id"] = _plain(after.images[index])
            # A file name would take precedence over the id.
            record.pop("file_name", None)
        if (label := _plain(after.classes[index])) != before.classes[row]:
            record = {key: value for key, value in record.items() if key not in ("category", "category_id")}
            record["category" if isinstance(label, str) else "category_id"] = label
        if "boxes" in mends and np.isfinite(after.boxes[index]).all():
            record["bbox"] = after.boxes[index].tolist()
        if "scores" in mends and np.isfinite(after.scores[index]):
            record["score"] = float(after.scores[index])
        mended.append(record)
    return mended


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else value


def _mapped(ids: Any, known: Mapped, others: Any) -> list[Any]:
    """Return the new ids; an id that the mend does not cover is replaced by its entry in `others`."""
    ids, others = (column.tolist() if isinstance(column, np.ndarray) else column for column in (ids, others))
    table = {old: known(old) for old in dict.fromkeys(ids)}
    return [other if table[old] is None else table[old] for old, other in zip(ids, others, strict=True)]


def _scores(scores: Floats, value: str) -> Floats:
    if value == "number":
        return scores
    if value == "percent":
        return scores / 100
    if value == "logits":
        return 1 / (1 + np.exp(-scores))
    return 1 - scores if not (np.nan_to_num(scores) > 1).any() else 1 / (1 + np.maximum(scores, 0))


def first_of_each(columns: Columns) -> Int64s:
    """Return the rows that do not repeat an earlier one in image, class, box and score, ascending."""
    import pandas as pd

    fields: dict[str, Any] = {"image": columns.images, "label": columns.classes, "score": columns.scores}
    return np.flatnonzero(~pd.DataFrame(fields | dict(zip("xywh", columns.boxes.T, strict=True))).duplicated())


def best_overlaps(boxes: Floats, positions: Int64s, truth: Objects) -> tuple[Floats, Int64s]:
    """Return, for each box, its highest IoU with an object of its image, and the object; 0 and -1 without overlap.

    Parameters
    ----------
    boxes : ndarray of float64, shape (n, 4)
        ``x, y, w, h`` in pixels; invalid boxes overlap nothing.
    positions : ndarray of int64, shape (n,)
        Position of the image of each box; -1 if the truth lacks it.
    """
    best, partner = np.zeros(len(boxes)), np.full(len(boxes), -1, np.int64)
    rows = np.flatnonzero(
        (positions >= 0) & (np.abs(boxes) <= MAX_COORDINATE).all(axis=1) & (boxes[:, 2:] > 0).all(axis=1)
    )
    label = np.zeros(len(rows), np.int32)
    detections = Detections(positions[rows].astype(np.int32), label, boxes[rows], np.zeros(len(rows)))
    with np.errstate(over="ignore", invalid="ignore"):  # The truth is unchecked.
        position, iou = best_overlap(truth.truth, detections, same_class=False)
    best[rows], partner[rows] = iou, np.where(iou > 0, position, -1)
    return best, partner


class Renaming(NamedTuple):
    """The classes that category ids mean, by the objects that their boxes lie on.

    Attributes
    ----------
    classes : dict
        The class of each id that the boxes decide: most of its boxes on objects, at least three and six of ten, lie on
        this class, and those of no other id do.
    moved : dict
        Ids that stand for another class than the one they name; empty for a sound file, however poor its detector.
    undecided : dict of id to int
        Number of detections of each id whose class the boxes do not decide.
    blocking : tuple
        Ids that keep their number while another id is to get it: under `moved` two classes would become one.
    """

    classes: dict[Id | None, Id]
    moved: dict[Id | None, Id]
    undecided: dict[Id | None, int]
    blocking: tuple[Id | None, ...]


def class_votes(columns: Columns, truth: Objects) -> Votes:
    """Return, for each category id, how many of its boxes lie on objects of each class (IoU of at least 0.5).

    Ids that mean ``unknown`` in a truth without such a class are left out: they may lie on objects of any class.
    """
    best, partner = best_overlaps(columns.boxes, truth.positions(columns.images), truth)
    unknown = {UNKNOWN, UNKNOWN_NUMBER} - truth.category_position.keys()
    votes: Votes = {category: Counter() for category in dict.fromkeys(columns.classes) if category not in unknown}
    for row in np.flatnonzero(best >= 0.5).tolist():
        if columns.classes[row] in votes:
            votes[columns.classes[row]][int(truth.category[partner[row]])] += 1
    return votes


def renaming(columns: Columns, truth: Objects, votes: Votes) -> Renaming:
    """Return the classes that category ids mean; `votes` come from `class_votes`.

    If boxes of a class lie on objects of a second class whose boxes fit too, the detector is poor, not the file.
    """
    likely = {old: number for old, tally in votes.items() if (number := _majority(tally, fewest=3)) is not None}
    claims = Counter(likely.values())
    classes = {old: truth.categories[number] for old, number in likely.items() if claims[number] == 1}
    moved = {
        old: new
        for old, new in classes.items()
        if old != new
        and votes[old][truth.category_position.get(old, -1)] <= 0.2 * votes[old][truth.category_position[new]]
        and classes.get(new) != new
    }
    if len(moved) == 1 and not moved.keys() - truth.category_position.keys():
        # A single id may be a class that the detector never gets right.
        moved = {
            old: new
            for old, new in moved.items()
            if votes[old].total() >= _MANY and votes[old].most_common(1)[0][1] >= 0.8 * votes[old].total()
        }
    moved = _left_over(moved, classes, truth, votes)
    rows = Counter(columns.classes)
    undecided = {old: rows[old] for old in votes if old not in moved and old not in classes}
    targets = {*moved.values()}
    return Renaming(classes, moved, undecided, tuple(old for old in votes if old not in moved and old in targets))


def _left_over(
    moved: Mapping[Id | None, Id], classes: Mapping[Id | None, Id], truth: Objects, votes: Votes
) -> dict[Id | None, Id]:
    """Return `moved` with rare ids whose number another id gets: by two boxes, or because only one class remains."""
    assigned = dict(moved)
    while True:
        targets = {*assigned.values()}
        left = [old for old in votes if old not in assigned and old in targets]
        likely = {old: number for old in left if (number := _majority(votes[old], fewest=2)) is not None}
        claims = Counter(likely.values())
        new: dict[Id | None, Id] = {
            old: category
            for old, number in likely.items()
            if claims[number] == 1 and (category := truth.categories[number]) not in targets
            if classes.get(category) != category
        }
        if not new:
            break
        assigned |= new
    # The last id means the last free class, unless its boxes lie on others.
    rest = [old for old in votes if old not in assigned and old not in classes]
    free = {*truth.categories} - {*assigned.values()} - {*classes.values()}
    if rest == left and len(left) == len(free) == 1:
        (category,) = free
        if votes[left[0]].keys() <= {truth.category_position[category]}:
            assigned[left[0]] = category
    return assigned


def _majority(tally: Counter[int], *, fewest: int) -> int | None:
    """Return the class with at least `fewest` votes and 60 % of all votes; None if no class has them."""
    if not tally:
        return None
    number, most = min(tally.items(), key=lambda item: (-item[1], item[0]))
    return number if most >= max(fewest, 0.6 * tally.total()) else None


def coded(values: Any) -> Int64s:
    """Return the number of each distinct value, counted from 0 in the order of first appearance, shape (n,)."""
    if isinstance(values, np.ndarray):
        _, first, rows = np.unique(values, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[rows]
    codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
    return np.fromiter(map(codes.__getitem__, values), np.int64, len(values))


def sample(columns: Columns) -> Int64s:
    """Return a sample of rows, ascending: the best and worst scores of each image, and every k-th of many images."""
    image = coded(columns.images)
    counts = np.bincount(image)
    step = max(1, math.ceil(int(np.minimum(counts, 2 * _OF_IMAGE).sum()) / MOST_ROWS))
    rows = np.flatnonzero(image % step == 0)
    order = rows[np.lexsort((columns.scores[rows], image[rows]))]
    of_image = counts[image[order]]
    rank = np.arange(len(order)) - np.searchsorted(image[order], image[order])
    return np.sort(order[np.minimum(rank, of_image - 1 - rank) < _OF_IMAGE])
