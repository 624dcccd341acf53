"""The picture of a card: which classes are known and unknown, and what of each the parts hold.

Its bytes depend on the version of the library that draws it, so that `Picture` has the digest of what it shows too.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from curation.canonical import sha256_of_value
from curation.figure_style import INK, MUTED, SERIES, in_memory, plain, save_figure
from curation.manifest.header import Header, classes_in, roles_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_VERSION = 1
"""Raised whenever the same facts are drawn in another way that a reader notices."""
ROLES = ("known", "previous", "negative", "unknown", "ignored")
_COLOURS: dict[str, str] = dict(zip(ROLES, (SERIES[0], SERIES[4], SERIES[5], SERIES[1], "#b0b0b0"), strict=True))
_MEANINGS = {
    "known": "known",
    "previous": "known since an earlier task",
    "negative": "negative (trained on as a rest)",
    "unknown": "unknown",
    "ignored": "ignored",
}
_PARTS, _NAMED, _LABEL = 16, 58, 22
_WIDTH, _ROW, _TEXT_ROW = 5.0, 0.3, 0.21


class _Bar(msgspec.Struct, frozen=True):
    """One line of a panel: a name, numbers by role, and what stands behind them."""

    name: str
    counts: dict[str, int]
    told: str


class Facts(msgspec.Struct, frozen=True):
    """What a picture shows, as plain data.

    Attributes
    ----------
    title : str
    named : list of (str, str)
        Roles with the first names of their classes, where the manifest has no tasks.
    classes, images, objects : list of bars
    more : int
        Parts that are left out.
    """

    title: str
    named: list[tuple[str, str]]
    classes: list[_Bar]
    images: list[_Bar]
    objects: list[_Bar]
    more: int

    @property
    def digest(self) -> str:
        """``sha256:…`` of what is shown: equal for pictures that say the same, whichever library drew them."""
        return sha256_of_value({"version": _VERSION, "facts": msgspec.to_builtins(self)})

    def alt(self) -> str:
        """Return in words what the picture shows, for who does not see it."""
        first = self.classes[0].counts if self.classes else {}
        told = ", ".join(f"{role} {count:,}" for role, count in first.items()) or "none"
        return f"Classes by role ({told}), images of each part, and objects by role"


def facts_of(header: Header) -> Facts:
    """Return what the picture of a manifest shows."""
    tested = [part for part in header.parts if part.role not in ("train", "finetune")]
    parts = header.parts if len(header.parts) <= _PARTS else (*tested, *(p for p in header.parts if p not in tested))
    shown = parts[:_PARTS]
    images = [
        _Bar(
            part.name,
            {} if part.images is None else {part.role: part.images},
            "not computed yet" if part.images is None else f"{part.images:,}",
        )
        for part in shown
    ]
    boxes = {part.name: {role: count for role in ROLES if (count := part.boxes.get(role, 0))} for part in shown}
    objects = [_Bar(name, counts, _short(counts)) for name, counts in boxes.items() if counts]
    return Facts(
        title=f"{header.name} {header.version}",
        named=[] if header.tasks else list(_named(header)),
        classes=_class_bars(header),
        images=images,
        objects=objects,
        more=len(parts) - len(shown),
    )


def _class_bars(header: Header) -> list[_Bar]:
    if header.tasks:
        steps = {task.name: roles_at(header.classes, header.tasks, task.name) for task in header.tasks}
    else:
        steps = {"all parts": classes_in(header, header.parts[0]) if header.parts else header.classes}
    counted = {name: Counter[str](one.role for one in classes) for name, classes in steps.items()}
    ordered = {name: {role: found[role] for role in ROLES if found[role]} for name, found in counted.items()}
    return [_Bar(name, counts, _short(counts)) for name, counts in ordered.items()]


def _named(header: Header) -> Iterator[tuple[str, str]]:
    for role in ROLES:
        names = [one.name for one in header.classes if one.role == role]
        if names:
            text = ""
            for name in names:
                if len(text) + len(name) > _NAMED:
                    break
                text += f", {name}" if text else name
            yield role, f"{text or names[0][:_NAMED]}{', …' if text != ', '.join(names) else ''}"


def _short(counts: Mapping[str, int]) -> str:
    return " + ".join(f"{count:,}" for count in counts.values())


@lru_cache(maxsize=64)
def _drawn(data: bytes) -> bytes:
    facts = msgspec.json.decode(data, type=Facts)
    rows = [(panel, bar.name, role, count) for panel in ("classes", "images", "objects")
            for bar in getattr(facts, panel) for role, count in bar.counts.items()]  # fmt: skip
    header = ("panel", "name", "role", "count")
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes: the card has it as text.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        picture = in_memory(lambda stem: save_figure(lambda: _figure(facts), stem, header, rows), "picture")
    return picture.images["png"]


def draw(facts: Facts) -> bytes:
    """Return a picture as PNG: the same bytes for the same facts and libraries."""
    return _drawn(msgspec.json.encode(facts))


def _figure(facts: Facts) -> Figure:
    from matplotlib.figure import Figure

    panels = [("Classes", facts.classes), ("Images", facts.images), ("Annotated objects", facts.objects)]
    shown = [(title, bars) for title, bars in panels if bars]
    roles = [role for role in ROLES if any(role in bar.counts for bar in (*facts.classes, *facts.objects))]
    heights = [0.42 + _ROW * len(bars) for _, bars in shown]
    legend = 0.42 + _TEXT_ROW * (len(facts.named) or len(roles))
    figure = Figure(figsize=(_WIDTH, legend + sum(heights)))
    axes = figure.subplots(1 + len(shown), 1, squeeze=False, height_ratios=[legend, *heights])[:, 0]
    figure.subplots_adjust(left=0.30, right=0.97, top=0.985, bottom=0.01, hspace=0.0)
    _key(axes[0], facts, roles, legend)
    for place, (axis, (title, bars), height) in enumerate(zip(axes[1:], shown, heights, strict=True)):
        more = facts.more if place == len(shown) - 1 else 0
        _panel(axis, title, bars, height, f"{more} more parts are in the tables" if more else "")
    return figure


def _key(axis: Axes, facts: Facts, roles: Sequence[str], height: float) -> None:
    axis.set_axis_off()
    axis.set(xlim=(0, 1), ylim=(height, 0))
    axis.text(-0.42, 0.12, plain(facts.title, 60), weight="bold", size=10, va="center")
    names = dict(facts.named)
    for place, role in enumerate(names or roles):
        y = 0.36 + _TEXT_ROW * place
        axis.add_patch(_square(-0.42, y, _COLOURS[role]))
        axis.text(-0.37, y, _MEANINGS[role] if not names else role, size=8, va="center")
        if names:
            axis.text(-0.20, y, plain(names[role], _NAMED + 8), size=8, va="center", color=MUTED)


def _square(x: float, y: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y - 0.055), 0.03, 0.11, color=colour, clip_on=False, linewidth=0)


def _panel(axis: Axes, title: str, bars: Sequence[_Bar], height: float, note: str) -> None:
    axis.set(xlim=(0, 1), ylim=(height, 0))
    axis.set_axis_off()
    axis.text(-0.42, 0.14, title, weight="bold", size=9, va="center")
    axis.text(1.0, 0.14, note, size=7.5, va="center", ha="right", color=MUTED)
    most = max((sum(bar.counts.values()) for bar in bars), default=0) or 1
    for place, bar in enumerate(bars):
        y = 0.30 + _ROW * (place + 0.4)
        axis.text(-0.02, y, plain(bar.name, _LABEL), size=8, va="center", ha="right")
        left = 0.0
        # The longest bar leaves room for the numbers behind it.
        for role, count in bar.counts.items():
            width = 0.62 * count / most
            axis.barh(y, width, left=left, height=0.17, color=_COLOURS.get(role, MUTED), linewidth=0)
            left += width
        axis.text(left + 0.015, y, bar.told, size=7.5, va="center", color=INK if bar.counts else MUTED)


def picture_path(config: str) -> str:
    """Return where the picture of a manifest lies in the repository."""
    return f"pictures/{config}.png"
