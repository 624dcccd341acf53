"""`Report`: what every rule found, as statements, plain data and one HTML page; what each task consists of."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.audit.judgement import label_warnings
from curation.audit.labels import hidden_unknowns
from curation.audit.rule import VERDICTS, Severity, joined
from curation.audit.statement import RuleResult, Statement, Sums, by_need, statements, sums_of
from curation.audit.target import AuditedList, AuditTarget
from curation.pages import page
from curation.short_repr import cut, html_table
from curation.storage import publishing_folder
from curation.wording import counted

if TYPE_CHECKING:
    import pandas as pd

_ROLES = ("train", "finetune", "val", "test")
_FINDING_COLUMNS = ("rule", "verdict", "about", "count", "text", "examples", "missing")
_SHOWN_SUBJECTS = 6


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


@dataclass(frozen=True, repr=False)
class Report:
    """What an audit found.

    Attributes
    ----------
    target : AuditTarget
        What was judged.
    results : tuple of RuleResult
        Those of all rules that were asked, by principle.
    digest : str
        Of the manifest, ``""`` for a folder.
    fail_on : {"error", "warning"}
        What makes the audit fail: a rule broken as an error, or also one broken as a warning.
    not_asked : tuple of str
        Rules that nothing here speaks of: those on tasks and labels where no name does.
    command : str
        What tells the same again, for the page.
    """

    target: AuditTarget
    results: tuple[RuleResult, ...]
    digest: str = ""
    fail_on: Severity = "error"
    not_asked: tuple[str, ...] = ()
    command: str = ""

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {verdict}" for verdict, count in self.tally().items())
        return f"Report({cut(self.target.name, 60)!r}: {told})"

    def _repr_html_(self) -> str:
        """Return the rules and their verdicts as a small table for a notebook."""
        columns = ("rule", "verdict", "count", "definition")
        rows = [[str(one[name]) for name in columns] for one in map(_rule_data, self.results)]
        return html_table(columns, rows, caption=cut(self.target.name, 60))

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """What is said in the end, gravest first."""
        return statements(self.results, self.folder)

    @cached_property
    def folder(self) -> str:
        """The folder that all lists are in, with its slash, which sentences leave out."""
        folders = [one.file.rpartition("/")[0] for one in self.target.files] if self.target.published else []
        common = os.path.commonpath(folders) if folders and all(folders) else ""
        return f"{common}/" if common else ""

    @cached_property
    def sums(self) -> Sums:
        """How many questions could be decided, and what came out."""
        return sums_of(self.results, self.statements)

    @property
    def verdict_text(self) -> str:
        """The first line of a report."""
        sums, lists, name = self.sums, [one for one in self.target.files if one.available], cut(self.target.name, 80)
        lines = f"{counted(sum(len(one.members) for one in lists), 'line')} in {counted(len(lists), 'list')}"
        skipped = self.target.published.skipped if self.target.published else {}
        read = f"{len(skipped)} of {self.n_files} files could not be read; " if skipped else ""
        bad = [one for one in self.statements if one.gravity in ("error", "warning")]
        if bad:
            told = f"{counted(sums.errors, 'error')}, {counted(sums.warnings, 'warning')}"
            return f"{name}: {read}{told} on {lines}. First: {bad[0].text}"
        if not sums.decided:
            return f"{name}: {read}nothing could be checked on {lines}"
        decided = f"{sums.decided:,} of {counted(sums.questions, 'question')} could be decided"
        return f"{name}: {read}no error and no warning on {lines}; {decided}"

    @property
    def sums_text(self) -> str:
        """The last line of a report."""
        sums = self.sums
        subjects = {one.rule.name: one.rule.subject for one in self.results}
        missing = [f"{subjects[name]} ({name}, {count:,})" for name, count in sums.undecidable.items()]
        text = (
            f"{sums.decided:,} of {counted(sums.questions, 'question')} could be decided: "
            f"{counted(sums.errors, 'error')}, {counted(sums.warnings, 'warning')}, {counted(sums.notes, 'note')}"
        )
        if not sums.decided:
            text = "nothing could be checked"
        if missing:
            text += f"; undecidable: {joined(missing, _SHOWN_SUBJECTS)}"
        return text + (f"; {counted(len(self.damaged), 'list')} could not be read" if self.damaged else "")

    @property
    def n_files(self) -> int:
        """Files that were looked at."""
        found = self.target.published
        return len(found.files) + len(found.skipped) if found else len(self.target.files)

    @property
    def failed(self) -> bool:
        """Whether a rule is broken."""
        bad = {"fail", "warn"} if self.fail_on == "warning" else {"fail"}
        return any(one.verdict in bad for result in self.results for one in result.outcome.findings)

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
        """One row for each finding: rule, verdict, what it is about, count, text, examples, missing data."""
        import pandas as pd

        rules = map(_rule_data, self.results)
        rows = [{"rule": one["rule"], **finding} for one in rules for finding in one["findings"]]
        cells = [
            ["; ".join(row[name]) if name == "examples" else row[name] for name in _FINDING_COLUMNS] for row in rows
        ]
        return pd.DataFrame(cells, columns=list(_FINDING_COLUMNS))

    def verdict(self, name: str) -> str:
        """Return the verdict of a rule."""
        return next(one.outcome.verdict for one in self.results if one.rule.name == name)

    def tally(self) -> dict[str, int]:
        """Return how many rules came to each verdict, strongest first, absent ones left out."""
        counts = Counter(one.outcome.verdict for one in self.results)
        return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}

    def data(self) -> dict[str, Any]:
        """Return plain data for JSON: what was judged, from which files, and what every rule found."""
        target, found = self.target, self.target.published
        told = {
            "target": target.name,
            "kind": target.kind,
            "verdict": self.verdict_text,
            "failed": self.failed,
            "sums": self.sums.data(),
            "statements": [asdict(one) for one in self.statements],
            "lists": self.lists(),
            "not_asked": list(self.not_asked),
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
            "warnings": label_warnings(target),
            "composition": [asdict(one) for one in task_composition(target)],
        }
        unread = [
            {"path": name, "first_line": found.first_lines.get(name, ""), "reason": why}
            for name, why in (found.skipped if found else {}).items()
            if found
        ]
        told |= {"unread": unread, "class_files": self._class_files()}
        if found:
            return told
        rules = [_rule_data(one) for one in self.results]
        return told | {"digest": self.digest, "tally": self.tally(), "rules": rules}

    def lists(self) -> list[dict[str, Any]]:
        """Return what each list is: its role and family, and what they are known by."""
        return [_list_data(self.target, one) for one in self.target.files]

    def _class_files(self) -> list[dict[str, Any]]:
        """Return the files of a folder that name classes and hold no list: rules of published lists judge them."""
        files = self.target.published.files if self.target.published is not None else {}
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

    def html(self) -> str:
        """Return one HTML page: no script, no other file, for screen, phone and paper, light and dark."""
        from curation.version import __version__

        tasks = task_composition(self.target) if self.target.tasks and self.target.lists else []
        return page(
            "audit.html",
            report=self,
            data=self.data() | {"statements": by_need(self.statements)},
            version=__version__,
            definitions={one.rule.name: one.rule.definition for one in self.results},
            warnings=label_warnings(self.target),
            tasks=composition_svg(tasks) if tasks else "",
            bound=", as far as is known" if any(one.hiding_at_least for one in tasks) else "",
        )

    def save(self, folder: str | PathLike[str]) -> None:
        """Write ``report.html`` and ``audit.json`` into a new folder.

        Raises
        ------
        UsageError
            The folder exists already.
        """
        with publishing_folder(Path(folder)) as new:
            (new / "report.html").write_text(self.html(), encoding="utf-8")
            text = json.dumps(self.data(), indent=1, ensure_ascii=False, allow_nan=False)
            (new / "audit.json").write_text(text + "\n", encoding="utf-8")


def task_composition(target: AuditTarget) -> list[TaskComposition]:
    """Return what each task consists of."""
    return [_composition(target, number) for number in range(len(target.tasks))]


def composition_svg(tasks: Sequence[TaskComposition]) -> str:
    """Return bars of the images of each task and role; the dark part of train hides objects still unknown."""
    roles = [name for name in _ROLES if any(getattr(one, name) is not None for one in tasks)]
    return page("audit_tasks.html", tasks=tasks, roles=roles)


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


def _list_data(target: AuditTarget, one: AuditedList) -> dict[str, Any]:
    parts = [part for part in target.parts if part.file == one.file]
    found = target.published
    read = next((listed for listed in found.lists if listed.name == one.name), None) if found else None
    return {
        "name": one.name,
        "path": read.file if read else one.file,
        "role": "; ".join(dict.fromkeys(part.played for part in parts if part.played)),
        "family": next((part.family for part in parts if part.family), ""),
        "why": "; ".join(dict.fromkeys(part.why for part in parts if part.why)),
        "images": len(one.unique) if one.available else None,
        "lines": len(one.members) if one.available else None,
        "form": found.files[read.file].form if found and read else "",
        "sha256": target.digests.get(one.name),
        "label_files": sorted(
            {file.name for own in target.lists if own.file == one.file for file in own.labels.values()}
        ),
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
