"""Files that are whole or absent: temporary name in the same folder, sync, rename."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path, PurePosixPath

from curation.errors import MissingFileError, PathEscapeError, UsageError

_PARTIAL = ".partial-"
_MANY_FILES = 64


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a kill at any moment, sees the old bytes or all of the new ones."""
    with replacing(path) as partial:
        partial.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with line feeds as they stand, atomically (see `write_bytes`)."""
    write_bytes(path, text.encode("utf-8"))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it is synced and renamed onto it, else removed.

    The yielded name ends in the same suffix, so that libraries which choose a format by suffix write the right one.

    Raises
    ------
    UsageError
        `path` is a folder.
    """
    if not path.name or path.is_dir():
        raise UsageError(
            "A folder stands where a file is to be written", where=str(path), expected="a file name"
        )
    make_folder(path.parent)
    partial = path.with_name(f".{path.stem}{_PARTIAL}{os.getpid()}-{secrets.token_hex(6)}{path.suffix}")
    try:
        yield partial
        _sync(partial)
        partial.replace(path)
        _sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def publishing_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`; on success its files are synced and it is renamed into place.

    Raises
    ------
    UsageError
        `folder` exists already and is not empty: what is published is never edited.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            "The output folder exists already", where=str(folder), hint="choose another --out, or remove it"
        )
    make_folder(folder.parent)
    remove_abandoned(folder.parent, folder.name)
    partial = folder.with_name(f".{folder.name}{_PARTIAL}{os.getpid()}-{secrets.token_hex(6)}")
    partial.mkdir()
    try:
        yield partial
        _sync_tree(partial)
        if folder.exists():
            folder.rmdir()
        partial.rename(folder)
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


def read_bytes(path: Path, *, kind: str = "file") -> bytes:
    """Return the bytes of a file; absence or refusal is a `MissingFileError` that says what was looked for."""
    try:
        return path.read_bytes()
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
