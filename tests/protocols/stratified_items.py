"""The stratified split of items in any order, by the split that the lists are made with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curation.benchmarks.rules.hierarchy import split_sizes
from curation.sources.source import Int64s


def stratified_split(classes: Sequence[str], *, train_size: float = 0.8, seed: int = 42) -> tuple[Int64s, Int64s]:
    """Return the positions of the training and of the validation items, in the order scikit-learn returns them.

    Classes are taken sorted, items of a class in input order: the order of the classes in the input has no influence,
    that of the items in a class has.
    """
    labels, sizes = _groups(classes)
    order = np.argsort(labels, kind="stable")
    train, val = split_sizes(sizes, train_size=train_size, seed=seed)
    return order[train], order[val]


def _groups(classes: Sequence[str]) -> tuple[Int64s, Int64s]:
    """Return the rank of each item's class among the sorted classes, and the size of each class."""
    names = sorted(set(classes))
    rank = {name: place for place, name in enumerate(names)}
    labels = np.fromiter((rank[name] for name in classes), np.int64, len(classes))
    return labels, np.bincount(labels, minlength=len(names)).astype(np.int64)
