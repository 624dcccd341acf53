"""Reader of Hugging Face tables with a row for each image and its objects in a column: `read_object_rows`.

The files are Parquet, or JSON Lines beside photos (``metadata.jsonl``). `datasets` writes the objects of an image as a
list of records or as a record of lists; both are read. The published FindMeIfYouCan has this form too: its ids are
texts, its rows name their dataset, and its column ``categories`` names the classes.
"""

from __future__ import annotations

import json
import re
import shlex
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn, TypeVar

import msgspec

from curation.core.canonical import sha256_of_file
from curation.core.columns import checked_group, largest_text
from curation.core.errors import AnnotationFormatError, CurationError, DuplicateIdError, MissingFileError
from curation.core.files import missing_path
from curation.core.ids import native_of
from curation.core.reading import InputFile
from curation.sources.coco import AnnotationRecord, CategoryRecord, ImageRecord, Instances, source_of_records
from curation.sources.integrity import KIND
from curation.sources.source import FileRecord, Source
from curation.sources.source_specs import BadBoxes
from curation.sources.stems import IMAGE_SUFFIXES

Record = TypeVar("Record", ImageRecord, AnnotationRecord)
SUFFIXES = (".parquet", ".jsonl")
ORIGINS = {"coco": "COCO", "openimages": "OpenImages"}
"""The values of the column ``dataset_origin`` for the datasets of these namespaces."""
_SPACES = {origin: space for space, origin in ORIGINS.items()}
_PATTERNS = tuple(f"{folders}{name}" for folders in ("", "*/", "*/*/") for name in ("*.parquet", "metadata.jsonl"))
_OTHER_LAYOUTS = ("annotations", "Annotations", "ImageSets", "labels")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})(?:-[0-9a-f]+)?\Z")
_SPLIT = re.compile(r"train|val|dev|test", re.IGNORECASE)
_OF_IMAGE = ("file_name", "image_id", "width", "height", "dataset_origin", "image.path")
_CLASS_FIELDS = (
    "category", "category_id", "categories", "category_ids", "label", "labels", "label_id", "class", "classes", "name",
)  # fmt: skip
_OF_OBJECT = ("bbox", "id", "area", "iscrowd", "is_crowd", *_CLASS_FIELDS)
_COPIED = ("bbox", "id", "area", "iscrowd")
_OF_CLASS = ("id", "name", "supercategory")
_READ = {*_OF_IMAGE, *(f"objects.{name}" for name in _OF_OBJECT), *(f"categories.{name}" for name in _OF_CLASS)}
_NESTING = ("list", "element", "item", "array", "bag")
"""Parquet's names for the levels of a list."""
_MOST_BYTES = 2 << 30
_BATCH = 4096
_BOXES = "objects: a list of {bbox: [x, y, width, height], category}, or {bbox: [...], category: [...]}"
_NAMES = "write names of classes as texts into objects.category, or add a column categories of {id, name}"
_CONTENT = "rows"
_RECORD = re.compile(rf"{_CONTENT}: (images|annotations)\[(\d+)\](?: \(id [^)]*\))?")


def row_files(root: Path) -> dict[str, tuple[Path, ...]]:
    """Return the files of each part below a folder. A part is a split, or a configuration with a single split.

    ``data/train-00000-of-00002.parquet`` and ``train/metadata.jsonl`` are of the part ``train``;
    ``data/coco_far_voc/train.parquet``, and ``coco_far_voc/train/0000.parquet`` as the hub converts it, are
    ``coco_far_voc``, or ``coco_far_voc-train`` if the configuration has another split too.
    """
    if not root.is_dir() or any((root / name).exists() for name in _OTHER_LAYOUTS):
        return {}
    files: dict[str, dict[str, list[Path]]] = {}
    for path in sorted(path for pattern in _PATTERNS for path in root.glob(pattern)):
        *folders, name = path.relative_to(root).with_suffix("").parts
        if not any(folder.startswith(".") for folder in folders):
            split = _SHARD.sub("", name)
            if name == "metadata" or name.isdigit():
                split = folders.pop() if folders else "train"
            config = "-".join(folder for folder in folders if folder not in ("data", "default"))
            files.setdefault(config, {}).setdefault(split, []).append(path)
    return {
        "-".join(filter(None, (config, split * (not config or len(splits) > 1)))): tuple(paths)
        for config, splits in files.items()
        for split, paths in splits.items()
    }


