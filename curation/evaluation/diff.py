"""Two results of one evaluation compared: each number before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from curation.errors import EvaluationError, UsageError
from curation.evaluation.result import PLACES, Column, Result, Table
from curation.input_files import InputFile

if TYPE_CHECKING:
    import pandas as pd

    from curation.evaluation.measures import Number


class _Saved(msgspec.Struct):
    protocol: str
    measures: list[_Row]


class _Number(msgspec.Struct):
    measure: str
    parameters: str
    value: float | int | None
    unit: str = ""


_Row: Any = msgspec.defstruct("_Row", [(place, str, "") for place in PLACES], bases=(_Number,))


@dataclass(frozen=True, repr=False, slots=True)
class ResultDiff:
    """What differs between two results.

    Attributes
    ----------
    protocol : str
    rows : tuple
        Of each number what was scored, its key, and its value before and after: None where undefined or not there.
    """

    protocol: str
    rows: tuple[tuple[str, str, Number | None, Number | None], ...]

    @property
    def changed(self) -> int:
        """How many numbers differ."""
        return sum(one[2] != one[3] for one in self.rows)

    @property
    def table(self) -> Table:
        """Every number before, after, and the difference; a terminal shows those that differ."""
        rows = [(*one, None if None in one[2:] else one[3] - one[2]) for one in self.rows]  # type: ignore[operator]
        columns = (Column("scored"), Column("measure"), *(Column(name, show=".6g") for name in _WHICH))
        title = f"{self.protocol}: {self.changed} of {len(rows)} numbers differ"
        return Table("difference", columns, rows, title=title, printed=[one for one in rows if one[2] != one[3]])

    def frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame."""
        return self.table.frame()

    def data(self) -> dict[str, Any]:
        """Return what JSON holds."""
        names = [one.name for one in self.table.columns]
        rows = [dict(zip(names, one, strict=True)) for one in self.table.all_rows()]
        return {"protocol": self.protocol, "changed": self.changed, "measures": rows}

    def __repr__(self) -> str:
        return f"<ResultDiff of {self.protocol}: {self.changed} of {len(self.rows)} numbers differ>"


_WHICH = ("before", "after", "difference")


def is_result(given: Any) -> bool:
    """Return whether something is a result, the folder of one, or its JSON file."""
    if isinstance(given, Result):
        return True
    path = Path(str(given))
    return (path / "results.json").is_file() or (path.is_file() and path.name != "manifest.json")


def diff_results(old: Result | Path | str, new: Result | Path | str) -> ResultDiff:
    """Return how the numbers of two results of one evaluation differ.

    Raises
    ------
    UsageError
        They are of two evaluations.
    EvaluationError
        A file is no result.
    """
    before, after = map(_saved, (old, new))
    if before.protocol != after.protocol:
        raise UsageError("The results are of two evaluations", found=f"{before.protocol} and {after.protocol}"[:160])
    # One method beside another: what a file of predictions is called tells no numbers apart.
    alone = all(len({row.method for row in one.measures}) == 1 for one in (before, after))
    named = [place for place in PLACES[1:] if place != "method" or not alone]
    first, second = (dict(_numbers(one, named)) for one in (before, after))
    units = [{row.measure: row.unit for row in one.measures} for one in (before, after)]
    if other := [name for name, unit in units[0].items() if unit != units[1].get(name, unit)]:
        raise UsageError(
            "The results give a number in two units",
            where=f"{before.protocol}: {other[0]}"[:160],
            found=f"{units[0][other[0]]} and {units[1][other[0]]}",
            hint="evaluate the older one again",
        )
    return ResultDiff(before.protocol, tuple((*key, first.get(key), second.get(key)) for key in {**first, **second}))


def _numbers(saved: _Saved, named: Sequence[str]) -> Iterator[tuple[tuple[str, str], Number | None]]:
    for row in saved.measures:
        scored = "/".join(filter(None, (getattr(row, place) for place in named)))
        yield (scored, f"{row.measure}[{row.parameters}]" if row.parameters else row.measure), row.value


def _saved(given: Result | Path | str) -> _Saved:
    if isinstance(given, Result):
        return msgspec.convert(given.json_data(), _Saved)
    path = Path(given)
    path = path / "results.json" if path.is_dir() else path
    try:
        return msgspec.json.decode(InputFile(path, kind="result").data, type=_Saved)
    except msgspec.DecodeError as error:
        raise EvaluationError(
            "The file is not a result",
            where=str(path),
            expected="what `curation evaluate` writes with --out, or prints with --json",
            found=str(error)[:200],
        ) from None
