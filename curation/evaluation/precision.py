"""How exactly scores are held: as doubles that tell apart what a file tells apart, or not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
import numpy as np
import numpy.typing as npt

from curation.errors import PredictionError
from curation.evaluation.problem import Floats

if TYPE_CHECKING:
    import pyarrow

LARGEST_WHOLE = 1 << 53
"""Beyond it neighbouring whole numbers become one double, and scores that differ become equal."""
Number = float | Annotated[int, msgspec.Meta(ge=-LARGEST_WHOLE, le=LARGEST_WHOLE)]
"""A score in JSON."""
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*", re.ASCII)
_DOUBLE = np.dtype(np.float64)


def doubles(values: npt.NDArray[Any], where: str) -> Floats:
    """Return numbers as doubles.

    Raises
    ------
    PredictionError
        They are whole numbers beyond 2^53, or floats of more than 64 bits: what differs might become equal.
    """
    if values.dtype.kind == "f" and values.dtype.itemsize > _DOUBLE.itemsize:
        raise PredictionError(
            "Scores have more digits than a double holds",
            where=where,
            expected="float16, float32 or float64",
            found=str(values.dtype),
            hint="what is equal as float64 is equal for every measure: save them so where that is meant",
        )
    if values.dtype.kind in "iu" and values.size:
        low, high = int(values.min()), int(values.max())
        if low < -LARGEST_WHOLE or high > LARGEST_WHOLE:
            _refuse(where, high if high > LARGEST_WHOLE else low)
    return np.asarray(values, np.float64)


def double_of(text: str, where: str) -> float:
    """Return the number that a text states; one beyond 2^53 without a fraction is refused as by `doubles`."""
    value = float(text)
    if abs(value) >= LARGEST_WHOLE and _WHOLE.fullmatch(text) and abs(int(text)) > LARGEST_WHOLE:
        _refuse(where, text.strip()[:40])
    return value


def read_delimited(
    data: bytes, names: list[str], numbers: tuple[str, ...], texts: tuple[str, ...], where: str
) -> pyarrow.Table:
    """Return columns of a CSV file whose header was read: `numbers` as doubles, as `doubles` holds them.

    Raises
    ------
    pyarrow.ArrowException
        It is no such table.
    PredictionError
        As `doubles`.
    """
    import pyarrow
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    def read(types: Mapping[str, pyarrow.DataType]) -> pyarrow.Table:
        return arrow_csv.read_csv(
            pyarrow.BufferReader(data),
            read_options=arrow_csv.ReadOptions(use_threads=False, column_names=names, skip_rows=1),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types, include_columns=list(types), strings_can_be_null=False, null_values=[""]
            ),
        )

    table = read(dict.fromkeys(numbers, pyarrow.float64()) | dict.fromkeys(texts, pyarrow.string()))
    for name in numbers:
        ends = compute.min_max(table.column(name)).as_py().values()
        if any(end is not None and abs(end) >= LARGEST_WHOLE for end in ends):
            # A double does not say how it was written.
            for row, text in enumerate(read({name: pyarrow.string()}).column(name).to_pylist(), start=1):
                if text:
                    double_of(text, f"{where}: column {name}, row {row} of the data")
    return table


def unlike_precision(stored: Mapping[str, tuple[str, Floats]]) -> str:
    """Return what is to be said of scores that are compared with each other and stored with unlike digits; "" of none.

    Parameters
    ----------
    stored : mapping of str to (str, ndarray of float64)
        By name, the type that a file holds them in, and the scores. Text counts as ``float64``.
    """
    rounded = {name: np.dtype(kind) for name, (kind, _) in stored.items() if np.dtype(kind).kind == "f"}
    fewest = min(rounded.values(), key=lambda one: one.itemsize, default=_DOUBLE)
    with np.errstate(over="ignore"):
        others = [
            name
            for name, (_, values) in stored.items()
            if not np.array_equal(values.astype(fewest).astype(np.float64), values, equal_nan=True)
        ]
    if not others:
        return ""
    own = ", ".join(name for name, kind in rounded.items() if kind == fewest)
    return (
        f"scores of {own} are stored as {fewest}, those of {', '.join(others)} with more digits: what was equal before "
        "it was rounded differs here, and AUROC, AUPR and FPR95 with it; store all in one type"
    )


def _refuse(where: str, found: object) -> NoReturn:
    raise PredictionError(
        "A whole number is too large to be told from its neighbours",
        where=where,
        expected=f"whole numbers up to 2^53 = {LARGEST_WHOLE:,}, or numbers in floating point",
        found=str(found),
        hint="divide them, or save them as float64 where equal ones are meant to be equal",
    )
