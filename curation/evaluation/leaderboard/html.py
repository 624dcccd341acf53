"""A leaderboard as one HTML page: no script, no other file, every text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from curation.evaluation.leaderboard.ranking import Group, Standing

_PLACES = {"%": 2, "share": 4, "ratio": 4}
_LONGEST = 120
_STYLE = """
:root{color-scheme:light dark;--ink:#1d2126;--mute:#5d6670;--line:#d9dde2;--back:#fff;--soft:#f4f6f8}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ec;--mute:#9aa4ae;--line:#363c44;--back:#14171a;--soft:#1d2126}}
body{margin:0 auto;padding:1.25rem;max-width:72rem;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0 0 .25rem}
h2{font-size:1.1rem;margin:2rem 0 .25rem;overflow-wrap:anywhere}
p{margin:.25rem 0}
.mute{color:var(--mute)}
code{font:13px/1.45 ui-monospace,monospace;overflow-wrap:anywhere}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:14px}
th,td{text-align:right;padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top;
font-variant-numeric:tabular-nums}
th{color:var(--mute);font-weight:600}
.name{text-align:left;min-width:10rem;overflow-wrap:anywhere}
.by{background:var(--soft)}
footer{margin-top:2rem;border-top:1px solid var(--line);padding-top:.5rem}
@media print{body{max-width:none;padding:0;font-size:11px}.scroll{overflow:visible}}
"""


def leaderboard_html(groups: Sequence[Group], *, file: str, digest: str) -> str:
    """Return the page.

    Parameters
    ----------
    file, digest : str
        Name and digest of the file of rows.
    """
    parts = "".join(map(_group, groups)) or "<p>The file holds no row.</p>\n"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>Leaderboard of {_text(file)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>Leaderboard of {_text(file)}</h1>\n"
        f'<p class="mute"><code>{_text(digest)}</code></p>\n'
        "<p>Rows are ranked within a group only: rows of another manifest, part, profile, choice of settings or "
        f"evaluator version are not comparable.</p>\n</header>\n{parts}</body>\n</html>\n"
    )


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
        f"{name} {arrows[metric.better]}{' %' if metric.unit == '%' else ''}"
        for name, metric in group.metrics.items()
    ]


def _group(group: Group) -> str:
    ground = group.ground
    title = " · ".join(filter(None, (ground.protocol, ground.part, ground.profile)))
    facts = [
        ground.data,
        ground.settings,
        ground.evaluator,
        f"ranked by {group.metric}, {_way(group)}",
        *group.notes(),
    ]
    about = "".join(f'<p class="mute">{_text(one, 600)}</p>\n' for one in facts if one)
    heads = "".join(
        f"<th{_by(name, group)}>{_text(head)}</th>"
        for name, head in zip(group.metrics, column_heads(group), strict=True)
    )
    rows = "".join(_row(one, group) for one in group.standings)
    return (
        f"<section>\n<h2>{group.number}. {_text(title, 400)}</h2>\n{about}"
        f'<div class="scroll"><table><thead><tr><th>rank</th><th class="name">method</th>{heads}'
        f'<th class="name">read at</th><th class="name">predictions</th></tr></thead><tbody>\n{rows}'
        "</tbody></table></div>\n</section>\n"
    )


def _row(standing: Standing, group: Group) -> str:
    row = standing.row
    cells = []
    for name, metric in group.metrics.items():
        value = row.metrics[name].value if name in row.metrics else None
        cells.append(f"<td{_by(name, group)}>{_text(shown_value(value, metric.unit))}</td>")
    told = [point] if (point := shown_point(standing)) else []
    told += [f"{reason}: {count}" for reason, count in sorted(row.reported.items())]
    return (
        f"<tr><td>{'' if standing.rank is None else standing.rank}</td>"
        f'<td class="name">{_text(shown_name(standing), 420)}</td>{"".join(cells)}'
        f'<td class="name">{_text("; ".join(told), 400)}</td>'
        f'<td class="name"><code>{_text(row.predictions[:19])}</code></td></tr>\n'
    )


def _way(group: Group) -> str:
    metric = group.metrics[group.metric]
    return f"{metric.better} is better, unit {metric.unit}"


def _by(name: str, group: Group) -> str:
    return ' class="by"' if name == group.metric else ""


def _text(text: str, limit: int = _LONGEST) -> str:
    """Return a text from a file for HTML: escaped, without control characters, not longer than `limit`."""
    printable = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    return escape(printable if len(printable) <= limit else printable[: limit - 1] + "…")
