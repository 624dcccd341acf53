"""`leaderboard`: the rows of a file in groups that are comparable, ranked; as text, HTML, Markdown, CSV or LaTeX."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from curation.benchmarks.registry import measures_of
from curation.core.arguments import checked
from curation.core.canonical import sha256_of_bytes
from curation.core.errors import LeaderboardError, UsageError
from curation.core.pages import markdown_text, page
from curation.core.tables import Table, as_csv, html_table, latex_table, number_lines, printable
from curation.evaluation.leaderboard_rows import LeaderboardRow, Metric, check_numbers, read_leaderboard_rows
from curation.evaluation.measures import place_of
from curation.evaluation.tables import in_unit, shown_unit, sign_of

if TYPE_CHECKING:
    import pandas as pd

_FACT = 98
"""Width of the facts that the rows of a group share."""
_PLACES = {"%": 2, "share": 4, "ratio": 4}
_SAME = 1e-9
"""Relative difference of a number between two machines."""


@dataclass(frozen=True, slots=True, order=True)
class ComparisonKey:
    """Facts that rows must share to be ranked together.

    Attributes
    ----------
    data : str
        ``NAME VERSION DIGEST`` of the manifest, or the digest of the ground truth if no manifest pins the images.
    """

    protocol: str
    data: str
    part: str
    variant: str
    settings: str
    evaluator: str

    @classmethod
    def from_row(cls, row: LeaderboardRow) -> ComparisonKey:
        """Return the key of a row."""
        lists = row.manifest
        lists_id = "" if lists is None else f"{lists.name} {lists.version} {lists.digest}"
        return cls(
            protocol=row.protocol,
            data=lists_id if lists_id and row.pinned else " ".join(filter(None, (lists_id, f"truth {row.truth}"))),
            part=row.part,
            variant=row.variant,
            settings=", ".join(f"{key} {value}" for key, value in sorted(row.settings.items())),
            evaluator=f"curation {row.evaluator.curation}, algorithm {row.evaluator.algorithm}",
        )


@dataclass(frozen=True, slots=True)
class RankedRow:
    """A row with its rank (None if its number is undefined) and the line of its file."""

    rank: int | None
    line: int
    row: LeaderboardRow

    @property
    def name(self) -> str:
        """Name of the method in tables."""
        return f"{self.row.name} ({self.row.score})" if self.row.score else self.row.name

    @property
    def point(self) -> str:
        """Operating point of the method, as tables show it."""
        return "; ".join(f"{key} {value}" for key, value in sorted(self.row.operating_point.items()))

    @property
    def notes(self) -> str:
        """The operating point of the method, and the records left out of its predictions."""
        return "; ".join(filter(None, [self.point, *(f"{why}: {n}" for why, n in sorted(self.row.reported.items()))]))

    def values(self, names: Iterable[str]) -> list[int | float | None]:
        """Return numbers by name; None for undefined or absent ones."""
        return [self.row.metrics[name].value if name in self.row.metrics else None for name in names]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows with the same comparison key, the best first.

    Attributes
    ----------
    number : int
        Numbers from 1, in the order of the keys.
    metric : str
        Metric that ranks the rows.
    metrics : dict of str to Metric
        Every number in a row of the group, with its unit and direction (the value is not used).
    repeated : tuple of (int, int)
        Lines that duplicate an earlier line, and that line.
    truths : int
        Number of different ground-truth files; more than one only if a manifest pins the images.
    """

    number: int
    key: ComparisonKey
    metric: str
    metrics: dict[str, Metric]
    rows: tuple[RankedRow, ...]
    repeated: tuple[tuple[int, int], ...]
    truths: int

    def notes(self) -> list[str]:
        """Return sentences that a reader needs to interpret this group."""
        notes = [f"line {line} duplicates line {first}; shown once" for line, first in self.repeated]
        if self.truths > 1:
            notes.append(f"the rows name {self.truths} different sets of ground-truth files of this manifest")
        return notes

    @property
    def title(self) -> str:
        """Benchmark, part and variant."""
        return " · ".join(filter(None, (self.key.protocol, self.key.part, self.key.variant)))

    @property
    def units(self) -> list[str]:
        """The unit in which tables show each number: one for shares and percentages."""
        units = {metric.unit for metric in self.metrics.values()}
        return [shown_unit(metric.unit, units) for metric in self.metrics.values()]

    @property
    def signs(self) -> list[str]:
        """Arrow in the direction of better and unit of each number."""
        return [sign_of(metric.better, unit) for metric, unit in zip(self.metrics.values(), self.units, strict=True)]

    @property
    def heads(self) -> list[str]:
        """Rank, method, and a head for each number: name, arrow in the direction of better, unit."""
        return ["rank", "method", *map(" ".join, zip(self.metrics, self.signs, strict=True))]

    @property
    def common_name(self) -> str:
        """Name of the predictions of all rows if the rows differ only in the score, else ``""``."""
        names, scores = {row.row.name for row in self.rows}, [row.row.score for row in self.rows]
        return names.pop() if len(names) == 1 and all(scores) and len(set(scores)) == len(scores) > 1 else ""

    def cells(self) -> list[list[str]]:
        """Return the rows as a table shows them; rows with the same name show their point, else their line."""
        occurrences = Counter(word for row in self.rows for word in (row.name, (row.name, row.point)))
        common = self.common_name
        apart = [
            row.point if row.point and occurrences[row.name, row.point] == 1 else f"line {row.line}"
            for row in self.rows
        ]
        return [
            [
                "" if row.rank is None else str(row.rank),
                f"{row.name} ({point})" if occurrences[row.name] > 1 else row.row.score if common else row.name,
                *(
                    shown_value(in_unit(value, metric.unit, unit), unit)
                    for value, metric, unit in zip(
                        row.values(self.metrics), self.metrics.values(), self.units, strict=True
                    )
                ),
            ]
            for row, point in zip(self.rows, apart, strict=True)
        ]

    def best(self) -> set[tuple[int, int]]:
        """Return row and column of the best value of each number, including values that show the same digits."""
        cells, best_cells = self.cells(), set()
        for column, (name, metric) in enumerate(self.metrics.items(), 2):
            values = {row: ranked.values([name])[0] for row, ranked in enumerate(self.rows)}
            defined = {row: value for row, value in values.items() if value is not None}
            if len(self.rows) > 1 and defined:
                chosen = (max if metric.better == "higher" else min)(defined, key=defined.__getitem__)
                best_cells |= {(row, column) for row in defined if cells[row][column] == cells[chosen][column]}
        return best_cells

    def facts(self) -> list[str]:
        """Return the facts that the rows share, the measure that ranks them, and `notes`."""
        key, metric = self.key, self.metrics[self.metric]
        unit = self.units[list(self.metrics).index(self.metric)]
        ranked_by = f"ranked by {self.metric}, {metric.better} is better, unit {unit}"
        names = f"scores of {self.common_name}" if self.common_name else ""
        return [fact for fact in (names, key.data, key.settings, key.evaluator, ranked_by, *self.notes()) if fact]

    def _as_data(self) -> dict[str, Any]:
        """Return the group as plain data."""
        return {
            "group": self.number,
            **asdict(self.key),
            "metric": self.metric,
            "better": self.metrics[self.metric].better,
            "unit": self.metrics[self.metric].unit,
            "rows": [{"rank": row.rank, "line": row.line, **msgspec.to_builtins(row.row)} for row in self.rows],
            "notes": self.notes(),
        }


