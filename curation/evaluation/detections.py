"""Detections from COCO results JSON, and what every reader of detections checks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from curation.errors import PredictionError
from curation.evaluation.columns import Bools, Detections, Floats, GroundTruth, Int32s, Int64s
from curation.evaluation.truth import UNKNOWN
from curation.ids import native_number
from curation.input_files import InputFile, json_rows

Stray = Literal["error", "drop"]
Boxes = Literal["error", "empty"]
LARGEST_COORDINATE = 1e8
"""Pixels; beyond any image, and small enough that no area overflows."""

_SHOWN = 80
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


_FORM = (
    'a JSON list (or one a line) of {"image_id": integer or text, "category_id": integer or "category": name, '
    '"bbox": [x, y, w, h], "score": number}; JSON knows no NaN or Infinity'
)
_UNKNOWN = -1
STRANGE, DISAGREEING = -2, -3
CALLED_UNKNOWN = "left out: detections called unknown, which no measure of known classes counts"


class Row(msgspec.Struct, gc=False):
    """One record of a COCO results file; fields that are not declared are passed over."""

    image_id: _Int64 | str
    bbox: tuple[float, float, float, float]
    score: float
    category_id: _Int64 | None = None
    category: str | None = None
    background_score: float | None = None


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What to do about detections that do not belong.

    Attributes
    ----------
    stray : {"error", "drop"}
        detections on images, or a results file of a class, that the ground truth lacks: refuse, or leave out and report
    negative_sizes : {"error", "empty"}
        detected boxes of negative size: refuse, or take as empty, which overlap nothing (so the VOC evaluation code
        treats them), and report
    any_scores : bool
        allow scores outside [0, 1]: logits, SVM margins
    """

    stray: Stray = "error"
    negative_sizes: Boxes = "error"
    any_scores: bool = False


@dataclass(frozen=True, slots=True)
class ReadDetections:
    """Detections of one part with what is to be told about their file.

    Attributes
    ----------
    detections : Detections
    name, sha256 : str
        File or folder name, and ``sha256:<hex>`` of its bytes; of a folder, of the sorted lines ``<hex>  <name>``.
    rows : int
        Records in the file.
    reported : dict of str to int
        What was left out or changed under the policy, with counts; empty when nothing was.
    """

    detections: Detections
    name: str
    sha256: str
    rows: int
    reported: dict[str, int] = field(default_factory=dict)

    @property
    def file(self) -> dict[str, Any]:
        """What a result says about this input."""
        return {"name": self.name, "sha256": self.sha256, "rows": self.rows, "reported": self.reported}


@dataclass(frozen=True, slots=True)
class RawColumns:
    """Unchecked columns of one file, and how to name a row of it in a message.

    Attributes
    ----------
    boxes : ndarray of float64, shape (n, 4)
        ``x, y, w, h``; `check_values` makes negative sizes 0 where the policy says so.
    scores : ndarray of float64, shape (n,)
    where, record, first : str, str, int
        A row is called ``"{where}: {record} {row + first}"``.
    background : ndarray of float64, shape (n,), or None
    """

    boxes: Floats
    scores: Floats
    where: str
    record: str
    first: int
    background: Floats | None = None

    def place(self, row: int) -> str:
        """Return what to call a row in a message."""
        return f"{self.where}: {self.record} {row + self.first}"


def read_coco_results(
    path: Path, truth: GroundTruth, policy: Policy | None = None, *, others: Int64s | None = None
) -> ReadDetections:
    """Return the detections of a COCO results file: records of ``image_id``, class, ``bbox`` and ``score``.

    They stand in a list, or one a line (JSON lines); the file may be compressed by gzip. The class is ``category_id``
    as in the truth, or ``category``, a name. Detections called ``unknown`` are left out and counted: what is measured
    here are known classes, and a detection of none of them is neither right nor wrong for any.

    Parameters
    ----------
    truth : GroundTruth
        The part they belong to. Boxes are ``x, y, w, h``; an optional ``background_score`` is kept; other fields are
        passed over.
    policy : Policy, optional
    others : ndarray of int64, optional
        Image numbers of the other part, ascending: only to recognise swapped files.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        It is no list of such records, or a record has a category that is neither known nor unknown, a box that is not
        finite, of negative size or beyond any image, a score that is not finite or outside [0, 1], or (unless dropped)
        an image that is not in the ground truth. The message names the record.
    """
    file, rows = read_rows(path)
    policy = policy or Policy()
    columns = _coco_columns(rows, str(path))
    label = _labels(rows, columns, truth)
    negative = check_values(columns, policy)
    image = [row.image_id for row in rows]
    position, found = locate(image, truth, columns)
    if not found.all() and policy.stray == "error":
        strays = [one for one, there in zip(image, found.tolist(), strict=True) if not there]
        numbers = np.array([one for one in strays if isinstance(one, int)], np.int64)
        swapped = others is not None and len(numbers) == len(strays) and bool(find(numbers, others)[1].all())
        raise stray_error(columns, found, f"image_id {strays[0]!s:.80}", truth, swapped=swapped)
    named = found & (label >= 0)
    counts = report(stray=int((~found).sum()), negative=negative, unknown=int((found & (label < 0)).sum()))
    return ReadDetections(
        take_rows(columns, position, label, named), path.name, file.sha256, len(rows), counts
    )


