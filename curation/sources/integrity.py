"""Checks of raw files: digests, names, unique ids, references to existing records, valid boxes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import AnnotationFormatError, BoxError, DanglingIdError, DuplicateIdError, ImageIdError
from curation.core.files import inside, read_bytes
from curation.core.ids import check_native
from curation.core.reading import filled_lines
from curation.sources.source import Bools, FileRecord, Floats, Int32s, Int64s, Objects
from curation.sources.source_specs import BadBoxes

KIND = "annotation file"
"""The term for a raw file in messages."""
_PLAIN_NAME = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*\Z")

Ids = Int64s | list[str]
Where = Callable[[int], str]
Finder = Callable[[Ids, Where], Int32s]

MAX_COORDINATE = 1e6
_MAX_AREA = MAX_COORDINATE**2
_LONGEST_LABEL = 200


def finder(known: Ids, kind: str, *, hint: str | None = None) -> Finder:
    """Return a function from references to their positions among the unique ids `known`.

    The function raises `DanglingIdError` for the first unknown reference, with the number of unknown ones and the hint.
    """
    order = np.argsort(known, kind="stable") if isinstance(known, np.ndarray) else None
    rows = {identity: row for row, identity in enumerate(known)} if order is None else {}

    def find(references: Ids, where: Where) -> Int32s:
        if order is None or isinstance(references, list):
            positions = np.array([rows.get(reference, -1) for reference in _as_list(references)], np.int32)
        else:
            ascending = np.append(np.asarray(known)[order], 0)
            slots = np.searchsorted(ascending[:-1], references)
            is_known = (slots < len(order)) & (ascending[slots] == references)
            positions = np.where(is_known, np.append(order, -1)[slots], -1).astype(np.int32)
        dangling = np.flatnonzero(positions < 0)
        if len(dangling):
            raise DanglingIdError(
                f"A record refers to {kind} that the file does not define",
                where=where(int(dangling[0])),
                expected=f"{kind} listed in the same file",
                found=f"{_as_list(references)[dangling[0]]!r:.80} ({len(dangling)} such records)",
                hint=hint,
            )
        return positions

    return find


def _as_list(ids: Ids) -> Sequence[int | str]:
    return ids if isinstance(ids, list) else ids.tolist()


def check_unique(ids: Ids | Sequence[str], kind: str, where: Where, *, hint: str | None = None) -> None:
    """Raise `DuplicateIdError` with the first repeated id and both of its records."""
    if isinstance(ids, np.ndarray):
        # Sorting is many times faster here than numpy's hash-based unique.
        ranked = ids if (ids[1:] > ids[:-1]).all() else np.sort(ids)
        if (ranked[1:] != ranked[:-1]).all():
            return
    elif len(set(ids)) == len(ids):
        return
    seen: dict[object, int] = {}
    for row, value in enumerate(ids.tolist() if isinstance(ids, np.ndarray) else ids):
        first = seen.setdefault(value, row)
        if first != row:
            raise DuplicateIdError(
                f"Two records have the same {kind}",
                where=where(row),
                expected=f"every {kind} once",
                found=f"{value!r} also at {where(first)}"[:400],
                hint=hint,
            )


def sound_objects(objects: Objects, policy: BadBoxes, where: Where) -> tuple[Objects, dict[str, int]]:
    """Return the objects with valid boxes, and the number of removed objects by reason.

    A box is bad when a number is not finite, its width, height or area is negative, or a coordinate is beyond
    ±1,000,000 pixels. A box without area, or one that extends beyond its image, is kept.

    Parameters
    ----------
    policy : {"error", "drop"}
    where : callable
        Returns the name of a row's record for messages.

    Raises
    ------
    BoxError
        A box is bad and the policy is ``error``.
    """
    boxes, areas = objects.boxes, objects.areas
    # In a sound file the extremes are valid; NaN fails every comparison.
    if not len(boxes) or (
        np.abs(boxes).max() <= MAX_COORDINATE
        and boxes[:, 2:].min() >= 0
        and 0 <= areas.min() <= areas.max() <= _MAX_AREA
    ):
        return objects, {}
    reasons = _reasons(boxes, areas)
    if policy == "error":
        bad = {reason: int(np.flatnonzero(mask)[0]) for reason, mask in reasons.items() if mask.any()}
        reason, row = min(bad.items(), key=lambda item: item[1])
        raise BoxError(
            f"A box is {reason}",
            where=where(row),
            expected=f"x, y, w, h finite, w and h and area not negative, none beyond {MAX_COORDINATE:,.0f} pixels",
            found=f"bbox {boxes[row].tolist()}, area {areas[row]}",
            hint="--on-error boxes=drop leaves such records out and counts them",
        )
    keep = ~np.logical_or.reduce(list(reasons.values()))
    return objects_at(objects, keep), {
        f"box {reason}": int(mask.sum()) for reason, mask in reasons.items() if mask.any()
    }


def check_label(label: str, where: str) -> None:
    """Raise `AnnotationFormatError` if a text cannot be the name of a class."""
    if not (0 < len(label) <= _LONGEST_LABEL and label.isprintable()):
        expected = f"1 to {_LONGEST_LABEL} printable characters"
        raise AnnotationFormatError("Malformed class name", where=where, expected=expected, found=repr(label[:80]))


def _reasons(boxes: Floats, areas: Floats) -> dict[str, Bools]:
    unsound = ~(np.isfinite(boxes).all(axis=1) & np.isfinite(areas))
    negative = ~unsound & ((boxes[:, 2:] < 0).any(axis=1) | (areas < 0))
    huge = ~unsound & ~negative & ((np.abs(boxes) > MAX_COORDINATE).any(axis=1) | (areas > _MAX_AREA))
    return {"not finite": unsound, "negative in size": negative, "beyond any image": huge}


def objects_at(objects: Objects, keep: Bools | Int32s | Int64s) -> Objects:
    """Return the objects selected by a mask or by row numbers."""
    columns: dict[str, Any] = {column.name: getattr(objects, column.name) for column in fields(objects)}
    return replace(objects, **{name: values[keep] for name, values in columns.items() if values is not None})


class SmallFiles:
    """The files below a folder, read into memory.

    Parameters
    ----------
    root : Path
    names : sequence of str
        Paths below it with ``/``.

    Attributes
    ----------
    data : dict of str to bytes
        Bytes by name, in the order of `names`.

    Raises
    ------
    MissingFileError
        A file cannot be read.
    PathEscapeError
        A name leads outside `root`.
    """

    def __init__(self, root: Path, names: Sequence[str]) -> None:
        paths = zip(names, paths_below(root, names), strict=True)
        self.data = {name: read_bytes(path, kind=KIND) for name, path in paths}

    def record(self, name: str, files: Sequence[str], rows: int) -> FileRecord:
        """Return the record of a file, or of several files under a common name, for `Source.files`."""
        if len(files) == 1 and name == files[0]:
            return FileRecord(name, sha256_of_bytes(self.data[name]), len(self.data[name]), rows)
        return record_of_many(name, {file: self.data[file] for file in files}, rows)


def record_of_many(name: str, data: Mapping[str, bytes], rows: int) -> FileRecord:
    """Return the record of several files under a common name; the digest is that of their checksum file."""
    lines = [f"{sha256_of_bytes(content).removeprefix('sha256:')}  {file}\n" for file, content in data.items()]
    digest = sha256_of_bytes("".join(sorted(lines)).encode("utf-8"))
    return FileRecord(name, digest, sum(map(len, data.values())), rows, len(data))


def paths_below(root: Path, names: Sequence[str]) -> list[str]:
    """Return the path of each name below a folder; raise `PathEscapeError` for a name that leads outside it."""
    # Resolving links costs more than reading a small file, so a name of plain characters is not resolved.
    return [f"{root}/{name}" if _PLAIN_NAME.match(name) else str(inside(root, name)) for name in names]


def listed_names(data: bytes, where: str) -> tuple[str, ...]:
    """Return the image names of a list, one per line, without blank lines.

    Raises
    ------
    AnnotationFormatError, DuplicateIdError
        The list is not UTF-8, or a line is repeated or cannot be an image name.
    """
    lines = filled_lines(data, where, AnnotationFormatError, "The list is not UTF-8 text")
    for number, line in lines:
        check_image_name(line, f"{where}: line {number}")
    names = tuple(line for _, line in lines)
    check_unique(names, "image", lambda row: f"{where}: image {row + 1}")
    return names


def check_image_name(name: str, where: str) -> None:
    """Raise `AnnotationFormatError` if a name cannot be an image id."""
    try:
        check_native(name)
    except ImageIdError as error:
        raise AnnotationFormatError(
            "A name cannot be an image id", where=where, expected=error.expected, found=repr(name[:80])
        ) from None
