"""Detections in other files than COCO results, as the same columns: tables, YOLO's label files, VOC results."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from curation.core.errors import MissingFileError, PredictionError
from curation.core.reading import InputFile
from curation.evaluation.problem import Floats, GroundTruth, Int32s
from curation.evaluation.result_records import Records
from curation.sources.integrity import SmallFiles, record_of_many
from curation.sources.source import FileRecord
from curation.sources.table import SUFFIXES, read_texts
from curation.sources.yolo import CLASS_NAMES, label_lines, yolo_file, yolo_names

if TYPE_CHECKING:
    import pandas as pd

_IMAGES = ("image_id", "image", "file_name")
_BOX = ("x", "y", "w", "h")
_CORNERS = (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"))
_HEADER = (
    "image_id, image or file_name; category_id (a number), or category or class (a name); x, y, w, h, or bbox, in "
    "pixels, or x1, y1, x2, y2; score"
)
_LINE = "class cx cy w h confidence"
_FIELDS = (5, 6)
_BEYOND = 0.5
_VOC_FILE = re.compile(r"comp[0-9]+_det_[^_]+_(?P<name>.+)\.txt\Z")
_VOC_LINE = "image score x1 y1 x2 y2"
_LONGEST = (255, 64)
"""Characters of an image name, and of a number: one endless token would cost its length in every row."""


class OtherFile(NamedTuple):
    """Detections of another form: the file or files that were read, columns, and how to name a row in a message."""

    file: InputFile | FileRecord
    records: Records
    where: Callable[[int], str]


def read_other_form(path: Path, truth: GroundTruth) -> OtherFile | None:
    """Return the detections of a table, of YOLO's label files or of VOC results; None for a path that is none of these.

    Parameters
    ----------
    path : Path
        A ``.csv`` or ``.tsv`` file (compressed by gzip or not) with a header: ``image_id``, ``image`` or ``file_name``;
        ``category_id``, a number, or ``category`` or ``class``, a name; ``x``, ``y``, ``w``, ``h``, or ``bbox``, in
        pixels from the top left corner, or ``x1``, ``y1``, ``x2``, ``y2``; ``score``. Or a folder that
        `is_yolo_results`: a file an image, called as the photo is, of lines ``class cx cy w h confidence`` in shares of
        the image, and a ``data.yaml`` with the names of the classes. Any other folder holds VOC results, a file a class
        (``comp4_det_test_CLASS.txt``, which may be given alone) of lines ``image score x1 y1 x2 y2`` with 1-based
        inclusive corners: the box is ``x1 - 1, y1 - 1, x2 - x1 + 1, y2 - y1 + 1``. A missing score or confidence is
        NaN.
    truth : GroundTruth
        Names the images, and has the sizes that shares are of.

    Raises
    ------
    MissingFileError, PathEscapeError
        A file is not there, or lies elsewhere.
    PredictionError
        The table or a line is invalid; the message names the row.
    """
    if path.is_dir():
        return _yolo(path, truth) if is_yolo_results(path) else _voc(path, truth)
    if _VOC_FILE.match(path.name):
        return _voc(path, truth)
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    return _table(path, truth) if suffix in SUFFIXES else None


def is_yolo_results(path: Path) -> bool:
    """Return whether a folder holds YOLO's label files: it has a ``data.yaml``, or is called or has ``labels``."""
    return path.is_dir() and (path.name == "labels" or (path / "labels").is_dir() or yolo_file(path) is not None)


