"""``curation publish``: manifests as a dataset repository on a hub, or in a folder that holds exactly its files."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from curation.cli.options import SourceOptions
from curation.cli.output import Answer, Table, note, table_lines
from curation.cli.outputs import NewFolder
from curation.cli.signature import pairs

if TYPE_CHECKING:
    from curation.benchmarks.publishing import Published


@dataclass(frozen=True)
class Options(SourceOptions):
    """Manifests as a dataset repository on a hub: card, tables, Croissant, citation, one commit and one tag.

    Attributes
    ----------
    manifest
        a folder, or NAME@VERSION of an available manifest
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
    from curation.benchmarks.publishing import publish
    from curation.manifest.locate import load_manifest
    from curation.publishing.repository import check_repository_name

    check_repository_name(options.repo)
    manifests = [load_manifest(one) for one in options.manifest]
    known = {entry.name for one in manifests for entry in one.header.sources}
    media = pairs(options.media, "--media", bare="", known=known) if options.media else None
    made = publish(
        manifests,
        options.repo,
        tag=options.tag,
        dry_run=options.dry_run,
        public=options.public,
        layout=options.layout,
        sources=options.sources,
        decisions=options.decisions,
        licences=pairs(options.licence, "--licence"),
        media=None if media is None else {name: Path(folder) for name, folder in media.items()},
        date=options.date,
        class_tree=options.class_tree,
        class_names=options.class_names,
        reading=options.reading,
    )
    for text in made.notes():
        note(text)
    return Answer(made.as_data(), _lines(made))


def _lines(made: Published) -> list[str]:
    publication, pushed = made.written.publication, made.pushed
    rows = tuple((path, f"{file.size:,}", file.sha256[:19]) for path, file in publication.files.items())
    lines = table_lines(Table("Files", ("path", "bytes", "SHA-256"), rows))
    lines.append(f"{publication.repository}@{publication.tag}  {publication.digest}")
    if pushed is None:
        return [*lines, f"written to {made.folder}; nothing was pushed"]
    state = "private" if pushed.private else "public"
    what = "published" if pushed.is_new else "already published, nothing was pushed:"
    return [*lines, f"{what} {pushed.address} ({state}), commit {pushed.commit}"]
