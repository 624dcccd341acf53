"""The figure of set similarity: histograms of nearest-neighbour similarities."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from curation.figure_style import SERIES, plain, save_figure
from curation.similarity.embeddings import Vectors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS, RANGE = 200, (0.1, 0.81)
"""Of Fig. 3 of FindMeIfYouCan; the range grows where similarities lie outside."""


def similarity_histograms(panels: Mapping[str, Mapping[str, Vectors]], stem: Path, *, bins: int = BINS) -> list[Path]:
    """Draw the similarities of several sets to the ID set, one panel a source (Fig. 3 of FindMeIfYouCan).

    Parameters
    ----------
    panels : mapping of str to mapping of str to ndarray of float32
        By source, then by set: the similarity of each image to its nearest ID image.

    Returns
    -------
    list of Path
        PNG, SVG, and the CSV of the densities drawn (source, set, bin edges, density).
    """
    values = [one for sets in panels.values() for one in sets.values() if len(one)]
    low = min([RANGE[0], *(float(one.min()) for one in values)])
    high = max([RANGE[1], *(float(one.max()) for one in values)])
    edges = np.linspace(low, high, bins + 1)
    densities = {
        (source, name): np.histogram(one, edges, density=True)[0] if len(one) else np.zeros(bins)
        for source, sets in panels.items()
        for name, one in sets.items()
    }

    def draw() -> Figure:
        from matplotlib.figure import Figure as NewFigure

        figure = NewFigure(figsize=(5.2, 2.4 * len(panels) + 0.5), layout="constrained")
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (source, sets) in zip(axes, panels.items(), strict=True):
            for place, (name, one) in enumerate(sets.items()):
                colour = SERIES[place % len(SERIES)]
                label = f"{plain(name)} (n = {len(one):,})"
                axis.stairs(densities[source, name], edges, color=colour, fill=True, alpha=0.35)
                axis.stairs(densities[source, name], edges, color=colour, linewidth=0.8, label=label)
                if len(one):
                    axis.axvline(float(np.mean(one)), color=colour, linewidth=1, linestyle="--")
            axis.set_title(plain(source))
            axis.set_ylabel("density")
            axis.legend()
        axes[-1].set_xlabel("cosine to the nearest ID image (dashed: mean)")
        return figure

    rows = [
        (source, name, float(edges[place]), float(edges[place + 1]), float(density))
        for (source, name), found in densities.items()
        for place, density in enumerate(found)
    ]
    return save_figure(draw, stem, ("source", "set", "from", "to", "density"), rows)
