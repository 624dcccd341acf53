"""Graphs of classes that co-occur, and the search for their normalized cut.

``Ncut(A_1..A_k) = sum_c cut(A_c, V - A_c) / vol(A_c) = k - sum_c assoc(A_c) / vol(A_c)`` (Shi and Malik, 2000,
k-way); ``vol`` sums degrees, ``assoc`` the weights inside, each edge twice. Weights are whole numbers: values are
fractions, and two partitions compare without rounding.

Moves are Kernighan-Lin in the form of Fiduccia and Mattheyses: a pass moves every vertex at most
once, always by the move that loses least, even uphill, and keeps the best prefix. Gains are those of the objective, not
of the cut alone. The state is whole numbers, so that no rounding errors accumulate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial
from typing import Literal

import numpy as np
import numpy.typing as npt

from curation.core.columns import distinct
from curation.core.errors import CutError
from curation.sources.source import Floats, Int64s, Source

MOST_CLASSES = 10_000
"""A dense table of 10,000 classes takes 800 MB."""
_KEYS_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class Cooccurrence:
    """Image counts of classes and of pairs of classes; classes are sorted by name.

    Attributes
    ----------
    names : tuple of str, length n
        Sorted by code point, unique.
    images : ndarray of int64, shape (n,)
        Images that show the class.
    pairs : ndarray of int64, shape (n, n)
        Images that show both classes; symmetric, the diagonal is 0.
    total : int
        Number of images, including those without any of the classes.
    """

    names: tuple[str, ...]
    images: Int64s
    pairs: Int64s
    total: int


def count_cooccurrence(
    source: Source, classes: Sequence[str] | None = None, aliases: Mapping[str, str] = {}
) -> Cooccurrence:
    """Return how often the classes of a source share an image; repeated objects in one image change nothing.

    Parameters
    ----------
    source : Source
        Boxes, crowd ones included, or a table of image and class.
    classes : sequence of str, optional
        Classes to count; by default all classes of the source. All images count.
    aliases : mapping of str to str
        Class names of categories that have another name.

    Raises
    ------
    CutError
        A class is named twice or unknown to the source, or two categories of the source have the same name.
    """
    spelled = [aliases.get(name, name) for name in source.categories.names]
    names = _counted_names(source, spelled, classes)
    if len(names) > MOST_CLASSES:
        raise CutError(
            "There are too many classes for a table of pairs",
            expected=f"at most {MOST_CLASSES:,}",
            found=f"{len(names):,}",
            hint="name the classes to count",
        )
    position = {name: index for index, name in enumerate(names)}
    number = np.array([position.get(name, -1) for name in spelled], np.int64)
    image, category = source.class_pairs()
    class_of = number[category]
    keys = distinct(image[class_of >= 0].astype(np.int64) * max(len(names), 1) + class_of[class_of >= 0])
    return _counted(names, keys // max(len(names), 1), keys % max(len(names), 1), len(source.images))


def _counted_names(source: Source, spelled: Sequence[str], classes: Sequence[str] | None) -> tuple[str, ...]:
    index = source.categories.index()
    if len(index) < len(source.categories):
        twice = next(name for name in index if source.categories.names.count(name) > 1)
        raise CutError("Two categories share a name", where=source.title, found=twice)
    known = dict.fromkeys(spelled)
    chosen = list(known if classes is None else classes)
    if strange := next((name for name in chosen if name not in known), None):
        expected = ", ".join(known)[:200]
        raise CutError("The source has no such class", where=source.title, expected=expected, found=f"{strange!r:.80}")
    if len(set(chosen)) < len(chosen):
        raise CutError("A class is named twice", found=next(name for name in chosen if chosen.count(name) > 1))
    return tuple(sorted(chosen))


def _counted(names: tuple[str, ...], images: Int64s, classes: Int64s, total: int) -> Cooccurrence:
    """Count pairs from unique ``(image, class)`` statements that are sorted by image, then class."""
    n = len(names)
    pairs = np.zeros(n * n, np.int64)
    starts = np.flatnonzero(np.r_[True, images[1:] != images[:-1]]) if len(images) else np.empty(0, np.int64)
    sizes = np.diff(np.r_[starts, len(images)])
    for size in np.unique(sizes[sizes > 1]).tolist():
        # All images that show this many classes at once: a block of shape (images, size).
        block = classes[starts[sizes == size][:, None] + np.arange(size)]
        first, second = np.triu_indices(size, 1)
        step = max(1, _KEYS_AT_ONCE // len(first))
        for low in range(0, len(block), step):
            some = block[low : low + step]
            np.add.at(pairs, (some[:, first] * n + some[:, second]).ravel(), 1)
    upper: npt.NDArray[np.int64] = pairs.reshape(n, n)
    return Cooccurrence(names, np.bincount(classes, minlength=n).astype(np.int64), upper + upper.T, total)


Weighting = Literal["counts", "binary", "jaccard", "pmi"]
WEIGHTINGS: dict[Weighting, str] = {
    "counts": "images that show both classes",
    "binary": "1 where any image shows both",
    "jaccard": "images with both / images with either, in units of 1e-9",
    "pmi": "positive pointwise mutual information log(p_ij / (p_i p_j)), natural, in units of 1e-9",
}
UNIT = 10**9
"""Fractional weights are rounded to whole multiples of 1e-9, so that every sum is exact in any order."""


@dataclass(frozen=True)
class ClassGraph:
    """An undirected graph with whole-number weights; vertices are sorted by name.

    Attributes
    ----------
    names : tuple of str, length n
    weights : ndarray of int64, shape (n, n)
        Symmetric, not negative, the diagonal is 0.
    weighting : str
        Meaning of a weight; a key of `WEIGHTINGS`, or ``given``.
    """

    names: tuple[str, ...]
    weights: Int64s
    weighting: str = "given"

    @property
    def degrees(self) -> Int64s:
        """Sum of each vertex's weights, shape (n,)."""
        degrees: Int64s = self.weights.sum(axis=1)
        return degrees

    def isolated(self) -> tuple[str, ...]:
        """Return the vertices that co-occur with no other."""
        return tuple(name for name, degree in zip(self.names, self.degrees.tolist(), strict=True) if not degree)

    def components(self) -> list[tuple[str, ...]]:
        """Return the connected components, isolated vertices left out, largest first, then by first name."""
        components, unvisited = [], self.degrees > 0
        while unvisited.any():
            reached = frontier = np.arange(len(unvisited)) == unvisited.argmax()
            while frontier.any():
                frontier = (self.weights[frontier] > 0).any(axis=0) & ~reached
                reached = reached | frontier
            components.append(tuple(self.names[position] for position in np.flatnonzero(reached).tolist()))
            unvisited &= ~reached
        return sorted(components, key=lambda component: (-len(component), component[0]))

    def restricted(self, names: Sequence[str]) -> ClassGraph:
        """Return the graph on some of its vertices."""
        chosen = set(names)
        positions = [position for position, name in enumerate(self.names) if name in chosen]
        return ClassGraph(
            tuple(self.names[position] for position in positions),
            self.weights[np.ix_(positions, positions)],
            self.weighting,
        )


