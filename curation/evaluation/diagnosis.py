"""Why a score is near zero: files of detections held against their truth, with the mend of each mistake found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, overload

import msgspec
import numpy as np

from curation.arguments import checked
from curation.errors import PredictionError, UsageError
from curation.evaluation.mends import Columns, Id, Objects, apply_mends, best_overlaps, image_map, mend_records, parse
from curation.evaluation.mistakes import Finding, explain, ids_are, image_mends
from curation.evaluation.problem import GroundTruth, Int32s
from curation.evaluation.result_records import Records
from curation.input_files import InputFile
from curation.short_repr import short_repr
from curation.sources.inspection import Inspection, inspect_annotations
from curation.text_table import Table, table_lines

_SEEN = 5_000
"""Detections that an evaluation looks at before it doubts them."""
_SOUND, _NEXT_TO_NONE = 0.25, 0.02
_FEWEST = 20
_ASK = "curation inspect TRUTH --detections FILE looks for a mistake"


class _Image(msgspec.Struct, gc=False):
    id: int | str
    file_name: str = ""
    width: float | None = None
    height: float | None = None


class _Class(msgspec.Struct, gc=False):
    id: int | str
    name: str = ""


class _Object(msgspec.Struct, gc=False):
    image_id: int | str
    category_id: int | str
    bbox: list[float | None] | None = None


class _Truth(msgspec.Struct):
    images: list[_Image]
    categories: list[_Class] = []
    annotations: list[_Object] = []


class _Row(msgspec.Struct, gc=False):
    image_id: int | str | float = ""
    category_id: int | str | float | None = None
    category: str | None = None
    bbox: list[float | str | None] | None = None
    score: float | str | None = None


class _Annotated(msgspec.Struct):
    annotations: list[_Row]
    images: list[_Image]


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
        return tuple(one.mend for one in self.findings if one.mend)

    def data(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {"file": self.file, **self.counts, "findings": [one._asdict() for one in self.findings]}

    def lines(self) -> list[str]:
        """Return the findings with evidence and mend, as text."""
        held = [(name.replace("_", " "), f"{n:,}") for name, n in self.counts.items()]
        lines = table_lines(Table(self.file, ("", ""), tuple(held)))
        if not self.findings:
            return [*lines, "no mistake found: under no other convention would more of these boxes lie on objects"]
        for number, one in enumerate(self.findings, 1):
            lines += [f"{number}. {one.what}", f"   {one.shown}", f"   {one.command}"]
        return [*lines, "all at once:", f"   {self.command}"] if self.command else lines


def read_objects(path: Path) -> Objects:
    """Read the images, classes and boxes of COCO JSON that other commands may refuse.

    Raises
    ------
    MissingFileError
        There is no such file.
    UsageError
        It is not COCO JSON.
    """
    data = InputFile(path, kind="ground truth").data
    try:
        held = msgspec.json.decode(data, type=_Truth)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UsageError(
            "Detections can be explained only beside COCO JSON",
            where=str(path),
            expected="images, annotations and categories",
            found=str(error)[:200],
            hint="curation export writes any truth as COCO JSON",
        ) from None
    return _objects(held)


def _objects(held: _Truth) -> Objects:
    place = {one.id: row for row, one in reversed([*enumerate(held.images)])}
    classes = {one.id: row for row, one in enumerate(held.categories)}
    kept = [
        (place[one.image_id], classes[one.category_id], one.bbox)
        for one in held.annotations
        if one.image_id in place and one.category_id in classes and _is_box(one.bbox)
    ]
    kept.sort(key=lambda one: one[0])
    sizes = [(one.width or math.nan, one.height or math.nan) for one in held.images]
    return Objects(
        [one.id for one in held.images],
        [one.file_name for one in held.images],
        np.array(sizes, np.float64).reshape(-1, 2),
        [one.id for one in held.categories],
        [one.name for one in held.categories],
        np.array([one for one, _, _ in kept], np.int64),
        np.array([one for _, one, _ in kept], np.int64),
        np.array([one for _, _, one in kept], np.float64).reshape(-1, 4),
    )


def _is_box(box: Sequence[Any] | None) -> bool:
    return box is not None and len(box) == 4 and all(isinstance(one, int | float) for one in box)


def _columns(rows: Sequence[_Row]) -> Columns:
    def whole(one: Any) -> Any:
        return (
            int(one) if isinstance(one, float) and one.is_integer() else one if isinstance(one, int | str) else str(one)
        )

    nothing = [math.nan] * 4
    return Columns(
        [whole(one.image_id) for one in rows],
        [one.category if one.category_id is None else whole(one.category_id) for one in rows],
        np.array(
            [[_float(v) for v in one.bbox or nothing] if len(one.bbox or nothing) == 4 else nothing for one in rows]
        )
        .astype(np.float64)
        .reshape(-1, 4),
        np.array([_float(one.score) for one in rows], np.float64),
    )


def _float(value: Any) -> float:
    try:
        return math.nan if value is None else float(value)
    except ValueError:
        return math.nan


def _decoded(path: Path, kind: Any) -> Any:
    data = InputFile(path, kind="detections file").data
    try:
        if data.lstrip()[:1] == b"{" and kind != _Annotated:
            return msgspec.json.decode(b"[" + b",".join(data.split(b"\n")).rstrip(b",") + b"]", type=list[kind])
        return msgspec.json.decode(data, type=kind if kind is _Annotated else list[kind])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise PredictionError(
            "The detections cannot be inspected",
            where=str(path),
            expected="COCO results: a JSON list (or one a line) of records with image_id, bbox and a class",
            found=str(error)[:200],
        ) from None


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
        COCO results in any convention of boxes, ids and scores

    Returns
    -------
    Inspection or Diagnosis
        See `curation.sources.inspection.Inspection`, and `Diagnosis` for detections.

    Raises
    ------
    MissingFileError
        A file is not there.
    AnnotationFormatError, UsageError, PredictionError
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
        COCO results in any convention: boxes, ids and scores are not checked.

    Raises
    ------
    MissingFileError, UsageError, PredictionError
        A file is not there, or holds neither truth nor detections.
    """
    command = f"curation inspect {truth} --detections {detections}"
    if _is_list(truth) and not _is_list(detections):
        held = _decoded(detections, _Annotated)
        found = diagnose(detections, truth)
        swapped = Finding(
            "Truth and detections are exchanged",
            f"{truth} is a list of results, {detections} has {len(held.images):,} images with annotations",
            None,
            None,
            "",
            f"curation inspect {detections} --detections {truth}",
        )
        return replace(found, findings=(swapped, *found.findings))
    objects = read_objects(truth)
    findings: list[Finding] = []
    if _is_list(detections) or _is_lines(detections):
        columns = _columns(_decoded(detections, _Row))
    else:
        columns = _columns(_decoded(detections, _Annotated).annotations)
        findings.append(
            Finding(
                "The detections are a file of annotations, not of results",
                "records with a score",
                float(np.isfinite(columns.scores).mean()) if len(columns) else 0.0,
                None,
                "",
                "give the detector's results: a JSON list of image_id, category_id, bbox, score",
            )
        )
    mistakes, counts = explain(columns, objects)
    findings += [one._replace(command=_command(command, one.mend)) if one.mend else one for one in mistakes]
    mends = " --mend ".join(one.mend for one in mistakes if one.mend)
    return Diagnosis(str(detections), counts, tuple(findings), _command(command, mends) if " " in mends else "")


