"""``curation export``: parts of a manifest in the formats that detectors read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from curation.benchmarks.exporting import export
from curation.cli.output import Answer, note
from curation.cli.outputs import FILE_OR_NEW_FOLDER
from curation.publishing.exporting import Exported
from curation.publishing.formats.plan import Plan


def run(
    *,
    part: tuple[str, ...] = (),
    out: Annotated[Path, FILE_OR_NEW_FOLDER, "PATH"],
    exported: Annotated[Exported, export],
) -> Answer:
    """Write parts as COCO JSON, VOC XML, YOLO, id lists, or in the layout of the authors' files."""
    for text in exported.notes:
        note(text)
    return Answer(exported.data, _lines(exported))


def _lines(exported: Exported) -> list[str]:
    plan = exported.plan
    lines = [f"{part}: {line}" for part, planned in plan.by_part.items() for line in _count_lines(planned)]
    lines += [("in all: " if plan.by_part else "") + line for line in _count_lines(plan)]
    lines += [
        f"{file.name}  {file.sha256}" + (f"  {file.files} files" if file.files > 1 else "") for file in exported.files
    ]
    return [*lines, f"written to {exported.out}"]


def _count_lines(plan: Plan) -> list[str]:
    titles: Mapping[str, Mapping[str, int]] = {"": plan.counts, "changed: ": plan.changed, "left out: ": plan.left_out}
    return [
        title + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
        for title, counts in titles.items()
        if counts
    ]
