"""Verdicts of others: any table with a row a verdict, read by a map of its columns and of its codes.

    index,image_location,decision
    12,textures/images/banded/banded_0021.jpg,o

With the columns ``image_id=image_location`` and ``action=decision`` and the code ``o=keep`` this row becomes a decision
``keep`` on ``dtd:banded/banded_0021`` whose reason is the code, ``o``.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import msgspec
import numpy as np

from curation.csv_table import cell_text
from curation.decisions.decision import ACTIONS_OF, Decision, Stage
from curation.decisions.files import (
    MAX_BYTES,
    CodeCount,
    DecisionFile,
    FileReport,
    checked_decision,
    csv_rows,
    csv_text,
    read_decision_files,
    read_decisions,
    refuse_number,
)
from curation.errors import CurationError, DecisionError, UsageError
from curation.input_files import InputFile
from curation.key_value import pairs
from curation.sources.listed import ids_of
from curation.sources.published_list import PublishedList

SKIP = "skip"
"""What a code stands for that is no verdict."""
_SEPARATORS = ",;\t"
_OWN_FORMS = (".jsonl", ".json", ".yaml", ".yml")
_STABLE_ID = re.compile(r"[a-z][a-z0-9_]{0,31}:(?![/\\])")
_SHOWN = 8
Namespaces = Callable[[str], str]
"""The name space of the ids of a data set."""


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How tables of others' verdicts are read.

    Attributes
    ----------
    columns
        read any table: which of its columns is which field of a decision, image_id and action among them;
        image_id may be a path (repeatable)
    codes
        what the codes of the column of actions stand for: an action, or skip; the code becomes the reason
        (repeatable)
    blank
        rows without a code: an error, or no verdict
    dataset
        what the verdicts of a table speak of, where no column says so (default: the name of its file)
    stage
        of the verdicts of a table
    reviewer
        whose verdicts a table holds, where no column says so
    """

    columns: tuple[Annotated[str, "FIELD=COLUMN,…"], ...] = ()
    codes: tuple[Annotated[str, "CODE=ACTION,…"], ...] = ()
    blank: Literal["error", "skip"] = "error"
    dataset: str | None = None
    stage: Stage = "manual"
    reviewer: Annotated[str, "NAME"] = ""


def read_verdicts(paths: Sequence[Path], options: TableOptions, namespaces: Namespaces) -> list[DecisionFile]:
    """Return the decisions of some files: with a map of columns of tables, but for ``.jsonl`` and the authors' forms.

    Of one table the order of the rows is no order in time. Rows without date that judge an image differently, in one
    table or in several, therefore name no reviewer: none replaces another, and they are a conflict.

    Parameters
    ----------
    namespaces : callable
        See `Namespaces`.

    Raises
    ------
    UsageError
        The options do not fit together.
    DecisionError, AnnotationFormatError
        A file is no such table; the message names the line.
    """
    if not options.columns:
        given = {"codes": options.codes, "blank": options.blank != "error", "dataset": options.dataset,
                 "stage": options.stage != "manual", "reviewer": options.reviewer}  # fmt: skip
        if alone := next((name for name, value in given.items() if value), None):
            raise UsageError(
                f"--{alone} is for tables with a map of their columns",
                where=f"--{alone}",
                hint="--key image_id=COLUMN,action=COLUMN",
            )
        return read_decision_files(paths)
    table = _Table.of(options, namespaces)
    files = read_decision_files(paths, table.read)
    return _without_order(files)


