"""Figures of an evaluation, each as PNG and SVG with the CSV of what it shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation import figure_style as style
from curation.benchmarks.elephant.diagnosis import EDGES
from curation.benchmarks.elephant.measures import impact_of
from curation.evaluation.figures import Result, require_content
from curation.figure_style import INK, MARKERS, MUTED, RECALL_COLOURS, SERIES, SMALL, plain, save_figure, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ERROR_COLOURS = {
    "localization": "#56B4E9",
    "similar": "#009E73",
    "other": "#E69F00",
    "mixed_unknown": "#B8B8B8",
    "unknown_unknown": "#D55E00",
}
_SECTION_TITLES = {"closed": "closed set", "wr1": "closed set + as many wilderness images"}
_FLAVOURS = {"mAP11": "mAP (11-point)", "mAP_area": "mAP (area)", "mAP": "mAP (11-point, official)"}


def wilderness_curve(
    results: Mapping[str, Result],
    stem: Path,
    *,
    reading: str = "macro",
    intervals: Mapping[str, Result] | None = None,
    note: str = "",
) -> list[Path]:
    """Draw wilderness impact and mAP against the wilderness ratio (Elephant paper, Fig. 5).

    Parameters
    ----------
    results : mapping of detector name to result
        Each with ``levels`` (decimal texts), ``WI[recall][reading]`` (or ``WI[recall]``) and ``mAP11``, ``mAP_area`` or
        ``mAP``: one number a level, None where undefined (a gap in the line).
    stem : Path
        Path without suffix.
    reading : str
        ``macro``, ``pooled`` or ``ratio_of_mean_precision``.
    intervals : mapping of detector name to bootstrap result, optional
        Drawn as bands around WI.
    note : str
        Added to the title, such as the variant.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.
    """
    require_content(results, stem, "results")
    recalls = list(dict.fromkeys(recall for result in results.values() for recall in result["WI"]))
    if all(isinstance(impact, list) for result in results.values() for impact in result["WI"].values()):
        # The official code has one reading, whatever is asked for.
        reading = "mean_interpolated_precision"
    flavours = [name for name in _FLAVOURS if any(name in result for result in results.values())]
    rows = []
    for detector, result in results.items():
        columns = [*(impact_of(result, recall, reading) for recall in recalls), *map(result.get, flavours)]
        for k, level in enumerate(result["levels"]):
            rows.append((detector, level, *(column and column[k] for column in columns)))
    header = ("detector", "wilderness_ratio", *(f"WI_{reading}_recall_{r}" for r in recalls), *flavours)

    def draw() -> Figure:
        alone = len(results) == 1
        # One detector has a line a recall; several have a panel a recall.
        panels = [recalls] if alone else [[recall] for recall in recalls]
        figure, axes = style.small_multiples(len(panels) + 1, height=2.3)
        for axis, shown in zip(axes[:-1], panels, strict=True):
            lines = [(recall, detector) for recall in shown for detector in results]
            for number, (recall, detector) in enumerate(lines):
                result, band = results[detector], (intervals or {}).get(detector)
                colour = SERIES[number % len(SERIES)]
                colour = RECALL_COLOURS.get(recall, colour) if alone else colour
                if recall in result["WI"]:
                    label = f"recall {recall}" if alone else plain(detector)
                    _draw_line(axis, result["levels"], impact_of(result, recall, reading), number, label, colour)
                if band and recall in band["WI"]:
                    _draw_band(axis, result["levels"], band["WI"][recall][reading], colour)
            axis.set_title("Wilderness impact" if alone else f"Impact at recall {shown[0]}")
            axis.set_ylim(bottom=0)
        if alone:
            axes[0].legend(loc="upper left")
        else:
            highest = max(axis.get_ylim()[1] for axis in axes[:-1])
            for axis in axes[:-1]:
                axis.set_ylim(0, highest)
            style.add_key(figure, axes)
        _draw_mean_precision(axes[-1], results, flavours[:2])
        style.label_outer(axes, "wilderness ratio", "wilderness impact")
        axes[-1].set_ylabel("mAP")
        set_title(figure, f"Wilderness impact ({reading.replace('_', ' ')}) and mAP", note)
        return figure

    return save_figure(draw, stem, header, rows)


def _draw_mean_precision(axis: Axes, results: Mapping[str, Result], flavours: Sequence[str]) -> None:
    """Draw mAP against the wilderness ratio: the first flavour solid, area AP dashed."""
    alone = len(results) == 1
    for number, (detector, result) in enumerate(results.items()):
        for flavour in (one for one in flavours if one in result):
            dashed = flavour == "mAP_area"
            label = _FLAVOURS[flavour] if alone else "_hidden" if dashed else plain(detector)
            line = _draw_line(axis, result["levels"], result[flavour], number, label)
            if dashed:
                line.set(linestyle="--", marker="")
    axis.set_title("mAP (dashed: area)" if not alone and len(flavours) > 1 else "mAP")
    if alone:
        axis.legend(loc="best")


def _draw_line(
    axis: Axes, levels: Sequence[str], values: Sequence[float | None], number: int, label: str, colour: str = ""
) -> Any:
    axis.locator_params(axis="x", nbins=6)
    x, y = list(map(float, levels)), [math.nan if value is None else value for value in values]
    look: dict[str, Any] = {"color": colour or SERIES[number % len(SERIES)], "marker": MARKERS[number % len(MARKERS)]}
    (line,) = axis.plot(x, y, markevery=max(1, len(x) // 10), label=label, **look)
    return line


def _draw_band(axis: Axes, levels: Sequence[str], interval: Sequence[Result], colour: str) -> None:
    band = [one for one in interval if one["low"] is not None and one["level"] in levels]
    x, low, high = ([float(one[side]) for one in band] for side in ("level", "low", "high"))
    label = "bootstrap interval"
    told = label in axis.get_legend_handles_labels()[1]
    axis.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0, label="" if told else label)


def error_bars(diagnoses: Mapping[str, Result], stem: Path, *, recall: str = "0.3", note: str = "") -> list[Path]:
    """Draw the shares of each kind of error among the kept detections, per class (Elephant paper, Fig. 3).

    Parameters
    ----------
    diagnoses : mapping of detector name to the result of `curation.benchmarks.elephant.diagnosis.diagnose`
    stem : Path
    recall : str
        The operating point, a key of each diagnosis.
    """
    require_content(diagnoses, stem, "diagnoses")
    kinds = ("correct", *_ERROR_COLOURS, "ignored")
    sections = [name for name in _SECTION_TITLES if all(d[recall][name] is not None for d in diagnoses.values())]
    bars = {name: {one: list(_bars(d[recall][one])) for one in sections} for name, d in diagnoses.items()}
    rows = [
        (detector, section, name, recall, *(counts[kind] for kind in kinds))
        for detector, by_section in bars.items()
        for section, shown in by_section.items()
        for name, counts in shown
    ]

    def draw() -> Figure:
        heights = [len(by_section["closed"]) for by_section in bars.values()]
        figure = style.new_figure(style.PAGE, sum(0.17 * height + 0.7 for height in heights) + 0.6)
        grid = {"height_ratios": heights}
        axes = figure.subplots(len(bars), len(sections), squeeze=False, sharex=True, gridspec_kw=grid)
        longest = 0.01
        for line, (detector, by_section) in zip(axes, bars.items(), strict=True):
            prefix = f"{plain(detector)}: " if len(bars) > 1 else ""
            for axis, (section, shown) in zip(line, by_section.items(), strict=True):
                longest = max(longest, _draw_error_bars(axis, shown, labelled=axis is line[0]))
                axis.set_title(prefix + _SECTION_TITLES[section])
        for axis in axes[-1]:
            # Room for the count beside the longest bar.
            axis.set(xlabel="share of kept detections", xlim=(0, longest * 1.25))
        style.add_key(figure, axes.ravel().tolist())
        set_title(figure, f"Errors at the threshold of recall {recall}", note)
        return figure

    return save_figure(draw, stem, ("detector", "section", "class", "recall", *kinds), rows)


def _bars(section: Result) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield the classes with a threshold, then all together."""
    yield from ((name, counts) for name, counts in section["per_class"].items() if counts is not None)
    yield "all classes", section["total"]


