"""Which classes are known, unknown, or outside in each problem of the OSOD-III protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from curation.benchmarks.class_splits import rotation, split_classes
from curation.benchmarks.osod3.facts import CUB_CLASSES, CUB_PARTS, INNER_NODES, OPEN_IMAGES_PARTS
from curation.benchmarks.osod3.parameters import labels_of
from curation.benchmarks.osod3.published import published_parts
from curation.errors import ProtocolError
from curation.hierarchy.class_trees import superclass_digest
from curation.manifest.header import ClassEntry, ClassRole, Figure, ParameterValue
from curation.sources.source import Source

_PAPER_CLASSES = {"animal": 96, "vehicle": 24}


@dataclass(frozen=True, slots=True)
class ClassRoles:
    """The classes of one rotation or case.

    Attributes
    ----------
    name, title : str
        Of the manifest.
    entries : tuple of ClassEntry
    recorded : dict
        What the manifest's rule states beyond the parameters: the class parts, the cut.
    figures : tuple of Figure
    every_unknown : tuple of ClassEntry
        MTSD: the classes with both unknown clusters unknown, whatever the case; else empty.
    parts : tuple of tuple of str
        The parts or clusters, by class name.
    published : bool
        Whether the parts are the authors' lists.
    """

    name: str
    title: str
    entries: tuple[ClassEntry, ...]
    recorded: dict[str, ParameterValue]
    figures: tuple[Figure, ...] = ()
    every_unknown: tuple[ClassEntry, ...] = field(default=())
    parts: tuple[tuple[str, ...], ...] = ()
    published: bool = False


def open_images_roles(source: Source, parameters: Mapping[str, Any]) -> ClassRoles:
    """Return the roles of all classes of Open Images in a rotation; classes are found by MID, never by name.

    Known: part `rotation` of four of the super-class's leaves. Unknown: the other three. ``ignored``: the inner nodes
    of animal and vehicle (plain Car, Bird); of another super-class they are ``negative`` like every class outside.
    """
    word = parameters["superclass"]
    labels = labels_of(word)
    by_label = dict(zip(class_labels(source), source.categories.names, strict=True))
    if missing := [label for label in labels if label not in by_label]:
        raise ProtocolError(
            "The source has no class of the super-class",
            where=f"{source.dataset} {source.part}",
            expected=f"all {len(labels)} classes of {word[:40]}",
            found=f"{len(missing)} missing, such as {', '.join(missing[:3])}",
            hint="class-descriptions-boxable.csv beside the boxes names all 601",
        )
    parts = _parts_of_four(labels, by_label, parameters)
    known, unknown = rotation(parts, parameters["rotation"], "part_known")
    inner = INNER_NODES.get(word, ())
    roles: dict[str, ClassRole] = dict.fromkeys((by_label[one] for one in known), "known")
    roles |= dict.fromkeys((by_label[one] for one in unknown), "unknown")
    roles |= dict.fromkeys((by_label[one] for one in inner if one in by_label), "ignored")
    short = word if not word.startswith("[") else "custom"
    count = len(labels)
    names = tuple(sorted(by_label[one] for one in labels))
    paper = _PAPER_CLASSES.get(word)
    return ClassRoles(
        f"osod3/openimages-{short}-{parameters['rotation']}",
        f"OSOD-III, Open Images {short}, rotation {parameters['rotation']}: part {parameters['rotation']} known",
        _entries(roles, [by_label[one] for one in known], source),
        {
            "superclass_classes": count,
            "superclass_digest": superclass_digest(labels),
            "superclass_members": names,
            **_recorded(parts, parameters),
        },
        (
            Figure(name="superclass.classes", paper=paper, obtained=count, place="paper, sub-classes of Open Images",
                   explanation="" if paper in (None, count) else "another super-class"),
            Figure(name="known.classes", paper=None if paper is None else paper // 4, obtained=len(known),
                   place="paper, four parts of equal size"),
        ),
        parts=tuple(tuple(by_label[one] for one in part) for part in parts),
        published=bool(parameters["published"]),
    )  # fmt: skip


def class_labels(source: Source) -> Sequence[str]:
    """Return what a source tells its classes apart by: Open Images' MIDs, else the names."""
    return source.categories.keys or source.categories.names


def _parts_of_four(
    labels: Sequence[str], names: Mapping[str, str], parameters: Mapping[str, Any]
) -> tuple[tuple[str, ...], ...]:
    """Return the four parts by label: split here, or as the authors' lists name them (by label or by name)."""
    if not parameters["published"]:
        return split_classes(
            labels,
            parts=OPEN_IMAGES_PARTS,
            seed=parameters["seed"],
            generator=parameters["generator"],
            uneven=parameters["uneven"],
        )
    by_name = {names[label]: label for label in labels} | {label: label for label in labels}
    return _published(by_name, labels, parameters["published"], OPEN_IMAGES_PARTS)


