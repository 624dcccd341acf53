"""Which images a task of an open-world benchmark selects, and which of them are set apart.

The rule is that of RE-OWOD's scripts ``create_t{1..4}_imageset.py``: go through the annotations in file order; an image
stands where its first annotation does, and is selected if any of its annotations, crowd regions and the smallest boxes
included, is of a class of the task. An image without annotation is never selected.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curation.benchmarks.hashrank import hash_rank
from curation.benchmarks.shown import Shown
from curation.errors import ProtocolError
from curation.sources.source import Int64s, Source


def hash_ranks(whats: Sequence[Shown], salt: str) -> list[Int64s]:
    """Return, for each source, the place of its annotated images in the order of ``sha256(salt + id)`` of them all.

    One array a source, shape (n,); images without annotation come last.
    """
    ids = np.concatenate([what.source.image_ids[what.order] for what in whats]).tolist()
    places = np.empty(len(ids), np.int64)
    places[hash_rank(ids, salt)] = np.arange(len(ids))
    ranks = []
    ends = np.cumsum([len(what.order) for what in whats])[:-1]
    for what, mine in zip(whats, np.split(places, ends), strict=True):
        rank = np.full(len(what.source.images), len(ids), np.int64)
        rank[what.order] = mine
        ranks.append(rank)
    return ranks


def hash_validation(selections: Sequence[Int64s], rank: Int64s, *, size: int) -> list[Int64s]:
    """Return a validation list a task: the first `size` of its selection by hash rank that no earlier task has taken.

    The authors drew theirs at random, without a stated seed and with a step that keeps the four apart which they do
    not publish. Ours are apart by construction and the same everywhere.

    Raises
    ------
    ProtocolError
        A task has fewer images left than asked for.
    """
    taken = np.zeros(len(rank), np.bool_)
    chosen = []
    for number, selection in enumerate(selections, start=1):
        left = selection[~taken[selection]]
        if len(left) < size:
            raise ProtocolError(
                "A task has too few images for its validation list",
                where=f"task {number}: --set val_size={size}",
                expected=f"at most {len(left)}",
                found=str(size),
                hint=f"--set val_size={max(len(left) // 10, 1)}, or --set val=none",
            )
        ranked = left[np.argsort(rank[left], kind="stable")]
        chosen.append(ranked[:size])
        taken[ranked[:size]] = True
    return chosen


def listed_validation(listed: Source, source: Source, n_tasks: int) -> list[Int64s]:
    """Return the validation lists of a published file: equally many consecutive lines for each task.

    Raises
    ------
    ProtocolError
        An image of the list is not in the source, or the lines cannot be shared out evenly.
    """
    place = {native: position for position, native in enumerate(source.images.native.tolist())}
    natives = listed.images.native.tolist()
    missing = [native for native in natives if native not in place]
    if missing or not natives or len(natives) % n_tasks:
        raise ProtocolError(
            "The validation list does not belong to this training source"
            if missing
            else "The validation list cannot be shared out among the tasks",
            where=listed.files[0].name,
            expected=f"images of {source.files[0].name}" if missing else f"a multiple of {n_tasks} lines",
            found=f"{len(missing)} others, the first {missing[0]}" if missing else f"{len(natives)} lines",
        )
    positions = np.array([place[native] for native in natives], np.int64)
    return np.split(positions, n_tasks)


def check_segments(
    listed: Source,
    segments: Sequence[Int64s],
    selections: Sequence[Int64s],
    names: Sequence[str],
    source: Source,
) -> None:
    """Raise `ProtocolError` unless each task's lines of a validation list lie in its selection.

    A list in another order of tasks, or of another benchmark, has the right images and wrong lines.
    """
    for segment, selection, name in zip(segments, selections, names, strict=True):
        outside = np.flatnonzero(~np.isin(segment, selection))
        if len(outside):
            first = source.images.native[segment[outside[0]]]
            raise ProtocolError(
                f"{len(outside)} images of the validation list show no class of their task",
                where=f"{listed.files[0].name}: the lines of task {name}",
                expected=f"images with an annotation of a class that {name} introduces",
                found=f"{first} and others" if len(outside) > 1 else str(first),
                hint="is the list of another split, or does --set crowd=ignore leave its images out?",
            )


def exemplars(
    pools: Sequence[tuple[Shown, Int64s]], labels: Sequence[int], ranks: Sequence[Int64s], *, size: int
) -> tuple[list[Int64s], dict[int, int]]:
    """Return images that show every class at least `size` times where the images allow it, and how many each has.

    Classes are served from the rarest to the most common; each takes, by hash rank, as many further images as it still
    lacks, so that an image which shows several rare classes serves them all. ORE's sampler (``balanced_ft.py``) may
    drop what it took; RE-OWOD's lists lost their balance when they were filled up with images of task 1.

    Parameters
    ----------
    pools : sequence of (Shown, ndarray of int64)
        For each source what its images show, and the positions of those to choose from.
    ranks : sequence of ndarray of int64
        For each source, see `hash_ranks`.

    Returns
    -------
    list of ndarray of int64
        Positions by source, in the order of its pool.
    dict of int to int
        Images among them by label.
    """
    rank = np.concatenate([one[images] for one, (_, images) in zip(ranks, pools, strict=True)])
    by_label = _places_by_label(pools, labels)
    taken = np.zeros(len(rank), np.bool_)
    for label in sorted(labels, key=lambda one: (len(by_label[one]), one)):
        candidates = by_label[label]
        lacking = size - int(taken[candidates].sum())
        if lacking > 0:
            free = candidates[~taken[candidates]]
            # Ranks are distinct, and a set is wanted: sorting all of them would be in vain.
            lowest = np.argpartition(rank[free], lacking - 1)[:lacking] if lacking < len(free) else slice(None)
            taken[free[lowest]] = True
    ends = np.cumsum([len(images) for _, images in pools])[:-1]
    chosen = [images[mine] for (_, images), mine in zip(pools, np.split(taken, ends), strict=True)]
    return chosen, {label: int(taken[by_label[label]].sum()) for label in labels}


def _places_by_label(pools: Sequence[tuple[Shown, Int64s]], labels: Sequence[int]) -> dict[int, Int64s]:
    """Return for each label the places, in the pools one after the other, of the images that show it."""
    found: dict[int, list[Int64s]] = {label: [np.empty(0, np.int64)] for label in labels}
    start = 0
    for what, images in pools:
        place = np.full(len(what.source.images), -1, np.int64)
        place[images] = np.arange(start, start + len(images))
        for label, shows in what.by_label(place >= 0).items():
            if label in found:
                found[label].append(place[shows])
        start += len(images)
    return {label: np.concatenate(several) for label, several in found.items()}
