"""`AuditTarget`: the lists, tasks, label views and sources that rules judge, from a folder of lists or a manifest.

The role of a list in a folder is guessed from its name or set by the user; a manifest states it. Sources have the class
names of the benchmark; a row of a table of image and class is an object without size.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, permutations, product
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from curation.benchmarks.roles import disjoint_of
from curation.core.columns import arrow_of, encoded, text_array
from curation.core.errors import UsageError
from curation.core.tables import grouped
from curation.core.wording import short_repr
from curation.extensions.audit.classes import ClassNames, TaskClasses, classes_of, tasks_of_header
from curation.extensions.audit.identity import Images, images_of
from curation.extensions.audit.lists import LIST_ROLES, AuditedList, ListRole, ListSet, names_of_list
from curation.extensions.audit.roles import (
    ALL_TASKS,
    FINETUNE,
    ListPair,
    TaskRole,
    between_families,
    comparisons,
    said_role,
    task_roles,
    tasks_by_name,
)
from curation.manifest.disjoint import DISJOINT, ImageColumns, Shared, is_on_side, part_overlaps, share_by_design
from curation.manifest.header import ClassEntry, Header, LabelView, PartEntry, SourceEntry
from curation.manifest.manifest import Manifest
from curation.manifest.views import positions_of as positions_of_ids
from curation.review.decisions.pairs import Decision
from curation.sources.datasets import COCO_CATEGORIES, VOC_NAMES, family
from curation.sources.entries import PublishedList
from curation.sources.integrity import objects_at
from curation.sources.list_roles import ROLE_ORDER, Role, RoleGuess, read_role
from curation.sources.source import Bools, Categories, Int32s, Int64s, Objects, Source, Texts

_DIGIT = re.compile("[0-9]")

SHOWN_EXAMPLES = 5
"""Images, or other examples, that a finding names."""
DEFAULT_EXEMPLARS = 50
"""Images of each known class that a finetuning list should hold (ORE's paper)."""

PRINCIPLE: Mapping[str, LabelView] = {
    "train": LabelView(known="keep", previous="drop", unknown="drop"),
    "finetune": LabelView(known="keep", previous="keep", unknown="drop"),
    "val": LabelView(known="keep", previous="keep", unknown="drop"),
    "test": LabelView(known="keep", previous="keep", unknown="rename:unknown"),
}
"""The label view that the principle of annotation specificity asks of each role (paper, section 3.1)."""


@dataclass(frozen=True, slots=True)
class AuditedSource:
    """A raw dataset part, its classes named as the benchmark names them.

    Attributes
    ----------
    name : str
        As in ``--source NAME=PATH``.
    raw : Source
        As it was read.
    objects : Source
        The objects of the benchmark's classes, under its names; for a table of image and class, one object without
        size for each pair.
    has_boxes : bool
    complete : bool
        Whether an image without an object of a class shows none. A table of image and class may be incomplete, unless
        the user states that it is complete.
    exhaustive : tuple of str
        Classes annotated exhaustively on every image; empty if unknown.
    """

    __repr__ = short_repr

    name: str
    raw: Source
    objects: Source
    has_boxes: bool
    complete: bool
    exhaustive: tuple[str, ...]

    @property
    def unit(self) -> str:
        """What a row of `objects` is."""
        return "boxes" if self.has_boxes else "image-class pairs"


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two lists that are compared.

    Attributes
    ----------
    first, second : AuditedList
    kind : {"family", "parts", "between"}
        By `curation.extensions.audit.roles.ListPair`: ``family`` should share no image, the others are noted.
    places : (int, int)
        Positions in the lists of the folder or manifest; -1 for some lines of a list.
    roles : (str, str)
        In which they are compared.
    unlabelled : bool
        Whether one of them is training without labels.
    family : str
        That the names of a train and a test list share.
    """

    first: AuditedList
    second: AuditedList
    kind: Literal["family", "parts", "between"] = "family"
    places: tuple[int, int] = (-1, -1)
    roles: tuple[str, str] = ("", "")
    unlabelled: bool = False
    family: str = ""

    @property
    def names(self) -> tuple[str, str]:
        """Names of the two lists."""
        return self.first.name, self.second.name

    @property
    def about(self) -> str:
        """How findings call the pair."""
        word = "in" if self.roles == ("", "") else "and"
        return f"{self.second.name} {word} {self.first.name}"


@dataclass(frozen=True)
class AuditTarget:
    """The lists, sources and photos that an audit judges.

    Attributes
    ----------
    name : str
    kind : {"manifest", "folder"}
    classes : tuple of ClassEntry
        Classes of the benchmark; the tasks' roles are worked out by the rules.
    tasks : tuple of TaskClasses
    ids : ndarray of str, shape (u,)
        Every id named by any list, once: namespaced in a manifest, as written in a folder.
    files : tuple of AuditedList
        Whole lists, for the rules that judge a list by itself; equal lists of a manifest occur once.
    used : tuple of AuditedList
        Every list with the part that it plays, or slices of it with theirs.
    sources : tuple of AuditedSource
    positions : ndarray of int32, shape (sources, u)
        Position of each id among the images of each source, -1 where it has none.
    expects_tasks : bool
        Whether rules on tasks apply: False for a manifest of a benchmark that has none.
    expects_labels, expects_boxes : bool
        Whether test images need annotations, which the rule ``split`` does not require, and boxes, which manifests of
        images with one class each do not have.
    entries : tuple of SourceEntry
        The sources in a manifest's header, which state the exhaustive classes without the raw files.
    photos : mapping of str to Path
        Folder of photos of each source.
    compared : tuple of ComparedPair or None
        Pairs by the families of their names; None if tasks and roles determine the pairs.
    patterns, column : tuple of str, str
        The user's definitions of groups of images (`curation.extensions.audit.groups.Groups`).
    ignored : frozenset of str
        Folded names of ignored classes: no rule considers their objects.
    published : ListSet or None
        The lists of a folder as they were read; None for a manifest.
    role_pairs : int or None
        Number of pairs of lists with exclusive roles in any families; None if all such pairs are compared.
    disjoint : sequence of (str, str)
        Sides that share no image, from the file of a manifest's benchmark.
    paths : mapping of str to Path
        Annotation files or roots of a manifest's sources; photos may be beside them.
    judged : mapping of frozenset of str to str
        A person's decisions on pairs of images: ``same``, ``different``, ``unsure``.
    """

    __repr__ = short_repr

    name: str
    kind: Literal["manifest", "folder"]
    classes: tuple[ClassEntry, ...]
    tasks: tuple[TaskClasses, ...]
    ids: Texts
    files: tuple[AuditedList, ...]
    used: tuple[AuditedList, ...]
    sources: tuple[AuditedSource, ...]
    positions: Int32s
    expects_tasks: bool = True
    expects_labels: bool = True
    expects_boxes: bool = True
    entries: tuple[SourceEntry, ...] = ()
    exemplars: int = DEFAULT_EXEMPLARS
    photos: Mapping[str, Path] = field(default_factory=dict)
    compared: tuple[ComparedPair, ...] | None = None
    patterns: tuple[str, ...] = ()
    column: str = ""
    ignored: frozenset[str] = frozenset()
    published: ListSet | None = None
    role_pairs: int | None = None
    disjoint: Sequence[tuple[str, str]] = DISJOINT
    paths: Mapping[str, Path] = field(default_factory=dict)
    judged: Mapping[frozenset[str], Decision] = field(default_factory=dict)
    cache: dict[tuple[str, str], Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Intermediate results that rules share: raw labels by list, facts of COCO JSON."""

    @cached_property
    def lists(self) -> tuple[AuditedList, ...]:
        """Lists with a role, and slices of such."""
        return tuple(part for part in self.used if part.role)

    @cached_property
    def names(self) -> ClassNames:
        """The classes, found by any spelling."""
        return ClassNames(self.classes)

    @cached_property
    def introduced_in(self) -> Int32s:
        """First task that introduces each class, shape (classes,); the number of tasks for other classes."""
        step = np.full(len(self.classes), len(self.tasks), np.int32)
        for number, task in reversed(list(enumerate(self.tasks))):
            for name in task.introduced:
                position = self.names.position(name)
                if position >= 0:
                    step[position] = number
        return step

    @property
    def unknown_label(self) -> int:
        """The label of unknown objects in `curation.extensions.audit.rule.Labels`: the number of classes."""
        return len(self.classes)

    def with_role(self, *roles: str, task: int | None = None) -> list[AuditedList]:
        """Return the lists that have one of some roles, in one task if it is given."""
        return [part for part in self.lists if part.role in roles and (task is None or task in part.tasks)]

    @cached_property
    def columns(self) -> ImageColumns:
        """The facts of the sources on each id: file name, size and boxes, and the bytes of photos beside them."""
        positions = np.full(len(self.ids), -1, np.int32)
        held = np.flatnonzero(self.home >= 0)
        positions[held] = self.positions[self.home[held], held]
        columns = ImageColumns(self.ids, [source.raw for source in self.sources], self.home, positions)
        names = enumerate(source.name for source in self.sources)
        return columns.located({number: self.paths[name] for number, name in names if name in self.paths})

    @cached_property
    def shared_under_other_ids(self) -> list[Shared]:
        """Images with different ids and roles that the sources show to be the same image."""
        if not self.sources:
            return []
        parts = [
            PartEntry(name=part.name, role=part.role, sources=(), selection="", view=LabelView())  # type: ignore[arg-type]
            for part in self.lists
        ]
        rows = {part.name: part.unique.astype(np.int64) for part in self.lists}
        overlaps = part_overlaps(self.columns, parts, rows, self.disjoint)
        return [overlap.images for overlap in overlaps if overlap.images.evidence != "id"]

    @cached_property
    def images(self) -> Images | None:
        """The images of the lists by their paths: those of a folder, or of the sources of a manifest.

        None for a manifest without sources, as its ids may not contain the paths.
        """
        if self.published is not None:
            return self.published.images
        if not (self.home >= 0).any():
            return None
        paths = np.array([re.sub(r"\s", "_", path) for path in self.columns.path_texts.to_pylist()], object)
        paths = np.where(paths == "", self.ids, paths)
        lists = (
            PublishedList(part.name, "".join(f"{path}\n" for path in paths[part.members].tolist()).encode(), part.lines)
            for part in self.used
        )
        return images_of(list(lists))

    @property
    def pairs(self) -> list[ComparedPair]:
        """The pairs of lists that should share no image: a finetuning list lies inside the train lists (TI5)."""
        if self.compared is not None:
            return [pair for pair in self.compared if pair.kind == "family"]
        position = self.published.index if self.published else {part.name: at for at, part in enumerate(self.used)}
        return [
            ComparedPair(first, second, places=(position.get(first.name, -1), position.get(second.name, -1)))
            for left, right in self.disjoint
            for first, second in product(self._on_side(left), self._on_side(right))
            if not share_by_design(first.name, second.name)
        ]

    def _on_side(self, side: str) -> list[AuditedList]:
        return [part for part in self.lists if is_on_side(part.name, part.role, side)]

    def mask(self, lists: Iterable[AuditedList]) -> Bools:
        """Return which ids are in at least one of some lists, shape (u,)."""
        return self.where(np.concatenate([np.empty(0, np.int32), *(part.members for part in lists)]))

    def where(self, images: Int32s) -> Bools:
        """Return which ids are among some images, shape (u,)."""
        mask = np.zeros(len(self.ids), np.bool_)
        mask[images] = True
        return mask

    def shared(self, first: AuditedList, second: AuditedList) -> Int32s:
        """Return the images that are in both of two lists, ascending."""
        # Pairs follow each other by their first list.
        if self.cache.get(("shared", ""), (None,))[0] is not first:
            self.cache["shared", ""] = first, self.where(first.unique)
        shared: Int32s = second.unique[self.cache["shared", ""][1][second.unique]]
        return shared

    def examples(self, images: Int32s | Int64s, lists: Sequence[AuditedList] = ()) -> tuple[str, ...]:
        """Return the first few images by id, each with the first line of some lists that names it."""
        first = self.first(images)
        lines = (
            "; ".join(filter(None, texts)) for texts in zip(*(part.lines_of(first) for part in lists), strict=True)
        )
        suffixes = [f" ({text})" if text else "" for text in lines] if lists else [""] * len(first)
        return tuple(f"{self.ids[image]}{suffix}" for image, suffix in zip(first, suffixes, strict=True))

    def first(self, images: Int32s | Int64s) -> list[int]:
        """Return the few images whose ids come first by code point."""
        ranks = self._ranks[images]
        if len(images) > SHOWN_EXAMPLES:
            images = images[np.argpartition(ranks, SHOWN_EXAMPLES)[:SHOWN_EXAMPLES]]
        chosen: list[int] = images[np.argsort(self._ranks[images])].tolist()
        return chosen

    @cached_property
    def _ranks(self) -> Int32s:
        """Rank of each id by code point, shape (u,): sorted once, as hundreds of findings show their first ids."""
        texts = self.ids.tolist()
        ranks = np.empty(len(texts), np.int32)
        ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts), dtype=np.int32)
        return ranks

    @cached_property
    def home(self) -> Int32s:
        """Position in `sources` of the first source that holds each id, -1 if none does."""
        first = np.full(len(self.ids), -1, np.int32)
        for number in reversed(range(len(self.sources))):
            first[self.positions[number] >= 0] = number
        return first

    def held(self, part: AuditedList) -> Int32s:
        """Return the images of a list that an available source holds, ascending."""
        return part.unique[self.home[part.unique] >= 0]

    def unlocated(self, part: AuditedList) -> Int32s:
        """Return the images of a list that are in no available source."""
        return part.unique[self.home[part.unique] < 0]

    def absent(self, part: AuditedList) -> Int32s:
        """Return the images of a list that are missing from an available source to which they should belong.

        A manifest states the sources of a list. An image of a folder's list counts as missing if the available sources
        hold other images of this list with ids of the same form.
        """
        images = self.unlocated(part)
        if self.kind == "manifest":
            available = {source.name for source in self.sources}
            return images if part.sources and set(part.sources) <= available else images[:0]
        located = self.held(part)
        if not (len(images) and len(located)):
            return images[:0]
        # With digits masked, ids of a dataset usually have the same form.
        here, there = ([_DIGIT.sub("0", str(text)) for text in self.ids[rows].tolist()] for rows in (located, images))
        return images[np.isin(there, sorted(set(here)))]

    def incomplete(self, images: Int32s) -> Bools:
        """Return which images come from a source that may miss objects, or from no source."""
        partial = np.array([not source.complete for source in self.sources] + [True], np.bool_)
        return partial[self.home[images]]

    def unannotated(self, images: Int32s, classes: Bools) -> Bools:
        """Return which images may show objects of some classes without a box, as their source does not annotate these.

        VOC annotates 20 classes: an image without a box of a truck may still show a truck.
        """
        names = {self.names.folded(self.classes[row].name) for row in np.flatnonzero(classes).tolist()}
        lacking = [bool(names - {self.names.folded(name) for name in source.exhaustive}) for source in self.sources]
        return self.incomplete(images) | np.array([*lacking, True], np.bool_)[self.home[images]]


