"""`Setting`: a published split or a user's own tasks, with the sources that it draws from."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.benchmarks.benchmark import SourceSlot
from curation.benchmarks.owod.facts import (
    COCO_CLASSES,
    COCO_TRAIN,
    COCO_VAL,
    KNOWN_VIEW,
    PAPERS,
    SPLITS,
    TRAIN_VIEW,
    VAL_LIST,
    VOC_CLASSES,
    Split,
    class_entries,
)
from curation.benchmarks.owod.parameters import CUSTOM
from curation.benchmarks.owod.tasks import SOURCES, TaskFile, parse_tasks
from curation.benchmarks.parts import source_entry, unread_entry
from curation.errors import ProtocolError
from curation.manifest.header import ClassEntry, Paper, PartEntry, PartRole, SourceEntry, TaskEntry
from curation.manifest.views import class_positions
from curation.sources.datasets import family
from curation.sources.source import Source

OFFICIAL_IMAGES = {COCO_TRAIN: 118_287, COCO_VAL: 5_000}


@dataclass(frozen=True, slots=True)
class Setting:
    """What the protocol needs to know of a split.

    Attributes
    ----------
    title : str
    paper : Paper
    tasks : tuple of TaskEntry
    classes : tuple of ClassEntry
    train, test : str
        Names of the sources that training and test lists are selected from.
    first_train, first_test
        See `curation.benchmarks.owod.facts.Split`.
    split : Split or None
    declared : TaskFile or None
        One of the two.
    """

    title: str
    paper: Paper
    tasks: tuple[TaskEntry, ...]
    classes: tuple[ClassEntry, ...]
    train: str
    test: str
    first_train: tuple[str, ...] = ()
    first_test: str = ""
    split: Split | None = None
    declared: TaskFile | None = None

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of all sources of images, in order."""
        first_test = (self.first_test,) if self.first_test else ()
        return (*self.first_train, self.train, *first_test, self.test)

    @property
    def lists(self) -> tuple[str, ...]:
        """Names of the sources that are lists of ids."""
        return (VAL_LIST,)

    def dataset(self, slot: str) -> tuple[str, str]:
        """Return the dataset and part of a source; the part is ``""`` where any may be meant."""
        if slot == VAL_LIST:
            return self.dataset(self.train)[0], "val"
        if self.declared is not None:
            return self.declared.dataset_of(slot), ""
        dataset, _, part = slot.partition("-")
        return dataset, part

    def exhaustive(self, slot: str) -> tuple[str, ...]:
        """Return the classes annotated exhaustively on every image of a source."""
        if slot in self.lists:
            return ()
        if self.declared is not None:
            return tuple(entry.name for entry in self.classes) if self.declared.exhaustive else ()
        return COCO_CLASSES if family(self.dataset(slot)[0]) == "coco" else VOC_CLASSES

    def validation_rule(self, parameters: Mapping[str, Any]) -> str:
        """Return ``hash``, ``published`` or ``none``."""
        if parameters["val"] != "split":
            return str(parameters["val"])
        return "hash" if self.split is None or self.split.has_validation else "none"

    def manifest_name(self, sources: Mapping[str, Source]) -> str:
        """Return the name of the manifest; only the official files give a published benchmark's name."""
        if self.declared is not None:
            return self.declared.name
        name = f"owod/{self.split.name if self.split else CUSTOM}"
        if self.train not in sources:
            name += "-test"
        elif sources[self.train].objects is None:
            return f"{name}-approximate"
        official = all(len(sources[slot].images) == size for slot, size in OFFICIAL_IMAGES.items() if slot in sources)
        return name if official else f"{name}-custom"

    def declared_source(self, slot: str, sources: Mapping[str, Source]) -> SourceEntry:
        """Return the record of a source, read or not."""
        if slot in sources:
            return source_entry(slot, sources[slot], note="", exhaustive=self.exhaustive(slot))
        dataset, part = self.dataset(slot)
        note = "all_task_val.txt of the authors, from your own disk" if slot == VAL_LIST else "from your own disk"
        return unread_entry(slot, dataset, part, note=note, exhaustive=self.exhaustive(slot))

    def declared_parts(
        self, task: TaskEntry, number: int, parameters: Mapping[str, Any], rules: Mapping[PartRole, str]
    ) -> list[PartEntry]:
        """Return the training parts of a task of a published split, pinned where the published lists pin them."""
        sizes = self.split.sizes if self.split else {}
        digests = self.split.digests if self.split else {}
        whole = bool(self.first_train) and number == 1
        return [
            PartEntry(
                name=f"{task.name}-{role}",
                role=role,
                sources=self._trained_on(role, whole=whole),
                selection=rule,
                view=TRAIN_VIEW if role == "train" else KNOWN_VIEW,
                order="listed",
                images=sizes[f"{task.name}-{role}"] if f"{task.name}-{role}" in digests else None,
                sha256=digests.get(f"{task.name}-{role}"),
                task=task.name,
            )
            for role, rule in rules.items()
        ]

    def _trained_on(self, role: PartRole, *, whole: bool) -> tuple[str, ...]:
        if whole:
            return self.first_train
        return (*self.first_train, self.train) if role == "finetune" else (self.train,)


