"""`Report`: what every rule found, as statements, plain data and one HTML page."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.audit.judgement import label_warnings
from curation.audit.lists import AuditedList
from curation.audit.rule import VERDICTS, Severity, joined
from curation.audit.statement import RuleResult, Statement, Sums, by_need, statements, sums_of
from curation.audit.target import AuditTarget
from curation.pages import page
from curation.short_repr import cut, html_table
from curation.storage import publishing_folder
from curation.wording import counted

if TYPE_CHECKING:
    import pandas as pd

_FINDING_COLUMNS = ("rule", "verdict", "about", "count", "text", "examples", "missing")
_SHOWN_SUBJECTS = 6


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
    """

    target: AuditTarget
    results: tuple[RuleResult, ...]
    digest: str = ""
    fail_on: Severity = "error"
    not_asked: tuple[str, ...] = ()

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {verdict}" for verdict, count in self.tally().items())
        return f"Report({cut(self.target.name, 60)!r}: {told})"

    def _repr_html_(self) -> str:
        """Return the rules and their verdicts as a small table for a notebook."""
        rows = [
            (one.rule.name, one.outcome.verdict, str(one.outcome.count), one.rule.definition) for one in self.results
        ]
        return html_table(("rule", "verdict", "count", "definition"), rows, caption=cut(self.target.name, 60))

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """What is said in the end, gravest first."""
        return statements(self.results, self.folder)

    @cached_property
    def folder(self) -> str:
        """The folder that all lists are in, with its slash, which sentences leave out."""
        folders = [one.whole.rpartition("/")[0] for one in self.target.files] if self.target.published else []
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
        read = ""
        if (found := self.target.published) and found.unread:
            n_files = len(found.files) + len(found.unread)
            read = f"{len(found.unread)} of {n_files} files could not be read; "
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
    def unread(self) -> list[tuple[str, str, str]]:
        """Files of a folder that were not read: name, first line, why."""
        found = self.target.published
        return [(name, one.first_line, one.why) for name, one in found.unread.items()] if found else []

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
        return {name: one.why for name, one in found.unread.items() if one.is_damaged} if found else {}

    @property
    def findings(self) -> pd.DataFrame:
        """One row for each finding: rule, verdict, what it is about, count, text, examples, missing data."""
        import pandas as pd

        rows = [
            (result.rule.name, one.verdict, one.about, one.count, one.text, "; ".join(one.examples), one.need)
            for result in self.results
            for one in result.outcome.findings
        ]
        return pd.DataFrame(rows, columns=list(_FINDING_COLUMNS))

    def verdict(self, name: str) -> str:
        """Return the verdict of a rule."""
        return next(one.outcome.verdict for one in self.results if one.rule.name == name)

    def tally(self) -> dict[str, int]:
        """Return how many rules came to each verdict, strongest first, absent ones left out."""
        counts = Counter(one.outcome.verdict for one in self.results)
        return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}

    def data(self) -> dict[str, Any]:
        """Return plain data for JSON: what was judged, from which files, and what was found."""
        target = self.target
        return {
            "target": target.name,
            "kind": target.kind,
            **({"digest": self.digest} if self.digest else {}),
            "verdict": self.verdict_text,
            "failed": self.failed,
            "sums": self.sums.data(),
            "statements": [asdict(one) for one in self.statements],
            "lists": self.lists(),
            "unread": [dict(zip(("path", "first_line", "reason"), row, strict=True)) for row in self.unread],
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
        }

    def lists(self) -> list[dict[str, Any]]:
        """Return what each list is: its role and family, and what they are known by."""
        return [_list_data(self.target, one) for one in self.target.files]

    def html(self) -> str:
        """Return one HTML page: no script, no other file, for screen, phone and paper, light and dark."""
        from curation.version import __version__

        return page(
            "audit.html",
            report=self,
            data=self.data() | {"statements": by_need(self.statements)},
            version=__version__,
            definitions={one.rule.name: one.rule.definition for one in self.results},
            warnings=label_warnings(self.target),
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


def _list_data(target: AuditTarget, one: AuditedList) -> dict[str, Any]:
    parts = [part for part in target.parts if part.file == one.whole]
    labels = [file.name for own in target.lists if own.whole == one.whole for file in own.labels.values()]
    return {
        "name": one.name,
        "path": one.file or one.name,
        "role": "; ".join(dict.fromkeys(part.played for part in parts if part.played)),
        "family": next((part.family for part in parts if part.family), ""),
        "why": "; ".join(dict.fromkeys(part.why for part in parts if part.why)),
        "images": len(one.unique) if one.available else None,
        "lines": len(one.members) if one.available else None,
        "form": target.published.files[one.file].form if target.published else "",
        "sha256": one.sha256 or None,
        "label_files": sorted(set(labels)),
    }
