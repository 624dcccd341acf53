"""``curation verify``: a manifest against its digests, its sources, a rebuild, or a list that authors published."""

from __future__ import annotations

from collections import Counter
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from curation.cli.options import Amount, SourceOptions
from curation.cli.output import Answer, Table, counted_examples, table_lines

if TYPE_CHECKING:
    from curation.benchmarks.verification import Verification
    from curation.manifest.verify import Finding


@dataclass(frozen=True)
class Options(SourceOptions, Amount):
    """Check a manifest against its digests, its sources, or an authors' list.

    Attributes
    ----------
    manifest
        a folder, or NAME@VERSION of an available manifest
    strict
        other bytes of a source file are a failure, not a note
    rebuild
        build again from the sources and compare
    published
        an authors' list: .txt or .json
    part
        the part to compare the published list with
    """

    manifest: str
    _: KW_ONLY
    strict: bool = False
    rebuild: bool = False
    published: Path | None = None
    part: str | None = None


def run(options: Options) -> Answer:
    """Print failures and notes, or with ``--all`` every finding; 0 when none is a failure, else 1."""
    from curation.benchmarks.verification import verify

    made = verify(
        options.manifest,
        options.sources,
        strict=options.strict,
        rebuild=options.rebuild,
        published=options.published,
        part=options.part,
        reading=options.reading,
    )
    return Answer(made.as_data(), _lines(made, options), int(not made.ok))


def _lines(made: Verification, options: Options) -> list[str]:
    manifest, findings, comparison = made.manifest, made.findings, made.comparison
    counts = Counter(one.outcome for one in findings)
    tallies = [f"{counts[name]} {name}" for name in ("failure", "note", "ok") if counts[name]]
    if comparison is not None:
        agrees = made.published_agrees
        tallies.append(f"the published list is {'that' if agrees else 'not that'} of part {options.part}")
    tally = ", ".join(tallies)
    unchecked = sum(one.found.startswith("not checked") for one in findings)
    verdict = f"verified but for {unchecked} not checked" if unchecked else "verified"
    last = f"{tally}: {verdict if made.ok else 'the check failed'}"
    if options.quiet:
        return [last]
    told = [one for one in findings if options.all or one.outcome != "ok"]
    rows = tuple((one.outcome, one.check, one.subject, _remark(one)) for one in told)
    title = f"{manifest.header.name} {manifest.header.version}  {manifest.digest}"
    lines = table_lines(Table(title, ("", "check", "of", "found") if rows else (), rows))
    if comparison is not None:
        published = (
            ("shared", str(comparison.shared)),
            ("missing there", counted_examples(comparison.missing)),
            ("extra there", counted_examples(comparison.extra)),
            ("named twice there", counted_examples(comparison.duplicates)),
            ("same order", "yes" if comparison.same_order else "no"),
        )
        lines += table_lines(Table(f"{options.published} against part {options.part}", ("", ""), published))
    return [*lines, last]


def _remark(finding: Finding) -> str:
    if finding.outcome == "ok" or not finding.expected or finding.expected == finding.found:
        return finding.found
    return f"expected {finding.expected}; found {finding.found}"
