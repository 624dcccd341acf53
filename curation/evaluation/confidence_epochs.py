"""Confidence over the epochs of a training run, from a CSV file."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

from curation.errors import PredictionError
from curation.evaluation.confidence import best_epoch
from curation.storage import read_bytes

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
        raise PredictionError(
            "The file of epochs cannot be read", where=str(path), found=str(error)[:200]
        ) from None
    if not rows or not set(COLUMNS) <= set(header):
        raise PredictionError(
            "The file of epochs lacks a column" if rows else "The file of epochs has no rows",
            where=str(path),
            expected=", ".join(COLUMNS),
            found=", ".join(str(name) for name in header)[:200] or None,
        )
    numbers = [
        [_number(row[name], f"{path}: row {line}, {name}") for name in COLUMNS]
        for line, row in enumerate(rows, 2)
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
        raise PredictionError(
            "The epochs do not rise", where=str(path), expected="one row an epoch, ascending"
        )
    return found


def _number(text: str | None, where: str) -> float:
    try:
        value = float(text) if text is not None and len(text) <= 40 else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > 1e9:
        raise PredictionError("This is no number", where=where, found=repr(text)[:60])
    return value
