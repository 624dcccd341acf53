"""Files of out-of-distribution scores: detections of an OOD split, and scores of the ID test set.

Detections are read as records, then their logits, then both are compared with the truth. ID scores are JSON, NumPy or
CSV, or a detections file of the ID test set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from curation.core.errors import PredictionError, UsageError
from curation.core.json_text import is_json_lines, json_rows, refuse_repeated_keys
from curation.core.reading import InputFile
from curation.core.tables import cell_text
from curation.evaluation.detection_files import Int64, decoding
from curation.evaluation.problem import LARGEST_SCORE, Bools, Floats, GroundTruth, Int32s
from curation.evaluation.readers import Policy, RawColumns, check_values, locate, report, stray_error
from curation.evaluation.score_files import IMAGES, LABELS, PREDICTIONS, open_columns
from curation.evaluation.separability import energy, generalized_entropy, max_softmax, softmax

UNNAMED = "ood_score"
"""Name of a score without a name in its file."""
_SHOWN = 300
_MOST_METHODS = 64
_Box = tuple[float, float, float, float]
_FORM = (
    '[{"image_id", "bbox": [x, y, w, h] or "bbox_xyxy", "score" or "logits", "ood_score" or "scores": {NAME: number}}],'
    ' or one record a line, or {"images": {IMAGE_ID: [records]}}; JSON knows no NaN or Infinity'
)


class _Record(msgspec.Struct, gc=False):
    """A detection of a file; fields that are not declared are ignored."""

    image_id: Int64 | str = ""
    file_name: str | None = None
    bbox: _Box | None = None
    bbox_xyxy: _Box | None = None
    score: float | None = None
    category_id: Int64 | None = None
    ood_score: float | None = None
    scores: dict[str, float] | None = None
    logits: list[float] | None = None


class _ByImage(msgspec.Struct):
    images: dict[str, list[_Record]]


def reference_of(record: _Record) -> int | str:
    """Return the name or id of a record's image."""
    return record.image_id if record.image_id != "" else record.file_name or ""


class RecordFile(NamedTuple):
    """The records of a file before they are compared with a ground truth.

    Attributes
    ----------
    records : list of Record
        In file order.
    name, sha256 : str
    where : str
        Name of the file in messages.
    """

    records: list[_Record]
    name: str
    sha256: str
    where: str

    def at(self, row: int) -> str:
        """Return the name of a record in messages; rows are counted over the whole file, from 0."""
        return f"{self.where}: record {row} (image {reference_of(self.records[row])!s:.80})"


def _require_usable(values: Floats, column: str, where: Callable[[int], str]) -> None:
    """Raise `PredictionError` for a row with a number that is not finite or too large; `where` names a row."""
    usable = np.abs(values) <= LARGEST_SCORE
    if not usable.all():
        row = int(np.argmin(usable.reshape(len(values), -1).all(axis=1)))
        raise PredictionError(
            f"{column[:_SHOWN]} is not finite, or is too large",
            where=where(row),
            expected=f"finite numbers of at most {LARGEST_SCORE:g}",
            found=str(values[row].tolist())[:80],
        )


def read_records(path: Path, input_file: InputFile | None = None) -> RecordFile:
    """Return the records of a detections file; `input_file` is the file if it is already in memory.

    See `read_ood_detections` for the form and the errors.
    """
    if input_file is None and path.is_dir():
        raise PredictionError(
            "Detections with OOD scores must be one file", where=str(path), expected=_FORM, found="a folder of files"
        )
    input_file = input_file or InputFile(path, kind="detections file")
    data = input_file.data
    with decoding(input_file, _FORM):
        if data.lstrip()[:1] == b"{" and not is_json_lines(data):
            records = _of_images(msgspec.json.decode(data, type=_ByImage).images, data, str(path))
        else:
            records = json_rows(data, _Record)
    file = RecordFile(records, path.name, input_file.sha256, str(path))
    unnamed = (row for row, record in enumerate(records) if record.image_id == "" and not record.file_name)
    if (row := next(unnamed, None)) is not None:
        raise PredictionError("A detection names no image", where=file.at(row), expected="image_id or file_name")
    return file


