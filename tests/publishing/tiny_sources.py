"""Sources and manifests made by hand, for tests of single steps."""

from __future__ import annotations

import numpy as np

from curation.canonical import sha256_of_lines
from curation.manifest.header import (
    SCHEMA_VERSION,
    ClassEntry,
    Header,
    LabelView,
    Paper,
    PartEntry,
    Rule,
    SourceEntry,
)
from curation.manifest.manifest import Manifest
from curation.sources.source import POSES, Categories, Images, Objects, Source


def make_source(
    dataset: str, namespace: str, images: list[tuple], objects: list[tuple], names: dict[int, str]
) -> Source:
    """Make a source of rows ``(native, number, file_name, width, height)`` and ``(image, class, box, flags)``."""
    flags = [row[3] if len(row) > 3 else {} for row in objects]

    def flag(name: str) -> np.ndarray:
        return np.array([bool(one.get(name)) for one in flags], np.bool_)

    boxes = np.array([row[2] for row in objects], np.float64).reshape(-1, 4)
    place = {name: position for position, name in enumerate(names.values())}
    return Source(
        dataset=dataset,
        part="test",
        namespace=namespace,
        images=Images(
            native=np.array([row[0] for row in images], np.str_),
            numbers=np.array([row[1] for row in images], np.int64),
            file_names=np.array([row[2] for row in images], object),
            widths=np.array([row[3] for row in images], np.int32),
            heights=np.array([row[4] for row in images], np.int32),
        ),
        categories=Categories(tuple(names), tuple(names.values()), ("",) * len(names)),
        objects=Objects(
            image=np.array([row[0] for row in objects], np.int32),
            category=np.array([place[row[1]] for row in objects], np.int32),
            boxes=boxes,
            areas=np.array(
                [one.get("area", box[2] * box[3]) for one, box in zip(flags, boxes, strict=True)], np.float64
            ),
            numbers=np.array([one.get("id", k + 1) for k, one in enumerate(flags)], np.int64),
            crowd=flag("crowd"),
            difficult=flag("difficult"),
            truncated=flag("truncated"),
            occluded=flag("occluded"),
            pose=np.array([POSES.index(one.get("pose", "")) for one in flags], np.int8),
        ),
        files=(),
        licence="",
    )


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
