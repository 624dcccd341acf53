"""Parsed sources on disk, keyed by the digest of what they were read from: one ``.npz`` of columns each.

Nothing in the folder is trusted: a file is used only if every checksum in it holds, it was written by this version of
the readers, and it says itself that it belongs to the very digest and options asked for. Removing the folder is safe.

Digests are remembered by what the file system says of a file, so that 400 MB are not hashed on every run. As in git's
index, a file whose size, times and inode are as they were is taken to hold what it held; a stamp taken within two
seconds of the file's last change is not trusted, since a second change in that time might not show.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import numpy as np

from curation.core.canonical import sha256_of_value
from curation.core.errors import CurationError
from curation.core.writing import remove_abandoned, replacing, write_bytes
from curation.sources.source import Images, Objects, Source, texts

READER_VERSION = 9
"""Raised whenever a reader gives other columns for the same bytes, so that older files are not used."""

_TEXTS = ("images.file_names", "images.listed", "images.text_ids", "objects.original")
_PAIRS = ("presence", "federated")
_SHAPES = {"objects.boxes": 4, "presence": 2, "federated": 3}


_PLAIN = tuple(field.name for field in fields(Source) if field.name not in ("images", "objects", *_PAIRS))
_KINDS = get_type_hints(Source)
_Header: Any = msgspec.defstruct(
    "_Header",
    [
        ("version", int),
        ("key", str),
        ("columns", dict[str, tuple[str, int]]),
        *((name, _KINDS[name]) for name in _PLAIN),
    ],
    forbid_unknown_fields=True,
)
"""What a file says of itself, and all of a source that is no column."""


def frozen(source: Source) -> Source:
    """Return the source with every column made unwritable, as those are that come from a cache."""
    for values in _columns(source).values():
        values.setflags(write=False)
    return source


def default_folder() -> Path | None:
    """Return ``$CURATION_CACHE``, else the user's place for caches; None without a home.

    On Linux that is ``curation`` below ``$XDG_CACHE_HOME`` or ``~/.cache``; elsewhere what `platformdirs` says.
    """
    if named := os.environ.get("CURATION_CACHE"):
        return Path(named)
    from platformdirs import user_cache_path

    folder = user_cache_path("curation", appauthor=False)
    return folder if folder.is_absolute() else None


def cache_key(digest: str, options: Mapping[str, Any]) -> str:
    """Return the hex key of a source: digest of the bytes read, the reader's options and version."""
    return sha256_of_value({"version": READER_VERSION, "digest": digest, "options": dict(options)})[7:]


class Cache:
    """A folder of parsed sources. Trouble with it is told on stderr and never stops the work.

    Parameters
    ----------
    folder : Path
        Created on first use.

    Attributes
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._memo = Memo(folder / "digests")
        self._silent = False

    def sweep(self) -> None:
        """Remove what killed processes left unfinished in the folder."""
        for folder in (self.folder, self._memo.folder):
            try:
                remove_abandoned(folder)
            except OSError as error:
                self._cannot_write(error)

    def remembered(self, stamp: Stamp) -> tuple[str, int] | None:
        """Return digest and size of files that have not changed since they were last hashed, or None."""
        return self._memo.find(stamp)

    def remember(self, stamp: Stamp, digest: str, size: int) -> None:
        """Remember a digest for `remembered`."""
        try:
            self._memo.record(stamp, digest, size)
        except (OSError, CurationError) as error:
            self._cannot_write(error)

    def may_hold(self, size: int) -> bool:
        """Return whether some source read from files of this many bytes is there."""
        return any(self.folder.glob(f"{size}-*.npz"))

    def load(self, key: str, size: int) -> Source | None:
        """Return the source of a key, or None; a file that is there and cannot be used is told and ignored."""
        path = self._path(key, size)
        try:
            with zipfile.ZipFile(path) as archive:
                _require_bounded(archive, path.stat().st_size)
                return _unpack(archive, key)
        except FileNotFoundError:
            return None
        # Damaged bytes make the zip and array readers raise almost anything; none of it may reach the user.
        except Exception as error:
            _tell(f"the cached source {path} cannot be used and is built anew ({_reason(error)})")
            return None

    def store(self, key: str, size: int, source: Source) -> None:
        """Write a source under its key, atomically."""
        path = self._path(key, size)
        columns = _columns(source)
        for name in set(_TEXTS) & set(columns):
            columns |= _pack_texts(name, columns.pop(name))
        columns = dict(sorted(columns.items()))
        shapes = {name: (values.dtype.str, len(values)) for name, values in columns.items()}
        plain = {name: getattr(source, name) for name in _PLAIN}
        header = _Header(version=READER_VERSION, key=key, columns=shapes, **plain)
        packed = np.frombuffer(msgspec.json.encode(header), np.uint8)
        try:
            with replacing(path, guarded=False) as partial:
                np.savez(partial, allow_pickle=False, header=packed, **columns)
        except (OSError, CurationError) as error:
            self._cannot_write(error)

    def _path(self, key: str, size: int) -> Path:
        return self.folder / f"{size}-{key[:40]}.npz"

    def _cannot_write(self, error: Exception) -> None:
        if not self._silent:
            self._silent = True
            _tell(f"parsed sources are not kept: {self.folder} cannot be written ({_reason(error)})")


def _tell(message: str) -> None:
    sys.stderr.write(f"note: {message}\n")


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) else str(error).split("\n", 1)[0]
    return (text or type(error).__name__)[:120]


def _columns(source: Source) -> dict[str, Any]:
    tables = {"images": source.images, "objects": source.objects}
    columns = {
        f"{table}.{column.name}": getattr(values, column.name)
        for table, values in tables.items()
        if values is not None
        for column in fields(values)
    }
    columns |= {name: getattr(source, name) for name in _PAIRS}
    return {name: values for name, values in columns.items() if values is not None}


def _pack_texts(name: str, values: Any) -> dict[str, Any]:
    listed = values.tolist()
    text = "".join(listed)
    lengths = np.fromiter(map(len, listed), np.int32, len(listed))
    return {f"{name}.lengths": lengths, f"{name}.utf8": np.frombuffer(text.encode("utf-8"), np.uint8)}


def _unpack_texts(columns: dict[str, Any], name: str) -> None:
    if f"{name}.lengths" in columns:
        text = columns.pop(f"{name}.utf8").tobytes().decode("utf-8")
        lengths = columns[f"{name}.lengths"]
        ends = np.cumsum(lengths, dtype=np.int64)
        if lengths.min(initial=0) < 0 or ends[-1:].sum() != len(text):
            # Pieces that overlap would be the text many times over.
            raise ValueError(f"column {name} does not match its text")
        starts = (ends - columns.pop(f"{name}.lengths")).tolist()
        columns[name] = texts([text[start:end] for start, end in zip(starts, ends.tolist(), strict=True)])


def _require_bounded(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse a file whose columns take more than its own bytes: none is compressed, and none stands twice."""
    members = archive.infolist()
    if any(one.compress_type != zipfile.ZIP_STORED for one in members) or sum(one.file_size for one in members) > size:
        raise ValueError("its columns are larger than the file")