def shown_value(value: int | float | None, unit: str) -> str:
    """Return a number as a table shows it."""
    if value is None:
        return "-"
    return str(value) if unit not in _PLACES or isinstance(value, int) else f"{value:.{_PLACES[unit]}f}"


def ranked_groups(rows: Sequence[tuple[int, LeaderboardRow]], metric: str | None = None) -> list[Group]:
    """Return rows in groups with the same comparison key, each ranked by a number.

    Equal numbers share a rank, and the next rank counts them (1, 1, 3); rows without the number come last and have no
    rank. The order of the lines has no effect.

    Parameters
    ----------
    rows : sequence of (line, LeaderboardRow)
    metric : str, optional
        Metric that ranks the rows; groups without it are left out. By default the first metric of the benchmark that a
        row of the group has.

    Raises
    ------
    LeaderboardError
        Two lines give different numbers for the same evaluation, rows of a group disagree on the meaning of a number,
        or a number differs from the definition of its benchmark.
    UsageError
        No row has the metric.
    """
    by_key: dict[ComparisonKey, list[tuple[int, LeaderboardRow]]] = {}
    for line, row in rows:
        check_numbers(row, measures_of(row.protocol), f"line {line}")
        by_key.setdefault(ComparisonKey.from_row(row), []).append((line, row))

    groups = [_group(number, key, by_key[key], metric) for number, key in enumerate(sorted(by_key), 1)]
    if metric is None or not groups:
        return groups
    chosen = [group for group in groups if metric in group.metrics]
    if not chosen:
        raise UsageError(
            "No row has this metric",
            where=f"--metric {metric}"[:200],
            expected=", ".join(sorted({name for group in groups for name in group.metrics}))[:400],
        )
    return chosen


