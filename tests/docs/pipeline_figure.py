"""The picture of the whole pipeline in README.md: ``python -m tests.docs.pipeline_figure`` draws it anew."""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.core.figures import INK, MUTED, SERIES, save_figure
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEM = ROOT / "docs" / "images" / "pipeline"
BLUE, ORANGE = SERIES[:2]
COLUMNS = (0.75, 2.46, 4.17, 5.88, 7.59)
ROWS = (3.86, 2.62, 1.60, 0.58)
"""Centres in inches; README.md shows an inch as a hundred pixels."""
WIDTH, HEIGHT = 1.4, 0.74
LOOKS: dict[str, dict[str, Any]] = {
    "command": {"facecolor": "#eaf3fa", "edgecolor": BLUE},
    "yours": {"facecolor": "white", "edgecolor": ORANGE, "linestyle": (0, (4, 2))},
}
Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A step or a thing: its place in columns and rows, its name and a line or two below it."""

    column: int
    row: int
    kind: str
    name: str
    text: str

    def side(self, where: str, shift: float = 0.0) -> Point:
        """Return the middle of an edge (``l``, ``r``, ``t``, ``b``), moved along it."""
        x, y = COLUMNS[self.column], ROWS[self.row]
        across, along = {"l": (-1, 0), "r": (1, 0), "t": (0, 1), "b": (0, -1)}[where]
        return x + across * WIDTH / 2 + abs(along) * shift, y + along * HEIGHT / 2 + abs(across) * shift


SIGNALS = Box(0, 0, "command", "signals", "taxonomy, similarity,\nco-occurrence")
PROPOSE = Box(1, 0, "command", "review propose", "what may show a\nknown class, ranked")
REVIEW = Box(2, 0, "command", "review", "by eye, in the\nFiftyOne App")
RAW = Box(0, 1, "yours", "raw data", "COCO, Open Images,\nImageNet, …, or yours")
BUILD = Box(1, 1, "command", "build", "a paper's benchmark,\nor your own tasks")
EXPORT = Box(3, 1, "command", "export", "COCO, VOC, YOLO,\nid lists")
DETECTOR = Box(4, 1, "yours", "your model", "trained and run\nby your own code")
AUTHORS = Box(0, 2, "yours", "authors' lists", "as published,\ndefects included")
IMPORT = Box(1, 2, "command", "import", "checked against\nlocked digests")
EVALUATE = Box(4, 2, "command", "evaluate", "each metric in its\nvariants, by name")
AUDIT = Box(1, 3, "command", "audit", "22 rules: is this\nsplit sound?")
PUBLISH = Box(3, 3, "command", "publish, pull", "Hugging Face: card,\ntables, Croissant")
LEADERBOARD = Box(4, 3, "command", "leaderboard", "ranks what is\ncomparable")
BOXES = (
    SIGNALS, PROPOSE, REVIEW, RAW, BUILD, EXPORT, DETECTOR, AUTHORS, IMPORT, EVALUATE, AUDIT, PUBLISH, LEADERBOARD,
)  # fmt: skip
LEFT, RIGHT = COLUMNS[2] - WIDTH / 2, COLUMNS[2] + WIDTH / 2
TOP, BOTTOM = ROWS[1] + HEIGHT / 2, ROWS[3] - HEIGHT / 2


def arrows() -> list[tuple[Point, ...]]:
    """Return the arrows as corners from tail to head, all of them level or upright."""
    found: list[tuple[Point, ...]] = [
        (one.side("r"), other.side("l"))
        for one, other in ((SIGNALS, PROPOSE), (PROPOSE, REVIEW), (RAW, BUILD), (AUTHORS, IMPORT), (EXPORT, DETECTOR))
    ]
    found += [(one.side("b"), other.side("t")) for one, other in ((DETECTOR, EVALUATE), (EVALUATE, LEADERBOARD))]
    found += [(RAW.side("t"), SIGNALS.side("b"))]
    found += [(one.side("r"), (LEFT, ROWS[one.row])) for one in (BUILD, IMPORT)]
    found += [((RIGHT, ROWS[one.row]), one.side("l")) for one in (EXPORT, EVALUATE)]
    found += [((LEFT, ROWS[3]), AUDIT.side("r"))]
    found += [(AUTHORS.side("b"), (COLUMNS[0], ROWS[3]), AUDIT.side("l"))]
    found += [((COLUMNS[2] - 0.35, TOP), REVIEW.side("b", -0.35)), (REVIEW.side("b", 0.35), (COLUMNS[2] + 0.35, TOP))]
    found += [((RIGHT, ROWS[3] + 0.14), PUBLISH.side("l", 0.14)), (PUBLISH.side("l", -0.14), (RIGHT, ROWS[3] - 0.14))]
    return found


def draw() -> Figure:
    """Return the figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.34, 4.45))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 8.34), ylim=(0.1, 4.35))
    axes.set_axis_off()
    for one in BOXES:
        x, y = COLUMNS[one.column], ROWS[one.row]
        _frame(axes, x, y, HEIGHT, **LOOKS[one.kind])
        axes.text(x, y + 0.145, one.name, ha="center", fontsize=9.5, fontweight="bold")
        _lines(axes, x, y - 0.085, one.text, step=0.132, fontsize=7.8)
    _manifest(axes)
    for corners in arrows():
        _arrow(axes, corners)
    _labels(axes)
    return figure


