"""Rows of a leaderboard: a method on a part under a variant, made from a result, checked, stored as JSON Lines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from curation.core.append_log import append_lines, log_lines, parsed_line, require_json_lines, require_length
from curation.core.canonical import sha256_of_value
from curation.core.errors import LeaderboardError, UsageError
from curation.core.files import read_bytes
from curation.core.tables import printable
from curation.evaluation.measures import Better, Measure, Scored, declared_values, measure_of, range_of, ranked
from curation.version import __version__

SCHEMA_VERSION = 2
MAX_BYTES = 64 << 20
MAX_TEXT = 200
MAX_ENTRIES = 64
MAX_COUNT = 2**63 - 1
_ROUNDING = 1e-9
"""Rounding error by which a mean may exceed the end of a range."""
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Digest = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")]
Texts = Annotated[dict[str, str], Meta(max_length=MAX_ENTRIES)]


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Immutable record; unknown fields in a file are an error."""


class ManifestName(_Record, frozen=True):
    """Which manifest was scored."""

    name: str
    version: str
    digest: Digest


class Evaluator(_Record, frozen=True):
    """What computed the numbers: the program's version, and that of the evaluator's algorithm."""

    curation: str
    algorithm: Count


class Metric(_Record, frozen=True):
    """One number; None where it is undefined."""

    value: Annotated[int, Meta(ge=-MAX_COUNT, le=MAX_COUNT)] | float | None
    unit: str
    better: Better


class LeaderboardRow(_Record, frozen=True):
    """One method on one part under one variant of the metrics.

    Attributes
    ----------
    name : str
        Name of the method.
    score : str
        Which of its scores; ``""`` if there is only one.
    manifest : ManifestName or None
    part : str
        ``""`` if no part of a manifest was scored.
    variant : str
        Variant of the metrics.
    truth : str
        Digest of what identifies the ground truth.
    pinned : bool
        Whether manifest and part identify the scored images; else `truth` does.
    settings : dict of str to str
        Choices that change the numbers.
    operating_point : dict of str to str
        Where the method was read, such as its threshold.
    metrics : dict of str to Metric
    predictions : str
        Digest of the file of predictions, or of the canonical list of several.
    reported : dict of str to int
        Predictions left out, by reason.
    """

    schema_version: int
    name: Annotated[str, Meta(pattern=r"\S")]
    score: str
    protocol: str
    manifest: ManifestName | None
    part: str
    variant: str
    truth: Digest
    pinned: bool
    settings: Texts
    evaluator: Evaluator
    operating_point: Texts
    metrics: Annotated[dict[str, Metric], Meta(min_length=1, max_length=MAX_ENTRIES)]
    predictions: Digest
    reported: Annotated[dict[str, Count], Meta(max_length=MAX_ENTRIES)]


def rows_of(result: Any, name: str | None = None) -> list[LeaderboardRow]:
    """Return the rows of a result, in its order.

    Parameters
    ----------
    result : curation.evaluation.result.Result
    name : str, optional
        Name of the method; by default the name of the file of its predictions.

    Raises
    ------
    UsageError
        The name is empty, too long or not printable, or one name is given for several classifiers.
    """
    methods = dict.fromkeys(scored.method for scored in result.scored)
    if name is not None and len(methods) > 1 and all(scored.of_several for scored in result.scored):
        raise UsageError(
            "One name is given for several classifiers",
            where=f"--name {name}"[:200],
            expected="--scores NAME=FILE for each",
            found=", ".join(methods)[:200],
        )
    for method in methods if name is None else (name,):
        require_name(method)
    rows = [_checked(_row(result, scored, name), "new row") for scored in result.scored]
    for row in rows:
        check_numbers(row, result.report.measures, "new row")
    return rows


def _row(result: Any, scored: Scored, name: str | None) -> dict[str, Any]:
    report, manifest = result.report, scored.manifest or result.data.get("manifest")
    digests = {part: file["sha256"] for part, file in scored.predictions.items()}
    reported = Counter[str]()
    for file in scored.predictions.values():
        reported.update(file["reported"])
    return {
        "schema_version": SCHEMA_VERSION,
        "name": scored.method if name is None else name,
        "score": scored.score,
        "protocol": report.protocol,
        "manifest": manifest and {field: manifest[field] for field in ManifestName.__struct_fields__},
        "part": scored.part,
        "variant": scored.variant,
        "truth": sha256_of_value(scored.truth),
        "pinned": scored.pinned and manifest is not None,
        "settings": scored.settings,
        "evaluator": {"curation": __version__, "algorithm": report.algorithm},
        "operating_point": scored.operating_point,
        "metrics": {
            measure.key_of(row.parameters): {
                "value": row.value, "unit": measure.unit, "better": measure.better or "higher"
            }
            for measure, row in declared_values(scored, ranked(report.measures))
        },
        "predictions": next(iter(digests.values())) if len(digests) == 1 else sha256_of_value(digests),
        "reported": dict(reported),
    }  # fmt: skip


