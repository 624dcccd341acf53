"""The lists of tasks: training, finetuning, validation and test images of classes that become known one after another.

An image takes the place of its first annotation, and a task selects it if any of its annotations, the smallest boxes
included, is of a class that the task introduces. An image without annotation is never selected.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import Part, Selection, Shown, all_images, hash_rank, make_part, show_classes
from curation.benchmarks.roles import require_disjoint_sources
from curation.core.errors import ProtocolError
from curation.core.wording import examples
from curation.manifest.header import ClassEntry, LabelView, PartRole, TaskEntry, roles_at
from curation.manifest.views import class_positions
from curation.sources.source import Int64s, Source

if TYPE_CHECKING:
    from curation.benchmarks.rules.benchmark_file import BenchmarkFile

_PAPER = "curation.benchmarks.owod"
TRAIN_VIEW, KNOWN_VIEW, TEST_VIEW = fact(_PAPER, "views", dict[str, LabelView]).values()
RULES = fact(_PAPER, "rules", dict[str, str])
"""The rules of the lists in words."""
PUBLISHED_SIZES = 1000, 50
"""Validation images a task, and exemplars a class, of the published benchmarks."""
SIZE_SETTING = "--set val_size={0}, or --set val=none; in a task file validation = {0}"
_LISTED = 100
"""Images without annotation are named one by one up to this number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSplit:
    """Classes by task, and the sources that the lists are selected from.

    Attributes
    ----------
    tasks : tuple of TaskEntry
    classes : tuple of ClassEntry
    train, test : str
        Names of the sources of training and of test lists; `train` is empty where there is none.
    first_train : tuple of str
        Sources that are wholly the training list of task 1.
    first_test : str
        Source that comes first in the test list, as a whole; then the test list takes the images of each later task
        in turn, instead of every annotated image.
    stated : BenchmarkFile or None
        A user's own file.
    """

    tasks: tuple[TaskEntry, ...]
    classes: tuple[ClassEntry, ...]
    train: str
    test: str
    first_train: tuple[str, ...] = ()
    first_test: str = ""
    stated: BenchmarkFile | None = None

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of all sources of images, in order."""
        return tuple(filter(None, (*self.first_train, self.train, self.first_test, self.test)))


@dataclass(frozen=True, slots=True)
class Given:
    """What a build has to work with.

    Attributes
    ----------
    split : TaskSplit
    sources : mapping of str to Source
    parameters : mapping
        ``order``, ``test_order``, ``crowd``, ``val``, ``val_size``, ``exemplars``, ``repeats`` and ``salt``, as
        ``owod.toml`` declares them.
    size_setting : str
        Where the user states another number of validation images.
    """

    split: TaskSplit
    sources: Mapping[str, Source]
    parameters: Mapping[str, Any]
    size_setting: str = SIZE_SETTING

    def listed(self, role: PartRole = "train") -> bool:
        """Return whether the order of a part is that of the annotations."""
        by_annotation = self.parameters["test_order" if role == "test" else "order"] == "annotation"
        return bool(by_annotation and (role != "val" or self.parameters["val"] == "published"))

    def labels(self, task: TaskEntry) -> list[int]:
        """Return the positions of the classes that a task introduces."""
        position = {entry.name: index for index, entry in enumerate(self.split.classes)}
        return [position[name] for name in task.introduced]

    def show(self, slot: str) -> Shown:
        """Return what the images of a source show, crowd regions as the parameters say."""
        crowd = self.parameters["crowd"] == "select"
        return show_classes(self.sources[slot], self.split.classes, crowd=crowd)

    def whole(self, slot: str) -> Selection:
        """Return all images of a source."""
        return Selection(slot, self.sources[slot], all_images(self.sources[slot]))

    def part(self, task: TaskEntry, role: PartRole, selected: Sequence[Selection], view: LabelView, rule: str) -> Part:
        """Return a part of a task, its list in the order that the parameters say."""
        return make_part(
            f"{task.name}-{role}",
            role,
            selected,
            roles_at(self.split.classes, self.split.tasks, task.name),
            view=view,
            rule=rule,
            order="listed" if self.listed(role) else "code_point",
            task=task.name,
        )


Published = Callable[[Given, Shown, Sequence[Int64s], Sequence[TaskEntry]], list[Int64s]]
"""Returns the validation images of each task that a published list names, in a source, from what each task selects."""


def task_parts(inputs: Given, published: Published | None = None) -> tuple[list[Part], dict[str, int], str]:
    """Return all parts in the order of the tasks, how many images each task selects, and by which evidence.

    Raises
    ------
    ProtocolError
        A source shows a class that the benchmark does not name, or none that it does; two sources share ids; a task
        has no training image left.
    PresenceOnlyError
        The test source has no boxes.
    """
    split, sources = inputs.split, inputs.sources
    for slot in split.slots:
        if slot in sources:
            check_source(split, slot, sources)
    training, selected = _training(inputs, published) if split.train in sources else ({}, {})
    tested = tested_parts(inputs)
    parts = [
        part
        for task in split.tasks
        for part in (*(training.get(task.name, ())), *(test for test in tested if test.entry.task == task.name))
    ]
    train = sources.get(split.train)
    evidence = "none" if train is None else "boxes" if train.objects is not None else "presence"
    return parts, selected, evidence


def _training(inputs: Given, published: Published | None) -> tuple[dict[str, list[Part]], dict[str, int]]:
    """Return the training, finetuning and validation parts by task, and how many images each task selects."""
    split = inputs.split
    catalog = inputs.show(split.train)
    # M-OWODB's first classes are learnt from VOC: exemplars of them are there, COCO's images show some by chance.
    first = [inputs.show(slot) for slot in split.first_train]
    ranks = hash_ranks([*first, catalog], _salt(inputs, "finetune"))
    later_tasks = split.tasks[1:] if split.first_train else split.tasks
    selections = [catalog.of(inputs.labels(task)) for task in later_tasks]
    for task, selection in zip(later_tasks, selections, strict=True):
        if not len(selection):
            raise ProtocolError(
                "A task selects no training image",
                where=f"source {split.train}: task {task.name}",
                expected=f"an annotation of one of {', '.join(task.introduced)[:200]}",
                found="none",
            )
    validation = _validation(inputs, catalog, selections, later_tasks, published)
    held_out = np.zeros(len(catalog.source.images), np.bool_)
    for positions in validation:
        held_out[positions] = True
    trained = [selection[~held_out[selection]] for selection in selections]
    for task, kept in zip(later_tasks, trained, strict=True):
        if split.stated and not len(kept):
            raise ProtocolError(
                "The validation lists take every training image of a task",
                where=f"source {split.train}: task {task.name}",
                expected="an image that is left to train on",
                found=f"{int(held_out.sum())} validation images",
                hint=inputs.size_setting.format(fitting_validation([len(selection) for selection in selections])),
            )
    parts: dict[str, list[Part]] = {}
    for number, task in enumerate(split.tasks, start=1):
        rules, made = rules_in_words(inputs, task, number), parts.setdefault(task.name, [])
        if split.first_train and number == 1:
            # M-OWODB: VOC2007 and VOC2012 trainval are taken whole.
            selected = [inputs.whole(slot) for slot in split.first_train]
            made.append(inputs.part(task, "train", selected, TRAIN_VIEW, rules["train"]))
            continue
        index = later_tasks.index(task)
        selected = [Selection(split.train, catalog.source, trained[index])]
        made.append(inputs.part(task, "train", selected, TRAIN_VIEW, rules["train"]))
        if "finetune" in rules:
            every = [*first, catalog]
            made.append(_finetuning(inputs, task, every, trained[: index + 1], ranks, rules["finetune"]))
        if validation:
            rule = _val_rule(inputs, task, index + 1, len(validation[index]))
            selected = [Selection(split.train, catalog.source, validation[index])]
            made.append(inputs.part(task, "val", selected, KNOWN_VIEW, rule))
    sizes = {task.name: len(selection) for task, selection in zip(later_tasks, selections, strict=True)}
    return parts, sizes


def _validation(
    inputs: Given, catalog: Shown, selections: Sequence[Int64s], tasks: Sequence[TaskEntry], published: Published | None
) -> list[Int64s]:
    if inputs.parameters["val"] == "hash":
        (rank,) = hash_ranks([catalog], _salt(inputs, "val"))
        size = inputs.parameters["val_size"]
        return hash_validation(selections, rank, size=size, setting=inputs.size_setting)
    if published is not None and inputs.parameters["val"] == "published":
        return published(inputs, catalog, selections, tasks)
    return []


def _finetuning(
    inputs: Given,
    task: TaskEntry,
    catalogs: Sequence[Shown],
    trained: Sequence[Int64s],
    ranks: Sequence[Int64s],
    rule: str,
) -> Part:
    """Return the finetuning part of a task: exemplars of all classes known by then, chosen from what was kept."""
    split, size = inputs.split, inputs.parameters["exemplars"]
    known = [label for earlier in split.tasks[: split.tasks.index(task) + 1] for label in inputs.labels(earlier)]
    *first, catalog = catalogs
    union = np.zeros(len(catalog.source.images), np.bool_)
    union[np.concatenate(trained)] = True
    pools = [*((pool, pool.order) for pool in first), (catalog, catalog.order[union[catalog.order]])]
    chosen, held = exemplars(pools, known, ranks, size=size)
    short = ", ".join(f"{split.classes[label].name} {n}" for label, n in sorted(held.items()) if n < size)
    slots = (*split.first_train, split.train)
    selected = [
        Selection(slot, pool.source, positions) for slot, pool, positions in zip(slots, catalogs, chosen, strict=True)
    ]
    return inputs.part(task, "finetune", selected, KNOWN_VIEW, rule + (f" Fewer: {short}." if short else ""))


def tested_parts(inputs: Given) -> list[Part]:
    """Return the test part of each task: one list, and each task's own view of it."""
    split = inputs.split
    source = inputs.sources[split.test]
    source.require_objects("A test part")
    if not split.first_test:
        catalog = show_classes(source, split.classes)
        rule = RULES["test"].format(order=_order(inputs, "test"))
        selected = [Selection(split.test, source, catalog.order)]
        return [inputs.part(task, "test", selected, TEST_VIEW, rule) for task in split.tasks]
    if split.first_test not in inputs.sources:
        return []
    catalog = inputs.show(split.test)
    keep = inputs.parameters["repeats"] == "keep"
    later = np.concatenate([catalog.of(inputs.labels(task)) for task in split.tasks[1:]])
    if not keep:
        later = later[np.sort(np.unique(later, return_index=True)[1])]
    mixed = [inputs.whole(split.first_test), Selection(split.test, source, later)]
    repeats = ": an image with classes of several tasks stands once for each" if keep else ", each image once"
    rule = RULES["mixed_test"].format(
        first=split.first_test, second=split.test, repeats=repeats, order=_order(inputs, "test")
    )
    return [inputs.part(task, "test", mixed, TEST_VIEW, rule) for task in split.tasks]


