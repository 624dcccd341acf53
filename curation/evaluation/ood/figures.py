"""Figures of an OOD evaluation, each as PNG and SVG with the CSV of what it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.evaluation.figures import label_outer, new_panels, set_title
from curation.evaluation.problem import Floats
from curation.figure_style import INK, MUTED, SERIES, plain, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Section = Mapping[str, Any]
ID_COLOUR, OOD_COLOUR = SERIES[0], SERIES[1]
BINS = 60
_TAIL = 0.001
_FEW_BARS = 18
_PANELS = ("AUROC", "FPR95", "AP_U", "nOSE", "P_U", "R_U")
_BETTER = {"AUROC": "higher is better", "FPR95": "lower is better", "nOSE": "lower is better"}


def metric_bars(sections: Sequence[Section], profile: str, stem: Path) -> list[Path]:
    """Draw AUROC, FPR95, AP_U, nOSE, P_U and R_U as bars, a group a split and a bar a score (FMIYC, Figs. 4 and 5).

    Parameters
    ----------
    sections : sequence of result
        As `curation.benchmarks.findmeifyoucan.evaluation.evaluate_split` returns them, with ``split``.
    profile : {"official", "paper"}
    stem : Path
        Path without suffix.

    Returns
    -------
    list of Path
        PNG, SVG, CSV. Undefined values are empty cells there and bars with the word "undefined" here.
    """
    splits = list(dict.fromkeys(one["split"] for one in sections))
    methods = list(dict.fromkeys(one["method"] for one in sections))
    values = {(one["split"], one["method"]): _values(one, profile) for one in sections}
    rows = [(*place, profile, name, found[name]) for place, found in values.items() for name in _PANELS]

    def draw() -> Figure:
        width = min(max(2.6, 0.5 + 0.3 * len(splits) * (len(methods) + 1)), 5.2)
        figure, axes = new_panels(len(_PANELS), columns=3 if width < 4 else 2, width=width, height=2.6)
        for axis, name in zip(axes, _PANELS, strict=True):
            _draw_bars(axis, name, splits, methods, values)
        if len(methods) > 1:
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=min(len(methods), 6))
        rule = sections[0]["FPR95"]["rule"].replace("_", " ")
        score = "" if len(methods) > 1 else f", score {methods[0]}"
        set_title(figure, "Out-of-distribution metrics in %", f"profile {profile}, FPR95 rule {rule}{score}")
        return figure

    return save_figure(draw, stem, ("split", "score", "profile", "metric", "value"), rows)


def score_histograms(
    scores: Mapping[str, tuple[Floats, Floats]],
    thresholds: Mapping[str, float | None],
    method: str,
    stem: Path,
) -> list[Path]:
    """Draw the distributions of ID and OOD scores of each split, with the threshold between known and unknown.

    Parameters
    ----------
    scores : mapping of split to (ID scores, OOD scores)
        Neither empty. The outermost 0.1 % at either end are counted in the first and the last bin.
    thresholds : mapping of split to float or None
    method : str
    stem : Path
        Path without suffix.

    Returns
    -------
    list of Path
        PNG, SVG, CSV with the counts of each bin.
    """
    counted = {split: _histogram(*pair) for split, pair in scores.items()}
    rows = [
        (split, *row, thresholds[split])
        for split, (edges, ids, oods) in counted.items()
        for row in zip(edges[:-1].tolist(), edges[1:].tolist(), ids.tolist(), oods.tolist(), strict=True)
    ]

    def draw() -> Figure:
        figure, axes = new_panels(len(counted), columns=2, width=4.6, height=2.7)
        for axis, (split, histogram) in zip(axes, counted.items(), strict=True):
            _draw_histogram(axis, plain(split), histogram, thresholds[split])
        label_outer(axes, f"{plain(method)} (higher is more ID)", "share of detections (%)")
        set_title(figure, "Scores of ID and OOD detections", f"score {method}")
        return figure

    header = ("split", "from", "to", "id_detections", "ood_detections", "threshold")
    return save_figure(draw, stem, header, rows)


def _values(section: Section, profile: str) -> dict[str, float | None]:
    """Return the metrics of the panels in per cent."""
    open_set = section.get(profile) or {}
    rates = open_set.get("unrounded", {})
    shares = {"AUROC": section["AUROC"], "FPR95": section["FPR95"]["value"]}
    return {
        **{name: None if value is None else 100 * value for name, value in shares.items()},
        **{name: rates.get(name) for name in _PANELS if name not in shares},
    }


def _draw_bars(
    axis: Axes,
    name: str,
    splits: Sequence[str],
    methods: Sequence[str],
    values: Mapping[tuple[str, str], Mapping[str, float | None]],
) -> None:
    size = 0.82 / len(methods)
    # Numbers over bars are read one by one; over many bars they only overlap.
    labelled = len(splits) * len(methods) <= _FEW_BARS
    for number, method in enumerate(methods):
        places = np.arange(len(splits)) + (number - (len(methods) - 1) / 2) * size
        found = [values.get((split, method), {}).get(name) for split in splits]
        heights = [0.0 if value is None else value for value in found]
        axis.bar(places, heights, width=0.92 * size, color=SERIES[number % len(SERIES)], label=plain(method))
        for place, value in zip(places.tolist(), found, strict=True):
            text = "undefined" if value is None else f"{value:.1f}"
            if labelled or value is None:
                axis.text(place, value or 0.0, text, ha="center", va="bottom", fontsize=6.5, color=INK,
                          rotation=90 if value is None or len(splits) * len(methods) > 6 else 0)  # fmt: skip
    highest = max((one[name] or 0.0 for one in values.values()), default=0.0)
    axis.set_ylim(0, max(100.0, highest) * 1.16)
    axis.set_xticks(np.arange(len(splits)), [plain(split, 22) for split in splits], rotation=30, ha="right")
    axis.set_xlim(-0.75, len(splits) - 0.25)
    axis.set_title(name)
    axis.text(
        1,
        1.02,
        _BETTER.get(name, "higher is better"),
        transform=axis.transAxes,
        ha="right",
        fontsize=7,
        color=MUTED,
    )
    axis.grid(visible=False, axis="x")


def _histogram(ids: Floats, oods: Floats) -> tuple[Floats, Any, Any]:
    pooled = np.concatenate([ids, oods])
    low, high = np.quantile(pooled, [_TAIL, 1 - _TAIL]).tolist()
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _bins(min(len(ids), len(oods))) + 1)
    counts = [np.histogram(np.clip(values, low, high), edges)[0] for values in (ids, oods)]
    return edges, counts[0], counts[1]


def _bins(n: int) -> int:
    """Return how many bins `n` scores fill: a histogram of few scores in many bins is a comb."""
    return min(BINS, max(10, 2 * math.isqrt(n)))


def _draw_histogram(axis: Axes, split: str, histogram: tuple[Floats, Any, Any], threshold: float | None) -> None:
    edges, *counts = histogram
    for values, colour, label in zip(counts, (ID_COLOUR, OOD_COLOUR), ("ID", "OOD"), strict=True):
        share = 100 * values / values.sum()
        axis.stairs(share, edges, color=colour, fill=True, alpha=0.28)
        axis.stairs(share, edges, color=colour, linewidth=1.4, label=f"{label}, n = {int(values.sum()):,}")
    if threshold is not None and edges[0] <= threshold <= edges[-1]:
        axis.axvline(threshold, color=INK, linewidth=1.2, linestyle="--", label=f"threshold {threshold:.4g}")
    elif threshold is not None:
        axis.plot([], [], color=INK, linewidth=1.2, linestyle="--", label=f"threshold {threshold:.4g}, outside")
    axis.set_title(split)
    axis.set_ylim(bottom=0)
    axis.legend(loc="best")
