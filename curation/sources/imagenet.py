"""Reader of ImageNet: the class of each image, from folders, lists or counts; photos are not opened.

Classes are wnids (``n02085620``); image ids are file names without suffix (``n02085620_10026``,
``ILSVRC2012_val_00001049``). Layouts: a folder of class folders (or a root that holds ``train`` and ``val``); a flat
``val`` folder with a file of its classes beside it; a list of training names; ``val.txt`` (name and class index);
``LOC_val_solution.csv``; JSON of names by class; JSON of counts by class, without names.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from curation.core.columns import distinct
from curation.core.errors import AnnotationFormatError, ImageIdError, MissingFileError, UsageError
from curation.core.ids import check_native, ilsvrc2012_classes
from curation.core.json_text import decode_json
from curation.core.reading import InputFile, beginning, utf8_text
from curation.core.tables import csv_rows
from curation.sources.integrity import KIND, check_unique
from curation.sources.source import FileRecord, Images, Source, texts
from curation.sources.table import SUFFIXES as TABLES
from curation.sources.table import parse_table

NO_NAMES = "image names: the file states counts alone"
"""Key of `Source.dropped` for a source whose images have numbers in place of names."""

_BELOW = ("", "ILSVRC/Data/CLS-LOC", "Data/CLS-LOC")
_OWN_LIST = re.compile(
    rb"ImageId,PredictionString\s+[^,\s]+,n\d{8}\s|(?:[^\s\"]+/)?(?:n\d{8}_\d+|ILSVRC2012_val_\d{8})\.|\{\s*\"n\d{8}\"\s*:"
)
_GROUND_TRUTH = ("LOC_val_solution.csv", "val.txt", "caffe_ilsvrc12/val.txt")


def read_imagenet(path: Path, *, dataset: str = "imagenet", part: str) -> Source:
    """Return the presence-only source at a path, in which each image has one class.

    Parameters
    ----------
    path : Path
        One of the layouts in the module's docstring, or a plain table of image and class.
    part : str
        ``train`` or ``val``.

    Raises
    ------
    MissingFileError
        The path does not exist, or is a flat folder without a file of classes.
    AnnotationFormatError
        A file is malformed.
    DuplicateIdError
        Two images have the same name.
    """
    if path.is_dir():
        return _from_folder(part_folder(path, part), dataset, part)
    if path.suffix.lower() in TABLES and not beginning(path, 24).startswith(b"ImageId,PredictionString"):
        return parse_table(InputFile(path, kind=KIND), dataset=dataset, part=part)
    return _source(read_labels(path, part), dataset, part)


def is_own_list(path: Path) -> bool:
    """Return whether a file begins like a list of ILSVRC2012, with its image names or wnids as keys."""
    return path.is_file() and _OWN_LIST.match(beginning(path, 1 << 10)) is not None


def imagenet_parts(root: Path) -> tuple[str, ...]:
    """Return the parts that a root in Kaggle's layout offers."""
    return tuple(part for part in ("train", "val") if any((root / below / part).is_dir() for below in _BELOW[1:]))


