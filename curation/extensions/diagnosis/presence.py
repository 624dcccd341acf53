"""Which images show which classes, scanned out of annotation files of any size: box CSV, COCO JSON shards, Parquet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import numpy as np

from curation.core.arguments import checked
from curation.core.columns import arrow_of, text_columns, values_of
from curation.core.engines.running import cores, run_step
from curation.core.engines.shards import Block, Entry, Shards, Step
from curation.core.errors import AnnotationFormatError, UsageError
from curation.core.files import files_below, opened, size_and_stamp
from curation.core.reading import GZIP
from curation.core.tables import csv_header

if TYPE_CHECKING:
    import pyarrow

    from curation.sources.source import Int64s

PART = 8 << 20
"""Bytes of a CSV file that make a block, about."""
_SUFFIXES = (".csv", ".parquet", ".json")
_PIECE = 1 << 20
_LARGEST_JSON = 2 << 30
_LARGEST_GROUP = 4 << 30
_BATCH = 1 << 20
_IMAGE = ("ImageID", "image_id", "image")
_CLASS = ("LabelName", "class", "label", "category_id")


@dataclass(frozen=True)
class ScanPresence(Step):
    """Count the boxes of each class in each image, sorted; only of `classes` if these are given."""

    name = "presence"
    version = 1
    classes: tuple[str, ...] = ()

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return a row for each image and class that occur: image, class, boxes (int64).

        A row of the table is one box, or the number of boxes in its column ``boxes``.
        """
        import pyarrow
        from pyarrow import compute

        (images, image), (classes, kind) = (_ranked(table.column(name)) for name in ("image", "class"))
        counts = values_of(table.column("boxes").combine_chunks()) if "boxes" in table.column_names else None
        if self.classes:
            is_chosen = compute.is_in(classes, pyarrow.array(self.classes, pyarrow.string())).cast(pyarrow.int8())
            rows = np.flatnonzero(values_of(is_chosen)[kind])
            image, kind, counts = image[rows], kind[rows], None if counts is None else counts[rows]
        # Pairs of positions are counted: to hash and sort the texts of all boxes takes twice the time.
        cells = image * np.int64(len(classes) or 1) + kind
        if counts is None:
            pairs, boxes = np.unique(cells, return_counts=True)
        else:
            pairs, inverse = np.unique(cells, return_inverse=True)
            boxes = np.bincount(inverse, counts, len(pairs)).astype(np.int64)
        image, kind = map(arrow_of, np.divmod(pairs, len(classes) or 1))
        return pyarrow.table({"image": images.take(image), "class": classes.take(kind), "boxes": arrow_of(boxes)})


def _ranked(column: pyarrow.ChunkedArray) -> tuple[pyarrow.Array, Int64s]:
    """Return the values of a column each once, sorted, nulls last, and the position of each row's among them."""
    import pyarrow
    from pyarrow import compute

    is_folded = pyarrow.types.is_dictionary(column.type)
    column = column.unify_dictionaries() if is_folded else column.dictionary_encode(null_encoding="encode")
    folded = column.combine_chunks()
    texts, indices = folded.dictionary, folded.indices
    # A dictionary of a file may have no entry for null, and hold a text twice.
    if indices.null_count:
        indices = indices.fill_null(len(texts))
        texts = pyarrow.concat_arrays([texts, pyarrow.nulls(1, texts.type)])
    encoded = texts.dictionary_encode(null_encoding="encode")
    order = compute.array_sort_indices(encoded.dictionary)
    rank = np.argsort(values_of(order))[values_of(encoded.indices)]
    return encoded.dictionary.take(order), rank[values_of(indices)]


@dataclass(frozen=True)
class Presence:
    """The result of `presence`.

    Attributes
    ----------
    shards : Shards
        Columns image, class, boxes; a row an image and class.
    images, boxes : mapping of str to int
        How many images show each class, and how many boxes it has; by class.
    """

    shards: Shards
    images: Mapping[str, int]
    boxes: Mapping[str, int]

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        classes = {name: {"images": self.images[name], "boxes": self.boxes[name]} for name in sorted(self.images)}
        shards = self.shards
        return {"out": str(shards.folder), "digest": shards.digest, "rows": shards.rows, "classes": classes}


