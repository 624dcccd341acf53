"""Figures of open-set classifiers, each as PNG and SVG with the CSV of what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.errors import EvaluationError
from curation.evaluation.class_scores import GROUPS, ClassScores
from curation.evaluation.oscr import OscrCurve, Variant, margins_of, oscr_curve
from curation.evaluation.problem import Floats, Int64s
from curation.figure_style import (
    SERIES,
    SMALL,
    add_key,
    label_outer,
    plain,
    save_figure,
    set_title,
    small_multiples,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 40
_MOST_POINTS = 1500
_KINDS = {"known": SERIES[0], "negative": SERIES[2], "unknown": SERIES[1]}


def oscr_figure(
    classifiers: Mapping[str, ClassScores], stem: Path, *, variant: Variant = "exact", note: str = ""
) -> list[Path]:
    """Draw OSCR curves of all classifiers, one line of panels a group, false positive rate logarithmic and linear.

    The exact curve is a step: between two rates that occur, the lower one's CCR holds. A curve of many points is drawn
    at 1,500 of them, even in the logarithm of the rate. The CSV has every point of every curve, a row a threshold of
    the variant, by falling threshold: both rates rise. The last threshold of the exact curve is ``-inf``.

    Parameters
    ----------
    classifiers : mapping of name to ClassScores
    stem : Path
        Path without suffix.
    variant : {"exact", "paper", "comparison", "table2"}
    note : str
        Added to the title.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.

    Raises
    ------
    EvaluationError
        No classifier has both known samples and others.
    """
    curves = {
        group: {name: curve for name, data in classifiers.items() if (curve := curve_of(data, group, variant))}
        for group in GROUPS
    }
    curves = {group: found for group, found in curves.items() if found}
    if not curves:
        raise EvaluationError("A curve needs known and other samples", where=str(stem))
    rows = [
        (group, name, threshold, ccr, fpr)
        for group, found in curves.items()
        for name, curve in found.items()
        for threshold, ccr, fpr in _every_point(curve)
    ]

    def draw() -> Figure:
        figure, axes = small_multiples(2 * len(curves), most=2, height=2.2, sharey=True)
        for line, (group, found) in enumerate(curves.items()):
            _draw_curves(axes[2 * line], found, list(classifiers), log=True)
            _draw_curves(axes[2 * line + 1], found, list(classifiers), log=False)
            axes[2 * line].set_title(f"{group} samples (log scale)")
            axes[2 * line + 1].set_title(f"{group} samples")
        label_outer(axes, "false positive rate", "correct classification rate")
        add_key(figure, axes)
        set_title(figure, f"Open-set classification rate, {variant} variant", note)
        return figure

    return save_figure(draw, stem, ("group", "classifier", "threshold", "ccr", "fpr"), rows)


def score_histograms(classifiers: Mapping[str, ClassScores], stem: Path, *, note: str = "") -> list[Path]:
    """Draw how scores are spread: of its own class for known samples, the highest known one for the others.

    Forty bins over [0, 1] for probabilities, else over the range of scores (see `oscr_figure` for the parameters).
    """
    columns = {name: _columns(data) for name, data in classifiers.items()}
    edges = {name: _edges(data, columns[name]) for name, data in classifiers.items()}
    counts = {
        name: {kind: np.histogram(values, edges[name])[0] for kind, values in found.items()}
        for name, found in columns.items()
    }
    rows = [
        (name, kind, low, high, count)
        for name, found in counts.items()
        for kind, heights in found.items()
        for low, high, count in zip(edges[name][:-1].tolist(), edges[name][1:].tolist(), heights.tolist(), strict=True)
    ]

    def draw() -> Figure:
        figure, axes = small_multiples(len(classifiers), height=1.9)
        for axis, (name, found) in zip(axes, counts.items(), strict=True):
            for kind, heights in found.items():
                _draw_histogram(axis, edges[name], heights, kind)
            axis.set(title=plain(name), ylim=(0, None))
        label_outer(axes, "score", "share of samples (%)")
        for axis, data in zip(axes, classifiers.values(), strict=True):
            axis.set_xlabel("score" if data.kind == "real" else "probability")
        if len({label for axis in axes for label in axis.get_legend_handles_labels()[1]}) <= len(_KINDS):
            add_key(figure, axes)
        else:
            for axis in axes:
                axis.legend(loc="best", fontsize=SMALL)
        set_title(figure, "Scores: own class of known samples, highest of the others", note)
        return figure

    return save_figure(draw, stem, ("classifier", "samples", "from", "to", "count"), rows)


def curve_of(data: ClassScores, group: str, variant: Variant) -> OscrCurve | None:
    """Return the curve of a classifier on a variant; None where a group is empty or the variant holds no threshold."""
    return oscr_curve(margins_of(data, group, with_background=variant == "table2"), variant)


def _every_point(curve: OscrCurve) -> list[list[float]]:
    """Return threshold, CCR and FPR of every point by falling threshold."""
    points: list[list[float]] = np.column_stack([curve.thresholds, curve.ccr, curve.fpr])[::-1].tolist()
    return points


def _drawn_points(curve: OscrCurve) -> Floats:
    """Return CCR and FPR by rising FPR, shape (p, 2): of equal FPR the highest CCR, and at most 1,500."""
    order = np.arange(len(curve.thresholds))[::-1]
    other = curve.other[order]
    last = np.append(other[1:] != other[:-1], True)
    kept = order[last] if curve.variant == "exact" else order
    chosen = kept[_spread(curve.other[kept])]
    return np.column_stack([curve.ccr[chosen], curve.fpr[chosen]])


def _spread(counts: Int64s) -> Int64s:
    """Return places of at most 1,500 of some rising counts, half of them even in the count, half in its logarithm."""
    if len(counts) <= _MOST_POINTS:
        return np.arange(len(counts))
    half = _MOST_POINTS // 2
    wanted = np.concatenate([np.geomspace(1, max(counts[-1], 1), half), np.linspace(counts[0], counts[-1], half - 2)])
    places = np.minimum(np.searchsorted(counts, wanted), len(counts) - 1)
    return np.unique(np.concatenate([[0], places, [len(counts) - 1]]))


def _draw_curves(axis: Axes, curves: Mapping[str, OscrCurve], names: list[str], *, log: bool) -> None:
    # Every rate below one sample is the rate zero, which a logarithm cannot show: it is drawn at half a sample.
    floor = 0.5 / max(curve.n_other for curve in curves.values())
    for name, curve in curves.items():
        number = names.index(name)
        points = _drawn_points(curve)
        x = np.maximum(points[:, 1], floor) if log else points[:, 1]
        axis.plot(
            x, points[:, 0], color=SERIES[number % len(SERIES)], label=plain(name),
            linestyle=("-", "--", "-.")[number // len(SERIES) % 3],
            drawstyle="steps-post" if curve.variant == "exact" else "default",
        )  # fmt: skip
    axis.set_ylim(0, 1.02)
    if log:
        axis.set_xscale("log")
        axis.set_xlim(floor, 1.05)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.xaxis.set_minor_formatter(lambda value, _: "")
    else:
        axis.set_xlim(-0.01, 1.02)


def _columns(data: ClassScores) -> dict[str, Floats]:
    found = {"known": data.target[data.known]}
    found |= {group: data.highest[data.group(group)] for group in GROUPS}
    return {kind: values for kind, values in found.items() if len(values)}


def _edges(data: ClassScores, columns: Mapping[str, Floats]) -> Floats:
    if data.kind != "real":
        # A probability may lie a rounding above 1.
        edges = np.linspace(0, 1, BINS + 1)
        edges[-1] += 1e-6
        return edges
    values = np.concatenate([one[np.isfinite(one)] for one in columns.values()])
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    scale = max(abs(low), abs(high))
    if high - low <= scale * 1e-9:
        # Forty bins need room between neighbouring floats.
        room = max(0.5, scale * 1e-6)
        low, high = low - room, high + room
    return np.linspace(low, high, BINS + 1)


def _draw_histogram(axis: Axes, edges: Floats, heights: Any, kind: str) -> None:
    shares = 100 * heights / max(int(heights.sum()), 1)
    axis.stairs(shares, edges, color=_KINDS[kind], linewidth=1.4, label=f"{kind} (n = {int(heights.sum()):,})")
    axis.stairs(shares, edges, color=_KINDS[kind], alpha=0.10, fill=True)
