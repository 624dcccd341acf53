"""Detections from files of any form, with one policy for detections outside the part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

import numpy as np

from curation.core.errors import PredictionError
from curation.evaluation.detection_files import DISAGREEING, STRANGE, DetectionFiles, Records, read_files
from curation.evaluation.matching import best_overlap
from curation.evaluation.problem import (
    MAX_COORDINATE,
    UNKNOWN,
    Bools,
    Detections,
    Floats,
    GroundTruth,
    Int32s,
    Int64s,
    Stray,
)
from curation.evaluation.truth import TaskTruth, diagnosed
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.identity import AMBIGUOUS
from curation.sources.source import Source

Boxes = Literal["error", "empty"]
_COCO_IDS = [number for number, *_ in COCO_CATEGORIES]
_COCO_NAMES = [name for _, name, _ in COCO_CATEGORIES]
_SHOWN = 80
_UNKNOWN = -1
SWAPPED = "all these images are in the other part: are the closed and the wilderness file swapped?"
NO_SCORES = (
    "--variant score-free of `curation evaluate coco` and `owod` reads detections without scores: AP needs scores, and "
    "giving every box the same one picks one AP of many by the order of the file"
)
_LEAVE_OUT = "--on-error stray=drop leaves them out and reports how many"
_OTHER_TRUTH = "score them on the truth of the images that the detector was given"
CALLED_UNKNOWN = "left out: detections called unknown, which no measure of known classes counts"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What to do with detections that the ground truth does not allow.

    Attributes
    ----------
    stray : {"error", "drop"}
        detections on images, or a results file of a class, that the ground truth lacks: refuse, or leave out and report
    other_classes : {"error", "drop"}
        detections of classes that the ground truth lacks, or that are unknown in a task: refuse, or leave out and
        report
    negative_sizes : {"error", "empty"}
        detected boxes of negative size: refuse, or take as empty, which overlap nothing (so the VOC evaluation code
        treats them), and report
    any_scores : bool
        allow scores outside [0, 1]: logits, SVM margins
    """

    stray: Stray = "error"
    other_classes: Stray = "error"
    negative_sizes: Boxes = "error"
    any_scores: bool = False


class Accepted(NamedTuple):
    """What a variant accepts that all others refuse.

    Attributes
    ----------
    scoreless : bool
        Detections without scores; their scores are NaN.
    other_classes : bool
        Detections of classes that a federated truth lacks; each such class gets its own negative label.
    folded : bool
        Class names that differ only in case and surrounding blanks; and any other class, with a negative label.
    """

    scoreless: bool = False
    other_classes: bool = False
    folded: bool = False


ACCEPTED = Accepted()


@dataclass(frozen=True, slots=True)
class ReadDetections:
    """Detections of a part with notes about their file.

    Attributes
    ----------
    detections : Detections
    name, sha256 : str
        File or folder name, and ``sha256:<hex>`` of its bytes; of a folder, of the sorted lines ``<hex>  <name>``.
    rows : int
        Records in the file.
    reported : dict of str to int
        Records left out or changed under the policy, with counts; empty if there are none.
    copies : str
        Treatment of images that a list repeats, or ``""`` without repeats.
    doubt : str
        Why the file may be mistaken, or ``""``.
    """

    detections: Detections
    name: str
    sha256: str
    rows: int
    reported: dict[str, int] = field(default_factory=dict)
    copies: str = ""
    doubt: str = ""

    @property
    def file(self) -> dict[str, Any]:
        """Record of this input in a result."""
        doubt = {"doubt": self.doubt} if self.doubt else {}
        return {"name": self.name, "sha256": self.sha256, "rows": self.rows, "reported": self.reported, **doubt}


@dataclass(frozen=True, slots=True)
class RawColumns:
    """Unchecked columns of a file, and the name of a row in a message.

    Attributes
    ----------
    boxes : ndarray of float64, shape (n, 4)
        ``x, y, w, h``; `check_values` makes negative sizes 0 if the policy allows it.
    scores : ndarray of float64, shape (n,)
    at : callable
        Returns the name of a row.
    background : ndarray of float64, shape (n,), or None
    """

    boxes: Floats
    scores: Floats
    at: Callable[[int], str]
    background: Floats | None = None


