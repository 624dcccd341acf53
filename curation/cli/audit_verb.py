"""``curation audit``: is this benchmark sound? Rules on a manifest, or on any folder of somebody's lists."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

from curation.cli.options import Amount, SourceOptions
from curation.cli.output import Answer, table_lines, warn
from curation.cli.outputs import NewFolder, OutputFile
from curation.cli.signature import pairs


@dataclass(frozen=True)
class Options(SourceOptions, Amount):
    """Check a manifest, or any folder of lists, against the rules of a sound benchmark.

    Attributes
    ----------
    target
        a manifest (folder or NAME@VERSION), or a folder of .txt and .json lists
    exhaustive
        this source misses no object of any of its classes (known of COCO and VOC annotation files;
        repeatable)
    tasks
        classes of each task of a folder's lists: reowod, ore (m-owodb), s-owodb, a .json or .toml file,
        or a manifest
    namespace
        the dataset of ids whose form does not tell it (default: that of the sources, where they share
        one)
    role
        what a list of a folder is: train, finetune, val, test, or none; LIST[1-1000] for some lines
        (default: guessed from its name; repeatable)
    view
        the labels that lists of a role carry: as the principle says for train, finetune, val or test,
        or known=keep,previous=drop,unknown=rename:unknown (repeatable)
    labels
        the labels of a list as they were written out, COCO JSON (repeatable)
    photos
        the photos of a source (repeatable)
    exemplars
        images of each class in a finetuning list
    rules
        only these rules or principles, such as CO1,DS2 or DS
    fail_on
        what makes the exit status 1
    report
        write the report as one HTML page
    out
        write audit.json, report.html and the tables as CSV into a new folder
    """

    target: str
    _: KW_ONLY
    exhaustive: tuple[Annotated[str, "NAME"], ...] = ()
    tasks: Annotated[str | None, "TASKS"] = None
    namespace: Annotated[str | None, "NAME"] = None
    role: tuple[Annotated[str, "LIST=ROLE[:TASK]"], ...] = ()
    view: tuple[Annotated[str, "ROLE=VIEW"], ...] = ()
    labels: tuple[Annotated[str, "LIST[:TASK]=FILE"], ...] = ()
    photos: tuple[Annotated[str, "NAME=DIR"], ...] = ()
    exemplars: int = 50
    rules: Annotated[str | None, "NAMES"] = None
    fail_on: Literal["error", "warning"] = "error"
    report: Annotated[Path | None, OutputFile()] = None
    out: Annotated[Path | None, NewFolder(), "DIR"] = None


def run(options: Options) -> Answer:
    """Print what needs attention, or with ``--all`` what every rule found; 0 when none is broken, else 1."""
    from curation.audit.judgement import label_warnings
    from curation.audit.run import audit
    from curation.cli.audit_tables import audit_tables
    from curation.storage import write_text

    report = audit(
        options.target,
        options.sources,
        exhaustive=options.exhaustive,
        tasks=options.tasks,
        namespace=options.namespace,
        roles=pairs(options.role, "--role"),
        views=pairs(options.view, "--view"),
        labels=pairs(options.labels, "--labels"),
        photos=pairs(options.photos, "--photos"),
        exemplars=options.exemplars,
        rules=options.rules,
        fail_on=options.fail_on,
        reading=options.reading,
    )
    if options.report:
        write_text(options.report, report.html())
    if options.out:
        report.save(options.out)
    for text in label_warnings(report.target):
        warn(text)
    tables = [] if options.quiet else audit_tables(report, whole=options.all)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.tally().items())
    verdict = f"{counts}: {'the audit failed' if report.failed else 'no rule is broken'}"
    lines = [line for table in tables for line in table_lines(table)]
    return Answer(report.data(), [*lines, verdict], report.exit_status)
