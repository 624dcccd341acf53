"""WordNet 3.0 nouns as a hierarchy: built in, or from a WordNet folder on disk."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from curation.errors import HierarchyError
from curation.hierarchy.noun_table import NounTable, embedded_lemmas, embedded_structure, table_of

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph

ORIGIN = "WordNet 3.0 nouns"

Positions = npt.NDArray[np.int64]
Texts = npt.NDArray[Any]


def wordnet(
    folder: Path | None = None, *, above: Collection[str] | None = None, instances: bool = False
) -> Graph:
    """Return WordNet 3.0's nouns; ids are ImageNet's wnids (``n02084071`` is dog).

    Parameters
    ----------
    folder : Path, optional
        A WordNet 3.0 on disk (a dict folder, nltk_data, Debian's wordnet-base); the built-in table by default, which is
        the same.
    above : collection of str, optional
        Only these synsets and what lies above them.
    instances : bool
        Whether ``@i`` pointers count as kinship (NLTK's similarities follow them, ImageNet's hierarchy does not).

    Raises
    ------
    HierarchyError
        The folder holds another WordNet; `above` names what is no synset.
    MissingFileError
        There is no WordNet at the folder.
    """
    table, lemmas = (embedded_structure(), embedded_lemmas()) if folder is None else table_of(folder)
    chosen = _all(table) if above is None else _above(table, above, instances=instances)
    return _graph(table, lemmas, chosen, instances=instances)


def wnid(offset: int) -> str:
    """Return the id of a noun synset: ``n`` and eight digits of its offset in ``data.noun``."""
    return f"n{offset:08d}"


def _all(table: NounTable) -> Positions:
    return np.arange(len(table.offsets))


def _above(table: NounTable, leaves: Collection[str], *, instances: bool) -> Positions:
    start = positions_of(table, leaves)
    seen = np.zeros(len(table.offsets), np.bool_)
    seen[start] = True
    front = start
    usable = np.ones(len(table.parents), np.bool_) if instances else ~table.instances
    while len(front):
        counts = table.starts[front + 1] - table.starts[front]
        pointers = np.repeat(table.starts[front], counts) + _within(counts)
        found = np.unique(table.parents[pointers[usable[pointers]]])
        front = found[~seen[found]]
        seen[front] = True
    return np.flatnonzero(seen)


def _within(counts: npt.NDArray[np.int32]) -> Positions:
    """Return 0, 1, … for each run: the place of every pointer within its synset."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)


def positions_of(table: NounTable, wnids: Collection[str]) -> Positions:
    """Return the position of each synset; what is no noun of WordNet 3.0 is a `HierarchyError`."""
    numbers = [
        int(text[1:])
        if len(text) == 9 and text[0] == "n" and text[1:].isascii() and text[1:].isdigit()
        else -1
        for text in wnids
    ]
    place = np.minimum(np.searchsorted(table.offsets, numbers), len(table.offsets) - 1)
    wrong = [
        text for text, one, at in zip(wnids, numbers, place.tolist(), strict=True) if table.offsets[at] != one
    ]
    if wrong:
        raise HierarchyError(
            "This is no noun synset of WordNet 3.0",
            where=", ".join(repr(text[:40]) for text in wrong[:5]),
            expected="n and eight digits, as n02084071 for dog",
            found=f"{len(wrong)} of {len(numbers)} do not resolve",
            hint="ids of WordNet 3.1 have other offsets" if len(wrong) > len(numbers) // 2 else None,
        )
    return place


def _graph(
    table: NounTable,
    lemmas: list[str],
    chosen: Positions,
    *,
    instances: bool,
) -> Graph:
    import networkx as nx

    ids = [wnid(offset) for offset in table.offsets[chosen].tolist()]
    words = [lemmas[place] for place in chosen.tolist()]
    senses = table.senses[chosen].tolist()
    graph: Graph = nx.DiGraph(origin=ORIGIN)
    graph.add_nodes_from(
        (one, {"lemmas": text, "name": f"{text.split(' ', 1)[0].lower()}.n.{sense:02d}"})
        for one, text, sense in zip(ids, words, senses, strict=True)
    )
    graph.add_edges_from(_edges(table, chosen, np.array(ids, object), instances=instances))
    return graph


def _edges(table: NounTable, chosen: Positions, ids: Texts, *, instances: bool) -> Iterator[tuple[str, str]]:
    """Return child and parent of every pointer between chosen synsets, child by child in the file's order."""
    counts = table.starts[chosen + 1] - table.starts[chosen]
    pointers = np.repeat(table.starts[chosen], counts) + _within(counts)
    child = np.repeat(np.arange(len(chosen)), counts)
    kept = np.ones(len(pointers), np.bool_) if instances else ~table.instances[pointers]
    parent = np.searchsorted(chosen, table.parents[pointers[kept]])
    return zip(ids[child[kept]].tolist(), ids[parent].tolist(), strict=True)