def _of_images(images: Mapping[str, list[_Record]], data: bytes, where: str) -> list[_Record]:
    """Return the records of all images, each with its image's id."""
    # A decoder keeps the last of two equal keys: detections would be lost without a message.
    refuse_repeated_keys(data, where, PredictionError, everywhere=True)
    for image, records in images.items():
        for record in records:
            if record.image_id != "" and image_key(record.image_id) != image_key(image):
                raise PredictionError(
                    "The image_id of a detection disagrees with its key",
                    where=f"{where}: images[{image[:80]!r}]",
                    expected=f"image_id {image[:80]}, or none",
                    found=str(record.image_id)[:80],
                )
            record.image_id = image
    return [record for records in images.values() for record in records]


def image_key(identity: int | str) -> str:
    """Return an image id as a text that is the same for a number and for its digits.

    >>> image_key(139), image_key("000000000139"), image_key("0010e235a0f3bb5c")
    ('139', '139', '0010e235a0f3bb5c')
    """
    text = str(identity)
    return text.lstrip("0") or "0" if text.isascii() and text.isdigit() else text


LONGEST = 100_000
"""Largest number of logits of a detection."""

_EVERY_COLUMN = (
    "{}: the logits have {} columns and the number of ID classes is not stated: every column is taken as a class; "
    "--set id_classes={} if the last one is the background"
)


@dataclass(frozen=True, slots=True)
class ClassReading:
    """How the logits of a file are read.

    Attributes
    ----------
    n_classes : int or None
        ID classes K. Logits of length K + 1 end with a background column, which is never the class of a detection;
        None: every column is a class.
    official_compat : bool
        Whether to follow the official code: class and confidence from all columns; index K, the background, is unknown.
    """

    n_classes: int | None = None
    official_compat: bool = False

    def __post_init__(self) -> None:
        """Raise `UsageError` for ``official_compat`` without the number of classes."""
        if self.official_compat and self.n_classes is None:
            raise UsageError(
                "--set official_compat=yes needs the number of ID classes",
                expected="--set id_classes=K, or --classes FILE: the code's unknown is index K of the logits",
                found="neither",
                hint="K is 20 for VOC and 10 for BDD100k; with a background column, the logits have length K + 1",
            )


class ReadClasses(NamedTuple):
    """Confidence and background verdict of every record.

    Attributes
    ----------
    confidence : ndarray of float64, shape (n,)
    background : ndarray of bool, shape (n,)
    notes : tuple of str
    """

    confidence: Floats
    background: Bools
    notes: tuple[str, ...] = ()


def read_classes(file: RecordFile, logits: Floats | None, reading: ClassReading) -> ReadClasses:
    """Return the confidence of every record: its ``score``, or the softmax of its class, from logits.

    With ``official_compat``, confidence always comes from logits.

    Parameters
    ----------
    logits : ndarray or None
        See `logits_of`.

    Raises
    ------
    PredictionError
        A record has neither score nor logits, or the length of the logits does not fit the number of classes.
    UsageError
        ``official_compat`` without logits.
    """
    scores = [record.score for record in file.records]
    n = len(scores)
    if logits is None:
        if reading.official_compat and n:
            raise UsageError(
                "--set official_compat=yes needs the logits of every detection",
                where=file.where,
                hint="leave out --set official_compat=yes: the background column comes from logits",
            )
        if None in scores:
            raise PredictionError(
                "A detection has no confidence",
                where=file.at(scores.index(None)),
                expected='"score", or "logits", whose highest softmax is the confidence',
            )
        return ReadClasses(np.array(scores, np.float64), np.zeros(n, bool))
    length, k = logits.shape[1], reading.n_classes
    if k is not None and length not in (k, k + 1):
        raise PredictionError(
            "The logits do not fit the number of ID classes",
            where=file.where,
            expected=f"length {k}, or {k + 1} with a background column at the end",
            found=str(length),
        )
    shares = softmax(logits)
    if reading.official_compat:
        return ReadClasses(shares.max(axis=1), logits.argmax(axis=1) == k)
    notes = () if k is not None else (_EVERY_COLUMN.format(file.name, length, length - 1),)
    confidence = np.where([score is None for score in scores], shares[:, :k].max(axis=1), np.array(scores, np.float64))
    return ReadClasses(confidence, np.zeros(n, bool), notes)


