"""``curation pull``: a publication brought back from a hub, every file and every manifest checked."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from curation.cli.output import Table, emit, table_lines, warn
from curation.cli.outputs import NewFolder
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.publishing.publication import Publication


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation pull``."""
    parser.add_argument(
        "publication",
        metavar="ORG/NAME@VERSION",
        help="a dataset repository, and its tag or a commit of 40 hex digits",
    )
    parser.add_argument("--out", type=NewFolder(), required=True, metavar="DIR", help="a new folder")
    parser.add_argument(
        "--digest", default="", metavar="SHA256", help="the digest that the publication must have"
    )
    parser.add_argument("--json", action="store_true", help="print what was pulled as JSON")


def run(options: argparse.Namespace) -> int:
    """Fetch, check and report; nothing is written unless all of it is what was published."""
    from curation.publishing.hub import HubRepository, pull

    name, at, version = options.publication.partition("@")
    if not at:
        raise UsageError("Which version is to be pulled?", where=name[:200], expected="ORG/NAME@VERSION")
    publication = pull(HubRepository(name), version, options.out, digest=options.digest)
    if publication.repository != name:
        warn(f"{name} holds what was published as {publication.repository}")
    data = {
        "repository": publication.repository,
        "tag": publication.tag,
        "digest": publication.digest,
        "folder": str(options.out),
        "files": len(publication.files),
        "manifests": [
            {
                "name": one.name,
                "version": one.version,
                "digest": one.digest,
                "folder": str(options.out / one.folder),
            }
            for one in publication.manifests
        ],
    }
    emit(data, _lines(publication, options.out), as_json=options.json)
    return 0


def _lines(publication: Publication, out: Path) -> list[str]:
    rows = tuple(
        (
            f"{one.name} {one.version}",
            f"{sum(bool(part.table) for part in one.parts)} of {len(one.parts)}",
            one.digest[:19],
            str(out / one.folder),
        )
        for one in publication.manifests
    )
    lines = table_lines(Table("Manifests", ("manifest", "parts with a table", "digest", "folder"), rows))
    return [
        *lines,
        f"{publication.repository}@{publication.tag}  {publication.digest}",
        f"pulled to {out}: {len(publication.files)} files, every digest is the one that was published",
    ]
