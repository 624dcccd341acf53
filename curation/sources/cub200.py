"""Reader of CUB-200-2011, five lists that say one thing each of every image: `read_cub200`."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import NoReturn

import numpy as np

from curation.errors import AnnotationFormatError, DanglingIdError, MissingFileError, UsageError
from curation.input_files import utf8_text
from curation.sources.content import SmallFiles, check_name
from curation.sources.integrity import check_policy, check_unique, sound_objects
from curation.sources.source import Categories, Images, Int32s, Int64s, Objects, Source
from curation.sources.source_specs import BadBoxes

FILES = ("images.txt", "classes.txt", "image_class_labels.txt", "bounding_boxes.txt", "train_test_split.txt")
PARTS = ("train", "test")

_IMAGES, _CLASSES, _LABELS, _BOXES, _SPLIT = FILES
_BELOW = ("", "CUB_200_2011")


def read_cub200(root: Path, part: str = "", *, dataset: str = "cub200", bad_boxes: BadBoxes = "error") -> Source:
    """Return the source that a CUB-200-2011 folder holds, each image with its one bird.

    Native ids are file names without folder and suffix (``Black_Footed_Albatross_0046_18``). A class is called by what
    stands behind its number (``Black_footed_Albatross``); `Categories.keys` holds the whole name.
    Sizes of images are not stated.

    Parameters
    ----------
    root : Path
        Folder with the files `FILES`, or one that holds it as ``CUB_200_2011``.
    part : str
        ``train``, ``test`` (column of ``train_test_split.txt``), or ``""`` for all images.
    bad_boxes : {"error", "drop"}

    Raises
    ------
    MissingFileError, UsageError
        A file is not there; there is no such part.
    AnnotationFormatError, DuplicateIdError, DanglingIdError, BoxError
        A file is not what it should be, or lacks an image; the error names the line.
    """
    return parse_cub200(SmallFiles(locate_cub200(root), FILES), dataset=dataset, part=part, bad_boxes=bad_boxes)


def locate_cub200(root: Path) -> Path:
    """Return the folder at or below `root` that has CUB's lists, or raise `MissingFileError`."""
    for below in _BELOW:
        if (root / below / _IMAGES).is_file() and (root / below / _BOXES).is_file():
            return root / below
    raise MissingFileError(
        "No CUB-200-2011 folder is there",
        where=str(root),
        expected=f"{', '.join(FILES)} in it or in {_BELOW[1]}",
    )


