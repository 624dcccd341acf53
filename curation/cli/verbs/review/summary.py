"""``curation review summary``: what recorded decisions say before anything is done with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, Line, Table, counted_examples
from curation.cli.outputs import OUTPUT_FILE
from curation.review.decisions.agreement import Kappa, ListCount, StageAgreement
from curation.review.decisions.application import UNJUDGED, Coverage
from curation.review.decisions.files import DecisionFile
from curation.review.decisions.from_files import DecisionReport, report_decisions
from curation.review.decisions.resolution import Conflict

MOST_SHOWN = 20


def summary(
    report: Annotated[DecisionReport, report_decisions],
    /,
    *,
    out: Annotated[Path | None, OUTPUT_FILE] = None,
    strict: bool = False,
) -> Answer:
    """Summarise recorded decisions: counts, repeats, conflicts, agreement of reviewers, staleness.

    Parameters
    ----------
    out
        write the resolved decisions: .jsonl or .csv
    strict
        exit with 1 where conflicts are open, decisions are stale, or a line is cut off
    """
    problems = report.problems()
    refused = bool(strict and problems)
    if out and not refused:
        report.save(out)
    return Answer(report.data(), _lines(report, problems, out, refused=refused), int(refused))


def _lines(report: DecisionReport, problems: list[str], out: Path | None, *, refused: bool) -> list[Line]:
    resolution = report.resolution
    tables = [_file_table(report.files)]
    if any(file.codes for file in report.files):
        tables.append(_code_table(report.files))
    tables.append(_list_table(report.lists))
    if report.coverage:
        tables.append(coverage_table(report.coverage))
    elif any(file.codes for file in report.files):
        tables.append(note_table(UNJUDGED, ["--manifest M counts those that nobody judged."]))
    if resolution.conflicts:
        tables.append(conflict_table(resolution.conflicts))
    tables += [_agreement_table(stage) for stage in report.agreement]
    if problems:
        more = [f"and {len(problems) - MOST_SHOWN} more"] if len(problems) > MOST_SHOWN else []
        tables.append(note_table("Problems", [*problems[:MOST_SHOWN], *more]))
    lines: list[Line] = [*tables]
    if report.staleness is not None and not report.staleness:
        lines.append("no decision is stale")
    lines.append(
        f"{len(resolution.decisions)} decisions stand by the rule {resolution.rule!r} "
        f"({resolution.superseded} rows superseded, {resolution.repeated} repeated, "
        f"{resolution.abstained} abstain, {len(resolution.undecided)} images undecided): {resolution.digest}"
    )
    if refused:
        return [*lines, "refused: see the problems"]
    return [*lines, f"wrote {out}"] if out else lines


def _file_table(files: Sequence[DecisionFile]) -> Table:
    rows = tuple(
        (
            row.name,
            row.format,
            str(row.rows),
            # Of other forms repeats are rows of a log.
            counted_examples(row.repeated) if row.format == "table" else "-",
            row.sha256[:19],
        )
        for row in files
    )
    return Table("Files", ("file", "format", "rows", "images repeated", "digest"), rows)


def _code_table(files: Sequence[DecisionFile]) -> Table:
    """Return what each code stands for, and its rows in all tables together."""
    rows = Counter[tuple[str, str]]()
    for file in files:
        rows.update({(code.code, code.action): code.rows for code in file.codes})
    cells = [(code or "(blank)", action, f"{n:,}") for (code, action), n in rows.most_common()]
    return Table("Codes", ("code", "stands for", "rows"), (*cells, ("all", "", f"{rows.total():,}")))


def coverage_table(coverage: Sequence[Coverage]) -> Table:
    """Return how many images of each part were judged, and what each way of cleaning leaves."""
    rows = tuple(tuple(f"{value:,}" if isinstance(value, int) else value for value in row.data().values())
                 for row in coverage)  # fmt: skip
    columns = tuple(name.replace("-", " ") for name in coverage[0].data())
    return Table(f"Images judged, and lists without some of them. {UNJUDGED}", columns, rows)


def _list_table(lists: Sequence[ListCount]) -> Table:
    rows = tuple(
        (
            row.stage,
            row.action,
            row.dataset or "-",
            str(row.listed),
            str(row.unique),
            counted_examples(row.repeated) if row.repeated else "-",
            _reasons(row),
        )
        for row in lists
    )
    columns = ("stage", "action", "of", "rows", "images", "listed again", "reasons")
    return Table("Lists", columns, rows)


def _reasons(listed: ListCount) -> str:
    reasons = [
        f"{reason or 'none'} {rows}{f' ({images} images)' if images != rows else ''}"
        for reason, (rows, images) in listed.reasons.items()
        if reason or len(listed.reasons) > 1
    ]
    more = f", and {len(reasons) - MOST_SHOWN} more" if len(reasons) > MOST_SHOWN else ""
    return ", ".join(reasons[:MOST_SHOWN]) + more or "-"


def _agreement_table(agreement: StageAgreement) -> Table:
    rows = [
        (pair.first, pair.second, str(pair.images), str(pair.same), kappa_text(pair.kappa)) for pair in agreement.pairs
    ]
    if agreement.fleiss is not None:
        fewest, most = agreement.fleiss.raters
        raters = f"Fleiss, {fewest} to {most} verdicts an image" if fewest != most else "Fleiss"
        rows.append(("all", raters, str(agreement.fleiss.items), "-", kappa_text(agreement.fleiss)))
    title = f"Agreement at stage {agreement.stage} (Cohen's kappa of two, Fleiss' of all)"
    return Table(title, ("reviewer", "reviewer", "images of both", "same", "kappa"), tuple(rows))


def kappa_text(kappa: Kappa) -> str:
    """Return a kappa with three decimals, or why there is none."""
    return f"undefined: {kappa.reason}" if kappa.value is None else f"{kappa.value:.3f}"


def conflict_table(conflicts: Sequence[Conflict]) -> Table:
    """Return one row an image on which verdicts differ."""
    rows = tuple(
        (
            row.image_id,
            row.dataset or "-",
            row.stage,
            "; ".join(f"{action}: {', '.join(name or 'unnamed' for name in names)}" for action, names in row.votes),
            row.outcome or "-",
        )
        for row in conflicts[:MOST_SHOWN]
    )
    title = "Conflicts" + (f" (the first {MOST_SHOWN} of {len(conflicts)})" if len(conflicts) > MOST_SHOWN else "")
    return Table(title, ("image", "of", "stage", "verdicts", "outcome"), rows)


def note_table(title: str, notes: Iterable[str]) -> Table:
    """Return one row a note."""
    return Table(title, ("",), tuple((note,) for note in notes))
