"""Writing of outputs: they are complete or absent, and replace existing files only with ``--force``.

A file is written under a temporary name in the same folder, synced and renamed; a new folder likewise. Inputs of the
command and files of a manifest are never replaced, even with ``--force``.
"""

from __future__ import annotations

import errno
import filecmp
import json
import os
import platform
import secrets
import shutil
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path

from curation.core.errors import CurationError, OverwriteError, UsageError, WriteError
from curation.core.files import file_kind, require_regular

HEADER = "manifest.json"
"""Header of a manifest."""
LISTS = "ids"
"""Folder of a manifest's lists, beside its header."""
PARTIAL = ".partial-"
"""Part of every temporary name; the next command that writes there removes the files of a killed one."""

_LARGEST_HEADER = 64 << 20
_MANY_FILES = 64


@dataclass(slots=True)
class _Command:
    """Inputs of the running command, as paths without links, and whether it may replace files."""

    force: bool
    inputs: set[Path] = field(default_factory=set)


_running: _Command | None = None


@contextmanager
def command(*, inputs: Iterable[Path] = (), force: bool = False) -> Iterator[None]:
    """Mark code as a command: no input is replaced, other files only with `force`.

    Parameters
    ----------
    inputs : iterable of Path
        Files and folders that the command reads; sources that it opens are added to them (see `add_input`).
    force : bool

    Raises
    ------
    MissingFileError
        An input is a pipe, a device or a socket.
    """
    global _running
    before, _running = _running, _Command(force)
    try:
        for path in inputs:
            require_regular(path)
            add_input(path)
        yield
    finally:
        _running = before


def is_command() -> bool:
    """Return whether a command is running, rather than a call from Python."""
    return _running is not None


def add_input(path: Path) -> None:
    """Add a file or folder to the inputs of the running command."""
    if _running is not None:
        _running.inputs.add(Path(os.path.realpath(path)))


def _inputs() -> Collection[Path]:
    return _running.inputs if _running else ()


def check_output(path: Path) -> None:
    """Raise an error if a file may not be written; called before long work, and again when the file is written.

    Raises
    ------
    UsageError
        The path is a folder, or a manifest's folder holds the file.
    OverwriteError
        The file exists and is an input of this command, or lies in a folder that it reads, or ``--force`` is not set;
        or the path is not a regular file.
    """
    check_target(path)
    if not (path.exists() or path.is_symlink()):
        return
    real = Path(os.path.realpath(path))
    if any(folder.is_dir() and real.is_relative_to(folder) for folder in _inputs()):
        raise OverwriteError(
            "The output would replace a file in a folder that this command reads",
            where=str(path),
            expected="a new name, or a folder elsewhere; --force does not replace inputs",
            hint="choose another name",
        )
    if _running is None or not _running.force:
        raise OverwriteError(
            "The output exists already",
            where=str(path),
            expected="a new name",
            hint=f"choose another name, or {'--force to replace it' if _running else 'remove the file first'}",
        )


def check_target(path: Path, *, guarded: bool = True) -> None:
    """Raise an error if a file may not be written even with ``--force`` (see `check_output`)."""
    if not path.name or path.is_dir():
        raise UsageError("Expected a file, found a folder", where=str(path), expected="a file name")
    # /dev/stdout may be a link to a regular file, but the name belongs to the system.
    of_the_system = path.absolute().is_relative_to("/proc") or str(path.absolute().parent) in ("/dev", "/dev/fd")
    if path.exists() and (of_the_system or not path.is_file()):
        raise OverwriteError(
            "Output is not a regular file",
            where=str(path),
            expected="a file name",
            found="a path of the system" if path.is_file() else file_kind(path.stat().st_mode),
        )
    refuse_in_manifest(path, guarded=guarded)
    refuse_input(path)


def refuse_input(path: Path) -> None:
    """Raise `OverwriteError` if a file is an input of the running command, by any name or link."""
    if path.is_file() and any(read.is_file() and path.samefile(read) for read in _inputs()):
        raise OverwriteError(
            "The output would replace an input of the same command",
            where=str(path),
            expected="another name; --force does not replace inputs",
            hint="choose another name",
        )


