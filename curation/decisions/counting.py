"""Counts and figures of a manifest after its lists have changed: made anew where sources are at hand, else dropped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from curation.canonical import sha256_of_lines
from curation.manifest.header import Figure, Header, PartEntry, classes_in
from curation.manifest.manifest import Manifest
from curation.manifest.views import count_annotated, count_objects, locate_images
from curation.sources.source import Source


def changed_entry(
    header: Header,
    entry: PartEntry,
    ids: Sequence[str],
    removed: Collection[str],
    added: Collection[str],
    sources: Mapping[str, Source],
) -> PartEntry:
    """Return the entry of a part with another list: its length, digest, and counts where its sources are given.

    Raises
    ------
    ManifestError
        An image is in none of the part's sources, or a class has no role in the manifest.
    """
    annotated, boxes = _counts(header, entry, ids, sources)
    return msgspec.structs.replace(
        entry,
        selection=f"{entry.selection} By decision {len(removed)} images left and {len(added)} joined.",
        images=len(ids),
        annotated_images=annotated,
        boxes=boxes,
        sha256=sha256_of_lines(ids),
        repeats=len(ids) - len(set(ids)),
    )


def changed_figures(
    header: Header, parts: Sequence[PartEntry], changed: Collection[str]
) -> tuple[Figure, ...]:
    """Return the figures of a manifest after some parts have changed.

    Numbers of images are those of the new lists. What else cannot be told to belong to unchanged parts alone is no
    longer obtained: its name does not begin with that of such a part.
    """
    if not changed:
        return header.figures
    images = {part.name: part.images for part in parts}
    unchanged = tuple(f"{name}." for name in images if name not in changed)
    return tuple(
        figure if figure.name.startswith(unchanged) else _after_review(figure, header.version, images)
        for figure in header.figures
    )


def _after_review(figure: Figure, version: str, images: Mapping[str, int | None]) -> Figure:
    part, _, what = figure.name.rpartition(".")
    if part in images and what == "images":
        obtained, why = images[part], "the list was changed by decisions of reviewers"
        same = obtained == figure.paper
        return msgspec.structs.replace(figure, obtained=obtained, explanation="" if same else why)
    why = f"not counted since the lists of version {version} were changed by decisions of reviewers"
    return msgspec.structs.replace(figure, obtained=None, explanation=why)


def _counts(
    header: Header, entry: PartEntry, ids: Sequence[str], sources: Mapping[str, Source]
) -> tuple[int | None, dict[str, int]]:
    """Return annotated images and objects by role; None and nothing where a source is not given."""
    if not set(entry.sources) <= set(sources):
        return None, {}
    parts = (msgspec.structs.replace(entry, subset_of=""),)
    once = Manifest(msgspec.structs.replace(header, parts=parts), {entry.name: tuple(dict.fromkeys(ids))})
    images = locate_images(once, entry.name, sources)
    if any(one.objects is None for one in images.sources):
        return count_annotated(images), {}
    boxes, annotated = count_objects(classes_in(header, entry), entry.view, images)
    return annotated, boxes
