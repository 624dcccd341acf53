"""The images of some classes in the order that the ImageNet protocols read them, and their split in train and val.

The published lists are what scikit-learn's ``train_test_split(images, classes, train_size=0.8, stratify=classes,
random_state=42)`` returned, reproduced here to the file without scikit-learn. How a class's share is rounded depends on
the order of two floating-point operations, which changed between versions; both orders are here, by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from curation.errors import ProtocolError
from curation.sources.imagenet import class_of_images
from curation.sources.source import Int64s, Source


class ClassImages:
    """An index of a source: which of its images show a class.

    Parameters
    ----------
    source : Source
        Presence-only, one class an image.

    Attributes
    ----------
    source : Source
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        category = class_of_images(source)
        # Sorting 16-bit numbers is many times faster, and few data sets have more than 32,767 classes.
        small = category.astype(np.int16) if len(source.categories) < 1 << 15 else category
        self._order = np.argsort(small, kind="stable")
        self._ends = np.cumsum(np.bincount(category, minlength=len(source.categories)))
        self._place = source.categories.index()

    def of(self, name: str) -> Int64s:
        """Return the positions of a class's images, sorted by file name (code points); empty for none."""
        place = self._place.get(name)
        if place is None:
            return np.empty(0, np.int64)
        start = int(self._ends[place - 1]) if place else 0
        positions: Int64s = self._order[start : int(self._ends[place])]
        names = self.source.images.file_names[positions].tolist()
        if all(map(str.__le__, names, names[1:])):
            return positions
        return positions[np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)]

    def of_all(self, names: Sequence[str]) -> Int64s:
        """Return the positions of several classes' images one after the other."""
        return np.concatenate([np.empty(0, np.int64), *map(self.of, names)])

    def sizes(self, names: Sequence[str]) -> Int64s:
        """Return how many images each of some classes has."""
        counts = np.diff(self._ends, prepend=0)
        return np.array([counts[self._place[name]] if name in self._place else 0 for name in names], np.int64)

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return the classes of which the source has no image."""
        return [name for name, size in zip(names, self.sizes(names).tolist(), strict=True) if not size]


Formula = Literal["sklearn-1.0", "sklearn-0.24"]
"""``sklearn-1.0``: versions 1.0.2 to 1.9.1 at least, ``size / total * draws``; ``-0.24``: ``draws * size / total``."""


def split_sizes(
    sizes: Int64s, *, train_size: float = 0.8, seed: int = 42, formula: Formula = "sklearn-1.0"
) -> tuple[Int64s, Int64s]:
    """Return the positions of the training and of the validation items, in the order scikit-learn returns them.

    The items stand class by class, the classes sorted.

    Parameters
    ----------
    sizes : ndarray of int64
        How many items each class has.
    train_size : float
        Share of the items for training, in (0, 1).
    seed : int
    formula : {"sklearn-1.0", "sklearn-0.24"}

    Raises
    ------
    ProtocolError
        The share is not between 0 and 1; a class has one item, or a side would have fewer items than there are classes
        (scikit-learn refuses the same).
    """
    if not 0 < train_size < 1:
        raise ProtocolError("The share of the training items is not between 0 and 1", found=str(train_size))
    n = int(sizes.sum())
    n_train = int(np.floor(train_size * n))
    _require_enough(sizes, n_train, n - n_train)
    # The generator, its calls and their order are part of the published lists.
    random = np.random.RandomState(seed)
    in_train = _allotted(sizes, n_train, random, formula)
    in_val = _allotted(sizes - in_train, n - n_train, random, formula)
    starts = np.cumsum(sizes) - sizes
    train, val = [], []
    for start, size, first, second in zip(
        starts.tolist(), sizes.tolist(), in_train.tolist(), in_val.tolist(), strict=True
    ):
        shuffled = start + random.permutation(size)
        train.append(shuffled[:first])
        val.append(shuffled[first : first + second])
    return (
        np.asarray(random.permutation(np.concatenate(train)), np.int64),
        np.asarray(random.permutation(np.concatenate(val)), np.int64),
    )


def _require_enough(sizes: Int64s, n_train: int, n_val: int) -> None:
    if not len(sizes) or sizes.min() < 2 or min(n_train, n_val) < len(sizes):
        raise ProtocolError(
            "These classes cannot be split by strata",
            expected="two items or more in every class, and on each side as many items as there are classes",
            found=f"{len(sizes)} classes, the smallest of {int(sizes.min()) if len(sizes) else 0} items; "
            f"{n_train} and {n_val} items",
        )


def _allotted(sizes: Int64s, draws: int, random: np.random.RandomState, formula: Formula) -> Int64s:
    """Return how many of the draws fall to each class: scikit-learn's ``_approximate_mode``."""
    share = sizes / sizes.sum() * draws if formula == "sklearn-1.0" else draws * sizes / sizes.sum()
    floored = np.floor(share)
    needed = int(draws - floored.sum())
    if needed > 0:
        remainder = share - floored
        for value in np.sort(np.unique(remainder))[::-1]:
            (tied,) = np.where(remainder == value)
            added = min(len(tied), needed)
            floored[random.choice(tied, size=added, replace=False)] += 1
            needed -= added
            if needed == 0:
                break
    return np.asarray(floored, np.int64)