_EXHAUSTIVE: Mapping[str, tuple[str, ...]] = {"coco": tuple(name for _, name, _ in COCO_CATEGORIES), "voc": VOC_NAMES}
"""Classes that a family of datasets annotates on every image (crowds as regions)."""


def audited_source(
    name: str,
    source: Source,
    classes: Sequence[ClassEntry],
    *,
    stated: Sequence[str] = (),
    complete: Collection[str] = (),
) -> AuditedSource:
    """Return a source for an audit.

    Parameters
    ----------
    stated : sequence of str
        Classes that a manifest says are annotated exhaustively.
    complete : collection of str
        Names of the sources of which the user says that they miss no object of any of their classes.
    """
    exhaustive = tuple(stated) or known_exhaustive(source.dataset)
    if name in complete:
        exhaustive = source.categories.names
    return AuditedSource(
        name=name,
        raw=source,
        objects=_in_classes(source, classes),
        has_boxes=source.objects is not None,
        complete=source.objects is not None or name in complete,
        exhaustive=exhaustive,
    )


def known_exhaustive(dataset: str) -> tuple[str, ...]:
    """Return the classes that a dataset is known to annotate on every image; none where that is not known."""
    return _EXHAUSTIVE.get(family(dataset), ())


def _in_classes(source: Source, classes: Sequence[ClassEntry]) -> Source:
    """Return the source with only the objects of the benchmark's classes, under its names."""
    names = ClassNames(classes)
    position = np.array([*(names.position(name) for name in source.categories.names), -1], np.int32)
    objects = source.objects
    if objects is None:
        # Pairs of image and class are objects without size or flag.
        image, category = source.class_pairs()
        objects = Objects.of(image, category, np.zeros((len(image), 4)))
    in_classes = objects_at(objects, position[objects.category] >= 0)
    return replace(
        source,
        objects=replace(in_classes, category=position[in_classes.category]),
        presence=None,
        categories=Categories(
            numbers=tuple(range(len(classes))),
            names=tuple(entry.name for entry in classes),
            supercategories=("",) * len(classes),
        ),
    )


