"""The role that a class plays in one part: with tasks, it depends on the part's task."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from curation.manifest.header import ClassEntry, ClassRole, Header, PartEntry, TaskEntry

UNKNOWN_ID = -1
"""Category id of ``unknown`` where a manifest has no tasks, as in the Elephant paper's files."""


def classes_in(header: Header, part: PartEntry) -> tuple[ClassEntry, ...]:
    """Return the classes of a manifest, in their order, with the role that each plays in a part.

    In a part of task t (Revisiting Open World Object Detection, section 3.1) a class introduced in t is ``known``, one
    of an earlier task ``previous``, one of a later task ``unknown``. A class that no task introduces keeps its role, as
    do all classes in a part without a task.
    """
    return roles_at(header.classes, header.tasks, part.task)


def roles_at(
    classes: tuple[ClassEntry, ...], tasks: Sequence[TaskEntry], task: str
) -> tuple[ClassEntry, ...]:
    """Return classes with the role that each plays at the task of a name, ``""`` for none (see `classes_in`)."""
    if not task:
        return classes
    step = {name: number for number, one in reversed(list(enumerate(tasks))) for name in one.introduced}
    now = [one.name for one in tasks].index(task)
    return tuple(
        msgspec.structs.replace(entry, role=_role(step[entry.name], now)) if entry.name in step else entry
        for entry in classes
    )


def unknown_index(header: Header) -> int:
    """Return the category id of ``unknown``: with tasks the number of classes, the same at every task; else -1."""
    return len(header.classes) if header.tasks else UNKNOWN_ID


def _role(introduced: int, now: int) -> ClassRole:
    if introduced == now:
        return "known"
    return "previous" if introduced < now else "unknown"
