"""Users' files by name and as bytes: opened if they are regular, asked for if they are missing, held below a root."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from difflib import get_close_matches
from io import BufferedReader
from itertools import islice
from pathlib import Path, PurePosixPath

from curation.core.errors import CurationError, MissingFileError, PathEscapeError, UsageError

_MOST_NAMES = 1000


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
    """Return the bytes of a file; absence or refusal is a `MissingFileError` that says what was looked for.

    Parameters
    ----------
    most : int, optional
        Bytes that such a file has at most; a larger one is an `error`, and not read.
    """
    try:
        with open_binary(path, kind=kind) as stream:
            if most is not None and (size := os.fstat(stream.fileno()).st_size) > most:
                expected = f"at most {most} bytes"
                raise error(f"The {kind} is too large to be one", where=str(path), expected=expected, found=str(size))
            return stream.read()
    except FileNotFoundError:
        raise missing_path(f"The {kind} does not exist", path) from None
    except IsADirectoryError:
        raise MissingFileError(f"The {kind} is a folder", where=str(path), expected="a file") from None
    except (PermissionError, OSError) as refused:
        raise MissingFileError(f"The {kind} cannot be read: {refused.strerror}", where=str(path)) from None


def missing_path(
    what: str, path: Path | str, *, expected: str | None = None, found: str | None = None
) -> MissingFileError:
    """Return the error for a path where nothing is, with the question whether another was meant."""
    return MissingFileError(what, where=str(path), expected=expected, found=found, hint=path_meant(Path(path)))


def path_meant(path: Path) -> str | None:
    """Return the question whether the name beside a missing path that is most like it was meant; None without one.

    A folder of more than a thousand names is not searched.
    """
    with suppress(OSError, ValueError):
        siblings = [] if path.exists() else [entry.name for entry in islice(path.parent.iterdir(), _MOST_NAMES + 1)]
        near = get_close_matches(path.name, sorted(siblings), 3) if len(siblings) <= _MOST_NAMES else []
        # A common suffix makes no likeness: test.json is not meant by nope.json.
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
    """Return what a file that is not a regular one is, in words."""
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    return kinds.get(stat.S_IFMT(mode), "no file")
