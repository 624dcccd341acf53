"""``curation apply``: recorded verdicts replayed on a manifest, as a new version that names their digest."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from curation.cli.decisions_verb import conflict_table, note_table, resolution_data
from curation.cli.options import RuleOptions, SourceOptions
from curation.cli.output import Answer, Table, counted_examples, table_lines, warn
from curation.cli.outputs import NEW_MANIFEST
from curation.cli.signature import pairs
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.decisions.application import Application
    from curation.decisions.resolution import Resolution
    from curation.manifest.manifest import Manifest


@dataclass(frozen=True)
class Options(SourceOptions, RuleOptions):
    """Replay recorded verdicts on a manifest: a new version that names their digest.

    Attributes
    ----------
    manifest
        a folder, or NAME@VERSION of an available manifest
    decisions
        .jsonl, .csv, or the FindMeIfYouCan authors' manual_selection as .yaml or .json (repeatable)
    near
        the part that is near, of decisions on DATASET or of all; one that does not exist is made
        (repeatable)
    far
        the part that is far, of decisions on DATASET or of all; one that does not exist is made
        (repeatable)
    version
        of the new manifest: MAJOR.MINOR.PATCH
    reason
        why there is a new version
    strict
        refuse stale decisions, undecided images, images both near and far, and lines cut off
    out
        folder of the new manifest
    """

    manifest: str
    _: KW_ONLY
    decisions: tuple[Path, ...]
    near: tuple[Annotated[str, "[DATASET=]PART"], ...] = ()
    far: tuple[Annotated[str, "[DATASET=]PART"], ...] = ()
    version: Annotated[str, "V"]
    reason: Annotated[str, "TEXT"] = ""
    strict: bool = False
    out: Annotated[Path, NEW_MANIFEST, "DIR"]


def run(options: Options) -> Answer:
    """Write the new version and print what changed."""
    from curation.decisions.application import apply_decisions
    from curation.decisions.files import read_decision_files
    from curation.decisions.resolution import resolve
    from curation.errors import DecisionError
    from curation.manifest.locate import load_manifest
    from curation.manifest.store import write_manifest

    _check_reason(options.reason)
    base = load_manifest(options.manifest)
    files = read_decision_files(options.decisions)
    torn = [note for one in files for note in one.report.notes()]
    if torn and options.strict:
        raise DecisionError("A decisions file is cut off", where=torn[0], hint="leave out --strict")
    rows = [one for file in files for one in file.decisions]
    resolution = resolve(rows, options.rule, seniors=options.senior, allow_conflicts=options.allow_conflicts)
    applied = apply_decisions(
        base,
        resolution,
        version=options.version,
        near=pairs(options.near, "--near", bare=""),
        far=pairs(options.far, "--far", bare=""),
        sources=options.open(base.slots) if options.source else None,
        reason=options.reason,
        strict=options.strict,
    )
    write_manifest(applied.manifest, options.out)
    for note in (*torn, *_doubts(base, applied)):
        warn(note)
    return Answer(_data(base, applied, resolution, options), _lines(base, applied, resolution, options))


def _check_reason(text: str) -> None:
    if len(text) > 1000 or (text and not text.isprintable()):
        raise UsageError("The reason is not one line of text", where="--reason")


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
        told.append(f"the change deserves a {step.verdict} version ({step.reason}), not a {step.stated_step} one.")
    return told


_RANK = {"none": 0, "patch": 1, "minor": 2, "major": 3}


def _data(base: Manifest, applied: Application, resolution: Resolution, options: Options) -> dict[str, Any]:
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
        "staleness": asdict(applied.staleness),
        "resolution": resolution_data(resolution),
    }


def _lines(base: Manifest, applied: Application, resolution: Resolution, options: Options) -> list[str]:
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