def rules_in_words(inputs: Given, task: TaskEntry, number: int) -> dict[PartRole, str]:
    """Return the rule of each training part of a task in words, before any list is available."""
    split, parameters = inputs.split, inputs.parameters
    if split.first_train and number == 1:
        return {"train": RULES["first_train"].format(sources=" and ".join(split.first_train))}
    validation = parameters["val"]
    rules: dict[PartRole, str] = {
        "train": RULES["train"].format(
            task=task.name,
            script="" if split.stated else f" (create_t{number}_imageset.py)",
            crowd=", crowd regions included" if parameters["crowd"] == "select" else ", crowd regions apart",
            less=", less the validation images of all tasks" if validation != "none" else "",
            order=_order(inputs),
        )
    }
    if number > 1 and parameters["exemplars"]:
        salt = _salt(inputs, "finetune")
        rules["finetune"] = RULES["finetune"].format(size=parameters["exemplars"], task=task.name, salt=salt)
    if validation != "none":
        rules["val"] = _val_rule(inputs, task, number, 1000)
    return rules


def _val_rule(inputs: Given, task: TaskEntry, number: int, size: int) -> str:
    first, last = (number - 1) * size + 1, number * size
    kind = inputs.parameters["val"]
    rule = RULES["val_listed" if inputs.split.stated and kind == "published" else f"val_{kind}"]
    return rule.format(size=size, task=task.name, salt=_salt(inputs, "val"), first=first, last=last)


