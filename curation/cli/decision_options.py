"""Options and tables that ``curation decisions`` and ``curation apply`` share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.output import Table
from curation.errors import DecisionError, UsageError

if TYPE_CHECKING:
    from curation.decisions.files import DecisionFile
    from curation.decisions.resolution import Conflict, Resolution
    from curation.decisions.staleness import Staleness

MOST_SHOWN = 20


def add_rule_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--rule``, ``--senior`` and ``--allow-conflicts`` to a verb."""
    parser.add_argument(
        "--rule",
        choices=("error", "majority", "senior"),
        default="error",
        help="what to do where reviewers differ: refuse (default), take what most say, or what the most senior says",
    )
    parser.add_argument(
        "--senior",
        action="append",
        default=[],
        metavar="NAME",
        help="a reviewer whose word goes before that of those named later (repeatable; with --rule senior)",
    )
    parser.add_argument(
        "--allow-conflicts",
        action="store_true",
        help="with --rule error: replay all contradicting verdicts, as the authors' code does",
    )


def read_files(paths: Sequence[Path]) -> list[DecisionFile]:
    """Return the decisions of some files; one that is named twice, or holds only a torn line, is an error."""
    from curation.decisions.files import read_decisions

    if len({path.absolute() for path in paths}) < len(paths):
        raise UsageError("A decisions file is named twice", where=", ".join(map(str, paths))[:300])
    files = [read_decisions(path) for path in paths]
    for path, file in zip(paths, files, strict=True):
        if file.report.torn and not file.decisions:
            raise DecisionError(
                "The file holds no whole decision",
                where=str(path),
                expected="one decision a line",
                found=ascii(file.report.torn),
            )
    return files


def resolution_data(resolution: Resolution) -> dict[str, Any]:
    """Return a resolution as plain data: digest, counts, conflicts."""
    return {
        "digest": resolution.digest,
        "decisions": len(resolution.decisions),
        "rule": resolution.rule,
        "superseded": resolution.superseded,
        "repeated": resolution.repeated,
        "abstained": resolution.abstained,
        "undecided": len(resolution.undecided),
        "conflicts": [
            {
                "image_id": one.image_id,
                "dataset": one.dataset,
                "stage": one.stage,
                "votes": {action: list(names) for action, names in one.votes},
                "outcome": one.outcome,
            }
            for one in resolution.conflicts
        ],
    }


def conflict_table(conflicts: Sequence[Conflict]) -> Table:
    """Return one row an image on which verdicts differ."""
    rows = tuple(
        (
            one.image_id,
            one.dataset or "-",
            one.stage,
            "; ".join(
                f"{action}: {', '.join(name or 'unnamed' for name in names)}" for action, names in one.votes
            ),
            one.outcome or "-",
        )
        for one in conflicts[:MOST_SHOWN]
    )
    return Table(_counted("Conflicts", len(conflicts)), ("image", "of", "stage", "verdicts", "outcome"), rows)


def note_table(title: str, notes: Iterable[str]) -> Table:
    """Return one row a note."""
    return Table(title, ("",), tuple((note,) for note in notes))


def staleness_data(staleness: Staleness) -> dict[str, Any]:
    """Return staleness as plain data."""
    return asdict(staleness)


def _counted(title: str, count: int) -> str:
    return f"{title} (the first {MOST_SHOWN} of {count})" if count > MOST_SHOWN else title
