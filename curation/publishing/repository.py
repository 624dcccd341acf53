"""A dataset repository as a folder: manifests and lists as they are, tables, card, Croissant, citation, record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date as day
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from curation.canonical import sha256_of_bytes, sha256_of_file
from curation.errors import PublishError, UsageError
from curation.manifest.header import VERSION
from curation.manifest.manifest import manifest_files
from curation.publishing.card import HUB, Configs, Results, Told, card_text, title_of
from curation.publishing.croissant import CROISSANT_FILE, check_croissant, croissant_bytes
from curation.publishing.examples import example_photos, example_row
from curation.publishing.findings import Audit
from curation.publishing.member import EVIDENCE_FILE, Member, check_member, evidence_bytes
from curation.publishing.papers import reference
from curation.publishing.parquet import write_parquet
from curation.publishing.picture import draw, facts_of, picture_path
from curation.publishing.publication import (
    RECORD_FILE,
    SCHEMA_VERSION,
    Publication,
    PublishedFile,
    PublishedManifest,
    PublishedPart,
    record_bytes,
)
from curation.publishing.rai import Statement
from curation.publishing.tables import PlannedTable, planned_tables

CARD_FILE = "README.md"
RESULTS_FILE = "results.jsonl"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_LONGEST_NAME = 96


@dataclass(frozen=True)
class Request:
    """What is to be published, and as what.

    Attributes
    ----------
    repository : str
        ``ORG/NAME``.
    tag : str
        ``MAJOR.MINOR.PATCH``.
    members : tuple of Member
    tables : tuple of PlannedTable
        Of their parts.
    layout : {"curation", "findmeifyoucan"}
        Whose columns these tables have.
    date : str
        Of publication, ISO 8601; it is no part of the identity of a publication.
    statements : mapping of str to text, texts or bool
        On responsible use (see `curation.publishing.rai`).
    audits : mapping of str to Audit
        What audits found, by the digest of their manifest.
    results : Results or None
        Scores of these manifests.
    """

    repository: str
    tag: str
    members: tuple[Member, ...]
    tables: tuple[PlannedTable, ...]
    layout: str = "curation"
    date: str = ""
    statements: Mapping[str, Statement] = field(default_factory=dict)
    audits: Mapping[str, Audit] = field(default_factory=dict)
    results: Results | None = None


@dataclass(frozen=True)
class Written:
    """A repository that was written, and what mlcroissant remarks on its description."""

    publication: Publication
    remarks: tuple[str, ...]


def check_request(request: Request) -> None:
    """Raise unless names, tag and date are well formed and every manifest may be published as asked.

    Raises
    ------
    UsageError, PublishError
        See `curation.publishing.member.check_member` for the terms of the sources.
    """
    check_repository_name(request.repository)
    if not re.fullmatch(VERSION, request.tag):
        raise UsageError(
            "The tag is no version",
            where="--tag",
            expected="MAJOR.MINOR.PATCH",
            found=ascii(request.tag[:40]),
        )
    if request.date:
        try:
            well_formed = day.fromisoformat(request.date).isoformat() == request.date
        except ValueError:
            well_formed = False
        if not well_formed:
            raise UsageError("The date is none", where="--date", expected="YYYY-MM-DD", found=ascii(request.date[:40]))
    for member in request.members:
        check_member(member)
    _configs(planned_tables(request.members, request.tables))


def check_repository_name(name: str) -> None:
    """Raise `UsageError` unless a text can name a dataset repository of a hub."""
    well_formed = re.fullmatch(f"{_NAME}/{_NAME}", name) and not re.search(r"--|\.\.|\.git$", name)
    if not well_formed or len(name) > _LONGEST_NAME:
        raise UsageError(
            "This cannot be the name of a dataset repository",
            where="--repo",
            expected="ORG/NAME of letters, digits, '-', '_' and '.', at most 96 characters",
            found=ascii(name[:100]),
        )


def write_repository(request: Request, folder: Path) -> Written:
    """Write all files of a repository into an empty folder, the same bytes for the same request.

    Raises
    ------
    PublishError, UsageError
        See `check_request`; or the Croissant description is not valid.
    """
    check_request(request)
    tables = planned_tables(request.members, request.tables)
    configs = _configs(tables)
    files = _manifest_files(request.members)
    loaded = _configs([table for table in tables if not table.empty])
    # The tables come first: the card shows a row of them.
    written = {table.path: _write_table(table, folder) for table in tables}
    told = _told(request, folder)
    contents = _pictures(request.members, files)
    if request.results is not None:
        files[RESULTS_FILE] = request.results.data
    # The day of a publication is no part of what it says: the same content on another day is the same version.
    for name, text in (
        (CARD_FILE, partial(card_text, request.repository, request.tag, request.members, loaded, told)),
        (CITATION_FILE, partial(citation_text, request.repository, request.tag, request.members)),
    ):
        files[name] = text(date=request.date).encode("utf-8")
        if request.date:
            contents[name] = sha256_of_bytes(text(date="").encode("utf-8"))
    published = {
        path: PublishedFile(sha256=sha256_of_bytes(data), size=len(data), content=contents.get(path, ""))
        for path, data in files.items()
    }
    for path, data in files.items():
        _place(folder, path).write_bytes(data)
    published |= written
    published[CROISSANT_FILE] = _write_croissant(request, folder, tables, configs, published)
    remarks = check_croissant(folder / CROISSANT_FILE)
    publication = Publication(
        schema_version=SCHEMA_VERSION,
        repository=request.repository,
        tag=request.tag,
        layout=request.layout,
        manifests=tuple(_published(member, request.layout) for member in request.members),
        files=dict(sorted(published.items())),
    )
    (folder / RECORD_FILE).write_bytes(record_bytes(publication))
    return Written(publication, remarks)


def _configs(tables: Sequence[PlannedTable]) -> dict[str, dict[str, str]]:
    configs: dict[str, dict[str, str]] = {}
    for table in tables:
        splits = configs.setdefault(table.config, {})
        if table.split in splits:
            raise PublishError(
                "Two tables would be one config and split",
                where=f"{table.config}/{table.split}",
                hint="publish these manifests in repositories of their own",
            )
        splits[table.split] = table.path
    return configs


def _manifest_files(members: Sequence[Member]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for member in members:
        for name, data in manifest_files(member.manifest).items():
            files[f"{member.folder}/{name}"] = data
        if member.evidence is not None:
            files[f"{member.folder}/{EVIDENCE_FILE}"] = evidence_bytes(member.evidence)
    return files


def _told(request: Request, folder: Path) -> Told:
    photos = {one.config: example_photos(request.tables, folder, one.config) for one in request.members}
    return Told(request.statements, request.audits, request.results, example_row(request.tables, folder), photos)


def _pictures(members: Sequence[Member], files: dict[str, bytes]) -> dict[str, str]:
    """Add the picture of each manifest to the files, and return the digest of what each shows."""
    facts = {picture_path(member.config): facts_of(member.manifest.header) for member in members}
    files |= {path: draw(one) for path, one in facts.items()}
    return {path: one.digest for path, one in facts.items()}


def _write_table(table: PlannedTable, folder: Path) -> PublishedFile:
    path = _place(folder, table.path)
    content = write_parquet(path, table.rows(), table.schema)
    return PublishedFile(sha256=sha256_of_file(path), size=path.stat().st_size, content=content)


def _write_croissant(
    request: Request,
    folder: Path,
    tables: Sequence[PlannedTable],
    configs: Configs,
    published: Mapping[str, PublishedFile],
) -> PublishedFile:
    """Write the description; its identity names the content of files, and not the day of the publication."""
    schemas = {table.path: table.filled_schema() for table in tables}

    def described(digests: Mapping[str, str], date: str) -> bytes:
        return croissant_bytes(
            request.repository, request.tag, request.members, configs, schemas, digests, date, request.statements
        )

    data = described({path: file.sha256 for path, file in published.items()}, request.date)
    content = described({path: file.identity for path, file in published.items()}, "")
    (folder / CROISSANT_FILE).write_bytes(data)
    return PublishedFile(sha256=sha256_of_bytes(data), size=len(data), content=sha256_of_bytes(content))


def _published(member: Member, layout: str) -> PublishedManifest:
    header = member.manifest.header
    own = layout == "curation"
    parts = tuple(
        PublishedPart(
            name=part.name,
            split=member.splits.get(part.name, "") if own else "",
            table=f"data/{member.config}/{member.splits[part.name]}.parquet"
            if own and part.name in member.splits
            else "",
            images=part.images,
            labelled=part.name in member.labelled,
        )
        for part in header.parts
    )
    return PublishedManifest(
        name=header.name,
        version=header.version,
        digest=member.manifest.digest,
        folder=member.folder,
        config=member.config,
        parts=parts,
    )


def _place(folder: Path, path: str) -> Path:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


CITATION_FILE = "CITATION.cff"


def citation_text(repository: str, tag: str, members: Sequence[Member], date: str = "") -> str:
    """Return the file in the Citation File Format 1.2.0.

    Parameters
    ----------
    date : str
        Of publication, ISO 8601; ``""`` for none.
    """
    papers = dict.fromkeys(member.manifest.header.paper for member in members)
    digests = [member.manifest.digest for member in members]
    data: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "Please cite the papers of the protocols that you use, and this dataset by version and digest.",
        "type": "dataset",
        "title": title_of(members),
        "authors": [{"name": repository.partition("/")[0]}],
        "version": tag,
        **({"date-released": date} if date else {}),
        "url": HUB + repository,
        "identifiers": [{"type": "other", "value": one, "description": "manifest digest"} for one in digests],
        "references": [reference(paper) for paper in papers],
    }
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1000)
