"""The figure of a task composition: classes, images, labelled and hidden objects of every task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from curation.errors import EvaluationError
from curation.figure_style import (
    INK,
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
from curation.manifest.composition import PartComposition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = tuple[str, str, str, str, int | None, int | None]

_HEADER = ("task", "split", "quantity", "role", "count", "images")
_SPLITS = {"train": SERIES[0], "finetune": SERIES[3], "val": SERIES[5], "test": SERIES[2]}
_ROLES = {"previous": SERIES[4], "known": SERIES[0], "unknown": SERIES[1]}
_OBJECTS = {"objects in training images": "train", "objects in test images": "test"}
_MEANINGS = {"previous": "of earlier tasks", "known": "introduced by the task", "unknown": "of later tasks (unknown)"}


def composition_figure(compositions: Sequence[PartComposition], title: str, stem: Path) -> list[Path]:
    """Draw the classes of each task, its images, and the objects of its training and test images.

    Objects that the label view of a part drops are hatched; above those of later tasks, the hidden unknowns of a
    training part, stands how many images they lie in. What no source was available for is not drawn, and said: a panel
    of which nothing would be drawn is left out.

    Parameters
    ----------
    compositions : sequence of PartComposition
        As `curation.manifest.composition.compose` returns them; parts without a task are passed over.
    title : str
        The manifest, for the title.
    stem : Path
        Path without suffix.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.

    Raises
    ------
    EvaluationError
        No part has a task.
    """
    chosen = [one for one in compositions if one.part.task]
    if not chosen:
        raise EvaluationError("A figure of the task composition needs parts with a task", where=str(stem))
    tasks = list(dict.fromkeys(one.part.task for one in chosen))

    def draw() -> Figure:
        of_objects = {name: _of_role(chosen, role) for name, role in _OBJECTS.items()}
        drawn = {name: one for name, one in of_objects.items() if any(part.labelled for part in one.values())}
        counted = any(one.images is not None for one in chosen)
        figure, axes = small_multiples(1 + counted + len(drawn), most=2 if len(tasks) > 2 else 3, height=2.4)
        _draw_classes(axes[0], chosen, tasks)
        if counted:
            _draw_images(axes[1], chosen, tasks)
        for axis, (name, by_task) in zip(axes[1 + counted :], drawn.items(), strict=True):
            _draw_objects(axis, by_task, tasks, name)
        add_key(figure, [axes[0], *axes[1 + counted :]])
        missing = " and ".join(role for name, role in _OBJECTS.items() if name not in drawn)
        note = missing and f"no boxes available of {missing} images"
        set_title(figure, f"Task composition of {plain(title, 60)}", note)
        return figure

    return save_figure(draw, stem, _HEADER, [row for one in chosen for row in _rows(one)])


def _rows(one: PartComposition) -> list[Row]:
    """Return task, split, quantity, role, count, and the images that the counted objects lie in where known."""
    place = (one.part.task, one.part.name)
    rows: list[Row] = [(*place, "images", "", one.images, None)]
    rows += [(*place, "classes", role, count, None) for role, count in one.classes.items()]
    rows += [(*place, "labelled objects", role, n, None) for role, n in (one.labelled or {}).items()]
    within = one.hidden_images or {}
    rows += [(*place, "hidden objects", role, n, within.get(role)) for role, n in (one.hidden or {}).items()]
    return rows


def _of_role(chosen: Sequence[PartComposition], role: str) -> dict[str, PartComposition]:
    """Return the part of a role by task; of several, the one named after its task."""
    found: dict[str, PartComposition] = {}
    for one in chosen:
        if one.part.role == role and (one.part.task not in found or one.part.name == f"{one.part.task}-{role}"):
            found[one.part.task] = one
    return found


def _draw_classes(axis: Axes, chosen: Sequence[PartComposition], tasks: Sequence[str]) -> None:
    by_task = {one.part.task: one.classes for one in chosen}
    bottoms = [0.0] * len(tasks)
    for role, colour in _ROLES.items():
        counts = [by_task[task].get(role, 0) for task in tasks]
        axis.bar(
            range(len(tasks)), counts, 0.62, bottom=bottoms, color=colour, edgecolor="white", linewidth=0.6,
            label=_MEANINGS[role],
        )  # fmt: skip
        for place, count in enumerate(counts):
            if count:
                axis.text(
                    place, bottoms[place] + count / 2, f"{count}", ha="center", va="center", fontsize=SMALL,
                    color=INK if role == "previous" else "white",
                )  # fmt: skip
        bottoms = [bottom + count for bottom, count in zip(bottoms, counts, strict=True)]
    _finish(axis, tasks, "classes", max(bottoms))


def _draw_images(axis: Axes, chosen: Sequence[PartComposition], tasks: Sequence[str]) -> None:
    splits = [split for split in _SPLITS if any(one.images is not None for one in _of_role(chosen, split).values())]
    width = 0.84 / max(len(splits), 1)
    top = 0
    for number, split in enumerate(splits):
        by_task = _of_role(chosen, split)
        for place, task in enumerate(tasks):
            count = by_task[task].images if task in by_task else None
            if count is not None:
                x = place + (number - (len(splits) - 1) / 2) * width
                axis.bar(x, count, width, color=_SPLITS[split], edgecolor="white", linewidth=0.6, label=split)
                axis.text(x, count, f" {count:,}", ha="center", va="bottom", fontsize=SMALL, rotation=90, color=MUTED)
                top = max(top, count)
    _finish(axis, tasks, "images", 1.5 * top)
    found = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    axis.legend(found.values(), found.keys(), loc="upper left", ncols=4, columnspacing=1.0, handlelength=1.0)


def _draw_objects(axis: Axes, by_task: dict[str, PartComposition], tasks: Sequence[str], title: str) -> None:
    bottoms = [0.0] * len(tasks)
    layers = [(role, hidden) for hidden in (False, True) for role in ("known", "previous", "unknown")]
    for role, hidden in layers:
        counts = [_count(by_task.get(task), role, hidden=hidden) for task in tasks]
        if any(counts):
            label = _MEANINGS[role] + (", not labelled" if hidden else "")
            at = [place for place, count in enumerate(counts) if count]
            axis.bar(
                at, [counts[place] for place in at], 0.62, bottom=[bottoms[place] for place in at],
                linewidth=0.6, label=label,
                facecolor="white" if hidden else _ROLES[role], edgecolor=_ROLES[role] if hidden else "white",
                hatch="////" if hidden else "",
            )  # fmt: skip
            bottoms = [bottom + count for bottom, count in zip(bottoms, counts, strict=True)]
    for place, task in enumerate(tasks):
        axis.text(
            place, bottoms[place], _remark(by_task.get(task), bottoms[place]), ha="center", va="bottom", fontsize=SMALL,
            color=MUTED,
        )  # fmt: skip
    _finish(axis, tasks, title, 1.25 * max(bottoms))


def _count(one: PartComposition | None, role: str, *, hidden: bool) -> int:
    counts = None if one is None else one.hidden if hidden else one.labelled
    return 0 if counts is None else counts.get(role, 0)


def _remark(one: PartComposition | None, total: float) -> str:
    """Return what stands above a bar."""
    if one is None:
        return "no such part"
    if one.labelled is None:
        return "no boxes\navailable"
    if one.hidden is None:
        return f"{total:,.0f}\nhidden ones\nnot counted"
    within = (one.hidden_images or {}).get("unknown", 0)
    return f"{total:,.0f}" + (f"\nunknown in\n{within:,} images" if within else "")


def _finish(axis: Axes, tasks: Sequence[str], title: str, top: float) -> None:
    axis.set_xticks(range(len(tasks)), [plain(task, 14) for task in tasks])
    axis.set_xlim(-0.6, len(tasks) - 0.4)
    axis.set_title(title)
    axis.grid(visible=False, axis="x")
    axis.set_ylim(0, max(top, 1) * 1.05)
    whole_numbers(axis)
