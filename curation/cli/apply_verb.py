"""``curation apply``: recorded verdicts replayed on a manifest, as a new version that names their digest."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.decision_options import (
    add_rule_options,
    conflict_table,
    note_table,
    read_files,
    resolution_data,
    staleness_data,
)
from curation.cli.output import Table, counted_examples, emit, table_lines, warn
from curation.cli.outputs import NEW_MANIFEST
from curation.cli.source_options import add_source_options, open_sources, slots_of
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.decisions.application import Application
    from curation.decisions.resolution import Resolution
    from curation.manifest.manifest import Manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation apply``."""
    parser.add_argument(
        "manifest", metavar="MANIFEST", help="a folder, or NAME@VERSION of a manifest at hand"
    )
    parser.add_argument(
        "--decisions",
        action="append",
        required=True,
        type=Path,
        metavar="FILE",
        help=".jsonl, .csv, or the FindMeIfYouCan authors' manual_selection as .yaml or .json (repeatable)",
    )
    add_rule_options(parser)
    for side in ("near", "far"):
        parser.add_argument(
            f"--{side}",
            action="append",
            default=[],
            metavar="[DATASET=]PART",
            help=f"the part that is {side}, of decisions on DATASET or of all; one that does not exist is made "
            "(repeatable)",
        )
    add_source_options(parser)
    parser.add_argument(
        "--version", required=True, metavar="V", help="of the new manifest: MAJOR.MINOR.PATCH"
    )
    parser.add_argument("--reason", default="", metavar="TEXT", help="why there is a new version")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse stale decisions, undecided images, images both near and far, and lines cut off",
    )
    parser.add_argument(
        "--out", required=True, type=NEW_MANIFEST, metavar="DIR", help="folder of the new manifest"
    )
    parser.add_argument("--json", action="store_true", help="print what changed as JSON")


def run(options: argparse.Namespace) -> int:
    """Write the new version and print what changed."""
    from curation.decisions.application import apply_decisions
    from curation.decisions.resolution import resolve
    from curation.errors import DecisionError
    from curation.manifest.locate import load_manifest
    from curation.manifest.store import write_manifest

    _check_reason(options.reason)
    base = load_manifest(options.manifest)
    files = read_files(options.decisions)
    torn = [note for one in files for note in one.report.notes()]
    if torn and options.strict:
        raise DecisionError("A decisions file is cut off", where=torn[0], hint="leave out --strict")
    rows = [one for file in files for one in file.decisions]
    resolution = resolve(rows, options.rule, seniors=options.senior, allow_conflicts=options.allow_conflicts)
    applied = apply_decisions(
        base,
        resolution,
        version=options.version,
        near=_named(options.near, "--near"),
        far=_named(options.far, "--far"),
        sources=open_sources(options, slots_of(base.header)) if options.source else None,
        reason=options.reason,
        strict=options.strict,
    )
    write_manifest(applied.manifest, options.out)
    for note in (*torn, *_doubts(base, applied)):
        warn(note)
    emit(
        _data(base, applied, resolution, options),
        _lines(base, applied, resolution, options),
        as_json=options.json,
    )
    return 0


def _check_reason(text: str) -> None:
    if len(text) > 1000 or (text and not text.isprintable()):
        raise UsageError("The reason is not one line of text", where="--reason")


def _named(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return parts by data set, that of all others under ``""``."""
    named: dict[str, str] = {}
    for text in texts:
        dataset, _, part = text.rpartition("=")
        if dataset in named:
            raise UsageError(f"{option} is given twice for {dataset or 'all'}", where=text[:200])
        named[dataset] = part
    return named


def _doubts(base: Manifest, applied: Application) -> list[str]:
    """Return in words what a reader of the result should look at."""
    from curation.manifest.diff import diff_manifests

    told = [*applied.staleness.notes(), *(one.text() for one in applied.ineffective)]
    if applied.shared:
        told.append(f"near and far share {counted_examples(applied.shared)} images.")
    if not applied.changes:
        told.append("no list changed.")
    step = diff_manifests(base, applied.manifest)
    if step.stated_step is not None and _RANK[step.stated_step] < _RANK[step.verdict]:
        told.append(
            f"the change deserves a {step.verdict} version ({step.reason}), not a {step.stated_step} one."
        )
    return told


_RANK = {"none": 0, "patch": 1, "minor": 2, "major": 3}


def _data(
    base: Manifest, applied: Application, resolution: Resolution, options: argparse.Namespace
) -> dict[str, Any]:
    made = applied.manifest
    return {
        "name": made.header.name,
        "version": made.header.version,
        "digest": made.digest,
        "supersedes": {"version": base.header.version, "digest": base.digest},
        "out": str(options.out),
        "changes": [asdict(one) for one in applied.changes],
        "ineffective": [asdict(one) for one in applied.ineffective],
        "shared": list(applied.shared),
        "staleness": staleness_data(applied.staleness),
        "resolution": resolution_data(resolution),
    }


def _lines(
    base: Manifest, applied: Application, resolution: Resolution, options: argparse.Namespace
) -> list[str]:
    made = applied.manifest
    before = {part.name: part.images for part in base.header.parts}
    rows = tuple(
        (
            one.part,
            str(before.get(one.part, "new")),
            str(made.part(one.part).images),
            counted_examples(one.removed),
            counted_examples(one.added),
        )
        for one in applied.changes
    )
    tables = [Table("Parts that changed", ("part", "before", "now", "left", "joined"), rows)]
    if resolution.conflicts:
        tables.append(conflict_table(resolution.conflicts))
    if uncounted := [one.part for one in applied.changes if not made.part(one.part).boxes]:
        hint = f"Objects are not counted in {', '.join(uncounted)}: give --source for each of their sources."
        tables.append(note_table("Counts", [hint]))
    lines = [line for table in tables if table.rows for line in table_lines(table)]
    return [
        *lines,
        f"{made.header.name} {made.header.version}  {made.digest}",
        f"decisions: {len(resolution.decisions)}, {resolution.digest}",
        f"written to {options.out}",
    ]
