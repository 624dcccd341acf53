"""``curation audit``: is this benchmark sound? Rules on a manifest, or on any folder of somebody's lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from curation.audit.forensics import Forensics, list_findings
from curation.audit.judgement import label_warnings
from curation.audit.report import Report, RuleResult
from curation.audit.rule import Finding
from curation.audit.run import audit
from curation.cli.options import Amount
from curation.cli.output import Answer, Table, table_lines, warn
from curation.cli.outputs import NewFolder, OutputFile
from curation.storage import write_text

_BROKEN = ("fail", "warn")
_SHOWN_VIOLATIONS = 6
_SHOWN_EXAMPLES = 3
_SHOWN_ALIKE = 6
_SHOWN_FINDINGS = 20
_ALL = "--json, --report FILE or --out DIR tells them"


def run(
    made: Annotated[Report, audit],
    /,
    *,
    amount: Amount,
    report: Annotated[Path | None, OutputFile()] = None,
    out: Annotated[Path | None, NewFolder(), "DIR"] = None,
) -> Answer:
    """Check a manifest, or any folder of lists, against the rules of a sound benchmark.

    What needs attention is told, or with ``--all`` what every rule found; 0 when none is broken, else 1; 2 where a list
    could not be read and no rule is broken by the others.

    Parameters
    ----------
    report
        write the report as one HTML page
    out
        write audit.json, report.html and the tables as CSV into a new folder
    """
    if report:
        write_text(report, made.html())
    if out:
        made.save(out)
    for name, why in made.damaged.items():
        warn(f"{name} cannot be read, and nothing of it was judged: {why}")
    for text in label_warnings(made.target):
        warn(text)
    tables = [] if amount.quiet else audit_tables(made, whole=amount.all)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in made.tally().items())
    verdict = f"{counts}: {'the audit failed' if made.failed else 'no rule is broken'}"
    if made.damaged:
        verdict += f", and {len(made.damaged)} of the lists could not be read"
    lines = [line for table in tables for line in table_lines(table)]
    return Answer(made.data(), [*lines, verdict], made.exit_status)


def audit_tables(audit: Report, *, whole: bool = True) -> list[Table]:
    """Return the tables of an audit: parts of the lists, rules, violations, numbers, fixes, missing data.

    Parameters
    ----------
    whole : bool
        Whether rules that passed, numbers, and lists whose part is stated are told too; else what needs attention:
        rules that are broken or undecidable, guessed parts of lists, and what lists tell that is no mere information.
    """
    title = f"Audit of {audit.target.name}  {audit.digest}".rstrip()
    told = [one for one in audit.results if whole or one.outcome.verdict in (*_BROKEN, "undecidable")]
    tables = [
        *([_remarks(audit)] if whole or audit.target.kind == "folder" else []),
        *([_forensics(audit.forensics, whole=whole)] if audit.forensics else []),
        Table(title, ("rule", "verdict", "count", "a sound benchmark"), tuple(map(_row, told))),
        *([Table("Numbers", ("rule", "of", "found"), _numbers(audit))] if whole else []),
        Table("Violations", ("rule", "", "of", "found"), tuple(_findings(audit, _BROKEN))),
        Table("How to fix", ("", ""), tuple((one.rule.name, one.rule.fix) for one in _broken(audit))),
        Table("What these findings do not show", ("", ""), _not_shown(audit, whole=whole)),
        Table("Undecidable", ("rule", "", "of", "found"), tuple(_findings(audit, ("undecidable",)))),
        Table("Undecidable: data are missing", ("rules", "needed"), _needs(audit)),
    ]
    return [table for table in tables if table.rows]


def _remarks(audit: Report) -> Table:
    """Return what is said of each list; what is said of many is said once."""
    by_part: dict[str, list[str]] = {}
    for text in audit.target.remarks:
        name, _, part = text.partition(": ")
        by_part.setdefault(part, []).append(name)
    rows = []
    for part, names in by_part.items():
        many = len(names) > _SHOWN_ALIKE
        rows += [(f"{len(names)} lists", part)] if many else [(name, part) for name in names]
    return Table("Lists, and the part that each plays", ("list", "part"), tuple(rows))


def _forensics(found: Forensics, *, whole: bool) -> Table:
    findings = [one for one in list_findings(found) if whole or one.gravity != "info"]
    rows = [(one.gravity, one.kind, _with_examples(one.text, one.examples)) for one in findings[:_SHOWN_FINDINGS]]
    if len(findings) > _SHOWN_FINDINGS:
        rows.append(("info", "", f"{len(findings) - _SHOWN_FINDINGS} more: {_ALL}"))
    return Table("What the lists tell by themselves", ("", "", ""), tuple(rows))


def _row(result: RuleResult) -> tuple[str, str, str, str]:
    outcome = result.outcome
    text = result.rule.definition
    if outcome.verdict == "undecidable":
        text = "data are missing, see below"
    if outcome.verdict == "not applicable":
        text = next((one.text for one in outcome.findings if one.text), text)
    return result.rule.name, outcome.verdict, f"{outcome.count:,}" if outcome.count else "", text


def _not_shown(audit: Report, *, whole: bool) -> tuple[tuple[str, str], ...]:
    verdicts = (*_BROKEN, "undecidable", *(["info"] if whole else []))
    told = [one for one in audit.results if one.outcome.verdict in verdicts]
    return tuple((one.rule.name, one.rule.not_shown) for one in told if one.rule.not_shown)


def _broken(audit: Report) -> list[RuleResult]:
    return [one for one in audit.results if one.outcome.verdict in _BROKEN]


def _numbers(audit: Report) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (one.rule.name, finding.about, finding.text)
        for one in audit.results
        for finding in one.outcome.findings
        if finding.verdict == "info"
    )


def _findings(audit: Report, verdicts: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Return the findings of some verdicts that have something to tell, the first few of each rule."""
    rows: list[tuple[str, str, str, str]] = []
    for one in audit.results:
        found = [finding for finding in one.outcome.findings if finding.verdict in verdicts and finding.text]
        rows += [(one.rule.name, f.verdict, f.about, _text(f)) for f in found[:_SHOWN_VIOLATIONS]]
        if len(found) > _SHOWN_VIOLATIONS:
            rest = f"{len(found) - _SHOWN_VIOLATIONS} more: {_ALL}"
            rows.append((one.rule.name, "", "", rest))
    return rows


def _text(finding: Finding) -> str:
    return _with_examples(finding.text, finding.examples)


def _with_examples(text: str, examples: Sequence[str]) -> str:
    shown = "; ".join(examples[:_SHOWN_EXAMPLES])
    return f"{text}: {shown}" if shown else text


def _needs(audit: Report) -> tuple[tuple[str, str], ...]:
    """Return each missing piece of data with the rules that it would decide."""
    rules: dict[str, list[str]] = {}
    for one in audit.results:
        for need in one.outcome.needs:
            rules.setdefault(need, []).append(one.rule.name)
    return tuple((", ".join(names), need) for need, names in rules.items())
