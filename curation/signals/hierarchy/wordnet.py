"""WordNet's nouns as a hierarchy: 3.0 built in, or any other in NLTK's data.

Every synset has the id of WordNet 3.0, which is ImageNet's (``n02084071`` is dog): classes and super-classes of the
benchmarks can be looked up in each WordNet. A synset that 3.0 lacks has ``n1`` and the eight digits of its own offset.

NLTK finds and opens a corpus, zipped or not. The package reads its files itself, since NLTK's reader keeps the parents
of a synset in a set, which loses their order, and takes half a minute for all nouns. A synset is compared with WordNet
3.0 by its sense keys, as NLTK's `map_to_one` does.

The built-in table has three compressed streams, so that kinship needs no words: *structure* (a synset's position, its
parents in the file's order), *lemmas*, and *senses* (the parts of the sense keys).
``python -m tests.signals.hierarchy.generate_wordnet DICT_FOLDER`` writes them beside this module from ``data.noun`` and
``index.noun`` (Princeton's WNdb-3.0, or Debian's wordnet-base, which gives the same table) and prints their digests,
listed in `DIGESTS`. WordNet 3.0 Copyright 2006 by Princeton University; its licence is in ``WORDNET_LICENSE``.
"""

from __future__ import annotations

import hashlib
import lzma
import re
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

from curation.core.errors import (
    CurationWarning,
    DigestMismatchError,
    HierarchyError,
    MissingExtraError,
    MissingFileError,
    UsageError,
)
from curation.core.ilsvrc2012 import ilsvrc2012_classes
from curation.signals.hierarchy.hierarchy import as_tree, require_acyclic

if TYPE_CHECKING:
    from curation.signals.hierarchy.hierarchy import Graph


SYNSETS = 82_115
STRUCTURE_FILE, LEMMA_FILE, SENSE_FILE = (f"wordnet30_{name}.xz" for name in ("structure", "lemmas", "senses"))
DIGESTS = {
    STRUCTURE_FILE: "73635f6ec195c88cc2b646f53690f9fda323b3f34e768d7369f9aa48d16dd442",
    LEMMA_FILE: "2138ccd8180abf1b8b76fee464fb8fe69f45922b4b2435e778b2763ed5b70aac",
    SENSE_FILE: "d780ff1df0bf18593207d8e6a5864699f7554b3eac7c6851a0623c4d883a7915",
}
"""SHA-256 of the decompressed streams: compressed bytes depend on the library's version, these do not."""

Int32s = npt.NDArray[np.int32]
_VERSION = re.compile(rb"WordNet (?:Release )?([0-9]\.[0-9])")
_HEAD = 4096


@dataclass(frozen=True, slots=True)
class NounLine:
    """One synset of ``data.noun``.

    Attributes
    ----------
    offset : int
        Byte offset of the line: the digits of the synset's id ``n02084071``.
    lemmas : tuple of str
        As in the file, spaces as ``_``.
    parents : tuple of (int, bool)
        Offset of each hypernym in the file's order, and whether it is an instance pointer (``@i``).
    lexicon : int
        Number of the lexicographer's file: 5 is ``noun.animal``.
    lexicon_ids : tuple of int
        Of each lemma, which tells its senses within that file apart.
    """

    offset: int
    lemmas: tuple[str, ...]
    parents: tuple[tuple[int, bool], ...]
    lexicon: int
    lexicon_ids: tuple[int, ...]

    def sense_keys(self) -> Iterator[str]:
        """Yield the sense key of each lemma, such as ``dog%1:05:00::``: it stays when a new WordNet moves offsets."""
        return map(sense_key, self.lemmas, [self.lexicon] * len(self.lemmas), self.lexicon_ids)


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


def noun_lines(data: bytes, where: str) -> Iterator[NounLine]:
    """Yield the synsets in the bytes of ``data.noun``, in file order (wndb(5WN) format).

    Raises
    ------
    HierarchyError
        A line is malformed, or is not at the byte offset that it states (then the file was changed).
    """
    start = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line and not line.startswith(b"  "):
            try:
                synset = _parse(line)
            except (ValueError, IndexError):
                raise _malformed(where, number, line) from None
            if synset.offset != start:
                raise HierarchyError(
                    "A synset is not at its offset: the file was changed",
                    where=f"{where}, line {number}",
                    expected=str(synset.offset),
                    found=f"byte {start}",
                    hint="install NLTK's corpus again: python -m nltk.downloader CORPUS",
                )
            yield synset
        start += len(line) + 1


def wordnet_version(data: bytes) -> str:
    """Return the version in the licence at the head of ``data.noun`` (``WordNet 3.1``), ``""`` if there is none."""
    match = _VERSION.search(data[:_HEAD])
    return f"WordNet {match[1].decode('ascii')}" if match else ""


def senses_in(data: bytes, where: str) -> dict[str, list[int]]:
    """Return the offsets of each noun lemma in the bytes of ``index.noun``, most frequent sense first."""
    senses: dict[str, list[int]] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line and not line.startswith(b"  "):
            fields = line.split()
            try:
                count = int(fields[2])
                senses[_text(fields[0])] = [int(field) for field in fields[len(fields) - count :]]
            except (ValueError, IndexError):
                raise _malformed(where, number, line) from None
    return senses


def sense_key(lemma: str, lexicon: int, lexicon_id: int) -> str:
    """Return the sense key of a noun (senseidx(5WN)): ``dog%1:05:00::``."""
    return f"{lemma.lower()}%1:{lexicon:02d}:{lexicon_id:02d}::"


