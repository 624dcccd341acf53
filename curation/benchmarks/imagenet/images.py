"""The images of some classes, class by class in the order that the ImageNet protocols read them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
