"""A leaderboard: rows that are comparable, ranked; rows that are not, apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import msgspec

from curation.errors import LeaderboardError, UsageError
from curation.evaluation.leaderboard.rows import Metric, Row
from curation.evaluation.measures import place_of
from curation.evaluation.protocols import measures_of

_SAME = 1e-9
"""Relative difference of one number on two machines."""


@dataclass(frozen=True, slots=True, order=True)
class Ground:
    """What rows must share to be ranked together.

    Attributes
    ----------
    data : str
        ``NAME VERSION DIGEST`` of the manifest, or the digest of the ground truth where no manifest pins the images.
    """

    protocol: str
    data: str
    part: str
    profile: str
    settings: str
    evaluator: str

    @classmethod
    def of(cls, row: Row) -> Ground:
        """Return the ground of a row."""
        one = row.manifest
        named = "" if one is None else f"{one.name} {one.version} {one.digest}"
        return cls(
            protocol=row.protocol,
            data=named if named and row.pinned else " ".join(filter(None, (named, f"truth {row.truth}"))),
            part=row.part,
            profile=row.profile,
            settings=", ".join(f"{key} {value}" for key, value in sorted(row.settings.items())),
            evaluator=f"curation {row.evaluator.curation}, algorithm {row.evaluator.algorithm}",
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """A row with its rank, None where its number is undefined, and the line that it stands on."""

    rank: int | None
    line: int
    row: Row


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one ground, the best first.

    Attributes
    ----------
    number : int
        From 1, in the order of their grounds.
    metric : str
        What the rows are ranked by.
    metrics : dict of str to Metric
        Every number that a row of the group holds, with its unit and direction (its value is of no account).
    repeated : tuple of (int, int)
        Lines that say again what an earlier line says, with that line.
    truths : int
        Different ground-truth files; more than one only where a manifest pins the images.
    """

    number: int
    ground: Ground
    metric: str
    metrics: dict[str, Metric]
    standings: tuple[Standing, ...]
    repeated: tuple[tuple[int, int], ...]
    truths: int

    def notes(self) -> list[str]:
        """Return in words what a reader must know of this group."""
        notes = [f"line {line} says again what line {first} says: shown once" for line, first in self.repeated]
        if self.truths > 1:
            notes.append(f"the rows name {self.truths} different sets of ground-truth files of this manifest")
        return notes


def leaderboard(rows: Sequence[tuple[int, Row]], metric: str | None = None) -> list[Group]:
    """Return rows in groups of one ground, each ranked by one number.

    Equal numbers share a rank, and the next rank leaves as many out (1, 1, 3); rows without the number stand last
    without a rank. The order of the lines has no effect.

    Parameters
    ----------
    rows : sequence of (line, Row)
    metric : str, optional
        By which to rank; groups without it are left out. By default the first of the protocol's numbers that some row
        of the group holds.

    Raises
    ------
    LeaderboardError
        Two lines give one evaluation different numbers, or rows of a group disagree on what a number means.
    UsageError
        No row has the metric.
    """
    grounds: dict[Ground, list[tuple[int, Row]]] = {}
    for line, row in rows:
        grounds.setdefault(Ground.of(row), []).append((line, row))
    groups = [_group(number, ground, grounds[ground], metric) for number, ground in enumerate(sorted(grounds), 1)]
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


def single_ranking(groups: Sequence[Group], numbers: Sequence[int] | None = None) -> list[Group]:
    """Return the one group that some numbers name, or all (None), for a ranking of all rows together.

    Raises
    ------
    UsageError
        There is no group of a number.
    LeaderboardError
        They are several: rows of different ground admit no single ranking; the message says what differs.
    """
    by_number = {group.number: group for group in groups}
    wanted = list(by_number) if numbers is None else list(dict.fromkeys(numbers))
    if missing := [number for number in wanted if number not in by_number]:
        raise UsageError(
            "There is no such group",
            where=f"--group {missing[0]}"[:80],
            expected=", ".join(map(str, by_number))[:200] or "a file with rows",
        )
    chosen = [by_number[number] for number in wanted]
    if len(chosen) > 1:
        raise LeaderboardError(
            "Rows of different ground admit no single ranking",
            where="groups " + ", ".join(map(str, wanted))[:100],
            expected="one manifest, part, profile, choice of settings and evaluator version",
            found=_differences([group.ground for group in chosen]),
            hint=f"--group {wanted[0]}",
        )
    return chosen


