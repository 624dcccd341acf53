"""``curation duplicates``: photos that are the same, or nearly, under different names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, Table, table_lines
from curation.cli.outputs import OutputFolder
from curation.similarity.from_files import Duplicates, duplicates

_SHOWN = 30


def run(
    found: Annotated[Duplicates, duplicates],
    /,
    *,
    out: Annotated[Path | None, OutputFolder(("duplicates.csv",)), "DIR"] = None,
) -> Answer:
    """Photos that are the same, or nearly, under different names.

    0 also where duplicates are found.

    Parameters
    ----------
    out
        write duplicates.csv
    """
    rows = found.rows
    written = found.save(out) if out else []
    table = Table(
        f"{len(rows):,} pairs of {found.facts['images']:,} photos",
        ("first", "second", "how", "value"),
        tuple((one, two, how, f"{value:g}") for one, two, how, value in rows[:_SHOWN]),
    )
    more = [f"… and {len(rows) - _SHOWN:,} more: --out DIR writes all"] if len(rows) > _SHOWN else []
    return Answer(found.data(), [*table_lines(table), *more, *(f"wrote {path}" for path in written)])
