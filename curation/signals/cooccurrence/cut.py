"""Normalized cuts: k groups of the classes of a source that rarely occur in the same image.

`group_classes` reads a file; `normalized_cut` cuts a graph.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from curation.core.arguments import checked
from curation.core.engines.running import one_core
from curation.core.errors import CutError, UsageError
from curation.core.figures import SERIES, add_scale, new_matrix, save_figure, set_title, tables_alone
from curation.core.reading import filled_lines, read_plain
from curation.core.tables import as_csv
from curation.core.writing import publishing_files, write_text
from curation.signals.cooccurrence.graph import (
    MOST_PARTITIONS,
    UNIT,
    WEIGHTINGS,
    ClassGraph,
    Partition,
    best_labels,
    between_clusters,
    class_graph,
    cluster_labels,
    count_cooccurrence,
    hashed_labels,
    kicked_labels,
    lower_bound,
    normalized_cut_value,
    number_of_partitions,
    partition_of,
    recursive_sweep,
    refine,
    spectral_starts,
)
from curation.sources.opening import as_source
from curation.sources.source import Int64s
from curation.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure


IsolatedPolicy = Literal["largest", "drop", "error"]
ComponentsPolicy = Literal["error", "cut", "giant"]
RESTARTS = 50
KICKS = 20
SOLVER_VERSION = 2
_LARGE, _ENOUGH = 500, 4
"""For a graph with more than 500 classes, the search ends after four starts have reached the best value."""


@dataclass(frozen=True)
class CutOptions:
    """Policies and effort of a cut.

    Attributes
    ----------
    isolated : {"largest", "drop", "error"}
        Where to put classes that co-occur with no other; Ncut does not depend on them.
    components : {"error", "cut", "giant"}
        A graph of several components: refuse; cut it literally (a lone pair becomes a cluster); cut the largest
        component and treat the others as isolated classes.
    restarts, kicks : int
        Labellings from fixed hashes, and disturbances of the best, that are refined beside the spectral starts.
    exact : bool
        Whether to evaluate every partition of a small graph.
    """

    isolated: IsolatedPolicy = "largest"
    components: ComponentsPolicy = "error"
    restarts: int = RESTARTS
    kicks: int = KICKS
    exact: bool = True


@dataclass(frozen=True)
class Start:
    """A starting point: its value (None if it has fewer than k clusters) and the value after refinement."""

    name: str
    value: float | None
    refined: float | None


@dataclass(frozen=True)
class Cut:
    """A partition of a class graph with its value and certificate.

    Attributes
    ----------
    clusters : tuple of tuple of str
        Each sorted; by size, then first name. Classes placed by the isolated policy are in the first one.
    value : Fraction
        Ncut on the vertices that were cut, exactly.
    lower_bound : float
        No partition into k clusters has a lower value.
    certificate : {"exact", "bound", "none"}
        ``exact``: every partition was evaluated; ``bound``: the value meets the lower bound (1e-9).
    isolated, apart : tuple of str
        Classes that co-occur with none; classes of smaller components (policy ``giant``).
    between : ndarray of int64, shape (k, k)
        Weight between clusters; inside a cluster each edge counts twice.
    starts : tuple of Start
        In the order in which they were tried.
    reached : int
        Number of starts that ended at `value`.
    """

    clusters: Partition
    value: Fraction
    lower_bound: float
    certificate: Literal["exact", "bound", "none"]
    isolated: tuple[str, ...]
    apart: tuple[str, ...]
    between: Int64s
    starts: tuple[Start, ...]
    reached: int

    @property
    def gap(self) -> float:
        """Value minus lower bound; 0 if every partition was evaluated."""
        return 0.0 if self.certificate == "exact" else max(0.0, float(self.value) - self.lower_bound)


def normalized_cut(graph: ClassGraph, k: int, options: CutOptions | None = None) -> Cut:
    """Return the partition into k clusters of the lowest normalized cut found, the same for any order of classes.

    Shi and Malik's objective over k clusters (*Rectifying Open-Set Object Detection*, MTSD splits). Of equal
    values the canonically first partition is taken.

    Raises
    ------
    CutError
        k is below 2 or above the number of classes that co-occur;
        or the policy is ``error`` and the graph not connected.
    """
    chosen = options or CutOptions()
    core, isolated, apart = _core(graph, k, chosen)
    # Sums in another order could choose another start.
    with one_core():
        bound = lower_bound(core, k)
        starts: list[Start] = []
        if chosen.exact and number_of_partitions(len(core.names), k) <= MOST_PARTITIONS:
            best = partition_of(core.names, best_labels(core, k))
            certificate: Literal["exact", "bound", "none"] = "exact"
        else:
            best, starts = _search(core, k, chosen)
            value = normalized_cut_value(core, cluster_labels(core.names, best))
            certificate = "bound" if float(value) - bound <= 1e-9 else "none"
    labels = cluster_labels(core.names, best)
    value = normalized_cut_value(core, labels)
    return Cut(
        clusters=best if chosen.isolated == "drop" else (tuple(sorted((*best[0], *isolated, *apart))), *best[1:]),
        value=value,
        lower_bound=bound,
        certificate=certificate,
        isolated=isolated,
        apart=apart,
        between=between_clusters(core, labels, k),
        starts=tuple(starts),
        reached=sum(start.refined is not None and abs(start.refined - float(value)) < 1e-12 for start in starts),
    )


def _core(graph: ClassGraph, k: int, options: CutOptions) -> tuple[ClassGraph, tuple[str, ...], tuple[str, ...]]:
    isolated, components = graph.isolated(), graph.components()
    if isolated and options.isolated == "error":
        raise CutError(
            "Some classes co-occur with no other",
            found=_listed(isolated),
            hint="isolated=largest puts them into the largest cluster, isolated=drop leaves them out",
        )
    apart: tuple[str, ...] = ()
    if len(components) > 1 and options.components == "error":
        raise CutError(
            "The graph is not connected: classes of different components never occur in the same image",
            expected="one component",
            found=f"{len(components)}; beside the largest: "
            + "; ".join(_listed(component) for component in components[1:6]),
            hint="components=giant cuts only the largest one, components=cut cuts the whole graph",
        )
    if len(components) > 1 and options.components == "giant":
        apart = tuple(sorted(name for component in components[1:] for name in component))
        components = components[:1]
    members = [name for component in components for name in component]
    if not 2 <= k <= len(members):
        raise CutError(
            "The number of clusters does not fit the graph" if len(members) >= 2 else "Nothing to cut",
            expected=f"2 to {len(members)}, the classes that co-occur"
            if len(members) >= 2
            else "images that show two classes or more",
            found=f"k = {k}" if len(members) >= 2 else f"{len(members)} classes that co-occur",
        )
    return graph.restricted(members), isolated, apart


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


class _Best:
    """The best partition so far; exact values decide, then the canonical form."""

    def __init__(self, graph: ClassGraph, k: int) -> None:
        self.graph, self.k = graph, k
        self.key: tuple[Fraction, Partition] | None = None
        self.starts: list[Start] = []

    def reached(self) -> int:
        """Return how many starts ended at the best value."""
        return sum(start.refined == float(self.key[0]) for start in self.starts) if self.key else 0

    def offer(self, name: str, labels: Int64s) -> None:
        """Refine a start and keep it if it is better."""
        if not _is_complete(self.graph, labels, self.k):
            self.starts.append(Start(name, None, None))
            return
        value = float(normalized_cut_value(self.graph, labels))
        refined = refine(self.graph.weights, labels, self.k)
        key = (normalized_cut_value(self.graph, refined), partition_of(self.graph.names, refined))
        self.starts.append(Start(name, value, float(key[0])))
        if self.key is None or key < self.key:
            self.key = key


def _is_complete(graph: ClassGraph, labels: Int64s, k: int) -> bool:
    volumes = np.array([graph.degrees[labels == cluster].sum() for cluster in range(k)])
    return bool(labels.min(initial=0) >= 0 and labels.max(initial=0) < k and (volumes > 0).all())


def _search(graph: ClassGraph, k: int, options: CutOptions) -> tuple[Partition, list[Start]]:
    best, kicks = _Best(graph, k), options.kicks
    for name, labels in _starts(graph, k, options):
        best.offer(name, labels)
        if len(graph.names) > _LARGE and best.reached() >= _ENOUGH:
            kicks = 0
            break
    if best.key is None:
        raise CutError("No starting point has k clusters", expected="at least one restart", found=str(options.restarts))
    for number in range(kicks):
        labels = cluster_labels(graph.names, best.key[1])
        best.offer(f"kick {number}", kicked_labels(graph, labels, k, number))
    return best.key[1], best.starts


def _starts(graph: ClassGraph, k: int, options: CutOptions) -> Iterator[tuple[str, Int64s]]:
    """Yield labellings to start from; for a large graph, the fast ones first."""
    hashed = ((f"hash {number}", hashed_labels(graph, k, number)) for number in range(options.restarts))
    yield from spectral_starts(graph, k)
    if len(graph.names) > _LARGE:
        yield from hashed
    yield "recursive", recursive_sweep(graph, k)
    yield from hashed


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
        a graph that is not connected: refuse, cut all of it, or cut its largest component
    restarts
        labellings from fixed hashes
    """
    source = as_source(file, dataset=dataset, part=part)
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
    """Draw the matrix of weights, with classes ordered by cluster and then by degree, and clusters framed.

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
        weights = np.ma.masked_equal(table / unit, 0)
        image = axes.imshow(
            weights,
            cmap="viridis_r",
            norm=LogNorm(vmin=weights.min(), vmax=max(2 * weights.min(), weights.max())) if weights.count() else None,
            interpolation="none",
            aspect="auto",
        )
        for start, end in pairwise(borders):
            corner, size = (start - 0.5, start - 0.5), end - start
            axes.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=SERIES[1], linewidth=1.4, clip_on=False))
        meaning = next((text for name, text in WEIGHTINGS.items() if name == graph.weighting), "weight")
        add_scale(figure, axes, image, meaning.partition(", ")[0])
        title = f"{len(names)} classes in {len(cut.clusters)} clusters: Ncut {float(cut.value):.4f}"
        set_title(figure, title, "white: never in one image; frames: clusters")
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
