"""The nouns of WordNet 3.0 as a hierarchy; ids are ImageNet's (``n02084071`` is dog).

The built-in table has two compressed streams, so that relations can be read without words: *structure* (a synset's
position, its parents in the file's order) and *lemmas*. ``python -m tests.signals.hierarchy.generate_wordnet
DICT_FOLDER`` writes them beside this module from ``data.noun`` and ``index.noun`` (Princeton's WNdb-3.0, or Debian's
wordnet-base, which gives the same table) and prints their digests, listed in `DIGESTS`. WordNet 3.0 Copyright 2006 by
Princeton University; its licence is in ``WORDNET_LICENSE``.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from curation.core.errors import DigestMismatchError, HierarchyError
from curation.core.ids import ilsvrc2012_classes
from curation.signals.hierarchy.hierarchy import as_tree

if TYPE_CHECKING:
    from curation.signals.hierarchy.hierarchy import Graph


STRUCTURE_FILE, LEMMA_FILE = (f"wordnet30_{name}.xz" for name in ("structure", "lemmas"))
DIGESTS = {
    STRUCTURE_FILE: "73635f6ec195c88cc2b646f53690f9fda323b3f34e768d7369f9aa48d16dd442",
    LEMMA_FILE: "2138ccd8180abf1b8b76fee464fb8fe69f45922b4b2435e778b2763ed5b70aac",
}
"""SHA-256 of the decompressed streams: compressed bytes depend on the library's version, these do not."""

Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class NounTable:
    """The noun synsets in the order of their offsets; n of them, with p parent pointers together.

    Attributes
    ----------
    offsets : ndarray of int32, shape (n,)
    starts : ndarray of int32, shape (n + 1,)
        The parents of synset i are ``parents[starts[i]:starts[i + 1]]``, in the order of ``data.noun``.
    parents : ndarray of int32, shape (p,)
        Positions in `offsets`.
    instances : ndarray of bool, shape (p,)
        Whether the pointer is ``@i`` (Einstein is an instance of a physicist).
    senses : ndarray of uint8, shape (n,)
        Sense number of the first lemma: 1 of ``dog.n.01``.
    """

    offsets: Int32s
    starts: Int32s
    parents: Int32s
    instances: npt.NDArray[np.bool_]
    senses: npt.NDArray[np.uint8]


def structure_from(data: bytes) -> NounTable:
    """Return the table of a structure stream: little-endian byte planes, one column after the other.

    ``int32 n, int32 p``; offsets as differences; number of parents, uint8; parents, int32, as distance from their
    child; instances, uint8; senses, uint8.
    """
    n, p = np.frombuffer(data, "<i4", 2).tolist()
    columns = []
    offset = 8
    for size, width in ((n, 4), (n, 1), (p, 4), (p, 1), (n, 1)):
        plane = np.frombuffer(data, np.uint8, size * width, offset).reshape(width, size)
        columns.append(np.ascontiguousarray(plane.T).view("<i4" if width == 4 else np.uint8).reshape(size))
        offset += size * width
    steps, counts, distances, instances, senses = columns
    starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int32)]).astype(np.int32)
    child = np.repeat(np.arange(n, dtype=np.int32), counts)
    return NounTable(
        offsets=np.cumsum(steps, dtype=np.int32),
        starts=starts,
        parents=(child - distances).astype(np.int32),
        instances=instances.astype(np.bool_),
        senses=senses,
    )


@cache
def embedded_structure() -> NounTable:
    """Return the kinship of WordNet 3.0's nouns from the package's own data."""
    return structure_from(_stream(STRUCTURE_FILE))


def _stream(name: str) -> bytes:
    data = lzma.decompress(resources.files("curation.signals.hierarchy").joinpath(name).read_bytes())
    digest = hashlib.sha256(data).hexdigest()
    if digest != DIGESTS[name]:
        raise DigestMismatchError(
            "The built-in WordNet table is damaged",
            where=name,
            expected=DIGESTS[name],
            found=digest,
            hint="install curation again",
        )
    return data


Positions = npt.NDArray[np.int64]
Texts = npt.NDArray[Any]


