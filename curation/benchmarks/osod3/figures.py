"""Figure of open-set detection: A-OSE and WI over the threshold (Fig. 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.figure_style import (
    MARKERS,
    SERIES,
    add_key,
    plain,
    save_figure,
    set_title,
    small_multiples,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = ("theta", "A_OSE", "WI", "WI_all_fp")
_MOST_MARKED = 40


def threshold_figure(curves: Mapping[str, Sequence[Mapping[str, Any]]], stem: Path, *, profile: str = "") -> list[Path]:
    """Draw A-OSE and WI as functions of the confidence threshold, a line a case (Fig. 3 of the paper).

    Parameters
    ----------
    curves : mapping of str to rows
        By case; rows as `curation.benchmarks.osod3.evaluation.threshold_curve` returns them.
    stem : Path
        Path without suffix.
    profile : str
        Of the numbers, for the title.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.
    """

    def draw() -> Figure:
        figure, (errors, impact) = small_multiples(2, height=2.3)
        for place, (case, rows) in enumerate(curves.items()):
            thetas = [row["theta"] for row in rows]
            # The numbers are counted at these thresholds, the marks, and change somewhere between them: no slopes.
            style: dict[str, Any] = {
                "color": SERIES[place % len(SERIES)],
                "label": f"case {plain(case)}",
                "drawstyle": "steps-post",
                "marker": MARKERS[place % len(MARKERS)],
                "markersize": 4 if len(rows) <= _MOST_MARKED else 0,
                "clip_on": False,
            }
            errors.plot(thetas, [row["A_OSE"] for row in rows], **style)
            impact.plot(thetas, [float("nan") if row["WI"] is None else row["WI"] for row in rows], **style)
        errors.set(title="Open-set errors (A-OSE)", ylabel="detections of known classes\non unknown objects")
        whole_numbers(errors)
        impact.set(title="Wilderness impact (WI)", ylabel="WI")
        for axes in (errors, impact):
            axes.set_xlabel("confidence threshold θ")
            axes.set_ylim(0, 1.05 * max(axes.get_ylim()[1], 1e-9))
        add_key(figure, [errors])
        set_title(figure, "Open-set error over the confidence threshold", profile and f"profile {profile}")
        return figure

    rows = [(case, *(row[name] for name in _COLUMNS)) for case, found in curves.items() for row in found]
    return save_figure(draw, stem, ("case", *_COLUMNS), rows)
