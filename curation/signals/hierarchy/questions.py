"""Public functions on class hierarchies: subtrees, nodes of a word, nearness, losses of a tree, related classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from curation.core.arguments import checked
from curation.core.errors import HierarchyError, UsageError
from curation.core.files import read_bytes
from curation.core.ids import ilsvrc2012_classes
from curation.manifest.manifest import Manifest
from curation.signals.hierarchy import hierarchy
from curation.signals.hierarchy import related_classes as related
from curation.signals.hierarchy.class_lists import ILSVRC, ClassSet, read_class_sets
from curation.signals.hierarchy.hierarchy import read_edge_list
from curation.signals.hierarchy.wordnet import Wordnet, open_wordnet, published_parents

if TYPE_CHECKING:
    from curation.signals.hierarchy.hierarchy import Graph

_ALL = "all"
_DEEPEST = 60


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """The hierarchy that a function reads.

    Attributes
    ----------
    edges
        another hierarchy than WordNet 3.0's nouns: parent and child on each line
    names
        names of its nodes: id, tab, names
    """

    edges: Path | None = None
    names: Path | None = None

    def graph(self, *, instances: bool = False, above: Collection[str] | None = None) -> Graph:
        """Return the hierarchy with all parents kept.

        Raises
        ------
        UsageError
            Names are given without edges.
        """
        if self.names is not None and self.edges is None:
            raise UsageError("--set names requires --edges FILE")
        if self.edges is not None:
            return read_edge_list(self.edges, self.names)
        chosen = open_wordnet()
        return chosen.all_nouns(instances=instances) if above is None else chosen.nouns(above, instances=instances)

    def full(self) -> Wordnet | Graph:
        """Return WordNet, or the hierarchy of the edges."""
        return open_wordnet() if self.edges is None and self.names is None else self.graph()


@dataclass(frozen=True, kw_only=True)
class View(Hierarchy):
    """The part of a hierarchy that is shown.

    Attributes
    ----------
    tree
        one parent a node (published: as in the ImageNet protocols; first, last: in the order of the parents), or all
        (dag)
    leaves
        ilsvrc2012: its 1,000 classes (the default for WordNet); all: nodes without a child; or a file of ids
    """

    tree: Literal["published", "first", "last", "dag"] = "published"
    leaves: Annotated[str | None, "WHICH"] = None

    def chosen_leaves(self) -> Collection[str] | None:
        """Return the leaves that are counted, None for all nodes without a child."""
        choice = self.leaves or (_ALL if self.edges is not None else ILSVRC)
        if choice == _ALL:
            return None
        if choice == ILSVRC:
            return ilsvrc2012_classes()
        text = read_bytes(Path(choice), kind="list of leaves").decode("utf-8", "replace")
        return tuple(dict.fromkeys(line.split()[0] for line in text.splitlines() if line.split()))

    def above(self, leaves: Collection[str] | None) -> Graph:
        """Return the hierarchy; raise `HierarchyError` for a leaf that it lacks."""
        if self.edges is None:
            return self.graph(above=leaves)
        graph = self.graph()
        hierarchy.ancestors(graph, leaves or ())
        return graph

    def apply(self, graph: Graph) -> Graph:
        """Return the hierarchy with a single parent for each node, or with all parents."""
        if self.tree == "dag":
            return graph
        if self.tree != "published":
            return hierarchy.as_tree(graph, "last" if self.tree == "last" else "first")
        choices = {child: parent for child, parent in published_parents().items() if child in graph}
        return hierarchy.as_tree(graph, choices=choices)


@dataclass(frozen=True, slots=True)
class Subtree:
    """The nodes below a node: its id and name, their number, the leaves among them, the lines of a drawing."""

    node: str
    name: str
    origin: str
    descendants: int
    leaves: tuple[str, ...]
    lines: tuple[str, ...]


@checked
def subtree(node: str, /, *, depth: int = 3, view: View | None = None) -> Subtree:
    """Return the subtree below a node.

    Parameters
    ----------
    node
        an id such as n02087122, or a name such as 'hunting dog'
    depth
        levels below the node (default 3)

    Examples
    --------
    >>> len(subtree("hunting dog").leaves)
    61
    """
    if not 0 <= depth <= _DEEPEST:
        raise UsageError("The depth is out of range", where=f"--depth {depth}", expected=f"0 to {_DEEPEST}")
    view = view or View()
    leaves = view.chosen_leaves()
    graph = view.apply(view.above(leaves))
    try:
        node = hierarchy.node_of(graph, node)
    except HierarchyError as error:
        if leaves is not None and error.found is None:
            with suppress(HierarchyError):
                hierarchy.node_of(view.above(None), node)
                error.hint = "--leaves all: the node lies above none of these leaves"
        raise
    return Subtree(
        node,
        hierarchy.label(graph, node),
        graph.graph.get("origin", ""),
        len(hierarchy.descendants(graph, [node])) - 1,
        hierarchy.leaves_under(graph, node, leaves),
        tuple(hierarchy.tree_lines(graph, node, depth=depth, leaves=leaves)),
    )


@checked
def nodes_of(word: str, /, *, of: Hierarchy | None = None) -> list[dict[str, str]]:
    """Return the nodes that a word may mean: id, name, lemmas, parents."""
    graph = (of or Hierarchy()).graph()
    return [
        {
            "id": node,
            "name": str(graph.nodes[node].get("name", "")),
            "lemmas": str(graph.nodes[node].get("lemmas", "")).replace(" ", ", ").replace("_", " "),
            "parents": "; ".join(hierarchy.label(graph, parent) for parent in hierarchy.parents(graph, node)),
        }
        for node in hierarchy.find_nodes(graph, word)
    ]


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near two nodes are: labels of both and of the lowest common hypernym, and Wu-Palmer similarity."""

    first: str
    second: str
    labels: tuple[str, str]
    lowest_common: str | None
    wu_palmer: float | None


