"""Similarity of nodes of a hierarchy, and relations (same, below, above) between the classes of two lists.

Wu-Palmer similarity is as NLTK defines it. Depth is counted in edges from the root.
*Shallow* depth takes the shortest way up, *deep* depth the longest: in a hierarchy with several parents the two differ,
and NLTK uses the shallow one to choose the common ancestor and the deep one to score it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from curation.core.errors import HierarchyError
from curation.signals.hierarchy.class_lists import Placed, placed
from curation.signals.hierarchy.hierarchy import above, label
from curation.signals.hierarchy.wordnet import Wordnet, open_wordnet

if TYPE_CHECKING:
    from curation.signals.hierarchy.hierarchy import Graph

_FAR = np.int32(1 << 20)

Relation = Literal["same", "below", "above"]
Kin = Literal["descendants", "all"]
"""Related classes: those below a known class, or also those above a known class."""
RELATIONS: Mapping[Relation, str] = {
    "same": "is a known class",
    "below": "below a known class: by definition its images are of that class",
    "above": "above a known class: its images may be of that class",
}
NOT_PROVEN = (
    "kinship is WordNet's, of classes: no image was looked at, and an unrelated class is not thereby clean",
    "is-a need not be visual; siblings, which share a parent with a known class, are not counted",
)
"""Notes beside every count of related classes; published manifests contain these words."""
FILED = "classes are those of folders and file names, which need not be what the images show"


@dataclass(frozen=True, slots=True)
class Kinship:
    """Distances within the part of a hierarchy above some nodes.

    Attributes
    ----------
    nodes : tuple of str, length m
        All of that part, by descending shallow depth, then by name: the order in which NLTK searches for
        the lowest common hypernym.
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
        """Return the position of each node; raise `HierarchyError` for an unknown node."""
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
        shallow[node] = 1 + min((shallow[parent] for parent in over), default=-1)
        deep[node] = 1 + max((deep[parent] for parent in over), default=-1)
    names = {node: str(part.nodes[node].get("name", node)) for node in part}
    ordered = tuple(sorted(part, key=lambda node: (-shallow[node], names[node])))
    index = {node: position for position, node in enumerate(ordered)}
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

    It has the largest shallow depth; among equal ones it is the node of `first` itself, as in NLTK's `wup_similarity`,
    else the first by name.
    """
    rows, columns = kin.positions(first), kin.positions(second)
    reach = kin.up < _FAR
    below = reach[columns]
    lowest = np.full((len(rows), len(columns)), -1, np.int64)
    for index, row in enumerate(rows.tolist()):
        reached = np.flatnonzero(reach[row])
        common = below[:, reached]
        has_common = common.any(axis=1)
        best = reached[np.argmax(common, axis=1)]
        own_is_common = below[:, row] & (kin.shallow[best] == kin.shallow[row])
        lowest[index] = np.where(has_common, np.where(own_is_common, row, best), -1)
    return lowest


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


def nearest_known(kin: Kinship, nodes: Sequence[str], known: Sequence[str]) -> list[tuple[str, float]]:
    """Return the most similar known node of each node by Wu-Palmer similarity; the first known of equal ones."""
    scores = wu_palmer(kin, nodes, known)
    best = np.argmax(np.where(np.isnan(scores), -math.inf, scores), axis=1)
    return [(known[column], float(scores[row, column])) for row, column in enumerate(best.tolist())]


@dataclass(frozen=True, slots=True)
class Relative:
    """The relation of an unknown class to known classes.

    Attributes
    ----------
    relation : {"same", "below", "above"}
        A class below one known class and above another is ``below``, the stronger relation.
    known : tuple of str
        The known classes with this relation, the nearest first.
    edges : int
        Number of edges of the shortest path to the nearest known class.
    """

    relation: Relation
    known: tuple[str, ...]
    edges: int


def relatives(graph: Graph, nodes: Collection[str], known: Collection[str]) -> dict[str, Relative]:
    """Return the relation of each node to the known nodes; unrelated nodes are left out.

    Equally near known nodes are in the order given.

    Examples
    --------
    >>> graph = open_wordnet().nouns(above=["n01580870", "n01580077"])
    >>> relatives(graph, ["n01580870"], ["n01580077"])  # blue jay and jay
    {'n01580870': Relative(relation='below', known=('n01580077',), edges=2)}
    """
    import networkx as nx

    requested, rank_of = set(nodes), {node: rank for rank, node in enumerate(known)}
    under: dict[str, list[tuple[int, str]]] = {}
    for other in rank_of:
        for node, edges in nx.single_source_shortest_path_length(graph, other).items():
            if edges and node in requested:
                under.setdefault(node, []).append((edges, other))
    relative_of: dict[str, Relative] = {}
    for node in dict.fromkeys(nodes):
        ways = nx.single_source_shortest_path_length(graph, node)
        over = [(edges, other) for other, edges in ways.items() if other in rank_of and edges]
        near = sorted(over or under.get(node, []), key=lambda way: (way[0], rank_of[way[1]]))
        if node in rank_of:
            relative_of[node] = Relative("same", (node,), 0)
        elif near:
            relative_of[node] = Relative("below" if over else "above", tuple(other for _, other in near), near[0][0])
    return relative_of


@dataclass(frozen=True)
class ClassKin:
    """Relations of a list of unknown classes to known classes.

    Attributes
    ----------
    name : str
        Name of the list.
    origin : str
        The hierarchy.
    unknown, known : Placed
        The classes with their synsets, and those that the hierarchy lacks, which have no relation.
    relatives : dict of str to Relative
        By name of the unknown class; its known ones are names too.
    images : mapping of str to int, or None
        Images of each unknown class, where a list states them.
    labels : dict of str to str
        Class with its first word: ``n01580870 blue jay``.
    filed : bool
        Whether the unknown classes are those of files' folders or names.
    """

    name: str
    origin: str
    unknown: Placed
    known: Placed
    relatives: Mapping[str, Relative]
    images: Mapping[str, int] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    filed: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that belong to the counts."""
        return (*NOT_PROVEN, FILED) if self.filed else NOT_PROVEN

    def of(self, *relations: Relation) -> tuple[str, ...]:
        """Return the unknown classes with one of the relations, in the order of their list."""
        return tuple(name for name, relative in self.relatives.items() if relative.relation in relations)

    def kin(self, which: Kin) -> tuple[str, ...]:
        """Return the classes below a known one, or also those above one; a known class is not among them."""
        return self.of("below") if which == "descendants" else self.of("below", "above")

    def images_of(self, names: Collection[str]) -> int | None:
        """Return the number of images of some classes; None if it is not known."""
        return None if self.images is None else sum(self.images.get(name, 0) for name in names)

    @cached_property
    def renamed(self) -> dict[str, str]:
        """The known class of each unknown class that is the same class under another name."""
        return {
            name: relative.known[0]
            for name, relative in self.relatives.items()
            if relative.relation == "same" and relative.known[0] != name
        }

    @cached_property
    def one_synset(self) -> tuple[tuple[str, ...], ...]:
        """Names of unknown classes, then of known ones, that belong to the same node."""
        names_of: dict[tuple[int, str], list[str]] = {}
        for side, part in enumerate((self.unknown, self.known)):
            for name, node in part.nodes.items():
                names_of.setdefault((side, node), []).append(name)
        return tuple(tuple(names) for names in names_of.values() if len(names) > 1)

    @cached_property
    def counts(self) -> dict[str, Any]:
        """Classes and images of each relation, and the classes that the table lacks."""
        names_of = {relation: self.of(relation) for relation in RELATIONS}
        return {
            "set": self.name,
            "classes": len(self.unknown.names),
            "images": self.images_of(self.unknown.names),
            "known": len(self.known.names),
            **{relation: len(names) for relation, names in names_of.items()},
            **{f"{relation}_images": self.images_of(names) for relation, names in names_of.items()},
            "not_in_table": len(self.unknown.absent),
            "known_not_in_table": len(self.known.absent),
        }

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A record for each unknown class; its relation may be ``none`` or ``not in the table``."""
        return [self._row(name) for name in self.unknown.names]

    def _row(self, name: str) -> dict[str, Any]:
        relative, absent = self.relatives.get(name), self.unknown.absent.get(name)
        return {
            "set": self.name,
            "class": name,
            "label": self.labels.get(name, name),
            "relation": "not in the table" if absent else relative.relation if relative else "none",
            "images": self.images_of([name]),
            "nearest": self.labels[relative.known[0]] if relative else None,
            "edges": relative.edges if relative else None,
            "known_related": len(relative.known) if relative else 0,
            "why": absent,
        }


def class_kin(
    unknown: Sequence[str],
    known: Sequence[str],
    *,
    within: Wordnet | Graph | None = None,
    datasets: Sequence[str] = (),
    images: Mapping[str, int] | None = None,
    name: str = "",
    filed: bool = False,
) -> ClassKin:
    """Return how unknown classes are related to known ones by WordNet, all parents kept.

    Parameters
    ----------
    unknown, known : sequence of str
        Ids of synsets, or names (see `curation.signals.hierarchy.class_lists.placed`).
    within : Wordnet or networkx.DiGraph, optional
        WordNet 3.0 by default.
    datasets : sequence of str
        Datasets whose hand-made maps give the node of a name.
    images : mapping of str to int, optional
        Images of each unknown class.
    name : str
        Name of the list of unknown classes.
    filed : bool
        See `ClassKin`.

    Examples
    --------
    >>> found = class_kin(["n01580870", "antelope", "n99999999"], ["n01580077", "n02423022"])
    >>> found.of("below"), found.of("above"), found.rows[1]["nearest"]
    (('n01580870',), ('antelope',), 'n02423022 gazelle')
    >>> found.unknown.absent
    {'n99999999': 'not in the table of WordNet 3.0 nouns'}
    """
    chosen = open_wordnet() if within is None else within
    graph, (first, second) = placed(chosen, (unknown, known), datasets)
    name_of: dict[str, str] = {}
    for key, node in second.nodes.items():
        name_of.setdefault(node, key)
    of_nodes = relatives(graph, list(first.nodes.values()), list(name_of))
    relative_of = {key: of_nodes[node] for key, node in first.nodes.items() if node in of_nodes}
    by_name = {
        key: replace(relative, known=tuple(map(name_of.__getitem__, relative.known)))
        for key, relative in relative_of.items()
    }
    # A name in both lists is one class, also if the hierarchy lacks it.
    by_name |= {key: Relative("same", (key,), 0) for key in first.absent if key in second.absent}
    by_name = {key: by_name[key] for key in first.names if key in by_name}
    first, second = (
        replace(part, absent={key: why for key, why in part.absent.items() if key not in by_name})
        for part in (first, second)
    )
    labels = {
        key: label(graph, part.nodes[key]) if key in part.nodes else key
        for part in (first, second)
        for key in part.names
    }
    return ClassKin(name, str(graph.graph["origin"]), first, second, by_name, images, labels, filed)


def _ways_to(kin: Kinship, rows: npt.NDArray[np.int64], targets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the shortest way from each row's node to each of its targets: up, or up and down over a third node."""
    ways = np.zeros(targets.shape, np.int64)
    for index, row in enumerate(rows.tolist()):
        needed, back = np.unique(targets[index], return_inverse=True)
        reached = np.flatnonzero(kin.up[row] < _FAR)
        ways[index] = (kin.up[needed][:, reached] + kin.up[row, reached]).min(axis=1)[back]
    return ways
