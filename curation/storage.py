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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from glob import escape
from io import BufferedReader
from pathlib import Path, PurePosixPath

from curation.canonical import sha256_of_file
from curation.errors import (
    CurationError,
    MissingFileError,
    OverwriteError,
    PathEscapeError,
    UsageError,
)
from curation.ledger import LEDGER, Entries, entries_of, ledger_text, locked, may_be_listed

_PARTIAL = ".partial-"
_MANY_FILES = 64


@dataclass(slots=True)
class _Command:
    """What a running command reads, and whether it may replace what this tool did not write."""

    force: bool
    files: frozenset[tuple[int, int]]
    folders: tuple[Path, ...]
    read: set[tuple[int, int]] = field(default_factory=set)


_running: _Command | None = None


@contextmanager
def command(*, inputs: Iterable[Path] = (), force: bool = False) -> Iterator[None]:
    """While this lasts, no input is replaced; with `force`, files are replaced that this tool did not write.

    Parameters
    ----------
    inputs : iterable of Path
        Files and folders that the command reads; what does not exist is passed over. Files that `read_bytes` reads are
        added to them.
    force : bool

    Raises
    ------
    MissingFileError
        An input is a pipe, a device or a socket (see `require_regular`).
    """
    global _running
    before = _running
    given = [(path, found) for path in inputs if (found := _found(path)) is not None]
    for path, _ in given:
        require_regular(path)
    folders = tuple(path.resolve() for path, found in given if stat.S_ISDIR(found.st_mode))
    files = frozenset((found.st_dev, found.st_ino) for _, found in given if stat.S_ISREG(found.st_mode))
    _running = _Command(force, files, folders)
    try:
        yield
    finally:
        _running = before


def check_output(path: Path) -> None:
    """Raise where a file may not be written; asked before long work, and again when the file is written.

    Raises
    ------
    UsageError
        A folder stands there.
    OverwriteError
        What stands there is an input of this command; or it is not what this tool wrote, and there is no ``--force``;
        or it is no regular file.
    """
    _check_place(path)
    if not (path.exists() or path.is_symlink()) or _is_own(path):
        return
    if _lies_in_an_input(path):
        raise OverwriteError(
            "The output would replace a file in a folder that this command reads",
            where=str(path),
            expected="a new name, or a folder elsewhere; --force does not replace inputs",
            found=_how_foreign(path),
            hint="choose another name",
        )
    if _running is None or not _running.force:
        raise OverwriteError(
            "The output would replace a file that this tool did not write, or that was changed since",
            where=str(path),
            expected=f"a new name, or a file as {LEDGER} beside it lists it",
            found=_how_foreign(path),
            hint="choose another name, or --force to replace it",
        )


def refuse_input(path: Path, *, guarded: bool = True) -> None:
    """Raise `OverwriteError` where a file is an input of the running command, by any name or link.

    Of this tool's own folders (`guarded` is False) a command may read what it then replaces, unless it was named.
    """
    found = _found(path)
    if found is None or _running is None:
        return
    key = found.st_dev, found.st_ino
    if key in _running.files or (guarded and key in _running.read):
        raise OverwriteError(
            "The output would replace an input of the same command",
            where=str(path),
            expected="another name; --force does not replace inputs",
            found="a file that this command reads",
            hint="choose another name",
        )