@checked
def presence(
    annotations: Annotated[str | Path, "FILES"],
    *,
    out: Annotated[Path, "DIR"],
    classes: Annotated[Collection[str], "NAME"] = (),
    workers: int | None = None,
) -> Presence:
    """Scan which images show which classes, out of annotation files of any size.

    Parameters
    ----------
    annotations
        a file, or a folder of them; a path or an address: box CSV (ImageID, LabelName: Open Images), COCO JSON, or
        Parquet with an image and a class a row
    out
        shards of image, class and boxes; the same command goes on where it was interrupted
    classes
        only these, as the files name them (default: all; repeatable)
    workers
        processes (one a core)

    Raises
    ------
    UsageError, MissingFileError
        No annotation file exists.
    EngineError
        A file is malformed; see also `curation.core.engines.running.run_step`.
    """
    step = ScanPresence(tuple(sorted(set(classes))))
    shards = run_step(step, annotation_blocks(annotations), out=out, workers=workers)
    images, boxes = Counter[str](), Counter[str]()
    # Shards are read again, to be held against their digests, which leaves the interpreter to other threads.
    with ThreadPoolExecutor(min(workers or cores(), cores())) as threads:
        for counted in threads.map(partial(_counted, shards), filter(attrgetter("rows"), shards.entries)):
            for name, n_images, total in counted:
                images[name] += n_images
                boxes[name] += total
    return Presence(shards, images, boxes)


def _counted(shards: Shards, entry: Entry) -> list[tuple[str, int, int]]:
    """Return each class of a shard with how many images show it, and how many boxes it has."""
    table = shards.table(entry)
    classes, kind = _ranked(table.column("class"))
    boxes = np.bincount(kind, values_of(table.column("boxes").combine_chunks())).astype(np.int64)
    return list(zip(classes.to_pylist(), np.bincount(kind).tolist(), boxes.tolist(), strict=True))


def annotation_blocks(address: str | Path) -> Iterator[Block]:
    """Yield the blocks of annotation files: their tables have the columns image and class, a row an object.

    A CSV file is cut where one image ends and the next begins, a Parquet file by its row groups; a JSON file is one
    block. The rows of an image are in one block if they are consecutive in the file.
    """
    text = str(address)
    if PurePosixPath(text).suffix.lower() in _SUFFIXES:
        files = iter([(text, PurePosixPath(text).name, size_and_stamp(text)[1])])
    else:
        files = files_below(text, _SUFFIXES)
    has_files = False
    for path, name, stamp in files:
        has_files = True
        if name.lower().endswith(".json"):
            yield _Json(path, name, stamp)
        elif name.lower().endswith(".csv"):
            size = size_and_stamp(path)[0]
            for start in range(0, max(size, 1), PART):
                yield _CsvPart(path, name, stamp, start, min(start + PART, size))
        else:
            from pyarrow import parquet

            with opened(path, kind="annotation file") as stream:
                groups = parquet.ParquetFile(stream).metadata.num_row_groups
            for group in range(groups):
                yield _RowGroup(path, name, stamp, group)
    if not has_files:
        raise UsageError("The folder holds no annotation files", where=text, expected=", ".join(_SUFFIXES))


@dataclass(frozen=True)
class _CsvPart:
    address: str
    file: str
    key: str
    start: int
    stop: int

    @property
    def name(self) -> str:
        return f"{self.file}[{self.start}:{self.stop}]"

    def tables(self) -> Iterator[pyarrow.Table]:
        from pyarrow import ArrowException, BufferReader, csv, string

        with opened(self.address, kind="annotation file") as stream:
            header = stream.readline(_PIECE)
            if header.startswith(GZIP):
                hint = "gunzip it: what is compressed cannot be read in parts"
                raise AnnotationFormatError("The box CSV is compressed", where=self.address, hint=hint)
            names = csv_header(header, AnnotationFormatError, where=f"{self.file}: row 1")
            image, label = (_column(names, known, self.file) for known in (_IMAGE, _CLASS))
            first = _image_ends(stream, self.start, len(header), names.index(image))
            last = _image_ends(stream, self.stop, len(header), names.index(image))
            stream.seek(first)
            data = stream.read(last - first)
        options = csv.ConvertOptions(
            include_columns=[image, label], column_types={image: string(), label: string()}, strings_can_be_null=False
        )
        if data:
            try:
                table = csv.read_csv(
                    BufferReader(data),
                    csv.ReadOptions(column_names=list(names), use_threads=False),
                    convert_options=options,
                )
            except ArrowException as error:
                reason = " ".join(str(error).split())[:200]
                raise AnnotationFormatError("The box CSV cannot be read", where=self.name, found=reason) from None
            yield table.rename_columns(["image", "class"])