def _parse(line: bytes) -> NounLine:
    """Read ``offset lex_filenum ss_type w_cnt (word lex_id)* p_cnt (symbol offset pos source/target)* | gloss``."""
    fields = line.split(b" | ", 1)[0].split()
    words = int(fields[3], 16)
    pointers = 4 + 2 * words
    count = int(fields[pointers])
    quads = [fields[start : start + 4] for start in range(pointers + 1, pointers + 1 + 4 * count, 4)]
    return NounLine(
        offset=int(fields[0]),
        lemmas=tuple(_text(field) for field in fields[4:pointers:2]),
        parents=tuple(
            (int(offset), symbol == b"@i")
            for symbol, offset, part, _ in quads
            if symbol in (b"@", b"@i") and part == b"n"
        ),
        lexicon=int(fields[1]),
        lexicon_ids=tuple(int(field, 16) for field in fields[5:pointers:2]),
    )


def _text(field: bytes) -> str:
    return field.decode("utf-8", "replace")


def _malformed(where: str, number: int, line: bytes) -> HierarchyError:
    return HierarchyError(
        "A line of a WordNet file cannot be read",
        where=f"{where}, line {number}",
        expected="the format of wndb(5WN)",
        found=repr(line[:80]),
    )


def table_from(
    lines: Sequence[NounLine], numbers: Sequence[int], senses: dict[str, list[int]], where: str
) -> tuple[NounTable, list[str]]:
    """Return the table of some synsets in the order of the numbers that they are to bear as offsets, and the lemmas.

    Raises
    ------
    HierarchyError
        A parent is not a synset, or a lemma lacks such a sense.
    """
    order = np.argsort(np.array(numbers, np.int64), kind="stable").tolist()
    lines = [lines[row] for row in order]
    position = {line.offset: number for number, line in enumerate(lines)}
    try:
        parents = [position[offset] for line in lines for offset, _ in line.parents]
        ranks = [senses[line.lemmas[0].lower()].index(line.offset) + 1 for line in lines]
    except (KeyError, ValueError, IndexError) as error:
        raise HierarchyError(
            "The WordNet files do not belong together", where=where, found=f"no synset {error}"
        ) from None
    counts = np.array([len(line.parents) for line in lines], np.int32)
    table = NounTable(
        offsets=np.array([numbers[row] for row in order], np.int32),
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        parents=np.array(parents, np.int32),
        instances=np.array([instance for line in lines for _, instance in line.parents], np.bool_),
        senses=np.array(ranks, np.uint8),
    )
    return table, [" ".join(line.lemmas) for line in lines]


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


@cache
def embedded_lemmas() -> list[str]:
    """Return the lemmas of each noun synset, joined by blanks, in the order of `embedded_structure`."""
    return _stream(LEMMA_FILE).decode("ascii").split("\n")


@cache
def embedded_sense_keys() -> dict[str, int]:
    """Return the offset of each noun of WordNet 3.0 by its sense keys."""
    offsets, lemmas = embedded_structure().offsets.tolist(), embedded_lemmas()
    data = _stream(SENSE_FILE)
    lexicon_ids = iter(data[len(lemmas) :])
    return {
        sense_key(lemma, lexicon, next(lexicon_ids)): offset
        for offset, words, lexicon in zip(offsets, lemmas, data, strict=False)
        for lemma in words.split(" ")
    }


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


OWN = 10**8
"""Added to the offset of a synset that WordNet 3.0 lacks: its id has nine digits."""
Positions = npt.NDArray[np.int64]
Texts = npt.NDArray[Any]


@dataclass(frozen=True)
class Wordnet:
    """The nouns of a WordNet under the ids of WordNet 3.0.

    Attributes
    ----------
    name : str
        ``WordNet 3.0``, or the name in NLTK's corpus.
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
            `above` names an id that is not a synset of this WordNet.
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
        """Return the pointers of some synsets, and of each the place of its synset among them."""
        starts = self.table.starts
        counts = starts[chosen + 1] - starts[chosen]
        child = np.repeat(np.arange(len(chosen)), counts)
        first = np.cumsum(counts) - counts
        pointers = np.repeat(starts[chosen] - first, counts) + np.arange(len(child))
        is_used = np.ones(len(pointers), np.bool_) if instances else ~self.table.instances[pointers]
        return child[is_used], pointers[is_used]


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
        reason = f"{type(error).__name__}: {error}"[:300]
        raise HierarchyError("NLTK cannot read this WordNet", where=f"nltk:{corpus}", found=reason) from None
    n_added = sum(number >= OWN for number in numbers)
    return Wordnet(
        name=f"{wordnet_version(data) or 'WordNet'} (NLTK's {corpus})",
        table=table,
        lemmas=lemmas,
        difference=f"{len(lines)} nouns: it lacks {SYNSETS - len(lines) + n_added} of the {SYNSETS} of WordNet 3.0, "
        f"and {n_added} are its own",
    )


def _read(root: Any, name: str) -> bytes:
    with root.join(name).open() as stream:
        data: bytes = stream.read()
    return data


def _numbers(lines: Sequence[NounLine]) -> list[int]:
    """Return of each synset the offset of the one of WordNet 3.0 that it stands for, or `OWN` and its own offset.

    A synset of 3.0 goes where most of its sense keys went, at the first of several; where two have gone to one, that
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
    lines does not follow from WordNet. The choices for 75 synsets are data.
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
