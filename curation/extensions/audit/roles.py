"""Roles of lists by the names of files and folders, and the pairs of lists that are compared.

A name gives roles and a *family*: its words other than those for roles and lists. Roles are compared only within one
folder and family (kind ``family``), as folds, versions and protocols share images by design. The family of a list of an
open-world benchmark states its task (`task_roles`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

import numpy as np

from curation.extensions.audit.lists import ListRole
from curation.sources.list_roles import ROLE_ORDER, Role, RoleGuess, read_role
from curation.sources.source import Int64s

Kind = Literal["family", "parts", "between"]


@dataclass(frozen=True, slots=True)
class ListPair:
    """Two lists that are compared.

    Attributes
    ----------
    a, b : int
        Positions of the lists: the one that comes first as train, val, test is `a`.
    roles : (str, str)
        The roles in which they are compared; empty texts for the kinds ``parts`` and ``between``.
    kind : {"family", "parts", "between"}
        ``family``: the roles exclude each other; shared images are errors. ``parts``: one family is the beginning of
        the other, without such roles; shared patients and subjects are notes. ``between``: other families; shared
        images are notes.
    """

    a: int
    b: int
    roles: tuple[Role | Literal[""], Role | Literal[""]] = ("", "")
    kind: Kind = "family"


def said_role(path: str, roles: Sequence[Role]) -> RoleGuess:
    """Return the guess for a list with roles set by the user (none for ``none``) and the family of its name."""
    return replace(read_role(path), roles=tuple(roles), words=(), why="said with --role")


class TaskRole(NamedTuple):
    """The role of a list, or of some of its lines, in the tasks of an open-world benchmark.

    Attributes
    ----------
    role : str
        ``""`` for none.
    task : int
        From 1; `ALL_TASKS` for a list that all tasks use.
    why : str
        The reason for the role.
    lines : (int, int) or None
        First and last line, counted from 1; None for all.
    """

    role: ListRole
    task: int
    why: str
    lines: tuple[int, int] | None = None


ALL_TASKS = 0
FINETUNE = ("ft", "finetune", "finetuning")
_TASK = re.compile(r"(?:t|task)([1-9][0-9]?)")
# Further words that open-world repositories use next to role and task: t1_val_segment, t1_known_test.
_BESIDE = ((), ("segment",), ("known",))
_NO_ROLE = {
    re.compile(".*with_unk.*"): "train images mixed with images of later tasks, for ORE's energy model",
    re.compile(r"(?:.*[_-])?wr[0-9.]*"): "a wilderness list, for the wilderness impact only",
}
_SEGMENT = 1000


@lru_cache(1 << 13)
def _role_in_task(name: str) -> tuple[ListRole, int, str] | None:
    """Return the role, the task and the remaining words of a name; None for a name without a role in tasks."""
    stem = name.rpartition("/")[2].lower()
    guess = read_role(stem)
    words = list(guess.family)
    if words[:1] in (["t"], ["task"], ["all"]):
        words[:2] = ["".join(words[:2])]
    role: ListRole = guess.roles[0] if len(guess.roles) == 1 else ""
    if not guess.words and words[-1:] and words[-1] in FINETUNE:
        role = "finetune"
        words.pop()
    match = _TASK.fullmatch(words[0]) if words else None
    # imgIds_task_1_train is a list of another field, with unordered tasks.
    if role and match and stem.startswith("t") and tuple(words[1:]) in _BESIDE:
        return role, int(match[1]), " ".join(words[1:])
    if role in ROLE_ORDER and words in ([], ["alltask"], ["alltasks"]):
        return role, ALL_TASKS, ""
    return None


def task_roles(name: str, n_lines: int, n_tasks: int, names: Sequence[str] = ()) -> list[TaskRole]:
    """Return the roles of a list of an open-world benchmark by its name; one empty role if the name has none.

    Parameters
    ----------
    name : str
        Without suffix; its folders are ignored.
    n_lines, n_tasks : int
        A validation list of all tasks with 1,000 lines per task has a segment for each task.
    names : sequence of str
        Names of all lists of the folder.
    """
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for other in names:
        if _role_in_task(other):
            folder, _, stem = other.lower().rpartition("/")
            homes[stem].add(folder)
    stem = name.rpartition("/")[2].lower()
    parsed = _role_in_task(name)
    why = next((text for pattern, text in _NO_ROLE.items() if pattern.fullmatch(stem)), "the name states no role")
    if any(len(folders) > 1 for folders in homes.values()):
        why = "several folders hold lists of the same name: audit one at a time"
        parsed = None
    if parsed is None:
        return [TaskRole("", ALL_TASKS, why)]
    role, task, rest = parsed
    full_tests = [other for other in names if other.rpartition("/")[2] in ("all_task_test", "test")]
    if role == "test" and rest == "known" and full_tests:
        return [TaskRole("", ALL_TASKS, f"its images are part of {full_tests[0]}")]
    if n_tasks and task > n_tasks:
        return [TaskRole("", ALL_TASKS, f"the name says task {task}, but there are {n_tasks} tasks")]
    if task != ALL_TASKS:
        return [TaskRole(role, task, "guessed from the name")]
    if role == "val" and n_tasks > 1 and n_lines == _SEGMENT * n_tasks:
        why = f"guessed from the name: {n_tasks} segments of {_SEGMENT:,} lines, one per task"
        ends = [(_SEGMENT * (number - 1) + 1, _SEGMENT * number) for number in range(1, n_tasks + 1)]
        return [TaskRole(role, number, why, lines) for number, lines in enumerate(ends, start=1)]
    if role == "train" and n_tasks > 1:
        return [TaskRole("", ALL_TASKS, "the name does not say which task it trains")]
    return [TaskRole(role, ALL_TASKS, "guessed from the name: one list for all tasks")]


def tasks_by_name(names: Sequence[str]) -> int:
    """Return the largest task number in the names of some lists, 0 for none."""
    return max((parsed[1] for name in names if (parsed := _role_in_task(name))), default=0)


def comparisons(guesses: Sequence[RoleGuess], lines: Sequence[int]) -> list[ListPair]:
    """Return the pairs of lists of kind ``family``, then those of kind ``parts``, each by position.

    Parameters
    ----------
    guesses : sequence of RoleGuess
    lines : sequence of int
        Of each list; empty lists are not compared.
    """
    homes: defaultdict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for index, guess in enumerate(guesses):
        if lines[index]:
            homes[guess.folder, guess.family].append(index)
    pairs = dict[tuple[int, int], ListPair]()
    for (folder, family), members in homes.items():
        for index in members:
            for role in set(ROLE_ORDER) - set(guesses[index].roles) if guesses[index].roles else ():
                # The first home with the role counts; a list of both roles contains the other one by design.
                candidates = (
                    [partner for partner in homes.get(home, ()) if role in guesses[partner].roles]
                    for home in _homes(folder, family)
                )
                for partner in next(filter(None, candidates), []):
                    if not set(guesses[partner].roles) & set(guesses[index].roles):
                        pair = _pair(guesses, index, partner)
                        pairs[pair.a, pair.b] = pair
    folds = [index for index, guess in enumerate(guesses) if guess.is_fold and lines[index]]
    for a, b in combinations(folds, 2):
        if guesses[a].folder == guesses[b].folder:
            pairs[a, b] = ListPair(a, b, ("train", "test"))
    parts = [
        ListPair(min(a, b), max(a, b), kind="parts")
        for (folder, short), (other, long) in combinations(sorted(homes), 2)
        if folder == other and short and long[: len(short)] == short
        for a in homes[folder, short]
        for b in homes[folder, long]
        if (a, b) not in pairs and (b, a) not in pairs
    ]
    return [*sorted(pairs.values(), key=_by_position), *sorted(parts, key=_by_position)]


def _by_position(pair: ListPair) -> tuple[int, int]:
    return pair.a, pair.b


def _homes(folder: str, family: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the folders and families of possible partners: its family, shorter ones, lists above without a family."""
    above = [parent.as_posix() for parent in PurePosixPath(folder).parents] if folder else []
    nameless = [(text if text != "." else "", ()) for text in ([folder] if family else []) + above]
    return [(folder, family), *((folder, family[:size]) for size in range(1, len(family))), *nameless]


def _pair(guesses: Sequence[RoleGuess], first: int, second: int) -> ListPair:
    a, b = sorted((first, second), key=lambda index: (ROLE_ORDER.index(guesses[index].roles[0]), index))
    # Of a compound role, the gravest combination counts: train with test.
    return ListPair(a, b, (guesses[a].roles[0], guesses[b].roles[-1]))


def between_families(overlaps: Int64s, compared: Sequence[ListPair]) -> list[ListPair]:
    """Return pairs of kind ``between``: lists that share an image and are not compared as roles.

    Parameters
    ----------
    overlaps : ndarray of int64, shape (n, n)
        See `curation.extensions.audit.identity.Images.overlaps`.
    compared : sequence of ListPair
        The result of `comparisons`.
    """
    within = {frozenset((pair.a, pair.b)) for pair in compared if pair.kind == "family"}
    shared = np.argwhere(np.triu(overlaps, 1) > 0).tolist()
    return [ListPair(a, b, kind="between") for a, b in shared if frozenset((a, b)) not in within]
