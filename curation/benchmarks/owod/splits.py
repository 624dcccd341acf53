"""The published splits of open-world detection: the cases of ``owod.toml``, with the figures of their authors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from curation.benchmarks.benchmark import SourceSlot, benchmark_facts, fact
from curation.benchmarks.published import draft
from curation.benchmarks.rules.benchmark_file import packaged_file
from curation.benchmarks.rules.task_lists import TaskParameters, TaskSplit, split_of_file
from curation.manifest.header import Paper
from curation.sources.datasets import COCO_CATEGORIES, COCO_NAMES_OF_VOC, family
from curation.sources.source import Source

_ROOM = __package__
PAPERS = fact(_ROOM, "papers", dict[str, Paper])
COCO_CLASSES: tuple[str, ...] = tuple(name for _, name, _ in COCO_CATEGORIES)
"""The 80 classes annotated on every image of COCO, in the order of their category ids."""
VOC_CLASSES: tuple[str, ...] = tuple(COCO_NAMES_OF_VOC.values())
"""COCO's names of the 20 classes annotated on every image of VOC, in VOC's order."""
OFFICIAL_IMAGES = {"coco-train2017": 118_287, "coco-val2017": 5_000}


class PublishedSplit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table ``[splits.KEY]``: figures and lists that the authors of a case publish.

    Attributes
    ----------
    title, note : str
        Title and note of the manifest.
    paper : str
        Key of ``[papers]``.
    place : str
        Where the paper states `sizes`.
    sizes : dict of str to int
        Images of each published list; ``tN-selection``: before validation images are removed.
    digests : dict of str to str
        Digests of the published lists with namespaces, if the rule determines their order.
    """

    title: str
    paper: str
    note: str = ""
    place: str = ""
    sizes: dict[str, int] = {}
    digests: dict[str, str] = {}


PUBLISHED = fact(_ROOM, "splits", dict[str, PublishedSplit])
"""Published figures and digests of each split."""


SPLITS = {name: split_of_file(packaged_file(f"owod/{name}"), is_packaged=True) for name in PUBLISHED}
"""The published splits by name."""
TASKS = {name: split.tasks for name, split in SPLITS.items()}
"""Tasks of each split, with the classes that they introduce."""


def exhaustive_classes(slot: str) -> tuple[str, ...]:
    """Return the classes annotated exhaustively on every image of a source."""
    dataset, part = slot.split("-")
    return () if part == "list" else COCO_CLASSES if family(dataset) == "coco" else VOC_CLASSES


def choose_slots(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources that a build reads; only test sources are always needed."""
    return SPLITS[parameters["split"]].file.slots


def split_of(parameters: Mapping[str, Any], sources: Mapping[str, Source]) -> TaskSplit:
    """Return the split of the parameters of `build`, with these parameters and sources."""
    split = SPLITS[parameters["split"]]
    shared = {name: parameters[name] for name in TaskParameters.__struct_fields__ if name != "validation"}
    return replace(
        split,
        settings=TaskParameters(validation=parameters["val_size"], **shared),
        sources=sources,
        validation=split.validation if parameters["val"] == "split" else parameters["val"],
    )


RECIPES = {
    facts["name"]: partial(
        draft,
        benchmark_facts(_ROOM),
        key,
        classes=SPLITS[facts["tasks"]].classes,
        tasks=TASKS[facts["tasks"]],
        exhaustive={slot.name: exhaustive_classes(slot.name) for slot in choose_slots({"split": "m-owodb"})},
    )
    for key, facts in benchmark_facts(_ROOM)["published"].items()
}
"""Drafts of the published lists, by the name of the manifest that they make."""
