"""The problem that a detector is scored on: which classes it knows, which are unknown, ignored or of earlier tasks.

Ground truth and predictions are columns over one list of images and one list of classes.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from curation.core.columns import distinct
from curation.core.errors import EvaluationError
from curation.core.json_text import decode_json
from curation.core.reading import read_plain
from curation.manifest.header import classes_in, unknown_index
from curation.manifest.manifest import Manifest
from curation.sources.identity import ImageIndex, Resolved
from curation.sources.integrity import MAX_COORDINATE as MAX_COORDINATE
from curation.sources.source import Source

Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Stray = Literal["error", "drop"]
"""What to do with predictions on other images: reject them, or leave them out and count them."""
LARGEST_SCORE = 1e100
"""Largest score or logit: beyond those of any network, and small enough that no sum of squares overflows."""
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """The annotated objects of a part.

    Attributes
    ----------
    image_numbers : ndarray of int64, shape (n,)
        The ids that predictions refer to, ascending: the order in which wilderness levels take images.
    classes : tuple of str, length K
        The known classes.
    class_numbers : tuple of int or None, length K
        Category ids that predictions use for them; None for a class that has only a name.
    image : ndarray of int32, shape (m,)
        Position in `image_numbers`; objects are grouped by it, in file order within an image.
    label : ndarray of int32, shape (m,)
        Position in `classes`, or -1 for an unknown object.
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels, origin top left.
    crowd, difficult : ndarray of bool, shape (m,)
    original : tuple of str, length m, or None
        The dataset's own class of each object (``elephant`` of an unknown one).
    areas : ndarray of float64, shape (m,)
    index : ImageIndex, or None
        All N images of the annotation file, by which references are resolved; None: `image_numbers` are the ids, and
        the file has no other images.
    part_positions : ndarray of int32, shape (N,), or None
        Position in `image_numbers` of each image of `index`, -1 for images outside the part.
    image_ids : tuple of str, length n, or ()
        Namespaced ids: those of the list that chose the images, where there is one, else the annotation file's.
    unknown_numbers : tuple of int
        Category ids that predictions may use for ``unknown`` where that is none of the classes.
    sizes : ndarray of int32, shape (n, 2), or None
        Width and height of each image in pixels, 0 where the annotation file does not say.
    federated : ndarray of int32, shape (p, 3), or None
        Image, label and position in `curation.sources.source.FEDERATED`, of a dataset that labels each image for some
        classes alone. COCO AP uses it; all other measures treat every image as labelled.
    yolo_classes : tuple of str
        All names of the ``data.yaml`` that numbers the classes from 0; empty where `class_numbers` come from elsewhere.
    """

    image_numbers: Int64s
    classes: tuple[str, ...]
    class_numbers: tuple[int | None, ...]
    image: Int32s
    label: Int32s
    boxes: Floats
    crowd: Bools
    difficult: Bools
    areas: Floats
    original: tuple[str, ...] | None = None
    index: ImageIndex | None = None
    part_positions: Int32s | None = None
    image_ids: tuple[str, ...] = ()
    unknown_numbers: tuple[int, ...] = (-1,)
    sizes: Int32s | None = None
    federated: Int32s | None = None
    yolo_classes: tuple[str, ...] = ()

    @property
    def n_images(self) -> int:
        """Number of images, annotated or not."""
        return len(self.image_numbers)

    @property
    def has_no_category_ids(self) -> bool:
        """Whether the truth has classes, and none of them has a category id."""
        known = [number for name, number in zip(self.classes, self.class_numbers, strict=True) if name != UNKNOWN]
        return bool(known) and not any(number is not None for number in known)

    @property
    def image_index(self) -> ImageIndex:
        """All images of the annotation file."""
        return self.index or ImageIndex(self.image_numbers, ("",) * self.n_images)

    @property
    def file_positions(self) -> Int64s:
        """Position in `image_index` of each image of the part, shape (n,)."""
        if self.part_positions is None:
            return np.arange(self.n_images)
        rows = np.flatnonzero(self.part_positions >= 0)
        return rows[np.argsort(self.part_positions[rows])].astype(np.int64)

    @classmethod
    def joined(cls, parts: Sequence[GroundTruth], rank: Int64s) -> GroundTruth:
        """Return one ground truth of several parts with the same classes; references can no longer be resolved.

        Parameters
        ----------
        rank : ndarray of int64, shape (n,)
            New position of each image; the images of all parts are numbered one part after the other.
        """
        first = np.cumsum([0, *(part.n_images for part in parts)])
        image = rank[np.concatenate([part.image + start for part, start in zip(parts, first, strict=False)])]
        rows = np.argsort(image, kind="stable")
        order = np.argsort(rank)

        def column(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])[rows]

        label, boxes, crowd, difficult, areas = map(column, ("label", "boxes", "crowd", "difficult", "areas"))
        originals = [name for part in parts for name in part.original or ("",) * len(part.label)]
        ids = [image for part in parts for image in part.image_ids or map(str, part.image_numbers.tolist())]
        sizes = [np.zeros((part.n_images, 2), np.int32) if part.sizes is None else part.sizes for part in parts]
        return cls(
            np.arange(len(rank)),
            parts[0].classes,
            parts[0].class_numbers,
            image[rows].astype(np.int32),
            label,
            boxes,
            crowd,
            difficult,
            areas,
            original=tuple(map(originals.__getitem__, rows.tolist())),
            image_ids=tuple(map(ids.__getitem__, order.tolist())),
            sizes=np.concatenate(sizes)[order],
        )

    def resolve(
        self, ids: Int64s | Sequence[int | str | None] | None, names: Sequence[str | None] | None = None
    ) -> Resolved:
        """Return the position in the part of each reference (`curation.sources.identity.ImageIndex.resolve`)."""
        resolved = self.image_index.resolve(ids, names)
        return replace(resolved, position=self.in_part(resolved.position))

    def in_part(self, positions: Int32s) -> Int32s:
        """Return positions in the part of images of the annotation file; negative ones stay, -1 outside the part."""
        if self.part_positions is None or not len(self.part_positions):
            return positions
        part: Int32s = np.where(positions >= 0, self.part_positions[positions], positions)
        return part

    @property
    def stated_sizes(self) -> Floats:
        """Width and height of each image in pixels, NaN where unstated; shape (n, 2)."""
        sizes = np.zeros((self.n_images, 2)) if self.sizes is None else self.sizes
        return np.where(sizes > 0, sizes, np.nan)


@dataclass(frozen=True, slots=True)
class Detections:
    """Predicted boxes of a part, in input order; input order decides ties.

    Attributes
    ----------
    image : ndarray of int32, shape (d,)
        Position in the ground truth's `image_numbers`.
    label : ndarray of int32, shape (d,)
        Position in the ground truth's `classes`.
    boxes : ndarray of float64, shape (d, 4)
        ``x, y, w, h`` in pixels.
    scores : ndarray of float64, shape (d,)
    background_scores : ndarray of float64, shape (d,), or None
        Softmax score of the background class, for the background gap (Fig. 8 of the Elephant paper).
    """

    image: Int32s
    label: Int32s
    boxes: Floats
    scores: Floats
    background_scores: Floats | None = None

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def joined(cls, parts: Sequence[Detections]) -> Detections:
        """Return the detections of all parts, one part after the other, without their background scores."""
        columns = ((part.image, part.label, part.boxes, part.scores) for part in (NO_DETECTIONS, *parts))
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))

    def take(self, rows: Int64s | Bools) -> Detections:
        """Return some detections in the order of `rows`, without their background scores."""
        return Detections(self.image[rows], self.label[rows], self.boxes[rows], self.scores[rows])

    def on(self, images: Int64s) -> Detections:
        """Return the detections with each image at another position."""
        return replace(self, image=images[self.image].astype(np.int32))

    def unscored(self) -> Detections:
        """Return the detections with score 1 for all: their order is that of the file."""
        return replace(self, scores=np.ones(len(self)))


NO_DETECTIONS = Detections(np.empty(0, np.int32), np.empty(0, np.int32), np.empty((0, 4)), np.empty(0))


class Scene(NamedTuple):
    """Truth and detections of a closed part and of a wilderness, which one detector is scored on.

    Attributes
    ----------
    closed, wilderness : GroundTruth
    inside, outside : Detections
        Detections on the closed and on the wilderness images.
    """

    closed: GroundTruth
    inside: Detections
    wilderness: GroundTruth
    outside: Detections

    @property
    def parts(self) -> tuple[tuple[GroundTruth, Detections], tuple[GroundTruth, Detections]]:
        """The closed part and the wilderness, each with its detections."""
        return (self.closed, self.inside), (self.wilderness, self.outside)


def of_classes(truth: GroundTruth, detections: Detections, classes: Int64s) -> tuple[GroundTruth, Detections]:
    """Return ground truth and detections restricted to some classes; a label of another class becomes -1.

    Parameters
    ----------
    classes : ndarray of int64, shape (k,)
        Positions in `GroundTruth.classes`, ascending.
    """
    new_label = np.full(len(truth.classes) + 1, -1, np.int32)
    new_label[classes] = np.arange(len(classes), dtype=np.int32)
    federated = truth.federated
    if federated is not None:
        federated = np.column_stack([federated[:, 0], new_label[federated[:, 1]], federated[:, 2]]).astype(np.int32)
        federated = federated[federated[:, 1] >= 0]
    return replace(
        truth,
        classes=tuple(truth.classes[label] for label in classes.tolist()),
        class_numbers=tuple(truth.class_numbers[label] for label in classes.tolist()),
        label=new_label[truth.label],
        federated=federated,
    ), replace(detections, label=new_label[detections.label])


def classes_in_use(truth: GroundTruth, *detections: Detections) -> Int64s:
    """Return the position of each class that objects or detections have, ascending."""
    labels = [truth.label[truth.label >= 0], *(part.label for part in detections)]
    return distinct(np.concatenate(labels)).astype(np.int64)


UNKNOWN = "unknown"
UNKNOWN_NUMBER = -1

CategoryIds = Literal["truth", "manifest"]
"""Whose category ids detections use: those of the ground truth's file, or the indices of the manifest's classes."""


@dataclass(frozen=True, slots=True)
class KnownClasses:
    """The classes a detector knows.

    Attributes
    ----------
    names : tuple of str, length K
    numbers : tuple of int or None, length K
        Category ids that detections use; None for a class that has only a name.
    aliases : mapping of str to str
        Other names of known classes in annotation files (``airplane`` of ``aeroplane``).
    origin : str
        Source of the list: a file, a manifest, or the categories of the closed truth.
    unknown_numbers : tuple of int
        Category ids that detections may use for ``unknown``.
    ids_from : {"truth", "manifest"}
        Owner of the ids in `numbers`.
    """

    names: tuple[str, ...]
    numbers: tuple[int | None, ...]
    origin: str
    aliases: Mapping[str, str] = field(default_factory=dict)
    unknown_numbers: tuple[int, ...] = (UNKNOWN_NUMBER,)
    ids_from: CategoryIds = "truth"


Form = TypeVar("Form")
Names = tuple[str, ...]
CLASS_EXAMPLE = '{"known": ["cat", "dog"], "unknown": ["elephant"]}'


def read_class_file(path: Path, form: type[Form], example: str, *, subject: str = "class file") -> Form:
    """Return the content of a JSON file of classes; an `EvaluationError` about another form contains an example."""
    data = read_plain(path, kind="class file")
    return decode_json(data, form, EvaluationError, f"The {subject} cannot be read", where=str(path), expected=example)


class ClassFile(msgspec.Struct):
    """Content of a file of known and unknown classes, with the relation between the two."""

    known: Annotated[Names, Meta(min_length=1)]
    unknown: Names = ()
    taxonomy: str = ""


def class_file(path: Path) -> ClassFile:
    """Return a JSON file ``{"known": [...], "unknown": [...]}``.

    Raises
    ------
    MissingFileError
        No such file.
    EvaluationError
        It is not such a file, has no known class, or lists a class twice.
    """
    listed = read_class_file(path, ClassFile, CLASS_EXAMPLE)
    if twice := repeated((*listed.known, *listed.unknown)):
        raise EvaluationError(
            "A class is listed twice", where=str(path), expected="each class once", found=twice[0][:80]
        )
    return listed


def classes_of_source(source: Source) -> KnownClasses:
    """Return the categories of a closed truth without ``unknown`` (id -1 or that name)."""
    pairs = zip(source.categories.names, source.categories.category_ids, strict=True)
    known = [pair for pair in pairs if pair[0] != UNKNOWN and pair[1] != UNKNOWN_NUMBER]
    return KnownClasses(
        tuple(name for name, _ in known),
        tuple(number for _, number in known),
        "categories of the closed truth",
        unknown_numbers=_unknown_numbers(source),
    )


def _unknown_numbers(source: Source) -> tuple[int, ...]:
    """Return the ids that ``unknown`` may have in detections: -1, and that of the source's category of this name."""
    pairs = zip(source.categories.names, source.categories.category_ids, strict=True)
    numbers = (number for name, number in pairs if name == UNKNOWN and number is not None)
    return tuple(dict.fromkeys((UNKNOWN_NUMBER, *numbers)))


