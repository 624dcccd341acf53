"""Which classes are known, unknown, or outside in each problem of the OSOD-III protocol."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from curation.benchmarks.osod3.problems import (
    CUB_CLASSES,
    GENERATORS,
    INNER_NODES,
    MTSD_CLUSTERS,
    PARTS,
    Generator,
    labels_of,
    published_parts,
)
from curation.benchmarks.parts import compared
from curation.cooccurrence.cut import SOLVER_VERSION, Cut, CutOptions, normalized_cut
from curation.cooccurrence.graph import UNIT, Cooccurrence, class_graph, count_cooccurrence
from curation.errors import ProtocolError
from curation.hierarchy.class_trees import superclass_digest
from curation.manifest.header import ClassEntry, ClassRole, Figure, ParameterValue
from curation.sources.mtsd import OTHER_SIGN
from curation.sources.source import Source

_PAPER_CLASSES = {"animal": 96, "vehicle": 24}
_CLUSTERS = ("known", "unknown1", "unknown2")
Convention = Literal["part_known", "part_unknown"]
AUTHORS_SEED = 100


@dataclass(frozen=True, slots=True)
class ProblemClasses:
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


def open_images_roles(source: Source, parameters: Mapping[str, Any]) -> ProblemClasses:
    """Return the roles of all classes of Open Images in a rotation; classes are found by MID, never by name.

    Known: part `rotation` of four of the super-class's leaves. Unknown: the other three. ``ignored``: the inner nodes
    of animal and vehicle (plain Car, Bird); of another super-class they are ``negative`` like every class outside.
    """
    word = parameters["superclass"]
    labels = labels_of(word)
    by_label = dict(zip(_labels(source), source.categories.names, strict=True))
    if missing := [label for label in labels if label not in by_label]:
        raise ProtocolError(
            "The source has no class of the super-class",
            where=f"{source.dataset} {source.part}",
            expected=f"all {len(labels)} classes of {word[:40]}",
            found=f"{len(missing)} missing, such as {', '.join(missing[:3])}",
            hint="class-descriptions-boxable.csv beside the boxes names all 601",
        )
    by_name = {by_label[label]: label for label in labels} | {label: label for label in labels}
    parts = _parts_of_four(labels, by_name, parameters)
    known, unknown = rotation(parts, parameters["rotation"], "part_known")
    inner = INNER_NODES.get(word, ())
    roles: dict[str, ClassRole] = dict.fromkeys((by_label[one] for one in known), "known")
    roles |= dict.fromkeys((by_label[one] for one in unknown), "unknown")
    roles |= dict.fromkeys((by_label[one] for one in inner if one in by_label), "ignored")
    short = word if not word.startswith("[") else "custom"
    count = len(labels)
    names = tuple(sorted(by_label[one] for one in labels))
    paper = _PAPER_CLASSES.get(word)
    return ProblemClasses(
        f"osod3/openimages-{short}-{parameters['rotation']}",
        f"OSOD-III, Open Images {short}, rotation {parameters['rotation']}: part {parameters['rotation']} known",
        _source_entries(roles, [by_label[one] for one in known], source),
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


def _parts_of_four(
    labels: Sequence[str], by_name: Mapping[str, str], parameters: Mapping[str, Any]
) -> tuple[tuple[str, ...], ...]:
    """Return the four parts by label: split here, or as the authors' lists name them."""
    if not parameters["published"]:
        seed, generator, uneven = (parameters[name] for name in ("seed", "generator", "uneven"))
        return split_classes(labels, parts=PARTS, seed=seed, generator=generator, uneven=uneven)
    parts = published_parts(parameters["published"]).parts
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
    uneven = max(sizes) - min(sizes) > (len(labels) % PARTS > 0)
    if len(found) != PARTS or not whole or uneven:
        raise ProtocolError(
            "The authors' lists are not the parts of this problem",
            where="--set published",
            expected=f"{PARTS} lists of equal size that hold {len(labels)} classes together",
            found=f"{len(found)} lists of {', '.join(map(str, sizes))}",
        )
    return found


def _recorded(parts: Sequence[Sequence[str]], parameters: Mapping[str, Any]) -> dict[str, ParameterValue]:
    recorded: dict[str, ParameterValue] = {f"part_{place}": tuple(part) for place, part in enumerate(parts, 1)}
    if parameters["published"]:
        recorded["published_digests"] = published_parts(parameters["published"]).digests
    return recorded