def _frame(axes: Axes, x: float, y: float, height: float, **look: Any) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=0.07"
    corner = (x - WIDTH / 2, y - height / 2)
    axes.add_patch(FancyBboxPatch(corner, WIDTH, height, boxstyle=style, **{"linewidth": 1.1, **look}))


def _manifest(axes: Axes) -> None:
    """Draw the manifest as a pillar beside which everything else stands."""
    x = COLUMNS[2]
    _frame(axes, x, (TOP + BOTTOM) / 2, TOP - BOTTOM, facecolor=BLUE, edgecolor=BLUE)
    axes.text(x, TOP - 0.37, "manifest", ha="center", color="white", fontsize=12.5, fontweight="bold")
    _lines(axes, x, TOP - 0.61, "a versioned folder", color="white", fontsize=8.4)
    held = "lists of image ids\nroles of classes\nlabel views\nrule and figures\ndigests of sources"
    _lines(axes, x, TOP - 1.08, held, step=0.185, color="white", fontsize=8.4)
    _lines(axes, x, BOTTOM + 0.34, "one SHA-256\nlocks all of it", color="white", fontsize=8.4)


def _lines(axes: Axes, x: float, y: float, text: str, *, step: float = 0.14, **look: Any) -> None:
    """Draw lines on their own base lines: letters below the line must not move it."""
    for place, line in enumerate(text.split("\n")):
        axes.text(x, y - place * step, line, ha="center", **{"color": INK, **look})


def _arrow(axes: Axes, corners: tuple[Point, ...]) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Corners

    axes.add_patch(
        FancyArrowPatch(
            path=Corners(corners), arrowstyle="-|>,head_length=4.5,head_width=2.4", shrinkA=0, shrinkB=0,
            mutation_scale=1, color=INK, linewidth=1.1, joinstyle="miter", capstyle="butt",
        )
    )  # fmt: skip


def _labels(axes: Axes) -> None:
    from matplotlib.patches import FancyBboxPatch

    between = (ROWS[0] - HEIGHT / 2 + TOP) / 2
    small: dict[str, Any] = {"va": "center", "fontsize": 7.8, "color": MUTED, "linespacing": 1.15}
    axes.text(COLUMNS[2] - 0.43, between, "images", ha="right", **small)
    axes.text(COLUMNS[2] + 0.43, between, "decisions: a new version", ha="left", **small)
    axes.text(COLUMNS[3], ROWS[2] + 0.09, "exactly these images", ha="center", **small)
    for place, (kind, words) in enumerate((("command", "what curation does"), ("yours", "what you bring"))):
        x, y = COLUMNS[3] + 0.5, ROWS[0] + 0.2 - 0.28 * place
        style = "round,pad=0,rounding_size=0.04"
        axes.add_patch(FancyBboxPatch((x, y - 0.08), 0.3, 0.16, boxstyle=style, linewidth=1.1, **LOOKS[kind]))
        axes.text(x + 0.4, y, words, ha="left", **small)


def write(stem: Path) -> list[Path]:
    """Write ``stem.svg`` and ``stem.png``; a drawing of boxes has no table to go with it."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = save_figure(draw, Path(folder) / stem.name, ("box",), [(one.name,) for one in BOXES])
        return [Path(shutil.copy(path, stem.parent)) for path in drawn if path.suffix in (".svg", ".png")]


if __name__ == "__main__":
    sys.stdout.writelines(f"{path.relative_to(ROOT)}\n" for path in write(STEM))
