"""Labels and class scores of an open-set classifier, checked once for all measures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curation.errors import PredictionError

NEGATIVE, UNKNOWN = -1, -2
"""Labels of samples of no known class: seen as negatives in training, or never seen."""

GROUPS: dict[str, int] = {"negative": NEGATIVE, "unknown": UNKNOWN}

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Scores of N samples over K known classes, perhaps with a background column beside them.

    Attributes
    ----------
    labels : ndarray of int64, shape (N,)
        0 to K-1 for a known class, -1 negative, -2 unknown.
    scores : ndarray of float64 or float32, shape (N, K)
        Any real numbers: probabilities, logits, OpenMax scores. The background column is left out.
    background : ndarray, shape (N,), or None
        Scores of the background class.
    classes : tuple of str, length K
    """

    labels: Int64s
    scores: npt.NDArray[np.floating]
    background: npt.NDArray[np.floating] | None
    classes: tuple[str, ...]

    @property
    def known(self) -> Bools:
        """Which samples are of a known class, shape (N,)."""
        return np.asarray(self.labels >= 0)

    def group(self, name: str) -> Bools:
        """Return which samples are ``negative`` or ``unknown``, shape (N,)."""
        return np.asarray(self.labels == GROUPS[name])


def class_scores(
    labels: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    background: bool = False,
    classes: tuple[str, ...] | None = None,
    where: str = "scores",
) -> ClassScores:
    """Return checked labels and scores.

    Parameters
    ----------
    labels : array_like, shape (N,)
        Integers, or floats that are integers.
    scores : array_like, shape (N, C)
    background : bool
        Whether the last column is the background class.
    where : str
        What to call the input in messages.

    Raises
    ------
    PredictionError
        Shapes do not fit, a score is NaN, a label is no integer or of no class.
    """
    table = np.asarray(scores)
    if table.ndim != 2 or not np.issubdtype(table.dtype, np.number) or np.iscomplexobj(table):
        raise PredictionError(
            "Scores are a table of numbers, a row a sample, a column a class",
            where=where,
            expected="shape (N, C)",
            found=f"shape {table.shape}, {table.dtype}",
        )
    if not np.issubdtype(table.dtype, np.floating):
        table = table.astype(np.float64)
    given = np.asarray(labels)
    n_classes = table.shape[1] - background
    if given.shape != (len(table),) or n_classes < 1:
        raise PredictionError(
            "Labels and scores do not fit together",
            where=where,
            expected=f"{len(table)} labels, at least one class"
            + (" beside the background" if background else ""),
            found=f"labels of shape {given.shape}, {table.shape[1]} columns",
        )
    nan = np.isnan(table).any(axis=1)
    if nan.any():
        raise PredictionError(
            "A score is not a number",
            where=f"{where}: row {int(np.argmax(nan))}",
            expected="finite scores, or infinities",
            found=f"NaN in {int(nan.sum())} rows",
        )
    if classes is not None and len(classes) != n_classes:
        raise PredictionError(
            "The number of classes is not that of the columns",
            where=where,
            expected=f"{len(classes)} columns" + (" and the background" if background else ""),
            found=f"{table.shape[1]} columns",
            hint="--background says that the last column is the background class",
        )
    return ClassScores(
        labels=_checked_labels(given, n_classes, where),
        scores=table[:, :n_classes],
        background=table[:, -1] if background else None,
        classes=classes or tuple(str(number) for number in range(n_classes)),
    )


def softmax(scores: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return the softmax over the last axis, in the dtype given; shift-invariant, so that no logit overflows."""
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def _checked_labels(given: npt.NDArray[np.generic], n_classes: int, where: str) -> Int64s:
    try:
        numbers = given.astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.full(given.shape, np.nan)
    wrong = ~((numbers == np.floor(numbers)) & (numbers >= UNKNOWN) & (numbers < n_classes))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise PredictionError(
            "A label is of no class",
            where=f"{where}: row {row}",
            expected=f"0 to {n_classes - 1}, -1 (negative) or -2 (unknown)",
            found=str(given[row])[:40],
        )
    return numbers.astype(np.int64)
