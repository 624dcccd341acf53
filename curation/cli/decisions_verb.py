"""``curation decisions``: what recorded verdicts say, before anything is done with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from curation.cli.options import RuleOptions
from curation.cli.output import Answer, Table, counted_examples, printable, table_lines
from curation.cli.outputs import OutputFile

if TYPE_CHECKING:
    from curation.decisions.agreement import Kappa, ListCount, StageAgreement
    from curation.decisions.application import Staleness
    from curation.decisions.authors_files import CategoryFinding
    from curation.decisions.files import DecisionFile
    from curation.decisions.resolution import Conflict, Resolution


MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class _Report:
    """All that is told of some decisions files."""

    files: Sequence[DecisionFile]
    lists: Sequence[ListCount]
    resolution: Resolution
    agreement: Sequence[StageAgreement]
    staleness: Staleness | None
    categories: Sequence[CategoryFinding]
    allowed: bool

    def problems(self) -> list[str]:
        """Return what ``--strict`` does not let pass."""
        found = [note for one in self.files for note in one.report.notes()]
        open_ones = self.resolution.undecided or (() if self.allowed else self.resolution.both)
        found += [f"open conflict: {one.text()}" for one in open_ones]
        found += self.staleness.notes() if self.staleness else []
        return found + [one.text() for one in self.categories if one.problem == "id_class_is_near"]


@dataclass(frozen=True)
class Options(RuleOptions):
    """What recorded verdicts say: counts, repeats, conflicts, agreement of reviewers, staleness.

    Attributes
    ----------
    files
        .jsonl or .csv, or the FindMeIfYouCan authors' manual_selection as .yaml or .json
    manifest
        report decisions that do not fit this manifest
    categories
        the authors' lists of categories (.yaml, .json): report ID classes in the near list
    out
        write the resolved decisions: .jsonl or .csv
    strict
        exit with 1 where conflicts are open, decisions are stale, a line is cut off, or an ID class is
        near
    """

    files: tuple[Path, ...]
    _: KW_ONLY
    manifest: Annotated[str | None, "M"] = None
    categories: Path | None = None
    out: Annotated[Path | None, OutputFile()] = None
    strict: bool = False


def run(options: Options) -> Answer:
    """Print the report; 1 under ``--strict`` where something is wrong, else 0."""
    from curation.decisions.files import write_decisions
    from curation.decisions.resolution import refuse_conflicts

    report = _report(options)
    problems = report.problems()
    refused = bool(options.strict and problems)
    if options.out and not refused:
        if not options.allow_conflicts:
            refuse_conflicts(report.resolution.both)
        write_decisions(options.out, report.resolution.decisions)
    return Answer(_data(report, problems), _lines(report, problems, options, refused=refused), int(refused))


def _report(options: Options) -> _Report:
    from curation.decisions.agreement import agreement, count_lists
    from curation.decisions.application import find_stale
    from curation.decisions.authors_files import check_categories, read_category_lists
    from curation.decisions.files import read_decision_files
    from curation.decisions.resolution import resolve, standing_verdicts
    from curation.manifest.locate import load_manifest

    files = read_decision_files(options.files)
    rows = [one for file in files for one in file.decisions]
    resolution = resolve(rows, options.rule, seniors=options.senior, allow_conflicts=True)
    return _Report(
        files=files,
        lists=count_lists(rows),
        resolution=resolution,
        agreement=agreement(standing_verdicts(rows)),
        staleness=find_stale(load_manifest(options.manifest), resolution.decisions) if options.manifest else None,
        categories=check_categories(read_category_lists(options.categories)) if options.categories else (),
        allowed=options.allow_conflicts,
    )


def _data(report: _Report, problems: list[str]) -> dict[str, Any]:
    return {
        "files": [
            {
                "name": one.report.name,
                "format": one.report.format,
                "sha256": one.digest,
                "rows": one.report.rows,
                "torn": one.report.torn,
            }
            for one in report.files
        ],
        "lists": [
            {**asdict(one), "reasons": {name: list(counts) for name, counts in one.reasons.items()}}
            for one in report.lists
        ],
        "resolution": resolution_data(report.resolution),
        "agreement": [asdict(one) for one in report.agreement],
        "staleness": asdict(report.staleness) if report.staleness is not None else None,
        "categories": [asdict(one) for one in report.categories],
        "problems": problems,
    }


def _lines(report: _Report, problems: list[str], options: Options, *, refused: bool) -> list[str]:
    resolution = report.resolution
    tables = [_file_table(report.files), _list_table(report.lists)]
    if resolution.conflicts:
        tables.append(conflict_table(resolution.conflicts))
    tables += [_agreement_table(one) for one in report.agreement]
    if problems:
        more = [f"and {len(problems) - MOST_SHOWN} more"] if len(problems) > MOST_SHOWN else []
        tables.append(note_table("Problems", [*problems[:MOST_SHOWN], *more]))
    if notes := [one.text() for one in report.categories if one.problem != "id_class_is_near"]:
        tables.append(note_table("Categories", notes))
    lines = [line for table in tables for line in table_lines(table)]
    if report.staleness is not None and not report.staleness:
        lines.append("no decision is stale")
    lines.append(
        f"{len(resolution.decisions)} decisions stand by the rule {resolution.rule!r} "
        f"({resolution.superseded} rows superseded, {resolution.repeated} repeated, "
        f"{resolution.abstained} abstain, {len(resolution.undecided)} images undecided): {resolution.digest}"
    )
    if refused:
        return [*lines, "refused: see the problems"]
    return [*lines, f"wrote {printable(str(options.out))}"] if options.out else lines


def _file_table(files: Sequence[DecisionFile]) -> Table:
    rows = tuple((one.report.name, one.report.format, str(one.report.rows), one.digest[:19]) for one in files)
    return Table("Files", ("file", "format", "rows", "digest"), rows)


def _list_table(lists: Sequence[ListCount]) -> Table:
    rows = tuple(
        (
            one.stage,
            one.action,
            one.dataset or "-",
            str(one.listed),
            str(one.unique),
            counted_examples(one.repeated) if one.repeated else "-",
            _reasons(one),
        )
        for one in lists
    )
    columns = ("stage", "action", "of", "rows", "images", "listed again", "reasons")
    return Table("Lists", columns, rows)


def _reasons(one: ListCount) -> str:
    named = [
        f"{reason or 'none'} {rows}{f' ({images} images)' if images != rows else ''}"
        for reason, (rows, images) in one.reasons.items()
        if reason or len(one.reasons) > 1
    ]
    more = f", and {len(named) - MOST_SHOWN} more" if len(named) > MOST_SHOWN else ""
    return ", ".join(named[:MOST_SHOWN]) + more or "-"


def _agreement_table(one: StageAgreement) -> Table:
    rows = [(pair.first, pair.second, str(pair.images), str(pair.same), _kappa(pair.kappa)) for pair in one.pairs]
    if one.fleiss is not None:
        fewest, most = one.fleiss.raters
        told = f"Fleiss, {fewest} to {most} verdicts an image" if fewest != most else "Fleiss"
        rows.append(("all", told, str(one.fleiss.items), "-", _kappa(one.fleiss)))
    title = f"Agreement at stage {one.stage} (Cohen's kappa of two, Fleiss' of all)"
    return Table(title, ("reviewer", "reviewer", "images of both", "same", "kappa"), tuple(rows))


def _kappa(kappa: Kappa) -> str:
    return f"undefined: {kappa.reason}" if kappa.value is None else f"{kappa.value:.3f}"


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
            "; ".join(f"{action}: {', '.join(name or 'unnamed' for name in names)}" for action, names in one.votes),
            one.outcome or "-",
        )
        for one in conflicts[:MOST_SHOWN]
    )
    return Table(_counted("Conflicts", len(conflicts)), ("image", "of", "stage", "verdicts", "outcome"), rows)


def note_table(title: str, notes: Iterable[str]) -> Table:
    """Return one row a note."""
    return Table(title, ("",), tuple((note,) for note in notes))


def _counted(title: str, count: int) -> str:
    return f"{title} (the first {MOST_SHOWN} of {count})" if count > MOST_SHOWN else title