def refuse_in_manifest(path: Path, *, guarded: bool = True) -> None:
    """Raise `UsageError` for a file among a manifest's lists and, if `guarded`, in the folder of its header."""
    for folder in dict.fromkeys((path.parent.absolute(), Path(os.path.realpath(path.parent)))):
        lists = folder.parent / LISTS
        in_lists = lists.is_dir() and folder.is_dir() and folder.samefile(lists) and (folder.parent / HEADER).is_file()
        if in_lists or (guarded and _is_manifest(folder)):
            raise UsageError(
                f"The folder holds {'the id lists of ' if in_lists else ''}a manifest: no other file may be added",
                where=str(path),
                expected="a folder elsewhere",
                hint="choose another folder",
            )


def _is_manifest(folder: Path) -> bool:
    """Return whether a folder holds the header of a manifest, and its lists unless these were never published."""
    header = folder / HEADER
    if not header.is_file():
        return False
    if (folder / LISTS).is_dir():
        return True
    with suppress(OSError, ValueError, RecursionError):
        content = json.loads(header.read_bytes()) if header.stat().st_size <= _LARGEST_HEADER else None
        return isinstance(content, dict) and {"digest", "parts"} <= content.keys()
    return False


def require_new_folder(folder: Path) -> None:
    """Raise `UsageError` if the path of a new folder exists and is not an empty folder."""
    if folder.exists() and (not folder.is_dir() or any(PARTIAL not in path.name for path in folder.iterdir())):
        is_manifest = (folder / HEADER).is_file()
        raise UsageError(
            "The output folder is that of a manifest" if is_manifest else "The output folder exists already",
            where=str(folder),
            expected="a new or an empty folder" + ("; --force replaces files, never a folder" if is_command() else ""),
            hint="choose another folder" if is_manifest else "choose another folder, or remove this one",
        )


def write_bytes(path: Path, data: bytes, *, guarded: bool = True) -> None:
    """Write a file so that a reader, or a kill at any moment, sees the old bytes or all of the new ones.

    See `replacing` for `guarded` and the errors.
    """
    with replacing(path, guarded=guarded) as partial:
        partial.write_bytes(data)


def write_text(path: Path, text: str, *, guarded: bool = True) -> None:
    """Write UTF-8 text with unchanged line feeds, atomically (see `write_bytes`)."""
    write_bytes(path, text.encode("utf-8"), guarded=guarded)