def class_of_images(source: Source) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the position of each image's only class in `Source.categories`, shape (n,).

    Raises
    ------
    AnnotationFormatError
        An image does not show exactly one class (a source of another kind).
    """
    image, category = source.class_pairs()
    n = len(source.images)
    if len(image) != n or not np.array_equal(image, np.arange(n)):
        raise AnnotationFormatError(
            "Some images have no class or several classes",
            where=f"source {source.dataset} {source.part}: {source.files[0].name if source.files else ''}",
            expected=f"{n} images with one class each",
            found=f"{len(image)} pairs of image and class, {len(distinct(image))} images",
            hint="for images with boxes: curation init tasks, superclass, wilderness or near-far",
        )
    return category


def part_folder(path: Path, part: str) -> Path:
    """Return the folder with the class folders of a part: the path itself, or its usual place in a root."""
    for below in _BELOW:
        if (folder := path / below / part).is_dir():
            return folder
    return path


def _from_folder(folder: Path, dataset: str, part: str) -> Source:
    names: list[str] = []
    classes: list[str] = []
    dropped = Counter[str]()
    with os.scandir(folder) as entries:
        present_entries = sorted(entries, key=lambda entry: entry.name)
    folders = [entry.name for entry in present_entries if entry.is_dir()]
    if not any(is_wnid(name) for name in folders):
        return _flat_folder(folder, [entry.name for entry in present_entries], dataset, part)
    dropped["entries beside the class folders"] = len(present_entries) - sum(map(is_wnid, folders))
    for wnid in filter(is_wnid, folders):
        present = sorted(os.listdir(folder / wnid))  # noqa: PTH208 (a million names; a Path each would cost minutes)
        images = _images_among(present)
        dropped["files that are no images"] += len(present) - len(images)
        names += images
        classes += [wnid] * len(images)
    listing = "".join(f"{wnid}/{name}\n" for wnid, name in zip(classes, names, strict=True))
    # A name that is not UTF-8 is rejected below, with its position.
    data = listing.encode("utf-8", "surrogateescape")
    record = FileRecord(
        f"{part}/*/* (names)", f"sha256:{hashlib.sha256(data).hexdigest()}", len(data), len(names), len(names)
    )
    return _source(LabelledNames(names, classes, record, dict(+dropped)), dataset, part)


def _images_among(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.lower().endswith(SUFFIXES) and not name.startswith(".")]


def _flat_folder(folder: Path, present: Sequence[str], dataset: str, part: str) -> Source:
    """Return the images of a folder without class folders, with their classes from a file beside it."""
    paths = [base / name for base in (folder, *folder.parents[:4]) for name in _GROUND_TRUTH]
    truth = next((path for path in paths if path.is_file()), None)
    if truth is None:
        raise MissingFileError(
            "The folder has no class folders, and no file beside it states the classes of its images",
            where=str(folder),
            expected=f"folders such as n02085620, or one of {', '.join(_GROUND_TRUTH)} in it or above it",
            found=f"{len(present)} entries",
            hint=f"--source imagenet-{part}=LOC_{part}_solution.csv (or val.txt): the list alone is enough",
        )
    labelled = read_labels(truth, part)
    images = {stem(name): name for name in _images_among(present)}
    listed = zip(labelled.names, labelled.classes, strict=True)
    pairs = [(images[stem(name)], wnid) for name, wnid in listed if stem(name) in images]
    dropped = Counter(
        {
            "files that are no images": len(present) - len(images) - (truth.parent == folder),
            "listed images that are not in the folder": len(labelled.names) - len(pairs),
            "images in the folder that are not listed": len(images) - len(pairs),
        }
    )
    names, classes = [name for name, _ in pairs], [wnid for _, wnid in pairs]
    return _source(LabelledNames(names, classes, labelled.record, dict(+dropped)), dataset, part)


def _source(labelled: LabelledNames, dataset: str, part: str) -> Source:
    names = labelled.names
    natives = [stem(name) for name in names]
    _check_natives(natives, labelled.record.name)
    check_unique(natives, "image", lambda row: f"{labelled.record.name}: image {row + 1}")
    images = Images.of(natives, text_ids=texts(natives), file_names=names)
    return Source.of_labels(dataset, part, images, labelled.classes, labelled.record, dropped=labelled.dropped)


def _check_natives(natives: Sequence[str], where: str) -> None:
    # One match checks a million usual names; the full check finds the name that is wrong.
    lines = "\n".join(natives) + "\n"
    if _PLAIN_LINES.fullmatch(lines) and lines.count("\n") == len(natives):
        return
    for native in natives:
        try:
            check_native(native)
        except ImageIdError as error:
            raise AnnotationFormatError(
                "A file name cannot be an image id", where=f"{where}: {native[:80]!r}", expected=error.expected
            ) from None


SUFFIXES = (".jpeg", ".jpg", ".png")
CLASSES = 1000
_PLAIN_LINES = re.compile(r"(?:[A-Za-z0-9_]{1,199}\n)*+")
_WNID = re.compile(r"n[0-9]{8}")
_MOST_IMAGES = 20_000_000
_LONGEST_LINE = 10_000


class LabelledNames(NamedTuple):
    """Names of image files and their wnids, with the file they come from and the number left out, by reason."""

    names: list[str]
    classes: list[str]
    record: FileRecord
    dropped: dict[str, int]


def is_wnid(text: str) -> bool:
    """Return whether a text is ``n`` and eight digits."""
    return _WNID.fullmatch(text) is not None


def stem(name: str) -> str:
    """Return a file name without the suffix of an image."""
    before, dot, suffix = name.rpartition(".")
    return before if f"{dot}{suffix}".lower() in SUFFIXES else name


def read_labels(path: Path, part: str) -> LabelledNames:
    """Return the image names and classes of a list file, whose suffix and first line determine the layout.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    AnnotationFormatError
        The layout is unknown, or a line differs in form from the first one.
    UsageError
        The list belongs to another part than the requested one.
    """
    content = InputFile(path, kind=KIND)
    text = utf8_text(content.data, str(path), AnnotationFormatError, "The list is not UTF-8 text")
    if path.suffix.lower() == ".json":
        names, classes, counts_alone = _from_json(text, path)
    else:
        (names, classes), counts_alone = _from_lines(text, path), False
    if not counts_alone:
        _require_part(names, part, path)
    record = FileRecord(content.name, content.sha256, content.size, len(names))
    return LabelledNames(names, classes, record, {NO_NAMES: len(names)} if counts_alone else {})


def _from_lines(text: str, path: Path) -> tuple[list[str], list[str]]:
    lines = [line.strip() for line in text.strip().split("\n")]
    first = lines[0]
    for form, read in _LAYOUTS.items() if len(first) <= _LONGEST_LINE else ():
        if re.fullmatch(form, first):
            return read(list(filter(None, lines)), path)
    raise AnnotationFormatError(
        "Unknown layout of an ImageNet list",
        where=f"{path}, line 1",
        expected="n02085620_10026.JPEG; ILSVRC2012_val_00000001.JPEG 65; ImageId,PredictionString; or JSON",
        found=repr(first[:80]),
    )


def _train_names(lines: list[str], path: Path) -> tuple[list[str], list[str]]:
    """Read ``n02085620_10026.JPEG``, with or without folders before it."""
    names = [line.rpartition("/")[2] for line in lines]
    classes = [name[:9] for name in names]
    for number, (line, wnid) in enumerate(zip(lines, classes, strict=True), start=1):
        if not (_WNID.fullmatch(wnid) and line[-5:].lower().endswith(SUFFIXES)):
            _refuse(path, number, line, "the name of a training image, which begins with its wnid")
        folder = line.split("/")[-2] if "/" in line else wnid
        if is_wnid(folder) and folder != wnid:
            _refuse(path, number, line, f"an image of {folder} in the folder {folder}")
    return names, classes


def _indexed_names(lines: list[str], path: Path) -> tuple[list[str], list[str]]:
    """Read ``NAME INDEX``, the index counting the 1,000 wnids in sorted order from 0."""
    wnids = ilsvrc2012_classes()
    names: list[str] = []
    classes: list[str] = []
    for number, line in enumerate(lines, start=1):
        file, _, index = line.rpartition(" ")
        name = file.strip().rpartition("/")[2]
        if not (name and index.isascii() and index.isdigit() and len(index) < 5 and int(index) < CLASSES):
            _refuse(path, number, line, "a file name and a class index from 0 to 999")
        wnid = wnids[int(index)]
        if is_wnid(name[:9]) and name[:9] != wnid:
            _refuse(path, number, line, f"the index of {name[:9]} among the sorted wnids; this file uses another order")
        names.append(name)
        classes.append(wnid)
    return names, classes


def _solution(lines: list[str], path: Path) -> tuple[list[str], list[str]]:
    """Read Kaggle's ``ImageId,PredictionString``, which repeats the wnid and a box."""
    names: list[str] = []
    classes: list[str] = []
    rows = csv_rows("\n".join(lines[1:]).encode(), AnnotationFormatError, "The list is not CSV", where=str(path))
    for number, row in enumerate(rows, start=2):
        words = row[1].split() if len(row) == 2 else []
        wnids = set(words[::5])
        if len(wnids) != 1 or not is_wnid(words[0]) or len(words) % 5 > 1:
            _refuse(path, number, ",".join(row), "ImageId,wnid x1 y1 x2 y2 …, one class an image")
        names.append(f"{stem(row[0])}.JPEG")
        classes.append(words[0])
    return names, classes


