"""``curation audit --each``: many folders of lists audited at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.audit.many import Audits, audits
from curation.cli.output import Answer, Table, table_lines
from curation.cli.outputs import OwnFolder

_SHOWN = 50


def run(*, out: Annotated[Path, OwnFolder(), "DIR"], each: bool = False, found: Annotated[Audits, audits]) -> Answer:
    """Audit every folder of lists below a folder, many at once.

    0 when no rule is broken anywhere, else 1.

    Parameters
    ----------
    each
        audit each folder below FOLDER
    out
        shards of a report a folder (JSON); the same command goes on where it was interrupted
    """
    data = found.data()
    bad = [(name, verdict) for name, verdict in found.verdicts.items() if verdict != "pass"]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in data["counts"].items())
    table = Table(f"{len(found.verdicts)} folders: {counts}", ("folder", "verdict"), tuple(bad[:_SHOWN]))
    more = [f"… and {len(bad) - _SHOWN} more: --json tells all"] if len(bad) > _SHOWN else []
    return Answer(data, [*table_lines(table), *more, data["digest"]], int(found.failed))
