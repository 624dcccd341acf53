"""Figures of average precision, each as PNG and SVG with the CSV of what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.core.errors import EvaluationError
from curation.core.figures import MARKERS, SERIES, add_key, label_outer, plain, save_figure, set_title, small_multiples

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
                # An absent curve keeps its place in the key.
                curve = by_class.get(name, {"recall": (), "precision": ()})
                colour, label = SERIES[number % len(SERIES)], plain(detector)
                axis.plot(curve["recall"], curve["precision"], color=colour, linewidth=1.4, label=label)
                _mark_thresholds(axis, (thresholds or {}).get(detector, ()), name, number)
            axis.set(xlim=(0, 1.02), ylim=(0, 1.04), title=plain(name, 17))
            axis.set_xticks((0, 0.5, 1), ("0", "0.5", "1"))
            axis.set_yticks((0, 0.5, 1), ("0", "0.5", "1"))
        if len(curves) > 1:
            add_key(figure, axes)
        label_outer(axes, "recall", "precision")
        recalls = dict.fromkeys(row["recall"] for rows in (thresholds or {}).values() for row in rows)
        marked = "; marks: operating points at recall " + ", ".join(recalls) if thresholds else ""
        set_title(figure, "Precision and recall", note + marked if note else marked.removeprefix("; "))
        return figure

    return save_figure(draw, stem, ("detector", "class", "score", "recall", "precision"), rows)


def require_content(content: Any, stem: Path, what: str) -> None:
    """Raise `EvaluationError` where a figure has nothing to show."""
    if not content:
        raise EvaluationError(f"A figure needs {what}, and there are none", where=str(stem))


def _mark_thresholds(axis: Axes, points: Sequence[Result], name: str, number: int) -> None:
    """Mark the operating points of a class on its curve."""
    for point in points:
        if point["class"] == name and point["TP"]:
            axis.plot(
                point["reached"], point["TP"] / (point["TP"] + point["FP"]), MARKERS[number % len(MARKERS)],
                color=SERIES[number % len(SERIES)], markeredgecolor="white", markeredgewidth=0.8, markersize=6,
                zorder=5,
            )  # fmt: skip
