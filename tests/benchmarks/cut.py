"""Normalized cuts: value beside scikit-learn's assignments, a recursive sweep and plain restarts; time against size.

The peers are written as plainly as one would: every candidate move is valued by the formula, the best one is made, and
that again from 50 random labellings. Every graph is cut by all; ours must never lie above the best of them.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from curation.cooccurrence.cut import CutOptions, normalized_cut
from curation.cooccurrence.graph import ClassGraph
from curation.cooccurrence.search import best_labels, normalized_cut_value, recursive_sweep
from curation.figure_style import MARKERS, SERIES, save_figure
from tests.benchmarks.measured import measured
from tests.cooccurrence.graphs import graph_of

SMALL_GRAPHS, RANDOM_RESTARTS = 40, 50
SIZES = (100, 200, 400, 1000, 2000)


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, value, unit, what is required, whether it is met."""
    rows = [_small(), *_against_peers()]
    times = []
    for size in SIZES:
        graph = _planted((round(0.575 * size), round(0.1375 * size), size - round(0.575 * size) - round(0.1375 * size)))
        start = time.perf_counter()
        normalized_cut(graph, 3, CutOptions(components="giant"))
        times.append((size, time.perf_counter() - start))
    limits = {400: 10, 2000: 120}
    rows += [measured(f"{size} classes", seconds, "s", most=limits.get(size)) for size, seconds in times]
    _figure(times, out)
    return rows


def _small() -> dict[str, Any]:
    missed = tried = 0
    for seed in range(SMALL_GRAPHS):
        graph = _small_graph(seed)
        if len(graph.components()) > 1:
            continue
        graph = graph.restricted(graph.components()[0])
        tried += 1
        found = normalized_cut(graph, 3, CutOptions(exact=False)).value
        missed += found != normalized_cut_value(graph, best_labels(graph, 3))
    return measured("9-vertex graphs whose optimum the search misses", missed, "graphs", f"of {tried}", most=0)


def _against_peers() -> list[dict[str, Any]]:
    rows = []
    for name, graph, k in (
        ("planted 40/10/20, 10 % noise", _planted((40, 10, 20), 2_000, 0.1), 3),
        ("planted 40/10/20, 40 % noise", _planted((40, 10, 20), 2_000, 0.4), 3),
        ("no structure, 60 classes", _planted((60,), 1_500, 0.0), 4),
    ):
        start = time.perf_counter()
        ours = float(normalized_cut(graph, k, CutOptions(components="giant")).value)
        seconds = time.perf_counter() - start
        core = graph.restricted(graph.components()[0])
        peers = {**_scikit(core, k), "recursive": _value(core, recursive_sweep(core, k), k), "plain": _plain(core, k)}
        best = min(peers.values())
        told = ", ".join(f"{peer} {value:.4f}" for peer, value in peers.items())
        rows.append(
            measured(
                f"{name}: ours / best of the peers", ours / best, "ratio", f"{seconds:.1f} s; {told}", most=1 + 1e-12
            )
        )
    return rows


def _scikit(graph: ClassGraph, k: int) -> dict[str, float]:
    from sklearn.cluster import SpectralClustering

    found = {}
    for assignment in ("kmeans", "discretize", "cluster_qr"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SpectralClustering(k, affinity="precomputed", assign_labels=assignment, random_state=0)
            found[assignment] = _value(graph, model.fit_predict(graph.weights.astype(float)), k)
    return found


def _value(graph: ClassGraph, labels: Any, k: int) -> float:
    if len(set(np.asarray(labels).tolist())) < k:
        return float("inf")
    return float(normalized_cut_value(graph, labels))


def _plain(graph: ClassGraph, k: int) -> float:
    weights = graph.weights.astype(float)
    degrees = weights.sum(axis=1)

    def value(labels: Any) -> float:
        total = 0.0
        for cluster in range(k):
            inside = labels == cluster
            volume = degrees[inside].sum()
            if not volume:
                return float("inf")
            total += 1 - weights[np.ix_(inside, inside)].sum() / volume
        return total

    rng = np.random.default_rng(0)
    best = float("inf")
    for _ in range(RANDOM_RESTARTS):
        labels = rng.integers(0, k, len(degrees))
        current = value(labels)
        while True:
            moves = []
            for vertex in range(len(degrees)):
                own = labels[vertex]
                for target in range(k):
                    if target != own:
                        labels[vertex] = target
                        moves.append((value(labels), vertex, target))
                labels[vertex] = own
            lowest = min(moves)
            if lowest[0] >= current - 1e-12:
                break
            current, labels[lowest[1]] = lowest[0], lowest[2]
        best = min(best, current)
    return best


def _small_graph(seed: int) -> ClassGraph:
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, 10)
    weights = np.zeros((9, 9), np.int64)
    for _ in range(14):
        shown = rng.choice(9, rng.integers(2, 4), replace=False, p=chance / chance.sum())
        weights[np.ix_(shown, shown)] += 1
    np.fill_diagonal(weights, 0)
    return graph_of([str(place) for place in range(9)], weights)


def _planted(sizes: tuple[int, ...], images: int = 0, noise: float = 0.1) -> ClassGraph:
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(len(sizes)), sizes)
    frequency = rng.pareto(1.2, len(group)) + 1
    weights = np.zeros((len(group), len(group)), np.int64)
    for _ in range(images or 50 * len(group)):
        members = np.flatnonzero(group == group[rng.integers(len(group))])
        chance = frequency[members] / frequency[members].sum()
        shown = rng.choice(members, min(int(rng.integers(2, 6)), len(members)), replace=False, p=chance)
        strange = rng.random(len(shown)) < noise
        shown[strange] = rng.choice(len(group), int(strange.sum()), p=frequency / frequency.sum())
        shown = np.unique(shown)
        weights[np.ix_(shown, shown)] += 1
    np.fill_diagonal(weights, 0)
    return graph_of([f"{number:04}" for number in range(len(group))], weights)


def _figure(times: list[tuple[int, float]], out: Path) -> None:
    def draw() -> Any:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.4, 3.2))
        axes = figure.add_subplot()
        axes.loglog(*zip(*times, strict=True), color=SERIES[0], marker=MARKERS[0])
        axes.set_xlabel("classes")
        axes.set_ylabel("seconds")
        axes.set_title("Normalized cut into 3, 74 starts")
        return figure

    save_figure(draw, out / "cut_time", ("classes", "seconds"), times)
