"""The classes of one OWOD task: which are known since when, and which are still unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from curation.errors import EvaluationError
from curation.evaluation.truth import UNKNOWN, UNKNOWN_NUMBER, CategoryIds, KnownClasses, counts_truth_ids
from curation.input_files import read_plain
from curation.json_keys import refuse_repeated_keys
from curation.manifest.header import unknown_index
from curation.manifest.manifest import Manifest
from curation.sources.source import Source

_EXAMPLE = '{"tasks": [{"name": "t1", "prev": [], "cur": ["person", "dog"], "rest": ["truck"]}]}'
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class OwodTask:
    """One task of an open-world protocol (Revisiting Open World Object Detection, section 3.1).

    Attributes
    ----------
    name : str
    previous, current : tuple of str
        Classes introduced by earlier tasks and by this one; a detector of this task knows both.
    rest : tuple of str, or None
        Classes that are unknown in this task; None for every other class of the ground truth.
    numbers : mapping of str to int, or None
        Category id that detections use for each class; None for the ids of the ground truth.
    unknown_numbers : tuple of int
        Category ids that detections may use for ``unknown``.
    aliases : mapping of str to str
        Other names of classes in annotation files and detections (``aeroplane`` of ``airplane``).
    origin : str
        Where this was said.
    other_numbers : tuple of int
        Ids of another numbering of the same classes, to recognise detections that use it.
    """

    name: str
    previous: tuple[str, ...]
    current: tuple[str, ...]
    rest: tuple[str, ...] | None
    origin: str
    numbers: Mapping[str, int] | None = None
    unknown_numbers: tuple[int, ...] = (UNKNOWN_NUMBER,)
    aliases: Mapping[str, str] = field(default_factory=dict)
    other_numbers: tuple[int, ...] = ()

    @property
    def ids_from(self) -> CategoryIds:
        """Whose category ids detections use."""
        return "truth" if self.numbers is None else "manifest"

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the previous classes, then of the current ones."""
        return self.previous + self.current


class _TaskRecord(msgspec.Struct):
    name: str
    cur: tuple[str, ...]
    prev: tuple[str, ...] = ()
    rest: tuple[str, ...] | None = None


class _TaskFile(msgspec.Struct):
    tasks: tuple[_TaskRecord, ...]


