"""Rows of a leaderboard: one method on one part under one variant, made of a result, checked, kept as JSON Lines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from curation.append_log import append_lines, filled_lines, parsed_line, require_json_lines, require_length
from curation.canonical import sha256_of_value
from curation.errors import LeaderboardError, UsageError
from curation.evaluation.measures import Better, Data, Measure, Scored, measure_of, range_of, ranked, values_of
from curation.ledger import refuse_review
from curation.storage import read_bytes
from curation.text_table import printable
from curation.version import __version__

SCHEMA_VERSION = 1
MAX_BYTES = 64 << 20
MAX_TEXT = 200
MAX_ENTRIES = 64
MAX_COUNT = 2**63 - 1
_FOREIGN = "-1 in the file, which torchmetrics and pycocotools write for undefined"
_ROUNDING = 1e-9
"""Of the last digits, by which a mean may pass the end of a range."""
_UNDEFINED_BELOW = ("share", "%")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Immutable record; unknown fields in a file are an error."""


class ManifestName(_Record, frozen=True):
    """Which manifest was scored."""

    name: str
    version: str
    digest: str


class Evaluator(_Record, frozen=True):
    """What computed the numbers: the program's version, and that of the evaluator's algorithm."""

    curation: str
    algorithm: int


class Metric(_Record, frozen=True, omit_defaults=True):
    """One number; None where it is undefined, with the reason where the file says -1 for that, as others do."""

    value: int | float | None
    unit: str
    better: Better
    undefined: str = ""


class Row(_Record, frozen=True):
    """One method on one part under one variant of the metrics.

    Attributes
    ----------
    name : str
        Of the method.
    variant : str
        Which of its scores, ``""`` where there is but one.
    manifest : ManifestName or None
    part : str
        ``""`` where no part of a manifest was named.
    profile : str
        The variant of the metrics.
    truth : str
        Digest of what names the ground truth.
    pinned : bool
        Whether manifest and part alone say which images were scored; else `truth` tells rows apart.
    settings : dict of str to str
        Choices that change the numbers.
    operating_point : dict of str to str
        Where the method was read, such as its threshold.
    metrics : dict of str to Metric
    predictions : str
        Digest of the file of predictions, or of the canonical list of several.
    reported : dict of str to int
        What was left out of the predictions, by reason.
    """

    schema_version: int
    name: str
    variant: str
    protocol: str
    manifest: ManifestName | None
    part: str
    profile: str
    truth: str
    pinned: bool
    settings: dict[str, str]
    evaluator: Evaluator
    operating_point: dict[str, str]
    metrics: dict[str, Metric]
    predictions: str
    reported: dict[str, int]


def registry() -> Any:
    """Return `curation.benchmarks.registry`, which imports evaluations, by name."""
    return import_module("curation.benchmarks.registry")


def measures_of(protocol: str) -> Sequence[Measure]:
    """Return the ranked measures of a benchmark; none for one that is not known here."""
    found: Sequence[Measure] = registry().measures_of(protocol)
    return found


def rows_of(result: Data, name: str | None = None) -> list[Row]:
    """Return the rows of a result, in its order.

    Parameters
    ----------
    result : mapping
        What ``curation evaluate`` prints with ``--json``.
    name : str, optional
        Of the method; by default the name of the file of its predictions.

    Raises
    ------
    UsageError
        The name is empty, too long or not printable, or one name is given for several classifiers.
    """
    report = registry().report_of(result["protocol"])
    records = list(report.scored(result))
    own = dict.fromkeys(one.method for one in records)
    if name is not None and len(own) > 1 and all(one.of_several for one in records):
        raise UsageError(
            "One name is given for several classifiers",
            where=f"--name {name}"[:200],
            expected="--scores NAME=FILE for each",
            found=", ".join(own)[:200],
        )
    rows = [_row(report, result, one, one.method if name is None else name) for one in records]
    for row in rows:
        require_name(row.name)
        _check_row(row, "new row")
    return rows


def _plain(text: str) -> str:
    """Return the beginning of a text, without characters that could steer a terminal."""
    return printable(text, "?")[:MAX_TEXT]


def _row(report: Any, result: Data, one: Scored, name: str) -> Row:
    manifest = one.manifest or result.get("manifest")
    digests = {part: file["sha256"] for part, file in one.predictions.items()}
    return Row(
        schema_version=SCHEMA_VERSION,
        name=name,
        variant=one.score,
        protocol=report.protocol,
        manifest=manifest and ManifestName(**{field: manifest[field] for field in ManifestName.__struct_fields__}),
        part=one.part,
        profile=one.variant,
        truth=sha256_of_value(one.truth),
        pinned=one.pinned and manifest is not None,
        settings=one.settings,
        evaluator=Evaluator(curation=__version__, algorithm=report.algorithm),
        operating_point=one.operating_point,
        metrics={
            measure.key_of(row.parameters): Metric(
                value=row.value, unit=measure.unit, better=measure.better or "higher"
            )
            for measure, row in values_of(one, ranked(report.measures))
        },
        predictions=next(iter(digests.values())) if len(digests) == 1 else sha256_of_value(digests),
        reported=_reported(one.predictions),
    )


def _reported(files: Mapping[str, Data]) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in files.values():
        for reason, count in file["reported"].items():
            found[reason] = found.get(reason, 0) + int(count)
    return found


def require_name(name: str) -> None:
    """Raise `UsageError` unless a table can show the name of a method."""
    if not name.strip() or len(name) > MAX_TEXT or not name.isprintable():
        raise UsageError(
            "Invalid method name",
            where="--name",
            expected=f"1 to {MAX_TEXT} printable characters",
            found=repr(_plain(name)),
            hint="--name NAME says how the leaderboard calls it",
        )


