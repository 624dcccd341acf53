"""``curation hierarchy``: a class hierarchy for the eye."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.output import Table, emit, printable, table_lines, tell_wordnet, warn
from curation.errors import HierarchyError, UsageError

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph

TREES = ("published", "first", "last", "dag")
_ILSVRC, _ALL = "ilsvrc2012", "all"
_DEEPEST = 60
_SHOWN = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation hierarchy``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = _action(actions, "show", "print what lies below a node")
    show.add_argument("node", metavar="NODE", help="an id such as n02087122, or a name such as 'hunting dog'")
    show.add_argument("--depth", type=int, default=3, metavar="N", help="levels below the node (default 3)")
    _add_tree(show, "published")
    _add_leaves(show)
    find = _action(actions, "find", "print the nodes that a word may mean")
    find.add_argument("word", metavar="WORD")
    similarity = _action(actions, "similarity", "print how near two nodes are, as NLTK defines it")
    similarity.add_argument("first", metavar="A")
    similarity.add_argument("second", metavar="B")
    dropped = _action(actions, "dropped", "print the leaves that a one-parent tree loses, node by node")
    dropped.add_argument(
        "nodes", metavar="NODE", nargs="*", help="superclasses (default: those of P1, P2 and P3)"
    )
    _add_tree(dropped, "published")
    _add_leaves(dropped)


def run(options: argparse.Namespace) -> int:
    """Print the answer of one action."""
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "show": _show,
        "find": _find,
        "similarity": _similarity,
        "dropped": _dropped,
    }
    return actions[options.action](options)


def _action(actions: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=summary, description=summary, allow_abbrev=False
    )
    parser.add_argument(
        "--wordnet",
        metavar="WHICH",
        help="in place of WordNet 3.0's nouns, which are built in: nltk[:CORPUS[:LANGUAGE]], a WordNet of NLTK's data "
        "(nltk:wordnet31, nltk:omw-1.4:fra), or a folder of WordNet 3.0",
    )
    parser.add_argument(
        "--edges", type=Path, metavar="FILE", help="another hierarchy: parent and child on each line"
    )
    parser.add_argument("--names", type=Path, metavar="FILE", help="its names: id, tab, names")
    parser.add_argument(
        "--edits", type=Path, metavar="FILE", help="TOML or JSON: other parents for some nodes"
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    return parser


def _add_tree(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--tree",
        choices=TREES,
        default=default,
        help="one parent a node (published: as in the ImageNet protocols; first, last: in the order of the parents), "
        "or all (dag)",
    )


def _add_leaves(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--leaves",
        metavar="WHICH",
        help="ilsvrc2012: its 1,000 classes (the default for WordNet); all: nodes without a child; or a file of ids",
    )


def _graph(
    options: argparse.Namespace, *, instances: bool = False, above: Collection[str] | None = None
) -> Graph:
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


def _leaves(options: argparse.Namespace) -> Collection[str] | None:
    from curation.ilsvrc2012 import ilsvrc2012_classes
    from curation.storage import read_bytes

    which = options.leaves or (_ALL if options.edges is not None else _ILSVRC)
    if which == _ALL:
        return None
    if which == _ILSVRC:
        return ilsvrc2012_classes()
    text = read_bytes(Path(which), kind="list of leaves").decode("utf-8", "replace")
    return tuple(dict.fromkeys(line.split()[0] for line in text.splitlines() if line.split()))


def _above(options: argparse.Namespace, leaves: Collection[str] | None) -> Graph:
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


def _show(options: argparse.Namespace) -> int:
    from curation.hierarchy.hierarchy import descendants, label, leaves_under, node_of, tree_lines

    if not 0 <= options.depth <= _DEEPEST:
        raise UsageError(
            "The depth is out of range", where=f"--depth {options.depth}", expected=f"0 to {_DEEPEST}"
        )
    leaves = _leaves(options)
    graph = _view(_above(options, leaves), options.tree, other=bool(options.wordnet))
    try:
        node = node_of(graph, options.node)
    except HierarchyError as error:
        if leaves is not None and error.found is None:
            error.hint = f"--leaves all, if it lies above none of these leaves; or {error.hint}"
        raise
    below = leaves_under(graph, node, leaves)
    lines = [printable(line) for line in tree_lines(graph, node, depth=options.depth, leaves=leaves)]
    data = {
        "node": node,
        "name": label(graph, node),
        "tree": options.tree,
        "origin": graph.graph.get("origin", ""),
        "descendants": len(descendants(graph, [node])) - 1,
        "leaves": list(below),
    }
    emit(data, [*lines, "", f"{len(below)} leaves below"], as_json=options.json)
    return 0


def _find(options: argparse.Namespace) -> int:
    from curation.hierarchy.hierarchy import find, label, parents

    graph = _graph(options)
    found = find(graph, options.word)
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
    emit(data, [*table_lines(table), *more], as_json=options.json)
    return 0 if found else 1


def _similarity(options: argparse.Namespace) -> int:
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
    first, second = node_of(graph, options.first), node_of(graph, options.second)
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
        *(
            (name.replace("_", " "), "undefined" if value is None else f"{value:.6f}")
            for name, value in values.items()
        ),
    )
    title = f"{label(graph, first)} and {label(graph, second)}"
    emit(data, table_lines(Table(title, ("", ""), rows)), as_json=options.json)
    return 0


def _dropped(options: argparse.Namespace) -> int:
    from curation.benchmarks.imagenet.classes import RULES
    from curation.hierarchy.hierarchy import dropped_leaves, label, leaves_under, node_of

    if options.edges is not None and not options.nodes:
        raise UsageError(
            "Name the nodes of your hierarchy", expected="curation hierarchy dropped NODE … --edges FILE"
        )
    leaves = _leaves(options)
    graph = _above(options, leaves)
    if leaves is None:
        leaves = [node for node in graph if not graph.pred[node]]
    tree = _view(graph, options.tree, other=bool(options.wordnet))
    nodes = [node_of(graph, node) for node in options.nodes] or list(
        dict.fromkeys(one for rule in RULES.values() for one in (*rule.known, *rule.negative, *rule.unknown))
    )
    lost = dropped_leaves(graph, tree, nodes, leaves)
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
        f"Leaves that the tree '{options.tree}' loses, of {len(nodes)} nodes",
        ("node", "leaves", "lost", ""),
        rows,
    )
    emit({node: list(several) for node, several in lost.items()}, table_lines(table), as_json=options.json)
    return 0