def _own_numbers(source: Source, known: Names, aliases: Mapping[str, str], hint: str) -> tuple[int | None, ...]:
    """Return the category id of each known class in a truth; a missing class is an `EvaluationError`."""
    spelled = (aliases.get(name, name) for name in source.categories.names)
    numbers = dict(zip(spelled, source.categories.category_ids, strict=True))
    if missing := [name for name in known if name not in numbers]:
        raise EvaluationError(
            f"The truth lacks the categories of {len(missing)} known classes",
            where=files_of(source),
            expected="some of: " + ", ".join(source.categories.names)[:_SHOWN],
            found=", ".join(missing)[:_SHOWN],
            hint=hint,
        )
    return tuple(numbers[name] for name in known)


def classes_of_file(path: Path, source: Source) -> KnownClasses:
    """Return the known classes of a `class_file`, with the ids of `source`.

    Raises
    ------
    MissingFileError
        No such file.
    EvaluationError
        It is not such a file, lists a class twice, or the closed truth has no category of a known class.
    """
    names = class_file(path).known
    numbers = _own_numbers(source, names, {}, f"does {path.name} spell the classes as the truth does?")
    unknown = () if UNKNOWN in names else _unknown_numbers(source)
    return KnownClasses(names, numbers, path.name, unknown_numbers=unknown)