OpenedColumns = tuple[DetectionFiles, Records, Callable[[int], str]]
"""The files of detections, their columns, and how to name a row in a message."""


def read_detections(
    path: Path,
    truth: GroundTruth,
    policy: Policy | None = None,
    *,
    others: GroundTruth | None = None,
    accepted: Accepted = ACCEPTED,
    columns: OpenedColumns | None = None,
) -> ReadDetections:
    """Return the detections of a COCO results file: records of ``image_id``, class, ``bbox`` and ``score``.

    The file may have another form (`curation.evaluation.detection_files.open_detections`). A ``file_name`` may replace
    or accompany the id (see `curation.sources.identity`). Records form a list, or JSON lines; gzip is supported. The
    class is ``category_id`` as in the truth, or ``category``, a name. Detections of class ``unknown`` are
    left out and counted: for the measures of known classes they are neither right nor wrong.

    Parameters
    ----------
    truth : GroundTruth
        The part of the detections. Boxes are ``x, y, w, h``; an optional ``background_score`` is read; other fields
        are ignored.
    policy : Policy, optional
    others : GroundTruth, optional
        The other part, to recognise swapped files.
    accepted : Accepted
    columns : OpenedColumns, optional
        The columns of the file, if they have been read.

    Raises
    ------
    MissingFileError
        No such file.
    PredictionError
        The file is not a list of such records, or a record has a category that is neither known nor unknown, a box that
        is not finite, of negative size or beyond any image, a score that is not finite or outside [0, 1], or (unless
        dropped) an image that is not in the ground truth. The message names the record.
    """
    return _read(
        path,
        truth,
        policy or Policy(),
        lambda records, columns, policy: _labels(records, columns, truth, accepted, policy),
        others=others,
        accepted=accepted,
        opened_columns=columns,
    )


def _read(
    path: Path,
    truth: GroundTruth,
    policy: Policy,
    labels_of: Callable[[Records, RawColumns, Policy], Int32s],
    *,
    uncounted: str = CALLED_UNKNOWN,
    others: GroundTruth | None = None,
    accepted: Accepted = ACCEPTED,
    opened_columns: OpenedColumns | None = None,
) -> ReadDetections:
    """Return the detections in files; those with the label `_UNKNOWN` are left out and counted."""
    opened, records, at = opened_columns or read_files(path, truth)
    if opened.form == "voc" and policy.stray == "drop":
        policy = replace(policy, other_classes="drop")
    position, is_known, outside, disagreeing = locate(records.image_ids, truth, at, records.file_names)
    image = np.where(is_known, position, -1).astype(np.int32)
    numbering = ""
    if truth.has_no_category_ids:
        records = records.by_name()
    if truth.yolo_classes and opened.form in ("records", "table"):
        records, numbering = ids_from_zero(records, image, truth)
    columns = RawColumns(records.boxes, records.scores, at, records.background)
    label = labels_of(records, columns, policy)
    negative = check_values(columns, policy, scoreless=accepted.scoreless)
    # A detector may have run on all images of the truth's file, but not only on images outside the part.
    outside &= is_known.any()
    if not (is_known | outside).all() and policy.stray == "error":
        references = records.references
        strays = [references[row] for row in np.flatnonzero(~(is_known | outside)).tolist()]
        in_others = None if others is None else _are_of(others, records)
        is_swapped = in_others is not None and bool(in_others[~is_known].all())
        hint = SWAPPED if is_swapped else diagnosed("stray_hint", references, truth)
        kind = "image_id" if records.file_names is None else "image"
        raise stray_error(columns, is_known | outside, f"{kind} {strays[0]!s:.80}", truth, hint)
    strange, unknown = label == STRANGE, label == _UNKNOWN
    n_outside = int(outside.sum())
    stray = int((~is_known | strange).sum()) - n_outside
    counts = report(stray=stray, outside=n_outside, negative=negative, disagreeing=disagreeing)
    if left_out := int((is_known & unknown).sum()):
        counts = {uncounted: left_out, **counts}
    retained = take_rows(columns, position, label, is_known & ~unknown & ~strange)
    doubtful = diagnosed("doubt", records, image, label, truth)
    doubts = "; ".join(filter(None, (numbering, doubtful)))
    return ReadDetections(retained, opened.path.name, opened.sha256, len(records), counts, doubt=doubts)


