"""Append-only files of JSON Lines that a kill at any moment, or two processes at once, leave readable."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from curation.errors import MissingFileError, UsageError
from curation.ledger import lock, refuse_input
from curation.storage import make_folder, sync

_MODE = 0o644


def append_lines(path: Path, lines: bytes, *, kind: str = "file") -> int:
    """Add whole lines to a file under its lock, with one write and one sync; they are on the disk when this returns.

    A last line that an earlier kill cut off is taken away first: it was never confirmed. Where the disk is full, the
    part that was written is taken back.

    Parameters
    ----------
    lines : bytes
        Each ends in a line feed.
    kind : str
        What the file is, for the message.

    Returns
    -------
    int
        Lines cut off by an earlier kill that were taken away: 0 or 1.

    Raises
    ------
    MissingFileError
        The file may not be written.
    UsageError, OverwriteError
        Its last line is of somebody else; or it is an input of the running command.
    """
    refuse_input(path, guarded=False)
    with _locked(path, kind) as handle:
        recovered = _mend(handle, path)
        _write_all(handle, lines)
    return recovered


def is_cut_off(line: bytes) -> bool:
    """Return whether a last line may be the beginning of a JSON object that a kill cut off, and not other text."""
    return line[:2] in (b"{", b'{"') and not is_json_object(line)


def is_json_object(line: bytes) -> bool:
    """Return whether a line is a whole JSON object, and not the beginning of one."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


@contextmanager
def _locked(path: Path, kind: str) -> Iterator[int]:
    make_folder(path.parent)
    is_new = not path.exists()
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)
    except OSError as error:
        raise MissingFileError(f"The {kind} cannot be written: {error.strerror}", where=str(path)) from None
    try:
        lock(handle)
        yield handle
    finally:
        os.close(handle)
    if is_new:
        sync(path.parent)


def _mend(handle: int, path: Path) -> int:
    """End the last line: complete it with a line feed, or take away what a kill left of it."""
    size = os.fstat(handle).st_size
    if not size or os.pread(handle, 1, size - 1) == b"\n":
        return 0
    tail = _last_line(handle, size)
    if is_json_object(tail):
        os.write(handle, b"\n")
        return 0
    if not is_cut_off(tail):
        raise UsageError(
            "The last line is not the beginning of a line of this tool",
            where=str(path),
            expected="a file that this tool appends to",
            found=ascii(tail[:60].decode("utf-8", "replace")),
            hint="choose another file, or mend its last line",
        )
    os.ftruncate(handle, size - len(tail))
    return 1


def _last_line(handle: int, size: int) -> bytes:
    """Return the bytes behind the last line feed, read backwards in growing blocks."""
    length = 4096
    while True:
        start = max(0, size - length)
        block = os.pread(handle, size - start, start)
        cut = block.rfind(b"\n")
        if cut >= 0 or start == 0:
            return block[cut + 1 :]
        length *= 4


def _write_all(handle: int, data: bytes) -> None:
    """Write and sync; where the disk is full, take the part back that was written."""
    size = os.fstat(handle).st_size
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise
