"""Sources and manifests made by hand, for tests of single steps."""

from __future__ import annotations

from curation.core.canonical import sha256_of_lines
from curation.manifest.header import SCHEMA_VERSION, ClassEntry, Header, LabelView, Paper, PartEntry, Rule, SourceEntry
from curation.manifest.manifest import Manifest
from curation.sources.source import Source


def make_manifest(
    parts: dict[str, tuple[str, list[str]]],
    sources: dict[str, Source],
    *,
    view: LabelView | None = None,
    roles: dict[str, str] | None = None,
    order: str = "code_point",
) -> Manifest:
    """Make a manifest with the known classes cat (1) and dog (2), and elephant unknown."""
    entries = tuple(
        PartEntry(
            name=name,
            role=(roles or {}).get(name, "test"),
            sources=(slot,),
            selection="by hand",
            view=view or LabelView(),
            order=order,
            images=len(ids),
            sha256=sha256_of_lines(ids),
        )
        for name, (slot, ids) in parts.items()
    )
    header = Header(
        schema_version=SCHEMA_VERSION,
        name="hand/made",
        version="1.0.0",
        title="Two tiny sources",
        paper=Paper(title="t", authors="a", year=2020, venue="v", bibtex="b"),
        taxonomy="OSOD-I",
        origin="regenerated",
        classes=(
            ClassEntry(name="cat", role="known", index=1),
            ClassEntry(name="dog", role="known", index=2, aliases=("hound",)),
            ClassEntry(name="elephant", role="unknown", index=-1),
        ),
        parts=entries,
        sources=tuple(
            SourceEntry(
                name=slot,
                dataset=one.dataset,
                part=one.part,
                namespace=one.namespace,
                licence="",
                media_redistributable=False,
                files=(),
            )
            for slot, one in sources.items()
        ),
        rule=Rule(protocol="hand", algorithm_version=1, parameters={}),
    )
    return Manifest(header=header, lists={name: tuple(ids) for name, (_, ids) in parts.items()})
