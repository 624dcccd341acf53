"""``curation hierarchy``: print a class hierarchy and questions about it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, Line, Table, first_rows
from curation.cli.outputs import output_file
from curation.core.errors import UsageError
from curation.core.tables import as_csv
from curation.core.wording import counted
from curation.core.writing import write_text
from curation.signals.hierarchy.questions import Hierarchy, Nearness, Subtree, View, losses, nearness, nodes_of, subtree
from curation.signals.hierarchy.questions import kin as kin_of
from curation.signals.hierarchy.related_classes import RELATIONS, ClassKin

_SHOWN = 50
_FIRST = 10


def show(branch: Annotated[Subtree, subtree], /, *, view: View) -> Answer:
    """Print the nodes and leaves below a node."""
    data = {
        "node": branch.node,
        "name": branch.name,
        "tree": view.tree,
        "origin": branch.origin,
        "descendants": branch.descendants,
        "leaves": list(branch.leaves),
    }
    return Answer(data, [*branch.lines, "", f"{len(branch.leaves)} leaves below"])


def find(word: str, /, *, of: Hierarchy) -> Answer:
    """Find the nodes that a word may mean.

    Parameters
    ----------
    word
        a name or a lemma, such as 'hunting dog'
    """
    data = nodes_of(word, of=of)
    columns = ("id", "name", "lemmas", "parents")
    rows = (tuple(node[name] for name in columns) for node in data)
    lines = first_rows(counted(len(data), "node"), columns, rows, len(data), _SHOWN, "--json prints all")
    return Answer(data, lines, int(not data))


def similarity(result: Annotated[Nearness, nearness], /) -> Answer:
    """Print how near two nodes are by Wu-Palmer similarity, as NLTK defines it."""
    data = {
        "first": result.first,
        "second": result.second,
        "lowest_common": result.lowest_common,
        "wu_palmer": result.wu_palmer,
    }
    rows = (
        ("lowest common hypernym", result.lowest_common or "none: the two share no ancestor"),
        ("Wu-Palmer similarity", "undefined" if result.wu_palmer is None else f"{result.wu_palmer:.6f}"),
    )
    return Answer(data, [Table(" and ".join(result.labels), ("", ""), rows)])


def dropped(nodes: tuple[Annotated[str, "NODE"], ...] = (), /, *, view: View) -> Answer:
    """Print the leaves that a one-parent tree loses, node by node.

    Parameters
    ----------
    nodes
        superclasses (default: those of P1, P2 and P3)
    """
    from curation.benchmarks.imagenet import PROTOCOLS
    from curation.benchmarks.rules.hierarchy import ROLES

    if view.edges is not None and not nodes:
        raise UsageError("Name the nodes of your hierarchy", expected="curation hierarchy dropped NODE … --edges FILE")
    queried = nodes or tuple(
        dict.fromkeys(node for file in PROTOCOLS.values() for role in ROLES for node in file.classes.of(role))
    )
    loss = losses(queried, view=view)
    rows = tuple(
        (loss.labels[node], str(loss.leaves[node]), str(len(several)), ", ".join(loss.labels[leaf] for leaf in several))
        for node, several in loss.lost.items()
    )
    title = f"Leaves that the tree '{view.tree}' loses, of {len(queried)} nodes"
    table = Table(title, ("node", "leaves", "lost", ""), rows)
    return Answer({node: list(several) for node, several in loss.lost.items()}, [table])


def related(
    relations: Annotated[tuple[ClassKin, ...], kin_of], /, *, out: Annotated[Path | None, output_file(".csv")] = None
) -> Answer:
    """Print which unknown classes are, are below or are above an in-distribution class; exit status 1 where any is one.

    Parameters
    ----------
    out
        write a row for each unknown class as CSV
    """
    rows = [row for each in relations for row in each.rows]
    if out is not None:
        write_text(out, as_csv(list(rows[0]) if rows else ["set", "class"], [list(row.values()) for row in rows]))
    data = {
        "origin": relations[0].origin if relations else "",
        "not_proven": list(_notes(relations)),
        "sets": [
            each.counts | {"renamed": each.renamed, "one_synset": each.one_synset, "classes_told": each.rows}
            for each in relations
        ],
    }
    return Answer(data, _related_lines(relations), 1 if any(each.of("same") for each in relations) else 0)


def _related_lines(entries: tuple[ClassKin, ...]) -> list[Line]:
    counts = [
        (
            each.name,
            f"{each.counts['classes']:,}",
            *(_with_images(each, each.of(relation)) for relation in RELATIONS),
            f"{len(each.unknown.absent):,}",
            f"{len(each.known.names):,}" + (f", {len(each.known.absent):,} not" if each.known.absent else ""),
        )
        for each in entries
    ]
    columns = ("set", "classes", "in K", "below (images)", "above (images)", "not in the table", "known (K)")
    lines: list[Line] = [Table(f"Related by {entries[0].origin if entries else 'WordNet'}", columns, tuple(counts))]
    for each in entries:
        for relation, meaning in RELATIONS.items():
            rows = [row for row in each.rows if row["relation"] == relation]
            heads = ("class", "nearest known", "edges", "known related", "images")
            cells = (
                (row["label"], row["nearest"], *(_text(row[key]) for key in ("edges", "known_related", "images")))
                for row in rows
            )
            if rows:
                title, rest = f"{each.name}: {len(rows)} {meaning}", "--json or --out FILE has all"
                lines += first_rows(title, heads, cells, len(rows), _FIRST, rest)
    return [*lines, *(f"note: {text}" for text in _notes(entries))]


def _notes(entries: tuple[ClassKin, ...]) -> Iterable[str]:
    return dict.fromkeys(text for each in entries for text in each.notes)


def _with_images(each: ClassKin, names: tuple[str, ...]) -> str:
    images = each.images_of(names)
    return f"{len(names):,}" + ("" if images is None else f" ({images:,})")


def _text(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


METAVAR = "ACTION"
COMMANDS = {"show": show, "find": find, "similarity": similarity, "dropped": dropped, "related": related}
