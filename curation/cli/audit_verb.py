"""``curation audit``: is this benchmark sound? Rules on a manifest, or on any folder of somebody's lists."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from curation.cli.output import add_amount_options, emit, table_lines, warn
from curation.cli.outputs import NewFolder, OutputFile
from curation.cli.source_options import add_source_options, open_sources, pairs

if TYPE_CHECKING:
    from curation.audit.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation audit``."""
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="a manifest (folder or NAME@VERSION), or a folder of .txt and .json lists",
    )
    add_source_options(parser)
    parser.add_argument(
        "--exhaustive",
        action="append",
        default=[],
        metavar="NAME",
        help="this source misses no object of any of its classes (known of COCO and VOC annotation files; repeatable)",
    )
    parser.add_argument(
        "--tasks",
        metavar="TASKS",
        help="classes of each task of a folder's lists: reowod, ore (m-owodb), s-owodb, a .json or .toml file, or a "
        "manifest",
    )
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        help="the dataset of ids whose form does not tell it (default: that of the sources, where they share one)",
    )
    parser.add_argument(
        "--role",
        action="append",
        default=[],
        metavar="LIST=ROLE[:TASK]",
        help="what a list of a folder is: train, finetune, val, test, or none; LIST[1-1000] for some lines "
        "(default: guessed from its name; repeatable)",
    )
    parser.add_argument(
        "--view",
        action="append",
        default=[],
        metavar="ROLE=VIEW",
        help="the labels that lists of a role carry: as the principle says for train, finetune, val or test, or "
        "known=keep,previous=drop,unknown=rename:unknown (repeatable)",
    )
    parser.add_argument(
        "--labels",
        action="append",
        default=[],
        metavar="LIST[:TASK]=FILE",
        help="the labels of a list as they were written out, COCO JSON (repeatable)",
    )
    parser.add_argument(
        "--photos",
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="the photos of a source (repeatable)",
    )
    parser.add_argument(
        "--exemplars",
        type=int,
        default=50,
        metavar="N",
        help="images of each class in a finetuning list (50)",
    )
    parser.add_argument(
        "--rules", metavar="NAMES", help="only these rules or principles, such as CO1,DS2 or DS"
    )
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning"),
        default="error",
        help="what makes the exit status 1 (error)",
    )
    parser.add_argument(
        "--report", type=OutputFile(), metavar="FILE", help="write the report as one HTML page"
    )
    parser.add_argument(
        "--out",
        type=NewFolder(),
        metavar="DIR",
        help="write audit.json, report.html and the tables as CSV into a new folder",
    )
    add_amount_options(parser, "every rule and list")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> int:
    """Print what needs attention, or with ``--all`` what every rule found; 0 when none is broken, else 1."""
    from curation.audit.judgement import label_warnings
    from curation.audit.run import audit, source_slots, subject_of
    from curation.storage import write_text

    subject = subject_of(options.target)
    names = [text.partition("=")[0].partition("@")[0] for text in options.source]
    report = audit(
        subject,
        open_sources(options, source_slots(subject, names)),
        exhaustive=options.exhaustive,
        tasks=options.tasks or "",
        namespace=options.namespace or "",
        roles=pairs(options.role, "--role"),
        views=pairs(options.view, "--view"),
        labels=pairs(options.labels, "--labels"),
        photos=pairs(options.photos, "--photos"),
        exemplars=options.exemplars,
        rules=options.rules or "",
        fail_on=options.fail_on,
        cache=not options.no_cache,
        bad_boxes=options.bad_boxes,
    )
    if options.report:
        write_text(options.report, report.html())
    if options.out:
        report.save(options.out)
    for text in label_warnings(report.target):
        warn(text)
    emit(report.data(), _lines(report, options), as_json=options.json)
    return report.exit_status


def _lines(report: Report, options: argparse.Namespace) -> list[str]:
    from curation.cli.audit_tables import audit_tables

    tables = [] if options.quiet else audit_tables(report, whole=options.all)
    lines = [line for table in tables for line in table_lines(table)]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.tally().items())
    return [*lines, f"{counts}: {'the audit failed' if report.failed else 'no rule is broken'}"]
