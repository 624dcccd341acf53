"""The lists of tasks: training, finetuning, validation and test images of classes that become known one after another.

An image has the position of its first annotation, and a task selects it if any of its annotations, the smallest boxes
included, is of a class that the task introduces. An image without annotation is never selected.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from curation.benchmarks.benchmark import MOST_IMAGES, fact
from curation.benchmarks.parts import Part, Selection, Shown, all_images, hash_rank, make_part, show_classes
from curation.benchmarks.roles import require_disjoint_sources
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, entries_by_role
from curation.benchmarks.rules.starting import array, quoted
from curation.core.errors import ProtocolError
from curation.core.wording import examples
from curation.manifest.header import ClassEntry, LabelView, PartRole, TaskEntry, roles_at
from curation.manifest.views import class_positions
from curation.sources.source import Int64s, Source

_PAPER = "curation.benchmarks.owod"
VIEWS = fact(_PAPER, "views", dict[str, LabelView])
"""Label views of training parts, of finetuning and validation parts (``known``), and of test parts."""
_WORDS, _PAPER_WORDS = (fact(_PAPER, table, dict[str, str]) for table in ("words", "paper_words"))
PUBLISHED_SIZES = 1000, 50
"""Validation images a task, and exemplars a class, of the published benchmarks."""
_SIZE_SETTING = "validation = {0} in [parameters]"
_LISTED = 100
"""A note names the images without annotation up to this number."""
_Images = Annotated[int, Meta(ge=0, le=MOST_IMAGES)]


class TaskParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[parameters]`` of the rule.

    Attributes
    ----------
    validation : int
        Images of each validation list; 0 for no such lists.
    exemplars : int
        Images of every known class in the finetuning lists, or fewer if there are fewer; 0 for no such lists.
    order : {"sorted", "annotation"}
        Order of the training lists: by id, or by the first annotation of an image.
    test_order : {"sorted", "annotation"}
        Order of the test lists, likewise.
    crowd : {"select", "ignore"}
        Whether an image is selected for a crowd region alone.
    repeats : {"drop", "keep"}
        With a source ``first-test``: an image with classes of several tasks is listed once, or once for each.
    salt : str
        Salt of the hash ranks; by default the name of the benchmark.
    """

    validation: _Images = 0
    exemplars: _Images = 50
    order: Literal["sorted", "annotation"] = "sorted"
    test_order: Literal["sorted", "annotation"] = "sorted"
    crowd: Literal["select", "ignore"] = "select"
    repeats: Literal["drop", "keep"] = "drop"
    salt: Annotated[str, Meta(max_length=100)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSplit:
    """A benchmark file of tasks, with the sources that are open.

    Attributes
    ----------
    file : BenchmarkFile
    settings : TaskParameters
    tasks : tuple of TaskEntry
    classes : tuple of ClassEntry
        Those of the tasks are known, with indices from 0.
    sources : mapping of str to Source
        The open sources.
    train, test : str
        Names of the sources of training and of test lists; empty for none.
    first_train : tuple of str
        Sources whose images are the training list of task 1.
    first_test : str
        Source whose images all come first in the test list; the images of each later task follow, instead of every
        annotated image.
    val_list : str
        Source that lists validation images, the same number for each task.
    validation : {"hash", "published", "none"}
        Where validation images come from: the hash rank, the source `val_list`, or nowhere.
    is_packaged : bool
        Whether the file is one of this package.
    """

    file: BenchmarkFile
    settings: TaskParameters
    tasks: tuple[TaskEntry, ...]
    classes: tuple[ClassEntry, ...]
    sources: Mapping[str, Source]
    train: str
    test: str
    first_train: tuple[str, ...]
    first_test: str
    val_list: str
    validation: Literal["hash", "published", "none"]
    is_packaged: bool

    @property
    def train_slots(self) -> tuple[str, ...]:
        """Names of all sources of training images, in order."""
        return (*self.first_train, self.train) if self.train else ()

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of all sources of images, in order."""
        return tuple(filter(None, (*self.train_slots, self.first_test, self.test)))

    @property
    def size_hint(self) -> str:
        """Hint with ``{0}`` for another number of validation images."""
        return "--set val_size={0}, or --set val=none" if self.is_packaged else _SIZE_SETTING

    def labels(self, task: TaskEntry) -> list[int]:
        """Return the positions of the classes that a task introduces."""
        position = {entry.name: index for index, entry in enumerate(self.classes)}
        return [position[name] for name in task.introduced]

    def show(self, slot: str) -> Shown:
        """Return the classes that the images of a source show, with crowd regions as the parameters require."""
        return show_classes(self.sources[slot], self.classes, crowd=self.settings.crowd == "select")

    def all_of(self, slot: str) -> Selection:
        """Return all images of a source."""
        return Selection(slot, self.sources[slot], all_images(self.sources[slot]))

    def view(self, role: PartRole) -> LabelView:
        """Return the label view of the parts of a role."""
        name = role if role in {"train", "test"} else "known"
        return self.file.views.get(name, VIEWS[name])

    def part(self, task: TaskEntry, role: PartRole, selected: Sequence[Selection], rule: str) -> Part:
        """Return a part of a task, its list in the order that the parameters say."""
        return make_part(
            f"{task.name}-{role}",
            role,
            selected,
            roles_at(self.classes, self.tasks, task.name),
            view=self.view(role),
            rule=rule,
            order="listed" if self.is_listed(role) else "code_point",
            task=task.name,
        )

    def is_listed(self, role: PartRole) -> bool:
        """Return whether the images of a part are in the order of the annotations, or of a published list."""
        order = self.settings.test_order if role == "test" else self.settings.order
        return order == "annotation" and (role != "val" or self.validation == "published")

    def salt(self, purpose: str) -> str:
        """Return the salt of the hash ranks for ``finetune`` or ``val``."""
        return f"{self.settings.salt or self.file.name}/{purpose}/"

    def words(self, name: str, role: PartRole = "train", **values: object) -> str:
        """Return a sentence of ``[words]`` on the selection of a part."""
        words = _WORDS | (_PAPER_WORDS if self.is_packaged else {})
        order = "in the order of their first annotation" if self.is_listed(role) else "sorted by id"
        return words[name].format(order=order, **values)


def split_of_file(file: BenchmarkFile, sources: Mapping[str, Source] = {}, *, is_packaged: bool = False) -> TaskSplit:
    """Return tasks, classes and sources of a benchmark file."""
    classes = file.classes
    tasks = tuple(TaskEntry(name=task.name, introduced=classes.leaves(task.classes)) for task in classes.tasks)
    roles: dict[str, list[str]] = {}
    for name in file.sources:
        roles.setdefault(file.role(name), []).append(name)
    train, test, first_test, val_list = (
        roles.get(role, [""])[0] for role in ("train", "test", "first-test", "val-list")
    )
    settings = file.parameters_as(TaskParameters)
    return TaskSplit(
        file=file,
        settings=settings,
        tasks=tasks,
        classes=entries_by_role(
            {
                "known": [name for task in tasks for name in task.introduced],
                "unknown": classes.of("unknown"),
                "ignored": classes.of("ignored"),
            },
            classes.aliases,
        ),
        sources=sources,
        train=train,
        test=test,
        first_train=tuple(roles.get("first-train", ())),
        first_test=first_test,
        val_list=val_list,
        validation="published" if val_list in sources else "hash" if settings.validation else "none",
        is_packaged=is_packaged,
    )


def task_parts(split: TaskSplit) -> tuple[list[Part], dict[str, int], str]:
    """Return all parts in the order of the tasks, the number of images that each task selects, and the evidence.

    Raises
    ------
    ProtocolError
        Some training sources are given without the others; a source shows a class that the benchmark does not name,
        or no class that it names; two sources share ids; no training image remains for a task; the validation list
        does not fit.
    PresenceOnlyError
        The test source has no boxes.
    """
    sources = split.sources
    missing = [slot for slot in split.train_slots if slot not in sources]
    if missing and len(missing) < len(split.train_slots):
        raise ProtocolError(
            "Some training sources are given and others are not",
            where=f"benchmark {split.file.name}",
            expected=" ".join(f"--source {slot}=PATH" for slot in missing),
            found=", ".join(slot for slot in split.train_slots if slot in sources),
            hint="give all of them, or none for the test lists alone",
        )
    for slot in split.slots:
        if slot in sources:
            check_source(split, slot)
    training, selected = _training(split) if split.train in sources else ({}, {})
    tested = tested_parts(split)
    parts = [
        part
        for task in split.tasks
        for part in (*(training.get(task.name, ())), *(test for test in tested if test.entry.task == task.name))
    ]
    train = sources.get(split.train)
    evidence = "none" if train is None else "boxes" if train.objects is not None else "presence"
    return parts, selected, evidence


def _training(split: TaskSplit) -> tuple[dict[str, list[Part]], dict[str, int]]:
    """Return the training, finetuning and validation parts by task, and how many images each task selects."""
    catalog = split.show(split.train)
    # M-OWODB's first classes are learnt from VOC, which has their exemplars; COCO's images show some by chance.
    catalogs = [*map(split.show, split.first_train), catalog]
    ranks = hash_ranks(catalogs, split.salt("finetune"))
    later_tasks = split.tasks[1:] if split.first_train else split.tasks
    selections = [catalog.showing(split.labels(task)) for task in later_tasks]
    for task, selection in zip(later_tasks, selections, strict=True):
        if not len(selection):
            raise ProtocolError(
                "A task selects no training image",
                where=f"source {split.train}: task {task.name}",
                expected=f"an annotation of {' or '.join(task.introduced)[:200]}",
                found="none",
            )
    validation = _validation(split, catalog, selections, later_tasks)
    held_out = np.zeros(len(catalog.source.images), np.bool_)
    for positions in validation:
        held_out[positions] = True
    trained = [selection[~held_out[selection]] for selection in selections]
    for task, remaining in zip(later_tasks, trained, strict=True):
        if not len(remaining):
            raise ProtocolError(
                "The validation lists take every training image of a task",
                where=f"source {split.train}: task {task.name}",
                expected="an image that is left to train on",
                found=f"{int(held_out.sum())} validation images",
                hint=split.size_hint.format(fitting_validation([len(selection) for selection in selections])),
            )
    parts: dict[str, list[Part]] = {}
    for number, task in enumerate(split.tasks, start=1):
        rules, parts_of_task = rules_in_words(split, task, number), parts.setdefault(task.name, [])
        if task not in later_tasks:
            # M-OWODB: VOC2007 and VOC2012 trainval are taken whole.
            parts_of_task.append(split.part(task, "train", [*map(split.all_of, split.first_train)], rules["train"]))
            continue
        index = later_tasks.index(task)
        selected = [Selection(split.train, catalog.source, trained[index])]
        parts_of_task.append(split.part(task, "train", selected, rules["train"]))
        if "finetune" in rules:
            parts_of_task.append(_finetuning(split, task, catalogs, trained[: index + 1], ranks, rules["finetune"]))
        if validation:
            rule = _val_rule(split, task, index + 1, len(validation[index]))
            selected = [Selection(split.train, catalog.source, validation[index])]
            parts_of_task.append(split.part(task, "val", selected, rule))
    sizes = {task.name: len(selection) for task, selection in zip(later_tasks, selections, strict=True)}
    return parts, sizes


def _validation(
    split: TaskSplit, catalog: Shown, selections: Sequence[Int64s], tasks: Sequence[TaskEntry]
) -> list[Int64s]:
    """Return the validation images of each task; no list if the benchmark has none."""
    if split.validation == "none":
        return []
    if split.validation == "hash":
        (rank,) = hash_ranks([catalog], split.salt("val"))
        return hash_validation(selections, rank, size=split.settings.validation, setting=split.size_hint)
    listed = split.sources[split.val_list]
    segments = listed_validation(listed, catalog.source, len(selections))
    for segment, selection, task in zip(segments, selections, tasks, strict=True):
        outside = segment[~np.isin(segment, selection)]
        # The lines of another order of tasks, or of another benchmark, are wrong although the images are right. A table
        # of presence misses classes, so it proves nothing.
        if len(outside) and catalog.source.objects is not None:
            first = catalog.source.images.native[outside[0]]
            raise ProtocolError(
                f"{len(outside)} images of the validation list show no class of their task",
                where=f"{listed.files[0].name}: the lines of task {task.name}",
                expected=f"images with an annotation of a class that {task.name} introduces",
                found=f"{first} and others" if len(outside) > 1 else str(first),
                hint="is it the list of another split, or does crowd=ignore leave its images out?",
            )
    return segments


def _finetuning(
    split: TaskSplit,
    task: TaskEntry,
    catalogs: Sequence[Shown],
    trained: Sequence[Int64s],
    ranks: Sequence[Int64s],
    rule: str,
) -> Part:
    """Return the finetuning part of a task: exemplars of all classes known by then, from its training images."""
    size = split.settings.exemplars
    known = [label for earlier in split.tasks[: split.tasks.index(task) + 1] for label in split.labels(earlier)]
    *first, catalog = catalogs
    union = np.zeros(len(catalog.source.images), np.bool_)
    union[np.concatenate(trained)] = True
    pools = [*((pool, pool.order) for pool in first), (catalog, catalog.order[union[catalog.order]])]
    chosen, counts = exemplars(pools, known, ranks, size=size)
    short = ", ".join(f"{split.classes[label].name} {n}" for label, n in sorted(counts.items()) if n < size)
    selected = [
        Selection(slot, pool.source, positions)
        for slot, pool, positions in zip(split.train_slots, catalogs, chosen, strict=True)
    ]
    return split.part(task, "finetune", selected, rule + (f" Fewer: {short}." if short else ""))


def tested_parts(split: TaskSplit) -> list[Part]:
    """Return the test part of each task: one list, and each task's own view of it."""
    source = split.sources[split.test]
    source.require_objects("A test part")
    if not split.first_test:
        selected = [Selection(split.test, source, show_classes(source, split.classes).order)]
        return [split.part(task, "test", selected, split.words("test", "test")) for task in split.tasks]
    if split.first_test not in split.sources:
        return []
    catalog = split.show(split.test)
    keep = split.settings.repeats == "keep"
    later = np.concatenate([catalog.showing(split.labels(task)) for task in split.tasks[1:]])
    if not keep:
        later = later[np.sort(np.unique(later, return_index=True)[1])]
    mixed = [split.all_of(split.first_test), Selection(split.test, source, later)]
    repeats = ": an image with classes of several tasks stands once for each" if keep else ", each image once"
    rule = split.words("mixed_test", "test", first=split.first_test, second=split.test, repeats=repeats)
    return [split.part(task, "test", mixed, rule) for task in split.tasks]


def rules_in_words(split: TaskSplit, task: TaskEntry, number: int) -> dict[PartRole, str]:
    """Return a sentence on the rule of each training part of a task; no list is needed."""
    if split.first_train and number == 1:
        return {"train": split.words("first_train", sources=" and ".join(split.first_train))}
    has_validation = split.validation != "none"
    rules: dict[PartRole, str] = {
        "train": split.words(
            "train",
            task=task.name,
            number=number,
            crowd=", crowd regions included" if split.settings.crowd == "select" else ", crowd regions apart",
            less=", less the validation images of all tasks" if has_validation else "",
        )
    }
    if number > 1 and split.settings.exemplars:
        size, salt = split.settings.exemplars, split.salt("finetune")
        rules["finetune"] = split.words("finetune", size=size, task=task.name, salt=salt)
    if has_validation:
        rules["val"] = _val_rule(split, task, number, 1000)
    return rules


def _val_rule(split: TaskSplit, task: TaskEntry, number: int, size: int) -> str:
    first, last, salt = (number - 1) * size + 1, number * size, split.salt("val")
    return split.words(f"val_{split.validation}", size=size, task=task.name, salt=salt, first=first, last=last)


def unannotated(source: Source) -> Int64s:
    """Return the images without annotation."""
    return np.flatnonzero(np.bincount(source.class_pairs()[0], minlength=len(source.images)) == 0)


def note_on_presence(split: TaskSplit) -> Iterator[str]:
    """Yield a note on approximate training lists if their source has no boxes."""
    train = split.sources.get(split.train)
    if train is not None and train.objects is None:
        yield (
            "APPROXIMATE: the training lists come from a table of image and class, not from the annotations. An image "
            "is missing where the table misses its class."
        )


def note_on_unannotated(split: TaskSplit) -> Iterator[str]:
    """Yield a note on the test images without annotation if they are few."""
    test = split.sources[split.test]
    without = unannotated(test)
    if not split.first_test and 0 < len(without) <= _LISTED:
        ids = ", ".join(sorted(test.images.native[without].tolist()))
        yield (
            f"{len(without)} images of the test source carry no annotation and are left out, so that false detections "
            f"on them go unpunished: {ids}."
        )


def hash_ranks(sources: Sequence[Shown], salt: str) -> list[Int64s]:
    """Return the ranks of the annotated images of each source, by ``sha256(salt + id)`` over all sources.

    The result has one array for each source, shape (n,); images without annotation come last.
    """
    ids = np.concatenate([catalog.source.image_ids[catalog.order] for catalog in sources]).tolist()
    positions = np.empty(len(ids), np.int64)
    positions[hash_rank(ids, salt)] = np.arange(len(ids))
    ranks = []
    ends = np.cumsum([len(catalog.order) for catalog in sources])[:-1]
    for catalog, numbers in zip(sources, np.split(positions, ends), strict=True):
        rank = np.full(len(catalog.source.images), len(ids), np.int64)
        rank[catalog.order] = numbers
        ranks.append(rank)
    return ranks


def fitting_validation(sizes: Sequence[int]) -> int:
    """Return a number of validation images for every task, from the training images that each selects; 0 for none."""
    # A tenth, or fewer: if all lists were taken from the smallest task, images for training would remain.
    return min(min(sizes, default=0) // max(10, len(sizes) + 1), PUBLISHED_SIZES[0])


def hash_validation(
    selections: Sequence[Int64s], rank: Int64s, *, size: int, setting: str = _SIZE_SETTING
) -> list[Int64s]:
    """Return a validation list for each task: the first `size` of its selection by hash rank that are not in others.

    The authors drew their lists at random, with an unknown seed and an unpublished step that keeps the four disjoint.
    These lists are disjoint by construction and the same on every machine.

    Raises
    ------
    ProtocolError
        Fewer than `size` images remain for a task.
    """
    is_used = np.zeros(len(rank), np.bool_)
    chosen = []
    fits = fitting_validation([len(selection) for selection in selections])
    for number, selection in enumerate(selections, start=1):
        available = selection[~is_used[selection]]
        if len(available) < size:
            raise ProtocolError(
                "A task has too few images for its validation list",
                where=f"task {number}: validation images",
                expected=f"at most {len(available)}",
                found=str(size),
                hint=setting.format(fits),
            )
        ranked = available[np.argsort(rank[available], kind="stable")]
        chosen.append(ranked[:size])
        is_used[ranked[:size]] = True
    return chosen


def listed_validation(listed: Source, source: Source, n_tasks: int) -> list[Int64s]:
    """Return the validation lists of a published file: equally many consecutive lines for each task.

    Raises
    ------
    ProtocolError
        An image of the list is not in the source, or the tasks cannot have the same number of lines.
    """
    positions_of = {native: position for position, native in enumerate(source.images.native.tolist())}
    natives = listed.images.native.tolist()
    missing = [native for native in natives if native not in positions_of]
    if missing or not natives or len(natives) % n_tasks:
        raise ProtocolError(
            "The validation list does not belong to this training source"
            if missing
            else "The validation list does not divide by the number of tasks",
            where=listed.files[0].name,
            expected=f"images of {source.files[0].name}" if missing else f"a multiple of {n_tasks} lines",
            found=f"{len(missing)} others, the first {missing[0]}" if missing else f"{len(natives)} lines",
        )
    positions = np.array([positions_of[native] for native in natives], np.int64)
    return np.split(positions, n_tasks)


def exemplars(
    pools: Sequence[tuple[Shown, Int64s]], labels: Sequence[int], ranks: Sequence[Int64s], *, size: int
) -> tuple[list[Int64s], dict[int, int]]:
    """Return images that show every class at least `size` times, as far as there are such images, and their counts.

    Classes are processed from the rarest to the most common; each adds, by hash rank, as many images as it still
    lacks, so that an image with several rare classes counts for all of them. ORE's sampler (``balanced_ft.py``) may
    drop selected images; RE-OWOD's lists lost their balance when images of task 1 were added.

    Parameters
    ----------
    pools : sequence of (Shown, ndarray of int64)
        For each source, the classes that its images show, and the positions of the images to choose from.
    ranks : sequence of ndarray of int64
        For each source, see `hash_ranks`.

    Returns
    -------
    list of ndarray of int64
        Selected positions by source, in the order of its pool.
    dict of int to int
        Number of selected images by label.
    """
    rank = np.concatenate([ranks_of[images] for ranks_of, (_, images) in zip(ranks, pools, strict=True)])
    by_label = _numbers_by_label(pools, labels)
    is_used = np.zeros(len(rank), np.bool_)
    for label in sorted(labels, key=lambda candidate: (len(by_label[candidate]), candidate)):
        candidates = by_label[label]
        lacking = size - int(is_used[candidates].sum())
        if lacking > 0:
            free = candidates[~is_used[candidates]]
            # Ranks are distinct, and their order does not matter: no sort is needed.
            lowest = np.argpartition(rank[free], lacking - 1)[:lacking] if lacking < len(free) else slice(None)
            is_used[free[lowest]] = True
    ends = np.cumsum([len(images) for _, images in pools])[:-1]
    selected = [images[chosen] for (_, images), chosen in zip(pools, np.split(is_used, ends), strict=True)]
    return selected, {label: int(is_used[by_label[label]].sum()) for label in labels}


def _numbers_by_label(pools: Sequence[tuple[Shown, Int64s]], labels: Sequence[int]) -> dict[int, Int64s]:
    """Return the numbers of the images that show each label, counted over all pools in order."""
    by_label: dict[int, list[Int64s]] = {label: [np.empty(0, np.int64)] for label in labels}
    start = 0
    for catalog, images in pools:
        number = np.full(len(catalog.source.images), -1, np.int64)
        number[images] = np.arange(start, start + len(images))
        for label, shows in catalog.by_label(number >= 0).items():
            if label in by_label:
                by_label[label].append(number[shows])
        start += len(images)
    return {label: np.concatenate(several) for label, several in by_label.items()}


def check_source(split: TaskSplit, slot: str) -> None:
    """Raise `ProtocolError` if a source has a class that the benchmark does not name, or ids of another source."""
    source, sources = split.sources[slot], split.sources
    positions = class_positions(split.classes, source)
    used = np.flatnonzero(np.bincount(source.class_pairs()[1]))
    strangers = [source.categories.names[category] for category in used.tolist() if positions[category] < 0]
    where = f"source {slot}: {source.files[0].name if source.files else source.dataset}"
    names = [entry.name for entry in split.classes]
    if strangers:
        raise ProtocolError(
            "A source shows classes that the benchmark does not name",
            where=where,
            expected=f"the {len(names)} classes of the split"
            if split.is_packaged
            else "classes of a task, or listed as unknown or ignored in the file",
            found=examples([repr(name[:40]) for name in strangers], 5),
            hint="is it another file? Data of your own: `curation init tasks`"
            if split.is_packaged
            else _hint_for(strangers, names),
        )
    if not len(used):
        raise ProtocolError(
            "A source has no objects",
            where=where,
            expected="annotations",
            found=f"{len(source.images)} images without an object",
            hint="give the annotation file: a list of ids, or a file without annotations, has no classes",
        )
    opened = [sources[name] for name in split.slots if name in sources]
    seen = {index for each in opened for index in class_positions(split.classes, each).tolist()}
    absent = names if split.is_packaged else split.file.classes.absent
    if missing := [name for index, name in enumerate(names) if index not in seen and name not in absent]:
        offered = list(dict.fromkeys(name for each in opened for name in each.categories.names))
        near = _nearest(missing[0], offered)
        raise ProtocolError(
            "The file names a class that no source has",
            where=f"class {missing[0][:80]}",
            expected=", ".join(offered)[:300],
            found=", ".join(missing[:5]),
            hint=f"did you mean {near[0]!r}?" if near else None,
        )
    for other in split.slots[: split.slots.index(slot)]:
        if other not in sources or sources[other].namespace != source.namespace:
            continue
        shared = set(source.images.native.tolist()).intersection(sources[other].images.native.tolist())
        if shared:
            require_disjoint_sources({name: sources[name] for name in (other, slot)})
            raise ProtocolError(
                "Two sources have images of the same id",
                where=f"sources {other} and {slot}",
                expected="each id names one image",
                found=f"{len(shared)} ids in both, the first {min(shared)}",
                hint=f'if they are different images, dataset = "{source.dataset[:24]}_{slot[:7]}" in [sources.{slot}]; '
                "else remove them from one of the two files",
            )


def _nearest(name: str, names: list[str]) -> list[str]:
    """Return the names that differ only in case, else the most similar one, if any."""
    same = [offered for offered in names if offered.casefold() == name.casefold()]
    return same or difflib.get_close_matches(name, names, n=1)


def _hint_for(strangers: list[str], names: list[str]) -> str:
    """Return the keys of the file that may list classes which no task names."""
    pairs = [(known, other) for other in strangers[:20] for known in _nearest(other, names)]
    same = [pair for pair in pairs if pair[0].casefold() == pair[1].casefold()]
    rows = "; ".join(f"{quoted(known[:200])} = {array([other[:200]])}" for known, other in (same or pairs)[:5])
    alias = f"are they the same class? Then in [classes.aliases]: {rows}"
    listed = array(name[:200] for name in strangers[:20])
    ways = (
        f"in [classes], above the first task: unknown = {listed} if their objects stay unknown, or ignored = {listed} "
        "if detections of them count as neither right nor wrong"
    )
    return alias if same else f"{alias}; else {ways}" if pairs else ways
