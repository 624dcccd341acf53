"""A COCO results file as columns, and its category ids where they count otherwise than the truth's."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import msgspec
import numpy as np

from curation.core.errors import PredictionError
from curation.core.json_text import SMALL, json_rows, record_pieces
from curation.core.reading import InputFile
from curation.evaluation.matching import best_overlap
from curation.evaluation.problem import MAX_COORDINATE, Bools, Detections, Floats, GroundTruth, Int32s, Int64s
from curation.sources.datasets import COCO_CATEGORIES

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer in a file of records."""

FORM = (
    'a JSON list (or one a line) of {"image_id": integer or text (or "file_name"), "category_id": integer or '
    '"category": name, "bbox": [x, y, w, h], "score": number}; JSON knows no NaN or Infinity'
)
"""What a file of COCO results holds."""
_NAMES_IMAGE = "image_id, file_name, or both"
_OPENING = re.compile(rb'[ \t\r\n]*\[\s*(?=\{\s*("[a-z_]{1,40}"))')
_CLOSING = re.compile(rb"\][ \t\r\n]*\Z")
_TAIL = 1 << 16
_COCO_IDS = [number for number, *_ in COCO_CATEGORIES]
_COCO_NAMES = [name for _, name, _ in COCO_CATEGORIES]
STRANGE, DISAGREEING = -2, -3
"""Labels of a class that no table has, and of a name and an id that differ."""


class Row(msgspec.Struct, gc=False):
    """One record of a COCO results file; fields that are not declared are passed over."""

    bbox: tuple[float, float, float, float]
    image_id: Int64 | str | None = None
    file_name: str | None = None
    score: float | None = None
    category_id: Int64 | None = None
    category: str | None = None
    background_score: float | None = None


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a COCO results file as columns of n rows, in file order.

    Attributes
    ----------
    image_ids : ndarray of int64, list of int, str or None, or None
        None where no record states an ``image_id``.
    category_ids : ndarray of int64, or list of int or None
    categories : list of str or None
        Empty where no record names its class.
    boxes : ndarray of float64, shape (n, 4)
    scores : ndarray of float64, shape (n,)
        NaN where a record has none.
    background : ndarray of float64, shape (n,), or None
    file_names : list of str or None, or None
        None where no record states a ``file_name``.
    """

    image_ids: Int64s | list[int | str | None] | None
    category_ids: Int64s | list[int | None]
    categories: list[str | None]
    boxes: Floats
    scores: Floats
    background: Floats | None = None
    file_names: list[str | None] | None = None

    @classmethod
    def of(cls, pieces: Iterable[Sequence[Row]]) -> Records:
        """Return the columns of records, which come in pieces: those of one piece are in memory at once."""
        ids, numbers, names, categories, background, boxes, scores = map(
            _joined, zip(*map(_columns, pieces), strict=True)
        )
        is_named = any(name is not None for name in categories)
        return cls(
            ids,
            numbers.tolist() if is_named and isinstance(numbers, np.ndarray) else numbers,
            categories if is_named else [],
            boxes,
            scores,
            np.array(background, np.float64) if any(score is not None for score in background) else None,
            names if any(names) else None,
        )

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def references(self) -> Any:
        """What names the image of each row: its file name, where it has one, else its image id."""
        ids: Any = self.image_ids.tolist() if isinstance(self.image_ids, np.ndarray) else self.image_ids
        if ids is None or self.file_names is None:
            return self.file_names if ids is None else ids
        return [name or image for name, image in zip(self.file_names, ids, strict=True)]

    def named(self, row: int) -> str:
        """Return the class that a record states: a name, an id, or both."""
        name, number = self.categories[row] if self.categories else None, self.category_ids[row]
        texts = [] if name is None else [f"category {name!r:.80}"]
        texts += [] if number is None else [f"category_id {number}"]
        return ", ".join(texts) or "neither category nor category_id"

    def by_name(self) -> Records:
        """Return records without the category ids of those that state a name."""
        if not self.categories:
            return self
        pairs = zip(self.categories, self.category_ids, strict=True)
        return replace(self, category_ids=[number if name is None else None for name, number in pairs])

    @property
    def used_ids(self) -> set[int]:
        """All category ids of the file."""
        ids = self.category_ids
        return set(np.unique(ids).tolist() if isinstance(ids, np.ndarray) else (n for n in ids if n is not None))

    def labels(self, table: Mapping[int | str | None, int]) -> Int32s:
        """Return the label that each row's category, category id, or both name, shape (n,), by a table of both.

        What the table lacks is `STRANGE`; a category and an id of different classes are `DISAGREEING`.
        """
        ids = self.category_ids
        if isinstance(ids, np.ndarray):
            numbers = np.array(sorted(key for key in table if isinstance(key, int)), np.int64)
            position, is_listed = find(ids, numbers)
            labels = np.array([table[number] for number in numbers.tolist()] or [STRANGE], np.int32)
            return np.where(is_listed, labels[position], STRANGE).astype(np.int32)

        def label_of(name: str | None, number: int | None) -> int:
            if name is None or number is None:
                return table.get(number if name is None else name, STRANGE)
            label = table.get(name, STRANGE)
            return label if label == table.get(number, STRANGE) else DISAGREEING

        names = self.categories or [None] * len(self)
        return np.fromiter(map(label_of, names, ids), np.int32, len(self))


def _columns(rows: Sequence[Row]) -> tuple[Any, ...]:
    boxes = np.fromiter(chain.from_iterable([row.bbox for row in rows]), np.float64, 4 * len(rows))
    return (
        _integers([row.image_id for row in rows]),
        _integers([row.category_id for row in rows]),
        [row.file_name for row in rows],
        [row.category for row in rows],
        [row.background_score for row in rows],
        boxes.reshape(len(rows), 4),
        np.array([row.score for row in rows], np.float64),
    )


def _integers(values: list[Any]) -> Any:
    """Return a column of integers as an array, any other one as it is."""
    return np.fromiter(values, np.int64, len(values)) if {*map(type, values)} == {int} else values


def _joined(parts: Sequence[Any]) -> Any:
    """Return the parts of a column as one: an array, where all of them are arrays, else a list."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [*chain.from_iterable(part.tolist() if isinstance(part, np.ndarray) else part for part in parts)]