def _labels(records: Records, columns: RawColumns, truth: GroundTruth, accepted: Accepted, policy: Policy) -> Int32s:
    """Return the position of each detection's class.

    It is `_UNKNOWN` for class ``unknown``, and `STRANGE` for a class that the truth lacks, if the policy drops those.
    """
    table: dict[int | str | None, int] = dict.fromkeys((*truth.unknown_numbers, UNKNOWN), _UNKNOWN)
    # Few of a million classes are detected.
    names, used = set(records.categories), records.used_ids
    table |= {name: position for position, name in enumerate(truth.classes) if name in names}
    table |= {number: position for position, number in enumerate(truth.class_numbers) if number in used}
    if accepted.folded:
        labels = {name.strip().lower(): position for position, name in enumerate(truth.classes)}
        table |= {name: labels[key] for name in names if name and (key := name.strip().lower()) in labels}
    label = records.labels(table)
    strange = np.flatnonzero(label == STRANGE)
    if accepted.folded or (accepted.other_classes and truth.federated is not None and (label >= 0).any()):
        others: dict[str, int] = {}
        label[strange] = [
            DISAGREEING - 1 - others.setdefault(records.class_text(row), len(others)) for row in strange.tolist()
        ]
    _require_classes(
        records,
        label,
        columns,
        least=_UNKNOWN,
        other_classes=policy.other_classes,
        truth=truth,
        expected=f"category_id of a known class: {_list(truth)}; or unknown "
        f"({', '.join(map(str, truth.unknown_numbers))})",
    )
    return label


def _require_classes(
    records: Records,
    labels: Int32s,
    columns: RawColumns,
    *,
    least: int,
    other_classes: Stray,
    truth: GroundTruth,
    expected: str,
    task: str = "",
    of_unknown: str = "",
    names: Mapping[int, str] | None = None,
) -> None:
    """Raise an error if a detection has a label below `least`: its class is not known, or unknown in the task.

    Under ``other_classes="drop"``, classes that the truth lacks are an error only if all detections have such classes.
    """
    refused, strange = (labels < least) & (labels >= DISAGREEING), labels == STRANGE
    if strange.any() and truth.has_no_category_ids:
        _refuse_numbers(records, columns, truth)
    if other_classes == "drop" and not strange[labels != _UNKNOWN].all():
        refused &= ~strange
    if not refused.any():
        return
    row = int(np.argmax(refused))
    message = {
        _UNKNOWN: f"A detection has a class that is unknown in {f'task {task}' if task else 'this benchmark'}",
        STRANGE: "A detection has a category that " + (f"task {task} does not name" if task else "is not known"),
        DISAGREEING: "A detection's category and category_id name different classes",
    }[int(labels[row])]
    advice = "curation inspect TRUTH --detections FILE looks for another numbering or spelling"
    if labels[row] != DISAGREEING and not strange.all():
        advice += "; --on-error classes=drop leaves out detections of such classes, and counts them"
    if labels[row] == _UNKNOWN:
        advice = f"{of_unknown}; {advice}"
    number = records.category_ids[row]
    name = (names or {}).get(number) if number is not None else None
    raise PredictionError(
        message,
        where=columns.at(row),
        expected=expected,
        found=f"{records.class_text(row)}{f' ({name})' if name else ''}; such detections: {int(refused.sum())}",
        hint=advice,
    )


def _refuse_numbers(records: Records, columns: RawColumns, truth: GroundTruth) -> None:
    """Raise an error if detections name classes by number, and the truth has only names."""
    numbered = [number is not None and number not in truth.unknown_numbers for number in records.category_ids]
    if True in numbered:
        row = numbered.index(True)
        raise PredictionError(
            "The detections number their classes, and the truth states no category ids",
            where=columns.at(row),
            expected="names of classes, " + _list(truth),
            found=f"{records.class_text(row)}; such detections: {numbered.count(True)}",
            hint="write class names into the detections (category, labels), or the detector's ids into the truth: "
            "category_id of each row, dataset.info['categories'] of FiftyOne, a COCO JSON file",
        )