def logits_of(file: RecordFile) -> Floats | None:
    """Return the logits of all records, shape (n, K), or None if the records have none (see `read_classes`)."""
    lengths = [-1 if record.logits is None else len(record.logits) for record in file.records]
    if not lengths or max(lengths) < 0:
        return None
    width = next(length for length in lengths if length >= 0)
    for row, length in enumerate(lengths):
        if length != width or not 0 < length <= LONGEST:
            raise PredictionError(
                "The logits of the detections differ in length" if length != width else "The logits are empty",
                where=file.at(row),
                expected=f"{max(width, 1)} numbers, as in the first record that has any",
                found="none" if length < 0 else str(length),
            )
    logits = np.array([record.logits for record in file.records], np.float64)
    _require_usable(logits, "A logit", file.at)
    return logits


@dataclass(frozen=True, slots=True)
class OodDetections:
    """Detections of an OOD split above the detector's confidence cut.

    They are in the order of images in the ground truth, then of the file: this order decides ties.

    Attributes
    ----------
    image : ndarray of int32, shape (d,)
        Position in the ground truth's images.
    corners : ndarray of float64, shape (d, 4)
        ``x1, y1, x2, y2`` in pixels, origin top left.
    confidence : ndarray of float64, shape (d,)
        The detector's own score, by which unknown detections are ranked; not the OOD score.
    background : ndarray of bool, shape (d,)
        Detections that the official code classifies as unknown whatever their score: the index of the highest logit is
        the number of ID classes. All False unless requested.
    scores : mapping of str to ndarray of float64, shape (d,)
        OOD scores by method; higher is more ID.
    """

    image: Int32s
    corners: Floats
    confidence: Floats
    background: Bools
    scores: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.confidence)


@dataclass(frozen=True, slots=True)
class ReadOodDetections:
    """Detections of a split with notes about their file.

    Attributes
    ----------
    detections : OodDetections
    name, sha256 : str
    rows : int
        Records in the file.
    reported : dict of str to int
        Records left out or changed, with counts.
    image_ids : frozenset of str
        Ids of the images with detections, as `image_key` writes them.
    logits_length : int or None
    notes : tuple of str
    """

    detections: OodDetections
    name: str
    sha256: str
    rows: int
    reported: dict[str, int]
    image_ids: frozenset[str]
    logits_length: int | None
    notes: tuple[str, ...] = ()

    @property
    def file(self) -> dict[str, Any]:
        """Record of this input in a result."""
        return {
            "name": self.name,
            "sha256": self.sha256,
            "rows": self.rows,
            "scores": sorted(self.detections.scores),
            "reported": self.reported,
        }


