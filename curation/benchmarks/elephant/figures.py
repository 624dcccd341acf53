"""Figures of the Elephant paper: the wilderness curve, errors by kind, confusion, and the background gap."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.benchmarks.elephant.measures import INTERPOLATED, KINDS, WR1, Record
from curation.core import figures as style
from curation.core.figures import INK, MARKERS, MUTED, RECALL_COLOURS, SERIES, SMALL, plain, save_figure, set_title
from curation.evaluation.figures import require_content

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


_ERROR_COLOURS = {
    "localization": "#56B4E9",
    "similar": "#009E73",
    "other": "#E69F00",
    "mixed_unknown": "#B8B8B8",
    "unknown_unknown": "#D55E00",
}
_PART_TITLES = {"closed": "closed set", WR1: "closed set + WR1", "ratio 1.0": "closed set + as many wilderness images"}
_FLAVOURS = {"mAP11": "mAP (11-point)", "mAP_area": "mAP (area)", "mAP": "mAP (11-point, official)"}


def wilderness_curve(
    results: Mapping[str, Mapping[str, Sequence[Record]]],
    stem: Path,
    *,
    reading: str = "macro",
    intervals: Mapping[str, Sequence[Record]] | None = None,
    note: str = "",
) -> list[Path]:
    """Draw wilderness impact and mAP against the wilderness ratio (Elephant paper, Fig. 5).

    Parameters
    ----------
    results : mapping of detector name to rows of the tables ``levels`` and ``impact``
        Results for a single variant; undefined values are gaps in a line.
    stem : Path
        Path without suffix.
    reading : str
        ``macro``, ``pooled`` or ``ratio_of_mean_precision``; the official code has only one.
    intervals : mapping of detector name to rows of the table ``intervals``, optional
        Drawn as bands around WI.
    note : str
        Added to the title, such as the variant.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.
    """
    require_content(results, stem, "results")
    # Levels are nested; lists are not levels.
    results = {
        detector: {
            name: [row for row in result[name] if not row["ratio"].startswith("wr")] for name in ("levels", "impact")
        }
        for detector, result in results.items()
    }
    recalls = list(dict.fromkeys(row["recall"] for result in results.values() for row in result["impact"]))
    official = {name: result["impact"][0]["over_classes"] == INTERPOLATED for name, result in results.items()}
    shown_reading = INTERPOLATED if all(official.values()) else reading
    flavours = [flavour for flavour in _FLAVOURS if (flavour == "mAP") in official.values()]
    levels = {name: [row["ratio"] for row in result["levels"]] for name, result in results.items()}
    impacts = {
        (name, recall): [
            row["WI"]
            for row in result["impact"]
            if row["recall"] == recall and row["over_classes"] in (reading, INTERPOLATED)
        ]
        for name, result in results.items()
        for recall in recalls
    }
    rows = []
    for detector, result in results.items():
        columns = [impacts[detector, recall] for recall in recalls]
        for k, row in enumerate(result["levels"]):
            averages = (row.get(flavour) for flavour in flavours)
            rows.append((detector, row["ratio"], *(column[k] if column else None for column in columns), *averages))
    header = ("detector", "wilderness_ratio", *(f"WI_{shown_reading}_recall_{r}" for r in recalls), *flavours)

    def draw() -> Canvas:
        alone = len(results) == 1
        # One detector has a line for each recall; several have a panel for each recall.
        panels = [recalls] if alone else [[recall] for recall in recalls]
        figure, axes = style.small_multiples(len(panels) + 1, height=2.3)
        for axis, panel in zip(axes[:-1], panels, strict=True):
            lines = [(recall, detector) for recall in panel for detector in results]
            for number, (recall, detector) in enumerate(lines):
                colour = SERIES[number % len(SERIES)]
                colour = RECALL_COLOURS.get(recall, colour) if alone and set(panel) <= set(RECALL_COLOURS) else colour
                if impacts[detector, recall]:
                    label = f"recall {recall}" if alone else plain(detector)
                    _draw_line(axis, levels[detector], impacts[detector, recall], number, label, colour)
                band = [
                    row
                    for row in (intervals or {}).get(detector, ())
                    if (row["measure"], row["recall"], row["over_classes"]) == ("WI", recall, reading)
                ]
                if band:
                    _draw_band(axis, levels[detector], band, colour)
            axis.set_title("Wilderness impact" if alone else f"Impact at recall {panel[0]}")
            axis.set_ylim(bottom=0)
        if any((intervals or {}).values()):
            axes[0].fill_between([], [], color=MUTED, alpha=0.18, linewidth=0, label="bootstrap intervals")
        if alone:
            axes[0].legend(loc="upper left")
        else:
            highest = max(axis.get_ylim()[1] for axis in axes[:-1])
            for axis in axes[:-1]:
                axis.set_ylim(0, highest)
            style.add_key(figure, axes)
        drawn = {
            (detector, flavour): [row[flavour] for row in result["levels"]]
            for detector, result in results.items()
            for flavour in flavours[:2]
            if (flavour == "mAP") == official[detector]
        }
        _draw_mean_precision(axes[-1], levels, drawn)
        style.label_outer(axes, "wilderness ratio", "wilderness impact")
        axes[-1].set_ylabel("mAP (%)")
        set_title(figure, f"Wilderness impact ({shown_reading.replace('_', ' ')}) and mAP", note)
        return figure

    return save_figure(draw, stem, header, rows)


def _draw_mean_precision(
    axis: Axes, levels: Mapping[str, Sequence[str]], averages: Mapping[tuple[str, str], Sequence[float | None]]
) -> None:
    """Draw mAP against the wilderness ratio, by detector and flavour: the first flavour solid, area AP dashed."""
    alone = len(levels) == 1
    for number, detector in enumerate(levels):
        for flavour in (flavour for name, flavour in averages if name == detector):
            dashed = flavour == "mAP_area"
            label = _FLAVOURS[flavour] if alone else "_hidden" if dashed else plain(detector)
            # In the other panel of a single detector, colours are recalls.
            colour = INK if alone else ""
            line = _draw_line(axis, levels[detector], averages[detector, flavour], number, label, colour)
            if dashed:
                line.set(linestyle="--", marker="")
    several = len({flavour for _, flavour in averages}) > 1
    axis.set_title("mAP (dashed: area)" if not alone and several else "mAP")
    axis.set_ylim(bottom=0)
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


def _draw_band(axis: Axes, levels: Sequence[str], interval: Sequence[Record], colour: str) -> None:
    band = [row for row in interval if row["low"] is not None and row["ratio"] in levels]
    x, low, high = ([float(row[side]) for row in band] for side in ("ratio", "low", "high"))
    axis.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def error_bars(diagnosis: Sequence[Record], detector: str, stem: Path, *, recall: str = "0.3") -> list[Path]:
    """Draw the shares of each kind of error among the kept detections, per class (Elephant paper, Fig. 3).

    Parameters
    ----------
    diagnosis : rows of the table ``diagnosis``
        A class without a threshold has no bar.
    recall : str
        The operating point.
    """
    require_content(diagnosis, stem, "diagnosis")
    drawn = [row for row in diagnosis if row["recall"] == recall and row["correct"] is not None]
    bars = {part: part_rows for part in _PART_TITLES if (part_rows := [row for row in drawn if row["part"] == part])}
    rows = [
        (detector, part, row["class"], recall, *(row[kind] for kind in KINDS))
        for part, part_rows in bars.items()
        for row in part_rows
    ]

    def draw() -> Canvas:
        figure = style.new_figure(style.PAGE, 0.17 * len(bars["closed"]) + 1.3)
        axes = figure.subplots(1, len(bars), squeeze=False, sharex=True)[0]
        # Room for the count beside the longest bar.
        longest = max(0.01, *(_draw_error_bars(axis, bars[part]) for axis, part in zip(axes, bars, strict=True)))
        for axis, part in zip(axes, bars, strict=True):
            names = [plain(row["class"], 20) if axis is axes[0] else "" for row in bars[part]]
            axis.set_yticks(np.arange(len(names))[::-1], names)
            axis.set(title=_PART_TITLES[part], xlabel="share of kept detections", xlim=(0, longest * 1.25))
        style.add_key(figure, axes.tolist())
        set_title(figure, f"Errors at the threshold of recall {recall}")
        return figure

    return save_figure(draw, stem, ("detector", "section", "class", "recall", *KINDS), rows)


def _draw_error_bars(axis: Axes, bars: Sequence[Record]) -> float:
    """Draw a stacked bar for each class, the shares of each kind of error, and return the longest."""
    positions = np.arange(len(bars))[::-1]
    totals = np.array([sum(row[kind] for kind in ("correct", *_ERROR_COLOURS)) for row in bars])
    left = np.zeros(len(bars))
    look: dict[str, Any] = {"height": 0.72, "edgecolor": "white", "linewidth": 0.5}
    for kind, colour in _ERROR_COLOURS.items():
        share = np.array([row[kind] for row in bars]) / np.maximum(totals, 1)
        if share.any():
            axis.barh(positions, share, left=left, color=colour, label=kind.replace("_", " "), **look)
        left += share
    for position, end, total in zip(positions, left, totals, strict=True):
        text = f" n = {total}" if total else " none kept"
        axis.text(end, position, text, va="center", fontsize=SMALL, color=MUTED)
    axis.set_ylim(-0.6, len(bars) - 0.4)
    axis.grid(visible=False, axis="y")
    return float(left.max())


def confusion_figure(
    overlaps: Sequence[Record], detected: Sequence[str], true: Sequence[str], stem: Path, *, note: str = ""
) -> list[Path]:
    """Draw the objects under the detections of each known class (Elephant paper, Fig. 4): log colour, zero white.

    Parameters
    ----------
    overlaps : rows of the table ``overlaps``
        Overlaps at one recall in one part; the background is not drawn.
    detected, true : sequence of str
        The known classes, and these followed by all others.
    """
    require_content(true if detected else (), stem, "confusion matrix")
    counts = np.zeros((len(detected), len(true)), np.int64)
    for row in overlaps:
        if row["true"]:
            counts[detected.index(row["detected"]), true.index(row["true"])] = row["detections"]
    has_unknown = len(true) > len(detected)

    def draw() -> Canvas:
        from matplotlib.colors import LogNorm

        most = max(int(counts.max()), 10)
        figure, axis, fits = style.new_matrix(true, detected, "detected class")
        panel = np.ma.masked_equal(counts.T, 0)
        image = axis.imshow(panel, cmap="viridis_r", norm=LogNorm(1, most), aspect="auto", interpolation="none")
        for row, column in np.argwhere(counts.T).tolist() if fits else ():
            count = int(counts[column, row])
            colour = "white" if count > most**0.45 else INK
            axis.text(column, row, f"{count}", ha="center", va="center", fontsize=SMALL, color=colour)
        if has_unknown:
            # The known classes come first: classes below the line are not in the training set.
            axis.axhline(len(detected) - 0.5, color=INK, linewidth=1.2)
        axis.set_ylabel("true class: the object of highest IoU")
        style.add_scale(figure, axis, image, "detections")
        notes = "; ".join(filter(None, [note, "below the line: unknown" if has_unknown else ""]))
        set_title(figure, "Confusion of true and detected classes", notes)
        return figure

    rows = [(name, *line) for name, line in zip(detected, counts.tolist(), strict=True)]
    return save_figure(draw, stem, ("detected", *true), rows)


def background_histogram(gaps: Sequence[Record], bins: Sequence[Record], stem: Path) -> list[Path]:
    """Draw the gap between class and background score of correct detections by class (Elephant paper, Fig. 8).

    A class without correct detections has no panel; the table lists it.

    Parameters
    ----------
    gaps, bins : rows of the tables ``background_gaps`` and ``background_histogram``
    """
    require_content(bins, stem, "background scores")
    names = dict.fromkeys(row["class"] for row in bins)
    class_gaps = [row for row in gaps if row["class"] in names]
    drawn = [row for row in class_gaps if row["n"]] or class_gaps

    def draw() -> Canvas:
        figure, axes = style.small_multiples(len(drawn), most=5, height=1.45)
        look: dict[str, Any] = {"color": SERIES[0], "edgecolor": "white", "linewidth": 0.6}
        for axis, gap in zip(axes, drawn, strict=True):
            class_bins = [row for row in bins if row["class"] == gap["class"]]
            counts = [row["true_positives"] for row in class_bins]
            axis.bar([row["from"] for row in class_bins], counts, width=0.1, align="edge", **look)
            axis.axvline(0, color=INK, linewidth=0.8)
            axis.set(xlim=(-1, 1), xticks=(-1, 0, 1), title=plain(gap["class"], 17))
            axis.set_ylim(0, max(*counts, 1) * 1.65)
            axis.grid(visible=False)
            style.whole_numbers(axis, most=3)
            spread = "n = {n}\nmean {mean:.2f}\nstd {std_population:.2f}".format_map(gap) if gap["n"] else "n = 0"
            axis.text(0.03, 0.98, spread, transform=axis.transAxes, va="top", fontsize=SMALL, color=MUTED)
        style.label_outer(axes, "score gap", "true positives")
        set_title(figure, "Background gap of correct detections", "score of the class minus score of the background")
        return figure

    return save_figure(draw, stem, ("class", "from", "to", "true_positives"), [tuple(row.values()) for row in bins])