def _published(by_name: Mapping[str, str], labels: Sequence[str], text: str, count: int) -> tuple[tuple[str, ...], ...]:
    parts = published_parts(text).parts
    if strange := [name for part in parts for name in part if name not in by_name]:
        raise ProtocolError(
            "The authors' lists name classes that are not of this problem",
            where="--set published",
            found=f"{len(strange)}: {', '.join(strange[:3])}"[:200],
            hint="choose --set problem and --set superclass as the lists are",
        )
    found = tuple(tuple(sorted(by_name[name] for name in part)) for part in parts)
    whole = {label for part in found for label in part} == set(labels)
    sizes = [len(part) for part in found]
    # The authors' parts are equal: others would be known and unknown classes the wrong way round, or another list.
    uneven = max(sizes) - min(sizes) > (len(labels) % count > 0)
    if len(found) != count or not whole or uneven:
        raise ProtocolError(
            "The authors' lists are not the parts of this problem",
            where="--set published",
            expected=f"{count} lists of equal size that hold {len(labels)} classes together",
            found=f"{len(found)} lists of {', '.join(map(str, sizes))}",
        )
    return found


def _recorded(parts: Sequence[Sequence[str]], parameters: Mapping[str, Any]) -> dict[str, ParameterValue]:
    return {f"part_{place}": tuple(part) for place, part in enumerate(parts, 1)} | _digests(parameters)


def _digests(parameters: Mapping[str, Any]) -> dict[str, ParameterValue]:
    if not parameters["published"]:
        return {}
    return {"published_digests": published_parts(parameters["published"]).digests}


def cub_roles(source: Source, parameters: Mapping[str, Any]) -> ClassRoles:
    """Return the roles of the 200 species in a case: part `rotation` of four is unknown, the others are known.

    Parts are of class numbers ("001" to "200"), as the authors name them.
    """
    names = source.categories.names
    if len(names) != CUB_CLASSES:
        raise ProtocolError("CUB has 200 species", where=source.part, expected=str(CUB_CLASSES), found=str(len(names)))
    numbers = [f"{number:03}" for number in range(1, CUB_CLASSES + 1)]
    # By the file's own class ids: the order of its lines is free.
    by_id = sorted(zip(source.categories.numbers, names, strict=True))
    of_number = {number: name for number, (_, name) in zip(numbers, by_id, strict=True)}
    if parameters["published"]:
        both = {f"{number}.{name}": number for number, name in of_number.items()}
        both |= {name: number for number, name in of_number.items()}
        parts = _published(both, numbers, parameters["published"], CUB_PARTS)
    else:
        parts = split_classes(numbers, parts=CUB_PARTS, seed=parameters["seed"], generator=parameters["generator"])
    known, unknown = rotation(parts, parameters["rotation"], "part_unknown")
    roles: dict[str, ClassRole] = {of_number[one]: "known" for one in known}
    roles |= {of_number[one]: "unknown" for one in unknown}
    case = parameters["rotation"]
    return ClassRoles(
        f"osod3/cub-{case}",
        f"OSOD-III, CUB-200-2011, case {case}: part {case} unknown",
        _entries(roles, [of_number[one] for one in sorted(known)], source),
        {"superclass_members": tuple(sorted(names)), **_recorded(parts, parameters)},
        (
            Figure(name="known.classes", paper=150, obtained=len(known), place="paper, species of CUB-200"),
            Figure(name="unknown.classes", paper=50, obtained=len(unknown), place="paper, species of CUB-200"),
        ),
        parts=tuple(tuple(of_number[one] for one in part) for part in parts),
        published=bool(parameters["published"]),
    )


def _entries(roles: Mapping[str, ClassRole], known: Sequence[str], source: Source) -> tuple[ClassEntry, ...]:
    """Return an entry for every class of the source: known ones first, by index; those without a role lie outside."""
    keys = source.categories.keys or source.categories.names
    aliases = {name: () if key == name else (key,) for name, key in zip(source.categories.names, keys, strict=True)}
    return class_entries(roles, known, source.categories.names, aliases)


def class_entries(
    roles: Mapping[str, ClassRole],
    known: Sequence[str],
    names: Sequence[str],
    aliases: Mapping[str, tuple[str, ...]],
) -> tuple[ClassEntry, ...]:
    """Return an entry for every name: known ones first, by index; those without a role are ``negative``."""
    index = {name: place for place, name in enumerate(known)}
    others = [name for name in names if name not in index]
    return tuple(
        ClassEntry(
            name=name,
            role=roles.get(name, "negative"),
            index=index.get(name, -1),
            aliases=aliases.get(name, ()),
        )
        for name in (*known, *others)
    )
