"""Diagnose scores near zero: compare detections with their truth, and suggest a mend for each mistake."""

from __future__ import annotations

import math
import os
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple, overload

import msgspec
import numpy as np

from curation.core.arguments import checked
from curation.core.errors import AnnotationFormatError, CurationError, PredictionError, warn_caller
from curation.core.json_text import is_json_lines, json_rows, plain_json, refuse_repeated_keys
from curation.core.reading import InputFile
from curation.core.tables import Table, table_lines
from curation.core.wording import short_repr
from curation.evaluation.detection_files import Records, open_detections, read_columns
from curation.evaluation.problem import Bools, Floats, GroundTruth, Int32s, Int64s
from curation.evaluation.readers import OpenedColumns, numbering_of
from curation.extensions.diagnosis.inspection import (
    Finding,
    Inspection,
    finding_lines,
    inspect_annotations,
    inspect_class_folders,
    inspect_source,
    part_note,
)
from curation.extensions.diagnosis.mends import (
    Columns,
    Id,
    Objects,
    apply_mends,
    best_overlaps,
    class_votes,
    image_map,
    mend_records,
    parse,
    unique,
)
from curation.extensions.diagnosis.mistakes import (
    RIGHT_CLASS,
    explain,
    fitting_forms,
    ids_are,
    image_mends,
    layout_mistake,
    other_images,
    other_mistakes,
)
from curation.extensions.diagnosis.truth_file import (
    AnnotationFile,
    ReadTruth,
    Record,
    TruthFile,
    mended_truth,
    new_name,
    objects_of,
    offered_parts,
    opened,
    read_detection_records,
    read_truth,
    refusal,
    usual_part,
)
from curation.sources.class_folders import class_folders
from curation.sources.in_memory import encoded_json
from curation.sources.opening import coco_file, native_dataset
from curation.sources.yolo import yolo_file, yolo_names

_SEEN = 5_000
"""Number of detections that an evaluation examines before it warns."""
_SOUND, _NEXT_TO_NONE = 0.25, 0.02
_FEWEST, _FEW_ON_OBJECTS = 20, 5
_ASK = "curation inspect TRUTH --detections FILE looks for a mistake"
_NO_DETECTIONS = "the file holds no detections"
_NO_BOX = [math.nan] * 4


@dataclass(frozen=True)
class Diagnosis:
    """The mistakes of a file of detections.

    Attributes
    ----------
    file : str
    counts : dict of str to int
        ``detections``, ``images`` with one, ``images_of_truth``, ``on_objects`` (detections that lie on an object after
        all mends), ``looked_at``.
    findings : tuple of Finding
        Empty for sound files, even of a poor detector; mistakes of the truth come first.
    command : str
        Command that mends all findings at once; ``""`` if fewer than two have a mend.
    notes : tuple of str
        Properties that are not mistakes, but make the results of another evaluator differ.
    """

    __repr__ = short_repr

    file: str
    counts: dict[str, int]
    findings: tuple[Finding, ...]
    command: str = ""
    notes: tuple[str, ...] = ()

    @property
    def mends(self) -> tuple[str, ...]:
        """The mends for the detections."""
        return _mends_of(self.findings)

    def data(self) -> dict[str, Any]:
        """Return the diagnosis as plain data."""
        findings = [finding._asdict() for finding in self.findings]
        return {"file": self.file, **self.counts, "findings": findings, "notes": list(self.notes)}

    def lines(self) -> list[str]:
        """Return the findings with evidence and mend, as text."""
        counts = [(name.replace("_", " "), f"{n:,}") for name, n in self.counts.items()]
        lines = table_lines(Table(self.file, ("", ""), tuple(counts)))
        if not self.findings:
            sound = "no mistake found: no other convention puts many more of these boxes on objects"
            return [*lines, sound if self.counts["detections"] else _NO_DETECTIONS, *self.notes]
        lines += [*finding_lines(self.findings), *self.notes]
        return [*lines, "all at once:", f"   {self.command}"] if self.command else lines


def _mends_of(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.mend for finding in findings if finding.mend and finding.side != "truth"))


