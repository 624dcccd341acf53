"""Lists as their authors published them, declared as facts: which file is which part, and what it is for.

A table ``[published.KEY]`` of a benchmark's TOML file becomes a draft header;
`curation.manifest.importing.pin_lists` fills in digests and counts from the authors' files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from curation.benchmarks.benchmark import benchmark_facts
from curation.benchmarks.parts import manifest_of, unread_entry, voc_classes
from curation.benchmarks.rules.benchmark_file import ListedPart
from curation.core.errors import ProtocolError
from curation.core.reading import read_declaration
from curation.manifest.header import (
    ClassEntry,
    Figure,
    Header,
    LabelView,
    Paper,
    PartEntry,
    SourceEntry,
    TaskEntry,
    Taxonomy,
)
from curation.manifest.importing import LISTS, PROTOCOL
from curation.signals.hierarchy.class_lists import read_class_sets


class ListsOrigin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the authors' files come from."""

    dataset: str
    part: str
    note: str


class Stated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A figure of the paper, or one a task where its name has ``{task}``."""

    name: str
    place: str
    paper: tuple[int, ...] = ()
    explanation: str = ""


class PublishedLists(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table ``[published.KEY]`` of a room's facts.

    Attributes
    ----------
    known : str
        Known classes of lists without tasks, as `curation.signals.hierarchy.class_lists.read_class_sets` takes them; or
        ``voc-of-coco``: VOC's 20 classes, COCO's others unknown.
    datasets : dict of str to (str, str)
        Dataset and part of a source whose name is neither ``DATASET-PART`` nor that of a dataset.
    """

    name: str
    title: str
    taxonomy: Taxonomy
    lists: ListsOrigin
    parts: tuple[ListedPart, ...]
    figures: tuple[Stated, ...] = ()
    notes: tuple[str, ...] = ()
    paper: str = ""
    tasks: str = ""
    known: str = ""
    datasets: dict[str, tuple[str, str]] = {}


def drafts(
    room: str, *, aliases: Mapping[str, str] | None = None, exhaustive: Mapping[str, tuple[str, ...]] | None = None
) -> dict[str, Callable[[], Header]]:
    """Return the drafts of all published lists of a room, by the name of the manifest that they make.

    Parameters
    ----------
    room : str
        Package of the room.
    aliases, exhaustive : mapping
        See `task_classes` and `draft`.
    """
    facts = benchmark_facts(room)
    return {
        lists["name"]: partial(_draft_with_tasks, facts, key, aliases or {}, exhaustive)
        for key, lists in facts["published"].items()
    }


def _draft_with_tasks(
    facts: Mapping[str, Any],
    key: str,
    aliases: Mapping[str, str],
    exhaustive: Mapping[str, tuple[str, ...]] | None = None,
) -> Header:
    tasks = tasks_in(facts).get(facts["published"][key].get("tasks", ""), ())
    classes = task_classes(tasks, aliases) if tasks else ()
    return draft(facts, key, classes=classes, tasks=tasks, exhaustive=exhaustive)


def declared_tasks(room: str) -> dict[str, tuple[TaskEntry, ...]]:
    """Return the tasks of each table ``[tasks.KEY]`` of a room's facts, with the classes that they introduce."""
    return tasks_in(benchmark_facts(room))


def tasks_in(facts: Mapping[str, Any]) -> dict[str, tuple[TaskEntry, ...]]:
    """Return the tasks of each table ``[tasks.KEY]`` of some facts, with the classes that they introduce."""
    return {
        key: tuple(TaskEntry(name=name, introduced=tuple(names)) for name, names in tasks.items())
        for key, tasks in facts.get("tasks", {}).items()
    }


def task_classes(tasks: tuple[TaskEntry, ...], aliases: Mapping[str, str]) -> tuple[ClassEntry, ...]:
    """Return the classes of some tasks, all known, indexed from 0 in task order, with another name where one has it."""
    names = [name for task in tasks for name in task.introduced]
    return tuple(
        ClassEntry(name=name, role="known", index=index, aliases=(aliases[name],) if name in aliases else ())
        for index, name in enumerate(names)
    )


