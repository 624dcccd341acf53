"""A folder of somebody's lists as the target of an audit.

What part a list plays is guessed from the names that open-world repositories use, or said by the user.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import get_args

import msgspec

from curation.audit.classes import TaskClasses, classes_of
from curation.audit.lists import ListSet
from curation.audit.roles import RoleGuess, between_families, comparisons, said_role
from curation.audit.roles import read_role as role_by_name
from curation.audit.target import (
    DEFAULT_EXEMPLARS,
    LIST_ROLES,
    PRINCIPLE,
    AuditedList,
    AuditTarget,
    ComparedPair,
    LabelFile,
    ListRole,
    PartPlayed,
    audited_source,
    positions_of,
)
from curation.errors import UsageError
from curation.key_value import pairs
from curation.manifest.header import LabelView, Treatment
from curation.sources.source import Source

ALL_TASKS = 0

_FINETUNE = ("ft", "finetune", "finetuning")
# Other words beside that of a role which open-world repositories use: t1_val_segment, t1_known_test.
_BESIDE = ((), ("segment",), ("known",))
_OF_ONE_TASK = re.compile(r"(?:t|task)[_-]?([1-9][0-9]?)[_-](\w+)")
_OF_ALL_TASKS = re.compile(r"(?:all[_-]tasks?[_-])?(train|val|validation|test)")
_WILDERNESS = re.compile(r"(?:.*[_-])?wr[0-9.]*")
_SLICE = re.compile(r"(?P<name>.+)\[(?P<first>[0-9]+)-(?P<last>[0-9]+)\]")


@dataclass(frozen=True, slots=True)
class RoleOfList:
    """The part that a list, or some of its lines, plays.

    Attributes
    ----------
    role : str
        ``""`` for none.
    task : int
        From 1; `ALL_TASKS` for a list that all tasks use.
    said_by : str
        How that is known, a sentence.
    lines : (int, int) or None
        First and last line, counted from 1; None for all.
    """

    role: ListRole
    task: int
    said_by: str
    lines: tuple[int, int] | None = None


def guess_roles(name: str, n_lines: int, n_tasks: int, names: Sequence[str] = ()) -> list[RoleOfList]:
    """Return the parts that a list plays by its name; one without a role where the name says none.

    Parameters
    ----------
    name : str
        File name without suffix; folders before it do not count.
    n_lines, n_tasks : int
        A validation list of all tasks that has 1,000 lines for each is that many segments, one a task.
    names : sequence of str
        Of all lists of the folder.
    """
    stem = name.rpartition("/")[2].lower()
    if len(_folders_with_roles(names)) > 1:
        return [_none("several folders hold lists of the same name: audit one at a time")]
    if "with_unk" in stem:
        return [_none("train images mixed with images of later tasks, for ORE's energy model")]
    if _WILDERNESS.fullmatch(stem):
        return [_none("a wilderness list, for the wilderness impact only")]
    if (match := _OF_ONE_TASK.fullmatch(stem)) and (role := _role_said(match[2])):
        return [_of_one_task(role, int(match[1]), match[2], n_tasks, names)]
    if match := _OF_ALL_TASKS.fullmatch(stem):
        return _of_all_tasks(_role_said(match[1]), n_lines, n_tasks)
    return [_none("the name states no role")]


def _role_said(word: str) -> ListRole:
    """Return the role that the rest of a task's list says: ``train``, ``ft``, ``known_test``; ``""`` for none."""
    if word in _FINETUNE:
        return "finetune"
    guess = role_by_name(word)
    return guess.roles[0] if len(guess.roles) == 1 and guess.family in _BESIDE else ""


def tasks_by_name(names: Sequence[str]) -> int:
    """Return the largest task number that the names of some lists say, 0 where none does."""
    matches = (_OF_ONE_TASK.fullmatch(name.rpartition("/")[2].lower()) for name in names)
    return max((int(match[1]) for match in matches if match and _role_said(match[2])), default=0)


