"""Decisions in tables of third parties: one row per decision, read by a map of columns and of codes.

    index,image_location,decision
    12,textures/images/banded/banded_0021.jpg,o

With the columns ``image_id=image_location`` and ``action=decision`` and the code ``o=keep`` this row becomes a decision
``keep`` on ``dtd:banded/banded_0021`` whose reason is the code, ``o``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np

from curation.core.arguments import pairs
from curation.core.errors import CurationError, DecisionError, UsageError
from curation.core.reading import InputFile
from curation.core.wording import examples, slug
from curation.review.decisions.decision import ACTIONS, Decision, Stage
from curation.review.decisions.files import (
    FIELDS,
    MAX_BYTES,
    CodeCount,
    DecisionFile,
    checked_decision,
    read_decision_files,
    read_decisions,
    read_table,
    refuse_number,
)
from curation.sources.entries import PublishedList
from curation.sources.published_list import listed_image_ids

SKIP = "skip"
"""The meaning of a code without a decision."""
_OWN_FORMS = (".jsonl", ".json", ".yaml", ".yml")
_STABLE_ID = re.compile(r"[a-z][a-z0-9_]{0,31}:(?![/\\])")
_HEAD = 1 << 16
Namespaces = Callable[[str], str]
"""The name space of the ids of a data set."""


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options for tables of third parties.

    Attributes
    ----------
    columns
        read any table: the column of each field of a decision, image_id and action among them;
        image_id may be a path
    codes
        the action that each code of the action column means, or skip; the code becomes the reason
    blank
        rows without a code: an error, or skipped
    dataset
        what the decisions of a table apply to, if no column names it (default: the name of its file)
    stage
        stage of the decisions of a table
    reviewer
        reviewer of the decisions of a table, if no column names the person
    """

    columns: tuple[Annotated[str, "FIELD=COLUMN,…"], ...] = ()
    codes: tuple[Annotated[str, "CODE=ACTION,…"], ...] = ()
    blank: Literal["error", "skip"] = "error"
    dataset: str | None = None
    stage: Stage = "manual"
    reviewer: Annotated[str, "NAME"] = ""

    def column_of(self) -> dict[str, str]:
        """Return the column of each field that the table has."""
        columns = pairs(_pieces(self.columns), "--key")
        lacking = [name for name in ("image_id", "action") if name not in columns]
        unknown = [name for name in columns if name not in FIELDS]
        if lacking or unknown:
            raise UsageError(
                "--key must map columns to fields of a decision, including image_id and action",
                where="--key",
                expected=", ".join(FIELDS),
                found=f"no {lacking[0]}" if lacking else ascii(unknown[0])[:60],
            )
        return columns

    def action_of(self) -> dict[str, str]:
        """Return the action of each code."""
        actions = pairs(_pieces(self.codes), "--codes")
        allowed = (*ACTIONS[self.stage].values(), SKIP)
        for code, action in actions.items():
            if action not in allowed:
                message = f"Not an action of the stage {self.stage!r}"
                raise UsageError(message, where=f"--codes {code}={action}"[:200], expected=", ".join(allowed))
        actions = actions or {name: name for name in allowed}
        return {**actions, "": SKIP} if self.blank == "skip" else actions


def _pieces(texts: Sequence[str]) -> list[str]:
    return [piece.strip() for text in texts for piece in text.split(",")]


def read_verdicts(paths: Sequence[Path], options: TableOptions, namespaces: Namespaces) -> list[DecisionFile]:
    """Return the decisions of some files; a map of columns is for tables, not for ``.jsonl`` and the authors' forms.

    The order of rows in a table is not their order in time. So differing rows on an image without a date, in one table
    or in several, lose their reviewer: none replaces another, and they are a conflict.

    Parameters
    ----------
    namespaces : callable
        See `Namespaces`.

    Raises
    ------
    UsageError
        The options contradict each other.
    DecisionError, AnnotationFormatError
        A file is malformed; the message names the line.
    """
    if not options.columns:
        if options != TableOptions():
            message = "--codes, --dataset, --stage, --reviewer and --on-error blank=… require a map of the columns"
            raise UsageError(message, hint="--key image_id=COLUMN,action=COLUMN")
        return read_decision_files(paths)
    columns, actions = options.column_of(), options.action_of()
    read = partial(_read_table, columns=columns, actions=actions, options=options, namespaces=namespaces)
    return _without_order(read_decision_files(paths, read))


