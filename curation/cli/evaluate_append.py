"""What ``curation evaluate`` does with a result: tables or JSON, files (``--out``), leaderboard rows (``--append``)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curation.cli.output import emit, printable, stage, warn
from curation.cli.outputs import AppendedFile
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.evaluation.result import Result


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What one evaluation hands on.

    Attributes
    ----------
    result : mapping
        Every number, with what it rests on.
    shown : mapping
        What ``--json`` prints of it.
    lines : sequence of str
        What is printed else.
    """

    result: Mapping[str, Any]
    shown: Mapping[str, Any]
    lines: Sequence[str]


def add_append(command: argparse.ArgumentParser) -> None:
    """Declare ``--append`` and ``--name``."""
    command.add_argument(
        "--append",
        type=AppendedFile(),
        metavar="FILE",
        help="add the headline numbers as rows to this .jsonl file, for `curation leaderboard`",
    )
    command.add_argument(
        "--name", metavar="NAME", help="of the method, in those rows (default: by the file of predictions)"
    )


def check_append(options: argparse.Namespace) -> None:
    """Refuse what ``--append`` could not do after a long evaluation: another file in its place, a name for nothing.

    Raises
    ------
    UsageError, LeaderboardError
    """
    from curation.evaluation.leaderboard.files import check_appendable
    from curation.evaluation.leaderboard.rows import require_name

    if options.append is not None:
        check_appendable(options.append)
        if options.name is not None:
            require_name(options.name)
    elif options.name is not None:
        raise UsageError("--name names the rows that --append writes", expected="--append FILE beside it")


def append_result(result: Mapping[str, Any], options: argparse.Namespace) -> list[str]:
    """Add the rows of a result to the file that ``--append`` names, and return what to tell."""
    from curation.evaluation.leaderboard.files import append_rows
    from curation.evaluation.leaderboard.rows import rows_of

    if options.append is None:
        return []
    rows = rows_of(result, options.name)
    recovered = append_rows(options.append, rows)
    mended = ["took away a line that an earlier run had not finished"] if recovered else []
    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    return [*mended, f"appended {count} to {printable(str(options.append))}"]


def report_result(result: Result, options: argparse.Namespace) -> int:
    """Write what ``--out`` and ``--append`` ask for, and print the result; 0."""
    for note in result.notes:
        warn(note)
    written = []
    if options.out:
        for missing in (one.missing for one in result.drawings if one.draw is None and one.missing):
            warn(missing)
        with stage("writing"):
            written = result.save(options.out)
    lines = [*result.lines(), *(f"wrote {path}" for path in written), *append_result(result.data, options)]
    emit(result.json_data(), lines, as_json=options.json)
    return 0