def read_object_rows(path: Path, *, dataset: str, part: str = "", bad_boxes: BadBoxes = "error") -> Source:
    """Return the source of a table with a row for each image and a column ``objects``.

    A row has ``image_id``, or ``file_name`` (or the path in ``image``) without suffix as its id; ``width`` and
    ``height`` where they are known; and ``objects`` with ``bbox`` (``x, y, width, height`` in pixels) and a class: a
    name, or a number that the features of the column (``ClassLabel``) or a column ``categories`` name. Photos in the
    file are not read.

    Parameters
    ----------
    path : Path
        A Parquet file, JSON Lines, or a folder of them (see `row_files`).
    dataset, part : str
        For example ``birds`` and ``train``. The folder must offer the part; a single configuration is the part.
    bad_boxes : {"error", "drop"}
        See `curation.sources.coco.read_coco`.

    Raises
    ------
    MissingFileError
        The folder lacks the part, or a file of it.
    AnnotationFormatError, DuplicateIdError, BoxError
        A row is malformed; the error names it.
    """
    files = _files_of(path, part) if path.is_dir() else (path,)
    tables = [_read_rows(file) for file in files]
    converted = _Converted(_label_names([features for _, features, _ in tables]))
    counts = [sum(converted.add(row, where) for where, row in rows) for rows, _, _ in tables]
    records = converted.as_coco()
    try:
        content = FileRecord(_CONTENT, "", 0, 0)
        source = source_of_records(content, records, [records.annotations], dataset, part, bad_boxes)
    except CurationError as error:
        error.where, error.found = converted.in_rows(error.where or path.name), converted.in_rows(error.found)
        if isinstance(error, DuplicateIdError):
            error.hint = "give each row a different image_id"
        raise
    records_of_files = tuple(
        FileRecord(file.name, digest, file.stat().st_size, count)
        for file, (_, _, digest), count in zip(files, tables, counts, strict=True)
    )
    numbering = source.categories.numbering if converted.by_number else "none"
    return replace(source, files=records_of_files, categories=replace(source.categories, numbering=numbering))


def _files_of(root: Path, part: str) -> tuple[Path, ...]:
    offered = row_files(root)
    only = next(iter(offered)) if len(offered) == 1 else ""
    chosen = part if part in offered else only if only and not (part and _SPLIT.match(only)) else ""
    if chosen not in offered:
        first = next(iter(offered), "PART")
        raise MissingFileError(
            f"The folder has no part {part!r}" if part else "The folder offers several parts",
            where=str(root),
            expected="one of its splits or configurations",
            found=", ".join(offered)[:300] or "no Parquet file",
            hint=f"--source NAME@{first}={shlex.quote(str(root))}; of --truth: --image-set {first}, or the file itself",
        )
    files = offered[chosen]
    for shard in map(_SHARD.search, (file.stem for file in files)):
        if shard and int(shard[2]) != len(files):
            raise MissingFileError(
                "Files of the part are missing", where=str(files[0].parent), expected=f"{int(shard[2])} files",
                found=", ".join(file.name for file in files)[:300],
            )  # fmt: skip
    return files


_Rows = Iterator[tuple[str, dict[str, Any]]]


def _read_rows(path: Path) -> tuple[_Rows, Any, str]:
    """Return the rows with their positions, the features that a Parquet file states, and the digest of the file."""
    if path.suffix.lower() != ".parquet":
        content = InputFile(path, kind=KIND)
        return _rows_of_lines(content), None, content.sha256
    file = open_parquet(path)
    schema, leaves = file.schema_arrow, _leaves(file)
    if not any(name.startswith("objects.") for name in leaves):
        _refuse_columns(path.name, schema.names)
    try:
        metadata = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = metadata["info"]["features"]["objects"]
    except (ValueError, LookupError, TypeError, RecursionError):
        features = None
    columns = [leaf for some in leaves.values() for leaf in some]
    return _rows_of_batches(file, columns, path.name), features, sha256_of_file(path)


def _rows_of_batches(file: Any, columns: Sequence[str], name: str) -> _Rows:
    row = 0
    with _readable(name):
        for batch in file.iter_batches(_BATCH, columns=columns, use_threads=False):
            batch.validate(full=True)
            for record in batch.to_pylist():
                yield f"{name}: row {row}", record
                row += 1


