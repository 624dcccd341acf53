"""Images of classes that WordNet relates to a known class: left out, so that a score is given with and without them.

A class below a known one is left out, or also one above a known one. Images that are filed under a known class itself
stay: whether that is the benchmark's error, or only how its files were named, kinship cannot tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from curation.canonical import sha256_of_lines
from curation.errors import UsageError
from curation.evaluation.class_scores import ClassScores, ProtocolClasses
from curation.evaluation.image_ood.images import Images, LeftOut, ScoredSet
from curation.evaluation.score_files import ReadScores
from curation.hierarchy.class_lists import class_in
from curation.hierarchy.kinship import NOT_PROVEN, ClassKin, Kin, class_kin

NAMES: Mapping[Kin, str] = {"descendants": "without-descendants", "all": "without-kin"}
"""What the numbers without some kin are called."""
_WHERE: Mapping[Kin, str] = {"descendants": "below", "all": "below or above"}


def kin_left_out(sets: Sequence[ScoredSet], known: Sequence[str], which: Kin) -> LeftOut:
    """Return the images of OOD sets that are of classes related to a known one; names and folders tell the classes.

    Parameters
    ----------
    sets : sequence of ScoredSet
        OOD sets of all runs; of a set that stands there twice the images are taken together.
    known : sequence of str
        Ids of synsets.

    Raises
    ------
    UsageError
        There are no known classes, or no name of an image tells a synset.
    """
    if not known:
        raise _nothing_known()
    paths: dict[str, dict[str, str]] = {}
    for one in sets:
        own = paths.setdefault(one.name, {})
        if one.images is not None:
            own.update(
                {path: class_in(key) for path, key in zip(one.images.paths, one.images.with_folder, strict=True)}
            )
    found = {name: _kin_of(name, list(own.values()), known) for name, own in paths.items()}
    if not any(one.unknown.nodes for one in found.values()):
        raise UsageError(
            "No name of an image tells a synset, and the kin of its class is not known",
            where=f"--without related={which}",
            expected="names or folders such as n01580870: a column of image names, --manifest MANIFEST, or --lists DIR",
        )
    gone = {name: set(one.kin(which)) for name, one in found.items()}
    classes = sorted({wnid for several in gone.values() for wnid in several})
    return LeftOut(
        NAMES[which],
        Images(()),
        of_sets={
            name: Images(tuple(path for path, wnid in own.items() if wnid in gone[name])) for name, own in paths.items()
        },
        file=_record(which, found, classes),
        notes=(*(_told(one, which) for one in found.values()), *NOT_PROVEN),
    )


@dataclass(frozen=True, slots=True)
class WithoutKin:
    """Classifiers on the samples that are left, under names of their own.

    Attributes
    ----------
    scores : mapping of str to ReadScores
    of : mapping of str to str
        The name of each on all samples.
    record : mapping
        What was left out, for the result.
    notes : tuple of str
        What must be said of it.
    """

    scores: Mapping[str, ReadScores]
    of: Mapping[str, str]
    record: Mapping[str, Any]
    notes: tuple[str, ...]


def classifiers_without_kin(given: Mapping[str, ReadScores], classes: ProtocolClasses | None, which: Kin) -> WithoutKin:
    """Return the scores of classifiers without unknown samples of classes related to a known one.

    Parameters
    ----------
    classes : ProtocolClasses or None
        Of the manifest, with their roles.

    Raises
    ------
    UsageError
        There is no manifest, its classes are no synsets, or the class of an unknown sample is not told.
    """
    if classes is None:
        raise _nothing_known()
    left: dict[str, ReadScores] = {}
    notes: dict[str, None] = {}
    found: dict[str, ClassKin] = {}
    of_number = list(classes.origins)
    for name, one in given.items():
        origin = one.scores.origin
        if origin is None:
            raise UsageError(
                "The class of each unknown sample is needed to tell its kin",
                where=f"--without related={which}: {name}",
                expected="--part PART of the manifest, with names that tell the class or --truth PATH",
            )
        unknown = ~one.scores.known
        own = _kin_of(name, [of_number[number] for number in origin[unknown].tolist()], classes.known)
        gone = [classes.origins[wnid] for wnid in own.kin(which)]
        kept = ~(unknown & np.isin(origin, gone))
        notes[_told(own, which)] = None
        found[name] = own
        left[f"{name} {NAMES[which]}"] = replace(
            one,
            scores=_taken(one.scores, kept),
            reported={**one.reported, f"left out: images of classes {_WHERE[which]} a known one": int((~kept).sum())},
        )
    gone_classes = sorted({wnid for one in found.values() for wnid in one.kin(which)})
    named = {f"{name} {NAMES[which]}": name for name in given}
    return WithoutKin(left, named, _record(which, found, gone_classes), (*notes, *NOT_PROVEN))


def _taken(scores: ClassScores, kept: Any) -> ClassScores:
    columns = ("labels", "answer", "highest", "target", "background", "origin")
    own: dict[str, Any] = {name: getattr(scores, name) for name in columns}
    return replace(scores, **{name: column[kept] for name, column in own.items() if column is not None})


def _kin_of(name: str, classes: Sequence[str], known: Sequence[str]) -> ClassKin:
    images = Counter(classes)
    return class_kin([one for one in images if one], known, images=images, name=name)


def _told(one: ClassKin, which: Kin) -> str:
    """Return what is left out of a set, in classes and images, and of what nothing is said."""
    images = one.images or {}
    if not one.unknown.nodes:
        return f"{one.name}: no name of an image tells a synset; the kin of its classes is not known, and all stay"
    kin, same = one.kin(which), one.of("same")
    text = (
        f"{one.name}: {len(kin):,} of {len(one.unknown.names):,} classes, {one.images_of(kin):,} of "
        f"{sum(images.values()):,} images, {_WHERE[which]} a known class by {one.origin}, are left out"
    )
    if same:
        text += f"; {one.images_of(same):,} images filed under a known class itself stay"
    silent = images.get("", 0) + (one.images_of(list(one.unknown.absent)) or 0)
    return f"{text}; of {silent:,} images without a synset nothing is said, and they stay" if silent else text


def _record(which: Kin, found: Mapping[str, ClassKin], classes: Sequence[str]) -> dict[str, Any]:
    return {
        "name": NAMES[which],
        "sha256": sha256_of_lines(classes),
        "hierarchy": next((one.origin for one in found.values()), ""),
        "classes": {name: len(one.kin(which)) for name, one in found.items()},
        "images": {name: one.images_of(one.kin(which)) for name, one in found.items()},
        "not_proven": list(NOT_PROVEN),
    }


def _nothing_known() -> UsageError:
    return UsageError(
        "Which classes are known is not said, and kin is kin of these",
        where=f"--without related={' or '.join(get_args(Kin))}",
        expected="--manifest MANIFEST with known classes",
    )
