"""`Report`: the findings of every rule as statements, plain data, a table and one HTML page.

Each result is reported once, as a `Statement` with its count, its total and its limits.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from curation.core.arguments import checked
from curation.core.pages import page
from curation.core.tables import html_table, printable
from curation.core.wording import counted, cut
from curation.core.writing import publishing_folder
from curation.extensions.audit.repair import can_repair, repair
from curation.extensions.audit.rule import VERDICTS, Finding, Outcome, Rule, Severity, Verdict, joined, reading_doubts
from curation.extensions.audit.rules import RULES
from curation.extensions.audit.target import AuditTarget
from curation.review.decisions.pairs import PAIRS, PhotoPair, judged_data, pairs_csv
from curation.sources.entries import PublishedFile

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
LONGEST_VERDICT = 160
"""Characters of the first line of a report."""
_COMPARING = ("DS2", "DS4", "PL17")
"""Rules that compare lists of two roles."""
_MATTERS = ("DS2", "DS4", "PL17", "DS3", "PL7")
"""Rules about images in two lists: at equal gravity, these come first."""
_LACKING = {
    "DS3": "photos (--photos)",
    "DS5": "sources (--source)",
    "LI2": "sources (--source)",
    "LI3": "sources (--source)",
}
"""What rules that are not applied lack, other than tasks or labels."""
_SHOWN_ALIKE = 8


@dataclass(frozen=True, slots=True)
class RuleResult:
    """A rule and its findings."""

    rule: Rule
    outcome: Outcome

    def __repr__(self) -> str:
        return f"RuleResult({self.rule.name}: {self.outcome.verdict})"


@dataclass(frozen=True, slots=True)
class Statement:
    """A result about some lists.

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
        How to fix it, or how to make it decidable.
    pairs : tuple of (str, str)
    parts : tuple of dict
        Subject, count and text of each of several similar findings that the statement combines.
    label : str
        What the rule asks about, in words, and its name: ``images in two roles (DS2)``.
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
    label: str = ""

    @property
    def sentence(self) -> str:
        """The text behind what it is about."""
        return f"{self.label}: {self.text}"


@dataclass(frozen=True, slots=True)
class Sums:
    """Counts of questions and of statements. A question is a rule and a list, or pair of lists, that it applies to.

    Attributes
    ----------
    decided, questions : int
        Questions that could be decided, and all questions.
    errors, warnings, notes : int
    undecidable : mapping of str to int
        Questions by rule whose data are missing.
    not_asked : int
        Rules that no list, name or option mentions.
    """

    decided: int
    questions: int
    errors: int
    warnings: int
    notes: int
    undecidable: Mapping[str, int]
    not_asked: int = 0


Status = Literal["pass", "fail", "damaged", "nothing compared", "mostly unread"]
"""Status of a report: ``damaged``, a list could not be read, and the others show no error."""


@dataclass(frozen=True, slots=True)
class _Coverage:
    """Number of lists, pairs and files of a target that an audit examined.

    Attributes
    ----------
    lists, empty, roleless : int
        Lists that were read; those of them without a line; those with lines and without a role.
    pairs, compared : int
        Pairs of lists whose roles exclude each other, and those of them that were compared. Lists of other families,
        empty lists and lists that are not available are not compared.
    unread, others : int
        Files that may be lists and could not be read as such; files of other kinds, which were not opened.
    """

    lists: int
    empty: int
    roleless: int
    pairs: int
    compared: int
    unread: int
    others: int


def by_need(statements: Iterable[Statement]) -> list[Statement]:
    """Return statements, those that need the same to be decided as one: its rules are named together."""
    groups: dict[tuple[str, ...], list[Statement]] = {}
    for row, statement in enumerate(statements):
        key = (statement.hint, statement.text) if statement.gravity == "undecidable" else (str(row),)
        groups.setdefault(key, []).append(statement)
    return [
        replace(
            group[0],
            rule=", ".join(member.rule for member in group),
            label=joined(list(dict.fromkeys(member.label for member in group))),
        )
        for group in groups.values()
    ]


def _of_rule(result: RuleResult) -> Iterator[Statement]:
    rule, findings = result.rule, result.outcome.findings
    groups: dict[tuple[str, str], list[Finding]] = {}
    for row, finding in enumerate(findings):
        if finding.verdict in GRAVITIES:
            alike = finding.need if finding.verdict == "undecidable" else finding.like
            groups.setdefault((finding.verdict, alike or str(row)), []).append(finding)
    asked = [finding for finding in findings if finding.verdict in ("fail", "warn", "pass", "undecidable")]
    for group in groups.values():
        of_pairs = bool(group[0].pairs)
        questions = sum(finding.asked for finding in asked if bool(finding.pairs) == of_pairs)
        yield _together(rule, group, questions) if len(group) > 1 else _alone(rule, group[0])


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
        label=f"{rule.subject} ({rule.name})",
    )


