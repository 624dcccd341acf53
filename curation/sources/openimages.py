"""Reader of Open Images' box CSVs: `read_openimages`.

A part is a CSV of boxes (16 million rows for train). Optional files beside it are class descriptions, a list of all
images (with and without boxes), and a table of image sizes, which Open Images does not publish.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from curation.core.errors import (
    AnnotationFormatError,
    BoxError,
    CurationError,
    DanglingIdError,
    DuplicateIdError,
    MissingFileError,
    UsageError,
)
from curation.core.reading import InputFile, beginning
from curation.core.tables import csv_rows
from curation.sources.integrity import KIND, check_unique, objects_at
from curation.sources.source import Categories, FileRecord, Images, Int32s, Objects, Source
from curation.sources.source_specs import BadBoxes
from curation.sources.table import read_csv_columns

PARTS = ("train", "validation", "test")
COORDINATES = ("XMin", "XMax", "YMin", "YMax")
REQUIRED = ("ImageID", "LabelName", *COORDINATES)

_BOXES = ("{part}-annotations-bbox.csv", "oidv6-{part}-annotations-bbox.csv", "{part}/labels/detections.csv")
_COMPANIONS = {
    "descriptions": (
        "class-descriptions-boxable.csv",
        "oidv7-class-descriptions-boxable.csv",
        "metadata/classes.csv",
        "oidv6-class-descriptions.csv",
        "class-descriptions.csv",
    ),
    "images": ("{part}-images-boxable-with-rotation.csv", "{part}-images-with-rotation.csv"),
    "sizes": ("{part}-image-sizes.csv", "image-sizes.csv"),
}
_BELOW = ("", "annotations", "{part}", "csv")
_PART_IN_NAME = re.compile(r"(?:\A|[-_])(train|validation|test)-annotations-bbox\.csv(?:\.gz)?\Z")
_LABEL = re.compile(r"/[mgt]/[A-Za-z0-9_]+\Z")
_ID = "^[0-9a-f]{16}$"
_MAX_SIDE = 1_000_000
_FLAGS = {
    "occluded": "IsOccluded",
    "truncated": "IsTruncated",
    "crowd": "IsGroupOf",
    "depiction": "IsDepiction",
    "inside": "IsInside",
}
"""Columns of the file by their names in `Objects`."""
_ALWAYS = ("occluded", "truncated", "crowd")
_UNSTATED, _EMPTY = -1, 2
_NO_CLASS, _NO_IMAGE = "of a class without description", "on an image that is not listed"
_LEAVES_OUT = "--on-error boxes=drop leaves such boxes out and counts them"


def is_box_file(path: Path) -> bool:
    """Return whether a file is a CSV whose header has Open Images' box columns."""
    if not path.name.lower().removesuffix(".gz").endswith(".csv") or not path.is_file():
        return False
    try:
        line = beginning(path, 1 << 12).split(b"\n", 1)[0]
    except CurationError:
        return False
    names = line.decode("utf-8", "replace").replace('"', "").strip().split(",")
    # A box file that lacks a column is still recognised, and then rejected.
    return len(set(REQUIRED) & set(names)) >= len(REQUIRED) - 1


def openimages_parts(root: Path) -> tuple[str, ...]:
    """Return the parts with a box file below a root."""
    return tuple(part for part in PARTS if _existing_files(root, _BOXES, part))


def _existing_files(root: Path, names: tuple[str, ...], part: str) -> list[Path]:
    folders = [root / below.format(part=part) for below in _BELOW]
    paths = [folder / name.format(part=part) for folder in folders for name in names]
    return list(dict.fromkeys(path for path in paths if path.is_file()))