def _decoded(file: InputFile | Path) -> tuple[bytes, AnnotationFile | list[Record] | str]:
    """Return the bytes of a JSON file, and its records in any convention, or the reason why it is not COCO JSON."""
    if isinstance(file, Path):
        if file.is_dir():
            return b"", "a folder"
        file = InputFile(file)
    data = plain_json(file.data)
    try:
        if data.lstrip()[:1] == b"[" or is_json_lines(data):
            rows = json_rows(data, Record)
            if rows and all(row.image_id is None and not row.file_name for row in rows):
                return data, "records without image_id"
            has_boxes = not rows or any(len(row.bbox or ()) == 4 for row in rows)
            return data, rows if has_boxes else "records without four numbers in bbox"
        return data, msgspec.json.decode(data, type=AnnotationFile)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return data, str(error)[:200]


def _decoded_truth(path: Path) -> tuple[bytes, AnnotationFile]:
    data, annotated = _decoded(path)
    if not isinstance(annotated, AnnotationFile):
        raise AnnotationFormatError(
            "The truth for a diagnosis must be COCO JSON or the folder of a dataset",
            where=str(path),
            expected="images, annotations and categories",
            found=annotated if isinstance(annotated, str) else "a list of results",
            hint="give results as --detections" if data.lstrip()[:1] == b"[" else None,
        )
    return data, annotated


class _Results(NamedTuple):
    """Detections of a file, with its records to mend; records of other forms than JSON are made from the columns.

    `texts` counts the records with a text as box, and as score; `read` is what `evaluate` reads from the file.
    """

    columns: Columns
    records: Callable[[], list[dict[str, Any]]]
    annotated: bool = False
    texts: tuple[int, int] = (0, 0)
    read: OpenedColumns | None = None


def _detections(path: Path, truth: Objects, truth_path: Path, *, located: bool = True) -> _Results:
    """Return the detections of a file: a form that `evaluate` reads, or JSON in any convention.

    Parameters
    ----------
    truth_path : Path
        The truth, whose data.yaml states the class numbers of Ultralytics.
    located : bool
        Whether images that `evaluate` recognises get the ids of the truth; otherwise all keep their names in the file.
    """
    opened = open_detections(path)
    try:
        records, at = read_columns(opened, truth.truth)
    except PredictionError as error:
        if opened.form != "records":
            raise
        refused = error
    else:
        ids, names = records.image_ids, records.file_names
        position = truth.index.resolve(ids, names).position if located else np.full(len(records), -1, np.int32)
        columns = _selected(records, np.arange(len(records)), position, truth)
        if opened.form != "records":
            return _Results(columns, lambda: _records(columns), read=(opened, records, at))
        [file] = opened.files.values()
        photos = () if ids is None or names is None else zip(ids, names, strict=True)
        columns, from_zero = _numbered(records.used_ids, photos, columns, truth, truth_path)
        decoded = partial(json_rows, plain_json(file.data), dict)
        return _Results(columns, lambda: _from_zero(decoded(), from_zero), read=(opened, records, at))
    [file] = opened.files.values()
    data, rows = _decoded(file)
    if isinstance(rows, str):
        if refused.hint and "curation inspect" not in refused.hint:
            raise refused
        raise PredictionError(
            "The file holds neither annotations nor detections",
            where=str(path),
            expected="COCO JSON: images, annotations and categories; or COCO results: a JSON list (or one a line) of "
            "records with image_id, bbox and a class; JSON knows no NaN or Infinity",
            found=rows,
            hint="detections may be .csv or a folder of YOLO too",
        )
    if isinstance(rows, list):
        used = {row.category_id for row in rows if isinstance(row.category_id, int)}
        references = ((row.image_id, row.file_name) for row in rows)
        columns, from_zero = _numbered(used, references, _columns(rows, truth, located=located), truth, truth_path)
        return _Results(columns, lambda: _from_zero(json_rows(data, dict), from_zero), texts=_texts(rows))
    columns = _columns(rows.annotations, truth, located=located)
    return _Results(columns, lambda: msgspec.json.decode(data)["annotations"], True, _texts(rows.annotations))


