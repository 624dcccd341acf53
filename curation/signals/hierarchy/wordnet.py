"""WordNet's nouns as a hierarchy: 3.0 built in, any other that NLTK's data hold.

Whatever the WordNet, its synsets bear the ids of WordNet 3.0, which are ImageNet's (``n02084071`` is dog): classes and
super-classes of the benchmarks can be looked up in each. One that 3.0 lacks bears ``n1`` and the eight digits of its
own offset.

NLTK finds and opens a corpus, zipped or not. Its files are read as our own are
(`curation.signals.hierarchy.noun_table`), since NLTK's reader keeps the parents of a synset in a set, which loses their
order, and takes half a minute for all nouns. A synset is held against WordNet 3.0 by its sense keys, as NLTK's
`map_to_one` does.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from curation.core.errors import CurationWarning, HierarchyError, MissingExtraError, MissingFileError, UsageError
from curation.core.ids import ilsvrc2012_classes
from curation.signals.hierarchy.hierarchy import as_tree, require_acyclic
from curation.signals.hierarchy.noun_table import (
    SYNSETS,
    NounLine,
    NounTable,
    embedded_lemmas,
    embedded_sense_keys,
    embedded_structure,
    noun_lines,
    senses_in,
    table_from,
    wordnet_version,
)

if TYPE_CHECKING:
    from curation.signals.hierarchy.hierarchy import Graph

OWN = 10**8
"""Added to the offset of a synset that WordNet 3.0 lacks: its id has nine digits."""
Positions = npt.NDArray[np.int64]
Texts = npt.NDArray[Any]


@dataclass(frozen=True)
class Wordnet:
    """The nouns of one WordNet under the ids of WordNet 3.0.

    Attributes
    ----------
    name : str
        ``WordNet 3.0``, or what NLTK's corpus says of itself.
    table : NounTable
        With the numbers of the ids in place of the file's offsets.
    lemmas : sequence of str
        Of each synset, joined by blanks; the first makes its unique name, ``dog.n.01``.
    difference : str
        How its synsets differ from those of WordNet 3.0; ``""`` for 3.0 itself.
    """

    name: str
    table: NounTable
    lemmas: Sequence[str]
    difference: str = ""

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.lemmas):,} nouns>"

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
            `above` names what is no synset of this WordNet.
        """
        import networkx as nx

        chosen = np.arange(len(self.lemmas)) if above is None else self._above(above, instances=instances)
        ids = [wnid(offset) for offset in self.table.offsets[chosen].tolist()]
        rows = chosen.tolist()
        graph: Graph = nx.DiGraph(origin=f"{self.name} nouns")
        for node, row, sense in zip(ids, rows, self.table.senses[chosen].tolist(), strict=True):
            name = f"{self.lemmas[row].split(' ', 1)[0].lower()}.n.{sense:02d}"
            graph.add_node(node, lemmas=self.lemmas[row], name=name)
        graph.add_edges_from(self._edges(chosen, np.array(ids, object), instances=instances))
        if self.difference:
            require_acyclic(graph, self.name)
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
        """Return the lemmas of a synset; `HierarchyError` where it is none."""
        return tuple(self.lemmas[int(self.positions([synset])[0])].split(" "))

    def positions(self, synsets: Collection[str]) -> Positions:
        """Return the position of each synset; `HierarchyError` where one is none of this WordNet."""
        if wrong := self._wrong(synsets):
            raise HierarchyError(
                f"Not a noun synset of {self.name}", where=", ".join(repr(text[:40]) for text in wrong[:5]),
                expected="n and eight digits, as n02084071 for dog", found=f"{len(wrong)} of {len(synsets)} ids",
                hint="ids of WordNet 3.1 have other offsets" if len(wrong) > len(synsets) // 2 else None,
            )  # fmt: skip
        return np.searchsorted(self.table.offsets, [_number(text) for text in synsets])

    @cached_property
    def noun_depth(self) -> int:
        """Deep depth of the deepest noun, instances included: NLTK's scale of Leacock-Chodorow; 19 in WordNet 3.0."""
        import networkx as nx

        return int(nx.dag_longest_path_length(self.all_nouns(instances=True)))

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
            found = np.unique(table.parents[pointers]).astype(np.int64)
            front = found[~seen[found]]
            seen[front] = True
        return np.flatnonzero(seen)

    def _edges(self, chosen: Positions, ids: Texts, *, instances: bool) -> Iterator[tuple[str, str]]:
        """Return child and parent of every pointer between chosen synsets, child by child in the file's order."""
        child, pointers = self._pointers(chosen, instances=instances)
        parent = np.searchsorted(chosen, self.table.parents[pointers])
        return zip(ids[child].tolist(), ids[parent].tolist(), strict=True)

    def _pointers(self, chosen: Positions, *, instances: bool) -> tuple[Positions, Positions]:
        """Return the pointers of some synsets, and of each the place of its synset among them."""
        starts = self.table.starts
        counts = starts[chosen + 1] - starts[chosen]
        child = np.repeat(np.arange(len(chosen)), counts)
        first = np.cumsum(counts) - counts
        pointers = np.repeat(starts[chosen] - first, counts) + np.arange(len(child))
        kept = np.ones(len(pointers), np.bool_) if instances else ~self.table.instances[pointers]
        return child[kept], pointers[kept]