def _image_ends(stream: BinaryIO, start: int, header: int, column: int) -> int:
    """Return the position of the first image that begins after a byte: skip a partial line and the next image."""
    if start <= header:
        return header
    stream.seek(start - 1)
    stream.readline(_PIECE)
    before: bytes | None = None
    while line := stream.readline(_PIECE):
        cells = line.split(b",", column + 1)
        image = cells[min(column, len(cells) - 1)]
        if before is not None and image != before:
            return stream.tell() - len(line)
        before = image
    return stream.tell()


@dataclass(frozen=True)
class _RowGroup:
    address: str
    file: str
    key: str
    group: int

    @property
    def name(self) -> str:
        return f"{self.file}[{self.group}]"

    def tables(self) -> Iterator[pyarrow.Table]:
        from pyarrow import concat_tables, parquet

        with opened(self.address, kind="annotation file") as stream:
            file = parquet.ParquetFile(stream)
            names = file.schema_arrow.names
            image, label = (_column(names, known, self.file) for known in (_IMAGE, _CLASS))
            size = file.metadata.row_group(self.group).total_byte_size
            if size > _LARGEST_GROUP:
                problem, most = "A row group is too large", f"row groups of at most {_LARGEST_GROUP:,} bytes"
                raise AnnotationFormatError(problem, where=self.name, expected=most, found=f"{size:,}")
            texts = [path for path in text_columns(file) if path in (image, label)]
            # A repeated text or row takes little room in the file: texts stay folded, and rows are counted in batches.
            folded = parquet.ParquetFile(stream, read_dictionary=texts)
            batches = folded.iter_batches(_BATCH, [self.group], [image, label], use_threads=False)
            count = ScanPresence()
            yield concat_tables([count(_texts_of(batch, image, label)) for batch in batches] or [_texts_of(None)])


def _texts_of(batch: pyarrow.RecordBatch | None, *names: str) -> pyarrow.Table:
    """Return the columns image and class of some rows as texts; dictionary-encoded columns stay so."""
    import pyarrow

    columns = []
    for column in [pyarrow.array([], pyarrow.string())] * 2 if batch is None else map(batch.column, names):
        is_folded = pyarrow.types.is_dictionary(column.type)
        texts = (column.dictionary if is_folded else column).cast(pyarrow.string())
        columns.append(pyarrow.DictionaryArray.from_arrays(column.indices, texts) if is_folded else texts)
    return pyarrow.table(dict(zip(("image", "class"), columns, strict=True)))


@dataclass(frozen=True)
class _Json:
    address: str
    name: str
    key: str

    def tables(self) -> Iterator[pyarrow.Table]:
        import pyarrow

        from curation.sources.coco import decode_instances

        with opened(self.address, kind="annotation file") as stream:
            data = stream.read(_LARGEST_JSON + 1)
        if len(data) > _LARGEST_JSON:
            most = f"at most {_LARGEST_JSON:,} bytes: cut it into shards"
            raise AnnotationFormatError("The annotation file is too large", where=self.address, expected=most)
        instances = decode_instances(data, self.name)
        names = {category.id: category.name for category in instances.categories}
        images = [str(box.image_id) for box in instances.annotations]
        labels = [names.get(box.category_id, str(box.category_id)) for box in instances.annotations]
        yield pyarrow.table(
            {"image": pyarrow.array(images, pyarrow.string()), "class": pyarrow.array(labels, pyarrow.string())}
        )


def _column(names: Collection[str], known: tuple[str, ...], file: str) -> str:
    chosen = next((name for name in known if name in names), None)
    if chosen is None:
        raise AnnotationFormatError(
            "The table lacks a column", where=file, expected=" or ".join(known), found=", ".join(names)[:300]
        )
    return chosen
