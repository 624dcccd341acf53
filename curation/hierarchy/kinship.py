"""How near two nodes of a hierarchy are: path, Wu-Palmer and Leacock-Chodorow similarity, as NLTK defines them.

Depth is counted in edges from the root. *Shallow* depth takes the shortest way up, *deep* depth the longest: in a
hierarchy with several parents the two differ, and NLTK uses the shallow one to choose the common ancestor and the deep
one to score it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from curation.errors import HierarchyError
from curation.hierarchy.hierarchy import above

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph

_FAR = np.int32(1 << 20)
NOUN_DEPTH = 19
"""Deep depth of the deepest noun of WordNet 3.0, instances included: NLTK's scale of Leacock-Chodorow."""


@dataclass(frozen=True, slots=True)
class Kinship:
    """Distances within the part of a hierarchy above some nodes.

    Attributes
    ----------
    nodes : tuple of str, length m
        All of that part, from the shallowly deepest to the root, equal depth by name: the order in which NLTK takes the
        lowest common hypernym.
    index : dict of str to int
    up : ndarray of int32, shape (m, m)
        Edges of the shortest way up from row to column; `_FAR` where there is none.
    shallow, deep : ndarray of int32, shape (m,)
        Least and greatest number of edges to a root.
    """

    nodes: tuple[str, ...]
    index: dict[str, int]
    up: npt.NDArray[np.int32]
    shallow: npt.NDArray[np.int32]
    deep: npt.NDArray[np.int32]

    def positions(self, nodes: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the place of each node; one that lies elsewhere is a `HierarchyError`."""
        missing = [node for node in nodes if node not in self.index]
        if missing:
            raise HierarchyError(
                "These nodes are not among those whose kinship was computed", found=", ".join(missing[:5])
            )
        return np.array([self.index[node] for node in nodes], np.int64)


def kinship(graph: Graph, nodes: Sequence[str]) -> Kinship:
    """Return the distances among some nodes and everything above them.

    Memory is the square of the number of nodes above: 1,860 for ImageNet's 1,000 classes.
    """
    import networkx as nx

    part = above(graph, nodes)
    top_down = list(reversed(list(nx.topological_sort(part))))
    shallow: dict[str, int] = {}
    deep: dict[str, int] = {}
    for node in top_down:
        over = list(part.adj[node])
        shallow[node] = 1 + min((shallow[one] for one in over), default=-1)
        deep[node] = 1 + max((deep[one] for one in over), default=-1)
    names = {node: str(part.nodes[node].get("name", node)) for node in part}
    ordered = tuple(sorted(part, key=lambda node: (-shallow[node], names[node])))
    index = {node: place for place, node in enumerate(ordered)}
    up = np.full((len(ordered), len(ordered)), _FAR, np.int32)
    for node in top_down:
        row = index[node]
        for parent in part.adj[node]:
            np.minimum(up[row], up[index[parent]] + 1, out=up[row])
        up[row, row] = 0
    return Kinship(
        nodes=ordered,
        index=index,
        up=up,
        shallow=np.array([shallow[node] for node in ordered], np.int32),
        deep=np.array([deep[node] for node in ordered], np.int32),
    )


def lowest_common(kin: Kinship, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the position of the lowest common hypernym of every pair, shape (a, b); -1 where there is none.

    The deepest by shallow depth; among equals the first by name, but a node of `first` that is itself one of them goes
    before (NLTK's `wup_similarity` asks for that).
    """
    rows, columns = kin.positions(first), kin.positions(second)
    reach = kin.up < _FAR
    below = reach[columns]
    lowest = np.full((len(rows), len(columns)), -1, np.int64)
    for place, row in enumerate(rows.tolist()):
        own = np.flatnonzero(reach[row])
        common = below[:, own]
        found = common.any(axis=1)
        best = own[np.argmax(common, axis=1)]
        own_is_common = below[:, row] & (kin.shallow[best] == kin.shallow[row])
        lowest[place] = np.where(found, np.where(own_is_common, row, best), -1)
    return lowest


def distances(kin: Kinship, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the edges of the shortest way between every pair over a common ancestor, shape (a, b); -1 for none."""
    rows, columns = kin.positions(first), kin.positions(second)
    shortest = _ways_to(kin, rows, np.broadcast_to(columns, (len(rows), len(columns))))
    return np.where(shortest < _FAR, shortest, -1)


def wu_palmer(kin: Kinship, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return Wu-Palmer similarity of every pair, shape (a, b), in (0, 1]; NaN without a common ancestor.

    ``2 d / (l1 + l2)`` with d the deep depth of the lowest common hypernym, counted in nodes, and l the length of the
    way from each node to it plus d. As in NLTK, where several parents make shallow
    depth and deep depth disagree, the measure is not symmetric, and a node may be less than 1 similar to itself.
    """
    rows, columns = kin.positions(first), kin.positions(second)
    lowest = lowest_common(kin, first, second)
    depth = (kin.deep[lowest] + 1).astype(np.float64)
    ways = _ways_to(kin, rows, lowest) + _ways_to(kin, columns, lowest.T).T
    return np.where(lowest >= 0, 2.0 * depth / (ways + 2 * depth), np.nan)


def path_similarity(kin: Kinship, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return ``1 / (distance + 1)`` of every pair, shape (a, b); NaN without a common ancestor."""
    steps = distances(kin, first, second)
    return np.where(steps >= 0, 1.0 / (steps + 1.0), np.nan)


def leacock_chodorow(
    kin: Kinship, first: Sequence[str], second: Sequence[str], *, depth: int = NOUN_DEPTH
) -> npt.NDArray[np.float64]:
    """Return ``-log((distance + 1) / (2 depth))`` of every pair, shape (a, b); NaN without a common ancestor."""
    steps = distances(kin, first, second)
    with np.errstate(divide="ignore"):
        score = -np.log((steps + 1.0) / (2.0 * depth))
    return np.where(steps >= 0, score, np.nan)


def nearest(kin: Kinship, nodes: Sequence[str], known: Sequence[str]) -> list[tuple[str, float]]:
    """Return, for each node, the known one of highest Wu-Palmer similarity with it; ties go to the first known."""
    scores = wu_palmer(kin, nodes, known)
    best = np.argmax(np.where(np.isnan(scores), -math.inf, scores), axis=1)
    return [(known[place], float(scores[row, place])) for row, place in enumerate(best.tolist())]


def _ways_to(kin: Kinship, rows: npt.NDArray[np.int64], targets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the shortest way from each row's node to each of its targets: up, or up and down over a third node."""
    ways = np.zeros(targets.shape, np.int64)
    for place, row in enumerate(rows.tolist()):
        needed, back = np.unique(targets[place], return_inverse=True)
        own = np.flatnonzero(kin.up[row] < _FAR)
        ways[place] = (kin.up[needed][:, own] + kin.up[row, own]).min(axis=1)[back]
    return ways