def read_rows(path: Path) -> tuple[InputFile, list[Row]]:
    """Return a COCO results file and its records (see `read_coco_results` for the errors)."""
    file = InputFile(path, kind="detections file")
    try:
        return file, json_rows(file.data, Row)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        is_object = file.data.lstrip()[:1] == b"{"
        is_truth = is_object and b'"annotations"' in file.data
        raise PredictionError(
            "This is not a list of detections, it is a ground-truth file"
            if is_truth
            else "The detections cannot be read",
            where=str(path),
            expected=_FORM,
            found="a JSON object" if is_truth else str(error)[:300],
            hint="give annotation files to --truth and results files to --detections" if is_object else None,
        ) from None


def _coco_columns(rows: list[Row], where: str) -> RawColumns:
    n = len(rows)
    background = None
    if any(row.background_score is not None for row in rows):
        background = np.array([row.background_score for row in rows], np.float64)
    return RawColumns(
        boxes=np.array([row.bbox for row in rows], np.float64).reshape(n, 4),
        scores=np.fromiter((row.score for row in rows), np.float64, n),
        where=where,
        record="record",
        first=0,
        background=background,
    )


def _labels(rows: list[Row], columns: RawColumns, truth: GroundTruth) -> Int32s:
    """Return the position of each detection's class, `_UNKNOWN` where it is called unknown."""
    table: dict[int | str | None, int] = dict.fromkeys((*truth.unknown_numbers, UNKNOWN), _UNKNOWN)
    table |= {name: place for place, name in enumerate(truth.classes)}
    table |= {number: place for place, number in enumerate(truth.class_numbers)}
    label = labels_of(rows, table)
    refused = label < _UNKNOWN
    if refused.any():
        row = int(np.argmax(refused))
        used = {one.category_id for one in rows if one.category_id is not None}
        raise PredictionError(
            "A detection's category and category_id name different classes"
            if label[row] == DISAGREEING
            else "A detection has a category that is not known",
            where=columns.place(row),
            expected=f"category_id of a known class: {_list(truth)}; or unknown "
            f"({', '.join(map(str, truth.unknown_numbers))})",
            found=f"category_id {rows[row].category_id}"
            + ("" if rows[row].category is None else f", category {rows[row].category!r:.80}"),
            hint=other_numbering(used, truth.other_numbers, from_truth=truth.ids_from_truth)
            or "leave out detections of other classes; give names (category) where ids are in doubt",
        )
    return label


def other_numbering(used: Collection[int], other: Collection[int], *, from_truth: bool = True) -> str | None:
    """Return what to try where ids do not fit the numbering in use, but all fit the other; None where they do not.

    Parameters
    ----------
    used : collection of int
        All category ids of a detections file.
    other : collection of int
        The ids of the other numbering.
    from_truth : bool
        Whether the numbering in use is the truth file's, and the other one the manifest's; else the other way round.
    """
    # -1 is unknown in every numbering, and tells nothing.
    telling = set(used) - {-1}
    if not telling or not telling <= set(other):
        return None
    whose, option = ("the manifest", "manifest") if from_truth else ("the truth file", "truth")
    return f"all ids of the file are ids of {whose}: --category-ids {option} reads them so"


