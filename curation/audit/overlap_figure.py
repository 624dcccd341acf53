"""The figure of what lists share: a heat map of overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from curation.audit.forensics import Forensics
from curation.errors import UsageError
from curation.figure_style import INK, MUTED, SMALL, add_scale, new_matrix, plain, save_figure, set_title
from curation.sources.source import Floats, Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LISTS = 60
_HEADER = ("list", "other", "ids", "ids_of_other", "shared", "share_of_list")


def overlap_figure(found: Forensics, stem: Path, *, lists: Sequence[str] | None = None) -> list[Path]:
    """Draw which share of each row's list stands in each column's list; behind a row's name stands how many ids it has.

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
    size = len(names)
    named = [f"{plain(name, 34)}  {_short(int(overlap[row, row]))}" for row, name in enumerate(names)]
    figure, axis, fits = new_matrix(named, names)
    shown = np.where(np.eye(size, dtype=bool) | (overlap == 0), np.nan, share)
    image = axis.imshow(100 * shown, cmap="Blues", vmin=0, vmax=100, aspect="auto", interpolation="none")
    axis.tick_params(top=False, bottom=False, labeltop=True, labelbottom=False)
    for row, column in np.argwhere((overlap > 0) & ~np.eye(size, dtype=bool)).tolist():
        part = float(share[row, column])
        colour = "white" if part > 0.55 else INK
        if fits:
            axis.text(column, row, _percent(part), ha="center", va="center", fontsize=SMALL, color=colour)
        elif part == 1:
            axis.plot(column, row, "o", markersize=2.4, color=colour)
    _mark_folders(axis, names)
    add_scale(figure, axis, image, "of the row's ids, %")
    note = f"{plain(title, 40)}; behind a name: its ids; white: none in common{'' if fits else '; dot: all'}"
    set_title(figure, "Ids of each row's list that stand in the column's list too", note)
    return figure


def _percent(part: float) -> str:
    # A share just below one is no whole, and one just above none is not nothing.
    percent = 100 if part == 1 else min(round(100 * part), 99)
    return f"{percent}" if percent else "<1"


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
