"""The splits of open-world detection: classes by task, sources, parameters, and the lists that the authors published.

What they state is in ``owod.toml``; a custom split is a task file (`curation.benchmarks.owod.tasks`).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from curation.benchmarks.benchmark import SourceSlot, benchmark_facts, fact
from curation.benchmarks.owod.tasks import SOURCES, TaskFile, parse_tasks
from curation.benchmarks.parts import source_entry, unread_entry
from curation.benchmarks.published import declared_tasks, drafts, task_classes
from curation.benchmarks.roles import require_disjoint_sources
from curation.core.errors import ProtocolError
from curation.manifest.header import ClassEntry, LabelView, Paper, PartEntry, PartRole, SourceEntry, TaskEntry
from curation.manifest.views import class_positions
from curation.sources.datasets import COCO_CATEGORIES, COCO_NAMES_OF_VOC, family
from curation.sources.source import Source

_ROOM = __package__
PAPERS = fact(_ROOM, "papers", dict[str, Paper])
TRAIN_VIEW, KNOWN_VIEW, TEST_VIEW = fact(_ROOM, "views", dict[str, LabelView]).values()
TASKS = declared_tasks(_ROOM)
"""Tasks of each split, with the classes that they introduce."""

COCO_CLASSES: tuple[str, ...] = tuple(name for _, name, _ in COCO_CATEGORIES)
"""The 80 classes annotated on every image of COCO, in the order of their category ids."""
VOC_CLASSES: tuple[str, ...] = tuple(COCO_NAMES_OF_VOC.values())
"""COCO's names of the 20 classes annotated on every image of VOC, in VOC's order."""
_VOC_NAMES = {coco: voc for voc, coco in COCO_NAMES_OF_VOC.items() if coco != voc}
COCO_TRAIN, COCO_VAL, VAL_LIST = "coco-train2017", "coco-val2017", "val-list"
OFFICIAL_IMAGES = {COCO_TRAIN: 118_287, COCO_VAL: 5_000}
CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class Split:
    """A benchmark over COCO, perhaps with VOC in its first task, or a user's own tasks.

    Attributes
    ----------
    name, title : str
    classes : tuple of ClassEntry
    has_validation : bool
        Whether its authors set validation images apart.
    train, test : str
        Names of the sources that training and test lists are selected from.
    first_train : tuple of str
        Sources that are wholly the training list of task 1.
    first_test : str
        Source that comes first in the test list, as a whole; then the test list takes the images of each later task
        in turn, instead of every annotated image.
    sizes : mapping of str to int
        Images of each list as published; ``tN-selection``: before validation images are taken out.
    place : str
        Where the paper states them.
    digests : mapping of str to str
        Of the published lists with namespaces, where the rule fixes their order.
    declared : TaskFile or None
        A user's own.
    """

    name: str
    title: str
    paper: Paper | None
    tasks: tuple[TaskEntry, ...]
    classes: tuple[ClassEntry, ...]
    has_validation: bool = True
    train: str = COCO_TRAIN
    test: str = COCO_VAL
    first_train: tuple[str, ...] = ()
    first_test: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    place: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    declared: TaskFile | None = None

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of all sources of images, in order."""
        first_test = (self.first_test,) if self.first_test else ()
        return (*self.first_train, self.train, *first_test, self.test)

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
        if slot == VAL_LIST:
            return ()
        if self.declared is not None:
            return tuple(entry.name for entry in self.classes) if self.declared.exhaustive else ()
        return COCO_CLASSES if family(self.dataset(slot)[0]) == "coco" else VOC_CLASSES

    def validation_rule(self, parameters: Mapping[str, Any]) -> str:
        """Return ``hash``, ``published`` or ``none``."""
        if parameters["val"] != "split":
            return str(parameters["val"])
        return "hash" if self.has_validation else "none"

    def manifest_name(self, sources: Mapping[str, Source]) -> str:
        """Return the name of the manifest; only the official files give a published benchmark's name."""
        if self.declared is not None:
            return self.declared.name
        name = f"owod/{self.name}"
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
        whole = bool(self.first_train) and number == 1
        return [
            PartEntry(
                name=f"{task.name}-{role}",
                role=role,
                sources=self._trained_on(role, whole=whole),
                selection=rule,
                view=TRAIN_VIEW if role == "train" else KNOWN_VIEW,
                order="listed",
                images=self.sizes[f"{task.name}-{role}"] if f"{task.name}-{role}" in self.digests else None,
                sha256=self.digests.get(f"{task.name}-{role}"),
                task=task.name,
            )
            for role, rule in rules.items()
        ]

    def _trained_on(self, role: PartRole, *, whole: bool) -> tuple[str, ...]:
        if whole:
            return self.first_train
        return (*self.first_train, self.train) if role == "finetune" else (self.train,)


