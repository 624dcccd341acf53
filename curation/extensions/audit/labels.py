"""Labels of the images of a list: as the raw files have them, and as a task's view leaves them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt

from curation.core.wording import counted, short_repr
from curation.extensions.audit.lists import AuditedList, LabelFile
from curation.extensions.audit.target import AuditTarget, positions_in
from curation.manifest.header import UNKNOWN_ID, ClassEntry, ClassRole, LabelView
from curation.manifest.views import EVERYTHING, PartImages, select_objects
from curation.sources.source import Bools, Floats, Int32s

DECIMALS = 2
"""Coordinates are compared to a hundredth of a pixel, which is what COCO's own files hold."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Columns of m labelled objects.

    Attributes
    ----------
    image : ndarray of int32, shape (m,)
        Position in `AuditTarget.ids`.
    label : ndarray of int32, shape (m,)
        Position among the classes; their number for unknown; -1 for a class that the benchmark lacks.
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels; without size where `unit` says that there are none.
    crowd, difficult, ignore : ndarray of bool, shape (m,)
    unit : str
        ``boxes`` or ``image-class pairs``.
    origin : str
        Where the labels come from, for the report.
    """

    __repr__ = short_repr

    image: Int32s
    label: Int32s
    boxes: Floats
    crowd: Bools
    difficult: Bools
    ignore: Bools
    unit: str
    origin: str

    def __len__(self) -> int:
        return len(self.image)

    def counted(self, number: int | None = None) -> str:
        """Return how many labels, all or some: ``1 box``, ``2 boxes``."""
        singular = "box" if self.unit == "boxes" else self.unit.removesuffix("s")
        return counted(len(self) if number is None else number, singular, self.unit)

    def where(self, rows: Bools) -> Labels:
        """Return some rows."""
        columns = ("image", "label", "boxes", "crowd", "difficult", "ignore")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    def keys(self, *, named: bool = True) -> npt.NDArray[np.uint64]:
        """Return one number for the image, the place and, if `named`, the label of each box.

        The columns are mixed into 64 bits (splitmix64's finaliser): comparing rows of six numbers takes ten times as
        long, and two of a million boxes share a number by chance once in ten million audits.
        """
        coordinates = np.rint(self.boxes * 10**DECIMALS).astype(np.int64)
        key = np.zeros(len(self), np.uint64)
        for column in (self.image.astype(np.int64), self.label.astype(np.int64) * named, *coordinates.T):
            key = (key ^ column.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
            key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            key ^= key >> np.uint64(31)
        return key

    def at_places_of(self, others: Labels) -> Bools:
        """Return which labels lie where one of some others does, whatever the two are called."""
        return np.isin(self.keys(named=False), others.keys(named=False))


def raw_labels(target: AuditTarget, part: AuditedList) -> Labels:
    """Return every object of a list's images whose class is one of the benchmark's, with its true class."""
    key = ("raw labels", part.name)
    if key not in target.cache:
        target.cache[key] = _applied(target, part, EVERYTHING, target.classes, "the sources")
    labels: Labels = target.cache[key]
    return labels


def ruled_labels(target: AuditTarget, part: AuditedList, task: int) -> Labels | None:
    """Return the labels that a list's view makes of the raw ones, whatever was written out; None without a view."""
    if part.view is None:
        return None
    origin = "the declared view" if part.view_declared else "the view that the principle asks for"
    return _applied(target, part, part.view, classes_of_task(target, task), origin)


def classes_of_task(target: AuditTarget, task: int) -> tuple[ClassEntry, ...]:
    """Return the classes with the role that each plays in a task; one that no task introduces keeps its own."""
    roles: tuple[ClassRole, ...] = ("previous", "known", "unknown")
    return tuple(
        entry
        if step == len(target.tasks)
        else msgspec.structs.replace(entry, role=roles[1 + int(step > task) - int(step < task)])
        for entry, step in zip(target.classes, target.introduced_in.tolist(), strict=True)
    )


def file_labels(target: AuditTarget, part: AuditedList, file: LabelFile, positions: Int32s) -> Labels:
    """Return the labels of a list's label file on its images; those of other images do not count.

    Parameters
    ----------
    positions : ndarray of int32, shape (n,)
        Position in the file of each image of the list, -1 where it has none.
    """
    objects = file.source.require_objects("A label file")
    image_of = np.full(len(file.source.images) + 1, -1, np.int32)
    image_of[positions] = part.unique
    image_of[-1] = -1
    names = file.source.categories.names
    label_of = np.array([*(target.label_of(name) for name in names), -1], np.int32)
    ignored_class = np.array([*(target.names.folded(name) in target.ignored for name in names), False], np.bool_)
    rows = np.flatnonzero((image_of[objects.image] >= 0) & ~ignored_class[objects.category])
    labels = Labels(
        image=image_of[objects.image[rows]],
        label=label_of[objects.category[rows]],
        boxes=objects.boxes[rows],
        crowd=objects.crowd[rows],
        difficult=objects.difficult[rows],
        ignore=np.zeros(len(rows), np.bool_),
        unit="boxes",
        origin=f"label file {file.name}",
    )
    if not target.ignored:
        return labels
    # An export writes objects of ignored classes as unknown, flagged to be ignored: no rule speaks of them.
    flagged = (labels.label == target.unknown_label) & labels.difficult
    return labels.where(~flagged | labels.at_places_of(raw_labels(target, part)))


def positions_in_file(target: AuditTarget, part: AuditedList, file: LabelFile) -> Int32s:
    """Return the position of each image of a list in a label file, -1 where it has none."""
    texts = [str(text) for text in target.ids[part.unique].tolist()]
    if target.kind == "manifest":
        # Annotation files write ids without a namespace.
        texts = [text.partition(":")[2] or text for text in texts]
    return positions_in(file.source, texts)


def unit_of(target: AuditTarget, part: AuditedList) -> str:
    """Return what the sources of a list's images count: boxes, or pairs of image and class where one is a table."""
    homes = np.unique(target.home[part.unique])
    units = [target.sources[home].unit for home in homes.tolist() if home >= 0]
    return next((unit for unit in units if unit != "boxes"), "boxes")


def _applied(
    target: AuditTarget, part: AuditedList, view: LabelView, classes: tuple[ClassEntry, ...], origin: str
) -> Labels:
    images = target.held(part)
    if not len(images):
        empty, never = np.empty(0, np.int32), np.empty(0, np.bool_)
        return Labels(empty, empty, np.empty((0, 4)), never, never, never, "boxes", origin)
    located = PartImages(
        sources=tuple(source.objects for source in target.sources),
        source=target.home[images],
        position=target.positions[target.home[images], images],
    )
    selected = select_objects(classes, view, located)
    boxes = np.zeros((len(selected), 4))
    for number, source in enumerate(target.sources):
        rows = selected.source == number
        if rows.any():
            boxes[rows] = source.objects.require_objects("A label view").boxes[selected.index[rows]]
    renamed = (selected.category_id == UNKNOWN_ID) & (view is not EVERYTHING)
    return Labels(
        image=images[selected.image],
        label=np.where(renamed, np.int32(target.unknown_label), selected.label),
        boxes=boxes,
        crowd=selected.crowd,
        difficult=selected.difficult,
        ignore=selected.ignore,
        unit=unit_of(target, part),
        origin=origin,
    )
