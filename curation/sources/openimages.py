"""Reader of Open Images' box CSVs: `parse_openimages`.

A part is a CSV of boxes (16 million rows for train), read block by block. Beside it there may be descriptions of the
classes, a list of the images (those without a box included), and a table of image sizes, which Open Images does not
publish.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from curation.core.canonical import sha256_of_bytes, sha256_of_stream
from curation.core.errors import (
    AnnotationFormatError,
    BoxError,
    CurationError,
    DanglingIdError,
    DuplicateIdError,
    MissingFileError,
    UsageError,
)
from curation.core.files import open_binary
from curation.core.reading import GZIP, beginning, unpacked
from curation.core.tables import csv_header, csv_rows
from curation.sources.content import FileContent, require_one, require_unchanged, stamp_of
from curation.sources.integrity import check_unique, objects_at
from curation.sources.source import Bools, Categories, FileRecord, Floats, Images, Int32s, Int64s, Objects, Source
from curation.sources.source_specs import BadBoxes

_CSV_BLOCK = 1 << 22
_MAX_HEADER = 1 << 16


class StreamedCsv:
    """A CSV file with a header, of any size: never more than some blocks of it are in memory.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    name : str
        Plain file name.
    path : Path
    size : int
        Bytes.
    header : tuple of str
        Column names, unique.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    AnnotationFormatError
        It is empty, or has no header line.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.path = path
        self._stamp = stamp_of(path, "table")
        self.size = self._stamp[0]
        self.header = _header(path)
        self._digest = ""

    @property
    def sha256(self) -> str:
        """``sha256:<hex>`` of the bytes, computed while `batches` reads; else the file is read for it."""
        if not self._digest:
            with open_binary(self.path, kind="table") as stream:
                self._finish(sha256_of_stream(stream))
        return self._digest

    def require(self, columns: Sequence[str]) -> None:
        """Raise `AnnotationFormatError` unless the header has these columns."""
        if not set(columns) <= set(self.header):
            expected, header = ", ".join(columns), ", ".join(self.header)[:300]
            raise AnnotationFormatError(
                "The table lacks a column", where=f"{self.name}: row 1", expected=expected, found=header
            )

    def batches(self, types: Mapping[str, Any], *, blank_lines: bool = False) -> Iterator[Any]:
        """Yield record batches with the columns of `types`, rows in file order; the other columns are skipped.

        An empty cell is null in a column of numbers and ``""`` in one of texts.

        Parameters
        ----------
        types : mapping of str to pyarrow.DataType
            Columns of the header.
        blank_lines : bool
            Whether a blank line is a row of empty cells, and not passed over.

        Raises
        ------
        AnnotationFormatError
            A row has another number of columns than the header, or a value does not fit; the message names the row.
        SourceError
            The file changed while it was read.
        """
        import pyarrow
        from pyarrow import csv as arrow_csv

        pieces = self._pieces()
        try:
            yield from arrow_csv.open_csv(
                pyarrow.PythonFile(_Stream(pieces), mode="r"),
                # Without threads errors name the row.
                read_options=arrow_csv.ReadOptions(block_size=_CSV_BLOCK, use_threads=False),
                parse_options=arrow_csv.ParseOptions(ignore_empty_lines=not blank_lines),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=list(types), column_types=dict(types), null_values=[""], strings_can_be_null=False
                ),
            )
        except pyarrow.ArrowException as error:
            row = re.search(r"Row #(\d+)", str(error))
            raise AnnotationFormatError(
                "The table cannot be read",
                where=f"{self.name}: row {row[1]}" if row else self.name,
                expected=f"CSV in UTF-8 with {len(self.header)} columns in each row",
                found=str(error)[:300],
            ) from None
        for _ in pieces:
            pass

    def _pieces(self) -> Iterator[bytes]:
        """Yield what the file holds, unpacked, and hash the file's bytes meanwhile."""
        from tqdm import tqdm

        digest = hashlib.sha256()
        with (
            open_binary(self.path, kind="table") as stream,
            tqdm(total=self.size, desc=self.name, unit="B", unit_scale=True, leave=False, disable=None) as bar,
        ):

            def read(count: int) -> bytes:
                data = stream.read(count)
                digest.update(data)
                bar.update(len(data))
                return data

            if stream.peek(len(GZIP)).startswith(GZIP):
                yield from unpacked(SimpleNamespace(read=read), str(self.path), self.size)
            else:
                yield from iter(partial(read, _CSV_BLOCK), b"")
        self._finish(f"sha256:{digest.hexdigest()}")

    def _finish(self, digest: str) -> None:
        require_unchanged(self.path, "table", self._stamp)
        self._digest = digest


