"""The findings of list forensics in plain words, gravest first, as data and as tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

from curation.audit.forensics import SHOWN, EqualCount, Forensics, ListFacts
from curation.audit.rule import Severity, joined

_GRAVITY: tuple[Severity, ...] = ("error", "warning", "info")
_TIMES = {2: "twice"} | {
    number: f"{word} times"
    for number, word in enumerate(("three", "four", "five", "six", "seven", "eight", "nine"), 3)
}
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""Title, column names, rows."""


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
        _odd, _same_names, _repeats, _unknown, _equal_counts, _collisions, _bare, _skipped, _same_bytes,
        _same_sequence, _same_ids, _subsets, _labelled,
    )  # fmt: skip
    findings = [
        (_GRAVITY.index(one.gravity), place, -one.count, number, one)
        for place, part in enumerate(parts)
        for number, one in enumerate(part(found))
    ]
    return [finding for *_, finding in sorted(findings, key=lambda entry: entry[:-1])]


def _odd(found: Forensics) -> Iterator[ListFinding]:
    for one in found.facts:
        if one.source.odd:
            text = f"{_lines(one.source.odd)} of {one.source.file} are no ids and were left out"
            examples = tuple(f"line {odd.line}: {odd.reason}: {odd.text!r}" for odd in one.source.odd_lines)
            yield ListFinding("error", "odd lines", (one.name,), one.source.odd, text, examples)


def _same_names(found: Forensics) -> Iterator[ListFinding]:
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
        yield ListFinding(
            gravity, "same name", (one.name, two.name), one.unique + two.unique - 2 * shared, text
        )


def _repeats(found: Forensics) -> Iterator[ListFinding]:
    for one in found.facts:
        if one.repeated:
            times = ", ".join(
                f"{count:,} {_TIMES.get(k, f'{k:,} times')}"
                for k, count in sorted(one.multiplicity.items())[:4]
            )
            more = ", …" if len(one.multiplicity) > 4 else ""
            text = f"{one.source.file} repeats ids: {one.entries:,} lines, {one.unique:,} ids; {times}{more}"
            examples = tuple(
                f"{repeat.id} (lines {', '.join(map(str, repeat.lines))}{', …' * (repeat.times > len(repeat.lines))})"
                for repeat in one.repeats
            )
            yield ListFinding("error", "repeats", (one.name,), one.repeated, text, examples)


def _unknown(found: Forensics) -> Iterator[ListFinding]:
    for one in found.facts:
        if one.unknown:
            text = f"{one.unknown:,} of {one.unique:,} ids of {one.source.file} are in none of the sources"
            yield ListFinding("error", "unknown ids", (one.name,), one.unknown, text, one.unknown_ids)


def _equal_counts(found: Forensics) -> Iterator[ListFinding]:
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


def _collisions(found: Forensics) -> Iterator[ListFinding]:
    for one in found.collisions:
        first, second = one.namespaces
        text = f"{one.count:,} numbers name an image in {first} and another in {second}: never compare them as integers"
        if one.lists:
            text += f"; both stand in {joined([f'{name} ({count:,})' for name, count in one.lists], 4)}"
        examples = tuple(" and ".join(pair) for pair in one.examples)
        names = tuple(name for name, _ in one.lists)
        yield ListFinding("warning", "equal numbers", names, one.count, text, examples)


def _bare(found: Forensics) -> Iterator[ListFinding]:
    for one in found.facts:
        if count := one.namespaces.get("", 0):
            text = (
                f"the form of {count:,} ids of {one.source.file} tells no dataset: name it with --namespace"
            )
            yield ListFinding("warning", "no namespace", (one.name,), count, text)


def _skipped(found: Forensics) -> Iterator[ListFinding]:
    for name, reason in found.skipped.items():
        yield ListFinding("warning", "no list", (name,), 1, f"{name} was passed over: {reason}")


def _same_bytes(found: Forensics) -> Iterator[ListFinding]:
    for group in found.same_bytes:
        yield _group(found, group, "same bytes", "are the same bytes")


def _same_sequence(found: Forensics) -> Iterator[ListFinding]:
    for group in found.same_sequence:
        if group not in found.same_bytes:
            yield _group(found, group, "same lines", "hold the same ids line by line in different bytes")


def _same_ids(found: Forensics) -> Iterator[ListFinding]:
    for group in found.same_ids:
        if group not in found.same_sequence:
            repeated = any(found.facts[place].repeated for place in group)
            how = "in different order or with repeats" if repeated else "in different order"
            yield _group(found, group, "same ids", f"hold the same ids {how}")


def _group(found: Forensics, group: tuple[int, ...], kind: str, says: str) -> ListFinding:
    names = tuple(found.names[place] for place in group)
    unique = found.facts[group[0]].unique
    return ListFinding("info", kind, names, unique, f"{joined(names)} {says} ({unique:,} ids)")


def _subsets(found: Forensics) -> Iterator[ListFinding]:
    larger: defaultdict[int, list[int]] = defaultdict(list)
    for small, large in found.subsets:
        larger[small].append(large)
    for small, others in larger.items():
        names = [found.names[place] for place in others]
        one = found.facts[small]
        text = f"all {one.unique:,} ids of {one.name} stand in {joined(names)}"
        yield ListFinding("info", "subset", (one.name, *names), one.unique, text)


def _labelled(found: Forensics) -> Iterator[ListFinding]:
    for one in found.facts:
        labels = {name: n for name, n in one.source.traits.items() if " label " in name}
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
    names = found.names
    return {
        "name": found.name,
        "ids": found.n_ids,
        "sources": list(found.sources),
        "lists": [_list_data(one) for one in found.facts],
        "overlap": found.overlap.tolist(),
        "same_bytes": [[names[place] for place in group] for group in found.same_bytes],
        "same_sequence": [[names[place] for place in group] for group in found.same_sequence],
        "same_ids": [[names[place] for place in group] for group in found.same_ids],
        "subsets": [[names[small], names[large]] for small, large in found.subsets],
        "equal_counts": [
            {"lines": one.lines, "contents": [[names[place] for place in group] for group in one.contents]}
            for one in found.equal_counts
        ],
        "same_names": [
            {"lists": [names[one], names[two]], "shared": int(found.overlap[one, two])}
            for one, two in found.same_names
        ],
        "collisions": [
            {
                "namespaces": list(one.namespaces),
                "count": one.count,
                "examples": [list(pair) for pair in one.examples],
                "lists": dict(one.lists),
            }
            for one in found.collisions
        ],
        "skipped": dict(found.skipped),
        "findings": [
            {**asdict(one), "lists": list(one.lists), "examples": list(one.examples)}
            for one in list_findings(found)
        ],
    }


def _list_data(one: ListFacts) -> dict[str, Any]:
    read = one.source
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
        "repeats": [
            {"id": repeat.id, "lines": list(repeat.lines), "times": repeat.times} for repeat in one.repeats
        ],
        "blank": read.blank,
        "odd": read.odd,
        "odd_lines": [{"line": odd.line, "reason": odd.reason, "text": odd.text} for odd in read.odd_lines],
        "understood": dict(read.traits),
        "namespaces": dict(one.namespaces),
        "order": one.order,
        "consecutive": one.consecutive,
        "in_sources": dict(one.in_sources),
        "unknown": one.unknown,
        "unknown_ids": list(one.unknown_ids),
    }


def forensics_tables(found: Forensics) -> list[Table]:
    """Return two tables of texts: the findings, gravest first, and the lists."""
    findings = [
        (one.gravity, one.kind, one.text, "; ".join(one.examples[:SHOWN])) for one in list_findings(found)
    ]
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
