"""Lists declared in TOML: those that authors published, and those selected by classes.

A table ``[published.KEY]`` assigns files to parts and becomes a draft header, like ``[[parts]]`` of a user file;
`curation.manifest.importing.pin_lists` fills in digests and counts from the files. A table ``[selected.KEY]`` states
the classes of the images of a part; `selected_lists` selects them from the sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Annotated, Any, Literal, get_args

import msgspec
import numpy as np
from msgspec import Meta

from curation.benchmarks.benchmark import benchmark_facts, declared_slots
from curation.benchmarks.parts import (
    Selection,
    all_images,
    compared,
    images_with_roles,
    make_part,
    manifest_of,
    source_entry,
    unread_entry,
    voc_classes,
)
from curation.benchmarks.rules.benchmark_file import ListedPart, entries_by_role
from curation.core.errors import ProtocolError
from curation.manifest.header import (
    ClassEntry,
    ClassRole,
    Figure,
    FileEntry,
    Header,
    LabelView,
    Order,
    Paper,
    PartEntry,
    SourceEntry,
    TaskEntry,
    Taxonomy,
)
from curation.manifest.importing import LISTS, PROTOCOL
from curation.manifest.manifest import Manifest
from curation.signals.hierarchy.class_lists import read_class_sets
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.source import Source


class ListsOrigin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Origin of the authors' files."""

    dataset: str
    part: str
    note: str


class SelectedPart(ListedPart, frozen=True, kw_only=True):
    """A part of a table ``[selected.KEY]``.

    Attributes
    ----------
    shows : tuple of str
        Roles: each image shows a class in at least one of these roles; empty for all images.
    within, without : str
        Source that also contains its images, or that contains none of them.
    unless : str
        Source whose presence omits the part.
    """

    file: str = ""
    order: Order = "code_point"
    shows: tuple[ClassRole, ...] = ()
    within: str = ""
    without: str = ""
    unless: str = ""


class Stated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A figure of the paper, or a figure for each task if its name contains ``{task}``."""

    name: str
    place: str
    paper: tuple[int, ...] = ()
    explanation: str = ""


class _Lists(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    title: str
    taxonomy: Taxonomy
    figures: tuple[Stated, ...] = ()
    notes: tuple[str, ...] = ()
    classes: str = ""


class SelectedLists(_Lists, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table ``[selected.KEY]`` of a room's facts; `classes` is the key of a table ``[classes.KEY]``."""

    parts: tuple[SelectedPart, ...]


