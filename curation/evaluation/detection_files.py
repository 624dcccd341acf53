"""Files of detections in any form as columns: COCO results, tables, YOLO's label files, VOC results."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from curation.core.canonical import sha256_of_lines
from curation.core.columns import distinct
from curation.core.errors import CurationWarning, MissingFileError, PredictionError
from curation.core.json_text import SMALL, as_integer, json_rows, plain_json, record_pieces
from curation.core.reading import InputFile
from curation.evaluation.nested_detections import is_nested, nested_boxes, nested_files
from curation.evaluation.problem import UNKNOWN, UNKNOWN_NUMBER, Bools, Floats, GroundTruth, Int32s, Int64s
from curation.sources.object_rows import plain_columns
from curation.sources.table import SUFFIXES, read_texts, without_fraction
from curation.sources.yolo import CLASS_NAMES, keypoint_values, label_lines, yolo_file, yolo_names

if TYPE_CHECKING:
    import pandas as pd

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer in a file of records."""

FORM = (
    'a JSON list (or one a line) of {"image_id": integer or text (or "file_name"), "category_id": integer or '
    '"category": name, "bbox": [x, y, w, h], "score": number}; JSON knows no NaN or Infinity'
)
"""Content of a file of COCO results."""
_NAMES_IMAGE = "image_id, file_name, or both"
_OPENING = re.compile(rb'[ \t\r\n]*\[\s*(?=\{\s*("[a-z_]{1,40}"))')
_CLOSING = re.compile(rb"\][ \t\r\n]*\Z")
_TAIL = 1 << 16
STRANGE, DISAGREEING = -2, -3
"""Label of a class that is in no table, and label of a name and an id that disagree."""
_IMAGES = ("image_id", "image", "file_name")
_BOX = ("x", "y", "w", "h")
_SIDES = ("x", "y", "width", "height")
_CORNERS = (
    ("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"), ("x_min", "y_min", "x_max", "y_max"),
    ("left", "top", "right", "bottom"),
)  # fmt: skip
_BOXES = (_BOX, _SIDES, *_CORNERS)
_PREDICTIONS = "prediction_string"
_WORDS = 6
_PARQUET = ".parquet"
_CALLED = {
    "image_id": ("image_id", "imageid", "img_id"),
    "image": ("image",),
    "file_name": ("filename", "image_name", "image_path", "img_path", "filepath", "file_path", "path", "file"),
    "category": ("class_name", "category_name", "labelname", "label_name", "label", "name"),
    "category_id": ("category_id",),
    "class": ("class",),
    "class_id": ("class_id", "classid", "cls", "label_id"),
    "score": ("score", "confidence", "conf", "probability"),
    _PREDICTIONS: ("predictionstring",),
    **{name: (name,) for names in _CORNERS for name in names},
}
"""Names of columns in other tools, in lower case."""
_OPEN_IMAGES = {"ImageID", "LabelName", "XMin", "YMin", "XMax", "YMax"}
"""Columns of Open Images, whose corners are shares of the image."""
_HEADER = (
    "image_id, image or file_name; category_id (a number), or category or class (a name); x, y, w, h, or bbox, in "
    "pixels, or x1, y1, x2, y2; score"
)
_LINE = "class cx cy w h confidence"
_FIELDS = (5, 6)
_ORIENTED, _LEAST_POLYGON = 9, 8
_BEYOND = 0.5
_Line = tuple[InputFile, int, Sequence[float]]
_VOC_FILE = re.compile(r"comp[0-9]+_det_[^_]+_(?P<name>.+)\.txt\Z")
_VOC_LINE = "image score x1 y1 x2 y2"
_LONGEST = (255, 64)
"""Most characters of an image name and of a number, because arrays of texts are as wide as the longest one."""


Form = Literal["records", "table", "yolo", "voc", "nested"]
"""COCO results, a table, YOLO's label files, VOC results, or JSON with a record for each image."""


class DetectionFiles(NamedTuple):
    """Opened files of detections.

    Attributes
    ----------
    path : Path
        The file, or the folder with the files.
    form : Form
    files : dict of str to InputFile
        The file, or the files of the folder: by class in VOC results, else by name.
    """

    path: Path
    form: Form
    files: dict[str, InputFile]

    @property
    def sha256(self) -> str:
        """``sha256:<hex>`` of the bytes of the file; of a folder, of the sorted lines ``<hex>  <name>``."""
        files = list(self.files.values())
        if [file.path for file in files] == [self.path]:
            return files[0].sha256
        return sha256_of_lines(sorted(f"{file.sha256.removeprefix('sha256:')}  {file.name}" for file in files))


