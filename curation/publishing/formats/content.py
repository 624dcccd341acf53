"""The images and objects of some parts, gathered from their sources into plain columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.core.errors import ExportError
from curation.manifest.header import UNKNOWN_ID, ClassEntry, Header, PartEntry, classes_in, unknown_index
from curation.manifest.manifest import Manifest
from curation.manifest.views import PartImages, PartObjects, locate_images, picked, raw_column, view_objects
from curation.sources.source import Bools, Floats, Int32s, Int64s, Objects, Source, Texts

UNKNOWN_NAME = "unknown"
"""The class that every format writes for an object that the view renames."""

_EVALUATED = ("test", "wilderness")


OPEN_IMAGES = "openimages"
"""The dataset whose group boxes are crowd regions only under some views."""


@dataclass(frozen=True, slots=True)
class ContentImages:
    """The n images of an export: part after part, each in the order of its list.

    Attributes
    ----------
    ids : tuple of str
        Namespaced ids, unique.
    part, slot : ndarray of int32, shape (n,)
        Positions in `Content.parts` and `Content.slots`.
    native, file_names : ndarray of str or object, shape (n,)
    numbers : ndarray of int64, shape (n,)
        The integer ids of the annotation files; not unique over several sources.
    widths, heights : ndarray of int32, shape (n,)
        Pixels, 0 if the source does not state them.
    """

    ids: tuple[str, ...]
    part: Int32s
    slot: Int32s
    native: Texts
    numbers: Int64s
    file_names: Texts
    widths: Int32s
    heights: Int32s

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def photos(self) -> list[str]:
        """The file name of the photo of each image, made from its native id if the source has none."""
        names = zip(self.file_names.tolist(), self.native.tolist(), strict=True)
        return [name or f"{native}.jpg" for name, native in names]

    @property
    def sizes(self) -> Int32s:
        """Width and height of each image, shape (n, 2)."""
        sizes: Int32s = np.stack([self.widths, self.heights], axis=1)
        return sizes

    def of_part(self, number: int) -> list[int]:
        """Return the positions of the images of a part."""
        rows: list[int] = np.flatnonzero(self.part == number).tolist()
        return rows


@dataclass(frozen=True, slots=True)
class ContentObjects:
    """The m objects that remain after the label views, grouped by image, in file order within an image.

    Attributes
    ----------
    image : ndarray of int32, shape (m,)
        Position in the images of the export.
    category_id : ndarray of int32, shape (m,)
        Index of the class, -1 for unknown.
    ignore, crowd, difficult, truncated, occluded : ndarray of bool, shape (m,)
        `ignore` is decided by the view, the others are flags of the source; but group boxes of Open Images that the
        view keeps are ordinary objects and not crowd.
    group, depiction, inside : ndarray of bool, shape (m,)
        Flags of Open Images; false for other datasets.
    pose : ndarray of int8, shape (m,)
        Positions in `curation.sources.source.POSES`.
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels, origin top left.
    areas : ndarray of float64, shape (m,)
    numbers : ndarray of int64, shape (m,)
        Annotation ids of the files; not unique over several sources.
    original : ndarray of object, shape (m,)
        The class name in the dataset.
    original_number : ndarray of int64, shape (m,)
        The dataset's category id.
    """

    image: Int32s
    category_id: Int32s
    ignore: Bools
    crowd: Bools
    difficult: Bools
    truncated: Bools
    occluded: Bools
    group: Bools
    depiction: Bools
    inside: Bools
    pose: npt.NDArray[np.int8]
    boxes: Floats
    areas: Floats
    numbers: Int64s
    original: Texts
    original_number: Int64s

    def __len__(self) -> int:
        return len(self.image)

    @property
    def unknown(self) -> Bools:
        """Whether the view renames the object to unknown, shape (m,)."""
        unknown: Bools = self.category_id == UNKNOWN_ID
        return unknown


@dataclass(frozen=True, slots=True)
class Content:
    """Content of an export, independent of its format.

    Attributes
    ----------
    parts : tuple of PartEntry
    slots : tuple of str
        Source names, as in ``--source NAME=PATH``.
    datasets : tuple of str
        The dataset of each slot.
    classes : tuple of ClassEntry
        The classes that have a category in these parts, ascending by index. In a part of task t these are all
        classes introduced up to t, even if the view drops earlier ones, so that an index means the same in every file.
    has_unknown : bool
        Whether ``unknown`` is a category too: always in an evaluated part, in a training part only if it occurs.
    unknown_id : int
        The category id of ``unknown`` in the manifest: with tasks the number of classes, else -1.
    of_tasks : bool
        Whether the manifest has tasks. Then no format writes the original class of an object, so that a detector does
        not see the names of classes that are still unknown.
    dropped : int
        Objects of these images that the label views drop.
    repeated_lines : int
        Lines of the lists that repeat an image; an export has each image once.
    """

    parts: tuple[PartEntry, ...]
    slots: tuple[str, ...]
    datasets: tuple[str, ...]
    classes: tuple[ClassEntry, ...]
    has_unknown: bool
    unknown_id: int
    of_tasks: bool
    images: ContentImages
    objects: ContentObjects
    dropped: int
    repeated_lines: int

    @property
    def left_out(self) -> dict[str, int]:
        """Numbers of records that no format writes: objects that a view drops, and repeated lines."""
        return {"objects_dropped_by_view": self.dropped, "repeated_lines": self.repeated_lines}


def gather(manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Content:
    """Return the images and objects of some parts under their label views, each image once.

    Raises
    ------
    ExportError
        Two parts share an image, or belong to different tasks; or, with tasks, the index of a class is not below that
        of unknown.
    ManifestError, MissingListError, PresenceOnlyError
        See `curation.manifest.views.view_objects`.
    """
    require_parts(manifest, parts)
    _require_one_task(manifest, parts)
    _require_stable_indices(manifest.header)
    manifest, repeated_lines = _each_image_once(manifest, parts)
    viewed = [view_objects(manifest, part, sources) for part in parts]
    objects = _concatenated_objects(viewed, [manifest.part(part).view.crowd == "keep" for part in parts])
    entries = tuple(manifest.part(part) for part in parts)
    slots = slots_of_parts(manifest, parts)
    return Content(
        parts=entries,
        slots=slots,
        datasets=tuple(sources[slot].dataset for slot in slots),
        classes=_own_categories(manifest.header, entries),
        has_unknown=any(part.role in _EVALUATED for part in entries) or bool(objects.unknown.any()),
        unknown_id=unknown_index(manifest.header),
        of_tasks=bool(manifest.header.tasks),
        images=_gathered_images(manifest, parts, [view.images for view in viewed]),
        objects=objects,
        dropped=sum(view.dropped for view in viewed),
        repeated_lines=repeated_lines,
    )


def gather_images(manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> ContentImages:
    """Return the images of some parts, each once, for formats that write no objects (see `gather` for the errors)."""
    require_parts(manifest, parts)
    manifest, _ = _each_image_once(manifest, parts)
    located = [locate_images(manifest, part, sources) for part in parts]
    return _gathered_images(manifest, parts, located)


def require_parts(manifest: Manifest, parts: Sequence[str]) -> None:
    """Raise `ExportError` if no part is chosen, a part is chosen twice, or two parts share an image."""
    if not parts:
        raise ExportError("No part was chosen", expected=", ".join(part.name for part in manifest.header.parts))
    home: dict[str, str] = {}
    for part in parts:
        for image in dict.fromkeys(manifest.ids(part)):
            if image in home:
                raise ExportError(
                    f"Parts {home[image]!r} and {part!r} share images, so one file cannot contain both",
                    where=f"{manifest.header.name} {manifest.header.version}",
                    found=image,
                    hint="--each --out DIR writes every part separately",
                )
            home[image] = part


def slots_of_parts(manifest: Manifest, parts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the sources of some parts, in order of first occurrence."""
    return tuple(dict.fromkeys(slot for part in parts for slot in manifest.part(part).sources))


