"""Users' files: opened only if they are regular, reported if they are missing, confined to a root folder."""

from __future__ import annotations

import errno
import os
import stat
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from io import BufferedReader
from itertools import islice
from pathlib import Path, PurePosixPath

from curation.core.errors import CurationError, CurationWarning, MissingFileError, PathEscapeError, UsageError

_MOST_NAMES = 1000
_SHOWN = 3


def open_binary(path: Path | str, *, kind: str = "file") -> BufferedReader:
    """Open a file for reading.

    Raises
    ------
    MissingFileError
        It is a pipe, a device or a socket (see `require_regular`).
    OSError
        It does not exist or may not be read.
    """
    # Do not block: opening a pipe without a writer would wait forever.
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:  # A socket cannot even be opened.
            require_regular(Path(path), kind=kind)
        raise
    try:
        mode = os.fstat(handle).st_mode
        _require_regular_mode(mode, path, kind)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    except BaseException:
        os.close(handle)
        raise
    return open(handle, "rb")  # noqa: PTH123 (a descriptor has no path)


def read_bytes(
    path: Path | str, *, kind: str = "file", most: int | None = None, error: type[CurationError] = UsageError
) -> bytes:
    """Return the bytes of a file; if it is missing or refused, raise `MissingFileError` with the kind of file.

    Parameters
    ----------
    most : int, optional
        Maximum size in bytes; a larger file raises `error` and is not read.
    """
    with open_file(path, kind=kind) as stream:
        if most is not None and (size := os.fstat(stream.fileno()).st_size) > most:
            expected = f"at most {most} bytes"
            raise error(f"The {kind} is too large", where=str(path), expected=expected, found=str(size))
        return stream.read()


@contextmanager
def open_file(path: Path | str, *, kind: str = "file") -> Iterator[BufferedReader]:
    """Yield a file, open for reading; raise `MissingFileError` with the kind of file if it cannot be opened."""
    with _missing_file_errors(path, kind), open_binary(path, kind=kind) as stream:
        yield stream


@contextmanager
def _missing_file_errors(path: Path | str, kind: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise missing_path(f"The {kind} does not exist", path) from None
    except IsADirectoryError:
        raise MissingFileError(f"The {kind} is a folder", where=str(path), expected="a file") from None
    except OSError as refused:
        raise MissingFileError(f"The {kind} cannot be read: {refused.strerror or refused}", where=str(path)) from None


def size_and_stamp(path: str) -> tuple[int, str]:
    """Return the size of a file in bytes, and a text that changes when the file does."""
    with _missing_file_errors(path, "file"):
        return _size_and_stamp(Path(path).stat())


def _size_and_stamp(status: os.stat_result) -> tuple[int, str]:
    return status.st_size, f"{status.st_size} {status.st_mtime_ns}"


def files_below(folder: str, suffixes: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield path, name below the folder, and stamp of every file with one of the suffixes, sorted by name.

    A link is followed only to a file of the same folder tree. One that leads elsewhere, to nothing or in a circle is
    skipped, and a `CurationWarning` counts them; links to folders of the tree are skipped, since the walk reaches those
    folders directly. Only the list of the current folder is in memory.

    Raises
    ------
    MissingFileError
        No such folder.
    """
    if not Path(folder).is_dir():
        raise missing_path("The folder does not exist", folder, expected="a folder")
    refused: list[str] = []
    yield from _files_below(folder, "", suffixes, os.path.realpath(folder), refused)
    if refused:
        warnings.warn(
            f"{len(refused):,} links below {folder} were not followed: they lead out of it, to nothing or in a circle: "
            f"{', '.join(refused[:_SHOWN])}{', …' if len(refused) > _SHOWN else ''}",
            CurationWarning,
            stacklevel=2,
        )


def _files_below(
    folder: str, prefix: str, suffixes: Collection[str], root: str, refused: list[str]
) -> Iterator[tuple[str, str, str]]:
    with _missing_file_errors(folder, "folder"), os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        if entry.is_dir(follow_symlinks=False):
            yield from _files_below(entry.path, f"{prefix}{entry.name}/", suffixes, root, refused)
            continue
        has_suffix = os.path.splitext(entry.name)[1].lower() in suffixes  # noqa: PTH122 (a name, not a path)
        if entry.is_symlink() and not stays_below(entry.path, root):
            if has_suffix or Path(entry.path).is_dir():
                refused.append(f"{prefix}{entry.name}")
        elif has_suffix and entry.is_file():
            yield entry.path, f"{prefix}{entry.name}", _size_and_stamp(entry.stat())[1]


def stays_below(path: str, root: str) -> bool:
    """Return whether the target of a link exists below a folder."""
    try:
        return Path(os.path.realpath(path, strict=True)).is_relative_to(root)
    except OSError:
        return False


def missing_path(
    message: str, path: Path | str, *, expected: str | None = None, found: str | None = None
) -> MissingFileError:
    """Return the error for a path that does not exist, with a similar existing path as a hint."""
    return MissingFileError(message, where=str(path), expected=expected, found=found, hint=path_meant(Path(path)))


def path_meant(path: Path) -> str | None:
    """Return a hint with the most similar name beside a missing path, or None.

    A folder of more than a thousand names is not searched.
    """
    with suppress(OSError, ValueError):
        siblings = [] if path.exists() else [entry.name for entry in islice(path.parent.iterdir(), _MOST_NAMES + 1)]
        near = get_close_matches(path.name, sorted(siblings), 3) if len(siblings) <= _MOST_NAMES else []
        # A common suffix is not a similarity: nope.json and test.json are different names.
        if matches := [name for name in near if get_close_matches(path.stem, [Path(name).stem])]:
            return f"did you mean {path.with_name(matches[0])}?"
    return None


def inside(root: Path, relative: str) -> Path:
    """Return ``root/relative``, refusing any name from an input file that leads outside `root`.

    Raises
    ------
    PathEscapeError
        The name is absolute, holds ``..``, a drive, a NUL, or resolves outside `root` through a link.
    """
    pure = PurePosixPath(relative.replace("\\", "/"))
    hostile = pure.is_absolute() or ".." in pure.parts or "\0" in relative or ":" in (pure.parts or ("",))[0]
    path = root / pure
    # Not Path.resolve, which raises RuntimeError for a link that leads in a circle.
    if hostile or not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise PathEscapeError(
            "A path leads outside its folder", where=str(root), expected="a path below it", found=relative[:200]
        )
    return path


def require_regular(path: Path, *, kind: str = "file") -> None:
    """Raise `MissingFileError` for a pipe, a device or a socket: it may never end, and can be read only once."""
    with suppress(OSError, ValueError):  # A missing or invalid path is reported when it is read.
        _require_regular_mode(path.stat().st_mode, path, kind)


def _require_regular_mode(mode: int, path: Path | str, kind: str) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise MissingFileError(
            f"The {kind} is not a regular file, and could not be read more than once",
            where=str(path),
            expected="a regular file",
            found=file_kind(mode),
            hint="write it to a file first: COMMAND > FILE, then name FILE",
        )


def file_kind(mode: int) -> str:
    """Return the kind of a file that is not regular, in words."""
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    return kinds.get(stat.S_IFMT(mode), "no file")