def tasks_of_file(path: Path) -> tuple[OwodTask, ...]:
    """Return the tasks of a JSON file ``{"tasks": [{"name", "prev", "cur", "rest"}]}``, in file order.

    ``rest`` may be absent: then every class that is neither in ``prev`` nor in ``cur`` is unknown.

    Raises
    ------
    MissingFileError
        There is no such file.
    EvaluationError
        It is not such a file, two tasks share a name, a class stands twice in one task (case aside) or is called
        ``unknown``, or a task knows no class.
    """
    data = read_plain(path, kind="class file")
    refuse_repeated_keys(data, str(path), EvaluationError)
    try:
        listed = msgspec.json.decode(data, type=_TaskFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EvaluationError(
            "The task file cannot be read", where=str(path), expected=_EXAMPLE, found=str(error)[:200]
        ) from None
    names = [record.name for record in listed.tasks]
    if not names or _repeated(names):
        raise EvaluationError(
            "Two tasks share a name" if names else "The task file holds no task",
            where=str(path),
            expected=_EXAMPLE,
            found=", ".join(names)[:_SHOWN] or None,
        )
    for record in listed.tasks:
        _check_record(record, path)
    return tuple(
        OwodTask(record.name, record.prev, record.cur, record.rest, path.name) for record in listed.tasks
    )


def tasks_of_manifest(manifest: Manifest) -> tuple[OwodTask, ...]:
    """Return the tasks of a manifest with its category ids and aliases; ``unknown`` is the number of its classes.

    Raises
    ------
    EvaluationError
        The manifest has no tasks.
    """
    header = manifest.header
    if not header.tasks:
        raise EvaluationError(
            "The manifest has no tasks",
            where=f"{header.name} {header.version}",
            expected="an OWOD manifest, whose header lists the classes that each task introduces",
            hint="curation list shows the manifests at hand; --classes FILE names the tasks instead",
        )
    numbers = {entry.name: entry.index for entry in header.classes}
    unknown = unknown_index(header)
    aliases = {alias: entry.name for entry in header.classes for alias in entry.aliases}
    introduced = [task.introduced for task in header.tasks]
    every = tuple(name for names in introduced for name in names)
    tasks = []
    for place, task in enumerate(header.tasks):
        previous = tuple(name for names in introduced[:place] for name in names)
        known = set(previous) | set(task.introduced)
        rest = (*(name for name in every if name not in known), *(n for n in numbers if n not in set(every)))
        tasks.append(
            OwodTask(
                task.name,
                previous,
                task.introduced,
                rest,
                f"manifest {header.name} {header.version}",
                numbers,
                (unknown,) if unknown == UNKNOWN_NUMBER else (unknown, UNKNOWN_NUMBER),
                aliases,
            )
        )
    return tuple(tasks)


def numbered(task: OwodTask, source: Source, ids: CategoryIds | None = None) -> OwodTask:
    """Return a manifest's task with the category ids that its detections use.

    These are the ids of the ground truth where its file numbers its classes: a detector was given that file, or the
    one that it was made from. Otherwise, or where `ids` says so, they are the indices of the manifest's classes.

    Raises
    ------
    EvaluationError
        The truth's ids were asked for, and its file has none.
    """
    if task.numbers is None:
        return task
    if not counts_truth_ids(source, ids):
        return replace(task, other_numbers=source.categories.numbers)
    other = (*task.numbers.values(), *task.unknown_numbers)
    return replace(task, numbers=None, unknown_numbers=(UNKNOWN_NUMBER,), other_numbers=other)


def task_of_truth(source: Source, name: str = "test") -> OwodTask:
    """Return the task of an exported test view: each category but ``unknown`` is known, counted as introduced by it.

    Raises
    ------
    EvaluationError
        The file has no category ``unknown``, or no other one.
    """
    known = tuple(one for one in source.categories.names if one != UNKNOWN)
    if len(known) == len(source.categories.names) or not known:
        raise EvaluationError(
            "Nothing says which classes are known",
            where=", ".join(record.name for record in source.files),
            expected="a test view with known classes and a category named 'unknown', or a list of tasks",
            found=", ".join(source.categories.names)[:_SHOWN] or "no category",
            hint="--classes FILE names the tasks, --manifest MANIFEST takes them from a manifest",
        )
    return OwodTask(name, (), known, (), "categories of the truth")


def known_classes(task: OwodTask, source: Source) -> KnownClasses:
    """Return the known classes of a task as `curation.evaluation.truth.ground_truth` wants them.

    Raises
    ------
    EvaluationError
        The truth has no category of a known class, or objects of a class that the task does not name.
    """
    spelled = {name: task.aliases.get(name, name) for name in source.categories.names}
    numbers = {spelled[name]: n for name, n in zip(spelled, source.categories.numbers, strict=True)}
    where = ", ".join(record.name for record in source.files)
    missing = [name for name in task.known if name not in numbers]
    if missing:
        raise EvaluationError(
            f"The truth has no category of {len(missing)} known classes of task {task.name}",
            where=where,
            expected="classes among: " + ", ".join(source.categories.names)[:_SHOWN],
            found=", ".join(missing)[:_SHOWN],
            hint="is this the test view of another task, or does it spell the classes otherwise?",
        )
    _check_covered(task, source, spelled, where)
    chosen = numbers if task.numbers is None else task.numbers
    return KnownClasses(
        task.known,
        tuple(chosen[name] for name in task.known),
        task.origin,
        {alias: name for alias, name in task.aliases.items() if name in set(task.known)},
    )


def choose_tasks(tasks: tuple[OwodTask, ...], wanted: Iterable[str]) -> tuple[OwodTask, ...]:
    """Return the tasks of some names, in the order of `tasks`; a name that none has is an `EvaluationError`."""
    names = list(wanted)
    strangers = [name for name in names if name not in {task.name for task in tasks}]
    if strangers:
        raise EvaluationError(
            "There is no such task",
            where=tasks[0].origin,
            expected=", ".join(task.name for task in tasks)[:_SHOWN],
            found=repr(strangers[0][:80]),
        )
    return tuple(task for task in tasks if task.name in names)


def _check_record(record: _TaskRecord, path: Path) -> None:
    names = (*record.prev, *record.cur, *(record.rest or ()))
    # Names that differ in case alone are one class spelled twice (specs: BipolarForcepsDown, BipolarForcepsDOwn).
    twice = _repeated(name.casefold() for name in names)
    if twice or UNKNOWN in names or not record.prev + record.cur:
        raise EvaluationError(
            "A class is listed twice in one task"
            if twice
            else "'unknown' is listed as a class"
            if UNKNOWN in names
            else "A task knows no class",
            where=f"{path}: task {record.name!r}"[:_SHOWN],
            expected="each class once, in prev, cur or rest; at least one known; 'unknown' needs no listing",
            found=twice[0][:80] if twice else None,
        )


def _check_covered(task: OwodTask, source: Source, spelled: Mapping[str, str], where: str) -> None:
    if task.rest is None:
        return
    named = {*task.known, *task.rest, UNKNOWN}
    objects = source.require_objects("An evaluation")
    shown = set(objects.category.tolist())
    strangers = [
        name
        for place, name in enumerate(source.categories.names)
        if place in shown and spelled[name] not in named
    ]
    if strangers:
        raise EvaluationError(
            f"The truth shows objects of classes that task {task.name} does not name",
            where=where,
            expected="every class in prev, cur or rest (without rest: all others are unknown)",
            found=", ".join(strangers)[:_SHOWN],
            hint="add them to rest if a detector of this task does not know them",
        )


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