def _numbered(
    used: set[int], photos: Iterable[tuple[Any, Any]], columns: Columns, truth: Objects, truth_path: Path
) -> tuple[Columns, dict[Any, int]]:
    """Return columns with classes numbered from 0, and the class of each category id that Ultralytics wrote."""
    if not (yaml_path := yolo_file(truth_path)):
        return columns, {}
    votes, position_of = class_votes(columns, truth), truth.category_position

    def fit(position: Mapping[int, int]) -> int:
        return sum(votes[old][position_of.get(new, -1)] for old, new in position.items() if old in votes)

    names = yolo_names(InputFile(yaml_path).data, str(yaml_path))
    from_zero: dict[Any, int] = dict(numbering_of(used, photos, names, fit)[0])
    classes = columns.classes.tolist() if isinstance(columns.classes, np.ndarray) else columns.classes
    return replace(columns, classes=[from_zero.get(class_id, class_id) for class_id in classes]), from_zero


def _from_zero(records: list[dict[str, Any]], position: dict[int, int]) -> list[dict[str, Any]]:
    """Return records of Ultralytics with the category ids of data.yaml, without the ``file_name`` of photos."""
    if not position:
        return records
    return [
        {key: position.get(value, value) if key == "category_id" else value for key, value in record.items()
         if key != "file_name"}
        for record in records
    ]  # fmt: skip


def _texts(rows: Sequence[Record]) -> tuple[int, int]:
    boxes = sum(any(isinstance(value, str) for value in row.bbox or ()) for row in rows)
    return boxes, sum(isinstance(row.score, str) for row in rows)


def _records(columns: Columns) -> list[dict[str, Any]]:
    rows = zip(columns.images, columns.classes, columns.boxes.tolist(), columns.scores.tolist(), strict=True)
    return [
        {"image_id": image, "category" if isinstance(label, str) else "category_id": label, "bbox": box, "score": score}
        for image, label, box, score in rows
    ]


def _columns(rows: Sequence[Record], truth: Objects, *, located: bool) -> Columns:
    lookup = unique(truth.names, truth.categories)
    boxes = [row.bbox if row.bbox is not None and len(row.bbox) == 4 else _NO_BOX for row in rows]
    names = [row.file_name for row in rows]
    ids = [_id(row.image_id) for row in rows]
    images, references = _images(ids, names if any(names) else None, truth, located=located)
    return Columns(
        images,
        [lookup.get(row.category, row.category) if row.category_id is None else _id(row.category_id) for row in rows],
        np.array([[_float(value) for value in box] for box in boxes], np.float64).reshape(-1, 4),
        np.array([_float(row.score) for row in rows], np.float64),
        references,
    )


def _selected(records: Records, rows: Int64s, position: Int32s, truth: Objects) -> Columns:
    """Return the selected checked records as columns; images with a position get the ids of the truth."""
    classes: Any = records.category_ids
    if records.categories or not isinstance(classes, np.ndarray):
        lookup = unique(truth.names, truth.categories)
        names = records.categories or [None] * len(records)
        class_of_row = ((names[row], classes[row]) for row in rows.tolist())
        classes = [lookup.get(name, name) if number is None else number for name, number in class_of_row]
    else:
        classes = classes[rows]
    boxes, scores, position = records.boxes[rows], records.scores[rows], position[rows]
    ids = truth.index.ids
    if isinstance(records.image_ids, np.ndarray) and records.file_names is None and isinstance(ids, np.ndarray):
        numbers = records.image_ids[rows]
        images: Any = np.where(position >= 0, ids[position], numbers) if len(ids) else numbers
        return Columns(images, classes, boxes, scores, numbers)
    every = records.references
    references = [every[row] for row in rows.tolist()]
    pairs = zip(position.tolist(), references, strict=True)
    images = [truth.images[index] if index >= 0 else reference for index, reference in pairs]
    return Columns(images, classes, boxes, scores, references)


def _images(
    ids: Any, names: Sequence[str | None] | None, truth: Objects, *, located: bool
) -> tuple[list[Any], list[Any]]:
    """Return the id of each image in the truth, or its name in the record if missing; and all names in records."""
    ids = ids.tolist() if isinstance(ids, np.ndarray) else ids
    references: Any = names if ids is None else ids
    if names is not None and ids is not None:
        references = [name or number for name, number in zip(names, ids, strict=True)]
    if not located or all(image in truth.image_position for image in dict.fromkeys(references)):
        return references, references
    position = truth.index.resolve(ids, names).position.tolist()
    images = [truth.images[row] if row >= 0 else other for row, other in zip(position, references, strict=True)]
    return images, references