def _read_table(
    path: Path, columns: Mapping[str, str], actions: Mapping[str, str], options: TableOptions, namespaces: Namespaces
) -> DecisionFile:
    if Path(path.name.lower().removesuffix(".gz")).suffix in _OWN_FORMS:
        return read_decisions(path)
    file = InputFile(path, kind="table of verdicts", most=MAX_BYTES, error=DecisionError)
    rows = _mapped_rows(file.data, path.name, columns)
    codes = Counter(fields["action"] for _, fields in rows)
    _require_known(rows, codes, actions, path.name, columns["action"])
    judged = [(row, fields) for row, fields in rows if actions[fields["action"]] != SKIP]
    for _, fields in judged:
        code, reason = fields["action"], fields.get("reason", "")
        fields["reason"] = ": ".join(filter(None, (code if options.codes else "", reason)))
        fields["action"] = actions[code]
        fields["dataset"] = (
            fields.get("dataset")
            or options.dataset
            or slug(path.name.removesuffix(".gz").rpartition(".")[0] or path.name)
        )
    ids = _stable_ids(judged, path.name, namespaces)
    common = {"stage": options.stage, "reviewer": options.reviewer}
    decisions = tuple(
        checked_decision(common | fields | {"image_id": image}, f"{path.name}, row {row}")
        for (row, fields), image in zip(judged, ids, strict=True)
    )
    times = Counter((row.dataset, row.image_id) for row in decisions)
    return DecisionFile(
        decisions,
        path.name,
        file.sha256,
        "table",
        len(rows),
        codes=tuple(
            CodeCount(code, actions[code], n) for code, n in sorted(codes.items(), key=lambda pair: (-pair[1], pair))
        ),
        repeated=tuple(sorted(image for (_, image), n in times.items() if n > 1)),
    )


def _mapped_rows(data: bytes, name: str, columns: Mapping[str, str]) -> list[tuple[int, dict[str, str]]]:
    """Return number and mapped cells by field of each row."""
    first = data[:_HEAD].partition(b"\n")[0].decode("utf-8", "replace")
    cells, rows = read_table(data, name, max(",;\t", key=first.count))
    head = [cell.strip() for cell in cells]
    for column in columns.values():
        if head.count(column) != 1:
            message = "The table names a column twice" if column in head else "The table has no such column"
            excerpt = ascii(", ".join(head))[:200]
            raise DecisionError(message, where=f"{name}, row 1", expected=ascii(column)[:60], found=excerpt)
    if not rows:
        raise DecisionError("The table has no rows", where=name)
    indices = {field: head.index(column) for field, column in columns.items()}
    return [(number, {field: cells[index].strip() for field, index in indices.items()}) for number, cells in rows]


def _require_known(
    rows: Sequence[tuple[int, dict[str, str]]], codes: Counter[str], actions: Mapping[str, str], name: str, column: str
) -> None:
    """Raise `DecisionError` for unknown codes; the message names all of them, and the first row with one."""
    unknown = {code: n for code, n in codes.items() if code not in actions}
    if unknown:
        row, first = next((row, fields["action"]) for row, fields in rows if fields["action"] in unknown)
        raise DecisionError(
            "Unknown code in the table" if first else "A row of the table has no code",
            where=f"{name}, row {row}: {column}",
            expected=", ".join(actions),
            found=examples([f"{ascii(code)[:40]} ({n:,} rows)" for code, n in unknown.items()]),
            hint=f"--codes {first[:40]}=ACTION, or {first[:40]}={SKIP}" if first else "--on-error blank=skip",
        )


def _stable_ids(rows: Sequence[tuple[int, dict[str, str]]], name: str, namespaces: Namespaces) -> list[str]:
    """Return the stable image id of each row, converted from a path if necessary."""
    ids = [fields["image_id"] for _, fields in rows]
    paths: dict[str, list[int]] = defaultdict(list)
    for position, (row, fields) in enumerate(rows):
        image, where = ids[position], f"{name}, row {row}"
        if not image or not image.isprintable():
            raise DecisionError(
                "A row names no image", where=where, expected="a path or an id", found=ascii(image)[:60]
            )
        refuse_number(image, "image_id", where)
        if not _STABLE_ID.match(image):
            paths[fields["dataset"]].append(position)
    for dataset, positions in paths.items():
        try:
            namespace = namespaces(dataset)
        except CurationError as error:
            message, where = "The name of the data set cannot be a namespace of ids", f"{name}: {dataset[:60]!r}"
            raise UsageError(message, where=where, expected=error.expected, hint="--dataset NAME") from None
        texts = "".join(f"{ids[position]}\n" for position in positions)
        listed = PublishedList("", texts.encode(), np.array([rows[position][0] for position in positions], np.int32))
        for position, image in zip(positions, listed_image_ids(listed, namespace, name), strict=True):
            ids[position] = image
    return ids


def _without_order(files: Sequence[DecisionFile]) -> list[DecisionFile]:
    """Return the files; contradicting rows of tables lose their reviewer."""
    actions_on: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in (row for file in files if file.format == "table" for row in file.decisions):
        actions_on[_slot(row)].add(row.action)

    def without_reviewer(row: Decision) -> Decision:
        return msgspec.structs.replace(row, reviewer="") if len(actions_on[_slot(row)]) > 1 else row

    return [
        replace(file, decisions=tuple(map(without_reviewer, file.decisions))) if file.format == "table" else file
        for file in files
    ]


def _slot(row: Decision) -> tuple[str, ...]:
    return row.dataset, row.image_id, row.stage, row.reviewer, row.date
