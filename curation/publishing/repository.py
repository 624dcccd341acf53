"""A dataset repository as a folder: unchanged manifests and lists, tables, card, Croissant, record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date as day
from functools import partial
from pathlib import Path

from curation.core.canonical import sha256_of_bytes, sha256_of_file
from curation.core.errors import PublishError, UsageError
from curation.manifest.header import VERSION
from curation.manifest.manifest import manifest_files
from curation.publishing.card import card_text
from curation.publishing.croissant import CROISSANT_FILE, croissant_bytes, missing_statements
from curation.publishing.member import EVIDENCE_FILE, Member, PlannedTable, Request, check_member
from curation.publishing.publication import (
    RECORD_FILE,
    SCHEMA_VERSION,
    Publication,
    PublishedManifest,
    PublishedPart,
    RepositoryFile,
    check_repository_name,
    record_bytes,
)
from curation.publishing.tables import write_parquet
from curation.review.decisions.files import json_lines

CARD_FILE = "README.md"
RESULTS_FILE = "results.jsonl"


@dataclass(frozen=True)
class Written:
    """A written repository, and remarks on properties that its Croissant description lacks."""

    publication: Publication
    remarks: tuple[str, ...]


def check_request(request: Request) -> None:
    """Raise an error if names, tag or date are invalid, or a manifest may not be published as requested.

    Raises
    ------
    UsageError, PublishError
        See `curation.publishing.member.check_member` for the terms of the sources.
    """
    check_repository_name(request.repository)
    if not re.fullmatch(VERSION, request.tag):
        raise UsageError(
            "Invalid version tag", where="--tag", expected="MAJOR.MINOR.PATCH", found=ascii(request.tag[:40])
        )
    if request.date:
        try:
            well_formed = day.fromisoformat(request.date).isoformat() == request.date
        except ValueError:
            well_formed = False
        if not well_formed:
            raise UsageError("Invalid date", where="--date", expected="YYYY-MM-DD", found=ascii(request.date[:40]))
    for member in request.members:
        check_member(member)
    _configs(request.tables)


def write_repository(request: Request, folder: Path) -> Written:
    """Write all files of a repository into an empty folder; the same request gives the same bytes.

    Raises
    ------
    PublishError, UsageError
        See `check_request`.
    """
    check_request(request)
    tables = request.tables
    published: dict[str, RepositoryFile] = {}

    def put(path: str, data: bytes, content: str = "") -> None:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        published[path] = RepositoryFile(sha256=sha256_of_bytes(data), size=len(data), content=content)

    for table in tables:
        path = folder / table.path
        path.parent.mkdir(parents=True, exist_ok=True)
        content = write_parquet(path, table.rows(), table.schema)
        published[table.path] = RepositoryFile(sha256=sha256_of_file(path), size=path.stat().st_size, content=content)
    for member in request.members:
        for name, data in manifest_files(member.manifest).items():
            put(f"{member.folder}/{name}", data)
        if member.evidence is not None:
            put(f"{member.folder}/{EVIDENCE_FILE}", json_lines(member.evidence))
    if request.results is not None:
        put(RESULTS_FILE, request.results.data)
    put(CARD_FILE, card_text(request, _configs([table for table in tables if not table.empty])).encode())
    schemas = {table.path: table.filled_schema() for table in tables}
    # The date is not part of the content: the same content on another day is the same version.
    describe = partial(croissant_bytes, request, _configs(tables), schemas)
    digests = {path: file.sha256 for path, file in published.items()}
    content = sha256_of_bytes(describe({path: file.identity for path, file in published.items()}))
    put(CROISSANT_FILE, describe(digests, request.date), content)
    publication = Publication(
        schema_version=SCHEMA_VERSION,
        repository=request.repository,
        tag=request.tag,
        layout=request.layout,
        manifests=tuple(_published(member, with_splits=request.layout == "curation") for member in request.members),
        files=dict(sorted(published.items())),
    )
    (folder / RECORD_FILE).write_bytes(record_bytes(publication))
    return Written(publication, tuple(missing_statements(request.statements)))


def _configs(tables: Sequence[PlannedTable]) -> dict[str, dict[str, str]]:
    configs: dict[str, dict[str, str]] = {}
    for table in tables:
        splits = configs.setdefault(table.config, {})
        if table.split in splits:
            raise PublishError(
                "Two tables have the same config and split",
                where=f"{table.config}/{table.split}",
                hint="publish these manifests in separate repositories",
            )
        splits[table.split] = table.path
    return configs


def _published(member: Member, *, with_splits: bool) -> PublishedManifest:
    header, splits = member.manifest.header, member.splits if with_splits else {}
    parts = tuple(
        PublishedPart(
            name=part.name,
            split=splits.get(part.name, ""),
            table=f"data/{member.config}/{splits[part.name]}.parquet" if part.name in splits else "",
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
