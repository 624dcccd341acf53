"""Confidence of an open-set classifier, high on known samples and low on others (Palechor et al., WACV 2023, eq. 7)."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.errors import PredictionError
from curation.evaluation.class_scores import ClassScores
from curation.storage import read_bytes

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
_LONGEST = 16 << 20
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
        A column is missing, a number is no number or out of range, or epochs do not rise.
    """
    data = read_bytes(path, kind="file of epochs")
    try:
        if len(data) > _LONGEST:
            raise ValueError(f"{len(data):,} bytes")
        rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))
        header = list(rows[0]) if rows else []
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise PredictionError("The file of epochs cannot be read", where=str(path), found=str(error)[:200]) from None
    if not rows or not set(COLUMNS) <= set(header):
        raise PredictionError(
            "The file of epochs lacks a column" if rows else "The file of epochs has no rows",
            where=str(path),
            expected=", ".join(COLUMNS),
            found=", ".join(str(name) for name in header)[:200] or None,
        )
    numbers = [
        [_number(row[name], f"{path}: row {line}, {name}") for name in COLUMNS] for line, row in enumerate(rows, 2)
    ]
    found = Epochs(
        tuple(int(one[0]) for one in numbers),
        tuple(one[1] for one in numbers),
        tuple(one[2] for one in numbers),
    )
    for line, (epoch, plus, minus) in enumerate(numbers, 2):
        if epoch != int(epoch) or not (min(plus, minus) >= 0 and max(plus, minus) <= 1 + _ROUNDING):
            raise PredictionError(
                "An epoch is no whole number, or a confidence is outside [0, 1]",
                where=f"{path}: row {line}",
                found=f"{epoch:g}, {plus:g}, {minus:g}",
            )
    if any(later <= earlier for earlier, later in zip(found.epochs, found.epochs[1:], strict=False)):
        raise PredictionError("The epochs do not rise", where=str(path), expected="one row an epoch, ascending")
    return found


def _number(text: str | None, where: str) -> float:
    try:
        value = float(text) if text is not None and len(text) <= 40 else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > 1e9:
        raise PredictionError("This is no number", where=where, found=repr(text)[:60])
    return value
