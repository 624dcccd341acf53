"""Traffic signs in three clusters that weakly co-occur: the MTSD problem of OSOD-III."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curation.benchmarks.osod3.classes import ClassRoles, class_entries
from curation.benchmarks.osod3.facts import MTSD_CLUSTERS
from curation.benchmarks.osod3.published import published_parts
from curation.cooccurrence.cut import SOLVER_VERSION, Cut, CutOptions, normalized_cut
from curation.cooccurrence.graph import UNIT, Cooccurrence, class_graph, count_cooccurrence
from curation.errors import ProtocolError
from curation.manifest.header import ClassEntry, ClassRole, Figure, ParameterValue
from curation.sources.mtsd import OTHER_SIGN
from curation.sources.source import Source

_CLUSTERS = ("known", "unknown1", "unknown2")


def mtsd_roles(train: Source, test: Source, parameters: Mapping[str, Any]) -> ClassRoles:
    """Return the roles of the sign classes in a case.

    The clusters are those of a normalized cut of the classes' co-occurrence into three, or the authors' own lists.
    Known is the largest cluster, unknown1 the smallest and unknown2 the one between, as in the paper (230, 55, 115);
    ``other-sign`` is in none.
    """
    signs = sorted({*train.categories.names, *test.categories.names} - {OTHER_SIGN})
    if len(signs) < len(_CLUSTERS):
        raise ProtocolError("There are too few sign classes to cut", expected="at least 3", found=str(len(signs)))
    if parameters["published"]:
        clusters, recorded = _published(signs, parameters["published"])
    else:
        clusters, recorded = _cut(train, test, signs, parameters)
    case = parameters["case"]
    wanted = ("unknown1", "unknown2") if case == "unknown12" else (case,)
    left_out = [name for one in _CLUSTERS[1:] if one not in wanted for name in clusters[one]]
    shown = {name: one for one in ("known", *wanted) for name in clusters[one]}
    roles: dict[str, ClassRole] = {name: "known" if one == "known" else "unknown" for name, one in shown.items()}
    known = clusters["known"]
    return ClassRoles(
        f"osod3/mtsd-{case}",
        f"OSOD-III, Mapillary traffic signs, {case}",
        _entries(roles, known, signs),
        {
            "superclass_members": tuple(signs),
            "superclass_left_out": tuple(sorted(left_out)),
            "superclass_left_out_because": "classes of the other unknown cluster, deleted in this case"
            if left_out
            else "",
            **recorded,
            **{f"{name}_classes": len(names) for name, names in clusters.items()},
        },
        tuple(_size_figure(name, len(clusters[name])) for name in _CLUSTERS),
        every_unknown=_entries(
            roles | dict.fromkeys((*clusters["unknown1"], *clusters["unknown2"]), "unknown"), known, signs
        ),
        parts=tuple(clusters[name] for name in _CLUSTERS),
        published=bool(parameters["published"]),
    )


def _entries(roles: Mapping[str, ClassRole], known: Sequence[str], signs: Sequence[str]) -> tuple[ClassEntry, ...]:
    return class_entries(roles, known, (*signs, OTHER_SIGN), {})


def _size_figure(name: str, size: int) -> Figure:
    paper = MTSD_CLUSTERS[_CLUSTERS.index(name)]
    why = "" if size == paper else "the authors' images, graph and solver are not known"
    return Figure(name=f"{name}.classes", paper=paper, obtained=size, place="paper, clusters of MTSD", explanation=why)


def _published(signs: Sequence[str], text: str) -> tuple[dict[str, tuple[str, ...]], dict[str, ParameterValue]]:
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
