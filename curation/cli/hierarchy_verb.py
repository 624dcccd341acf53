"""``curation hierarchy``: a class hierarchy for the eye."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from curation.cli.output import Answer, Table, printable, table_lines, tell_wordnet, warn
from curation.errors import HierarchyError, UsageError

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph

_ILSVRC, _ALL = "ilsvrc2012", "all"
_DEEPEST = 60
_SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class Options:
    """The hierarchy that is asked.

    Attributes
    ----------
    wordnet
        in place of WordNet 3.0's nouns, which are built in: nltk[:CORPUS[:LANGUAGE]], a WordNet of NLTK's data
        (nltk:wordnet31, nltk:omw-1.4:fra), or a folder of WordNet 3.0
    edges
        another hierarchy: parent and child on each line
    names
        its names: id, tab, names
    edits
        TOML or JSON: other parents for some nodes
    """

    wordnet: Annotated[str | None, "WHICH"] = None
    edges: Path | None = None
    names: Path | None = None
    edits: Path | None = None


@dataclass(frozen=True, kw_only=True)
class ViewOptions(Options):
    """What is seen of it.

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


def _graph(options: Options, *, instances: bool = False, above: Collection[str] | None = None) -> Graph:
    """Return the hierarchy that the options choose, all parents kept, edits applied."""
    from curation.hierarchy import open_wordnet
    from curation.hierarchy.class_trees import read_edge_list
    from curation.hierarchy.hierarchy import edited, read_edits

    if options.edges is not None and options.wordnet is not None:
        raise UsageError("--edges and --wordnet name two hierarchies", expected="one of them")
    if options.names is not None and options.edges is None:
        raise UsageError("--names belongs to --edges FILE")
    if options.edges is not None:
        graph = read_edge_list(options.edges, options.names)
    else:
        chosen = open_wordnet(options.wordnet)
        tell_wordnet(chosen)
        graph = chosen.nouns(above, instances=instances)
    return graph if options.edits is None else edited(graph, read_edits(options.edits))


def _leaves(options: ViewOptions) -> Collection[str] | None:
    from curation.ilsvrc2012 import ilsvrc2012_classes
    from curation.storage import read_bytes

    which = options.leaves or (_ALL if options.edges is not None else _ILSVRC)
    if which == _ALL:
        return None
    if which == _ILSVRC:
        return ilsvrc2012_classes()
    text = read_bytes(Path(which), kind="list of leaves").decode("utf-8", "replace")
    return tuple(dict.fromkeys(line.split()[0] for line in text.splitlines() if line.split()))


def _above(options: Options, leaves: Collection[str] | None) -> Graph:
    """Return the hierarchy with these leaves in it: one that it lacks is an error, not passed over."""
    from curation.hierarchy.hierarchy import ancestors

    if options.edges is None:
        return _graph(options, above=leaves)
    graph = _graph(options)
    ancestors(graph, leaves or ())
    return graph


def _view(graph: Graph, tree: str, *, other: bool) -> Graph:
    from curation.hierarchy.hierarchy import as_tree
    from curation.hierarchy.wordnet import published_parents

    if tree == "dag":
        return graph
    if tree != "published":
        return as_tree(graph, "last" if tree == "last" else "first")
    choices = {child: parent for child, parent in published_parents().items() if child in graph}
    if other and (lost := [child for child, parent in choices.items() if not graph.has_edge(child, parent)]):
        warn(
            f"the published tree is of WordNet 3.0: {len(lost)} of its {len(choices)} choices of a parent are none "
            "here; these synsets keep their first parent (--tree dag keeps all)"
        )
        choices = {child: parent for child, parent in choices.items() if child not in lost}
    return as_tree(graph, choices=choices)


def show(node: str, /, *, depth: int = 3, options: ViewOptions) -> Answer:
    """Print what lies below a node.

    Parameters
    ----------
    node
        an id such as n02087122, or a name such as 'hunting dog'
    depth
        levels below the node (default 3)
    """
    from curation.hierarchy.hierarchy import descendants, label, leaves_under, node_of, tree_lines

    if not 0 <= depth <= _DEEPEST:
        raise UsageError("The depth is out of range", where=f"--depth {depth}", expected=f"0 to {_DEEPEST}")
    leaves = _leaves(options)
    graph = _view(_above(options, leaves), options.tree, other=bool(options.wordnet))
    try:
        node = node_of(graph, node)
    except HierarchyError as error:
        if leaves is not None and error.found is None:
            error.hint = f"--leaves all, if it lies above none of these leaves; or {error.hint}"
        raise
    below = leaves_under(graph, node, leaves)
    lines = [printable(line) for line in tree_lines(graph, node, depth=depth, leaves=leaves)]
    data = {
        "node": node,
        "name": label(graph, node),
        "tree": options.tree,
        "origin": graph.graph.get("origin", ""),
        "descendants": len(descendants(graph, [node])) - 1,
        "leaves": list(below),
    }
    return Answer(data, [*lines, "", f"{len(below)} leaves below"])