@dataclass(frozen=True)
class Wordnet:
    """The nouns of WordNet 3.0 under its ids.

    Attributes
    ----------
    table : NounTable
        With the numbers of the ids in place of the file's offsets.
    lemmas : sequence of str
        Lemmas of each synset, joined by blanks; the first makes its unique name, ``dog.n.01``.
    """

    table: NounTable
    lemmas: Sequence[str]

    def __repr__(self) -> str:
        return f"<WordNet 3.0: {len(self.lemmas):,} nouns>"

    def __contains__(self, synset: str) -> bool:
        return not self._wrong([synset])

    def nouns(self, above: Collection[str] | None = None, *, instances: bool = False) -> Graph:
        """Return the hierarchy of the nouns.

        Parameters
        ----------
        above : collection of str, optional
            Only these synsets and what lies above them.
        instances : bool
            Whether ``@i`` pointers count as kinship (NLTK's similarities follow them, ImageNet's hierarchy does not).

        Raises
        ------
        HierarchyError
            `above` names an id that is not a synset of this WordNet.
        """
        import networkx as nx

        chosen = np.arange(len(self.lemmas)) if above is None else self._above(above, instances=instances)
        ids = [wnid(offset) for offset in self.table.offsets[chosen].tolist()]
        rows = chosen.tolist()
        graph: Graph = nx.DiGraph(origin="WordNet 3.0 nouns")
        for node, row, sense in zip(ids, rows, self.table.senses[chosen].tolist(), strict=True):
            name = f"{self.lemmas[row].split(' ', 1)[0].lower()}.n.{sense:02d}"
            graph.add_node(node, lemmas=self.lemmas[row], name=name)
        graph.add_edges_from(self._edges(chosen, np.array(ids, object), instances=instances))
        return graph

    def all_nouns(self, *, instances: bool = False) -> Graph:
        """Return the hierarchy of all nouns, built once and frozen; `nouns` gives one that may be changed."""
        if instances not in self._all_nouns:
            import networkx as nx

            self._all_nouns[instances] = nx.freeze(self.nouns(instances=instances))
        return self._all_nouns[instances]

    @cached_property
    def _all_nouns(self) -> dict[bool, Graph]:
        return {}

    def words_of(self, synset: str) -> tuple[str, ...]:
        """Return the lemmas of a synset; raise `HierarchyError` for another text."""
        return tuple(self.lemmas[int(self.positions([synset])[0])].split(" "))

    def positions(self, synsets: Collection[str]) -> Positions:
        """Return the position of each synset; raise `HierarchyError` if WordNet lacks one."""
        if wrong := self._wrong(synsets):
            raise HierarchyError(
                "Not a noun synset of WordNet 3.0", where=", ".join(repr(text[:40]) for text in wrong[:5]),
                expected="n and eight digits, as n02084071 for dog", found=f"{len(wrong)} of {len(synsets)} ids",
                hint="ids of WordNet 3.1 have other offsets" if len(wrong) > len(synsets) // 2 else None,
            )  # fmt: skip
        return np.searchsorted(self.table.offsets, [_number(text) for text in synsets])

    def _wrong(self, synsets: Collection[str]) -> list[str]:
        offsets = self.table.offsets
        numbers = [_number(text) for text in synsets]
        positions = np.minimum(np.searchsorted(offsets, numbers), len(offsets) - 1).tolist()
        return [text for text, number, at in zip(synsets, numbers, positions, strict=True) if offsets[at] != number]

    def _above(self, leaves: Collection[str], *, instances: bool) -> Positions:
        table, front = self.table, self.positions(leaves)
        seen = np.zeros(len(table.offsets), np.bool_)
        seen[front] = True
        while len(front):
            _, pointers = self._pointers(front, instances=instances)
            over = np.unique(table.parents[pointers]).astype(np.int64)
            front = over[~seen[over]]
            seen[front] = True
        return np.flatnonzero(seen)

    def _edges(self, chosen: Positions, ids: Texts, *, instances: bool) -> Iterator[tuple[str, str]]:
        """Return child and parent of every pointer between chosen synsets, child by child in the file's order."""
        child, pointers = self._pointers(chosen, instances=instances)
        parent = np.searchsorted(chosen, self.table.parents[pointers])
        return zip(ids[child].tolist(), ids[parent].tolist(), strict=True)

    def _pointers(self, chosen: Positions, *, instances: bool) -> tuple[Positions, Positions]:
        """Return the pointers of some synsets, and the position of each pointer's synset."""
        starts = self.table.starts
        counts = starts[chosen + 1] - starts[chosen]
        child = np.repeat(np.arange(len(chosen)), counts)
        first = np.cumsum(counts) - counts
        pointers = np.repeat(starts[chosen] - first, counts) + np.arange(len(child))
        is_used = np.ones(len(pointers), np.bool_) if instances else ~self.table.instances[pointers]
        return child[is_used], pointers[is_used]


@cache
def open_wordnet() -> Wordnet:
    """Return WordNet 3.0, which is built in.

    Examples
    --------
    >>> wordnet = open_wordnet()
    >>> wordnet
    <WordNet 3.0: 82,115 nouns>
    >>> wordnet.words_of("n02084071")
    ('dog', 'domestic_dog', 'Canis_familiaris')
    >>> list(wordnet.nouns(above=["n02084071"]).adj["n02084071"])
    ['n02083346', 'n01317541']
    """
    return Wordnet(embedded_structure(), _stream(LEMMA_FILE).decode("ascii").split("\n"))


def wordnet(*, above: Collection[str] | None = None, instances: bool = False) -> Graph:
    """Return the nouns of WordNet 3.0 as a hierarchy: `open_wordnet` and `Wordnet.nouns` in one."""
    return open_wordnet().nouns(above, instances=instances)


def wnid(offset: int) -> str:
    """Return the id of a noun synset: ``n`` and eight digits of its offset in ``data.noun``."""
    return f"n{offset:08d}"


def _number(synset: str) -> int:
    digits = synset[1:]
    usual = synset[:1] == "n" and len(digits) in (8, 9) and digits.isascii() and digits.isdigit()
    return int(digits) if usual and wnid(int(digits)) == synset else -1


@cache
def published_parents() -> dict[str, str]:
    """Return the parent that the ImageNet protocols' code kept, for each synset above the classes with several parents.

    Their code read a file of edges and kept the *last* parent of each synset. The file is lost, and the order of its
    lines does not follow from WordNet. The package contains the choices for 75 synsets.
    """
    text = resources.files("curation.signals.hierarchy").joinpath("imagenet_parents.txt").read_text(encoding="ascii")
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


@cache
def imagenet_dag() -> Graph:
    """Return WordNet 3.0 above the 1,000 classes of ILSVRC-2012 with all parents: 1,860 synsets."""
    return wordnet(above=ilsvrc2012_classes())


@cache
def imagenet_tree() -> Graph:
    """Return `imagenet_dag` with one parent for each synset, as in the published protocols."""
    return as_tree(imagenet_dag(), choices=published_parents())