def read_ood_detections(
    path: Path,
    truth: GroundTruth,
    policy: Policy | None = None,
    *,
    classes: ClassReading | None = None,
    t_star: float | None = None,
) -> ReadOodDetections:
    """Return the detections of a file with their OOD scores.

    Parameters
    ----------
    path : Path
        A JSON list of records, one a line, or ``{"images": {id: [records]}}``. A record has ``image_id``; ``bbox``
        (``x, y, w, h``) or ``bbox_xyxy``; ``score`` (the confidence) or ``logits``, whose highest softmax is then the
        confidence; and ``ood_score`` or ``scores``, one number per method. All records have the same methods. MSP,
        energy and GEN are computed from logits if a file lacks them.
    truth : GroundTruth
        The images of the split; ids may be integers or texts.
    policy : Policy, optional
    classes : ClassReading, optional
        The number of ID classes of the logits, and whether to reproduce the background rule of the official code.
    t_star : float, optional
        Detections of lower confidence are left out and counted.

    Raises
    ------
    MissingFileError
        No such file.
    PredictionError
        The file is malformed, names an image twice or an image that the truth lacks, or has boxes or scores that are
        not finite, logits of unequal length, or records with different methods. The message names the record.
    """
    policy = policy or Policy()
    file = read_records(path)
    logits = logits_of(file)
    read = read_classes(file, logits, classes or ClassReading())
    columns = RawColumns(_boxes(file), read.confidence, file.at)
    negative = check_values(columns, policy)
    scores = method_scores(file, logits)
    names = [record.file_name for record in file.records]
    ids = [record.image_id if record.image_id != "" else None for record in file.records]
    position, is_listed, outside, disagreeing = locate(ids, truth, file.at, names if any(names) else None)
    outside &= is_listed.any()
    if not (usable := is_listed | outside).all() and policy.stray == "error":
        first = file.records[int(np.argmin(usable))]
        raise stray_error(columns, usable, f"image_id {first.file_name or first.image_id!s:.80}", truth)
    n_outside = int(outside.sum())
    stray = int((~is_listed).sum()) - n_outside
    counts = report(stray=stray, outside=n_outside, negative=negative, disagreeing=disagreeing)
    low = np.zeros_like(is_listed) if t_star is None else is_listed & (read.confidence < t_star)
    if low.any():
        counts["left out: detections of confidence below t*"] = int(low.sum())
    retained = np.flatnonzero(is_listed & ~low)
    retained = retained[np.argsort(position[retained], kind="stable")]
    detections = OodDetections(
        position[retained],
        _corners(file, columns.boxes)[retained],
        read.confidence[retained],
        read.background[retained],
        {name: values[retained] for name, values in scores.items()},
    )
    images = frozenset(image_key(reference_of(file.records[row])) for row in retained.tolist())
    length = None if logits is None else logits.shape[1]
    return ReadOodDetections(detections, file.name, file.sha256, len(file.records), counts, images, length, read.notes)


def method_scores(file: RecordFile, logits: Floats | None) -> dict[str, Floats]:
    """Return the OOD scores of all records by method, sorted, then those computed from `logits`.

    Raises
    ------
    PredictionError
        A record lacks a score that another has, or a score is not finite.
    """
    rows = [
        (record.scores or {}) | ({} if record.ood_score is None else {UNNAMED: record.ood_score})
        for record in file.records
    ]
    names = sorted(rows[0]) if rows else []
    if len(names) > _MOST_METHODS:
        raise PredictionError(
            "A detection has too many OOD scores", where=file.at(0), expected=f"at most {_MOST_METHODS} methods",
            found=str(len(names)),
        )  # fmt: skip
    for row, row_scores in enumerate(rows):
        if row_scores.keys() != rows[0].keys():
            raise PredictionError(
                "The detections of a file have different OOD scores",
                where=file.at(row),
                expected=(", ".join(names) or "none, as in the first record")[:_SHOWN],
                found=(", ".join(sorted(row_scores)) or "none")[:_SHOWN],
                hint=f"give every record {UNNAMED}, or scores of the same methods",
            )
    scores = {name: np.fromiter((row[name] for row in rows), np.float64, len(rows)) for name in names}
    for name, values in scores.items():
        _require_usable(values, f"An OOD score {name}", file.at)
    if logits is None:
        return scores
    derived = {"msp": max_softmax, "energy": energy, "gen": generalized_entropy}
    return scores | {name: formula(logits) for name, formula in derived.items() if name not in scores}


