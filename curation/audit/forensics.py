"""What somebody's id lists tell by themselves: repeats, overlaps, equal and nested lists, ids easily confused.

`forensics` collects the facts, `list_findings` says them in plain words, gravest first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from curation.audit.id_vocabulary import BLOCK, NAMESPACES, TEXT, Vocabulary
from curation.audit.lists import IdList, ListSet
from curation.audit.rule import Severity, joined
from curation.audit.target import positions_of
from curation.canonical import sha256_of_bytes
from curation.sources.source import Bools, Int32s, Int64s, Source

SHOWN = 5
"""Examples of anything: the first by id."""

_GRAVITY: tuple[Severity, ...] = ("error", "warning", "info")
_TIMES = {2: "twice"} | {
    number: f"{word} times" for number, word in enumerate(("three", "four", "five", "six", "seven", "eight", "nine"), 3)
}
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""Title, column names, rows."""


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
    raw = dict(sources or {})
    held = dict(zip(raw, positions_of(vocabulary, list(raw.values())) >= 0, strict=True))
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
        sources=tuple(raw),
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


def _facts(one: IdList, vocabulary: Vocabulary, held: Mapping[str, Bools]) -> ListFacts:
    times = np.bincount(one.members, minlength=1)
    counts = np.bincount(times[one.unique], minlength=2)
    spaces, numbers = np.unique(vocabulary.namespace_codes[one.unique], return_counts=True)
    unknown = one.unique[~np.logical_or.reduce([mask[one.unique] for mask in held.values()])] if held else None
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
        Repeat(text, tuple(one.read.lines[one.members == row][:SHOWN].tolist()), int(times[row]))
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


@dataclass(frozen=True, slots=True)
class ListFinding:
    """One thing that a reader of the lists should know.

    Attributes
    ----------
    gravity : {"error", "warning", "info"}
    kind : str
        ``same name``, ``repeats``, ``odd lines``, …: what sort of finding it is.
    lists : tuple of str
        The lists concerned.
    count : int
        Ids, lines or lists.
    text : str
        A sentence without a final full stop.
    examples : tuple of str
        The first few ids or lines.
    """

    gravity: Severity
    kind: str
    lists: tuple[str, ...]
    count: int
    text: str
    examples: tuple[str, ...] = ()


def list_findings(found: Forensics) -> list[ListFinding]:
    """Return what forensics found, gravest first; within one gravity by kind, then the largest count first."""
    parts = (
        _told_odd, _told_same_names, _told_repeats, _told_unknown, _told_equal_counts, _told_collisions, _told_bare,
        _told_skipped, _told_same_bytes, _told_same_sequence, _told_same_ids, _told_subsets, _told_labelled,
    )  # fmt: skip
    findings = [
        (_GRAVITY.index(one.gravity), place, -one.count, number, one)
        for place, part in enumerate(parts)
        for number, one in enumerate(part(found))
    ]
    return [finding for *_, finding in sorted(findings, key=lambda entry: entry[:-1])]


def _told_odd(found: Forensics) -> Iterator[ListFinding]:
    for one in found.facts:
        read = one.source.read
        left_out = read.odd - read.unlabelled
        if read.odd:
            parts = [
                f"{_lines(left_out)} of {one.source.file} are no ids and were left out" if left_out else "",
                f"{_lines(read.unlabelled)} of {one.source.file} have no label" if read.unlabelled else "",
            ]
            examples = tuple(f"line {odd.line}: {odd.reason}: {odd.text!r}" for odd in read.odd_lines)
            text = "; ".join(part for part in parts if part)
            yield ListFinding("error", "odd lines", (one.name,), read.odd, text, examples)


def _told_same_names(found: Forensics) -> Iterator[ListFinding]:
    for first, second in found.same_names:
        one, two = found.facts[first], found.facts[second]
        shared = int(found.overlap[first, second])
        places = f"{_base(one)} in {_folder(one)} and {_folder(two)}"
        if one.entries == two.entries:
            share = f"share only {shared:,} ids" if shared else "share no id"
            text = f"{places} have both {one.entries:,} lines, but {share}"
        else:
            text = f"{places} are different lists: {one.entries:,} and {two.entries:,} lines, {shared:,} ids in both"
        gravity: Severity = "error" if one.entries == two.entries else "warning"
        yield ListFinding(gravity, "same name", (one.name, two.name), one.unique + two.unique - 2 * shared, text)


