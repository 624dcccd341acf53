"""A publication of the hand-made manifest, for tests of what is written, pushed and pulled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from curation.manifest.manifest import Manifest
from curation.publishing.config_names import config_names
from curation.publishing.member import Member
from curation.publishing.publication import Publication
from curation.publishing.repository import Request, write_repository
from curation.publishing.tables import part_tables
from curation.sources.source import Source

REPOSITORY = "lab/lists"


def request_of(
    *manifests: Manifest,
    sources: Mapping[str, Source] | None = None,
    tag: str = "1.0.0",
    repository: str = REPOSITORY,
    **options: Any,
) -> Request:
    """Return the request to publish some manifests, all with the same sources."""
    configs = config_names([manifest.header for manifest in manifests])
    members = tuple(
        Member(manifest, config, sources or {}, **options)
        for manifest, config in zip(manifests, configs, strict=True)
    )
    tables = tuple(table for member in members for table in part_tables(member))
    return Request(repository, tag, members, tables)


def write(folder: Path, request: Request) -> Publication:
    """Write a publication into a new folder."""
    folder.mkdir(parents=True)
    return write_repository(request, folder).publication


def changed(manifest: Manifest, **fields: Any) -> Manifest:
    """Return a manifest with other fields in its header."""
    return Manifest(msgspec.structs.replace(manifest.header, **fields), manifest.lists)


def files_below(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files below a folder, by relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
