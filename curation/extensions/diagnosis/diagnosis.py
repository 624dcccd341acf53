"""Why a score is near zero: files of detections held against their truth, with the mend of each mistake found."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, overload

import msgspec
import numpy as np

from curation.core.arguments import checked
from curation.core.errors import AnnotationFormatError, PredictionError
from curation.core.input_files import InputFile, is_json_lines, json_rows
from curation.core.short_repr import short_repr
from curation.core.text_table import Table, table_lines
from curation.evaluation.conventions import Id, unique
from curation.evaluation.detection_files import read_other_form
from curation.evaluation.problem import GroundTruth, Int32s, Int64s
from curation.evaluation.result_records import FORM, Records, Row, first_without_image
from curation.extensions.diagnosis.inspection import Inspection, inspect_annotations
from curation.extensions.diagnosis.mends import (
    Columns,
    Objects,
    apply_mends,
    best_overlaps,
    image_map,
    mend_records,
    parse,
)
from curation.extensions.diagnosis.mistakes import Finding, explain, ids_are, image_mends, other_images

_SEEN = 5_000
"""Detections that an evaluation looks at before it doubts them."""
_SOUND, _NEXT_TO_NONE = 0.25, 0.02
_FEWEST = 20
_ASK = "curation inspect TRUTH --detections FILE looks for a mistake"
_NO_DETECTIONS = "the file holds no detections"
_NO_BOX = [math.nan] * 4


class _Image(msgspec.Struct, gc=False):
    id: int | str
    file_name: str = ""
    curation_id: str = ""
    width: float | None = None
    height: float | None = None


class _Class(msgspec.Struct, gc=False):
    id: int | str
    name: str = ""


class _Row(msgspec.Struct, gc=False):
    """An annotation, or a detection; nothing of it is checked."""

    image_id: int | str | float | None = None
    file_name: str | None = None
    category_id: int | str | float | None = None
    category: str | None = None
    bbox: list[float | str | None] | None = None
    score: float | str | None = None


class _Annotated(msgspec.Struct):
    images: list[_Image]
    annotations: list[_Row]
    categories: list[_Class] = []


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong with a file of detections.

    Attributes
    ----------
    file : str
    counts : dict of str to int
        ``detections``, ``images`` with one, ``images_of_truth``, ``on_objects`` (detections that lie on an object after
        all mends), ``looked_at``.
    findings : tuple of Finding
        None for a file that is sound, however poor its detector.
    command : str
        Mends all findings at once; ``""`` where fewer than two have a mend.
    """

    __repr__ = short_repr

    file: str
    counts: dict[str, int]
    findings: tuple[Finding, ...]
    command: str = ""

    @property
    def mends(self) -> tuple[str, ...]:
        """The mends of all findings."""
        return tuple(finding.mend for finding in self.findings if finding.mend)

    def data(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {"file": self.file, **self.counts, "findings": [finding._asdict() for finding in self.findings]}

    def lines(self) -> list[str]:
        """Return the findings with evidence and mend, as text."""
        held = [(name.replace("_", " "), f"{n:,}") for name, n in self.counts.items()]
        lines = table_lines(Table(self.file, ("", ""), tuple(held)))
        if not self.findings:
            sound = "no mistake found: under no other convention would many more of these boxes lie on objects"
            return [*lines, sound if self.counts["detections"] else _NO_DETECTIONS]
        for number, finding in enumerate(self.findings, 1):
            lines += [f"{number}. {finding.what}", f"   {finding.shown}", f"   {finding.command}"]
        return [*lines, "all at once:", f"   {self.command}"] if self.command else lines


def _held(path: Path) -> _Annotated | list[_Row] | str:
    """Return COCO JSON, or records of results, of any convention; of a file that is neither, what is wrong with it."""
    if path.is_dir():
        return "a folder"
    data = InputFile(path).data
    try:
        if data.lstrip()[:1] == b"[" or is_json_lines(data):
            rows = json_rows(data, _Row)
            if rows and all(row.image_id is None and not row.file_name for row in rows):
                return "records without image_id"
            return rows if not rows or any(row.bbox for row in rows) else "records without bbox"
        return msgspec.json.decode(data, type=_Annotated)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return str(error)[:200]


def _objects_in(held: _Annotated | list[_Row] | str, path: Path) -> Objects:
    if not isinstance(held, _Annotated):
        raise AnnotationFormatError(
            "The truth that explains detections must be COCO JSON",
            where=str(path),
            expected="images, annotations and categories",
            found=held if isinstance(held, str) else "a list of results",
            hint="curation export writes any truth as COCO JSON; give results as --detections",
        )
    images: dict[Any, int] = {image.id: row for row, image in reversed([*enumerate(held.images)])}
    classes: dict[Any, int] = {category.id: row for row, category in enumerate(held.categories)}
    kept = [
        (images[annotation.image_id], classes[annotation.category_id], annotation.bbox)
        for annotation in held.annotations
        if annotation.image_id in images and annotation.category_id in classes and _is_box(annotation.bbox)
    ]
    kept.sort(key=lambda row: row[0])
    sizes = [(image.width or math.nan, image.height or math.nan) for image in held.images]
    return Objects(
        [image.id for image in held.images],
        [image.file_name for image in held.images],
        np.array(sizes, np.float64).reshape(-1, 2),
        [category.id for category in held.categories],
        [category.name for category in held.categories],
        np.array([image for image, _, _ in kept], np.int64),
        np.array([category for _, category, _ in kept], np.int64),
        np.array([box for _, _, box in kept], np.float64).reshape(-1, 4),
        listed if all(listed := [image.curation_id for image in held.images]) else (),
    )


def _is_box(box: Sequence[Any] | None) -> bool:
    return box is not None and len(box) == 4 and all(isinstance(value, int | float) for value in box)


class _Given(NamedTuple):
    """Detections of a file, and its records, to be mended: a file of another form has those of its columns.

    `refused` returns why a reader refuses records that are not all of its form; ``""`` where it does not.
    """

    columns: Columns
    records: Callable[[], list[dict[str, Any]]]
    annotated: bool = False
    refused: Callable[[], str] = str


def _detections(path: Path, truth: Objects, *, located: bool = True) -> _Given:
    """Return what a file holds that `evaluate` reads, or JSON of any convention.

    Parameters
    ----------
    located : bool
        Whether images that `evaluate` finds go by the ids of the truth; else all go by what the file calls them.
    """
    if (other := read_other_form(path, truth.truth)) is not None:
        references = other.records.image_ids, other.records.file_names
        position = truth.index.resolve(*references).position if located else np.full(len(other.records), -1, np.int32)
        columns = _taken(other.records, np.arange(len(other.records)), position, truth)
        return _Given(columns, lambda: _records(columns))
    held = _held(path)
    if isinstance(held, str):
        raise PredictionError(
            "The file holds neither annotations nor detections",
            where=str(path),
            expected="COCO JSON: images, annotations and categories; or COCO results: a JSON list (or one a line) of "
            "records with image_id, bbox and a class; JSON knows no NaN or Infinity",
            found=held,
            hint="detections may be .csv or a folder of YOLO too",
        )
    data = InputFile(path).data
    if isinstance(held, list):
        columns = _columns(held, truth, located=located)
        return _Given(columns, lambda: json_rows(data, dict), refused=partial(_why_refused, data))
    columns = _columns(held.annotations, truth, located=located)
    return _Given(columns, lambda: msgspec.json.decode(data)["annotations"], True)


def _why_refused(data: bytes) -> str:
    try:
        row = first_without_image(json_rows(data, Row))
    except msgspec.ValidationError as error:
        return str(error)
    return "" if row is None else f"record {row} has neither image_id nor file_name"


def _records(columns: Columns) -> list[dict[str, Any]]:
    rows = zip(columns.images, columns.classes, columns.boxes.tolist(), columns.scores.tolist(), strict=True)
    return [
        {"image_id": image, "category" if isinstance(of, str) else "category_id": of, "bbox": box, "score": score}
        for image, of, box, score in rows
    ]


def _columns(rows: Sequence[_Row], truth: Objects, *, located: bool) -> Columns:
    own = unique(truth.names, truth.categories)
    boxes = [row.bbox if row.bbox is not None and len(row.bbox) == 4 else _NO_BOX for row in rows]
    names = [row.file_name for row in rows]
    ids = [_id(row.image_id) for row in rows]
    images, references = _images(ids, names if any(names) else None, truth, located=located)
    return Columns(
        images,
        [own.get(row.category, row.category) if row.category_id is None else _id(row.category_id) for row in rows],
        np.array([[_float(value) for value in box] for box in boxes], np.float64).reshape(-1, 4),
        np.array([_float(row.score) for row in rows], np.float64),
        references,
    )


def _taken(records: Records, rows: Int64s, position: Int32s, truth: Objects) -> Columns:
    """Return some of the records that readers have checked; images that have a position go by the truth's ids."""
    own, wanted = unique(truth.names, truth.categories), rows.tolist()
    numbers, names = (
        column.tolist() if isinstance(column, np.ndarray) else column
        for column in (records.category_ids, records.categories or [None] * len(records))
    )
    classes = [own.get(names[row], names[row]) if numbers[row] is None else numbers[row] for row in wanted]
    every = records.references
    references = [every[row] for row in wanted]
    places = position[rows].tolist()
    images = [truth.images[place] if place >= 0 else other for place, other in zip(places, references, strict=True)]
    return Columns(images, classes, records.boxes[rows], records.scores[rows], references)


def _images(
    ids: Any, names: Sequence[str | None] | None, truth: Objects, *, located: bool
) -> tuple[list[Any], list[Any]]:
    """Return the truth's id of each image that a reader finds, else what a record calls it; and the latter of all."""
    ids = ids.tolist() if isinstance(ids, np.ndarray) else ids
    references: Any = names
    if ids is not None:
        references = ids if names is None else [name or image for name, image in zip(names, ids, strict=True)]
    if not located or all(image in truth.image_position for image in dict.fromkeys(references)):
        return references, references
    position = truth.index.resolve(ids, names).position.tolist()
    images = [truth.images[row] if row >= 0 else other for row, other in zip(position, references, strict=True)]
    return images, references


def _id(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else str(value)
    return value


def _float(value: Any) -> float:
    try:
        return math.nan if value is None else float(value)
    except ValueError:
        return math.nan


@overload
def inspect(path: Path, *, detections: None = None) -> Inspection: ...
@overload
def inspect(path: Path, *, detections: Path) -> Diagnosis: ...
@checked
def inspect(
    path: Annotated[Path, "FILE"], *, detections: Annotated[Path | None, "FILE"] = None
) -> Inspection | Diagnosis:
    """Return what an annotation file holds; with detections, what is wrong with them: why a score is near zero.

    Parameters
    ----------
    path : Path or str
        COCO JSON, which may be broken in ways that every other command refuses: repeated ids, boxes without size
    detections : Path or str, optional
        COCO results in any convention of boxes, ids and scores; or a table (.csv) or YOLO's label files

    Returns
    -------
    Inspection or Diagnosis
        See `curation.extensions.diagnosis.inspection.Inspection`, and `Diagnosis` for detections.

    Raises
    ------
    MissingFileError
        A file is not there.
    AnnotationFormatError, PredictionError
        A file holds neither truth nor detections.

    Examples
    --------
    >>> import curation, json, pathlib, tempfile
    >>> box = {"id": 1, "image_id": 5, "category_id": 7, "bbox": [2, 3, 10, 20]}
    >>> shapes = {"images": [{"id": 5}, {"id": 5}], "annotations": [box], "categories": [{"id": 7, "name": "circle"}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "shapes.json"
    ...     _ = path.write_text(json.dumps(shapes))
    ...     curation.inspect(path).problems
    {'repeated_image_ids': 1, 'images_with_repeated_ids': 2}
    """
    return inspect_annotations(path) if detections is None else diagnose(path, detections)


def diagnose(truth: Path, detections: Path) -> Diagnosis:
    """Return what is wrong with a file of detections on a truth.

    Parameters
    ----------
    truth : Path
        COCO JSON.
    detections : Path
        COCO results in any convention: boxes, ids and scores are not checked. Or what else `evaluate` reads: a table,
        or YOLO's label files.

    Raises
    ------
    MissingFileError, AnnotationFormatError, PredictionError
        A file is not there, or holds neither truth nor detections.
    """
    held = _held(truth)
    if isinstance(held, list) and not detections.is_dir() and isinstance(other := _held(detections), _Annotated):
        swapped = Finding(
            "Truth and detections are exchanged",
            f"{truth} is a list of results, {detections} has {len(other.images):,} images with annotations",
            None,
            command=_command(detections, truth),
        )
        found = diagnose(detections, truth)
        return replace(found, findings=(swapped, *found.findings))
    objects = _objects_in(held, truth)
    columns, _, annotated, refused = _detections(detections, objects)
    mistakes, counts = explain(columns, objects)
    findings = [
        found._replace(command=_command(truth, detections, found.mend)) if found.mend else found for found in mistakes
    ]
    if annotated:
        share = float(np.isfinite(columns.scores).mean()) if len(columns) else 0.0
        what = "The detections are a file of annotations, not of results"
        given = "give the detector's results" if share < 1 else "write its list `annotations` alone"
        advice = f"{given}: a JSON list of image_id, category_id, bbox, score"
        findings.insert(0, Finding(what, "records with a score", share, command=advice))
    if not findings and (why := refused()):
        findings.append(Finding("`curation evaluate` cannot read the records", why, None, command=f"write {FORM}"))
    mends = [found.mend for found in mistakes if found.mend]
    at_once = _command(truth, detections, *mends) if len(mends) > 1 else ""
    return Diagnosis(str(detections), counts, tuple(findings), at_once)


def _command(truth: Path, detections: Path, *mends: str) -> str:
    words = [word for mend in mends for word in ("--mend", mend)] + ["--out", "mended.json"] * bool(mends)
    return shlex.join(["curation", "inspect", str(truth), "--detections", str(detections), *words])


def mended(truth: Path, detections: Path, mends: Sequence[str]) -> list[dict[str, Any]]:
    """Return the records of a results file after mends, with all fields that these do not change.

    Mends are written as JSON alone: of another form, records have the fields of COCO results.

    Parameters
    ----------
    mends : sequence of str
        ``KEY=VALUE``, see `curation.evaluation.conventions.VALUES`.

    Raises
    ------
    MissingFileError, AnnotationFormatError, PredictionError, UsageError
        As `diagnose`; or there is no such mend.
    """
    asked, objects = parse(mends), _objects_in(_held(truth), truth)
    before, records, *_ = _detections(detections, objects, located="image_ids" not in asked)
    after, rows = apply_mends(before, asked, objects)
    return mend_records(records(), before, after, rows)


def doubt(records: Records, position: Int32s, label: Int32s, truth: GroundTruth) -> str:
    """Return what to say of detections that lie on next to no objects, or would on many more under a mend; else ``""``.

    Parameters
    ----------
    records : Records
        As the file has them.
    position, label : ndarray of int32, shape (n,)
        Positions of image and class in the truth; -1 where it has none.
    """
    if not len(records) or not (truth.label >= 0).any():
        return "" if len(records) else _NO_DETECTIONS
    objects, places = objects_of(truth), truth.file_positions
    step = math.ceil(len(records) / _SEEN)
    rows = np.flatnonzero((position >= 0) & (position % step == 0))
    rows = rows[np.lexsort((-records.scores[rows], position[rows]))]
    begin = np.flatnonzero(np.diff(position[rows], prepend=-1))
    rank = np.arange(len(rows)) - np.repeat(begin, np.diff(begin, append=len(rows)))
    best_of_image = rows[rank < objects.count[places[position[rows]]]]
    iou, partner = best_overlaps(records.boxes[best_of_image], places[position[best_of_image]], objects)
    on = iou >= 0.5
    if records.file_names is None:
        ids: Any = records.image_ids[::step] if records.image_ids is not None else []
        ids = ids.tolist() if isinstance(ids, np.ndarray) else ids
        sample = Columns(ids, [], records.boxes[::step], records.scores[::step])
        if finding := other_images(sample, objects):
            return f"{finding.what} ({finding.shown}); {_ASK}"
    found, wanted = label[best_of_image][on], objects.category[partner[on]]
    right = (found == wanted)[wanted < len(truth.classes)]
    if not len(on) or (on.mean() >= _SOUND and (not len(right) or right.mean() >= _SOUND)):
        return ""
    in_file = np.where(position >= 0, places[position], -1).astype(np.int32)
    for finding in explain(_taken(records, np.sort(rows), in_file, objects), objects)[0]:
        if finding.mend.partition("=")[0] in ("boxes", "image_ids", "category_ids"):
            return f"{finding.what} ({finding.shown}); {_ASK}"
    if len(on) >= _FEWEST and on.mean() < _NEXT_TO_NONE:
        return f"{100 * on.mean():.1f} % of the best detections lie on an object (IoU >= 0.5); {_ASK}"
    return ""


def stray_hint(ids: Sequence[Id], truth: GroundTruth) -> str:
    """Return what image ids may be that a truth lacks: off by a constant, or names; else ``""``."""
    objects, distinct = objects_of(truth), [*dict.fromkeys(ids)]
    for name in image_mends(distinct, objects)[1:]:
        known = image_map(name, objects)
        if all(known(image) in objects.image_position for image in distinct):
            return f"{ids_are(name)}? {_ASK}"
    return ""


def objects_of(truth: GroundTruth) -> Objects:
    """Return the objects of a truth that is read, crowds left out; an unknown object is of a last class, unknown."""
    kept = ~truth.crowd
    known = [
        name if number is None else number for name, number in zip(truth.classes, truth.class_numbers, strict=True)
    ]
    index, places = truth.image_index, truth.file_positions
    sizes = np.full((len(index), 2), np.nan)
    sizes[places] = truth.stated_sizes
    image = places[truth.image[kept]]
    order = np.argsort(image, kind="stable")
    return Objects(
        index.ids.tolist() if isinstance(index.ids, np.ndarray) else index.ids,
        index.names,
        sizes,
        [*known, truth.unknown_numbers[0] if truth.unknown_numbers else -1],
        [*truth.classes, "unknown"],
        image[order],
        np.where(truth.label[kept] < 0, len(known), truth.label[kept]).astype(np.int64)[order],
        truth.boxes[kept][order],
        index.listed,
    )
