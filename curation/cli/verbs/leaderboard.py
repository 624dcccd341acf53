"""``curation leaderboard``: rows that ``curation evaluate --append`` wrote, ranked where they are comparable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from curation.cli.output import Answer, Table, table_lines, warn
from curation.cli.outputs import FileOrNewFolder
from curation.errors import UsageError
from curation.evaluation.leaderboard.board import Group, Leaderboard, leaderboard
from curation.evaluation.leaderboard.exchange import FORMS, Origin, write_records
from curation.storage import write_text

_FORMS = {".html": "html", ".md": "markdown", ".csv": "csv", ".tex": "latex"}


def run(
    made: Annotated[Leaderboard, leaderboard],
    /,
    *,
    form: Annotated[Literal["text", "html", "markdown", "csv", "latex", "eee", "hub"] | None, "--format"] = None,
    out: Annotated[Path | None, FileOrNewFolder()] = None,
    origin: Origin,
) -> Answer:
    """Results of several methods, ranked where they are comparable.

    Parameters
    ----------
    form
        tables for a terminal, a page, a text or a paper; eee: Every Eval Ever records, into a folder; hub: entries of
        the .eval_results of a model's repository (default: by the suffix of --out, .html, .md, .csv or .tex, else text)
    out
        write to this file, for eee to a new folder (default: print)
    """
    if made.torn:
        warn(f"{made.file}: the last line is cut off and was left out: {made.torn}")
    chosen: str = form or _FORMS.get(out.suffix.lower() if out else "", "text")
    if chosen == "eee":
        if out is None:
            raise UsageError("Every Eval Ever records are files", expected="--out FOLDER")
        lines = [f"wrote {path}" for path in write_records(made, origin, out)] or ["No row has a defined number."]
    else:
        text = "\n".join(_board_lines(made)) + "\n" if chosen == "text" else FORMS[chosen](made, origin)
        lines = text.splitlines() if out is None else [f"wrote {out}"]
        if out is not None:
            write_text(out, text)
    return Answer(made.as_data(), lines)


def _board_lines(made: Leaderboard) -> list[str]:
    return [line for group in made.groups for line in _lines(group)] or ["The file holds no row."]


def _lines(group: Group) -> list[str]:
    key, metric = group.key, group.metrics[group.metric]
    facts = (
        ("on", key.data),
        ("settings", key.settings),
        ("evaluator", key.evaluator),
        ("ranked by", f"{group.metric}, {metric.better} is better"),
        *(("note", note) for note in group.notes()),
    )
    rows: list[tuple[str, ...]] = [
        ("" if one.rank is None else str(one.rank), one.name, *group.cells(one)) for one in group.rows
    ]
    heads = ("rank", "method", *group.heads)
    if len({one.name for one in group.rows}) < len(group.rows):
        # Only where a name alone does not tell rows apart: the column takes room from the numbers.
        heads = (*heads, "read at")
        rows = [(*row, one.point) for row, one in zip(rows, group.rows, strict=True)]
    about = [f"  {name}: {text}" for name, text in facts if text]
    table = table_lines(Table(f"Group {group.number}: {group.title}", heads, tuple(rows)))
    return [table[0], *about, *table[1:]]
