"""Blocks of the photos of a corpus of any size, in folders or tar shards; each worker reads its own blocks.

A name in a corpus opens only files below its root, and nothing is written. Members of tar shards are read in memory and
never unpacked. A photo that cannot be read becomes a row with the reason; the work continues.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from curation.core.canonical import sha256_of_lines
from curation.core.engines.shards import Block
from curation.core.errors import SourceError, UsageError
from curation.core.files import files_below, open_file, size_and_stamp
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

PHOTOS, TABLE = 1024, 256
"""Maximum number of photos in a block of a folder, and in a table."""
_TABLE_BYTES = 64 << 20
_LONGEST = 4096

Photo = tuple[str, "bytes | BrokenPhotoError"]


def corpus_blocks(corpus: str | Path) -> Iterator[Block]:
    """Yield the blocks of a corpus: their tables have the columns id, path, data and error (see `photo_data`).

    Parameters
    ----------
    corpus : str or Path
        A ``.tar`` shard of WebDataset, or a folder with shards, else with photos. The id of a photo is its path below
        the folder; in a tar shard, the name of the shard and of the member.

    Raises
    ------
    MissingFileError
        A file or folder does not exist or cannot be read.
    UsageError
        The corpus has no photos, or is a table of URLs.
    """
    text = str(corpus)
    suffix = PurePosixPath(text).suffix.lower()
    if suffix == ".parquet":
        raise UsageError(
            "Tables of URLs are not read",
            where=text,
            expected="a folder of photos, or tar shards of WebDataset",
            hint="img2dataset downloads the photos of such a table into tar shards",
        )
    if suffix == ".tar":
        files = [(text, PurePosixPath(text).name, size_and_stamp(text)[1])]
    else:
        PhotoFolder(Path(text))
        files = list(files_below(text, (".tar",)))
    if not files:
        blocks = _in_blocks(photos_among(files_below(text, PICTURES), text), PHOTOS)
        if (first := next(blocks, None)) is None:
            raise UsageError("The folder holds no photos", where=text, expected=".jpg, .png or .webp files")
        yield first
        yield from blocks
    for path, name, stamp in files:
        yield TarPhotos(path, name, stamp)


def listed_blocks(photos: Iterable[tuple[str, Path]], each: int = PHOTOS) -> Iterator[Block]:
    """Yield blocks of listed photos, by id and path; missing photos are reported like broken ones."""
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
        """Yield the photos with their bytes, in tables that fit into memory.

        Raises
        ------
        SourceError
            The file is not a tar file, is compressed, or is cut short.
        """
        ids: list[str] = []
        data: list[bytes | None] = []
        errors: list[str | None] = []
        size = 0
        with open_file(self.path, kind="tar shard") as stream:
            for name, content in self._members(stream):
                ids.append(f"{self.name}/{name}")
                is_broken = isinstance(content, str)
                data.append(None if is_broken else content)
                errors.append(content if is_broken else None)
                size += 0 if is_broken else len(content)
                if len(ids) >= TABLE or size >= _TABLE_BYTES:
                    yield _table(ids, data=data, errors=errors)
                    ids, data, errors, size = [], [], [], 0
        yield _table(ids, data=data, errors=errors)

    def _members(self, stream: BinaryIO) -> Iterator[tuple[str, Any]]:
        try:
            with tarfile.open(fileobj=_Bounded(stream), mode="r:") as archive:  # type: ignore[call-overload]
                while (member := archive.next()) is not None:
                    # tarfile would keep a record of every member.
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
    """Return the reason why a member is not read, or None if it is read."""
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
    """A file that rejects a read larger than any member: a header can claim gigabytes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, count: int = -1) -> bytes:
        if not 0 <= count <= LARGEST_FILE:
            raise tarfile.ReadError(f"a header claims {count:,} bytes")
        return self._stream.read(count)


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
    """Yield the id of each photo of a table with its bytes, or with the error that prevents reading it."""
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