def _folders_with_roles(names: Sequence[str]) -> set[str]:
    """Return the folders of lists whose name, with a role in it, is in another folder too: several benchmarks."""
    places: dict[str, set[str]] = {}
    for name in names:
        folder, _, stem = name.lower().rpartition("/")
        match = _OF_ONE_TASK.fullmatch(stem)
        if _OF_ALL_TASKS.fullmatch(stem) or (match and _role_said(match[2])):
            places.setdefault(stem, set()).add(folder)
    return set().union(*(folders for folders in places.values() if len(folders) > 1))


def _none(why: str) -> RoleOfList:
    return RoleOfList("", ALL_TASKS, why)


def _of_one_task(role: ListRole, task: int, word: str, n_tasks: int, names: Sequence[str]) -> RoleOfList:
    whole = [other for other in names if other.rpartition("/")[2] in ("all_task_test", "test")]
    if word == "known_test" and whole:
        return _none(f"its images are part of {whole[0]}")
    if n_tasks and task > n_tasks:
        return _none(f"the name says task {task}, but there are {n_tasks} tasks")
    return RoleOfList(role, task, "guessed from the name")


_SEGMENT = 1000


def _of_all_tasks(role: ListRole, n_lines: int, n_tasks: int) -> list[RoleOfList]:
    if role == "val" and n_tasks > 1 and n_lines == _SEGMENT * n_tasks:
        why = f"guessed from the name: {n_tasks} segments of {_SEGMENT:,} lines, one per task"
        return [
            RoleOfList(role, task, why, (_SEGMENT * (task - 1) + 1, _SEGMENT * task)) for task in range(1, n_tasks + 1)
        ]
    if role == "train" and n_tasks > 1:
        return [_none("the name does not say which task it trains")]
    return [RoleOfList(role, ALL_TASKS, "guessed from the name: one list for all tasks")]


def role_option(text: str, task_names: Sequence[str], option: str) -> RoleOfList:
    """Return the role in ``ROLE[:TASK]``; a task is a number from 1 or a name, without one it is all of them.

    Raises
    ------
    UsageError
        There is no such role or task.
    """
    role, _, task = text.partition(":")
    if role == "none":
        return _none("said with --role")
    if role not in LIST_ROLES:
        expected = f"{', '.join(LIST_ROLES)} or none, then :TASK"
        raise UsageError("Unknown role", where=option, expected=expected, found=role[:80])
    number = _task_number(task, task_names, option) if task and task != "all" else ALL_TASKS
    if role == "train" and number == ALL_TASKS and len(task_names) > 1:
        raise UsageError(
            "A train list belongs to one task", where=option, expected=f"train:TASK, of {', '.join(task_names)}"
        )
    return RoleOfList("finetune" if role in _FINETUNE else role, number, "said with --role")  # type: ignore[arg-type]  # one of LIST_ROLES


def _task_number(text: str, names: Sequence[str], option: str) -> int:
    if text in names:
        return names.index(text) + 1
    # Without --tasks any number stands; the rules on tasks are undecidable then.
    if text.isascii() and text.isdigit() and 1 <= int(text) <= (len(names) or 99):
        return int(text)
    raise UsageError(
        "Unknown task", where=option, expected=", ".join(names) or "a number from 1, and --tasks", found=text[:80]
    )


def slice_of(name: str) -> tuple[str, tuple[int, int] | None]:
    """Return the list and the lines that ``all_task_val[1-1000]`` means; None for all lines."""
    match = _SLICE.fullmatch(name)
    if match is None:
        return name, None
    return match["name"], (int(match["first"]), int(match["last"]))