def _told_repeats(found: Forensics) -> Iterator[ListFinding]:
    for one in found.facts:
        if one.repeated:
            times = ", ".join(
                f"{count:,} {_TIMES.get(k, f'{k:,} times')}" for k, count in sorted(one.multiplicity.items())[:4]
            )
            more = ", …" if len(one.multiplicity) > 4 else ""
            text = f"{one.source.file} repeats ids: {one.entries:,} lines, {one.unique:,} ids; {times}{more}"
            examples = tuple(
                f"{repeat.id} (lines {', '.join(map(str, repeat.lines))}{', …' * (repeat.times > len(repeat.lines))})"
                for repeat in one.repeats
            )
            yield ListFinding("error", "repeats", (one.name,), one.repeated, text, examples)


def _told_unknown(found: Forensics) -> Iterator[ListFinding]:
    for one in found.facts:
        if one.unknown:
            text = f"{one.unknown:,} of {one.unique:,} ids of {one.source.file} are in none of the sources"
            yield ListFinding("error", "unknown ids", (one.name,), one.unknown, text, one.unknown_ids)


def _told_equal_counts(found: Forensics) -> Iterator[ListFinding]:
    told = set(found.same_names)
    for one in found.equal_counts:
        lists = sorted(place for group in one.contents for place in group)
        if len(lists) == 2 and tuple(lists) in told:
            continue
        names = tuple(found.names[place] for group in one.contents for place in group)
        contents = "; ".join(" = ".join(found.names[place] for place in group) for group in one.contents[:6])
        more = "; …" if len(one.contents) > 6 else ""
        shared = _shared(found, one)
        gravity: Severity = "warning" if shared[1] else "info"
        share = f"{shared[0]:,}" if shared[0] == shared[1] else f"{shared[0]:,} to {shared[1]:,}"
        text = (
            f"{len(names)} lists have {one.lines:,} lines each and {len(one.contents)} different contents, which share "
            f"{share} ids: {contents}{more}"
        )
        yield ListFinding(gravity, "equal counts", names, one.lines, text)


def _shared(found: Forensics, one: EqualCount) -> tuple[int, int]:
    """Return the fewest and the most ids that two different contents share."""
    heads = [group[0] for group in one.contents]
    shared = [int(found.overlap[a, b]) for place, a in enumerate(heads) for b in heads[:place]]
    return min(shared), max(shared)


def _told_collisions(found: Forensics) -> Iterator[ListFinding]:
    for one in found.collisions:
        first, second = one.namespaces
        text = f"{one.count:,} numbers name an image in {first} and another in {second}: never compare them as integers"
        if one.lists:
            text += f"; both stand in {joined([f'{name} ({count:,})' for name, count in one.lists], 4)}"
        examples = tuple(" and ".join(pair) for pair in one.examples)
        names = tuple(name for name, _ in one.lists)
        yield ListFinding("warning", "equal numbers", names, one.count, text, examples)


def _told_bare(found: Forensics) -> Iterator[ListFinding]:
    for one in found.facts:
        if count := one.namespaces.get("", 0):
            text = f"the form of {count:,} ids of {one.source.file} tells no dataset: name it with --namespace"
            yield ListFinding("warning", "no namespace", (one.name,), count, text)


def _told_skipped(found: Forensics) -> Iterator[ListFinding]:
    for name, reason in found.skipped.items():
        yield ListFinding("warning", "no list", (name,), 1, f"{name} was passed over: {reason}")


def _told_same_bytes(found: Forensics) -> Iterator[ListFinding]:
    for group in found.same_bytes:
        yield _told_group(found, group, "same bytes", "are the same bytes")


def _told_same_sequence(found: Forensics) -> Iterator[ListFinding]:
    for group in found.same_sequence:
        if group not in found.same_bytes:
            yield _told_group(found, group, "same lines", "hold the same ids line by line in different bytes")


def _told_same_ids(found: Forensics) -> Iterator[ListFinding]:
    for group in found.same_ids:
        if group not in found.same_sequence:
            repeated = any(found.facts[place].repeated for place in group)
            how = "in different order or with repeats" if repeated else "in different order"
            yield _told_group(found, group, "same ids", f"hold the same ids {how}")


def _told_group(found: Forensics, group: tuple[int, ...], kind: str, says: str) -> ListFinding:
    names = tuple(found.names[place] for place in group)
    unique = found.facts[group[0]].unique
    return ListFinding("info", kind, names, unique, f"{joined(names)} {says} ({unique:,} ids)")