def benchmark_of(parameters: Mapping[str, Any]) -> Setting:
    """Return the benchmark that the parameters name.

    Raises
    ------
    ProtocolError
        ``custom`` without a task file, or a task file with a published split.
    """
    if (parameters["split"] == CUSTOM) != bool(parameters.get("tasks")):
        raise ProtocolError(
            "A split of one's own and a task file go together",
            where=f"--set split={parameters['split']}",
            expected="--tasks FILE, which says split=custom by itself",
        )
    if parameters["split"] == CUSTOM:
        declared = parse_tasks(parameters["tasks"])
        return Setting(
            title=declared.title or declared.name,
            paper=PAPERS["reowod"],
            tasks=declared.entries(),
            classes=declared.classes(),
            train="train",
            test="test",
            declared=declared,
        )
    split = SPLITS[parameters["split"]]
    return Setting(
        title=split.title,
        paper=split.paper,
        tasks=split.tasks,
        classes=class_entries(split.tasks),
        train=COCO_TRAIN,
        test=COCO_VAL,
        first_train=split.first_train,
        first_test=split.first_test,
        split=split,
    )


def slots_of(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources that a build reads; only the test source is always needed."""
    benchmark = benchmark_of({"tasks": "", **parameters})
    needed = {benchmark.test, *((benchmark.first_test,) if benchmark.first_test else ())}
    slots = [
        SourceSlot(
            slot,
            *benchmark.dataset(slot),
            slot in needed,
            ("test images" if slot in needed else "training images") + ": COCO instances JSON, or a root",
            usual_part=slot if benchmark.declared is not None else "",
        )
        for slot in benchmark.slots
    ]
    list_slots = [
        SourceSlot(slot, *benchmark.dataset(slot), False, "published validation list: one id a line")
        for slot in benchmark.lists
    ]
    return (*slots, *list_slots)


SLOTS = slots_of({"split": "m-owodb"})
"""What a build reads unless another split is asked for."""


def check_given(benchmark: Setting, sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> None:
    """Raise `ProtocolError` for some of the training sources without the others, and for a list not asked for."""
    needed = (*benchmark.first_train, benchmark.train)
    missing = [slot for slot in needed if slot not in sources]
    if missing and len(missing) < len(needed):
        raise ProtocolError(
            "Some training sources are given and others are not",
            where=f"split {parameters['split']}",
            expected=" ".join(f"--source {slot}=PATH" for slot in missing),
            found=", ".join(slot for slot in needed if slot in sources),
            hint="give all of them, or none for the test lists alone",
        )
    if benchmark.lists[0] in sources and parameters["val"] != "published":
        raise ProtocolError(
            "A validation list is given and not asked for",
            where=f"--source {benchmark.lists[0]}",
            found=f"--set val={parameters['val']}",
            hint="--set val=published",
        )


def check_selected(benchmark: Setting, tasks: Sequence[TaskEntry], selections: Sequence[Sized]) -> None:
    """Raise `ProtocolError` where a task selects no training image."""
    for task, selection in zip(tasks, selections, strict=True):
        if not len(selection):
            raise ProtocolError(
                "A task selects no training image",
                where=f"source {benchmark.train}: task {task.name}",
                expected=f"an annotation of one of {', '.join(task.introduced)[:200]}",
                found="none",
            )


def check_source(benchmark: Setting, slot: str, sources: Mapping[str, Source]) -> None:
    """Raise `ProtocolError` unless a source's classes are the benchmark's and its ids its own."""
    source = sources[slot]
    positions = class_positions(benchmark.classes, source)
    used = np.flatnonzero(np.bincount(source.class_pairs()[1]))
    strangers = [source.categories.names[category] for category in used.tolist() if positions[category] < 0]
    where = f"source {slot}: {source.files[0].name if source.files else source.dataset}"
    if strangers:
        names = [entry.name for entry in benchmark.classes]
        near = difflib.get_close_matches(strangers[0], names, n=1)
        raise ProtocolError(
            "A source shows classes that the benchmark does not name",
            where=where,
            expected="classes of a task, or listed as unknown or ignored in the task file"
            if benchmark.declared is not None
            else f"the {len(names)} classes of the split",
            found=", ".join(repr(name[:40]) for name in strangers[:5])
            + (f" and {len(strangers) - 5} more" if len(strangers) > 5 else ""),
            hint=_hint_for(strangers, near, own=benchmark.declared is not None),
        )
    if not len(used):
        raise ProtocolError(
            "A source shows no class at all",
            where=where,
            expected="annotations",
            found=f"{len(source.images)} images and no object",
            hint="give the annotation file itself: a list of ids, or a file without annotations, has no classes",
        )
    _check_named(benchmark, sources)
    for other in benchmark.slots[: benchmark.slots.index(slot)]:
        if other in sources and sources[other].namespace == source.namespace:
            _check_apart(benchmark, slot, other, sources)


def _hint_for(strangers: list[str], near: list[str], *, own: bool) -> str:
    """Return what to do about classes that no task names; a user's own task file has a place for each of them."""
    alias = f"is {strangers[0]!r} an alias of {near[0]!r}?" if near else None
    if not own:
        file = "is it another file? For data of your own: `curation init tasks`, and --tasks FILE"
        return f"{alias} Or {file}" if alias else file
    names = ", ".join(json.dumps(name[:200], ensure_ascii=False) for name in strangers[:20])
    ways = (
        "in the task file, above the first [[tasks]]",
        f"unknown = [{names}] where their objects stay unknown for ever",
        f"ignored = [{names}] where they are neither right nor wrong",
    )
    return "; ".join(([alias] if alias else []) + [f"{ways[0]}: {ways[1]}, or {ways[2]}"])


def _check_named(benchmark: Setting, sources: Mapping[str, Source]) -> None:
    """Refuse a class of a user's task that no source has a category of: it is misspelt."""
    if benchmark.declared is None:
        return
    seen: set[int] = set()
    for slot in SOURCES:
        if slot in sources:
            seen |= set(class_positions(benchmark.classes, sources[slot]).tolist())
    missing = [entry.name for place, entry in enumerate(benchmark.classes) if place not in seen]
    if missing:
        offered = [name for slot in SOURCES if slot in sources for name in sources[slot].categories.names]
        near = difflib.get_close_matches(missing[0], offered, n=1)
        raise ProtocolError(
            "The task file names a class that no source has",
            where="--tasks",
            expected=", ".join(dict.fromkeys(offered))[:300],
            found=", ".join(missing[:5]),
            hint=f"did you mean {near[0]!r}?" if near else None,
        )


def _check_apart(benchmark: Setting, slot: str, other: str, sources: Mapping[str, Source]) -> None:
    taken = set(sources[other].images.native.tolist())
    shared = sorted(native for native in sources[slot].images.native.tolist() if native in taken)
    if shared:
        raise ProtocolError(
            "Two sources have images of the same id",
            where=f"sources {other} and {slot}",
            expected="each id names one image",
            found=f"{len(shared)} ids in both, the first {shared[0]}",
            hint=None
            if benchmark.declared is None
            else "if they are different images: [datasets] train = ..., test = ... in the task file, two names; else "
            "the test images are training images too",
        )