def class_graph(counts: Cooccurrence, weighting: Weighting = "counts") -> ClassGraph:
    """Return the graph of a co-occurrence table under a weighting; `WEIGHTINGS` has the formulas."""
    pairs, either = counts.pairs, counts.images[:, None] + counts.images[None, :] - counts.pairs
    if weighting == "counts":
        weights = pairs.copy()
    elif weighting == "binary":
        weights = (pairs > 0).astype(np.int64)
    elif weighting == "jaccard":
        weights = np.rint(pairs / np.maximum(either, 1) * UNIT).astype(np.int64)
    else:
        expected = np.maximum(counts.images[:, None] * counts.images[None, :], 1) / max(counts.total, 1)
        ratio = np.where(pairs > 0, pairs / expected, 1.0)
        weights = np.rint(np.log(np.maximum(ratio, 1.0)) * UNIT).astype(np.int64)
    np.fill_diagonal(weights, 0)
    return ClassGraph(counts.names, weights, weighting)


Partition = tuple[tuple[str, ...], ...]


def between_clusters(graph: ClassGraph, labels: Int64s, k: int) -> Int64s:
    """Return the weight between every two clusters, shape (k, k); inside a cluster each edge counts twice."""
    # Integer sums do not go through BLAS: exact, and the same on every machine.
    rows = np.array([graph.weights[labels == cluster].sum(axis=0) for cluster in range(k)], np.int64)
    return np.array([rows[:, labels == cluster].sum(axis=1) for cluster in range(k)], np.int64).T


