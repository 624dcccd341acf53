"""Label views: which objects of a source belong to a part, in which role, and how they are treated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, get_args

import numpy as np
import numpy.typing as npt

from curation.core.errors import ManifestError
from curation.manifest.header import UNKNOWN_ID, ClassEntry, ClassRole, Header, LabelView, PartEntry, classes_in
from curation.sources.source import Bools, Int32s, Objects, Source

ROLES: tuple[str, ...] = get_args(ClassRole)
"""``known, negative, unknown, ignored, previous``: `PartObjects.role` indexes this tuple."""

EVERYTHING = LabelView(unknown="keep", ignored="keep", crowd="keep", difficult="keep")
"""The view that keeps every object under its own class."""

FLAGS = ("difficult", "crowd")
"""Subsets that `PartObjects.counts` counts besides the roles."""


class Listing(Protocol):
    """The members of `curation.manifest.manifest.Manifest` that this module uses; that module imports this one."""

    @property
    def header(self) -> Header: ...  # noqa: D102

    @property
    def title(self) -> str: ...  # noqa: D102

    def part(self, name: str) -> PartEntry: ...  # noqa: D102

    def ids(self, name: str) -> tuple[str, ...]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class PartImages:
    """Positions of the n images of a part in its sources, in list order.

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

    A repeated image has its objects only once, at its first line.

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
        Position in `ROLES`: the role of the class, whatever the treatment of the object.
    category_id : ndarray of int32, shape (m,)
        The index of the class, or -1 if the view renames the object to unknown.
    ignore : ndarray of bool, shape (m,)
        Whether the object counts neither as positive nor as negative.
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
        return counts | {flag: int(getattr(self, flag).sum()) for flag in FLAGS}

    def annotated_images(self) -> int:
        """Return how many images of the part have at least one of these objects."""
        return int(np.count_nonzero(np.bincount(self.image)))


def view_objects(manifest: Listing, part: str, sources: Mapping[str, Source]) -> PartObjects:
    """Return the objects of a part after its label view.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names in the entry of the part; others are ignored.

    Raises
    ------
    ManifestError
        The manifest has no such part; a source is not given; an image of the part is in none of its sources; an
        object's class has no role in the manifest.
    MissingListError
        The part is declared.
    PresenceOnlyError
        A source has no boxes.
    """
    images = locate_images(manifest, part, sources)
    entry = manifest.part(part)
    return select_objects(classes_in(manifest.header, entry), entry.view, images)


def locate_images(manifest: Listing, part: str, sources: Mapping[str, Source]) -> PartImages:
    """Return the position of each image of a part in the sources (see `view_objects` for the errors)."""
    ids = manifest.ids(part)
    entry = manifest.part(part)
    if missing := [name for name in entry.sources if name not in sources]:
        raise ManifestError(
            f"Part {part!r} needs a source that was not given",
            where=manifest.title,
            expected=" ".join(f"--source {name}=PATH" for name in missing),
            found=", ".join(sorted(sources)) or "none",
        )
    chosen = tuple(sources[name] for name in entry.sources)
    source, position = positions_of(ids, chosen)
    absent = np.flatnonzero(position < 0)
    if len(absent):
        raise ManifestError(
            f"{len(absent)} of the {len(ids)} images of part {part!r} are in none of its sources",
            where=", ".join(slot.title for slot in chosen),
            expected=", ".join(ids[line] for line in absent[:3].tolist()),
            hint="use the source files of the manifest: `curation show MANIFEST` lists them",
        )
    return PartImages(sources=chosen, source=source, position=position)


def positions_of(ids: Sequence[str], sources: Sequence[Source]) -> tuple[Int32s, Int32s]:
    """Return the source of each id and its position there, both -1 if no source has it."""
    source = np.full(len(ids), -1, np.int32)
    position = np.full(len(ids), -1, np.int32)
    for number, raw in enumerate(sources):
        position_of = {f"{raw.namespace}:{native}": index for index, native in enumerate(raw.images.native.tolist())}
        positions = np.array([position_of.get(text, -1) for text in ids], np.int32)
        fresh = (positions >= 0) & (position < 0)
        source[fresh] = number
        position[fresh] = positions[fresh]
    return source, position


def select_objects(classes: Sequence[ClassEntry], view: LabelView, images: PartImages) -> PartObjects:
    """Return the objects of some images after a label view.

    An object gets the strongest treatment of its role and of its flags crowd, difficult and depiction: ``drop`` before
    ``ignore`` before the rest; ``rename:unknown`` changes only the category.
    """
    objects = every_object(classes, images)
    dropped = treated("drop", view, objects)
    columns = {name: column[~dropped] for name, column in objects.items()}
    categories = [UNKNOWN_ID if getattr(view, entry.role) == "rename:unknown" else entry.index for entry in classes]
    ignore = treated("ignore", view, columns)
    del columns["depiction"]
    category_id = np.array(categories, np.int32)[columns["label"]]
    return PartObjects(images, **columns, category_id=category_id, ignore=ignore, dropped=int(dropped.sum()))