def _published_split(name: str, facts: dict[str, Any]) -> Split:
    tasks = TASKS[facts["tasks"]]
    return Split(
        **facts
        | {
            "name": name,
            "paper": PAPERS[facts["paper"]],
            "tasks": tasks,
            "classes": task_classes(tasks, _VOC_NAMES),
            "first_train": tuple(facts.get("first_train", ())),
        }
    )


SPLITS: dict[str, Split] = {
    name: _published_split(name, facts) for name, facts in benchmark_facts(_ROOM)["splits"].items()
}
"""The published splits by name."""


_EXHAUSTIVE = {
    **dict.fromkeys(("coco-train2017", "coco-val2017"), COCO_CLASSES),
    **dict.fromkeys(("voc2007-trainval", "voc2012-trainval", "voc2007-test"), VOC_CLASSES),
}


RECIPES = drafts(_ROOM, aliases=_VOC_NAMES, exhaustive=_EXHAUSTIVE)
"""The lists as their authors published them: drafts by the name of the manifest that they make."""


def check_tasks(text: str) -> str:
    """Return the declaration of a task file, or ``""``; what is none is a `ProtocolError`."""
    if text:
        parse_tasks(text)
    return text


def split_of(parameters: Mapping[str, Any]) -> Split:
    """Return the split that the parameters name.

    Raises
    ------
    ProtocolError
        ``custom`` without a task file, or a task file with a published split.
    """
    if (parameters["split"] == CUSTOM) != bool(parameters.get("tasks")):
        raise ProtocolError(
            "A custom split needs a task file, and a task file a custom split",
            where=f"--set split={parameters['split']}",
            expected="--tasks FILE, which says split=custom by itself",
        )
    if parameters["split"] == CUSTOM:
        declared = parse_tasks(parameters["tasks"])
        return Split(
            name=CUSTOM,
            title=declared.title or declared.name,
            paper=None,
            tasks=declared.entries(),
            classes=declared.classes(),
            train="train",
            test="test",
            declared=declared,
        )
    return SPLITS[parameters["split"]]


