"""Files that are whole or absent, and never in the place of somebody else's: the one way by which this tool writes.

A file is written under a temporary name in the same folder, synced and renamed. It replaces only a file that this tool
wrote and nobody changed since (`curation.core.ledger`), unless the command was given ``--force``; and never an input of
the same command.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from glob import escape
from io import BufferedReader
from itertools import islice
from pathlib import Path, PurePosixPath

from curation.core.errors import (
    CurationError,
    MissingFileError,
    OverwriteError,
    PathEscapeError,
    UsageError,
    WriteError,
)
from curation.core.ledger import (
    LEDGER,
    PARTIAL,
    Entries,
    check_output,
    check_target,
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

_MOST_NAMES = 1000
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
    WriteError
        The disk is full, or refuses for another reason.
    """
    check_target(path, guarded=guarded)
    partial = path.with_name(f".{path.stem}{PARTIAL}{os.getpid()}-{secrets.token_hex(6)}{path.suffix}")
    with _new_parents(path, partial):
        if guarded:
            remove_abandoned(path.parent, path.stem)
            remove_abandoned(path.parent, LEDGER.removeprefix("."))
        try:
            yield partial
            sync(partial)
            if guarded:
                _put([(partial, path)], path.parent)
            else:
                partial.replace(path)
            sync(path.parent)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def publishing_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder; on success its files are synced and it is renamed into place.

    Raises
    ------
    UsageError
        `folder` exists already and is not empty: what is published is never edited. Also where another process makes
        it in the meantime.
    WriteError
        The disk is full, or refuses for another reason.
    """
    require_new_folder(folder)
    with _staged(folder) as (partial, target):
        # A folder that holds what a killed run left, and nothing else, counts as empty.
        remove_abandoned(target)
        yield partial
        _sync_tree(partial)
        _put_folder(partial, target)
        _sync_names(partial, target)


@contextmanager
def publishing_files(folder: Path, stale: Iterable[str] = ()) -> Iterator[Path]:
    """Yield a temporary folder; on success its files stand in `folder` together, beside what else is there.

    A new folder, or one that holds nothing but what this tool wrote and now replaces, changes in one step of the file
    system: a kill leaves the old files or the new ones. Where other files are there too, where the folder is the
    working folder or a mounted one, or where the system cannot exchange folders (Windows, some network disks), files
    are renamed one after the other once all of them are written: each is old or new, and a kill in that moment may
    leave some old and some new, which the same command puts right. All is refused, before the first of them changes,
    where one may not be replaced.

    Parameters
    ----------
    stale : iterable of str
        Names, relative to the folder, of what an earlier run may have written: removed where this tool wrote it,
        nobody changed it since, and the new files do not replace it.

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
        new = _files_below(partial)
        for top in {name.parent for name in new} if target.is_dir() else ():
            remove_abandoned(target / top)
        for top in {name.parent for name in new}:
            written = frozenset((name.name, sha256_of(partial / name)) for name in new if name.parent == top)
            _store(partial / top, frozenset(entry for entry in written if may_be_listed(entry[0])))
        _sync_tree(partial)
        if not _is_new_name(partial, target):
            _join(partial, target, new, frozenset(map(Path, stale)) - new)
        _sync_names(partial, target)


