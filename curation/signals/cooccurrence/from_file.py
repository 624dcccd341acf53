"""Classes of an annotation file in groups that are weakly co-occurring."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from curation.core.arguments import checked
from curation.core.csv_table import as_csv
from curation.core.errors import UsageError
from curation.core.figure_style import SERIES, add_scale, new_matrix, save_figure, set_title, tables_alone
from curation.core.reading import filled_lines, read_plain
from curation.core.writing import publishing_files, write_text
from curation.signals.cooccurrence.cut import KICKS, SOLVER_VERSION, Cut, CutOptions, normalized_cut
from curation.signals.cooccurrence.graph import UNIT, WEIGHTINGS, ClassGraph, class_graph, count_cooccurrence
from curation.sources.coerce import as_source
from curation.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NAMED = 120


@dataclass(frozen=True)
class ClassGroups:
    """A normalized cut of the classes of a file: the graph, the cut, and facts about it as plain data."""

    graph: ClassGraph = field(repr=False)
    cut: Cut
    facts: Mapping[str, Any] = field(repr=False)

    @checked
    def save(self, folder: Path | str, *, figures: bool = False) -> list[Path]:
        """Write ``cut.json``, ``clusters.csv`` and ``matrix.csv`` together, with `figures` the matrix drawn too."""
        folder = Path(folder)
        rows = [
            (number, name, self.facts["class_images"][name])
            for number, names in enumerate(self.facts["clusters"], 1)
            for name in names
        ]
        with publishing_files(folder) as new, tables_alone(alone=not figures):
            written = matrix_figure(self.graph, self.cut, new / "matrix")
            written += [new / "clusters.csv", new / "cut.json"]
            write_text(written[-2], as_csv(("cluster", "class", "images"), rows))
            text = json.dumps(self.facts, indent=1, ensure_ascii=False, allow_nan=False)
            write_text(written[-1], text + "\n")
        return [folder / path.name for path in written]


@checked
def group_classes(
    file: Path,
    /,
    *,
    k: Annotated[int, "K"],
    dataset: Annotated[str, "NAME"] = "coco",
    part: Annotated[str, "PART"] = "",
    classes: Path | None = None,
    weighting: Literal["counts", "binary", "jaccard", "pmi"] = "counts",
    isolated: Literal["largest", "drop", "error"] = "largest",
    components: Literal["error", "cut", "giant"] = "error",
    restarts: Annotated[int, Meta(ge=0, le=100_000)] = 50,
    no_cache: bool = False,
) -> ClassGroups:
    """Group weakly co-occurring classes: normalized cut of co-occurrence.

    Parameters
    ----------
    file
        COCO JSON, a dataset root, or a table of classes
    k
        number of clusters
    dataset
        how to read FILE
    part
        of a dataset root that holds several
    classes
        cut these classes alone: one name a line
    weighting
        what an edge weighs (default: images with both)
    isolated
        classes that co-occur with none: into the largest cluster, left out, or refused
    components
        a graph that falls apart: refuse, cut it as it is, or cut its largest component
    restarts
        labellings from fixed hashes
    no_cache
        parse annotation files again, and store nothing
    """
    source = as_source(file, dataset=dataset, part=part, cache=not no_cache)
    counts = count_cooccurrence(source, None if classes is None else _class_list(classes))
    graph = class_graph(counts, weighting)
    cut = normalized_cut(graph, k, CutOptions(isolated, components, restarts))
    images = dict(zip(counts.names, counts.images.tolist(), strict=True))
    facts = {
        "curation": __version__,
        "solver": {
            "version": SOLVER_VERSION,
            "restarts": restarts,
            "kicks": KICKS,
            "isolated": isolated,
            "components": components,
        },
        "source": {
            "dataset": source.dataset,
            "part": source.part,
            "files": [{"name": record.name, "sha256": record.sha256} for record in source.files],
            "images": counts.total,
        },
        "weighting": graph.weighting,
        "unit": 1 if graph.weighting in ("counts", "binary") else 1 / UNIT,
        "k": k,
        "ncut": float(cut.value),
        "ncut_exact": f"{cut.value.numerator}/{cut.value.denominator}",
        "lower_bound": cut.lower_bound,
        "gap": cut.gap,
        "certificate": cut.certificate,
        "starts": len(cut.starts),
        "starts_that_reached_it": cut.reached,
        "start_values": [{"start": start.name, "own": start.value, "refined": start.refined} for start in cut.starts],
        "clusters": [list(names) for names in cut.clusters],
        "isolated": list(cut.isolated),
        "apart": list(cut.apart),
        "between": cut.between.tolist(),
        "class_images": images,
    }
    return ClassGroups(graph, cut, facts)


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


def _class_list(path: Path) -> list[str]:
    lines = filled_lines(
        read_plain(path, kind="list of classes"), str(path), UsageError, "The list of classes is not UTF-8"
    )
    if not lines:
        raise UsageError("The list of classes is empty", where=str(path), expected="one name a line")
    return [name for _, name in lines]
