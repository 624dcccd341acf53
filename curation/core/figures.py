"""Figures in one style: sizes, colours, grids of panels, legends. Their files have the same bytes on every run."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.core import writing
from curation.core.arguments import checked
from curation.core.tables import as_csv, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE = 7.2
"""Width of a figure in inches, equal to the width of a page's text."""
COLUMN = 4.6
"""Width of a figure with a single panel, in inches."""
TEXT, SMALL = 8.0, 7.0
"""Font sizes in points: of names, ticks and legends; of numbers and remarks inside a panel."""
CELL = 0.118
"""Minimum distance of two lines of small text, in inches."""
INK = "#222222"
MUTED = "#6b6b6b"
GRID = "#e4e4e4"
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C564B", "#444444")
"""Okabe and Ito's colours, which colour-blind readers can distinguish; dark enough for lines on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
RECALL_COLOURS = {"0.1": "#6baed6", "0.3": "#2171b5", "0.5": "#08306b"}
"""Recalls are ordered, so they share one hue: darker is higher recall."""

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": TEXT,
    "figure.titlesize": 10,
    "figure.titleweight": "bold",
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": TEXT,
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
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.frameon": False,
    "legend.fontsize": TEXT,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "text.color": INK,
    "figure.facecolor": "white",
    "figure.dpi": 100,
    "savefig.dpi": 160,
    # A fixed salt makes the ids inside an SVG the same on every run; text as paths makes it the same on every screen.
    "svg.hashsalt": "curation",
    "svg.fonttype": "path",
}
_METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
_PICTURES: ContextVar[list[Picture] | None] = ContextVar("pictures", default=None)
_TABLES_ALONE: ContextVar[bool] = ContextVar("tables alone", default=False)


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A figure in memory: PNG and SVG as `save_figure` writes them, and the table of its values.

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

    @checked
    def save(self, stem: Path | str) -> list[Path]:
        """Write ``stem.png``, ``stem.svg`` and ``stem.csv``, each atomically, and return their paths."""
        stem, paths = Path(stem), []
        for kind, data in self.images.items():
            paths.append(stem.with_name(f"{stem.name}.{kind}"))
            writing.write_bytes(paths[-1], data)
        paths.append(stem.with_name(f"{stem.name}.csv"))
        writing.write_text(paths[-1], self.csv)
        return paths

    def __repr__(self) -> str:
        return f"<Picture {self.name}>"

    def _repr_png_(self) -> bytes:
        return self.images["png"]


def in_memory(draw: Callable[[Path], list[Path]], name: str) -> Picture:
    """Return the output of a function that calls `save_figure`, without writing it."""
    pictures: list[Picture] = []
    token = _PICTURES.set(pictures)
    try:
        draw(Path(name))
    finally:
        _PICTURES.reset(token)
    return pictures[0]


@contextmanager
def tables_alone(*, alone: bool = True) -> Iterator[None]:
    """Let `save_figure` write the tables of figures, and draw nothing."""
    token = _TABLES_ALONE.set(alone)
    try:
        yield
    finally:
        _TABLES_ALONE.reset(token)


def save_figure(
    draw: Callable[[], Figure], stem: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> list[Path]:
    """Draw in the project's style, and write ``stem.png``, ``stem.svg`` and ``stem.csv``, each atomically.

    Parameters
    ----------
    draw : callable
        Returns the finished `matplotlib.figure.Figure`; called with the style in force.
    stem : Path
        Path without a suffix.
    header, rows
        Values of the figure as a table. None becomes an empty cell; floats read back exactly.

    Returns
    -------
    list of Path
        The PNG, SVG and CSV files; within `tables_alone` the last of them.
    """
    if _TABLES_ALONE.get():
        table = stem.with_name(f"{stem.name}.csv")
        writing.write_text(table, as_csv(header, rows))
        return [table]
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    images: dict[str, bytes] = {}
    # After a reset to matplotlib's defaults: a matplotlibrc of the machine must not change the bytes.
    with style.context(STYLE, after_reset=True):
        figure = draw()
        FigureCanvasAgg(figure)
        for kind, metadata in _METADATA.items():
            stream = io.BytesIO()
            figure.savefig(stream, format=kind, metadata=metadata, bbox_inches="tight", pad_inches=0.1)
            images[kind] = stream.getvalue()
    picture = Picture(stem.name, images, as_csv(header, rows))
    pictures = _PICTURES.get()
    if pictures is not None:
        pictures.append(picture)
        return []
    return picture.save(stem)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure; sizes in inches."""
    from matplotlib.figure import Figure as NewFigure

    return NewFigure(figsize=(width, height), layout="constrained")


