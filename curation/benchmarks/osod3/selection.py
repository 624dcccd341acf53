"""Images by the roles of the classes that they show, and validation images set apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curation.benchmarks.selection import hash_rank
from curation.manifest.header import ClassEntry
from curation.manifest.views import class_positions
from curation.sources.source import Bools, Int64s, Source


def images_with_role(source: Source, classes: Sequence[ClassEntry], roles: Sequence[str]) -> Int64s:
    """Return the images with at least one box of a class in one of some roles, in file order."""
    return np.flatnonzero(_shown(source, classes, roles))


def images_without_role(source: Source, classes: Sequence[ClassEntry], roles: Sequence[str]) -> Int64s:
    """Return the images without any box of a class in one of some roles, in file order."""
    return np.flatnonzero(~_shown(source, classes, roles))


def hidden_unknown(source: Source, classes: Sequence[ClassEntry]) -> tuple[int, int]:
    """Return how many boxes of unknown classes lie on images with a known one, and on how many images."""
    known = _shown(source, classes, ("known",))
    image, category = source.class_pairs()
    unknown = _in_roles(source, classes, ("unknown",))[category] & known[image]
    return int(unknown.sum()), len(np.unique(image[unknown]))


def split_share(source: Source, images: Int64s, share: float, salt: str, *, per_class: bool) -> tuple[Int64s, Int64s]:
    """Return a share of some images by hash rank, and the others, both in file order.

    Parameters
    ----------
    share : float
        From 0 to 0.5.
    salt : str
        Of the hash rank.
    per_class : bool
        Take the share of each class's images apart (images with one object); else of all.
    """
    ids = source.image_ids
    groups = [images]
    if per_class:
        image, category = source.class_pairs()
        of_image = np.full(len(source.images), -1, np.int64)
        of_image[image[::-1]] = category[::-1]
        groups = [images[of_image[images] == number] for number in np.unique(of_image[images]).tolist()]
    held: list[int] = []
    for group in groups:
        # Rounded to the nearest image, and never the whole class.
        size = min(int(share * len(group) + 0.5), max(0, len(group) - 1))
        ranked = hash_rank(ids[group].tolist(), salt)
        held += group[ranked[:size]].tolist()
    chosen = np.zeros(len(source.images), np.bool_)
    chosen[held] = True
    return images[chosen[images]], images[~chosen[images]]


def images_by_part(source: Source, classes: Sequence[ClassEntry], parts: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """Return for each part how many images show a class of it, by name or alias."""
    image, category = source.class_pairs()
    position = class_positions(classes, source)[category]
    counts = []
    for part in parts:
        named = set(part)
        chosen = [not named.isdisjoint((entry.name, *entry.aliases)) for entry in classes]
        wanted = np.array([*chosen, False], np.bool_)
        counts.append(len(np.unique(image[wanted[position]])))
    return tuple(counts)


def _shown(source: Source, classes: Sequence[ClassEntry], roles: Sequence[str]) -> Bools:
    image, category = source.class_pairs()
    shown = np.zeros(len(source.images), np.bool_)
    shown[image[_in_roles(source, classes, roles)[category]]] = True
    return shown


def _in_roles(source: Source, classes: Sequence[ClassEntry], roles: Sequence[str]) -> Bools:
    """Return which categories of a source have one of some roles."""
    position = class_positions(classes, source)
    wanted = np.array([*(entry.role in roles for entry in classes), False], np.bool_)
    return wanted[position]
