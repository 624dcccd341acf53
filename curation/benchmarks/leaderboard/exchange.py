"""A leaderboard in other forms: Markdown, CSV, LaTeX, ``.eval_results`` of a model's page.

Source: ``eval_results.yaml`` of huggingface/hub-docs, which has no room for an undefined number: such a number is left
out, and never a zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from datetime import date
from typing import Annotated, Any

from curation.benchmarks.leaderboard.board import Group, Leaderboard
from curation.csv_table import as_csv
from curation.errors import UsageError
from curation.pages import plain
from curation.text_table import Table, latex_table, printable, table_lines

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where and when numbers were measured, for records that leave this machine.

    Parameters
    ----------
    repo
        for hub: the dataset on the hub that holds the manifest, ORG/NAME
    date
        for hub: when it was evaluated, YYYY-MM-DD
    """

    repo: Annotated[str, "ORG/NAME"] = ""
    date: Annotated[str, "DATE"] = ""

    def __post_init__(self) -> None:
        if self.repo and not _NAME.fullmatch(self.repo):
            raise UsageError("Invalid name on the hub", where="--repo", expected="ORG/NAME", found=self.repo[:80])
        try:
            is_date = not self.date or date.fromisoformat(self.date).isoformat() == self.date
        except ValueError:
            is_date = False
        if not is_date:
            raise UsageError("Invalid date", where="--date", expected="YYYY-MM-DD", found=self.date[:40])


def markdown(board: Leaderboard) -> str:
    """Return a table a group, the best of each number in bold."""
    return "\n".join([f"# {plain(board.file)}\n", *markdown_groups(board.groups, "##")])


def markdown_groups(groups: Sequence[Group], level: str) -> list[str]:
    """Return the table of each group below a heading of a level (``##``)."""
    parts = []
    for group in groups:
        best = _best(group)
        rows = [
            [f"**{cell}**" if (number, place) in best else cell for place, cell in enumerate(map(plain, row))]
            for number, row in enumerate(_cells(group))
        ]
        heads = list(map(plain, _heads(group)))
        ruled = ["---" if name == "method" else "---:" for name in heads]
        lines = ["| " + " | ".join(row) + " |" for row in (heads, ruled, *rows)]
        facts = [f"- {plain(one)}" for one in group.facts()]
        parts.append("\n".join([f"{level} {group.number}. {plain(group.title)}", "", *facts, "", *lines, ""]))
    return parts


def csv(board: Leaderboard) -> str:
    """Return one table: a row a method and group, a column a number, an empty cell where there is none."""
    metrics = list(dict.fromkeys(name for group in board.groups for name in group.metrics))
    about = ("group", "protocol", "data", "part", "variant", "settings", "evaluator", "rank", "method", "read_at")
    rows = [
        (group.number, *astuple(group.key), one.rank, one.name, one.point, one.row.predictions, *one.values(metrics))
        for group in board.groups
        for one in group.rows
    ]
    return as_csv((*about, "predictions", *metrics), rows)


def latex(board: Leaderboard) -> str:
    """Return a table a group to be included, ruled by booktabs: the best in bold, digests and settings as comments."""
    parts = [f"% {printable(board.file)} {board.digest}\n% needs \\usepackage{{booktabs}}"]
    for group in board.groups:
        facts = [f"% {printable(one)}" for one in (group.title, *group.facts())]
        facts += [f"% {printable(one.name)}: predictions {one.row.predictions}" for one in group.rows]
        table = latex_table(
            _heads(group), _cells(group), numeric=[name != "method" for name in _heads(group)], bold=_best(group)
        )
        parts.append("\n".join([*facts, table]))
    return "\n\n".join(parts)


def _heads(group: Group) -> list[str]:
    return ["rank", "method", *group.heads]


def _cells(group: Group) -> list[list[str]]:
    # A method that was read at two points is told apart by them.
    named = [one.name for one in group.rows]
    return [
        [
            "" if one.rank is None else str(one.rank),
            f"{one.name} ({one.point})" if named.count(one.name) > 1 and one.point else one.name,
            *group.cells(one),
        ]
        for one in group.rows
    ]


def _best(group: Group) -> set[tuple[int, int]]:
    """Return row and column of the best value of each number; all that show the same digits are the best."""
    cells = _cells(group)
    found = set()
    for place, (name, metric) in enumerate(group.metrics.items(), len(_heads(group)) - len(group.metrics)):
        values = {number: one.values([name])[0] for number, one in enumerate(group.rows)}
        values = {number: value for number, value in values.items() if value is not None}
        if len(group.rows) > 1 and values:
            chosen = (max if metric.better == "higher" else min)(values, key=lambda one: values[one] or 0)
            found |= {(number, place) for number in values if cells[number][place] == cells[chosen][place]}
    return found


def hub_entries(board: Leaderboard, origin: Origin) -> list[dict[str, Any]]:
    """Return the entries of an ``.eval_results`` file of a model's repository: one a defined number of each row.

    The hub has no direction, and shows the highest as the best: numbers of which lower is better are left out.

    Raises
    ------
    UsageError
        No dataset is named, or the rows are of several methods.
    """
    if not origin.repo:
        raise UsageError("The hub's entries name a dataset", expected="--repo ORG/NAME", found="none")
    methods = list(dict.fromkeys(one.row.name for group in board.groups for one in group.rows))
    if len(methods) > 1:
        raise UsageError(
            "A model's page shows the results of one model",
            expected="rows of one method",
            found=", ".join(methods)[:200],
            hint="a file of results for each method, or --group N",
        )
    entries = []
    for key, one in ((group.key, one) for group in board.groups for one in group.rows):
        facts = (key.data, key.settings, key.evaluator, one.point, f"predictions {one.row.predictions}")
        notes = "; ".join(filter(None, facts))
        for name, metric in one.row.metrics.items():
            if metric.value is None or metric.better != "higher":
                continue
            task = "/".join(filter(None, (key.protocol, key.part, key.variant, name)))
            entry = {"dataset": {"id": origin.repo, "task_id": task}, "value": metric.value}
            entries.append(entry | ({"date": origin.date} if origin.date else {}) | {"notes": notes})
    return entries


def hub(board: Leaderboard, origin: Origin) -> str:
    """Return `hub_entries` as YAML."""
    import yaml

    return str(yaml.safe_dump(hub_entries(board, origin), sort_keys=False, allow_unicode=True))


def text(board: Leaderboard) -> str:
    """Return a table a group for a terminal, below what its rows share."""
    lines = []
    for group in board.groups:
        title = f"Group {group.number}: {group.title}"
        head, *rest = table_lines(Table(title, tuple(_heads(group)), tuple(map(tuple, _cells(group)))))
        lines += [head, *(f"  {printable(one)}" for one in group.facts()), *rest]
    return "\n".join(lines or ["The file holds no row."]) + "\n"


FORMS: dict[str, Callable[[Leaderboard, Origin], str]] = {
    "text": lambda board, _: text(board),
    "html": lambda board, _: board.html(),
    "markdown": lambda board, _: markdown(board),
    "csv": lambda board, _: csv(board),
    "latex": lambda board, _: latex(board),
    "hub": hub,
}
"""The forms that are one text."""
