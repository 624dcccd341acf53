"""``curation publish``: manifests as a dataset repository on a hub, or in a folder that holds exactly its files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from curation.cli.output import Table, emit, printable, table_lines
from curation.cli.outputs import NewFolder
from curation.cli.source_options import add_source_options
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.manifest.manifest import Manifest
    from curation.publishing.hub import Pushed
    from curation.publishing.repository import Request, Written

LAYOUTS = ("curation", "findmeifyoucan")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation publish``."""
    parser.add_argument(
        "manifest", nargs="+", metavar="MANIFEST", help="a folder, or NAME@VERSION of a manifest at hand"
    )
    parser.add_argument("--repo", required=True, metavar="ORG/NAME", help="the dataset repository")
    parser.add_argument(
        "--tag",
        metavar="VERSION",
        help="version of the repository, MAJOR.MINOR.PATCH; by default that of the manifest, required for several",
    )
    parser.add_argument(
        "--dry-run",
        type=NewFolder(),
        metavar="DIR",
        help="write exactly the files into a new folder, and push nothing",
    )
    parser.add_argument(
        "--public", action="store_true", help="make the repository public; a new one is private"
    )
    parser.add_argument(
        "--layout",
        choices=LAYOUTS,
        default="curation",
        help="findmeifyoucan: the configs and columns of the data set that its authors published",
    )
    add_source_options(parser)
    _add_content_options(parser)
    parser.add_argument("--json", action="store_true", help="print what was published as JSON")


def _add_content_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--decisions",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="the decisions behind a reviewed manifest, reviewers' names included: .jsonl or .csv (repeatable)",
    )
    parser.add_argument(
        "--licence",
        action="append",
        default=[],
        metavar="NAME=SPDX",
        help="licence of data of your own, such as CC-BY-4.0; NAME is a source (repeatable)",
    )
    parser.add_argument(
        "--media",
        action="append",
        metavar="[NAME=]DIR",
        help="publish the photos below a folder too, where every source's licence allows it (repeatable)",
    )
    parser.add_argument(
        "--date", default="", metavar="YYYY-MM-DD", help="date of publication, to be stated in the files"
    )
    for name, file in (
        ("tree", "bbox_labels_600_hierarchy.json"),
        ("names", "class-descriptions-boxable.csv"),
    ):
        parser.add_argument(
            f"--class-{name}",
            type=Path,
            metavar="FILE",
            help=f"findmeifyoucan: {file}, to number Open Images' categories as published",
        )


def run(options: argparse.Namespace) -> int:
    """Write or push the repository and report what it holds."""
    from curation.publishing.repository import check_repository_name

    check_repository_name(options.repo)
    request = _request(options)
    if options.dry_run is not None:
        written, pushed = _write(request, options.dry_run), None
    else:
        written, pushed = _push(request, public=options.public)
    for note in _notes(request, written):
        print(f"note: {printable(note)}", file=sys.stderr)
    emit(_data(options, written, pushed), _lines(options, request, written, pushed), as_json=options.json)
    return 0


def _write(request: Request, out: Path) -> Written:
    from curation.publishing.repository import write_repository
    from curation.storage import publishing_folder

    with publishing_folder(out) as partial:
        return write_repository(request, partial)


def _push(request: Request, *, public: bool) -> tuple[Written, Pushed]:
    from curation.publishing.hub import HubRepository, push
    from curation.publishing.repository import write_repository

    hub = HubRepository(request.repository)
    # Said before minutes of writing tables, not after.
    hub.require_token()
    with TemporaryDirectory(prefix="curation-publish-") as folder:
        written = write_repository(request, Path(folder))
        return written, push(hub, Path(folder), written.publication, public=public)


def _request(options: argparse.Namespace) -> Request:
    from curation.cli.publish_members import members_of, tables_of
    from curation.manifest.locate import load_manifest
    from curation.publishing.repository import Request

    manifests = [load_manifest(one) for one in options.manifest]
    members = members_of(options, manifests)
    return Request(
        repository=options.repo,
        tag=_tag(options, manifests),
        members=tuple(members),
        tables=tuple(tables_of(options, members)),
        layout=options.layout,
        date=options.date,
    )


def _tag(options: argparse.Namespace, manifests: Sequence[Manifest]) -> str:
    """Return the tag: no version of one manifest can speak for a collection, which changes when any of them does."""
    if options.tag is not None:
        return str(options.tag)
    if len(manifests) > 1:
        raise UsageError(
            "Several manifests need a version of their collection",
            where="--tag",
            expected="--tag MAJOR.MINOR.PATCH",
            found=", ".join(f"{one.header.name} {one.header.version}" for one in manifests)[:300],
        )
    return manifests[0].header.version


def _notes(request: Request, written: Written) -> list[str]:
    notes = []
    for member in request.members:
        name = f"{member.manifest.header.name} {member.manifest.header.version}"
        absent = [part.name for part in member.manifest.header.parts if part.name not in member.splits]
        if absent:
            notes.append(f"{name}: pinned only, no list is published of {', '.join(absent)}")
        for source, terms in member.terms().items():
            if source in member.sources and terms.labels == "unstated":
                notes.append(
                    f"{name}: no licence is stated for the annotations of {source}; the card says so"
                )
        notes += [
            f"{name}: source {entry.name} is not the very file that the manifest was made from; the card says so"
            for entry in member.other_bytes()
        ]
        if member.evidence is not None:
            notes.append(f"{name}: the decisions are published with the names of their reviewers")
    return [*notes, *(f"croissant.json: {remark}" for remark in written.remarks)]


def _data(options: argparse.Namespace, written: Written, pushed: Pushed | None) -> dict[str, Any]:
    publication = written.publication
    data: dict[str, Any] = {
        "repository": publication.repository,
        "tag": publication.tag,
        "digest": publication.digest,
        "files": {path: file.sha256 for path, file in publication.files.items()},
        "folder": None if options.dry_run is None else str(options.dry_run),
    }
    if pushed is not None:
        data |= {
            "commit": pushed.commit,
            "address": pushed.address,
            "new": pushed.is_new,
            "private": pushed.private,
        }
    return data


def _lines(
    options: argparse.Namespace, request: Request, written: Written, pushed: Pushed | None
) -> list[str]:
    publication = written.publication
    rows = tuple((path, f"{file.size:,}", file.sha256[:19]) for path, file in publication.files.items())
    lines = table_lines(Table("Files", ("path", "bytes", "SHA-256"), rows))
    lines.append(f"{publication.repository}@{publication.tag}  {publication.digest}")
    if pushed is None:
        return [*lines, f"written to {options.dry_run}; nothing was pushed"]
    state = "private" if pushed.private else "public"
    what = "published" if pushed.is_new else "already published, nothing was pushed:"
    return [*lines, f"{what} {pushed.address} ({state}), commit {pushed.commit}"]
