"""A manifest as the target of an audit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec
import numpy as np

from curation.audit.classes import ClassNames, tasks_of_header
from curation.audit.id_vocabulary import keys_by_form, named, numbered_together
from curation.audit.target import (
    DEFAULT_EXEMPLARS,
    AuditedList,
    AuditTarget,
    LabelFile,
    ListRole,
    PartPlayed,
    audited_source,
    known_exhaustive,
)
from curation.errors import UsageError
from curation.manifest.header import Header, PartEntry
from curation.manifest.manifest import Manifest
from curation.manifest.views import positions_of
from curation.sources.source import Int32s, Source

_OPEN_WORLD = "OWOD"


def manifest_target(
    manifest: Manifest,
    sources: Mapping[str, Source],
    *,
    labels: Mapping[str, Source] | None = None,
    complete: Collection[str] = (),
    exemplars: int = DEFAULT_EXEMPLARS,
    photos: Mapping[str, Path] | None = None,
) -> AuditTarget:
    """Return a manifest for an audit.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names in the header; any may be absent.
    labels : mapping of str to Source
        Label files by part.
    complete : collection of str
        Sources that miss no object of any of their classes, as the user says.
    exemplars : int
        Images of each known class that a finetuning list should hold.

    Raises
    ------
    UsageError
        A label file is given for a part that the manifest lacks.
    """
    # Ignored classes are neither known nor unknown: no rule speaks of them.
    kept = tuple(entry for entry in manifest.header.classes if entry.role != "ignored")
    header = msgspec.structs.replace(manifest.header, classes=kept)
    entries = tuple(
        msgspec.structs.replace(entry, exhaustive=entry.exhaustive or known_exhaustive(entry.dataset))
        for entry in header.sources
    )
    audited = tuple(
        audited_source(entry.name, sources[entry.name], header.classes, stated=entry.exhaustive, complete=complete)
        for entry in entries
        if entry.name in sources
    )
    texts_of_parts = [
        "".join(f"{one}\n" for one in manifest.lists.get(part.name, ())).encode() for part in header.parts
    ]
    vocabulary, members = numbered_together(
        [named(keys_by_form(text, as_written=True), text) for text in texts_of_parts]
    )
    texts = vocabulary.ids()
    positions = [positions_of(texts, [one.raw])[1] for one in audited]
    tasks = tasks_of_header(header)
    _require_parts(header, labels or {})
    lists = tuple(
        _list_of(part, lines, header, part.name in manifest.lists, (labels or {}).get(part.name))
        for part, lines in zip(header.parts, members, strict=True)
    )
    return AuditTarget(
        name=f"{header.name} {header.version}",
        kind="manifest",
        classes=header.classes,
        tasks=tasks,
        ids=np.asarray(texts, object),
        files=_distinct(lists, header),
        lists=tuple(one for one in lists if one.role),
        sources=audited,
        positions=np.array(positions, np.int32).reshape(len(audited), len(texts)),
        expects_tasks=bool(tasks) or header.taxonomy == _OPEN_WORLD,
        entries=entries,
        exemplars=exemplars,
        photos=photos or {},
        parts=tuple(_played(part, header) for part in header.parts),
        ignored=_ignored(manifest.header),
        digests={part.name: part.sha256 for part in header.parts if part.sha256},
    )


def _ignored(header: Header) -> frozenset[str]:
    names = ClassNames(header.classes)
    ignored = [entry for entry in header.classes if entry.role == "ignored"]
    return frozenset(names.folded(name) for entry in ignored for name in (entry.name, *entry.aliases))


def _role(part: PartEntry, header: Header) -> ListRole:
    """Return the role of a part; one beside the list of its task and role, such as a mixture of it, plays none."""
    own = f"{part.task}-{part.role}"
    if part.task and part.name != own and any(other.name == own for other in header.parts):
        return ""
    return part.role


def _played(part: PartEntry, header: Header) -> PartPlayed:
    if role := _role(part, header):
        return PartPlayed(part.name, f"{role} of {part.task or 'all'}", "", "the manifest says so")
    why = f"{part.task}-{part.role} is the {part.role} list of {part.task}"
    return PartPlayed(part.name, "", "", why)


def _list_of(part: PartEntry, lines: Int32s, header: Header, available: bool, labels: Source | None) -> AuditedList:
    numbers = tuple(number for number, task in enumerate(header.tasks) if task.name == part.task)
    file = None if labels is None else LabelFile(labels.files[0].name, labels)
    return AuditedList(
        name=part.name,
        file=part.name,
        members=lines,
        role=_role(part, header),
        tasks=numbers,
        view=part.view,
        view_declared=True,
        labels=dict.fromkeys(numbers, file) if file else {},
        sources=part.sources,
        available=available,
        stated_repeats=part.repeats,
    )


def _distinct(lists: tuple[AuditedList, ...], header: Header) -> tuple[AuditedList, ...]:
    """Return lists with different lines: the test list of four tasks is one list."""
    first: dict[str, AuditedList] = {}
    for one, part in zip(lists, header.parts, strict=True):
        first.setdefault(part.sha256 or part.name, one)
    return tuple(first.values())


def _require_parts(header: Header, labels: Mapping[str, Source]) -> None:
    parts = [part.name for part in header.parts]
    if wrong := [name for name in labels if name not in parts]:
        raise UsageError("Unknown part", where=f"--labels {wrong[0][:80]}", expected=", ".join(parts))