def _sentence(finding: Finding) -> str:
    return printable(": ".join(text for text in (finding.about, finding.text) if text))


def _by_reason(group: Sequence[Finding]) -> Iterator[str]:
    for reason, count in Counter(finding.reason for finding in group).most_common():
        briefs = [finding.brief for finding in group if finding.reason == reason]
        yield f"{reason} ({count:,}: {joined(list(dict.fromkeys(briefs)), SHOWN_EXAMPLES)})"


def _together(rule: Rule, group: Sequence[Finding], questions: int) -> Statement:
    """Return like findings as one statement with a part each."""
    first, hints = _alone(rule, group[0]), dict.fromkeys(_alone(rule, finding).hint for finding in group)
    pairs = tuple(pair for finding in group for pair in finding.pairs)
    lists = tuple(dict.fromkeys(name for finding in group for name in finding.lists))
    kind = group[0].verdict
    if kind != "undecidable":
        labels = [(row.brief or row.about) + (f" ({row.count:,})" if row.count else "") for row in group]
        base = f" of {questions:,}" if all(finding.asked for finding in group) else ""
        where = f"in {len(group)}{base} {'pairs' if pairs else 'lists'} " if kind in ("fail", "warn") else ""
        text = f"{where}{group[0].like}: {joined(labels, _SHOWN_ALIKE)}"
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
        hint="; ".join(hints) if len(hints) <= SHOWN_EXAMPLES else first.hint if kind == "undecidable" else rule.fix,
        pairs=pairs,
        label=first.label,
        parts=tuple(
            {"about": row.about, "lists": list(row.lists), "count": row.count, "of": row.of, "text": row.text}
            for row in group
        ),
    )


_FINDING_COLUMNS = ("rule", "verdict", "about", "count", "text", "examples", "missing")
_SHOWN_SUBJECTS = 6


