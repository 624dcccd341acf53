"""``curation review``: judge images in the FiftyOne App and record decisions that can be replayed."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, Line, Table, warn
from curation.cli.outputs import KEPT, output_file, output_folder
from curation.cli.verbs.review.decisions import apply, conflict_table, judgement_tables, summary
from curation.cli.verbs.review.propose import propose
from curation.core.wording import counted, examples
from curation.review.app.live_review import REVIEWER_VARIABLE
from curation.review.app.session import Started, adjudicate_folder, review_from_files
from curation.review.decisions.pairs import judged_data, judged_lines
from curation.review.decisions.review_folder import (
    DROPS,
    LOG_FILE,
    Progress,
    export_decisions,
    folder_pairs,
    folder_progress,
)

Folder = Annotated[Path, KEPT, "DIR"]


def start(
    *,
    folder: Folder,
    started: Annotated[Started, review_from_files],
    no_app: bool = False,
    remote: bool = False,
    port: Annotated[str | None, "N"] = None,
) -> Answer:
    """Make or continue a review and open the App.

    Parameters
    ----------
    remote
        serve the App without opening a browser here
    """
    return _begun(folder, started, port, no_app=no_app, remote=remote)


def adjudicate(
    *,
    folder: Folder,
    started: Annotated[Started, adjudicate_folder],
    no_app: bool = False,
    remote: bool = False,
    port: Annotated[str | None, "N"] = None,
) -> Answer:
    """Open the conflicts of a review for a third person, whose decisions settle them.

    Parameters
    ----------
    remote
        serve the App without opening a browser here
    """
    return _begun(folder, started, port, no_app=no_app, remote=remote)


def _begun(folder: Path, started: Started, port: str | None, *, no_app: bool, remote: bool) -> Answer:
    data = {
        "dataset": started.record.dataset,
        "log": str(started.review.book.path),
        "images": started.record.images,
        "batches": len(started.record.batches),
        "left_out": started.record.left_out,
        "bad_photos": started.record.bad_photos,
        "built": started.built,
        "replayed": started.replayed,
        "reviewer": os.environ.get(REVIEWER_VARIABLE, ""),
    }
    for reason, count in started.record.left_out.items():
        warn(f"{counted(count, 'image')} not shown: {reason}")
    for why, ids in started.record.bad_photos.items():
        warn(f"{counted(len(ids), 'image')} not shown, photo {why}: {examples(ids)}")
    serve = None if no_app else partial(_serve, started, port, remote=remote)
    return Answer(data, _start_lines(started, folder), then=serve)


def _start_lines(started: Started, folder: Path) -> list[str]:
    record = started.record
    how = "built" if started.built else "continued"
    _, progress = folder_progress(folder)
    return [
        f"Review {record.dataset!r} {how}: {counted(record.images, 'image')} in "
        f"{counted(len(record.batches), 'batch', 'batches')}, "
        f"{progress.decided:,} decided",
        f"Decisions log: {started.review.book.path}",
    ]


def _serve(started: Started, port: str | None, *, remote: bool) -> None:
    """Keep the App open until Ctrl-C, or until the process is asked to terminate."""
    import sys
    from contextlib import redirect_stdout

    from curation.review.app.serving import find_port, serve

    number = find_port(port)

    def at_work(address: str) -> None:
        print(f"Reviewer: {os.environ[REVIEWER_VARIABLE]}", file=sys.stderr)
        print(f"The App is at {address} ; Ctrl-C ends it, nothing is lost", file=sys.stderr, flush=True)

    # FiftyOne prints its connections to standard output, which holds the result.
    with redirect_stdout(sys.stderr):
        serve(started.review.dataset, number, at_work=at_work, browser=not remote)
    print("\nthe App is closed; every decision is in the log", file=sys.stderr)


def status(*, folder: Folder) -> Answer:
    """Show progress, agreement, open conflicts and what remains; needs no database.

    Parameters
    ----------
    folder
        folder of the review and its log
    """
    from curation.review.decisions.from_files import report_decisions

    record, progress = folder_progress(folder)
    report = report_decisions((folder,)) if (folder / LOG_FILE).exists() else None
    judgements = {} if report is None else report.data()
    data = {
        "dataset": record.dataset,
        "stage": record.stage,
        "manifest": record.manifest,
        "blind": record.blind,
        **asdict(progress),
        **{name: judgements.get(name) for name in ("agreement", "accuracy", "remainder")},
        "open": [] if report is None else [conflict.text() for conflict in report.resolution.both],
        "left_out": record.left_out,
        "bad_photos": record.bad_photos,
        "judged": judged_data(folder_pairs(folder)),
    }
    lines = [*_status_lines(progress), *_bad_photo_lines(record.bad_photos)]
    if report is not None:
        lines += judgement_tables(report)
        lines += [conflict_table(report.resolution.both)] if report.resolution.both else []
        lines += [report.remainder.text()] if report.remainder else []
        lines += judged_lines(data["judged"])
    lines += [f"{counted(count, 'image')} not shown: {reason}" for reason, count in record.left_out.items()]
    return Answer(data, lines)


def _bad_photo_lines(bad: dict[str, list[str]]) -> list[Line]:
    """Return a table of the photos that cannot be opened, by problem; ``--json`` names every photo."""
    rows = tuple((why, f"{len(ids):,}", examples(ids)) for why, ids in bad.items())
    return [Table("Photos that cannot be shown", ("what is wrong", "images", "ids"), rows)] if rows else []


def _status_lines(progress: Progress) -> list[Line]:
    verdicts = ", ".join(f"{word} {count}" for word, count in progress.verdicts.items())
    decided = f"{progress.decided:,} of {progress.images:,} images decided"
    reviewers = [
        (row.reviewer or "unnamed", f"{row.images:,}", ", ".join(f"{word} {n}" for word, n in row.verdicts.items()))
        for row in progress.reviewers
    ]
    table = Table("Reviewers", ("reviewer", "images", "decisions"), tuple(reviewers))
    lines: list[Line] = [f"{decided}{f': {verdicts}' if verdicts else ''}", "", *([table] if reviewers else [])]
    if progress.strangers:
        lines.append(f"{progress.strangers:,} decided images have left the review")
    return lines


def export(
    *,
    folder: Folder,
    out: Annotated[Path, output_file(".jsonl", ".csv")],
    drops: Annotated[Path | None, output_folder(DROPS[0]), "DIR"] = None,
) -> Answer:
    """Write the current decisions to a file.

    Parameters
    ----------
    folder
        folder of the review and its log
    out
        a .jsonl or .csv file; of pairs a .csv file for --judged of `similarity leaks` and `audit`
    drops
        of pairs: write drop-left.txt and drop-right.txt, the images that either side may drop
    """
    written = export_decisions(folder, out, drops)
    data = {"path": str(written.path), "rows": written.rows, "actions": written.actions, "log": written.log}
    actions = ", ".join(f"{action} {count}" for action, count in written.actions.items())
    return Answer(data, [f"{counted(written.rows, 'decision')} written to {written.path}: {actions or 'none'}"])


METAVAR = "STEP"
COMMANDS = {"propose": propose, "start": start, "status": status, "adjudicate": adjudicate, "export": export,
            "summary": summary, "apply": apply}  # fmt: skip
