"""Decisions on disk: JSON Lines and CSV, one verdict a line; the authors' selection file; the append-only log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from curation.append_log import append_lines
from curation.decisions.authors_selection import parse_json_selection, parse_yaml_selection
from curation.decisions.decision import Decision, check_decision
from curation.decisions.rows import csv_bytes, parse_csv, parse_jsonl
from curation.errors import DecisionError, UsageError
from curation.input_files import InputFile
from curation.storage import write_bytes

MAX_BYTES = 256 << 20


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
    given = _limited(path)
    data, name, torn = given.data, path.name, ""
    match Path(name.lower().removesuffix(".gz")).suffix:
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
    return DecisionFile(tuple(decisions), given.sha256, FileReport(name, kind, len(decisions), torn))


def read_decision_files(paths: Sequence[Path]) -> list[DecisionFile]:
    """Return the decisions of some files; one that is named twice, or holds only a torn line, is an error."""
    if len({path.absolute() for path in paths}) < len(paths):
        raise UsageError("A decisions file is named twice", where=", ".join(map(str, paths))[:300])
    files = [read_decisions(path) for path in paths]
    for path, file in zip(paths, files, strict=True):
        if file.report.torn and not file.decisions:
            raise DecisionError(
                "The file holds no whole decision",
                where=str(path),
                expected="one decision a line",
                found=ascii(file.report.torn),
            )
    return files


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
        self.recovered += append_lines(self.path, data, kind="decisions log")
        return len(data)


def _line(decision: Decision) -> bytes:
    return msgspec.json.encode(decision) + b"\n"


def _limited(path: Path) -> InputFile:
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
    return InputFile(path, kind="decisions file")
