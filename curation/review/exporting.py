"""Decisions for `curation apply`: what stands in a log after all undos, as JSON Lines or CSV."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from curation.decisions.files import read_decisions, write_decisions
from curation.errors import ReviewError
from curation.review.verdicts import standing_rows

SUFFIXES = (".jsonl", ".csv")


@dataclass(frozen=True, slots=True)
class Export:
    """What was written: the path, its rows, their number by action, and the digest of the log they come from."""

    path: Path
    rows: int
    actions: dict[str, int]
    log: str


def export_decisions(log: Path, path: Path) -> Export:
    """Write the standing decisions of a log, sorted by pool, image, stage and reviewer; history and undos stay behind.

    Parameters
    ----------
    path : Path
        Ends in ``.jsonl`` or ``.csv``; a file that is there is replaced whole.

    Raises
    ------
    ReviewError
        The suffix is another, or the path is the log itself.
    MissingFileError
        Nothing was decided yet.
    """
    if path.suffix not in SUFFIXES:
        raise ReviewError(
            "Decisions are exported as JSON Lines or CSV", found=path.name[:80], expected=", ".join(SUFFIXES)
        )
    if path.absolute() == log.absolute() or (path.exists() and log.exists() and path.samefile(log)):
        raise ReviewError("The log is never overwritten", where=str(path), hint="choose another name")
    found = read_decisions(log)
    rows = standing_rows(found.decisions)
    write_decisions(path, rows)
    actions = Counter(row.action for row in rows)
    return Export(path, len(rows), {action: actions[action] for action in sorted(actions)}, found.digest)