def _locate(path: Path, part: str) -> tuple[str, dict[str, Path]]:
    """Return the part and its files by kind, from a root or from a box file and the files beside it.

    Raises
    ------
    MissingFileError
        No box file exists; the error lists the paths tried.
    UsageError
        There are several box files, or the root offers several parts and no part is requested.
    """
    boxes, folders = path, [path.parent, path.parent.parent]
    if path.is_dir():
        offered = openimages_parts(path)
        if not part and len(offered) > 1:
            raise UsageError(
                "The root offers several parts",
                where=str(path),
                expected="one of them",
                found=", ".join(offered),
                hint=f"--source openimages@{offered[0]}={shlex.quote(str(path))}",
            )
        part = part or next(iter(offered), "")
        box_files = _existing_files(path, _BOXES, part) if part else []
        if not box_files:
            raise MissingFileError(
                f"The folder holds no boxes of Open Images {part}".rstrip(),
                where=str(path),
                expected=", ".join(name.format(part=part or "PART") for name in _BOXES),
                found=f"boxes of {', '.join(offered)}" if offered else "no …-annotations-bbox.csv",
            )
        if len(box_files) > 1:
            raise UsageError(
                f"The folder holds several box files of {part}",
                where=str(path),
                expected="one of them",
                found=", ".join(str(file.relative_to(path)) for file in box_files),
                hint=f"--source openimages@{part}={shlex.quote(str(box_files[0]))}",
            )
        boxes = box_files[0]
        folders = [path, boxes.parent, boxes.parent.parent]
    else:
        match = _PART_IN_NAME.search(path.name.lower())
        part = part or (match[1] if match else "")
    paths = {"boxes": boxes}
    for kind, names in _COMPANIONS.items():
        usable = tuple(name for name in names if part or "{part}" not in name)
        companion = next((file for folder in folders for file in _existing_files(folder, usable, part)), None)
        paths |= {kind: companion} if companion else {}
    return part, paths


def read_descriptions(content: InputFile) -> dict[str, str]:
    """Return the name of each class by its key (MID), in file order, names unique.

    A class without a name is named by its key (one circulating copy has a blank name for ``/m/012n7d``). Classes with
    the same name get their keys as suffix: ``Bow (/m/03…)``. A header line (``LabelName,DisplayName``) and further
    columns (one circulating copy repeats some names in a third column) are skipped.

    Raises
    ------
    AnnotationFormatError
        A row is not a key and a name.
    DuplicateIdError
        A key is repeated.
    """
    message = "The class descriptions are not CSV in UTF-8"
    rows = csv_rows(content.data, AnnotationFormatError, message, where=content.name, strict=True)
    names: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        if not row or (number == 1 and row[0] == "LabelName"):
            continue
        where = f"{content.name}: row {number}"
        if len(row) < 2 or not _LABEL.match(row[0]) or len(row[1]) > 300 or not (row[1] + ".").isprintable():
            raise AnnotationFormatError(
                "A row of the class descriptions is malformed",
                where=where,
                expected="a key such as /m/0jbk, and a name",
                found=",".join(row)[:120],
            )
        if row[0] in names:
            raise DuplicateIdError("A class is described twice", where=where, found=row[0])
        names[row[0]] = row[1].strip() or row[0]
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    return {key: f"{name} ({key})" if name in shared else name for key, name in names.items()}


def _sizes(file: InputFile) -> tuple[Any, Int32s]:
    """Return the image ids of a table of sizes (``image_id`` or ``ImageID``), with their widths and heights."""
    names = {"image_id": "string", "ImageID": "string", "width": "int64", "height": "int64"}
    table = read_csv_columns(file, names, required=("width", "height"))
    column = next((table[name] for name in ("ImageID", "image_id") if name in table.column_names), None)
    if column is None:
        raise AnnotationFormatError("The table lacks a column", where=f"{file.name}: row 1", expected="image_id")
    ids = _unique_ids(column, file)
    sizes = np.stack([table[side].fill_null(0).to_numpy() for side in ("width", "height")], axis=1)
    if (bad := ((sizes < 1) | (sizes > _MAX_SIDE)).any(axis=1)).any():
        raise AnnotationFormatError(
            "The size of an image is malformed",
            where=f"{file.name}: row {int(bad.argmax()) + 2}",
            expected=f"width and height from 1 to {_MAX_SIDE:,}",
            found=", ".join(map(str, sizes[bad.argmax()].tolist())),
        )
    return ids, sizes.astype(np.int32)


def _positions_among(texts: Any, known: Any) -> Int32s:
    """Return the position of each text of an Arrow array among the known texts, -1 for an unknown text."""
    from pyarrow import compute

    return np.asarray(compute.index_in(texts, value_set=known).fill_null(-1), np.int32)


def _check_image_ids(ids: Any, where: Callable[[int], str]) -> None:
    """Raise `AnnotationFormatError` if a text of an Arrow array is not sixteen digits of 0-9a-f."""
    from pyarrow import compute

    if (row := compute.index(compute.match_substring_regex(ids, _ID), value=False).as_py()) >= 0:
        raise AnnotationFormatError(
            "An image id of Open Images is malformed",
            where=where(row),
            expected="sixteen digits of 0-9a-f",
            found=repr(ids[row].as_py())[:80],
        )