class _Stream:
    """Pieces of a file as pyarrow reads a file: each `read` gives the next one, none at the end."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.closed = False

    def read(self, _count: int = -1) -> bytes:
        return next(self._pieces, b"")

    def close(self) -> None:
        self.closed = True


def _header(path: Path) -> tuple[str, ...]:
    line = (beginning(path, _MAX_HEADER, kind="table").splitlines() or [b""])[0]
    names = csv_header(line, AnnotationFormatError, where=f"{path.name}: row 1")
    if not any(names):
        raise AnnotationFormatError("The table is empty", where=path.name, expected="a header and rows")
    return names


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

    def by_kind(self) -> dict[str, Path]:
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
        self.files = {kind: StreamedCsv(path) for kind, path in paths.by_kind().items() if kind != "descriptions"}

    def each(self) -> dict[str, StreamedCsv | FileContent]:
        """Return all files by kind, the boxes first."""
        files = self.files | ({"descriptions": self.descriptions} if self.descriptions else {})
        return {kind: files[kind] for kind in ("boxes", "descriptions", "images", "sizes") if kind in files}

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
    return tuple(part for part in PARTS if _existing_files(root, _BOXES, part))


def locate_openimages(path: Path, part: str) -> OpenImagesPaths:
    """Return the files of a part: those of a root, or a box file and what lies beside it.

    Parameters
    ----------
    part : str
        ``""``: the one that the file's name says, or that the root offers alone.

    Raises
    ------
    MissingFileError
        No box file exists; the error lists the paths tried.
    UsageError
        There are several, or the root offers several parts and none was named.
    """
    if not path.is_dir():
        match = _PART_IN_NAME.search(path.name.lower())
        part = part or (match[1] if match else "")
        return _with_companions(path, part, (path.parent, path.parent.parent))
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
    box_files = _existing_files(path, _BOXES, part) if part else []
    if not box_files:
        raise MissingFileError(
            f"The folder holds no boxes of Open Images {part}".rstrip(),
            where=str(path),
            expected=", ".join(name.format(part=part or "PART") for name in _BOXES),
            found=f"boxes of {', '.join(offered)}" if offered else "no …-annotations-bbox.csv",
        )
    require_one(box_files, path, f"The folder holds several box files of {part}", f"openimages@{part}")
    return _with_companions(box_files[0], part, (path, box_files[0].parent, box_files[0].parent.parent))


def _existing_files(root: Path, names: tuple[str, ...], part: str) -> list[Path]:
    folders = [root / below.format(part=part) for below in _BELOW]
    paths = [folder / name.format(part=part) for folder in folders for name in names]
    return list(dict.fromkeys(path for path in paths if path.is_file()))


def _with_companions(boxes: Path, part: str, folders: tuple[Path, ...]) -> OpenImagesPaths:
    def first(names: tuple[str, ...]) -> Path | None:
        usable = [name for name in names if part or "{part}" not in name]
        return next((path for folder in folders for path in _existing_files(folder, tuple(usable), part)), None)

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
        A key is repeated.
    """
    message = "The class descriptions are not CSV in UTF-8"
    rows = csv_rows(content.data, AnnotationFormatError, message, where=content.name, strict=True)
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


def read_listed_ids(file: StreamedCsv) -> Any:
    """Return the image ids (a pyarrow.StringArray) of a list with a column ``ImageID``, in file order.

    Raises
    ------
    AnnotationFormatError, DuplicateIdError
        An id is malformed or repeated.
    """
    return _unique_ids(_table(file, {"ImageID": "string"})["ImageID"], file)