def _group(number: int, key: ComparisonKey, rows: Sequence[tuple[int, LeaderboardRow]], metric: str | None) -> Group:
    once, repeated = _once(rows)
    metrics = _metrics(once)
    defined = {name for _, row in once for name, value in row.metrics.items() if value.value is not None}
    chosen = metric or next((name for name in metrics if name in defined), next(iter(metrics)))
    return Group(
        number=number,
        key=key,
        metric=chosen,
        metrics=metrics,
        rows=_ranked(once, chosen, metrics[chosen].better) if chosen in metrics else (),
        repeated=tuple(repeated),
        truths=len({row.truth for _, row in once}),
    )


def _once(rows: Sequence[tuple[int, LeaderboardRow]]) -> tuple[list[tuple[int, LeaderboardRow]], list[tuple[int, int]]]:
    """Return the rows of different evaluations, and the lines that repeat an earlier one."""
    first: dict[tuple[Any, ...], tuple[int, LeaderboardRow]] = {}
    repeated = []
    for line, row in sorted(rows, key=lambda numbered: numbered[0]):
        # A method read at two thresholds is two evaluations of the same file of predictions.
        read_at = tuple(sorted(row.operating_point.items()))
        identity = (row.name, row.score, row.predictions, read_at, tuple(sorted(row.metrics)))
        if identity not in first:
            first[identity] = line, row
            continue
        earlier, before = first[identity]
        if different := [name for name in row.metrics if not _equal(row.metrics[name], before.metrics[name])]:
            raise LeaderboardError(
                "Two lines give different numbers for the same evaluation",
                where=f"lines {earlier} and {line}: {row.name}, {different[0]}",
                expected=str(before.metrics[different[0]].value),
                found=str(row.metrics[different[0]].value),
                hint="evaluate the predictions again, and remove the wrong line",
            )
        repeated.append((line, earlier))
    return list(first.values()), repeated


def _equal(metric: Metric, other: Metric) -> bool:
    if metric.value is None or other.value is None:
        return metric.value is other.value
    return math.isclose(metric.value, other.value, rel_tol=_SAME, abs_tol=_SAME)


def _metrics(rows: Sequence[tuple[int, LeaderboardRow]]) -> dict[str, Metric]:
    """Return the numbers of a group in the order of their benchmark; unknown ones come last, by name."""
    first_of: dict[str, tuple[int, Metric]] = {}
    for line, row in rows:
        for name, metric in row.metrics.items():
            earlier, same = first_of.setdefault(name, (line, metric))
            if (metric.better, metric.unit) != (same.better, same.unit):
                raise LeaderboardError(
                    "Rows disagree on what a number means",
                    where=f"lines {earlier} and {line}: {name}",
                    expected=f"{same.better} is better, unit {same.unit}",
                    found=f"{metric.better} is better, unit {metric.unit}",
                )
    measures = measures_of(rows[0][1].protocol)
    return {name: first_of[name][1] for name in sorted(first_of, key=lambda name: place_of(measures, name))}


def _ranked(rows: Sequence[tuple[int, LeaderboardRow]], name: str, better: str) -> tuple[RankedRow, ...]:
    def key(ranked: RankedRow) -> tuple[Any, ...]:
        (number,), row = ranked.values([name]), ranked.row
        signed = 0 if number is None else -number if better == "higher" else number
        return number is None, signed, row.name, row.score, ranked.point, row.predictions, row.truth

    ordered = sorted((RankedRow(None, line, row) for line, row in rows), key=key)
    values = [row.values([name])[0] for row in ordered]
    # Equal numbers have the rank of the first of them.
    ranks = {value: rank for rank, value in reversed([*enumerate(values, 1)])} | {None: None}
    return tuple(replace(row, rank=ranks[value]) for row, value in zip(ordered, values, strict=True))


