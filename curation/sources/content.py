"""The bytes of raw files together with their digest: one file, hashed while it is parsed, or many small ones."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import AnnotationFormatError, ImageIdError, MissingFileError, SourceError, UsageError
from curation.core.ids import check_native
from curation.core.reading import filled_lines, inside, plain, read_bytes
from curation.sources.integrity import check_unique
from curation.sources.source import FileRecord

_KIND = "annotation file"
_PLAIN_NAME = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*\Z")


class FileContent:
    """One raw file in memory.

    It is read, not mapped: a mapped file that another process truncates ends the program with a bus error. Mapping
    would spare a twentieth of the time of a first build, and no memory at its peak.

    Attributes
    ----------
    name : str
        Plain file name.
    size : int
        Bytes on disk.
    data : bytes
        What the file holds: unpacked where it is gzip, and without a byte order mark.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path = path
        self._stamp = stamp_of(path, _KIND)
        raw = read_bytes(path, kind=_KIND)
        self.size = len(raw)
        self._digest = _in_thread(lambda: "sha256:" + hashlib.sha256(raw).hexdigest())
        self.data = plain(raw, str(path))

    @property
    def sha256(self) -> str:
        """``sha256:<hex>`` of the bytes on disk; waits until the thread that computes it is done.

        Raises
        ------
        SourceError
            The file changed since it was opened, so that digest and parse may speak of different bytes.
        """
        digest = self._digest.result()
        require_unchanged(self._path, _KIND, self._stamp)
        return digest


def stamp_of(path: Path, kind: str) -> tuple[int, int, int]:
    """Return size, time of change and inode of a file, as which `require_unchanged` knows it again."""
    try:
        facts = path.stat()
    except OSError as error:
        raise MissingFileError(f"The {kind} cannot be read: {error.strerror}", where=str(path)) from None
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def require_unchanged(path: Path, kind: str, before: tuple[int, int, int]) -> None:
    """Raise `SourceError` where a file is another than before: digest and parse may speak of different bytes."""
    if stamp_of(path, kind) != before:
        raise SourceError("The annotation file changed while it was read", where=str(path), hint="run again")


def _in_thread(compute: Callable[[], str]) -> Future[str]:
    """Start a computation; hashing releases the interpreter lock, so it costs a second core and no time."""
    future: Future[str] = Future()

    def work() -> None:
        try:
            future.set_result(compute())
        except BaseException as error:
            future.set_exception(error)

    # A daemon: an input error must end the program at once, not after the rest of the file is hashed.
    Thread(target=work, daemon=True, name="sha256").start()
    return future


class SmallFiles:
    """Files below a folder.

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
        self.data = {name: read_bytes(path, kind=_KIND) for name, path in paths}

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.data.values()))

    @property
    def sha256(self) -> str:
        """``sha256:<hex>`` that changes with any of the files."""
        return self.record("", list(self.data), 0).sha256

    def record(self, name: str, files: Sequence[str], rows: int) -> FileRecord:
        """Return one file, or several under one name, for `Source.files`."""
        if len(files) == 1 and name == files[0]:
            return FileRecord(name, sha256_of_bytes(self.data[name]), len(self.data[name]), rows)
        return record_of_many(name, {file: self.data[file] for file in files}, rows)


def record_of_many(name: str, data: Mapping[str, bytes], rows: int) -> FileRecord:
    """Return the record of several files under one name; their digest is that of the lines of a checksum file."""
    lines = [f"{sha256_of_bytes(held).removeprefix('sha256:')}  {file}\n" for file, held in data.items()]
    digest = sha256_of_bytes("".join(sorted(lines)).encode("utf-8"))
    return FileRecord(name, digest, sum(map(len, data.values())), rows, len(data))


def paths_below(root: Path, names: Sequence[str]) -> list[str]:
    """Return the path of each name below a folder; one that leads outside it is a `PathEscapeError`."""
    # Resolving links costs more than reading a small file, so a name of plain characters is not resolved.
    return [f"{root}/{name}" if _PLAIN_NAME.match(name) else str(inside(root, name)) for name in names]


def require_one(found: Sequence[Path], root: Path, what: str, source: str) -> None:
    """Raise a `UsageError` that says `what` where a folder holds several files of which one is meant."""
    if len(found) > 1:
        raise UsageError(
            what,
            where=str(root),
            expected="one of them",
            found=", ".join(str(path.relative_to(root)) for path in found),
            hint=f"--source {source}={found[0]}",
        )


def listed_names(data: bytes, where: str) -> tuple[str, ...]:
    """Return the image names that a list holds, one a line, blank lines passed over.

    Raises
    ------
    AnnotationFormatError, DuplicateIdError
        It is not UTF-8, or a line is no image name, or stands twice.
    """
    lines = filled_lines(data, where, AnnotationFormatError, "The list is not UTF-8 text")
    for number, line in lines:
        check_name(line, f"{where}: line {number}")
    names = tuple(line for _, line in lines)
    check_unique(names, "image", lambda row: f"{where}: image {row + 1}")
    return names


def check_name(name: str, where: str) -> None:
    """Raise `AnnotationFormatError` unless a name can be an image id."""
    try:
        check_native(name)
    except ImageIdError as error:
        raise AnnotationFormatError(
            "A name cannot be an image id", where=where, expected=error.expected, found=repr(name[:80])
        ) from None
