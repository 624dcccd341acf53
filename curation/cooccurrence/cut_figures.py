"""The figure of a cut: the co-occurrence matrix reordered by cluster."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from curation.cooccurrence.cut import Cut
from curation.cooccurrence.graph import UNIT, WEIGHTINGS, ClassGraph
from curation.figure_style import SERIES, add_scale, new_matrix, save_figure, set_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NAMED = 120


def matrix_figure(graph: ClassGraph, cut: Cut, stem: Path) -> list[Path]:
    """Draw the weights with classes ordered by cluster, and within one by degree; cluster borders as lines.

    Returns
    -------
    list of Path
        PNG, SVG, and the CSV of the drawn matrix (class, cluster, weight to every class).
    """
    degree = dict(zip(graph.names, graph.degrees.tolist(), strict=True))
    ordered = [sorted(cluster, key=lambda name: (-degree[name], name)) for cluster in cut.clusters]
    names = [name for cluster in ordered for name in cluster]
    order = [graph.names.index(name) for name in names]
    table = graph.weights[np.ix_(order, order)]
    borders = np.cumsum([0, *map(len, ordered)]).tolist()

    def draw() -> Figure:
        from matplotlib.colors import LogNorm
        from matplotlib.patches import Rectangle

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
        for start, end in pairwise(borders):
            corner, size = (start - 0.5, start - 0.5), end - start
            axes.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=SERIES[1], linewidth=1.4, clip_on=False))
        meaning = next((text for name, text in WEIGHTINGS.items() if name == graph.weighting), "weight")
        add_scale(figure, axes, image, meaning.partition(", ")[0])
        title = f"{len(names)} classes in {len(cut.clusters)} clusters: Ncut {float(cut.value):.4f}"
        set_title(figure, title, "white: never in one image; the frames are the clusters")
        return figure

    clusters = [number for number, cluster in enumerate(ordered, 1) for _ in cluster]
    rows = [(name, cluster, *row) for name, cluster, row in zip(names, clusters, table.tolist(), strict=True)]
    return save_figure(draw, stem, ("class", "cluster", *names), rows)
