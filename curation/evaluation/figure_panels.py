"""What is drawn on the axes of each figure, and the frames around it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.figure_style import GRID, INK, MARKERS, MUTED, RECALL_COLOURS, SERIES, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Result = Mapping[str, Any]

ERROR_COLOURS = {
    "localization": "#56B4E9",
    "similar": "#009E73",
    "other": "#F0E442",
    "mixed_unknown": "#B8B8B8",
    "unknown_unknown": "#D55E00",
}
SECTION_TITLES = {"closed": "closed set", "wr1": "closed set + as many wilderness images"}
FLAVOURS = {"mAP11": "mAP (11-point)", "mAP_area": "mAP (area)", "mAP": "mAP (11-point, official)"}


def draw_impacts_of_one(
    axis: Axes,
    results: Mapping[str, Result],
    recalls: Sequence[str],
    reading: str,
    intervals: Mapping[str, Result] | None,
) -> None:
    """Draw WI of one detector, one line a recall."""
    ((detector, result),) = results.items()
    for number, recall in enumerate(recalls):
        colour = RECALL_COLOURS.get(recall, SERIES[number % len(SERIES)])
        _draw_line(axis, result["levels"], impact_of(result, recall, reading), colour, number, f"recall {recall}")
        _draw_band(axis, result["levels"], (intervals or {}).get(detector), recall, reading, colour)
    axis.set_title(plain(detector))
    _finish_impact(axis)


def draw_impacts_of_many(
    axis: Axes,
    results: Mapping[str, Result],
    recall: str,
    reading: str,
    intervals: Mapping[str, Result] | None,
) -> None:
    """Draw WI at one recall, one line a detector."""
    for number, (detector, result) in enumerate(results.items()):
        colour = SERIES[number % len(SERIES)]
        if recall in result["WI"]:
            _draw_line(axis, result["levels"], impact_of(result, recall, reading), colour, number, plain(detector))
        _draw_band(axis, result["levels"], (intervals or {}).get(detector), recall, reading, colour)
    axis.set_title(f"recall {recall}")
    _finish_impact(axis)


def _finish_impact(axis: Axes) -> None:
    axis.set_ylim(bottom=0)
    axis.set(xlabel="wilderness ratio", ylabel="wilderness impact")
    axis.legend(loc="upper left")


def draw_mean_precision(axis: Axes, results: Mapping[str, Result], flavours: Sequence[str]) -> None:
    """Draw mAP against the wilderness ratio: the first flavour solid, area AP dashed."""
    for number, (detector, result) in enumerate(results.items()):
        for flavour in flavours:
            if flavour not in result:
                continue
            label = FLAVOURS[flavour] if len(results) == 1 else plain(detector)
            line = _draw_line(axis, result["levels"], result[flavour], SERIES[number % len(SERIES)], number, label)
            if flavour == "mAP_area":
                line.set(linestyle="--", marker="")
                if len(results) > 1:
                    line.set_label("_hidden")
    axis.set(xlabel="wilderness ratio", ylabel="mAP", title="mAP")
    if len(results) > 1 and len(flavours) > 1:
        axis.set_title("mAP: 11-point (solid), area (dashed)")
    axis.legend(loc="best")


def _draw_line(
    axis: Axes, levels: Sequence[str], values: Sequence[float | None], colour: str, number: int, label: str
) -> Any:
    x = [float(level) for level in levels]
    y = [math.nan if value is None else value for value in values]
    every = max(1, len(x) // 10)
    (line,) = axis.plot(x, y, color=colour, marker=MARKERS[number % len(MARKERS)], markevery=every, label=label)
    return line


def _draw_band(
    axis: Axes, levels: Sequence[str], interval: Result | None, recall: str, reading: str, colour: str
) -> None:
    if interval is None or recall not in interval["WI"]:
        return
    band = {entry["level"]: entry for entry in interval["WI"][recall][reading] if entry["low"] is not None}
    x = [level for level in levels if level in band]
    low, high = ([band[level][side] for level in x] for side in ("low", "high"))
    axis.fill_between([float(level) for level in x], low, high, color=colour, alpha=0.18, linewidth=0)


def draw_error_bars(axis: Axes, bars: Sequence[tuple[str, Mapping[str, int]]], *, labelled: bool) -> float:
    """Draw one stacked bar a class, the shares of each kind of error, and return the longest in per cent."""
    positions = np.arange(len(bars))[::-1]
    totals = np.array([_total(counts) for _, counts in bars])
    left = np.zeros(len(bars))
    for kind, colour in ERROR_COLOURS.items():
        share = 100 * np.array([counts[kind] for _, counts in bars]) / np.maximum(totals, 1)
        axis.barh(
            positions, share, left=left, height=0.72, color=colour, edgecolor="white", linewidth=0.5,
            label=kind.replace("_", " "),
        )  # fmt: skip
        left += share
    for position, end, total in zip(positions, left, totals, strict=True):
        text = f" n = {total}" if total else " none kept"
        axis.text(end, position, text, va="center", fontsize=6.5, color=MUTED)
    axis.set_yticks(positions, [plain(name, 20) for name, _ in bars] if labelled else [""] * len(bars), fontsize=7.5)
    axis.set_ylim(-0.6, len(bars) - 0.4)
    axis.grid(visible=False, axis="y")
    return float(left.max())


def draw_cells(axis: Axes, n_rows: int, n_columns: int) -> None:
    """Draw light lines between the cells of a matrix image."""
    axis.grid(visible=False)
    axis.set_xticks(np.arange(n_columns + 1) - 0.5, minor=True)
    axis.set_yticks(np.arange(n_rows + 1) - 0.5, minor=True)
    axis.grid(visible=True, which="minor", color=GRID, linewidth=0.5)
    axis.tick_params(which="both", length=0)


def draw_curve(axis: Axes, curve: Result | None, number: int, label: str) -> None:
    """Draw one precision-recall curve; an absent one keeps its place in the legend."""
    recall, precision = (curve["recall"], curve["precision"]) if curve else ((), ())
    axis.plot(recall, precision, color=SERIES[number % len(SERIES)], linewidth=1.4, label=label)


def mark_thresholds(axis: Axes, by_recall: Mapping[str, Mapping[str, Any]], name: str, number: int) -> None:
    """Mark the operating points of one class on its curve."""
    for by_class in by_recall.values():
        point = by_class.get(name)
        if point and point["threshold"] is not None and point["TP_c"]:
            precision = point["TP_c"] / (point["TP_c"] + point["FP_c"])
            axis.plot(
                point["recall"], precision, MARKERS[number % len(MARKERS)], color=SERIES[number % len(SERIES)],
                markeredgecolor="white", markeredgewidth=0.8, markersize=6, zorder=5,
            )  # fmt: skip


def _total(counts: Mapping[str, int]) -> int:
    return counts["correct"] + sum(counts[kind] for kind in ERROR_COLOURS)


def impact_of(result: Result, recall: str, reading: str) -> Any:
    """Return WI over the levels in one reading; the official profile has only one."""
    impact = result["WI"].get(recall)
    return impact[reading] if isinstance(impact, Mapping) else impact


def spread_text(gap: Result) -> str:
    """Return n, mean and standard deviation of a background gap, one a line."""
    if gap["mean"] is None:
        return "n = 0"
    return f"n = {gap['n']}\nmean {gap['mean']:.2f}\nstd {gap['std_population']:.2f}"


def new_panels(n: int, *, columns: int, width: float, height: float, shared: bool = False) -> tuple[Figure, list[Axes]]:
    """Return a figure with `n` panels of a size in inches, at most `columns` a line."""
    columns = min(n, columns)
    lines = -(-n // columns)
    figure = new_figure(max(width * columns + 0.5, 3.6), height * lines + 0.5)
    axes = figure.subplots(lines, columns, squeeze=False, sharex=shared, sharey=shared).ravel().tolist()
    for spare in axes[n:]:
        spare.remove()
    for bottom in axes[max(n - columns, 0) : n]:
        bottom.tick_params(labelbottom=True)
    return figure, axes[:n]


def label_outer(axes: Sequence[Axes], below: str, left: str) -> None:
    """Label the lowest panel of each column and the first of each line."""
    columns = max(axis.get_subplotspec().get_geometry()[1] for axis in axes)  # type: ignore[union-attr]
    for number, axis in enumerate(axes):
        if number + columns >= len(axes):
            axis.set_xlabel(below)
        if number % columns == 0:
            axis.set_ylabel(left)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure; sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def set_title(figure: Figure, title: str, note: str) -> None:
    """Set the title of a figure, with a note in brackets."""
    figure.suptitle(title + (f"  ({plain(note, 120)})" if note else ""), fontsize=11, fontweight="bold", color=INK)
