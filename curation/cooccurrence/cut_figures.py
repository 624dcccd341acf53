"""Figures of a cut: the co-occurrence matrix reordered by cluster, and the class graph on a circle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from curation.cooccurrence.cut import Cut
from curation.cooccurrence.graph import UNIT, WEIGHTINGS, ClassGraph
from curation.figure_style import (
    INK,
    PAGE,
    SERIES,
    SMALL,
    add_key,
    add_scale,
    new_figure,
    new_matrix,
    plain,
    save_figure,
    set_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_NAMED = 120
_MOST_EDGES = 250


def matrix_figure(graph: ClassGraph, cut: Cut, stem: Path) -> list[Path]:
    """Draw the weights with classes ordered by cluster, and within one by degree; cluster borders as lines.

    Returns
    -------
    list of Path
        PNG, SVG, and the CSV of the drawn matrix (class, cluster, weight to every class).
    """
    order, borders = _order(graph, cut)
    table = graph.weights[np.ix_(order, order)]
    names = [graph.names[place] for place in order]
    clusters = [number for number, size in enumerate(np.diff(borders)) for _ in range(size)]

    def draw() -> Figure:
        from matplotlib.colors import LogNorm

        figure, axes, _ = new_matrix(names, names, most_named=_MOST_NAMED)
        unit = UNIT if graph.weighting in ("jaccard", "pmi") else 1
        shown = np.ma.masked_equal(table / unit, 0)
        image = axes.imshow(
            shown,
            cmap="viridis_r",
            norm=LogNorm(vmin=shown.min(), vmax=max(2 * shown.min(), shown.max())) if shown.count() else None,
            interpolation="none",
            aspect="auto",
        )
        _frame(axes, borders)
        meaning = next((text for name, text in WEIGHTINGS.items() if name == graph.weighting), "weight")
        add_scale(figure, axes, image, meaning.partition(", ")[0])
        title = f"{len(names)} classes in {len(cut.clusters)} clusters: Ncut {float(cut.value):.4f}"
        set_title(figure, title, "white: never in one image; the frames are the clusters")
        return figure

    rows = [(name, cluster + 1, *row) for name, cluster, row in zip(names, clusters, table.tolist(), strict=True)]
    return save_figure(draw, stem, ("class", "cluster", *names), rows)


def graph_figure(graph: ClassGraph, cut: Cut, stem: Path) -> list[Path]:
    """Draw the classes on a circle by cluster, and the heaviest edges, those between clusters above the others.

    Returns
    -------
    list of Path
        PNG, SVG, and the CSV of the drawn edges (first, second, weight, whether inside a cluster).
    """
    order, borders = _order(graph, cut)
    cluster = np.repeat(np.arange(len(borders) - 1), np.diff(borders))
    angles = _angles(cluster, len(cut.clusters))
    edges = _edges(graph.weights[np.ix_(order, order)])
    names = [graph.names[place] for place in order]

    def draw() -> Figure:
        figure = new_figure(PAGE, PAGE)
        axes = figure.subplots()
        _draw_edges(axes, angles, cluster, edges)
        _draw_vertices(axes, angles, cluster, names)
        add_key(figure, [axes])
        set_title(figure, f"The {len(edges)} heaviest edges between classes")
        return figure

    rows = [(names[a], names[b], weight, bool(cluster[a] == cluster[b])) for weight, a, b in edges]
    return save_figure(draw, stem, ("first", "second", "weight", "inside"), rows)


def _order(graph: ClassGraph, cut: Cut) -> tuple[npt.NDArray[np.int64], list[int]]:
    """Return vertices by cluster, in each by degree (heaviest first); and where clusters begin and end."""
    place = {name: number for number, name in enumerate(graph.names)}
    degrees = graph.degrees
    order: list[int] = []
    borders = [0]
    for names in cut.clusters:
        members = [place[name] for name in names]
        order += sorted(members, key=lambda vertex: (-int(degrees[vertex]), graph.names[vertex]))
        borders.append(len(order))
    return np.array(order, np.int64), borders


def _frame(axes: Axes, borders: Sequence[int]) -> None:
    from matplotlib.patches import Rectangle

    for start, end in pairwise(borders):
        place, size = (start - 0.5, start - 0.5), end - start
        axes.add_patch(Rectangle(place, size, size, fill=False, edgecolor=SERIES[1], linewidth=1.4, clip_on=False))


def _angles(cluster: npt.NDArray[np.int64], k: int) -> npt.NDArray[np.float64]:
    """Return an angle for each vertex; a gap stands between clusters."""
    gap = max(1.0, len(cluster) / 40)
    places = np.arange(len(cluster)) + gap * cluster
    angles: npt.NDArray[np.float64] = 2 * np.pi * places / (len(cluster) + gap * k)
    return angles


def _edges(table: npt.NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Return the heaviest edges as weight, first, second; of equal weights the first in order."""
    rows, columns = np.nonzero(np.triu(table))
    weights = table[rows, columns]
    chosen = np.argsort(-weights, kind="stable")[:_MOST_EDGES]
    return [(int(weights[edge]), int(rows[edge]), int(columns[edge])) for edge in chosen]


def _draw_edges(
    axes: Axes,
    angles: npt.NDArray[np.float64],
    cluster: npt.NDArray[np.int64],
    edges: Sequence[tuple[int, int, int]],
) -> None:
    heaviest = max((weight for weight, _, _ in edges), default=1)
    for weight, first, second in sorted(edges, key=lambda edge: (cluster[edge[1]] != cluster[edge[2]], edge)):
        inside = cluster[first] == cluster[second]
        ends = angles[[first, second]]
        x, y = np.cos(ends), np.sin(ends)
        # A quadratic curve bent towards the centre keeps edges of neighbours apart from the rim.
        t = np.linspace(0, 1, 24)
        bend = 0.45
        axes.plot(
            (1 - t) ** 2 * x[0] + 2 * t * (1 - t) * bend * x.mean() + t**2 * x[1],
            (1 - t) ** 2 * y[0] + 2 * t * (1 - t) * bend * y.mean() + t**2 * y[1],
            color=SERIES[int(cluster[first]) % 7] if inside else INK,
            label="" if inside else "between clusters",
            alpha=0.35 if inside else 0.5,
            linewidth=0.3 + 2.6 * float(np.sqrt(weight / heaviest)),
            zorder=1 if inside else 2,
        )


def _draw_vertices(
    axes: Axes, angles: npt.NDArray[np.float64], cluster: npt.NDArray[np.int64], names: Sequence[str]
) -> None:
    for number in range(int(cluster.max()) + 1):
        chosen = angles[cluster == number]
        label = f"cluster {number + 1} ({len(chosen)} classes)"
        axes.scatter(np.cos(chosen), np.sin(chosen), s=14, c=SERIES[number % 7], zorder=3, linewidths=0, label=label)
    if len(names) <= _MOST_NAMED:
        for angle, name in zip(angles.tolist(), names, strict=True):
            left = np.cos(angle) < 0
            axes.text(
                1.03 * np.cos(angle), 1.03 * np.sin(angle), plain(name, 18), fontsize=SMALL, color=INK,
                rotation=np.degrees(angle) + (180 if left else 0), rotation_mode="anchor",
                ha="right" if left else "left", va="center",
            )  # fmt: skip
    axes.set_aspect("equal")
    axes.axis("off")
    # Room for the longest name: a letter is about a fiftieth of the radius.
    reach = 1.05 + 0.022 * max(min(len(name), 18) for name in names)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