@dataclass(frozen=True, slots=True)
class _Table:
    """What the options say, checked."""

    columns: Mapping[str, str]
    actions: Mapping[str, str]
    options: TableOptions
    namespaces: Namespaces

    @classmethod
    def of(cls, options: TableOptions, namespaces: Namespaces) -> _Table:
        columns = pairs(_pieces(options.columns), "--key")
        fields = Decision.__struct_fields__
        lacking = [name for name in ("image_id", "action") if name not in columns]
        unknown = [name for name in columns if name not in fields]
        if lacking or unknown:
            raise UsageError(
                "The columns of a table are mapped to fields of a decision, image_id and action among them",
                where="--key",
                expected=", ".join(fields),
                found=f"no {lacking[0]}" if lacking else ascii(unknown[0])[:60],
                hint=f"--key {lacking[0]}=COLUMN" if lacking else None,
            )
        actions = pairs(_pieces(options.codes), "--codes")
        allowed = (*ACTIONS_OF[options.stage], SKIP)
        if other := next((one for one in actions.items() if one[1] not in allowed), None):
            raise UsageError(
                f"A code stands for no action of the stage {options.stage!r}",
                where=f"--codes {'='.join(other)}"[:200],
                expected=", ".join(allowed),
                found=ascii(other[1])[:60],
            )
        return cls(columns, actions or {name: name for name in allowed}, options, namespaces)

    def read(self, path: Path) -> DecisionFile:
        """Return the decisions of one file."""
        if Path(path.name.lower().removesuffix(".gz")).suffix in _OWN_FORMS:
            return read_decisions(path)
        given = InputFile(path, kind="table of verdicts", most=MAX_BYTES, error=DecisionError)
        rows, lines = self._rows(csv_text(given.data, path.name), path.name)
        codes = [row["action"].strip() for row in rows]
        actions = self._actions(codes, lines, path.name)
        judged = [place for place, action in enumerate(actions) if action != SKIP]
        datasets = [row.get("dataset") or self.options.dataset or _slug(path) for row in rows]
        ids = self._ids([rows[n]["image_id"] for n in judged], [datasets[n] for n in judged],
                        [lines[n] for n in judged], path)  # fmt: skip
        decisions = tuple(
            checked_decision(
                {
                    "stage": self.options.stage,
                    "reviewer": self.options.reviewer,
                    **rows[n],
                    "image_id": image,
                    "dataset": datasets[n],
                    "action": actions[n],
                    "reason": self._reason(codes[n], rows[n]),
                },
                f"{path.name}, line {lines[n]}",
            )
            for n, image in zip(judged, ids, strict=True)
        )
        counts = Counter(zip(codes, actions, strict=True))
        times = Counter((one.dataset, one.image_id) for one in decisions)
        report = FileReport(
            path.name,
            "table",
            len(rows),
            codes=tuple(CodeCount(*key, n) for key, n in sorted(counts.items(), key=lambda one: (-one[1], one[0]))),
            repeated=tuple(sorted(image for (_, image), n in times.items() if n > 1)),
        )
        return DecisionFile(decisions, given.sha256, report)

    def _rows(self, text: str, name: str) -> tuple[list[dict[str, str]], list[int]]:
        """Return the mapped cells of each row by field, and its line."""
        head, separator = _head(text, self.columns.values(), name)
        places = {field: head.index(column) for field, column in self.columns.items()}
        found, lines = [], []
        reader = csv_rows(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True), name)
        next(reader)
        for line, cells in reader:
            if len(cells) != len(head):
                _refuse(
                    "A row has another number of cells than the first line",
                    name, line, str(len(head)), str(len(cells)),
                )  # fmt: skip
            found.append({field: cell_text(cells[place]) for field, place in places.items()})
            lines.append(line)
        if not found:
            raise DecisionError("The table has no row", where=name, expected="a verdict a line, below the first")
        return found, lines

    def _actions(self, codes: Sequence[str], lines: Sequence[int], name: str) -> list[str]:
        """Return the action of each code; all that stand for none are told, each with its first line."""
        meaning = {**self.actions, **({"": SKIP} if self.options.blank == "skip" else {})}
        unmapped = {code: line for code, line in zip(reversed(codes), reversed(lines), strict=True)
                    if code not in meaning}  # fmt: skip
        if not unmapped:
            return [meaning[code] for code in codes]
        times = Counter(codes)
        ordered = sorted(unmapped.items(), key=lambda one: one[1])
        told = [f"{ascii(code)[:40]} on line {line} ({times[code]:,} rows)" for code, line in ordered[:_SHOWN]]
        first, line = ordered[0]
        raise DecisionError(
            "A code of the table stands for no action" if first else "A row of the table has no code",
            where=f"{name}, line {line}: {self.columns['action']}",
            expected=", ".join(self.actions),
            found="; ".join(told) + (f"; and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""),
            hint=f"--codes {first[:40]}=ACTION, or {first[:40]}={SKIP}" if first else "--on-error blank=skip",
        )

    def _ids(self, images: Sequence[str], datasets: Sequence[str], lines: Sequence[int], path: Path) -> Sequence[str]:
        """Return the stable id of each image: one that is such already, or that of a path."""
        ids = [image.strip() for image in images]
        paths: dict[str, list[int]] = defaultdict(list)
        for place, (image, dataset) in enumerate(zip(ids, datasets, strict=True)):
            if not image or not image.isprintable():
                _refuse("A row names no image", path.name, lines[place], "a path or an id", ascii(images[place])[:60])
            refuse_number(image, self.columns["image_id"], f"{path.name}, line {lines[place]}")
            if not _STABLE_ID.match(image):
                paths[dataset].append(place)
        for dataset, places in paths.items():
            try:
                namespace = self.namespaces(dataset)
            except CurationError as error:
                raise UsageError(
                    "The name of the data set cannot stand before ids",
                    where=f"{path.name}: {dataset[:60]!r}",
                    expected=error.expected,
                    hint="--dataset NAME",
                ) from None
            listed = PublishedList(
                "", "".join(f"{ids[n]}\n" for n in places).encode(), np.array([lines[n] for n in places], np.int32)
            )
            for place, image in zip(places, ids_of(listed, namespace, path.name), strict=True):
                ids[place] = image
        return ids

    def _reason(self, code: str, row: Mapping[str, str]) -> str:
        told = [*([code] if self.options.codes else []), *filter(None, [row.get("reason", "").strip()])]
        return ": ".join(told)


def _pieces(texts: Iterable[str]) -> list[str]:
    return [piece.strip() for text in texts for piece in text.split(",")]


def _head(text: str, wanted: Iterable[str], name: str) -> tuple[list[str], str]:
    """Return the names of the columns, and what stands between cells: the one under which the wanted ones are there."""
    if not text.strip():
        raise DecisionError("The table is empty", where=name, expected="names of columns, and a verdict a line below")
    heads: dict[str, list[str]] = {}
    for separator in _SEPARATORS:
        # Quotes are those of one separator alone: under another, what follows a quote is no fault of the table.
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        heads[separator] = []
        with suppress(csv.Error):
            heads[separator] = [cell.strip() for cell in next(filter(None, rows), ())]
    names = list(wanted)
    found = next((one for one in _SEPARATORS if set(names) <= set(heads[one])), None)
    most = max(heads.values(), key=len)
    if found is None:
        lacking = next(one for one in names if one not in most)
        raise DecisionError(
            "The table has no such column",
            where=f"{name}, line 1",
            expected=ascii(lacking)[:60],
            found=ascii(", ".join(most))[:200],
            hint="--key FIELD=COLUMN with the names of the first line",
        )
    head = heads[found]
    if twice := next((one for one in names if head.count(one) > 1), None):
        raise DecisionError("The table names a column twice", where=f"{name}, line 1", found=ascii(twice)[:60])
    return head, found


def _slug(path: Path) -> str:
    """Return the name of a file as that of a data set: ``Caracal caracal caracal.csv`` is caracal_caracal_caracal."""
    stem = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
    return re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")


def _without_order(files: Sequence[DecisionFile]) -> list[DecisionFile]:
    """Return the files with no reviewer in rows of tables that contradict one another."""
    said: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for one in _of_tables(files):
        said[_who(one)].add(one.action)
    open_ones = {key for key, actions in said.items() if len(actions) > 1}
    return [_with_conflicts(file, open_ones) if file.report.format == "table" else file for file in files]


def _with_conflicts(file: DecisionFile, open_ones: set[tuple[str, ...]]) -> DecisionFile:
    concerned = tuple(sorted({one.image_id for one in file.decisions if _who(one) in open_ones}))
    if not concerned:
        return file
    return DecisionFile(
        tuple(msgspec.structs.replace(one, reviewer="") if _who(one) in open_ones else one for one in file.decisions),
        file.digest,
        replace(file.report, contradicted=concerned),
    )


def _of_tables(files: Iterable[DecisionFile]) -> Iterable[Decision]:
    return (one for file in files if file.report.format == "table" for one in file.decisions)


def _who(one: Decision) -> tuple[str, ...]:
    return one.dataset, one.image_id, one.stage, one.reviewer, one.date


def _refuse(what: str, name: str, line: int, expected: str, found: str) -> NoReturn:
    raise DecisionError(what, where=f"{name}, line {line}", expected=expected, found=found)
