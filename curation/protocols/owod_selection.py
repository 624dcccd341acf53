"""Which images a task of an open-world benchmark selects, and which of them are set apart.

The rule is that of RE-OWOD's scripts ``create_t{1..4}_imageset.py``: go through the annotations in file order; an image
stands where its first annotation does, and is selected if any of its annotations, crowd regions and the smallest boxes
included, is of a class of the task. An image without annotation is never selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from curation.errors import ProtocolError
from curation.manifest.header import ClassEntry
from curation.manifest.views import class_positions
from curation.protocols.hashrank import hash_rank
from curation.sources.source import Bools, Int64s, Source


@dataclass(frozen=True, slots=True)
class Shown:
    """Which class each image of a source shows, in the order in which images are selected.

    Attributes
    ----------
    source : Source
    order : ndarray of int64, shape (a,)
        Positions of the annotated images, by their first annotation.
    image, label : ndarray of int64, shape (p,)
        Pairs of image position and class position, each once; what crowd regions alone show is left out on demand.
    """

    source: Source
    order: Int64s
    image: Int64s
    label: Int64s

    def of(self, labels: Sequence[int]) -> Int64s:
        """Return the images that show any of some classes, in order."""
        return self.order[self.mask(labels)[self.order]]

    def by_label(self, usable: Bools) -> dict[int, Int64s]:
        """Return the images that show each class, of those that are usable, shape (n,); classes without any apart."""
        kept = usable[self.image]
        image, label = self.image[kept], self.label[kept].astype(np.int32)
        counts = np.bincount(label)
        grouped = np.split(image[np.argsort(label, kind="stable")], np.cumsum(counts)[:-1])
        return {number: images for number, images in enumerate(grouped) if len(images)}

    def mask(self, labels: Sequence[int]) -> Bools:
        """Return whether each image of the source shows any of some classes."""
        shows = np.zeros(len(self.source.images), np.bool_)
        shows[self.image[np.isin(self.label, labels)]] = True
        return shows


def shown(source: Source, classes: Sequence[ClassEntry], *, crowd: bool = True) -> Shown:
    """Return what the images of a source show.

    Parameters
    ----------
    classes : sequence of ClassEntry
        A source's category belongs to the class of its name or alias.
    crowd : bool
        Whether a crowd region shows its class, as in the published lists.
    """
    image, category = source.class_pairs()
    first = np.full(len(source.images), len(image), np.int64)
    np.minimum.at(first, image, np.arange(len(image)))
    annotated = np.flatnonzero(first < len(image))
    kept = slice(None) if crowd or source.objects is None else ~source.objects.crowd
    label = class_positions(classes, source)[category[kept]].astype(np.int64)
    # Sorting whole numbers is faster than sorting pairs, and than numpy's hash-based unique.
    width = len(classes) + 1
    pairs = np.sort(image[kept].astype(np.int64) * width + label + 1)
    pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]]
    return Shown(
        source=source,
        order=annotated[np.argsort(first[annotated], kind="stable")],
        image=pairs // width,
        label=pairs % width - 1,
    )


def hash_ranks(what: Shown, salt: str) -> Int64s:
    """Return the place of each annotated image in the order of ``sha256(salt + id)``, shape (n,); others come last."""
    ids = what.source.image_ids[what.order].tolist()
    rank = np.full(len(what.source.images), len(ids), np.int64)
    rank[what.order[hash_rank(ids, salt)]] = np.arange(len(ids))
    return rank


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
                hint=f"--set val_size={len(left) // 10}, or --set val=none",
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


def exemplars(
    images: Int64s, what: Shown, labels: Sequence[int], rank: Int64s, *, size: int
) -> tuple[Int64s, dict[int, int]]:
    """Return images that show every class at least `size` times where the images allow it, and how many each has.

    Classes are served from the rarest to the most common; each takes, by hash rank, as many further images as it still
    lacks, so that an image which shows several rare classes serves them all. ORE's sampler (``balanced_ft.py``) may
    drop what it took; RE-OWOD's lists lost their balance when they were filled up with images of task 1.

    Parameters
    ----------
    rank : ndarray of int64, shape (n,)
        See `hash_ranks`.

    Returns
    -------
    ndarray of int64
        Positions, in the order of `images`.
    dict of int to int
        Images among them by label.
    """
    allowed = np.zeros(len(what.source.images), np.bool_)
    allowed[images] = True
    found = what.by_label(allowed)
    by_label = {label: found.get(label, np.empty(0, np.int64)) for label in labels}
    taken = np.zeros(len(allowed), np.bool_)
    for label in sorted(labels, key=lambda one: (len(by_label[one]), one)):
        candidates = by_label[label]
        lacking = size - int(taken[candidates].sum())
        if lacking > 0:
            free = candidates[~taken[candidates]]
            taken[free[np.argsort(rank[free], kind="stable")[:lacking]]] = True
    return images[taken[images]], {label: int(taken[by_label[label]].sum()) for label in labels}
