"""Parts and source records of a manifest, made from sources: ids, digests and counts in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from curation.canonical import sha256_of_lines
from curation.manifest.header import ClassEntry, FileEntry, LabelView, PartEntry, PartRole, SourceEntry
from curation.manifest.views import ROLES, PartImages, count_annotated, count_objects
from curation.sources.source import Int64s, Source


@dataclass(frozen=True, slots=True)
class Selection:
    """Some images of one source, before they become a part.

    Attributes
    ----------
    slot : str
        The protocol's name of the source.
    source : Source
    positions : ndarray of int64
        Positions in `source.images`, in any order.
    """

    slot: str
    source: Source
    positions: Int64s


@dataclass(frozen=True, slots=True)
class Part:
    """A part with its ids, sorted by code point."""

    entry: PartEntry
    ids: tuple[str, ...]

    @property
    def boxes(self) -> int | None:
        """Objects of all roles; None from a presence-only source."""
        counts = self.entry.boxes
        return sum(counts.get(role, 0) for role in ROLES) if counts else None

    @property
    def non_crowd_boxes(self) -> int | None:
        """Objects that are no crowd region; None from a presence-only source."""
        return None if self.boxes is None else self.boxes - self.entry.boxes["crowd"]


def make_part(
    name: str,
    role: PartRole,
    selected: Selection,
    classes: Sequence[ClassEntry],
    *,
    view: LabelView,
    rule: str,
    subset_of: str = "",
) -> Part:
    """Return the part that holds the selected images: sorted ids, their digest, and counts under the view."""
    source = selected.source
    native = source.images.native[selected.positions]
    order = np.argsort(native, kind="stable")
    ids = tuple(np.strings.add(f"{source.namespace}:", native[order]).tolist())
    images = PartImages(
        sources=(source,),
        source=np.zeros(len(ids), np.int32),
        position=selected.positions[order].astype(np.int32),
    )
    boxes, annotated = (
        ({}, count_annotated(images)) if source.objects is None else count_objects(classes, view, images)
    )
    entry = PartEntry(
        name=name,
        role=role,
        sources=(selected.slot,),
        selection=rule,
        view=view,
        images=len(ids),
        annotated_images=annotated,
        boxes=boxes,
        sha256=sha256_of_lines(ids),
        subset_of=subset_of,
    )
    return Part(entry=entry, ids=ids)


def source_entry(slot: str, source: Source, *, note: str = "") -> SourceEntry:
    """Return the record of a source as it was read: files with digests, licence, what was dropped."""
    return SourceEntry(
        name=slot,
        dataset=source.dataset,
        part=source.part,
        namespace=source.namespace,
        licence=source.licence,
        media_redistributable=source.media_redistributable,
        files=tuple(
            FileEntry(name=file.name, sha256=file.sha256, size=file.size, rows=file.rows, files=file.files)
            for file in sorted(source.files, key=lambda file: file.name)
        ),
        dropped={reason: count for reason, count in sorted(source.dropped.items()) if count},
        note=note,
    )