def find(word: str, /, *, options: Options) -> Answer:
    """Print the nodes that a word may mean."""
    from curation.hierarchy.hierarchy import find as found_by
    from curation.hierarchy.hierarchy import label, parents

    graph = _graph(options)
    found = found_by(graph, word)
    rows = tuple(
        (
            node,
            str(graph.nodes[node].get("name", "")),
            str(graph.nodes[node].get("lemmas", "")).replace(" ", ", ").replace("_", " "),
            "; ".join(label(graph, parent) for parent in parents(graph, node)),
        )
        for node in found
    )
    data = [dict(zip(("id", "name", "lemmas", "parents"), row, strict=True)) for row in rows]
    table = Table(f"{len(found)} nodes", ("id", "name", "lemmas", "parents"), rows[:_SHOWN])
    more = [f"and {len(found) - _SHOWN} more: --json prints all"] if len(found) > _SHOWN else []
    return Answer(data, [*table_lines(table), *more], 0 if found else 1)


def similarity(first: Annotated[str, "A"], second: Annotated[str, "B"], /, *, options: Options) -> Answer:
    """Print how near two nodes are, as NLTK defines it."""
    from curation.hierarchy import open_wordnet
    from curation.hierarchy.hierarchy import label, node_of
    from curation.hierarchy.kinship import (
        NOUN_DEPTH,
        kinship,
        leacock_chodorow,
        lowest_common,
        path_similarity,
        wu_palmer,
    )

    # NLTK's similarities follow instance pointers too.
    graph = _graph(options, instances=True)
    first, second = node_of(graph, first), node_of(graph, second)
    kin = kinship(graph, [first, second])
    place = int(lowest_common(kin, [first], [second])[0, 0])
    scores = {
        "path": path_similarity(kin, [first], [second]),
        "wu_palmer": wu_palmer(kin, [first], [second]),
    }
    if options.edges is None:
        depth = open_wordnet(options.wordnet).noun_depth if options.wordnet else NOUN_DEPTH
        scores["leacock_chodorow"] = leacock_chodorow(kin, [first], [second], depth=depth)
    values = {name: float(score[0, 0]) if place >= 0 else None for name, score in scores.items()}
    common = label(graph, kin.nodes[place]) if place >= 0 else None
    data = {"first": first, "second": second, "lowest_common": common, **values}
    if options.wordnet:
        data["origin"] = graph.graph["origin"]
    rows = (
        ("lowest common hypernym", common or "none: the two share no ancestor"),
        *((name.replace("_", " "), "undefined" if value is None else f"{value:.6f}") for name, value in values.items()),
    )
    title = f"{label(graph, first)} and {label(graph, second)}"
    return Answer(data, table_lines(Table(title, ("", ""), rows)))


def dropped(nodes: tuple[Annotated[str, "NODE"], ...] = (), /, *, options: ViewOptions) -> Answer:
    """Print the leaves that a one-parent tree loses, node by node.

    Parameters
    ----------
    nodes
        superclasses (default: those of P1, P2 and P3)
    """
    from curation.benchmarks.imagenet.classes import RULES
    from curation.hierarchy.hierarchy import dropped_leaves, label, leaves_under, node_of

    if options.edges is not None and not nodes:
        raise UsageError("Name the nodes of your hierarchy", expected="curation hierarchy dropped NODE … --edges FILE")
    leaves = _leaves(options)
    graph = _above(options, leaves)
    if leaves is None:
        leaves = [node for node in graph if not graph.pred[node]]
    tree = _view(graph, options.tree, other=bool(options.wordnet))
    asked = [node_of(graph, node) for node in nodes] or list(
        dict.fromkeys(one for rule in RULES.values() for one in (*rule.known, *rule.negative, *rule.unknown))
    )
    lost = dropped_leaves(graph, tree, asked, leaves)
    rows = tuple(
        (
            label(graph, node),
            str(len(leaves_under(graph, node, leaves))),
            str(len(several)),
            ", ".join(label(graph, leaf) for leaf in several),
        )
        for node, several in lost.items()
    )
    table = Table(
        f"Leaves that the tree '{options.tree}' loses, of {len(asked)} nodes",
        ("node", "leaves", "lost", ""),
        rows,
    )
    return Answer({node: list(several) for node, several in lost.items()}, table_lines(table))


METAVAR = "ACTION"
COMMANDS = {"show": show, "find": find, "similarity": similarity, "dropped": dropped}
