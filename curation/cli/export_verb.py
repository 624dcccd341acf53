"""``curation export``: parts of a manifest in the formats that detectors read."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from curation.cli.options import SourceOptions
from curation.cli.output import Answer, note, printable
from curation.cli.outputs import FileOrNewFolder
from curation.publishing.formats.options import ExportOptions

if TYPE_CHECKING:
    from curation.benchmarks.exporting import Exported
    from curation.publishing.formats.plan import Plan


@dataclass(frozen=True)
class Options(SourceOptions, ExportOptions):
    """Write parts as COCO JSON, VOC XML, YOLO, id lists, or in the layout of the authors' files.

    Attributes
    ----------
    manifest
        a folder, or NAME@VERSION of a manifest at hand
    out
        a new folder; for one file, a new file that ends in .json (coco, elephant-json) or .txt (txt)
    """

    manifest: str
    _: KW_ONLY
    out: Annotated[Path, FileOrNewFolder(), "PATH"]


def run(options: Options) -> Answer:
    """Write the export and report what it holds, what was changed and what was left out."""
    from curation.benchmarks.exporting import export

    made = export(
        options.manifest,
        options.out,
        sources=options.sources,
        options=options,
        reading=options.reading,
        tell=note,
    )
    return Answer(made.as_data(), _lines(made))


def _lines(made: Exported) -> list[str]:
    if made.links is not None:
        lines = [f"{count} links in {name}" for name, count in made.links.items()]
        return [*lines, f"written to {made.out}"]
    plan = made.plan
    lines = [f"{part}: {line}" for part, one in plan.by_part.items() for line in _count_lines(one)]
    lines += [("in all: " if plan.by_part else "") + line for line in _count_lines(plan)]
    lines += [
        f"{printable(file.name)}  {file.sha256}" + (f"  {file.files} files" if file.files > 1 else "")
        for file in made.files
    ]
    return [*lines, f"written to {made.out}"]


def _count_lines(plan: Plan) -> list[str]:
    titles = {"": plan.counts, "changed: ": plan.changed, "left out: ": plan.left_out}
    return [
        title + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
        for title, counts in titles.items()
        if counts
    ]