def read_rows(path: Path) -> tuple[InputFile, list[Row]]:
    """Return a COCO results file and its records (see `curation.evaluation.readers.read_detections` for the errors)."""
    file = InputFile(path, kind="detections file")
    return file, _rows(file, path)


def read_records(path: Path) -> tuple[InputFile, Records]:
    """Return a results file, hashed while it is decoded, and its columns."""
    file = InputFile(path, kind="detections file")
    with ThreadPoolExecutor(1) as executor:
        executor.submit(lambda: file.sha256)
        try:
            return file, Records.of(_pieces(file.data))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return file, Records.of([_rows(file, path)])


def _pieces(data: bytes) -> Iterator[list[Row]]:
    """Yield the records of a large JSON list some thousand at a time, others at once."""
    opening = _OPENING.match(data) if len(data) > SMALL else None
    closing = opening and _CLOSING.search(data, max(opening.end(), len(data) - _TAIL))
    if opening and closing:
        pieces = record_pieces(data, opening.end(), closing.start(), opening[1], Row)
    else:
        pieces = iter([json_rows(data, Row)])
    for rows in pieces:
        if first_without_image(rows) is not None:
            raise msgspec.ValidationError
        yield rows


def _rows(file: InputFile, path: Path) -> list[Row]:
    with decoding(file, path, FORM):
        rows = json_rows(file.data, Row)
    if (row := first_without_image(rows)) is not None:
        raise PredictionError("A detection names no image", where=f"{path}: record {row}", expected=_NAMES_IMAGE)
    return rows


def first_without_image(rows: Sequence[Row]) -> int | None:
    """Return the first record that has neither an image id nor a file name."""
    return next((row for row, record in enumerate(rows) if record.image_id is None and not record.file_name), None)