def open_detections(path: Path) -> DetectionFiles:
    """Return the files of detections at a path, and their form.

    Parameters
    ----------
    path : Path
        A ``.csv`` or ``.tsv`` file (compressed by gzip or not) with a header: ``image_id``, ``image`` or ``file_name``;
        ``category_id``, a number, or ``category`` or ``class``, a name; ``x``, ``y``, ``w``, ``h``, or ``bbox``, in
        pixels from the top left corner, or ``x1``, ``y1``, ``x2``, ``y2``; ``score``; or the names of these columns in
        supervision, Open Images and Kaggle (``PredictionString`` too); ``.parquet`` alike. Or a folder that has a
        ``data.yaml`` with the names of the classes, or is called or contains ``labels``: a file for each image, named
        after the photo, with lines ``class cx cy w h confidence`` in shares of the image. Any other folder has VOC
        results, a file for each class (``comp4_det_test_CLASS.txt``, which may be given alone) with lines ``image score
        x1 y1 x2 y2`` and 1-based inclusive corners: the box is ``x1 - 1, y1 - 1, x2 - x1 + 1, y2 - y1 + 1``; or a JSON
        file for each image. Any other file has COCO results, or JSON of another tool (see
        `curation.evaluation.nested_detections`).

    Raises
    ------
    MissingFileError
        A file is missing, or a folder has no file of detections.
    PredictionError
        Two files of VOC results are for the same class.
    """
    form, paths = _form_of(path)
    files = {name: InputFile(file, kind="detections file") for name, file in paths.items()}
    return DetectionFiles(path, "nested" if form == "records" and is_nested(files[path.name].data) else form, files)


def _form_of(path: Path) -> tuple[Form, dict[str, Path]]:
    """Return the form of detections at a path, and its files by the names of `DetectionFiles.files`."""
    if not path.is_dir():
        suffix = Path(path.name.lower().removesuffix(".gz")).suffix
        match = _VOC_FILE.match(path.name)
        if match is not None:
            return "voc", {match["name"]: path}
        return "table" if suffix in (*SUFFIXES, _PARQUET) else "records", {path.name: path}
    folder = path / "labels" if (path / "labels").is_dir() else path
    names_file = yolo_file(folder)
    if names_file is None and folder.name != "labels":
        return ("nested", nested) if (nested := nested_files(path)) else ("voc", _voc_files(path))
    names_file = names_file or yolo_file(folder.absolute().parent)
    if names_file is None:
        text, hint = "YOLO's label files have no names of classes", "copy the data.yaml of the detector's training"
        raise MissingFileError(text, where=str(path), expected=f"data.yaml in {folder} or beside it", hint=hint)
    labels = sorted(file for file in folder.glob("*.txt") if file.name != CLASS_NAMES)
    if not labels:
        expected = "STEM.txt for each image with detections"
        raise MissingFileError("No YOLO label files found", where=str(folder), expected=expected)
    return "yolo", {file.name: file for file in (names_file, *labels)}


