"""PL, published lists: names and sizes of lists, and relations between the lists of a folder.

These rules compare names and open no photo. Each rule states what it does not show (`Rule.not_shown`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, pairwise, product
from operator import itemgetter

import numpy as np

from curation.core.columns import distinct
from curation.core.tables import grouped
from curation.core.wording import counted
from curation.extensions.audit.groups import GroupResult, Groups
from curation.extensions.audit.lists import AuditedList, ListSet
from curation.extensions.audit.rule import (
    Finding,
    Outcome,
    Verdict,
    joined,
    list_finding,
    loser_of,
    not_applicable,
    pair_finding,
    undecidable,
)
from curation.extensions.audit.target import SHOWN_EXAMPLES, AuditTarget, ComparedPair
from curation.sources.entries import NO_LABEL, ListDigests, OddLine
from curation.sources.source import Bools, Int64s

ID_AND_OOD = "which lists are in-distribution and which out: --role LIST=id, --role LIST=ood"
LEAST_COUNT = 100
_YEARS = range(1990, 2100)
_COUNT = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{2,8}(?![0-9A-Za-z])")
_COCO = re.compile(r"(?:^|[^a-z])coco(?:[^a-z]|$)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{0,8}(?![0-9A-Za-z])")


def published_of(target: AuditTarget) -> ListSet:
    """Return the lists of a folder as they were read."""
    assert target.published is not None  # noqa: S101 - these rules apply only to folders
    return target.published


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def names_agree_with_counts(target: AuditTarget) -> Iterator[Finding]:
    """PL1: A count in the name of a list is its number of lines, of ids, or of ids from one dataset."""
    lists = published_of(target)
    agreed = 0
    for listed in lists.lists:
        # Skip years and bounds of ranges such as 20_40.
        for number in map(int, _COUNT.findall(_base(listed.name))):
            if number in _YEARS:
                continue
            counts = _counts(lists, listed)
            if number in counts.values():
                agreed += 1
                continue
            alternatives, largest = ", ".join(f"{n:,} {kind}" for kind, n in counts.items()), max(counts.values())
            missing = f"; {number - largest:,} are missing" if largest < number else ""
            text = f"the name does not match the list: {number:,} is none of {alternatives}{missing}"
            by_dataset = [count for kind, count in counts.items() if kind not in ("lines", "ids")]
            lacks_coco = _COCO.search(_base(listed.name)) and "coco ids" not in counts
            if lacks_coco := lacks_coco and sum(by_dataset) == counts["ids"]:
                text += "; it names coco, but no id is from there"
            # A number far from every count is not a count: 640 is a size.
            is_near = any(number <= 2 * count <= 4 * number for count in counts.values())
            yield list_finding("fail" if lacks_coco else "warn" if is_near else "info", listed, 1, text)
    if agreed:
        yield Finding("pass", "names", text=f"{counted(agreed, 'count')} in names, each that of its list", asked=agreed)


def _counts(lists: ListSet, listed: AuditedList) -> dict[str, int]:
    counts = {"lines": len(listed) + listed.read.odd - listed.read.unlabelled, "ids": len(listed.unique)}
    return counts | {f"{name} ids": count for name, count in lists.images.datasets(listed.unique).items() if name}


def growing_lists_are_nested(target: AuditTarget) -> Iterator[Finding]:
    """PL2: Of lists whose names differ in one number and that grow with it, each is contained in the next."""
    lists = published_of(target)
    for small, large in chain.from_iterable(map(pairwise, _series(lists))):
        shared, size = lists.shared(small, large), len(small.unique)
        if shared == size:
            text = f"the larger list holds all {counted(shared, 'id')}"
            yield Finding("pass", f"{small.name} in {large.name}", text=text)
            continue
        datasets = _by_dataset(lists, small, large)
        text = (
            f"the lists are not nested: the larger one holds {shared:,} of {size:,} ids{datasets}; "
            f"{size - shared:,} are missing"
        )
        examples = lists.images.ids(np.setdiff1d(small.unique, large.unique)[:SHOWN_EXAMPLES])
        yield Finding("warn", f"{small.name} and {large.name}", size - shared, text, tuple(examples))


def _series(lists: ListSet) -> Iterator[list[AuditedList]]:
    """Yield the lists whose names differ in one number and whose sizes grow with it, in this order."""
    series: defaultdict[tuple[str, str], list[tuple[int, AuditedList]]] = defaultdict(list)
    for listed in lists.lists:
        folder, _, base = listed.name.rpartition("/")
        numbers = [int(text) for text in _NUMBER.findall(base)]
        # Smaller numbers are folds and versions, which need not be nested.
        if len(listed) and len(numbers) == 1 and LEAST_COUNT <= numbers[0] not in _YEARS:
            series[folder, _NUMBER.sub("N", base)].append((numbers[0], listed))
    for members in series.values():
        # PL1 reports a list that is shorter than its name says.
        rising = [listed for number, listed in sorted(members, key=itemgetter(0)) if len(listed.unique) >= number]
        if len(rising) > 1 and all(len(small.unique) < len(large.unique) for small, large in pairwise(rising)):
            yield rising


def _by_dataset(lists: ListSet, first: AuditedList, second: AuditedList) -> str:
    """Return how many ids of each dataset two lists share, if they share ids of several datasets."""
    shared, _ = lists.images.in_both(lists.index[first.name], lists.index[second.name])
    datasets = lists.images.datasets(shared)
    shares = ", ".join(f"{name or 'no dataset'} {count:,}" for name, count in datasets.items())
    return f" ({shares})" if len(datasets) > 1 else ""


def sizes_are_stated(target: AuditTarget) -> Iterator[Finding]:
    """PL8: The ratio of in- to out-of-distribution images of each set, and the images of each class."""
    lists = published_of(target)
    inside, outside = target.with_role("id"), target.with_role("ood")
    if inside and outside:
        total = int(target.mask(inside).sum())
        for ood in outside:
            ratio = total / max(len(ood.unique), 1)
            text = f"ID : OOD {ratio:.2f} ({total:,} and {len(ood.unique):,} images)"
            yield Finding("info", ood.name, len(ood.unique), text)
    elif any(re.search(r"ood|out.of", listed.name, re.IGNORECASE) for listed in lists.lists) or inside or outside:
        yield undecidable("lists", ID_AND_OOD)
    for listed in lists.lists:
        if summary := _column_summary(listed):
            yield list_finding("info", listed, 0, summary, asked=0)
        per = _per_class(listed, lists.files[listed.file].form)
        if per is not None and len(per) > 1:
            text = f"{len(listed):,} images in {len(per):,} classes, {per.min():,} to {per.max():,} each"
            brief = f"{listed.name}: {len(per):,} classes of {per.min():,} to {per.max():,}"
            yield list_finding("info", listed, len(listed), text, asked=0, like="sizes", brief=brief)


def _column_summary(listed: AuditedList) -> str:
    """Return the number of labels of the images of a list, and the number of values of each further column."""
    texts, counts = list[str](), listed.read.label_counts
    if counts is not None:
        labels = np.bincount(listed.members, counts)[listed.unique]
        several, none = int((labels > 1).sum()), int((labels == 0).sum())
        texts.append(f"of {counted(len(labels), 'image')}, {several:,} with two or more labels and {none:,} with none")
    for name, column in listed.read.columns.items():
        # `column.values` has the values of all parts of a table that is split.
        values, lacking = np.unique(column.of[column.of >= 0]), int((column.of < 0).sum())
        blank = int(np.isin(column.of, [row for row in values.tolist() if " " in column.values[row]]).sum())
        more = f", missing on {counted(lacking, 'line')}" if lacking else ""
        more += f", with a blank on {counted(blank, 'line')}" if blank else ""
        texts.append(f"the column {name} has {counted(len(values), 'value')}{more}")
    return "; ".join(texts)


def _per_class(listed: AuditedList, form: str) -> Int64s | None:
    if listed.read.group_of is not None and form == "json groups":
        return np.bincount(listed.read.group_of)
    if listed.read.labels is None or not len(listed):
        return None
    _, counts = np.unique(listed.read.labels[listed.read.labels != NO_LABEL], return_counts=True)
    return counts if len(counts) > 1 and listed.read.labels.min() >= 0 else None


def lists_have_one_name(target: AuditTarget) -> Iterator[Finding]:
    """PL11: Which published lists these are, whatever their names."""
    from curation.extensions.identify.index import may_be_known, packaged_index, read_index

    index = read_index(packaged_index())
    for part in published_of(target).lists:
        how, size = "the same bytes as", len(part.unique)
        equal = [
            known for known in index.lists if f"sha256:{known.sha256}" == part.sha256 and known.key == part.read.name
        ]
        if not equal and len(part) >= LEAST_COUNT and may_be_known(part.read, size, index):
            how, digests = "the same images as", ListDigests.of(part.read, "")
            equal = [
                known
                for known in index.lists
                if (known.sha256_parent_stems == digests.sha256_parent_stems and known.folded)
                or (known.sha256_stems == digests.sha256_stems and not known.folded)
            ]
        if equal:
            titles = list(dict.fromkeys(known.title for known in equal))
            called = {known.called for known in equal}
            name = "" if _base(part.name).lower() in called else ", under another name"
            yield Finding("info", part.name, len(part.unique), f"it has {how} {joined(titles, 4)}{name}")


def lines_are_whole(target: AuditTarget) -> Iterator[Finding]:
    """PL13: Every line names an image and is complete: none is truncated, none lacks a column that nearly all others
    have.
    """
    for listed in published_of(target).lists:
        read = listed.read
        if short := max(read.short, read.unlabelled):
            lines = read.short_lines or tuple(odd for odd in read.odd_lines if "label" in odd.reason)
            text = f"{counted(short, 'line')} of {listed.file} truncated or without a column"
            yield _lines(listed, "fail", short, text, lines, "lines are truncated or lack a column")
        short_of = {odd.line for odd in read.short_lines}
        other = [odd for odd in read.odd_lines if odd.line not in short_of and "label" not in odd.reason]
        left_out = read.odd - short
        if left_out > 0:
            text = f"{counted(left_out, 'line')} of {listed.file} without an image"
            yield _lines(listed, "warn", left_out, text, other, "lines name no image")


def _lines(part: AuditedList, verdict: Verdict, count: int, text: str, lines: Sequence[OddLine], like: str) -> Finding:
    examples = tuple(f"line {odd.line}: {odd.reason}: {odd.text!r}" for odd in lines[:SHOWN_EXAMPLES])
    total = len(part) + part.read.odd
    return Finding(verdict, "", count, text, examples, of=total, lists=(part.name,), like=like, brief=part.name)


_MOST_PARTS = 12
_SHOWN = 3


def groups_are_on_one_side(target: AuditTarget) -> Outcome:
    """PL7: Images of one patient, video, drive or source photo, judging by columns and names, are in one role only."""
    images = target.images
    if images is None:
        return not_applicable("no source states the file names of the images")
    compared = [pair for pair in target.pairs if min(pair.places) >= 0]
    parts = [pair for pair in target.compared or () if pair.kind == "parts"]
    # Invalid patterns of the user are refused even if there is nothing to compare.
    groups = Groups(images, target.patterns, target.column)
    if not compared and not parts:
        return not_applicable("comparing groups needs lists of two roles")
    by_default = not (target.patterns or target.column)
    # Ids of COCO and VOC do not reveal groups, so these lists are skipped.
    positions = {at for pair in compared for at in pair.places if by_default}
    mute = {at for at in positions if (images.uniques[at] < images.n_ids).all() and not images.lists[at].columns}
    findings = [
        _group_finding(
            pair,
            GroupResult("undecidable")
            if {*pair.places} <= mute
            else groups.compare(*pair.places, sure_only=target.published is None),
        )
        for pair in compared
    ]
    for pair in parts:
        result = groups.compare(*pair.places, people_only=True)
        if result.verdict == "shared":
            findings.append(replace(_group_finding(pair, result), verdict="info", asked=0))
    if target.published is None and all(finding.verdict != "warn" for finding in findings):
        return not_applicable("the file names that the sources state tell no group on both sides")
    return Outcome(tuple(findings))


def _group_finding(pair: ComparedPair, result: GroupResult) -> Finding:
    names, about = pair.names, pair.about
    if result.verdict == "undecidable":
        like, why = (
            "no group could be read from the names",
            result.why or "none mentions a patient, drive, video or the like",
        )
        tried = f"; tried: {joined(result.tried)}" if result.tried else ""
        return pair_finding(
            "undecidable", names, 0, f"{like}: {why}{tried}", about=about, like=like, reason=why.partition(":")[0],
            brief=pair.family.replace(" ", "_") or names[1],
            need="what a group of images is: --group REGEX, or --group column=NAME",
        )  # fmt: skip
    several = re.sub(r"(?<![aeiou])y$", "ie", result.noun) + "s"
    left_out = f"; {counted(sum(result.without), 'line')} without" if sum(result.without) else ""
    left_out += f"; tried before: {joined(result.tried)}" * bool(result.tried)
    if result.verdict == "disjoint":
        first, second = f"{result.groups[0]:,}", counted(result.groups[1], result.noun, several)
        text = f"by {result.pattern}: {first} and {second}, none on both sides{left_out}"
        return pair_finding("pass", names, 0, text, about=about)
    sides = " and ".join(
        f"{lines:,} of {n:,} lines of {name}" for lines, n, name in zip(result.lines, result.of, names, strict=True)
    )
    text = f"by {result.pattern}: {counted(result.both, result.noun, several)} on both sides, with {sides}{left_out}"
    if result.is_view:
        text += "; these are other views of the same instant, not the same images"
    examples = tuple(
        f"{row.name or 'no text'}: {counted(row.lines[0], 'line')} of {names[0]} and {row.lines[1]:,} of {names[1]}"
        for row in result.examples[:_SHOWN]
    )
    hint = f"split by {result.noun}; if the same {several} in another modality or view are intended, document it"
    size = sum(result.groups) - result.both
    side = (pair.first, pair.second)[loser_of(pair)]
    drops = {side.name: side.lines[result.rows[loser_of(pair)]]}
    like = f"{several} are on both sides"
    return pair_finding(
        "warn", names, result.both, text, examples, of=size, hint=hint, about=about, drops=drops, like=like
    )


def relations_are_noted(target: AuditTarget) -> Iterator[Finding]:
    """PL14: Which lists are contained in others, are unions of others, or share images with other families."""
    lists = published_of(target)
    overlap = _known_overlaps(lists)
    judged = {frozenset(pair.places) for pair in target.pairs}
    noted = set(judged)
    for finding, pairs in (*_equal(lists, overlap, judged), *_unions(lists, overlap)):
        noted |= pairs
        yield finding
    for finding, pairs in _inside(lists, overlap, set(noted)):
        noted |= pairs
        yield finding
    noted |= {frozenset(pair) for pair in np.argwhere((overlap == 0) & (lists.images.overlaps > 0)).tolist()}
    yield from _between(target, overlap, noted)
    yield from _in_sources(target)
    numbers = any(listed.read.are_stems and len(listed) for listed in lists.lists)
    if numbers and not lists.images.namespace and lists.images.n_ids < len(lists.images):
        text = "numbers are compared within this folder only: no name reveals their dataset"
        yield _note(len(lists.images), text, ())
    if lists.images.root:
        yield _note(0, f"paths are shown relative to {lists.images.root}, which all of them share", ())
    if lists.images.climbing:
        yield _note(lists.images.climbing, f"{counted(lists.images.climbing, 'path')} with ..", ())


def _known_overlaps(lists: ListSet) -> Int64s:
    """Return how many images each two lists share; 0 for bare numbers of two folders, which are of two datasets."""
    overlap = lists.images.overlaps.copy()
    bare = np.array([listed.read.are_stems for listed in lists.lists], np.bool_)
    unknown = np.array(["" in lists.images.datasets(listed.unique) for listed in lists.lists], np.bool_)
    folders = np.array([listed.file.rpartition("/")[0] for listed in lists.lists])
    overlap[bare[:, None] & bare & (unknown[:, None] | unknown) & (folders[:, None] != folders)] = 0
    return overlap


def _note(count: int, text: str, lists: Sequence[str], total: int | None = None) -> Finding:
    return Finding("info", "", count, text, lists=tuple(lists), asked=0, of=total)


def _names(lists: ListSet, positions: Sequence[int]) -> list[str]:
    return [lists.lists[at].name for at in positions]


_Noted = tuple[Finding, set[frozenset[int]]]


def _equal(lists: ListSet, overlap: Int64s, judged: set[frozenset[int]]) -> Iterator[_Noted]:
    """Yield groups of lists with the same images, except pairs that rules on roles compare."""
    filled = (at for at, listed in enumerate(lists.lists) if len(listed))
    for positions in grouped(filled, lambda at: lists.lists[at].unique.tobytes()).values():
        pairs = {frozenset(pair) for pair in combinations(positions, 2)}
        if len(positions) < 2 or pairs <= judged or not all(overlap[tuple(pair)] for pair in pairs):
            continue
        members = [lists.lists[at] for at in positions]
        if len({listed.sha256 for listed in members}) == 1 and len({listed.file for listed in members}) == len(members):
            how = "are byte-identical"
        elif len({listed.members.tobytes() for listed in members}) == 1:
            how = "hold the same images line by line, but differ in their bytes"
        else:
            how = "hold the same images in another order or with repeats"
        names = _names(lists, positions)
        count = len(members[0].unique)
        yield _note(count, f"{joined(names)} {how} ({counted(count, 'image')})", names), pairs


def _inside(lists: ListSet, overlap: Int64s, noted: set[frozenset[int]]) -> Iterator[_Noted]:
    """Yield, for each list that other lists contain, these lists, the largest first."""
    sizes = np.diagonal(overlap)
    inside = (overlap == sizes[:, None]) & (sizes[:, None] < sizes[None, :]) & (sizes[:, None] > 0)
    for small in np.flatnonzero(inside.any(axis=1)).tolist():
        larger = np.flatnonzero(inside[small])
        larger = larger[np.argsort(-sizes[larger], kind="stable")].tolist()
        chosen = [at for at in larger if frozenset((small, at)) not in noted]
        if chosen:
            names = _names(lists, [small, *chosen])
            count = int(sizes[small])
            text = f"{names[0]} ({counted(count, 'image')}) is contained in {joined(names[1:], _SHOWN)}"
            yield _note(count, text, names), {frozenset((small, at)) for at in larger}


def _unions(lists: ListSet, overlap: Int64s) -> Iterator[_Noted]:
    """Yield the lists that are the disjoint union of other lists."""
    sizes = np.diagonal(overlap)
    for union in range(len(lists.lists)):
        parts = np.flatnonzero((overlap[union] == sizes) & (sizes < sizes[union]) & (sizes > 0))
        rows: list[int] = []
        for part in parts[np.argsort(-sizes[parts], kind="stable")].tolist():
            if not overlap[part, rows].any():
                rows.append(part)
        if 1 < len(rows) <= _MOST_PARTS and sizes[rows].sum() == sizes[union]:
            names = _names(lists, [union, *sorted(rows)])
            sum_of = " + ".join(f"{name} ({size:,})" for name, size in zip(names[1:], sizes[sorted(rows)], strict=True))
            text = f"{names[0]} ({sizes[union]:,} images) is {sum_of} and nothing else"
            yield _note(int(sizes[union]), text, names), {frozenset((union, part)) for part in rows}


def _between(target: AuditTarget, overlap: Int64s, noted: set[frozenset[int]]) -> Iterator[Finding]:
    """Yield notes on images that lists of different families share, as folds and versions do by design."""
    lists = published_of(target)
    between = [pair for pair in target.compared or () if pair.kind == "between" and frozenset(pair.places) not in noted]
    roles: dict[str, str] = {listed.name: listed.role for listed in target.lists}
    alike = grouped(between, lambda pair: (roles.get(pair.names[0], ""), roles.get(pair.names[1], "")))
    for (first, second), pairs in alike.items():
        members = sorted({at for pair in pairs for at in pair.places})
        if len(pairs) <= (_SHOWN if first == second else _MOST_PARTS):
            yield from (_shares(target, overlap, pair, roles) for pair in pairs)
            continue
        times = np.bincount(np.concatenate([lists.lists[at].unique for at in members]))
        count, names = int((times > 1).sum()), _names(lists, members)
        kinds = " or ".join(dict.fromkeys(role for role in (first, second) if role))
        several = f"in several of {len(members)} {kinds} lists: ".replace("  ", " ")
        text = f"{counted(count, 'image')} {several}{joined(names)}"
        yield _note(count, text, names, total=int((times > 0).sum()))
    sides = [[at for name, at in lists.index.items() if roles.get(name) == role] for role in ("train", "test")]
    if min(map(len, sides)) > 1 and not overlap[np.ix_(*sides)].any():
        counts = [len(distinct(np.concatenate([lists.lists[at].unique for at in side]))) for side in sides]
        text = (
            f"no image of the {len(sides[0])} train lists ({counts[0]:,} images) is in any of the "
            f"{len(sides[1])} test lists ({counts[1]:,} images)"
        )
        yield _note(0, text, ())


def _shares(target: AuditTarget, overlap: Int64s, pair: ComparedPair, roles: Mapping[str, str]) -> Finding:
    left, right = pair.names
    trained = roles.get(right) == "train"
    first, second = (right, left) if trained else (left, right)
    count, size = int(overlap[pair.places]), len((pair.first if trained else pair.second).unique)
    text = f"{first} holds {count:,} of the {counted(size, 'image')} of {second}"
    if roles.get(first) == "train" and roles.get(second) in ("val", "test"):
        text += ": do not train on one family and test on the other"
    images = target.shared(pair.first, pair.second)
    note = _note(count, text, pair.names, total=size)
    return replace(note, examples=target.examples(images, [pair.first, pair.second])[:1], pairs=(pair.names,))


def _in_sources(target: AuditTarget) -> Iterator[Finding]:
    """Yield the number of test images in each source that is a training part of its dataset."""
    tests: Bools = target.mask(target.with_role("test"))
    for source, held in zip(target.sources, target.positions >= 0, strict=True):
        count = int((tests & held).sum())
        if count and "train" in source.raw.part:
            size = int(tests.sum())
            text = f"a detector trained on {source.name} has seen {count:,} of the {counted(size, 'test image')}"
            yield _note(count, text, [listed.name for listed in target.with_role("test")], total=size)


def known_and_unknown_images_are_apart(target: AuditTarget) -> Iterator[Finding]:
    """PL17: No image is in an in-distribution list and in an out-of-distribution list."""
    for inside, outside in product(target.with_role("id"), target.with_role("ood")):
        images = target.shared(inside, outside)
        names = (outside.name, inside.name)
        if not len(images):
            yield pair_finding("pass", names, 0, "no image is both in and out of distribution")
            continue
        text = f"{len(images):,} of {counted(len(outside.unique), 'out-of-distribution image')} also in-distribution"
        examples = target.examples(images, [outside, inside])
        like, size = "the lists share images", len(outside.unique)
        yield pair_finding("fail", names, len(images), text, examples, of=size, like=like)