@contextmanager
def decoding(file: InputFile, path: Path, form: str, what: str = "The detections") -> Iterator[None]:
    """Raise `PredictionError` where the records of a file turn out not to be of a form."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        is_truth, hint = file.data.lstrip()[:1] == b"{" and b'"annotations"' in file.data, None
        is_number = any(f"`{name}" in str(error) or f"].{name}" in str(error) for name in ("bbox", "score"))
        if form == FORM and (is_number or b"NaN" in file.data or b"Infinity" in file.data):
            hint = "curation inspect TRUTH --detections FILE names such records, and mends or leaves them out"
        if is_truth:
            hint = "give annotation files to --truth and results files to --detections"
        elif "`str` - at" in str(error) and "category_id" in str(error):
            hint = "names of classes belong in category; curation inspect TRUTH --detections FILE mends such texts"
        raise PredictionError(
            "This is not a list of detections, it is a ground-truth file" if is_truth else f"{what} cannot be read",
            where=str(path),
            expected=form,
            found="a JSON object" if is_truth else str(error)[:300],
            hint=hint,
        ) from None


def find(wanted: Int64s, known: Int64s) -> tuple[Int32s, Bools]:
    """Return the position of each number among ascending ones, and whether it is there."""
    if not len(known):
        return np.zeros(len(wanted), np.int32), np.zeros(len(wanted), bool)
    position = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return position.astype(np.int32), known[position] == wanted


class _Named(msgspec.Struct, gc=False):
    image_id: int | str | None = None
    file_name: str | None = None


def ids_from_zero(records: Records, data: bytes, truth: GroundTruth) -> tuple[Records, str]:
    """Return records with category ids as in the truth's ``data.yaml``, and a note about them (see `numbering_of`)."""
    labels = {number: label for label, number in enumerate(truth.class_numbers) if number is not None}
    images = truth.resolve(records.image_ids, records.file_names).position

    def fit(position: Mapping[int, int]) -> int:
        label = replace(records, categories=[]).labels({key: labels.get(n, -1) for key, n in position.items()})
        return _on_their_class(records, images, label, truth)

    position, text = numbering_of(records.used_ids, data, truth.yolo_classes, fit)
    if not position:
        return records, ""
    ids = records.category_ids
    numbers = ids.tolist() if isinstance(ids, np.ndarray) else ids
    return replace(records, category_ids=[None if id_ is None else position.get(id_, id_) for id_ in numbers]), text


def numbering_of(
    used: Collection[int], data: bytes, classes: Sequence[str], fit: Callable[[Mapping[int, int]], int]
) -> tuple[dict[int, int], str]:
    """Return the class, counted from 0, of each category id of Ultralytics, and a sentence; nothing for other files.

    Ultralytics writes ids from 1 to the number of classes, or COCO's ids where it validates on COCO's val2017. A file
    is such a ``predictions.json`` if no id is 0 and either an id is one that counting from 0 cannot reach, or each
    record names its photo as Ultralytics does: ``file_name``, with ``image_id`` its stem.

    Parameters
    ----------
    used : collection of int
        The category ids in the file; -1, which is unknown, may be among them.
    data : bytes
        JSON of the records.
    classes : sequence of str
        Names in the ``data.yaml`` of the truth.
    fit : callable
        Returns how many detections lie on objects of their class under a numbering. It decides for ids that both of
        Ultralytics' numberings have: COCO's ids 12 to 80 mean other classes than positions from 1.

    References
    ----------
    ``DetectionValidator.pred_to_json`` and ``init_metrics`` (``class_map``) in ultralytics/models/yolo/detect/val.py.
    """
    used, n_classes = {*used} - {-1}, len(classes)
    if not used or min(used) < 1:
        return {}, ""
    of_coco = {number: index for index, number in enumerate(_COCO_IDS)}
    from_one = {number: number - 1 for number in range(1, n_classes + 1)}
    is_coco = list(classes) == _COCO_NAMES and used <= of_coco.keys()
    is_from_one = max(used) == n_classes or (max(used) < n_classes and _names_photos(data))
    if is_coco and (max(used) > n_classes or (is_from_one and fit(of_coco) > fit(from_one))):
        position, numbering = of_coco, f"the {n_classes} ids of COCO, 1 to {_COCO_IDS[-1]}"
    elif is_from_one:
        position, numbering = from_one, f"ids from 1 to {n_classes}"
    else:
        return {}, ""
    read_as = ", ".join(f"{number} as {classes[position[number]]}" for number in sorted(used)[:3])
    text = f"category ids are those of Ultralytics' predictions.json ({numbering}), data.yaml counts from 0: {read_as}"
    return position, text + (", …" if len(used) > 3 else "")


def _names_photos(data: bytes) -> bool:
    """Return whether each record has a ``file_name``, and for ``image_id`` its stem, as a number where it is one."""
    try:
        rows = json_rows(data, _Named)
    except msgspec.DecodeError:
        return False
    stems = (PurePosixPath(row.file_name or "").stem for row in rows)
    return all(
        stem and row.image_id == (int(stem) if stem.isascii() and stem.isdigit() else stem)
        for stem, row in zip(stems, rows, strict=True)
    )


def _on_their_class(records: Records, position: Int32s, label: Int32s, truth: GroundTruth) -> int:
    """Return how many detections overlap an object of their class by half (IoU)."""
    rows = (position >= 0) & (label >= 0) & (np.abs(records.boxes) <= MAX_COORDINATE).all(axis=1)
    detections = Detections(position[rows], label[rows], records.boxes[rows], records.scores[rows])
    return int((best_overlap(truth, detections, same_class=True)[1] >= 0.5).sum())
