"""Toy manifests of listed images, for tests of what reads a manifest and not of how one is made."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.core.canonical import sha256_of_lines
from curation.manifest.header import (
    ClassEntry,
    FileEntry,
    Header,
    LabelView,
    Paper,
    PartEntry,
    Rule,
    SourceEntry,
    Taxonomy,
)
from curation.manifest.manifest import Manifest, write_manifest

COCO = SourceEntry(
    name="coco",
    dataset="coco",
    part="val2017",
    namespace="coco",
    licence="CC0",
    media_redistributable=False,
    files=(FileEntry(name="truth.json", sha256="sha256:" + "1" * 64, size=1, rows=1),),
)


def listed_part(name: str, ids: Sequence[str], **more: Any) -> PartEntry:
    """A test part of COCO images, selected by hand."""
    return PartEntry(
        name=name,
        role="test",
        sources=("coco",),
        selection="by hand",
        view=LabelView(),
        images=len(ids),
        sha256=sha256_of_lines(ids),
        **more,
    )


def write_toy(
    folder: Path,
    lists: Mapping[str, tuple[str, ...]],
    classes: Sequence[ClassEntry],
    *,
    name: str,
    taxonomy: Taxonomy,
    parts: Sequence[PartEntry] | None = None,
    **more: Any,
) -> str:
    """Write a manifest of lists by part name, and return its folder as a command line takes it."""
    header = Header(
        schema_version=1,
        name=name,
        version="1.0.0",
        title="A toy",
        paper=Paper(title="T", authors="A", year=2025, venue="V", bibtex="@misc{t}"),
        taxonomy=taxonomy,
        origin="as_published",
        classes=tuple(classes),
        parts=tuple(listed_part(one, ids) for one, ids in lists.items()) if parts is None else tuple(parts),
        sources=(COCO,),
        rule=Rule(protocol="toy", algorithm_version=1, parameters={}),
        **more,
    )
    write_manifest(Manifest(header, dict(lists)), folder)
    return str(folder)