def _draw_error_bars(axis: Axes, bars: Sequence[tuple[str, Mapping[str, int]]], *, labelled: bool) -> float:
    """Draw one stacked bar a class, the shares of each kind of error, and return the longest."""
    positions = np.arange(len(bars))[::-1]
    totals = np.array([sum(counts[kind] for kind in ("correct", *_ERROR_COLOURS)) for _, counts in bars])
    left = np.zeros(len(bars))
    look: dict[str, Any] = {"height": 0.72, "edgecolor": "white", "linewidth": 0.5}
    for kind, colour in _ERROR_COLOURS.items():
        share = np.array([counts[kind] for _, counts in bars]) / np.maximum(totals, 1)
        if share.any():
            axis.barh(positions, share, left=left, color=colour, label=kind.replace("_", " "), **look)
        left += share
    for position, end, total in zip(positions, left, totals, strict=True):
        text = f" n = {total}" if total else " none kept"
        axis.text(end, position, text, va="center", fontsize=SMALL, color=MUTED)
    axis.set_yticks(positions, [plain(name, 20) if labelled else "" for name, _ in bars])
    axis.set_ylim(-0.6, len(bars) - 0.4)
    axis.grid(visible=False, axis="y")
    return float(left.max())


def confusion_figure(matrix: Result, stem: Path, *, title: str = "", note: str = "") -> list[Path]:
    """Draw what the detections of each known class lie on (Elephant paper, Fig. 4): log colour, zero white.

    Parameters
    ----------
    matrix : dict
        ``rows`` (predicted classes), ``columns`` (true classes) and ``counts``, shape (rows, columns), as
        `curation.benchmarks.elephant.diagnosis.full_matrix` returns them.
    """
    detected, true = matrix["rows"], matrix["columns"]
    require_content(true if detected else (), stem, "confusion matrix")
    counts = np.asarray(matrix["counts"], np.int64).reshape(len(detected), len(true))
    has_unknown = len(true) > len(detected)

    def draw() -> Figure:
        from matplotlib.colors import LogNorm

        most = max(int(counts.max()), 10)
        figure, axis, fits = style.new_matrix(true, detected, "detected class")
        shown = np.ma.masked_equal(counts.T, 0)
        image = axis.imshow(shown, cmap="viridis_r", norm=LogNorm(1, most), aspect="auto", interpolation="none")
        for row, column in np.argwhere(counts.T).tolist() if fits else ():
            count = int(counts[column, row])
            colour = "white" if count > most**0.45 else INK
            axis.text(column, row, f"{count}", ha="center", va="center", fontsize=SMALL, color=colour)
        if has_unknown:
            # The known classes come first: what lies below the line is not in the training set.
            axis.axhline(len(detected) - 0.5, color=INK, linewidth=1.2)
        axis.set_ylabel("true class: the object of highest IoU")
        style.add_scale(figure, axis, image, "detections")
        told = "; ".join(filter(None, [note, "below the line: unknown classes" if has_unknown else ""]))
        set_title(figure, title or "Confusion of true and detected classes", told)
        return figure

    rows = [(name, *line) for name, line in zip(detected, counts.tolist(), strict=True)]
    return save_figure(draw, stem, ("detected", *true), rows)


