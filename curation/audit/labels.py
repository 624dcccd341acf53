"""Labels of the images of a list: as the raw files have them, and as a task's view leaves them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt

from curation.audit.target import AuditedList, AuditTarget, positions_in
from curation.manifest.composition import EVERYTHING
from curation.manifest.header import UNKNOWN_ID, ClassEntry, ClassRole, LabelView
from curation.manifest.views import PartImages, select_objects
from curation.short_repr import short_repr
from curation.sources.source import Bools, Floats, Int32s
from curation.wording import counted

_RAW = -1
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
        one = "box" if self.unit == "boxes" else self.unit.removesuffix("s")
        return counted(len(self) if number is None else number, one, self.unit)


def raw_labels(target: AuditTarget, one: AuditedList) -> Labels:
    """Return every object of a list's images whose class is one of the benchmark's, with its true class."""
    key = (one.name, _RAW)
    if key not in target.cache:
        target.cache[key] = _applied(target, one, EVERYTHING, target.classes, "the sources")
    labels: Labels = target.cache[key]
    return labels


def view_labels(target: AuditTarget, one: AuditedList, task: int) -> Labels | None:
    """Return the labels that a list carries in a task: of its label file, else of its view; None without a view."""
    return file_labels(target, one, task) if task in one.labels else ruled_labels(target, one, task)


def ruled_labels(target: AuditTarget, one: AuditedList, task: int) -> Labels | None:
    """Return the labels that a list's view makes of the raw ones, whatever was written out; None without a view."""
    if one.view is None:
        return None
    origin = "the declared view" if one.view_declared else "the view that the principle asks for"
    return _applied(target, one, one.view, classes_of_task(target, task), origin)


def classes_of_task(target: AuditTarget, task: int) -> tuple[ClassEntry, ...]:
    """Return the classes with the role that each plays in a task; one that no task introduces keeps its own."""
    return tuple(
        entry if step == len(target.tasks) else msgspec.structs.replace(entry, role=_role(step, task))
        for entry, step in zip(target.classes, target.introduced_in.tolist(), strict=True)
    )


def _role(introduced: int, task: int) -> ClassRole:
    if introduced == task:
        return "known"
    return "previous" if introduced < task else "unknown"


def file_labels(target: AuditTarget, one: AuditedList, task: int) -> Labels:
    """Return the labels of a list's label file on its images; those of other images do not count."""
    file = one.labels[task]
    objects = file.source.require_objects("A label file")
    image_of = np.full(len(file.source.images) + 1, -1, np.int32)
    image_of[_positions_in_file(target, one, task)] = one.unique
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
    return chosen(labels, ~flagged | at_places_of(labels, raw_labels(target, one)))


def hidden_unknowns(target: AuditTarget, one: AuditedList, task: int) -> tuple[Int32s, int]:
    """Return the images of a list that show objects of classes still unknown in a task, and how many such objects."""
    labels = raw_labels(target, one)
    later = np.append(target.introduced_in > task, [True, False])
    rows = np.flatnonzero(later[labels.label])
    return np.unique(labels.image[rows]), len(rows)


def chosen(labels: Labels, rows: Bools) -> Labels:
    """Return some rows of labels."""
    columns = ("image", "label", "boxes", "crowd", "difficult", "ignore")
    return replace(labels, **{name: getattr(labels, name)[rows] for name in columns})


def keys_of(labels: Labels, label: Int32s) -> npt.NDArray[np.uint64]:
    """Return one number for the image, label and place of each box.

    The columns are mixed into 64 bits (splitmix64's finaliser): comparing rows of six numbers takes ten times as long,
    and two of a million boxes share a number by chance once in ten million audits.
    """
    places = np.rint(labels.boxes * 10**DECIMALS).astype(np.int64)
    key = np.zeros(len(labels), np.uint64)
    for column in (labels.image.astype(np.int64), label.astype(np.int64), *places.T):
        key = (key ^ column.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        key ^= key >> np.uint64(31)
    return key


def at_places_of(labels: Labels, others: Labels) -> Bools:
    """Return which labels lie where one of some others does, whatever the two are called."""
    ours, theirs = (keys_of(one, np.zeros_like(one.label)) for one in (labels, others))
    return np.isin(ours, theirs)


def uncovered(target: AuditTarget, one: AuditedList, task: int) -> Int32s:
    """Return the images of a list that its label file does not hold: none where no such file is given."""
    if task not in one.labels:
        return one.unique[:0]
    return one.unique[_positions_in_file(target, one, task) < 0]


def unsure(target: AuditTarget, one: AuditedList, task: int) -> Int32s:
    """Return the images of a list whose labels may be more than is seen.

    They are not in the label file or, without such a file, in no source, or in a table that may miss classes.
    """
    return uncovered(target, one, task) if task in one.labels else one.unique[target.incomplete(one.unique)]


def _positions_in_file(target: AuditTarget, one: AuditedList, task: int) -> Int32s:
    """Return the position of each image of a list in its label file, -1 where it has none."""
    key = (f"{one.name} in its label file", task)
    if key not in target.cache:
        target.cache[key] = positions_in(one.labels[task].source, _natives(target, one))
    positions: Int32s = target.cache[key]
    return positions


def located(target: AuditTarget, one: AuditedList) -> PartImages:
    """Return where the images of a list lie in the sources, those in none left out."""
    images = target.held(one)
    return PartImages(
        sources=tuple(source.objects for source in target.sources),
        source=target.home[images],
        position=target.positions[target.home[images], images],
    )


def unit_of(target: AuditTarget, one: AuditedList) -> str:
    """Return what the sources of a list's images count: boxes, or pairs of image and class where one is a table."""
    homes = np.unique(target.home[one.unique])
    units = [target.sources[home].unit for home in homes.tolist() if home >= 0]
    return next((unit for unit in units if unit != "boxes"), "boxes")


def _applied(
    target: AuditTarget, one: AuditedList, view: LabelView, classes: tuple[ClassEntry, ...], origin: str
) -> Labels:
    images = target.held(one)
    if not len(images):
        empty, never = np.empty(0, np.int32), np.empty(0, np.bool_)
        return Labels(empty, empty, np.empty((0, 4)), never, never, never, "boxes", origin)
    kept = select_objects(classes, view, located(target, one))
    boxes = np.zeros((len(kept), 4))
    for number, source in enumerate(target.sources):
        rows = kept.source == number
        if rows.any():
            boxes[rows] = source.objects.require_objects("A label view").boxes[kept.index[rows]]
    renamed = (kept.category_id == UNKNOWN_ID) & (view is not EVERYTHING)
    return Labels(
        image=images[kept.image],
        label=np.where(renamed, np.int32(target.unknown_label), kept.label),
        boxes=boxes,
        crowd=kept.crowd,
        difficult=kept.difficult,
        ignore=kept.ignore,
        unit=unit_of(target, one),
        origin=origin,
    )


def _natives(target: AuditTarget, one: AuditedList) -> list[str]:
    """Return the ids of a list's images as annotation files write them: without a namespace."""
    texts = [str(text) for text in target.ids[one.unique].tolist()]
    return [text.partition(":")[2] or text for text in texts] if target.kind == "manifest" else texts
