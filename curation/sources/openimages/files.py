"""The files of an Open Images part: where they lie, and what the small ones say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from curation.core.canonical import sha256_of_bytes
from curation.core.csv_table import csv_rows
from curation.core.errors import AnnotationFormatError, CurationError, DuplicateIdError, MissingFileError, UsageError
from curation.core.reading import beginning
from curation.sources.content import FileContent, require_one
from curation.sources.integrity import check_unique
from curation.sources.openimages.streamed_csv import StreamedCsv
from curation.sources.source import Int32s

PARTS = ("train", "validation", "test")
COORDINATES = ("XMin", "XMax", "YMin", "YMax")
REQUIRED = ("ImageID", "LabelName", *COORDINATES)

_BOXES = ("{part}-annotations-bbox.csv", "oidv6-{part}-annotations-bbox.csv", "{part}/labels/detections.csv")
_DESCRIPTIONS = (
    "class-descriptions-boxable.csv",
    "oidv7-class-descriptions-boxable.csv",
    "metadata/classes.csv",
    "oidv6-class-descriptions.csv",
    "class-descriptions.csv",
)
_IMAGES = ("{part}-images-boxable-with-rotation.csv", "{part}-images-with-rotation.csv")
_SIZES = ("{part}-image-sizes.csv", "image-sizes.csv")
_BELOW = ("", "annotations", "{part}", "csv")
_PART_IN_NAME = re.compile(r"(?:\A|[-_])(train|validation|test)-annotations-bbox\.csv(?:\.gz)?\Z")
_LABEL = re.compile(r"/[mgt]/[A-Za-z0-9_]+\Z")
_ID = "^[0-9a-f]{16}$"
_MAX_SIDE = 1_000_000


class OpenImagesPaths(NamedTuple):
    """Paths of a part: the box CSV, and those of the others that are there."""

    part: str
    boxes: Path
    descriptions: Path | None
    images: Path | None
    sizes: Path | None

    def given(self) -> dict[str, Path]:
        """Return all paths that are there by their kind, the boxes first."""
        return {kind: path for kind, path in self._asdict().items() if isinstance(path, Path)}


class OpenImagesContent:
    """The files of a part, large ones not yet read.

    Attributes
    ----------
    part : str
    files : dict of str to StreamedCsv
        By kind: ``boxes``, ``images``, ``sizes``.
    descriptions : FileContent or None
    """

    def __init__(self, paths: OpenImagesPaths) -> None:
        self.part = paths.part
        self.descriptions = FileContent(paths.descriptions) if paths.descriptions else None
        self.files = {kind: StreamedCsv(path) for kind, path in paths.given().items() if kind != "descriptions"}

    def each(self) -> dict[str, StreamedCsv | FileContent]:
        """Return all files by kind, the boxes first."""
        given = self.files | ({"descriptions": self.descriptions} if self.descriptions else {})
        return {kind: given[kind] for kind in ("boxes", "descriptions", "images", "sizes") if kind in given}

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.each().values())

    @property
    def sha256(self) -> str:
        """``sha256:<hex>`` that changes with any of the files, and with which of them are there."""
        lines = [f"{kind} {file.sha256}\n" for kind, file in self.each().items()]
        return sha256_of_bytes("".join(lines).encode("ascii"))


def is_box_file(path: Path) -> bool:
    """Return whether a file is a CSV whose header has Open Images' box columns."""
    if not path.name.lower().removesuffix(".gz").endswith(".csv") or not path.is_file():
        return False
    try:
        line = beginning(path, 1 << 12).split(b"\n", 1)[0]
    except CurationError:
        return False
    names = line.decode("utf-8", "replace").replace('"', "").strip().split(",")
    # A box file that lost a column is still one, and is refused as such.
    return len(set(REQUIRED) & set(names)) >= len(REQUIRED) - 1


def offered_parts(root: Path) -> tuple[str, ...]:
    """Return the parts whose boxes lie below a root."""
    return tuple(part for part in PARTS if _found(root, _BOXES, part))


def locate_openimages(path: Path, part: str) -> OpenImagesPaths:
    """Return the files of a part: those of a root, or a box file and what lies beside it.

    Parameters
    ----------
    part : str
        ``""``: the one that the file's name says, or that the root offers alone.

    Raises
    ------
    MissingFileError
        There is no box file; the error lists what was tried.
    UsageError
        There are several, or the root offers several parts and none was named.
    """
    if not path.is_dir():
        named = _PART_IN_NAME.search(path.name.lower())
        part = part or (named[1] if named else "")
        return _beside(path, part, (path.parent, path.parent.parent))
    offered = offered_parts(path)
    if not part and len(offered) > 1:
        raise UsageError(
            "The root offers several parts",
            where=str(path),
            expected="one of them",
            found=", ".join(offered),
            hint=f"--source openimages@{offered[0]}={path}",
        )
    part = part or next(iter(offered), "")
    found = _found(path, _BOXES, part) if part else []
    if not found:
        raise MissingFileError(
            f"The folder holds no boxes of Open Images {part}".rstrip(),
            where=str(path),
            expected=", ".join(name.format(part=part or "PART") for name in _BOXES),
            found=f"boxes of {', '.join(offered)}" if offered else "no …-annotations-bbox.csv",
        )
    require_one(found, path, f"The folder holds several box files of {part}", f"openimages@{part}")
    return _beside(found[0], part, (path, found[0].parent, found[0].parent.parent))


