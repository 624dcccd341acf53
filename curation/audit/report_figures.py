"""Figures of a report as inline SVG: what each task consists of, and what lists share."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from curation.audit.report import TaskComposition

_ROW, _LEFT, _BAR, _TEXT = 30, 64, 150, 13
_COLUMNS = ("train", "finetune", "val", "test")
_CELL, _LABEL = 46, 150
MOST_LISTS = 24
"""A larger matrix is unreadable; the first lists by name are shown."""


def clean(text: str, limit: int = 80) -> str:
    """Return a text from a file for HTML: escaped, without control characters, not longer than `limit`."""
    printable = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )
    return escape(printable if len(printable) <= limit else printable[: limit - 1] + "…")


def composition_svg(tasks: Sequence[TaskComposition]) -> str:
    """Return bars of the images of each task and role; the dark part of train hides objects still unknown."""
    columns = [name for name in _COLUMNS if any(getattr(one, name) is not None for one in tasks)]
    width, height = _LEFT + 110 + len(columns) * (_BAR + 20), 30 + _ROW * len(tasks) + 6
    parts = [_svg_open(width, height, "Images of each task by role")]
    parts.append(_text(_LEFT, 18, "classes", "mute"))
    for place, name in enumerate(columns):
        parts.append(_text(_LEFT + 110 + place * (_BAR + 20), 18, f"{name} images", "mute"))
    for row, one in enumerate(tasks):
        y = 30 + row * _ROW
        parts.append(_text(0, y + 17, one.task, "strong"))
        parts.append(_text(_LEFT, y + 17, f"+{one.introduced} = {one.known}", ""))
        for place, name in enumerate(columns):
            longest = max(getattr(other, name) or 0 for other in tasks)
            x = _LEFT + 110 + place * (_BAR + 20)
            hidden = one.hiding if name == "train" else None
            least = "at least " if one.hiding_at_least else ""
            parts += _bar(x, y, getattr(one, name), longest, hidden, least)
    return "".join([*parts, "</svg>"])


def _bar(x: int, y: int, value: int | None, longest: int, hidden: int | None, least: str) -> list[str]:
    if value is None:
        return [_text(x, y + 17, "none", "mute")]
    length = round((_BAR - 62) * value / max(longest, 1), 1)
    parts = [f'<rect class="bar" x="{x}" y="{y + 5}" width="{length}" height="16" rx="2"/>']
    if hidden:
        part = round(length * min(hidden / max(value, 1), 1), 1)
        parts.append(
            f'<rect class="hidden" x="{x}" y="{y + 5}" width="{part}" height="16" rx="2">'
            f"<title>{least}{hidden:,} of {value:,} hide objects of classes still unknown</title></rect>"
        )
    return [*parts, _text(round(x + length + 5, 1), y + 17, f"{value:,}", "")]


def overlap_svg(names: Sequence[str], shared: Sequence[Sequence[int]]) -> str:
    """Return the matrix of shared images; a cell is as dark as the share of the row's list that the column's holds."""
    size = len(names)
    width, height = _LABEL + size * _CELL + 90, 104 + size * 24
    parts = [_svg_open(width, height, "Images that lists share")]
    for place, name in enumerate(names):
        x = _LABEL + place * _CELL + 14
        parts.append(f'<text x="{x}" y="96" transform="rotate(-48 {x} 96)">{clean(name, 20)}</text>')
    for row, name in enumerate(names):
        y = 104 + row * 24
        parts.append(f'<text x="{_LABEL - 8}" y="{y + 16}" text-anchor="end">{clean(name, 24)}</text>')
        for column, other in enumerate(names):
            share = shared[row][column] / max(shared[row][row], 1)
            parts.append(_cell(_LABEL + column * _CELL, y, share, shared[row][column], name, other))
    return "".join([*parts, "</svg>"])


def _cell(x: int, y: int, share: float, count: int, row: str, column: str) -> str:
    text = "" if not count else "100%" if share == 1 else "&lt;1%" if share < 0.01 else f"{share:.0%}"
    # A share just below one is no whole.
    text = "99%" if text == "100%" and share < 1 else text
    ink = "on" if share > 0.55 else "off"
    return (
        f"<g><title>{count:,} images of {clean(row)} are in {clean(column)}</title>"
        f'<rect class="cell" x="{x}" y="{y}" width="{_CELL - 2}" height="22" fill-opacity="{share:.3f}"/>'
        f'<text class="{ink}" x="{x + _CELL / 2 - 1:g}" y="{y + 15}" text-anchor="middle">{text}</text></g>'
    )


def _svg_open(width: int, height: int, label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{label}">'
    )


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{clean(text)}</text>'
