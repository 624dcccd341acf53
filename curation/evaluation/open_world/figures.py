"""Figures of an OWOD evaluation, each as PNG and SVG with the CSV of what it shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.errors import EvaluationError
from curation.figure_style import (
    MARKERS,
    MUTED,
    SERIES,
    SMALL,
    add_key,
    plain,
    save_figure,
    set_title,
    small_multiples,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Section = Mapping[str, Any]

_NAMES_SHOWN = 6
_CURVES = {"UR": SERIES[0], "UDR": SERIES[2], "UDP": SERIES[1]}


def impact_figure(sections: Mapping[str, Section], stem: Path) -> list[Path]:
    """Draw wilderness impact against recall, and below how many classes reach each recall.

    Parameters
    ----------
    sections : mapping of task name to section of one profile
        As `curation.evaluation.open_world.measures.evaluate_task` returns them. A task without unknown objects has
        no line.
    stem : Path
        Path without suffix.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.
    """
    profile = _profile(sections, stem)
    rows = [row for task, section in sections.items() for row in _impact_rows(task, section["WI_curve"])]
    header = (
        "task", "recall", "WI", "WI_closed_set_denominator", "on_unknown", "kept", "kept_closed", "classes_reaching",
        "classes",
    )  # fmt: skip

    def draw() -> Figure:
        figure, (above, below) = small_multiples(2, most=1, height=1.9, sharex=True)
        for number, (task, section) in enumerate(sections.items()):
            _draw_impact(above, below, section["WI_curve"], number, plain(task))
        above.plot([], [], color=MUTED, linestyle="--", linewidth=1.1, label="closed-set denominator")
        for axis in (above, below):
            axis.axvline(0.8, color=MUTED, linewidth=0.9, linestyle=":", label="recall 0.8")
            axis.set_xlim(0, 1.01)
        above.set(ylabel="wilderness impact", title="Wilderness impact at a recall")
        above.set_ylim(bottom=0)
        below.set(xlabel="recall", ylabel="classes", title="Classes that reach the recall")
        below.set_ylim(0, 1.08 * max(1, *(section["WI_curve"]["classes"] for section in sections.values())))
        whole_numbers(below)
        add_key(figure, [above])
        lines = [_never(task, section["WI_curve"]) for task, section in sections.items()]
        below.annotate(
            "\n".join(lines), (0, 0), (0, -30), xycoords="axes fraction", textcoords="offset points", va="top",
            fontsize=SMALL, color=MUTED,
        )  # fmt: skip
        set_title(figure, "Wilderness impact over recall", f"profile {profile}")
        return figure

    return save_figure(draw, stem, header, rows)


def unknown_figure(sections: Mapping[str, Section], stem: Path) -> list[Path]:
    """Draw unknown precision against unknown recall over all score thresholds, and UR, UDR, UDP over the threshold.

    The mark is the operating point: all detections that the file holds (see `impact_figure` for the parameters).
    """
    profile = _profile(sections, stem)
    names = ("score", "TP_u", "unknown_detections", "UR", "P_unknown", "FN_u_star", "UDR", "UDP")
    rows = [
        (task, *point)
        for task, section in sections.items()
        for point in zip(*(section["unknown_curve"][name] for name in names), strict=True)
    ]

    def draw() -> Figure:
        figure, axes = small_multiples(1 + len(sections), height=2.4)
        for number, (task, section) in enumerate(sections.items()):
            _draw_precision(axes[0], section, number, plain(task))
            _draw_rates(axes[1 + number], section, plain(task))
        axes[0].set(
            xlabel="unknown recall UR (%)",
            ylabel="unknown precision (%)",
            ylim=(0, 104),
            title="all score thresholds",
        )
        axes[0].set_xlim(left=0)
        add_key(figure, axes[:1])
        set_title(figure, "Unknown recall and precision", f"profile {profile}; marks: all detections")
        return figure

    return save_figure(draw, stem, ("task", *names), rows)


def _profile(sections: Mapping[str, Section], stem: Path) -> str:
    profiles = {section["profile"] for section in sections.values()}
    if len(profiles) != 1 or not any(section["num_unknown_gt"] for section in sections.values()):
        raise EvaluationError(
            "A figure needs tasks with unknown objects, of one profile",
            where=str(stem),
            found=", ".join(sorted(profiles)) or "no task",
        )
    return str(profiles.pop())


def _impact_rows(task: str, curve: Section) -> Iterator[tuple[Any, ...]]:
    names = (
        "recall", "WI", "WI_closed_set_denominator", "on_unknown", "kept", "kept_closed", "classes_reaching",
    )  # fmt: skip
    for point in zip(*(curve[name] for name in names), strict=True):
        yield task, *point, curve["classes"]


def _draw_impact(above: Axes, below: Axes, curve: Section, number: int, task: str) -> None:
    colour = SERIES[number % len(SERIES)]
    recall = [float(text) for text in curve["recall"]]
    # What holds at a recall holds from the one before it on: the threshold that reaches it is the same.
    steps: dict[str, Any] = {"where": "pre", "color": colour}
    above.step(recall, _gaps(curve["WI"]), label=f"task {task}", **steps)
    above.step(recall, _gaps(curve["WI_closed_set_denominator"]), linestyle="--", linewidth=1.1, **steps)
    below.step(recall, curve["classes_reaching"], **steps)


def _never(task: str, curve: Section) -> str:
    names = curve["classes_never_reaching"]["0.8"]
    shown = ", ".join(plain(name, 16) for name in names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
    return f"{plain(task)}: {len(names)} of {curve['classes']} classes never reach 0.8" + (
        f": {shown}" if names else ""
    )


def _draw_precision(axis: Axes, section: Section, number: int, task: str) -> None:
    curve, colour = section["unknown_curve"], SERIES[number % len(SERIES)]
    marker = MARKERS[number % len(MARKERS)]
    axis.plot(
        _gaps(curve["UR"]), _gaps(curve["P_unknown"]), color=colour, marker=marker, markevery=[], label=f"task {task}",
    )  # fmt: skip
    if section["UR"] is not None and section["P_unknown"] is not None:
        axis.plot(
            section["UR"], section["P_unknown"], marker, color=colour, markersize=7, markeredgecolor="white", zorder=5,
            clip_on=False,
        )  # fmt: skip


def _draw_rates(axis: Axes, section: Section, task: str) -> None:
    curve = section["unknown_curve"]
    score = curve["score"]
    # Of equal scores only the last is a threshold; below the lowest score everything stays.
    last = [place for place in range(len(score)) if score[place + 1 : place + 2] != score[place : place + 1]]
    margin = 0.04 * (score[0] - score[-1] or 1.0) if score else 0.0
    thresholds = [*(score[place] for place in last), *(one - margin for one in score[-1:])]
    for name, colour in _CURVES.items():
        value = section[name]
        label = name if value is None else f"{name} {value:.1f}"
        rates = _gaps([curve[name][place] for place in last])
        # By falling score, a rate holds down to the next threshold.
        axis.plot(thresholds, rates + rates[-1:], color=colour, drawstyle="steps-post", label=label)
        if value is not None and score:
            axis.plot(thresholds[-1], value, "o", color=colour, markersize=5, zorder=5, clip_on=False)
    axis.set(xlabel="score threshold", ylabel="rate (%)", ylim=(0, 104), title=f"task {task}")
    axis.legend(loc="best", handlelength=1.2)


def _gaps(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
