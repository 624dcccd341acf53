"""Panels and titles of figures, and figures of average precision: PNG and SVG with the CSV of what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.errors import EvaluationError
from curation.figure_style import INK, MARKERS, MUTED, SERIES, plain, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Result = Mapping[str, Any]


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
    from matplotlib.figure import Figure as NewFigure

    return NewFigure(figsize=(width, height), layout="constrained")


def set_title(figure: Figure, title: str, note: str) -> None:
    """Set the title of a figure, with a note in brackets."""
    figure.suptitle(title + (f"  ({plain(note, 120)})" if note else ""), fontsize=11, fontweight="bold", color=INK)


def precision_recall_curves(
    curves: Mapping[str, Mapping[str, Result]],
    stem: Path,
    *,
    thresholds: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
    note: str = "",
) -> list[Path]:
    """Draw precision against recall, one panel a class, one line a detector.

    Parameters
    ----------
    curves : mapping of detector name to mapping of class name to curve
        Each curve: ``recall``, ``precision``, ``score`` (equally long, by falling score).
    thresholds : mapping of detector name to ``thresholds`` of its result, optional
        ``thresholds[detector][recall][class]`` with ``threshold``, ``TP_c``, ``FP_c``, ``recall``: marked.
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
        figure, axes = new_panels(len(classes), columns=5, width=1.75, height=1.65, shared=True)
        for axis, name in zip(axes, classes, strict=True):
            for number, (detector, by_class) in enumerate(curves.items()):
                _draw_curve(axis, by_class.get(name), number, plain(detector))
                _mark_thresholds(axis, (thresholds or {}).get(detector, {}), name, number)
            axis.set(xlim=(0, 1.02), ylim=(0, 1.04), title=plain(name, 20))
            axis.set_xticks((0, 0.5, 1))
        if len(curves) > 1:
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6))
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
        What `curation.evaluation.voc.voc_average_precision` returns; a detector without a mAP has no bars.
    """
    flavours = (("mAP11", "11-point"), ("mAP_area", "area"))
    rows = [(name, *(result[key] for key, _ in flavours)) for name, result in results.items()]
    require_content({name: True for name, first, _ in rows if first is not None}, stem, "average precision")

    def draw() -> Figure:
        figure, (axis,) = new_panels(1, columns=1, width=1.2 + 0.85 * len(rows), height=2.6)
        for place, (key, label) in enumerate(flavours):
            heights = [100 * (result[key] or 0) for result in results.values()]
            left = [position + (place - 0.5) * 0.38 for position in range(len(rows))]
            bars = axis.bar(left, heights, width=0.36, color=SERIES[(0, 4)[place]], label=label)
            axis.bar_label(bars, fmt="%.1f", fontsize=7, padding=1, color=MUTED)
        axis.set_xticks(range(len(rows)), [plain(name, 20) for name in results])
        axis.set(xlabel="detector", ylabel="mAP (%)", ylim=(0, 100))
        axis.grid(visible=False, axis="x")
        axis.legend(loc="upper right", ncols=2)
        set_title(figure, "VOC mAP, difficult ignored", note)
        return figure

    return save_figure(draw, stem, ("detector", "mAP11", "mAP_area"), rows)


def require_content(content: Any, stem: Path, what: str) -> None:
    """Raise `EvaluationError` where a figure has nothing to show."""
    if not content:
        raise EvaluationError(f"A figure needs {what}, and there are none", where=str(stem))


def _recalls(thresholds: Mapping[str, Mapping[str, Any]] | None) -> list[str]:
    return list(dict.fromkeys(recall for by_recall in (thresholds or {}).values() for recall in by_recall))


def _draw_curve(axis: Axes, curve: Result | None, number: int, label: str) -> None:
    """Draw one precision-recall curve; an absent one keeps its place in the legend."""
    recall, precision = (curve["recall"], curve["precision"]) if curve else ((), ())
    axis.plot(recall, precision, color=SERIES[number % len(SERIES)], linewidth=1.4, label=label)


def _mark_thresholds(axis: Axes, by_recall: Mapping[str, Mapping[str, Any]], name: str, number: int) -> None:
    """Mark the operating points of one class on its curve."""
    for by_class in by_recall.values():
        point = by_class.get(name)
        if point and point["threshold"] is not None and point["TP_c"]:
            precision = point["TP_c"] / (point["TP_c"] + point["FP_c"])
            axis.plot(
                point["recall"], precision, MARKERS[number % len(MARKERS)], color=SERIES[number % len(SERIES)],
                markeredgecolor="white", markeredgewidth=0.8, markersize=6, zorder=5,
            )  # fmt: skip