def _told_subsets(found: Forensics) -> Iterator[ListFinding]:
    larger: defaultdict[int, list[int]] = defaultdict(list)
    for small, large in found.subsets:
        larger[small].append(large)
    for small, others in larger.items():
        names = [found.names[place] for place in others]
        one = found.facts[small]
        text = f"all {one.unique:,} ids of {one.name} stand in {joined(names)}"
        yield ListFinding("info", "subset", (one.name, *names), one.unique, text)


def _told_labelled(found: Forensics) -> Iterator[ListFinding]:
    for one in found.facts:
        labels = {name: n for name, n in one.source.read.understood.items() if " label " in name}
        if labels:
            told = ", ".join(f"{n:,} {name}" for name, n in labels.items())
            text = f"{one.source.file} has a label beside its ids ({told}): all of them count"
            yield ListFinding("info", "labels", (one.name,), sum(labels.values()), text)


def _lines(count: int) -> str:
    return f"{count:,} lines" if count != 1 else "1 line"


def _base(one: ListFacts) -> str:
    path = PurePosixPath(one.source.file)
    return path.name if path.with_suffix("").as_posix() == one.name else PurePosixPath(one.name).name


def _folder(one: ListFacts) -> str:
    parent = PurePosixPath(one.name).parent.as_posix()
    return "the folder itself" if parent == "." else f"{parent}/"


def forensics_data(found: Forensics) -> dict[str, Any]:
    """Return forensics as plain data for JSON: every list, the overlaps, the relations, the findings."""

    def named(group: Iterable[int]) -> list[str]:
        return [found.names[place] for place in group]

    return {
        "name": found.name,
        "ids": found.n_ids,
        "sources": list(found.sources),
        "lists": [_list_data(one) for one in found.facts],
        "overlap": found.overlap.tolist(),
        "same_bytes": [named(group) for group in found.same_bytes],
        "same_sequence": [named(group) for group in found.same_sequence],
        "same_ids": [named(group) for group in found.same_ids],
        "subsets": [named(pair) for pair in found.subsets],
        "equal_counts": [
            {"lines": one.lines, "contents": [named(group) for group in one.contents]} for one in found.equal_counts
        ],
        "same_names": [{"lists": named(pair), "shared": int(found.overlap[pair])} for pair in found.same_names],
        "collisions": [
            {
                **asdict(one),
                "namespaces": list(one.namespaces),
                "examples": [list(pair) for pair in one.examples],
                "lists": dict(one.lists),
            }
            for one in found.collisions
        ],
        "skipped": dict(found.skipped),
        "findings": [
            {**asdict(one), "lists": list(one.lists), "examples": list(one.examples)} for one in list_findings(found)
        ],
    }


def _list_data(one: ListFacts) -> dict[str, Any]:
    read, parsed = one.source, one.source.read
    return {
        "name": one.name,
        "file": read.file,
        "bytes": read.size,
        "sha256": read.sha256,
        "ids_sha256": one.ids_sha256,
        "lines": one.entries,
        "ids": one.unique,
        "repeated": one.repeated,
        "multiplicity": {str(k): count for k, count in one.multiplicity.items()},
        "repeats": [{**asdict(repeat), "lines": list(repeat.lines)} for repeat in one.repeats],
        "blank": parsed.blank,
        "odd": parsed.odd,
        "odd_lines": [asdict(odd) for odd in parsed.odd_lines],
        "understood": dict(parsed.understood),
        "namespaces": dict(one.namespaces),
        "order": one.order,
        "consecutive": one.consecutive,
        "in_sources": dict(one.in_sources),
        "unknown": one.unknown,
        "unknown_ids": list(one.unknown_ids),
    }


def forensics_tables(found: Forensics) -> list[Table]:
    """Return two tables of texts: the findings, gravest first, and the lists."""
    findings = [(one.gravity, one.kind, one.text, "; ".join(one.examples[:SHOWN])) for one in list_findings(found)]
    lists = [
        (
            one.name,
            f"{one.entries:,}",
            f"{one.unique:,}",
            _spaces(one.namespaces),
            "consecutive" if one.consecutive else one.order or "none",
            one.source.sha256[:15],
            one.ids_sha256[:15],
        )
        for one in found.facts
    ]
    return [
        ("What the lists tell", ("gravity", "kind", "finding", "examples"), findings),
        ("Lists", ("list", "lines", "ids", "datasets", "order", "bytes", "sorted ids"), lists),
    ]


def _spaces(namespaces: Mapping[str, int]) -> str:
    if len(namespaces) == 1:
        return next(iter(namespaces)) or "not known"
    return ", ".join(f"{name or 'not known'} {count:,}" for name, count in namespaces.items())
