"""`publish`: manifests as a dataset repository on a hub, or in a folder with exactly its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from curation.benchmarks.leaderboard import markdown_groups, ranked_groups
from curation.benchmarks.registry import find_benchmark
from curation.core.arguments import checked
from curation.core.errors import PublishError, UsageError
from curation.core.tables import printable
from curation.core.writing import publishing_folder
from curation.evaluation.leaderboard_rows import read_leaderboard_rows
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.publishing.croissant import derived, read_statements
from curation.publishing.hub import HubRepository, Pushed, push
from curation.publishing.member import (
    Member,
    PlannedTable,
    Request,
    Results,
    config_names,
    decisions_behind,
    published_lists,
)
from curation.publishing.publication import check_repository_name
from curation.publishing.repository import Written, write_repository
from curation.publishing.tables import part_tables
from curation.review.decisions.decision import Decision
from curation.review.decisions.files import read_decision_files
from curation.sources.opening import open_slots
from curation.sources.source_specs import Reading, Sources

Layout = Literal["curation", "findmeifyoucan"]


@dataclass(frozen=True)
class Published:
    """A publication on the hub or in a folder.

    Attributes
    ----------
    request : Request
    written : Written
        The files and their record.
    pushed : Pushed or None
        Its place on the hub.
    folder : Path or None
        Its folder, if it was not pushed.
    """

    request: Request
    written: Written
    pushed: Pushed | None
    folder: Path | None

    def __repr__(self) -> str:
        pub = self.written.publication
        address = self.pushed.address if self.pushed else self.folder
        return f"<Published {pub.repository}@{pub.tag}, {len(pub.files)} files, {pub.digest[:19]}, {address}>"

    def notes(self) -> list[str]:
        """Return notes for the publisher."""
        notes = []
        for member in self.request.members:
            name = f"{member.manifest.header.name} {member.manifest.header.version}"
            absent = [part.name for part in member.manifest.header.parts if part.name not in member.splits]
            if absent:
                notes.append(f"{name}: no list of {', '.join(absent)} is published")
            for source, terms in member.terms().items():
                if source in member.sources and terms.labels == "unstated":
                    notes.append(f"{name}: the annotations of {source} have no stated licence; the card notes it")
            notes += [
                f"{name}: source {entry.name} is not the file from which the manifest was made; the card notes it"
                for entry in member.other_bytes()
            ]
            if member.evidence is not None:
                notes.append(f"{name}: the decisions are published with the names of their reviewers")
        return [*notes, *(f"croissant.json: {remark}" for remark in self.written.remarks)]

    def as_data(self) -> dict[str, Any]:
        """Return the publication as plain data: digest, files and address."""
        publication, pushed = self.written.publication, self.pushed
        data: dict[str, Any] = {
            "repository": publication.repository,
            "tag": publication.tag,
            "digest": publication.digest,
            "files": {path: file.sha256 for path, file in publication.files.items()},
            "folder": None if self.folder is None else str(self.folder),
        }
        if pushed is not None:
            data |= {"commit": pushed.commit, "address": pushed.address}
            data |= {"new": pushed.is_new, "private": pushed.private}
        return data


@checked
def publish(
    manifests: Annotated[Sequence[str | Path | Manifest] | str | Path | Manifest, "MANIFEST"],
    repo: Annotated[str, "--repo ORG/NAME"],
    *,
    tag: Annotated[str | None, "VERSION"] = None,
    dry_run: Path | None = None,
    public: bool = False,
    layout: Layout = "curation",
    sources: Sources | None = None,
    decisions: Sequence[Path] = (),
    licences: Annotated[Mapping[str, str] | None, "--licence NAME=SPDX"] = None,
    date: Annotated[str, "YYYY-MM-DD"] = "",
    results: Annotated[Path | None, "FILE.jsonl"] = None,
    rai: Path | None = None,
    reading: Reading | None = None,
) -> Published:
    """Publish manifests as a dataset repository: card, tables, Croissant, one commit and one tag.

    Parameters
    ----------
    manifests : Manifest, Path or str, or several
        a folder, or NAME@VERSION of an available manifest
    repo : str
        the dataset repository
    tag : str, optional
        version of the repository, MAJOR.MINOR.PATCH; by default that of the manifest, required for several
    dry_run : Path or str, optional
        write exactly the files into a new folder, and push nothing
    public : bool
        make the repository public; a new one is private
    layout : {"curation", "findmeifyoucan"}
        findmeifyoucan: the configs and columns of the data set that its authors published
    sources : mapping of str to path or annotations, optional
        its labels are published too if their licence allows it
    decisions : sequence of Path
        the decisions behind a reviewed manifest, reviewers' names included: .jsonl or .csv
    licences : mapping of str to str, optional
        licence of data of your own, such as CC-BY-4.0; NAME is a source
    date : str
        date of publication in the files (default: today, UTC)
    results : Path, optional
        for the card: results of exactly these manifests, as evaluate --append wrote them
    rai : Path, optional
        your statements on responsible use, for the Croissant description: a TOML file (dataBiases = "…")
    reading : Reading, optional
        How the sources are read.

    Raises
    ------
    PublishError
        A licence forbids it, the hub refuses, or the published version has other content.
    UsageError
        A name or option does not fit.

    Examples
    --------
    >>> import curation, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = curation.publish("elephant/val2017", "mylab/elephant", dry_run=pathlib.Path(folder) / "out")
    ...     sorted(path.name for path in made.folder.iterdir() if path.suffix == ".md")
    ['README.md']
    """
    check_repository_name(repo)
    several = [manifests] if isinstance(manifests, Manifest | Path | str) else list(manifests)
    loaded = [lists if isinstance(lists, Manifest) else load_manifest(lists) for lists in several]
    members = _members(loaded, sources or {}, decisions, licences or {}, reading or Reading())
    digests = [manifest.digest for manifest in loaded]
    request = Request(
        repository=repo,
        tag=_tag(tag, loaded),
        members=tuple(members),
        tables=tuple(_tables(members, layout)),
        layout=layout,
        date=date or datetime.now(UTC).date().isoformat(),
        statements={**derived(members), **({} if rai is None else read_statements(rai))},
        results=None if results is None else _results(results, digests),
    )
    if dry_run is not None:
        with publishing_folder(dry_run) as partial:
            return Published(request, write_repository(request, partial), None, dry_run)
    hub = HubRepository(repo)
    # A missing token is reported before the tables are written, which takes minutes.
    hub.require_token()
    with TemporaryDirectory(prefix="curation-publish-") as folder:
        written = write_repository(request, Path(folder))
        return Published(request, written, push(hub, Path(folder), written.publication, public=public), None)


def _results(path: Path, digests: Sequence[str]) -> Results:
    """Return the results of a file; all must be of manifests with these digests."""
    read = read_leaderboard_rows(path)
    if read.torn or not read.rows:
        raise PublishError(
            "The results end in an incomplete line" if read.torn else "The file contains no result",
            where=f"--results {path}",
            expected="one complete record per line",
            hint="curation evaluate … --append FILE.jsonl writes it, and repairs a line that was cut off",
        )
    for number, row in read.rows:
        digest = row.manifest.digest if row.manifest else ""
        if digest not in digests:
            manifest_text = f"{row.manifest.name} {row.manifest.version}, {digest}" if row.manifest else "no manifest"
            raise PublishError(
                "Result of another manifest",
                where=f"--results {path.name}, line {number} ({printable(row.name)})",
                expected=" or ".join(digests),
                found=manifest_text,
                hint="curation evaluate … --append FILE.jsonl writes a file for these manifests alone",
            )
    return Results(read.data, "\n".join(markdown_groups(ranked_groups(read.rows), "###")))


def _tag(tag: str | None, manifests: Sequence[Manifest]) -> str:
    """Return the tag; several manifests need an explicit one, since a change of any of them is a new version."""
    if tag is not None:
        return tag
    if len(manifests) > 1:
        raise UsageError(
            "A collection of manifests needs a version",
            where="--tag",
            expected="--tag MAJOR.MINOR.PATCH",
            found=", ".join(f"{manifest.header.name} {manifest.header.version}" for manifest in manifests)[:300],
        )
    return manifests[0].header.version


def _members(
    manifests: Sequence[Manifest],
    raw_sources: Mapping[str, Any],
    decisions: Sequence[Path],
    licences: Mapping[str, str],
    reading: Reading,
) -> list[Member]:
    """Return the published content of each manifest."""
    configs = config_names([manifest.header for manifest in manifests])
    entries = [entry for manifest in manifests for entry in manifest.header.sources]
    names = {entry.name: None for entry in entries}
    datasets = {entry.dataset: None for entry in entries}
    for option, requested, known in (
        ("--licence", licences, names),
        ("--source", [key.partition("@")[0] for key in raw_sources], names | datasets),
    ):
        if strange := sorted(set(requested) - set(known)):
            raise UsageError(
                "Unknown source of these manifests",
                where=f"{option} {printable(strange[0][:100])}",
                expected=", ".join(names),
            )
    members = []
    for manifest, config, evidence in zip(manifests, configs, _evidence(decisions, manifests), strict=True):
        source_names = {name for entry in manifest.header.sources for name in (entry.name, entry.dataset)}
        members.append(
            Member(
                manifest=published_lists(manifest),
                config=config,
                sources=open_slots(
                    {key: raw for key, raw in raw_sources.items() if key.partition("@")[0] in source_names},
                    manifest.slots,
                    reading,
                ),
                evidence=evidence,
                licences=licences,
            )
        )
    return members


def _evidence(decisions: Sequence[Path], manifests: Sequence[Manifest]) -> list[tuple[Decision, ...] | None]:
    """Return the decisions behind each manifest, or None; every file of decisions must belong to a manifest."""
    if not decisions:
        return [None] * len(manifests)
    rows = [row for file in read_decision_files(decisions) for row in file.decisions]
    by_manifest: list[tuple[Decision, ...] | None] = []
    refused: PublishError | None = None
    for manifest in manifests:
        try:
            by_manifest.append(decisions_behind(manifest, rows))
        except PublishError as error:
            refused = error
            by_manifest.append(None)
    if refused is not None and not any(by_manifest):
        raise refused
    return by_manifest


def _tables(members: Sequence[Member], layout: Layout) -> list[PlannedTable]:
    """Return the tables of all parts in the requested layout."""
    tables = part_tables if layout == "curation" else find_benchmark(layout).tables
    if tables is None:
        raise UsageError("The benchmark has no published dataset", where=f"--layout {layout}")
    return [table for member in members for table in tables(member)]
