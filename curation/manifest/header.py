"""The header of a manifest: its protocol, images, origin, and the rules that make it valid.

The header is plain data without floats (a threshold is a decimal string), so that its canonical form, and with it
the manifest's digest, is the same on every machine.
Each field declares its valid values; `curation.manifest.validation` checks how fields depend on each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, get_args

import msgspec

from curation.core.wording import short_repr

SCHEMA_VERSION: Literal[1] = 1

NAME = r"[a-z0-9][a-z0-9_.]*(?:-[a-z0-9_.]+)*(?:/[a-z0-9][a-z0-9_.]*(?:-[a-z0-9_.]+)*)?"
"""A manifest's name: lower-case words joined by ``-``, at most one ``/``."""
VERSION = r"(?:0|[1-9][0-9]{0,5})\.(?:0|[1-9][0-9]{0,5})\.(?:0|[1-9][0-9]{0,5})"
"""A semantic version without pre-release marks."""
PART_NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
"""Name of a part, which is the stem of its id file, of a source or a task: no separator, no leading dot."""
DIGEST = r"sha256:[0-9a-f]{64}"
LARGEST_INDEX = 2**31 - 2
"""Largest category id: it fits 32 bits, and so does the next one."""

Name = Annotated[str, msgspec.Meta(pattern=rf"^{NAME}\Z", max_length=120)]
Version = Annotated[str, msgspec.Meta(pattern=rf"^{VERSION}\Z")]
PartName = Annotated[str, msgspec.Meta(pattern=rf"^{PART_NAME}\Z")]
Digest = Annotated[str, msgspec.Meta(pattern=rf"^{DIGEST}\Z")]
Count = Annotated[int, msgspec.Meta(ge=0)]
Taxonomy = Literal["closed-set", "OSOD-I", "OSOD-II", "OSOD-III", "OWOD", "OVD", "OSC"]
ClassRole = Literal["known", "negative", "unknown", "ignored", "previous"]
"""``previous`` is a role only within a part: known since an earlier task (see `classes_in`)."""
BOX_COUNTS = (*get_args(ClassRole), "difficult", "crowd")
"""Keys of `PartEntry.boxes`: objects by role, and the subsets ``difficult`` and ``crowd``."""
PartRole = Literal["train", "val", "test", "finetune", "wilderness"]
Origin = Literal["regenerated", "as_published", "reviewed", "declared"]
Order = Literal["code_point", "listed"]
Treatment = Literal["keep", "rename:unknown", "drop", "ignore"]
ParameterValue = str | int | bool | None | tuple[str | int, ...]
TAXONOMIES: tuple[str, ...] = get_args(Taxonomy)
Lists = Mapping[str, Sequence[str]]
"""Ids of each available part."""


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Immutable record; unknown fields in a file are an error."""

    __repr__ = short_repr


class FileEntry(_Record, frozen=True):
    """One raw file of a source, or one folder of small files."""

    name: str
    sha256: Digest
    size: Count
    rows: Count
    files: Count = 1


class SourceEntry(_Record, frozen=True):
    """One raw dataset part, as it was read.

    Attributes
    ----------
    name : str
        The protocol's name for it, as in ``--source NAME=PATH``.
    dropped : dict of str to int
        Records that the reader left out under a policy, by reason.
    note : str
        Sentence about these files for readers of the manifest, or ``""``.
    exhaustive : tuple of str
        Classes whose objects are annotated on every image of the source without exception; empty if not known.
    """

    name: PartName
    dataset: str
    part: str
    namespace: str
    licence: str
    media_redistributable: bool
    files: tuple[FileEntry, ...]
    dropped: dict[str, Count] = {}
    note: str = ""
    exhaustive: tuple[str, ...] = ()


class ClassEntry(_Record, frozen=True):
    """One class with its role.

    Attributes
    ----------
    index : int
        Category id in exports and predictions; -1 for a class that becomes ``unknown``.
    aliases : tuple of str
        Names of the same class in the sources (``airplane`` for ``aeroplane``).
    """

    name: str
    role: ClassRole
    index: int
    aliases: tuple[str, ...] = ()


class LabelView(_Record, frozen=True):
    """How the boxes of each role are treated when a part is exported or scored.

    ``keep``: unchanged; ``rename:unknown``: box kept, class becomes unknown; ``drop``: box removed; ``ignore``: box
    kept and flagged, neither positive nor negative. ``depiction`` is for drawings of an object (Open Images).
    """

    known: Treatment = "keep"
    negative: Treatment = "keep"
    unknown: Treatment = "rename:unknown"
    ignored: Treatment = "ignore"
    crowd: Treatment = "ignore"
    difficult: Treatment = "ignore"
    previous: Treatment = "keep"
    depiction: Treatment = "keep"


class TaskEntry(_Record, frozen=True):
    """One step of an open-world benchmark: the classes that become known in it, in the order of their index."""

    name: PartName
    introduced: tuple[str, ...]


class PartEntry(_Record, frozen=True):
    """One list of images.

    Attributes
    ----------
    sources : tuple of str
        Names of the sources of its images.
    selection : str
        The rule in one sentence, with its place in the paper.
    order : {"code_point", "listed"}
        ``code_point``: the id file is sorted; ``listed``: its order has a meaning and is kept.
    images, sha256 : int, str or None
        Length and digest of the id file; None if a declared part was never computed.
    annotated_images : int or None
        Number of images, each counted once, with at least one object; None if it was not counted.
    boxes : dict of str to int
        Objects by role (``known``, ``unknown``, …), and the subsets ``difficult`` and ``crowd``. Empty when unknown.
    subset_of : str
        The part whose list contains the list of this part, or ``""``.
    task : str
        The task that decides which classes are known in the part, or ``""``.
    repeats : int
        Lines that repeat an image; not 0 only for published lists with repeats.
    """

    name: PartName
    role: PartRole
    sources: tuple[str, ...]
    selection: str
    view: LabelView
    order: Order = "code_point"
    images: Count | None = None
    annotated_images: Count | None = None
    boxes: dict[str, int] = {}
    sha256: Digest | None = None
    subset_of: str = ""
    task: str = ""
    repeats: Count = 0


class Rule(_Record, frozen=True):
    """The rule of the lists: name, version of its algorithm, and every parameter with its value."""

    protocol: str
    algorithm_version: int
    parameters: dict[str, ParameterValue]


class Figure(_Record, frozen=True):
    """A figure of the paper and the obtained number; a difference has an explanation.

    Attributes
    ----------
    name : str
        ``wilderness.images``, ``wr1.non_crowd_boxes``, …
    paper, obtained : int or None
        None if the paper states no number, or if the number is not computed yet.
    place : str
        Place of the number in the paper or its code.
    explanation : str
        Why the two differ; ``""`` if they agree.
    """

    name: str
    paper: int | None
    obtained: int | None
    place: str
    explanation: str = ""


class Paper(_Record, frozen=True):
    """The publication of a benchmark."""

    title: str
    authors: str
    year: int
    venue: str
    bibtex: str


class Supersedes(_Record, frozen=True):
    """The earlier version that this one replaces, and why."""

    version: Version
    digest: Digest
    reason: str


class Header(_Record, frozen=True):
    """All facts about a manifest except its ids.

    Attributes
    ----------
    name : str
        Lower-case words joined by ``-``, at most one ``/``: ``elephant/val2017``.
    version : str
        Semantic version ``MAJOR.MINOR.PATCH``.
    paper : Paper or None
        The publication whose benchmark this is; None for a user's benchmark, whose `notes` name the rule.
    taxonomy : str
        ``closed-set``, ``OSOD-I``, ``OSOD-II``, ``OSOD-III``, ``OWOD``, ``OVD`` or ``OSC``.
    origin : str
        ``regenerated`` from raw data; ``as_published`` by the authors; ``reviewed`` by hand; ``declared``: at least one
        list is not available, the header states the rule, the paper's figures, and known digests.
    decisions : str or None
        Digest of the decisions of a reviewed manifest.
    completes : str or None
        Digest of the declared manifest that this one completes.
    figures : tuple of Figure
        The paper's figures and the obtained numbers.
    tasks : tuple of TaskEntry
        The steps of an open-world benchmark in their order; empty for other benchmarks.
    """

    schema_version: Literal[1]
    name: Name
    version: Version
    title: str
    paper: Paper | None
    taxonomy: Taxonomy
    origin: Origin
    classes: tuple[ClassEntry, ...]
    parts: tuple[PartEntry, ...]
    sources: tuple[SourceEntry, ...]
    rule: Rule
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    supersedes: Supersedes | None = None
    decisions: Digest | None = None
    completes: Digest | None = None
    tasks: tuple[TaskEntry, ...] = ()


UNKNOWN_ID = -1
"""Category id of ``unknown`` in a manifest without tasks, as in the Elephant paper's files."""