@contextmanager
def _readable(where: str) -> Iterator[None]:
    """Convert Arrow's errors on a file into `AnnotationFormatError`."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, ValueError) as error:
        raise AnnotationFormatError(
            "The Parquet file cannot be read", where=where, found=f"{type(error).__name__}: {error}"[:300],
            hint="copy or download it again, and compare its checksum with the publisher's",
        ) from None  # fmt: skip


def _rows_of_lines(content: InputFile) -> _Rows:
    decoder, columns, has_objects = msgspec.json.Decoder(dict[str, Any]), dict[str, None](), False
    for number, line in enumerate(content.data.split(b"\n"), start=1):
        if line.strip():
            where = f"{content.name}: line {number}"
            try:
                row = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                raise AnnotationFormatError(
                    "A line is not a JSON object",
                    where=where,
                    expected="a JSON object in each line",
                    found=str(error)[:200],
                ) from None
            has_objects = has_objects or "objects" in row
            columns |= dict.fromkeys(row)
            yield where, row
    if columns and not has_objects:
        _refuse_columns(content.name, list(columns))


def _refuse_columns(where: str, columns: Sequence[str]) -> NoReturn:
    raise AnnotationFormatError(
        "The table has no column of objects", where=where, expected=_BOXES, found=", ".join(columns)[:300]
    )


def open_parquet(path: Path, columns: set[str] | None = None) -> Any:
    """Return a file as `pyarrow.parquet.ParquetFile` after checking its size in memory.

    Parameters
    ----------
    columns : set of str, optional
        Columns to read (see `_leaves`); by default those of objects.

    Raises
    ------
    MissingFileError
        The file does not exist.
    AnnotationFormatError
        The file is not Parquet or is damaged, or is larger in memory than annotations can be.
    """
    from pyarrow import parquet

    if not path.is_file():
        raise missing_path("The table does not exist", path)
    with _readable(str(path)):
        file = parquet.ParquetFile(path)
        leaves = [leaf for some in _leaves(file, columns).values() for leaf in some]
        schema = file.metadata.schema
        indices = [index for index in range(len(schema.names)) if schema.column(index).path in leaves]
        texts = [schema.column(index).path for index in indices if schema.column(index).physical_type == "BYTE_ARRAY"]
        size = 0
        folded = parquet.ParquetFile(path, read_dictionary=texts)
        for number in range(file.metadata.num_row_groups):
            group = checked_group(file, number, indices)
            size += sum(
                max(group.column(index).total_uncompressed_size, 8 * group.column(index).num_values)
                for index in indices
            )
            size += largest_text(folded, number, texts)[0] if size <= _MOST_BYTES else 0
    if size > _MOST_BYTES:
        raise AnnotationFormatError(
            "The Parquet file is larger in memory than annotations can be",
            where=str(path),
            expected=f"at most {_MOST_BYTES:,} bytes without photos",
            found=f"{size:,} bytes",
        )
    return file


def plain_columns(path: Path, known: Collection[str]) -> dict[str, list[Any]]:
    """Return the values of the columns of a Parquet file whose lower-case names are in `known` (see `open_parquet`)."""
    present = {name for name in open_parquet(path, set()).schema_arrow.names if name.lower() in known}
    file = open_parquet(path, present)
    with _readable(str(path)):
        columns = [leaf for some in _leaves(file, present).values() for leaf in some]
        table = file.read(columns=columns, use_threads=False)
        table.validate(full=True)
        return {name: table[name].to_pylist() for name in table.column_names}


def image_columns(path: Path) -> Any:
    """Return the texts and integers of a Parquet file, without photos, as a pyarrow.Table of texts.

    Raises
    ------
    AnnotationFormatError
        See `open_parquet`, or the file has no column of texts or integers.
    """
    import pyarrow
    from pyarrow import types

    schema = open_parquet(path, set()).schema_arrow
    kinds = (types.is_integer, types.is_string, types.is_large_string, types.is_dictionary)
    plain = {field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)}
    file = open_parquet(path, {*plain, "image.path"})
    leaves = _leaves(file, {*plain, "image.path"})
    if not leaves:
        raise AnnotationFormatError(
            "The table names no image", where=str(path), expected="a column such as file_name",
            found=", ".join(schema.names)[:200] or "no column",
        )  # fmt: skip
    columns = {}
    with _readable(str(path)):
        table = file.read(columns=[leaf for some in leaves.values() for leaf in some], use_threads=False)
        table.validate(full=True)
        for name in table.column_names:
            column = table[name].combine_chunks()
            column = column.field("path") if types.is_struct(column.type) else column
            if column.null_count < len(column):
                columns[name] = column.cast(pyarrow.string()).fill_null("")
        return pyarrow.table(columns)


def _leaves(file: Any, columns: set[str] | None = None) -> dict[str, list[str]]:
    """Return the requested columns of a Parquet file, such as ``objects.bbox``, and the paths of their leaves."""
    schema, leaves = file.metadata.schema, dict[str, list[str]]()
    for index in range(len(schema.names)):
        path = schema.column(index).path
        name = ".".join(word for word in path.split(".") if word not in _NESTING)
        if name in (_READ if columns is None else columns):
            leaves.setdefault(name, []).append(path)
    return leaves


def _label_names(features: Sequence[Any]) -> tuple[str, ...]:
    """Return the class names in the features of ``objects``, by number; empty if the features name no classes."""
    names = {tuple(map(str, labels)) for feature in features for labels in _class_labels(feature)}
    if len(names) > 1 or any(len(set(labels)) < len(labels) for labels in names):
        raise AnnotationFormatError(
            "The features of objects do not name each class once", where="ClassLabel", expected="names, each once",
            found=" and ".join(map(str, sorted(names)))[:300],
        )  # fmt: skip
    return next(iter(names), ())


def _class_labels(feature: Any) -> Iterator[Sequence[str]]:
    if isinstance(feature, dict):
        if feature.get("_type") == "ClassLabel" and isinstance(feature.get("names"), list):
            yield feature["names"]
        else:
            for below in feature.values():
                yield from _class_labels(below)
    elif isinstance(feature, list):
        for below in feature:
            yield from _class_labels(below)


def _records(value: Any, fields: Sequence[str], where: str) -> list[dict[str, Any]]:
    """Return a list of records, or a record of lists, as records."""
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(record, dict) for record in value):
        return value
    if isinstance(value, dict):
        columns = {name: column for name, column in value.items() if name in fields and column is not None}
        if all(isinstance(column, list) for column in columns.values()):
            if len({len(column) for column in columns.values()}) <= 1:
                return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
            lengths = ", ".join(f"{len(column)} {name}" for name, column in columns.items())
            raise AnnotationFormatError(
                "The lists of a record differ in length",
                where=where,
                expected="an entry for each object",
                found=lengths,
            )
    raise AnnotationFormatError(
        "A row of the table is malformed", where=where, expected=_BOXES, found=ascii(value)[:80]
    )


@dataclass
class _Class:
    """A class as rows state it: its number, if any, and its supercategory."""

    number: int | None
    supercategory: str = ""


class _Converted:
    """Rows converted to images, annotations and categories of COCO, with the row of each."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.images: list[ImageRecord] = []
        self.annotations: list[AnnotationRecord] = []
        self.rows: list[tuple[int, str]] = []
        self.classes = {name: _Class(number) for number, name in enumerate(names)}
        self.by_number = dict(enumerate(names))

    def add(self, row: Mapping[str, Any], where: str) -> int:
        """Add a row; return how many objects it has."""
        image = _record(self._image(row, where), ImageRecord, where)
        of_row = self._categories(row, where)
        objects = _records(row.get("objects"), _OF_OBJECT, f"{where}, objects")
        self.rows.append((len(self.annotations), where))
        for number, record in enumerate(objects):
            position = f"{where}, objects[{number}]"
            fields = {name: record[name] for name in _COPIED if record.get(name) is not None}
            if not isinstance(fields.get("bbox"), list | tuple):
                raise AnnotationFormatError(
                    "An object has no box", where=position, expected="bbox: [x, y, width, height]",
                    found=ascii(fields.get("bbox", "none"))[:80],
                )  # fmt: skip
            if (crowd := record.get("is_crowd")) is not None:
                fields.setdefault("iscrowd", crowd)
            # Classes get their numbers after all rows are read.
            fields |= {"image_id": image.id, "category_id": self._class_of(record, of_row, position)}
            self.annotations.append(_record(fields, AnnotationRecord, position))
        self.images.append(image)
        return len(objects)

    def _image(self, row: Mapping[str, Any], where: str) -> dict[str, Any]:
        photo = row.get("image")
        name = row.get("file_name") or (photo.get("path") if isinstance(photo, dict) else None) or ""
        identity = row.get("image_id")
        if identity is None and name and isinstance(name, str):
            path = PurePosixPath(name.replace("\\", "/"))
            identity = str(path.with_suffix("") if path.suffix[1:].lower() in IMAGE_SUFFIXES else path)
        if identity is None:
            raise AnnotationFormatError(
                "A row names no image", where=where, expected="image_id or file_name", found=", ".join(row)[:200]
            )
        image: dict[str, Any] = {"id": identity, "file_name": name}
        image |= {side: row[side] for side in ("width", "height") if row.get(side) is not None}
        if (space := _SPACES.get(str(row.get("dataset_origin")))) is not None:
            # The published ids are texts in every configuration; COCO's own are numbers.
            is_number = space == "coco" and isinstance(identity, str) and identity.isascii() and identity.isdigit()
            image |= {"id": int(identity) if is_number else identity}
            image |= {"curation_id": f"{space}:{native_of(str(identity), space)}"}
        return image

    def _categories(self, row: Mapping[str, Any], where: str) -> dict[int, str]:
        """Return the class names of a row's column ``categories`` by number."""
        of_row: dict[int, str] = {}
        for record in _records(row.get("categories"), _OF_CLASS, f"{where}, categories"):
            number, name = record.get("id"), record.get("name")
            if type(number) is not int or not isinstance(name, str):
                raise AnnotationFormatError(
                    "A category of a row has no id or no name", where=where, expected="categories: [{id, name}]",
                    found=ascii(record)[:100],
                )  # fmt: skip
            if self.by_number.setdefault(number, name) != name:
                raise AnnotationFormatError(
                    "Two classes have the same number", where=where, expected=f"one name for {number}",
                    found=f"{self.by_number[number]!r:.60} and {name!r:.60}",
                )  # fmt: skip
            known = self.classes.setdefault(name, _Class(number))
            if known.number != number:
                raise AnnotationFormatError(
                    "A class has two numbers", where=where, expected=f"one number for {name!r:.60}",
                    found=f"{known.number} and {number}",
                )  # fmt: skip
            known.supercategory = known.supercategory or str(record.get("supercategory") or "")
            of_row[number] = name
        return of_row

    def _class_of(self, record: Mapping[str, Any], of_row: Mapping[int, str], where: str) -> str:
        """Return the name of an object's class."""
        field = next((name for name in _CLASS_FIELDS if record.get(name) is not None), None)
        value = None if field is None else record[field]
        if isinstance(value, str) and value:
            self.classes.setdefault(value, _Class(None))
            return value
        if type(value) is not int:
            raise AnnotationFormatError(
                "An object has no class", where=where, expected=f"one of {', '.join(_CLASS_FIELDS)}: a name or number",
                found=ascii(value)[:60] if field else ", ".join(record)[:200],
            )  # fmt: skip
        name = of_row.get(value, self.names[value] if 0 <= value < len(self.names) else None)
        if name is None:
            raise AnnotationFormatError(
                "The number of a class has no name", where=f"{where}.{field}",
                expected="a number that the features of objects or the row's categories name", found=str(value)[:40],
                hint=_NAMES,
            )  # fmt: skip
        return name

    def as_coco(self) -> Instances:
        """Return the records of COCO; classes without numbers are numbered from 1 in the order of their names."""
        if unnumbered := [name for name, entry in self.classes.items() if entry.number is None]:
            if self.by_number:
                raise AnnotationFormatError(
                    "Some classes are texts, others are numbers",
                    where=self.rows[0][1],
                    expected="only texts, or only numbers",
                    found=f"{unnumbered[0]!r:.80} and {next(iter(self.by_number.values()))!r:.80}",
                )
            self.classes = {name: _Class(rank) for rank, name in enumerate(sorted(self.classes), start=1)}
        numbers: dict[str, int] = {
            name: entry.number for name, entry in self.classes.items() if entry.number is not None
        }
        ids = [annotation.id for annotation in self.annotations]
        # Ids that count the objects of each image do not identify annotations.
        has_ids = all(type(number) is int for number in ids) and len(set(ids)) == len(ids)
        for row, annotation in enumerate(self.annotations, start=1):
            annotation.category_id = numbers[str(annotation.category_id)]
            annotation.id = annotation.id if has_ids else row
        categories = [
            CategoryRecord(number, name, self.classes[name].supercategory)
            for name, number in sorted(numbers.items(), key=lambda item: item[1])
        ]
        return Instances(self.images, self.annotations, categories)

    def in_rows(self, text: str | None) -> str | None:
        """Return a text with the records of COCO replaced by the rows of the table."""

        def row(match: re.Match[str]) -> str:
            number = int(match[2])
            if match[1] == "images":
                return self.rows[number][1]
            start, where = self.rows[bisect_right(self.rows, number, key=lambda row: row[0]) - 1]
            return f"{where}, objects[{number - start}]"

        return text and _RECORD.sub(row, text)


def _record(fields: Mapping[str, Any], kind: type[Record], where: str) -> Record:
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        reason, _, field = str(error).partition(" - at ")
        position = f"{where}{field.strip('`').removeprefix('$')}"
        raise AnnotationFormatError(
            "A row of the table is malformed", where=position, found=reason.replace("`", "")
        ) from None