def check_values(columns: RawColumns, policy: Policy) -> int:
    """Raise `PredictionError` at the first unusable box or score; return how many negative sizes were set to 0."""
    boxes, scores = columns.boxes, columns.scores
    usable = (np.abs(boxes) <= LARGEST_COORDINATE).all(axis=1)
    negative: Bools = np.asarray((boxes[:, 2:] < 0).any(axis=1))
    if policy.negative_sizes == "error":
        usable &= ~negative
    if not usable.all():
        row = int(np.argmin(usable))
        raise PredictionError(
            "A detection has a box that cannot be",
            where=columns.place(row),
            expected=f"finite x, y, w, h with w and h not negative, at most {LARGEST_COORDINATE:g} pixels",
            found=str(boxes[row].tolist()),
            hint="--negative-sizes empty takes boxes of negative size as empty, and reports how many"
            if negative[row]
            else None,
        )
    boxes[negative, 2:] = np.maximum(boxes[negative, 2:], 0)
    in_range = np.isfinite(scores) if policy.any_scores else (scores >= 0) & (scores <= 1)
    if not in_range.all():
        row = int(np.argmin(in_range))
        raise PredictionError(
            "A detection has a score that is not finite"
            + ("" if policy.any_scores else " or outside [0, 1]"),
            where=columns.place(row),
            expected="a finite number" if policy.any_scores else "0 to 1",
            found=repr(float(scores[row])),
            hint=None if policy.any_scores else "--any-scores allows margins and logits",
        )
    return int(negative.sum())


def stray_error(
    columns: RawColumns, found: Bools, image: str, truth: GroundTruth, *, swapped: bool = False
) -> PredictionError:
    """Return the error about the first detection that was not found; `image` names its image."""
    return PredictionError(
        "A detection lies on an image that is not in the ground truth",
        where=columns.place(int(np.argmin(found))),
        expected=f"one of its {truth.n_images} images",
        found=f"{image}; {int((~found).sum())} such detections of {len(found)}",
        hint="all of them are in the other part: are the closed and the wilderness file swapped?"
        if swapped
        else "--stray drop leaves them out and reports how many",
    )


def report(*, stray: int, negative: int, unknown: int = 0) -> dict[str, int]:
    """Return the counts above zero, by what they count."""
    counts = {
        CALLED_UNKNOWN: unknown,
        "left out: detections on images or of classes that are not in the ground truth": stray,
        "taken as empty: boxes of negative size": negative,
    }
    return {reason: count for reason, count in counts.items() if count}


def locate(ids: Sequence[int | str], truth: GroundTruth, columns: RawColumns) -> tuple[Int32s, Bools]:
    """Return the position of each image id in the ground truth, and whether it is there.

    Raises
    ------
    PredictionError
        The annotation file names images by texts and a detection by a number: its position would be a guess.
    """
    if truth.image_names is None:
        numbers = [one if isinstance(one, int) else native_number(one) for one in ids]
        known = np.array([number is not None for number in numbers], np.bool_)
        position, found = find(np.array([number or 0 for number in numbers], np.int64), truth.image_numbers)
        return position, found & known
    place = {name: number for number, name in enumerate(truth.image_names)}
    for row, one in enumerate(ids):
        if isinstance(one, int):
            raise PredictionError(
                "A detection names its image by a number, the ground truth by a text",
                where=columns.place(row),
                expected=f"an image_id such as {truth.image_names[0]!r:.80}",
                found=str(one),
                hint="use the ids of the annotation file that the detector was given",
            )
    position = np.array([place.get(str(one), -1) for one in ids], np.int32)
    return np.maximum(position, 0), position >= 0


def find(wanted: Int64s, known: Int64s) -> tuple[Int32s, Bools]:
    """Return the position of each number among ascending ones, and whether it is there."""
    if not len(known):
        return np.zeros(len(wanted), np.int32), np.zeros(len(wanted), bool)
    position = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return position.astype(np.int32), known[position] == wanted


def take_rows(columns: RawColumns, position: Int32s, label: Int32s, rows: Bools) -> Detections:
    """Return the detections of some rows, given the image and class positions of all."""
    background = columns.background
    return Detections(
        position[rows],
        label[rows],
        columns.boxes[rows],
        columns.scores[rows],
        None if background is None else background[rows],
    )


def _list(truth: GroundTruth) -> str:
    text = ", ".join(
        f"{number} {name}" for number, name in zip(truth.class_numbers, truth.classes, strict=True)
    )
    return text if len(text) <= 4 * _SHOWN else text[: 4 * _SHOWN] + "…"


def labels_of(rows: Sequence[Row], table: Mapping[int | str | None, int]) -> Int32s:
    """Return the label that each row's category, category id, or both name, shape (n,), by a table of both.

    What the table lacks is `STRANGE`; a category and an id of different classes are `DISAGREEING`.
    """

    def label_of(row: Row) -> int:
        if row.category is None or row.category_id is None:
            return table.get(row.category_id if row.category is None else row.category, STRANGE)
        named = table.get(row.category, STRANGE)
        return named if named == table.get(row.category_id, STRANGE) else DISAGREEING

    return np.fromiter(map(label_of, rows), np.int32, len(rows))
