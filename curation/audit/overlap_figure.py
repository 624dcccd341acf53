"""The figure of what lists share: a heat map of overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from curation.audit.forensics import Forensics
from curation.errors import UsageError
from curation.figure_style import GRID, INK, MUTED, plain, save_figure
from curation.sources.source import Floats, Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LISTS = 60
_HEADER = ("list", "other", "ids", "ids_of_other", "shared", "share_of_list")
_CELL, _LARGE_CELL, _MARGIN, _BAR, _FOOT = 0.27, 0.36, 2.4, 0.75, 0.5
"""Inches."""
_WITH_TEXT = 48


def overlap_figure(found: Forensics, stem: Path, *, lists: Sequence[str] | None = None) -> list[Path]:
    """Draw which share of each row's list stands in each column's list; the diagonal shows how many ids a list has.

    Parameters
    ----------
    found : Forensics
    stem : Path
        Path without suffix.
    lists : sequence of str, optional
        Names of the lists to show, in this order; all by default.

    Returns
    -------
    list of Path
        PNG, SVG, and the CSV of all pairs.

    Raises
    ------
    UsageError
        A list is not there, or there are more than can be read.
    """
    rows = _rows_of(found, lists)
    names = [found.names[row] for row in rows]
    overlap = found.overlap[np.ix_(rows, rows)]
    sizes = np.diagonal(overlap)
    share = overlap / np.maximum(sizes, 1)[:, None]
    table = (
        (
            names[i],
            names[j],
            int(sizes[i]),
            int(sizes[j]),
            int(overlap[i, j]),
            float(share[i, j]) if sizes[i] else None,
        )
        for i in range(len(rows))
        for j in range(len(rows))
    )
    return save_figure(lambda: _draw(found.name, names, overlap, share), stem, _HEADER, table)


def _rows_of(found: Forensics, lists: Sequence[str] | None) -> list[int]:
    chosen = list(found.names if lists is None else lists)
    if missing := [name for name in chosen if name not in found.names]:
        raise UsageError("There is no such list", found=missing[0][:120], expected=", ".join(found.names)[:400])
    if not 0 < len(chosen) <= MOST_LISTS:
        raise UsageError(
            "A figure of overlaps cannot show that many lists",
            expected=f"1 to {MOST_LISTS}",
            found=str(len(chosen)),
            hint="name the lists to show",
        )
    return [found.names.index(name) for name in chosen]


def _draw(title: str, names: Sequence[str], overlap: Int64s, share: Floats) -> Figure:
    from matplotlib.figure import Figure

    size = len(names)
    side = size * (_CELL if size > 12 else _LARGE_CELL)
    width, height = _MARGIN + side + _BAR, _MARGIN + side + _FOOT
    figure = Figure(figsize=(width, height))
    axis = figure.add_axes((_MARGIN / width, _FOOT / height, side / width, side / height))
    shown = np.where(np.eye(size, dtype=bool) | (overlap == 0), np.nan, share)
    image = axis.imshow(shown, cmap="Blues", vmin=0, vmax=1, aspect="equal", interpolation="none")
    for row in range(size):
        for column in range(size):
            _label(axis, row, column, overlap, share, size)
    _name_cells(axis, names)
    _mark_folders(axis, names)
    length = min(side, 1.8)
    bar_axis = figure.add_axes(
        ((_MARGIN + side + 0.15) / width, (_FOOT + side - length) / height, 0.13 / width, length / height)
    )
    bar = figure.colorbar(image, cax=bar_axis)
    bar.outline.set_visible(False)
    bar.set_ticks([0, 0.5, 1], labels=["0 %", "50 %", "100 %"])
    caption = (
        f"{plain(title, 40)}: per cent of the row's ids that stand in the column too;",
        "diagonal: ids of the list; white: none in common",
    )
    figure.text(0, 0.1 / height, (" " if size > 20 else "\n").join(caption), fontsize=7.5, color=MUTED, va="bottom")
    return figure


def _name_cells(axis: Axes, names: Sequence[str]) -> None:
    size = len(names)
    labels = [plain(name, 34) for name in names]
    axis.set_xticks(range(size), labels, rotation=90)
    axis.set_yticks(range(size), labels)
    axis.tick_params(length=0, labelsize=7, top=False, bottom=False, labeltop=True, labelbottom=False, labelcolor=INK)
    axis.set_xticks(np.arange(-0.5, size), minor=True)
    axis.set_yticks(np.arange(-0.5, size), minor=True)
    axis.grid(visible=False, which="major")
    axis.grid(which="minor", color=GRID, linewidth=0.6)
    axis.tick_params(which="minor", length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)


def _label(axis: Axes, row: int, column: int, overlap: Int64s, share: Floats, size: int) -> None:
    count, part = int(overlap[row, column]), float(share[row, column])
    if row == column:
        text, colour = _short(count), MUTED
    elif not count or size > _WITH_TEXT:
        return
    else:
        # A share just below one is no whole, and one just above none is not nothing.
        percent = 100 if part == 1 else min(round(100 * part), 99)
        text, colour = f"{percent}" if percent else "<1", "white" if part > 0.55 else INK
    axis.text(column, row, text, ha="center", va="center", fontsize=5.5, color=colour)


def _short(count: int) -> str:
    """Return a count in at most four characters; the table holds it in full."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if count >= 10 * unit:
            return f"{count / unit:.0f}{name}"
        if count >= unit:
            return f"{count / unit:.1f}{name}"
    return str(count)


def _mark_folders(axis: Axes, names: Sequence[str]) -> None:
    folders = [name.rpartition("/")[0] for name in names]
    for place in range(1, len(names)):
        if folders[place] != folders[place - 1]:
            for draw in (axis.axhline, axis.axvline):
                draw(place - 0.5, color=MUTED, linewidth=0.7)