def _found(root: Path, names: tuple[str, ...], part: str) -> list[Path]:
    folders = [root / below.format(part=part) for below in _BELOW]
    paths = [folder / name.format(part=part) for folder in folders for name in names]
    return list(dict.fromkeys(path for path in paths if path.is_file()))


def _beside(boxes: Path, part: str, folders: tuple[Path, ...]) -> OpenImagesPaths:
    def first(names: tuple[str, ...]) -> Path | None:
        usable = [name for name in names if part or "{part}" not in name]
        return next((path for folder in folders for path in _found(folder, tuple(usable), part)), None)

    return OpenImagesPaths(part, boxes, first(_DESCRIPTIONS), first(_IMAGES), first(_SIZES))


def read_descriptions(content: FileContent) -> dict[str, str]:
    """Return the name of each class by its key (MID), in file order, names unique.

    A class without a name is called by its key (a copy in circulation has a blank one for ``/m/012n7d``); classes that
    share a name have their keys behind it: ``Bow (/m/03…)``. A header line (``LabelName,DisplayName``) and further
    columns (a copy in circulation repeats some names in a third one) are passed over.

    Raises
    ------
    AnnotationFormatError
        A row is not a key and a name.
    DuplicateIdError
        A key stands twice.
    """
    what = "The class descriptions are not CSV in UTF-8"
    rows = csv_rows(content.data, AnnotationFormatError, what, where=content.name, strict=True)
    names: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        if not row or (number == 1 and row[0] == "LabelName"):
            continue
        _check_description(row, f"{content.name}: row {number}", names)
        names[row[0]] = row[1].strip() or row[0]
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    return {key: f"{name} ({key})" if name in shared else name for key, name in names.items()}


def _check_description(row: list[str], where: str, names: dict[str, str]) -> None:
    if len(row) < 2 or not _LABEL.match(row[0]) or len(row[1]) > 300 or not (row[1] + ".").isprintable():
        raise AnnotationFormatError(
            "A row of the class descriptions is malformed",
            where=where,
            expected="a key such as /m/0jbk, and a name",
            found=",".join(row)[:120],
        )
    if row[0] in names:
        raise DuplicateIdError("A class is described twice", where=where, found=row[0])


def read_image_list(file: StreamedCsv) -> Any:
    """Return the image ids (a pyarrow.StringArray) of a list with a column ``ImageID``, in file order.

    Raises
    ------
    AnnotationFormatError, DuplicateIdError
        An id is malformed, or stands twice.
    """
    return _unique_ids(_table(file, {"ImageID": "string"})["ImageID"], file)


def read_sizes(file: StreamedCsv) -> tuple[Any, Int32s]:
    """Return the image ids (a pyarrow.StringArray), and width and height of each, of a table of sizes.

    Its columns are ``image_id`` or ``ImageID``, ``width`` and ``height``.

    Raises
    ------
    AnnotationFormatError, DuplicateIdError
        An id is malformed or stands twice, or a size is not from 1 to 1,000,000 pixels.
    """
    name = "ImageID" if "ImageID" in file.header else "image_id"
    table = _table(file, {name: "string", "width": "int64", "height": "int64"})
    ids = _unique_ids(table[name], file)
    sizes = np.stack([table[side].fill_null(0).to_numpy() for side in ("width", "height")], axis=1)
    if (bad := ((sizes < 1) | (sizes > _MAX_SIDE)).any(axis=1)).any():
        raise AnnotationFormatError(
            "The size of an image is malformed",
            where=f"{file.name}: row {int(bad.argmax()) + 2}",
            expected=f"width and height from 1 to {_MAX_SIDE:,}",
            found=", ".join(map(str, sizes[bad.argmax()].tolist())),
        )
    return ids, sizes.astype(np.int32)


def positions_of(texts: Any, known: Any) -> Int32s:
    """Return the position of each text of an Arrow array among known ones, -1 for one that is not there."""
    import pyarrow
    from pyarrow import compute

    known = known if isinstance(known, pyarrow.Array) else pyarrow.array(known, pyarrow.string())
    return np.asarray(compute.index_in(texts, value_set=known).fill_null(-1), np.int32)


def check_ids(ids: Any, where: Callable[[int], str]) -> None:
    """Raise `AnnotationFormatError` unless the texts of an Arrow array are sixteen digits of 0-9a-f."""
    from pyarrow import compute

    if (row := compute.index(compute.match_substring_regex(ids, _ID), value=False).as_py()) >= 0:
        raise AnnotationFormatError(
            "An image id of Open Images is malformed",
            where=where(row),
            expected="sixteen digits of 0-9a-f",
            found=repr(ids[row].as_py())[:80],
        )


def _table(file: StreamedCsv, kinds: dict[str, str]) -> Any:
    import pyarrow

    file.require(list(kinds))
    types = {name: pyarrow.type_for_alias(kind) for name, kind in kinds.items()}
    return pyarrow.Table.from_batches(file.batches(types), schema=pyarrow.schema(types))


def _unique_ids(column: Any, file: StreamedCsv) -> Any:
    def where(row: int) -> str:
        return f"{file.name}: row {row + 2}"

    ids = column.combine_chunks()
    check_ids(ids, where)
    check_unique(ids.to_pylist(), "image id", where)
    return ids