def _salt(inputs: Given, purpose: str) -> str:
    return f"{inputs.parameters['salt']}/{purpose}/"


def _order(inputs: Given, role: PartRole = "train") -> str:
    return "in the order of their first annotation" if inputs.listed(role) else "sorted by id"


def unannotated(source: Source) -> Int64s:
    """Return the images without annotation."""
    return np.flatnonzero(np.bincount(source.class_pairs()[0], minlength=len(source.images)) == 0)


def note_on_presence(inputs: Given) -> Iterator[str]:
    """Yield that the training lists are approximate, where their source has no boxes."""
    train = inputs.sources.get(inputs.split.train)
    if train is not None and train.objects is None:
        yield (
            "APPROXIMATE: the training lists come from a table of image and class, not from the annotations. An image "
            "is missing where the table misses its class."
        )


def note_on_unannotated(inputs: Given) -> Iterator[str]:
    """Yield which test images carry no annotation, where they are few."""
    split, test = inputs.split, inputs.sources[inputs.split.test]
    without = unannotated(test)
    if not split.first_test and 0 < len(without) <= _LISTED:
        ids = ", ".join(sorted(test.images.native[without].tolist()))
        yield (
            f"{len(without)} images of the test source carry no annotation and are left out, so that false detections "
            f"on them go unpunished: {ids}."
        )


