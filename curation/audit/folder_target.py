"""A folder of somebody's lists as the target of an audit.

What part a list plays is guessed from the names that open-world repositories use, or said by the user.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from curation.audit.audited_sources import audited_source, positions_of
from curation.audit.classes import TaskClasses, classes_of
from curation.audit.list_roles import ALL_TASKS, RoleOfList, guess_roles, read_role, slice_of, tasks_by_name
from curation.audit.lists import ListSet
from curation.audit.target import DEFAULT_EXEMPLARS, PRINCIPLE, AuditedList, AuditTarget, LabelFile
from curation.errors import UsageError
from curation.manifest.header import LabelView
from curation.sources.source import Source


@dataclass(frozen=True)
class FolderOptions:
    """What the user says of a folder's lists.

    Attributes
    ----------
    roles : mapping of str to str
        ``ROLE[:TASK]`` by list, ``none`` for no role; lists not named here are guessed from their names.
    views : mapping of str to LabelView
        The view that the lists of a role carry.
    labels : mapping of str to Source
        Label files by ``LIST`` or ``LIST:TASK``.
    complete : collection of str
        Sources that miss no object of any of their classes.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, LabelView] = field(default_factory=dict)
    labels: Mapping[str, Source] = field(default_factory=dict)
    complete: Collection[str] = ()
    exemplars: int = DEFAULT_EXEMPLARS
    photos: Mapping[str, Path] = field(default_factory=dict)


def folder_target(
    lists: ListSet,
    *,
    tasks: Sequence[TaskClasses] = (),
    sources: Mapping[str, Source] | None = None,
    options: FolderOptions | None = None,
) -> AuditTarget:
    """Return the lists of a folder for an audit.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names that the user gives them.

    Raises
    ------
    UsageError
        A role, task or label file is given for a list that is not there.
    """
    options = options or FolderOptions()
    classes = classes_of(tuple(tasks))
    audited = tuple(
        audited_source(key, source, classes, complete=options.complete)
        for key, source in (sources or {}).items()
    )
    files = tuple(
        AuditedList(name=one.name, file=one.name, members=one.members, lines=one.lines) for one in lists.lists
    )
    _require_lists(options, lists)
    used = [
        _with_role(one, role, tasks, options) for one in files for role in _roles(one, files, tasks, options)
    ]
    target = AuditTarget(
        name=lists.name,
        kind="folder",
        classes=classes,
        tasks=tuple(tasks),
        ids=lists.vocabulary.natives,
        files=files,
        lists=tuple(one for one in used if one.role),
        sources=audited,
        positions=positions_of(lists.vocabulary, [one.raw for one in audited]),
        exemplars=options.exemplars,
        photos=options.photos,
        digests=lists.digests,
    )
    skipped = [f"{name}: no list ({why})" for name, why in lists.skipped.items()]
    return replace(target, remarks=(*(_remark(one, target) for one in used), *skipped))


def _roles(
    one: AuditedList, files: Sequence[AuditedList], tasks: Sequence[TaskClasses], options: FolderOptions
) -> list[RoleOfList]:
    task_names = [task.name for task in tasks]
    said = [
        replace(read_role(text, task_names, f"--role {key}={text}"), lines=lines)
        for key, text in options.roles.items()
        for name, lines in [_named(key, [one.name])]
        if name == one.name
    ]
    names = [other.name for other in files]
    return said or guess_roles(one.name, len(one.members), len(tasks) or tasks_by_name(names), names)


def _named(key: str, names: Collection[str]) -> tuple[str, tuple[int, int] | None]:
    """Return the list that an option names, with or without suffix and lines; ``""`` where there is none."""
    text, lines = slice_of(key)
    for candidate in (text, text.removesuffix(".txt"), text.removesuffix(".json")):
        if candidate in names:
            return candidate, lines
    return "", lines


def _require_lists(options: FolderOptions, lists: ListSet) -> None:
    sizes = {one.name: int(one.lines[-1]) if len(one) else 0 for one in lists.lists}
    for option, keys in (("--role", options.roles), ("--labels", options.labels)):
        for key in keys:
            name, lines = _named(key if option == "--role" else key.partition(":")[0], sizes)
            if not name:
                raise UsageError(
                    "There is no such list in the folder",
                    where=f"{option} {key[:120]}",
                    expected=", ".join(sizes)[:400],
                )
            if lines and not 1 <= lines[0] <= lines[1] <= sizes[name]:
                raise UsageError(
                    "The list has no such lines",
                    where=f"{option} {key[:120]}",
                    expected=f"first and last of 1 to {sizes[name]}",
                )


def _with_role(
    one: AuditedList, role: RoleOfList, tasks: Sequence[TaskClasses], options: FolderOptions
) -> AuditedList:
    assert one.lines is not None  # noqa: S101
    first, last = role.lines or (1, int(one.lines[-1]) if len(one.lines) else 0)
    chosen = (one.lines >= first) & (one.lines <= last)
    numbers = (
        range(len(tasks)) if role.task == ALL_TASKS else range(role.task - 1, min(role.task, len(tasks)))
    )
    whole = role.lines is None
    view = options.views.get(role.role, PRINCIPLE.get(role.role))
    return AuditedList(
        name=one.name if whole else f"{one.name}[{first}-{last}]",
        file=one.file,
        members=one.members[chosen],
        role=role.role,
        # Without tasks a number still tells lists apart: validation lists of different tasks share no image.
        tasks=tuple(numbers) if tasks else (() if role.task == ALL_TASKS else (role.task - 1,)),
        lines=one.lines[chosen],
        view=view,
        view_declared=role.role in options.views,
        labels=_labels(one, numbers, tasks, options) if whole else {},
        said_by=role.said_by,
    )


def _labels(
    one: AuditedList, numbers: Sequence[int], tasks: Sequence[TaskClasses], options: FolderOptions
) -> dict[int, LabelFile]:
    found: dict[int, LabelFile] = {}
    for key, source in options.labels.items():
        text, _, task = key.partition(":")
        if _named(text, [one.name])[0] != one.name:
            continue
        chosen = [number for number in numbers if not task or task in (tasks[number].name, str(number + 1))]
        if len(chosen) != 1:
            raise UsageError(
                "A label file holds the labels of one task",
                where=f"--labels {key[:120]}",
                expected=f"{text}:TASK, of {', '.join(tasks[number].name for number in numbers) or '--tasks'}",
            )
        found[chosen[0]] = LabelFile(source.files[0].name, source)
    return found


def _remark(one: AuditedList, target: AuditTarget) -> str:
    if not one.role:
        return f"{one.name}: no role ({one.said_by})"
    of_tasks = f" of {', '.join(target.task_names(one))}" if one.tasks else ""
    return f"{one.name}: {one.role}{of_tasks} ({one.said_by})"
