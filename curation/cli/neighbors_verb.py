"""``curation neighbors``: nearest images of a reference set, set similarity, and near classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from curation.cli.output import Answer, Table, table_lines
from curation.cli.outputs import OutputFolder
from curation.similarity.from_files import Neighbors, SetComparison, neighbors

_SHOWN = 20
_FILES = OutputFolder(("neighbors.csv", "similarity.csv", "statistics.json"), ("histograms",))


def run(
    found: Annotated[Neighbors | SetComparison, neighbors], /, *, out: Annotated[Path | None, _FILES, "DIR"] = None
) -> Answer:
    """Nearest images of a reference set, and how alike whole sets are.

    Parameters
    ----------
    out
        write neighbors.csv or similarity.csv, and a figure
    """
    written = found.save(out) if out else []
    lines = _nearest(found) if isinstance(found, Neighbors) else _sets(found.data())
    return Answer(found.data(), [*lines, *(f"wrote {path}" for path in written)])


def _nearest(found: Neighbors) -> list[str]:
    facts = found.facts
    table = Table(
        f"Nearest of {facts['references']:,}"
        + (", each image itself left out" if facts["queries_among_references"] else ""),
        ("id", "rank", "neighbor", "similarity"),
        tuple((name, str(rank), other, f"{score:.4f}") for name, rank, other, score in found.rows[:_SHOWN]),
    )
    more = len(found.rows) - _SHOWN
    return [*table_lines(table), *([f"… and {more:,} more rows: --out DIR writes all"] if more > 0 else [])]


def _sets(data: dict[str, Any]) -> list[str]:
    base = data["reference"]
    table = Table(
        f"Cosine to the nearest of {data['sample']['n']:,} ID images",
        ("set", "n", "mean", "std", "5 %", "median", "95 %"),
        tuple(_statistics_row(name, one) for name, one in data["sets"].items()),
    )
    numbers = f"median {_number(base['median'])}, sigma {_number(base['sigma'])}"
    return [*table_lines(table), f"ID images to each other, leave one out: {numbers}"]


def _statistics_row(name: str, one: dict[str, Any]) -> tuple[str, ...]:
    quantiles = one["quantiles"]
    numbers = (one["mean"], one["std"], quantiles["0.05"], quantiles["0.5"], quantiles["0.95"])
    return name, str(one["n"]), *(_number(value) for value in numbers)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
