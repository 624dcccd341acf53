"""Append-only files of JSON Lines that a kill at any moment, or two processes at once, leave readable."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from curation.core.errors import CurationError, MissingFileError, UsageError
from curation.core.json_text import each_key_once
from curation.core.tables import printable
from curation.core.writing import lock, make_folder, refuse_input, sync

_MODE = 0o644
_MAX_LINE = 64 << 10


def append_lines(path: Path, lines: bytes, *, kind: str = "file") -> int:
    """Add whole lines to a file under its lock, with one write and one sync; they are on the disk when this returns.

    A last line that an earlier kill cut off is removed first: it was never confirmed. If the disk is full, the part
    that was written is removed again.

    Parameters
    ----------
    lines : bytes
        Each ends in a line feed.
    kind : str
        Kind of the file, for the message.

    Returns
    -------
    int
        Number of removed lines that an earlier kill had cut off: 0 or 1.

    Raises
    ------
    MissingFileError
        The file may not be written.
    UsageError, OverwriteError
        The last line was written by another program, or the file is an input of the running command.
    """
    refuse_input(path)
    with _locked(path, kind) as handle:
        recovered = _repair_last_line(handle, path)
        _write_all(handle, lines)
    return recovered


def require_json_lines(path: Path, error: type[CurationError], kind: str) -> None:
    """Raise an `error` unless the name of a file ends in ``.jsonl``."""
    if path.suffix.lower() != ".jsonl":
        is_result = kind == "leaderboard file" and (path.name == "results.json" or (path / "results.json").is_file())
        raise error(
            f"A {kind} must be a JSON Lines file",
            where=str(path),
            expected=".jsonl",
            found="one result" if is_result else repr(path.suffix[:20]),
            hint="rank rows that `curation evaluate … --append FILE.jsonl` wrote" if is_result else None,
        )


def log_lines(data: bytes) -> tuple[list[tuple[int, bytes]], str]:
    """Return number and text of each line that is not blank, and the beginning of a last line that a kill cut off.

    The beginning is ``""`` if no line was cut off; the last line is then among the others.
    """
    lines = data.split(b"\n")
    filled = [(number, text) for number, line in enumerate(lines, start=1) if (text := line.strip(b" \t\r"))]
    if not filled or filled[-1][0] < len(lines) or not _is_cut_off(filled[-1][1]):
        return filled, ""
    return filled[:-1], printable(filled[-1][1][:60].decode("utf-8", "replace"), "?")


def parsed_line(line: bytes, error: type[CurationError], where: str) -> Any:
    """Return the decoded JSON of a line; raise `error` if it is too long, invalid, or has a duplicate key."""
    require_length(line, error, where)
    try:
        content = json.loads(line.decode("utf-8"), object_pairs_hook=each_key_once, parse_constant=_no_number)
        if b"\\u" in line:
            # A lone surrogate ("\\ud800") is valid JSON, but no encoding can write it.
            json.dumps(content, ensure_ascii=False).encode("utf-8")
        return content
    except (ValueError, RecursionError) as problem:
        text = printable(str(problem), "?")[:200]
        raise error("A line is not JSON", where=where, expected="one object a line", found=text) from None


def require_length(line: bytes, error: type[CurationError], where: str) -> None:
    """Raise an `error` for a line that is longer than this package writes."""
    if len(line) > _MAX_LINE:
        raise error("A line is too long", where=where, expected=f"at most {_MAX_LINE:,} bytes", found=f"{len(line):,}")


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")


def _is_cut_off(line: bytes) -> bool:
    """Return whether a last line may be the beginning of a JSON object that a kill cut off, and not other text."""
    return line[:2] in (b"{", b'{"') and not _is_json_object(line)


def _is_json_object(line: bytes) -> bool:
    """Return whether a line is a complete JSON object."""
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


def _repair_last_line(handle: int, path: Path) -> int:
    """Complete the last line with a line feed, or remove the rest of a line whose writer was killed."""
    size = os.fstat(handle).st_size
    if not size or os.pread(handle, 1, size - 1) == b"\n":
        return 0
    tail = os.pread(handle, size, 0).rpartition(b"\n")[2]
    if _is_json_object(tail):
        os.write(handle, b"\n")
        return 0
    if not _is_cut_off(tail):
        raise UsageError(
            "The last line was not written by curation",
            where=str(path),
            expected="a file that no other program writes",
            found=ascii(tail[:60].decode("utf-8", "replace")),
            hint="choose another file, or remove its last line",
        )
    os.ftruncate(handle, size - len(tail))
    return 1


def _write_all(handle: int, data: bytes) -> None:
    """Write and sync; if the disk is full, remove the part that was written."""
    size = os.fstat(handle).st_size
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise
