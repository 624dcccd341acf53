"""Figures of average precision, each as PNG and SVG with the CSV of what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.errors import EvaluationError
from curation.figure_style import (
    INK,
    MARKERS,
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

Result = Mapping[str, Any]


def precision_recall_curves(
    curves: Mapping[str, Mapping[str, Result]],
    stem: Path,
    *,
    thresholds: Mapping[str, Sequence[Result]] | None = None,
    note: str = "",
) -> list[Path]:
    """Draw precision against recall, one panel a class, one line a detector.

    Parameters
    ----------
    curves : mapping of detector name to mapping of class name to curve
        Each curve: ``recall``, ``precision``, ``score`` (equally long, by falling score).
    thresholds : mapping of detector name to rows, optional
        Operating points to be marked: ``recall``, ``class``, ``threshold``, ``TP``, ``FP`` and the recall ``reached``.
    """
    require_content(curves, stem, "curves")
    classes = list(dict.fromkeys(name for by_class in curves.values() for name in by_class))
    require_content(classes, stem, "classes")
    rows = [
        (detector, name, *point)
        for detector, by_class in curves.items()
        for name, curve in by_class.items()
        for point in zip(curve["score"], curve["recall"], curve["precision"], strict=True)
    ]

    def draw() -> Figure:
        figure, axes = small_multiples(len(classes), most=5, height=1.35, sharex=True, sharey=True)
        for axis, name in zip(axes, classes, strict=True):
            for number, (detector, by_class) in enumerate(curves.items()):
                _draw_curve(axis, by_class.get(name), number, plain(detector))
                _mark_thresholds(axis, (thresholds or {}).get(detector, ()), name, number)
            axis.set(xlim=(0, 1.02), ylim=(0, 1.04), title=plain(name, 17))
            axis.set_xticks((0, 0.5, 1), ("0", "0.5", "1"))
            axis.set_yticks((0, 0.5, 1), ("0", "0.5", "1"))
        if len(curves) > 1:
            add_key(figure, axes)
        label_outer(axes, "recall", "precision")
        marked = "; marks: operating points at recall " + ", ".join(_recalls(thresholds)) if thresholds else ""
        set_title(figure, "Precision and recall", note + marked if note else marked.removeprefix("; "))
        return figure

    return save_figure(draw, stem, ("detector", "class", "score", "recall", "precision"), rows)


def average_precision_bars(results: Mapping[str, Result], stem: Path, *, note: str = "") -> list[Path]:
    """Draw the mAP of several detectors on one closed set, 11-point beside area.

    Parameters
    ----------
    results : mapping of detector name to dict
        ``mAP11`` and ``mAP_area`` in %, such as a result of VOC; a detector without a mAP has no bars.
    """
    flavours = (("mAP11", "11-point"), ("mAP_area", "area"))
    rows = [(name, *(result[key] for key, _ in flavours)) for name, result in results.items()]
    require_content({name: True for name, first, _ in rows if first is not None}, stem, "average precision")

    def draw() -> Figure:
        figure, (axis,) = small_multiples(1, height=0.34 * len(rows) + 0.7)
        for place, (key, label) in enumerate(flavours):
            lengths = [result[key] or 0 for result in results.values()]
            at = [position + (place - 0.5) * 0.38 for position in range(len(rows))]
            bars = axis.barh(at, lengths, height=0.36, color=SERIES[(0, 4)[place]], label=label)
            texts = ["undefined" if result[key] is None else f"{result[key]:.1f}" for result in results.values()]
            axis.bar_label(bars, texts, fontsize=SMALL, padding=2, color=INK)
        axis.set_yticks(range(len(rows)), [plain(name, 24) for name in results])
        axis.set(xlabel="mAP (%)", xlim=(0, 108))
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.set_xticks(range(0, 101, 20))
        axis.grid(visible=False, axis="y")
        add_key(figure, [axis])
        set_title(figure, "VOC mAP, difficult ignored", note)
        return figure

    return save_figure(draw, stem, ("detector", "mAP11", "mAP_area"), rows)


def require_content(content: Any, stem: Path, what: str) -> None:
    """Raise `EvaluationError` where a figure has nothing to show."""
    if not content:
        raise EvaluationError(f"A figure needs {what}, and there are none", where=str(stem))


def _recalls(thresholds: Mapping[str, Sequence[Result]]) -> list[str]:
    return list(dict.fromkeys(row["recall"] for rows in thresholds.values() for row in rows))


def _draw_curve(axis: Axes, curve: Result | None, number: int, label: str) -> None:
    """Draw one precision-recall curve; an absent one keeps its place in the legend."""
    recall, precision = (curve["recall"], curve["precision"]) if curve else ((), ())
    axis.plot(recall, precision, color=SERIES[number % len(SERIES)], linewidth=1.4, label=label)


def _mark_thresholds(axis: Axes, points: Sequence[Result], name: str, number: int) -> None:
    """Mark the operating points of one class on its curve."""
    for point in points:
        if point["class"] == name and point["TP"]:
            axis.plot(
                point["reached"], point["TP"] / (point["TP"] + point["FP"]), MARKERS[number % len(MARKERS)],
                color=SERIES[number % len(SERIES)], markeredgecolor="white", markeredgewidth=0.8, markersize=6,
                zorder=5,
            )  # fmt: skip
