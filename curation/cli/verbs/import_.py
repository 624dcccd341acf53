"""``curation import``: an authors' published lists, held against the digests that a committed header pins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.benchmarks.building import import_lists
from curation.cli.output import Answer, Line, Table, next_command, source_words
from curation.cli.outputs import NEW_MANIFEST
from curation.manifest.manifest import Manifest


def run(manifest: Annotated[Manifest, import_lists], /, *, out: Annotated[Path, NEW_MANIFEST, "DIR"]) -> Answer:
    """Complete a manifest of published lists from the authors' files.

    Nothing is written unless every file and every list is the pinned one.

    Parameters
    ----------
    out
        folder of the new manifest
    """
    from curation.manifest.tables import figure_table, manifest_data

    manifest.save(out)
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
    lines: list[Line] = [f"{header.name} {header.version}  {manifest.digest}", ""]
    lines += [Table("Lists", columns, rows)]
    lines += [figure_table(header.figures)] if header.figures else []
    checked = "every file and every list is the one that the header pins" if manifest.lists else "the header alone"
    words = source_words(entry.name for entry in header.sources)
    lines += [f"written to {out}: {checked}", next_command("verify", out, *words)]
    data = {"folder": str(out), "lists": len(manifest.lists), **manifest_data(manifest)}
    return Answer(data, lines)
