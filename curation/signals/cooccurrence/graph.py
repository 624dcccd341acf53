"""Which classes co-occur: counts of images that show both, and `ClassGraph`, classes with whole-number weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from curation.core.columns import distinct
from curation.core.errors import CutError
from curation.sources.source import Int64s, Source

MOST_CLASSES = 10_000
"""A dense table of 10,000 classes takes 800 MB."""
_KEYS_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class Cooccurrence:
    """Image counts of classes and of pairs of classes; classes are sorted by name.

    Attributes
    ----------
    names : tuple of str, length n
        Sorted by code point, unique.
    images : ndarray of int64, shape (n,)
        Images that show the class.
    pairs : ndarray of int64, shape (n, n)
        Images that show both classes; symmetric, the diagonal is 0.
    total : int
        Images looked at, those without any of the classes included.
    """

    names: tuple[str, ...]
    images: Int64s
    pairs: Int64s
    total: int


def count_cooccurrence(source: Source, classes: Sequence[str] | None = None) -> Cooccurrence:
    """Return how often the classes of a source share an image; repeated objects in one image change nothing.

    Parameters
    ----------
    source : Source
        Boxes, crowd ones included, or a table of image and class.
    classes : sequence of str, optional
        Count these alone; default all classes of the source. Images are not restricted.

    Raises
    ------
    CutError
        A class is named twice or unknown to the source, or the source has two categories of one name.
    """
    position = _positions(source, classes)
    names = tuple(sorted(position))
    if len(names) > MOST_CLASSES:
        raise CutError(
            "There are too many classes for a table of pairs",
            expected=f"at most {MOST_CLASSES:,}",
            found=f"{len(names):,}",
            hint="name the classes to count",
        )
    number = np.full(len(source.categories), -1, np.int64)
    for index, name in enumerate(names):
        number[position[name]] = index
    image, category = source.class_pairs()
    shown = number[category]
    keys = distinct(image[shown >= 0].astype(np.int64) * max(len(names), 1) + shown[shown >= 0])
    return _counted(names, keys // max(len(names), 1), keys % max(len(names), 1), len(source.images))


def _positions(source: Source, classes: Sequence[str] | None) -> dict[str, int]:
    index = source.categories.index()
    if len(index) < len(source.categories):
        twice = next(name for name in index if source.categories.names.count(name) > 1)
        raise CutError("Two categories share a name", where=source.title, found=twice)
    if classes is None:
        return index
    chosen = list(classes)
    if strange := next((name for name in chosen if name not in index), None):
        expected = ", ".join(index)[:200]
        raise CutError("The source has no such class", where=source.title, expected=expected, found=f"{strange!r:.80}")
    if len(set(chosen)) < len(chosen):
        raise CutError("A class is named twice", found=next(name for name in chosen if chosen.count(name) > 1))
    return {name: index[name] for name in chosen}


def _add(pairs: Int64s, keys: Int64s) -> None:
    """Count keys into a table; one that is much longer than the keys is not walked through."""
    if len(pairs) <= 4 * len(keys):
        pairs += np.bincount(keys, minlength=len(pairs))
    else:
        found, count = np.unique(keys, return_counts=True)
        pairs[found] += count


def _counted(names: tuple[str, ...], images: Int64s, classes: Int64s, total: int) -> Cooccurrence:
    """Count pairs from unique ``(image, class)`` statements that are sorted by image, then class."""
    n = len(names)
    pairs = np.zeros(n * n, np.int64)
    starts = np.flatnonzero(np.r_[True, images[1:] != images[:-1]]) if len(images) else np.empty(0, np.int64)
    sizes = np.diff(np.r_[starts, len(images)])
    for size in np.unique(sizes[sizes > 1]).tolist():
        # All images that show this many classes at once: a block of shape (images, size).
        block = classes[starts[sizes == size][:, None] + np.arange(size)]
        first, second = np.triu_indices(size, 1)
        step = max(1, _KEYS_AT_ONCE // len(first))
        for low in range(0, len(block), step):
            some = block[low : low + step]
            _add(pairs, (some[:, first] * n + some[:, second]).ravel())
    upper: npt.NDArray[np.int64] = pairs.reshape(n, n)
    return Cooccurrence(names, np.bincount(classes, minlength=n).astype(np.int64), upper + upper.T, total)


Weighting = Literal["counts", "binary", "jaccard", "pmi"]
WEIGHTINGS: dict[Weighting, str] = {
    "counts": "images that show both classes",
    "binary": "1 where any image shows both",
    "jaccard": "images with both / images with either, in units of 1e-9",
    "pmi": "positive pointwise mutual information log(p_ij / (p_i p_j)), natural, in units of 1e-9",
}
UNIT = 10**9
"""Fractional weights are rounded to whole multiples of 1e-9, so that every sum is exact in any order."""


@dataclass(frozen=True)
class ClassGraph:
    """An undirected graph with whole-number weights; vertices are sorted by name.

    Attributes
    ----------
    names : tuple of str, length n
    weights : ndarray of int64, shape (n, n)
        Symmetric, not negative, the diagonal is 0.
    weighting : str
        What a weight is; a key of `WEIGHTINGS`, or ``given``.
    """

    names: tuple[str, ...]
    weights: Int64s
    weighting: str = "given"

    @property
    def degrees(self) -> Int64s:
        """Sum of each vertex's weights, shape (n,)."""
        degrees: Int64s = self.weights.sum(axis=1)
        return degrees

    def isolated(self) -> tuple[str, ...]:
        """Return the vertices that co-occur with no other."""
        return tuple(name for name, degree in zip(self.names, self.degrees.tolist(), strict=True) if not degree)

    def components(self) -> list[tuple[str, ...]]:
        """Return the connected components, isolated vertices left out, largest first, then by first name."""
        found, left = [], self.degrees > 0
        while left.any():
            reached = frontier = np.arange(len(left)) == left.argmax()
            while frontier.any():
                frontier = (self.weights[frontier] > 0).any(axis=0) & ~reached
                reached = reached | frontier
            found.append(tuple(self.names[position] for position in np.flatnonzero(reached).tolist()))
            left &= ~reached
        return sorted(found, key=lambda component: (-len(component), component[0]))

    def restricted(self, names: Sequence[str]) -> ClassGraph:
        """Return the graph on some of its vertices."""
        chosen = set(names)
        kept = [position for position, name in enumerate(self.names) if name in chosen]
        return ClassGraph(
            tuple(self.names[position] for position in kept), self.weights[np.ix_(kept, kept)], self.weighting
        )


def class_graph(counts: Cooccurrence, weighting: Weighting = "counts") -> ClassGraph:
    """Return the graph of a co-occurrence table under a weighting; `WEIGHTINGS` has the formulas."""
    pairs, either = counts.pairs, counts.images[:, None] + counts.images[None, :] - counts.pairs
    if weighting == "counts":
        weights = pairs.copy()
    elif weighting == "binary":
        weights = (pairs > 0).astype(np.int64)
    elif weighting == "jaccard":
        weights = np.rint(pairs / np.maximum(either, 1) * UNIT).astype(np.int64)
    else:
        expected = np.maximum(counts.images[:, None] * counts.images[None, :], 1) / max(counts.total, 1)
        ratio = np.where(pairs > 0, pairs / expected, 1.0)
        weights = np.rint(np.log(np.maximum(ratio, 1.0)) * UNIT).astype(np.int64)
    np.fill_diagonal(weights, 0)
    return ClassGraph(counts.names, weights, weighting)