def _is_list(path: Path) -> bool:
    return InputFile(path, kind="file").data.lstrip()[:1] == b"["


def _is_lines(path: Path) -> bool:
    first = InputFile(path, kind="file").data.lstrip().partition(b"\n")[0].rstrip()
    return first[:1] == b"{" and first[-1:] == b"}" and b'"bbox"' in first and b'"annotations"' not in first


def _command(command: str, mend: str) -> str:
    return f"{command} --mend {mend} --out mended.json"


def mended(truth: Path, detections: Path, mends: Sequence[str]) -> list[dict[str, Any]]:
    """Return the records of a results file after mends, with all fields that these do not change.

    Parameters
    ----------
    mends : sequence of str
        ``KEY=VALUE``, see `curation.evaluation.mends.VALUES`.

    Raises
    ------
    MissingFileError, UsageError, PredictionError
        As `diagnose`; or there is no such mend.
    """
    asked = parse(mends)
    objects, records = read_objects(truth), _decoded(detections, dict[str, Any])
    before = _columns(_decoded(detections, _Row))
    after, rows = apply_mends(before, asked, objects)
    return mend_records(records, before, after, rows)


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
        return ""
    objects = objects_of(truth)
    step = math.ceil(len(records) / _SEEN)
    rows = np.flatnonzero((position >= 0) & (position % step == 0))
    rows = rows[np.lexsort((-records.scores[rows], position[rows]))]
    begin = np.flatnonzero(np.diff(position[rows], prepend=-1))
    rank = np.arange(len(rows)) - np.repeat(begin, np.diff(begin, append=len(rows)))
    best_of_image = rows[rank < objects.count[position[rows]]]
    iou, partner = best_overlaps(records.boxes[best_of_image], position[best_of_image].astype(np.int64), objects)
    on = iou >= 0.5
    found, wanted = label[best_of_image][on], objects.category[partner[on]]
    right = (found == wanted)[wanted < len(truth.classes)]
    if not len(on) or (on.mean() >= _SOUND and (not len(right) or right.mean() >= _SOUND)):
        return ""
    ids, numbers, names = records.image_ids, records.category_ids, records.categories
    rows = np.sort(rows)
    some = Columns(
        [_plain(ids[row]) for row in rows.tolist()],
        [names[row] if names and names[row] is not None else _plain(numbers[row]) for row in rows.tolist()],
        records.boxes[rows],
        records.scores[rows],
    )
    mistakes = [
        one for one in explain(some, objects)[0] if one.mend.partition("=")[0] in ("boxes", "image_ids", "category_ids")
    ]
    if mistakes:
        return f"{mistakes[0].what} ({mistakes[0].shown}); {_ASK}"
    if len(on) >= _FEWEST and on.mean() < _NEXT_TO_NONE:
        return f"{100 * on.mean():.1f} % of the best detections lie on an object (IoU >= 0.5); {_ASK}"
    return ""


