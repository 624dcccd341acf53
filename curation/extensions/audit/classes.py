"""The classes of a benchmark and of each of its tasks; ``Aeroplane`` and ``airplane`` are one class."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from curation.benchmarks.owod.splits import TASKS
from curation.core.errors import CurationError, UsageError
from curation.core.reading import read_declaration
from curation.core.tables import grouped
from curation.manifest.header import ClassEntry, ClassRole, Header, TaskEntry
from curation.manifest.locate import find_manifest
from curation.manifest.manifest import HEADER_FILE, read_manifest
from curation.sources.datasets import COCO_NAMES_OF_VOC

UNKNOWN_NAME = "unknown"

BENCHMARKS: dict[str, tuple[TaskEntry, ...]] = {
    "reowod": TASKS["m-owodb"],
    "ore": TASKS["m-owodb"],
    "m-owodb": TASKS["m-owodb"],
    "s-owodb": TASKS["s-owodb"],
}
"""Tasks by the name of a benchmark; RE-OWOD's lists follow ORE's split."""

_EXAMPLE = '{"tasks": [{"name": "t1", "introduced": ["person", "dog"]}, …]}'


@dataclass(frozen=True, slots=True)
class TaskClasses:
    """Classes of a task.

    Attributes
    ----------
    introduced : tuple of str
        Classes that become known, in order.
    known : tuple of str
        Classes known by then, in the order of their index.
    unknown : tuple of str
        Classes that stay unknown.
    """

    name: str
    introduced: tuple[str, ...]
    known: tuple[str, ...]
    unknown: tuple[str, ...]


class ClassNames:
    """The classes of a benchmark, found by any of their names.

    Parameters
    ----------
    classes : sequence of ClassEntry
        In the order of their positions. Aliases of an entry count, and the six names in which VOC and COCO differ.
    """

    def __init__(self, classes: Sequence[ClassEntry]) -> None:
        self._aliases = _aliases(classes)
        self._position: dict[str, int] = {}
        for position, entry in enumerate(classes):
            self._position.setdefault(self.folded(entry.name), position)

    def folded(self, name: str) -> str:
        """Return the common form of all spellings of a class."""
        plain = fold(name)
        return self._aliases.get(plain, plain)

    def position(self, name: str) -> int:
        """Return the position of the class with this name, -1 for none."""
        return self._position.get(self.folded(name), -1)

    def variants(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Return the different spellings in some names, in their order, by the common form."""
        return grouped(dict.fromkeys(names), self.folded)


def fold(name: str) -> str:
    """Return a name in lower case, with single blanks and no outer blanks."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def known_aliases(name: str) -> tuple[str, ...]:
    """Return VOC's name of a COCO class, or COCO's name of a VOC class, if the two differ."""
    plain = fold(name)
    pairs = [pair for pair in COCO_NAMES_OF_VOC.items() if pair[0] != pair[1] and plain in pair]
    return tuple(other for pair in pairs for other in pair if other != plain)


def _aliases(classes: Sequence[ClassEntry]) -> Mapping[str, str]:
    """Return the common form of each alias; an alias that is a VOC class name keeps the form of that class."""
    forms = {fold(voc): fold(coco) for voc, coco in COCO_NAMES_OF_VOC.items()}
    for entry in classes:
        common = forms.get(fold(entry.name), fold(entry.name))
        for alias in entry.aliases:
            forms.setdefault(fold(alias), common)
    return forms


class _Task(msgspec.Struct, frozen=True):
    """One task of a file, with the classes that it introduces."""

    name: str = ""
    introduced: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None


class _TaskFile(msgspec.Struct, frozen=True):
    """The tasks, and classes that no task introduces; a benchmark file has both in its table ``classes``."""

    tasks: tuple[_Task, ...] = ()
    unknown: tuple[str, ...] = ()
    classes: _TaskFile | None = None


def read_tasks(text: str) -> tuple[TaskClasses, ...]:
    """Return the tasks of a benchmark by its name, of a JSON or TOML file, or of a manifest by its folder or name.

    A file states the classes that each task introduces (``introduced`` or ``classes``).

    Raises
    ------
    UsageError
        The text names no tasks, or the file has another structure.
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
            "Unknown tasks",
            where=f"--tasks {text[:200]}",
            expected=f"{', '.join(BENCHMARKS)}, a .json or .toml file, or a manifest with tasks",
            found=error.what,
        ) from error


def tasks_of(entries: Sequence[TaskEntry], never: Sequence[str] = ()) -> tuple[TaskClasses, ...]:
    """Return tasks with their known and unknown classes; no task introduces the classes `never`."""
    every = tuple(dict.fromkeys((*(name for entry in entries for name in entry.introduced), *never)))
    return _accumulated(entries, every, every)


def tasks_of_header(header: Header) -> tuple[TaskClasses, ...]:
    """Return the tasks of a manifest; known classes are in the order of their index."""
    ranked = [entry.name for entry in sorted(header.classes, key=lambda entry: entry.index)]
    return _accumulated(header.tasks, ranked, [entry.name for entry in header.classes])


def _accumulated(entries: Sequence[TaskEntry], ranked: Sequence[str], every: Sequence[str]) -> tuple[TaskClasses, ...]:
    """Return tasks with known classes in the order of `ranked`, and unknown classes in the order of `every`."""
    tasks: list[TaskClasses] = []
    known: set[str] = set()
    for entry in entries:
        known |= set(entry.introduced)
        now = tuple(name for name in ranked if name in known)
        later = tuple(name for name in every if name not in known)
        tasks.append(TaskClasses(entry.name, entry.introduced, now, later))
    return tuple(tasks)


def classes_of(tasks: tuple[TaskClasses, ...]) -> tuple[ClassEntry, ...]:
    """Return every class of some task, indexed in the order of the last task.

    A class that no task introduces stays unknown.
    """
    ordered = (*(tasks[-1].known if tasks else ()), *(name for t in tasks for name in (*t.known, *t.unknown)))
    known = {name for task in tasks for name in (*task.introduced, *task.known)}
    entries = []
    for index, name in enumerate(dict.fromkeys(ordered)):
        role: ClassRole = "known" if name in known else "unknown"
        position = index if role == "known" else -1
        entries.append(ClassEntry(name=name, role=role, index=position, aliases=known_aliases(name)))
    return tuple(entries)


def _of_file(path: Path) -> tuple[TaskClasses, ...]:
    content = read_declaration(path, _TaskFile, UsageError, kind="task file", example=_EXAMPLE)
    content = content.classes or content
    tasks = [
        msgspec.structs.replace(task, name=task.name or f"t{number}")
        for number, task in enumerate(content.tasks, start=1)
    ]
    if not tasks or len({task.name for task in tasks}) < len(tasks):
        raise UsageError(
            "No task, or two tasks with one name",
            where=str(path),
            expected=_EXAMPLE,
            found=", ".join(task.name for task in tasks)[:200] or "none",
        )
    entries = tuple(TaskEntry(name=task.name, introduced=_introduced(task, path)) for task in tasks)
    return tasks_of(entries, content.unknown)


def _introduced(task: _Task, path: Path) -> tuple[str, ...]:
    names = task.classes if task.introduced is None else task.introduced
    if names is None or None not in (task.introduced, task.classes):
        where = f"{path}: {task.name[:80]}"
        raise UsageError("A task must state once which classes it introduces", where=where, expected=_EXAMPLE)
    return names
