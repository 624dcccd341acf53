"""`Report`: what every rule found, as plain data, a table and one HTML page.

It says each thing once, as a `Statement` with its number, its base and what it does not show.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from curation.core.arguments import checked
from curation.core.pages import page
from curation.core.short_repr import cut, html_table
from curation.core.storage import publishing_folder
from curation.core.text_table import printable
from curation.core.wording import counted
from curation.extensions.audit.judgement import label_warnings
from curation.extensions.audit.lists import AuditedList
from curation.extensions.audit.rule import VERDICTS, Finding, Outcome, Rule, Severity, Verdict, joined
from curation.extensions.audit.target import AuditTarget

if TYPE_CHECKING:
    import pandas as pd

Gravity = Literal["error", "warning", "undecidable", "note", "pass"]

GRAVITIES: Mapping[Verdict, Gravity] = {
    "fail": "error",
    "warn": "warning",
    "undecidable": "undecidable",
    "info": "note",
    "pass": "pass",
}
"""In the order of a report, by the verdict of a finding."""

SHOWN_EXAMPLES = 3
_ALIKE = 3
_SHOWN_ALIKE = 8


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule with what it found."""

    rule: Rule
    outcome: Outcome

    def __repr__(self) -> str:
        return f"RuleResult({self.rule.name}: {self.outcome.verdict})"


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that is said of some lists.

    Attributes
    ----------
    rule : str
    gravity : {"error", "warning", "undecidable", "note", "pass"}
    lists : tuple of str
    count, of : int, int or None
        What was counted, and of how many.
    text : str
        A sentence without a final full stop.
    examples : tuple of str
        The first few, each with its list and line.
    limits : str
        What it does not show.
    hint : str
        How to mend it, or how to make it decidable.
    pairs : tuple of (str, str)
    parts : tuple of dict
        Of like findings that are told in one sentence: what each is about, its count and text.
    """

    rule: str
    gravity: Gravity
    lists: tuple[str, ...]
    count: int
    of: int | None
    text: str
    examples: tuple[str, ...]
    limits: str
    hint: str
    pairs: tuple[tuple[str, str], ...] = ()
    parts: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Sums:
    """How much an audit could decide, a question being a rule and a list or pair that it applies to."""

    decided: int
    questions: int
    errors: int
    warnings: int
    notes: int
    undecidable: Mapping[str, int]


def statements(results: Iterable[RuleResult], folder: str = "") -> tuple[Statement, ...]:
    """Return what rules found, gravest first, in the order of the rules.

    Parameters
    ----------
    folder : str
        That all lists are in, with its slash: sentences leave it out.
    """
    made = [statement for result in results for statement in _of_rule(result)]
    if folder:
        made = [
            replace(
                statement,
                text=statement.text.replace(folder, ""),
                examples=tuple(text.replace(folder, "") for text in statement.examples),
                hint=statement.hint.replace(folder, ""),
            )
            for statement in made
        ]
    order = list(GRAVITIES.values())
    return tuple(sorted(made, key=lambda statement: order.index(statement.gravity)))


def by_need(statements: Iterable[Statement]) -> list[Statement]:
    """Return statements, those that need the same to be decided as one: its rules are named together."""
    groups: dict[tuple[str, ...], list[Statement]] = {}
    for row, statement in enumerate(statements):
        key = (statement.hint, statement.text) if statement.gravity == "undecidable" else (str(row),)
        groups.setdefault(key, []).append(statement)
    return [replace(group[0], rule=", ".join(member.rule for member in group)) for group in groups.values()]


def sums_of(results: Sequence[RuleResult], statements: Sequence[Statement]) -> Sums:
    """Return how many questions rules could decide, and what came out."""
    decided, open_ = 0, Counter[str]()
    for result in results:
        for finding in result.outcome.findings:
            if finding.verdict == "undecidable":
                open_[result.rule.name] += finding.asked
            elif finding.verdict in ("fail", "warn", "pass"):
                decided += finding.asked
    gravities = [statement.gravity for statement in statements]
    return Sums(
        decided=decided,
        questions=decided + open_.total(),
        errors=gravities.count("error"),
        warnings=gravities.count("warning"),
        notes=gravities.count("note"),
        undecidable=dict(open_),
    )


def _of_rule(result: RuleResult) -> Iterator[Statement]:
    rule, findings = result.rule, result.outcome.findings
    groups: dict[tuple[str, str], list[Finding]] = {}
    for row, finding in enumerate(findings):
        if finding.verdict in GRAVITIES:
            alike = finding.need if finding.verdict == "undecidable" else finding.like
            groups.setdefault((finding.verdict, alike or str(row)), []).append(finding)
    asked = sum(finding.asked for finding in findings if finding.verdict in ("fail", "warn", "pass", "undecidable"))
    for (verdict, _), group in groups.items():
        if len(group) >= (2 if verdict == "undecidable" else _ALIKE):
            yield _together(rule, group, asked)
        else:
            yield from (_alone(rule, finding) for finding in group)


def _alone(rule: Rule, finding: Finding) -> Statement:
    broken = finding.verdict in ("fail", "warn")
    return Statement(
        rule=rule.name,
        gravity=GRAVITIES[finding.verdict],
        lists=finding.lists,
        count=finding.count,
        of=finding.of,
        text=_sentence(finding) or rule.definition,
        examples=tuple(map(printable, finding.examples)),
        limits=rule.not_shown if finding.verdict != "pass" or rule.of_published_lists else "",
        hint=finding.need or finding.hint or (rule.fix if broken else ""),
        pairs=finding.pairs,
    )


def _sentence(finding: Finding) -> str:
    return printable(": ".join(text for text in (finding.about, finding.text) if text))


def _by_reason(group: Sequence[Finding]) -> Iterator[str]:
    for reason, count in Counter(finding.reason for finding in group).most_common():
        own = [finding.brief for finding in group if finding.reason == reason]
        yield f"{reason} ({count:,}: {joined(list(dict.fromkeys(own)), SHOWN_EXAMPLES)})"


def _together(rule: Rule, group: Sequence[Finding], asked: int) -> Statement:
    """Return like findings as one statement with a part each."""
    first = _alone(rule, group[0])
    pairs = tuple(pair for finding in group for pair in finding.pairs)
    lists = tuple(dict.fromkeys(name for finding in group for name in finding.lists))
    kind = group[0].verdict
    if kind != "undecidable":
        named = [(found.brief or found.about) + (f" ({found.count:,})" if found.count else "") for found in group]
        where = f"in {len(group)} of {asked:,} {'pairs' if pairs else 'lists'} " if kind in ("fail", "warn") else ""
        text = f"{where}{group[0].like}: {joined(named, _SHOWN_ALIKE)}"
    elif group[0].like:
        text = f"in {len(group):,} pairs {group[0].like}: {', '.join(_by_reason(group))}"
    elif len(texts := list(dict.fromkeys(finding.text for finding in group if finding.text))) > 1:
        text = joined([_sentence(finding) for finding in group], SHOWN_EXAMPLES)
    else:
        text = ": ".join([joined(list(dict.fromkeys(finding.about for finding in group)), SHOWN_EXAMPLES), *texts])
    return Statement(
        rule=rule.name,
        gravity=first.gravity,
        lists=lists,
        count=sum(finding.count for finding in group),
        of=sum(finding.of for finding in group if finding.of) or None,
        text=printable(text),
        examples=tuple(printable(text) for finding in group[:SHOWN_EXAMPLES] for text in finding.examples[:1]),
        limits=first.limits,
        hint=first.hint,
        pairs=pairs,
        parts=tuple(
            {"about": found.about, "lists": list(found.lists), "count": found.count, "of": found.of, "text": found.text}
            for found in group
        ),
    )


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
        tally = ", ".join(f"{count} {verdict}" for verdict, count in self.tally().items())
        return f"Report({cut(self.target.name, 60)!r}: {tally})"

    def _repr_html_(self) -> str:
        """Return the rules and their verdicts as a small table for a notebook."""
        rows = [
            (result.rule.name, result.outcome.verdict, str(result.outcome.count), result.rule.definition)
            for result in self.results
        ]
        return html_table(("rule", "verdict", "count", "definition"), rows, caption=cut(self.target.name, 60))

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """What is said in the end, gravest first."""
        return statements(self.results, self.folder)

    @cached_property
    def folder(self) -> str:
        """The folder that all lists are in, with its slash, which sentences leave out."""
        folders = [listed.whole.rpartition("/")[0] for listed in self.target.files] if self.target.published else []
        common = os.path.commonpath(folders) if folders and all(folders) else ""
        return f"{common}/" if common else ""

    @cached_property
    def sums(self) -> Sums:
        """How many questions could be decided, and what came out."""
        return sums_of(self.results, self.statements)

    @property
    def verdict_text(self) -> str:
        """The first line of a report."""
        sums, lists, name = self.sums, [file for file in self.target.files if file.available], cut(self.target.name, 80)
        lines = f"{counted(sum(listed.count_lines() for listed in lists), 'line')} in {counted(len(lists), 'list')}"
        read = ""
        if (found := self.target.published) and found.unread:
            n_files = len(found.files) + len(found.unread)
            read = f"{len(found.unread)} of {n_files} files could not be read; "
        bad = [statement for statement in self.statements if statement.gravity in ("error", "warning")]
        if bad:
            counts = f"{counted(sums.errors, 'error')}, {counted(sums.warnings, 'warning')}"
            return f"{name}: {read}{counts} on {lines}. First: {bad[0].text}"
        if not sums.decided:
            return f"{name}: {read}nothing could be checked on {lines}"
        decided = f"{sums.decided:,} of {counted(sums.questions, 'question')} could be decided"
        return f"{name}: {read}no error and no warning on {lines}; {decided}"

    @property
    def sums_text(self) -> str:
        """The last line of a report."""
        sums = self.sums
        subjects = {result.rule.name: result.rule.subject for result in self.results}
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
        return [(name, unread.first_line, unread.why) for name, unread in found.unread.items()] if found else []

    @property
    def failed(self) -> bool:
        """Whether a rule is broken."""
        bad = {"fail", "warn"} if self.fail_on == "warning" else {"fail"}
        return any(finding.verdict in bad for result in self.results for finding in result.outcome.findings)

    @property
    def exit_status(self) -> int:
        """What ``curation audit`` ends with: 1 where a rule is broken, else 2 where a list is damaged, else 0."""
        return 1 if self.failed else 2 if self.damaged else 0

    @property
    def damaged(self) -> dict[str, str]:
        """Lists that could not be read, and why: what the rules say is said of the others alone."""
        found = self.target.published
        return {name: unread.why for name, unread in found.unread.items() if unread.is_damaged} if found else {}

    @property
    def findings(self) -> pd.DataFrame:
        """One row for each finding: rule, verdict, what it is about, count, text, examples, missing data."""
        import pandas as pd

        rows = [
            (result.rule.name, finding.verdict, finding.about, finding.count, finding.text,
             "; ".join(finding.examples), finding.need)
            for result in self.results
            for finding in result.outcome.findings
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=list(_FINDING_COLUMNS))

    def verdict(self, name: str) -> str:
        """Return the verdict of a rule."""
        return next(result.outcome.verdict for result in self.results if result.rule.name == name)

    def tally(self) -> dict[str, int]:
        """Return how many rules came to each verdict, strongest first, absent ones left out."""
        counts = Counter(result.outcome.verdict for result in self.results)
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
            "sums": asdict(self.sums),
            "statements": [asdict(statement) for statement in self.statements],
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
        return [_list_data(self.target, listed) for listed in self.target.files]

    def html(self) -> str:
        """Return one HTML page: no script, no other file, for screen, phone and paper, light and dark."""
        from curation.version import __version__

        return page(
            "audit.html",
            __package__,
            report=self,
            data=self.data() | {"statements": by_need(self.statements)},
            version=__version__,
            definitions={result.rule.name: result.rule.definition for result in self.results},
        )

    @checked
    def save(self, folder: Path | str) -> None:
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


def _list_data(target: AuditTarget, listed: AuditedList) -> dict[str, Any]:
    parts = [part for part in target.used if part.whole == listed.whole]
    labels = [file.name for part in parts for file in part.labels.values()]
    return {
        "name": listed.name,
        "path": listed.file or listed.name,
        "role": "; ".join(dict.fromkeys(part.played for part in parts if part.played)),
        "family": next((part.family for part in parts if part.family), ""),
        "why": "; ".join(dict.fromkeys(part.why for part in parts if part.why)),
        "images": len(listed.unique) if listed.available else None,
        "lines": listed.count_lines() if listed.available else None,
        "form": target.published.files[listed.file].form if target.published else "",
        "sha256": listed.sha256 or None,
        "label_files": sorted(set(labels)),
    }