def _require_one_task(manifest: Manifest, parts: Sequence[str]) -> None:
    tasks = dict.fromkeys(manifest.part(part).task for part in parts)
    if len(tasks) > 1:
        raise ExportError(
            "Parts of different tasks have labels of different classes, so one file cannot contain both",
            where=f"{manifest.header.name} {manifest.header.version}",
            found=", ".join(f"{part} ({manifest.part(part).task or 'no task'})" for part in parts),
            hint="--each --out DIR writes every part separately",
        )


def _require_stable_indices(header: Header) -> None:
    unknown = unknown_index(header)
    beyond = [entry for entry in header.classes if header.tasks and entry.index >= unknown]
    if beyond:
        raise ExportError(
            "The index of a class is not below that of unknown",
            where=f"{header.name} {header.version}",
            expected=f"0 to {unknown - 1} for {unknown} classes",
            found=f"{beyond[0].name[:80]} {beyond[0].index}",
        )


def _each_image_once(manifest: Manifest, parts: Sequence[str]) -> tuple[Manifest, int]:
    """Return the manifest with only these lists, without repeated lines, and the number of repeated lines."""
    lists = {part: tuple(dict.fromkeys(manifest.ids(part))) for part in parts}
    repeated = sum(len(manifest.ids(part)) - len(ids) for part, ids in lists.items())
    return replace(manifest, lists=lists), repeated


