"""``curation audit``: is this benchmark sound? Rules on a manifest, or on any folder of lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from curation.cli.output import Amount, Answer, Line, Table, warn
from curation.cli.outputs import FILE_OR_NEW_FOLDER, Output
from curation.core.errors import UsageError
from curation.core.wording import counted
from curation.core.writing import write_text
from curation.extensions.audit.repair import repair_lines
from curation.extensions.audit.report import SHOWN_EXAMPLES, Gravity, Report, Statement, by_need
from curation.extensions.audit.rule import reading_doubts
from curation.extensions.audit.run import audit
from curation.review.decisions.pairs import judged_data, judged_lines


def _check_repaired(path: Path) -> None:
    """Raise if the folder exists. It may be the audited folder, so the error does not advise to remove it."""
    if path.exists():
        expected = "a folder that does not exist"
        raise UsageError("The folder exists", where=f"--repair {path}", expected=expected, hint="choose another name")


_REPAIRED = Output(_check_repaired, replaces=False)
GROUP = "Lists of others"
SUMMARY = "check lists against the rules of a sound benchmark"
_TITLES: dict[Gravity, str] = {
    "error": "Errors",
    "warning": "Warnings",
    "undecidable": "Undecidable, and what is missing",
    "note": "Notes",
    "pass": "Checks passed",
}
_SHOWN_LISTS = 20
_SHOWN_STATEMENTS = 20


def run(
    report: Annotated[Report, audit],
    /,
    *,
    amount: Amount,
    out: tuple[Annotated[Path, FILE_OR_NEW_FOLDER, "DIR|FILE.html"], ...] = (),
    repair: Annotated[Path | None, _REPAIRED, "DIR"] = None,
) -> Answer:
    """Check a manifest, or any folder of lists, against the rules of a sound benchmark.

    Print the verdict, then errors, warnings and undecidable questions; with ``--all`` also notes and passed checks.
    Return 0 without errors, 1 with errors, and 2 if no error is found but nothing was compared, or most files or a list
    could not be read. With ``--repair``, the status is that of the repaired lists.

    Parameters
    ----------
    out
        write audit.json, report.html and, where photos are compared, pairs.csv for a person to judge into a new folder;
        or the report as one HTML page
    repair
        write the lists without the shared images, photos, groups and repeated lines that were found: training lists
        lose them, and the exit status is that of an audit of the new folder
    """
    for path in out:
        if path.suffix.lower() == ".html":
            write_text(path, report.html())
        else:
            report.save(path)
    for name, why in report.damaged.items():
        warn(f"{name} could not be read and was not checked: {why}")
    lines = [report.sums_text] if amount.quiet else [*report_lines(report, whole=amount.all), report.sums_text]
    if repair is None:
        advice = [report.next_text] if report.next_text and not amount.quiet else []
        return Answer(report.data, [*lines[:-1], *advice, *lines[-1:]], report.exit_status)
    record = report.repair(repair)
    return Answer(report.data() | {"repair": record}, [*lines, *repair_lines(record, repair)], record["status"])


def report_lines(report: Report, *, whole: bool = False) -> Iterator[Line]:
    """Yield the lines of a report except the last: verdict, statements by gravity, lists with their roles.

    Parameters
    ----------
    whole : bool
        Whether to include notes, passed rules and all lists.
    """
    yield report.verdict_text
    yield report.checked_text
    doubts = reading_doubts(report.target)
    yield from (f"doubtful: {text}" for text in (doubts if whole else doubts[:_SHOWN_LISTS]))
    if len(doubts) > _SHOWN_LISTS and not whole:
        yield f"and {len(doubts) - _SHOWN_LISTS} more doubtful files: see --all"
    for gravity, title in _TITLES.items():
        statements = by_need(statement for statement in report.statements if statement.gravity == gravity)
        if statements and (whole or gravity not in ("note", "pass")):
            yield ""
            yield f"{title}:"
            for statement in statements if whole else statements[:_SHOWN_STATEMENTS]:
                yield from _statement(statement, whole=whole)
            if not whole and len(statements) > _SHOWN_STATEMENTS:
                yield f"  and {len(statements) - _SHOWN_STATEMENTS} more: see --all"
    if report.target.judged:
        yield ""
        yield from judged_lines(judged_data(report.photo_pairs or ()))
    yield from _lists(report, show_all=whole)
    if report.not_asked and whole:
        yield ""
        yield f"Not applied, {report.not_applied_text}"
    if report.sums.notes and not whole:
        yield f"{counted(report.sums.notes, 'note')}: see --all"


def _statement(statement: Statement, *, whole: bool) -> Iterator[Line]:
    yield f"  {statement.sentence}"
    parts = statement.parts if statement.gravity in ("error", "warning") or whole else ()
    for part in parts if whole else parts[:SHOWN_EXAMPLES]:
        yield f"         {part['about']}: {part['text']}"
    for text in statement.examples[:SHOWN_EXAMPLES]:
        yield f"         such as {text}"
    if statement.hint:
        yield f"       {'needed' if statement.gravity == 'undecidable' else 'to fix it'}: {statement.hint}"
    if statement.limits and statement.gravity in ("error", "warning"):
        yield f"       does not show: {statement.limits}"


def _lists(report: Report, *, show_all: bool) -> Iterator[Line]:
    """Yield the table of lists with their guessed or declared roles and the reasons."""
    if report.target.kind == "manifest" and not show_all:
        return
    rows: list[tuple[str, ...]] = []
    for row in report.lists():
        lines = "" if row["lines"] is None else f"{row['lines']:,}"
        rows.append((row["name"].removeprefix(report.folder), lines, row["role"] or "none", row["family"], row["why"]))
    printed = rows if show_all else rows[:_SHOWN_LISTS]
    if printed:
        title = "Lists and their roles" + (f" in {report.folder}" if report.folder else "")
        table = Table(title, ("list", "lines", "role", "family", "known by"), tuple(printed))
        yield ""
        yield table
    if len(rows) > len(printed):
        yield f"and {len(rows) - len(printed)} more lists: see --all"
    if report.unread:
        yield ""
        shown_files = report.unread if show_all else report.unread[:_SHOWN_LISTS]
        yield Table("Files that were not read", ("file", "first line", "why"), tuple(shown_files))
        if len(report.unread) > len(shown_files):
            yield f"and {len(report.unread) - len(shown_files)} more files: see --all"