def _id(value: Any) -> Any:
    if isinstance(value, float):
        value = int(value) if value.is_integer() else str(value)
    return str(value) if isinstance(value, int) and abs(value) >= 2**63 else value


def _float(value: Any) -> float:
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


@overload
def inspect(path: Any, *, detections: None = None, image_set: str = "") -> Inspection: ...
@overload
def inspect(path: Any, *, detections: Path, image_set: str = "") -> Diagnosis: ...
@checked
def inspect(
    path: Annotated[Any, Path], *, detections: Annotated[Path | None, "FILE"] = None, image_set: str = ""
) -> Inspection | Diagnosis:
    """Return the contents of annotations; with detections, their mistakes: why a score is near zero.

    Parameters
    ----------
    path : Path, str, mapping, DataFrame, FiftyOne view, or Source
        What `evaluate`, `init` and `build` take: COCO JSON, which may be broken in ways that every other command
        refuses (repeated ids, boxes without size); a root of COCO, Roboflow, VOC or YOLO; rows of objects, class
        folders, a table; the layouts of Open Images, CUB-200, MTSD and ImageNet; or annotations in memory (see
        `curation.open_source`)
    detections : Path or str, optional
        COCO results in any convention of boxes, ids and scores; or a table (.csv), YOLO's label files or VOC results
    image_set : str
        The part of a root with several parts; by default its test part, else its validation part.

    Returns
    -------
    Inspection or Diagnosis
        See `curation.extensions.diagnosis.inspection.Inspection`, and `Diagnosis` for detections.

    Raises
    ------
    MissingFileError
        A file does not exist.
    AnnotationFormatError, PredictionError
        A file contains neither truth nor detections.

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
    if isinstance(path, Mapping):
        return _inspect_dictionary(path, detections)
    if isinstance(path, str):
        path = Path(path)
    if detections is not None:
        return diagnose(path, detections, image_set)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        inspection = _inspected(path, image_set)
    for warning in raised:
        warn_caller(str(warning.message))
    return replace(inspection, warnings=tuple(str(warning.message) for warning in raised))


def _inspected(path: Any, image_set: str) -> Inspection:
    root = path
    if isinstance(path, Path):
        path = annotation_file(path, image_set)
        is_other = yolo_file(path) or native_dataset(path)
        if path.is_dir() and not is_other and (folders := class_folders(path)):
            return inspect_class_folders(path, folders, image_set, (_WITHOUT_BOXES,))
    parts = offered_parts(root) if isinstance(root, Path) else ()
    name = str(path) if isinstance(path, Path) else type(path).__name__
    source = None
    try:
        source = opened(path, image_set)
        notes = part_note(source.part if path is root else image_set or usual_part(parts), parts)
        if source.objects is None:
            return inspect_source(name, source, notes=(*notes, _WITHOUT_BOXES))
        read = read_truth(path if isinstance(path, Path) else source, image_set, source)
    except CurationError as error:
        if source is None and not (isinstance(path, Path) and path.is_file()):
            raise
        refused = error
    else:
        objects = read.objects
        sizes = objects.sizes[objects.image]
        file = read.with_layout(layout_mistake(fitting_forms(objects.boxes, sizes), objects.boxes, sizes))
        return inspect_source(name, source, file.findings, (*notes, *file.notes))
    data, annotated = _decoded(path) if isinstance(path, Path) else (b"", "in memory")
    if not isinstance(annotated, AnnotationFile):
        if source is None:
            if "curation inspect" in str(refused.hint):
                # The reader advises this command; report the error of this command instead.
                _decoded_truth(path)
            raise refused
        return inspect_source(name, source, [refusal(refused, "truth")], notes)
    refuse_repeated_keys(data, str(path), AnnotationFormatError)
    objects = objects_of(annotated)
    sizes = objects.sizes[objects.image]
    layout = layout_mistake(fitting_forms(objects.boxes, sizes), objects.boxes, sizes)
    broken = TruthFile(path, data, annotated, layout)
    inspection = inspect_annotations(path, InputFile(path).sha256, annotated)
    return replace(inspection, findings=broken.findings or (refusal(refused, "truth"),), notes=broken.notes)


def annotation_file(path: Path, image_set: str) -> Path:
    """Return the annotation file of a part in a root with COCO's or Roboflow's layout; another path is unchanged."""
    if not path.is_dir():
        return path
    return coco_file(path, image_set or usual_part(offered_parts(path))) or path


def _inspect_dictionary(annotations: Mapping[str, Any], detections: Path | None) -> Inspection | Diagnosis:
    """Return the contents of a COCO dictionary, with commands that read it from a file."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "FILE.json"
        file.write_bytes(encoded_json(annotations))
        report: Inspection | Diagnosis = inspect(file) if detections is None else diagnose(file, detections)

    def without_folder(text: str) -> str:
        return text.replace(f"{folder}{os.sep}", "")

    findings = tuple(
        finding._replace(command=without_folder(finding.command), evidence=without_folder(finding.evidence))
        for finding in report.findings
    )
    needs_file = any("FILE.json" in finding.command for finding in findings)
    notes = (*report.notes, *(("The commands read FILE.json: write the dictionary to it as JSON.",) * needs_file))
    if isinstance(report, Diagnosis):
        return replace(report, findings=findings, notes=notes, command=without_folder(report.command))
    return replace(report, file=type(annotations).__name__, findings=findings, notes=notes)