def _own_categories(header: Header, parts: Sequence[PartEntry]) -> tuple[ClassEntry, ...]:
    """Return the classes known so far, and other classes that keep a category in at least one part."""

    def has_category(entry: ClassEntry, part: PartEntry) -> bool:
        is_kept = entry.index >= 0 and getattr(part.view, entry.role) in ("keep", "ignore")
        return entry.role in ("known", "previous") or is_kept

    entries = {entry.name: entry for part in parts for entry in classes_in(header, part) if has_category(entry, part)}
    return tuple(sorted(entries.values(), key=lambda entry: entry.index))


def _gathered_images(manifest: Manifest, parts: Sequence[str], located: Sequence[PartImages]) -> ContentImages:
    slots = slots_of_parts(manifest, parts)

    def column(field: str) -> Any:
        return np.concatenate([picked(images, field) for images in located])

    return ContentImages(
        ids=tuple(image for part in parts for image in manifest.ids(part)),
        part=np.concatenate([np.full(len(images), number, np.int32) for number, images in enumerate(located)]),
        slot=np.concatenate(
            [
                np.array([slots.index(slot) for slot in manifest.part(part).sources], np.int32)[images.source]
                for part, images in zip(parts, located, strict=True)
            ]
        ),
        native=column("native"),
        numbers=column("numbers"),
        file_names=column("file_names"),
        widths=column("widths"),
        heights=column("heights"),
    )


def _concatenated_objects(viewed: Sequence[PartObjects], kept_crowd: Sequence[bool]) -> ContentObjects:
    starts = np.cumsum([0, *(len(view.images) for view in viewed)])

    return ContentObjects(
        image=np.concatenate(
            [view.image + np.int32(start) for view, start in zip(viewed, starts[:-1], strict=True)]
        ).astype(np.int32),
        crowd=np.concatenate(
            [view.crowd & ~(_is_open_images(view) & is_kept) for view, is_kept in zip(viewed, kept_crowd, strict=True)]
        ),
        **{name: np.concatenate([getattr(view, name) for view in viewed]) for name in _VIEWED},
        **{name: np.concatenate([raw_column(view, read) for view in viewed]) for name, read in _RAW.items()},
    )


def _is_open_images(viewed: PartObjects) -> Bools:
    is_open_images: Bools = np.array([source.dataset == OPEN_IMAGES for source in viewed.images.sources], np.bool_)
    return is_open_images[viewed.source]


def _original_names(source: Source, objects: Objects) -> Texts:
    category_names = np.array(source.categories.names, object)[objects.category]
    if objects.original is None:
        return category_names
    return np.where(objects.original != "", objects.original, category_names)


def _column_or_unset(name: str, _: Source, objects: Objects) -> Any:
    """Return a column of a source's objects; a flag that the source lacks is false."""
    column = getattr(objects, name)
    return np.zeros(len(objects), np.bool_) if column is None else column


_VIEWED = ("category_id", "ignore", "difficult")
_AS_STATED = ("truncated", "occluded", "depiction", "inside", "pose", "boxes", "areas", "numbers")
_RAW: Mapping[str, Callable[[Source, Objects], Any]] = {
    **{name: partial(_column_or_unset, name) for name in _AS_STATED},
    "group": lambda source, objects: objects.crowd & (source.dataset == OPEN_IMAGES),
    "original": _original_names,
    "original_number": lambda source, objects: np.array(source.categories.numbers, np.int64)[objects.category],
}