def check_values(columns: RawColumns, policy: Policy, *, scoreless: bool = False) -> int:
    """Raise `PredictionError` at the first unusable box or score; return how many negative sizes were set to 0.

    Parameters
    ----------
    scoreless : bool
        Whether a detection may be without a score.
    """
    boxes, scores = columns.boxes, columns.scores
    usable = np.abs(boxes) <= MAX_COORDINATE
    negative: Bools = np.asarray((boxes[:, 2] < 0) | (boxes[:, 3] < 0))
    if policy.negative_sizes == "error":
        usable[:, 2] &= ~negative
    if not usable.all():
        row = int(np.argmin(usable.all(axis=1)))
        raise PredictionError(
            "A detection has an impossible box",
            where=columns.at(row),
            expected=f"finite x, y, w, h with w and h not negative, at most {MAX_COORDINATE:g} pixels",
            found=str(boxes[row].tolist()),
            hint="--on-error sizes=empty makes boxes of negative size empty, and reports their number"
            if negative[row]
            else None,
        )
    boxes[negative, 2:] = np.maximum(boxes[negative, 2:], 0)
    missing = np.isnan(scores)
    if missing.any() and not scoreless:
        raise PredictionError(
            "A detection has no score",
            where=columns.at(int(np.argmax(missing))),
            expected="a number: score of a record, column score, or confidence of a label file (save_conf=True)",
            found=f"{int(missing.sum())} of {len(scores)} detections without one",
            hint=NO_SCORES,
        )
    in_range = missing | (np.isfinite(scores) if policy.any_scores else (scores >= 0) & (scores <= 1))
    if not in_range.all():
        row = int(np.argmin(in_range))
        raise PredictionError(
            "A detection has a score that is not finite" + ("" if policy.any_scores else " or outside [0, 1]"),
            where=columns.at(row),
            expected="a finite number" if policy.any_scores else "0 to 1",
            found=repr(float(scores[row])),
            hint=None if policy.any_scores else "--on-error scores=keep allows margins and logits",
        )
    return int(negative.sum())


def stray_error(columns: RawColumns, listed: Bools, image: str, truth: GroundTruth, hint: str = "") -> PredictionError:
    """Return the error about the first detection whose image is not in the truth; `image` names this image.

    `hint` comes from `curation.extensions.diagnosis.diagnosis.stray_hint`.
    """
    return PredictionError(
        "A detection is on an image that is not in the ground truth",
        where=columns.at(int(np.argmin(listed))),
        expected=f"one of its {truth.n_images} images",
        found=f"{image}; {int((~listed).sum())} such detections of {len(listed)}",
        hint=hint or (_LEAVE_OUT if 2 * int(listed.sum()) >= len(listed) else _OTHER_TRUTH),
    )


def report(*, stray: int, negative: int, outside: int = 0, disagreeing: int = 0) -> dict[str, int]:
    """Return the counts above zero by their descriptions."""
    counts = {
        "left out: detections on images or of classes that are not in the ground truth": stray,
        "left out: detections on other images of the ground truth's file than those that are scored": outside,
        "taken as empty: boxes of negative size": negative,
        "on the image of their file_name: detections whose image_id is that of another image": disagreeing,
    }
    return {reason: count for reason, count in counts.items() if count}


def _are_of(truth: GroundTruth, records: Records) -> Bools:
    """Return whether the image of each record is one of a ground truth."""
    return truth.in_part(truth.image_index.resolve(records.image_ids, records.file_names).position) >= 0


class Located(NamedTuple):
    """The images of references.

    Attributes
    ----------
    position : ndarray of int32, shape (n,)
        Position of the image in the ground truth; 0 if it is not there.
    there : ndarray of bool, shape (n,)
    outside : ndarray of bool, shape (n,)
        Whether the image is in the truth's file, but not in the part.
    disagreeing : int
        References whose id and name are of different images; the name decides.
    """

    position: Int32s
    there: Bools
    outside: Bools
    disagreeing: int = 0


