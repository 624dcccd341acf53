"""RWD (FOMO): the lists as published, and a version made of COCO files whose image ids are their own.

Class roles are exact: categories by their number of annotations, most first; known is the first half, where the empty
super-category counts too (`datasets/setup_roboflow100_dataset.py`). Which image is for training was drawn without a
seed: a file is taken as the part that it is given for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import structs

from curation.benchmarks.benchmark import declared_slots, fact
from curation.benchmarks.parts import Selection, make_part, manifest_of, source_entry
from curation.benchmarks.published import declared_tasks, task_classes
from curation.core.errors import ProtocolError
from curation.manifest.header import LabelView, Paper, TaskEntry, roles_at
from curation.manifest.manifest import Manifest
from curation.sources.source import Source
from curation.sources.source_specs import SourceSlot

_ROOM = __name__
ALIASES = fact(_ROOM, "aliases", dict[str, str])
VIEWS = fact(_ROOM, "views", dict[str, LabelView])
TASKS = declared_tasks(_ROOM)
SLOTS = declared_slots(_ROOM)


def choose_slots(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources of the data set."""
    return tuple(structs.replace(slot, dataset=f"rwd_{parameters['problem']}") for slot in SLOTS)


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the parts of both tasks: images of each file with an annotation.

    Raises
    ------
    ProtocolError
        The rule gives other classes than the authors' files name.
    """
    problem = parameters["problem"]
    tasks = _tasks(problem, sources)
    classes = task_classes(tasks, ALIASES)
    parts = [
        make_part(
            f"{task.name}-{slot}",
            "train" if slot == "train" else "test",
            Selection(slot, source, np.flatnonzero(np.bincount(source.class_pairs()[0]))),
            roles_at(classes, tasks, task.name),
            view=VIEWS[slot],
            rule=f"Images of the source {slot} with an annotation. One list for both tasks.",
            task=task.name,
        )
        for task in tasks
        for slot, source in sources.items()
    ]
    return manifest_of(
        parts,
        name=f"rwd/{problem}",
        title=f"RWD {problem.capitalize()} (FOMO): files with image ids of their own",
        paper=fact(_ROOM, "paper", Paper),
        taxonomy="OWOD",
        classes=classes,
        sources=tuple(source_entry(slot, source) for slot, source in sources.items()),
        protocol="rwd",
        algorithm_version=1,
        parameters=dict(parameters),
        notes=("The authors' JSON files name several images by one id: these were renumbered before.",),
        tasks=tasks,
    )


def known_by_count(sources: Mapping[str, Source]) -> tuple[set[str], set[str]]:
    """Return the known and the other classes by the rule: half of the categories, by annotations, most first."""
    counts: Counter[str] = Counter()
    for source in sources.values():
        counts.update(dict.fromkeys(source.categories.names, 0))
        counts.update(source.categories.names[category] for category in source.class_pairs()[1].tolist())
    order = [name for name, _ in counts.most_common()]
    half = len(order) // 2
    return set(order[:half]), {name for name in order[half:] if counts[name]}


def _tasks(problem: str, sources: Mapping[str, Source]) -> tuple[TaskEntry, ...]:
    known, others = known_by_count(sources)
    declared = TASKS[problem]
    if (known, others) != tuple(set(task.introduced) for task in declared):
        raise ProtocolError(
            "The classes of the sources are not those of the data set",
            where=f"--set problem={problem}",
            expected=f"by number of annotations, known: {', '.join(declared[0].introduced)}",
            found=", ".join(sorted(known))[:300] or "none",
            hint="the first half of the categories is known, the empty super-category counted: is one missing?",
        )
    return declared