def cub_roles(source: Source, parameters: Mapping[str, Any]) -> ProblemClasses:
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
    by_name = {f"{number}.{name}": number for number, name in of_number.items()}
    by_name |= {name: number for number, name in of_number.items()}
    parts = _parts_of_four(numbers, by_name, parameters)
    known, unknown = rotation(parts, parameters["rotation"], "part_unknown")
    roles: dict[str, ClassRole] = {of_number[one]: "known" for one in known}
    roles |= {of_number[one]: "unknown" for one in unknown}
    case = parameters["rotation"]
    return ProblemClasses(
        f"osod3/cub-{case}",
        f"OSOD-III, CUB-200-2011, case {case}: part {case} unknown",
        _source_entries(roles, [of_number[one] for one in sorted(known)], source),
        {"superclass_members": tuple(sorted(names)), **_recorded(parts, parameters)},
        (
            Figure(name="known.classes", paper=150, obtained=len(known), place="paper, species of CUB-200"),
            Figure(name="unknown.classes", paper=50, obtained=len(unknown), place="paper, species of CUB-200"),
        ),
        parts=tuple(tuple(of_number[one] for one in part) for part in parts),
        published=bool(parameters["published"]),
    )


def mtsd_roles(train: Source, test: Source, parameters: Mapping[str, Any]) -> ProblemClasses:
    """Return the roles of the sign classes in a case.

    The clusters are those of a normalized cut of the classes' co-occurrence into three, or the authors' own lists.
    Known is the largest cluster, unknown1 the smallest and unknown2 the one between, as in the paper (230, 55, 115);
    ``other-sign`` is in none.
    """
    signs = sorted({*train.categories.names, *test.categories.names} - {OTHER_SIGN})
    if len(signs) < len(_CLUSTERS):
        raise ProtocolError("There are too few sign classes to cut", expected="at least 3", found=str(len(signs)))
    if parameters["published"]:
        clusters, recorded = _published_clusters(signs, parameters["published"])
    else:
        clusters, recorded = _cut(train, test, signs, parameters)
    case = parameters["case"]
    wanted = ("unknown1", "unknown2") if case == "unknown12" else (case,)
    left_out = [name for one in _CLUSTERS[1:] if one not in wanted for name in clusters[one]]
    shown = {name: one for one in ("known", *wanted) for name in clusters[one]}
    roles: dict[str, ClassRole] = {name: "known" if one == "known" else "unknown" for name, one in shown.items()}
    known, names = clusters["known"], (*signs, OTHER_SIGN)
    return ProblemClasses(
        f"osod3/mtsd-{case}",
        f"OSOD-III, Mapillary traffic signs, {case}",
        _entries(roles, known, names),
        {
            "superclass_members": tuple(signs),
            "superclass_left_out": tuple(sorted(left_out)),
            "superclass_left_out_because": "classes of the other unknown cluster, deleted in this case"
            if left_out
            else "",
            **recorded,
            **{f"{name}_classes": len(names) for name, names in clusters.items()},
        },
        tuple(
            compared(
                f"{name}.classes",
                len(clusters[name]),
                paper,
                "paper, clusters of MTSD",
                "the authors' images, graph and solver are not known",
            )
            for name, paper in zip(_CLUSTERS, MTSD_CLUSTERS, strict=True)
        ),
        every_unknown=_entries(
            roles | dict.fromkeys((*clusters["unknown1"], *clusters["unknown2"]), "unknown"), known, names
        ),
        parts=tuple(clusters[name] for name in _CLUSTERS),
        published=bool(parameters["published"]),
    )


def _published_clusters(
    signs: Sequence[str], text: str
) -> tuple[dict[str, tuple[str, ...]], dict[str, ParameterValue]]:
    published = published_parts(text)
    named = {name for part in published.parts for name in part}
    if len(published.parts) != len(_CLUSTERS) or named - set(signs) or set(signs) - named:
        strange, missing = sorted(named - set(signs)), sorted(set(signs) - named)
        raise ProtocolError(
            "The authors' lists are not the clusters of these signs",
            where="--set published",
            expected=f"3 lists (known, unknown1, unknown2) that hold the {len(signs)} classes of the data",
            found=f"{len(published.parts)} lists; {len(strange)} classes that the data lack, such as "
            f"{', '.join(strange[:2]) or '-'}; {len(missing)} not listed, such as {', '.join(missing[:2]) or '-'}",
        )
    clusters = {name: tuple(sorted(part)) for name, part in zip(_CLUSTERS, published.parts, strict=True)}
    return clusters, {"published_digests": published.digests}


def _cut(
    train: Source, test: Source, signs: Sequence[str], parameters: Mapping[str, Any]
) -> tuple[dict[str, tuple[str, ...]], dict[str, ParameterValue]]:
    chosen = (train, test) if parameters["graph_images"] == "all" else (train,)
    counts = _together(chosen, signs)
    cut = normalized_cut(
        class_graph(counts, parameters["weighting"]), 3, CutOptions(components=parameters["components"])
    )
    known, second, third = cut.clusters
    clusters = {"known": known, "unknown1": third, "unknown2": second}
    return clusters, _cut_record(cut, parameters["weighting"])


def _together(sources: Sequence[Source], signs: Sequence[str]) -> Cooccurrence:
    """Return the counts over several sources; a class that one of them lacks has no images there."""
    place = {name: number for number, name in enumerate(signs)}
    images = np.zeros(len(signs), np.int64)
    pairs = np.zeros((len(signs), len(signs)), np.int64)
    total = 0
    for source in sources:
        one = count_cooccurrence(source, [name for name in source.categories.names if name in place])
        at = np.array([place[name] for name in one.names], np.int64)
        images[at] += one.images
        pairs[np.ix_(at, at)] += one.pairs
        total += one.total
    return Cooccurrence(tuple(signs), images, pairs, total)