class PublishedLists(_Lists, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table ``[published.KEY]`` of a room's facts.

    Attributes
    ----------
    known : str
        Known classes of lists without tasks (see `curation.signals.hierarchy.class_lists.read_class_sets`); or
        ``voc-of-coco``: VOC's 20 classes, COCO's others unknown.
    datasets : dict of str to (str, str)
        Dataset and part of a source whose name is neither ``DATASET-PART`` nor that of a dataset.
    pinned : dict of str to (int, str)
        Lines and digest of each file, if known, for lists that were not available.
    """

    lists: ListsOrigin
    parts: tuple[ListedPart, ...]
    paper: str = ""
    tasks: str = ""
    known: str = ""
    datasets: dict[str, tuple[str, str]] = {}
    pinned: dict[str, tuple[int, str]] = {}


def drafts(room: str, aliases: Mapping[str, str] | None = None) -> dict[str, Callable[[], Header]]:
    """Return the drafts of all published lists of a room, by the name of the manifest that they make.

    Parameters
    ----------
    room : str
        Package of the benchmark.
    aliases : mapping of str to str, optional
        Other names of classes of the tasks.
    """
    facts = benchmark_facts(room)
    return {
        lists["name"]: partial(draft_with_tasks, facts, key, aliases or {}) for key, lists in facts["published"].items()
    }


def draft_with_tasks(facts: Mapping[str, Any], key: str, aliases: Mapping[str, str]) -> Header:
    """Return the draft of published lists, with tasks from a table ``[tasks.KEY]`` if any."""
    introduced = facts.get("tasks", {}).get(facts["published"][key].get("tasks", ""), {})
    tasks = tuple(TaskEntry(name=name, introduced=tuple(names)) for name, names in introduced.items())
    known = [name for task in tasks for name in task.introduced]
    classes = entries_by_role({"known": known}, {name: (alias,) for name, alias in aliases.items()})
    return draft(facts, key, classes=classes, tasks=tasks)


class ClassTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table ``[classes.KEY]`` (see `classes_in_roles`)."""

    numbered: Annotated[int, Meta(ge=1, le=100_000)] | Literal["coco"] | tuple[str, ...] = ()
    known: tuple[str | int, ...] = ()
    negative: tuple[str | int, ...] = ()
    unknown: tuple[str | int, ...] = ()
    ignored: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        """Raise `ValueError` for a class that is listed twice."""
        listed = [*self.known, *self.negative, *self.unknown, *self.ignored]
        if repeated := [name for name, times in Counter(map(str, listed)).items() if times > 1]:
            raise ValueError(f"the class {repeated[0]!a} is listed twice")


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
        Facts of the benchmark.
    key : str
        Key of the table ``[published.KEY]``.
    exhaustive : mapping of str to tuple of str, optional
        Source to the classes that are annotated on every image of it.
    """
    lists = msgspec.convert(facts["published"][key], PublishedLists)
    if lists.known == "voc-of-coco":
        classes = voc_classes()
    elif lists.known:
        classes = classes_in_roles(
            {"known": [name for entry in read_class_sets(lists.known) for name in entry.classes]}
        )
    elif lists.classes:
        classes = classes_in_roles(facts["classes"][lists.classes])
    paper = facts["papers"][lists.paper] if lists.paper else facts["paper"]
    views = _views(facts)
    if unknown := [part for part in lists.parts if part.view not in views]:
        part, known = unknown[0], ", ".join(filter(None, views)) or "a table [views.NAME]"
        where = f"{lists.name}: part {part.name[:80]}"
        raise ProtocolError("Unknown view", where=where, expected=known, found=repr(part.view[:80]))

    def of_task(text: str, task: int) -> str:
        # No str.format: the file is not trusted.
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
    origin = unread_entry(LISTS, lists.lists.dataset, lists.lists.part, note=lists.lists.note)
    digests = {part.file.partition(":")[0]: (0, part.sha256) for part in lists.parts if part.sha256} | lists.pinned
    # The size of a list that was not available is unknown; the digest determines it.
    pinned = [FileEntry(name=name, rows=rows, sha256=digest, size=0) for name, (rows, digest) in digests.items()]
    return manifest_of(
        [part for part, _ in listed],
        name=lists.name,
        title=lists.title,
        paper=msgspec.convert(paper, Paper | None),
        taxonomy=lists.taxonomy,
        origin="as_published",
        classes=classes,
        sources=(
            msgspec.structs.replace(origin, files=tuple(pinned)),
            *(_images(slot, lists, (exhaustive or {}).get(slot, ())) for slot in slots),
        ),
        protocol=PROTOCOL,
        parameters={part.name: file for part, file in listed},
        figures=figures,
        notes=lists.notes,
        tasks=tasks,
    ).header


def _images(slot: str, lists: PublishedLists, exhaustive: tuple[str, ...]) -> SourceEntry:
    dataset, part = lists.datasets.get(slot) or slot.partition("-")[::2]
    return unread_entry(slot, dataset, part, exhaustive=exhaustive)


def _views(facts: Mapping[str, Any]) -> dict[str, LabelView]:
    return {"": LabelView(), **msgspec.convert(facts.get("views", {}), dict[str, LabelView])}


def classes_in_roles(table: Mapping[str, Any]) -> tuple[ClassEntry, ...]:
    """Return the classes of a table ``[classes.KEY]``, which lists them by role.

    With the key ``numbered`` every class except ignored ones has a number, and a class in no list is known: ``coco``
    means COCO's 80 classes, n the classes 1 to n, a list its names from 1. Without it known classes count from 0.

    Examples
    --------
    >>> [(entry.role, entry.index) for entry in classes_in_roles({"numbered": ["cat", "ant"], "unknown": ["ant"]})]
    [('known', 1), ('unknown', 2)]
    """
    declared = msgspec.convert(table, ClassTable)
    role_of = {str(name): role for role in get_args(ClassRole) for name in getattr(declared, role, ())}
    names = declared.numbered or declared.known
    listed = range(1, names + 1) if isinstance(names, int) else names
    number_of = {str(name): number for number, name in enumerate(listed, int(bool(declared.numbered)))}
    if names == "coco":
        number_of = {name: number for number, name, _ in COCO_CATEGORIES}
    roles = {name: role_of.get(name, "known") for name in [*number_of, *role_of]}
    numbers = {name: -1 if role == "ignored" else number_of.get(name, -1) for name, role in roles.items()}
    return tuple(ClassEntry(name=name, role=role, index=numbers[name]) for name, role in roles.items())


def _needed(part: SelectedPart) -> list[str]:
    return [*part.sources, *filter(None, (part.within, part.without))]


def selected_lists(
    room: str, sources: Mapping[str, Source], parameters: Mapping[str, Any], classes: tuple[ClassEntry, ...] = ()
) -> Manifest:
    """Return the parts of a table ``[selected.KEY]`` whose sources are given; KEY is the parameter ``problem``.

    Parameters
    ----------
    room : str
        See `drafts`.
    classes : tuple of ClassEntry
        Classes, if the table does not name any.

    Raises
    ------
    ProtocolError
        No image is selected.
    """
    facts = benchmark_facts(room)
    used = {slot.name: sources[slot.name] for slot in declared_slots(room) if slot.name in sources}
    lists = msgspec.convert(facts["selected"][parameters.get("problem", next(iter(facts["selected"])))], SelectedLists)
    classes = classes or classes_in_roles(facts["classes"][lists.classes])
    views, family = _views(facts), lists.name.split("/")[0]

    def selection(part: SelectedPart, slot: str) -> Selection:
        positions = all_images(used[slot])
        if part.shows:
            positions = np.flatnonzero(images_with_roles(used[slot], classes, *part.shows))
        for other, is_in in ((part.within, True), (part.without, False)):
            if other:
                positions = positions[np.isin(used[slot].image_ids[positions], used[other].image_ids) == is_in]
        return Selection(slot, used[slot], positions)

    made = {
        part.name: make_part(
            part.name, part.role, [selection(part, slot) for slot in part.sources], classes,
            view=views[part.view], rule=part.selection, subset_of=part.subset_of, order=part.order,
        )
        for part in lists.parts
        if {*_needed(part)} <= used.keys() and part.unless not in used
    }  # fmt: skip
    if not made:
        needed = "; ".join(f"{part.name}: {', '.join(_needed(part))}" for part in lists.parts)
        message = "The sources make no part" if used else "No source is given"
        raise ProtocolError(
            message, expected=needed[:300], found=", ".join(used) or None, hint=f"curation list {family}"
        )
    if not any(part.ids for part in made.values()):
        read = (f"{slot}: classes {', '.join(source.categories.names[:5])}" for slot, source in used.items())
        message, names = "No image of the sources shows a class of the benchmark", [entry.name for entry in classes[:5]]
        raise ProtocolError(message, expected=f"classes {', '.join(names)}, …", found="; ".join(read))
    return manifest_of(
        list(made.values()),
        name=lists.name.replace("{part}", next(iter(used.values())).part or "custom"),
        title=lists.title,
        paper=msgspec.convert(facts["paper"], Paper),
        taxonomy=lists.taxonomy,
        classes=classes,
        sources=tuple(source_entry(slot, source) for slot, source in used.items()),
        protocol=family,
        parameters=dict(parameters),
        figures=[
            compared(figure.name, len(made[part].ids), figure.paper[0], figure.place, figure.explanation)
            for figure in lists.figures
            if (part := figure.name.partition(".")[0]) in made
        ],
        notes=lists.notes,
    )


def declared_lists(room: str, sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the header of `selected_lists`, which locks the lists by their digests; a build completes it."""
    made = selected_lists(room, sources, parameters)
    return Manifest(header=msgspec.structs.replace(made.header, origin="declared"), lists={})