def _positions_of(images: Images, sources: Sequence[Source]) -> Int32s:
    """Return the position of each id among the images of each source, shape (sources, ids); -1 for none or two."""
    positions = np.full((len(sources), len(images)), -1, np.int32)
    for number, source in enumerate(sources):
        rows = np.flatnonzero(images.may_be_of(source.namespace))
        resolved = source.image_index.resolve(images.natives.take(arrow_of(rows)).to_pylist()).position
        positions[number, rows] = np.maximum(resolved, -1)
    return positions


_EXCLUSIVE: tuple[tuple[Role, Role], ...] = (("train", "val"), ("train", "test"), ("val", "test"))
"""Roles that share no image."""


def role_option(text: str, task_names: Sequence[str], option: str) -> TaskRole:
    """Return the role in ``ROLE[:TASK]``; a task is a number from 1 or a name, by default all tasks.

    Raises
    ------
    UsageError
        No such role or task.
    """
    role, _, task = text.partition(":")
    if role == "none":
        return TaskRole("", ALL_TASKS, "said with --role")
    chosen = "finetune" if role in FINETUNE else next((known for known in LIST_ROLES if known == role), None)
    if chosen is None:
        expected = f"{', '.join(LIST_ROLES)} or none, then :TASK"
        raise UsageError("Unknown role", where=option, expected=expected, found=role[:80])
    number = _task_number(task, task_names, option) if task and task != "all" else ALL_TASKS
    if role == "train" and number == ALL_TASKS and len(task_names) > 1:
        expected = f"train:TASK, of {', '.join(task_names)}"
        raise UsageError("A train list belongs to one task", where=option, expected=expected)
    return TaskRole(chosen, number, "said with --role")