def _unique_ids(column: Any, file: InputFile) -> Any:
    def where(row: int) -> str:
        return f"{file.name}: row {row + 2}"

    ids = column.combine_chunks()
    _check_image_ids(ids, where)
    check_unique(ids.to_pylist(), "image id", where)
    return ids


def read_openimages(path: Path, *, dataset: str, part: str, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source of an Open Images box CSV; group-of boxes are marked by `Objects.crowd`.

    If the size of an image is known, its boxes are in pixels: ``XMin*W, YMin*H, (XMax-XMin)*W, (YMax-YMin)*H``, not
    rounded. Otherwise they remain shares of the image, and `Source.unit_boxes` is True. Classes have their display
    names; `Categories.keys` holds their MIDs, and `Objects.numbers` the rows of the CSV, from 1.

    Parameters
    ----------
    path : Path
        A box CSV; or a root that holds ``PART-annotations-bbox.csv`` or ``oidv6-PART-annotations-bbox.csv``,
        itself or in ``annotations``, ``csv`` or ``PART``, or FiftyOne's ``PART/labels/detections.csv``. Further files
        in these folders: ``class-descriptions-boxable.csv``, ``PART-images-boxable-with-rotation.csv`` or
        ``PART-images-with-rotation.csv``, and ``PART-image-sizes.csv`` (``image_id,width,height``).
    part : str
        ``""`` means the part in the file's name, or the only part of the root.
    bad_boxes : {"error", "drop"}
        Whether a box that is not finite, not within 0 to 1 or negative in size, that is of a class without
        description, or on an image that the list lacks stops the reading or is left out and counted in
        `Source.dropped`.

    Raises
    ------
    MissingFileError, UsageError
        There is not exactly one box file.
    AnnotationFormatError, DuplicateIdError, DanglingIdError, BoxError
        A file is malformed; the error names the row.
    """
    import pyarrow

    part, paths = _locate(path, part)
    files = {kind: InputFile(companion, kind=KIND) for kind, companion in paths.items() if kind != "boxes"}
    names = read_descriptions(files["descriptions"]) if "descriptions" in files else None
    boxes_file = InputFile(paths["boxes"], kind=KIND)
    table = _box_table(boxes_file)
    rows, records = len(table), {"boxes": _record(boxes_file, len(table))}
    # The text of train takes more memory than its columns.
    del boxes_file

    def where(row: int) -> str:
        return f"{records['boxes'].name}: row {row + 2}"

    words, labels = (table[name].combine_chunks() for name in ("ImageID", "LabelName"))
    ids, image, category = words.dictionary, words.indices.to_numpy(), labels.indices.to_numpy()
    _check_image_ids(ids, lambda number: where(int((image == number).argmax())))
    keys = tuple(labels.dictionary.to_pylist() if names is None else names)
    if names is not None:
        category = _positions_among(labels.dictionary, pyarrow.array(keys, pyarrow.string()))[category]
    if "images" in files:
        box_ids, ids = (
            ids,
            _unique_ids(read_csv_columns(files["images"], {"ImageID": "string"})["ImageID"], files["images"]),
        )
        image = _positions_among(box_ids, ids)[image]
    boxes = _shares(table)
    keep, dropped = _sound_rows(table, boxes, image, category, where, bad_boxes)
    flags = {flag: values[keep] for flag, values in _flags(table, where).items()}
    unstated = {
        f"{_FLAGS[flag]} flags that are not stated (read as 0)": int((values == _UNSTATED).sum())
        for flag, values in flags.items()
    }
    sizes, n_sizes = np.zeros((len(ids), 2), np.int32), 0
    if "sizes" in files:
        sized, pixels = _sizes(files["sizes"])
        # The table may have fewer or more images than the part: all photos are rarely available.
        position, n_sizes = _positions_among(ids, sized), len(sized)
        sizes[position >= 0] = pixels[position[position >= 0]]
        factors = np.where(sizes > 0, sizes, 1).astype(np.float64)
        for side in range(4):
            # Column by column: another copy of the boxes of train would take half a gigabyte.
            boxes[:, side] *= factors[image, side % 2]
    objects = objects_at(Objects.of(image, category, boxes, numbers=np.arange(1, rows + 1, dtype=np.int64)), keep)
    counts = {"descriptions": len(names or ()), "images": len(ids), "sizes": n_sizes}
    records |= {kind: _record(file, counts[kind]) for kind, file in files.items()}
    return Source.of(
        dataset,
        part,
        images=Images.of(
            native := ids.to_numpy(zero_copy_only=False),
            text_ids=native,
            widths=np.ascontiguousarray(sizes[:, 0]),
            heights=np.ascontiguousarray(sizes[:, 1]),
        ),
        categories=Categories.counted(keys if names is None else tuple(names.values()), keys),
        objects=replace(objects, **{flag: values == 1 for flag, values in flags.items()}),
        files=tuple(records.values()),
        dropped={reason: count for reason, count in sorted((dropped | unstated).items()) if count},
        unit_boxes=True,
    )


def _record(file: InputFile, rows: int) -> FileRecord:
    return FileRecord(file.name, file.sha256, file.size, rows)


def _box_table(file: InputFile) -> Any:
    """Return the required columns of a box CSV, with image ids and class keys as dictionary columns."""
    import pyarrow

    words = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    kinds = {"ImageID": words, "LabelName": words}
    kinds |= dict.fromkeys(COORDINATES, "float64") | dict.fromkeys(_FLAGS.values(), "int8")
    return read_csv_columns(file, kinds, required=REQUIRED).unify_dictionaries()


def _shares(table: Any) -> Any:
    """Return ``x, y, w, h`` of each row as shares of the image, shape (m, 4)."""
    left, right, top, bottom = (table[name].to_numpy() for name in COORDINATES)
    # NumPy would warn if both corners are not finite.
    with np.errstate(invalid="ignore"):
        return np.stack([left, top, right - left, bottom - top], axis=1)


def _sound_rows(
    table: Any, boxes: Any, image: Int32s, category: Int32s, where: Callable[[int], str], bad_boxes: BadBoxes
) -> tuple[Any, dict[str, int]]:
    """Return which rows are valid, and the number of others by the first reason that applies."""
    corners = [table[name].to_numpy() for name in COORDINATES]
    reasons = {
        "not finite": ~np.logical_and.reduce([np.isfinite(side) for side in corners]),
        "not within 0 to 1": ~np.logical_and.reduce([(side >= 0) & (side <= 1) for side in corners]),
        "negative in size": (boxes[:, 2:] < 0).any(axis=1),
        _NO_CLASS: category < 0,
        _NO_IMAGE: image < 0,
    }
    keep, dropped, first = np.ones(len(boxes), np.bool_), dict[str, int](), dict[str, int]()
    for reason, mask in reasons.items():
        mask &= keep
        keep &= ~mask
        dropped[f"box {reason}"] = int(mask.sum())
        if mask.any():
            first[reason] = int(mask.argmax())
    if not first or bad_boxes == "drop":
        return keep, dropped
    reason, row = min(first.items(), key=lambda item: item[1])
    if reason in (_NO_CLASS, _NO_IMAGE):
        expected = "a LabelName of the class descriptions" if reason == _NO_CLASS else "an image of the list of images"
        column = "LabelName" if reason == _NO_CLASS else "ImageID"
        raise DanglingIdError(
            f"A box is {reason}",
            where=where(row),
            expected=expected,
            found=f"{table[column][row].as_py()} ({dropped[f'box {reason}']} such boxes)",
            hint=_LEAVES_OUT,
        )
    raise BoxError(
        f"A box is {reason}",
        where=where(row),
        expected="0 <= XMin <= XMax <= 1 and 0 <= YMin <= YMax <= 1",
        found=", ".join(f"{name} {side[row]:g}" for name, side in zip(COORDINATES, corners, strict=True)),
        hint=_LEAVES_OUT,
    )


def _flags(table: Any, where: Callable[[int], str]) -> dict[str, Any]:
    """Return the flags of the rows by their name in `Objects`, -1 for a flag that is not stated."""
    flags: dict[str, Any] = {}
    for flag, name in _FLAGS.items():
        if name in table.column_names:
            values = table[name].fill_null(_EMPTY).to_numpy()
            if (odd := (values < _UNSTATED) | (values > 1)).any():
                row = int(odd.argmax())
                value = "nothing" if values[row] == _EMPTY else str(values[row])
                raise AnnotationFormatError(f"{name} is none of -1, 0 and 1", where=where(row), found=value)
            flags[flag] = values
        elif flag in _ALWAYS:
            flags[flag] = np.full(len(table), _UNSTATED, np.int8)
    return flags
