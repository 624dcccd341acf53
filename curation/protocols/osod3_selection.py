"""Images by the roles of the classes that they show, and validation images set apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curation.manifest.header import ClassEntry
from curation.manifest.views import class_positions
from curation.protocols.hashrank import hash_rank
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


def split_validation(
    source: Source, images: Int64s, parameters: Mapping[str, Any], *, per_class: bool
) -> tuple[Int64s, Int64s]:
    """Return a share of some images by hash rank, and the others, both in file order.

    Parameters
    ----------
    per_class : bool
        Take the share of each class's images apart (images with one object); else of all.
    """
    share = float(parameters["val_fraction"])
    ids = source.image_ids
    groups = [images]
    if per_class:
        image, category = source.class_pairs()
        of_image = np.full(len(source.images), -1, np.int64)
        of_image[image[::-1]] = category[::-1]
        groups = [images[of_image[images] == number] for number in np.unique(of_image[images]).tolist()]
    held: list[int] = []
    for group in groups:
        # Half a image more or less: rounded to the nearest, and never the whole class.
        size = min(int(share * len(group) + 0.5), max(0, len(group) - 1))
        ranked = hash_rank(ids[group].tolist(), f"{parameters['seed']}/val/")
        held += group[ranked[:size]].tolist()
    chosen = np.zeros(len(source.images), np.bool_)
    chosen[held] = True
    return images[chosen[images]], images[~chosen[images]]


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
