"""Graphs for the tests of co-occurrence and cuts, drawn from counters, and an oracle that looks at every partition."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from curation.signals.cooccurrence.graph import ClassGraph
from tests.worlds.graphs import ncut, partitions


def graph_of(names: Sequence[str], weights: npt.NDArray[np.int64]) -> ClassGraph:
    """Return the graph of given weights, vertices in any order."""
    order = sorted(range(len(names)), key=lambda place: names[place])
    return ClassGraph(tuple(names[place] for place in order), weights[np.ix_(order, order)])


def from_images(images: Sequence[Sequence[str]], names: Sequence[str]) -> ClassGraph:
    """Count pairs image by image, in loops."""
    weights = np.zeros((len(names), len(names)), np.int64)
    place = {name: number for number, name in enumerate(names)}
    for image in images:
        shown = sorted({place[name] for name in image})
        for a in shown:
            for b in shown:
                if a != b:
                    weights[a, b] += 1
    return graph_of(names, weights)


def small_graph(seed: int, n: int = 9, images: int = 14) -> ClassGraph:
    """A sparse graph of few images with two or three classes, frequencies as in Zipf's law."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, n + 1)
    names = [f"c{number}" for number in range(n)]
    drawn = [
        [names[place] for place in rng.choice(n, rng.integers(2, 4), replace=False, p=weights / weights.sum())]
        for _ in range(images)
    ]
    return from_images(drawn, names)


def planted_graph(sizes: Sequence[int], images: int, noise: float, seed: int = 0) -> tuple[ClassGraph, list[int]]:
    """A graph of groups that keep to themselves but for a share of strangers, with the group of each class."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    frequency = rng.pareto(1.2, len(group)) + 1
    reached = np.cumsum(frequency) / frequency.sum()
    weights = np.zeros((len(group), len(group)), np.int64)
    for home in rng.choice(len(sizes), images, p=np.array(sizes) / sum(sizes)).tolist():
        members = np.flatnonzero(group == home)
        # Whoever is first: drawn by frequency, none twice.
        arrivals = rng.exponential(size=len(members)) / frequency[members]
        shown = members[np.argsort(arrivals)[: rng.integers(2, 6)]]
        strange = rng.random(len(shown)) < noise
        shown[strange] = np.searchsorted(reached, rng.random(strange.sum()))
        rows = np.array(sorted(set(shown.tolist())))
        weights[rows[:, None], rows] += 1
    np.fill_diagonal(weights, 0)
    return graph_of([f"{number:04}" for number in range(len(group))], weights), group.tolist()


def best_by_force(graph: ClassGraph, k: int) -> Fraction:
    """The lowest value over all labellings with k clusters that have company."""
    weights = graph.weights.tolist()
    values = (ncut(weights, labels) for labels in partitions(len(graph.names), k))
    return min(value for value in values if value is not None)
