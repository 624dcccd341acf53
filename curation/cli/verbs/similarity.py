"""``curation similarity``: embeddings, nearest images, duplicates, and leaks into a training corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from curation.cli.offered import actions
from curation.cli.output import Answer, Line, Table, first_rows
from curation.cli.outputs import KEPT, output_folder
from curation.signals.similarity import embed as embedding
from curation.signals.similarity import near_duplicates
from curation.signals.similarity import neighbors as search
from curation.signals.similarity.embed import Embedded
from curation.signals.similarity.neighbors import Pairs, SetComparison

_MOST_NEIGHBORS = 20
_MOST_PAIRS = 30


def embed(*, out: Annotated[Path, KEPT, "DIR"], made: Annotated[Embedded, embedding.embed]) -> Answer:
    """Embed photos or texts with an encoder, into a store from which an interrupted run continues.

    The exit status is 0 also if broken photos were left out.

    Parameters
    ----------
    out
        the store; an interrupted one is continued
    """
    data = made.data()
    return Answer(data, _embedded(data))


def _embedded(data: dict[str, Any]) -> list[Line]:
    encoder = data["encoder"]
    rows = [
        ("model", f"{encoder['model']} ({encoder['embedding']}, {encoder['dtype']})"),
        ("weights", encoder["weights"]),
        ("vectors", f"{data['embedded']:,} of {data['dimension']} numbers"),
        ("computed", f"{data['computed']:,}; found in the store {data['reused']:,}"),
        ("left out", f"{sum(data['skipped'].values()):,} (report.json lists them)" if data["skipped"] else "0"),
    ]
    return [Table(f"{data['store']}: {data['kind']}", ("", ""), tuple(rows))]


def neighbors(
    result: Annotated[Pairs | SetComparison, search.neighbors],
    /,
    *,
    out: Annotated[Path | None, output_folder("neighbors.csv"), "DIR"] = None,
) -> Answer:
    """Find the nearest images in a reference set, or compare whole sets with it.

    Parameters
    ----------
    out
        write neighbors.csv or similarity.csv, and a figure
    """
    written = result.save(out) if out else []
    lines = _nearest(result) if isinstance(result, Pairs) else _sets(result.data())
    return Answer(result.data(), lines, written=written)


def _nearest(pairs: Pairs) -> list[Line]:
    facts = pairs.facts
    itself = ", each image itself left out" if facts["queries_among_references"] else ""
    rows = ((name, str(rank), other, f"{score:.4f}") for name, rank, other, score in pairs.rows)
    columns = ("id", "rank", "neighbor", "similarity")
    title = f"Nearest of {facts['references']:,}{itself}"
    return first_rows(title, columns, rows, len(pairs.rows), _MOST_NEIGHBORS, "--out DIR writes all")


def _sets(data: dict[str, Any]) -> list[Line]:
    base = data["reference"]
    table = Table(
        f"Cosine to the nearest of {data['sample']['n']:,} ID images",
        ("set", "n", "mean", "std", "5 %", "median", "95 %"),
        tuple(_statistics_row(name, figures) for name, figures in data["sets"].items()),
    )
    numbers = f"median {_number(base['median'])}, sigma {_number(base['sigma'])}"
    return [table, f"ID images to each other, leave one out: {numbers}"]


def _statistics_row(name: str, figures: dict[str, Any]) -> tuple[str, ...]:
    quantiles = figures["quantiles"]
    numbers = (figures["mean"], figures["std"], quantiles["0.05"], quantiles["0.5"], quantiles["0.95"])
    return name, str(figures["n"]), *(_number(value) for value in numbers)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def duplicates(
    pairs: Annotated[Pairs, near_duplicates.duplicates],
    /,
    *,
    out: Annotated[Path | None, output_folder("duplicates.csv"), "DIR"] = None,
) -> Answer:
    """Find photos that are equal, or nearly equal, under different names.

    The exit status is 0 also if duplicates are found.

    Parameters
    ----------
    out
        write duplicates.csv
    """
    written = pairs.save(out) if out else []
    count, columns = len(pairs.rows), ("first", "second", "how", "value")
    rows = ((first, second, how, f"{value:g}") for first, second, how, value in pairs.rows)
    title = f"{count:,} pairs of {pairs.facts['images']:,} photos"
    lines = first_rows(title, columns, rows, count, _MOST_PAIRS, "--out DIR writes all")
    return Answer(pairs.data(), lines, written=written)


METAVAR = "ACTION"
COMMANDS = {"embed": embed, "neighbors": neighbors, "duplicates": duplicates, **actions("similarity")}
