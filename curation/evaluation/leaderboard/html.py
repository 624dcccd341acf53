"""A leaderboard as one HTML page: no script, no other file, every text escaped."""

from __future__ import annotations

from collections.abc import Sequence

from curation.evaluation.leaderboard.ranking import Group, Standing
from curation.pages import page

_PLACES = {"%": 2, "share": 4, "ratio": 4}


def leaderboard_html(groups: Sequence[Group], *, file: str, digest: str) -> str:
    """Return the page.

    Parameters
    ----------
    file, digest : str
        Name and digest of the file of rows.
    """
    return page("leaderboard.html", file=file, digest=digest, groups=[_group(one) for one in groups])


def shown_value(value: int | float | None, unit: str) -> str:
    """Return a number as a table shows it."""
    if value is None:
        return "-"
    return str(value) if unit not in _PLACES or isinstance(value, int) else f"{value:.{_PLACES[unit]}f}"


def shown_name(standing: Standing) -> str:
    """Return how a table calls a method."""
    row = standing.row
    return f"{row.name} ({row.variant})" if row.variant else row.name


def shown_point(standing: Standing) -> str:
    """Return where a method was read, as a table shows it."""
    return "; ".join(f"{key} {value}" for key, value in sorted(standing.row.operating_point.items()))


def column_heads(group: Group) -> list[str]:
    """Return a head for each number of a group: name, unit, and an arrow in the direction of better."""
    arrows = {"higher": "↑", "lower": "↓"}
    return [
        f"{name} {arrows[metric.better]}{' %' if metric.unit == '%' else ''}" for name, metric in group.metrics.items()
    ]


def _group(group: Group) -> dict[str, object]:
    """Return what the template shows of a group."""
    ground, metric = group.ground, group.metrics[group.metric]
    facts = [
        ground.data,
        ground.settings,
        ground.evaluator,
        f"ranked by {group.metric}, {metric.better} is better, unit {metric.unit}",
        *group.notes(),
    ]
    return {
        "number": group.number,
        "title": " · ".join(filter(None, (ground.protocol, ground.part, ground.profile))),
        "facts": [one for one in facts if one],
        "heads": column_heads(group),
        "by": list(group.metrics).index(group.metric),
        "rows": [_row(one, group) for one in group.standings],
    }


def _row(standing: Standing, group: Group) -> dict[str, object]:
    row = standing.row
    reported = [f"{reason}: {count}" for reason, count in sorted(row.reported.items())]
    return {
        "rank": "" if standing.rank is None else standing.rank,
        "name": shown_name(standing),
        "cells": [
            shown_value(row.metrics[name].value if name in row.metrics else None, metric.unit)
            for name, metric in group.metrics.items()
        ],
        "told": "; ".join([*filter(None, [shown_point(standing)]), *reported]),
        "predictions": row.predictions[:19],
    }