def _boxes(file: RecordFile) -> Floats:
    """Return ``x, y, w, h`` of every record, shape (n, 4)."""
    boxes = np.empty((len(file.records), 4))
    for row, record in enumerate(file.records):
        if (record.bbox is None) == (record.bbox_xyxy is None):
            raise PredictionError(
                "A detection has no box" if record.bbox is None else "A detection has two boxes",
                where=file.at(row),
                expected='either "bbox": [x, y, w, h] or "bbox_xyxy": [x1, y1, x2, y2]',
            )
        if record.bbox_xyxy is None:
            boxes[row] = record.bbox
        else:
            x1, y1, x2, y2 = record.bbox_xyxy
            boxes[row] = x1, y1, x2 - x1, y2 - y1
    return boxes


def _corners(file: RecordFile, boxes: Floats) -> Floats:
    """Return ``x1, y1, x2, y2`` of checked boxes; corners of the file keep all their digits."""
    corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
    for row, record in enumerate(file.records):
        if record.bbox_xyxy is not None and (boxes[row, 2:] > 0).all():
            corners[row] = record.bbox_xyxy
    return corners


_FORMS = (
    '{"scores": [numbers]}, {"scores": {METHOD: [numbers]}}, a detections file, a one-dimensional .npy of floats, or a '
    "CSV or .npz with one column or array per method"
)
_UNCUT = "t* is not applied to {}: it has no confidences, and its detections are assumed to be above t*"


class _Lists(msgspec.Struct):
    scores: list[float] | dict[str, list[float]]
    image_ids: list[int | str] | None = None


@dataclass(frozen=True, slots=True)
class IdScores:
    """Scores of the detections on the ID test set, pooled over images.

    Attributes
    ----------
    scores : mapping of str to ndarray of float64, shape (n,)
        By method; higher is more ID.
    images : tuple of str, length n, or None
        The image of each detection in the form of `image_key`; None if the file does not state it.
    name, sha256 : str
    reported : dict of str to int
    logits_length : int or None
    confident : bool
        Whether the file has the confidence of each detection.
    stored : str
        Type of the numbers; text counts as ``float64``.
    notes : tuple of str
    """

    scores: Mapping[str, Floats]
    images: tuple[str, ...] | None
    name: str
    sha256: str
    reported: dict[str, int]
    logits_length: int | None = None
    confident: bool = False
    stored: str = "float64"
    notes: tuple[str, ...] = ()

    @property
    def file(self) -> dict[str, Any]:
        """Record of this input in a result."""
        n = len(next(iter(self.scores.values()), ()))
        return {
            "name": self.name,
            "sha256": self.sha256,
            "rows": n,
            "scores": sorted(self.scores),
            "images_with_detections": None if self.images is None else len(set(self.images)),
            "reported": self.reported,
        }


def read_id_scores(path: Path, *, t_star: float | None = None, classes: ClassReading | None = None) -> IdScores:
    """Return the scores of ID detections.

    Parameters
    ----------
    path : Path
        ``{"scores": [...]}`` or ``{"scores": {method: [...]}}``, with optional ``image_ids``; a detections file; a
        ``.npy`` of shape (n,); or a ``.csv`` or ``.npz`` with one column or array per method, optional ``image_id``;
        labels and predictions are not read.
    t_star : float, optional
        In a detections file, detections of lower confidence are left out and counted.
    classes : ClassReading, optional
        How to read its logits: the same way as those of the OOD file, so that t* means the same.

    Raises
    ------
    MissingFileError
        No such file.
    PredictionError
        The file has another form, its lists have unequal lengths, or a score is not finite.
    """
    file = InputFile(path, kind="file of ID scores")
    if path.suffix.lower() in (".npy", ".npz", ".csv"):
        id_scores = _from_table(file, path)
    else:
        id_scores = _from_json(file, path, t_star, classes or ClassReading())
    for name, values in id_scores.scores.items():
        _require_usable(values, f"An ID score {name}", lambda row: f"{path}: entry {row}")
    return id_scores if t_star is None or id_scores.confident else replace(id_scores, notes=(_UNCUT.format(path.name),))