def locate(
    ids: Sequence[int | str | None] | Int64s | None,
    truth: GroundTruth,
    at: Callable[[int], str],
    names: Sequence[str | None] | None = None,
) -> Located:
    """Return the images that references name by id, by file name, or by both (see `curation.sources.identity`).

    Parameters
    ----------
    at : callable
        Returns the name of a row, for messages.

    Raises
    ------
    PredictionError
        A reference fits two images; or it is a number, and the ids of the truth are texts.
    """
    index = truth.image_index
    resolved = index.resolve(ids, names)
    position = truth.in_part(resolved.position)
    there = position >= 0
    if (resolved.position == AMBIGUOUS).any():
        row, pair = next(iter(resolved.candidates.items()))
        reference = names[row] if names is not None and names[row] else ids[row] if ids is not None else ""
        raise PredictionError(
            "Two images of the ground truth have the name in a detection",
            where=at(row),
            expected="file_name with the folders of the truth, and the truth's image_id beside it",
            found=f"{reference!r:.80}: {index.describe(pair)}",
            hint=f"image_id {index.listed[pair[0]]!r:.80} names one image" if index.listed else None,
        )
    if not isinstance(index.ids, np.ndarray) and names is None and ids is not None and not there.all():
        numbered = [row for row in np.flatnonzero(~there).tolist() if not isinstance(ids[row], str)]
        if numbered:
            values: Any = ids.tolist() if isinstance(ids, np.ndarray) else ids
            raise PredictionError(
                "Image ids of the detections are numbers, those of the ground truth are texts",
                where=at(numbered[0]),
                expected=f"an image_id such as {index.ids[0]!r:.80}, or the file_name beside it",
                found=str(ids[numbered[0]]),
                hint=diagnosed("stray_hint", values, truth)
                or "use the ids of the annotation file that the detector was given",
            )
    return Located(np.maximum(position, 0), there, (resolved.position >= 0) & ~there, resolved.disagreeing)


def take_rows(columns: RawColumns, position: Int32s, label: Int32s, rows: Bools) -> Detections:
    """Return the detections of selected rows; `image` and class positions are those of all rows."""
    index, background = slice(None) if rows.all() else rows, columns.background
    return Detections(
        position[index],
        label[index],
        columns.boxes[index],
        columns.scores[index],
        None if background is None else background[index],
    )


def _list(truth: GroundTruth) -> str:
    pairs = islice(zip(truth.class_numbers, truth.classes, strict=True), 4 * _SHOWN)
    text = ", ".join(name if number is None else f"{number} {name}" for number, name in pairs)
    return text if len(text) <= 4 * _SHOWN else text[: 4 * _SHOWN] + "…"


def read_task_detections(
    path: Path, truth: TaskTruth, source: Source, policy: Policy | None = None, *, accepted: Accepted = ACCEPTED
) -> ReadDetections:
    """Return the detections of a task, repeated for images that the list repeats, if repeats count.

    Parameters
    ----------
    path : Path
        COCO results, with ``category_id`` or ``category`` (a class name or ``unknown``), or another form of
        `read_detections`, such as a folder of VOC results with a file of class ``unknown``.
    source : Source
        The ground truth's source, for the category ids of classes that are unknown in the task.
    policy : Policy, optional
        ``other_classes="drop"`` and ``stray="drop"`` also leave out and count detections of classes that are unknown
        in the task.
    accepted : Accepted
        Exceptions for COCO results.

    Returns
    -------
    ReadDetections
        Its `detections` have the labels of `TaskTruth.truth`: the last one is unknown.

    Raises
    ------
    MissingFileError
        No such file.
    PredictionError
        A record cannot be read, has no class of the task, an unusable box or score, or an image that is not in the
        ground truth.
    """
    read = _read(
        path,
        truth.truth,
        policy or Policy(),
        lambda records, columns, policy: _task_labels(records, columns, truth, source, policy),
        uncounted="left out: detections of classes that are unknown in this task",
        accepted=accepted,
    )
    return _once_a_line(read, truth)