@contextmanager
def replacing(path: Path, *, guarded: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it is synced and renamed onto it, else removed.

    The yielded name ends in the same suffix, so that libraries which choose a format by suffix write the right one.
    A file that already has these bytes is not replaced.

    Parameters
    ----------
    guarded : bool
        False for the files of a folder that only this package writes (a store of embeddings): they are replaced
        without ``--force``.

    Raises
    ------
    UsageError, OverwriteError
        See `check_output`.
    WriteError
        The disk is full, or refuses for another reason.
    """
    check_target(path, guarded=guarded)
    partial = path.with_name(f".{path.stem}{_temporary_suffix()}{path.suffix}")
    with _new_parents(path, partial):
        if guarded:
            remove_abandoned(path.parent, path.stem)
        try:
            yield partial
            sync(partial)
            if not guarded:
                partial.replace(path)
            elif not _has_same_bytes(path, partial):
                check_output(path)
                partial.replace(path)
            sync(path.parent)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def publishing_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder; on success its files are synced and it is renamed into place.

    If an empty folder exists, which may be mounted or a shell's working folder, the files are moved into it.

    Raises
    ------
    UsageError
        `folder` exists and is not empty: a published folder is never edited.
    WriteError
        The disk is full, or refuses for another reason.
    """
    require_new_folder(folder)
    with publishing_files(folder, is_new=True) as partial:
        yield partial


@contextmanager
def publishing_files(folder: Path, stale: Iterable[str] = (), *, is_new: bool = False) -> Iterator[Path]:
    """Yield a temporary folder; on success its files are moved to `folder`, beside existing files.

    A new folder appears complete. In an existing folder, files are renamed one after the other after all are written,
    JSON last: after a kill each file is old or new, and the same command with ``--force`` writes the rest. If one file
    may not be replaced, none is.

    Parameters
    ----------
    stale : iterable of str
        Names, relative to the folder, of an earlier run's files: removed if no new file replaces them.
    is_new : bool
        Whether the folder has to be new or empty, also when the files are moved.

    Raises
    ------
    UsageError, OverwriteError
        See `check_output`.
    WriteError
        The disk is full, or refuses for another reason.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError("Results go into a folder", where=str(folder), expected="a folder", found="a file")
    with _staged(folder) as (partial, target):
        yield partial
        _sync_tree(partial)
        try:
            if not target.is_dir():
                partial.rename(target)
        except OSError:
            if not target.is_dir():
                raise
        if partial.is_dir():  # The folder existed before, or another process has created it.
            _move_files(partial, folder, stale, is_new=is_new)
        sync(target)
        sync(target.parent)


def _move_files(partial: Path, folder: Path, stale: Iterable[str], *, is_new: bool) -> None:
    names = {path.relative_to(partial) for path in partial.rglob("*") if not path.is_dir()}
    with locked(folder):
        if is_new:
            require_new_folder(folder)
        changed = [name for name in names if not _has_same_bytes(folder / name, partial / name)]
        removed = [name for name in map(Path, stale) if name not in names and (folder / name).is_file()]
        for name in (*changed, *removed):
            check_output(folder / name)
        for name in changed:
            make_folder((folder / name).parent)
        for name in removed:
            (folder / name).unlink()
        # JSON last: until then the old JSON lists the files to be removed.
        for name in sorted(changed, key=lambda name: (name.suffix == ".json", name)):
            (partial / name).replace(folder / name)


@contextmanager
def _staged(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a temporary folder, in `folder` if it exists and else beside it, and the path of `folder` itself."""
    target = Path(os.path.realpath(folder))
    home = target if target.is_dir() else target.parent
    partial = home / f".{target.name}{_temporary_suffix()}"
    with _new_parents(folder, partial):
        make_folder(home)
        remove_abandoned(home, target.name)
        partial.mkdir()
        try:
            yield partial, target
        except CurationError as error:
            # The error names the final path of the file, not the temporary one.
            error.where = error.where and error.where.replace(str(partial), str(folder))
            raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _has_same_bytes(path: Path, other: Path) -> bool:
    return path.is_file() and not path.is_symlink() and filecmp.cmp(path, other, shallow=False)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents; a file in the way is a `UsageError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError("Expected a folder, found a file", where=str(folder)) from None
    except PermissionError:
        raise UsageError("The folder may not be written", where=str(folder)) from None


def remove_abandoned(folder: Path, name: str | None = None) -> None:
    """Remove temporary files that killed processes left in a folder: of `name` with any suffix, or of any name."""
    for leftover in folder.glob(f".{'*' if name is None else escape(name)}{PARTIAL}*"):
        host, _, rest = leftover.name.rpartition(PARTIAL)[2].partition("-")
        # A process of another machine that shares the folder may still run.
        if host != _host() or _is_alive(rest.partition("-")[0]):
            continue
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _temporary_suffix() -> str:
    return f"{PARTIAL}{_host()}-{os.getpid()}-{secrets.token_hex(6)}"


def _host() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):  # Not a name of ours, or a process of another user.
        return True
    return True


@contextmanager
def _new_parents(path: Path, partial: Path) -> Iterator[None]:
    """Create the folders of an output; if the output fails, remove the folders that were created.

    An error of the system (no space, no permission) is reported with the name of the output.
    """
    made = [parent for parent in path.parents if not parent.exists()]
    make_folder(path.parent)
    try:
        yield
    except BaseException as error:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError) and error.errno is not None and _is_of_output(error, partial):
            raise WriteError(
                f"The output cannot be written: {os.strerror(error.errno)}",
                where=str(path),
                hint=_HINTS.get(error.errno),
            ) from None
        raise


_HINTS = {
    errno.ENOSPC: "make room on the disk, or choose another folder",
    errno.EDQUOT: "make room in your quota, or choose another folder",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or choose another folder",
}


def _is_of_output(error: OSError, partial: Path) -> bool:
    """Return whether an error comes from writing: a refused write names no file, any other the temporary one."""
    if error.filename is None:
        return error.errno in (*_HINTS, errno.EIO)
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    return name == str(partial) or name.startswith(f"{partial}{os.sep}")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a folder, or of a lock file, so that simultaneous commands write one after the other."""
    handle = None
    with suppress(OSError):  # Folders on Windows and on some network disks have no locks.
        handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o644)
        lock(handle)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def lock(handle: int) -> None:
    """Wait for the lock of an open file or folder; closing the handle, or the end of the process, releases it."""
    from filelock import lock_descriptor

    lock_descriptor(handle, poll_interval=0.01)


def _sync_tree(folder: Path) -> None:
    paths = sorted(folder.rglob("*"))
    if len(paths) > _MANY_FILES:
        # One call for all: syncing tens of thousands of label files one by one takes a minute.
        os.sync()
        return
    for path in [*paths, folder]:
        sync(path)


def sync(path: Path) -> None:
    """Wait until the current state of a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
