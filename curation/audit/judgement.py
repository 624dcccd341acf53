"""What rules share: how one is judged, a list in a task, its labels by the raw files and by a view, what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from curation.audit.lists import AuditedList, LabelFile
from curation.audit.rule import Finding, Outcome, Rule, Verdict, joined, not_applicable, undecidable
from curation.audit.target import AuditTarget, positions_in
from curation.manifest.composition import EVERYTHING
from curation.manifest.header import UNKNOWN_ID, ClassEntry, ClassRole, LabelView
from curation.manifest.views import PartImages, select_objects
from curation.short_repr import short_repr
from curation.sources.source import Bools, Floats, Int32s, Int64s
from curation.wording import counted

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

    def where(self, rows: Bools) -> Labels:
        """Return some rows."""
        columns = ("image", "label", "boxes", "crowd", "difficult", "ignore")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    def keys(self, *, named: bool = True) -> npt.NDArray[np.uint64]:
        """Return one number for the image, the place and, if `named`, the label of each box.

        The columns are mixed into 64 bits (splitmix64's finaliser): comparing rows of six numbers takes ten times as
        long, and two of a million boxes share a number by chance once in ten million audits.
        """
        places = np.rint(self.boxes * 10**DECIMALS).astype(np.int64)
        key = np.zeros(len(self), np.uint64)
        for column in (self.image.astype(np.int64), self.label.astype(np.int64) * named, *places.T):
            key = (key ^ column.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
            key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            key ^= key >> np.uint64(31)
        return key

    def at_places_of(self, others: Labels) -> Bools:
        """Return which labels lie where one of some others does, whatever the two are called."""
        return np.isin(self.keys(named=False), others.keys(named=False))


def raw_labels(target: AuditTarget, one: AuditedList) -> Labels:
    """Return every object of a list's images whose class is one of the benchmark's, with its true class."""
    key = ("raw labels", one.name)
    if key not in target.cache:
        target.cache[key] = _applied(target, one, EVERYTHING, target.classes, "the sources")
    labels: Labels = target.cache[key]
    return labels


def ruled_labels(target: AuditTarget, one: AuditedList, task: int) -> Labels | None:
    """Return the labels that a list's view makes of the raw ones, whatever was written out; None without a view."""
    if one.view is None:
        return None
    origin = "the declared view" if one.view_declared else "the view that the principle asks for"
    return _applied(target, one, one.view, classes_of_task(target, task), origin)


def classes_of_task(target: AuditTarget, task: int) -> tuple[ClassEntry, ...]:
    """Return the classes with the role that each plays in a task; one that no task introduces keeps its own."""
    roles: tuple[ClassRole, ...] = ("previous", "known", "unknown")
    return tuple(
        entry
        if step == len(target.tasks)
        else msgspec.structs.replace(entry, role=roles[1 + int(step > task) - int(step < task)])
        for entry, step in zip(target.classes, target.introduced_in.tolist(), strict=True)
    )


def file_labels(target: AuditTarget, one: AuditedList, file: LabelFile, positions: Int32s) -> Labels:
    """Return the labels of a list's label file on its images; those of other images do not count.

    Parameters
    ----------
    positions : ndarray of int32, shape (n,)
        Position in the file of each image of the list, -1 where it has none.
    """
    objects = file.source.require_objects("A label file")
    image_of = np.full(len(file.source.images) + 1, -1, np.int32)
    image_of[positions] = one.unique
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
    return labels.where(~flagged | labels.at_places_of(raw_labels(target, one)))


def positions_in_file(target: AuditTarget, one: AuditedList, file: LabelFile) -> Int32s:
    """Return the position of each image of a list in a label file, -1 where it has none."""
    texts = [str(text) for text in target.ids[one.unique].tolist()]
    if target.kind == "manifest":
        # Annotation files write ids without a namespace.
        texts = [text.partition(":")[2] or text for text in texts]
    return positions_in(file.source, texts)


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
    located = PartImages(
        sources=tuple(source.objects for source in target.sources),
        source=target.home[images],
        position=target.positions[target.home[images], images],
    )
    kept = select_objects(classes, view, located)
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


TASKS = "the classes of each task: --tasks reowod|ore|s-owodb, or a file that lists them"
ROLES = "the role of the lists: --role LIST=train, =val, =test; of tasks =train:1, =finetune:2"
SOURCES = "the raw annotations of these images: --source NAME=PATH"
BOXES = "an annotation file with boxes instead of a table of image and class: --source NAME=PATH"
COMPLETE = (
    "an annotation file instead of a table of image and class, which may miss classes: --source NAME=PATH; "
    "--exhaustive NAME if the table misses none"
)
EXHAUSTIVE = "whether every object of every class is annotated on every image of the source: --exhaustive NAME"
VIEWS = (
    "the labels that these lists carry: --labels LIST=FILE.json for published labels, "
    "or --view ROLE=VIEW for the rule behind them"
)
LABELS = "a label file that holds all images of the list: --labels LIST=FILE.json"
LISTS = "the id lists of these parts: `curation import` or `curation build` completes the manifest"


def judged(rule: Rule, target: AuditTarget) -> Outcome:
    """Return what a rule says of a target; without the tasks or the lists that it needs, that they are missing."""
    if rule.of_published_lists and target.published is None:
        return not_applicable("the benchmark is not a folder of lists")
    if rule.tasks and not target.tasks:
        if not target.expects_tasks:
            return not_applicable("the benchmark has no tasks")
        return Outcome((undecidable("tasks", TASKS),))
    if rule.roles and not target.with_role(*rule.roles):
        if target.lists or (target.published is not None and len(target.files) < 2):
            return not_applicable(f"there is no {' or '.join(rule.roles)} list")
        found = undecidable("lists", ROLES, "no name says train, val or test" if target.published else "")
        return Outcome((replace(found, lists=tuple(one.name for one in target.files)),))
    if not rule.each:
        said = rule.check(target)
        return said if isinstance(said, Outcome) else Outcome(tuple(said))
    findings: list[Finding] = []
    for case in cases(target, *rule.roles):
        findings += rule.check(case)  # type: ignore[arg-type]  # a check of one list gives findings
    return Outcome(tuple(findings))


@dataclass(frozen=True, eq=False)
class ListInTask:
    """A list in one of its tasks: what it labels there, of which images that is known, and what is missing."""

    target: AuditTarget
    one: AuditedList
    task: int

    @property
    def about(self) -> str:
        """How findings call it."""
        return self.one.name if len(self.one.tasks) == 1 else f"{self.one.name} at {self.target.tasks[self.task].name}"

    @property
    def file(self) -> LabelFile | None:
        """Its label file."""
        return self.one.labels.get(self.task)

    @property
    def is_stated(self) -> bool:
        """Whether somebody said which labels it carries, by a file or a view."""
        return self.file is not None or self.one.view_declared

    @property
    def raw(self) -> Labels:
        """Every object of its images, with its true class."""
        return raw_labels(self.target, self.one)

    @cached_property
    def labels(self) -> Labels | None:
        """What it carries: of its label file, else of its view; None without a view."""
        if self.file is not None:
            return file_labels(self.target, self.one, self.file, self._positions)
        return ruled_labels(self.target, self.one, self.task)

    @cached_property
    def _positions(self) -> Int32s:
        assert self.file is not None  # noqa: S101
        return positions_in_file(self.target, self.one, self.file)

    @property
    def uncovered(self) -> Int32s:
        """Its images that its label file lacks: none where no such file is given."""
        return self.one.unique[:0] if self.file is None else self.one.unique[self._positions < 0]

    @property
    def covered(self) -> Int32s:
        """Its images whose labels are known: those in its label file or, without such a file, in a source."""
        if self.file is None:
            return self.target.held(self.one)
        return self.one.unique[self._positions >= 0]

    @property
    def unsure(self) -> Int32s:
        """Its images whose labels may be more than is seen.

        They are not in the label file or, without such a file, in no source, or in a table that may miss classes.
        """
        images = self.one.unique
        return images[self.target.incomplete(images)] if self.file is None else self.uncovered

    @property
    def missing(self) -> list[Finding]:
        """What is not known of its labels: images that are not in the label file or, without one, in no source."""
        return unlocated(self.target, self.one) if self.file is None else self.uncovered_finding

    @property
    def uncovered_finding(self) -> list[Finding]:
        """The finding that its label file lacks some of its images: what it says of them is not known."""
        images = self.uncovered
        if self.file is None or not len(images):
            return []
        count, size = len(images), len(self.one.unique)
        text = f"label file {self.file.name} lacks {count:,} of its {counted(size, 'image')}"
        if count == size:
            every = f"all of its {size:,} images" if size > 1 else "its only image"
            text = f"label file {self.file.name} lacks {every}; it may belong to another list"
        return [undecidable(self.about, LABELS, text, self.target.examples(images, [self.one]))]

    def unseen_boxes(self, about: str) -> list[Finding]:
        """Return the finding that nothing is known of its raw boxes; none where some are there."""
        if not self.one.available:
            return missing_lists([self.one])
        if not len(self.target.held(self.one)):
            return [undecidable(about, SOURCES)]
        return [undecidable(about, BOXES)] if unit_of(self.target, self.one) != "boxes" else []

    def of(self, verdict: Verdict, images: Int32s, text: str, count: int | None = None, about: str = "") -> Finding:
        """Return a finding on some of its images; it counts these unless a count is given."""
        examples = self.target.examples(images, [self.one])
        return Finding(verdict, about or self.about, len(images) if count is None else count, text, examples)

    def passed(self, text: str) -> list[Finding]:
        """Return the finding that it keeps the rule."""
        return [Finding("pass", self.about, text=text)]

    def emitted(self) -> Bools:
        """Return which labels its view can give, shape (classes + 2,): classes, unknown, a foreign class."""
        table = np.zeros(len(self.target.classes) + 2, np.bool_)
        for position, entry in enumerate(classes_of_task(self.target, self.task)):
            treatment = getattr(self.one.view, entry.role)
            if treatment == "rename:unknown":
                table[self.target.unknown_label] = True
            elif treatment != "drop":
                table[position] = True
        return table


def cases(target: AuditTarget, *roles: str) -> list[ListInTask]:
    """Return the lists of some roles in each of their tasks."""
    return [ListInTask(target, one, task) for one in target.with_role(*roles) for task in one.tasks]


def missing_lists(lists: Sequence[AuditedList]) -> list[Finding]:
    """Return the finding that some parts of a manifest have no list."""
    names = [one.name for one in lists if not one.available]
    return [undecidable(joined(names), LISTS)] if names else []


def unlocated(target: AuditTarget, one: AuditedList) -> list[Finding]:
    """Return the finding that some images of a list are in no available source, but for test images, told by LI3."""
    if not one.available:
        return missing_lists([one])
    count = len(target.unlocated(one)) - (len(target.absent(one)) if one.role == "test" else 0)
    text = f"no available source holds {count:,} of its {counted(len(one.unique), 'image')}"
    return [undecidable(one.name, SOURCES, text)] if count else []


def unlocated_need(target: AuditTarget, lists: Sequence[AuditedList]) -> str:
    """Return which data would tell what the images of some lists show: sources for some, or fuller ones for all."""
    return SOURCES if any(len(target.unlocated(one)) for one in lists) else COMPLETE


def label_warnings(target: AuditTarget) -> list[str]:
    """Return the label files that lack images of their list, each with the first few of these images."""
    return [
        f"{found.about}: {found.text}: {'; '.join(found.examples)}"
        for one in target.lists
        for task in sorted(one.labels)
        for found in ListInTask(target, one, task).uncovered_finding
    ]


def label_text(target: AuditTarget, label: int) -> str:
    """Return the name of a label."""
    if label == target.unknown_label:
        return "unknown"
    return target.classes[label].name if label >= 0 else "a class outside the benchmark"


def forbidden_labels(case: ListInTask, forbidden: Bools) -> list[Finding]:
    """Return whether a list carries a forbidden label in a task: one judgement for the rules CO2, AS1 and AS2.

    A label file is judged by its annotations, on the images that it holds: what it says of others is not known, and a
    file without any label on a list's images proves nothing. A declared view that lets no forbidden label through is
    sound whatever the boxes; one that does is a violation, counted where the sources are available. A view that nobody
    declared is undecidable: that it could be made as the principle asks proves nothing.

    Parameters
    ----------
    forbidden : ndarray of bool, shape (classes + 2,)
        Which labels are violations: classes, unknown, a foreign class.
    """
    target, one, about = case.target, case.one, case.about
    if case.file is None:
        if one.view is None or not one.view_declared:
            return [undecidable(about, VIEWS)]
        if not (case.emitted() & forbidden).any():
            return case.passed("the declared view lets none through")
    labels = case.labels
    assert labels is not None  # noqa: S101
    rows = np.flatnonzero(forbidden[labels.label])
    if len(rows):
        names = list(dict.fromkeys(label_text(target, label) for label in labels.label[rows].tolist()))
        least = "at least " if len(case.unsure) else ""
        text = f"{least}{labels.counted(len(rows))} labelled {joined(names)} in {labels.origin}"
        found = Finding("fail", about, len(rows), text, _examples(case, labels, rows))
        return [found, *case.uncovered_finding]
    if case.file is not None:
        covered = len(case.covered)
        text = f"none among {labels.counted()} of {labels.origin} on {counted(covered, 'image')}"
        if covered and not len(labels):
            return [undecidable(about, LABELS, text), *case.uncovered_finding]
        return (case.passed(text) if covered else []) + case.uncovered_finding
    held = target.held(one)
    if not len(held):
        return [
            Finding("fail", about, text="the declared view lets such labels through; no boxes were available to count")
        ]
    text = f"none among {labels.counted()}"
    if target.incomplete(held).any():
        return [undecidable(about, COMPLETE, text)]
    return case.missing or case.passed(text)


def _examples(case: ListInTask, labels: Labels, rows: Int64s) -> tuple[str, ...]:
    texts = []
    for image in case.target.first(np.unique(labels.image[rows])):
        label = labels.label[rows[labels.image[rows] == image]][0]
        [place] = case.target.examples(np.array([image], np.int32), [case.one])
        texts.append(f"{place}: {label_text(case.target, int(label))}")
    return tuple(texts)