def _task_labels(records: Records, columns: RawColumns, truth: TaskTruth, source: Source, policy: Policy) -> Int32s:
    """Return the label of each detection, `_UNKNOWN` if its class is unknown in the task and the policy drops those."""
    task = truth.task
    numbers = _own_numbers(source) if task.numbers is None else task.numbers
    table = _label_table(truth, source, numbers)
    labels = records.labels(table)
    unknown = [str(key) for key, label in table.items() if label == truth.unknown]
    _require_classes(
        records,
        labels,
        columns,
        least=_UNKNOWN if "drop" in (policy.stray, policy.other_classes) else 0,
        other_classes=policy.other_classes,
        truth=truth.truth,
        # A case of a taxonomy has no tasks.
        task="" if task.taxonomy else task.name,
        of_unknown="detections of unknown objects have the class unknown"
        if task.taxonomy
        else f"are they of a later task than {task.name}? --task chooses it",
        names={number: name for name, number in numbers.items()},
        expected=f"unknown ({' or '.join(unknown)}), or a known class: {_list(truth.truth)}",
    )
    return labels


def _own_numbers(source: Source) -> dict[str, int]:
    pairs = zip(source.categories.names, source.categories.category_ids, strict=True)
    return {name: number for name, number in pairs if number is not None}


def _label_table(truth: TaskTruth, source: Source, numbers: Mapping[str, int]) -> dict[int | str | None, int]:
    """Return the label of every id and name that detections of the task may use, `_UNKNOWN` for its unknown classes."""
    task, columns = truth.task, truth.truth
    categories = source.categories
    known = {*task.known, UNKNOWN}
    rest = [name for name in categories.names if task.aliases.get(name, name) not in known]
    table: dict[int | str | None, int] = dict.fromkeys((*rest, *(task.rest or ())), _UNKNOWN)
    number_of = _own_numbers(source)
    table |= {numbers[name]: _UNKNOWN for name in list(table) if isinstance(name, str) and name in numbers}
    unknown_numbers = {*task.unknown_numbers, *((number_of[UNKNOWN],) if UNKNOWN in number_of else ())}
    table |= {number: truth.unknown for number in unknown_numbers if number not in table}
    for label, (name, number) in enumerate(zip(columns.classes, columns.class_numbers, strict=True)):
        if label < truth.unknown and number is not None:
            table[number] = label
        table[name] = label
    table |= {alias: table[name] for alias, name in task.aliases.items() if name in table}
    return table


