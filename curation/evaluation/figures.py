"""Figures of average precision and of open-world evaluations, each as PNG and SVG with a CSV of its values."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.core.errors import EvaluationError
from curation.core.figures import (
    MARKERS,
    MUTED,
    SERIES,
    SMALL,
    add_key,
    label_outer,
    plain,
    save_figure,
    set_title,
    small_multiples,
    whole_numbers,
)
from curation.core.wording import examples

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curation.evaluation.measures import Measured

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
        Operating points that are marked: ``recall``, ``class``, ``threshold``, ``TP``, ``FP`` and the recall
        ``reached``.
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
                # A line through a single point is invisible.
                point = "." if len(curve["recall"]) == 1 else ""
                axis.plot(curve["recall"], curve["precision"], point + "-", color=colour, linewidth=1.4, label=label)
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


def require_content(content: Any, stem: Path, content_name: str) -> None:
    """Raise `EvaluationError` if a figure would be empty; `content_name` is for the message."""
    if not content:
        raise EvaluationError(f"A figure needs {content_name}, and there are none", where=str(stem))


def _mark_thresholds(axis: Axes, points: Sequence[Result], name: str, number: int) -> None:
    """Mark the operating points of a class on its curve."""
    for point in points:
        if point["class"] == name and point["TP"]:
            axis.plot(
                point["reached"], point["TP"] / (point["TP"] + point["FP"]), MARKERS[number % len(MARKERS)],
                color=SERIES[number % len(SERIES)], markeredgecolor="white", markeredgewidth=0.8, markersize=6,
                zorder=5,
            )  # fmt: skip


Curve = Mapping[str, Sequence[Any]]
_CURVES = {"UR": "-", "UDR": "--", "UDP": ":"}
"""Line style of each rate; the colour is that of the task."""
_CHARACTERS_AN_INCH, _LINE_HEIGHT = 15, 0.13
"""Sizes of the note below the panels."""


def impact_figure(tasks: Mapping[str, Measured], variant: str, stem: Path) -> list[Path]:
    """Draw wilderness impact against recall, and below it the number of classes that reach each recall.

    A line ends at the highest recall that a class of its task reaches.

    Parameters
    ----------
    tasks : mapping of str to Measured
        By name of the task, as `curation.evaluation.open_world.evaluate_task` returns them. A task has no line if it
        has no unknown objects, or no class that has detections and objects.
    variant : str
    stem : Path
        Path without suffix.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.
    """
    numbers = _numbers_of_drawn(tasks, stem)
    curves: dict[str, Curve] = {task: tasks[task].tables["impact"] for task in numbers}
    names = [name for name in next(iter(curves.values())) if name != "never_reached_by"]
    rows = [
        (task, *row) for task, curve in curves.items() for row in zip(*(curve[name] for name in names), strict=True)
    ]

    def draw() -> Figure:
        figure, (above, below) = small_multiples(2, most=1, height=1.9, sharex=True)
        for task, curve in curves.items():
            _draw_impact(above, below, curve, numbers[task], plain(task))
        above.plot([], [], color=MUTED, linestyle="--", linewidth=1.1, label="closed-set denominator")
        for axis in (above, below):
            axis.axvline(0.8, color=MUTED, linewidth=0.9, linestyle=":", label="recall 0.8")
            axis.set_xlim(0, 1.01)
        above.set(ylabel="wilderness impact", title="Wilderness impact at a recall")
        above.set_ylim(bottom=0)
        below.set(xlabel="recall", ylabel="classes", title="Classes that reach the recall")
        below.set_ylim(0, 1.08 * max(1, *(curve["classes"][0] for curve in curves.values())))
        whole_numbers(below)
        add_key(figure, [above])
        # A longer line would make the panels narrower.
        room = int(_CHARACTERS_AN_INCH * figure.get_figwidth())
        lines = [line for task, curve in curves.items() for line in textwrap.wrap(_reaching(task, curve), room)]
        below.annotate(
            "\n".join(lines), (0, 0), (0, -30), xycoords="axes fraction", textcoords="offset points", va="top",
            fontsize=SMALL, color=MUTED,
        )  # fmt: skip
        figure.set_figheight(figure.get_figheight() + _LINE_HEIGHT * len(lines))
        set_title(figure, "Wilderness impact over recall", f"variant {variant}")
        return figure

    return save_figure(draw, stem, ("task", *names), rows)


def unknown_figure(tasks: Mapping[str, Measured], variant: str, stem: Path) -> list[Path]:
    """Draw unknown precision against unknown recall over all score thresholds, and UR, UDR, UDP over the threshold.

    The mark is the operating point: all detections that the file holds (see `impact_figure` for the parameters).
    """
    numbers = _numbers_of_drawn(tasks, stem)
    curves: dict[str, Curve] = {task: tasks[task].tables["unknown_curve"] for task in numbers}
    rows = [(task, *row) for task, curve in curves.items() for row in zip(*curve.values(), strict=True)]

    def draw() -> Figure:
        figure, axes = small_multiples(1 + len(numbers), height=2.4)
        for axis, (task, number) in zip(axes[1:], numbers.items(), strict=True):
            _draw_precision(axes[0], tasks[task], number, plain(task))
            _draw_rates(axis, tasks[task], number, plain(task))
        axes[0].set(
            xlabel="unknown recall UR (%)", ylabel="unknown precision (%)", ylim=(0, 104), title="all score thresholds"
        )
        axes[0].set_xlim(left=0)
        add_key(figure, axes[:1])
        set_title(figure, "Unknown recall and precision", f"variant {variant}; marks: all detections")
        return figure

    return save_figure(draw, stem, ("task", *next(iter(curves.values()))), rows)


def _numbers_of_drawn(tasks: Mapping[str, Measured], stem: Path) -> dict[str, int]:
    """Return the tasks that have unknown objects with their number among all tasks, which sets their colour."""
    numbers = {task: number for number, task in enumerate(tasks) if tasks[task].value("num_unknown_gt")}
    if not numbers:
        raise EvaluationError("A figure needs tasks with unknown objects", where=str(stem), found=", ".join(tasks))
    return numbers


def _draw_impact(above: Axes, below: Axes, curve: Curve, number: int, task: str) -> None:
    colour = SERIES[number % len(SERIES)]
    n = sum(map(bool, curve["classes_reaching"]))
    recall = [float(text) for text in curve["recall"][:n]]
    # The value at a recall also holds between the previous recall and it: one threshold reaches both.
    steps: dict[str, Any] = {"where": "pre", "color": colour}
    above.step(recall, _gaps(curve["WI"][:n]), label=f"task {task}" if n else None, **steps)
    above.step(recall, _gaps(curve["WI_closed_set_denominator"][:n]), linestyle="--", linewidth=1.1, **steps)
    below.step(recall, curve["classes_reaching"][:n], **steps)


def _reaching(task: str, curve: Curve) -> str:
    """Return how many classes of a task reach recall 0.8, with the names of three others."""
    n, reaching, names = (curve[name][79] for name in ("classes", "classes_reaching", "never_reached_by"))
    if reaching == n:
        text = f"all {n} classes reach recall 0.8" if n else "no class has detections and objects"
    else:
        listed = examples([plain(name, 24) for name in names.split(", ")], 3)
        text = f"recall 0.8 is reached by {reaching or 'none'} of {n} classes, and not by {listed}"
    return f"{plain(task)}: {text}"


def _draw_precision(axis: Axes, measured: Measured, number: int, task: str) -> None:
    curve, colour = measured.tables["unknown_curve"], SERIES[number % len(SERIES)]
    marker = MARKERS[number % len(MARKERS)]
    axis.plot(
        _gaps(curve["UR"]), _gaps(curve["P_unknown"]), color=colour, marker=marker, markevery=[], label=f"task {task}",
    )  # fmt: skip
    recall, precision = measured.value("UR"), measured.value("P_unknown")
    if recall is not None and precision is not None:
        axis.plot(
            recall, precision, marker, color=colour, markersize=7, markeredgecolor="white", zorder=5, clip_on=False
        )


def _draw_rates(axis: Axes, measured: Measured, number: int, task: str) -> None:
    curve, colour = measured.tables["unknown_curve"], SERIES[number % len(SERIES)]
    score = curve["score"]
    # Only the last of equal scores is a threshold; below the lowest score, all detections are kept.
    last = [rank for rank in range(len(score)) if score[rank + 1 : rank + 2] != score[rank : rank + 1]]
    margin = 0.04 * (score[0] - score[-1] or 1.0) if score else 0.0
    thresholds = [*(score[rank] for rank in last), *(lowest - margin for lowest in score[-1:])]
    for name, style in _CURVES.items():
        value = measured.value(name)
        label = name if value is None else f"{name} {value:.1f}"
        rates = _gaps([curve[name][rank] for rank in last])
        # A rate holds from its threshold down to the next one.
        axis.plot(thresholds, rates + rates[-1:], style, color=colour, drawstyle="steps-post", label=label)
        if value is not None and score:
            axis.plot(thresholds[-1], value, "o", color=colour, markersize=5, zorder=5, clip_on=False)
    axis.set(xlabel="score threshold", ylabel="rate (%)", ylim=(0, 104), title=f"task {task}")
    axis.legend(loc="best", handlelength=1.2)


def _gaps(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
