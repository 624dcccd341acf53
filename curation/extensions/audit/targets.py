"""A folder of lists, or a manifest, as the target of an audit.

The role of a list in a folder is guessed from its name or set by the user; a manifest states it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np

from curation.benchmarks.roles import disjoint_of
from curation.core.arguments import pairs
from curation.core.errors import UsageError
from curation.extensions.audit.classes import ClassNames, TaskClasses, classes_of, tasks_of_header
from curation.extensions.audit.lists import LIST_ROLES, AuditedList, ListRole, ListSet
from curation.extensions.audit.roles import (
    ALL_TASKS,
    FINETUNE,
    Pair,
    Role,
    RoleGuess,
    TaskRole,
    between_families,
    comparisons,
    read_role,
    said_role,
    task_roles,
    tasks_by_name,
)
from curation.extensions.audit.target import (
    DEFAULT_EXEMPLARS,
    PRINCIPLE,
    AuditTarget,
    ComparedPair,
    audited_source,
    known_exhaustive,
    positions_of,
)
from curation.manifest.header import Header, LabelView, PartEntry, Treatment
from curation.manifest.manifest import Manifest
from curation.manifest.views import positions_of as positions_of_ids
from curation.sources.entries import PublishedList
from curation.sources.source import Int32s, Source

_EXCLUSIVE: tuple[tuple[Role, Role], ...] = (("train", "val"), ("train", "test"), ("val", "test"))
"""Roles that share no image."""


def role_option(text: str, task_names: Sequence[str], option: str) -> TaskRole:
    """Return the role in ``ROLE[:TASK]``; a task is a number from 1 or a name, without one it is all of them.

    Raises
    ------
    UsageError
        No such role or task.
    """
    role, _, task = text.partition(":")
    if role == "none":
        return TaskRole("", ALL_TASKS, "said with --role")
    chosen = "finetune" if role in FINETUNE else next((known for known in LIST_ROLES if known == role), None)
    if chosen is None:
        expected = f"{', '.join(LIST_ROLES)} or none, then :TASK"
        raise UsageError("Unknown role", where=option, expected=expected, found=role[:80])
    number = _task_number(task, task_names, option) if task and task != "all" else ALL_TASKS
    if role == "train" and number == ALL_TASKS and len(task_names) > 1:
        raise UsageError(
            "A train list belongs to one task", where=option, expected=f"train:TASK, of {', '.join(task_names)}"
        )
    return TaskRole(chosen, number, "said with --role")


def _task_number(text: str, names: Sequence[str], option: str) -> int:
    if text in names:
        return names.index(text) + 1
    # Without --tasks any number is valid; rules on tasks are then undecidable.
    if text.isascii() and text.isdigit() and 1 <= int(text) <= (len(names) or 99):
        return int(text)
    raise UsageError(
        "Unknown task", where=option, expected=", ".join(names) or "a number from 1, and --tasks", found=text[:80]
    )


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
    """Options of the user for the lists of a folder.

    Attributes
    ----------
    roles : mapping of str to str
        ``ROLE[:TASK]`` by list, ``none`` for no role; lists not named here are guessed from their names.
    views : mapping of str to LabelView
        The view that the lists of a role carry.
    complete : collection of str
        Sources that miss no object of any of their classes.
    patterns : sequence of str
        Regular expressions whose first capture group is the group of an image.
    column : str
        Column of a table that is such a group.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, LabelView] = field(default_factory=dict)
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
        A role or task is given for a list that is not there.
    """
    options = options or FolderOptions()
    _require_lists(options, lists)
    names, tasks = [part.name for part in lists.lists], tuple(tasks)
    classes = classes_of(tasks)
    audited = tuple(
        audited_source(key, source, classes, complete=options.complete) for key, source in (sources or {}).items()
    )
    n_tasks = len(tasks) or tasks_by_name(names)
    said_of_tasks = any(":" in text or text in (*FINETUNE, "wilderness") for text in options.roles.values())
    by_task = bool(n_tasks or said_of_tasks)
    guesses = [_guess(part.name, options) for part in lists.lists]
    used = list[AuditedList]()
    for part, guess in zip(lists.lists, guesses, strict=True):
        text = _option_of(part.name, options.roles)
        if text is not None:
            roles = [role_option(text, [task.name for task in tasks], f"--role {part.name}={text}")]
        elif by_task:
            roles = task_roles(part.name, len(part), n_tasks, names)
        else:
            roles = [TaskRole(guess.roles[0] if guess.roles else "", ALL_TASKS, guess.why)]
        used += [_with_role(part, role, tasks, options, None if by_task else guess) for role in roles]
    return AuditTarget(
        name=lists.name,
        kind="folder",
        classes=classes,
        tasks=tasks,
        ids=lists.images.natives.to_numpy(zero_copy_only=False),
        files=lists.lists,
        used=tuple(used),
        sources=audited,
        positions=positions_of(lists.images, [source.raw for source in audited]),
        expects_tasks=by_task,
        exemplars=options.exemplars,
        photos=options.photos,
        published=lists,
        role_pairs=None if by_task else _exclusive_pairs(guesses),
        compared=None if by_task else tuple(_compared(lists, used, guesses, options)),
        patterns=tuple(options.patterns),
        column=options.column,
    )


def _guess(name: str, options: FolderOptions) -> RoleGuess:
    """Return the role and family by the name of a list, or as the user says."""
    roles: dict[str | None, tuple[Role, ...]] = {
        "train": ("train",), "val": ("val",), "test": ("test",), "none": (),
    }  # fmt: skip
    option = _option_of(name, options.roles)
    return said_role(name, roles[option]) if option in roles else read_role(name)


def _compared(
    lists: ListSet, used: Sequence[AuditedList], guesses: Sequence[RoleGuess], options: FolderOptions
) -> Iterator[ComparedPair]:
    """Yield the pairs of lists that names or the user say should share no image, then those of other kinds."""
    pairs = comparisons(guesses, [len(part) for part in lists.lists])
    pairs += _user_pairs(pairs, used, {row for row, part in enumerate(used) if _option_of(part.name, options.roles)})
    for pair in (*pairs, *between_families(lists.images.overlaps, pairs)):
        first, second = guesses[pair.a], guesses[pair.b]
        is_family = (first.family, first.folder) == (second.family, second.folder)
        same_family = is_family and len({*pair.roles, "train", "test"}) == 2
        yield ComparedPair(
            used[pair.a],
            used[pair.b],
            pair.kind,
            (pair.a, pair.b),
            pair.roles,
            first.unlabelled or second.unlabelled,
            first.family_name if same_family else "",
        )


def _exclusive_pairs(guesses: Sequence[RoleGuess]) -> int:
    """Return how many pairs of lists have roles that exclude each other."""
    counts = Counter(guess.roles for guess in guesses if guess.roles)
    return sum(
        counts[first] * counts[second] for first, second in combinations(counts, 2) if not set(first) & set(second)
    )


def _user_pairs(pairs: Sequence[Pair], used: Sequence[AuditedList], rows: Collection[int]) -> list[Pair]:
    """Return the pairs of lists with roles set by the user that are not in the same family.

    They are compared whatever their names are, unless the family of each has another such list of that role: folds
    share images by design.
    """
    partners: dict[int, set[str]] = {row: set() for row in rows}
    for pair in pairs:
        if pair.kind == "family" and {pair.a, pair.b} <= partners.keys():
            partners[pair.a].add(used[pair.b].role)
            partners[pair.b].add(used[pair.a].role)
    return [
        Pair(a, b, roles)
        for a, b in permutations(sorted(rows), 2)
        for roles in _EXCLUSIVE
        if roles == (used[a].role, used[b].role) and len(used[a]) and len(used[b])
        if roles[1] not in partners[a] or roles[0] not in partners[b]
    ]


def _names(key: str) -> tuple[str, ...]:
    """Return the lists that an option may mean: it may name one with its suffix."""
    return key, key.removesuffix(".txt"), key.removesuffix(".json")


def _option_of(name: str, options: Mapping[str, str]) -> str | None:
    """Return the value of an option for a list, or None."""
    return next((text for key, text in options.items() if name in _names(key)), None)


def _require_lists(options: FolderOptions, lists: ListSet) -> None:
    for key in options.roles:
        if not any(name in lists.index for name in _names(key)):
            raise UsageError("Unknown list", where=f"--role {key[:120]}", expected=", ".join(lists.index)[:400])


def _with_role(
    part: AuditedList, role: TaskRole, tasks: Sequence[TaskClasses], options: FolderOptions, guess: RoleGuess | None
) -> AuditedList:
    numbers = range(len(tasks)) if role.task == ALL_TASKS else range(role.task - 1, min(role.task, len(tasks)))
    # Without tasks a number still distinguishes lists: validation lists of different tasks share no image.
    used_in = tuple(numbers) if tasks else (() if role.task == ALL_TASKS else (role.task - 1,))
    played = " and ".join(guess.roles) if guess and guess.roles else role.role
    if used_in and played:
        played += f" of {', '.join(tasks[n].name if n < len(tasks) else f'task {n + 1}' for n in used_in)}"
    updated = replace(
        part,
        role=role.role,
        played=f"unlabelled {played}" if guess and guess.unlabelled else played,
        family=guess.family_name if guess else "",
        why=role.why,
        tasks=used_in,
        view=options.views.get(role.role, PRINCIPLE.get(role.role)),
        view_declared=role.role in options.views,
    )
    if role.lines is None:
        return updated
    first, last = role.lines
    rows = (part.lines >= first) & (part.lines <= last)
    name = f"{part.name}[{first}-{last}]"
    played = f"{updated.played} (lines {first:,} to {last:,})"
    return replace(updated, name=name, members=part.members[rows], lines=part.lines[rows], sha256="", played=played)


_OPEN_WORLD = "OWOD"


def manifest_target(
    manifest: Manifest,
    sources: Mapping[str, Source],
    *,
    complete: Collection[str] = (),
    exemplars: int = DEFAULT_EXEMPLARS,
    photos: Mapping[str, Path] | None = None,
    paths: Mapping[str, Path] | None = None,
) -> AuditTarget:
    """Return a manifest for an audit.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names in the header; any may be absent.
    complete : collection of str
        Sources that miss no object of any of their classes, as the user says.
    exemplars : int
        Images of each known class that a finetuning list should hold.
    photos, paths : mapping of str to Path
        Folders of photos, and annotation files or roots, by source.
    """
    import pyarrow as pa

    # Ignored classes are neither known nor unknown: no rule considers them.
    classes = tuple(entry for entry in manifest.header.classes if entry.role != "ignored")
    header = msgspec.structs.replace(manifest.header, classes=classes)
    entries = tuple(
        msgspec.structs.replace(entry, exhaustive=entry.exhaustive or known_exhaustive(entry.dataset))
        for entry in header.sources
    )
    audited = tuple(
        audited_source(entry.name, sources[entry.name], header.classes, stated=entry.exhaustive, complete=complete)
        for entry in entries
        if entry.name in sources
    )
    reads = [_read(part.name, manifest.lists.get(part.name, ())) for part in header.parts]
    ids = [image for part in header.parts for image in manifest.lists.get(part.name, ())]
    encoded = pa.array(ids, pa.large_string()).dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    members = np.split(encoded.indices.to_numpy(), np.cumsum([len(read) for read in reads]))[:-1]
    positions = [positions_of_ids(texts, [source.raw])[1] for source in audited]
    tasks = tasks_of_header(header)
    lists = tuple(
        _list_of(part, header, codes, read, available=part.name in manifest.lists)
        for part, codes, read in zip(header.parts, members, reads, strict=True)
    )
    # The test list of four tasks is one list.
    files: dict[str, AuditedList] = {}
    for part in lists:
        files.setdefault(part.sha256 or part.name, part)
    ignored = [entry for entry in manifest.header.classes if entry.role == "ignored"]
    names = ClassNames(manifest.header.classes)
    return AuditTarget(
        name=f"{header.name} {header.version}",
        kind="manifest",
        classes=header.classes,
        tasks=tasks,
        ids=np.asarray(texts, object),
        files=tuple(files.values()),
        used=lists,
        sources=audited,
        positions=np.array(positions, np.int32).reshape(len(audited), len(texts)),
        expects_tasks=bool(tasks) or header.taxonomy == _OPEN_WORLD,
        entries=entries,
        exemplars=exemplars,
        photos=photos or {},
        disjoint=disjoint_of(header),
        paths=paths or {},
        ignored=frozenset(names.folded(name) for entry in ignored for name in (entry.name, *entry.aliases)),
    )


def _read(name: str, ids: Sequence[str]) -> PublishedList:
    return PublishedList(name, "".join(f"{id_}\n" for id_ in ids).encode(), np.arange(1, len(ids) + 1, dtype=np.int32))


def _role(part: PartEntry, header: Header) -> ListRole:
    """Return the role of a part; empty for variants, such as mixtures, of the list of the same task and role."""
    default_name = f"{part.task}-{part.role}"
    if part.task and part.name != default_name and any(other.name == default_name for other in header.parts):
        return ""
    return part.role


def _list_of(part: PartEntry, header: Header, members: Int32s, read: PublishedList, *, available: bool) -> AuditedList:
    role = _role(part, header)
    return AuditedList(
        name=part.name,
        whole=part.name,
        members=members,
        lines=read.lines,
        read=read,
        sha256=part.sha256 or "",
        role=role,
        played=f"{role} of {part.task or 'all'}" if role else "",
        why="the manifest says so" if role else f"{part.task}-{part.role} is the {part.role} list of {part.task}",
        tasks=tuple(number for number, task in enumerate(header.tasks) if task.name == part.task),
        view=part.view,
        view_declared=True,
        sources=part.sources,
        available=available,
        stated_repeats=part.repeats,
    )