_WITHOUT_BOXES = "It holds no boxes: `curation init` and `build` read it, and detections cannot be scored on it."


def diagnose(truth: Path, detections: Path, image_set: str = "") -> Diagnosis:
    """Return the mistakes of a file of detections, compared with a truth.

    Parameters
    ----------
    truth : Path
        COCO JSON, or another form that `evaluate` reads.
    detections : Path
        COCO results in any convention: boxes, ids and scores are not checked. Or another form that `evaluate` reads: a
        table or YOLO's label files.
    image_set : str
        The part of a root with several parts.

    Raises
    ------
    MissingFileError, AnnotationFormatError, PredictionError
        A file is missing, or holds neither truth nor detections.
    """
    root, truth = truth, annotation_file(truth, image_set)
    if read := _readable_truth(truth, image_set):
        objects, truth_with = read.objects, read.with_layout
    else:
        data, annotated = _decoded(truth)
        if (
            isinstance(annotated, list)
            and not detections.is_dir()
            and isinstance(other := _decoded(detections)[1], AnnotationFile)
        ):
            swapped = Finding(
                "Truth and detections are exchanged",
                f"{truth} is a list of results, {detections} has {len(other.images):,} images with annotations",
                None,
                command=_command(detections, truth),
            )
            diagnosis = diagnose(detections, truth)
            return replace(diagnosis, findings=(swapped, *diagnosis.findings))
        data, coco = _decoded_truth(truth)
        objects, truth_with = objects_of(coco), partial(TruthFile, truth, data, coco)
    results = _detections(detections, objects, truth)
    mistakes, counts = explain(results.columns, objects)
    file: TruthFile | ReadTruth = truth_with(next((finding for finding in mistakes if finding.side == "truth"), None))
    findings = [*_of_records(results), *(finding for finding in mistakes if finding.side != "truth")]
    findings += _texts_of_numbers(results, findings)
    mends = _mends_of(findings)
    if file.part is not None and all(finding.mend for finding in findings):
        records = None
        if mends:
            after = objects
            if isinstance(file, TruthFile):
                after = objects_of(msgspec.json.decode(file.data, type=AnnotationFile))
            records = msgspec.json.encode(_mended(results, mends, after))
        if error := read_detection_records(records, detections, file.part, results.read):
            findings.append(refusal(error, "detections"))
    command = partial(_command, file.path, detections, image_set=image_set if truth == root else "")
    findings = [finding._replace(command=command(finding.mend)) if finding.mend else finding for finding in findings]
    steps = [*file.commands, *([command(*mends)] if mends else [])]
    at_once = " && ".join(steps) if len(steps) > 1 or len(mends) > 1 or len(file.mends) > 1 else ""
    parts = offered_parts(root)
    part = read.source.part if read and truth == root else image_set or usual_part(parts)
    notes = [*file.notes, *part_note(part, parts)]
    return Diagnosis(str(detections), counts, (*file.findings, *findings), at_once, tuple(notes))


def _readable_truth(truth: Path, image_set: str) -> ReadTruth | None:
    """Return a truth as `curation evaluate` reads it, or None for a file that may be COCO JSON with mistakes."""
    try:
        return read_truth(truth, image_set)
    except CurationError:
        if truth.is_dir() or yolo_file(truth):
            raise
        return None


