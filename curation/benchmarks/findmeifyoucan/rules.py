"""The automatic steps of FindMeIfYouCan on columns: start rule, images by category, wanted categories, candidates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from curation.benchmarks.findmeifyoucan.pairs import Pool
from curation.benchmarks.hashrank import hash_rank
from curation.errors import ProtocolError
from curation.sources.source import Bools, Int64s, Source

SCANS = {
    "whole_image": "every annotation of an image is looked at; the first by hash rank",
    "official_scan": "annotations in file order until there are so many candidates: one whose ID class is annotated "
    "later in the file is still among them",
}


def start_by_rule(source: Source, id_names: Collection[str]) -> Int64s:
    """Return the positions of the images without an annotation of an ID class, in file order.

    Crowd regions count as annotations; an image without any annotation is kept (VOS, ``process_coco_ood.py``).

    Raises
    ------
    PresenceOnlyError
        The source has no boxes: a table of image and class misses classes, and would let images in.
    """
    source.require_objects("The start rule")
    return np.flatnonzero(~images_with(source, id_names))


def images_with(source: Source, names: Collection[str]) -> Bools:
    """Return for each image whether it has an annotation of one of some categories, named as the source does."""
    image, category = source.class_pairs()
    chosen = _categories(source, names)
    shown = np.zeros(len(source.images), np.bool_)
    shown[image[chosen[category]]] = True
    return shown


def positions_in(source: Source, ids: Sequence[str], what: str, slot: str) -> Int64s:
    """Return where some images lie in a source; one that does not is a `ProtocolError`."""
    found, absent = located(source, ids)
    if absent:
        raise ProtocolError(
            f"{len(absent)} of the {len(ids)} images of {what} are not in the source",
            where=f"--source {slot}: {source.files[0].name if source.files else source.dataset}",
            expected="every one of them",
            found=", ".join(absent[:3]),
            hint="give the annotations of the whole part of the data set that the list was made from",
        )
    return found


def located(source: Source, ids: Sequence[str]) -> tuple[Int64s, list[str]]:
    """Return the positions of those of the images that a source has, in the order asked for, and the others."""
    asked = set(ids)
    # Open Images has 1.7 million images: only those asked for become keys.
    place = {one: position for position, one in enumerate(source.image_ids.tolist()) if one in asked}
    found = [place[one] for one in ids if one in place]
    return np.array(found, np.int64), [one for one in ids if one not in place]


def category_counts(source: Source, positions: Int64s) -> dict[str, int]:
    """Return how many annotations of each category some images have, by the source's names, zeros included."""
    chosen = np.zeros(len(source.images), np.bool_)
    chosen[positions] = True
    image, category = source.class_pairs()
    counts = np.bincount(category[chosen[image]], minlength=len(source.categories)).tolist()
    return dict(zip(source.categories.names, counts, strict=True))


def wanted_categories(
    pool: Pool, near: Mapping[str, int], far: Mapping[str, int]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the categories that the near and the far split want more images of, in the order of the source.

    Parameters
    ----------
    near, far : mapping of str to int
        Annotations by category of the interim splits, after the manual stage (``get_categories_to_add``). What the far
        split wants, the near one does not.
    """
    for_far = tuple(name for name, n in far.items() if pool.wanted_far and n in pool.wanted_far)
    for_near = tuple(
        name for name, n in near.items() if pool.wanted_near and n in pool.wanted_near and name not in for_far
    )
    return for_near, for_far


def candidates(
    source: Source,
    wanted: Collection[str],
    refused: Collection[str],
    taken: Collection[str],
    *,
    most: int,
    scan: str,
    salt: str,
) -> Int64s:
    """Return the positions of images to show to a reviewer: they have a wanted category and no refused one.

    Parameters
    ----------
    source : Source
    wanted, refused : collection of str
        Categories; those refused are the removed ones and the names of ID classes.
    taken : collection of str
        Image ids never proposed: those of the start list, and those decided upon.
    most : int
        How many at most.
    scan : {"whole_image", "official_scan"}
        See `SCANS`.
    salt : str
        Of the hash ranks under ``whole_image``.

    Returns
    -------
    ndarray of int64
        In the order of their rank, or of their first wanted annotation.
    """
    first_wanted = _first_annotation(source, wanted)
    first_refused = _first_annotation(source, refused)
    held = set(taken)
    free = np.array([one not in held for one in source.image_ids.tolist()], np.bool_)
    if scan == "official_scan":
        return _scanned(first_wanted, first_refused, free, most, _never(source))
    never = _never(source)
    chosen = np.flatnonzero(free & (first_wanted < never) & (first_refused == never))
    return chosen[hash_rank(source.image_ids[chosen].tolist(), salt)[:most]]


def _scanned(first_wanted: Int64s, first_refused: Int64s, free: Bools, most: int, end: int) -> Int64s:
    """Return the candidates that are alive when the scan first has as many as it may."""
    # An annotation that is both wanted and refused discards the image: it never becomes a candidate.
    becomes = np.flatnonzero(free & (first_wanted < first_refused))
    if not len(becomes) or most < 1:
        return becomes[:0]
    born, dead = first_wanted[becomes], first_refused[becomes]
    moments = np.concatenate([born, dead])
    change = np.concatenate([np.ones(len(born), np.int64), -np.ones(len(dead), np.int64)])
    order = np.argsort(moments, kind="stable")
    full = np.flatnonzero(np.cumsum(change[order]) >= most)
    stop = moments[order][full[0]] if len(full) else end - 1
    alive = (born <= stop) & (dead > stop)
    return becomes[alive][np.argsort(born[alive], kind="stable")]


def _first_annotation(source: Source, names: Collection[str]) -> Int64s:
    """Return the place of each image's first annotation of some categories; their number where it has none."""
    image, category = source.class_pairs()
    first = np.full(len(source.images), _never(source), np.int64)
    rows = np.flatnonzero(_categories(source, names)[category])
    # Of repeated indices the last assignment stays, so the rows run backwards.
    first[image[rows[::-1]]] = rows[::-1]
    return first


def _never(source: Source) -> int:
    return len(source.class_pairs()[0])


def _categories(source: Source, names: Collection[str]) -> Bools:
    chosen = set(names)
    return np.array([name in chosen for name in source.categories.names], np.bool_)