def _task_number(text: str, names: Sequence[str], option: str) -> int:
    if text in names:
        return names.index(text) + 1
    # Without --tasks any number is valid; rules on tasks are then undecidable.
    if text.isascii() and text.isdigit() and 1 <= int(text) <= (len(names) or 99):
        return int(text)
    raise UsageError(
        "Unknown task", where=option, expected=", ".join(names) or "a number from 1, and --tasks", found=text[:80]
    )


@dataclass(frozen=True)
class FolderOptions:
    """Options of the user for the lists of a folder.

    Attributes
    ----------
    roles : mapping of str to str
        ``ROLE[:TASK]`` by list, ``none`` for no role; other roles are guessed from the names.
    views : mapping of str to LabelView
        Label view of the lists of each role.
    complete : collection of str
        Sources that miss no object of any of their classes.
    patterns : sequence of str
        Regular expressions whose first capture group is the group of an image.
    column : str
        Column of a table that is such a group.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, LabelView] = field(default_factory=dict)
    complete: Collection[str] = ()
    exemplars: int = DEFAULT_EXEMPLARS
    photos: Mapping[str, Path] = field(default_factory=dict)
    patterns: Sequence[str] = ()
    column: str = ""


def folder_target(
    lists: ListSet,
    *,
    tasks: Sequence[TaskClasses] = (),
    sources: Mapping[str, Source] | None = None,
    options: FolderOptions | None = None,
) -> AuditTarget:
    """Return the lists of a folder for an audit.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names that the user gives them.

    Raises
    ------
    UsageError
        A role is given for an unknown list.
    """
    options = _with_full_names(options or FolderOptions(), lists)
    names, tasks = [part.name for part in lists.lists], tuple(tasks)
    classes = classes_of(tasks)
    audited = tuple(
        audited_source(key, source, classes, complete=options.complete) for key, source in (sources or {}).items()
    )
    n_tasks = len(tasks) or tasks_by_name(names)
    roles_of_tasks = any(":" in text or text in (*FINETUNE, "wilderness") for text in options.roles.values())
    by_task = bool(n_tasks or roles_of_tasks)
    guesses = [_guess(part.name, options) for part in lists.lists]
    used = list[AuditedList]()
    for part, guess in zip(lists.lists, guesses, strict=True):
        text = options.roles.get(part.name)
        if text is not None:
            roles = [role_option(text, [task.name for task in tasks], f"--role {part.name}={text}")]
        elif by_task:
            roles = task_roles(part.name, len(part), n_tasks, names)
        else:
            roles = [TaskRole(guess.roles[0] if guess.roles else "", ALL_TASKS, guess.why)]
        used += [_with_role(part, role, tasks, options, None if by_task else guess) for role in roles]
    return AuditTarget(
        name=lists.name,
        kind="folder",
        classes=classes,
        tasks=tasks,
        ids=np.array(lists.images.natives.to_pylist(), object),
        files=lists.lists,
        used=tuple(used),
        sources=audited,
        positions=_positions_of(lists.images, [source.raw for source in audited]),
        expects_tasks=by_task,
        exemplars=options.exemplars,
        photos=options.photos,
        published=lists,
        role_pairs=None if by_task else _exclusive_pairs(guesses),
        compared=None if by_task else tuple(_compared(lists, used, guesses, options)),
        patterns=tuple(options.patterns),
        column=options.column,
    )


def _guess(name: str, options: FolderOptions) -> RoleGuess:
    """Return the role and family of a list: by its name, or by the option of the user."""
    option = options.roles.get(name)
    roles: tuple[Role, ...] = tuple(role for role in ROLE_ORDER if role == option)
    return said_role(name, roles) if roles or option == "none" else read_role(name)


def _compared(
    lists: ListSet, used: Sequence[AuditedList], guesses: Sequence[RoleGuess], options: FolderOptions
) -> Iterator[ComparedPair]:
    """Yield the pairs that should share no image, by names or by options of the user, then those of other kinds."""
    pairs = comparisons(guesses, [len(part) for part in lists.lists])
    pairs += _user_pairs(pairs, used, {row for row, part in enumerate(used) if part.name in options.roles})
    for pair in (*pairs, *between_families(lists.images.overlaps, pairs)):
        first, second = guesses[pair.a], guesses[pair.b]
        is_family = (first.family, first.folder) == (second.family, second.folder)
        same_family = is_family and len({*pair.roles, "train", "test"}) == 2
        family, is_unlabelled = first.family_name if same_family else "", first.unlabelled or second.unlabelled
        yield ComparedPair(used[pair.a], used[pair.b], pair.kind, (pair.a, pair.b), pair.roles, is_unlabelled, family)


def _exclusive_pairs(guesses: Sequence[RoleGuess]) -> int:
    """Return how many pairs of lists have roles that exclude each other."""
    counts = Counter(guess.roles for guess in guesses if guess.roles)
    return sum(
        counts[first] * counts[second] for first, second in combinations(counts, 2) if not set(first) & set(second)
    )


def _user_pairs(pairs: Sequence[ListPair], used: Sequence[AuditedList], rows: Collection[int]) -> list[ListPair]:
    """Return the pairs of lists of different families whose roles the user has set.

    A pair is left out if the family of each list has another such list of the other role: folds share images by design.
    """
    partners: dict[int, set[str]] = {row: set() for row in rows}
    for pair in pairs:
        if pair.kind == "family" and {pair.a, pair.b} <= partners.keys():
            partners[pair.a].add(used[pair.b].role)
            partners[pair.b].add(used[pair.a].role)
    return [
        ListPair(a, b, roles)
        for a, b in permutations(sorted(rows), 2)
        for roles in _EXCLUSIVE
        if roles == (used[a].role, used[b].role) and len(used[a]) and len(used[b])
        if roles[1] not in partners[a] or roles[0] not in partners[b]
    ]


def _with_full_names(options: FolderOptions, lists: ListSet) -> FolderOptions:
    """Return options with the full names of lists, which users may give as reports print them."""
    roles = dict[str, str]()
    for key, role in options.roles.items():
        spelled = (*names_of_list(key), *names_of_list(lists.folder + key))
        full = next((name for name in spelled if name in lists.index), None)
        if full is None:
            raise UsageError("Unknown list", where=f"--role {key[:120]}", expected=", ".join(lists.index)[:400])
        if full in roles:
            raise UsageError("A list has two roles", where=f"--role {key[:120]}={role}", expected=f"{full} named once")
        roles[full] = role
    return replace(options, roles=roles)


def _with_role(
    part: AuditedList, role: TaskRole, tasks: Sequence[TaskClasses], options: FolderOptions, guess: RoleGuess | None
) -> AuditedList:
    numbers = range(len(tasks)) if role.task == ALL_TASKS else range(role.task - 1, min(role.task, len(tasks)))
    # Without tasks, a number still distinguishes lists: validation lists of different tasks share no image.
    used_in = tuple(numbers) if tasks else (() if role.task == ALL_TASKS else (role.task - 1,))
    played = " and ".join(guess.roles) if guess and guess.roles else role.role
    if used_in and played:
        played += f" of {', '.join(tasks[n].name if n < len(tasks) else f'task {n + 1}' for n in used_in)}"
    updated = replace(
        part,
        role=role.role,
        played=f"unlabelled {played}" if guess and guess.unlabelled else played,
        family=guess.family_name if guess else "",
        why=role.why,
        tasks=used_in,
        view=options.views.get(role.role, PRINCIPLE.get(role.role)),
        view_declared=role.role in options.views,
    )
    if role.lines is None:
        return updated
    first, last = role.lines
    rows = (part.lines >= first) & (part.lines <= last)
    name = f"{part.name}[{first}-{last}]"
    played = f"{updated.played} (lines {first:,} to {last:,})"
    return replace(updated, name=name, members=part.members[rows], lines=part.lines[rows], sha256="", played=played)


_WITHOUT_BOXES = ("hierarchy", "folders")
"""Rules of benchmarks of your own whose images have one class each."""
_OPEN_WORLD = "OWOD"


def manifest_target(
    manifest: Manifest,
    sources: Mapping[str, Source],
    *,
    complete: Collection[str] = (),
    exemplars: int = DEFAULT_EXEMPLARS,
    photos: Mapping[str, Path] | None = None,
    paths: Mapping[str, Path] | None = None,
) -> AuditTarget:
    """Return a manifest for an audit.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names in the header; any may be absent.
    complete : collection of str
        Sources of which the user states that they miss no object of their classes.
    exemplars : int
        Images of each known class that a finetuning list should hold.
    photos, paths : mapping of str to Path
        Folders of photos, and annotation files or roots, by source.
    """
    # Ignored classes are neither known nor unknown: no rule considers them.
    by_role = grouped(manifest.header.classes, lambda entry: entry.role == "ignored")
    header = msgspec.structs.replace(manifest.header, classes=tuple(by_role.get(False, ())))
    entries = tuple(
        msgspec.structs.replace(entry, exhaustive=entry.exhaustive or known_exhaustive(entry.dataset))
        for entry in header.sources
    )
    audited = tuple(
        audited_source(entry.name, sources[entry.name], header.classes, stated=entry.exhaustive, complete=complete)
        for entry in entries
        if entry.name in sources
    )
    reads = [_read(part.name, manifest.lists.get(part.name, ())) for part in header.parts]
    ids = [image for part in header.parts for image in manifest.lists.get(part.name, ())]
    codes, names = encoded(text_array(ids))
    texts = names.to_pylist()
    members = np.split(codes.astype(np.int32), np.cumsum([len(read) for read in reads]))[:-1]
    positions = [positions_of_ids(texts, [source.raw])[1] for source in audited]
    tasks = tasks_of_header(header)
    lists = tuple(
        _list_of(part, header, codes, read, available=part.name in manifest.lists)
        for part, codes, read in zip(header.parts, members, reads, strict=True)
    )
    # The test list of four tasks is one list.
    files: dict[str, AuditedList] = {}
    for part in lists:
        files.setdefault(part.sha256 or part.name, part)
    class_names = ClassNames(manifest.header.classes)
    return AuditTarget(
        name=f"{header.name} {header.version}",
        kind="manifest",
        classes=header.classes,
        tasks=tasks,
        ids=np.asarray(texts, object),
        files=tuple(files.values()),
        used=lists,
        sources=audited,
        positions=np.array(positions, np.int32).reshape(len(audited), len(texts)),
        expects_tasks=bool(tasks) or header.taxonomy == _OPEN_WORLD,
        expects_labels=header.rule.protocol != "split",
        expects_boxes=header.rule.protocol not in _WITHOUT_BOXES,
        entries=entries,
        exemplars=exemplars,
        photos=photos or {},
        disjoint=disjoint_of(header),
        paths=paths or {},
        ignored=frozenset(
            class_names.folded(name) for entry in by_role.get(True, ()) for name in (entry.name, *entry.aliases)
        ),
    )


def _read(name: str, ids: Sequence[str]) -> PublishedList:
    return PublishedList(name, "".join(f"{id_}\n" for id_ in ids).encode(), np.arange(1, len(ids) + 1, dtype=np.int32))


def _role(part: PartEntry, header: Header) -> ListRole:
    """Return the role of a part; empty for variants, such as mixtures, of the list of the same task and role."""
    default_name = f"{part.task}-{part.role}"
    if part.task and part.name != default_name and any(other.name == default_name for other in header.parts):
        return ""
    return part.role


def _list_of(part: PartEntry, header: Header, members: Int32s, read: PublishedList, *, available: bool) -> AuditedList:
    role = _role(part, header)
    return AuditedList(
        name=part.name,
        whole=part.name,
        members=members,
        lines=read.lines,
        read=read,
        sha256=part.sha256 or "",
        role=role,
        played=f"{role} of {part.task or 'all'}" if role else "",
        why="the manifest says so" if role else f"{part.task}-{part.role} is the {part.role} list of {part.task}",
        tasks=tuple(number for number, task in enumerate(header.tasks) if task.name == part.task),
        view=part.view,
        view_declared=True,
        sources=part.sources,
        available=available,
        stated_repeats=part.repeats,
    )
