"""What may be replaced: nothing but what this tool wrote and nobody changed since, and never an input of the command.

What it wrote stands in a list beside the files, which `sha256sum -c` reads too: sorted lines, each
``<64 hex digits>  <file name>``. A file that was edited since, or came from elsewhere, is not in it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from curation.core.canonical import sha256_of_file
from curation.core.errors import MissingFileError, OverwriteError, UsageError

LEDGER = ".curation.sha256"

PARTIAL = ".partial-"
"""In the names of what is not finished; the next command that writes there removes what a killed one left."""

HEADER = "manifest.json"
"""Header of a manifest."""

LISTS = "ids"
"""Folder of a manifest's lists, beside its header."""

REVIEW = "review.json"
REVIEW_FILES = frozenset({REVIEW, "decisions.jsonl", "boxes.jsonl", "database", "plugins"})
"""Files and folders of a review, beside its record: the review alone writes them."""

_HEX = 64
_MAX_BYTES = 64 << 20

Entries = frozenset[tuple[str, str]]
"""Pairs of file name and digest; a name has two digests only where a kill fell between a record and a rename."""


def entries_of(folder: Path) -> Entries:
    """Return what the ledger of a folder lists; nothing where there is none, and no line that it cannot read."""
    path = folder / LEDGER
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return frozenset()
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return frozenset()
    found = (line.partition("  ") for line in text.split("\n"))
    return frozenset((name, digest) for digest, _, name in found if name and len(digest) == _HEX)


def ledger_text(entries: Entries) -> str:
    """Return the text of a ledger: the same entries are the same bytes."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(entries))


def may_be_listed(name: str) -> bool:
    """Return whether a file name fits on a line; one with a line feed is never recognised as this tool's own."""
    return name.isprintable()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder's ledger, so that commands that write into one folder at once lose no line."""
    handle = None
    # Without locks (folders on Windows, some network disks) a line may get lost, and its file is refused later: never
    # worse. The folder itself is locked: a file of its own for the lock would stand among the user's.
    with suppress(OSError):
        while True:
            handle = os.open(folder, os.O_RDONLY)
            lock(handle)
            if os.path.samestat(os.fstat(handle), folder.stat()):
                break
            # Who had the lock has put another folder in its place.
            os.close(handle)
            handle = None
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def lock(handle: int) -> None:
    """Wait for the lock of an open file or folder; closing the handle, or the end of the process, releases it."""
    from filelock import lock_descriptor

    lock_descriptor(handle, poll_interval=0.01)


FileKey = tuple[int, int]
"""Device and inode: a file is the same by any name, link or case."""


@dataclass(slots=True)
class _Command:
    """Inputs of the running command, and whether it may replace files that this tool did not write."""

    force: bool
    files: set[FileKey] = field(default_factory=set)
    folders: set[Path] = field(default_factory=set)
    read: set[FileKey] = field(default_factory=set)


_running: _Command | None = None


@contextmanager
def command(*, inputs: Iterable[Path] = (), force: bool = False) -> Iterator[None]:
    """While this lasts, no input is replaced; with `force`, files are replaced that this tool did not write.

    Parameters
    ----------
    inputs : iterable of Path
        Files and folders that the command reads (see `add_input`). Sources that are opened, from the cache too, and
        files that `curation.core.storage` opens are added to them.
    force : bool

    Raises
    ------
    MissingFileError
        An input is a pipe, a device or a socket (see `require_regular`).
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


@contextmanager
def as_command() -> Iterator[None]:
    """Guard the inputs of a call from Python like those of a command; within a command, its own rule holds."""
    with nullcontext() if _running else command():
        yield


def is_command() -> bool:
    """Return whether a command, or a call from Python, runs."""
    return _running is not None


def add_input(path: Path) -> None:
    """Add a file or folder to the inputs of the running command, if it exists: before it is opened, or instead."""
    status = _found(path)
    if _running is None or status is None:
        return
    if stat.S_ISDIR(status.st_mode):
        _running.folders.add(Path(os.path.realpath(path)))
    else:
        _running.files.add(_key(status))


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
    check_target(path)
    if not (path.exists() or path.is_symlink()) or is_own(path):
        return
    listed = any(name == path.name for name, _ in entries_of(path.parent))
    foreign = "a file that was changed since" if listed else "a file not created by curation"
    if _lies_in_an_input(path):
        what = "The output would replace a file in a folder that this command reads"
        raise _refusal(what, path, foreign, "a new name, or a folder elsewhere; --force does not replace inputs")
    if _running is None or not _running.force:
        what = "The output would replace a file that this tool did not write, or that was changed since"
        expected = f"a new name, or a file as {LEDGER} beside it lists it"
        raise _refusal(what, path, foreign, expected, "choose another name, or --force to replace it")


def _refusal(
    what: str,
    path: Path,
    found: str,
    expected: str = "another name; --force does not replace inputs",
    hint: str = "choose another name",
) -> OverwriteError:
    return OverwriteError(what, where=str(path), expected=expected, found=found, hint=hint)


def refuse_input(path: Path, *, guarded: bool = True) -> None:
    """Raise `OverwriteError` where a file is an input of the running command, by any name or link.

    Of this tool's own folders (`guarded` is False) a command may read what it then replaces, unless it was named.
    """
    status = _found(path)
    if status is None or _running is None:
        return
    key = _key(status)
    if key in _running.files or (guarded and key in _running.read):
        raise _refusal("The output would replace an input of the same command", path, "a file that this command reads")


def require_new_folder(folder: Path) -> None:
    """Raise `UsageError` where something stands at the place of a folder that is to appear whole."""
    refuse_review(folder)
    if folder.exists() and (not folder.is_dir() or any(PARTIAL not in path.name for path in folder.iterdir())):
        kept = (folder / HEADER).is_file()
        raise UsageError(
            "The output folder is that of a manifest" if kept else "The output folder exists already",
            where=str(folder),
            expected="a new or an empty folder; --force replaces files, never a folder",
            hint="choose another --out" if kept else "choose another --out, or remove it",
        )


def refuse_review(path: Path) -> None:
    """Raise `OverwriteError` for a file or folder of a review's own, be it there or not, by any name or link."""
    real = path.resolve()
    for folder in (real, *real.parents):
        if folder.name.lower() in REVIEW_FILES and is_review(folder.parent / REVIEW):
            found = f"{folder.name} of the review in {folder.parent}"
            expected = "another name; --force does not replace the files of a review"
            raise _refusal("The output is a file of a review, which the review alone writes", path, found, expected)


