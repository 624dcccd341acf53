"""``curation pull``: a publication brought back from a hub, every file and every manifest checked."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from curation.cli.output import Answer, Table, table_lines, warn
from curation.cli.outputs import NewFolder

if TYPE_CHECKING:
    from curation.publishing.publication import Publication


@dataclass(frozen=True)
class Options:
    """Bring a publication back from a hub, every file and every manifest checked.

    Attributes
    ----------
    publication
        a dataset repository, and its tag or a commit of 40 hex digits
    out
        a new folder
    digest
        the digest that the publication must have
    """

    publication: Annotated[str, "ORG/NAME@VERSION"]
    _: KW_ONLY
    out: Annotated[Path, NewFolder(), "DIR"]
    digest: Annotated[str, "SHA256"] = ""


def run(options: Options) -> Answer:
    """Fetch, check and report; nothing is written unless all of it is what was published."""
    from curation.publishing.hub import pull

    publication = pull(options.publication, options.out, digest=options.digest)
    name = options.publication.partition("@")[0]
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
    return Answer(data, _lines(publication, options.out))


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
