"""`Report`: what every rule found, as tables, plain data and one HTML page; and what each task consists of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from curation.audit.forensics import Forensics, forensics_data, forensics_tables, overlap_matrix
from curation.audit.judgement import label_warnings
from curation.audit.labels import hidden_unknowns
from curation.audit.overlap_figure import MOST_LISTS as MOST_DRAWN
from curation.audit.overlap_figure import overlap_figure
from curation.audit.rule import PRINCIPLES, VERDICTS, Outcome, Rule, Severity
from curation.audit.target import AuditedList, AuditTarget
from curation.csv_table import as_csv
from curation.pages import page
from curation.short_repr import cut
from curation.storage import publishing_folder

if TYPE_CHECKING:
    import pandas as pd

TableName = Literal["rules", "findings", "tasks"]

MOST_LISTS = 24
"""Lists that the page's matrix of overlaps shows: a larger one is unreadable."""

_ROLES = ("train", "finetune", "val", "test")
_RULE_COLUMNS = ("rule", "severity", "verdict", "count", "definition", "examples", "missing", "fix")
_FINDING_COLUMNS = ("rule", "verdict", "about", "count", "text", "examples", "missing")


@dataclass(frozen=True, slots=True)
class TaskComposition:
    """What one task consists of; None where no list plays the role, or no source says what its images show.

    Attributes
    ----------
    introduced, known, unknown : int
        Numbers of classes.
    train, finetune, val, test : int or None
        Numbers of distinct images.
    hiding : int or None
        Train images that show objects of classes still unknown (rule CO5).
    hiding_at_least : bool
        Whether more may do so: some images are in no source, in a table that may miss classes, or of a dataset that
        does not annotate all of these.
    """

    task: str
    introduced: int
    known: int
    unknown: int
    train: int | None
    finetune: int | None
    val: int | None
    test: int | None
    hiding: int | None
    hiding_at_least: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class RuleResult:
    """One rule with what it found."""

    rule: Rule
    outcome: Outcome

    def __repr__(self) -> str:
        return f"RuleResult({self.rule.name}: {self.outcome.verdict})"