def normalized_cut_value(graph: ClassGraph, labels: Sequence[int] | Int64s) -> Fraction:
    """Return the exact Ncut of a labelling; every cluster must have a positive volume.

    Raises
    ------
    CutError
        A cluster is empty or its volume is 0: the value is undefined.
    """
    numbers = np.asarray(labels, np.int64)
    k = int(numbers.max(initial=-1)) + 1
    return _value_of(between_clusters(graph, numbers, k))


def _value_of(between: Int64s) -> Fraction:
    """Return the Ncut from the table of weights between clusters."""
    volumes = [int(volume) for volume in between.sum(axis=1)]
    if not volumes or min(volumes) <= 0:
        raise CutError("A cluster that co-occurs with nothing has no normalized cut", expected="every volume above 0")
    return sum((Fraction(volume - int(between[c, c]), volume) for c, volume in enumerate(volumes)), Fraction(0))


def partition_of(names: Sequence[str], labels: Sequence[int] | Int64s) -> Partition:
    """Return the clusters, each sorted, by size (largest first), then first name: the canonical form of a labelling."""
    clusters: dict[int, list[str]] = {}
    for name, label in zip(names, np.asarray(labels).tolist(), strict=True):
        clusters.setdefault(label, []).append(name)
    ordered = (tuple(sorted(cluster)) for cluster in clusters.values())
    return tuple(sorted(ordered, key=lambda cluster: (-len(cluster), cluster[0])))


def cluster_labels(names: Sequence[str], partition: Partition) -> Int64s:
    """Return the label of each name: the position of its cluster."""
    label = {name: number for number, cluster in enumerate(partition) for name in cluster}
    return np.array([label[name] for name in names], np.int64)


MOST_PARTITIONS = 400_000
"""Partitions of 12 vertices into 3 are 86,526, into 4 are 611,501."""
_NEAR = 1e-9
_ROWS = 20_000


def number_of_partitions(n: int, k: int) -> int:
    """Return in how many ways n vertices fall into k clusters (Stirling number of the second kind)."""
    signed = sum((-1 if j % 2 else 1) * comb(k, j) * int((k - j) ** n) for j in range(k + 1))
    return signed // factorial(k)


