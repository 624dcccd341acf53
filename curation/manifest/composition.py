"""What a manifest is made of: images, objects by role and by class, and what the label view of each part hides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.csv_table import as_csv
from curation.errors import UsageError
from curation.manifest.header import ClassEntry, Header, LabelView, PartEntry, classes_in
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
from curation.text_table import Table

Roles = npt.NDArray[np.int8]

_ROLES_SHOWN = ("known", "previous", "negative", "unknown", "ignored")
_SPLITS = ("train", "finetune", "val", "test", "wilderness")
_CSV_HEADER = (
    "part", "task", "split", "class", "index", "role", "images", "objects", "labelled", "hidden", "crowd",
)  # fmt: skip

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
    once = replace(manifest, lists={part.name: tuple(dict.fromkeys(manifest.ids(part.name)))})
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


@dataclass(frozen=True, slots=True)
class Composition:
    """What a manifest is made of, part by part.

    Attributes
    ----------
    manifest : Manifest
    parts : tuple of PartComposition
        See `compose`.
    """

    manifest: Manifest
    parts: tuple[PartComposition, ...]

    def data(self) -> dict[str, Any]:
        """Return plain data; what is not known is null, with the reason in ``missing``."""
        header = self.manifest.header
        return {
            "name": header.name,
            "version": header.version,
            "digest": self.manifest.digest,
            "parts": [_part_data(one) for one in self.parts],
        }

    def tables(self) -> list[Table]:
        """Return the table of the parts, that of the classes, and one of what could not be counted."""
        tables = [_part_table(self.manifest.header, self.parts)]
        if any(one.by_class for one in self.parts):
            tables.append(_class_table(self.manifest.header, self.parts))
        missing: dict[str, list[str]] = {}
        for one in self.parts:
            if one.missing:
                missing.setdefault(one.missing, []).append(one.part.name)
        if missing:
            rows = tuple((reason, ", ".join(parts)) for reason, parts in missing.items())
            tables.append(Table("Not counted", ("reason", "parts"), rows))
        return tables

    def csv(self) -> str:
        """Return the counts of each class in each part, as CSV.

        Raises
        ------
        UsageError
            No source of a part was given.
        """
        if not any(one.by_class for one in self.parts):
            raise UsageError("--out counts the objects of each class, and no source of a part is given")
        return as_csv(_CSV_HEADER, _class_rows(self.parts))


def _class_rows(compositions: Sequence[PartComposition]) -> Iterator[tuple[Any, ...]]:
    """Yield one row a class and part, as `_CSV_HEADER` names the columns."""
    for one in compositions:
        place = (one.part.name, one.part.task, one.part.role)
        for entry in one.by_class:
            hidden = None if entry.objects is None else entry.objects - (entry.labelled or 0)
            counts = (entry.images, entry.objects, entry.labelled, hidden, entry.crowd)
            yield (*place, entry.name, entry.index, entry.role, *counts)


def _part_data(one: PartComposition) -> dict[str, Any]:
    names = ("name", "index", "role", "images", "objects", "labelled", "crowd")
    return {
        "part": one.part.name,
        "task": one.part.task,
        "split": one.part.role,
        "sha256": one.part.sha256,
        "images": one.images,
        "repeated_lines": one.part.repeats,
        "annotated_images": one.annotated_images,
        "classes": one.classes,
        "labelled_objects": one.labelled,
        "hidden_objects": one.hidden,
        "images_with_hidden_objects": one.hidden_images,
        "by_class": [{name: getattr(entry, name) for name in names} for entry in one.by_class],
        "missing": one.missing,
    }


def _part_table(header: Header, compositions: Sequence[PartComposition]) -> Table:
    shown = [role for role in _ROLES_SHOWN if any((one.labelled or {}).get(role) for one in compositions)]
    hidden = [
        role
        for role in _ROLES_SHOWN
        if any((counts or {}).get(role) for one in compositions for counts in (one.hidden, one.hidden_images))
    ]
    columns = ["part", "images", "annotated", *shown]
    columns += [name for role in hidden for name in (f"hidden {role}", "in images")]
    rows = []
    for one in compositions:
        row = [one.part.name, _number(one.images), _number(one.annotated_images)]
        row += [_of(one.labelled, role) for role in shown]
        row += [_of(counts, role) for role in hidden for counts in (one.hidden, one.hidden_images)]
        rows.append((*row, _of(one.labelled, "crowd")))
    title = f"{header.name} {header.version}: images, and objects under the label view of each part"
    return Table(title, (*columns, "crowd"), tuple(rows))


def _class_table(header: Header, compositions: Sequence[PartComposition]) -> Table:
    """Return the labelled objects of each class: with tasks, in the parts of its own task, else in every part."""
    if not header.tasks:
        columns = [one.part.name for one in compositions if one.by_class]
        counts = {one.part.name: one for one in compositions}
        rows = [
            (
                str(entry.index),
                entry.name,
                entry.role,
                *(_labelled(counts[part], entry.name) for part in columns),
            )
            for entry in header.classes
        ]
        return Table("Objects of each class", ("index", "class", "role", *columns), tuple(rows))
    task_of = {name: task.name for task in header.tasks for name in task.introduced}
    found = {one.part.role for one in compositions if one.by_class}
    splits = [role for role in _SPLITS if role in found]
    at = {(one.part.task, one.part.role): one for one in reversed(compositions)}
    rows = []
    for entry in header.classes:
        task = task_of.get(entry.name, "")
        counted = [_labelled(at.get((task, split)), entry.name) for split in splits]
        rows.append((str(entry.index), entry.name, task or "-", *counted))
    title = "Labelled objects of each class in the parts of the task that introduces it (--out FILE.csv: in all parts)"
    return Table(title, ("index", "class", "task", *splits), tuple(rows))


def _labelled(one: PartComposition | None, name: str) -> str:
    found = [entry.labelled for entry in one.by_class if entry.name == name] if one else []
    return _number(found[0]) if found else "-"


def _of(counts: dict[str, int] | None, name: str) -> str:
    return "-" if counts is None else f"{counts.get(name, 0):,}"


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
