"""scikit-learn's stratified train/test split, reproduced to the file without scikit-learn.

The lists of the ImageNet protocols are what ``train_test_split(images, classes, train_size=0.8, stratify=classes,
random_state=42)`` returned. How a class's share is rounded depends on the order of two floating-point operations, which
changed between versions of scikit-learn; both orders are here, by name.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from curation.errors import ProtocolError

Formula = Literal["sklearn-1.0", "sklearn-0.24"]
"""``sklearn-1.0``: versions 1.0.2 to 1.9.1 at least, ``size / total * draws``; ``-0.24``: ``draws * size / total``."""

Int64s = npt.NDArray[np.int64]


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
