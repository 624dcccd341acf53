"""What somebody's id lists tell by themselves: repeats, overlaps, equal and nested lists, ids easily confused."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import PurePosixPath

import numpy as np

from curation.audit.id_vocabulary import BLOCK, NAMESPACES, TEXT, VOC2012, Vocabulary
from curation.audit.image_match import positions_in
from curation.audit.lists import IdList, ListSet
from curation.canonical import sha256_of_bytes
from curation.sources.source import Bools, Int32s, Int64s, Source

SHOWN = 5
"""Examples of anything: the first by id."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """An id that stands several times in a list: its first lines, from 1, and on how many it stands."""

    id: str
    lines: tuple[int, ...]
    times: int


@dataclass(frozen=True)
class ListFacts:
    """What one list is.

    Attributes
    ----------
    source : IdList
        The list as it was read: name, file, digest of the bytes, empty and odd lines.
    entries, unique : int
        Lines that are ids, and distinct ids.
    multiplicity : mapping of int to int
        How many ids stand twice, three times, …
    repeats : tuple of Repeat
        The first few of them by id.
    ids_sha256 : str
        Of the distinct ids with namespace, sorted, as in the id file of a manifest.
    namespaces : mapping of str to int
        Distinct ids by namespace; ``""`` where none is known.
    order : {"ascending", "descending", ""}
        Of the lines: numbers by value, other texts by code point; ``""`` for any other order.
    consecutive : bool
        Whether every line is the number after the one before.
    in_sources : mapping of str to int
        Distinct ids that each source holds; empty without sources.
    unknown : int or None
        Distinct ids that no source holds; None without sources.
    unknown_ids : tuple of str
        The first few of them.
    """

    source: IdList
    entries: int
    unique: int
    multiplicity: Mapping[int, int]
    repeats: tuple[Repeat, ...]
    ids_sha256: str
    namespaces: Mapping[str, int]
    order: str
    consecutive: bool
    in_sources: Mapping[str, int]
    unknown: int | None
    unknown_ids: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the list."""
        return self.source.name

    @property
    def repeated(self) -> int:
        """Lines that name an id again."""
        return self.entries - self.unique


