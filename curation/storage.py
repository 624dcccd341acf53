"""Files that are whole or absent, and never in the place of somebody else's: the one way by which this tool writes.

A file is written under a temporary name in the same folder, synced and renamed. It replaces only a file that this tool
wrote and nobody changed since (`curation.ledger`), unless the command was given ``--force``; and never an input of the
same command.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from io import BufferedReader
from pathlib import Path, PurePosixPath

from curation.errors import (
    CurationError,
    MissingFileError,
    OverwriteError,
    PathEscapeError,
    UsageError,
)
from curation.ledger import (
    LEDGER,
    Entries,
    check_output,
    check_place,
    entries_of,
    is_own,
    ledger_text,
    locked,
    may_be_listed,
    refuse_input,
    remember_input,
    require_new_folder,
    require_regular,
    require_regular_mode,
    sha256_of,
)

_PARTIAL = ".partial-"
_MANY_FILES = 64


def write_bytes(path: Path, data: bytes, *, guarded: bool = True) -> None:
    """Write a file so that a reader, or a kill at any moment, sees the old bytes or all of the new ones.

    See `replacing` for `guarded` and the errors.
    """
    with replacing(path, guarded=guarded) as partial:
        partial.write_bytes(data)


def write_text(path: Path, text: str, *, guarded: bool = True) -> None:
    """Write UTF-8 text with line feeds as they stand, atomically (see `write_bytes`)."""
    write_bytes(path, text.encode("utf-8"), guarded=guarded)


@contextmanager
def replacing(path: Path, *, guarded: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it is synced and renamed onto it, else removed.

    The yielded name ends in the same suffix, so that libraries which choose a format by suffix write the right one.
    A file that holds the very bytes already is left alone.

    Parameters
    ----------
    guarded : bool
        False for the files of a folder that is this tool's own altogether (a cache, a store of embeddings): these are
        recognised by other means, and no ledger is kept of them.

    Raises
    ------
    UsageError, OverwriteError
        See `check_output`.
    CurationError
        The disk is full, or refuses for another reason.
    """
    check_place(path, guarded=guarded)
    partial = path.with_name(f".{path.stem}{_PARTIAL}{os.getpid()}-{secrets.token_hex(6)}{path.suffix}")
    with _new_parents(path, partial):
        if guarded:
            remove_abandoned(path.parent, path.stem)
            remove_abandoned(path.parent, LEDGER.removeprefix("."))
        try:
            yield partial
            sync(partial)
            if guarded:
                _put(partial, path)
            else:
                partial.replace(path)
            sync(path.parent)
        finally:
            partial.unlink(missing_ok=True)


def remove_written(path: Path) -> None:
    """Remove a file that this tool wrote; one that it did not write, or that was changed or is an input, stays."""
    try:
        refuse_input(path)
    except OverwriteError:
        return
    if path.is_file() and is_own(path):
        with locked(path.parent):
            path.unlink(missing_ok=True)
            _store(path.parent, frozenset(one for one in entries_of(path.parent) if one[0] != path.name))


@contextmanager
def publishing_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`; on success its files are synced and it is renamed into place.

    Raises
    ------
    UsageError
        `folder` exists already and is not empty: what is published is never edited. Also where another process makes
        it in the meantime.
    CurationError
        The disk is full, or refuses for another reason.
    """
    require_new_folder(folder)
    if folder.is_symlink():
        folder = folder.resolve()
    partial = folder.with_name(f".{folder.name}{_PARTIAL}{os.getpid()}-{secrets.token_hex(6)}")
    with _new_parents(folder, partial):
        remove_abandoned(folder.parent, folder.name)
        partial.mkdir()
        try:
            yield partial
            _sync_tree(partial)
            _put_folder(partial, folder)
            sync(folder.parent)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents; a file in the way is a `UsageError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError("A file stands where a folder is needed", where=str(folder)) from None
    except PermissionError:
        raise UsageError("The folder may not be written", where=str(folder)) from None


