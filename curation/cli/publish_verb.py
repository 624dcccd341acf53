"""``curation publish``: manifests as a dataset repository on a hub, or in a folder that holds exactly its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

from curation.cli.options import SourceOptions, photo_folders
from curation.cli.output import Answer, Table, note, printable, table_lines
from curation.cli.outputs import NewFolder
from curation.cli.signature import pairs
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.decisions.decision import Decision
    from curation.manifest.manifest import Manifest
    from curation.publishing.hub import Pushed
    from curation.publishing.member import Member
    from curation.publishing.repository import Request, Written
    from curation.publishing.tables import PlannedTable

LAYOUTS = ("curation", "findmeifyoucan")


@dataclass(frozen=True)
class Options(SourceOptions):
    """Manifests as a dataset repository on a hub: card, tables, Croissant, citation, one commit and one tag.

    Attributes
    ----------
    manifest
        a folder, or NAME@VERSION of a manifest at hand
    repo
        the dataset repository
    tag
        version of the repository, MAJOR.MINOR.PATCH; by default that of the manifest, required for
        several
    dry_run
        write exactly the files into a new folder, and push nothing
    public
        make the repository public; a new one is private
    layout
        findmeifyoucan: the configs and columns of the data set that its authors published
    decisions
        the decisions behind a reviewed manifest, reviewers' names included: .jsonl or .csv (repeatable)
    licence
        licence of data of your own, such as CC-BY-4.0; NAME is a source (repeatable)
    media
        publish the photos below a folder too, where every source's licence allows it (repeatable)
    date
        date of publication, to be stated in the files
    class_tree
        findmeifyoucan: bbox_labels_600_hierarchy.json, to number Open Images' categories as published
    class_names
        findmeifyoucan: class-descriptions-boxable.csv, to number Open Images' categories as published
    """

    manifest: tuple[str, ...]
    _: KW_ONLY
    repo: Annotated[str, "ORG/NAME"]
    tag: Annotated[str | None, "VERSION"] = None
    dry_run: Annotated[Path | None, NewFolder(), "DIR"] = None
    public: bool = False
    layout: Literal["curation", "findmeifyoucan"] = "curation"
    decisions: tuple[Path, ...] = ()
    licence: tuple[Annotated[str, "NAME=SPDX"], ...] = ()
    media: tuple[Annotated[str, "[NAME=]DIR"], ...] = ()
    date: Annotated[str, "YYYY-MM-DD"] = ""
    class_tree: Path | None = None
    class_names: Path | None = None


def run(options: Options) -> Answer:
    """Write or push the repository and report what it holds."""
    from curation.publishing.repository import check_repository_name

    check_repository_name(options.repo)
    request = _request(options)
    if options.dry_run is not None:
        written, pushed = _write(request, options.dry_run), None
    else:
        written, pushed = _push(request, public=options.public)
    for text in _notes(request, written):
        note(text)
    return Answer(_data(options, written, pushed), _lines(options, request, written, pushed))


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


def _request(options: Options) -> Request:
    from curation.manifest.locate import load_manifest
    from curation.publishing.repository import Request

    manifests = [load_manifest(one) for one in options.manifest]
    members = _members(options, manifests)
    return Request(
        repository=options.repo,
        tag=_tag(options, manifests),
        members=tuple(members),
        tables=tuple(_tables(options, members)),
        layout=options.layout,
        date=options.date,
    )


def _tag(options: Options, manifests: Sequence[Manifest]) -> str:
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


def _data(options: Options, written: Written, pushed: Pushed | None) -> dict[str, Any]:
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


def _lines(options: Options, request: Request, written: Written, pushed: Pushed | None) -> list[str]:
    publication = written.publication
    rows = tuple((path, f"{file.size:,}", file.sha256[:19]) for path, file in publication.files.items())
    lines = table_lines(Table("Files", ("path", "bytes", "SHA-256"), rows))
    lines.append(f"{publication.repository}@{publication.tag}  {publication.digest}")
    if pushed is None:
        return [*lines, f"written to {options.dry_run}; nothing was pushed"]
    state = "private" if pushed.private else "public"
    what = "published" if pushed.is_new else "already published, nothing was pushed:"
    return [*lines, f"{what} {pushed.address} ({state}), commit {pushed.commit}"]


def _members(options: Options, manifests: Sequence[Manifest]) -> list[Member]:
    """Return what is published of each manifest, by the options of the command line."""
    from curation.publishing.member import Member, config_names, published_lists

    configs = config_names([manifest.header for manifest in manifests])
    known = {entry.name for manifest in manifests for entry in manifest.header.sources}
    licences = _of_sources(pairs(options.licence, "--licence"), known, "--licence")
    photos = photo_folders(options.media, "--media", known=known) if options.media else None
    _require_known_sources(options, manifests)
    return [
        Member(
            manifest=published_lists(manifest),
            config=config,
            sources=options.open(manifest.slots, but=_strange(options, manifest)),
            evidence=evidence,
            licences=licences,
            photos=photos,
        )
        for manifest, config, evidence in zip(manifests, configs, _evidence(options, manifests), strict=True)
    ]


def _strange(options: Options, manifest: Manifest) -> set[str]:
    """Return the names of given sources that a manifest does not know."""
    names = {name for entry in manifest.header.sources for name in (entry.name, entry.dataset)}
    return {key.partition("@")[0] for key in options.sources} - names


def _require_known_sources(options: Options, manifests: Sequence[Manifest]) -> None:
    entries = [entry for manifest in manifests for entry in manifest.header.sources]
    names = {name for entry in entries for name in (entry.name, entry.dataset)}
    for key in options.sources:
        if key.partition("@")[0] not in names:
            raise UsageError(
                "There is no such source here",
                where=f"--source {printable(key[:100])}",
                expected=", ".join(dict.fromkeys(entry.name for entry in entries)),
            )


def _of_sources(given: Mapping[str, str], known: set[str], option: str) -> Mapping[str, str]:
    if strange := sorted(set(given) - known):
        raise UsageError(
            f"{option} names no source of these manifests",
            where=printable(strange[0][:80]),
            expected=", ".join(sorted(known)),
        )
    return given


def _evidence(options: Options, manifests: Sequence[Manifest]) -> list[tuple[Decision, ...] | None]:
    """Return the decisions behind each manifest, None where none are given; those given belong to one of them."""
    from curation.decisions.files import read_decision_files
    from curation.errors import PublishError
    from curation.publishing.member import evidence_of

    if not options.decisions:
        return [None] * len(manifests)
    rows = [row for file in read_decision_files(options.decisions) for row in file.decisions]
    found: list[tuple[Decision, ...] | None] = []
    refused: PublishError | None = None
    for manifest in manifests:
        try:
            found.append(evidence_of(manifest, rows))
        except PublishError as error:
            refused = error
            found.append(None)
    if refused is not None and not any(found):
        raise refused
    return found


def _tables(options: Options, members: Sequence[Member]) -> list[PlannedTable]:
    """Return the tables of all parts, in the layout that was asked for."""
    tree, names = options.class_tree, options.class_names
    if options.layout == "curation":
        if tree or names:
            raise UsageError("--class-tree and --class-names belong to --layout findmeifyoucan")
        from curation.publishing.tables import part_tables

        return [table for member in members for table in part_tables(member)]
    from curation.benchmarks.findmeifyoucan.categories import open_images_categories
    from curation.benchmarks.findmeifyoucan.layout import findmeifyoucan_tables

    if (tree is None) != (names is None):
        raise UsageError("--class-tree FILE and --class-names FILE go together")
    categories = open_images_categories(tree, names) if tree and names else ()
    return [table for member in members for table in findmeifyoucan_tables(member, categories)]
