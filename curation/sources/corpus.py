"""Photos of a corpus of any size, in blocks that a worker reads itself: folders, Parquet tables of paths, tar shards.

No name in a corpus opens, or writes, anything but what lies below its root; members of tar shards are read in memory
and never unpacked. What cannot be used is a row with the reason, and does not end the work.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from curation.core.canonical import sha256_of_lines
from curation.core.columns import checked_group
from curation.core.engines.shards import Block
from curation.core.errors import PathEscapeError, SourceError, UsageError
from curation.core.files import files_below, inside, opened, size_and_stamp
from curation.sources.photos import (
    LARGEST_FILE,
    NO_PHOTO,
    PICTURES,
    SUFFIXES,
    BrokenPhotoError,
    PhotoFolder,
    photos_among,
    read_photo,
)

if TYPE_CHECKING:
    import pyarrow

PHOTOS, ROWS, TABLE = 1024, 8192, 256
"""Photos of a block of a folder; rows of a block of a Parquet file; photos of a table, at most."""
_TABLE_BYTES = 64 << 20
_LARGEST_COLUMN = 1 << 30
_LONGEST = 4096
_PATHS = ("path", "url")

Photo = tuple[str, "bytes | BrokenPhotoError"]


def corpus_blocks(corpus: str | Path, *, root: str | None = None) -> Iterator[Block]:
    """Yield the blocks of a corpus: their tables have the columns id, path, data and error (see `photo_data`).

    Parameters
    ----------
    corpus : str or Path
        A ``.tar`` shard of WebDataset, a ``.parquet`` file, or a folder; of a folder its shards
        if there are any, else its Parquet files, else its photos. Of photos the id is the path below the folder; of tar
        shards, the name of the shard and of the member; of Parquet, the column ``id``, or file and row.
    root : str, optional
        Where the column ``path`` or ``url`` of Parquet may lead, and what relative paths are below of: by default the
        folder of the file.

    Raises
    ------
    MissingFileError
        A file or folder does not exist or cannot be read.
    UsageError
        The corpus has no photos.
    SourceError
        A Parquet file cannot be read, or has no column of paths.
    """
    text = str(corpus)
    suffix = PurePosixPath(text).suffix.lower()
    if suffix in (".tar", ".parquet"):
        files = [(text, PurePosixPath(text).name, size_and_stamp(text)[1])]
    else:
        PhotoFolder(Path(text))
        files = next((listed for ending in (".tar", ".parquet") if (listed := [*files_below(text, (ending,))])), [])
        suffix = PurePosixPath(files[0][1]).suffix.lower() if files else ""
    if root is not None and suffix != ".parquet":
        raise UsageError("`root` only applies to Parquet", where=text, found=root)
    if not files:
        blocks = _in_blocks(photos_among(files_below(text, PICTURES), text), PHOTOS)
        if (first := next(blocks, None)) is None:
            raise UsageError("The folder holds no photos", where=text, expected=".jpg, .png or .webp files")
        yield first
        yield from blocks
    for path, name, stamp in files:
        if suffix == ".tar":
            yield TarPhotos(path, name, stamp)
        else:
            yield from _parquet(path, name, stamp, root or str(Path(path).parent))


def listed_blocks(photos: Iterable[tuple[str, Path]], each: int = PHOTOS) -> Iterator[Block]:
    """Yield blocks of photos that are listed, by id and path; missing photos are reported like broken ones."""
    return _in_blocks(
        ((str(path), name, size_and_stamp(str(path))[1] if path.exists() else "") for name, path in photos), each
    )


def _in_blocks(files: Iterable[tuple[str, str, str]], each: int) -> Iterator[Block]:
    rest, number = iter(files), 0
    while listed := list(islice(rest, each)):
        paths, names, stamps = zip(*listed, strict=True)
        yield ListedPhotos(f"photos {number}", names, paths, sha256_of_lines([*names, *stamps]))
        number += len(listed)


@dataclass(frozen=True)
class ListedPhotos:
    """Photos by their paths."""

    name: str
    ids: tuple[str, ...]
    paths: tuple[str, ...]
    key: str

    def tables(self) -> Iterator[pyarrow.Table]:
        """Yield ids and paths."""
        yield _table(self.ids, paths=self.paths)


@dataclass(frozen=True)
class TarPhotos:
    """The photos of a tar shard; its other members (captions, labels) are skipped."""

    path: str
    name: str
    key: str

    def tables(self) -> Iterator[pyarrow.Table]:
        """Yield the photos with their bytes, so many at a time as fit into memory.

        Raises
        ------
        SourceError
            The file is not a tar file, is compressed, or is cut short.
        """
        ids: list[str] = []
        data: list[bytes | None] = []
        errors: list[str | None] = []
        held = 0
        with opened(self.path, kind="tar shard") as stream:
            for name, content in self._members(stream):
                ids.append(f"{self.name}/{name}")
                is_broken = isinstance(content, str)
                data.append(None if is_broken else content)
                errors.append(content if is_broken else None)
                held += 0 if is_broken else len(content)
                if len(ids) >= TABLE or held >= _TABLE_BYTES:
                    yield _table(ids, data=data, errors=errors)
                    ids, data, errors, held = [], [], [], 0
        yield _table(ids, data=data, errors=errors)

    def _members(self, stream: BinaryIO) -> Iterator[tuple[str, Any]]:
        try:
            with tarfile.open(fileobj=_Bounded(stream), mode="r:") as archive:  # type: ignore[call-overload]
                while (member := archive.next()) is not None:
                    # It would keep all it has met.
                    archive.members.clear()
                    if PurePosixPath(member.name).suffix.lower() in SUFFIXES and not member.isdir():
                        yield _clean(member.name), _refused(member) or _content(archive, member)
        except tarfile.TarError as error:
            raise SourceError(
                "The tar shard cannot be read",
                where=self.path,
                expected="a whole tar file that is not compressed",
                found=str(error)[:200],
            ) from None


def _refused(member: tarfile.TarInfo) -> str | None:
    """Return why a member is not read, None if it may be."""
    pure = PurePosixPath(member.name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts or "\0" in member.name:
        return "its name leads outside the shard"
    if len(member.name) > _LONGEST:
        return f"its name is longer than {_LONGEST} characters"
    if not member.isreg() or member.issparse():
        return "it is a link, a device or a sparse file"
    if member.size > LARGEST_FILE:
        return f"it is larger than {LARGEST_FILE >> 20} MiB"
    return None


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    data = stream.read() if stream is not None else b""
    if len(data) != member.size:
        raise tarfile.ReadError("it ends within a member")
    return data


def _clean(name: str) -> str:
    return name[:_LONGEST].encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class _Bounded:
    """A file that refuses to be read in one piece larger than any member: a header can claim gigabytes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, count: int = -1) -> bytes:
        if not 0 <= count <= LARGEST_FILE:
            raise tarfile.ReadError(f"a header claims {count:,} bytes")
        return self._stream.read(count)