class DeclaredLists(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A benchmark of lists alone, in a TOML or JSON file of a user; a copy of a packaged file will do.

    Attributes
    ----------
    published : dict of str to PublishedLists
        One table.
    benchmark, evaluation : dict
        What a packaged file declares beside its lists; not used here.
    """

    published: Annotated[dict[str, PublishedLists], Meta(min_length=1, max_length=1)]
    paper: Paper | None = None
    views: dict[str, LabelView] = {}
    tasks: dict[str, dict[str, tuple[str, ...]]] = {}
    aliases: dict[str, str] = {}
    benchmark: dict[str, Any] = {}
    evaluation: dict[str, Any] = {}


def draft_of(path: Path) -> tuple[Header, dict[str, str]]:
    """Return the draft of the lists that a user's file declares, and the digests that it states of some files.

    Raises
    ------
    MissingFileError, ProtocolError
        No such file; it declares something else, or a view or class list that there is not.
    """
    declared = read_declaration(path, DeclaredLists, ProtocolError)
    (key,) = declared.published
    known = {"", *declared.views}
    for part in declared.published[key].parts:
        if part.view not in known:
            raise ProtocolError("Unknown view", where=f"{path}: part {part.name[:80]}", found=repr(part.view[:80]))
    if (tasks := declared.published[key].tasks) and tasks not in declared.tasks:
        tables = ", ".join(declared.tasks) or f"a table [tasks.{tasks}]"
        raise ProtocolError("Unknown tasks", where=f"{path}: tasks", expected=tables[:300], found=repr(tasks[:80]))
    digests = stated_digests(declared.published[key].parts)
    return _draft_with_tasks(msgspec.to_builtins(declared), key, declared.aliases), digests


def stated_digests(parts: Sequence[ListedPart]) -> dict[str, str]:
    """Return the digests that tables ``[[parts]]`` state of their files."""
    return {part.file.partition(":")[0]: part.sha256 for part in parts if part.sha256}


def draft(
    facts: Mapping[str, Any],
    key: str,
    *,
    classes: tuple[ClassEntry, ...],
    tasks: tuple[TaskEntry, ...] = (),
    exhaustive: Mapping[str, tuple[str, ...]] | None = None,
) -> Header:
    """Return the draft header of published lists.

    Parameters
    ----------
    facts : mapping
        Of the benchmark.
    key : str
        Of the table ``[published.KEY]``.
    exhaustive : mapping of str to tuple of str, optional
        Source to the classes that are annotated on every image of it.
    """
    lists = msgspec.convert(facts["published"][key], PublishedLists)
    if lists.known == "voc-of-coco":
        classes = voc_classes()
    elif lists.known:
        names = (name for entry in read_class_sets(lists.known) for name in entry.classes)
        classes = tuple(ClassEntry(name=name, role="known", index=index) for index, name in enumerate(names))
    paper = facts["papers"][lists.paper] if lists.paper else facts["paper"]
    views = {"": LabelView(), **msgspec.convert(facts.get("views", {}), dict[str, LabelView])}

    def of_task(text: str, task: int) -> str:
        # No str.format: a file may be a stranger's.
        lines = {"{task}": task, "{first}": 1000 * task - 999, "{last}": 1000 * task}
        return reduce(lambda made, pair: made.replace(pair[0], str(pair[1])), lines.items(), text)

    listed = [
        (
            PartEntry(
                name=of_task(part.name, task),
                role=part.role,
                sources=part.sources,
                selection=of_task(part.selection or f"The list {part.file}.", task),
                view=views[part.view],
                order=part.order,
                subset_of=of_task(part.subset_of, task),
                task=f"t{task}" if task else "",
            ),
            of_task(part.file, task),
        )
        for part in lists.parts
        for task in part.of or (0,)
    ]
    figures = [
        Figure(
            name=of_task(figure.name, number),
            paper=paper_value,
            obtained=None,
            place=figure.place,
            explanation=figure.explanation,
        )
        for figure in lists.figures
        for number, paper_value in enumerate(figure.paper or (None,), start=1)
    ]
    slots = dict.fromkeys(slot for part, _ in listed for slot in part.sources)
    return manifest_of(
        [part for part, _ in listed],
        name=lists.name,
        title=lists.title,
        paper=msgspec.convert(paper, Paper | None),
        taxonomy=lists.taxonomy,
        origin="as_published",
        classes=classes,
        sources=(
            unread_entry(LISTS, lists.lists.dataset, lists.lists.part, note=lists.lists.note),
            *(_images(slot, lists, (exhaustive or {}).get(slot, ())) for slot in slots),
        ),
        protocol=PROTOCOL,
        algorithm_version=1,
        parameters={part.name: file for part, file in listed},
        figures=figures,
        notes=lists.notes,
        tasks=tasks,
    ).header


def _images(slot: str, lists: PublishedLists, exhaustive: tuple[str, ...]) -> SourceEntry:
    dataset, part = lists.datasets.get(slot) or slot.partition("-")[::2]
    return unread_entry(slot, dataset, part, exhaustive=exhaustive)