def _check_row(row: Row, where: str) -> None:
    """Raise `LeaderboardError` unless the texts, digests and numbers of a row are what they should be."""
    for text in _texts(row):
        if len(text) > MAX_TEXT or not text.isprintable():
            _refuse(
                "Invalid text in a row",
                where,
                f"at most {MAX_TEXT} printable characters",
                _plain(text),
            )
    if not row.name.strip():
        _refuse("A row has no name", where, "the name of a method", repr(row.name))
    digests = (row.truth, row.predictions, *((row.manifest.digest,) if row.manifest else ()))
    if wrong := [one for one in digests if not _DIGEST.fullmatch(one)]:
        _refuse("A digest is malformed", where, "sha256: and 64 hex digits", _plain(wrong[0]))
    if row.pinned and not (row.manifest and row.part):
        _refuse("A row is pinned by a manifest that it does not name", where, "manifest and part", "none")
    most = max(len(row.metrics), len(row.settings), len(row.operating_point), len(row.reported))
    if not row.metrics or most > MAX_ENTRIES:
        _refuse("A row has no metrics, or too many entries", where, f"1 to {MAX_ENTRIES}", str(most))
    _check_numbers(row, where)


def _check_numbers(row: Row, where: str) -> None:
    # JSON's integers have no end: one of 400 digits is no float, and nothing that was counted.
    numbers = [one.value for one in row.metrics.values()]
    integers = [one for one in (*numbers, *row.reported.values(), row.evaluator.algorithm) if isinstance(one, int)]
    if any(abs(one) > MAX_COUNT for one in integers):
        _refuse("A number is too large", where, f"at most {MAX_COUNT}", "an integer of more digits")
    measures = measures_of(row.protocol)
    for name, metric in row.metrics.items():
        if metric.value is not None and not math.isfinite(metric.value):
            _refuse("A number is not finite", f"{where}: {name}", "a number or null", str(metric.value))
        # A row that calls a high error good would stand first, and so would a share that is written in percent.
        known = measure_of(measures, name)
        least, most = range_of(metric.unit, known)
        value = None if metric.value == -1 and metric.unit in _UNDEFINED_BELOW else metric.value
        if value is not None and not least - _ROUNDING <= value <= most * (1 + _ROUNDING):
            _refuse(
                "A number is outside the range of its measure",
                f"{where}: {name}",
                f"{least:g} to {most:g}, unit {metric.unit}",
                str(value),
            )
        if known and (known.better, known.unit) != (metric.better, metric.unit):
            _refuse(
                "A number is not what the protocol defines",
                f"{where}: {name}",
                f"{known.better} is better, unit {known.unit}",
                f"{metric.better} is better, unit {metric.unit}",
            )
    counts = (*row.reported.values(), row.evaluator.algorithm)
    if min(counts) < 0:
        _refuse("A count is negative", where, "0 or more", str(min(counts)))


def _texts(row: Row) -> Iterator[str]:
    yield from (row.name, row.variant, row.protocol, row.part, row.profile, row.evaluator.curation)
    if row.manifest is not None:
        yield from (row.manifest.name, row.manifest.version)
    for entries in (row.settings, row.operating_point):
        yield from entries
        yield from entries.values()
    yield from row.reported
    for name, metric in row.metrics.items():
        yield from (name, metric.unit, metric.undefined)


def _refuse(what: str, where: str, expected: str, found: str) -> NoReturn:
    """Raise a `LeaderboardError`."""
    raise LeaderboardError(what, where=where, expected=expected, found=found)


@dataclass(frozen=True, slots=True)
class ReadRows:
    """The rows of a file with their line numbers, its bytes, and the beginning of a last line that is cut off."""

    rows: tuple[tuple[int, Row], ...]
    data: bytes
    torn: str = ""


def append_rows(path: Path, rows: Sequence[Row]) -> int:
    """Add rows to a file with one write under its lock (see `curation.append_log`); return the lines it mended.

    Raises
    ------
    LeaderboardError
        The suffix is not ``.jsonl``, or a row is too long.
    """
    require_json_lines(path, LeaderboardError, "leaderboard file")
    refuse_review(path)
    lines = [msgspec.json.encode(row) + b"\n" for row in rows]
    for line in lines:
        require_length(line, LeaderboardError, "new row")
    return append_lines(path, b"".join(lines), kind="leaderboard file")


def check_appendable(path: Path) -> None:
    """Raise `LeaderboardError` if rows could not be appended to a file: another suffix, or it holds something else."""
    require_json_lines(path, LeaderboardError, "leaderboard file")
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
    require_json_lines(path, LeaderboardError, "leaderboard file")
    data = read_bytes(path, kind="leaderboard file", most=MAX_BYTES, error=LeaderboardError)
    lines, torn = filled_lines(data)
    rows = tuple((number, _parsed(text, f"{path.name}, line {number}")) for number, text in lines)
    return ReadRows(rows, data, torn)


def _parsed(text: bytes, where: str) -> Row:
    fields = parsed_line(text, LeaderboardError, where)
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
        _refuse("A line is no row of a leaderboard", where, "the fields of docs/leaderboard.md", _plain(str(error)))
    _check_row(row, where)
    # Our own rows say null. A row that was made of torchmetrics' or pycocotools' numbers holds their -1: no share is.
    foreign = {
        name: msgspec.structs.replace(one, value=None, undefined=_FOREIGN)
        for name, one in row.metrics.items()
        if one.value == -1 and one.unit in _UNDEFINED_BELOW
    }
    return msgspec.structs.replace(row, metrics=row.metrics | foreign) if foreign else row
