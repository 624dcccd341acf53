"""Labellings from which a normalized cut is refined: scikit-learn's, a recursive sweep, fixed hashes."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from curation.cooccurrence.graph import ClassGraph
from curation.errors import MissingExtraError
from curation.sources.source import Int64s

Floats = npt.NDArray[np.float64]
ASSIGNMENTS = ("kmeans", "discretize", "cluster_qr")


def normalised_laplacian(graph: ClassGraph) -> Floats:
    """Return ``I - D^-1/2 W D^-1/2`` of a graph without isolated vertices, shape (n, n)."""
    scale = 1 / np.sqrt(graph.degrees.astype(np.float64))
    laplacian: Floats = np.eye(len(graph.names)) - scale[:, None] * graph.weights * scale[None, :]
    return laplacian


def lower_bound(graph: ClassGraph, k: int) -> float:
    """Return a value that no partition into k clusters goes below: the sum of the k smallest eigenvalues.

    The cut relaxed to orthonormal columns (von Luxburg, 2007, section 5.3), less the error of the eigenvalues.
    """
    eigenvalues = np.linalg.eigvalsh(normalised_laplacian(graph))
    return max(0.0, float(np.sum(eigenvalues[:k])) - 1e-12 * len(graph.names) * k)


def spectral_starts(graph: ClassGraph, k: int) -> Iterator[tuple[str, Int64s]]:
    """Yield scikit-learn's spectral clustering under each of its label assignments; a start may hold fewer labels.

    Raises
    ------
    MissingExtraError
        scikit-learn is not installed.
    """
    try:
        from sklearn.cluster import spectral_clustering
    except ImportError as error:
        raise MissingExtraError(
            "Cutting a graph starts from spectral clustering, which needs scikit-learn",
            hint="pip install 'curation[lenses]'",
        ) from error
    for assignment in ASSIGNMENTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                labels = spectral_clustering(
                    graph.weights.astype(np.float64),
                    n_clusters=k,
                    assign_labels=assignment,
                    random_state=0,
                    eigen_solver="arpack" if len(graph.names) > k + 1 else None,
                )
            except (ValueError, np.linalg.LinAlgError, RuntimeError):
                # A start is a hint, not a result: where scikit-learn cannot, the others stand.
                continue
        yield assignment, labels.astype(np.int64)


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
    """Return what the best sweep cut of a cluster gains in the sum of inside / volume, and the vertices to move."""
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
    """Return a vector with a fixed sign and fewer digits, so that the last bits of an eigenvector decide nothing."""
    scaled = vector / max(float(np.abs(vector).max(initial=0)), 1e-300)
    pivot = int(np.abs(np.round(scaled, 6)).argmax())
    rounded: Floats = np.round(scaled * (1 if scaled[pivot] >= 0 else -1), 9)
    return rounded


def hashed_labels(graph: ClassGraph, k: int, number: int) -> Int64s:
    """Return labels drawn from ``sha256(number:name)``: the same for any order of classes, on any machine."""
    digests = [hashlib.sha256(f"{number}:{name}".encode()).digest() for name in graph.names]
    labels = np.array([int.from_bytes(digest[:8], "big") % k for digest in digests], np.int64)
    # The k smallest digests get one label each, so that no cluster is empty.
    first = sorted(range(len(digests)), key=lambda place: digests[place])[:k]
    labels[first] = np.arange(k)
    return labels


def kicked_labels(graph: ClassGraph, labels: Int64s, k: int, number: int) -> Int64s:
    """Return `labels` with a hash-drawn tenth of the vertices (three at least) put elsewhere."""
    digests = [hashlib.sha256(f"kick {number}:{name}".encode()).digest() for name in graph.names]
    chosen = sorted(range(len(digests)), key=lambda place: digests[place])[: max(3, len(digests) // 10)]
    kicked = labels.copy()
    for place in chosen:
        kicked[place] = (kicked[place] + 1 + digests[place][-1] % max(k - 1, 1)) % k
    return kicked