def stray_hint(ids: Sequence[Id], truth: GroundTruth) -> str:
    """Return what image ids may be that a truth lacks: off by a constant, or names; else ``""``."""
    objects, distinct = objects_of(truth), [*dict.fromkeys(ids)]
    some = Columns(distinct, [], np.empty((0, 4)), np.empty(0))
    for name in image_mends(some, objects)[1:]:
        known = image_map(name, objects)
        if all(known(one) in objects.place for one in distinct):
            return f"{ids_are(name)}? {_ASK}"
    stems = {PurePosixPath(str(one)).stem for one in distinct}
    return f"{ids_are('file_name')}? {_ASK}" if stems <= {*truth.image_stems} else ""


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def objects_of(truth: GroundTruth) -> Objects:
    """Return the objects of a truth that is read, crowds left out; an unknown object is of a last class, unknown."""
    kept = ~truth.crowd
    known = [
        name if number is None else number for name, number in zip(truth.classes, truth.class_numbers, strict=True)
    ]
    return Objects(
        truth.image_numbers.tolist() if truth.image_names is None else truth.image_names,
        truth.image_stems or [""] * truth.n_images,
        np.full((truth.n_images, 2), math.nan),
        [*known, truth.unknown_numbers[0] if truth.unknown_numbers else -1],
        [*truth.classes, "unknown"],
        truth.image[kept].astype(np.int64),
        np.where(truth.label[kept] < 0, len(known), truth.label[kept]).astype(np.int64),
        truth.boxes[kept],
    )