def _once_a_line(read: ReadDetections, truth: TaskTruth) -> ReadDetections:
    """Return the detections of each image once for each line of the list under ``keep``, else once.

    A detector that ran over the list line by line wrote the detections of a repeated image once for each line; a
    detector that ran over the images did not. Equal rows tell the two apart: no detector writes them for one image.
    """
    if not truth.repeated_lines:
        return read
    detections = read.detections
    group, rank = _copies(detections)
    lines = truth.list_lines[detections.image]
    of_repeated = lines > 1
    again = np.isin(group, group[rank > 0])
    written_per_line = 2 * int((of_repeated & again).sum()) > int(of_repeated.sum())
    if written_per_line and truth.repeats == "keep":
        return replace(read, copies="the file holds them once a line already")
    if written_per_line:
        retained = rank < -(-np.bincount(group)[group] // lines)
        return replace(
            read,
            detections=detections.take(retained),
            reported={**read.reported, "left out: copies of detections on repeated images": int((~retained).sum())},
            copies="the file held them once a line; each is taken once",
        )
    if truth.repeats == "keep":
        rows = np.repeat(np.arange(len(detections)), lines)
        copies = "the file holds them once an image; counted once a line"
        return replace(read, detections=detections.take(rows), copies=copies)
    return replace(read, copies="the file holds them once an image")


def _copies(detections: Detections) -> tuple[Int64s, Int64s]:
    """Return the group of equal rows of each detection, and its place in that group, in input order."""
    columns = [*detections.boxes.T, detections.scores, detections.label, detections.image]
    order = np.lexsort(columns)
    changes = np.zeros(len(order), bool)
    for column in columns:
        changes[1:] |= np.diff(column[order]) != 0
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(changes)
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(group[order], group[order])
    return group, rank


def ids_from_zero(records: Records, position: Int32s, truth: GroundTruth) -> tuple[Records, str]:
    """Return records with the category ids of the truth's ``data.yaml``, and a note on them (see `numbering_of`).

    Parameters
    ----------
    position : ndarray of int32, shape (n,)
        Position of each record's image, -1 where the truth lacks it.
    """
    labels = {number: label for label, number in enumerate(truth.class_numbers) if number is not None}

    def fit(numbering: Mapping[int, int]) -> int:
        label = replace(records, categories=[]).labels({key: labels.get(n, -1) for key, n in numbering.items()})
        return _on_their_class(records, position, label, truth)

    ids: Any = records.image_ids.tolist() if isinstance(records.image_ids, np.ndarray) else records.image_ids
    photos = zip(ids, records.file_names, strict=True) if ids is not None and records.file_names is not None else ()
    numbering, text = numbering_of(records.used_ids, photos, truth.yolo_classes, fit)
    if not numbering:
        return records, ""
    ids = records.category_ids
    numbers = ids.tolist() if isinstance(ids, np.ndarray) else ids
    return replace(records, category_ids=[None if id_ is None else numbering.get(id_, id_) for id_ in numbers]), text


def numbering_of(
    used: Collection[int],
    photos: Iterable[tuple[object, str | None]],
    classes: Sequence[str],
    fit: Callable[[Mapping[int, int]], int],
) -> tuple[dict[int, int], str]:
    """Return the class, counted from 0, of each category id of Ultralytics, and a note; nothing for other files.

    Ultralytics writes ids from 1 to the number of classes, or COCO's ids if it validates on COCO's val2017. A file is
    such a ``predictions.json`` if no id is 0 and either an id is larger than counting from 0 allows, or each record
    names its photo as Ultralytics does: ``file_name``, with its stem as ``image_id``.

    Parameters
    ----------
    used : collection of int
        The category ids in the file; -1, which is unknown, may be among them.
    photos : iterable of tuple
        ``image_id`` and ``file_name`` of each record; empty if no record has both.
    classes : sequence of str
        Names in the ``data.yaml`` of the truth.
    fit : callable
        Returns how many detections lie on objects of their class under a numbering. It decides if the ids fit both
        numberings of Ultralytics: COCO's ids 12 to 80 are other classes than positions counted from 1.

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
    is_from_one = max(used) == n_classes or (max(used) < n_classes and _names_photos(photos))
    if is_coco and (max(used) > n_classes or (is_from_one and fit(of_coco) > fit(from_one))):
        position, numbering = of_coco, f"the {n_classes} ids of COCO, 1 to {_COCO_IDS[-1]}"
    elif is_from_one:
        position, numbering = from_one, f"ids from 1 to {n_classes}"
    else:
        return {}, ""
    read_as = ", ".join(f"{number} as {classes[position[number]]}" for number in sorted(used)[:3])
    text = f"category ids are those of Ultralytics' predictions.json ({numbering}), data.yaml counts from 0: {read_as}"
    return position, text + (", …" if len(used) > 3 else "")


def _names_photos(photos: Iterable[tuple[object, str | None]]) -> bool:
    """Return whether each record has a ``file_name``, and its stem as ``image_id``, a number if it has only digits."""
    pairs = [(image, PurePosixPath(name or "").stem) for image, name in photos]
    return bool(pairs) and all(
        stem and image == (int(stem) if stem.isascii() and stem.isdigit() else stem) for image, stem in pairs
    )


def _on_their_class(records: Records, position: Int32s, label: Int32s, truth: GroundTruth) -> int:
    """Return how many detections overlap an object of their class by half (IoU)."""
    rows = (position >= 0) & (label >= 0) & (np.abs(records.boxes) <= MAX_COORDINATE).all(axis=1)
    detections = Detections(position[rows], label[rows], records.boxes[rows], records.scores[rows])
    return int((best_overlap(truth, detections, same_class=True)[1] >= 0.5).sum())