def read_sizes(file: StreamedCsv) -> tuple[Any, Int32s]:
    """Return the image ids (a pyarrow.StringArray), and width and height of each, of a table of sizes.

    Its columns are ``image_id`` or ``ImageID``, ``width`` and ``height``.

    Raises
    ------
    AnnotationFormatError, DuplicateIdError
        An id is malformed or repeated, or a size is not from 1 to 1,000,000 pixels.
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


def positions_among(texts: Any, known: Any) -> Int32s:
    """Return the position of each text of an Arrow array among known ones, -1 for one that is not there."""
    import pyarrow
    from pyarrow import compute

    known = known if isinstance(known, pyarrow.Array) else pyarrow.array(known, pyarrow.string())
    return np.asarray(compute.index_in(texts, value_set=known).fill_null(-1), np.int32)


def check_image_ids(ids: Any, where: Callable[[int], str]) -> None:
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
    check_image_ids(ids, where)
    check_unique(ids.to_pylist(), "image id", where)
    return ids


_FLAGS = {
    "occluded": "IsOccluded",
    "truncated": "IsTruncated",
    "crowd": "IsGroupOf",
    "depiction": "IsDepiction",
    "inside": "IsInside",
}
"""Column of the file by name in `Objects`."""
_ALWAYS = ("occluded", "truncated", "crowd")
_UNSTATED, _EMPTY = -1, 2
_LEAVES_OUT = "--on-error boxes=drop leaves such boxes out and counts them"


def parse_openimages(content: OpenImagesContent, *, dataset: str, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source that a box CSV of Open Images holds, group-of boxes included as `Objects.crowd`.

    Where the size of an image is known its boxes are in pixels: ``XMin*W, YMin*H, (XMax-XMin)*W, (YMax-YMin)*H``, not
    rounded. Else they stay shares of the image, and `Source.unit_boxes` says so. Classes are called by their names;
    `Categories.keys` holds their MIDs, and `Objects.numbers` the rows of the CSV, from 1.

    Parameters
    ----------
    content : OpenImagesContent
        Of a box CSV; or of a root that holds ``PART-annotations-bbox.csv`` or ``oidv6-PART-annotations-bbox.csv``,
        itself or in ``annotations``, ``csv`` or ``PART``, or FiftyOne's ``PART/labels/detections.csv``. In the same
        folders are looked for: ``class-descriptions-boxable.csv``, ``PART-images-boxable-with-rotation.csv`` or
        ``PART-images-with-rotation.csv``, and ``PART-image-sizes.csv`` (``image_id,width,height``).
    bad_boxes : {"error", "drop"}
        Whether a box that is not finite, not within 0 to 1 or negative in size, that is of a class without
        description, or on an image that the list lacks stops the reading or is left out and counted in
        `Source.dropped`.

    Raises
    ------
    AnnotationFormatError, DuplicateIdError, DanglingIdError, BoxError
        A file is not what it should be; the error names the row.
    """
    names = read_descriptions(content.descriptions) if content.descriptions else None
    rows = read_boxes(content.files["boxes"], None if names is None else tuple(names), bad_boxes)
    ids, image, dropped = rows.ids, rows.image, dict(rows.dropped)
    keep = np.ones(len(image), np.bool_)
    if "images" in content.files:
        ids = read_listed_ids(content.files["images"])
        image = positions_among(rows.ids, ids)[image]
        keep = image >= 0
    if unlisted := len(keep) - int(keep.sum()):
        row = int(keep.argmin())
        if bad_boxes == "error":
            raise DanglingIdError(
                "A box is on an image that the list of images lacks",
                where=f"{content.files['boxes'].name}: row {rows.numbers[row] + 1}",
                expected=f"an image of {content.files['images'].name}",
                found=f"{rows.ids[int(rows.image[row])]} ({unlisted} such boxes)",
                hint=_LEAVES_OUT,
            )
        dropped["box on an image that is not listed"] = unlisted
    sizes, n_sizes = np.zeros((len(ids), 2), np.int32), 0
    if "sizes" in content.files:
        sized, pixels = read_sizes(content.files["sizes"])
        # The table may speak of some of the images, or of more: photos are seldom all at hand.
        position, n_sizes = positions_among(ids, sized), len(sized)
        sizes[position >= 0] = pixels[position[position >= 0]]
    if n_sizes:
        factors = np.where(sizes > 0, sizes, 1).astype(np.float64)
        for side in range(4):
            # Column by column: another copy of the boxes of train would take half a gigabyte.
            rows.boxes[:, side] *= factors[image, side % 2]
    objects = Objects.of(image, rows.category, rows.boxes, numbers=rows.numbers, **rows.columns)
    read = {"boxes": rows.rows, "descriptions": len(names or ()), "images": len(ids), "sizes": n_sizes}
    return Source.of(
        dataset,
        content.part,
        images=Images.of(
            native := ids.to_numpy(zero_copy_only=False),
            text_ids=native,
            widths=np.ascontiguousarray(sizes[:, 0]),
            heights=np.ascontiguousarray(sizes[:, 1]),
        ),
        categories=Categories.counted(rows.labels if names is None else tuple(names.values()), rows.labels),
        objects=objects_at(objects, keep) if unlisted else objects,
        files=tuple(FileRecord(file.name, file.sha256, file.size, read[kind]) for kind, file in content.each().items()),
        dropped=dropped,
        unit_boxes=True,
    )