def classes_of_manifest(
    manifest: Manifest, source: Source | None = None, ids: CategoryIds | None = None, part: str = ""
) -> KnownClasses:
    """Return the known classes of a manifest with its aliases, and the category ids that detections use.

    Parameters
    ----------
    source : Source, optional
        The closed truth. If its file has category ids, detections use them: the detector was given that file, or the
        file that it was made from.
    ids : {"truth", "manifest"}, optional
        Overrides this rule.
    part : str
        Part whose known classes are returned, if the roles of classes differ between parts: those of its task and of
        earlier tasks.

    Raises
    ------
    EvaluationError
        Detections use the ids of the truth, and its file lacks the category of a known class, or has no ids.
    """
    header = manifest.header
    classes, roles = header.classes, ["known"]
    if part:
        entry = manifest.part(part)
        roles = [role for role in ("known", "previous") if getattr(entry.view, role) != "rename:unknown"]
        classes = classes_in(header, entry)
    indices = {entry.name: entry.index for entry in classes if entry.role in roles}
    aliases = {alias: entry.name for entry in classes if entry.name in indices for alias in entry.aliases}
    names, origin = tuple(indices), f"manifest {header.name} {header.version}"
    unknown = tuple(dict.fromkeys((UNKNOWN_NUMBER, unknown_index(header))))
    if source is None or not counts_truth_ids(source, ids):
        return KnownClasses(names, tuple(indices.values()), origin, aliases, unknown, "manifest")
    hint = "--category-ids manifest takes the manifest's ids; --classes FILE names other classes"
    own_numbers = _own_numbers(source, names, aliases, hint)
    return KnownClasses(names, own_numbers, origin, aliases, _unknown_numbers(source))