def hash_ranks(sources: Sequence[Shown], salt: str) -> list[Int64s]:
    """Return, for each source, the place of its annotated images in the order of ``sha256(salt + id)`` of them all.

    One array a source, shape (n,); images without annotation come last.
    """
    ids = np.concatenate([catalog.source.image_ids[catalog.order] for catalog in sources]).tolist()
    positions = np.empty(len(ids), np.int64)
    positions[hash_rank(ids, salt)] = np.arange(len(ids))
    ranks = []
    ends = np.cumsum([len(catalog.order) for catalog in sources])[:-1]
    for catalog, mine in zip(sources, np.split(positions, ends), strict=True):
        rank = np.full(len(catalog.source.images), len(ids), np.int64)
        rank[catalog.order] = mine
        ranks.append(rank)
    return ranks


def fitting_validation(sizes: Sequence[int]) -> int:
    """Return how many validation images every task can spare, from the training images that each selects; 0: none."""
    # A tenth; and so few that the lists of all tasks, taken from the smallest, leave something to train on.
    return min(min(sizes, default=0) // max(10, len(sizes) + 1), PUBLISHED_SIZES[0])


def hash_validation(
    selections: Sequence[Int64s], rank: Int64s, *, size: int, setting: str = SIZE_SETTING
) -> list[Int64s]:
    """Return a validation list a task: the first `size` of its selection by hash rank that no earlier task has taken.

    The authors drew theirs at random, without a stated seed and with a step that keeps the four apart which they do
    not publish. Ours are apart by construction and the same everywhere.

    Raises
    ------
    ProtocolError
        A task has fewer images left than asked for.
    """
    taken = np.zeros(len(rank), np.bool_)
    chosen = []
    fits = fitting_validation([len(selection) for selection in selections])
    for number, selection in enumerate(selections, start=1):
        left = selection[~taken[selection]]
        if len(left) < size:
            raise ProtocolError(
                "A task has too few images for its validation list",
                where=f"task {number}: validation images",
                expected=f"at most {len(left)}",
                found=str(size),
                hint=setting.format(fits),
            )
        ranked = left[np.argsort(rank[left], kind="stable")]
        chosen.append(ranked[:size])
        taken[ranked[:size]] = True
    return chosen


def exemplars(
    pools: Sequence[tuple[Shown, Int64s]], labels: Sequence[int], ranks: Sequence[Int64s], *, size: int
) -> tuple[list[Int64s], dict[int, int]]:
    """Return images that show every class at least `size` times where the images allow it, and how many each has.

    Classes are served from the rarest to the most common; each takes, by hash rank, as many further images as it still
    lacks, so that an image which shows several rare classes serves them all. ORE's sampler (``balanced_ft.py``) may
    drop what it took; RE-OWOD's lists lost their balance when they were filled up with images of task 1.

    Parameters
    ----------
    pools : sequence of (Shown, ndarray of int64)
        For each source what its images show, and the positions of those to choose from.
    ranks : sequence of ndarray of int64
        For each source, see `hash_ranks`.

    Returns
    -------
    list of ndarray of int64
        Positions by source, in the order of its pool.
    dict of int to int
        Images among them by label.
    """
    rank = np.concatenate([ranks_of[images] for ranks_of, (_, images) in zip(ranks, pools, strict=True)])
    by_label = _places_by_label(pools, labels)
    taken = np.zeros(len(rank), np.bool_)
    for label in sorted(labels, key=lambda candidate: (len(by_label[candidate]), candidate)):
        candidates = by_label[label]
        lacking = size - int(taken[candidates].sum())
        if lacking > 0:
            free = candidates[~taken[candidates]]
            # Ranks are distinct, and a set is wanted: sorting all of them would be in vain.
            lowest = np.argpartition(rank[free], lacking - 1)[:lacking] if lacking < len(free) else slice(None)
            taken[free[lowest]] = True
    ends = np.cumsum([len(images) for _, images in pools])[:-1]
    chosen = [images[mine] for (_, images), mine in zip(pools, np.split(taken, ends), strict=True)]
    return chosen, {label: int(taken[by_label[label]].sum()) for label in labels}


def _places_by_label(pools: Sequence[tuple[Shown, Int64s]], labels: Sequence[int]) -> dict[int, Int64s]:
    """Return for each label the places, in the pools one after the other, of the images that show it."""
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


def check_source(split: TaskSplit, slot: str, sources: Mapping[str, Source]) -> None:
    """Raise `ProtocolError` unless a source's classes are the benchmark's and its ids its own."""
    source, stated = sources[slot], split.stated
    positions = class_positions(split.classes, source)
    used = np.flatnonzero(np.bincount(source.class_pairs()[1]))
    strangers = [source.categories.names[category] for category in used.tolist() if positions[category] < 0]
    where = f"source {slot}: {source.files[0].name if source.files else source.dataset}"
    names = [entry.name for entry in split.classes]
    if strangers:
        raise ProtocolError(
            "A source shows classes that the benchmark does not name",
            where=where,
            expected="classes of a task, or listed as unknown or ignored in the file"
            if stated
            else f"the {len(names)} classes of the split",
            found=examples([repr(name[:40]) for name in strangers], 5),
            hint=_hint_for(strangers, names)
            if stated
            else "is it another file? Data of your own: `curation init tasks`",
        )
    if not len(used):
        raise ProtocolError(
            "A source shows no class at all",
            where=where,
            expected="annotations",
            found=f"{len(source.images)} images and no object",
            hint="give the annotation file itself: a list of ids, or a file without annotations, has no classes",
        )
    opened = [sources[use] for use in split.slots if use in sources]
    seen = {index for each in opened for index in class_positions(split.classes, each).tolist()}
    absent = names if stated is None else stated.classes.absent
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
            if stated:
                require_disjoint_sources({name: sources[name] for name in (other, slot)})
            raise ProtocolError(
                "Two sources have images of the same id",
                where=f"sources {other} and {slot}",
                expected="each id names one image",
                found=f"{len(shared)} ids in both, the first {min(shared)}",
                hint=f'if they are different images: dataset = "{source.dataset[:24]}_{slot[:7]}" for {slot} in the '
                "file; else remove them from one of the two files"
                if stated
                else None,
            )


def _nearest(name: str, names: list[str]) -> list[str]:
    """Return the name that is the same but for its case, else the most alike; none where none is."""
    same = [offered for offered in names if offered.casefold() == name.casefold()]
    return same or difflib.get_close_matches(name, names, n=1)


def _hint_for(strangers: list[str], names: list[str]) -> str:
    """Return what to do about classes that no task of a user's file names: it has a place for each of them."""
    pairs = [(known, other) for other in strangers[:20] for known in _nearest(other, names)]
    same = [pair for pair in pairs if pair[0].casefold() == pair[1].casefold()]
    rows = "; ".join(f"{_quoted(known)} = [{_quoted(other)}]" for known, other in (same or pairs)[:5])
    alias = f"the same class? In the table of aliases: {rows}"
    listed = ", ".join(map(_quoted, strangers[:20]))
    ways = (
        f"above the first task of the file: unknown = [{listed}] where their objects stay unknown for ever, or "
        f"ignored = [{listed}] where they are neither right nor wrong"
    )
    return alias if same else f"{alias}; else {ways}" if pairs else ways


def _quoted(name: str) -> str:
    return json.dumps(name[:200], ensure_ascii=False)
