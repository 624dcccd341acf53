"""An audit for the eye: verdicts, breaches, how to fix them, and which data would decide the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from curation.cli.output import Table

if TYPE_CHECKING:
    from curation.audit.forensics import Forensics
    from curation.audit.rule import Finding
    from curation.audit.run import Audit, RuleResult

_BROKEN = ("fail", "warn")
_SHOWN_BREACHES = 6
_SHOWN_EXAMPLES = 3
_SHOWN_ALIKE = 6
_SHOWN_FINDINGS = 20
_ALL = "--json, --report FILE or --out DIR tells them"


def audit_tables(audit: Audit, digest: str = "", found: Forensics | None = None) -> list[Table]:
    """Return the tables of an audit: parts of the lists, rules, breaches, numbers, fixes, missing data."""
    title = f"Audit of {audit.target.name}  {digest}".rstrip()
    tables = [
        _remarks(audit),
        *([_forensics(found)] if found else []),
        Table(title, ("rule", "verdict", "count", "a sound benchmark"), tuple(map(_row, audit.results))),
        Table("Numbers", ("rule", "of", "found"), _numbers(audit)),
        Table("Breaches", ("rule", "", "of", "found"), tuple(_breaches(audit))),
        Table("How to fix", ("", ""), tuple((one.rule.name, one.rule.fix) for one in _broken(audit))),
        Table("Undecidable: data are missing", ("rules", "needed"), _needs(audit)),
    ]
    return [table for table in tables if table.rows]


def _remarks(audit: Audit) -> Table:
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


def _forensics(found: Forensics) -> Table:
    from curation.audit.forensics_findings import list_findings

    findings = list_findings(found)
    rows = [
        (one.gravity, one.kind, _with_examples(one.text, one.examples)) for one in findings[:_SHOWN_FINDINGS]
    ]
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


def _broken(audit: Audit) -> list[RuleResult]:
    return [one for one in audit.results if one.outcome.verdict in _BROKEN]


def _numbers(audit: Audit) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (one.rule.name, finding.about, finding.text)
        for one in audit.results
        for finding in one.outcome.findings
        if finding.verdict == "info"
    )


def _breaches(audit: Audit) -> list[tuple[str, str, str, str]]:
    rows: list[tuple[str, str, str, str]] = []
    for one in audit.results:
        found = [finding for finding in one.outcome.findings if finding.verdict in _BROKEN]
        rows += [(one.rule.name, f.verdict, f.about, _text(f)) for f in found[:_SHOWN_BREACHES]]
        if len(found) > _SHOWN_BREACHES:
            rest = f"{len(found) - _SHOWN_BREACHES} more: {_ALL}"
            rows.append((one.rule.name, "", "", rest))
    return rows


def _text(finding: Finding) -> str:
    return _with_examples(finding.text, finding.examples)


def _with_examples(text: str, examples: Sequence[str]) -> str:
    shown = "; ".join(examples[:_SHOWN_EXAMPLES])
    return f"{text}: {shown}" if shown else text


def _needs(audit: Audit) -> tuple[tuple[str, str], ...]:
    """Return each missing piece of data with the rules that it would decide."""
    rules: dict[str, list[str]] = {}
    for one in audit.results:
        for need in one.outcome.needs:
            rules.setdefault(need, []).append(one.rule.name)
    return tuple((", ".join(names), need) for need, names in rules.items())