def counts_truth_ids(source: Source, ids: CategoryIds | None) -> bool:
    """Return whether detections use the category ids of a ground truth: by default, if its file has ids.

    Raises
    ------
    EvaluationError
        `ids` is ``"truth"``, and the file has none.
    """
    if ids == "truth" and not source.has_category_ids:
        raise EvaluationError(
            "The ground truth has no category ids",
            where=files_of(source),
            expected="a COCO JSON file",
            hint="--category-ids manifest",
        )
    return source.has_category_ids and ids != "manifest"


_EXAMPLE = '{"tasks": [{"name": "t1", "prev": [], "cur": ["person", "dog"], "rest": ["truck"]}]}'


@dataclass(frozen=True, slots=True)
class ClassRoles:
    """Which classes a detector knows and which are unknown to it, in one task or case of a benchmark.

    Attributes
    ----------
    name : str
        Name of the task or case.
    previous, current : tuple of str
        Classes introduced by earlier tasks and by this one; a detector of this task knows both.
    rest : tuple of str, or None
        Classes that are unknown in this task; None for every other class of the ground truth.
    numbers : mapping of str to int, or None
        Category id that detections use for each class; None for the ids of the ground truth.
    unknown_numbers : tuple of int
        Category ids that detections may use for ``unknown``.
    aliases : mapping of str to str
        Other names of classes in annotation files and detections (``aeroplane`` of ``airplane``).
    origin : str
        Source of the lists: a file, a manifest, or the truth.
    taxonomy : str
        Relation of a known class to an unknown one; ``""`` if it is not declared.
    """

    name: str
    previous: tuple[str, ...]
    current: tuple[str, ...]
    rest: tuple[str, ...] | None
    origin: str
    numbers: Mapping[str, int] | None = None
    unknown_numbers: tuple[int, ...] = (UNKNOWN_NUMBER,)
    aliases: Mapping[str, str] = field(default_factory=dict)
    taxonomy: str = ""

    @property
    def ids_from(self) -> CategoryIds:
        """Whose category ids detections use."""
        return "truth" if self.numbers is None else "manifest"

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the previous classes, then of the current ones."""
        return self.previous + self.current

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the unknown classes; empty if every other class of the ground truth is unknown."""
        return self.rest or ()


