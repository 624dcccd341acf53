"""Figures of an evaluation, each as PNG and SVG with the CSV of what it shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.benchmarks.elephant.diagnosis import EDGES
from curation.evaluation.figures import Result, require_content
from curation.figure_style import (
    INK,
    MARKERS,
    MUTED,
    PAGE,
    RECALL_COLOURS,
    SERIES,
    SMALL,
    add_key,
    add_scale,
    label_outer,
    new_figure,
    new_matrix,
    plain,
    save_figure,
    set_title,
    small_multiples,
    whole_numbers,
)

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
        Added to the title: the profile, say.

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
    rows = [
        (detector, level, *(_at(_impact_of(result, recall, reading), k) for recall in recalls),
         *(_at(result.get(flavour), k) for flavour in flavours))
        for detector, result in results.items()
        for k, level in enumerate(result["levels"])
    ]  # fmt: skip
    header = ("detector", "wilderness_ratio", *(f"WI_{reading}_recall_{r}" for r in recalls), *flavours)

    def draw() -> Figure:
        alone = len(results) == 1
        n_panels = 2 if alone else len(recalls) + 1
        figure, axes = small_multiples(n_panels, height=2.3)
        if alone:
            _draw_impacts_of_one(axes[0], results, recalls, reading, intervals)
        else:
            for axis, recall in zip(axes[:-1], recalls, strict=True):
                _draw_impacts_of_many(axis, results, recall, reading, intervals)
            highest = max(axis.get_ylim()[1] for axis in axes[:-1])
            for axis in axes[:-1]:
                axis.set_ylim(0, highest)
            add_key(figure, axes)
        _draw_mean_precision(axes[-1], results, flavours[:2])
        label_outer(axes, "wilderness ratio", "wilderness impact")
        axes[-1].set_ylabel("mAP")
        set_title(figure, f"Wilderness impact ({reading.replace('_', ' ')}) and mAP", note)
        return figure

    return save_figure(draw, stem, header, rows)


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
    sections = [name for name in _SECTION_TITLES if all(d[recall][name] is not None for d in diagnoses.values())]
    rows = [
        (detector, section, name, recall, *(counts[kind] for kind in ("correct", *_ERROR_COLOURS, "ignored")))
        for detector, diagnosis in diagnoses.items()
        for section in sections
        for name, counts in _bars(diagnosis[recall], section)
    ]

    def draw() -> Figure:
        heights = [len(list(_bars(diagnosis[recall], "closed"))) for diagnosis in diagnoses.values()]
        figure = new_figure(PAGE, sum(0.17 * height + 0.7 for height in heights) + 0.6)
        axes = figure.subplots(
            len(diagnoses), len(sections), squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights}
        )
        longest = 0.0
        for row, (detector, diagnosis) in enumerate(diagnoses.items()):
            for column, section in enumerate(sections):
                bars = list(_bars(diagnosis[recall], section))
                longest = max(longest, _draw_error_bars(axes[row, column], bars, labelled=column == 0))
                prefix = f"{plain(detector)}: " if len(diagnoses) > 1 else ""
                axes[row, column].set_title(prefix + _SECTION_TITLES[section])
        for axis in axes[-1]:
            # Room for the count beside the longest bar.
            axis.set(xlabel="share of kept detections (%)", xlim=(0, max(longest, 1.0) * 1.25))
        add_key(figure, axes.ravel().tolist())
        set_title(figure, f"Errors at the threshold of recall {recall}", note)
        return figure

    header = ("detector", "section", "class", "recall", "correct", *_ERROR_COLOURS, "ignored")
    return save_figure(draw, stem, header, rows)


def confusion_figure(matrix: Result, stem: Path, *, title: str = "", note: str = "") -> list[Path]:
    """Draw what the detections of each known class lie on (Elephant paper, Fig. 4): log colour, zero white.

    Parameters
    ----------
    matrix : dict
        ``rows`` (predicted classes), ``columns`` (true classes) and ``counts``, shape (rows, columns), as
        `curation.benchmarks.elephant.diagnosis.full_matrix` returns them.
    """
    counts = np.asarray(matrix["counts"], np.int64).reshape(len(matrix["rows"]), len(matrix["columns"]))
    require_content(matrix["columns"] if matrix["rows"] else (), stem, "confusion matrix")
    table = [(name, *line) for name, line in zip(matrix["rows"], counts.tolist(), strict=True)]

    def draw() -> Figure:
        from matplotlib.colors import LogNorm

        most = max(int(counts.max()), 10)
        figure, axis, fits = new_matrix(matrix["columns"], matrix["rows"], "detected class")
        shown = np.ma.masked_equal(counts.T, 0)
        image = axis.imshow(shown, cmap="viridis_r", norm=LogNorm(1, most), aspect="auto", interpolation="none")
        if fits:
            for row, column in np.argwhere(counts.T).tolist():
                count = int(counts[column, row])
                colour = "white" if count > most**0.45 else INK
                axis.text(column, row, f"{count}", ha="center", va="center", fontsize=SMALL, color=colour)
        if len(matrix["columns"]) > len(matrix["rows"]):
            # The known classes come first: what lies below the line is not in the training set.
            axis.axhline(len(matrix["rows"]) - 0.5, color=INK, linewidth=1.2)
        axis.set_ylabel("true class: the object of highest IoU")
        add_scale(figure, axis, image, "detections")
        open_set = "below the line: unknown classes" if len(matrix["columns"]) > len(matrix["rows"]) else ""
        told = "; ".join(filter(None, [note, open_set]))
        set_title(figure, title or "Confusion of true and detected classes", told)
        return figure

    return save_figure(draw, stem, ("detected", *matrix["columns"]), table)


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
    rows = [
        (name, lower, upper, count)
        for name, gap in shown.items()
        for lower, upper, count in zip(EDGES[:-1].tolist(), EDGES[1:].tolist(), gap["hist20"], strict=True)
    ]

    drawn = {name: gap for name, gap in shown.items() if gap["n"]} or shown

    def draw() -> Figure:
        figure, axes = small_multiples(len(drawn), most=5, height=1.45)
        for axis, (name, gap) in zip(axes, drawn.items(), strict=True):
            axis.bar(
                EDGES[:-1],
                gap["hist20"],
                width=0.1,
                align="edge",
                color=SERIES[0],
                edgecolor="white",
                linewidth=0.6,
            )
            axis.axvline(0, color=INK, linewidth=0.8)
            axis.set(xlim=(-1, 1), xticks=(-1, 0, 1), title=plain(name, 17))
            axis.set_ylim(0, max(*gap["hist20"], 1) * 1.65)
            axis.grid(visible=False)
            whole_numbers(axis, most=3)
            axis.text(0.03, 0.98, _spread_text(gap), transform=axis.transAxes, va="top", fontsize=SMALL, color=MUTED)
        label_outer(axes, "score gap", "true positives")
        meaning = "score of the class less that of background"
        set_title(figure, "Background gap of correct detections", f"{meaning}; {note}" if note else meaning)
        return figure

    return save_figure(draw, stem, ("class", "from", "to", "true_positives"), rows)


def _bars(at_recall: Result, section: str) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield the classes with a threshold, then all together."""
    for name, counts in at_recall[section]["per_class"].items():
        if counts is not None:
            yield name, counts
    yield "all classes", at_recall[section]["total"]