def _parquet(path: str, name: str, stamp: str, root: str) -> Iterator[Block]:
    from pyarrow import parquet

    with opened(path, kind="Parquet file") as stream, _readable(path):
        file = parquet.ParquetFile(stream)
        names = [file.metadata.schema.column(at).path.lower() for at in range(file.metadata.num_columns)]
        used_columns = [at for at, column in enumerate(names) if column in ("id", *_PATHS)]
        groups = [checked_group(file, group, used_columns) for group in range(file.num_row_groups)]
        largest = max((meta.column(at).total_uncompressed_size for meta in groups for at in used_columns), default=0)
    if largest > _LARGEST_COLUMN:
        raise SourceError(
            "A column of the Parquet file is too large to be one of paths",
            where=path,
            expected=f"row groups of at most {_LARGEST_COLUMN >> 20} MiB a column",
            found=f"{largest >> 20} MiB",
        )
    for group, meta in enumerate(groups):
        for start in range(0, meta.num_rows, ROWS):
            yield ParquetPhotos(path, name, stamp, root, group, start, min(start + ROWS, meta.num_rows))


@dataclass(frozen=True)
class ParquetPhotos:
    """Photos by rows of a Parquet file, `start` to `stop` of a row group: ``path`` or ``url``, and ``id``."""

    path: str
    file: str
    stamp: str
    root: str
    group: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        """File, row group and first row."""
        return f"{self.file}[{self.group}:{self.start}]"

    @property
    def key(self) -> str:
        """What tells whether the file, or where its paths lead, has changed."""
        return f"{self.stamp} {self.root}"

    def tables(self) -> Iterator[pyarrow.Table]:
        """Yield ids, and paths below the root; a path that leads elsewhere is a row with the reason."""
        import pyarrow
        from pyarrow import parquet

        with opened(self.path, kind="Parquet file") as stream, _readable(self.path):
            file = parquet.ParquetFile(stream)
            names = {name.lower(): name for name in file.schema_arrow.names}
            chosen = next((names[name] for name in _PATHS if name in names), None)
            if chosen is None:
                column_names = ", ".join(file.schema_arrow.names)[:200]
                expected = "a column path or url, and id"
                raise SourceError(
                    "The Parquet file names no photos", where=self.path, expected=expected, found=column_names
                )
            columns = [chosen, *([names["id"]] if "id" in names else [])]
            at = 0
            for batch in file.iter_batches(TABLE, row_groups=[self.group], columns=columns):
                first, last = max(self.start - at, 0), min(self.stop - at, batch.num_rows)
                if first < last:
                    texts = batch.column(chosen).cast(pyarrow.string()).to_pylist()[first:last]
                    ids = [f"{self.name}+{at + row - self.start}" for row in range(first, last)]
                    if "id" in names:
                        ids = batch.column(names["id"]).cast(pyarrow.string()).to_pylist()[first:last]
                    yield self._placed(ids, texts)
                at += batch.num_rows
                if at >= self.stop:
                    return

    def _placed(self, ids: Sequence[str | None], texts: Sequence[str | None]) -> pyarrow.Table:
        paths: list[str | None] = []
        errors: list[str | None] = []
        for text in texts:
            try:
                paths.append(_below(self.root, text[:_LONGEST]) if text else None)
                errors.append(None if text else "its row names no file")
            except PathEscapeError:
                paths.append(None)
                errors.append("its path leads outside the root")
        return _table([(identity or "")[:_LONGEST] for identity in ids], paths=paths, errors=errors)


