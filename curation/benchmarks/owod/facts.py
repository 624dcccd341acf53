"""What the open-world benchmarks state, from ``facts.toml``: papers, classes of the tasks, label views, splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from curation.benchmarks.facts import fact, facts_of
from curation.manifest.header import ClassEntry, LabelView, Paper, TaskEntry
from curation.sources.datasets import COCO_CATEGORIES, COCO_NAMES_OF_VOC

_ROOM = __package__
PAPERS = fact(_ROOM, "papers", dict[str, Paper])
TRAIN_VIEW, KNOWN_VIEW, TEST_VIEW = fact(_ROOM, "views", dict[str, LabelView]).values()
TASKS: dict[str, tuple[TaskEntry, ...]] = {
    split: tuple(TaskEntry(name=name, introduced=tuple(names)) for name, names in tasks.items())
    for split, tasks in facts_of(_ROOM)["tasks"].items()
}
"""Tasks of each split, with the classes that they introduce."""

COCO_CLASSES: tuple[str, ...] = tuple(name for _, name, _ in COCO_CATEGORIES)
"""The 80 classes annotated on every image of COCO, in the order of their category ids."""
VOC_CLASSES: tuple[str, ...] = tuple(COCO_NAMES_OF_VOC.values())
"""COCO's names of the 20 classes annotated on every image of VOC, in VOC's order."""
COCO_TRAIN, COCO_VAL, VAL_LIST = "coco-train2017", "coco-val2017", "val-list"
VOC_TRAINING, VOC_TEST = ("voc2007-trainval", "voc2012-trainval"), "voc2007-test"


def class_entries(tasks: tuple[TaskEntry, ...]) -> tuple[ClassEntry, ...]:
    """Return the classes of some tasks, all known, indexed from 0 in task order, with VOC's names as aliases."""
    voc_names = {coco: voc for voc, coco in COCO_NAMES_OF_VOC.items() if coco != voc}
    names = [name for task in tasks for name in task.introduced]
    return tuple(
        ClassEntry(
            name=name,
            role="known",
            index=index,
            aliases=(voc_names[name],) if name in voc_names else (),
        )
        for index, name in enumerate(names)
    )


@dataclass(frozen=True, slots=True)
class Split:
    """A benchmark over COCO, perhaps with VOC in its first task.

    Attributes
    ----------
    name, title : str
    has_validation : bool
        Whether its authors set validation images apart.
    first_train : tuple of str
        Sources that are wholly the training list of task 1.
    first_test : str
        Source that stands wholly at the head of the test list; then the test list takes the images of each later task
        in turn, instead of every annotated image.
    sizes : mapping of str to int
        Images of each list as published; ``tN-selection``: before validation images are taken out.
    digests : mapping of str to str
        Of the published lists with namespaces, where the rule fixes their order.
    """

    name: str
    title: str
    paper: Paper
    tasks: tuple[TaskEntry, ...]
    has_validation: bool
    sizes: Mapping[str, int] = field(default_factory=dict)
    place: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    first_train: tuple[str, ...] = ()
    first_test: str = ""


def _split(name: str, stated: dict[str, Any]) -> Split:
    return Split(
        **stated
        | {
            "name": name,
            "paper": PAPERS[stated["paper"]],
            "tasks": TASKS[stated["tasks"]],
            "first_train": tuple(stated.get("first_train", ())),
        }
    )


SPLITS: dict[str, Split] = {name: _split(name, stated) for name, stated in facts_of(_ROOM)["splits"].items()}
"""The published splits by name."""