def _cut_record(cut: Cut, weighting: str) -> dict[str, ParameterValue]:
    # Fractional weights are whole multiples of 1e-9, and so is what lies between clusters.
    unit = UNIT if weighting in ("jaccard", "pmi") else 1
    return {
        "cut_solver_version": SOLVER_VERSION,
        "cut_ncut": f"{cut.value.numerator}/{cut.value.denominator}",
        "cut_lower_bound": f"{cut.lower_bound:.6f}",
        "cut_gap": f"{cut.gap:.6f}",
        "cut_certificate": cut.certificate,
        "cut_starts": len(cut.starts),
        "cut_starts_that_reached_it": cut.reached,
        "cut_between": ";".join(",".join(map(str, row)) for row in cut.between.tolist()),
        "cut_between_unit": f"1/{unit}",
        "cut_isolated": cut.isolated,
        "cut_apart": cut.apart,
    }


def split_classes(
    classes: Sequence[str],
    *,
    parts: int = 4,
    seed: int = AUTHORS_SEED,
    generator: Generator = "hash",
    uneven: Literal["refuse", "first"] = "refuse",
) -> tuple[tuple[str, ...], ...]:
    """Return disjoint parts of equal size, each sorted.

    *Rectifying Open-Set Object Detection* splits at random and publishes no generator: no split made here is the
    authors' own. The sorted classes are put into the order of a generator and cut into consecutive runs.

    Parameters
    ----------
    uneven : {"refuse", "first"}
        A number of classes that the parts do not divide: refused, or the first parts get one more each.

    Raises
    ------
    ProtocolError
        Classes repeat, are fewer than the parts, or cannot be divided evenly.
    """
    ordered = sorted(classes)
    if len(set(ordered)) < len(ordered) or parts < 2 or len(ordered) < parts:
        raise ProtocolError(
            "The classes cannot be split",
            expected=f"at least {max(parts, 2)} different classes",
            found=f"{len(ordered)} classes, {len(set(ordered))} different, {parts} parts",
        )
    size, left = divmod(len(ordered), parts)
    if left and uneven == "refuse":
        raise ProtocolError(
            "The classes do not divide into equal parts",
            expected=f"a multiple of {parts}",
            found=str(len(ordered)),
            hint="--set uneven=first gives the first parts one more each",
        )
    shuffled = _in_order(ordered, seed, generator)
    ends = np.cumsum([size + (place < left) for place in range(parts)]).tolist()
    return tuple(tuple(sorted(shuffled[start:end])) for start, end in zip([0, *ends[:-1]], ends, strict=True))


def rotation(
    parts: Sequence[Sequence[str]], number: int, convention: Convention
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the known and the unknown classes of rotation `number` (from 1), in the order of the parts from it on.

    Parameters
    ----------
    convention : {"part_known", "part_unknown"}
        ``part_known``: part `number` is known, the others are unknown (the authors' t1..t4 of Open Images).
        ``part_unknown``: part `number` is unknown, the others are known (the authors' t1..t4 of CUB).

    Raises
    ------
    ProtocolError
        There is no such rotation.
    """
    if not 1 <= number <= len(parts):
        raise ProtocolError("There is no such rotation", expected=f"1 to {len(parts)}", found=str(number))
    chosen = tuple(parts[number - 1])
    later = [parts[(number - 1 + step) % len(parts)] for step in range(1, len(parts))]
    others = tuple(name for part in later for name in part)
    return (chosen, others) if convention == "part_known" else (others, chosen)


def _in_order(ordered: list[str], seed: int, generator: Generator) -> list[str]:
    if generator == "hash":
        return sorted(ordered, key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).hexdigest())
    if generator == "python":
        shuffled = list(ordered)
        random.Random(seed).shuffle(shuffled)  # noqa: S311 - reproducible, not secret
        return shuffled
    if generator == "numpy":
        return [ordered[place] for place in np.random.RandomState(seed).permutation(len(ordered)).tolist()]
    raise ProtocolError("Unknown generator", expected=", ".join(GENERATORS), found=repr(generator)[:80])


def _labels(source: Source) -> Sequence[str]:
    """Return what a source tells its classes apart by: Open Images' MIDs, else the names."""
    return source.categories.keys or source.categories.names


def _source_entries(roles: Mapping[str, ClassRole], known: Sequence[str], source: Source) -> tuple[ClassEntry, ...]:
    """Return an entry for every class of the source: known ones first, by index; those without a role lie outside."""
    names = source.categories.names
    aliases = {name: () if key == name else (key,) for name, key in zip(names, _labels(source), strict=True)}
    return _entries(roles, known, names, aliases)


def _entries(
    roles: Mapping[str, ClassRole],
    known: Sequence[str],
    names: Sequence[str],
    aliases: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
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
