"""A manifest as the target of an audit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from curation.audit.classes import ClassNames, tasks_of_header
from curation.audit.id_vocabulary import keys_by_form, named, numbered_together
from curation.audit.lists import AuditedList, LabelFile, ListRole
from curation.audit.target import DEFAULT_EXEMPLARS, AuditTarget, PartPlayed, audited_source, known_exhaustive
from curation.errors import UsageError
from curation.manifest.header import Header, PartEntry
from curation.manifest.manifest import Manifest
from curation.manifest.views import positions_of
from curation.sources.entries import PublishedList
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
    reads = [_read(part.name, manifest.lists.get(part.name, ())) for part in header.parts]
    vocabulary, members = numbered_together(
        [named(keys_by_form(one.paths, as_written=True), one.paths) for one in reads]
    )
    texts = vocabulary.ids()
    positions = [positions_of(texts, [one.raw])[1] for one in audited]
    tasks = tasks_of_header(header)
    labels = labels or {}
    parts = [part.name for part in header.parts]
    if wrong := [name for name in labels if name not in parts]:
        raise UsageError("Unknown part", where=f"--labels {wrong[0][:80]}", expected=", ".join(parts))
    lists = tuple(
        _list_of(part, header, own, read, labels.get(part.name), available=part.name in manifest.lists)
        for part, own, read in zip(header.parts, members, reads, strict=True)
    )
    # The test list of four tasks is one list.
    files: dict[str, AuditedList] = {}
    for one in lists:
        files.setdefault(one.sha256 or one.name, one)
    ignored = [entry for entry in manifest.header.classes if entry.role == "ignored"]
    names = ClassNames(manifest.header.classes)
    return AuditTarget(
        name=f"{header.name} {header.version}",
        kind="manifest",
        classes=header.classes,
        tasks=tasks,
        ids=np.asarray(texts, object),
        files=tuple(files.values()),
        lists=tuple(one for one in lists if one.role),
        sources=audited,
        positions=np.array(positions, np.int32).reshape(len(audited), len(texts)),
        expects_tasks=bool(tasks) or header.taxonomy == _OPEN_WORLD,
        entries=entries,
        exemplars=exemplars,
        photos=photos or {},
        parts=tuple(_played(part, header) for part in header.parts),
        ignored=frozenset(names.folded(name) for entry in ignored for name in (entry.name, *entry.aliases)),
    )


def _read(name: str, ids: Sequence[str]) -> PublishedList:
    return PublishedList(name, "".join(f"{one}\n" for one in ids).encode(), np.arange(1, len(ids) + 1, dtype=np.int32))


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


def _list_of(
    part: PartEntry, header: Header, members: Int32s, read: PublishedList, labels: Source | None, *, available: bool
) -> AuditedList:
    numbers = tuple(number for number, task in enumerate(header.tasks) if task.name == part.task)
    file = None if labels is None else LabelFile(labels.files[0].name, labels)
    return AuditedList(
        name=part.name,
        whole=part.name,
        members=members,
        lines=read.lines,
        read=read,
        sha256=part.sha256 or "",
        role=_role(part, header),
        tasks=numbers,
        view=part.view,
        view_declared=True,
        labels=dict.fromkeys(numbers, file) if file else {},
        sources=part.sources,
        available=available,
        stated_repeats=part.repeats,
    )