def every_object(classes: Sequence[ClassEntry], images: PartImages) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of all objects of some images, as in `PartObjects`, and ``depiction``."""
    parts = [_objects_of(classes, images, number) for number in range(len(images.sources))]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(columns["image"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def treated(treatment: str, view: LabelView, objects: Mapping[str, npt.NDArray[Any]]) -> Bools:
    """Return which objects get a treatment from their role or one of their flags."""
    is_treated: Bools = np.array([getattr(view, name) == treatment for name in ROLES], np.bool_)[objects["role"]]
    for flag in ("crowd", "difficult", "depiction"):
        if getattr(view, flag) == treatment:
            is_treated |= objects[flag]
    return is_treated


def stated_pairs(classes: Sequence[ClassEntry], images: PartImages) -> tuple[Int32s, Int32s]:
    """Return image and label of every statement "this image shows this class"; -1 for a class without a role."""
    pairs = []
    for number, source in enumerate(images.sources):
        image, category = source.class_pairs()
        line = _first_lines(images, number)[image]
        pairs.append((line[line >= 0], class_positions(classes, source)[category[line >= 0]]))
    image, label = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return image, label


def count_annotated(images: PartImages) -> int:
    """Return how many images of a part, each counted once, show any class; sources may be presence-only."""
    # `numpy.unique` hashes, and took half of the time for ImageNet's lists.
    return int(np.count_nonzero(np.bincount(stated_pairs((), images)[0])))


def class_positions(classes: Sequence[ClassEntry], source: Source) -> Int32s:
    """Return the position of the class of each category of a source, -1 for none.

    Keys of categories (label names of Open Images) are matched first, because names differ between copies.
    """
    position_of = {alias: position for position, entry in enumerate(classes) for alias in entry.aliases}
    position_of |= {entry.name: position for position, entry in enumerate(classes)}
    names, keys = source.categories.names, source.categories.keys or source.categories.names
    return np.array(
        [position_of.get(key, position_of.get(name, -1)) for key, name in zip(keys, names, strict=True)], np.int32
    )


def _first_lines(images: PartImages, number: int) -> Int32s:
    """Return the first line of each image of a source in the list, -1 if it is not listed."""
    listed = np.flatnonzero(images.source == number)[::-1]
    line_of = np.full(len(images.sources[number].images), -1, np.int32)
    line_of[images.position[listed]] = listed  # For repeated indices the last value is kept.
    return line_of


def _objects_of(classes: Sequence[ClassEntry], images: PartImages, number: int) -> dict[str, npt.NDArray[Any]]:
    source = images.sources[number]
    objects = source.require_objects("A label view")
    image = _first_lines(images, number)[objects.image]
    index = np.flatnonzero(image >= 0).astype(np.int32)
    label = class_positions(classes, source)[objects.category[index]]
    if (label < 0).any():
        names = [source.categories.names[code] for code in np.unique(objects.category[index[label < 0]]).tolist()]
        raise ManifestError(
            f"{int((label < 0).sum())} objects belong to classes without a role in the manifest",
            where=f"source {source.title}",
            found=", ".join(repr(name[:60]) for name in names[:10]),
        )
    depiction = np.zeros(len(objects), np.bool_) if objects.depiction is None else objects.depiction
    return {
        "image": image[index],
        "source": np.full(len(index), number, np.int32),
        "index": index,
        "label": label,
        "role": np.array([ROLES.index(entry.role) for entry in classes], np.int8)[label],
        "crowd": objects.crowd[index],
        "difficult": objects.difficult[index],
        "depiction": depiction[index],
    }


def picked(located: PartImages, field: str) -> Any:
    """Return one image column of a part, in list order."""
    columns = [getattr(source.images, field) for source in located.sources]
    return _interleaved(columns, located.source, located.position)


def _interleaved(columns: Sequence[Any], source: Int32s, position: Int32s) -> Any:
    """Return ``columns[source[i]][position[i]]`` for every i."""
    result = np.empty((len(source), *columns[0].shape[1:]), np.result_type(*columns))
    for number, column in enumerate(columns):
        chosen = source == number
        result[chosen] = column[position[chosen]]
    return result


def raw_column(viewed: PartObjects, read: Callable[[Source, Objects], Any], subject: str = "An export") -> Any:
    """Return one source column at the objects of a part; `subject` needs their boxes in pixels."""
    located = viewed.images
    columns = [
        read(source, source.require_pixels(subject, located.position[located.source == number]))
        for number, source in enumerate(located.sources)
    ]
    return _interleaved(columns, viewed.source, viewed.index)
