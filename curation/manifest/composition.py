"""What a manifest is made of: images, objects by role and by class, and what the label view of each part hides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.manifest.header import ClassEntry, LabelView, PartEntry, classes_in
from curation.manifest.manifest import Manifest
from curation.manifest.views import (
    FLAGS,
    ROLES,
    PartImages,
    PartObjects,
    class_positions,
    locate_images,
    select_objects,
)
from curation.sources.source import Bools, Int32s, Int64s, Source

Roles = npt.NDArray[np.int8]

EVERYTHING = LabelView(unknown="keep", ignored="keep", crowd="keep", difficult="keep")
"""The view that keeps every object under its own class."""


@dataclass(frozen=True, slots=True)
class ClassCount:
    """One class in one part.

    Attributes
    ----------
    role : str
        The role that the class plays in the part.
    images : int
        Images of the part that show the class, whether the view labels it or not.
    objects, labelled, crowd : int or None
        Objects; those of them that the view does not drop; those that are crowd regions. None without boxes.
    """

    name: str
    index: int
    role: str
    images: int
    objects: int | None
    labelled: int | None
    crowd: int | None


@dataclass(frozen=True, slots=True)
class PartComposition:
    """What one part is made of.

    Attributes
    ----------
    part : PartEntry
    images : int or None
        Different images; None where a declared part has never been computed.
    annotated_images : int or None
        Images with at least one object that the view does not drop.
    classes : dict of str to int
        Classes of each role in this part.
    labelled : dict of str to int, or None
        Objects of each role that the view does not drop, and of these the ``difficult`` and ``crowd`` ones.
    hidden : dict of str to int, or None
        Objects of each role that the view drops. Those of role ``unknown`` in a training part are hidden unknowns (rule
        CO5 of the audit).
    hidden_images : dict of str to int, or None
        Images that show a hidden object of each role.
    by_class : tuple of ClassCount
        In the order of the header; empty where the part's sources were not available.
    missing : str
        Why something is None, or ``""``.
    """

    part: PartEntry
    images: int | None
    annotated_images: int | None
    classes: dict[str, int]
    labelled: dict[str, int] | None
    hidden: dict[str, int] | None
    hidden_images: dict[str, int] | None
    by_class: tuple[ClassCount, ...] = ()
    missing: str = ""


def compose(manifest: Manifest, sources: Mapping[str, Source]) -> tuple[PartComposition, ...]:
    """Return what each part is made of, in the order of the header.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names in the header. A part whose list or sources are not available is described by its entry alone, one
        with a presence-only source by its images alone.

    Raises
    ------
    ManifestError
        An image of a part is in none of its sources, or an object's class has no role in the manifest.
    """
    return tuple(_composed(manifest, part, sources) for part in manifest.header.parts)


def _composed(manifest: Manifest, part: PartEntry, sources: Mapping[str, Source]) -> PartComposition:
    classes = classes_in(manifest.header, part)
    absent = [slot for slot in part.sources if slot not in sources]
    if part.name not in manifest.lists:
        return _as_stated(part, classes, "its list is not available")
    if absent:
        return _as_stated(part, classes, " ".join(f"--source {slot}=PATH" for slot in absent) + " is not given")
    once = Manifest(manifest.header, {part.name: tuple(dict.fromkeys(manifest.ids(part.name)))})
    images = locate_images(once, part.name, sources)
    if any(source.objects is None for source in images.sources):
        return _of_presence(part, classes, images)
    return _of_objects(part, classes, images)


def _as_stated(part: PartEntry, classes: Sequence[ClassEntry], missing: str) -> PartComposition:
    """Return what the header says of a part."""
    return PartComposition(
        part=part,
        images=None if part.images is None else part.images - part.repeats,
        annotated_images=part.annotated_images,
        classes=_by_role(classes),
        labelled=dict(part.boxes) if part.boxes else None,
        hidden=None,
        hidden_images=None,
        missing=missing,
    )


def _of_objects(part: PartEntry, classes: Sequence[ClassEntry], images: PartImages) -> PartComposition:
    every = select_objects(classes, EVERYTHING, images)
    shown = select_objects(classes, part.view, images)
    is_labelled = _among(every, shown)
    n = len(classes)
    return PartComposition(
        part=part,
        images=len(images),
        annotated_images=shown.annotated_images(),
        classes=_by_role(classes),
        labelled=shown.counts(),
        hidden=_hidden(every, ~is_labelled),
        hidden_images=_images_by_role(every.role, every.image, ~is_labelled),
        by_class=_class_counts(
            classes,
            _images_of_labels(every.label, every.image, n),
            np.bincount(every.label, minlength=n),
            np.bincount(every.label[is_labelled], minlength=n),
            np.bincount(every.label[every.crowd], minlength=n),
        ),
    )


def _of_presence(part: PartEntry, classes: Sequence[ClassEntry], images: PartImages) -> PartComposition:
    """Return what can be told of a part where a source knows which classes an image shows, and no boxes."""
    pairs = [_pairs(classes, images, number) for number in range(len(images.sources))]
    image, label = (np.concatenate(column) for column in zip(*pairs, strict=True))
    image, label = image[label >= 0], label[label >= 0]
    role = np.array([ROLES.index(entry.role) for entry in classes], np.int8)[label]
    is_hidden = np.array([getattr(part.view, name) == "drop" for name in ROLES], np.bool_)[role]
    return PartComposition(
        part=part,
        images=len(images),
        annotated_images=_distinct(image[~is_hidden]).size,
        classes=_by_role(classes),
        labelled=None,
        hidden=None,
        hidden_images=_images_by_role(role, image, is_hidden),
        by_class=_class_counts(classes, _images_of_labels(label, image, len(classes))),
        missing="a source knows classes of images, and no boxes",
    )


def _pairs(classes: Sequence[ClassEntry], images: PartImages, number: int) -> tuple[Int32s, Int32s]:
    """Return image of the part and label of every statement "this image shows this class" of one source."""
    source = images.sources[number]
    listed = np.flatnonzero(images.source == number)
    place = np.full(len(source.images), -1, np.int32)
    place[images.position[listed]] = listed
    image, category = source.class_pairs()
    inside = place[image] >= 0
    return place[image[inside]], class_positions(classes, source)[category[inside]]


def _among(objects: PartObjects, chosen: PartObjects) -> Bools:
    """Return which objects of a part are among some of the same part."""
    result = np.zeros(len(objects), np.bool_)
    for number, source in enumerate(objects.images.sources):
        marked = np.zeros(len(source.require_objects("A composition")), np.bool_)
        marked[chosen.index[chosen.source == number]] = True
        own = objects.source == number
        result[own] = marked[objects.index[own]]
    return result


def _by_role(classes: Sequence[ClassEntry]) -> dict[str, int]:
    counted: Counter[str] = Counter(entry.role for entry in classes)
    return {role: counted[role] for role in ROLES if counted[role]}


def _hidden(objects: PartObjects, is_hidden: Bools) -> dict[str, int]:
    by_role = np.bincount(objects.role[is_hidden], minlength=len(ROLES)).tolist()
    flags = {flag: int(getattr(objects, flag)[is_hidden].sum()) for flag in FLAGS}
    return {role: n for role, n in zip(ROLES, by_role, strict=True) if n} | flags


def _images_by_role(role: Roles, image: Int32s, is_hidden: Bools) -> dict[str, int]:
    counts = {name: _distinct(image[is_hidden & (role == number)]).size for number, name in enumerate(ROLES)}
    return {name: count for name, count in counts.items() if count}


def _images_of_labels(label: Int32s, image: Int32s, n_classes: int) -> Int64s:
    """Return how many images show each class."""
    pairs = _distinct(image.astype(np.int64) * n_classes + label)
    return np.bincount(pairs % max(n_classes, 1), minlength=n_classes)


def _distinct(values: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.integer[Any]]:
    """Return the distinct values, ascending: `np.unique` hashes, which takes five times as long here."""
    ordered = np.sort(values)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]


def _class_counts(
    classes: Sequence[ClassEntry],
    images: Int64s,
    objects: Int64s | None = None,
    labelled: Int64s | None = None,
    crowd: Int64s | None = None,
) -> tuple[ClassCount, ...]:
    def at(column: Int64s | None, place: int) -> int | None:
        return None if column is None else int(column[place])

    return tuple(
        ClassCount(
            name=entry.name,
            index=entry.index,
            role=entry.role,
            images=int(images[place]),
            objects=at(objects, place),
            labelled=at(labelled, place),
            crowd=at(crowd, place),
        )
        for place, entry in enumerate(classes)
    )
