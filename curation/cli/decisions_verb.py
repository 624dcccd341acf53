"""``curation decisions``: what recorded verdicts say, before anything is done with them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.decision_options import (
    MOST_SHOWN,
    add_rule_options,
    conflict_table,
    note_table,
    read_files,
    resolution_data,
    staleness_data,
)
from curation.cli.output import Table, counted_examples, emit, printable, table_lines
from curation.cli.outputs import OutputFile

if TYPE_CHECKING:
    from curation.decisions.agreement import Kappa, StageAgreement
    from curation.decisions.category_lists import CategoryFinding
    from curation.decisions.files import DecisionFile
    from curation.decisions.resolution import Resolution
    from curation.decisions.staleness import Staleness
    from curation.decisions.tables import ListCount


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation decisions``."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help=".jsonl or .csv, or the FindMeIfYouCan authors' manual_selection as .yaml or .json",
    )
    parser.add_argument("--manifest", metavar="M", help="report decisions that do not fit this manifest")
    parser.add_argument(
        "--categories",
        type=Path,
        metavar="FILE",
        help="the authors' lists of categories (.yaml, .json): report ID classes in the near list",
    )
    add_rule_options(parser)
    parser.add_argument(
        "--out", type=OutputFile(), metavar="FILE", help="write the resolved decisions: .jsonl or .csv"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit with 1 where conflicts are open, decisions are stale, a line is cut off, or an ID class is near",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    """Print the report; 1 under ``--strict`` where something is wrong, else 0."""
    report = _report(options)
    problems = report.problems()
    refused = bool(options.strict and problems)
    if options.out and not refused:
        _write(options, report.resolution)
    emit(_data(report, problems), _lines(report, problems, options, refused=refused), as_json=options.json)
    return int(refused)


def _report(options: argparse.Namespace) -> _Report:
    from curation.decisions.agreement import agreement
    from curation.decisions.category_lists import check_categories, read_category_lists
    from curation.decisions.resolution import resolve, standing_verdicts
    from curation.decisions.staleness import find_stale
    from curation.decisions.tables import count_lists
    from curation.manifest.locate import load_manifest

    files = read_files(options.files)
    rows = [one for file in files for one in file.decisions]
    resolution = resolve(rows, options.rule, seniors=options.senior, allow_conflicts=True)
    return _Report(
        files=files,
        lists=count_lists(rows),
        resolution=resolution,
        agreement=agreement(standing_verdicts(rows)),
        staleness=find_stale(load_manifest(options.manifest), resolution.decisions)
        if options.manifest
        else None,
        categories=check_categories(read_category_lists(options.categories)) if options.categories else (),
        allowed=options.allow_conflicts,
    )


def _write(options: argparse.Namespace, resolution: Resolution) -> None:
    from curation.decisions.files import write_decisions
    from curation.decisions.resolution import refuse_conflicts

    if not options.allow_conflicts:
        refuse_conflicts(resolution.both)
    write_decisions(options.out, resolution.decisions)


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
        "staleness": staleness_data(report.staleness) if report.staleness is not None else None,
        "categories": [asdict(one) for one in report.categories],
        "problems": problems,
    }


def _lines(report: _Report, problems: list[str], options: argparse.Namespace, *, refused: bool) -> list[str]:
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
    rows = [
        (pair.first, pair.second, str(pair.images), str(pair.same), _kappa(pair.kappa)) for pair in one.pairs
    ]
    if one.fleiss is not None:
        fewest, most = one.fleiss.raters
        told = f"Fleiss, {fewest} to {most} verdicts an image" if fewest != most else "Fleiss"
        rows.append(("all", told, str(one.fleiss.items), "-", _kappa(one.fleiss)))
    title = f"Agreement at stage {one.stage} (Cohen's kappa of two, Fleiss' of all)"
    return Table(title, ("reviewer", "reviewer", "images of both", "same", "kappa"), tuple(rows))


def _kappa(kappa: Kappa) -> str:
    return f"undefined: {kappa.reason}" if kappa.value is None else f"{kappa.value:.3f}"
