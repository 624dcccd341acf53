"""``curation publish`` and ``curation pull``: manifests as a dataset repository on a hub, and back from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.benchmarks.publishing import Published, publish
from curation.cli.output import Answer, Line, Table, note, warn
from curation.cli.outputs import NEW_FOLDER
from curation.publishing.hub import pull
from curation.publishing.publication import Publication


def run(*, dry_run: Annotated[Path | None, NEW_FOLDER, "DIR"] = None, made: Annotated[Published, publish]) -> Answer:
    """Publish manifests as a dataset repository on a hub: card, tables, Croissant, one commit and one tag."""
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


def run_pull(
    publication: Annotated[str, "ORG/NAME@VERSION"],
    /,
    *,
    out: Annotated[Path, NEW_FOLDER, "DIR"],
    made: Annotated[Publication, pull],
) -> Answer:
    """Download a publication from a hub, and check every file and every manifest.

    Nothing is written unless all files match the publication.
    """
    name = publication.partition("@")[0]
    if made.repository != name:
        warn(f"{name} contains the publication of {made.repository}")
    data = {
        "repository": made.repository,
        "tag": made.tag,
        "digest": made.digest,
        "folder": str(out),
        "files": len(made.files),
        "manifests": [
            {"name": entry.name, "version": entry.version, "digest": entry.digest, "folder": str(out / entry.folder)}
            for entry in made.manifests
        ],
    }
    return Answer(data, _pulled_lines(made, out))


def _pulled_lines(publication: Publication, out: Path) -> list[Line]:
    rows = tuple(
        (
            f"{entry.name} {entry.version}",
            f"{sum(bool(part.table) for part in entry.parts)} of {len(entry.parts)}",
            entry.digest[:19],
            str(out / entry.folder),
        )
        for entry in publication.manifests
    )
    return [
        Table("Manifests", ("manifest", "parts with a table", "digest", "folder"), rows),
        f"{publication.repository}@{publication.tag}  {publication.digest}",
        f"pulled to {out}: {len(publication.files)} files, all digests match the publication",
    ]
