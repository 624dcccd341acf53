"""Confidence of an open-set classifier, high on known samples and low on others (Palechor et al., WACV 2023, eq. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from curation.errors import PredictionError
from curation.evaluation.class_scores import ClassScores
from curation.evaluation.score_files import open_columns

DEFINITION = (
    "gamma_plus: mean probability of the true class over all known samples, also wrongly answered ones; gamma_minus: "
    "mean over the group of 1 - highest known probability + 1/K (without 1/K where there is a background class); "
    "gamma: their mean. Softmax runs over all outputs. gamma_minus_table2: 1/(largest label + 1) in place of 1/K, as "
    "the official code computes it for Table 2"
)


def confidence(data: ClassScores, group: str) -> dict[str, Any]:
    """Return gamma+, gamma- and gamma against one group.

    Parameters
    ----------
    group : {"negative", "unknown"}
        Negatives in validation, unknown samples in Table 2 of the paper.

    Returns
    -------
    dict
        ``gamma_plus``, ``gamma_minus``, ``gamma``, ``gamma_minus_table2``, ``gamma_table2``. Undefined is None, with
        ``reason``. With C = K, gamma- lies between 1/K and 1; with a background class between 0 and 1.
    """
    if data.kind == "real":
        return _named(None, None, None, "the scores are no probabilities")
    known, other = data.known, data.group(group)
    plus = float(data.target[known].mean()) if known.any() else None
    if not other.any():
        return _named(plus, None, None, f"no {group} sample")
    beyond = float((1 - data.highest[other]).mean())
    if not data.sums_to_one:
        return _named(plus, beyond, beyond, None if known.any() else "no sample of a known class")
    if not known.any():
        # The official offset needs a label; that of the definition does not.
        return _named(None, beyond + 1 / len(data.classes), None, "no sample of a known class")
    official = beyond + 1 / (int(data.labels.max()) + 1)
    return _named(plus, beyond + 1 / len(data.classes), official, None)


def best_epoch(values: Sequence[tuple[float, float]]) -> int | None:
    """Return the position of the model to keep: the first of the largest gamma+ + gamma-, None if none is above 0.

    Parameters
    ----------
    values : sequence of (float, float)
        gamma+ and gamma- on the validation set, by epoch.

    Notes
    -----
    As the official training code: strictly larger than the best so far, which begins at 0.
    """
    best, found = 0.0, None
    for place, (plus, minus) in enumerate(values):
        if plus + minus > best:
            best, found = plus + minus, place
    return found


def _named(plus: float | None, minus: float | None, official: float | None, reason: str | None) -> dict[str, Any]:
    result: dict[str, Any] = {
        "gamma_plus": plus,
        "gamma_minus": minus,
        "gamma": _half(plus, minus),
        "gamma_minus_table2": official,
        "gamma_table2": _half(plus, official),
    }
    return result | ({} if reason is None else {"reason": reason})


def _half(plus: float | None, minus: float | None) -> float | None:
    return None if plus is None or minus is None else (plus + minus) / 2


COLUMNS = ("epoch", "gamma_plus", "gamma_minus")
_LARGEST = 1e9
_ROUNDING = 1e-5
"""A mean of float32 confidences may lie so far above 1."""


@dataclass(frozen=True, slots=True)
class Epochs:
    """Validation confidence by epoch.

    Attributes
    ----------
    epochs : tuple of int
        Ascending.
    gamma_plus, gamma_minus : tuple of float
        0 to 1, of the same length.
    """

    epochs: tuple[int, ...]
    gamma_plus: tuple[float, ...]
    gamma_minus: tuple[float, ...]

    @property
    def chosen(self) -> int | None:
        """Position of the model that the paper keeps (see `best_epoch`)."""
        return best_epoch(list(zip(self.gamma_plus, self.gamma_minus, strict=True)))


def read_epochs(path: Path) -> Epochs:
    """Return the columns ``epoch``, ``gamma_plus`` and ``gamma_minus`` of a CSV file; other columns are passed over.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        A column is missing, a number is not one or out of range, or epochs do not rise.
    """
    columns = open_columns(path, (".csv",))
    if not set(COLUMNS) <= set(columns.names):
        raise PredictionError(
            "The file of epochs lacks a column",
            where=str(path),
            expected=", ".join(COLUMNS),
            found=", ".join(columns.names)[:200],
        )
    epoch, plus, minus = columns.read(COLUMNS, ()).values()
    rates = np.stack([plus, minus])
    usable = (np.abs(epoch) <= _LARGEST) & (epoch == np.floor(epoch)) & (np.diff(epoch, prepend=-np.inf) > 0)
    usable &= ((rates >= 0) & (rates <= 1 + _ROUNDING)).all(axis=0)
    if not usable.all() or not len(epoch):
        row = int(np.argmin(usable)) if len(epoch) else 0
        raise PredictionError(
            "Invalid row in the file of epochs" if len(epoch) else "The file of epochs has no rows",
            where=f"{path}: row {row + 2}",
            expected="whole epochs in ascending order, confidences from 0 to 1",
            found=f"{epoch[row]:g}, {plus[row]:g}, {minus[row]:g}" if len(epoch) else None,
        )
    return Epochs(tuple(map(int, epoch.tolist())), tuple(plus.tolist()), tuple(minus.tolist()))