class BoxRows(NamedTuple):
    """The rows of a box CSV, in file order, without those that were left out.

    Attributes
    ----------
    ids : pyarrow.StringArray
        Image ids, each once, in the order of their first row.
    labels : tuple of str
        Class keys (MIDs): those that were given, or else those that occur, in the order of their first row.
    image, category : ndarray of int32, shape (m,)
        Positions in `ids` and `labels`.
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` as shares of the image, 0 to 1, w and h the differences of the file's corners.
    numbers : ndarray of int64, shape (m,)
        Rows of the file, 1 for the first after the header.
    columns : dict of str to ndarray
        Columns of `Objects` by name: the flags that the file has.
    rows : int
        Rows read, those included that were left out.
    dropped : dict of str to int
    """

    ids: Any
    labels: tuple[str, ...]
    image: Int32s
    category: Int32s
    boxes: Floats
    numbers: Int64s
    columns: dict[str, Any]
    rows: int
    dropped: dict[str, int]


def read_boxes(file: StreamedCsv, labels: tuple[str, ...] | None, bad_boxes: BadBoxes) -> BoxRows:
    """Return the boxes of a file, read batch by batch.

    Parameters
    ----------
    labels : tuple of str or None
        The class keys there are; None: those that occur.
    bad_boxes : {"error", "drop"}
        Whether a box with a coordinate that is not finite or not within 0 to 1, with ``XMin > XMax`` or ``YMin >
        YMax``, or of a class that `labels` lacks stops the reading or is left out and counted.

    Raises
    ------
    AnnotationFormatError
        A column is missing, an image id is not sixteen digits of 0-9a-f, a flag is not -1, 0 or 1, a row is malformed.
    BoxError, DanglingIdError
        See `bad_boxes`.
    """
    import pyarrow

    file.require(REQUIRED)
    words = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    known = {"ImageID": pyarrow.string(), "LabelName": words}
    known |= dict.fromkeys(COORDINATES, pyarrow.float64()) | dict.fromkeys(_FLAGS.values(), pyarrow.int8())
    types = {name: kind for name, kind in known.items() if name in file.header}
    nothing = pyarrow.RecordBatch.from_pylist([], schema=pyarrow.schema(types))
    class_of = {key: number for number, key in enumerate(labels or ())}
    parts, ids, left_out = defaultdict[str, list[Any]](list), list[Any](), list[Int64s]()
    dropped, rows = Counter[str](), 0
    for batch in chain([nothing], file.batches(types)):
        where = _Where(file, rows)
        texts, lengths = _runs(batch.column("ImageID"), where)
        positions = np.arange(len(lengths), dtype=np.int32) + sum(map(len, ids))
        columns_of_batch: dict[str, Any] = {"image": np.repeat(positions, lengths)}
        ids.append(texts)
        columns_of_batch["category"] = _coded(batch.column("LabelName"), class_of, learns=labels is None)
        corners = [batch.column(name).to_numpy(zero_copy_only=False) for name in COORDINATES]
        columns_of_batch["boxes"], keep = _sound(corners, columns_of_batch["category"], where, bad_boxes, dropped)
        flags = _flags_of(batch, where)
        for name, column in (columns_of_batch | flags).items():
            values = column if keep is None else column[keep]
            if name in _FLAGS:
                unstated = int(np.count_nonzero(values == _UNSTATED))
                dropped[f"{_FLAGS[name]} flags that are not stated (read as 0)"] += unstated
                values = values == 1
            parts[name].append(values)
        left_out.append(np.flatnonzero(() if keep is None else ~keep) + rows)
        rows += len(batch)
    columns = {name: np.concatenate(parts.pop(name)) for name in list(parts)}
    gone, numbers = np.concatenate(left_out), np.arange(1, rows + 1, dtype=np.int64)
    every = pyarrow.concat_arrays(ids).dictionary_encode()
    return BoxRows(
        ids=every.dictionary,
        labels=tuple(class_of),
        image=every.indices.to_numpy()[columns.pop("image")],
        category=columns.pop("category"),
        boxes=columns.pop("boxes"),
        numbers=np.delete(numbers, gone) if len(gone) else numbers,
        columns=columns,
        rows=rows,
        dropped={reason: count for reason, count in sorted(dropped.items()) if count},
    )