def choose_slots(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources that a build reads; only the test source is always needed."""
    split = split_of({"tasks": "", **parameters})
    needed = {split.test, *((split.first_test,) if split.first_test else ())}
    slots = [
        SourceSlot(
            slot,
            *split.dataset(slot),
            slot in needed,
            ("test images" if slot in needed else "training images") + ": COCO instances JSON, or a root",
            usual_part=slot if split.declared is not None else "",
        )
        for slot in split.slots
    ]
    listed = SourceSlot(VAL_LIST, *split.dataset(VAL_LIST), False, "published validation list: one id a line")
    return (*slots, listed)


SLOTS = choose_slots({"split": "m-owodb"})
"""What a build reads unless another split is asked for."""


def check_given(split: Split, sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> None:
    """Raise `ProtocolError` for some of the training sources without the others, and for a list not asked for."""
    needed = (*split.first_train, split.train)
    missing = [slot for slot in needed if slot not in sources]
    if missing and len(missing) < len(needed):
        raise ProtocolError(
            "Some training sources are given and others are not",
            where=f"split {parameters['split']}",
            expected=" ".join(f"--source {slot}=PATH" for slot in missing),
            found=", ".join(slot for slot in needed if slot in sources),
            hint="give all of them, or none for the test lists alone",
        )
    if VAL_LIST in sources and parameters["val"] != "published":
        raise ProtocolError(
            "A validation list is given and not asked for",
            where=f"--source {VAL_LIST}",
            found=f"--set val={parameters['val']}",
            hint="--set val=published",
        )


def check_source(split: Split, slot: str, sources: Mapping[str, Source]) -> None:
    """Raise `ProtocolError` unless a source's classes are the benchmark's and its ids its own."""
    source, declared = sources[slot], split.declared is not None
    positions = class_positions(split.classes, source)
    used = np.flatnonzero(np.bincount(source.class_pairs()[1]))
    strangers = [source.categories.names[category] for category in used.tolist() if positions[category] < 0]
    where = f"source {slot}: {source.files[0].name if source.files else source.dataset}"
    names = [entry.name for entry in split.classes]
    if strangers:
        more = f" and {len(strangers) - 5} more" if len(strangers) > 5 else ""
        raise ProtocolError(
            "A source shows classes that the benchmark does not name",
            where=where,
            expected="classes of a task, or listed as unknown or ignored in the task file"
            if declared
            else f"the {len(names)} classes of the split",
            found=", ".join(repr(name[:40]) for name in strangers[:5]) + more,
            hint=_hint_for(strangers, names, is_declared=declared),
        )
    if not len(used):
        raise ProtocolError(
            "A source shows no class at all",
            where=where,
            expected="annotations",
            found=f"{len(source.images)} images and no object",
            hint="give the annotation file itself: a list of ids, or a file without annotations, has no classes",
        )
    offered = list(dict.fromkeys(name for use in SOURCES if use in sources for name in sources[use].categories.names))
    seen = {
        index for use in SOURCES if use in sources for index in class_positions(split.classes, sources[use]).tolist()
    }
    if declared and (missing := [name for index, name in enumerate(names) if index not in seen]):
        near = _nearest(missing[0], offered)
        raise ProtocolError(
            "The task file names a class that no source has",
            where="--tasks",
            expected=", ".join(offered)[:300],
            found=", ".join(missing[:5]),
            hint=f"did you mean {near[0]!r}?" if near else None,
        )
    for other in split.slots[: split.slots.index(slot)]:
        if other not in sources or sources[other].namespace != source.namespace:
            continue
        shared = set(source.images.native.tolist()).intersection(sources[other].images.native.tolist())
        if shared:
            if declared:
                require_disjoint_sources({name: sources[name] for name in (other, slot)})
            raise ProtocolError(
                "Two sources have images of the same id",
                where=f"sources {other} and {slot}",
                expected="each id names one image",
                found=f"{len(shared)} ids in both, the first {min(shared)}",
                hint="if they are different images: [datasets] train = ..., test = ... in the task file, two names; "
                "else remove them from one of the two files"
                if declared
                else None,
            )


def _nearest(name: str, names: list[str]) -> list[str]:
    """Return the name that is the same but for its case, else the most alike; none where none is."""
    same = [offered for offered in names if offered.casefold() == name.casefold()]
    return same or difflib.get_close_matches(name, names, n=1)


def _hint_for(strangers: list[str], task_classes: list[str], *, is_declared: bool) -> str:
    """Return what to do about classes that no task names; a user's own task file has a place for each of them."""
    near = _nearest(strangers[0], task_classes)
    cases = [
        (stranger, known) for stranger in strangers for known in task_classes if stranger.casefold() == known.casefold()
    ]
    if is_declared and cases:
        fixes = ", ".join(f"{json.dumps(stranger, ensure_ascii=False)} for {known!r}" for stranger, known in cases[:5])
        return f"did you mean the same class? In the task file write {fixes[:400]}, as the annotations do"
    alias = f"is {strangers[0]!r} an alias of {near[0]!r}?" if near else None
    if not is_declared:
        file = "is it another file? For data of your own: `curation init tasks`, and --tasks FILE"
        return f"{alias} Or {file}" if alias else file
    names = ", ".join(json.dumps(name[:200], ensure_ascii=False) for name in strangers[:20])
    ways = (
        f"in the task file, above the first [[tasks]]: unknown = [{names}] where their objects stay unknown for ever, "
        f"or ignored = [{names}] where they are neither right nor wrong"
    )
    return f"{alias}; {ways}" if alias else ways
