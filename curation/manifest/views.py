"""Label views applied: which objects of a source belong to a part, in which role, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import numpy.typing as npt

from curation.errors import ManifestError
from curation.manifest.header import UNKNOWN_ID, ClassEntry, ClassRole, LabelView, classes_in
from curation.manifest.manifest import Manifest
from curation.manifest.overlay import overlaid
from curation.sources.source import Bools, Int32s, Source

ROLES: tuple[str, ...] = get_args(ClassRole)
"""``known, negative, unknown, ignored, previous``: `PartObjects.role` indexes this tuple."""

FLAGS = ("difficult", "crowd")
"""Subsets that `PartObjects.counts` counts beside the roles."""


@dataclass(frozen=True, slots=True)
class PartImages:
    """Where the n images of a part lie in its sources, in list order.

    Attributes
    ----------
    sources : tuple of Source
    source : ndarray of int32, shape (n,)
        Position in `sources`.
    position : ndarray of int32, shape (n,)
        Position in that source's `images`.
    """

    sources: tuple[Source, ...]
    source: Int32s
    position: Int32s

    def __len__(self) -> int:
        return len(self.position)


@dataclass(frozen=True, slots=True)
class PartObjects:
    """The m objects of a part that its view does not drop, grouped by image, in file order within an image.

    An image that the list repeats holds its objects once, at its first line.

    Attributes
    ----------
    images : PartImages
    image : ndarray of int32, shape (m,)
        Position in the part's list.
    source : ndarray of int32, shape (m,)
        Position in `images.sources`.
    index : ndarray of int32, shape (m,)
        Position in that source's `objects`.
    label : ndarray of int32, shape (m,)
        Position in the header's `classes`.
    role : ndarray of int8, shape (m,)
        Position in `ROLES`: the role of the class, whatever becomes of the object.
    category_id : ndarray of int32, shape (m,)
        The class's index, or -1 where the view renames the object to unknown.
    ignore : ndarray of bool, shape (m,)
        The object counts neither as positive nor as negative.
    crowd, difficult : ndarray of bool, shape (m,)
        The flags of the source.
    dropped : int
        Objects of these images that the view drops.
    """

    images: PartImages
    image: Int32s
    source: Int32s
    index: Int32s
    label: Int32s
    role: npt.NDArray[np.int8]
    category_id: Int32s
    ignore: Bools
    crowd: Bools
    difficult: Bools
    dropped: int

    def __len__(self) -> int:
        return len(self.image)

    def counts(self) -> dict[str, int]:
        """Return the number of objects of each role, and of the subsets ``difficult`` and ``crowd``."""
        by_role = np.bincount(self.role, minlength=len(ROLES)).tolist()
        counts: dict[str, int] = {role: count for role, count in zip(ROLES, by_role, strict=True) if count}
        return {**counts, "difficult": int(self.difficult.sum()), "crowd": int(self.crowd.sum())}

    def annotated_images(self) -> int:
        """Return how many images of the part carry at least one of these objects."""
        shown = np.zeros(len(self.images), np.bool_)
        shown[self.image] = True
        return int(shown.sum())


def view_objects(manifest: Manifest, part: str, sources: Mapping[str, Source]) -> PartObjects:
    """Return the objects of a part as its label view leaves them.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names in the part's entry; others are not looked at.

    Raises
    ------
    ManifestError
        The manifest has no such part; a source is not given; an image of the part is in none of its sources; an
        object's class has no role in the manifest; boxes that reviewers added are named and not here.
    MissingListError
        The part is declared.
    PresenceOnlyError
        A source has no boxes.
    """
    images = locate_images(manifest, part, sources)
    entry = manifest.part(part)
    return select_objects(classes_in(manifest.header, entry), entry.view, images)


def locate_images(manifest: Manifest, part: str, sources: Mapping[str, Source]) -> PartImages:
    """Return where each image of a part lies in the sources (see `view_objects` for the errors)."""
    ids = manifest.ids(part)
    entry = manifest.part(part)
    if missing := [name for name in entry.sources if name not in sources]:
        raise ManifestError(
            f"Part {part!r} needs a source that was not given",
            where=f"{manifest.header.name} {manifest.header.version}",
            expected=" ".join(f"--source {name}=PATH" for name in missing),
            found=", ".join(sorted(sources)) or "none",
        )
    chosen = tuple(_with_added(manifest, sources[name]) for name in entry.sources)
    source, position = positions_of(ids, chosen)
    absent = np.flatnonzero(position < 0)
    if len(absent):
        raise ManifestError(
            f"{len(absent)} of the {len(ids)} images of part {part!r} are in none of its sources",
            where=", ".join(f"{one.dataset} {one.part}".strip() for one in chosen),
            expected=", ".join(ids[line] for line in absent[:3].tolist()),
            hint="give the source files that the manifest names: `curation show` lists them",
        )
    return PartImages(sources=chosen, source=source, position=position)


def _with_added(manifest: Manifest, source: Source) -> Source:
    """Return a source with the boxes that reviewers added to it."""
    overlay = manifest.require_overlay()
    if overlay is None or source.objects is None:
        return source
    _, places = positions_of([one.image_id for one in overlay.images], [source])
    return overlaid(source, overlay, places, manifest.header.classes)[0]


def positions_of(ids: Sequence[str], sources: Sequence[Source]) -> tuple[Int32s, Int32s]:
    """Return for each id the source that holds it and its position there, both -1 where none does."""
    source = np.full(len(ids), -1, np.int32)
    position = np.full(len(ids), -1, np.int32)
    for number, one in enumerate(sources):
        place = {native: index for index, native in enumerate(one.images.native.tolist())}
        prefix = f"{one.namespace}:"
        length = len(prefix)
        found = np.array([place.get(text[length:], -1) if text.startswith(prefix) else -1 for text in ids], np.int32)
        fresh = (found >= 0) & (position < 0)
        source[fresh] = number
        position[fresh] = found[fresh]
    return source, position


def select_objects(classes: Sequence[ClassEntry], view: LabelView, images: PartImages) -> PartObjects:
    """Return the objects of some images as a view leaves them: the columnar core of `view_objects`.

    An object takes the strongest treatment among those of its role, of crowd, difficult and depiction: ``drop`` over
    ``ignore`` over the rest; ``rename:unknown`` decides the category alone.
    """
    rows = _objects_of_all(classes, images)
    return _viewed(classes, view, images, rows[np.argsort(rows[:, 0], kind="stable")])


def count_objects(classes: Sequence[ClassEntry], view: LabelView, images: PartImages) -> tuple[dict[str, int], int]:
    """Return `PartObjects.counts` and the number of annotated images, without the cost of grouping objects by image."""
    objects = _viewed(classes, view, images, _objects_of_all(classes, images))
    return objects.counts(), objects.annotated_images()


def count_annotated(images: PartImages) -> int:
    """Return how many images of a part, each counted once, show any class, also where a source is presence-only."""
    count = 0
    for number, one in enumerate(images.sources):
        shown = np.zeros(len(one.images), np.bool_)
        shown[one.class_pairs()[0]] = True
        count += int(shown[np.unique(images.position[images.source == number])].sum())
    return count


def class_positions(classes: Sequence[ClassEntry], source: Source) -> Int32s:
    """Return for each category of a source the position of its class, -1 for none.

    A source whose classes have keys (Open Images' label names) is matched by these first: names differ between copies.
    """
    place = {alias: position for position, entry in enumerate(classes) for alias in entry.aliases}
    place |= {entry.name: position for position, entry in enumerate(classes)}
    names, keys = source.categories.names, source.categories.keys or source.categories.names
    found = [place.get(key, place.get(name, -1)) for key, name in zip(keys, names, strict=True)]
    return np.array(found, np.int32)


def _objects_of_all(classes: Sequence[ClassEntry], images: PartImages) -> Int32s:
    return np.concatenate([_objects_of(classes, images, number) for number in range(len(images.sources))])


def _viewed(classes: Sequence[ClassEntry], view: LabelView, images: PartImages, rows: Int32s) -> PartObjects:
    """Return the columns of the objects that the view keeps, from the rows of `_objects_of`."""
    image, source, index, label = (np.ascontiguousarray(column) for column in rows[:, :4].T)
    crowd, difficult = rows[:, 4].astype(np.bool_), rows[:, 5].astype(np.bool_)
    role = np.array([ROLES.index(entry.role) for entry in classes], np.int8)[label]
    category = np.array([_category(entry, view) for entry in classes], np.int32)[label]
    flags = {"crowd": crowd, "difficult": difficult, "depiction": rows[:, 6].astype(np.bool_)}
    dropped = _treated("drop", view, role, flags)
    kept = ~dropped
    return PartObjects(
        images=images,
        image=image[kept],
        source=source[kept],
        index=index[kept],
        label=label[kept],
        role=role[kept],
        category_id=category[kept],
        ignore=_treated("ignore", view, role, flags)[kept],
        crowd=crowd[kept],
        difficult=difficult[kept],
        dropped=int(dropped.sum()),
    )


def _objects_of(classes: Sequence[ClassEntry], images: PartImages, number: int) -> Int32s:
    """Return one source's objects in the part, columns image, source, index, label, crowd, difficult, depiction."""
    one = images.sources[number]
    objects = one.require_objects("A label view")
    listed = np.flatnonzero(images.source == number)
    place = np.full(len(one.images), -1, np.int32)
    # A repeated image holds its objects once, where the list names it first: of repeated indices the last one wins.
    place[images.position[listed[::-1]]] = listed[::-1]
    image = place[objects.image]
    index = np.flatnonzero(image >= 0).astype(np.int32)
    label = class_positions(classes, one)[objects.category[index]]
    _require_roles(label, one, index)
    columns = np.empty((len(index), 7), np.int32)
    columns[:, 0] = image[index]
    columns[:, 1] = number
    columns[:, 2] = index
    columns[:, 3] = label
    columns[:, 4] = objects.crowd[index]
    columns[:, 5] = objects.difficult[index]
    columns[:, 6] = 0 if objects.depiction is None else objects.depiction[index]
    return columns


def _require_roles(label: Int32s, source: Source, index: Int32s) -> None:
    unlisted = index[label < 0]
    if len(unlisted):
        used = np.unique(source.require_objects("A label view").category[unlisted])
        names = [source.categories.names[category] for category in used.tolist()]
        raise ManifestError(
            f"{len(unlisted)} objects are of classes that have no role in the manifest",
            where=f"source {source.dataset} {source.part}".strip(),
            found=", ".join(repr(name[:60]) for name in names[:10]),
        )


def _category(entry: ClassEntry, view: LabelView) -> int:
    return UNKNOWN_ID if getattr(view, entry.role) == "rename:unknown" else entry.index


def _treated(treatment: str, view: LabelView, role: npt.NDArray[np.int8], flags: Mapping[str, Bools]) -> Bools:
    """Return which objects a treatment reaches through their role or one of their flags."""
    by_role = np.array([getattr(view, name) == treatment for name in ROLES], np.bool_)[role]
    for name, flag in flags.items():
        if getattr(view, name) == treatment:
            by_role |= flag
    return by_role