def require_new_folder(folder: Path) -> None:
    """Raise `UsageError` where something stands at the place of a folder that is to appear whole."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            "The output folder exists already",
            where=str(folder),
            expected="a new or an empty folder; --force replaces files, never a folder",
            hint="choose another --out, or remove it",
        )


def require_new_file(path: Path) -> None:
    """Raise `OverwriteError` where something stands at the place of a file that is for the user to edit."""
    if path.exists() or path.is_symlink():
        raise OverwriteError(
            "The output file exists already, and is left as it is",
            where=str(path),
            expected="a new name: you may have edited the file",
            hint="choose another --out, or remove it",
        )


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
    _check_place(path, guarded=guarded)
    partial = path.with_name(f".{path.stem}{_PARTIAL}{os.getpid()}-{secrets.token_hex(6)}{path.suffix}")
    with _new_parents(path, partial):
        if guarded:
            remove_abandoned(path.parent, path.stem)
            remove_abandoned(path.parent, LEDGER.removeprefix("."))
        try:
            yield partial
            _sync(partial)
            if guarded:
                _put(partial, path)
            else:
                partial.replace(path)
            _sync(path.parent)
        finally:
            partial.unlink(missing_ok=True)


def remove_written(path: Path) -> None:
    """Remove a file that this tool wrote; one that it did not write, or that was changed or is an input, stays."""
    try:
        refuse_input(path)
    except OverwriteError:
        return
    if path.is_file() and _is_own(path):
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
            _sync(folder.parent)
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


def require_regular(path: Path, *, kind: str = "file") -> None:
    """Raise `MissingFileError` for a pipe, a device or a socket: it may never end, and can be read only once."""
    found = _found(path)
    if found is not None:
        _require_regular(found.st_mode, path, kind)


def _require_regular(mode: int, path: Path | str, kind: str) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise MissingFileError(
            f"The {kind} is not a regular file, and could not be read more than once",
            where=str(path),
            expected="a regular file",
            found=_sort_of_file(mode),
            hint="write it to a file first: COMMAND > FILE, then name FILE",
        )


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
        _require_regular(found.st_mode, path, kind)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    except BaseException:
        os.close(handle)
        raise
    if _running is not None:
        _running.read.add((found.st_dev, found.st_ino))
    return open(handle, "rb")  # noqa: PTH123 (a descriptor has no path)


def read_bytes(path: Path, *, kind: str = "file") -> bytes:
    """Return the bytes of a file; absence or refusal is a `MissingFileError` that says what was looked for."""
    try:
        with open_binary(path, kind=kind) as stream:
            return stream.read()
    except FileNotFoundError:
        raise MissingFileError(f"The {kind} does not exist", where=str(path)) from None
    except IsADirectoryError:
        raise MissingFileError(f"The {kind} is a folder", where=str(path), expected="a file") from None
    except (PermissionError, OSError) as error:
        raise MissingFileError(f"The {kind} cannot be read: {error.strerror}", where=str(path)) from None


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
    new = _sha256(partial)
    with locked(path.parent):
        before = entries_of(path.parent)
        current = _sha256(path) if path.is_file() else ""
        if current == new and not path.is_symlink():
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


def _check_place(path: Path, *, guarded: bool = True) -> None:
    """Raise where no file may be written whatever stands there, be it this tool's own: see `check_output`."""
    if not path.name or path.is_dir():
        raise UsageError(
            "A folder stands where a file is to be written", where=str(path), expected="a file name"
        )
    if path.exists() and not path.is_file():
        raise OverwriteError(
            "The output is no regular file",
            where=str(path),
            expected="a file name",
            found=_sort_of_file(path.stat().st_mode),
        )
    refuse_input(path, guarded=guarded)


def _is_own(path: Path) -> bool:
    """Return whether this tool wrote a file as it is now."""
    listed = {digest for name, digest in entries_of(path.parent) if name == path.name}
    return bool(listed) and path.is_file() and _sha256(path) in listed


def _how_foreign(path: Path) -> str:
    listed = any(name == path.name for name, _ in entries_of(path.parent))
    return "a file that was changed since" if listed else "a file of somebody else"


def _lies_in_an_input(path: Path) -> bool:
    """Return whether a file lies below a folder that the command reads, under its own name or by a link."""
    if _running is None or not _running.folders:
        return False
    place, found = path.resolve(), _found(path)
    if any(place.is_relative_to(one) for one in _running.folders):
        return True
    # Only asked of somebody else's file where --force is given: a walk through a data set takes a second.
    return (
        _running.force
        and found is not None
        and any(
            (one := _found(Path(top, name))) is not None and os.path.samestat(one, found)
            for folder in _running.folders
            for top, _, names in os.walk(folder)
            for name in names
        )
    )


def _found(path: Path) -> os.stat_result | None:
    """Return what stands at a path, links followed; None where nothing does."""
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


def _sha256(path: Path) -> str:
    return sha256_of_file(path).removeprefix("sha256:")


def _sort_of_file(mode: int) -> str:
    sorts = {
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return sorts.get(stat.S_IFMT(mode), "no file")


def _sync_tree(folder: Path) -> None:
    paths = sorted(folder.rglob("*"))
    if len(paths) > _MANY_FILES:
        # One call for all: syncing tens of thousands of label files one by one takes a minute.
        os.sync()
        return
    for path in [*paths, folder]:
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
