"""Figures of a cut: the co-occurrence matrix reordered by cluster, and the class graph on a circle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from curation.cooccurrence.cut import Cut
from curation.cooccurrence.graph import ClassGraph
from curation.figure_style import INK, MUTED, SERIES, plain, save_figure

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
        from matplotlib.figure import Figure as NewFigure

        size = min(11.0, max(4.0, 0.115 * len(names) + 1.5))
        figure = NewFigure(figsize=(size + 0.9, size))
        axes = figure.add_subplot()
        shown = np.ma.masked_equal(table.astype(np.float64), 0)
        image = axes.imshow(
            shown,
            cmap="viridis_r",
            norm=LogNorm(vmin=1, vmax=max(2, int(table.max(initial=2)))),
            interpolation="none",
        )
        _frame(axes, borders, len(names))
        _name(axes, names)
        bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
        bar.set_label("weight" if graph.weighting != "counts" else "images with both classes")
        axes.set_title(f"{len(names)} classes in {len(cut.clusters)} clusters: Ncut {float(cut.value):.4f}")
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
        from matplotlib.figure import Figure as NewFigure

        figure = NewFigure(figsize=(7.2, 7.2))
        axes = figure.add_subplot()
        _draw_edges(axes, angles, cluster, edges)
        _draw_vertices(axes, angles, cluster, names)
        axes.set_title(f"The {len(edges)} heaviest edges; those between clusters are dark", pad=30)
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


def _frame(axes: Axes, borders: Sequence[int], n: int) -> None:
    axes.grid(visible=False)
    for start, end in pairwise(borders):
        axes.plot(
            [start - 0.5, end - 0.5, end - 0.5, start - 0.5, start - 0.5],
            [start - 0.5, start - 0.5, end - 0.5, end - 0.5, start - 0.5],
            color=SERIES[1],
            linewidth=1.4,
        )
    axes.set_xlim(-0.5, n - 0.5)
    axes.set_ylim(n - 0.5, -0.5)


def _name(axes: Axes, names: Sequence[str]) -> None:
    if len(names) > _MOST_NAMED:
        axes.set_xticks([])
        axes.set_yticks([])
        return
    size = 8 if len(names) <= 30 else 5.5
    axes.set_xticks(range(len(names)), [plain(name, 18) for name in names], rotation=90, fontsize=size)
    axes.set_yticks(range(len(names)), [plain(name, 18) for name in names], fontsize=size)
    axes.tick_params(length=0)


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
            alpha=0.35 if inside else 0.5,
            linewidth=0.3 + 2.6 * float(np.sqrt(weight / heaviest)),
            zorder=1 if inside else 2,
        )


def _draw_vertices(
    axes: Axes, angles: npt.NDArray[np.float64], cluster: npt.NDArray[np.int64], names: Sequence[str]
) -> None:
    axes.scatter(
        np.cos(angles),
        np.sin(angles),
        s=14,
        c=[SERIES[int(one) % 7] for one in cluster],
        zorder=3,
        linewidths=0,
    )
    if len(names) <= _MOST_NAMED:
        for angle, name in zip(angles.tolist(), names, strict=True):
            left = np.cos(angle) < 0
            axes.text(
                1.04 * np.cos(angle),
                1.04 * np.sin(angle),
                plain(name, 18),
                fontsize=6.5,
                color=MUTED,
                rotation=np.degrees(angle) + (180 if left else 0),
                rotation_mode="anchor",
                ha="right" if left else "left",
                va="center",
            )
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_xlim(-1.35, 1.35)
    axes.set_ylim(-1.35, 1.35)