def _unpack(archive: zipfile.ZipFile, key: str) -> Source:
    header = msgspec.json.decode(_array(archive, "header").tobytes(), type=_Header)
    if header.version != READER_VERSION or header.key != key:
        raise ValueError("it belongs to other files, options or another version")
    columns = {name: _array(archive, name) for name in header.columns}
    for name, values in columns.items():
        shape = (_SHAPES[name],) if name in _SHAPES else ()
        if (values.dtype.str, len(values)) != header.columns[name] or values.shape[1:] != shape:
            raise ValueError(f"column {name} is not what the header says")
    for name in _TEXTS:
        _unpack_texts(columns, name)
    return _source(header, columns)


def _array(archive: zipfile.ZipFile, name: str) -> Any:
    """Return a column as a view of its bytes, which cannot be written to."""
    # `read` compares the member's checksum before a byte of it is interpreted.
    data = archive.read(f"{name}.npy")
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"column {name} has another array format")
    shape, by_column, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject or (by_column and len(shape) > 1):
        raise ValueError(f"column {name} is not a plain array")
    return np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape)


def _source(header: Any, columns: Mapping[str, Any]) -> Source:
    tables: dict[str, dict[str, Any]] = {"images": {}, "objects": {}}
    for name, values in columns.items():
        table, _, column = name.partition(".")
        if column:
            tables[table][column] = values
    objects = Objects(**tables["objects"]) if tables["objects"] else None
    plain = {name: getattr(header, name) for name in _PLAIN}
    pairs: dict[str, Any] = {name: columns.get(name) for name in _PAIRS}
    return frozen(Source(images=Images(**tables["images"]), objects=objects, **pairs, **plain))


_RACY = 2_000_000_000


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    listing: str
    digest: str
    size: int
    changed: int
    recorded: int


class Stamp:
    """What the file system says of some files at one moment.

    Attributes
    ----------
    listing : str
        Hex digest of path, size, modification and change time, inode and device of each file.
    changed : int
        Nanoseconds since the epoch of the last change of any of them.
    taken : int
        Nanoseconds since the epoch when the file system was asked.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.taken = time.time_ns()
        digest = hashlib.sha256()
        self.changed = 0
        for path in paths:
            facts = os.stat(path)  # noqa: PTH116 (thousands of paths; a Path each would cost more than the call)
            line = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_dev)
            digest.update(f"{path}\0{line}\n".encode("utf-8", "surrogateescape"))
            self.changed = max(self.changed, facts.st_mtime_ns, facts.st_ctime_ns)
        self.listing = digest.hexdigest()


class Memo:
    """Remembered digests, one small file a set of paths, in a folder.

    Attributes
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, stamp: Stamp) -> tuple[str, int] | None:
        """Return the remembered digest and size, or None where there is none to trust (a damaged entry is none)."""
        try:
            entry = msgspec.json.decode(self._path(stamp).read_bytes(), type=_Entry)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        if entry.listing != stamp.listing or entry.recorded - entry.changed <= _RACY or entry.changed != stamp.changed:
            return None
        return entry.digest, entry.size

    def record(self, stamp: Stamp, digest: str, size: int) -> None:
        """Remember a digest; raises `OSError` or `UsageError` where the folder may not be written."""
        entry = _Entry(stamp.listing, digest, size, stamp.changed, stamp.taken)
        write_bytes(self._path(stamp), msgspec.json.encode(entry), guarded=False)

    def _path(self, stamp: Stamp) -> Path:
        return self.folder / f"{stamp.listing[:40]}.json"
