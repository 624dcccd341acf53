"""``curation verify``: a manifest against its digests, its sources, a rebuild, or a list that authors published."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from curation.benchmarks.verification import Verification, verify
from curation.cli.output import Amount, Answer, Line, Table, counted_examples
from curation.manifest.verify import Finding


def run(made: Annotated[Verification, verify], /, *, amount: Amount) -> Answer:
    """Check a manifest against its digests, its sources, or an authors' list.

    Failures and notes are told, or with ``--all`` every finding. Exit status 0: none is a failure; 1: one is; 2: a
    file cannot be read, or the command is wrong.
    """
    return Answer(made.as_data(), _lines(made, amount), int(not made.ok))


def _lines(made: Verification, amount: Amount) -> list[Line]:
    manifest, findings, comparison = made.manifest, made.findings, made.comparison
    counts = Counter(finding.outcome for finding in findings)
    tallies = [f"{counts[name]} {name}" for name in ("failure", "note", "ok") if counts[name]]
    if comparison is not None:
        agrees = made.published_agrees
        tallies.append(f"the published list is {'that' if agrees else 'not that'} of part {made.part}")
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
            ("missing there", counted_examples(comparison.missing)),
            ("extra there", counted_examples(comparison.extra)),
            ("named twice there", counted_examples(comparison.duplicates)),
            ("more often than here", counted_examples(comparison.surplus)),
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
