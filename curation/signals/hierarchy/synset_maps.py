"""Class names as noun synsets of WordNet: any list of them, and COCO-80, VOC-20 and Open Images-601 by hand.

Of the latter there are two readings, by name. ``curated``: each name looked at by hand, with the reason wherever the
first sense is not what the data set annotates. ``first_sense``: what ``wordnet.synsets(name)[0]`` returns, which makes
a leopard a fur.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Literal

from curation.core.errors import UsageError
from curation.signals.hierarchy.wordnet import Wordnet

if TYPE_CHECKING:
    from curation.signals.hierarchy.hierarchy import Graph

Reading = Literal["curated", "first_sense"]
DATASETS = ("coco", "voc", "openimages")
_FILE = "synset_maps.tsv"
_ID = re.compile(r"n[0-9]{8,9}")


@dataclass(frozen=True, slots=True)
class SynsetChoice:
    """What a class name means.

    Attributes
    ----------
    synset : str or None
        Chosen by hand; None where WordNet has nothing that fits.
    first_sense : str or None
        The first noun sense of the name in WordNet's own order; None where the name is no lemma.
    reason : str
        Why the two differ, or why there is no synset; ``""`` where the first sense is right.
    """

    synset: str | None
    first_sense: str | None
    reason: str


@cache
def synset_choices(dataset: str) -> dict[str, SynsetChoice]:
    """Return the choice of each class of a data set (``coco``, ``voc``, ``openimages``), in the data set's order.

    Raises
    ------
    UsageError
        There is no map of this data set.
    """
    if dataset not in DATASETS:
        raise UsageError("No synset map for this dataset", expected=", ".join(DATASETS), found=repr(dataset[:40]))
    lines = resources.files("curation.signals.hierarchy").joinpath(_FILE).read_text(encoding="ascii").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {
        name: SynsetChoice(synset or None, first or None, reason)
        for owner, name, synset, first, reason in rows
        if owner == dataset
    }


def synset_map(dataset: str, reading: Reading = "curated") -> dict[str, str]:
    """Return the synset of each class that has one under a reading, in the data set's order."""
    chosen = {
        name: choice.synset if reading == "curated" else choice.first_sense
        for name, choice in synset_choices(dataset).items()
    }
    return {name: synset for name, synset in chosen.items() if synset is not None}


@dataclass(frozen=True, slots=True)
class Placed:
    """Classes in a hierarchy.

    Attributes
    ----------
    names : tuple of str
        Every class once, as it is called.
    nodes : dict of str to str
        The node of each class that has one.
    absent : dict of str to str
        Why the others have none.
    """

    names: tuple[str, ...]
    nodes: dict[str, str]
    absent: dict[str, str]


def placed(
    within: Wordnet | Graph, lists: Sequence[Sequence[str]], datasets: Sequence[str] = ()
) -> tuple[Graph, tuple[Placed, ...]]:
    """Return lists of classes in a hierarchy, and the part of it that they need.

    A class is found by its id; by the hand-made map of a data set; by a unique name such as ``dog.n.01``; or by a
    lemma of one node alone, case aside. A word of several nodes is not guessed.

    Parameters
    ----------
    within : Wordnet or networkx.DiGraph
    lists : sequence of sequences of str
    datasets : sequence of str
        Of `DATASETS`: their maps are asked, the first goes before.
    """
    by_hand = {name: choice for dataset in reversed(datasets) for name, choice in synset_choices(dataset).items()}
    names = dict.fromkeys(name for listed in lists for name in listed)
    synsets = {name: choice.synset for name in names if (choice := by_hand.get(name)) is not None}
    if isinstance(within, Wordnet):
        ids = {key for key in (*names, *filter(None, synsets.values())) if key in within}
        by_word = [name for name in names if not (name in synsets or _ID.fullmatch(name))]
        graph = within.all_nouns() if by_word else within.nouns(ids)
    else:
        graph, by_word = within, [name for name in names if name not in within]
    bearing = _bearing(graph) if by_word else {}
    nodes: dict[str, str] = {}
    absent: dict[str, str] = {}
    for name in names:
        if name in graph:
            nodes[name] = name
        elif (synset := synsets.get(name)) is not None and synset in graph:
            nodes[name] = synset
        elif name in synsets:
            absent[name] = by_hand[name].reason or f"not in the table of {graph.graph['origin']}"
        elif len(several := bearing.get(name.strip().lower().replace(" ", "_"), [])) == 1:
            nodes[name] = several[0]
        elif several:
            absent[name] = f"a word of {len(several)} synsets: {', '.join(several[:4])}"
        else:
            absent[name] = f"not in the table of {graph.graph['origin']}"
    return graph, tuple(_of(tuple(dict.fromkeys(listed)), nodes, absent) for listed in lists)


def _bearing(graph: Graph) -> dict[str, list[str]]:
    """Return the nodes that bear each lemma or unique name."""
    found: dict[str, list[str]] = {}
    for node, data in graph.nodes(data=True):
        for word in {str(data.get("name", "")).lower(), *str(data.get("lemmas", "")).lower().split(" ")}:
            found.setdefault(word, []).append(node)
    return found


def _of(names: tuple[str, ...], nodes: dict[str, str], absent: dict[str, str]) -> Placed:
    return Placed(
        names,
        {name: nodes[name] for name in names if name in nodes},
        {name: absent[name] for name in names if name in absent},
    )
