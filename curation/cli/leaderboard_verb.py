"""``curation leaderboard``: rows that ``curation evaluate --append`` wrote, ranked where they are comparable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, Table, printable, table_lines, warn
from curation.cli.outputs import OutputFile
from curation.evaluation.leaderboard.board import Group, Leaderboard, leaderboard
from curation.storage import write_text


def run(made: Annotated[Leaderboard, leaderboard], /, *, html: Annotated[Path | None, OutputFile()] = None) -> Answer:
    """Results of several methods, ranked where they are comparable.

    Parameters
    ----------
    html
        write the tables as one HTML page
    """
    if made.torn:
        warn(f"{made.file}: the last line is cut off and was left out: {made.torn}")
    lines = [line for group in made.groups for line in _lines(group)] or ["The file holds no row."]
    if html:
        write_text(html, made.html())
        lines.append(f"wrote {html}")
    return Answer(made.as_data(), lines)


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
    about = [f"  {name}: {printable(text)}" for name, text in facts if text]
    table = table_lines(Table(f"Group {group.number}: {group.title}", heads, tuple(rows)))
    return [table[0], *about, *table[1:]]