class _TaskRecord(msgspec.Struct):
    name: str
    cur: Names
    prev: Names = ()
    rest: Names | None = None


class _TaskFile(msgspec.Struct):
    tasks: Annotated[tuple[_TaskRecord, ...], Meta(min_length=1)]


def tasks_of_file(path: Path) -> tuple[ClassRoles, ...]:
    """Return the tasks of a JSON file ``{"tasks": [{"name", "prev", "cur", "rest"}]}``, in file order.

    ``rest`` is optional: without it, every class that is neither in ``prev`` nor in ``cur`` is unknown.

    Raises
    ------
    MissingFileError
        No such file.
    EvaluationError
        It is not such a file, two tasks have the same name, a class is listed twice in one task (in any case), a class
        is called ``unknown``, or a task has no known class.
    """
    if path.suffix.lower() == ".toml":
        hint = f"--manifest DIR in place of --classes: curation build {shlex.quote(str(path))} … --out DIR"
        raise EvaluationError("--classes takes JSON", where=str(path), expected=_EXAMPLE, found="TOML", hint=hint)
    listed = read_class_file(path, _TaskFile, _EXAMPLE, subject="task file").tasks
    if twice := repeated(record.name for record in listed):
        raise EvaluationError("Two tasks share a name", where=str(path), found=twice[0][:80])
    for record in listed:
        names = (*record.prev, *record.cur, *(record.rest or ()))
        # Names that differ only in case are one class spelled twice (BipolarForcepsDown, BipolarForcepsDOwn).
        twice = repeated(name.casefold() for name in names)
        if twice or UNKNOWN in names or not record.prev + record.cur:
            raise EvaluationError(
                "A class is listed twice in one task"
                if twice
                else "'unknown' is listed as a class"
                if UNKNOWN in names
                else "A task knows no class",
                where=f"{path}: task {record.name!r}"[:_SHOWN],
                expected="each class once, in prev, cur or rest; at least one known; 'unknown' needs no listing",
                found=twice[0][:80] if twice else None,
            )
    return tuple(ClassRoles(record.name, record.prev, record.cur, record.rest, path.name) for record in listed)


def tasks_of_manifest(manifest: Manifest) -> tuple[ClassRoles, ...]:
    """Return the tasks of a manifest with its category ids and aliases; the id of ``unknown`` follows its classes.

    Raises
    ------
    EvaluationError
        The manifest has no tasks.
    """
    header = manifest.header
    if not header.tasks:
        raise EvaluationError(
            "The manifest has no tasks",
            where=f"{header.name} {header.version}",
            expected="an OWOD manifest, whose header lists the classes that each task introduces",
            hint="curation list shows all benchmarks; --classes FILE in place of --manifest",
        )
    numbers = {entry.name: entry.index for entry in header.classes}
    unknown = unknown_index(header)
    aliases = {alias: entry.name for entry in header.classes for alias in entry.aliases}
    every = dict.fromkeys(name for task in header.tasks for name in task.introduced) | dict.fromkeys(numbers)
    previous: Names = ()
    tasks = []
    for task in header.tasks:
        known = (*previous, *task.introduced)
        tasks.append(
            ClassRoles(
                task.name,
                previous,
                task.introduced,
                tuple(name for name in every if name not in known),
                f"manifest {header.name} {header.version}",
                numbers,
                tuple(dict.fromkeys((unknown, UNKNOWN_NUMBER))),
                aliases,
            )
        )
        previous = known
    return tuple(tasks)


