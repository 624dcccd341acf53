"""The images of a review, from parts or sources: their photos, boxes and proposals, as columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from curation.core.errors import MissingFileError, ReviewError
from curation.core.wording import counted
from curation.manifest.manifest import Manifest
from curation.manifest.views import ROLES, PartObjects, locate_images, view_objects
from curation.review.decisions.sampling import (
    SAMPLE_SALT,
    Order,
    Stratum,
    assigned_reviewers,
    by_hash_rank,
    draw_sample,
)
from curation.review.proposals.evidence import nearest_id_image
from curation.review.proposals.id_classes import name_key
from curation.review.proposals.proposal import Proposal, ProposalSet
from curation.sources.photos import PhotoFolder, size_of_photo
from curation.sources.source import Floats, Int32s, Source


@dataclass(frozen=True, slots=True)
class Boxes:
    """The m boxes of some images.

    Attributes
    ----------
    image : ndarray of int32, shape (m,)
        Position among the images, in ascending order.
    xywh : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels, origin top left.
    labels, roles : tuple of str
        Name of the class, and its role in the part. Without a manifest the ID classes of the proposals decide between
        ``known`` and ``unknown``; without proposals the role is ``""``.
    """

    image: Int32s
    xywh: Floats
    labels: tuple[str, ...]
    roles: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.image)


@dataclass(frozen=True)
class ReviewImages:
    """The n images of a review in the order in which they are shown; all columns have length n.

    Attributes
    ----------
    ids, parts, pools : tuple of str
        Namespaced id, part (or source), and the pool that a decision on the image applies to.
    paths : tuple of Path or None
        The photo; None if it was not found. `arranged` leaves out images without one.
    sizes : ndarray of int32, shape (n, 2)
        Width and height in pixels; 0 where unknown.
    classes : tuple of tuple of str
        Sorted names of the classes that annotations name.
    boxes : Boxes
    proposals : tuple of Proposal or None
    batches : tuple of str
        ``0001``, ``0002``, …
    nearest : tuple of str
        Id of the most similar ID image, ``""`` without such evidence. `arranged` fills the column.
    nearest_paths : tuple of Path or None
        Photo of that ID image.
    details : tuple of tuple of str
        For a pair of photos: the two images, and the evidence. Empty for images.
    assigned : tuple of tuple of str
        Reviewers who judge the image; empty if all reviewers do.
    sample : tuple of Stratum
        Images drawn by hash rank, which bound the remaining errors; empty without a sample.
    left_out : dict of str to int
        Number of images that are not shown, by reason.
    bad_photos : dict of str to list of str
        Sorted ids of images without a usable photo, by ``missing`` and ``unreadable``.
    """

    ids: tuple[str, ...]
    parts: tuple[str, ...]
    pools: tuple[str, ...]
    paths: tuple[Path | None, ...]
    sizes: Int32s
    classes: tuple[tuple[str, ...], ...]
    boxes: Boxes
    proposals: tuple[Proposal | None, ...] = ()
    batches: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()
    nearest_paths: tuple[Path | None, ...] = ()
    details: tuple[tuple[str, ...], ...] = ()
    assigned: tuple[tuple[str, ...], ...] = ()
    sample: tuple[Stratum, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    bad_photos: dict[str, list[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class _Group:
    """The images of a part, or of a source without a manifest; columns as of `ReviewImages`.

    ``names`` are the possible names of each photo, ``folders`` the source whose photos
    include it; ``classes`` are unsorted.
    """

    name: str
    ids: Sequence[str]
    names: list[tuple[str, ...]]
    folders: list[str]
    sizes: Int32s
    classes: list[set[str]]
    boxes: Boxes


def part_images(
    manifest: Manifest,
    parts: Sequence[str],
    sources: Mapping[str, Source],
    photos: Mapping[str, PhotoFolder],
    *,
    pool: str = "",
) -> ReviewImages:
    """Return the images of some parts of a manifest, with their boxes as each part's label view leaves them.

    Parameters
    ----------
    parts : sequence of str
        Empty for every part whose list is available.
    sources : mapping of str to Source
        By the manifest's names. A part is shown without boxes if one of its sources is missing here.
    photos : mapping of str to PhotoFolder
        By the name of a source; the folder named ``""`` serves all other sources.
    pool : str
        Pool that decisions apply to, ``""`` for the part.

    Raises
    ------
    ReviewError
        No image has a photo.
    ManifestError
        The manifest has no such part, or none of its sources contains an image of the part.
    """
    chosen = parts or [part.name for part in manifest.header.parts if part.name in manifest.lists]
    return _gathered([_part_group(manifest, name, sources) for name in chosen], photos, pool)


def source_images(sources: Mapping[str, Source], photos: Mapping[str, PhotoFolder], *, pool: str = "") -> ReviewImages:
    """Return all images of some sources, for a review before there is a manifest (see `part_images`)."""
    return _gathered([_source_group(name, source) for name, source in sources.items()], photos, pool)


def arranged(
    images: ReviewImages,
    proposals: Sequence[Proposal],
    *,
    batch_size: int,
    known: Collection[str] = (),
    id_photos: Mapping[str, PhotoFolder] | None = None,
    order: Order = "evidence",
    sample: int | None = None,
    gold: Collection[str] = (),
    reviewers: Sequence[str] = (),
    overlap: float = 1.0,
) -> ReviewImages:
    """Return the images with their proposals in batches, the highest-ranked first.

    Images without a proposal follow in the order of their part. Images without a usable photo are left out, and listed
    in ``bad_photos``.

    Parameters
    ----------
    known : collection of str
        Names of ID classes (see `known_names`), for boxes whose role no manifest states.
    id_photos : mapping of str to PhotoFolder
        Folders of the photos of ID images, by namespace; the folder named ``""`` serves all other namespaces.
    order : {"evidence", "random", "stratified"}
        The most suspect image first, or hash rank; ``stratified`` draws from each kind of proposal.
    sample : int, optional
        Number of images to draw: by ``evidence`` from those without a proposal, which follow all proposed ones; by
        hash rank from all images.
    gold : collection of str
        Ids of images that are always shown, to all reviewers.
    reviewers : sequence of str
        Reviewers who share the images; empty if each reviewer judges all images.
    overlap : float
        Share of each batch that all of `reviewers` judge.

    Raises
    ------
    UsageError
        The sample is larger than the images, or smaller than the number of strata.
    ReviewError
        The batch size is not positive, or no image is left.
    MissingExtraError
        Pillow is not installed.
    """
    if batch_size < 1:
        raise ReviewError("A batch needs at least one image", found=str(batch_size), hint="--set batch_size=100")
    by_id = {proposal.image_id: proposal for proposal in proposals}
    offered = [by_id.get(image) for image in images.ids]
    last = max((proposal.rank for proposal in proposals), default=0) + 1
    ranks = np.array([last if proposal is None else proposal.rank for proposal in offered], np.int64)
    by_rank = np.argsort(ranks, kind="stable").tolist()
    if unmatched := by_id.keys() - set(images.ids):
        left_out = {**images.left_out, "proposed, but not among the images": len(unmatched)}
        images = replace(images, left_out=left_out)
    if not by_rank or (by_id and not any(offered)):
        reasons = ", ".join(f"{counted(count, 'image')}: {reason}" for reason, count in images.left_out.items())
        raise ReviewError("No image to review", where=next(iter(by_id), None), found=reasons)
    images = replace(pick_images(images, by_rank), proposals=tuple(offered[row] for row in by_rank))
    if known and not any(images.boxes.roles):
        keys = {name_key(name) for name in known}
        roles = tuple("known" if name_key(label) in keys else "unknown" for label in images.boxes.labels)
        images = replace(images, boxes=replace(images.boxes, roles=roles))
    images = _drawn(_with_good_photos(images), order, sample, set(gold))
    images = _with_nearest(images, id_photos or {})
    images = replace(images, batches=tuple(f"{row // batch_size + 1:04}" for row in range(len(images))))
    if not reviewers:
        return images
    starts = range(0, len(images), batch_size)
    shares = [
        names for at in starts for names in assigned_reviewers(images.ids[at : at + batch_size], reviewers, overlap)
    ]
    everybody = tuple(sorted(reviewers))
    return replace(
        images,
        assigned=tuple(everybody if image in gold else names for image, names in zip(images.ids, shares, strict=True)),
    )


def _drawn(images: ReviewImages, order: Order, sample: int | None, gold: Collection[str]) -> ReviewImages:
    """Return the images of a sample and the gold images, in the order of the review."""
    if order == "evidence" and sample is None:
        return images
    strata: dict[str, dict[str, None]] = {}
    for image, proposal in zip(images.ids, images.proposals, strict=True):
        if order == "evidence" and proposal is not None:
            continue
        word = "without a proposal" if proposal is None else f"proposed: {proposal.proposal}"
        strata.setdefault("all" if order == "random" else word, {})[image] = None
    drawn = () if sample is None else draw_sample(strata, sample)
    selected = set(gold).union(*([stratum.drawn for stratum in drawn] or strata.values()))
    rank_of = {image: rank for rank, image in enumerate(by_hash_rank(selected, SAMPLE_SALT))}
    if order == "evidence":
        # Proposed images come first, in their order.
        rank_of |= {image: -1 for image, proposal in zip(images.ids, images.proposals, strict=True) if proposal}
    rows = [row for row, image in enumerate(images.ids) if image in rank_of]
    rows.sort(key=lambda row: rank_of[images.ids[row]])
    left_out = dict(images.left_out)
    if len(rows) < len(images):
        left_out["not drawn"] = len(images) - len(rows)
    return replace(pick_images(images, rows), sample=drawn, left_out=left_out)


def known_names(proposals: ProposalSet) -> frozenset[str]:
    """Return all names of ID classes in annotations: their own names, and categories that overlap one of them."""
    overlaps = (category.category for category in proposals.categories if category.judgement == "overlap")
    return frozenset((*proposals.id_classes, *overlaps))


def _with_good_photos(images: ReviewImages) -> ReviewImages:
    """Return the images with a usable photo; photos supply the sizes that the annotations lack."""
    checked = check_photos(images.paths)
    bad: dict[str, list[str]] = {}
    for image, path, size in sorted(zip(images.ids, images.paths, checked, strict=True)):
        if size is None:
            bad.setdefault("unreadable" if path else "missing", []).append(image)
    good_rows = [row for row, size in enumerate(checked) if size is not None]
    if not good_rows:
        counts = ", ".join(f"{why}: {counted(len(ids), 'image')}" for why, ids in bad.items())
        raise ReviewError("No photo can be shown", found=counts, hint="check --photos")
    photo_sizes = np.array([size or (0, 0) for size in checked], np.int32)
    lacking = (images.sizes <= 0).any(axis=1, keepdims=True)
    images = replace(images, sizes=np.where(lacking, photo_sizes, images.sizes), bad_photos=bad)
    return pick_images(images, good_rows)


def check_photos(paths: Sequence[Path | None]) -> list[tuple[int, int] | None]:
    """Return the size of each photo as shown, from its header; None for a missing or unreadable photo.

    A truncated photo is readable: browsers show its first part.

    Raises
    ------
    MissingExtraError
        Pillow is not installed.
    """
    from tqdm import tqdm

    sizes: list[tuple[int, int] | None] = []
    for path in tqdm(paths, desc="photos", unit=" photos", disable=None):
        size = None
        with suppress(MissingFileError, ReviewError):
            size = path and size_of_photo(path, ReviewError)
        sizes.append(size if size and all(size) else None)
    return sizes


def _with_nearest(images: ReviewImages, folders: Mapping[str, PhotoFolder]) -> ReviewImages:
    nearest: list[str] = []
    paths: list[Path | None] = []
    for image, proposal in zip(images.ids, images.proposals, strict=True):
        nearest_id = "" if proposal is None else nearest_id_image(image, proposal.evidence)
        namespace, _, native = nearest_id.partition(":")
        folder = folders.get(namespace, folders.get(""))
        nearest.append(nearest_id)
        paths.append(folder.find([native]) if folder is not None and native else None)
    return replace(images, nearest=tuple(nearest), nearest_paths=tuple(paths))


def _part_group(manifest: Manifest, name: str, sources: Mapping[str, Source]) -> _Group:
    entry, lines = manifest.part(name), manifest.ids(name)
    ids = list(dict.fromkeys(lines))
    group = _bare_group(name, ids, entry.sources[0] if len(entry.sources) == 1 else "")
    if not entry.sources or any(slot not in sources for slot in entry.sources):
        return group
    located = locate_images(manifest, name, sources)
    # A list may repeat an image; the review shows it once.
    first = {image: line for line, image in reversed(list(enumerate(lines)))}
    rows = np.array([first[image] for image in ids], np.int64)
    for number, (slot, source) in enumerate(zip(entry.sources, located.sources, strict=True)):
        of_source = np.flatnonzero(located.source[rows] == number)
        _describe(group, slot, source, of_source, located.position[rows[of_source]])
    if any(source.objects is None for source in located.sources):
        return group
    return replace(group, boxes=_viewed_boxes(manifest, view_objects(manifest, name, sources), rows))


def _source_group(name: str, source: Source) -> _Group:
    group, every = _bare_group(name, source.image_ids.tolist(), name), np.arange(len(source.images))
    _describe(group, name, source, every, every)
    if source.objects is None:
        return group
    objects = source.require_pixels("Review")
    order = np.argsort(objects.image, kind="stable")
    labels = tuple(source.categories.names[code] for code in objects.category[order].tolist())
    return replace(group, boxes=Boxes(objects.image[order], objects.boxes[order], labels, ("",) * len(labels)))


def _bare_group(name: str, ids: Sequence[str], folder: str) -> _Group:
    """Return a group of images that have ids only."""
    no_boxes = Boxes(np.zeros(0, np.int32), np.zeros((0, 4)), (), ())
    names: list[tuple[str, ...]] = [(image.partition(":")[2],) for image in ids]
    sizes = np.zeros((len(ids), 2), np.int32)
    return _Group(name, ids, names, [folder] * len(ids), sizes, [set() for _ in ids], no_boxes)


def _describe(group: _Group, slot: str, source: Source, rows: np.ndarray, positions: np.ndarray) -> None:
    """Fill in sizes, possible file names and classes of the rows of a group that come from a source."""
    group.sizes[rows, 0], group.sizes[rows, 1] = source.images.widths[positions], source.images.heights[positions]
    row_of = np.full(len(source.images), -1, np.int64)
    row_of[positions] = rows
    file_names, native = source.images.file_names, source.images.native
    for row, position in zip(rows.tolist(), positions.tolist(), strict=True):
        group.names[row], group.folders[row] = (str(file_names[position]), str(native[position])), slot
    images, categories = source.class_pairs()
    row = row_of[images]
    for index, category in zip(row[row >= 0].tolist(), categories[row >= 0].tolist(), strict=True):
        group.classes[index].add(source.categories.names[category])


def _viewed_boxes(manifest: Manifest, objects: PartObjects, rows: np.ndarray) -> Boxes:
    line_to_row = np.full(len(objects.images), -1, np.int32)
    line_to_row[rows] = np.arange(len(rows), dtype=np.int32)
    xywh = np.zeros((len(objects), 4))
    for number, source in enumerate(objects.images.sources):
        mine = objects.source == number
        image_rows = source.require_objects("Review").image[objects.index[mine]]
        xywh[mine] = source.require_pixels("Review", image_rows).boxes[objects.index[mine]]
    names = [entry.name for entry in manifest.header.classes]
    return Boxes(
        image=line_to_row[objects.image],
        xywh=xywh,
        labels=tuple(names[label] for label in objects.label.tolist()),
        roles=tuple(ROLES[role] for role in objects.role.tolist()),
    )


def _gathered(groups: Sequence[_Group], photos: Mapping[str, PhotoFolder], pool: str) -> ReviewImages:
    """Return the images of all groups, with the photos that were found."""
    paths: list[Path | None] = []
    for group in groups:
        for name, names in zip(group.folders, group.names, strict=True):
            folder = photos.get(name, photos.get(""))
            paths.append(None if folder is None else folder.find(names))
    if not any(paths):
        raise ReviewError(
            "No image has a photo",
            found=counted(len(paths), "image"),
            expected="a folder with files named as the annotations name them, or by id",
            hint="--photos NAME=DIR, or --photos DIR",
        )
    starts = np.cumsum([0, *(len(group.ids) for group in groups)]).tolist()
    images = [group.boxes.image + start for group, start in zip(groups, starts, strict=False)]
    boxes = Boxes(
        image=np.concatenate([np.zeros(0, np.int32), *images]).astype(np.int32),
        xywh=np.concatenate([np.zeros((0, 4)), *(group.boxes.xywh for group in groups)]),
        labels=tuple(label for group in groups for label in group.boxes.labels),
        roles=tuple(role for group in groups for role in group.boxes.roles),
    )
    return ReviewImages(
        ids=tuple(str(image) for group in groups for image in group.ids),
        parts=tuple(group.name for group in groups for _ in group.ids),
        pools=tuple(pool or group.name for group in groups for _ in group.ids),
        paths=tuple(paths),
        sizes=np.concatenate([np.zeros((0, 2), np.int32), *(group.sizes for group in groups)]),
        classes=tuple(tuple(sorted(classes)) for group in groups for classes in group.classes),
        boxes=boxes,
    )


def pick_images(images: ReviewImages, rows: Sequence[int]) -> ReviewImages:
    """Return some rows of all columns, boxes regrouped by their image's new row."""
    row_of = np.full(len(images), -1, np.int32)
    row_of[np.asarray(rows, np.int64)] = np.arange(len(rows), dtype=np.int32)
    image = row_of[images.boxes.image]
    box_rows = np.flatnonzero(image >= 0)
    box_rows = box_rows[np.argsort(image[box_rows], kind="stable")]
    boxes = replace(
        images.boxes,
        image=image[box_rows],
        xywh=images.boxes.xywh[box_rows],
        **_picked(images.boxes, ("labels", "roles"), box_rows.tolist()),
    )
    every = ("ids", "parts", "pools", "classes", "paths", "proposals", "batches", "nearest", "nearest_paths", "details")
    columns = [name for name in every if getattr(images, name)]
    sizes = images.sizes[np.asarray(rows, np.int64)]
    return replace(images, sizes=sizes, boxes=boxes, **_picked(images, columns, rows))


def _picked(record: object, columns: Sequence[str], rows: Sequence[int]) -> dict[str, Any]:
    """Return some rows of the columns of a record that are tuples."""
    return {name: tuple(getattr(record, name)[row] for row in rows) for name in columns}


def box_slices(images: ReviewImages) -> Iterator[slice]:
    """Yield the slice of each image's boxes."""
    ends = np.searchsorted(images.boxes.image, np.arange(len(images) + 1)).tolist()
    yield from (slice(start, end) for start, end in pairwise(ends))