@dataclass(frozen=True)
class Leaderboard:
    """Groups of comparable rows, the best first.

    Attributes
    ----------
    file : str
        Plain name of the file.
    digest : str
        ``sha256:<hex>`` of its bytes.
    torn : str
        Beginning of an incomplete last line, which is left out; ``""`` for none.
    groups : tuple of Group
    """

    file: str
    digest: str
    torn: str
    groups: tuple[Group, ...]

    def __repr__(self) -> str:
        rows = sum(len(group.rows) for group in self.groups)
        return f"<Leaderboard {self.file}, {len(self.groups)} groups, {rows} rows>"

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        cells = [[str(value) for value in row] for row in frame.itertuples(index=False)]
        return html_table([str(name) for name in frame.columns], cells, caption=self.file)

    def to_frame(self) -> pd.DataFrame:
        """Return a row per method and number: group, protocol, part, variant, rank, method, measure, value, unit."""
        import pandas as pd

        columns = ["group", "protocol", "part", "variant", "rank", "method", "measure", "value", "unit"]
        rows = [
            (group.number, group.key.protocol, group.key.part, group.key.variant, row.rank, row.name, name,
             metric.value, metric.unit)
            for group in self.groups
            for row in group.rows
            for name, metric in row.row.metrics.items()
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=columns)

    def html(self) -> str:
        """Return all tables as one HTML page without other files; every text is escaped."""
        return page("leaderboard.html", file=self.file, digest=self.digest, groups=self.groups)

    def as_data(self) -> dict[str, Any]:
        """Return the groups as plain data."""
        groups = [group._as_data() for group in self.groups]
        return {"file": self.file, "sha256": self.digest, "torn": self.torn, "groups": groups}


@checked
def leaderboard(
    path: Annotated[Path, "FILE"],
    *,
    metric: Annotated[str | None, "NAME"] = None,
    group: Annotated[int | None, "N"] = None,
) -> Leaderboard:
    """Rank the comparable rows of a leaderboard file.

    Parameters
    ----------
    path : Path or str
        a .jsonl file that `evaluate --append` wrote
    metric : str, optional
        rank by this measure (default: the first of the benchmark)
    group : int, optional
        show this group alone

    Raises
    ------
    MissingFileError, LeaderboardError
        No such file, or it is not a leaderboard file.
    UsageError
        No row has the metric, or the group does not exist.

    Examples
    --------
    >>> import curation, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "results.jsonl"
    ...     _ = path.write_bytes(b"")
    ...     curation.leaderboard(path)
    <Leaderboard results.jsonl, 0 groups, 0 rows>
    """
    read = read_leaderboard_rows(path)
    if read.torn and not read.rows:
        raise LeaderboardError(
            "The file has no complete row",
            where=str(path),
            expected="one row per line",
            found=ascii(read.torn),
            hint="curation evaluate … --append FILE.jsonl writes it",
        )
    groups = ranked_groups(read.rows, metric)
    numbers = [candidate.number for candidate in groups]
    if group is not None and group not in numbers:
        expected = ", ".join(map(str, numbers))[:200] or "a file with rows"
        raise UsageError("No such group", where="--group", expected=expected, found=str(group))
    groups = [candidate for candidate in groups if group in (None, candidate.number)]
    return Leaderboard(path.name, sha256_of_bytes(read.data), read.torn, tuple(groups))


def markdown(board: Leaderboard) -> str:
    """Return a table for each group in Markdown, the best value of each number in bold."""
    return "\n".join([f"# {markdown_text(board.file)}\n", *markdown_groups(board.groups, "##")])


def markdown_groups(groups: Sequence[Group], level: str) -> list[str]:
    """Return the table of each group below a heading of a level (``##``)."""
    parts = []
    for group in groups:
        best = group.best()
        rows = [
            [f"**{cell}**" if (number, column) in best else cell for column, cell in enumerate(map(markdown_text, row))]
            for number, row in enumerate(group.cells())
        ]
        heads = list(map(markdown_text, group.heads))
        ruled = ["---" if name == "method" else "---:" for name in heads]
        lines = ["| " + " | ".join(row) + " |" for row in (heads, ruled, *rows)]
        facts = [f"- {markdown_text(fact)}" for fact in group.facts()]
        parts.append("\n".join([f"{level} {group.number}. {markdown_text(group.title)}", "", *facts, "", *lines, ""]))
    return parts


