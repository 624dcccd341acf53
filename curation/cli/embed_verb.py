"""``curation embed``: photos, boxes or texts as vectors, kept in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from curation.cli.output import Answer, Table, table_lines
from curation.cli.outputs import OwnFolder
from curation.similarity.from_files import Embedded, embed


def run(*, out: Annotated[Path, OwnFolder(), "DIR"], made: Annotated[Embedded, embed]) -> Answer:
    """Photos, boxes or texts as vectors of an encoder, kept in a store that resumes.

    0 when done, also where broken photos were left out.

    Parameters
    ----------
    out
        the store; one begun is gone on with
    """
    data = made.data()
    return Answer(data, _lines(data))


def _lines(data: dict[str, Any]) -> list[str]:
    encoder = data["encoder"]
    rows = [
        ("model", f"{encoder['model']} ({encoder['embedding']}, {encoder['dtype']})"),
        ("weights", encoder["weights"]),
        ("vectors", f"{data['embedded']:,} of {data['dimension']} numbers"),
        (
            "computed",
            f"{data['computed']:,}; found in the store {data['reused']:,}; let go {data['let_go']:,}",
        ),
        (
            "left out",
            f"{sum(data['skipped'].values()):,} (report.json lists them)" if data["skipped"] else "0",
        ),
    ]
    return table_lines(Table(f"{data['store']}: {data['kind']}", ("", ""), tuple(rows)))