def read_view(text: str, option: str) -> LabelView:
    """Return the label view in ``test`` (that of a role by the principle) or ``known=keep,previous=drop,…``.

    Raises
    ------
    UsageError
        It is neither.
    """
    if text in PRINCIPLE:
        return PRINCIPLE[text]
    try:
        return msgspec.convert(pairs(text.split(","), option), LabelView)
    except (UsageError, msgspec.ValidationError):
        raise UsageError(
            "Unknown label view",
            where=option,
            expected=f"one of {', '.join(PRINCIPLE)}; or pairs such as known=keep,previous=drop,unknown=drop, "
            f"of {', '.join(LabelView.__struct_fields__)} with {', '.join(get_args(Treatment))}",
            found=text[:80],
        ) from None


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
    patterns : sequence of str
        Regular expressions whose first capture group is the group of an image.
    column : str
        Column of a table that is such a group.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, LabelView] = field(default_factory=dict)
    labels: Mapping[str, Source] = field(default_factory=dict)
    complete: Collection[str] = ()
    exemplars: int = DEFAULT_EXEMPLARS
    photos: Mapping[str, Path] = field(default_factory=dict)
    patterns: Sequence[str] = ()
    column: str = ""


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
        audited_source(key, source, classes, complete=options.complete) for key, source in (sources or {}).items()
    )
    files = tuple(
        AuditedList(name=one.name, file=one.name, members=one.members, lines=one.read.lines) for one in lists.lists
    )
    _require_lists(options, lists)
    by_task = speaks_of_tasks([one.name for one in files], tasks, options)
    guesses = [_guess(one, options) for one in files]
    used, parts = list[AuditedList](), list[PartPlayed]()
    for place, one in enumerate(files):
        guess = None if by_task else guesses[place]
        for role in _roles(one, files, tasks, options, guess):
            used.append(_with_role(one, role, tasks, options))
            parts.append(_played(used[-1], role, tasks, guess))
    return AuditTarget(
        name=lists.name,
        kind="folder",
        classes=classes,
        tasks=tuple(tasks),
        ids=lists.vocabulary.natives,
        files=files,
        lists=tuple(one for one in used if one.role),
        sources=audited,
        positions=positions_of(lists.vocabulary, [one.raw for one in audited]),
        expects_tasks=by_task,
        exemplars=options.exemplars,
        photos=options.photos,
        digests=lists.digests,
        published=lists,
        parts=tuple(parts),
        compared=None if by_task else tuple(_compared(lists, used, guesses, options)),
        patterns=tuple(options.patterns),
        column=options.column,
    )


def speaks_of_tasks(names: Sequence[str], tasks: Sequence[TaskClasses], options: FolderOptions) -> bool:
    """Return whether names of lists or the user speak of tasks: roles are those of open-world benchmarks then."""
    said = any(":" in text or text in ("finetune", "ft", "wilderness") for text in options.roles.values())
    return bool(tasks or options.labels) or tasks_by_name(names) > 0 or said


def _guess(one: AuditedList, options: FolderOptions) -> RoleGuess:
    """Return the role and family by the name of a list, or as the user says for the whole list."""
    said = [text for key, text in options.roles.items() if _named(key, [one.name]) == (one.name, None)]
    roles = {"train": ("train",), "val": ("val",), "test": ("test",), "none": ()}
    words = [roles[text] for text in said if text in roles]
    return said_role(one.name, words[0]) if words else role_by_name(one.name)  # type: ignore[arg-type]  # of three words


def _roles(
    one: AuditedList,
    files: Sequence[AuditedList],
    tasks: Sequence[TaskClasses],
    options: FolderOptions,
    guess: RoleGuess | None,
) -> list[RoleOfList]:
    task_names = [task.name for task in tasks]
    said = [
        replace(role_option(text, task_names, f"--role {key}={text}"), lines=lines)
        for key, text in options.roles.items()
        for name, lines in [_named(key, [one.name])]
        if name == one.name
    ]
    if said:
        return said
    if guess is not None:
        return [RoleOfList(guess.roles[0] if guess.roles else "", ALL_TASKS, guess.why)]
    names = [other.name for other in files]
    return guess_roles(one.name, len(one.members), len(tasks) or tasks_by_name(names), names)