def require_name(name: str) -> None:
    """Raise `UsageError` if the name of a method is empty, too long or not printable."""
    if not name.strip() or len(name) > MAX_TEXT or not name.isprintable():
        raise UsageError(
            "Invalid method name",
            where="--name",
            expected=f"1 to {MAX_TEXT} printable characters",
            found=repr(_plain(name)),
            hint="--name NAME sets the name in the leaderboard",
        )


def _plain(text: str) -> str:
    """Return the beginning of a text, without control characters of a terminal."""
    return printable(text, "?")[:MAX_TEXT]


def _checked(fields: Any, where: str) -> LeaderboardRow:
    """Return the row of a line; a field with an invalid value is a `LeaderboardError`."""
    for text in _texts(fields):
        if len(text) > MAX_TEXT or not text.isprintable():
            raise LeaderboardError(
                "Invalid text in a row",
                where=where,
                expected=f"at most {MAX_TEXT} printable characters",
                found=_plain(text),
            )
    try:
        row = msgspec.convert(fields, type=LeaderboardRow)
    except msgspec.ValidationError as error:
        raise LeaderboardError(
            "A line is not a leaderboard row",
            where=where,
            expected="the fields of docs/leaderboard.md",
            found=_plain(str(error)),
        ) from None
    if row.pinned and not (row.manifest and row.part):
        raise LeaderboardError("A row is pinned by a manifest that it does not name", where=where)
    return row


def _texts(value: Any) -> Iterator[str]:
    """Yield every key and text of a tree."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from (key, *_texts(child))


def check_numbers(row: LeaderboardRow, measures: Sequence[Measure], where: str) -> None:
    """Raise `LeaderboardError` for a number outside the range of its measure, if it is known, or of its unit."""
    for name, metric in row.metrics.items():
        known = measure_of(measures, name)
        # A row in which a high error is good, or a share in percent, would be ranked first.
        least, most = range_of(metric.unit, known)
        value = metric.value
        if value is not None and not (least - _ROUNDING <= value <= most * (1 + _ROUNDING) and math.isfinite(value)):
            raise LeaderboardError(
                "A number is outside the range of its measure",
                where=f"{where}: {name}",
                expected=f"{least:g} to {most:g}, unit {metric.unit}; null where undefined",
                found=str(value),
            )
        if known and (known.better, known.unit) != (metric.better, metric.unit):
            raise LeaderboardError(
                "A number is not what the benchmark defines",
                where=f"{where}: {name}",
                expected=f"{known.better} is better, unit {known.unit}",
                found=f"{metric.better} is better, unit {metric.unit}",
            )


@dataclass(frozen=True, slots=True)
class ReadRows:
    """The rows of a file with their line numbers, its bytes, and the start of a last line that was cut off."""

    rows: tuple[tuple[int, LeaderboardRow], ...]
    data: bytes
    torn: str = ""


def append_rows(path: Path, rows: Sequence[LeaderboardRow]) -> int:
    """Append rows in one write under a lock (see `curation.core.append_log`); return the number of repaired lines.

    Raises
    ------
    LeaderboardError
        The suffix is not ``.jsonl``, or a row is too long.
    """
    require_json_lines(path, LeaderboardError, "leaderboard file")
    lines = [msgspec.json.encode(row) + b"\n" for row in rows]
    for line in lines:
        require_length(line, LeaderboardError, "new row")
    return append_lines(path, b"".join(lines), kind="leaderboard file")


def check_appendable(path: Path) -> None:
    """Raise `LeaderboardError` if rows cannot be appended to a file: it has another suffix or other content."""
    require_json_lines(path, LeaderboardError, "leaderboard file")
    if path.exists():
        read_leaderboard_rows(path)


def read_leaderboard_rows(path: Path) -> ReadRows:
    """Return the rows of a file; blank lines, and a last line that was cut off, are left out.

    Raises
    ------
    MissingFileError
        No such file.
    LeaderboardError
        The file is too large, or a line is not a row; the message names the line.
    """
    require_json_lines(path, LeaderboardError, "leaderboard file")
    data = read_bytes(path, kind="leaderboard file", most=MAX_BYTES, error=LeaderboardError)
    lines, torn = log_lines(data)
    rows = tuple((number, _parsed(text, f"{path.name}, line {number}")) for number, text in lines)
    return ReadRows(rows, data, torn)


def _parsed(text: bytes, where: str) -> LeaderboardRow:
    fields = parsed_line(text, LeaderboardError, where)
    version = fields.get("schema_version") if isinstance(fields, dict) else None
    if version != SCHEMA_VERSION and isinstance(version, int):
        raise LeaderboardError(
            "A row has another schema version",
            where=where,
            expected=str(SCHEMA_VERSION),
            found=str(version)[:40],
            hint="install a newer curation"
            if version > SCHEMA_VERSION
            else "curation evaluate … --append FILE.jsonl writes such rows",
        )
    return _checked(fields, where)