def leaderboard_data(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return groups as plain data for ``--json``."""
    return [
        {
            "group": group.number,
            **{field.name: getattr(group.ground, field.name) for field in fields(Ground)},
            "metric": group.metric,
            "better": group.metrics[group.metric].better,
            "unit": group.metrics[group.metric].unit,
            "rows": [{"rank": one.rank, "line": one.line, **msgspec.to_builtins(one.row)} for one in group.standings],
            "notes": group.notes(),
        }
        for group in groups
    ]


def _group(number: int, ground: Ground, rows: Sequence[tuple[int, Row]], metric: str | None) -> Group:
    once, repeated = _once(rows)
    metrics = _metrics(once)
    chosen = metric or next((name for name in metrics if _is_held(once, name)), next(iter(metrics)))
    return Group(
        number=number,
        ground=ground,
        metric=chosen,
        metrics=metrics,
        standings=_ranked(once, chosen, metrics[chosen].better) if chosen in metrics else (),
        repeated=tuple(repeated),
        truths=len({row.truth for _, row in once}),
    )


def _once(rows: Sequence[tuple[int, Row]]) -> tuple[list[tuple[int, Row]], list[tuple[int, int]]]:
    """Return the rows, each evaluation once, and the lines that repeat an earlier one."""
    first: dict[tuple[Any, ...], tuple[int, Row]] = {}
    repeated = []
    for line, row in sorted(rows, key=lambda one: one[0]):
        # A method read at two thresholds is two evaluations of one file of predictions.
        read_at = tuple(sorted(row.operating_point.items()))
        identity = (row.name, row.variant, row.predictions, read_at, tuple(sorted(row.metrics)))
        if identity not in first:
            first[identity] = line, row
            continue
        earlier, before = first[identity]
        if different := [name for name in row.metrics if not _equal(row.metrics[name], before.metrics[name])]:
            raise LeaderboardError(
                "Two lines give one evaluation different numbers",
                where=f"lines {earlier} and {line}: {row.name}, {different[0]}",
                expected=str(before.metrics[different[0]].value),
                found=str(row.metrics[different[0]].value),
                hint="evaluate the predictions again, and remove the wrong line",
            )
        repeated.append((line, earlier))
    return list(first.values()), repeated


def _is_held(rows: Sequence[tuple[int, Row]], name: str) -> bool:
    return any(name in row.metrics and row.metrics[name].value is not None for _, row in rows)


def _equal(one: Metric, other: Metric) -> bool:
    if one.value is None or other.value is None:
        return one.value is other.value
    return math.isclose(one.value, other.value, rel_tol=_SAME, abs_tol=_SAME)


def _metrics(rows: Sequence[tuple[int, Row]]) -> dict[str, Metric]:
    """Return the numbers of a group in the order of their protocol; one that it does not know behind, by name."""
    found: dict[str, tuple[int, Metric]] = {}
    for line, row in rows:
        for name, metric in row.metrics.items():
            earlier, same = found.setdefault(name, (line, metric))
            if (metric.better, metric.unit) != (same.better, same.unit):
                raise LeaderboardError(
                    "Rows disagree on what a number means",
                    where=f"lines {earlier} and {line}: {name}",
                    expected=f"{same.better} is better, unit {same.unit}",
                    found=f"{metric.better} is better, unit {metric.unit}",
                )
    measures = measures_of(rows[0][1].protocol)
    return {name: found[name][1] for name in sorted(found, key=lambda one: place_of(measures, one))}


def _ranked(rows: Sequence[tuple[int, Row]], name: str, better: str) -> tuple[Standing, ...]:
    def value(row: Row) -> int | float | None:
        metric = row.metrics.get(name)
        return None if metric is None else metric.value

    def place(one: tuple[int, Row]) -> tuple[Any, ...]:
        number = value(one[1])
        signed = 0 if number is None else -number if better == "higher" else number
        read_at = sorted(one[1].operating_point.items())
        return number is None, signed, one[1].name, one[1].variant, read_at, one[1].predictions, one[1].truth

    standings: list[Standing] = []
    for position, (line, row) in enumerate(sorted(rows, key=place), start=1):
        number, last = value(row), standings[-1] if standings else None
        tied = last is not None and value(last.row) == number
        rank = None if number is None else last.rank if last is not None and tied else position
        standings.append(Standing(rank, line, row))
    return tuple(standings)


def _differences(grounds: Sequence[Ground]) -> str:
    """Return in words the fields in which grounds differ."""
    told = []
    for field in fields(Ground):
        values = list(dict.fromkeys(getattr(ground, field.name) for ground in grounds))
        if len(values) > 1:
            told.append(f"{field.name}: " + " / ".join(value or "none" for value in values[:3]))
    return "; ".join(told)[:600]
