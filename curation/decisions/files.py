"""Decisions on disk: JSON Lines and CSV, one verdict a line, each refusal with its line; the append-only log."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from curation.append_log import append_lines, filled_lines, parsed_line, require_json_lines
from curation.csv_table import as_csv, cell_text
from curation.decisions.authors_files import parse_json_selection, parse_yaml_selection
from curation.decisions.decision import Decision, check_decision, row_of
from curation.errors import CurationError, DecisionError, UsageError
from curation.ids import native_of
from curation.input_files import InputFile
from curation.sources.datasets import namespace_of
from curation.storage import write_bytes
from curation.text_table import printable

REQUIRED = ("image_id", "dataset", "stage", "action")
_DAMAGED_NUMBER = re.compile(r"(?:[a-z0-9_]+:)?[+-]?\d+(?:(?:[.,]\d+)?[eE][+-]\d+|[.,]0+)")


def parse_jsonl(data: bytes, name: str) -> tuple[list[Decision], str]:
    """Return the decisions of JSON Lines, and the beginning of a last line that is cut off, ``""`` for none.

    Only a last line that begins like a JSON object and does not end counts as cut off; blank lines are passed over.

    Raises
    ------
    DecisionError
        A line is too long, no JSON object, or no decision.
    """
    lines, torn = filled_lines(data.removeprefix(b"\xef\xbb\xbf"))
    return [_from_json(text, f"{name}, line {number}") for number, text in lines], torn


def parse_csv(data: bytes, name: str) -> list[Decision]:
    """Return the decisions of a CSV file whose first line names its columns.

    Raises
    ------
    DecisionError
        It is no UTF-8 CSV, has unknown, repeated or missing columns, or a row is no decision.
    """
    reader = csv.reader(io.StringIO(csv_text(data, name), newline=""), strict=True)
    rows = csv_rows(reader, name)
    columns = next(rows, (1, []))[1]
    _check_columns(columns, f"{name}, line 1")
    return [_from_cells(columns, cells, f"{name}, line {line}") for line, cells in rows]


def csv_bytes(decisions: Iterable[Decision]) -> bytes:
    """Return decisions as CSV with every column."""
    rows = (tuple(row_of(one).values()) for one in decisions)
    return as_csv(Decision.__struct_fields__, rows).encode("utf-8")


def checked_decision(fields: dict[str, Any], where: str) -> Decision:
    """Return the decision of some fields, a bare id completed by its data set (``13159`` of ``coco``).

    Raises
    ------
    DecisionError
        A field is unknown, missing, of another type, or malformed.
    """
    if "image_id" in fields:
        fields = fields | {"image_id": _namespaced(fields["image_id"], fields.get("dataset"))}
    try:
        decision = msgspec.convert(fields, type=Decision)
    except msgspec.ValidationError as error:
        raise DecisionError(
            "A line is no decision",
            where=where,
            expected=f"texts {', '.join(REQUIRED)}; optional {', '.join(Decision.__struct_fields__[4:])}",
            found=_plain(str(error)),
        ) from None
    check_decision(decision, where=where)
    return decision


def _from_json(text: bytes, where: str) -> Decision:
    fields = parsed_line(text, DecisionError, where)
    if not isinstance(fields, dict):
        raise DecisionError(
            "A line is no JSON object", where=where, expected="one object a line", found=type(fields).__name__
        )
    return checked_decision(fields, where)


def csv_text(data: bytes, name: str) -> str:
    """Return a table as text; what is no UTF-8, or holds a NUL character, is refused with its line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DecisionError("The file is not UTF-8", where=f"{name}, line {line}", found=str(error)) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise DecisionError("A line holds a NUL character", where=f"{name}, line {line}")
    return text


def csv_rows(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line of each row that is not blank, and its cells."""
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DecisionError("A line is not CSV", where=f"{name}, line {line}", found=_plain(str(error))) from None
        if cells:
            yield line, cells
        line = reader.line_num + 1


def _check_columns(columns: Sequence[str], where: str) -> None:
    known = Decision.__struct_fields__
    problems = [
        *(f"unknown column {one[:40]!r}" for one in columns if one not in known),
        *(f"column {one!r} twice" for one in known if list(columns).count(one) > 1),
        *(f"no column {one!r}" for one in REQUIRED if one not in columns),
    ]
    if problems:
        raise DecisionError(
            "The columns are not those of decisions",
            where=where,
            expected=", ".join(known),
            found=_plain("; ".join(problems[:3])),
            hint="curation review summary FILE --key image_id=COLUMN,action=COLUMN --codes CODE=ACTION,… reads a table "
            "of any other form",
        )


def _from_cells(columns: Sequence[str], cells: Sequence[str], where: str) -> Decision:
    if len(cells) != len(columns):
        raise DecisionError(
            "A row has another number of cells than the first line",
            where=where,
            expected=str(len(columns)),
            found=str(len(cells)),
        )
    fields = dict(zip(columns, map(cell_text, cells), strict=True))
    refuse_number(fields["image_id"], "image_id", where)
    return checked_decision(fields, where)


def refuse_number(image: str, column: str, where: str) -> None:
    """Raise `DecisionError` where a spreadsheet has turned an image id into a number."""
    if _DAMAGED_NUMBER.fullmatch(image):
        raise DecisionError(
            "A spreadsheet has turned an image id into a number",
            where=f"{where}: {column}",
            expected="the id as a text; 0010e235 is no number",
            found=repr(image),
            hint=f"write the file anew with the column {column} formatted as text",
        )


def _namespaced(image: Any, dataset: Any) -> Any:
    """Return an id with the namespace of its data set where it has none; anything else as it stands."""
    if not (isinstance(image, str) and isinstance(dataset, str)) or ":" in image or not image:
        return image
    try:
        namespace = namespace_of(dataset)
    except CurationError:
        return image
    return f"{namespace}:{native_of(image, namespace)}"


def _plain(text: str) -> str:
    return printable(text, "?")[:200]


MAX_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class CodeCount:
    """The rows of a table with one code, and the action that it stands for: ``skip`` is no verdict."""

    code: str
    action: str
    rows: int


@dataclass(frozen=True, slots=True)
class FileReport:
    """How a file was read.

    Attributes
    ----------
    name : str
        Of the file.
    format : {"jsonl", "csv", "selection", "table"}
        ``selection`` is the authors' manual_selection file, ``table`` anybody's table with a map of its columns.
    rows : int
    torn : str
        The beginning of a last line that a kill or a full disk cut off, which was left out; ``""`` for none.
    codes : tuple of CodeCount
        Of a table: every row is in one of them; the most frequent first.
    repeated : tuple of str
        Images that several rows of a table judge, sorted.
    contradicted : tuple of str
        Images that rows of tables judge differently, sorted.
    """

    name: str
    format: str
    rows: int
    torn: str = ""
    codes: tuple[CodeCount, ...] = ()
    repeated: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()

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
    given = InputFile(path, kind="decisions file", most=MAX_BYTES, error=DecisionError)
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


def read_decision_files(
    paths: Sequence[Path], read: Callable[[Path], DecisionFile] = read_decisions
) -> list[DecisionFile]:
    """Return the decisions of some files; one that is named twice, or holds only a torn line, is an error."""
    if len({path.absolute() for path in paths}) < len(paths):
        raise UsageError("A decisions file is named twice", where=", ".join(map(str, paths))[:300])
    files = [read(path) for path in paths]
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
        require_json_lines(path, DecisionError, "decisions log")
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
