"""``curation publish``: manifests as a dataset repository on a hub, or in a folder that holds exactly its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.benchmarks.publishing import Published, publish
from curation.cli.output import Answer, Line, Table, note
from curation.cli.outputs import NEW_FOLDER


def run(*, dry_run: Annotated[Path | None, NEW_FOLDER, "DIR"] = None, made: Annotated[Published, publish]) -> Answer:
    """Manifests as a dataset repository on a hub: card, tables, Croissant, one commit and one tag."""
    for text in made.notes():
        note(text)
    return Answer(made.as_data(), _lines(made))


def _lines(made: Published) -> list[Line]:
    publication, pushed = made.written.publication, made.pushed
    rows = tuple((path, f"{file.size:,}", file.sha256[:19]) for path, file in publication.files.items())
    lines: list[Line] = [Table("Files", ("path", "bytes", "SHA-256"), rows)]
    lines.append(f"{publication.repository}@{publication.tag}  {publication.digest}")
    if pushed is None:
        return [*lines, f"written to {made.folder}; nothing was pushed"]
    state = "private" if pushed.private else "public"
    verb = "published" if pushed.is_new else "already published, nothing was pushed:"
    return [*lines, f"{verb} {pushed.address} ({state}), commit {pushed.commit}"]
