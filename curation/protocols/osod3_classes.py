"""Which classes are known, unknown, or outside in each problem of the OSOD-III protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from curation.cooccurrence.counts import Cooccurrence, count_cooccurrence
from curation.cooccurrence.cut import SOLVER_VERSION, Cut, CutOptions, normalized_cut
from curation.cooccurrence.graph import class_graph
from curation.errors import ProtocolError
from curation.hierarchy.superclass import superclass_digest
from curation.manifest.header import ClassEntry, ClassRole, Figure, ParameterValue
from curation.protocols.class_splits import rotation, split_classes
from curation.protocols.osod3_facts import CUB_CLASSES, CUB_PARTS, INNER_NODES, OPEN_IMAGES_PARTS
from curation.protocols.osod3_parameters import labels_of
from curation.sources.mtsd import OTHER_SIGN
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
    """

    name: str
    title: str
    entries: tuple[ClassEntry, ...]
    recorded: dict[str, ParameterValue]
    figures: tuple[Figure, ...] = ()
    every_unknown: tuple[ClassEntry, ...] = field(default=())


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
    parts = split_classes(
        labels,
        parts=OPEN_IMAGES_PARTS,
        seed=parameters["seed"],
        generator=parameters["generator"],
        uneven=parameters["uneven"],
    )
    known, unknown = rotation(parts, parameters["rotation"], "part_known")
    inner = INNER_NODES.get(word, ())
    roles: dict[str, ClassRole] = dict.fromkeys((by_label[one] for one in known), "known")
    roles |= dict.fromkeys((by_label[one] for one in unknown), "unknown")
    roles |= dict.fromkeys((by_label[one] for one in inner if one in by_label), "ignored")
    short = word if not word.startswith("[") else "custom"
    count = len(labels)
    paper = _PAPER_CLASSES.get(word)
    return ClassRoles(
        f"osod3/openimages-{short}-{parameters['rotation']}",
        f"OSOD-III, Open Images {short}, rotation {parameters['rotation']}: part {parameters['rotation']} known",
        _entries(roles, [by_label[one] for one in known], source),
        {
            "superclass_classes": count,
            "superclass_digest": superclass_digest(labels),
            **{f"part_{place}": tuple(part) for place, part in enumerate(parts, 1)},
        },
        (
            Figure(name="superclass.classes", paper=paper, obtained=count, place="section 4.1",
                   explanation="" if paper in (None, count) else "another super-class"),
            Figure(name="known.classes", paper=None if paper is None else paper // 4, obtained=len(known),
                   place="section 4.1"),
        ),
    )  # fmt: skip


def class_labels(source: Source) -> Sequence[str]:
    """Return what a source tells its classes apart by: Open Images' MIDs, else the names."""
    return source.categories.keys or source.categories.names


def cub_roles(source: Source, parameters: Mapping[str, Any]) -> ClassRoles:
    """Return the roles of the 200 species in a case: part `rotation` of four is unknown, the others are known.

    Parts are of class numbers ("001" to "200"), as the authors name them.
    """
    names = source.categories.names
    if len(names) != CUB_CLASSES:
        raise ProtocolError(
            "CUB has 200 species", where=source.part, expected=str(CUB_CLASSES), found=str(len(names))
        )
    numbers = [f"{number:03}" for number in range(1, CUB_CLASSES + 1)]
    parts = split_classes(
        numbers, parts=CUB_PARTS, seed=parameters["seed"], generator=parameters["generator"]
    )
    known, unknown = rotation(parts, parameters["rotation"], "part_unknown")
    of_number = dict(zip(numbers, names, strict=True))
    roles: dict[str, ClassRole] = {of_number[one]: "known" for one in known}
    roles |= {of_number[one]: "unknown" for one in unknown}
    case = parameters["rotation"]
    return ClassRoles(
        f"osod3/cub-{case}",
        f"OSOD-III, CUB-200-2011, case {case}: part {case} unknown",
        _entries(roles, [of_number[one] for one in sorted(known)], source),
        {f"part_{place}": tuple(part) for place, part in enumerate(parts, 1)},
        (
            Figure(name="known.classes", paper=150, obtained=len(known), place="section 4.1"),
            Figure(name="unknown.classes", paper=50, obtained=len(unknown), place="section 4.1"),
        ),
    )


def mtsd_roles(train: Source, test: Source, parameters: Mapping[str, Any]) -> ClassRoles:
    """Return the roles of the sign classes in a case, by a normalized cut of their co-occurrence into three.

    Known is the largest cluster; unknown1 the smallest, as in the paper; ``other-sign`` is in none.
    """
    counts = _together(train, test)
    cut = normalized_cut(class_graph(counts), 3, CutOptions(components="giant"))
    known, second, third = cut.clusters
    clusters = {"unknown1": third, "unknown2": second}
    case = parameters["case"]
    wanted = ("unknown1", "unknown2") if case == "unknown12" else (case,)
    roles: dict[str, ClassRole] = dict.fromkeys(known, "known")
    everything = roles | dict.fromkeys((*second, *third), "unknown")
    roles |= {name: "unknown" for cluster in wanted for name in clusters[cluster]}
    return ClassRoles(
        f"osod3/mtsd-{case}",
        f"OSOD-III, Mapillary traffic signs, {case}",
        _entries(roles, list(known), train),
        _cut_record(cut, {"known": known, **clusters}),
        every_unknown=_entries(everything, list(known), train),
    )


def _together(train: Source, test: Source) -> Cooccurrence:
    names = [
        name for name in train.categories.names if name != OTHER_SIGN and name in set(test.categories.names)
    ]
    if len(names) < 3:
        raise ProtocolError(
            "There are too few sign classes to cut", expected="at least 3", found=str(len(names))
        )
    first, second = count_cooccurrence(train, names), count_cooccurrence(test, names)
    return Cooccurrence(
        first.names, first.images + second.images, first.pairs + second.pairs, first.total + second.total
    )


def _cut_record(cut: Cut, clusters: Mapping[str, Sequence[str]]) -> dict[str, ParameterValue]:
    between = ";".join(",".join(map(str, row)) for row in np.asarray(cut.between).tolist())
    return {
        "cut_solver_version": SOLVER_VERSION,
        "cut_ncut": f"{cut.value.numerator}/{cut.value.denominator}",
        "cut_lower_bound": f"{cut.lower_bound:.6f}",
        "cut_gap": f"{cut.gap:.6f}",
        "cut_certificate": cut.certificate,
        "cut_starts": len(cut.starts),
        "cut_starts_that_reached_it": cut.reached,
        "cut_between": between,
        "cut_isolated": cut.isolated,
        "cut_apart": cut.apart,
        **{f"{name}_classes": len(names) for name, names in clusters.items()},
    }


def _entries(roles: Mapping[str, ClassRole], known: Sequence[str], source: Source) -> tuple[ClassEntry, ...]:
    """Return an entry for every class of the source: known ones first, by index; those without a role lie outside."""
    index = {name: place for place, name in enumerate(known)}
    others = [name for name in source.categories.names if name not in index]
    return tuple(
        ClassEntry(name=name, role=roles.get(name, "negative"), index=index.get(name, -1))
        for name in (*known, *others)
    )