def background_histogram(gaps: Result, stem: Path, *, note: str = "") -> list[Path]:
    """Draw how far correct detections stand above the background score, one panel a class (Elephant paper, Fig. 8).

    A class without correct detections has no panel; the table lists it.

    Parameters
    ----------
    gaps : dict
        What `curation.benchmarks.elephant.diagnosis.background_gap` returns.
    """
    shown = {name: gap for name, gap in gaps.items() if gap["hist20"] is not None}
    require_content(shown, stem, "background scores")
    edges = EDGES.tolist()
    rows = [
        (name, *bin_) for name, gap in shown.items() for bin_ in zip(edges[:-1], edges[1:], gap["hist20"], strict=True)
    ]
    drawn = {name: gap for name, gap in shown.items() if gap["n"]} or shown

    def draw() -> Figure:
        figure, axes = style.small_multiples(len(drawn), most=5, height=1.45)
        look: dict[str, Any] = {"color": SERIES[0], "edgecolor": "white", "linewidth": 0.6}
        for axis, (name, gap) in zip(axes, drawn.items(), strict=True):
            axis.bar(EDGES[:-1], gap["hist20"], width=0.1, align="edge", **look)
            axis.axvline(0, color=INK, linewidth=0.8)
            axis.set(xlim=(-1, 1), xticks=(-1, 0, 1), title=plain(name, 17))
            axis.set_ylim(0, max(*gap["hist20"], 1) * 1.65)
            axis.grid(visible=False)
            style.whole_numbers(axis, most=3)
            spread = "n = {n}\nmean {mean:.2f}\nstd {std_population:.2f}".format_map(gap) if gap["n"] else "n = 0"
            axis.text(0.03, 0.98, spread, transform=axis.transAxes, va="top", fontsize=SMALL, color=MUTED)
        style.label_outer(axes, "score gap", "true positives")
        meaning = "score of the class less that of background"
        set_title(figure, "Background gap of correct detections", f"{meaning}; {note}" if note else meaning)
        return figure

    return save_figure(draw, stem, ("class", "from", "to", "true_positives"), rows)