def small_multiples(
    n: int, *, most: int = 3, height: float = 2.2, sharex: bool = False, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure with `n` equal panels in a grid whose last line never has a single panel.

    Parameters
    ----------
    n : int
    most : int
        Panels in a line, at most.
    height : float
        Height of a line of panels, in inches; the width is the page's.
    sharex, sharey : bool
        Whether all panels have the same limits; only the outer ones are then labelled.
    """
    columns = _columns(n, most)
    lines = -(-n // columns)
    figure = new_figure(COLUMN if columns == 1 else PAGE, height * lines + 0.4)
    axes = figure.subplots(lines, columns, squeeze=False, sharex=sharex, sharey=sharey).ravel().tolist()
    for spare in axes[n:]:
        spare.set_axis_off()
    for bottom in axes[max(n - columns, 0) : n]:
        bottom.tick_params(labelbottom=True)
    return figure, axes[:n]


def _columns(n: int, most: int) -> int:
    """Return the number of panels in a row: no single panel in the last row, few gaps, long rows."""

    def unsightly(columns: int) -> tuple[bool, int, int]:
        return n > columns > 1 and n % columns == 1, -n % columns, -columns

    return min(range(min(n, most, 2), min(n, most) + 1), key=unsightly)


def label_outer(axes: Sequence[Axes], below: str, left: str) -> None:
    """Label the lowest panel of each column and the first of each line."""
    columns = max(axis.get_subplotspec().get_geometry()[1] for axis in axes)  # type: ignore[union-attr]
    for number, axis in enumerate(axes):
        if number + columns >= len(axes):
            axis.set_xlabel(below)
        if number % columns == 0:
            axis.set_ylabel(left)


def set_title(figure: Figure, title: str, note: str = "") -> None:
    """Set the title of a figure, with a note in brackets, on a new line if both do not fit into one."""
    room = int(11 * figure.get_figwidth())
    noted = f"({plain(note, 160)})" if note else ""
    text = f"{title}  {noted}".rstrip()
    if len(text) > room:
        text = "\n".join(line for part in (title, noted) for line in _equal_lines(part, room))
    figure.suptitle(text, color=INK)


def _equal_lines(text: str, room: int) -> list[str]:
    """Return a text wrapped to at most `room` characters: the fewest lines, of about equal length."""
    fits = (textwrap.wrap(text, width) for width in range(room // 2, room + 1))
    return min(fits, key=lambda lines: (len(lines), max(map(len, lines), default=0)))


def add_key(figure: Figure, axes: Sequence[Axes]) -> None:
    """Add one legend for all panels, each label once: in an empty cell of the grid, else below the panels."""
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if not handles:
        return
    labels = list(handles)
    spare = [axis for axis in figure.axes if not axis.axison and axis not in axes]
    if spare:
        spare[0].legend(handles.values(), labels, loc="center left")
        return
    columns = next(k for k in range(len(labels), 0, -1) if k == 1 or _key_width(labels, k) <= figure.get_figwidth())
    figure.legend(handles.values(), labels, loc="outside lower center", ncols=columns)


def _key_width(labels: Sequence[str], columns: int) -> float:
    """Return the approximate width of a legend in inches; matplotlib puts one more label into the first columns."""
    lines, longer = divmod(len(labels), columns)
    starts = [column * lines + min(column, longer) for column in range(columns + 1)]
    longest = (max(map(len, labels[start:end])) for start, end in pairwise(starts))
    return sum(0.55 + 0.067 * letters for letters in longest)


def whole_numbers(axis: Axes, *, most: int = 6) -> None:
    """Show the ticks of a vertical axis of counts as whole numbers, each once."""
    from matplotlib.ticker import MaxNLocator

    axis.yaxis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def bins_of(n: int, most: int) -> int:
    """Return the number of bins for a histogram of `n` values: at most `most`, and fewer for few values."""
    return min(most, max(10, 2 * math.isqrt(n)))


def new_matrix(
    rows: Sequence[str], columns: Sequence[str], below: str = "", *, most_named: int = 200
) -> tuple[Figure, Axes, bool]:
    """Return a figure for a matrix image with a name at each row and column, and whether a number fits into a cell.

    If the columns are too narrow for names, rows and columns are numbered: both have the same names, as far as both
    go. More rows than `most_named` have no names.

    Parameters
    ----------
    rows, columns : sequence of str
        From top to bottom and from left to right.
    below : str
        Meaning of the columns.
    """
    from matplotlib.ticker import FixedLocator

    n, across = len(rows), len(columns)
    names = [plain(name) for name in rows] if n <= most_named else []
    heads = [plain(name) for name in columns]
    # A letter of small text is about 0.056 inches wide; the colour bar is on the right.
    margin = 1.25 + 0.056 * max(map(len, names), default=0)
    cell = min(0.34, (PAGE - margin) / max(across, 1))
    has_text = cell >= CELL
    height = min(max(0.17 if n <= 45 else CELL, 1.2 / n) * n, 14.0)
    figure = new_figure(
        max(cell * across + margin, 3.8), height + (1 + 0.056 * max(map(len, heads)) if has_text else 1)
    )
    axis = figure.subplots()
    axis.set(xlim=(-0.5, across - 0.5), ylim=(n - 0.5, -0.5))
    axis.spines[:].set_visible(False)
    if has_text:
        axis.set_xticks(range(across), heads, rotation=90, fontsize=SMALL)
        axis.set_xlabel(below)
    else:
        axis.set_xticks([number for number in range(across) if number == 0 or number % 5 == 4])
        axis.xaxis.set_major_formatter(lambda value, _: f"{value + 1:.0f}")
        axis.set_xlabel(f"{below} (numbered as the rows)".strip())
        names = [f"{name}  {number}" for number, name in enumerate(names, 1)]
    axis.set_yticks(range(len(names)), names, fontsize=SMALL)
    for ruled, count in ((axis.xaxis, across), (axis.yaxis, n)):
        ruled.set_minor_locator(FixedLocator([number - 0.5 for number in range(count + 1)]))
    axis.grid(visible=False)
    axis.grid(visible=True, which="minor", color=GRID, linewidth=0.4)
    axis.tick_params(which="both", length=0)
    return figure, axis, cell >= 0.2


def add_scale(figure: Figure, axis: Axes, image: Any, label: str) -> None:
    """Add a colour bar to a matrix image, whose values are counts or weights on a logarithmic scale."""
    bar = figure.colorbar(image, ax=axis, fraction=0.03, pad=0.02, aspect=30, shrink=min(1, 3 / figure.get_figheight()))
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    bar.minorticks_off()
    bar.outline.set_visible(False)
    bar.set_label(label)


def plain(text: str, limit: int = 32) -> str:
    """Return a name that matplotlib can draw: no formula, no control characters, at most `limit` characters."""
    printed = printable(text, "?")
    short = printed if len(printed) <= limit else printed[: limit - 1] + "…"
    return short.replace("\\", "/").replace("$", r"\$")
