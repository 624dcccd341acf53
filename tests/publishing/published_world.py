"""A publication of the hand-made manifest, for tests of what is written, pushed and pulled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from curation.manifest.manifest import Manifest
from curation.publishing.member import Member, Request, config_names
from curation.publishing.publication import Publication
from curation.publishing.repository import write_repository
from curation.publishing.tables import part_tables
from curation.sources.source import Source
from tests.made_source import make_source
from tests.publishing.tiny_sources import make_manifest

REPOSITORY = "lab/lists"
CLOSED, WILDERNESS = ["voc2007:000009", "voc2007:000012"], ["coco:000000000009", "coco:000000000100"]


def tiny() -> tuple[Manifest, dict[str, Source]]:
    """Return a manifest of two parts and the sources of both."""
    voc = make_source(
        "voc2007",
        "voc2007",
        [("000009", 9, "000009.jpg", 50, 40), ("000012", 12, "000012.jpg", 60, 30)],
        [
            (1, "dog", (5, 6, 7, 8), {"id": 3}),
            (0, "cat", (0, 0, 50, 40), {"id": 4}),
            (1, "cat", (10, 11, 12, 13), {"id": 5, "difficult": 1}),
        ],
        {8: "cat", 12: "dog"},
    )
    coco = make_source(
        "coco",
        "coco",
        [("000000000100", 100, "000000000100.jpg", 640, 480), ("000000000009", 9, "", 0, 0)],
        [
            (0, "elephant", (0.1, 1 / 3, 10.25, 1e-3), {"id": 4, "area": 7.7}),
            (0, "elephant", (3, 4, 5, 6), {"id": 901, "crowd": 1, "area": 12.5}),
        ],
        {22: "elephant"},
    )
    sources = {"voc": voc, "coco": coco}
    parts = {"closed": ("voc", CLOSED), "wilderness": ("coco", WILDERNESS)}
    return make_manifest(parts, sources, roles={"wilderness": "wilderness"}), sources


def request_of(
    *manifests: Manifest,
    sources: Mapping[str, Source] | None = None,
    tag: str = "1.0.0",
    repository: str = REPOSITORY,
    date: str = "",
    **options: Any,
) -> Request:
    """Return the request to publish some manifests, all with the same sources."""
    configs = config_names([manifest.header for manifest in manifests])
    members = tuple(
        Member(manifest, config, sources or {}, **options) for manifest, config in zip(manifests, configs, strict=True)
    )
    tables = tuple(table for member in members for table in part_tables(member))
    return Request(repository, tag, members, tables, date=date)


def write(folder: Path, request: Request) -> Publication:
    """Write a publication into a new folder."""
    folder.mkdir(parents=True)
    return write_repository(request, folder).publication


def changed(manifest: Manifest, **fields: Any) -> Manifest:
    """Return a manifest with other fields in its header."""
    return Manifest(msgspec.structs.replace(manifest.header, **fields), manifest.lists)


def files_below(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files below a folder, by relative path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
