"""What part a list plays: guessed from the names that open-world repositories use, or said by the user."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from curation.audit.target import LIST_ROLES, PRINCIPLE, ListRole
from curation.errors import UsageError
from curation.manifest.header import LabelView

ALL_TASKS = 0

_WORDS: dict[str, ListRole] = {
    "train": "train",
    "training": "train",
    "ft": "finetune",
    "finetune": "finetune",
    "finetuning": "finetune",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "val_segment": "val",
    "test": "test",
    "known_test": "test",
}
_OF_ONE_TASK = re.compile(r"(?:t|task)[_-]?([1-9][0-9]?)[_-](\w+)")
_OF_ALL_TASKS = re.compile(r"(?:all[_-]tasks?[_-])?(train|val|validation|test)")
_WILDERNESS = re.compile(r"(?:.*[_-])?wr[0-9.]*")
_TREATMENTS = ("keep", "rename:unknown", "drop", "ignore")
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
        return [_none("several folders hold lists of one name: audit one of them")]
    if "with_unk" in stem:
        return [_none("train images with images of later tasks, for ORE's energy model")]
    if _WILDERNESS.fullmatch(stem):
        return [_none("a wilderness list, for the wilderness impact alone")]
    if (match := _OF_ONE_TASK.fullmatch(stem)) and (role := _WORDS.get(match[2])):
        return [_of_one_task(role, int(match[1]), match[2], n_tasks, names)]
    if match := _OF_ALL_TASKS.fullmatch(stem):
        return _of_all_tasks(_WORDS[match[1]], n_lines, n_tasks)
    return [_none("the name says no role")]


def tasks_by_name(names: Sequence[str]) -> int:
    """Return the largest task number that the names of some lists say, 0 where none does."""
    matches = (_OF_ONE_TASK.fullmatch(name.rpartition("/")[2].lower()) for name in names)
    return max((int(match[1]) for match in matches if match and match[2] in _WORDS), default=0)


def _folders_with_roles(names: Sequence[str]) -> set[str]:
    """Return the folders of lists whose name, with a role in it, stands in another folder too: several benchmarks."""
    places: dict[str, set[str]] = {}
    for name in names:
        folder, _, stem = name.lower().rpartition("/")
        match = _OF_ONE_TASK.fullmatch(stem)
        if _OF_ALL_TASKS.fullmatch(stem) or (match and match[2] in _WORDS):
            places.setdefault(stem, set()).add(folder)
    return set().union(*(folders for folders in places.values() if len(folders) > 1))


def _none(why: str) -> RoleOfList:
    return RoleOfList("", ALL_TASKS, why)


def _of_one_task(role: ListRole, task: int, word: str, n_tasks: int, names: Sequence[str]) -> RoleOfList:
    whole = [other for other in names if other.rpartition("/")[2] in ("all_task_test", "test")]
    if word == "known_test" and whole:
        return _none(f"its images are a part of {whole[0]}")
    if n_tasks and task > n_tasks:
        return _none(f"the name says task {task}, of {n_tasks} tasks")
    return RoleOfList(role, task, "guessed from the name")


_SEGMENT = 1000


def _of_all_tasks(role: ListRole, n_lines: int, n_tasks: int) -> list[RoleOfList]:
    if role == "val" and n_tasks > 1 and n_lines == _SEGMENT * n_tasks:
        why = f"guessed from the name: {n_tasks} segments of {_SEGMENT:,} lines, one a task"
        return [
            RoleOfList(role, task, why, (_SEGMENT * (task - 1) + 1, _SEGMENT * task))
            for task in range(1, n_tasks + 1)
        ]
    if role == "train" and n_tasks > 1:
        return [_none("the name does not say which task is trained on it")]
    return [RoleOfList(role, ALL_TASKS, "guessed from the name: one list for all tasks")]


def read_role(text: str, task_names: Sequence[str], option: str) -> RoleOfList:
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
        raise UsageError("There is no such role", where=option, expected=expected, found=role[:80])
    number = _task_number(task, task_names, option) if task and task != "all" else ALL_TASKS
    if role == "train" and number == ALL_TASKS and len(task_names) > 1:
        raise UsageError(
            "A train list belongs to one task",
            where=option,
            expected=f"train:TASK, of {', '.join(task_names)}",
        )
    return RoleOfList(_WORDS.get(role, "wilderness"), number, "said with --role")


def _task_number(text: str, names: Sequence[str], option: str) -> int:
    if text in names:
        return names.index(text) + 1
    # Without --tasks any number stands; the rules on tasks are undecidable then.
    if text.isascii() and text.isdigit() and 1 <= int(text) <= (len(names) or 99):
        return int(text)
    raise UsageError(
        "There is no such task",
        where=option,
        expected=", ".join(names) or "a number from 1, and --tasks",
        found=text[:80],
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
    fields: dict[str, str] = {}
    for pair in text.split(","):
        name, _, treatment = pair.partition("=")
        if name not in LabelView.__struct_fields__ or treatment not in _TREATMENTS or name in fields:
            raise UsageError(
                "There is no such label view",
                where=option,
                expected=f"one of {', '.join(PRINCIPLE)}; or pairs such as known=keep,previous=drop,unknown=drop, "
                f"of {', '.join(LabelView.__struct_fields__)} with {', '.join(_TREATMENTS)}",
                found=pair[:80],
            )
        fields[name] = treatment
    return LabelView(**fields)  # type: ignore[arg-type]