def open_binary(path: Path | str, *, kind: str = "file") -> BufferedReader:
    """Open somebody's file for reading, and remember it as an input of the running command.

    Raises
    ------
    MissingFileError
        It is a pipe, a device or a socket (see `require_regular`).
    OSError
        It does not exist or may not be read.
    """
    # Not to wait: a pipe that nobody writes to would be waited for, for ever.
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:  # A socket cannot even be opened.
            require_regular(Path(path), kind=kind)
        raise
    try:
        found = os.fstat(handle)
        require_regular_mode(found.st_mode, path, kind)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    except BaseException:
        os.close(handle)
        raise
    remember_input(found)
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
        raise MissingFileError(f"The {kind} does not exist", where=str(path)) from None
    except IsADirectoryError:
        raise MissingFileError(f"The {kind} is a folder", where=str(path), expected="a file") from None
    except (PermissionError, OSError) as refused:
        raise MissingFileError(f"The {kind} cannot be read: {refused.strerror}", where=str(path)) from None


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
    if hostile or not path.resolve().is_relative_to(root.resolve()):
        raise PathEscapeError(
            "A path leads outside its folder",
            where=str(root),
            expected="a path below it",
            found=relative[:200],
        )
    return path


def remove_abandoned(folder: Path, name: str | None = None) -> None:
    """Remove from a folder what processes that live no more left of writing `name` (its suffix aside), or anything."""
    for leftover in folder.glob(f".{'*' if name is None else escape(name)}{_PARTIAL}*"):
        owner = leftover.name.rpartition(_PARTIAL)[2].partition("-")[0]
        if _is_alive(owner):
            continue
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def _new_parents(path: Path, partial: Path) -> Iterator[None]:
    """Make the folder of an output; where the output fails, take the folders away that were made for it.

    What the machine refuses (no space, no permission) is told with the name of the output.
    """
    made = [one for one in path.parents if not one.exists()]
    make_folder(path.parent)
    try:
        yield
    except BaseException as error:
        for one in made:
            with suppress(OSError):
                one.rmdir()
        if isinstance(error, OSError) and error.errno is not None and _is_of_output(error, partial):
            raise CurationError(
                f"The output cannot be written: {os.strerror(error.errno)}",
                where=str(path),
                hint=_HINTS.get(error.errno),
            ) from None
        raise


_HINTS = {
    errno.ENOSPC: "make room on the disk, or choose another --out",
    errno.EDQUOT: "make room in your quota, or choose another --out",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or choose another --out",
}


def _is_of_output(error: OSError, partial: Path) -> bool:
    """Return whether an error comes from writing: a refused write names no file, any other the temporary one."""
    if error.filename is None:
        return error.errno in (*_HINTS, errno.EIO)
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    return name == str(partial) or name.startswith(f"{partial}{os.sep}")


def _put(partial: Path, path: Path) -> None:
    """Rename a finished file onto its name, and record it; the record goes first, so that no kill comes between."""
    new = sha256_of(partial)
    with locked(path.parent):
        before = entries_of(path.parent)
        current = sha256_of(path) if path.is_file() else ""
        if current == new and not path.is_symlink():
            if (path.name, new) in before:
                # Of an earlier run that was killed before it struck out what stood here before.
                _keep_only(path, new, before)
            return
        check_output(path)
        if not may_be_listed(path.name):
            partial.replace(path)
            return
        others = frozenset(one for one in before if one[0] != path.name)
        own = {(path.name, new)}
        kept = {(path.name, current)} & before
        _store(path.parent, others | own | kept)
        partial.replace(path)
        if kept:
            _store(path.parent, others | own)


def _keep_only(path: Path, digest: str, entries: Entries) -> None:
    """Strike out what else the ledger says of a file."""
    exact = frozenset(one for one in entries if one[0] != path.name or one[1] == digest)
    if exact != entries:
        _store(path.parent, exact)


def _store(folder: Path, entries: Entries) -> None:
    """Write the ledger of a folder whole."""
    path = folder / LEDGER
    if not entries:
        path.unlink(missing_ok=True)
        return
    partial = path.with_name(f"{LEDGER}{_PARTIAL}{os.getpid()}-{secrets.token_hex(6)}")
    try:
        partial.write_bytes(ledger_text(entries).encode("utf-8"))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _put_folder(partial: Path, folder: Path) -> None:
    try:
        if folder.exists():
            folder.rmdir()
        partial.rename(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ENOENT):
            raise
        raise UsageError(
            "Another process has made the output folder in the meantime",
            where=str(folder),
            expected="a folder that one command alone writes",
            found="a folder that is not empty; it stays as it is, and nothing of this command is kept",
            hint="look whether it is what you want, or choose another --out",
        ) from None


def _sync_tree(folder: Path) -> None:
    paths = sorted(folder.rglob("*"))
    if len(paths) > _MANY_FILES:
        # One call for all: syncing tens of thousands of label files one by one takes a minute.
        os.sync()
        return
    for path in [*paths, folder]:
        sync(path)


def sync(path: Path) -> None:
    """Return when a file or folder is on the disk as it is now."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