def _at(values: Sequence[Any] | None, position: int) -> Any:
    return None if values is None else values[position]


def _draw_impacts_of_one(
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
        _draw_line(axis, result["levels"], _impact_of(result, recall, reading), colour, number, f"recall {recall}")
        _draw_band(axis, result["levels"], (intervals or {}).get(detector), recall, reading, colour)
    axis.set_title("Wilderness impact")
    _finish_impact(axis)
    axis.legend(loc="upper left")


def _draw_impacts_of_many(
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
            _draw_line(axis, result["levels"], _impact_of(result, recall, reading), colour, number, plain(detector))
        _draw_band(axis, result["levels"], (intervals or {}).get(detector), recall, reading, colour)
    axis.set_title(f"Impact at recall {recall}")
    _finish_impact(axis)


def _finish_impact(axis: Axes) -> None:
    axis.set_ylim(bottom=0)


def _draw_mean_precision(axis: Axes, results: Mapping[str, Result], flavours: Sequence[str]) -> None:
    """Draw mAP against the wilderness ratio: the first flavour solid, area AP dashed."""
    for number, (detector, result) in enumerate(results.items()):
        for flavour in flavours:
            if flavour not in result:
                continue
            label = _FLAVOURS[flavour] if len(results) == 1 else plain(detector)
            line = _draw_line(axis, result["levels"], result[flavour], SERIES[number % len(SERIES)], number, label)
            if flavour == "mAP_area":
                line.set(linestyle="--", marker="")
                if len(results) > 1:
                    line.set_label("_hidden")
    axis.set_title("mAP (dashed: area)" if len(results) > 1 and len(flavours) > 1 else "mAP")
    if len(results) == 1:
        axis.legend(loc="best")


def _draw_line(
    axis: Axes, levels: Sequence[str], values: Sequence[float | None], colour: str, number: int, label: str
) -> Any:
    axis.locator_params(axis="x", nbins=6)
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
    told = "bootstrap interval" in axis.get_legend_handles_labels()[1]
    label = "" if told else "bootstrap interval"
    axis.fill_between([float(level) for level in x], low, high, color=colour, alpha=0.18, linewidth=0, label=label)


def _draw_error_bars(axis: Axes, bars: Sequence[tuple[str, Mapping[str, int]]], *, labelled: bool) -> float:
    """Draw one stacked bar a class, the shares of each kind of error, and return the longest in per cent."""
    positions = np.arange(len(bars))[::-1]
    totals = np.array([_total(counts) for _, counts in bars])
    left = np.zeros(len(bars))
    for kind, colour in _ERROR_COLOURS.items():
        share = 100 * np.array([counts[kind] for _, counts in bars]) / np.maximum(totals, 1)
        if share.any():
            axis.barh(
                positions, share, left=left, height=0.72, color=colour, edgecolor="white", linewidth=0.5,
                label=kind.replace("_", " "),
            )  # fmt: skip
        left += share
    for position, end, total in zip(positions, left, totals, strict=True):
        text = f" n = {total}" if total else " none kept"
        axis.text(end, position, text, va="center", fontsize=SMALL, color=MUTED)
    axis.set_yticks(positions, [plain(name, 20) for name, _ in bars] if labelled else [""] * len(bars))
    axis.set_ylim(-0.6, len(bars) - 0.4)
    axis.grid(visible=False, axis="y")
    return float(left.max())


def _total(counts: Mapping[str, int]) -> int:
    return counts["correct"] + sum(counts[kind] for kind in _ERROR_COLOURS)


def _impact_of(result: Result, recall: str, reading: str) -> Any:
    """Return WI over the levels in one reading; the official profile has only one."""
    impact = result["WI"].get(recall)
    return impact[reading] if isinstance(impact, Mapping) else impact


def _spread_text(gap: Result) -> str:
    """Return n, mean and standard deviation of a background gap, one a line."""
    if gap["mean"] is None:
        return "n = 0"
    return f"n = {gap['n']}\nmean {gap['mean']:.2f}\nstd {gap['std_population']:.2f}"
