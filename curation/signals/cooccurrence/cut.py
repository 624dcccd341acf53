"""`normalized_cut`: classes in k groups that co-occur as weakly as can be found, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from curation.core.errors import CutError
from curation.signals.cooccurrence.graph import ClassGraph
from curation.signals.cooccurrence.search import (
    MOST_PARTITIONS,
    Partition,
    best_labels,
    between_clusters,
    hashed_labels,
    kicked_labels,
    labels_of,
    lower_bound,
    normalized_cut_value,
    number_of_partitions,
    partition_of,
    recursive_sweep,
    refine,
    spectral_starts,
)
from curation.sources.source import Int64s

IsolatedPolicy = Literal["largest", "drop", "error"]
ComponentsPolicy = Literal["error", "cut", "giant"]
RESTARTS = 50
KICKS = 20
SOLVER_VERSION = 1
_LARGE, _ENOUGH = 500, 4
"""Of a graph with more classes no further start is tried when so many have ended at the best value."""


@dataclass(frozen=True)
class CutOptions:
    """Policies and effort of a cut.

    Attributes
    ----------
    isolated : {"largest", "drop", "error"}
        How classes that co-occur with none are treated: Ncut does not depend on them.
    components : {"error", "cut", "giant"}
        A graph of several components: refuse; cut it literally (a lone pair becomes a cluster); cut the largest
        component and treat the others as isolated classes.
    restarts, kicks : int
        Labellings from fixed hashes, and disturbances of the best, that are refined beside the spectral starts.
    exact : bool
        Whether graphs small enough are solved by looking at every partition.
    """

    isolated: IsolatedPolicy = "largest"
    components: ComponentsPolicy = "error"
    restarts: int = RESTARTS
    kicks: int = KICKS
    exact: bool = True


@dataclass(frozen=True)
class Start:
    """One starting point: its own value (None where it holds fewer than k clusters) and the one after refinement."""

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
        ``exact``: every partition was looked at; ``bound``: the value meets the lower bound (1e-9).
    isolated, apart : tuple of str
        Classes that co-occur with none; classes of smaller components (policy ``giant``).
    between : ndarray of int64, shape (k, k)
        Weight between clusters; inside a cluster each edge counts twice.
    starts : tuple of Start
        In the order in which they were tried.
    reached : int
        How many of them ended at `value`.
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
        """Value less lower bound; 0 where every partition was looked at."""
        return 0.0 if self.certificate == "exact" else max(0.0, float(self.value) - self.lower_bound)


def normalized_cut(graph: ClassGraph, k: int, options: CutOptions | None = None) -> Cut:
    """Return the partition into k clusters of the lowest normalized cut found, the same for any order of classes.

    Shi and Malik's objective over k clusters (*Rectifying Open-Set Object Detection*, MTSD splits). Of equal
    values the canonically first partition is taken.

    Raises
    ------
    CutError
        k is below 2 or above the number of classes that co-occur; or the graph falls apart and the policy is ``error``.
    """
    chosen = options or CutOptions()
    core, isolated, apart = _core(graph, k, chosen)
    with _one_thread():
        bound = lower_bound(core, k)
        starts: list[Start] = []
        if chosen.exact and number_of_partitions(len(core.names), k) <= MOST_PARTITIONS:
            best = partition_of(core.names, best_labels(core, k))
            certificate: Literal["exact", "bound", "none"] = "exact"
        else:
            best, starts = _search(core, k, chosen)
            value = normalized_cut_value(core, labels_of(core.names, best))
            certificate = "bound" if float(value) - bound <= 1e-9 else "none"
    labels = labels_of(core.names, best)
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
            "The graph falls apart: classes of one component never meet those of another",
            expected="one component",
            found=f"{len(components)}; beside the largest: "
            + "; ".join(_listed(component) for component in components[1:6]),
            hint="components=giant cuts the largest one, components=cut takes the graph as it is",
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


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep linear algebra on one thread: sums in another order could choose another start."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(limits=1):
        yield


class _Best:
    """The best partition so far; exact values decide, then the canonical form."""

    def __init__(self, graph: ClassGraph, k: int) -> None:
        self.graph, self.k = graph, k
        self.key: tuple[Fraction, Partition] | None = None
        self.starts: list[Start] = []

    def reached(self) -> int:
        """Return how many starts ended at the best value."""
        return sum(start.refined == float(self.key[0]) for start in self.starts) if self.key else 0

    def offer(self, name: str, labels: Int64s) -> bool:
        """Refine a start and keep it if it is better; True where it is."""
        if not _is_whole(self.graph, labels, self.k):
            self.starts.append(Start(name, None, None))
            return False
        own = float(normalized_cut_value(self.graph, labels))
        refined = refine(self.graph.weights, labels, self.k)
        key = (normalized_cut_value(self.graph, refined), partition_of(self.graph.names, refined))
        self.starts.append(Start(name, own, float(key[0])))
        if self.key is None or key < self.key:
            lower = self.key is None or key[0] < self.key[0]
            self.key = key
            return lower
        return False


def _is_whole(graph: ClassGraph, labels: Int64s, k: int) -> bool:
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
        labels = labels_of(graph.names, best.key[1])
        best.offer(f"kick {number}", kicked_labels(graph, labels, k, number))
    return best.key[1], best.starts


def _starts(graph: ClassGraph, k: int, options: CutOptions) -> Iterator[tuple[str, Int64s]]:
    """Yield labellings to start from; of a large graph those first that take little time."""
    hashed = ((f"hash {number}", hashed_labels(graph, k, number)) for number in range(options.restarts))
    yield from spectral_starts(graph, k)
    if len(graph.names) > _LARGE:
        yield from hashed
    yield "recursive", recursive_sweep(graph, k)
    yield from hashed