def _below(root: str, name: str) -> str:
    """Return the path that a name from a file means: relative to a root, or beginning with it."""
    try:
        return str(inside(Path(root), name.removeprefix(root if root.endswith("/") else f"{root}/")))
    except (ValueError, OSError) as error:
        raise PathEscapeError("Invalid path", where=root, found=f"{name[:100]!a}: {error}"[:200]) from None


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Tell what pyarrow raises of a damaged file as the one error of it."""
    import pyarrow

    try:
        yield
    except pyarrow.ArrowException as error:
        reason = " ".join(str(error).split())[:200]
        raise SourceError("The Parquet file cannot be read", where=path, found=reason) from None


def _table(ids: Any, *, paths: Any = None, data: Any = None, errors: Any = None) -> pyarrow.Table:
    import pyarrow

    nothing = [None] * len(ids)
    return pyarrow.table(
        {
            "id": pyarrow.array(ids, pyarrow.string()),
            "path": pyarrow.array(paths or nothing, pyarrow.string()),
            "data": pyarrow.array(data or nothing, pyarrow.large_binary()),
            "error": pyarrow.array(errors or nothing, pyarrow.string()),
        }
    )


def photo_data(table: pyarrow.Table) -> Iterator[Photo]:
    """Yield id and bytes of each photo of a table, read one after the other, or why it cannot be read."""
    for batch in table.select(["id", "path", "data", "error"]).to_batches(max_chunksize=1):
        ((identity, path, data, error),) = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        yield identity, _data(path, data, error)


def _data(path: str | None, data: bytes | None, error: str | None) -> bytes | BrokenPhotoError:
    if data is not None:
        return data
    try:
        if error or path is None:
            return BrokenPhotoError(error or NO_PHOTO)
        return read_photo(Path(path))
    except BrokenPhotoError as broken:
        return broken