def is_review(path: Path) -> bool:
    """Return whether a file is the record of a review, be it of another version."""
    return {"dataset", "stage", "inputs"} <= _keys_of(path)


def _keys_of(path: Path) -> Set[str]:
    """Return the keys of the JSON object in a file; none where it holds something else."""
    try:
        content = json.loads(path.read_bytes()) if path.stat().st_size <= _MAX_BYTES else None
    except (OSError, ValueError, RecursionError):
        return frozenset()
    return content.keys() if isinstance(content, dict) else frozenset()


def remember_input(status: os.stat_result) -> None:
    """Count a file that was opened for reading among the inputs of the running command."""
    remember_inputs({_key(status)})


def remember_inputs(files: Set[FileKey]) -> None:
    """Do the same for files of which a cache holds the content, so that none of them is opened."""
    if _running is not None:
        _running.read |= files


def require_regular(path: Path, *, kind: str = "file") -> None:
    """Raise `MissingFileError` for a pipe, a device or a socket: it may never end, and can be read only once."""
    found = _found(path)
    if found is not None:
        require_regular_mode(found.st_mode, path, kind)


def require_regular_mode(mode: int, path: Path | str, kind: str) -> None:
    """Do the same for a file that is open already."""
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise MissingFileError(
            f"The {kind} is not a regular file, and could not be read more than once",
            where=str(path),
            expected="a regular file",
            found=_sort_of_file(mode),
            hint="write it to a file first: COMMAND > FILE, then name FILE",
        )


def check_target(path: Path, *, guarded: bool = True) -> None:
    """Raise where no file may be written whatever stands there, be it this tool's own: see `check_output`."""
    if not path.name or path.is_dir():
        raise UsageError("Expected a file, found a folder", where=str(path), expected="a file name")
    # /dev/stdout may lead to a regular file, but the name itself is the system's.
    of_the_system = path.absolute().is_relative_to("/proc") or str(path.absolute().parent) in ("/dev", "/dev/fd")
    if path.exists() and (of_the_system or not path.is_file()):
        raise OverwriteError(
            "Output is not a regular file",
            where=str(path),
            expected="a file name",
            found="a name of the system" if path.is_file() else _sort_of_file(path.stat().st_mode),
        )
    if guarded:
        refuse_review(path)
    refuse_in_manifest(path, guarded=guarded)
    refuse_input(path, guarded=guarded)


def refuse_in_manifest(path: Path, *, guarded: bool = True) -> None:
    """Raise `UsageError` for a file among the lists of a manifest or, where it is guarded, beside or as its header."""
    for folder in dict.fromkeys((path.parent.absolute(), Path(os.path.realpath(path.parent)))):
        in_lists = _is_same(folder, folder.parent / LISTS) and (folder.parent / HEADER).is_file()
        if in_lists or (guarded and _is_manifest(folder)):
            raise UsageError(
                f"The folder holds {'the id lists of ' if in_lists else ''}a manifest, which no other file may join",
                where=str(path),
                expected="a folder elsewhere",
                hint="choose another --out",
            )


def _is_manifest(folder: Path) -> bool:
    """Return whether a folder holds the header of a manifest, and its lists unless these were never published."""
    header = folder / HEADER
    return header.is_file() and ((folder / LISTS).is_dir() or {"digest", "parts"} <= _keys_of(header))


def _is_same(path: Path, other: Path) -> bool:
    """Return whether two paths are one folder: the file system may ignore case."""
    first, second = _found(path), _found(other)
    return first is not None and second is not None and _key(first) == _key(second)


def is_own(path: Path) -> bool:
    """Return whether this tool wrote a file as it is now."""
    listed = {digest for name, digest in entries_of(path.parent) if name == path.name}
    return bool(listed) and path.is_file() and sha256_of(path) in listed


def _lies_in_an_input(path: Path) -> bool:
    """Return whether a file lies below a folder that the command reads, under its own name or by a link."""
    if _running is None or not _running.folders:
        return False
    real, found = Path(os.path.realpath(path)), _found(path)
    if any(real.is_relative_to(folder) for folder in _running.folders):
        return True
    # Only asked of somebody else's file where --force is given: a walk through a data set takes a second.
    return (
        _running.force
        and found is not None
        and any(
            (status := _found(Path(top, name))) is not None and os.path.samestat(status, found)
            for folder in _running.folders
            for top, _, names in os.walk(folder)
            for name in names
        )
    )


def _key(status: os.stat_result) -> FileKey:
    return status.st_dev, status.st_ino


def _found(path: Path) -> os.stat_result | None:
    """Return what stands at a path, links followed; None where nothing does."""
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


def sha256_of(path: Path) -> str:
    """Return the hex digits of a file's digest, as the ledger states it."""
    return sha256_of_file(path).removeprefix("sha256:")


def _sort_of_file(mode: int) -> str:
    sorts = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    return sorts.get(stat.S_IFMT(mode), "no file")
