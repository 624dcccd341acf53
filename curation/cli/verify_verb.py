"""``curation verify``: a manifest against its digests, its sources, a rebuild, or a list that authors published."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.output import Table, add_amount_options, counted_examples, emit, table_lines
from curation.cli.source_options import add_source_options, open_sources, slots_of
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.manifest.manifest import Manifest
    from curation.manifest.verify import Finding, Outcome, PublishedComparison
    from curation.sources.source import Source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation verify``."""
    parser.add_argument(
        "manifest", metavar="MANIFEST", help="a folder, or NAME@VERSION of a manifest at hand"
    )
    add_source_options(parser)
    parser.add_argument(
        "--strict", action="store_true", help="other bytes of a source file are a failure, not a note"
    )
    parser.add_argument("--rebuild", action="store_true", help="build again from the sources and compare")
    parser.add_argument("--published", type=Path, metavar="FILE", help="an authors' list: .txt or .json")
    parser.add_argument("--part", help="the part to compare the published list with")
    add_amount_options(parser, "every finding")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(options: argparse.Namespace) -> int:
    """Print failures and notes, or with ``--all`` every finding; 0 when none is a failure, else 1."""
    from curation.manifest.locate import load_manifest
    from curation.manifest.verify import verify_lists, verify_sources

    if (options.part is None) != (options.published is None):
        raise UsageError(
            "--published FILE and --part PART go together",
            expected="the list of one part: --published FILE --part PART",
            found="--published alone" if options.part is None else "--part alone",
            hint="`curation show MANIFEST` lists the parts; `curation import` checks a whole folder of lists",
        )
    manifest = load_manifest(options.manifest)
    findings = verify_lists(manifest)
    if options.source or options.rebuild:
        sources = open_sources(options, slots_of(manifest.header))
        findings += verify_sources(manifest, sources, strict=options.strict)
        if options.rebuild:
            findings += _rebuild(manifest, sources, strict=options.strict)
    comparison = _compare(manifest, options) if options.published else None
    failed = any(one.outcome == "failure" for one in findings) or (
        comparison is not None and not _agrees(manifest, comparison, options.part)
    )
    data = _data(manifest, findings, comparison, options, failed=failed)
    emit(data, _lines(manifest, findings, comparison, options, failed=failed), as_json=options.json)
    return int(failed)


def _rebuild(manifest: Manifest, sources: dict[str, Source], *, strict: bool) -> list[Finding]:
    """Return whether the protocol gives the same digest, or at least the same lists, from these sources."""
    from curation.benchmarks.building import parameters_of, rebuild
    from curation.benchmarks.registry import find_benchmark
    from curation.cli.source_options import require
    from curation.manifest.verify import Finding

    if manifest.header.origin == "as_published":
        return [Finding("rebuild", "manifest", "note", found="authors' lists: `curation import` checks them")]
    protocol = find_benchmark(manifest.header.rule.protocol)
    if manifest.header.origin == "declared":
        return [Finding("rebuild", "manifest", "note", found="declared: `curation build` completes it")]
    base = manifest.header.supersedes
    if base is not None and "review_rule" in manifest.header.rule.parameters:
        told = f"by `curation apply` from version {base.version} ({base.digest}) and its decisions"
        return [Finding("rebuild", "manifest", "note", found=told)]
    slots = protocol.slots_for(parameters_of(manifest.header))
    require(slots, sources, "curation verify MANIFEST --rebuild")
    built = rebuild(manifest, sources)
    differing = [name for name in manifest.lists if built.lists.get(name) != manifest.lists[name]]
    findings = [
        Finding(
            "rebuild",
            name,
            "failure" if name in differing else "ok",
            manifest.part(name).sha256 or "",
            next((part.sha256 or "" for part in built.header.parts if part.name == name), "no such part"),
        )
        for name in manifest.lists
    ]
    same = built.digest == manifest.digest
    other: Outcome = "failure" if strict or differing else "note"
    findings.append(Finding("rebuild", "manifest", "ok" if same else other, manifest.digest, built.digest))
    return findings


def _compare(manifest: Manifest, options: argparse.Namespace) -> PublishedComparison:
    from curation.manifest.published import read_published
    from curation.manifest.verify import compare_with_published

    ids = manifest.ids(options.part)
    return compare_with_published(ids, read_published(options.published, ids))


def _agrees(manifest: Manifest, comparison: PublishedComparison, part: str) -> bool:
    ordered = manifest.part(part).order == "listed"
    return comparison.equal and (comparison.same_order or not ordered)


def _data(
    manifest: Manifest,
    findings: list[Finding],
    comparison: PublishedComparison | None,
    options: argparse.Namespace,
    *,
    failed: bool,
) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": manifest.header.name,
        "version": manifest.header.version,
        "digest": manifest.digest,
        "ok": not failed,
        "findings": [
            {
                "check": one.check,
                "subject": one.subject,
                "outcome": one.outcome,
                "expected": one.expected,
                "found": one.found,
            }
            for one in findings
        ],
    }
    if comparison is not None:
        data["published"] = {
            "file": str(options.published),
            "part": options.part,
            "shared": comparison.shared,
            "missing": list(comparison.missing),
            "extra": list(comparison.extra),
            "duplicates": list(comparison.duplicates),
            "same_order": comparison.same_order,
            "equal": comparison.equal,
        }
    return data


def _lines(
    manifest: Manifest,
    findings: list[Finding],
    comparison: PublishedComparison | None,
    options: argparse.Namespace,
    *,
    failed: bool,
) -> list[str]:
    counts = Counter(one.outcome for one in findings)
    tallies = [f"{counts[name]} {name}" for name in ("failure", "note", "ok") if counts[name]]
    if comparison is not None:
        agrees = _agrees(manifest, comparison, options.part)
        tallies.append(f"the published list is {'that' if agrees else 'not that'} of part {options.part}")
    tally = ", ".join(tallies)
    unchecked = sum(one.found.startswith("not checked") for one in findings)
    verdict = f"verified but for {unchecked} not checked" if unchecked else "verified"
    last = f"{tally}: {'the check failed' if failed else verdict}"
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
