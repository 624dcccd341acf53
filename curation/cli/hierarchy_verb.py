"""``curation hierarchy``: a class hierarchy for the eye."""

from __future__ import annotations

from typing import Annotated

from curation.cli.output import Answer, Table, printable, table_lines
from curation.errors import UsageError
from curation.hierarchy.questions import Hierarchy, Nearness, Subtree, View, losses, nearness, nodes_of, subtree

_SHOWN = 50


def show(found: Annotated[Subtree, subtree], /, *, view: View) -> Answer:
    """Print what lies below a node."""
    data = {
        "node": found.node,
        "name": found.name,
        "tree": view.tree,
        "origin": found.origin,
        "descendants": found.descendants,
        "leaves": list(found.leaves),
    }
    return Answer(data, [*map(printable, found.lines), "", f"{len(found.leaves)} leaves below"])


def find(word: str, /, *, of: Hierarchy) -> Answer:
    """Print the nodes that a word may mean."""
    data = nodes_of(word, of=of)
    columns = ("id", "name", "lemmas", "parents")
    rows = tuple(tuple(one[name] for name in columns) for one in data[:_SHOWN])
    more = [f"and {len(data) - _SHOWN} more: --json prints all"] if len(data) > _SHOWN else []
    return Answer(data, [*table_lines(Table(f"{len(data)} nodes", columns, rows)), *more], 0 if data else 1)


def similarity(found: Annotated[Nearness, nearness], /) -> Answer:
    """Print how near two nodes are, as NLTK defines it."""
    data = {
        "first": found.first,
        "second": found.second,
        "lowest_common": found.lowest_common,
        **found.values,
        **({"origin": found.origin} if found.origin else {}),
    }
    rows = (
        ("lowest common hypernym", found.lowest_common or "none: the two share no ancestor"),
        *(
            (name.replace("_", " "), "undefined" if value is None else f"{value:.6f}")
            for name, value in found.values.items()
        ),
    )
    return Answer(data, table_lines(Table(" and ".join(found.labels), ("", ""), rows)))


def dropped(nodes: tuple[Annotated[str, "NODE"], ...] = (), /, *, view: View) -> Answer:
    """Print the leaves that a one-parent tree loses, node by node.

    Parameters
    ----------
    nodes
        superclasses (default: those of P1, P2 and P3)
    """
    from curation.benchmarks.imagenet.classes import RULES

    if view.edges is not None and not nodes:
        raise UsageError("Name the nodes of your hierarchy", expected="curation hierarchy dropped NODE … --edges FILE")
    asked = nodes or tuple(
        dict.fromkeys(one for rule in RULES.values() for one in (*rule.known, *rule.negative, *rule.unknown))
    )
    found = losses(asked, view=view)
    rows = tuple(
        (
            found.labels[node],
            str(found.leaves[node]),
            str(len(several)),
            ", ".join(found.labels[leaf] for leaf in several),
        )
        for node, several in found.lost.items()
    )
    title = f"Leaves that the tree '{view.tree}' loses, of {len(asked)} nodes"
    table = Table(title, ("node", "leaves", "lost", ""), rows)
    return Answer({node: list(several) for node, several in found.lost.items()}, table_lines(table))


METAVAR = "ACTION"
COMMANDS = {"show": show, "find": find, "similarity": similarity, "dropped": dropped}
