"""One look for every figure, and figure files that are the same bytes on every run."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation import storage
from curation.csv_table import as_csv
from curation.text_table import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#222222"
MUTED = "#6b6b6b"
GRID = "#e4e4e4"
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C564B", "#444444")
"""Okabe and Ito's colours, told apart by colour-blind readers; dark enough for lines on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
RECALL_COLOURS = {"0.1": "#9ecae1", "0.3": "#3182bd", "0.5": "#08306b"}
"""Recalls are ordered, so they share one hue: darker is higher recall."""

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
    "text.color": INK,
    "figure.facecolor": "white",
    "figure.dpi": 100,
    "savefig.dpi": 160,
    # A fixed salt makes the ids inside an SVG the same on every run; text as paths makes it the same on every screen.
    "svg.hashsalt": "curation",
    "svg.fonttype": "path",
}
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}
_KEPT: ContextVar[list[Picture] | None] = ContextVar("kept", default=None)


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A figure in memory: PNG and SVG as `save_figure` writes them, and the table of what it shows.

    Attributes
    ----------
    name : str
    images : dict of str to bytes
        ``png`` and ``svg``.
    csv : str
    """

    name: str
    images: dict[str, bytes]
    csv: str

    def save(self, stem: Path) -> list[Path]:
        """Write ``stem.png``, ``stem.svg`` and ``stem.csv``, each atomically, and return their paths."""
        paths = []
        for kind, data in self.images.items():
            paths.append(stem.with_name(f"{stem.name}.{kind}"))
            storage.write_bytes(paths[-1], data)
        paths.append(stem.with_name(f"{stem.name}.csv"))
        storage.write_text(paths[-1], self.csv)
        return paths

    def __repr__(self) -> str:
        return f"<Picture {self.name}>"

    def _repr_png_(self) -> bytes:
        return self.images["png"]


def in_memory(draw: Callable[[Path], list[Path]], name: str) -> Picture:
    """Return what a function would write with `save_figure`, without writing it."""
    kept: list[Picture] = []
    token = _KEPT.set(kept)
    try:
        draw(Path(name))
    finally:
        _KEPT.reset(token)
    return kept[0]


def save_figure(
    draw: Callable[[], Figure],
    stem: Path,
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
) -> list[Path]:
    """Draw in the project's style, and write ``stem.png``, ``stem.svg`` and ``stem.csv``, each atomically.

    Parameters
    ----------
    draw : callable
        Returns the finished `matplotlib.figure.Figure`; called with the style in force.
    stem : Path
        Path without a suffix.
    header, rows
        What the figure shows, as a table. None becomes an empty cell; floats read back exactly.

    Returns
    -------
    list of Path
        The PNG, SVG and CSV files.
    """
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    images: dict[str, bytes] = {}
    # From matplotlib's defaults, so that no matplotlibrc of the machine reaches the bytes.
    with style.context(STYLE, after_reset=True):
        figure = draw()
        FigureCanvasAgg(figure)
        for kind, metadata in _METADATA.items():
            stream = io.BytesIO()
            figure.savefig(stream, format=kind, metadata=metadata, bbox_inches="tight", pad_inches=0.1)
            images[kind] = stream.getvalue()
    picture = Picture(stem.name, images, as_csv(header, rows))
    kept = _KEPT.get()
    if kept is not None:
        kept.append(picture)
        return []
    return picture.save(stem)


def plain(text: str, limit: int = 32) -> str:
    """Return a name as matplotlib may draw it: no formula, no control characters, at most `limit` characters."""
    shown = printable(text, "?")
    short = shown if len(shown) <= limit else shown[: limit - 1] + "…"
    return short.replace("\\", "/").replace("$", r"\$")