def classes_in(header: Header, part: PartEntry) -> tuple[ClassEntry, ...]:
    """Return the classes of a manifest, in their order, with the role of each in a part.

    In a part of task t (Revisiting Open World Object Detection, section 3.1) a class introduced in t is ``known``, a
    class of an earlier task ``previous``, a class of a later task ``unknown``. A class that no task introduces, and any
    class in a part without a task, keeps its role.
    """
    return roles_at(header.classes, header.tasks, part.task)


def roles_at(classes: tuple[ClassEntry, ...], tasks: Sequence[TaskEntry], task: str) -> tuple[ClassEntry, ...]:
    """Return classes with their roles at a task, given by name or ``""`` for none (see `classes_in`)."""
    if not task:
        return classes
    step = {name: number for number, entry in reversed(list(enumerate(tasks))) for name in entry.introduced}
    now = [entry.name for entry in tasks].index(task)
    return tuple(
        msgspec.structs.replace(entry, role=_role(step[entry.name], now)) if entry.name in step else entry
        for entry in classes
    )


def unknown_index(header: Header) -> int:
    """Return the category id of ``unknown``: with tasks the number of classes, for every task; else -1."""
    return len(header.classes) if header.tasks else UNKNOWN_ID


def _role(introduced: int, now: int) -> ClassRole:
    return "known" if introduced == now else "previous" if introduced < now else "unknown"


_LATER: dict[type[msgspec.Struct], tuple[str, ...]] = {
    Header: ("tasks",),
    SourceEntry: ("exhaustive",),
    PartEntry: ("task", "repeats"),
    LabelView: ("previous", "depiction"),
}
"""Fields that were added to the schema later."""


def header_as_data(header: Header) -> dict[str, Any]:
    """Return the header as plain dicts, lists, strings and integers.

    Fields that were added to the schema later are left out if they have their default, so that earlier manifests keep
    their digest; all other fields are present.
    """
    data: dict[str, Any] = msgspec.to_builtins(header)
    stored = [(header, data), *zip(header.sources, data["sources"], strict=True)]
    for part, held in zip(header.parts, data["parts"], strict=True):
        stored += [(part, held), (part.view, held["view"])]
    for record, held in stored:
        for name, default in _later_defaults(type(record)):
            if getattr(record, name) == default:
                del held[name]
    return data


@cache
def _later_defaults(record: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """Return the fields that were added to the schema of a record later, with their defaults."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(record)}
    return tuple((name, defaults[name]) for name in _LATER[record])


def version_numbers(version: str) -> tuple[int, ...]:
    """Return a version as numbers, so that later versions are larger."""
    return tuple(int(number) for number in version.split("."))
