"""``curation import``: an authors' published lists, held against the digests that a committed header pins."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from curation.cli.output import Answer, Table, table_lines
from curation.cli.outputs import NEW_MANIFEST

if TYPE_CHECKING:
    from curation.manifest.manifest import Manifest


@dataclass(frozen=True)
class Options:
    """Complete a manifest of published lists from the authors' files.

    Attributes
    ----------
    header
        a manifest of published lists without them: a folder, or NAME@VERSION of an available one
    lists
        the authors' files, found by name, subfolders included
    out
        folder of the new manifest
    header_only
        make the header instead, digests and counts without ids; HEADER is then the name of a recipe,
        such as owod/reowod-published
    """

    header: str
    _: KW_ONLY
    lists: Annotated[Path, "DIR"]
    out: Annotated[Path, NEW_MANIFEST, "DIR"]
    header_only: bool = False


def run(options: Options) -> Answer:
    """Import, write and report; nothing is written unless every file and every list is the pinned one."""
    from curation.benchmarks.building import import_published

    manifest = import_published(options.header, options.lists, header_only=options.header_only)
    manifest.save(options.out)
    return _answer(manifest, options)


def _answer(manifest: Manifest, options: Options) -> Answer:
    from curation.cli.manifest_tables import figure_table, manifest_data

    header = manifest.header
    rows = tuple(
        (
            part.name,
            str(header.rule.parameters[part.name]),
            f"{part.images or 0:,}",
            f"{part.repeats:,}" if part.repeats else "-",
            (part.sha256 or "")[:19],
        )
        for part in header.parts
    )
    columns = ("part", "published list", "lines", "repeats", "digest")
    lines = [f"{header.name} {header.version}  {manifest.digest}", ""]
    lines += table_lines(Table("Lists", columns, rows))
    lines += table_lines(figure_table(header.figures)) if header.figures else []
    what = "every file and every list is the one that the header pins" if manifest.lists else "the header alone"
    lines += [f"written to {options.out}: {what}", f"next: curation verify {options.out} --source NAME=PATH"]
    data = {"folder": str(options.out), "lists": len(manifest.lists), **manifest_data(manifest)}
    return Answer(data, lines)
