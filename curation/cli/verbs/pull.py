"""``curation pull``: a publication brought back from a hub, every file and every manifest checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, Line, Table, warn
from curation.cli.outputs import NEW_FOLDER
from curation.publishing.hub import pull
from curation.publishing.publication import Publication


def run(
    publication: Annotated[str, "ORG/NAME@VERSION"],
    /,
    *,
    out: Annotated[Path, NEW_FOLDER, "DIR"],
    made: Annotated[Publication, pull],
) -> Answer:
    """Bring a publication back from a hub, every file and every manifest checked.

    Nothing is written unless all of it is what was published.
    """
    name = publication.partition("@")[0]
    if made.repository != name:
        warn(f"{name} holds what was published as {made.repository}")
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
    return Answer(data, _lines(made, out))


def _lines(publication: Publication, out: Path) -> list[Line]:
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
        f"pulled to {out}: {len(publication.files)} files, every digest is the one that was published",
    ]
