"""Detections of one OWOD task: COCO results with ids or names of categories, or VOC results; ``unknown`` included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from curation.errors import PredictionError
from curation.evaluation.columns import Detections, Int32s, Int64s
from curation.evaluation.detections import (
    DISAGREEING,
    STRANGE,
    Policy,
    RawColumns,
    ReadDetections,
    Row,
    check_values,
    labels_of,
    locate,
    other_numbering,
    read_rows,
    report,
    stray_error,
    take_rows,
)
from curation.evaluation.task_truth import TaskTruth
from curation.evaluation.truth import UNKNOWN
from curation.evaluation.voc_results import VOC_FILE, is_voc_results, read_voc_results
from curation.sources.source import Source

_REST = -1
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class TaskDetections:
    """Detections of a task, each image's as often as its list names it.

    Attributes
    ----------
    read : ReadDetections
        Its `detections` have the labels of `TaskTruth.truth`: the last one is unknown.
    copies : str
        What was done about images that the list repeats, or ``""`` where it repeats none.
    """

    read: ReadDetections
    copies: str

    @property
    def detections(self) -> Detections:
        """The detections as columns."""
        return self.read.detections


def read_task_detections(
    path: Path, truth: TaskTruth, source: Source, policy: Policy | None = None
) -> TaskDetections:
    """Return the detections of a task.

    Parameters
    ----------
    path : Path
        A JSON list (or JSON lines, compressed by gzip or not) of ``image_id, bbox, score`` and ``category_id`` or
        ``category`` (a class name or ``unknown``), or a folder of VOC results with a file of class ``unknown``.
    source : Source
        The ground truth's source, for the category ids of classes that are unknown in the task.
    policy : Policy, optional
        ``stray="drop"`` also leaves out detections of classes that are unknown in the task, and counts them.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        A record cannot be read, has no class of the task, an unusable box or score, or an image that is not in the
        ground truth.
    """
    policy = policy or Policy()
    if is_voc_results(path):
        read = read_voc_results(
            path, replace(truth.truth, classes=_spelled(path, truth)), truth.part.names, policy
        )
    else:
        read = _read_json(path, truth, source, policy)
    return _once_a_line(read, truth)


def _read_json(path: Path, truth: TaskTruth, source: Source, policy: Policy) -> ReadDetections:
    file, rows = read_rows(path)
    n = len(rows)
    columns = RawColumns(
        boxes=np.array([row.bbox for row in rows], np.float64).reshape(n, 4),
        scores=np.fromiter((row.score for row in rows), np.float64, n),
        where=str(path),
        record="record",
        first=0,
    )
    label = _labels(rows, columns, truth, source, policy)
    negative = check_values(columns, policy)
    position, found = locate([row.image_id for row in rows], truth.truth, columns)
    if not found.all() and policy.stray == "error":
        first = rows[int(np.argmin(found))].image_id
        raise stray_error(columns, found, f"image_id {first!s:.80}", truth.truth)
    counts = report(stray=int((~found).sum()), negative=negative)
    if n_rest := int((found & (label == _REST)).sum()):
        counts["left out: detections of classes that are unknown in this task"] = n_rest
    kept = found & (label >= 0)
    return ReadDetections(take_rows(columns, position, label, kept), path.name, file.sha256, n, counts)


def _labels(rows: list[Row], columns: RawColumns, truth: TaskTruth, source: Source, policy: Policy) -> Int32s:
    table = _label_table(truth, source)
    label = labels_of(rows, table)
    refused = label < (_REST if policy.stray == "drop" else 0)
    if refused.any():
        row = int(np.argmax(refused))
        used = {one.category_id for one in rows if one.category_id is not None}
        where, count = columns.place(row), int(refused.sum())
        raise _label_error(int(label[row]), rows[row], where, count, truth, table, used)
    return label


def _label_table(truth: TaskTruth, source: Source) -> dict[int | str | None, int]:
    """Return the label of every id and name that detections of the task may use, `_REST` for its unknown classes."""
    task, columns = truth.task, truth.truth
    named = source.categories
    rest = [name for name in named.names if task.aliases.get(name, name) not in (*task.known, UNKNOWN)]
    table: dict[int | str | None, int] = dict.fromkeys((*rest, *(task.rest or ())), _REST)
    own = dict(zip(named.names, named.numbers, strict=True))
    numbers = own if task.numbers is None else task.numbers
    table |= {numbers[name]: _REST for name in list(table) if isinstance(name, str) and name in numbers}
    unknown_numbers = {*task.unknown_numbers, *((own[UNKNOWN],) if UNKNOWN in own else ())}
    table |= {number: truth.unknown for number in unknown_numbers if number not in table}
    for label, (name, number) in enumerate(zip(columns.classes, columns.class_numbers, strict=True)):
        if label < truth.unknown:
            table[number] = label
        table[name] = label
    table |= {alias: table[name] for alias, name in task.aliases.items() if name in table}
    return table


def _label_error(
    label: int,
    row: Row,
    where: str,
    count: int,
    truth: TaskTruth,
    table: dict[int | str | None, int],
    used: set[int],
) -> PredictionError:
    what = {
        _REST: f"A detection has a class that is unknown in task {truth.task.name}",
        STRANGE: "A detection has a category that the task does not name",
        DISAGREEING: "A detection's category and category_id name different classes",
    }[label]
    unknown = [str(key) for key, place in table.items() if place == truth.unknown]
    known = ", ".join(f"{number} {name}" for number, name in _numbered(truth))
    other = other_numbering(used, truth.task.other_numbers, from_truth=truth.task.numbers is None)
    usual = (
        "--stray drop leaves out detections of classes that are unknown in the task, and reports how many"
        if label == _REST
        else "give names (category) where ids are in doubt; without a category of its own, unknown has id "
        f"{truth.task.unknown_numbers[0]}"
    )
    unlisted = label == STRANGE and truth.task.rest and isinstance(row.category_id, int)
    if unlisted and not other:
        usual += (
            f"; the truth has no ids for classes that are unknown in task {truth.task.name}: with names, "
            "--stray drop leaves detections of these out"
        )
    return PredictionError(
        what,
        where=where,
        expected=f"unknown ({' or '.join(unknown)}), or a known class: {known[:_SHOWN]}",
        found=f"{_named(row)}; {count} such {'detection' if count == 1 else 'detections'}",
        hint=other or usual,
    )


def _named(row: Row) -> str:
    """Return what a record says of its class: a name, an id, or both."""
    said = [] if row.category is None else [f"category {row.category!r:.80}"]
    return (
        ", ".join(said if row.category_id is None else [*said, f"category_id {row.category_id}"]) or "neither"
    )


def _numbered(truth: TaskTruth) -> list[tuple[int, str]]:
    columns = truth.truth
    pairs = zip(columns.class_numbers, columns.classes, strict=True)
    return [(number, name) for number, name in pairs if name in truth.task.known]


def _spelled(path: Path, truth: TaskTruth) -> tuple[str, ...]:
    """Return the class names as the files of a results folder spell them (``aeroplane`` where that file exists)."""
    files = [path] if path.is_file() else list(path.iterdir()) if path.is_dir() else []
    present = {match["name"] for file in files if (match := VOC_FILE.match(file.name))}
    spelled = {name: alias for alias, name in truth.task.aliases.items() if alias in present}
    return tuple(name if name in present else spelled.get(name, name) for name in truth.truth.classes)


def _once_a_line(read: ReadDetections, truth: TaskTruth) -> TaskDetections:
    """Return the detections of each image as often as its list names it under ``keep``, else once.

    A detector that ran over the list, line by line, has written the detections of a repeated image once a line; one
    that ran over the images has not. The file itself tells: no detector writes equal rows for one image.
    """
    if not truth.repeated_lines:
        return TaskDetections(read, "")
    found = read.detections
    group, place = _copies(found)
    lines = truth.list_lines[found.image]
    of_repeated = lines > 1
    again = np.isin(group, group[place > 0])
    written_per_line = 2 * int((of_repeated & again).sum()) > int(of_repeated.sum())
    if written_per_line and truth.repeats == "keep":
        return TaskDetections(read, "the file holds them once a line already")
    if written_per_line:
        size = np.bincount(group)[group]
        kept = place < -(-size // lines)
        told = {"left out: copies of detections on repeated images": int((~kept).sum())}
        return TaskDetections(
            replace(read, detections=_rows(found, np.flatnonzero(kept)), reported={**read.reported, **told}),
            "the file held them once a line; each is taken once",
        )
    if truth.repeats == "keep":
        rows = np.repeat(np.arange(len(found)), lines)
        return TaskDetections(
            replace(read, detections=_rows(found, rows)),
            "the file holds them once an image; counted once a line",
        )
    return TaskDetections(read, "the file holds them once an image")


def _copies(found: Detections) -> tuple[Int64s, Int64s]:
    """Return for each detection the group of rows equal to it, and its place in that group, in input order."""
    columns = (*found.boxes.T, found.scores, found.label, found.image)
    order = np.lexsort(columns)
    changes = np.zeros(len(order), bool)
    for column in columns:
        changes[1:] |= np.diff(column[order]) != 0
    number = np.cumsum(changes)
    starts = np.flatnonzero(np.append(True, changes[1:])) if len(order) else np.empty(0, np.int64)
    group, place = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    group[order] = number
    place[order] = np.arange(len(order)) - starts[number]
    return group, place


def _rows(found: Detections, rows: Int64s) -> Detections:
    return Detections(found.image[rows], found.label[rows], found.boxes[rows], found.scores[rows])


def without_unknown(truth: TaskTruth, labels: Sequence[int] | Int32s) -> bool:
    """Return whether there are detections and none of them is labelled unknown."""
    return len(labels) > 0 and not bool((np.asarray(labels) == truth.unknown).any())