@dataclass(frozen=True, slots=True)
class Collision:
    """Numbers that name an image in each of two namespaces.

    Attributes
    ----------
    namespaces : (str, str)
    count : int
        Numbers.
    examples : tuple of (str, str)
        The two ids of a number, the smallest numbers first.
    lists : tuple of (str, int)
        Lists that hold both ids of some number, and of how many.
    """

    namespaces: tuple[str, str]
    count: int
    examples: tuple[tuple[str, str], ...]
    lists: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class EqualCount:
    """Lists with the same number of lines that do not hold the same ids.

    Attributes
    ----------
    lines : int
    contents : tuple of tuple of int
        Positions of the lists, those with the same ids together.
    """

    lines: int
    contents: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Forensics:
    """What lists tell of themselves and of each other; lists are named by position in `facts`.

    Attributes
    ----------
    name : str
    facts : tuple of ListFacts
        By name of the list.
    n_ids : int
        Distinct ids of all lists.
    overlap : ndarray of int64, shape (n, n)
        Distinct ids that two lists share; on the diagonal, how many each has.
    same_bytes, same_sequence, same_ids : tuple of tuple of int
        Groups of two and more lists with the same bytes; the same ids line by line; the same distinct ids.
    subsets : tuple of (int, int)
        The ids of the first are some of those of the second, and not all.
    equal_counts : tuple of EqualCount
    same_names : tuple of (int, int)
        Lists of one file name in different folders with different ids.
    collisions : tuple of Collision
    sources : tuple of str
        Those that ids were looked up in.
    skipped : mapping of str to str
        Files that are no lists, and why.
    """

    name: str
    facts: tuple[ListFacts, ...]
    n_ids: int
    overlap: Int64s
    same_bytes: tuple[tuple[int, ...], ...]
    same_sequence: tuple[tuple[int, ...], ...]
    same_ids: tuple[tuple[int, ...], ...]
    subsets: tuple[tuple[int, int], ...]
    equal_counts: tuple[EqualCount, ...]
    same_names: tuple[tuple[int, int], ...]
    collisions: tuple[Collision, ...]
    sources: tuple[str, ...]
    skipped: Mapping[str, str]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the lists."""
        return tuple(one.name for one in self.facts)


def forensics(lists: ListSet, sources: Mapping[str, Source] | None = None) -> Forensics:
    """Return what some lists tell of themselves and of each other.

    Parameters
    ----------
    lists : ListSet
        As `curation.audit.lists.read_lists` returns them.
    sources : mapping of str to Source, optional
        Raw datasets by name: the ids are looked up in them.
    """
    vocabulary = lists.vocabulary
    held = _held(vocabulary, sources or {})
    facts = tuple(_facts(one, vocabulary, held) for one in lists.lists)
    overlap = overlap_matrix([one.unique for one in lists.lists], len(vocabulary))
    same_ids = _groups(one.ids_sha256 for one in facts)
    return Forensics(
        name=lists.name,
        facts=facts,
        n_ids=len(vocabulary),
        overlap=overlap,
        same_bytes=_same_bytes(lists.lists),
        same_sequence=_groups(sha256_of_bytes(one.members.tobytes()) for one in lists.lists),
        same_ids=same_ids,
        subsets=_subsets(overlap),
        equal_counts=tuple(_equal_counts(facts)),
        same_names=tuple(_same_names(facts)),
        collisions=tuple(_collisions(lists)),
        sources=tuple(sources or {}),
        skipped=lists.skipped,
    )


def overlap_matrix(members: Sequence[Int32s], n_ids: int) -> Int64s:
    """Return how many ids each pair of lists shares, shape (lists, lists).

    Parameters
    ----------
    members : sequence of ndarray of int32
        Distinct positions, one array a list.
    n_ids : int
        Number of positions there are.
    """
    # One bit an id: two lists of 100,000 ids are compared in microseconds.
    words = -(-n_ids // 64)
    bits = np.zeros((len(members), words), np.uint64)
    for row, own in enumerate(members):
        mask = np.zeros(words * 64, np.bool_)
        mask[own] = True
        bits[row] = np.packbits(mask, bitorder="little").view(np.uint64)
    shared = np.zeros((len(members), len(members)), np.int64)
    for row in range(len(members)):
        for column in range(row + 1):
            count = int(np.bitwise_count(bits[row] & bits[column]).sum(dtype=np.int64))
            shared[row, column] = shared[column, row] = count
    return shared


def _held(vocabulary: Vocabulary, sources: Mapping[str, Source]) -> dict[str, Bools]:
    """Return which ids each source holds."""
    held = {}
    for name, source in sources.items():
        rows = np.flatnonzero(vocabulary.may_be_of(source.namespace))
        held[name] = np.zeros(len(vocabulary), np.bool_)
        held[name][rows] = positions_in(source, vocabulary.natives[rows].tolist()) >= 0
    return held


def _facts(one: IdList, vocabulary: Vocabulary, held: Mapping[str, Bools]) -> ListFacts:
    times = np.bincount(one.members, minlength=1)
    counts = np.bincount(times[one.unique], minlength=2)
    spaces, numbers = np.unique(vocabulary.namespace_codes[one.unique], return_counts=True)
    unknown = (
        one.unique[~np.logical_or.reduce([mask[one.unique] for mask in held.values()])] if held else None
    )
    order, consecutive = _order(one.members, vocabulary)
    return ListFacts(
        source=one,
        entries=len(one),
        unique=len(one.unique),
        multiplicity={k: int(counts[k]) for k in np.flatnonzero(counts).tolist() if k > 1},
        repeats=_repeats(one, times, vocabulary),
        ids_sha256=vocabulary.digest(one.unique),
        namespaces={
            vocabulary.namespace_names[code]: count
            for code, count in zip(spaces.tolist(), numbers.tolist(), strict=True)
        },
        order=order,
        consecutive=consecutive,
        in_sources={name: int(mask[one.unique].sum()) for name, mask in held.items()},
        unknown=None if unknown is None else len(unknown),
        unknown_ids=() if unknown is None else tuple(vocabulary.ids(unknown[:SHOWN])),
    )


def _repeats(one: IdList, times: Int64s, vocabulary: Vocabulary) -> tuple[Repeat, ...]:
    first = np.flatnonzero(times > 1)[:SHOWN]
    return tuple(
        Repeat(text, tuple(one.lines[one.members == row][:SHOWN].tolist()), int(times[row]))
        for text, row in zip(vocabulary.ids(first), first.tolist(), strict=True)
    )


def _order(members: Int32s, vocabulary: Vocabulary) -> tuple[str, bool]:
    """Return the direction of the lines, and whether they count: positions ascend as the ids do."""
    if len(members) < 2:
        return "", False
    steps = np.diff(members)
    order = "ascending" if (steps >= 0).all() else "descending" if (steps <= 0).all() else ""
    keys = vocabulary.keys[members]
    counts = order == "ascending" and bool(keys[-1] < TEXT * BLOCK) and bool((np.diff(keys) == 1).all())
    return order, counts


def _same_bytes(lists: Sequence[IdList]) -> tuple[tuple[int, ...], ...]:
    """Return the lists of equal bytes; those of one JSON file share theirs, which says nothing of them."""
    in_file = Counter(one.file for one in lists)
    return _groups(one.sha256 if in_file[one.file] == 1 else one.name for one in lists)


def _groups(values: Iterable[Hashable]) -> tuple[tuple[int, ...], ...]:
    """Return the positions of equal values, two and more together."""
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, value in enumerate(values):
        places[value].append(place)
    return tuple(tuple(group) for group in places.values() if len(group) > 1)


def _subsets(overlap: Int64s) -> tuple[tuple[int, int], ...]:
    sizes = np.diagonal(overlap)
    inside = (overlap == sizes[:, None]) & (sizes[:, None] < sizes[None, :]) & (sizes[:, None] > 0)
    return tuple((int(small), int(large)) for small, large in np.argwhere(inside))


def _equal_counts(facts: Sequence[ListFacts]) -> Iterable[EqualCount]:
    by_count: defaultdict[int, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, one in enumerate(facts):
        by_count[one.entries][one.ids_sha256].append(place)
    for lines in sorted(by_count):
        if lines and len(by_count[lines]) > 1:
            yield EqualCount(lines, tuple(tuple(group) for group in by_count[lines].values()))


def _same_names(facts: Sequence[ListFacts]) -> Iterable[tuple[int, int]]:
    for group in _groups(PurePosixPath(one.name).name for one in facts):
        for first, second in combinations(group, 2):
            if facts[first].ids_sha256 != facts[second].ids_sha256:
                yield first, second


def _collisions(lists: ListSet) -> Iterable[Collision]:
    vocabulary = lists.vocabulary
    rows = {space: np.flatnonzero(vocabulary.forms == form) for form, space in enumerate(NAMESPACES)}
    if vocabulary.namespace:
        # Bare numbers of a dataset that the user named; without a name they may be anything.
        rows[vocabulary.namespace] = np.flatnonzero((vocabulary.forms > VOC2012) & (vocabulary.forms < TEXT))
    for one, two in combinations([space for space in rows if len(rows[space])], 2):
        numbers, first, second = np.intersect1d(
            vocabulary.numbers[rows[one]], vocabulary.numbers[rows[two]], return_indices=True
        )
        if len(numbers):
            pair = rows[one][first], rows[two][second]
            examples = zip(vocabulary.ids(pair[0][:SHOWN]), vocabulary.ids(pair[1][:SHOWN]), strict=True)
            yield Collision((one, two), len(numbers), tuple(examples), tuple(_holding(lists, *pair)))


def _holding(lists: ListSet, first: Int64s, second: Int64s) -> Iterable[tuple[str, int]]:
    for one in lists.lists:
        mask = np.zeros(len(lists.vocabulary), np.bool_)
        mask[one.unique] = True
        if count := int((mask[first] & mask[second]).sum()):
            yield one.name, count
