"""Rows of decisions as JSON Lines and CSV: parsed strictly, each refusal with its line."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from curation.append_log import is_cut_off
from curation.csv_table import as_csv, cell_text
from curation.decisions.decision import Decision, check_decision, row_of
from curation.errors import CurationError, DecisionError
from curation.ids import native_of
from curation.json_keys import each_key_once
from curation.sources.datasets import namespace_of

MAX_LINE_BYTES = 64 << 10
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
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    last = len(lines)
    decisions: list[Decision] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip(b" \t\r")
        if not text:
            continue
        if number == last and is_cut_off(text):
            return decisions, text[:60].decode("utf-8", "replace")
        decisions.append(_from_json(text, f"{name}, line {number}"))
    return decisions, ""


def parse_csv(data: bytes, name: str) -> list[Decision]:
    """Return the decisions of a CSV file whose first line names its columns.

    Raises
    ------
    DecisionError
        It is no UTF-8 CSV, has unknown, repeated or missing columns, or a row is no decision.
    """
    reader = csv.reader(io.StringIO(_csv_text(data, name), newline=""), strict=True)
    rows = _csv_rows(reader, name)
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
    if len(text) > MAX_LINE_BYTES:
        raise DecisionError(
            "A line is too long for a decision",
            where=where,
            expected=f"at most {MAX_LINE_BYTES} bytes",
            found=str(len(text)),
        )
    try:
        fields = json.loads(text.decode("utf-8"), object_pairs_hook=each_key_once)
    except (ValueError, RecursionError) as error:
        raise DecisionError(
            "A line is not JSON", where=where, expected="one object a line", found=_plain(str(error))
        ) from None
    if not isinstance(fields, dict):
        raise DecisionError(
            "A line is no JSON object", where=where, expected="one object a line", found=type(fields).__name__
        )
    return checked_decision(fields, where)


def _csv_text(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DecisionError("The file is not UTF-8", where=f"{name}, line {line}", found=str(error)) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise DecisionError("A line holds a NUL character", where=f"{name}, line {line}")
    return text


def _csv_rows(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line of each row that is not blank, and its cells."""
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DecisionError(
                "A line is not CSV", where=f"{name}, line {line}", found=_plain(str(error))
            ) from None
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
    if _DAMAGED_NUMBER.fullmatch(fields["image_id"]):
        raise DecisionError(
            "A spreadsheet has turned an image id into a number",
            where=f"{where}: image_id",
            expected="the id as a text; 0010e235 is no number",
            found=repr(fields["image_id"]),
            hint="write the file anew with the column image_id formatted as text",
        )
    return checked_decision(fields, where)


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
    return "".join(c if c.isprintable() else "?" for c in text)[:200]