def _from_table(file: InputFile, path: Path) -> IdScores:
    columns = open_columns(path, (".npy", ".npz", ".csv"))
    texts = [*filter(None, [columns.first(IMAGES)])]
    names = [name for name in columns.names if name not in (*texts, *LABELS, *PREDICTIONS)]
    if not all(names) or not names:
        raise _unreadable(path, f"columns {', '.join(columns.names)}")
    read = columns.read(names, texts)
    images: list[int | str] | None = [cell_text(str(cell)) for cell in read[texts[0]]] if texts else None
    arrays = {UNNAMED if columns.kind == "alone" else name: np.asarray(read[name]) for name in names}
    for name, array in arrays.items():
        if array.ndim != 1 or array.dtype.kind not in "fiu":
            raise _unreadable(path, f"{name} {array.dtype}, shape {array.shape}".strip())
    id_scores = _from_columns({name: array.astype(np.float64) for name, array in arrays.items()}, images, file, path)
    return replace(id_scores, stored=str(next(iter(arrays.values())).dtype))


def _from_columns(
    scores: Mapping[str, Floats], images: list[int | str] | None, file: InputFile, path: Path
) -> IdScores:
    keys = None if images is None else tuple(map(image_key, images))
    lists = (*scores.items(), ("image_ids", keys))
    lengths = {name: len(values) for name, values in lists if values is not None}
    if len(set(lengths.values())) > 1:
        raise PredictionError(
            "The lists of ID scores have unequal lengths",
            where=str(path),
            expected="one entry per detection in each",
            found=", ".join(f"{name}: {n}" for name, n in lengths.items())[:200],
        )
    return IdScores(scores, keys, path.name, file.sha256, {})


def _from_json(input_file: InputFile, path: Path, t_star: float | None, classes: ClassReading) -> IdScores:
    data = input_file.data
    if data.lstrip()[:1] == b"{" and not is_json_lines(data):
        # A decoder keeps the last of two equal keys: scores would be lost without a message.
        refuse_repeated_keys(data, str(path), PredictionError, everywhere=True)
        try:
            lists = msgspec.json.decode(data, type=_Lists)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _unreadable(path, str(error)) from None
        by_name = lists.scores if isinstance(lists.scores, dict) else {UNNAMED: lists.scores}
        columns = {name: np.array(values, np.float64) for name, values in by_name.items()}
        return _from_columns(columns, lists.image_ids, input_file, path)
    file = read_records(path, input_file)
    logits = logits_of(file)
    scores = method_scores(file, logits)
    keys = [image_key(reference_of(record)) for record in file.records]
    retained, reported = np.arange(len(keys)), dict[str, int]()
    confident = logits is not None or all(record.score is not None for record in file.records)
    if t_star is not None and keys and confident:
        # official_compat concerns logits alone.
        confidence = read_classes(file, logits, ClassReading() if logits is None else classes).confidence
        retained = np.flatnonzero(confidence >= t_star)
        if len(retained) < len(keys):
            reported["left out: detections of confidence below t*"] = len(keys) - len(retained)
    return IdScores(
        {name: values[retained] for name, values in scores.items()} or {UNNAMED: np.empty(0)},
        tuple(keys[row] for row in retained.tolist()),
        file.name,
        file.sha256,
        reported,
        None if logits is None else logits.shape[1],
        confident,
    )


def _unreadable(path: Path, problem: str) -> PredictionError:
    return PredictionError(
        "The ID scores cannot be read", where=str(path), expected=_FORMS, found=problem.replace("\n", " ")[:200]
    )
