"""Signals of nearness: cuts of co-occurrence graphs, neighbours, WordNet's similarities, embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.own_process import Clock

QUERIES, REFERENCES, DIMENSION, NEAREST = 2_000, 60_000, 512, 50
BATCH, PHOTOS = 32, 320


def _graph(folder: Path) -> Any:
    from curation.signals.cooccurrence.graph import ClassGraph

    weights = np.load(folder / "graph.npy")
    return ClassGraph(tuple(f"{number:04}" for number in range(len(weights))), weights)


def draw_graph(folder: Path, clock: Clock) -> None:
    """Write the weights of a graph of 2,000 classes in three groups: its largest component."""
    from tests.signals.cooccurrence.graphs import planted_graph

    if not (folder / "graph.npy").exists():
        graph, _ = planted_graph((1_150, 275, 575), 100_000, 0.1)
        np.save(folder / "graph.npy", graph.restricted(graph.components()[0]).weights)


def cut(folder: Path, clock: Clock) -> float:
    """Return the normalized cut into three that is found."""
    import sklearn.cluster  # noqa: F401 - loaded before the clock starts, as for the peer

    from curation.signals.cooccurrence.cut import normalized_cut

    graph = _graph(folder)
    with clock:
        found = normalized_cut(graph, 3)
    return float(found.value)


def cut_cluster_qr(folder: Path, clock: Clock) -> float:
    """Return the normalized cut of scikit-learn's spectral clustering."""
    from sklearn.cluster import SpectralClustering

    from curation.signals.cooccurrence.graph import normalized_cut_value

    graph = _graph(folder)
    with clock:
        model = SpectralClustering(3, affinity="precomputed", assign_labels="cluster_qr", random_state=0)
        labels = model.fit_predict(graph.weights.astype(float))
    return float(normalized_cut_value(graph, labels))


def _vectors() -> list[Any]:
    rng = np.random.default_rng(0)
    drawn = [rng.standard_normal((n, DIMENSION), dtype=np.float32) for n in (QUERIES, REFERENCES)]
    return [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in drawn]


def neighbors(folder: Path, clock: Clock) -> list[list[float]]:
    """Return the fifty largest products of every twentieth query."""
    from curation.signals.similarity.neighbors import nearest

    queries, references = _vectors()
    nearest(queries[:10], references[:1000], NEAREST)
    with clock:
        _, scores = nearest(queries, references, NEAREST)
    found: list[list[float]] = scores[::20].tolist()
    return found


def neighbors_faiss(folder: Path, clock: Clock) -> list[list[float]]:
    """Return the same of faiss's exact index, filling it included; in single precision."""
    import faiss

    queries, references = _vectors()
    with clock:
        index = faiss.IndexFlatIP(DIMENSION)
        index.add(references)
        scores, _ = index.search(queries, NEAREST)
    found: list[list[float]] = scores[::20].tolist()
    return found
