"""``curation review apply``: recorded decisions on a manifest, as a new version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, Line, Table, counted_examples
from curation.cli.outputs import NEW_MANIFEST
from curation.cli.verbs.review.summary import conflict_table, coverage_table, note_table
from curation.manifest.manifest import write_manifest
from curation.review.decisions.application import Application
from curation.review.decisions.from_files import apply_from_files


def apply(applied: Annotated[Application, apply_from_files], /, *, out: Annotated[Path, NEW_MANIFEST, "DIR"]) -> Answer:
    """Apply recorded decisions to a manifest: a new version that names their digest.

    Parameters
    ----------
    out
        folder of the new manifest
    """
    write_manifest(applied.manifest, out)
    return Answer({**applied.data(), "out": str(out)}, _lines(applied, out))


def _lines(applied: Application, out: Path) -> list[Line]:
    base, resolution = applied.base, applied.resolution
    made = applied.manifest
    before = {part.name: part.images for part in base.header.parts}
    rows = tuple(
        (
            diff.part,
            str(before.get(diff.part, "new")),
            str(made.part(diff.part).images),
            counted_examples(diff.removed),
            counted_examples(diff.added),
        )
        for diff in applied.changes
    )
    tables = [Table("Parts that changed", ("part", "before", "now", "left", "joined"), rows)]
    if resolution.conflicts:
        tables.append(conflict_table(resolution.conflicts))
    counted = {part.name for part in base.header.parts if part.boxes} | (made.lists.keys() - before.keys())
    uncounted = [diff.part for diff in applied.changes if diff.part in counted and not made.part(diff.part).boxes]
    if uncounted:
        hint = f"Objects are not counted in {', '.join(uncounted)}: give --source for each of their sources."
        tables.append(note_table("Counts", [hint]))
    if applied.coverage:
        tables.append(coverage_table(applied.coverage))
    lines: list[Line] = [table for table in tables if table.rows]
    summary = [f"decisions: {len(resolution.decisions)}, {resolution.digest}"] if resolution.decisions else []
    return [*lines, f"{made.header.name} {made.header.version}  {made.digest}", *summary, f"written to {out}"]