def parse_cub200(content: SmallFiles, *, dataset: str, part: str, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source in files that are in memory already (see `read_cub200`)."""
    check_policy(bad_boxes)
    if part not in ("", *PARTS):
        raise UsageError("CUB-200-2011 has no such part", expected=", ".join(PARTS), found=repr(part)[:60])
    rows = {name: _rows(content.data[name], name) for name in FILES}
    names = [PurePosixPath(row[1]).stem for row in rows[_IMAGES]]
    for number, (name, row) in enumerate(zip(names, rows[_IMAGES], strict=True), start=1):
        check_name(name, f"{_IMAGES}: line {number}")
        check_name(row[1], f"{_IMAGES}: line {number}")
    check_unique(names, "image name", lambda row: f"{_IMAGES}: line {row + 1}")
    chosen = np.flatnonzero(_in_part(rows, part))
    where = {int(row): line for line, row in enumerate(_aligned(rows, _BOXES)[0].tolist(), start=1)}
    objects, dropped = sound_objects(
        _objects(rows, chosen), bad_boxes, lambda row: f"{_BOXES}: line {where.get(int(chosen[row]), row + 1)}"
    )
    return Source.of(
        dataset,
        part,
        images=Images.of(
            [names[row] for row in chosen.tolist()],
            numbers=_ids(rows, _IMAGES)[chosen],
            file_names=[rows[_IMAGES][row][1] for row in chosen.tolist()],
        ),
        categories=_categories(rows),
        objects=objects,
        files=tuple(content.record(name, [name], len(rows[name])) for name in FILES),
        dropped=dropped,
    )


Rows = dict[str, list[list[str]]]


def _rows(data: bytes, name: str) -> list[list[str]]:
    width = 5 if name == _BOXES else 2
    text = utf8_text(data, name, AnnotationFormatError, "The list is not UTF-8 text")
    lines = text.rstrip().split("\n") if text.strip() else []
    rows = [line.split() for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            _refuse(f"A line has not {width} words", name, number, " ".join(row))
        if not (row[0].isascii() and row[0].isdigit() and len(row[0]) < 10):
            _refuse("A line does not begin with a number", name, number, row[0])
    check_unique(np.array([int(row[0]) for row in rows], np.int64), "number", lambda row: f"{name}: line {row + 1}")
    return rows


def _ids(rows: Rows, name: str) -> Int64s:
    return np.array([int(row[0]) for row in rows[name]], np.int64)


def _aligned(rows: Rows, name: str) -> tuple[Int64s, Int64s]:
    """Return the image that each line of a list speaks of, and the line that speaks of each image, by position."""
    known = {number: place for place, number in enumerate(_ids(rows, _IMAGES).tolist())}
    image = np.array([known.get(number, -1) for number in _ids(rows, name).tolist()], np.int64)
    if (image < 0).any():
        number = int(np.flatnonzero(image < 0)[0])
        raise DanglingIdError(
            "A line speaks of an image that is not listed",
            where=f"{name}: line {number + 1}",
            expected=f"a number of {_IMAGES}",
            found=rows[name][number][0],
        )
    if len(image) < len(known):
        missing = min(set(known) - set(_ids(rows, name).tolist()))
        raise AnnotationFormatError(
            "A list lacks an image",
            where=name,
            expected=f"one line for each of {len(known)} images",
            found=f"{len(image)} lines, none for image {missing}",
        )
    line = np.empty(len(image), np.int64)
    line[image] = np.arange(len(image))
    return image, line


def _in_part(rows: Rows, part: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    _, line = _aligned(rows, _SPLIT)
    for number, row in enumerate(rows[_SPLIT], start=1):
        if row[1] not in ("0", "1"):
            _refuse("An image is marked neither 0 nor 1", _SPLIT, number, row[1])
    is_train = np.array([row[1] == "1" for row in rows[_SPLIT]], np.bool_)[line]
    return is_train if part == "train" else ~is_train if part == "test" else np.ones(len(line), np.bool_)


def _categories(rows: Rows) -> Categories:
    names = [row[1].partition(".")[2] or row[1] for row in rows[_CLASSES]]
    check_unique(names, "class name", lambda row: f"{_CLASSES}: line {row + 1}")
    return Categories(
        tuple(_ids(rows, _CLASSES).tolist()),
        tuple(names),
        ("",) * len(names),
        tuple(row[1] for row in rows[_CLASSES]),
    )


def _objects(rows: Rows, chosen: Int64s) -> Objects:
    boxes = np.empty((len(rows[_BOXES]), 4))
    for number, row in enumerate(rows[_BOXES], start=1):
        try:
            boxes[number - 1] = [float(cell) for cell in row[1:]]
        except ValueError:
            _refuse("A box is not four numbers", _BOXES, number, " ".join(row[1:]))
    boxes = boxes[_aligned(rows, _BOXES)[1][chosen]]
    return Objects.of(np.arange(len(chosen)), _classes(rows)[chosen], boxes)


def _classes(rows: Rows) -> Int32s:
    place = {number: position for position, number in enumerate(_ids(rows, _CLASSES).tolist())}
    for number, row in enumerate(rows[_LABELS], start=1):
        if not (row[1].isascii() and row[1].isdigit() and len(row[1]) < 10 and int(row[1]) in place):
            raise DanglingIdError(
                "An image is of a class that is not listed",
                where=f"{_LABELS}: line {number}",
                expected=f"a number of {_CLASSES}",
                found=row[1][:80],
            )
    return np.array([place[int(row[1])] for row in rows[_LABELS]], np.int32)[_aligned(rows, _LABELS)[1]]


def _refuse(what: str, name: str, line: int, found: str) -> NoReturn:
    raise AnnotationFormatError(what, where=f"{name}: line {line}" if line else name, found=found[:200])