@dataclass(frozen=True, repr=False)
class Report:
    """What an audit found.

    Attributes
    ----------
    target : AuditTarget
        What was judged.
    results : tuple of RuleResult
        Those of all rules that were asked for, by principle.
    digest : str
        Of the manifest, ``""`` for a folder.
    forensics : Forensics or None
        What the lists of a folder tell by themselves; None for a manifest.
    fail_on : {"error", "warning"}
        What makes the audit fail: a rule broken as an error, or also one broken as a warning.
    """

    target: AuditTarget
    results: tuple[RuleResult, ...]
    digest: str = ""
    forensics: Forensics | None = None
    fail_on: Severity = "error"

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {verdict}" for verdict, count in self.tally().items())
        return f"Report({cut(self.target.name, 60)!r}: {told})"

    def _repr_html_(self) -> str:
        """Return the rules and their verdicts as a small table for a notebook."""
        shown = self.to_frame("rules")[["rule", "verdict", "count", "definition"]]
        return str(shown.to_html(index=False, max_rows=None))

    @property
    def failed(self) -> bool:
        """Whether a rule is broken."""
        bad = {"fail", "warn"} if self.fail_on == "warning" else {"fail"}
        return any(one.outcome.verdict in bad for one in self.results)

    @property
    def exit_status(self) -> int:
        """What ``curation audit`` ends with: 1 where a rule is broken, else 2 where a list is damaged, else 0."""
        return 1 if self.failed else 2 if self.damaged else 0

    @property
    def damaged(self) -> dict[str, str]:
        """Lists that could not be read, and why: what the rules say is said of the others alone."""
        found = self.target.published
        return {name: found.skipped[name] for name in found.damaged} if found else {}

    @property
    def findings(self) -> pd.DataFrame:
        """One row a finding (see `to_frame`)."""
        return self.to_frame()

    def verdict(self, name: str) -> str:
        """Return the verdict of a rule."""
        return next(one.outcome.verdict for one in self.results if one.rule.name == name)

    def tally(self) -> dict[str, int]:
        """Return how many rules came to each verdict, strongest first, absent ones left out."""
        counts = Counter(one.outcome.verdict for one in self.results)
        return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}

    def to_frame(self, table: TableName = "findings") -> pd.DataFrame:
        """Return a table.

        Parameters
        ----------
        table : {"findings", "rules", "tasks"}
            ``findings``: rule, verdict, what it is about, count, text, examples, missing data. ``rules``: name,
            severity, verdict, count, definition, examples, missing data, how to fix. ``tasks``: see `TaskComposition`.
        """
        import pandas as pd

        columns, rows = self._table(table)
        return pd.DataFrame(list(rows), columns=list(columns))

    def to_csv(self, table: TableName = "findings") -> str:
        """Return a table as CSV text; an empty cell where a number is not known."""
        return as_csv(*self._table(table))

    def _table(self, table: TableName) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        if table == "tasks":
            tasks = task_composition(self.target)
            return TaskComposition.__slots__, [[getattr(one, name) for name in one.__slots__] for one in tasks]
        rules = [_rule_data(one) for one in self.results]
        if table == "rules":
            return _RULE_COLUMNS, [_cells(one, _RULE_COLUMNS) for one in rules]
        findings = [{"rule": one["rule"], **finding} for one in rules for finding in one["findings"]]
        return _FINDING_COLUMNS, [_cells(one, _FINDING_COLUMNS) for one in findings]

    def data(self) -> dict[str, Any]:
        """Return plain data for JSON: what was judged, from which files, and what every rule found."""
        target = self.target
        return {
            "target": target.name,
            "kind": target.kind,
            **({"digest": self.digest} if self.digest else {}),
            "failed": self.failed,
            "tally": self.tally(),
            "lists": [_list_data(target, one) for one in target.files],
            **({"class_files": files} if (files := _class_files(target)) else {}),
            "roles": [_role_data(target, one) for one in target.lists],
            "sources": [
                {
                    "name": source.name,
                    "dataset": source.raw.dataset,
                    "part": source.raw.part,
                    "unit": source.unit,
                    "files": [{"name": f.name, "sha256": f.sha256, "rows": f.rows} for f in source.raw.files],
                }
                for source in target.sources
            ],
            "remarks": list(target.remarks),
            "warnings": label_warnings(target),
            "rules": [_rule_data(one) for one in self.results],
            "composition": [{name: getattr(one, name) for name in one.__slots__} for one in task_composition(target)],
            **({"forensics": forensics_data(self.forensics)} if self.forensics else {}),
        }

    def html(self) -> str:
        """Return one HTML page: no script, no other file, for screen, phone and paper, light and dark."""
        from curation.version import __version__

        verdicts = {one.rule.name: one.outcome.verdict for one in self.results}
        by_principle = [
            (name, [one for one in self.results if one.rule.name.startswith(prefix)])
            for prefix, name in PRINCIPLES.items()
        ]
        tasks = task_composition(self.target) if self.target.tasks and self.target.lists else []
        lists = [one for one in self.target.files if one.available]
        shown = lists[:MOST_LISTS]
        shared = overlap_matrix([one.unique for one in shown], len(self.target.ids)).tolist()
        return page(
            "audit.html",
            report=self,
            version=__version__,
            broken=[name for name, verdict in verdicts.items() if verdict == "fail"],
            undecided=sum(verdict == "undecidable" for verdict in verdicts.values()),
            warnings=label_warnings(self.target),
            principles=[(name, results) for name, results in by_principle if results],
            ranked=lambda findings: sorted(findings, key=lambda one: VERDICTS.index(one.verdict)),
            tasks=composition_svg(tasks) if tasks else "",
            bound=", as far as is known" if any(one.hiding_at_least for one in tasks) else "",
            shared=overlap_svg([one.name for one in shown], shared) if len(shown) > 1 else "",
            most_lists=MOST_LISTS,
            left_out=len(lists) - len(shown),
            sections=[*(forensics_tables(self.forensics) if self.forensics else ()), *self._inputs()],
        )

    def _inputs(self) -> list[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
        """Return the tables of lists and sources that were read: title, column names, rows."""
        target = self.target
        lists = [
            (
                one.name,
                f"{len(one.members):,}" if one.available else "not at hand",
                f"{len(one.unique):,}" if one.available else "",
                "; ".join(_parts_played(target, one.file)),
                target.digests.get(one.name, ""),
            )
            for one in target.files
        ]
        sources = [
            (source.name, f"{source.raw.dataset} {source.raw.part}", source.unit, file.name, file.sha256)
            for source in target.sources
            for file in source.raw.files
        ]
        tables: list[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = [
            ("Lists", ("list", "lines", "images", "part", "digest"), lists)
        ]
        if classes := _class_files(target):
            rows = [(one["file"], one["form"], f"{one['names']:,}", one["sha256"]) for one in classes]
            tables.append(("Files of classes", ("file", "form", "names", "digest"), rows))
        if target.sources:
            tables.append(("Sources", ("name", "dataset", "holds", "file", "digest"), sources))
        return tables

    def save(self, folder: str | PathLike[str]) -> None:
        """Write ``report.html``, ``audit.json``, the tables as CSV and the figure of overlaps into a new folder.

        Raises
        ------
        UsageError
            The folder exists already.
        """
        with publishing_folder(Path(folder)) as new:
            (new / "report.html").write_text(self.html(), encoding="utf-8")
            text = json.dumps(self.data(), indent=1, ensure_ascii=False, allow_nan=False)
            (new / "audit.json").write_text(text + "\n", encoding="utf-8")
            for table in ("rules", "findings", "tasks"):
                (new / f"{table}.csv").write_text(self.to_csv(table), encoding="utf-8")
            if self.forensics and 1 < len(self.forensics.facts) <= MOST_DRAWN:
                overlap_figure(self.forensics, new / "overlap")


def task_composition(target: AuditTarget) -> list[TaskComposition]:
    """Return what each task consists of."""
    return [_composition(target, number) for number in range(len(target.tasks))]


def composition_svg(tasks: Sequence[TaskComposition]) -> str:
    """Return bars of the images of each task and role; the dark part of train hides objects still unknown."""
    roles = [name for name in _ROLES if any(getattr(one, name) is not None for one in tasks)]
    return page("audit_tasks.html", tasks=tasks, roles=roles)


def overlap_svg(names: Sequence[str], shared: Sequence[Sequence[int]]) -> str:
    """Return the matrix of shared images; a cell is as dark as the share of the row's list that the column's holds."""
    return page("audit_overlap.html", names=names, shared=shared)


def _composition(target: AuditTarget, number: int) -> TaskComposition:
    task = target.tasks[number]
    images: dict[str, int | None] = {}
    for role in _ROLES:
        lists = target.with_role(role, task=number)
        told = lists and all(one.available for one in lists)
        images[role] = int(target.mask(lists).sum()) if told else None
    trains = target.with_role("train", task=number)
    located = [one for one in trains if (target.home[one.unique] >= 0).any()]
    shown = np.concatenate([[], *(hidden_unknowns(target, one, number)[0] for one in located)])
    trained = np.flatnonzero(target.mask(trains)).astype(np.int32)
    silent = target.unannotated(trained, target.introduced_in > number)
    return TaskComposition(
        task=task.name,
        introduced=len(task.introduced),
        known=len(task.known),
        unknown=len(task.unknown),
        **images,
        hiding=len(np.unique(shown)) if located else None,
        hiding_at_least=bool(located and task.unknown and silent.any()),
    )


def _cells(row: Mapping[str, Any], columns: Sequence[str]) -> list[Any]:
    return ["; ".join(cell) if isinstance(cell := row[name], list) else cell for name in columns]


def _list_data(target: AuditTarget, one: AuditedList) -> dict[str, Any]:
    return {
        "name": one.name,
        "lines": len(one.members) if one.available else None,
        "images": len(one.unique) if one.available else None,
        "sha256": target.digests.get(one.name),
    }


def _class_files(target: AuditTarget) -> list[dict[str, Any]]:
    """Return the files of a folder that name classes and hold no list: rules of published lists judge them."""
    files = target.published.files if target.published is not None else {}
    return [
        {
            "file": name,
            "form": one.form,
            "names": sum(map(len, one.classes.values())) or len(one.renamed),
            "sha256": f"sha256:{one.sha256}",
        }
        for name, one in files.items()
        if not one.lists
    ]


def _role_data(target: AuditTarget, one: AuditedList) -> dict[str, Any]:
    return {
        "list": one.name,
        "role": one.role,
        "tasks": target.task_names(one),
        "said_by": one.said_by,
        "view_declared": one.view_declared,
        "label_files": sorted({file.name for file in one.labels.values()}),
    }


def _rule_data(result: RuleResult) -> dict[str, Any]:
    rule, outcome = result.rule, result.outcome
    return {
        "rule": rule.name,
        "severity": rule.severity,
        "verdict": outcome.verdict,
        "count": outcome.count,
        "definition": rule.definition,
        "data_needed": rule.needs,
        "missing": list(outcome.needs),
        "examples": list(outcome.examples),
        "fix": rule.fix,
        **({"does_not_show": rule.not_shown} if rule.not_shown else {}),
        "findings": [
            {
                "verdict": one.verdict,
                "about": one.about,
                "count": one.count,
                "text": one.text,
                "examples": list(one.examples),
                "missing": one.need,
            }
            for one in outcome.findings
        ],
    }


def _parts_played(target: AuditTarget, file: str) -> list[str]:
    """Return what is said of a list and its slices, and in a manifest what parts it plays."""
    told = [text.partition(": ") for text in target.remarks]
    remarks = [text for name, _, text in told if name == file]
    sliced = [f"{name}: {text}" for name, _, text in told if name.startswith(f"{file}[")]
    declared = [
        f"{one.role} of {', '.join(target.task_names(one)) or 'all'}"
        for one in target.lists
        if one.file == file and target.kind == "manifest"
    ]
    return remarks + sliced + declared