_LAYOUTS: dict[str, Callable[[list[str], Path], tuple[list[str], list[str]]]] = {
    r"ImageId,PredictionString": _solution,
    r"\S.* [0-9]{1,4}": _indexed_names,
    r"(?:\S+/)?n[0-9]{8}\S*\.\S+": _train_names,
}
"""Readers by the form of a file's first line."""


def _from_json(text: str, path: Path) -> tuple[list[str], list[str], bool]:
    message = "The list is not JSON of names or counts by wnid"
    by_wnid = decode_json(text.encode(), dict[str, list[str] | int], AnnotationFormatError, message, where=str(path))
    if strangers := [wnid for wnid in by_wnid if not is_wnid(wnid)]:
        _refuse(path, 1, strangers[0], "wnids as keys")
    counts = {wnid: value for wnid, value in by_wnid.items() if isinstance(value, int)}
    if counts and len(counts) < len(by_wnid):
        _refuse(path, 1, next(iter(counts)), "names for every class, or counts for every class")
    if counts:
        if min(counts.values()) < 0 or sum(counts.values()) > _MOST_IMAGES:
            _refuse(path, 1, str(min(counts.values())), f"counts of 0 or more, {_MOST_IMAGES} together at most")
        names = [f"{wnid}_{number:08d}.JPEG" for wnid, count in counts.items() for number in range(count)]
        return names, [wnid for wnid, count in counts.items() for _ in range(count)], True
    lists = {wnid: value for wnid, value in by_wnid.items() if not isinstance(value, int)}
    names = [name.rpartition("/")[2] for value in lists.values() for name in value]
    classes = [wnid for wnid, value in lists.items() for _ in value]
    for name, wnid in zip(names, classes, strict=True):
        if is_wnid(name[:9]) and name[:9] != wnid:
            _refuse(path, 1, name, f"images of {wnid} under {wnid}")
    return names, classes, False


def _require_part(names: list[str], part: str, path: Path) -> None:
    first = names[0] if names else ""
    list_part = "val" if first.startswith("ILSVRC2012_val_") else "train" if is_wnid(first[:9]) else part
    if list_part != part and part in ("train", "val"):
        raise UsageError(
            f"The list is ImageNet's {list_part} part",
            where=str(path),
            expected=f"images of {part}",
            found=repr(first[:60]),
            hint=f"--source imagenet-{list_part}={shlex.quote(str(path))}",
        )


def _refuse(path: Path, number: int, line: str, expected: str) -> NoReturn:
    raise AnnotationFormatError(
        "A line of the list cannot be read", where=f"{path}, line {number}", expected=expected, found=repr(line[:80])
    )