def csv(board: Leaderboard) -> str:
    """Return one table: a row for each method and group, a column for each number, empty cells for missing ones."""
    metrics = list(dict.fromkeys(name for group in board.groups for name in group.metrics))
    about = ("group", "protocol", "data", "part", "variant", "settings", "evaluator", "rank", "method", "read_at")
    rows = [
        (group.number, *astuple(group.key), row.rank, row.name, row.point, row.row.predictions, *row.values(metrics))
        for group in board.groups
        for row in group.rows
    ]
    return as_csv((*about, "predictions", *metrics), rows)


def latex(board: Leaderboard) -> str:
    """Return a LaTeX table (booktabs) for each group: the best values in bold, digests and settings as comments."""
    parts = [f"% {printable(board.file)} {board.digest}\n% needs \\usepackage{{booktabs}}"]
    for group in board.groups:
        facts = [f"% {printable(fact)}" for fact in (group.title, *group.facts())]
        facts += [f"% {printable(row.name)}: predictions {row.row.predictions}" for row in group.rows]
        numeric = [name != "method" for name in group.heads]
        table = latex_table(group.heads, group.cells(), numeric=numeric, bold=group.best())
        parts.append("\n".join([*facts, table]))
    return "\n\n".join(parts)


def text(board: Leaderboard) -> str:
    """Return a table for each group, for a terminal, below the facts that its rows share; at most 100 columns wide."""
    lines = []
    for group in board.groups:
        heads, signs = ("rank", "method", *group.metrics), ("", "", *group.signs)
        table = Table(f"Group {group.number}: {group.title}", heads, tuple(map(tuple, group.cells())))
        head, *rest = number_lines(table, signs, leading=2)
        facts = [textwrap.wrap(printable(fact), _FACT, break_on_hyphens=False) for fact in group.facts()]
        lines += [head, *(f"  {line}" for wrapped in facts for line in wrapped), *rest]
    return "\n".join(lines or ["The file holds no row."]) + "\n"


def hub_entries(board: Leaderboard, dataset: str, method: str | None = None) -> list[dict[str, Any]]:
    """Return the numbers of a method in the form of the Hugging Face Hub: ``.eval_results/NAME.yaml`` of its model.

    Parameters
    ----------
    board : Leaderboard
    dataset : str
        Repository of the manifest that was scored, ``OWNER/NAME``, or ``OWNER/NAME@COMMIT``.
    method : str, optional
        Name of the method; required if there are several.

    Raises
    ------
    UsageError
        The method is unknown or missing; the dataset is not the name of a repository.

    References
    ----------
    huggingface/hub-docs, ``eval_results.yaml``.
    """
    repository, _, revision = dataset.partition("@")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository) or not re.fullmatch("[0-9a-f]{0,40}", revision):
        expected = "OWNER/NAME or OWNER/NAME@COMMIT of the published manifest"
        raise UsageError("The dataset is not a repository", where="--dataset", expected=expected, found=dataset[:80])
    rows = [(group, row) for group in board.groups for row in group.rows]
    methods = dict.fromkeys(row.row.name for _, row in rows)
    chosen = method or next(iter(methods), "")
    if chosen not in methods or (method is None and len(methods) > 1):
        raise UsageError(
            "The file of a model contains the numbers of one method",
            where="--method",
            expected=", ".join(methods)[:400] or "a file with rows",
            found=method,
        )
    return [
        {
            "dataset": {
                "id": repository,
                "task_id": "/".join(filter(None, (group.key.protocol, group.key.part, group.key.variant, name))),
                **({"revision": revision} if revision else {}),
            },
            "value": metric.value,
            "notes": "; ".join(filter(None, (
                f"{metric.unit}, {metric.better} is better", group.key.data, group.key.settings, row.notes,
                f"predictions {row.row.predictions}", group.key.evaluator,
            ))),
        }
        for group, row in rows
        if row.row.name == chosen
        for name, metric in row.row.metrics.items()
        if metric.value is not None
    ]  # fmt: skip


FORMS: dict[str, Callable[[Leaderboard], str]] = {
    "text": text,
    "html": Leaderboard.html,
    "markdown": markdown,
    "csv": csv,
    "latex": latex,
}
"""Functions that write a leaderboard, by form."""