def _voc_files(folder: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        match = _VOC_FILE.match(file.name)
        if match and (other := files.setdefault(match["name"], file)) != file:
            raise PredictionError(
                "Two results files are for the same class",
                where=str(file),
                expected="files of the same competition and image set",
                found=f"{other.name} and {file.name}",
            )
    if not files:
        raise MissingFileError(
            "No VOC results files found",
            where=str(folder),
            expected="comp4_det_test_CLASS.txt for each class; or YOLO's labels/STEM.txt and data.yaml",
            hint=f"for label files of YOLO, copy the data.yaml of the detector's training into {folder}"
            if any(folder.glob("*.txt"))
            else None,
        )
    return files


def read_files(path: Path, truth: GroundTruth) -> tuple[DetectionFiles, Records, Callable[[int], str]]:
    """Return the files of detections, their columns, and a function that names a row in a message.

    See `open_detections` and `read_columns` for the forms and the errors.
    """
    opened = open_detections(path)
    return (opened, *read_columns(opened, truth))


def read_columns(opened: DetectionFiles, truth: GroundTruth) -> tuple[Records, Callable[[int], str]]:
    """Return the columns of detections, and a function that names a row in a message; a missing score is NaN.

    Parameters
    ----------
    truth : GroundTruth
        Its images resolve names, and their sizes convert shares to pixels.

    Raises
    ------
    PredictionError
        The records, the table or a line is invalid; the message names the row.
    """
    if opened.form == "yolo":
        return _yolo(opened, truth)
    if opened.form == "voc":
        return _voc(opened, truth)
    if opened.form == "nested":
        return _nested(opened, truth)
    [file] = opened.files.values()
    return _table(file, truth) if opened.form == "table" else (_coco(file), lambda row: f"{file.path}: record {row}")


class Row(msgspec.Struct, gc=False):
    """A record of a COCO results file; other fields are ignored."""

    bbox: tuple[float, float, float, float]
    image_id: Int64 | str | None = None
    file_name: str | None = None
    score: float | None = None
    category_id: Int64 | None = None
    category: str | None = None
    background_score: float | None = None


class _FloatsRow(Row, gc=False):
    """A record whose ids may be floats, as programs write columns with gaps: 1.0."""

    image_id: Int64 | float | str | None = None  # type: ignore[assignment]
    category_id: Int64 | float | None = None  # type: ignore[assignment]


class _NumbersRow(msgspec.Struct, gc=False):
    """A record with only numbers, the usual case: decoding takes a quarter less time than that of `Row`."""

    image_id: Int64
    category_id: Int64
    bbox: tuple[float, float, float, float]
    score: float
    file_name: None = None
    category: None = None
    background_score: None = None


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a COCO results file as columns of n rows, in file order.

    Attributes
    ----------
    image_ids : ndarray of int64, list of int, str or None, or None
        None if no record has an ``image_id``.
    category_ids : ndarray of int64, or list of int or None
    categories : list of str or None
        Empty if no record names its class.
    boxes : ndarray of float64, shape (n, 4)
    scores : ndarray of float64, shape (n,)
        NaN if a record has none.
    background : ndarray of float64, shape (n,), or None
    file_names : list of str or None, or None
        None if no record has a ``file_name``.
    """

    image_ids: Int64s | list[int | str | None] | None
    category_ids: Int64s | list[int | None]
    categories: list[str | None]
    boxes: Floats
    scores: Floats
    background: Floats | None = None
    file_names: list[str | None] | None = None

    @classmethod
    def from_pieces(cls, pieces: Iterable[Sequence[Row | _NumbersRow]]) -> Records:
        """Build the columns from pieces of the records; one piece at a time is in memory."""
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
        """The reference to the image of each row: its file name if it has one, else its image id."""
        ids: Any = self.image_ids.tolist() if isinstance(self.image_ids, np.ndarray) else self.image_ids
        if ids is None or self.file_names is None:
            return self.file_names if ids is None else ids
        return [name or image for name, image in zip(self.file_names, ids, strict=True)]

    def class_text(self, row: int) -> str:
        """Return the class of a record for messages: its name, its id, or both."""
        name, number = self.categories[row] if self.categories else None, self.category_ids[row]
        texts = [] if name is None else [f"category {name!r:.80}"]
        texts += [] if number is None else [f"category_id {number}"]
        return ", ".join(texts) or "neither category nor category_id"

    def by_name(self) -> Records:
        """Return the records, without category ids where they have a class name."""
        if not self.categories:
            return self
        pairs = zip(self.categories, self.category_ids, strict=True)
        return replace(self, category_ids=[number if name is None else None for name, number in pairs])

    @property
    def used_ids(self) -> set[int]:
        """All category ids of the file."""
        ids = self.category_ids
        return set(distinct(ids).tolist() if isinstance(ids, np.ndarray) else (n for n in ids if n is not None))

    def labels(self, table: Mapping[int | str | None, int]) -> Int32s:
        """Return the label of each row's category, category id, or both, shape (n,), from a table of both.

        A class that the table lacks is `STRANGE`; a category and an id of different classes are `DISAGREEING`.
        """
        ids = self.category_ids
        if isinstance(ids, np.ndarray):
            numbers = np.array(sorted(key for key in table if isinstance(key, int)), np.int64)
            position, is_listed = positions_in(ids, numbers)
            labels = np.array([table[number] for number in numbers.tolist()] or [STRANGE], np.int32)
            return np.where(is_listed, labels[position], STRANGE).astype(np.int32)

        def label_of(name: str | None, number: int | None) -> int:
            if name is None or number is None:
                return table.get(number if name is None else name, STRANGE)
            label = table.get(name, STRANGE)
            return label if label == table.get(number, STRANGE) else DISAGREEING

        names = self.categories or [None] * len(self)
        return np.fromiter(map(label_of, names, ids), np.int32, len(self))


def _columns(rows: Sequence[Row | _NumbersRow]) -> tuple[Any, ...]:
    n = len(rows)
    boxes = np.fromiter(chain.from_iterable([row.bbox for row in rows]), np.float64, 4 * n).reshape(n, 4)
    if rows and isinstance(rows[0], _NumbersRow):
        ids, numbers = ([row.image_id for row in rows], [row.category_id for row in rows])
        scores = np.array([row.score for row in rows], np.float64)
        return np.array(ids, np.int64), np.array(numbers, np.int64), [], [], [], boxes, scores
    return (
        _integers([row.image_id for row in rows]),
        _integers([row.category_id for row in rows]),
        [row.file_name for row in rows],
        [row.category for row in rows],
        [row.background_score for row in rows],
        boxes,
        np.array([row.score for row in rows], np.float64),
    )


def _integers(values: list[Any]) -> Any:
    """Return an array if all values are integers, else the list unchanged."""
    return np.fromiter(values, np.int64, len(values)) if {*map(type, values)} == {int} else values


def _joined(parts: Sequence[Any]) -> Any:
    """Return the pieces of a column joined: an array if all of them are arrays, else a list."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [*chain.from_iterable(part.tolist() if isinstance(part, np.ndarray) else part for part in parts)]


def _coco(file: InputFile) -> Records:
    """Return the columns of a COCO results file, which is hashed while it is decoded."""
    with ThreadPoolExecutor(1) as executor:
        executor.submit(lambda: file.sha256)
        for form in (_NumbersRow, Row):
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return Records.from_pieces(_pieces(file.data, form))
        return Records.from_pieces([read_rows(file)])


def _pieces(data: bytes, form: type[Row | _NumbersRow]) -> Iterator[Sequence[Row | _NumbersRow]]:
    """Yield the records of a large JSON list some thousand at a time, others at once."""
    opening = _OPENING.match(data) if len(data) > SMALL else None
    closing = opening and _CLOSING.search(data, max(opening.end(), len(data) - _TAIL))
    if opening and closing:
        pieces = record_pieces(data, opening.end(), closing.start(), opening[1], form)
    else:
        pieces = iter([json_rows(data, form)])
    for rows in pieces:
        if form is Row and first_without_image(rows) is not None:
            raise msgspec.ValidationError
        yield rows


def read_rows(file: InputFile) -> list[Row]:
    """Return the records of a COCO results file (see `curation.evaluation.readers.read_detections` for the errors)."""
    with decoding(file, FORM):
        try:
            rows = json_rows(file.data, Row)
        except msgspec.ValidationError as error:
            rows = [*map(_with_whole_ids, json_rows(file.data, _FloatsRow))]
            if any(isinstance(number, float) for row in rows for number in (row.image_id, row.category_id)):
                raise error from None
    if (row := first_without_image(rows)) is not None:
        raise PredictionError("A detection names no image", where=f"{file.path}: record {row}", expected=_NAMES_IMAGE)
    return rows


def _with_whole_ids(row: Row) -> Row:
    """Return a record with ids such as 1.0 as integers; other floats are unchanged."""
    row.image_id, row.category_id = as_integer(row.image_id), as_integer(row.category_id)
    return row


def first_without_image(rows: Sequence[Row | _NumbersRow]) -> int | None:
    """Return the first record that has neither an image id nor a file name."""
    return next((row for row, record in enumerate(rows) if record.image_id is None and not record.file_name), None)


@contextmanager
def decoding(file: InputFile, form: str, subject: str = "The detections") -> Iterator[None]:
    """Turn errors of decoding into a `PredictionError`: the records of the file do not have the form."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        is_truth, hint = file.data.lstrip()[:1] == b"{" and b'"annotations"' in file.data, None
        is_number = any(f"`{name}" in str(error) or f"].{name}" in str(error) for name in ("bbox", "score"))
        if form == FORM and (is_number or plain_json(file.data) is not file.data):
            hint = "curation inspect TRUTH --detections FILE corrects such records, or leaves out those without a box"
        if file.path.suffix.lower() in (".pt", ".pth", ".pkl", ".npy", ".npz", ".onnx"):
            hint = "this is a file of weights or arrays: write the boxes of the detector as JSON or CSV"
        if is_truth:
            hint = "give annotation files to --truth and results files to --detections"
        elif "length 4" in str(error) or any(key in file.data[:4096] for key in (b'"rbox"', b'"poly"')):
            hint = "five numbers, rbox and poly are oriented boxes (OBB); only upright boxes, x, y, w, h, can be scored"
        elif "`bbox`" in str(error) and b'"segmentation"' in file.data:
            hint = "these are masks: pycocotools.mask.toBbox(record['segmentation']) returns the bbox of a record"
        elif "`str` - at" in str(error) and "category_id" in str(error):
            hint = "class names belong in category; curation inspect TRUTH --detections FILE corrects such records"
        raise PredictionError(
            "This is not a list of detections, it is a ground-truth file" if is_truth else f"{subject} cannot be read",
            where=str(file.path),
            expected=form,
            found="a JSON object" if is_truth else str(error)[:300],
            hint=hint,
        ) from None


def _yolo(opened: DetectionFiles, truth: GroundTruth) -> tuple[Records, Callable[[int], str]]:
    names_file, *labels = opened.files.values()
    classes = yolo_names(names_file.data, str(names_file.path), PredictionError)
    lines = [
        (file, number, values)
        for file in labels
        for number, values in label_lines(file.data, str(file.path), PredictionError, _LINE)
    ]

    def where(row: int) -> str:
        return f"{lines[row][0].path}: line {lines[row][1]}"

    n_polygons, lines = _around(lines, keypoint_values(names_file.data, str(names_file.path), PredictionError), where)
    if n_polygons:
        message = f"{opened.path}: {n_polygons:,} detections are polygons, and are scored as the boxes around them"
        warnings.warn(message, CurationWarning, stacklevel=2)
    for row, (*_, line) in enumerate(lines):
        if len(line) not in _FIELDS or not 0 <= line[0] < len(classes):
            raise PredictionError(
                "A line of a label file is not a detection",
                where=where(row),
                expected=f"{_LINE}, classes 0 to {len(classes) - 1}",
                found=" ".join(f"{value:g}" for value in line)[:100],
            )
    values = np.array([(*line, math.nan)[:6] for *_, line in lines], np.float64).reshape(-1, 6)
    stems: list[str | None] = [file.name.removesuffix(".txt") for file, *_ in lines]
    boxes = _in_pixels(values[:, 1:5], truth.resolve(None, stems).position, truth, where)
    names: list[str | None] = [classes[int(number)] for number in values[:, 0]]
    return Records(None, [None] * len(lines), names, boxes, values[:, 5], file_names=stems), where


def _around(lines: list[_Line], n_keypoint_values: int, where: Callable[[int], str]) -> tuple[int, list[_Line]]:
    """Return the number of polygons, and the lines with boxes instead of polygons and without keypoints."""
    lengths = {len(line) for *_, line in lines}
    if not n_keypoint_values and lengths and lengths <= {_ORIENTED, _ORIENTED + 1}:
        raise PredictionError(
            "The label files hold oriented boxes (OBB)", where=where(0), expected=_LINE,
            found=f"class, four corners and a confidence in all {len(lines):,} lines",
            hint="only upright boxes can be scored: predict with a model of the task detect",
        )  # fmt: skip
    n_polygons, read = 0, list[_Line]()
    for file, number, line in lines:
        values = line
        if n_keypoint_values:
            values = [*line[:5], *line[5 + n_keypoint_values :]]
        elif len(line) >= _LEAST_POLYGON:
            n_polygons += 1
            end = len(line) - (len(line) % 2 == 0)
            xs, ys = line[1:end:2], line[2:end:2]
            low, high = (min(xs), min(ys)), (max(xs), max(ys))
            values = [line[0], (low[0] + high[0]) / 2, (low[1] + high[1]) / 2, high[0] - low[0], high[1] - low[1]]
            values += line[end:]
        read.append((file, number, values))
    return n_polygons, read


def _voc(opened: DetectionFiles, truth: GroundTruth) -> tuple[Records, Callable[[int], str]]:
    """Return the lines of VOC results, known classes first in their order."""
    known = [name for name in truth.classes if name in opened.files]
    rows = [
        (name, opened.files[name], number, image, values)
        for name in dict.fromkeys((*known, *opened.files))
        for number, image, values in _voc_lines(opened.files[name])
    ]

    def where(row: int) -> str:
        return f"{rows[row][1].path}: line {rows[row][2]}"

    numbers = np.array([values for *_, values in rows], np.float64).reshape(-1, 5)
    x1, y1, x2, y2 = numbers[:, 1:].T
    boxes = np.stack([x1 - 1, y1 - 1, x2 - x1 + 1, y2 - y1 + 1], axis=1)
    classes: list[str | None] = [name for name, *_ in rows]
    images: list[str | None] = [image for *_, image, _ in rows]
    return Records(None, [None] * len(rows), classes, boxes, numbers[:, 0], file_names=images), where


def _voc_lines(file: InputFile) -> Iterator[tuple[int, str, list[float]]]:
    """Yield number, image and five numbers of each line of a file of VOC results."""
    for number, line in enumerate(file.data.decode("utf-8", errors="replace").rstrip().splitlines(), 1):
        entries = line.split()
        try:
            if len(entries) != 6 or len(entries[0]) > _LONGEST[0] or max(map(len, entries[1:])) > _LONGEST[1]:
                raise ValueError
            yield number, entries[0], [float(entry) for entry in entries[1:]]
        except ValueError:
            raise PredictionError(
                "A line of the results file cannot be read",
                where=f"{file.path}: line {number}",
                expected=_VOC_LINE,
                found=repr(line[:80]),
            ) from None


def _in_pixels(shares: Floats, position: Int32s, truth: GroundTruth, where: Callable[[int], str]) -> Floats:
    """Convert ``cx, cy, w, h`` from shares of images to ``x, y, w, h`` in pixels; an unknown image has size 1."""
    beyond = ~((shares >= -_BEYOND) & (shares <= 1 + _BEYOND)).all(axis=1)
    if beyond.any():
        row = int(np.argmax(beyond))
        raise PredictionError(
            "A box in a label file is not in shares of the image",
            where=where(row),
            expected=f"{_LINE}: the centre and size of the box, 0 to 1",
            found=str(shares[row].tolist()),
        )
    sizes: Floats = np.concatenate([truth.stated_sizes, [[1, 1]]])[np.maximum(position, -1)]
    if not (sizes > 0).all():
        row = int(np.argmin((sizes > 0).all(axis=1)))
        raise PredictionError(
            "Boxes are in shares of the image, and the truth lacks the size of an image",
            where=where(row),
            expected="width and height of every image in the truth",
            found=f"none of {truth.image_index.describe(truth.file_positions[position[row : row + 1]])}",
        )
    return np.concatenate([shares[:, :2] - shares[:, 2:] / 2, shares[:, 2:]], axis=1) * np.tile(sizes, 2)


def _nested(opened: DetectionFiles, truth: GroundTruth) -> tuple[Records, Callable[[int], str]]:
    boxes = nested_boxes(opened.files, truth)
    labels: list[Any] = [box.label for box in boxes]
    numbers = [label if isinstance(label, int) else None for label in labels]
    names: list[str | None] = [label if isinstance(label, str) else None for label in labels]
    numbering = {box.numbering for box in boxes if isinstance(box.label, int)}
    if numbering - {"ids"}:
        counted, class_names = _counted_classes(numbers, truth, str(opened.path), always="positions" in numbering)
        numbers, names = counted, [name or other for name, other in zip(names, class_names, strict=True)]
    scores = np.array([math.nan if box.score is None else box.score for box in boxes], np.float64)
    images: list[Any] = [box.image for box in boxes]
    records = Records(
        images,
        numbers,
        names if any(name is not None for name in names) else [],
        np.array([box.box for box in boxes], np.float64).reshape(-1, 4),
        scores,
    )
    return records, lambda row: boxes[row].where


def _counted_classes(
    numbers: Sequence[int | None], truth: GroundTruth, where: str, *, always: bool = False
) -> tuple[list[int | None], list[str | None]]:
    """Return the ids, else the names, of numbered classes: numbers are ids of the truth, else counted from 0.

    Parameters
    ----------
    always : bool
        Whether the numbers are always counted from 0, as in MMDetection.
    """
    used = {number for number in numbers if number is not None and number != UNKNOWN_NUMBER}
    known = truth.class_numbers
    ids = [number for number in known if number is not None]
    if not always and used <= {*ids}:
        return list(numbers), [None] * len(numbers)
    order = range(len(known)) if None in known else np.argsort(np.array(known)).tolist()
    classes = truth.yolo_classes or tuple(truth.classes[row] for row in order if truth.classes[row] != UNKNOWN)
    strange = sorted(number for number in used if not 0 <= number < len(classes))
    if strange:
        raise PredictionError(
            "The classes of the detections are neither ids of the truth nor counted from 0",
            where=where,
            expected=", or ".join(filter(None, (f"0 to {len(classes) - 1}", ", ".join(map(str, ids)))))[:300],
            found=", ".join(map(str, strange))[:100],
            hint="write class names: a column class_name, or labels as texts",
        )
    first = ", ".join(f"{number} as {classes[number]}" for number in sorted(used)[:3])
    message = f"{where}: class numbers are read as the truth's classes counted from 0: {first}"
    warnings.warn(message, CurationWarning, stacklevel=2)
    names = [None if number is None or number < 0 else classes[number] for number in numbers]
    return [number if name is None else None for number, name in zip(numbers, names, strict=True)], names


def _table(file: InputFile, truth: GroundTruth) -> tuple[Records, Callable[[int], str]]:
    is_parquet = file.path.suffix.lower() == _PARQUET
    table = _texts_of_parquet(file) if is_parquet else read_texts(file, PredictionError).to_pandas()
    are_shares = {*table.columns} >= _OPEN_IMAGES
    table = _renamed(table, f"{file.path}: header")
    rows: Sequence[int] = range(len(table))

    def where(row: int) -> str:
        return f"{file.path}: row {rows[row] + 2}"

    header = f"{file.path}: header"
    if is_unfolded := _PREDICTIONS in table:
        table, rows = _unfolded(table, where)
        corners = _floats(table, _CORNERS[0], where)
        are_shares = bool(((corners >= 0) & (corners <= 1)).all()) and len(corners) > 0
    if "image_id" in table:
        table = table.assign(image_id=without_fraction(table["image_id"]))
    images = [None if name not in table else table[name].tolist() for name in _IMAGES]
    names = [name for name in ("category", "class") if name in table][:1]
    numbers, is_counted = "category_id" in table, "class_id" in table and not names
    if images == [None] * len(images) or not (numbers or names or is_counted):
        raise _lacks(table, header)
    ids: list[int | None] = [None] * len(table) if not numbers else _whole_numbers(table["category_id"], where)
    categories: list[str | None] = table[names[0]].tolist() if names else []
    strangers = {*categories} - {*truth.classes}
    are_numbers = bool(strangers) and all(str(name).isascii() and str(name).isdigit() for name in categories)
    if is_unfolded and are_numbers:
        table, is_counted = table.rename(columns={"category": "class_id"}), True
    elif not numbers and are_numbers:
        raise PredictionError(
            f"Column {names[0]} has numbers, which may be ids or classes counted from 0",
            where=header,
            expected="names of classes, or category_id with the ids of the truth",
            found=", ".join(sorted(map(str, strangers)))[:100],
            hint="name the column category_id if it has ids of the truth, class_id if it counts from 0",
        )
    if is_counted and not numbers:
        ids, categories = _counted_classes(_whole_numbers(table["class_id"], where, "class_id"), truth, str(file.path))
        categories = categories if any(name is not None for name in categories) else []
    scores = _floats(table, ["score"], where)[:, 0] if "score" in table else np.full(len(table), math.nan)
    boxes = _boxes(table, header, where)
    files = images[1] or images[2]
    if are_shares:
        position = truth.resolve(images[0], files).position
        boxes = _in_pixels(np.concatenate([boxes[:, :2] + boxes[:, 2:] / 2, boxes[:, 2:]], 1), position, truth, where)
    return Records(images[0], ids, categories, boxes, scores, file_names=files), where


def _renamed(table: pd.DataFrame, header: str) -> pd.DataFrame:
    """Return a table with other tools' column names replaced by those of this package; unknown columns are kept."""
    columns = {str(column).lower(): column for column in reversed(table.columns)}
    names: dict[str, str] = {}
    for name, calls in _CALLED.items():
        matching = [columns[call] for call in calls if call in columns]
        if name in table.columns or not matching:
            continue
        if len(matching) > 1 and name == "category":
            raise PredictionError(
                "Two columns of the table name the class", where=header, expected=_HEADER, found=", ".join(matching)
            )
        names[matching[0]] = name
    return table.rename(columns=names)


def _unfolded(table: pd.DataFrame, where: Callable[[int], str]) -> tuple[pd.DataFrame, list[int]]:
    """Split rows with all detections of an image: return a row for each detection, and its original row."""
    images = next((name for name in _IMAGES if name in table), None)
    cells: list[list[str]] = []
    rows: list[int] = []
    for row, text in enumerate(table[_PREDICTIONS]):
        words = text.split()
        if images is None or len(words) % _WORDS:
            raise PredictionError(
                "A prediction string cannot be read", where=where(row),
                expected=f"an image, and {_WORDS} words for each box: label score xmin ymin xmax ymax",
                found="no column of images" if images is None else f"{len(words)} words: {text[:80]!a}",
            )  # fmt: skip
        for start in range(0, len(words), _WORDS):
            cells.append([table[images].iloc[row], *words[start : start + _WORDS]])
            rows.append(row)
    columns = [images, "category", "score", *_CORNERS[0]]
    return type(table)(cells, columns=columns, dtype=object), rows


def _texts_of_parquet(file: InputFile) -> pd.DataFrame:
    import pandas as pd

    columns = plain_columns(file.path, {"bbox", *_CALLED, *chain.from_iterable((*_BOXES, *_CALLED.values()))})
    return pd.DataFrame({name: [_cell(value) for value in values] for name, values in columns.items()}, dtype=object)


def _cell(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        value = int(value)
    return "" if value is None else str(value).strip()


def _lacks(table: pd.DataFrame, header: str) -> PredictionError:
    names = list(map(str, table.columns))
    hint = "columns are separated by commas alone, and their names are in lower case"
    if any(name.replace(".", "", 1).isdigit() for name in names):
        hint = "the first line has values: insert a line with the names of the columns before it"
    is_told = hint.startswith("the") or len(names) == 1 or any(name != name.strip().lower() for name in names)
    return PredictionError(
        "The table of detections lacks a column", where=header, expected=_HEADER,
        found=", ".join(names)[:200],
        hint=hint if is_told else None,
    )  # fmt: skip


def _boxes(table: pd.DataFrame, header: str, where: Callable[[int], str]) -> Floats:
    """Return ``x, y, w, h`` from the columns of boxes; the table must have exactly one set of them."""
    matches = [names for names in (*_BOXES, ("bbox",)) if all(name in table for name in names)]
    # If there is a column w, width is that of the image.
    matches = [names for names in matches if names != _SIDES or _BOX not in matches]
    if not matches:
        raise _lacks(table, header)
    if len(matches) > 1:
        both = " and ".join(", ".join(names) for names in matches)
        raise PredictionError("The table states boxes twice", where=header, expected=_HEADER, found=both)
    [names] = matches
    if names == ("bbox",):
        cells = table["bbox"].str.strip("[]() ").str.split(r"[,;\s]+", regex=True)
        if (row := next((row for row, cell in enumerate(cells) if len(cell) != len(_BOX)), None)) is not None:
            raise _no_number("bbox", "x, y, w, h: four numbers", table["bbox"].iloc[row], where(row))
        table = type(table)(cells.tolist(), columns=list(_BOX))
        names = _BOX
    boxes = _floats(table, names, where)
    if names in _CORNERS:
        boxes[:, 2:] -= boxes[:, :2]
    return boxes


def _floats(table: pd.DataFrame, names: Sequence[str], where: Callable[[int], str]) -> Floats:
    import pandas as pd

    columns = [pd.to_numeric(table[name], errors="coerce").to_numpy(np.float64) for name in names]
    for name, column in zip(names, columns, strict=True):
        if np.isnan(column).any():
            row = int(np.argmax(np.isnan(column)))
            raise _no_number(name, "a number", table[name].iloc[row], where(row))
    return np.stack(columns, axis=1)


def _whole_numbers(column: pd.Series, where: Callable[[int], str], name: str = "category_id") -> list[int | None]:
    column = without_fraction(column)
    wrong = ~column.str.fullmatch(r"-?[0-9]{1,18}")
    if wrong.any():
        row = int(np.argmax(wrong))
        expected = "a whole number, or the column category with names"
        raise _no_number(name, expected, column.iloc[row], where(row))
    return [int(cell) for cell in column]


def _no_number(column: str, expected: str, text: str, where: str) -> PredictionError:
    return PredictionError(
        f"A cell of column {column} cannot be read", where=where, expected=expected, found=repr(text[:80])
    )


def positions_in(numbers: Int64s, known: Int64s) -> tuple[Int32s, Bools]:
    """Return the position of each number in an ascending array, and whether the array contains it."""
    if not len(known):
        return np.zeros(len(numbers), np.int32), np.zeros(len(numbers), bool)
    position = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return position.astype(np.int32), known[position] == numbers
