"""The splits of open-world detection: classes by task, sources, parameters, and the lists that the authors published.

What they state is in ``owod.toml``; a custom split is a task file (`curation.benchmarks.owod.tasks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from curation.benchmarks.benchmark import SourceSlot, benchmark_facts, fact
from curation.benchmarks.owod.tasks import parse_tasks
from curation.benchmarks.parts import source_entry, unread_entry
from curation.benchmarks.published import declared_tasks, drafts, task_classes
from curation.benchmarks.rules.task_lists import KNOWN_VIEW, TRAIN_VIEW, TaskSplit
from curation.benchmarks.rules.tasks import split_of_file
from curation.core.errors import ProtocolError
from curation.manifest.header import Paper, PartEntry, PartRole, SourceEntry, TaskEntry
from curation.sources.datasets import COCO_CATEGORIES, COCO_NAMES_OF_VOC, family
from curation.sources.source import Source

_ROOM = __package__
PAPERS = fact(_ROOM, "papers", dict[str, Paper])
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(TaskSplit):
    """A benchmark over COCO, perhaps with VOC in its first task, or a user's own tasks.

    Attributes
    ----------
    name, title : str
    has_validation : bool
        Whether its authors set validation images apart.
    sizes : mapping of str to int
        Images of each list as published; ``tN-selection``: before validation images are taken out.
    place : str
        Where the paper states them.
    digests : mapping of str to str
        Of the published lists with namespaces, where the rule fixes their order.
    """

    name: str
    title: str
    paper: Paper | None
    has_validation: bool = True
    train: str = COCO_TRAIN
    test: str = COCO_VAL
    sizes: Mapping[str, int] = field(default_factory=dict)
    place: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)

    def dataset(self, slot: str) -> tuple[str, str]:
        """Return the dataset and part of a source; the part is ``""`` where any may be meant."""
        if slot == VAL_LIST:
            return self.dataset(self.train)[0], "val"
        if self.stated is not None:
            return self.stated.dataset(slot), ""
        dataset, _, part = slot.partition("-")
        return dataset, part

    def exhaustive(self, slot: str) -> tuple[str, ...]:
        """Return the classes annotated exhaustively on every image of a source."""
        if slot == VAL_LIST:
            return ()
        if self.stated is not None:
            return tuple(entry.name for entry in self.classes) if self.stated.sources[slot].exhaustive else ()
        return COCO_CLASSES if family(self.dataset(slot)[0]) == "coco" else VOC_CLASSES

    def resolved(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters with ``hash``, ``published`` or ``none`` as ``val``."""
        usual = "hash" if self.has_validation else "none"
        return {**parameters, "val": usual if parameters["val"] == "split" else parameters["val"]}

    def manifest_name(self, sources: Mapping[str, Source]) -> str:
        """Return the name of the manifest; only the official files give a published benchmark's name."""
        if self.stated is not None:
            return self.stated.name
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

    def declared_parts(self, task: TaskEntry, number: int, rules: Mapping[PartRole, str]) -> list[PartEntry]:
        """Return the training parts of a task of a published split, pinned where the published lists pin them."""
        whole = bool(self.first_train) and number == 1
        pool = (*self.first_train, self.train)
        return [
            PartEntry(
                name=f"{task.name}-{role}",
                role=role,
                sources=self.first_train if whole else pool if role == "finetune" else (self.train,),
                selection=rule,
                view=TRAIN_VIEW if role == "train" else KNOWN_VIEW,
                order="listed",
                images=self.sizes[f"{task.name}-{role}"] if f"{task.name}-{role}" in self.digests else None,
                sha256=self.digests.get(f"{task.name}-{role}"),
                task=task.name,
            )
            for role, rule in rules.items()
        ]


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
        stated = parse_tasks(parameters["tasks"])
        split = split_of_file(stated)
        own = {each.name: getattr(split, each.name) for each in fields(split)}
        return Split(name=CUSTOM, title=stated.title or stated.name, paper=None, **own)
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
            usual_part=slot if split.stated is not None else "",
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