def numbered(task: ClassRoles, source: Source, ids: CategoryIds | None = None) -> ClassRoles:
    """Return a manifest's task with the category ids that its detections use.

    These are the ids of the ground truth if its file has ids: the detector was given that file, or the file that it
    was made from. Otherwise, or as `ids` states, they are the indices of the manifest's classes.

    Raises
    ------
    EvaluationError
        `ids` is ``"truth"``, and the file has none.
    """
    if task.numbers is None or not counts_truth_ids(source, ids):
        return task
    return replace(task, numbers=None, unknown_numbers=(UNKNOWN_NUMBER,))


def task_of_truth(source: Source, name: str = "test") -> ClassRoles:
    """Return the task of an exported test view: it introduces every category but ``unknown``.

    Raises
    ------
    EvaluationError
        The file has no category ``unknown``, or no other one.
    """
    known = tuple(category for category in source.categories.names if category != UNKNOWN)
    if len(known) == len(source.categories.names) or not known:
        raise EvaluationError(
            "Nothing says which classes are known",
            where=files_of(source),
            expected="a test view with known classes and a category named 'unknown', or a list of tasks",
            found=", ".join(source.categories.names)[:_SHOWN] or "no category",
            hint="--classes FILE names the tasks; --manifest MANIFEST takes them from a manifest",
        )
    return ClassRoles(name, (), known, (), "categories of the truth")


def known_classes_of_task(task: ClassRoles, source: Source) -> KnownClasses:
    """Return the known classes of a task, as input of `curation.evaluation.truth.ground_truth`.

    Raises
    ------
    EvaluationError
        The truth lacks the category of a known class, or has objects of a class that the task does not name.
    """
    numbers = _own_numbers(
        source, task.known, task.aliases, f"is this the test view of another {'case' if task.taxonomy else 'task'}?"
    )
    if task.rest is not None:
        expected = {*task.known, *task.rest, UNKNOWN}
        used = set(source.require_objects("An evaluation").category.tolist())
        names = enumerate(source.categories.names)
        unnamed = [name for number, name in names if number in used and task.aliases.get(name, name) not in expected]
        if unnamed:
            raise EvaluationError(
                f"The truth has objects of classes that task {task.name} does not name",
                where=files_of(source),
                expected="every class in prev, cur or rest (without rest: all others are unknown)",
                found=", ".join(unnamed)[:_SHOWN],
                hint="add them to rest if a detector of this task does not know them",
            )
    known = set(task.known)
    return KnownClasses(
        task.known,
        numbers if task.numbers is None else tuple(task.numbers[name] for name in task.known),
        task.origin,
        {alias: name for alias, name in task.aliases.items() if name in known},
        ids_from=task.ids_from,
    )


def choose_tasks(tasks: tuple[ClassRoles, ...], requested: Iterable[str]) -> tuple[ClassRoles, ...]:
    """Return the requested tasks in the order of `tasks`; an unknown name is an `EvaluationError`."""
    names = list(requested)
    missing = [name for name in names if name not in {task.name for task in tasks}]
    if missing:
        raise EvaluationError(
            "No such task",
            where=tasks[0].origin,
            expected=", ".join(task.name for task in tasks)[:_SHOWN],
            found=repr(missing[0][:80]),
            hint=f"--task {shlex.quote(tasks[0].name)} names a task; `curation build` reads a .toml file"
            if missing[0].lower().endswith((".toml", ".json"))
            else _did_you_mean(missing[0], [task.name for task in tasks]),
        )
    return tuple(task for task in tasks if task.name in names)


def _did_you_mean(name: str, names: Sequence[str]) -> str | None:
    """Return a hint that names the intended task: ``t2`` for ``2`` and for ``t2_test``."""
    near = [task for task in names if task.lstrip("task_-") == name or re.split(r"[_-]", name)[0] == task]
    near = near or get_close_matches(name, names, 1)
    return f"did you mean --task {near[0]}?" if near else None


def files_of(source: Any) -> str:
    """Return the names of the files of a source or part, for messages."""
    return ", ".join(record.name for record in source.files)[:_SHOWN]


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, each once."""
    return [name for name, count in Counter(names).items() if count > 1]