def _command(truth: Path, detections: Path, *mends: str, image_set: str = "") -> str:
    words = [word for mend in mends for word in ("--mend", mend)] + ["--out", new_name("mended", detections)] * bool(
        mends
    )
    part = ["--image-set", image_set] if image_set else []
    return shlex.join(["curation", "inspect", str(truth), *part, "--detections", str(detections), *words])


def _of_records(results: _Results) -> list[Finding]:
    """Return the finding for annotations that are passed as detections."""
    if not results.annotated:
        return []
    share = float(np.isfinite(results.columns.scores).mean()) if len(results.columns) else 0.0
    source = "give the detector's results" if share < 1 else "write its list `annotations` alone"
    advice = f"{source}: a JSON list of image_id, category_id, bbox, score"
    mistake = "The detections are a file of annotations, not of results"
    return [Finding(mistake, "records with a score", share, command=advice)]


def _texts_of_numbers(results: _Results, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings for numbers stored as texts, which another mend of the same field would convert."""
    keys = {finding.mend.partition("=")[0] for finding in findings}
    for n, key, value in zip(results.texts, ("boxes", "scores"), ("xywh", "number"), strict=True):
        if n and key not in keys:
            share = 1 - n / len(results.columns)
            yield Finding(f"{key.capitalize()} are strings", f"{key} that are numbers", share, 1.0, f"{key}={value}")


def mended(truth: Path, detections: Path, mends: Sequence[str], image_set: str = "") -> list[dict[str, Any]]:
    """Return the records of a results file after mends, with all fields that these do not change.

    The result is always JSON: records from other forms get the fields of COCO results.

    Parameters
    ----------
    mends : sequence of str
        ``KEY=VALUE``, see `curation.extensions.diagnosis.mends.VALUES`.

    Raises
    ------
    MissingFileError, AnnotationFormatError, PredictionError, UsageError
        See `diagnose`; or a mend does not exist.
    """
    truth = annotation_file(truth, image_set)
    read = _readable_truth(truth, image_set)
    objects = read.objects if read else objects_of(_decoded_truth(truth)[1])
    results = _detections(detections, objects, truth, located="image_ids" not in parse(mends))
    return _mended(results, mends, objects)


def _mended(results: _Results, mends: Sequence[str], objects: Objects) -> list[dict[str, Any]]:
    chosen = parse(mends)
    after, rows = apply_mends(results.columns, chosen, objects)
    return mend_records(results.records(), results.columns, after, rows, chosen)


def mended_annotations(path: Path, mends: Sequence[str], image_set: str = "") -> bytes:
    """Return an annotation file after mends, with all else unchanged (see `mended_truth`)."""
    data, _ = _decoded_truth(annotation_file(path, image_set))
    return mended_truth(data, mends)


def doubt(records: Records, position: Int32s, label: Int32s, truth: GroundTruth) -> str:
    """Return a warning if few detections lie on objects or many more would after a mend; else ``""``.

    Parameters
    ----------
    records : Records
        Records in file order.
    position, label : ndarray of int32, shape (n,)
        Positions of image and class in the truth; -1 if the truth lacks it.
    """
    if not len(records) or not (truth.label >= 0).any():
        return "" if len(records) else _NO_DETECTIONS
    objects, file_positions = _objects_of_truth(truth), truth.file_positions
    step = math.ceil(len(records) / _SEEN)
    rows = np.flatnonzero((position >= 0) & (position % step == 0))
    rows = rows[np.lexsort((-records.scores[rows], position[rows]))]
    begin = np.flatnonzero(np.diff(position[rows], prepend=-1))
    rank = np.arange(len(rows)) - np.repeat(begin, np.diff(begin, append=len(rows)))
    best_of_image = rows[rank < objects.count[file_positions[position[rows]]]]
    iou, partner = best_overlaps(records.boxes[best_of_image], file_positions[position[best_of_image]], objects)
    on = iou >= 0.5
    if records.file_names is None:
        ids: Any = records.image_ids[::step] if records.image_ids is not None else []
        ids = ids.tolist() if isinstance(ids, np.ndarray) else ids
        sample = Columns(ids, [], records.boxes[::step], records.scores[::step])
        if finding := other_images(sample, objects):
            return f"{finding.what} ({finding.shown}); {_ASK}"
    predicted, expected = label[best_of_image][on], objects.category[partner[on]]
    # Label -1 is that of detections called unknown.
    right = (predicted == expected)[(expected < len(truth.classes)) & (predicted != -1)]
    if not len(on) or (on.mean() >= _SOUND and (not len(right) or right.mean() >= _SOUND)):
        return ""
    in_file = np.where(position >= 0, file_positions[position], -1).astype(np.int32)
    for finding in explain(_selected(records, np.sort(rows), in_file, objects), objects)[0]:
        if finding.side == "truth" and fitting_forms(objects.boxes, objects.sizes[objects.image]):
            # The warning about the truth reports this mistake.
            return ""
        if finding.evidence == RIGHT_CLASS or finding.mend.partition("=")[0] in ("boxes", "image_ids"):
            return f"{finding.what} ({finding.shown}); {_ASK}"
    if len(on) >= _FEWEST and on.mean() < _NEXT_TO_NONE:
        return f"{100 * on.mean():.1f} % of the best detections lie on an object (IoU >= 0.5); {_ASK}"
    if len(right) >= _FEW_ON_OBJECTS and right.mean() < _NEXT_TO_NONE:
        return f"{100 * right.mean():.1f} % of {len(right)} {RIGHT_CLASS}; {_ASK}"
    return ""


def truth_doubt(
    boxes: Floats,
    sizes: Floats,
    *,
    crowd: Bools,
    files: Sequence[str],
    ids: Sequence[str],
    image: Int32s,
    is_json: bool,
) -> str:
    """Return a warning about mistakes in a truth; else ``""``.

    Parameters
    ----------
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels.
    sizes : ndarray of float64, shape (n, 2)
        Width and height of each image, NaN where unstated.
    crowd : ndarray of bool, shape (m,)
    files, ids : sequence of str, length n
        File name, ``""`` where unstated, and id of each image.
    image : ndarray of int32, shape (m,)
        Position of each box's image.
    is_json : bool
        Whether the truth is one file of COCO JSON, which ``curation inspect`` can correct.
    """
    of_box = sizes[image]
    layout = layout_mistake(fitting_forms(boxes, of_box), boxes, of_box)
    others = other_mistakes(
        boxes, of_box, crowd=crowd, files=files, ids=ids, image_at=lambda row: ids[image[row]], has_layout=bool(layout)
    )
    findings = [*([layout] if layout else []), *others]
    texts = [f"{finding.what} ({finding.shown})" for finding in findings]
    if is_json and any(finding.mend for finding in findings):
        texts.append("curation inspect TRUTH names the mend")
    elif is_json and layout:
        texts.append(layout.command)
    return "; ".join(texts)


def stray_hint(ids: Sequence[Id], truth: GroundTruth) -> str:
    """Return a hint if image ids that the truth lacks are off by a constant, or are names; else ``""``."""
    objects, distinct = _objects_of_truth(truth), [*dict.fromkeys(ids)]
    for name in image_mends(distinct, objects)[1:]:
        known = image_map(name, objects)
        if all(known(image) in objects.image_position for image in distinct):
            return f"{ids_are(name)}? {_ASK}"
    return ""


def _objects_of_truth(truth: GroundTruth) -> Objects:
    """Return the objects of a ground truth without crowds; unknown objects get an additional last class ``unknown``."""
    is_object = ~truth.crowd
    known = [
        name if number is None else number for name, number in zip(truth.classes, truth.class_numbers, strict=True)
    ]
    index, file_positions = truth.image_index, truth.file_positions
    sizes = np.full((len(index), 2), np.nan)
    sizes[file_positions] = truth.stated_sizes
    image = file_positions[truth.image[is_object]]
    order = np.argsort(image, kind="stable")
    return Objects(
        index.ids.tolist() if isinstance(index.ids, np.ndarray) else index.ids,
        index.names,
        sizes,
        [*known, truth.unknown_numbers[-1] if truth.unknown_numbers else -1],
        [*truth.classes, "unknown"],
        image[order],
        np.where(truth.label[is_object] < 0, len(known), truth.label[is_object]).astype(np.int64)[order],
        truth.boxes[is_object][order],
        index.listed,
        index.namespaced,
    )
