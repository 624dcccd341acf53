"""``curation leaderboard``: rows that ``curation evaluate --append`` wrote, ranked where they are comparable."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from curation.cli.output import Answer, Table, printable, table_lines, warn
from curation.cli.outputs import OutputFile
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.evaluation.leaderboard.board import Group


@dataclass(frozen=True)
class Options:
    """Results of several methods, ranked where they are comparable.

    Attributes
    ----------
    file
        a .jsonl file that `evaluate --append` wrote
    metric
        rank by this number (default: the first of the protocol's)
    group
        this group alone; N,N or all asks for one ranking of them, refused with what differs
    html
        write the tables as one HTML page
    """

    file: Path
    _: KW_ONLY
    metric: Annotated[str | None, "NAME"] = None
    group: Annotated[str | None, "N"] = None
    html: Annotated[Path | None, OutputFile()] = None


def run(options: Options) -> Answer:
    """Print a table a group, and write the page that ``--html`` asks for; 0, or an error of the tree."""
    from curation.evaluation.leaderboard.board import leaderboard
    from curation.storage import write_text

    made = leaderboard(options.file, metric=options.metric, groups=options.group and _numbers(options.group))
    if made.torn:
        warn(f"{made.file}: the last line is cut off and was left out: {made.torn}")
    lines = [line for group in made.groups for line in _lines(group)] or ["The file holds no row."]
    if options.html:
        write_text(options.html, made.html())
        lines.append(f"wrote {options.html}")
    return Answer(made.as_data(), lines)


def _numbers(text: str) -> list[int] | str:
    if text == "all":
        return text
    numbers = [int(one) for one in text.split(",") if one.isascii() and one.isdigit() and len(one) < 10]
    if len(numbers) < text.count(",") + 1:
        raise UsageError("--group is not usable", expected="a number, N,N, or all", found=text[:80])
    return numbers


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