@checked
def nearness(first: Annotated[str, "A"], second: Annotated[str, "B"], /, *, of: Hierarchy | None = None) -> Nearness:
    """Return how near two nodes are by Wu-Palmer similarity, as NLTK defines it.

    Parameters
    ----------
    first, second
        an id such as n02087122, or a name such as 'hunting dog'

    Examples
    --------
    >>> nearness("dog.n.01", "cat.n.01").wu_palmer
    0.8571428571428571
    """
    # NLTK's similarity follows instance pointers too.
    graph = (of or Hierarchy()).graph(instances=True)
    first, second = hierarchy.node_of(graph, first), hierarchy.node_of(graph, second)
    kin = related.kinship(graph, [first, second])
    lowest = int(related.lowest_common(kin, [first], [second])[0, 0])
    return Nearness(
        first,
        second,
        (hierarchy.label(graph, first), hierarchy.label(graph, second)),
        hierarchy.label(graph, kin.nodes[lowest]) if lowest >= 0 else None,
        float(related.wu_palmer(kin, [first], [second])[0, 0]) if lowest >= 0 else None,
    )


@dataclass(frozen=True, slots=True)
class Losses:
    """Leaves that a tree loses, by node; the number of leaves below each node; and the labels of all nodes."""

    lost: Mapping[str, Sequence[str]]
    leaves: Mapping[str, int]
    labels: Mapping[str, str]


@checked
def losses(nodes: tuple[Annotated[str, "NODE"], ...], /, *, view: View | None = None) -> Losses:
    """Return the leaves that a one-parent tree loses, node by node."""
    view = view or View()
    leaves = view.chosen_leaves()
    graph = view.above(leaves)
    if leaves is None:
        leaves = [node for node in graph if not graph.pred[node]]
    lost = hierarchy.dropped_leaves(
        graph, view.apply(graph), [hierarchy.node_of(graph, node) for node in nodes], leaves
    )
    return Losses(
        lost,
        {node: len(hierarchy.leaves_under(graph, node, leaves)) for node in lost},
        {name: hierarchy.label(graph, name) for node, several in lost.items() for name in (node, *several)},
    )


@checked
def kin(
    unknown: Annotated[Manifest | Path | str, str],
    known: Annotated[Manifest | Path | str | None, str] = None,
    /,
    *,
    part: str = "",
    images: Annotated[Path | None, "LIST"] = None,
    datasets: Annotated[tuple[str, ...], "NAME"] = (),
    of: Hierarchy | None = None,
) -> tuple[related.ClassKin, ...]:
    """Return how the unknown classes of a benchmark are related to its in-distribution classes by WordNet.

    Parameters
    ----------
    unknown
        the unknown classes: a manifest, a file of classes (wnids or names), SSB's JSON of known and unknown ones, or a
        list of images in folders of wnids
    known
        the in-distribution classes: the same, or ilsvrc2012 (default: the known ones that the first names)
    part
        of a manifest: only the unknown classes of this part, counted by the names of its images
    images
        list that says how many images each unknown class has: imagenet_21k_val_files.json, an imglist
    datasets
        whose class names these are: coco, voc or openimages, mapped to WordNet by hand (a manifest states them)

    Raises
    ------
    UsageError
        Nothing names known classes; a list names no class, or is empty.

    Examples
    --------
    >>> found, = kin("imagenet/p1@1.0.0")
    >>> found.counts["classes"], found.of("same", "below", "above")
    (166, ())
    """
    unknown_lists = read_class_sets(unknown, part=part)
    others = None if known is None else read_class_sets(known)
    for listed in unknown_lists:
        if not (listed.classes and _known(listed, others, unknown)):
            raise UsageError(
                "No classes to compare", where=f"{unknown}: {listed.name}"[:200],
                expected="at least one unknown and one in-distribution class",
                found=f"{len(listed.classes)} unknown classes",
            )  # fmt: skip
    within = (of or Hierarchy()).full()
    counted = (
        None if images is None else sum((Counter(item.images) for item in read_class_sets(images)), Counter[str]())
    )
    return tuple(
        related.class_kin(
            listed.classes,
            _known(listed, others, unknown),
            within=within,
            datasets=datasets or listed.datasets,
            images=listed.images if counted is None else counted,
            name=listed.name,
            filed=listed.filed,
        )
        for listed in unknown_lists
    )


def _known(listed: ClassSet, others: Sequence[ClassSet] | None, unknown: object) -> tuple[str, ...]:
    if others is None and listed.known is not None:
        return listed.known
    known_lists = {other.classes if other.known is None else other.known for other in others or ()}
    if len(known_lists) == 1:
        return known_lists.pop()
    raise UsageError(
        "Several lists of known classes" if known_lists else "No in-distribution classes given",
        where=str(unknown)[:200],
        expected=f"a second list, or {ILSVRC} for the 1,000 classes of ILSVRC-2012",
        found=f"{len(known_lists)} lists of classes" if known_lists else None,
    )
