"""``curation verify``: check a manifest against digests, sources, a rebuild or an authors' list; rescore a result."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from curation.benchmarks.rescoring import ResultVerification
from curation.benchmarks.verification import Verification, verify
from curation.cli.output import Amount, Answer, Line, Table, counted_examples
from curation.manifest.verify import Finding

_SHOWN = 20
"""Differences of a result that are printed without --all."""


def run(made: Annotated[Verification | ResultVerification, verify], /, *, amount: Amount) -> Answer:
    """Check a manifest against its digests, its sources, or an authors' list; or a results.json by scoring again.

    Failures and notes are printed, or with ``--all`` every finding. Exit status 0: no failure; 1: a failure; 2: a
    file cannot be read, or the command is wrong.
    """
    lines = _result_lines(made, amount) if isinstance(made, ResultVerification) else _lines(made, amount)
    return Answer(made.as_data(), lines, int(not made.ok))


def _result_lines(made: ResultVerification, amount: Amount) -> list[Line]:
    if made.ok or amount.quiet:
        return [made.verdict]
    rows = made.differences if amount.all else made.differences[:_SHOWN]
    more = len(made.differences) - len(rows)
    note = [f"and {more} more: --all prints every one"] * bool(more)
    return [Table(made.file, ("where", "in the file", "now"), rows), *note, made.verdict]


def _lines(made: Verification, amount: Amount) -> list[Line]:
    manifest, findings, comparison = made.manifest, made.findings, made.comparison
    counts = Counter(finding.outcome for finding in findings)
    tallies = [f"{counts[name]} {name}" for name in ("failure", "note", "ok") if counts[name]]
    if comparison is not None:
        agrees = made.published_agrees
        tallies.append(f"the published list {'equals' if agrees else 'differs from'} part {made.part}")
    tally = ", ".join(tallies)
    last = f"{tally}: {made.verdict}"
    if amount.quiet:
        return [last]
    printed = [finding for finding in findings if amount.all or finding.outcome != "ok"]
    rows = tuple((finding.outcome, finding.check, finding.subject, _remark(finding)) for finding in printed)
    title = f"{manifest.header.name} {manifest.header.version}  {manifest.digest}"
    lines: list[Line] = [Table(title, ("", "check", "of", "found") if rows else (), rows)]
    if comparison is not None:
        published = (
            ("shared", str(comparison.shared)),
            ("missing in the file", counted_examples(comparison.missing)),
            ("extra in the file", counted_examples(comparison.extra)),
            ("repeated in the file", counted_examples(comparison.duplicates)),
            ("more often in the file", counted_examples(comparison.surplus)),
            ("same order", ("yes" if comparison.same_order else "no") if comparison.shared else "nothing is shared"),
        )
        lines += [Table(f"{made.file} against part {made.part}", ("", ""), published)]
    # Photos are seldom stored with annotations: do not report that only they were not compared.
    if len(left_open := made.not_compared) > 1:
        lines.append(f"images in two roles: {', '.join(left_open[:-1])} and {left_open[-1]}: not compared")
    return [*lines, last]


def _remark(finding: Finding) -> str:
    if finding.outcome == "ok" or not finding.expected or finding.expected == finding.found:
        return finding.found
    return f"expected {finding.expected}; found {finding.found}"
