"""Decisions on disk: JSON Lines and CSV, one verdict a line; the authors' selection file; the append-only log."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from curation.canonical import sha256_of_bytes
from curation.decisions.authors_selection import parse_json_selection, parse_yaml_selection
from curation.decisions.decision import Decision, check_decision
from curation.decisions.rows import csv_bytes, is_json_object, parse_csv, parse_jsonl
from curation.errors import DecisionError, MissingFileError
from curation.storage import make_folder, read_bytes, write_bytes

MAX_BYTES = 256 << 20
_LOG_MODE = 0o644


@dataclass(frozen=True, slots=True)
class FileReport:
    """How a file was read.

    Attributes
    ----------
    name : str
        Of the file.
    format : {"jsonl", "csv", "selection"}
        ``selection`` is the authors' manual_selection file.
    rows : int
    torn : str
        The beginning of a last line that a kill or a full disk cut off, which was left out; ``""`` for none.
    """

    name: str
    format: str
    rows: int
    torn: str = ""

    def notes(self) -> list[str]:
        """Return in words what was left out."""
        if not self.torn:
            return []
        return [f"{self.name}: the last line is cut off and was left out: {self.torn!a}"]


@dataclass(frozen=True, slots=True)
class DecisionFile:
    """The decisions of one file in file order, the digest of its bytes, and how it was read."""

    decisions: tuple[Decision, ...]
    digest: str
    report: FileReport


def read_decisions(path: Path) -> DecisionFile:
    """Return the decisions of a ``.jsonl`` or ``.csv`` file, or of the authors' selection as ``.yaml`` or ``.json``.

    Raises
    ------
    MissingFileError
        There is no such file.
    DecisionError
        It is none of the four, too large, or a line of it is no decision; the message names the line.
    """
    data = _limited(path)
    name, torn = path.name, ""
    match path.suffix.lower():
        case ".jsonl":
            decisions, torn = parse_jsonl(data, name)
            kind = "jsonl"
        case ".csv":
            decisions, kind = parse_csv(data, name), "csv"
        case ".yaml" | ".yml":
            decisions, kind = parse_yaml_selection(data, name), "selection"
        case ".json":
            decisions, kind = parse_json_selection(data, name), "selection"
        case _:
            raise DecisionError(
                "The suffix says of no decisions file",
                where=str(path),
                expected=".jsonl, .csv, or the authors' selection as .yaml or .json",
                found=repr(path.suffix[:20]),
            )
    return DecisionFile(tuple(decisions), sha256_of_bytes(data), FileReport(name, kind, len(decisions), torn))


def write_decisions(path: Path, decisions: Iterable[Decision]) -> None:
    """Write decisions as JSON Lines or CSV, by the suffix, in the order given; the file appears whole.

    Raises
    ------
    DecisionError
        The suffix is another, or a decision is malformed.
    """
    rows = list(decisions)
    for number, one in enumerate(rows, start=1):
        check_decision(one, where=f"decision {number}")
    match path.suffix.lower():
        case ".jsonl":
            write_bytes(path, b"".join(_line(one) for one in rows))
        case ".csv":
            write_bytes(path, csv_bytes(rows))
        case _:
            raise DecisionError(
                "Decisions are written as JSON Lines or CSV",
                where=str(path),
                expected=".jsonl or .csv",
                found=repr(path.suffix[:20]),
            )


class DecisionLog:
    """An append-only file of decisions that a kill at any moment leaves readable.

    Several processes may append to one log: each takes a lock for the moment of its write.

    Parameters
    ----------
    path : Path
        Ends in ``.jsonl``; made with the first decision.

    Attributes
    ----------
    recovered : int
        Lines cut off by an earlier kill that this object took away before it wrote. Such a line was never confirmed.
    """

    def __init__(self, path: Path) -> None:
        if path.suffix.lower() != ".jsonl":
            raise DecisionError(
                "A decisions log is JSON Lines",
                where=str(path),
                expected=".jsonl",
                found=repr(path.suffix[:20]),
            )
        self.path = path
        self.recovered = 0

    def append(self, decision: Decision) -> None:
        """Add one decision; it is on the disk when this returns (see `extend`)."""
        self.extend([decision])

    def extend(self, decisions: Sequence[Decision]) -> int:
        """Add some decisions with one write and one sync, and return their bytes; they are on the disk then.

        Raises
        ------
        DecisionError
            A decision is malformed; nothing is written.
        MissingFileError
            The file may not be written.
        """
        for one in decisions:
            check_decision(one, where=f"{self.path.name}: new decision")
        if not decisions:
            return 0
        data = b"".join(_line(one) for one in decisions)
        with self._locked() as handle:
            self._mend(handle)
            _write_all(handle, data)
        return len(data)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        make_folder(self.path.parent)
        is_new = not self.path.exists()
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _LOG_MODE)
        except OSError as error:
            raise MissingFileError(
                f"The decisions log cannot be written: {error.strerror}", where=str(self.path)
            ) from None
        try:
            _lock(handle)
            yield handle
        finally:
            os.close(handle)
        if is_new:
            _sync_folder(self.path.parent)

    def _mend(self, handle: int) -> None:
        """End the last line: complete it with a line feed, or take away what a kill left of it."""
        size = os.fstat(handle).st_size
        if not size or os.pread(handle, 1, size - 1) == b"\n":
            return
        tail = _last_line(handle, size)
        if is_json_object(tail):
            os.write(handle, b"\n")
        else:
            os.ftruncate(handle, size - len(tail))
            self.recovered += 1


def _line(decision: Decision) -> bytes:
    return msgspec.json.encode(decision) + b"\n"


def _limited(path: Path) -> bytes:
    try:
        size = path.stat().st_size
    except OSError:
        size = 0
    if size > MAX_BYTES:
        raise DecisionError(
            "The file is too large to hold decisions",
            where=str(path),
            expected=f"at most {MAX_BYTES} bytes",
            found=str(size),
        )
    return read_bytes(path, kind="decisions file")


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


def _lock(handle: int) -> None:
    """Wait for the lock of a file; closing the handle, or the end of the process, releases it."""
    try:
        import fcntl
    except ImportError:  # Windows has no such lock; one writer at a time is safe without.
        return
    fcntl.flock(handle, fcntl.LOCK_EX)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