def open_wordnet(which: Wordnet | str | None = None) -> Wordnet:
    """Return a WordNet.

    Parameters
    ----------
    which : Wordnet or str, optional
        ``nltk:CORPUS`` for one of NLTK's data (``nltk`` alone: its ``wordnet``); by default the built-in WordNet 3.0.

    Raises
    ------
    UsageError
        It is neither of these.
    HierarchyError
        NLTK's corpus is not a WordNet.
    MissingFileError
        NLTK's data hold no such corpus; the message names the command that installs it.
    MissingExtraError
        NLTK is not installed.

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
    if isinstance(which, Wordnet):
        return which
    if which is None:
        return _built_in()
    name, _, corpus = which.partition(":")
    if name == "nltk":
        return _of_nltk(corpus or "wordnet")
    raise UsageError(
        "No such WordNet", where=which[:200], expected="nltk[:CORPUS]",
        hint="leave it out: WordNet 3.0 is built in",
    )  # fmt: skip


@cache
def _built_in() -> Wordnet:
    return Wordnet("WordNet 3.0", embedded_structure(), embedded_lemmas())


@cache
def _of_nltk(corpus: str) -> Wordnet:
    try:
        import nltk
    except ImportError:
        hint = "pip install 'curation[analysis]'"
        raise MissingExtraError("NLTK is not installed", where=f"nltk:{corpus}", hint=hint) from None
    for path in (f"corpora/{corpus}", f"corpora/{corpus}.zip/{corpus}/"):
        # No such corpus, or a path that NLTK does not open.
        with suppress(LookupError, ValueError, OSError):
            root = nltk.data.find(path)
            break
    else:
        raise MissingFileError(
            "NLTK's data hold no such corpus", where=f"nltk:{corpus}",
            expected="nltk:wordnet, nltk:wordnet31, nltk:english_wordnet, …",
            found=f"no corpora/{corpus} in {', '.join(map(str, nltk.data.path))}"[:300],
            hint=f"python -m nltk.downloader {corpus}",
        )  # fmt: skip
    try:
        data, index = (_read(root, name) for name in ("data.noun", "index.noun"))
        lines = list(noun_lines(data, f"{corpus}/data.noun"))
        if not lines:
            raise ValueError("data.noun holds no synset")
        numbers = _numbers(lines)
        table, lemmas = table_from(lines, numbers, senses_in(index, f"{corpus}/index.noun"), corpus)
    except (LookupError, ValueError, OSError) as error:
        found = f"{type(error).__name__}: {error}"[:300]
        raise HierarchyError("NLTK cannot read this WordNet", where=f"nltk:{corpus}", found=found) from None
    own = sum(number >= OWN for number in numbers)
    return Wordnet(
        name=f"{wordnet_version(data) or 'WordNet'} (NLTK's {corpus})",
        table=table,
        lemmas=lemmas,
        difference=f"{len(lines)} nouns: it lacks {SYNSETS - len(lines) + own} of the {SYNSETS} of WordNet 3.0, and "
        f"{own} are its own",
    )


def _read(root: Any, name: str) -> bytes:
    with root.join(name).open() as stream:
        data: bytes = stream.read()
    return data


def _numbers(lines: Sequence[NounLine]) -> list[int]:
    """Return of each synset the offset of the one of WordNet 3.0 that it stands for, or `OWN` and its own offset.

    A synset of 3.0 stands where most of its sense keys went, at the first of several; where two have gone to one, that
    of the most keys gives the id, and the other is lacking.
    """
    keys = embedded_sense_keys()
    shared = Counter((keys[key], row) for row, line in enumerate(lines) for key in line.sense_keys() if key in keys)
    row_of: dict[int, int] = {}
    for offset, row in sorted(shared, key=lambda pair: (-shared[pair], pair[1])):
        row_of.setdefault(offset, row)
    numbers: dict[int, int] = {}
    for offset, row in sorted(shared, key=lambda pair: (-shared[pair], pair[0])):
        if row_of[offset] == row:
            numbers.setdefault(row, offset)
    return [numbers.get(row, OWN + line.offset) for row, line in enumerate(lines)]


def named_wordnet(which: str | None) -> Wordnet:
    """Return a WordNet, and warn of how it differs from the built-in one where it does."""
    chosen = open_wordnet(which)
    if chosen.difference:
        warnings.warn(f"{chosen.name}: {chosen.difference}", CurationWarning, stacklevel=3)
    return chosen


def wordnet(
    which: Wordnet | str | None = None, *, above: Collection[str] | None = None, instances: bool = False
) -> Graph:
    """Return the nouns of a WordNet as a hierarchy: `open_wordnet` and `Wordnet.nouns` in one."""
    return open_wordnet(which).nouns(above, instances=instances)


def wnid(offset: int) -> str:
    """Return the id of a noun synset: ``n`` and eight digits of its offset in ``data.noun``."""
    return f"n{offset:08d}"


def _number(synset: str) -> int:
    digits = synset[1:]
    usual = synset[:1] == "n" and len(digits) in (8, 9) and digits.isascii() and digits.isdigit()
    return int(digits) if usual and wnid(int(digits)) == synset else -1


@cache
def published_parents() -> dict[str, str]:
    """Return the parent that the ImageNet protocols' code kept, of each synset above the classes with several.

    Their code took from a file of edges the *last* parent written for a synset. The file is gone, and the order of its
    lines cannot be had from WordNet. What it chose for 75 synsets is data.
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
    """Return the same with one parent a synset, as the published protocols have it."""
    return as_tree(imagenet_dag(), choices=published_parents())
