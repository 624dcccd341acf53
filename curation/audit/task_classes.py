"""The classes of each task, from a benchmark's name, a manifest, or a file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from curation.audit.class_names import known_aliases
from curation.audit.target import TaskClasses
from curation.benchmarks.owod.facts import TASKS
from curation.errors import CurationError, UsageError
from curation.json_keys import refuse_repeated_keys
from curation.manifest.header import ClassEntry, ClassRole, Header, TaskEntry
from curation.manifest.locate import find_manifest
from curation.manifest.store import HEADER_FILE, read_manifest
from curation.storage import read_bytes

BENCHMARKS: dict[str, tuple[TaskEntry, ...]] = {
    "reowod": TASKS["m-owodb"],
    "ore": TASKS["m-owodb"],
    "m-owodb": TASKS["m-owodb"],
    "s-owodb": TASKS["s-owodb"],
}
"""Tasks by the name of a benchmark; RE-OWOD's lists follow ORE's split."""

_MAX_BYTES = 16 << 20
_EXAMPLE = '{"tasks": [{"name": "t1", "introduced": ["person", "dog"]}, …]}'


class _Task(msgspec.Struct, frozen=True):
    """One task of a file: the classes that it introduces, or the three lists of an evaluation."""

    name: str = ""
    introduced: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    prev: tuple[str, ...] = ()
    cur: tuple[str, ...] | None = None
    rest: tuple[str, ...] | None = None


class _TaskFile(msgspec.Struct, frozen=True):
    """The tasks, and classes that none of them introduces; a task file of `curation build` serves."""

    tasks: tuple[_Task, ...]
    unknown: tuple[str, ...] = ()


def read_tasks(text: str) -> tuple[TaskClasses, ...]:
    """Return the tasks of a benchmark's name, a file (JSON or TOML), or a manifest's folder or name.

    A file says for each task which classes it introduces (``introduced`` or ``classes``), or the three lists ``prev``,
    ``cur`` and ``rest`` of an evaluation, which are taken as they stand: whether they agree is for the rules to say.

    Raises
    ------
    UsageError
        It is nothing of the kind, or the file has another structure.
    MissingFileError
        The file cannot be read.
    """
    if text in BENCHMARKS:
        return tasks_of(BENCHMARKS[text])
    path = Path(text)
    if path.is_file() and path.name != HEADER_FILE:
        return _of_file(path)
    try:
        return tasks_of_header(read_manifest(find_manifest(text)).header)
    except CurationError as error:
        raise UsageError(
            "There are no such tasks",
            where=f"--tasks {text[:200]}",
            expected=f"{', '.join(BENCHMARKS)}, a .json or .toml file, or a manifest with tasks",
            found=error.what,
        ) from error


def tasks_of(entries: tuple[TaskEntry, ...], never: tuple[str, ...] = ()) -> tuple[TaskClasses, ...]:
    """Return tasks with the classes known and unknown in each; those that are introduced never stay unknown."""
    every = tuple(dict.fromkeys((*(name for entry in entries for name in entry.introduced), *never)))
    tasks = []
    known: tuple[str, ...] = ()
    for entry in entries:
        known = tuple(dict.fromkeys((*known, *entry.introduced)))
        unknown = tuple(name for name in every if name not in known)
        tasks.append(TaskClasses(entry.name, entry.introduced, known, unknown))
    return tuple(tasks)


def tasks_of_header(header: Header) -> tuple[TaskClasses, ...]:
    """Return the tasks of a manifest; known classes stand in the order of their index."""
    index = {entry.name: entry.index for entry in header.classes}
    tasks: list[TaskClasses] = []
    known: list[str] = []
    for task in header.tasks:
        known += [name for name in dict.fromkeys(task.introduced) if name not in known]
        tasks.append(
            TaskClasses(
                name=task.name,
                introduced=task.introduced,
                known=tuple(sorted(known, key=lambda name: index[name])),
                unknown=tuple(entry.name for entry in header.classes if entry.name not in known),
            )
        )
    return tuple(tasks)


def classes_of(tasks: tuple[TaskClasses, ...]) -> tuple[ClassEntry, ...]:
    """Return every class that some task names, indexed in the order of the last task.

    A class that the last task leaves unknown and no task introduces stays unknown for ever.
    """
    ordered = (*(tasks[-1].known if tasks else ()), *(name for t in tasks for name in (*t.known, *t.unknown)))
    known = {name for task in tasks for name in (*task.introduced, *task.known)}
    entries = []
    for index, name in enumerate(dict.fromkeys(ordered)):
        role: ClassRole = "known" if name in known else "unknown"
        entries.append(
            ClassEntry(
                name=name, role=role, index=index if role == "known" else -1, aliases=known_aliases(name)
            )
        )
    return tuple(entries)


def _of_file(path: Path) -> tuple[TaskClasses, ...]:
    data = read_bytes(path, kind="task file")
    refuse_repeated_keys(data, str(path), UsageError)
    try:
        if len(data) > _MAX_BYTES:
            raise ValueError(f"{len(data)} bytes")
        plain: Any = (
            tomllib.loads(data.decode()) if path.suffix.lower() == ".toml" else msgspec.json.decode(data)
        )
        content = msgspec.convert(plain, _TaskFile)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            "The task file cannot be read", where=str(path), expected=_EXAMPLE, found=str(error)[:200]
        ) from None
    named = [
        msgspec.structs.replace(task, name=task.name or f"t{number}")
        for number, task in enumerate(content.tasks, start=1)
    ]
    if not named or len({task.name for task in named}) < len(named):
        raise UsageError(
            "The task file names no task, or one twice",
            where=str(path),
            expected=_EXAMPLE,
            found=", ".join(task.name for task in named)[:200] or "none",
        )
    if all(task.cur is not None for task in named):
        return tuple(_as_stated(task) for task in named)
    entries = tuple(TaskEntry(name=task.name, introduced=_introduced(task, path)) for task in named)
    return tasks_of(entries, content.unknown)


def _introduced(task: _Task, path: Path) -> tuple[str, ...]:
    stated = [names for names in (task.introduced, task.classes) if names is not None]
    if len(stated) != 1:
        raise UsageError(
            "A task does not say once which classes it introduces",
            where=f"{path}: {task.name[:80]}",
            expected=_EXAMPLE,
        )
    return stated[0]


def _as_stated(task: _Task) -> TaskClasses:
    return TaskClasses(task.name, task.cur or (), (*task.prev, *(task.cur or ())), task.rest or ())