def _compared(
    lists: ListSet, used: Sequence[AuditedList], guesses: Sequence[RoleGuess], options: FolderOptions
) -> Iterator[ComparedPair]:
    """Yield the pairs of lists that names or the user say should share no image, then those of other kinds."""
    whole = {lists.place[one.name]: one for one in used if one.name in lists.place}
    sizes = [len(one) for one in lists.lists]
    pairs = comparisons(guesses, sizes)
    for pair in (*pairs, *between_families(lists.images.overlaps, pairs)):
        if pair.a in whole and pair.b in whole:
            unlabelled = guesses[pair.a].unlabelled or guesses[pair.b].unlabelled
            one, two = guesses[pair.a].family_name, guesses[pair.b].family_name
            yield ComparedPair(
                whole[pair.a], whole[pair.b], pair.kind, (pair.a, pair.b), pair.roles, unlabelled,
                one if one == two and len({*pair.roles, "train", "test"}) == 2 else "",
            )  # fmt: skip
    # Lists whose roles the user says are held together, whatever else their names say: so are lines of a list.
    met = {place for pair in pairs if pair.kind == "family" for place in (pair.a, pair.b)}
    said = {_named(key, lists.place)[0] for key in options.roles}
    alone = [one for one in used if one.file in said and lists.place[one.file] not in met]
    order = ("train", "val", "test")
    for first, second in permutations(alone, 2):
        roles = (first.role, second.role)
        if roles[0] in order and roles[1] in order and order.index(roles[0]) < order.index(roles[1]):
            places = (lists.place.get(first.name, -1), lists.place.get(second.name, -1))
            yield ComparedPair(first, second, "family", places, roles)


def _named(key: str, names: Collection[str]) -> tuple[str, tuple[int, int] | None]:
    """Return the list that an option names, with or without suffix and lines; ``""`` where there is none."""
    text, lines = slice_of(key)
    for candidate in (text, text.removesuffix(".txt"), text.removesuffix(".json")):
        if candidate in names:
            return candidate, lines
    return "", lines


def _require_lists(options: FolderOptions, lists: ListSet) -> None:
    sizes = {one.name: int(one.read.lines[-1]) if len(one) else 0 for one in lists.lists}
    for option, keys in (("--role", options.roles), ("--labels", options.labels)):
        for key in keys:
            name, lines = _named(key if option == "--role" else key.partition(":")[0], sizes)
            if not name:
                raise UsageError("Unknown list", where=f"{option} {key[:120]}", expected=", ".join(sizes)[:400])
            if lines and not 1 <= lines[0] <= lines[1] <= sizes[name]:
                raise UsageError(
                    "Lines out of range",
                    where=f"{option} {key[:120]}",
                    expected=f"first and last of 1 to {sizes[name]}",
                )


def _with_role(one: AuditedList, role: RoleOfList, tasks: Sequence[TaskClasses], options: FolderOptions) -> AuditedList:
    assert one.lines is not None  # noqa: S101
    first, last = role.lines or (1, int(one.lines[-1]) if len(one.lines) else 0)
    chosen = (one.lines >= first) & (one.lines <= last)
    numbers = range(len(tasks)) if role.task == ALL_TASKS else range(role.task - 1, min(role.task, len(tasks)))
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
                "A label file belongs to one task",
                where=f"--labels {key[:120]}",
                expected=f"{text}:TASK, of {', '.join(tasks[number].name for number in numbers) or '--tasks'}",
            )
        found[chosen[0]] = LabelFile(source.files[0].name, source)
    return found


def _played(one: AuditedList, role: RoleOfList, tasks: Sequence[TaskClasses], guess: RoleGuess | None) -> PartPlayed:
    lines = "" if role.lines is None else f" (lines {role.lines[0]:,} to {role.lines[1]:,})"
    of_tasks = ", ".join(tasks[n].name if n < len(tasks) else f"task {n + 1}" for n in one.tasks)
    played = " and ".join(guess.roles) if guess and guess.roles else role.role
    unlabelled = "unlabelled " if guess and guess.unlabelled else ""
    of = f" of {of_tasks}" if of_tasks and played else ""
    return PartPlayed(one.file, f"{unlabelled}{played}{of}{lines}", guess.family_name if guess else "", role.said_by)