class _Where(NamedTuple):
    """Names the rows of a batch that follows other batches."""

    file: StreamedCsv
    before: int

    def __call__(self, row: int) -> str:
        return f"{self.file.name}: row {self.before + row + 2}"


def _runs(column: Any, where: _Where) -> tuple[Any, Int64s]:
    """Return each run of equal ids and its length."""
    from pyarrow import compute

    runs = compute.run_end_encode(column)
    lengths: Int64s = np.diff(runs.run_ends.to_numpy(), prepend=0)
    check_image_ids(runs.values, lambda run: where(int(lengths[:run].sum())))
    return runs.values, lengths


def _coded(words: Any, class_of: dict[str, int], *, learns: bool = False) -> Int32s:
    """Return the position of each word of a dictionary array, -1 for a strange one; or learn it in row order."""
    keys = words.dictionary.to_pylist()
    classes = [class_of.setdefault(key, len(class_of)) if learns else class_of.get(key, -1) for key in keys]
    positions: Int32s = np.array([*classes, -1], np.int32)[words.indices.to_numpy()]
    return positions


def _sound(
    corners: list[Floats], category: Int32s, where: _Where, bad_boxes: BadBoxes, dropped: Counter[str]
) -> tuple[Floats, Bools | None]:
    """Return the boxes of some rows, and which of them to keep; None: all."""
    left, right, top, bottom = corners
    # Of two corners that are not finite numpy would warn.
    with np.errstate(invalid="ignore"):
        boxes = np.stack([left, top, right - left, bottom - top], axis=1)
    # Minima and maxima clear a sound batch; a NaN fails every comparison.
    if not len(category) or (max(right.max(), bottom.max()) <= 1 and min(boxes.min(), category.min()) >= 0):
        return boxes, None
    all_corners = np.stack(corners)
    bad = {
        "not finite": ~np.isfinite(all_corners).all(axis=0),
        "not within 0 to 1": ~((all_corners >= 0) & (all_corners <= 1)).all(axis=0),
        "negative in size": (boxes[:, 2:] < 0).any(axis=1),
        "of a class without description": category < 0,
    }
    keep, first = np.ones(len(boxes), np.bool_), dict[str, int]()
    for reason, mask in bad.items():
        # Of several reasons a box has the first.
        mask &= keep
        keep &= ~mask
        dropped[f"box {reason}"] += int(mask.sum())
        if mask.any():
            first[reason] = int(mask.argmax())
    if not first or bad_boxes == "drop":
        return boxes, keep
    reason, row = min(first.items(), key=lambda item: item[1])
    if "class" in reason:
        message, expected = (
            "A box is of a class that has no description",
            "a LabelName of the file of class descriptions",
        )
        raise DanglingIdError(message, where=where(row), expected=expected, hint=_LEAVES_OUT)
    raise BoxError(
        f"A box is {reason}",
        where=where(row),
        expected="0 <= XMin <= XMax <= 1 and 0 <= YMin <= YMax <= 1",
        found=", ".join(f"{name} {side[row]:g}" for name, side in zip(COORDINATES, corners, strict=True)),
        hint=_LEAVES_OUT,
    )


def _flags_of(batch: Any, where: _Where) -> dict[str, Any]:
    """Return flags of some rows, -1 where they are not stated."""
    flags: dict[str, Any] = {}
    for flag, name in _FLAGS.items():
        if name in batch.schema.names:
            values = batch.column(name).fill_null(_EMPTY).to_numpy()
            if (odd := (values < _UNSTATED) | (values > 1)).any():
                row = int(odd.argmax())
                value = "nothing" if values[row] == _EMPTY else str(values[row])
                raise AnnotationFormatError(f"{name} is none of -1, 0 and 1", where=where(row), found=value)
            flags[flag] = values
        elif flag in _ALWAYS:
            flags[flag] = np.full(len(batch), _UNSTATED, np.int8)
    return flags
