"""The picture of a card: classes by role, images of each part, and objects by role, as bars."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from curation.canonical import sha256_of_value
from curation.figure_style import MUTED, SERIES, in_memory, plain, save_figure
from curation.manifest.header import Header, classes_in, roles_at

PICTURE = "pictures/{}.png"
"""Where the picture of a config lies in the repository."""
ROLES = ("known", "previous", "negative", "unknown", "ignored")
_COLOURS = dict(zip(ROLES, (SERIES[0], SERIES[4], SERIES[5], SERIES[1], "#b0b0b0"), strict=True))


class Bar(NamedTuple):
    """A piece of a bar: its panel, the part or task, the role, and how many (None: not computed yet)."""

    panel: str
    name: str
    role: str
    number: int | None


def bars(header: Header) -> list[Bar]:
    """Return what the picture of a manifest shows."""
    return [*_class_bars(header), *_part_bars(header)]


def _class_bars(header: Header) -> Iterator[Bar]:
    first = classes_in(header, header.parts[0]) if header.parts else header.classes
    steps = {task.name: roles_at(header.classes, header.tasks, task.name) for task in header.tasks}
    for name, classes in (steps or {"all parts": first}).items():
        counted = Counter[str](one.role for one in classes)
        yield from (Bar("Classes", name, role, counted[role]) for role in ROLES if counted[role])


def _part_bars(header: Header) -> Iterator[Bar]:
    for part in header.parts:
        yield Bar("Images", part.name, part.role, part.images)
    for part in header.parts:
        yield from (
            Bar("Annotated objects", part.name, role, part.boxes[role]) for role in ROLES if part.boxes.get(role)
        )


def draw(header: Header) -> tuple[bytes, str]:
    """Return the picture of a manifest as PNG, and the digest of what it shows.

    The bytes depend on the version of the library that draws; the digest does not.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    shown = bars(header)
    panels = {panel: list(dict.fromkeys(one.name for one in shown if one.panel == panel)) for panel in
              dict.fromkeys(one.panel for one in shown)}  # fmt: skip

    def figure() -> Figure:
        made = Figure(figsize=(5.0, 0.6 + sum(0.5 + 0.25 * len(names) for names in panels.values())))
        axes = made.subplots(
            max(1, len(panels)), 1, squeeze=False, height_ratios=[1 + len(names) for names in panels.values()] or [1]
        )[:, 0]
        made.legend(
            handles=[
                Patch(color=_COLOURS[role], label=role) for role in ROLES if any(one.role == role for one in shown)
            ],
            loc="upper right",
        )
        made.subplots_adjust(hspace=0.35, top=0.93)
        for axis, (panel, names) in zip(axes, panels.items(), strict=False):
            left = dict.fromkeys(names, 0)
            for one in (one for one in shown if one.panel == panel):
                bar = axis.barh(
                    names.index(one.name), one.number or 0, left=left[one.name], color=_COLOURS.get(one.role, MUTED)
                )
                axis.bar_label(bar, ["not computed yet" if one.number is None else f"{one.number:,}"], size=6)
                left[one.name] += one.number or 0
            axis.set_yticks(range(len(names)), [plain(name, 22) for name in names])
            axis.invert_yaxis()
            axis.set_title(panel, loc="left", size=9)
        made.suptitle(plain(f"{header.name} {header.version}", 60), size=10)
        return made

    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes: the card has it as text.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        picture = in_memory(lambda stem: save_figure(figure, stem, Bar._fields, shown), "picture")
    return picture.images["png"], sha256_of_value([list(one) for one in shown])
