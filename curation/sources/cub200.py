"""Reader of CUB-200-2011, which has five lists: `read_cub200`."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import NoReturn

import numpy as np

from curation.core.errors import AnnotationFormatError, DanglingIdError, MissingFileError, UsageError
from curation.core.reading import utf8_text
from curation.sources.integrity import SmallFiles, check_image_name, check_unique, sound_objects
from curation.sources.source import Categories, Floats, Images, Int64s, Objects, Source
from curation.sources.source_specs import BadBoxes

FILES = ("images.txt", "classes.txt", "image_class_labels.txt", "bounding_boxes.txt", "train_test_split.txt")
PARTS = ("train", "test")

_IMAGES, _CLASSES, _LABELS, _BOXES, _SPLIT = FILES
_BELOW = ("", "CUB_200_2011")


def locate_cub200(root: Path) -> Path:
    """Return the folder at or below `root` that has CUB's lists, or raise `MissingFileError`."""
    for below in _BELOW:
        if (root / below / _IMAGES).is_file() and (root / below / _BOXES).is_file():
            return root / below
    raise MissingFileError(
        "CUB-200-2011 folder not found", where=str(root), expected=f"{', '.join(FILES)} in it or in {_BELOW[1]}"
    )


def read_cub200(root: Path, *, dataset: str, part: str, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source of a CUB-200-2011 folder; each image shows one bird.

    Native ids are file names without folder and suffix (``Black_Footed_Albatross_0046_18``). The name of a class
    is the text after its number (``Black_footed_Albatross``); `Categories.keys` has the full name.
    Sizes of images are not stated.

    Parameters
    ----------
    root : Path
        A folder with the files `FILES`, itself or in ``CUB_200_2011``.
    part : str
        ``train``, ``test`` (column of ``train_test_split.txt``), or ``""`` for all images.
    bad_boxes : {"error", "drop"}

    Raises
    ------
    MissingFileError, UsageError
        A file is missing, or the part does not exist.
    AnnotationFormatError, DuplicateIdError, DanglingIdError, BoxError
        A file is malformed or lacks an image; the error names the line.
    """
    content = SmallFiles(locate_cub200(root), FILES)
    if part not in ("", *PARTS):
        raise UsageError("CUB-200-2011 has no such part", expected=", ".join(PARTS), found=repr(part)[:60])
    images = _rows(content, _IMAGES)
    labels, boxes, split = (_rows(content, name, images) for name in (_LABELS, _BOXES, _SPLIT))
    classes = _rows(content, _CLASSES)
    rows = {_IMAGES: images, _CLASSES: classes, _LABELS: labels, _BOXES: boxes, _SPLIT: split}
    paths = {number: path for number, [path] in images.items()}
    stems = [PurePosixPath(path).stem for path in paths.values()]
    for line, (stem, path) in enumerate(zip(stems, paths.values(), strict=True), start=1):
        check_image_name(stem, f"{_IMAGES}: line {line}")
        check_image_name(path, f"{_IMAGES}: line {line}")
    check_unique(stems, "image name", lambda row: f"{_IMAGES}: line {row + 1}")
    for line, [flag] in enumerate(split.values(), start=1):
        if flag not in ("0", "1"):
            _refuse("An image is marked neither 0 nor 1", _SPLIT, line, flag)
    names = [name.partition(".")[2] or name for [name] in classes.values()]
    check_unique(names, "class name", lambda row: f"{_CLASSES}: line {row + 1}")
    chosen = [number for number in images if not part or split[number] == [str(int(part == "train"))]]
    objects, dropped = sound_objects(
        Objects.of(np.arange(len(chosen)), _classes(labels, classes, chosen), _boxes(boxes)[_positions(boxes, chosen)]),
        bad_boxes,
        lambda row: f"{_BOXES}: line {_positions(boxes, chosen)[row] + 1}",
    )
    stem_of = dict(zip(images, stems, strict=True))
    return Source.of(
        dataset,
        part,
        images=Images.of(
            [stem_of[number] for number in chosen],
            numbers=np.array(chosen, np.int64),
            file_names=[paths[number] for number in chosen],
        ),
        categories=Categories(
            tuple(classes), tuple(names), ("",) * len(names), tuple(name for [name] in classes.values())
        ),
        objects=objects,
        files=tuple(content.record(name, [name], len(rows[name])) for name in FILES),
        dropped=dropped,
    )


Rows = dict[int, list[str]]
"""The words after the number that begins each line, in the order of the lines."""


def _rows(content: SmallFiles, name: str, images: Rows | None = None) -> Rows:
    """Return the lines of a list; if `images` is given, the list must have one line for each image."""
    width = 5 if name == _BOXES else 2
    text = utf8_text(content.data[name], name, AnnotationFormatError, "The list is not UTF-8 text")
    lines = [line.split() for line in text.rstrip().split("\n")] if text.strip() else []
    for line, row in enumerate(lines, start=1):
        if len(row) != width:
            _refuse(f"A line does not have {width} words", name, line, " ".join(row))
        if not (row[0].isascii() and row[0].isdigit() and len(row[0]) < 10):
            _refuse("A line does not begin with a number", name, line, row[0])
        if images is not None and int(row[0]) not in images:
            message, where = "A line refers to an image that is not listed", f"{name}: line {line}"
            raise DanglingIdError(message, where=where, expected=f"a number of {_IMAGES}", found=row[0])
    numbers = [int(row[0]) for row in lines]
    check_unique(np.array(numbers, np.int64), "number", lambda row: f"{name}: line {row + 1}")
    if images is not None and len(numbers) < len(images):
        missing = min(images.keys() - set(numbers))
        expected = f"one line for each of {len(images)} images"
        problem = f"{len(numbers)} lines, none for image {missing}"
        raise AnnotationFormatError("A list lacks an image", where=name, expected=expected, found=problem)
    return dict(zip(numbers, (row[1:] for row in lines), strict=True))


def _positions(rows: Rows, numbers: list[int]) -> Int64s:
    line = {number: position for position, number in enumerate(rows)}
    return np.array([line[number] for number in numbers], np.int64)


def _boxes(rows: Rows) -> Floats:
    boxes = np.empty((len(rows), 4))
    for line, cells in enumerate(rows.values()):
        try:
            boxes[line] = [float(cell) for cell in cells]
        except ValueError:
            _refuse("A box is not four numbers", _BOXES, line + 1, " ".join(cells))
    return boxes


def _classes(labels: Rows, classes: Rows, chosen: list[int]) -> Int64s:
    for line, [label] in enumerate(labels.values(), start=1):
        if not (label.isascii() and label.isdigit() and len(label) < 10 and int(label) in classes):
            message, where = "The class of an image is not listed", f"{_LABELS}: line {line}"
            raise DanglingIdError(message, where=where, expected=f"a number of {_CLASSES}", found=label[:80])
    return _positions(classes, [int(labels[number][0]) for number in chosen])


def _refuse(message: str, name: str, line: int, text: str) -> NoReturn:
    raise AnnotationFormatError(message, where=f"{name}: line {line}", found=text[:200])