def _yolo(path: Path, truth: GroundTruth) -> OtherFile:
    folder = path / "labels" if (path / "labels").is_dir() else path
    names_file = yolo_file(folder) or yolo_file(folder.absolute().parent)
    if names_file is None:
        text, hint = "Nothing names the classes of YOLO's label files", "copy the data.yaml of the detector's training"
        raise MissingFileError(text, where=str(path), expected=f"data.yaml in {folder} or beside it", hint=hint)
    classes = yolo_names(InputFile(names_file, kind="list of classes").data, str(names_file), PredictionError)
    held = sorted(file.name for file in folder.glob("*.txt") if file.name != CLASS_NAMES)
    if not held:
        expected = "STEM.txt, one an image with detections"
        raise MissingFileError("No YOLO label files found", where=str(folder), expected=expected)
    files = SmallFiles(folder, held)
    lines = [
        (name, number, values)
        for name, data in files.data.items()
        for number, values in label_lines(data, str(folder / name), PredictionError, _LINE)
    ]

    def where(row: int) -> str:
        return f"{folder / lines[row][0]}: line {lines[row][1]}"

    for row, (*_, line) in enumerate(lines):
        if len(line) not in _FIELDS or not 0 <= line[0] < len(classes):
            raise PredictionError(
                "A line of a label file is not a detection",
                where=where(row),
                expected=f"{_LINE}, classes 0 to {len(classes) - 1}",
                found=" ".join(f"{value:g}" for value in line)[:100],
            )
    values = np.array([(*line, math.nan)[:6] for *_, line in lines], np.float64).reshape(-1, 6)
    stems: list[str | None] = [name.removesuffix(".txt") for name, *_ in lines]
    boxes = _in_pixels(values[:, 1:5], truth.resolve(None, stems).position, truth, where)
    names: list[str | None] = [classes[int(number)] for number in values[:, 0]]
    records = Records(None, [None] * len(lines), names, boxes, values[:, 5], file_names=stems)
    read = {**files.data, names_file.name: InputFile(names_file).data}
    return OtherFile(record_of_many("labels/*.txt", read, len(lines)), records, where)


def _voc(path: Path, truth: GroundTruth) -> OtherFile:
    """Return the lines of VOC results, known classes first in their order."""
    files: dict[str, Path] = {}
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        match = _VOC_FILE.match(file.name)
        if match and (other := files.setdefault(match["name"], file)) != file:
            raise PredictionError(
                "Two results files name one class",
                where=str(file),
                expected="files of one competition and one image set",
                found=f"{other.name} and {file.name}",
            )
    if not files:
        raise MissingFileError(
            "No VOC results files found",
            where=str(path),
            expected="comp4_det_test_CLASS.txt, one a class; or labels/STEM.txt and data.yaml, as YOLO has them",
        )
    known = [name for name in truth.classes if name in files]
    data = {name: InputFile(files[name], kind="results file").data for name in dict.fromkeys((*known, *files))}
    rows = [(name, number, *row) for name, held in data.items() for number, row in _voc_lines(held, files[name])]

    def where(row: int) -> str:
        return f"{files[rows[row][0]]}: line {rows[row][1]}"

    numbers = np.array([values for *_, values in rows], np.float64).reshape(-1, 5)
    x1, y1, x2, y2 = numbers[:, 1:].T
    boxes = np.stack([x1 - 1, y1 - 1, x2 - x1 + 1, y2 - y1 + 1], axis=1)
    classes: list[str | None] = [name for name, *_ in rows]
    images: list[str | None] = [image for *_, image, _ in rows]
    records = Records(None, [None] * len(rows), classes, boxes, numbers[:, 0], file_names=images)
    read = {files[name].name: held for name, held in data.items()}
    if path.is_file():
        return OtherFile(InputFile(path, kind="results file"), records, where)
    return OtherFile(record_of_many(path.name, read, len(rows)), records, where)


def _voc_lines(data: bytes, path: Path) -> Iterator[tuple[int, tuple[str, list[float]]]]:
    """Yield number, image and five numbers of each line of a file of VOC results."""
    for number, line in enumerate(data.decode("utf-8", errors="replace").rstrip().splitlines(), 1):
        entries = line.split()
        try:
            if len(entries) != 6 or len(entries[0]) > _LONGEST[0] or max(map(len, entries[1:])) > _LONGEST[1]:
                raise ValueError
            yield number, (entries[0], [float(entry) for entry in entries[1:]])
        except ValueError:
            raise PredictionError(
                "A line of the results file cannot be read",
                where=f"{path}: line {number}",
                expected=_VOC_LINE,
                found=repr(line[:80]),
            ) from None


