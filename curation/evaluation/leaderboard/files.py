"""Leaderboard files: rows appended as JSON Lines, and read back with every line checked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from curation.append_log import append_lines, is_cut_off
from curation.canonical import sha256_of_bytes
from curation.errors import LeaderboardError
from curation.evaluation.leaderboard.rows import SCHEMA_VERSION, Row, check_row, plain, refuse
from curation.json_keys import each_key_once
from curation.storage import read_bytes

MAX_BYTES = 64 << 20
MAX_LINE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class ReadRows:
    """The rows of a file with their line numbers, its digest, and the beginning of a last line that is cut off."""

    rows: tuple[tuple[int, Row], ...]
    digest: str
    torn: str = ""


def append_rows(path: Path, rows: Sequence[Row]) -> int:
    """Add rows to a file with one write under its lock (see `curation.append_log`); return the lines it mended.

    Raises
    ------
    LeaderboardError
        The suffix is not ``.jsonl``, or a row is too long.
    """
    _require_suffix(path)
    lines = [msgspec.json.encode(row) + b"\n" for row in rows]
    for line in lines:
        _require_length(line, "new row")
    return append_lines(path, b"".join(lines), kind="leaderboard file")


def check_appendable(path: Path) -> None:
    """Raise `LeaderboardError` if rows could not be appended to a file: another suffix, or it holds something else."""
    _require_suffix(path)
    if path.exists():
        read_rows(path)


def read_rows(path: Path) -> ReadRows:
    """Return the rows of a file; blank lines are passed over, and a last line that a kill cut off is left out.

    Raises
    ------
    MissingFileError
        There is no such file.
    LeaderboardError
        It is too large, or a line of it is no row; the message names the line.
    """
    _require_suffix(path)
    data = read_bytes(path, kind="leaderboard file", most=MAX_BYTES, error=LeaderboardError)
    lines = data.split(b"\n")
    rows: list[tuple[int, Row]] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip(b" \t\r")
        if not text:
            continue
        if number == len(lines) and is_cut_off(text):
            torn = plain(text[:60].decode("utf-8", "replace"))
            return ReadRows(tuple(rows), sha256_of_bytes(data), torn)
        rows.append((number, _parsed(text, f"{path.name}, line {number}")))
    return ReadRows(tuple(rows), sha256_of_bytes(data))


def _require_suffix(path: Path) -> None:
    if path.suffix.lower() != ".jsonl":
        raise LeaderboardError(
            "A leaderboard file is JSON Lines",
            where=str(path),
            expected=".jsonl",
            found=repr(path.suffix[:20]),
        )


def _require_length(line: bytes, where: str) -> None:
    if len(line) > MAX_LINE_BYTES:
        refuse("A line is too long for a row", where, f"at most {MAX_LINE_BYTES} bytes", str(len(line)))


def _parsed(text: bytes, where: str) -> Row:
    _require_length(text, where)
    try:
        fields = json.loads(text.decode("utf-8"), object_pairs_hook=each_key_once, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        refuse("A line is not JSON", where, "one object a line", plain(str(error)))
    version = fields.get("schema_version") if isinstance(fields, dict) else None
    if version != SCHEMA_VERSION and isinstance(version, int):
        raise LeaderboardError(
            "A row has a schema version that this program does not know",
            where=where,
            expected=str(SCHEMA_VERSION),
            found=str(version)[:40],
            hint="pip install --upgrade curation",
        )
    try:
        row = msgspec.convert(fields, type=Row)
    except msgspec.ValidationError as error:
        refuse("A line is no row of a leaderboard", where, "the fields of docs/leaderboard.md", plain(str(error)))
    check_row(row, where)
    return row


def _refused(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")
