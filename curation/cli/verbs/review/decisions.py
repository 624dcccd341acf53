"""``curation review summary`` and ``apply``: a summary of recorded decisions, and a manifest with them applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, Line, Table, counted_examples
from curation.cli.outputs import NEW_MANIFEST, output_file
from curation.manifest.manifest import write_manifest
from curation.review.decisions.agreement import Accuracy, ListCount, StageAgreement
from curation.review.decisions.application import UNJUDGED, Application, Coverage
from curation.review.decisions.files import DecisionFile
from curation.review.decisions.from_files import DecisionReport, apply_from_files, report_decisions
from curation.review.decisions.resolution import Conflict

MOST_SHOWN = 20


def summary(
    report: Annotated[DecisionReport, report_decisions],
    /,
    *,
    out: Annotated[Path | None, output_file(".jsonl", ".csv")] = None,
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
    tables.append(_list_table(report.lists))
    if report.coverage:
        tables.append(coverage_table(report.coverage))
    elif any(file.codes for file in report.files):
        tables.append(note_table(UNJUDGED, ["--manifest M counts the images without a decision."]))
    if resolution.conflicts:
        tables.append(conflict_table(resolution.conflicts))
    tables += judgement_tables(report)
    if problems:
        more = [f"and {len(problems) - MOST_SHOWN} more"] if len(problems) > MOST_SHOWN else []
        tables.append(note_table("Problems", [*problems[:MOST_SHOWN], *more]))
    lines: list[Line] = [*tables]
    if report.remainder is not None:
        lines.append(report.remainder.text())
    if report.staleness is not None and not report.staleness:
        lines.append("no decision is stale")
    lines.append(
        f"{len(resolution.decisions)} decisions count under the rule {resolution.rule!r} "
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
            # In other formats, repeats are rows of a log.
            counted_examples(row.repeated) if row.format == "table" else "-",
            row.sha256[:19],
        )
        for row in files
    )
    return Table("Files", ("file", "format", "rows", "images repeated", "digest"), rows)


def coverage_table(coverage: Sequence[Coverage]) -> Table:
    """Return the number of judged images of each part, and of the images that each way of cleaning leaves."""
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
        )
        for row in lists
    )
    columns = ("stage", "action", "of", "rows", "images", "listed again")
    return Table("Lists", columns, rows)


def judgement_tables(report: DecisionReport) -> list[Table]:
    """Return how far reviewers agree: with each other, by action, reason and class, and with gold decisions."""
    tables = []
    for stage in report.agreement:
        tables.append(_agreement_table(stage))
        rows = tuple((row.by, row.name, f"{row.kappa.items:,}", row.kappa.text()) for row in stage.slices)
        if rows:
            title = f"Agreement at stage {stage.stage}, by decision, reason and ID class"
            tables.append(Table(title, ("by", "which", "images", "kappa (95 %)"), rows))
    return [*tables, *([_accuracy_table(report.accuracy)] if report.accuracy else [])]


def _accuracy_table(scores: Sequence[Accuracy]) -> Table:
    rows = tuple(
        (row.reviewer, f"{row.images:,}", f"{row.same:,}", f"{row.share:.3f} ({row.low:.3f} to {row.high:.3f})")
        for row in scores
    )
    return Table("Agreement with gold decisions", ("reviewer", "images", "same", "share (95 %)"), rows)


def _agreement_table(agreement: StageAgreement) -> Table:
    rows = [(pair.first, pair.second, str(pair.images), str(pair.same), pair.kappa.text()) for pair in agreement.pairs]
    if agreement.fleiss is not None:
        fewest, most = agreement.fleiss.raters
        raters = f"Fleiss, {fewest} to {most} decisions per image" if fewest != most else "Fleiss"
        rows.append(("all", raters, str(agreement.fleiss.items), "-", agreement.fleiss.text()))
    title = f"Agreement at stage {agreement.stage} (Cohen's kappa of two, Fleiss' of all)"
    return Table(title, ("reviewer", "reviewer", "images of both", "same", "kappa (95 %)"), tuple(rows))


def conflict_table(conflicts: Sequence[Conflict]) -> Table:
    """Return a row for each image with different decisions."""
    rows = tuple(
        (
            row.image_id,
            row.dataset or "-",
            row.stage,
            "; ".join(f"{action}: {', '.join(map(row.voter, names))}" for action, names in row.votes),
            row.outcome or "-",
        )
        for row in conflicts[:MOST_SHOWN]
    )
    title = "Conflicts" + (f" (the first {MOST_SHOWN} of {len(conflicts)})" if len(conflicts) > MOST_SHOWN else "")
    return Table(title, ("image", "of", "stage", "decisions", "outcome"), rows)


def note_table(title: str, notes: Iterable[str]) -> Table:
    """Return a row for each note."""
    return Table(title, ("",), tuple((note,) for note in notes))


def apply(applied: Annotated[Application, apply_from_files], /, *, out: Annotated[Path, NEW_MANIFEST, "DIR"]) -> Answer:
    """Apply recorded decisions to a manifest: a new version that names their digest.

    Parameters
    ----------
    out
        folder of the new manifest
    """
    write_manifest(applied.manifest, out)
    return Answer({**applied.data(), "out": str(out)}, _applied_lines(applied, out))


def _applied_lines(applied: Application, out: Path) -> list[Line]:
    base, resolution = applied.base, applied.resolution
    made = applied.manifest
    before = {part.name: part.images for part in base.header.parts}
    rows = tuple(
        (
            diff.part,
            str(before.get(diff.part, "new")),
            str(made.part(diff.part).images),
            counted_examples(diff.removed),
            counted_examples(diff.added),
        )
        for diff in applied.changes
    )
    tables = [Table("Parts that changed", ("part", "before", "now", "left", "joined"), rows)]
    if resolution.conflicts:
        tables.append(conflict_table(resolution.conflicts))
    counted = {part.name for part in base.header.parts if part.boxes} | (made.lists.keys() - before.keys())
    uncounted = [diff.part for diff in applied.changes if diff.part in counted and not made.part(diff.part).boxes]
    if uncounted:
        hint = f"Objects are not counted in {', '.join(uncounted)}: give --source for each of their sources."
        tables.append(note_table("Counts", [hint]))
    if applied.coverage:
        tables.append(coverage_table(applied.coverage))
    lines: list[Line] = [table for table in tables if table.rows]
    summary = [f"decisions: {len(resolution.decisions)}, {resolution.digest}"] if resolution.decisions else []
    return [*lines, f"{made.header.name} {made.header.version}  {made.digest}", *summary, f"written to {out}"]