def _in_pixels(shares: Floats, position: Int32s, truth: GroundTruth, where: Callable[[int], str]) -> Floats:
    """Return ``cx, cy, w, h`` in shares of images as ``x, y, w, h`` in pixels; on images that the truth lacks, of 1."""
    beyond = ~((shares >= -_BEYOND) & (shares <= 1 + _BEYOND)).all(axis=1)
    if beyond.any():
        row = int(np.argmax(beyond))
        raise PredictionError(
            "A box of a label file is not in shares of the image",
            where=where(row),
            expected=f"{_LINE}: the centre and size of the box, 0 to 1",
            found=str(shares[row].tolist()),
        )
    sizes: Floats = np.concatenate([truth.stated_sizes, [[1, 1]]])[np.maximum(position, -1)]
    if not (sizes > 0).all():
        row = int(np.argmin((sizes > 0).all(axis=1)))
        raise PredictionError(
            "Boxes are shares of the image size, and the truth does not state the size of an image",
            where=where(row),
            expected="width and height of every image in the truth",
            found=f"none of {truth.image_index.describe(truth.file_positions[position[row : row + 1]])}",
        )
    return np.concatenate([shares[:, :2] - shares[:, 2:] / 2, shares[:, 2:]], axis=1) * np.tile(sizes, 2)


def _table(path: Path, truth: GroundTruth) -> OtherFile:
    file = InputFile(path, kind="detections file")
    table = read_texts(file, PredictionError)

    def where(row: int) -> str:
        return f"{path}: row {row + 2}"

    images = [None if name not in table else table[name].tolist() for name in _IMAGES]
    names = [name for name in ("category", "class") if name in table][:1]
    numbers = "category_id" in table
    if images == [None] * len(images) or (not numbers and not names):
        raise _lacks(table, path)
    ids: list[int | None] = [None] * len(table) if not numbers else _whole_numbers(table["category_id"], where)
    categories = table[names[0]].tolist() if names else []
    strangers = {*categories} - {*truth.classes}
    if not numbers and strangers and all(name.isascii() and name.isdigit() for name in categories):
        raise PredictionError(
            f"Column {names[0]} holds numbers, which may be ids or count the classes from 0",
            where=f"{path}: header",
            expected="names of classes, or category_id with the ids of the truth",
            found=", ".join(sorted(strangers))[:100],
            hint="call the column category_id if the truth numbers its classes so",
        )
    scores = _floats(table, ["score"], where)[:, 0] if "score" in table else np.full(len(table), math.nan)
    boxes = _boxes(table, path, where)
    files = images[1] or images[2]
    return OtherFile(file, Records(images[0], ids, categories, boxes, scores, file_names=files), where)


def _lacks(table: pd.DataFrame, path: Path) -> PredictionError:
    return PredictionError(
        "The table of detections lacks a column", where=f"{path}: header", expected=_HEADER,
        found=", ".join(map(str, table.columns))[:200],
    )  # fmt: skip


def _boxes(table: pd.DataFrame, path: Path, where: Callable[[int], str]) -> Floats:
    """Return ``x, y, w, h`` by the one set of columns that states boxes."""
    matches = [names for names in (_BOX, *_CORNERS, ("bbox",)) if all(name in table for name in names)]
    if not matches:
        raise _lacks(table, path)
    if len(matches) > 1:
        both = " and ".join(", ".join(names) for names in matches)
        raise PredictionError("The table states boxes twice", where=f"{path}: header", expected=_HEADER, found=both)
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


def _whole_numbers(column: pd.Series, where: Callable[[int], str]) -> list[int | None]:
    wrong = ~column.str.fullmatch(r"-?[0-9]{1,18}")
    if wrong.any():
        row = int(np.argmax(wrong))
        expected = "a whole number, or the column category with names"
        raise _no_number("category_id", expected, column.iloc[row], where(row))
    return [int(cell) for cell in column]


def _no_number(column: str, expected: str, text: str, where: str) -> PredictionError:
    return PredictionError(
        f"A cell of column {column} cannot be read", where=where, expected=expected, found=repr(text[:80])
    )