@contextmanager
def _staged(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a temporary folder, and what `folder` leads to: beside it, or in it where it cannot be replaced."""
    target = Path(os.path.realpath(folder)) if folder.is_symlink() or folder.name in ("", "..") else folder
    home = target if _is_fixed(target) else target.parent
    partial = home / f".{target.name}{PARTIAL}{os.getpid()}-{secrets.token_hex(6)}"
    with _new_parents(folder, partial):
        remove_abandoned(home, target.name)
        make_folder(home)
        partial.mkdir()
        try:
            yield partial, target
        except CurationError as error:
            # A file of it was refused: it is known by the name that it would have got.
            error.where = error.where and error.where.replace(str(partial), str(folder))
            raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _is_fixed(folder: Path) -> bool:
    """Return whether a folder must stay the one it is: a shell works in it, it is mounted, or its parent is closed."""
    if not folder.is_dir():
        return False
    is_here = Path.cwd().is_relative_to(os.path.realpath(folder))
    return is_here or os.path.ismount(folder) or not os.access(folder.parent, os.W_OK | os.X_OK)


def _files_below(folder: Path) -> frozenset[Path]:
    """Return the files below a folder, relative to it, without ledgers."""
    paths = (path for path in folder.rglob("*") if path.name != LEDGER and (path.is_symlink() or not path.is_dir()))
    return frozenset(path.relative_to(folder) for path in paths)


def _is_new_name(partial: Path, folder: Path) -> bool:
    """Give a finished folder its name, where nothing or an empty folder has it; return whether it could."""
    if partial.parent == folder or (folder.exists() and any(folder.iterdir())):
        return False
    try:
        _put_folder(partial, folder)
    except UsageError:  # Another process made it in the meantime.
        return False
    return True


def _join(partial: Path, folder: Path, new: frozenset[Path], stale: frozenset[Path]) -> None:
    """Let finished files take their names in a folder that is there; see `publishing_files`."""
    with locked(folder):
        for name in new:
            check_output(folder / name)
        gone = {name for name in stale if _may_go(folder / name)}
        before = _files_below(folder)
        if not gone and all(name in before and _is_same(partial / name, folder / name) for name in new):
            return
        if before <= new | gone and _is_replaceable(folder, partial) and _exchange(partial, folder):
            # What somebody put there in this very moment is theirs.
            for name in _files_below(partial) - before:
                make_folder((folder / name).parent)
                (partial / name).replace(folder / name)
            return
    for top in sorted({name.parent for name in new | gone}, reverse=True):
        make_folder(folder / top)
        _put(
            [(partial / name, folder / name) for name in sorted(new) if name.parent == top],
            folder / top,
            [folder / name for name in sorted(gone) if name.parent == top],
        )


def _may_go(path: Path) -> bool:
    """Return whether this tool wrote a file as it is now, and the running command does not read it."""
    try:
        refuse_input(path)
    except OverwriteError:
        return False
    return is_own(path)


def _is_same(path: Path, other: Path) -> bool:
    return not other.is_symlink() and sha256_of(path) == sha256_of(other) and is_own(other)


def _is_replaceable(folder: Path, partial: Path) -> bool:
    """Return whether a folder may become another one of the same name, folders, owner and rights."""
    if partial.parent == folder or sys.platform not in ("linux", "darwin"):
        return False
    for path in folder.rglob("*"):
        if path.is_symlink() or (
            path.is_dir() and (path.is_mount() or not (partial / path.relative_to(folder)).is_dir())
        ):
            return False
    old, new = folder.stat(), partial.stat()
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        return False
    shutil.copystat(folder, partial)
    return True


def _exchange(path: Path, other: Path) -> bool:
    """Let two folders exchange their names in one step of the file system; return whether that was done."""
    import ctypes

    library = ctypes.CDLL(None)
    names = os.fsencode(path.absolute()), os.fsencode(other.absolute())
    if sys.platform == "linux":
        call, arguments = getattr(library, "renameat2", None), (-1, names[0], -1, names[1], 2)
    else:
        call, arguments = getattr(library, "renamex_np", None), (*names, 2)
    return call is not None and call(*arguments) == 0


def make_folder(folder: Path) -> None:
    """Create a folder and its parents; a file in the way is a `UsageError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError("Expected a folder, found a file", where=str(folder)) from None
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
        beside = [] if path.exists() else [entry.name for entry in islice(path.parent.iterdir(), _MOST_NAMES + 1)]
        near = get_close_matches(path.name, sorted(beside), 3) if len(beside) <= _MOST_NAMES else []
        # A common suffix makes no likeness: test.json is not meant by nope.json.
        if meant := [name for name in near if get_close_matches(path.stem, [Path(name).stem])]:
            return f"did you mean {path.with_name(meant[0])}?"
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


def remove_abandoned(folder: Path, name: str | None = None) -> None:
    """Remove from a folder what processes that live no more left of writing `name` (its suffix aside), or anything."""
    for leftover in folder.glob(f".{'*' if name is None else escape(name)}{PARTIAL}*"):
        owner = leftover.name.rpartition(PARTIAL)[2].partition("-")[0]
        if _is_alive(owner):
            continue
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (ValueError, PermissionError):  # A name that is none of ours, or a process of another user.
        return True
    return True


@contextmanager
def _new_parents(path: Path, partial: Path) -> Iterator[None]:
    """Make the folder of an output; where the output fails, take the folders away that were made for it.

    What the machine refuses (no space, no permission) is told with the name of the output.
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


def _put(files: Sequence[tuple[Path, Path]], folder: Path, gone: Sequence[Path] = ()) -> None:
    """Rename finished files onto their names in a folder, and record them; remove others that this tool wrote.

    The record goes first, so that no kill comes between: until the renames are done it lists old and new.
    """
    with locked(folder):
        before = entries_of(folder)
        after, during, moves = set(before), set(before), []
        for partial, path in files:
            new = sha256_of(partial)
            current = sha256_of(path) if path.is_file() else ""
            after = {pair for pair in after if pair[0] != path.name}
            if current == new and not path.is_symlink():
                # Of an earlier run that was killed before it struck out what stood here before.
                after |= {(path.name, new)} & before
                continue
            check_output(path)
            moves.append((partial, path))
            if may_be_listed(path.name):
                after.add((path.name, new))
                during = {pair for pair in during if pair[0] != path.name or pair[1] == current} | {(path.name, new)}
        names = {path.name for path in gone}
        after = {pair for pair in after if pair[0] not in names}
        if moves and during != before:
            _store(folder, frozenset(during))
        for partial, path in moves:
            partial.replace(path)
        for path in gone:
            path.unlink(missing_ok=True)
        if after != (during if moves else before):
            _store(folder, frozenset(after))


def _store(folder: Path, entries: Entries) -> None:
    """Write the ledger of a folder whole."""
    path = folder / LEDGER
    if not entries:
        path.unlink(missing_ok=True)
        return
    partial = path.with_name(f"{LEDGER}{PARTIAL}{os.getpid()}-{secrets.token_hex(6)}")
    try:
        partial.write_bytes(ledger_text(entries).encode("utf-8"))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _put_folder(partial: Path, folder: Path) -> None:
    if partial.parent == folder:
        # Folders first, so that the header of a manifest, say, comes after its lists.
        for moved in sorted(partial.iterdir(), key=lambda path: (path.is_file(), path.name)):
            moved.rename(folder / moved.name)
        return
    try:
        if os.name == "nt" and folder.exists():  # Elsewhere an empty folder is replaced in one step.
            folder.rmdir()
        partial.rename(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ENOENT):
            raise
        raise UsageError(
            "Another process created the output folder concurrently",
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


def _sync_names(partial: Path, folder: Path) -> None:
    sync(folder)
    if partial.parent != folder:
        sync(folder.parent)


def sync(path: Path) -> None:
    """Return when a file or folder is on the disk as it is now."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