def best_labels(graph: ClassGraph, k: int) -> Int64s:
    """Return the labelling of lowest Ncut; among equal values, the canonically first partition.

    Every partition into k clusters of positive volume is valued; those within 1e-9 of the best are compared exactly.
    """
    weights = graph.weights.astype(np.float64)
    degrees = weights.sum(axis=1)
    best, near = np.inf, list[tuple[float, Int64s]]()
    labellings = _labellings(len(graph.names), k)
    for low in range(0, len(labellings), _ROWS):
        block = labellings[low : low + _ROWS].astype(np.int64)
        values = np.zeros(len(block))
        for cluster in range(k):
            members = (block == cluster).astype(np.float64)
            volume = members @ degrees
            inside = ((members @ weights) * members).sum(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                values += np.where(volume > 0, 1 - inside / volume, np.inf)
        best = min(best, float(values.min(initial=np.inf)))
        few = values <= best + _NEAR
        near += zip(values[few].tolist(), block[few], strict=True)
    finalists = [row for value, row in near if value <= best + _NEAR]
    return min(finalists, key=lambda row: (normalized_cut_value(graph, row), partition_of(graph.names, row)))


def _labellings(n: int, k: int) -> npt.NDArray[np.int8]:
    """Return all labellings as restricted growth strings: a new label is always the next one. Shape (partitions, n)."""
    rows, used = np.zeros((1, n), np.int8), np.ones(1, np.int8)
    for vertex in range(1, n):
        grown = []
        for label in range(min(vertex + 1, k)):
            now = np.maximum(used, label + 1)
            # Enough vertices must remain for the missing labels.
            can_be_completed = (used >= label) & (now + (n - vertex - 1) >= k)
            more = rows[can_be_completed]
            more[:, vertex] = label
            grown.append((more, now[can_be_completed]))
        rows, used = (np.concatenate(parts) for parts in zip(*grown, strict=True))
    return rows


def normalised_laplacian(graph: ClassGraph) -> Floats:
    """Return ``I - D^-1/2 W D^-1/2`` of a graph without isolated vertices, shape (n, n)."""
    scale = 1 / np.sqrt(graph.degrees.astype(np.float64))
    laplacian: Floats = np.eye(len(graph.names)) - scale[:, None] * graph.weights * scale[None, :]
    return laplacian


def lower_bound(graph: ClassGraph, k: int) -> float:
    """Return a lower bound of the Ncut of all partitions into k clusters: the sum of the k smallest eigenvalues.

    It is the cut relaxed to orthonormal columns (von Luxburg, 2007, section 5.3), minus the error of the eigenvalues.
    """
    eigenvalues = np.linalg.eigvalsh(normalised_laplacian(graph))
    return max(0.0, float(np.sum(eigenvalues[:k])) - 1e-12 * len(graph.names) * k)


def spectral_starts(graph: ClassGraph, k: int) -> Iterator[tuple[str, Int64s]]:
    """Yield the labels of spectral clustering by column-pivoted QR, then by k-means from there; some may be unused.

    The first labels are those of scikit-learn's ``SpectralClustering`` with ``assign_labels="cluster_qr"`` (Damle,
    Minden and Ying, 2019).
    """
    _, vectors = np.linalg.eigh(normalised_laplacian(graph))
    embedding = vectors[:, :k] / np.sqrt(graph.degrees.astype(np.float64))[:, None]
    pivots, rest = list[int](), embedding.T.copy()
    for _ in range(k):
        pivots.append(int(_rounded(np.square(rest).sum(axis=0)).argmax()))
        axis = rest[:, pivots[-1]] / max(float(np.linalg.norm(rest[:, pivots[-1]])), 1e-300)
        rest -= np.outer(axis, axis @ rest)
    left, _, right = np.linalg.svd(embedding[pivots].T)
    labels = np.abs(embedding @ (left @ right)).argmax(axis=1).astype(np.int64)
    yield "cluster_qr", labels
    for _ in range(_MOST_PASSES):
        centres = np.stack([embedding[labels == c].mean(axis=0) for c in np.unique(labels)])
        # Distances up to a constant of each row, which takes n * k numbers instead of n * k * k.
        distances = np.square(centres).sum(axis=1) - 2 * embedding @ centres.T
        before, labels = labels, distances.argmin(axis=1)
        if np.array_equal(before, labels):
            break
    yield "kmeans", labels


def recursive_sweep(graph: ClassGraph, k: int) -> Int64s:
    """Return the labels of repeated two-way cuts along the Fiedler vector, the best split of all clusters each time."""
    weights, degrees = graph.weights.astype(np.float64), graph.degrees.astype(np.float64)
    labels = np.zeros(len(graph.names), np.int64)
    splits: dict[int, tuple[float, Int64s] | None] = {}
    for count in range(1, k):
        for cluster in range(count):
            if cluster not in splits:
                splits[cluster] = _best_sweep(weights, degrees, np.flatnonzero(labels == cluster))
        usable = {cluster: split for cluster, split in splits.items() if split is not None}
        if not usable:
            return labels
        chosen = max(usable, key=lambda cluster: (usable[cluster][0], -cluster))
        labels[usable[chosen][1]] = count
        del splits[chosen]
    return labels


def _best_sweep(weights: Floats, degrees: Floats, members: Int64s) -> tuple[float, Int64s] | None:
    """Return the gain of the best sweep cut of a cluster in the sum of inside / volume, and the vertices to move."""
    n = len(members)
    if n < 2:
        return None
    inner = weights[np.ix_(members, members)]
    scale = 1 / np.sqrt(np.maximum(degrees[members], 1e-300))
    _, vectors = np.linalg.eigh(np.eye(n) - scale[:, None] * inner * scale[None, :])
    order = np.argsort(_rounded(vectors[:, 1] * scale), kind="stable")
    ordered = inner[np.ix_(order, order)]
    # Weight inside the first m of the order, and inside the rest, for every m at once.
    first = np.cumsum(2 * np.tril(ordered, -1).sum(axis=1))[:-1]
    total = float(inner.sum())
    rest = total - 2 * np.cumsum(ordered.sum(axis=1))[:-1] + first
    volume = np.cumsum(degrees[members][order])
    parts = first / volume[:-1] + rest / (volume[-1] - volume[:-1])
    cut = int(parts.argmax())
    return float(parts[cut] - total / volume[-1]), members[order[cut + 1 :]]


def _rounded(vector: Floats) -> Floats:
    """Return a vector with a fixed sign and fewer digits, so that the last bits of an eigenvector have no effect."""
    scaled = vector / max(float(np.abs(vector).max(initial=0)), 1e-300)
    pivot = int(np.abs(np.round(scaled, 6)).argmax())
    rounded: Floats = np.round(scaled * (1 if scaled[pivot] >= 0 else -1), 9)
    return rounded


def hashed_labels(graph: ClassGraph, k: int, number: int) -> Int64s:
    """Return labels drawn from ``sha256(number:name)``: the same for any order of classes, on any machine."""
    digests = [hashlib.sha256(f"{number}:{name}".encode()).digest() for name in graph.names]
    labels = np.array([int.from_bytes(digest[:8], "big") % k for digest in digests], np.int64)
    # The k smallest digests get one label each, so that no cluster is empty.
    first = sorted(range(len(digests)), key=lambda vertex: digests[vertex])[:k]
    labels[first] = np.arange(k)
    return labels


def kicked_labels(graph: ClassGraph, labels: Int64s, k: int, number: int) -> Int64s:
    """Return `labels` with a tenth of the vertices (at least three), drawn by hash, in other clusters."""
    digests = [hashlib.sha256(f"kick {number}:{name}".encode()).digest() for name in graph.names]
    chosen = sorted(range(len(digests)), key=lambda vertex: digests[vertex])[: max(3, len(digests) // 10)]
    kicked = labels.copy()
    for vertex in chosen:
        kicked[vertex] = (kicked[vertex] + 1 + digests[vertex][-1] % max(k - 1, 1)) % k
    return kicked


_LEAST_GAIN = 1e-12
_MOST_PASSES = 60


@dataclass
class _State:
    """A labelling with the costs of its moves: `links` holds each cluster's weights to the vertices, shape (k, n)."""

    weights: Int64s
    degrees: Int64s
    labels: Int64s
    links: Int64s
    volumes: Int64s
    inside: Int64s
    sizes: Int64s

    @classmethod
    def from_labels(cls, weights: Int64s, labels: Int64s, k: int) -> _State:
        links = np.stack([weights[labels == c].sum(axis=0) for c in range(k)])
        degrees = weights.sum(axis=1)
        inner = links[labels, np.arange(len(labels))]
        return cls(
            weights,
            degrees,
            labels.copy(),
            links,
            np.array([degrees[labels == c].sum() for c in range(k)], np.int64),
            np.array([inner[labels == c].sum() for c in range(k)], np.int64),
            np.bincount(labels, minlength=k).astype(np.int64),
        )

    def quality(self) -> float:
        """Return the sum of inside / volume: k minus the normalized cut."""
        return float((self.inside / self.volumes).sum())

    def best_move(self, fixed: npt.NDArray[np.bool_]) -> tuple[float, int, int]:
        """Return gain, vertex and cluster of the best move of a vertex that may move; gain -inf if there is none."""
        vertex = np.arange(len(self.labels))
        inner = self.links[self.labels, vertex]
        rest = self.volumes[self.labels] - self.degrees
        ratios = self.inside / self.volumes
        with np.errstate(divide="ignore", invalid="ignore"):
            leaving = (self.inside[self.labels] - 2 * inner) / rest - ratios[self.labels]
        inside = self.inside[:, None] + 2 * self.links
        gains = inside / (self.volumes[:, None] + self.degrees) - ratios[:, None] + leaving
        gains[self.labels, vertex] = -np.inf
        # Among equal gains, the first vertex and its first cluster.
        highest = np.where(fixed | (rest <= 0) | (self.sizes[self.labels] == 1), -np.inf, gains.max(axis=0))
        best = int(highest.argmax())
        return float(highest[best]), best, int(gains[:, best].argmax())

    def move(self, vertex: int, target: int) -> None:
        source = int(self.labels[vertex])
        degree, row = self.degrees[vertex], self.weights[vertex]
        self.inside[source] -= 2 * self.links[source, vertex]
        self.inside[target] += 2 * self.links[target, vertex]
        self.volumes[source] -= degree
        self.volumes[target] += degree
        self.sizes[source] -= 1
        self.sizes[target] += 1
        self.links[source] -= row
        self.links[target] += row
        self.labels[vertex] = target


def refine(weights: Int64s, labels: Int64s, k: int) -> Int64s:
    """Return a labelling that no pass improves any more, shape (n,); its Ncut is at most that of `labels`.

    Parameters
    ----------
    weights : ndarray of int64, shape (n, n)
    labels : ndarray of int64, shape (n,)
        0..k-1; every cluster has a positive volume.
    """
    state = _State.from_labels(weights, labels, k)
    if (state.volumes <= 0).any():
        return labels
    for _ in range(_MOST_PASSES):
        _climb(state)
        if not _pass(state):
            break
    return state.labels


def _climb(state: _State) -> None:
    """Make the best move as long as it gains."""
    fixed = np.zeros(len(state.labels), bool)
    for _ in range(8 * len(fixed)):
        gain, vertex, target = state.best_move(fixed)
        if not gain > _LEAST_GAIN:
            return
        state.move(vertex, target)


def _pass(state: _State) -> bool:
    """Move vertices one by one, each once, and undo the moves after the best prefix; return whether it gained."""
    n = len(state.labels)
    patience = max(60, n // 8)
    fixed = np.zeros(n, bool)
    undo: list[tuple[int, int]] = []
    before = best = state.quality()
    best_length = 0
    for _ in range(n):
        gain, vertex, target = state.best_move(fixed)
        if not np.isfinite(gain):
            break
        undo.append((vertex, int(state.labels[vertex])))
        state.move(vertex, target)
        fixed[vertex] = True
        if (quality := state.quality()) > best + _LEAST_GAIN:
            best, best_length = quality, len(undo)
        elif len(undo) - best_length > patience:
            break
    for vertex, origin in reversed(undo[best_length:]):
        state.move(vertex, origin)
    return best > before + _LEAST_GAIN