@dataclass(frozen=True, repr=False)
class Report:
    """The findings of an audit.

    Attributes
    ----------
    target : AuditTarget
        The lists, sources and photos that were audited.
    results : tuple of RuleResult
        Results of all rules that ran, by principle.
    digest : str
        Of the manifest, ``""`` for a folder.
    fail_on : {"error", "warning"}
        The weakest gravity of a finding that makes the audit fail.
    not_asked : tuple of str
        Rules that were not applied, such as those on tasks and labels if no name mentions any.
    again : callable, optional
        Audits another folder with the same options; only for folders of lists.
    """

    target: AuditTarget
    results: tuple[RuleResult, ...]
    digest: str = ""
    fail_on: Severity = "error"
    not_asked: tuple[str, ...] = ()
    again: Callable[[Path], Report] | None = field(default=None, repr=False, compare=False)

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
        """The statements, gravest first; of equal gravity, images in two lists before what is wrong in one list."""
        gravities, folder = list(GRAVITIES.values()), self.folder
        short = [
            replace(
                statement,
                text=statement.text.replace(folder, ""),
                examples=tuple(text.replace(folder, "") for text in statement.examples),
                hint=statement.hint.replace(folder, ""),
            )
            for result in self.results
            for statement in _of_rule(result)
        ]
        order = [(gravities.index(row.gravity), (*_MATTERS, row.rule).index(row.rule)) for row in short]
        return tuple(short[row] for row in sorted(range(len(short)), key=order.__getitem__))

    @cached_property
    def folder(self) -> str:
        """The folder that all lists are in, with its slash, which sentences leave out."""
        return self.target.published.folder if self.target.published else ""

    @cached_property
    def sums(self) -> Sums:
        """The counts of questions and statements."""
        questions, undecidable = Counter[str](), Counter[str]()
        for result in self.results:
            for finding in result.outcome.findings:
                questions[finding.verdict] += finding.asked
                if finding.verdict == "undecidable":
                    undecidable[result.rule.name] += finding.asked
        gravities = Counter(statement.gravity for statement in self.statements)
        decided = questions["fail"] + questions["warn"] + questions["pass"]
        return Sums(
            decided=decided,
            questions=decided + questions["undecidable"],
            errors=gravities["error"],
            warnings=gravities["warning"],
            notes=gravities["note"],
            undecidable=dict(undecidable),
            not_asked=len(self.not_asked),
        )

    @cached_property
    def coverage(self) -> _Coverage:
        """Number of lists, pairs and files that were examined."""
        target, published = self.target, self.target.published
        lists = [listed for listed in target.files if listed.available]
        pairs = [(pair.first, pair.second) for pair in target.pairs]
        pairs += product(target.with_role("id"), target.with_role("ood"))
        compared = sum(all(side.available and len(side) for side in pair) for pair in pairs)
        roles = {listed.whole for listed in target.used if listed.role}
        return _Coverage(
            lists=len(lists),
            empty=sum(not len(listed) for listed in lists),
            roleless=sum(bool(len(listed)) and listed.whole not in roles for listed in lists),
            pairs=max(len(pairs), target.role_pairs or 0),
            compared=compared,
            unread=len(self.unread),
            others=sum(published.others.values()) if published else 0,
        )

    @property
    def nothing_compared(self) -> str:
        """The reason why no lists were compared; empty if some were, or if there is only one list."""
        seen, target = self.coverage, self.target
        if not self.sums.decided:
            return "no question could be decided"
        if seen.compared or not any(result.rule.name in _COMPARING for result in self.results):
            return ""
        lists = [listed for listed in target.files if listed.available]
        if lists and not any(map(len, lists)):
            return "every list is empty"
        if target.kind == "manifest":
            # A manifest states which of its lists are not available: the first line names them, and DS2 is undecidable.
            return ""
        if seen.lists + seen.unread < 2 or not seen.lists:
            return ""
        if seen.lists == 1:
            return "one list alone could be read"
        roles = ", ".join(sorted({listed.role for listed in target.lists if len(listed)})) or "none"
        if seen.empty and seen.pairs:
            return "the only list of a role is empty"
        if seen.pairs:
            return "no two lists of two roles are in one family; --role LIST=ROLE sets the roles of both"
        how = "--role LIST=train, =val, =test sets them"
        return f"no two lists have roles that exclude each other (roles: {roles}); {how}"

    @property
    def status(self) -> Status:
        """Status of the report."""
        if self.failed:
            return "fail"
        if self.damaged:
            return "damaged"
        if self.nothing_compared:
            return "nothing compared"
        published = self.target.published
        return "mostly unread" if published and len(published.unread) > len(published.files) else "pass"

    @property
    def verdict_text(self) -> str:
        """The first line of a report: the gravest statement, in at most `LONGEST_VERDICT` characters."""
        sums, seen, name = self.sums, self.coverage, cut(self.target.name, 40)
        unread = f"{seen.unread:,} of {seen.unread + len(self._files):,} files could not be read" if seen.unread else ""
        counts = f"{counted(sums.errors, 'error')}, {counted(sums.warnings, 'warning')}"
        bad = [statement for statement in self.statements if statement.gravity in ("error", "warning")]
        if bad:
            end = f" ({'; '.join(filter(None, (counts, unread)))})"
            return f"{name}: {cut(bad[0].text, LONGEST_VERDICT - len(name) - len(end) - 2)}{end}"
        text = f"no error and no warning on {self._lines_text}"
        if not sums.decided:
            text = f"nothing could be checked on {self._lines_text}"
        elif why := self.nothing_compared:
            text = f"nothing was compared on {self._lines_text}: {why}"
        return cut(f"{name}: {'; '.join(filter(None, (unread, text)))}", LONGEST_VERDICT)

    @property
    def _files(self) -> Mapping[str, PublishedFile]:
        return self.target.published.files if self.target.published else {}

    @property
    def _lines_text(self) -> str:
        lists = [listed for listed in self.target.files if listed.available]
        return f"{counted(sum(map(len, lists)), 'line')} in {counted(len(lists), 'list')}"

    @property
    def checked_text(self) -> str:
        """The second line of a report: the lines that were checked, and the files and lists that were not."""
        published, seen, texts = self.target.published, self.coverage, list[str]()
        if seen.unread:
            texts.append(f"{seen.unread:,} of {len(self._files) + seen.unread:,} files could not be read")
        if published and seen.others:
            kinds = joined([suffix or "no suffix" for suffix, _ in Counter(published.others).most_common()], 3)
            texts.append(f"{counted(seen.others, 'file')} of other kinds not opened ({kinds})")
        if missing := sum(not listed.available for listed in self.target.files):
            texts.append(f"{counted(missing, 'list')} not available")
        if seen.lists + seen.unread == 1 and self.target.published:
            texts.append("no other list to compare it with")
        if seen.pairs > seen.compared:
            texts.append(f"{seen.compared:,} of {counted(seen.pairs, 'pair')} of lists with exclusive roles compared")
        for number, kind in ((seen.empty, "empty"), (seen.roleless, "without a role")):
            if number and seen.lists > 1:
                texts.append(f"{counted(number, 'list')} {kind}")
        return f"checked: {'; '.join([self._lines_text, *texts])}"

    @property
    def not_applied_text(self) -> str:
        """The rules that were not applied, by the data that they lack; empty if all were applied."""
        lacking: dict[str, list[str]] = {}
        for rule in RULES:
            if rule.name in self.not_asked:
                data = _LACKING.get(rule.name, "tasks and labels (--tasks)")
                lacking.setdefault(data, []).append(f"{rule.subject} ({rule.name})")
        return "; ".join(f"for lack of {data}: {', '.join(rules)}" for data, rules in lacking.items())

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
        elif self.status == "nothing compared":
            text = f"nothing was compared; {text}"
        if missing:
            text += f"; undecidable: {joined(missing, _SHOWN_SUBJECTS)}"
        return text + (f"; {counted(len(self.damaged), 'list')} could not be read" if self.damaged else "")

    @property
    def photo_pairs(self) -> list[PhotoPair] | None:
        """Pairs of same or nearly same photos of two roles, for a person to judge; None if no photos were compared."""
        return self.target.cache.get(("photo pairs", ""))

    @cached_property
    def next_text(self) -> str:
        """The advice to repair the lists; empty if a repair would change nothing or cannot write their forms."""
        advice = "next: the same command with --repair DIR writes lists without these images, groups and repeated lines"
        return advice if can_repair(self) else ""

    @property
    def unread(self) -> list[tuple[str, str, str]]:
        """The name, first line and reason of each file of a folder that was not read."""
        published = self.target.published
        return [(name, unread.first_line, unread.why) for name, unread in published.unread.items()] if published else []

    @property
    def failed(self) -> bool:
        """Whether a rule is violated."""
        bad = {"fail", "warn"} if self.fail_on == "warning" else {"fail"}
        return any(finding.verdict in bad for result in self.results for finding in result.outcome.findings)

    @property
    def exit_status(self) -> int:
        """Exit status of ``curation audit``: 1 if a rule is violated, 0 if lists were compared and none is, else 2."""
        return {"fail": 1, "pass": 0}.get(self.status, 2)

    @property
    def damaged(self) -> dict[str, str]:
        """The reason for each list that could not be read; the rules judge the other lists."""
        published = self.target.published
        return {name: unread.why for name, unread in published.unread.items() if unread.is_damaged} if published else {}

    @property
    def findings(self) -> pd.DataFrame:
        """One row for each finding: rule, verdict, subject, count, text, examples, missing data."""
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
        """Return the number of rules with each verdict, strongest first, without verdicts that do not occur."""
        counts = Counter(result.outcome.verdict for result in self.results)
        return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}

    def data(self) -> dict[str, Any]:
        """Return plain data for JSON: the lists and sources with their files, and the statements."""
        target = self.target
        return {
            "target": target.name,
            "kind": target.kind,
            **({"digest": self.digest} if self.digest else {}),
            "verdict": self.verdict_text,
            "checked": self.checked_text,
            "status": self.status,
            "failed": self.failed,
            "coverage": asdict(self.coverage),
            "sums": asdict(self.sums),
            "next": self.next_text,
            **({"judged": judged_data(self.photo_pairs or ())} if target.judged else {}),
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
            "warnings": reading_doubts(target),
        }

    def lists(self) -> list[dict[str, Any]]:
        """Return a record of each list: its role and family, with the reasons for them, its size and digest."""
        target, rows = self.target, list[dict[str, Any]]()
        for listed in target.files:
            parts = [part for part in target.used if part.whole == listed.whole]
            rows.append({
                "name": listed.name,
                "path": listed.file or listed.name,
                "role": "; ".join(dict.fromkeys(part.played for part in parts if part.played)),
                "family": next((part.family for part in parts if part.family), ""),
                "why": "; ".join(dict.fromkeys(part.why for part in parts if part.why)),
                "images": len(listed.unique) if listed.available else None,
                "lines": len(listed) if listed.available else None,
                "form": self._files[listed.file].form if target.published else "",
                "sha256": listed.sha256 or None,
            })  # fmt: skip
        return rows

    def html(self) -> str:
        """Return the report as one HTML page without scripts or links to other files."""
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
        """Write ``report.html`` and ``audit.json`` into a new folder, and ``pairs.csv`` if photos were compared.

        Raises
        ------
        UsageError
            The folder exists already.
        """
        with publishing_folder(Path(folder)) as new:
            (new / "report.html").write_text(self.html(), encoding="utf-8")
            text = json.dumps(self.data(), indent=1, ensure_ascii=False, allow_nan=False)
            if self.photo_pairs is not None:
                (new / PAIRS).write_text(pairs_csv(self.photo_pairs), encoding="utf-8")
            (new / "audit.json").write_text(text + "\n", encoding="utf-8")

    @checked
    def repair(self, folder: Path | str) -> dict[str, Any]:
        """Write the lists without the leaks that were found, and return the record that is saved with them.

        Raises
        ------
        UsageError
            See `curation.extensions.audit.repair.repair`.
        """
        return repair(self, Path(folder))
