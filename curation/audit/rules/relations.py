"""PL, published lists: what two lists of a folder have to do with each other, by their images and groups of these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from curation.audit.groups import GroupResult, Groups
from curation.audit.id_vocabulary import TEXT
from curation.audit.lists import ListSet
from curation.audit.rule import Check, Finding, Outcome, joined, not_applicable, undecidable
from curation.audit.rules.published_lists import published_of
from curation.audit.target import AuditTarget, ComparedPair
from curation.sources.source import Bools, Int64s
from curation.wording import counted

_MOST_PARTS = 12
_SHOWN = 3


def groups_stand_on_one_side(target: AuditTarget) -> Outcome:
    """PL7: patients, videos, drives, told by columns and names, are in train, in val or in test alone."""
    compared = [pair for pair in target.pairs if min(pair.places) >= 0]
    parts = [pair for pair in target.compared or () if pair.kind == "parts"]
    # Made first: patterns of the user are refused though there is nothing to compare.
    groups = Groups(published_of(target).images, target.patterns, target.column)
    if not compared and not parts:
        return not_applicable("there are no lists of two roles, between which groups would be looked for")
    told = not (target.patterns or target.column)
    # Numbers of COCO and VOC tell no group: there is nothing to look for.
    places = {place for pair in compared for place in pair.places if told}
    mute = {place for place in places if _is_numbered(published_of(target), place)}
    findings = [
        _told_groups(pair, GroupResult("undecidable") if {*pair.places} <= mute else groups.compare(*pair.places))
        for pair in compared
    ]
    for pair in parts:
        found = groups.compare(*pair.places, people_only=True)
        if found.verdict == "shared":
            findings.append(replace(_told_groups(pair, found), verdict="info", asked=0))
    return Outcome(tuple(findings))


def _is_numbered(lists: ListSet, place: int) -> bool:
    one = lists.lists[place]
    return bool((lists.vocabulary.forms[one.unique] < TEXT).all()) and not one.read.columns


def _told_groups(pair: ComparedPair, found: GroupResult) -> Finding:
    names, about = pair.names, pair.about
    if found.verdict == "undecidable":
        like, why = (
            "no group could be read from the names",
            found.why or "none mentions a patient, drive, video or the like",
        )
        tried = f"; tried: {joined(found.tried)}" if found.tried else ""
        need = "what a group of images is: --group REGEX, or --group column=NAME"
        told = undecidable(about, need, f"{like}: {why}{tried}")
        brief, reason = pair.family.replace(" ", "_") or names[1], why.partition(":")[0]
        return replace(told, lists=names, pairs=(names,), like=like, brief=brief, reason=reason)
    several = f"{found.noun}s"
    left_out = f"; {counted(sum(found.without), 'line')} without" if sum(found.without) else ""
    also = "".join(f"; {text}" for text in found.also)
    if found.verdict == "disjoint":
        one, two = found.groups
        text = f"by {found.pattern}: {one:,} and {counted(two, found.noun)}, none on both sides{left_out}{also}"
        return Finding("pass", about, text=text, lists=names, pairs=(names,))
    sides = " and ".join(
        f"{lines:,} of {of:,} lines of {name}" for lines, of, name in zip(found.lines, found.of, names, strict=True)
    )
    text = f"by {found.pattern}: {counted(found.both, found.noun)} on both sides, with {sides}{left_out}{also}"
    if found.is_view:
        text += "; these are other views of the same instant, not the same images"
    examples = tuple(f"{one.name}: {one.lines[0]:,} and {one.lines[1]:,} lines" for one in found.examples[:_SHOWN])
    hint = f"split by {found.noun}; if the same {several} in another modality or view are intended, document it"
    return Finding(
        "warn", about, found.both, text, examples, of=sum(found.groups) - found.both, lists=names, pairs=(names,),
        hint=hint,
    )  # fmt: skip


def relations_are_told(target: AuditTarget) -> Iterator[Finding]:
    """PL14: lists that lie in others, are the union of others, or share images between families: notes."""
    lists = published_of(target)
    overlap = lists.images.overlaps
    judged = {frozenset(pair.places) for pair in target.pairs}
    told = set(judged)
    for finding, pairs in (*_equal(lists, judged), *_unions(lists, overlap)):
        told |= pairs
        yield finding
    for finding, pairs in _inside(lists, overlap, set(told)):
        told |= pairs
        yield finding
    yield from _between(target, overlap, told)
    yield from _in_sources(target)
    numbers = any(one.read.are_stems and len(one) for one in lists.lists)
    if numbers and not lists.vocabulary.namespace and (lists.vocabulary.forms == TEXT).any():
        text = "numbers are compared within this folder only: no name reveals their dataset"
        yield _note(len(lists.vocabulary), text, ())
    if lists.images.root:
        yield _note(0, f"paths are shown relative to {lists.images.root}, which all of them share", ())
    if lists.images.climbing:
        yield _note(lists.images.climbing, f"{counted(lists.images.climbing, 'path')} with ..", ())


def _note(count: int, text: str, lists: Sequence[str], of: int | None = None) -> Finding:
    return Finding("info", "", count, text, lists=tuple(lists), asked=0, of=of)


def _names(lists: ListSet, places: Sequence[int]) -> list[str]:
    return [lists.lists[place].name for place in places]


Told = tuple[Finding, set[frozenset[int]]]


def _equal(lists: ListSet, judged: set[frozenset[int]]) -> Iterator[Told]:
    """Yield groups of lists with the same images, but for those that rules on roles judge."""
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for place, one in enumerate(lists.lists):
        if len(one):
            groups[one.unique.tobytes()].append(place)
    for places in groups.values():
        pairs = {frozenset(pair) for pair in combinations(places, 2)}
        if len(places) < 2 or pairs <= judged:
            continue
        own = [lists.lists[place] for place in places]
        if len({one.sha256 for one in own}) == 1 and len({one.file for one in own}) == len(own):
            how = "are byte-identical"
        elif len({one.members.tobytes() for one in own}) == 1:
            how = "hold the same images line by line, but differ in their bytes"
        else:
            how = "hold the same images in another order or with repeats"
        names = _names(lists, places)
        count = len(own[0].unique)
        yield _note(count, f"{joined(names)} {how} ({counted(count, 'image')})", names), pairs


def _inside(lists: ListSet, overlap: Int64s, told: set[frozenset[int]]) -> Iterator[Told]:
    """Yield for each list that lies in others those that hold it, the largest first."""
    sizes = np.diagonal(overlap)
    inside = (overlap == sizes[:, None]) & (sizes[:, None] < sizes[None, :]) & (sizes[:, None] > 0)
    for small in np.flatnonzero(inside.any(axis=1)).tolist():
        larger = np.flatnonzero(inside[small])
        larger = larger[np.argsort(-sizes[larger], kind="stable")].tolist()
        chosen = [place for place in larger if frozenset((small, place)) not in told]
        if chosen:
            names = _names(lists, [small, *chosen])
            count = int(sizes[small])
            text = f"{names[0]} ({counted(count, 'image')}) is contained in {joined(names[1:], _SHOWN)}"
            yield _note(count, text, names), {frozenset((small, place)) for place in larger}


def _unions(lists: ListSet, overlap: Int64s) -> Iterator[Told]:
    """Yield the lists that are others put together, and hold nothing else."""
    sizes = np.diagonal(overlap)
    for whole in range(len(lists.lists)):
        parts = np.flatnonzero((overlap[whole] == sizes) & (sizes < sizes[whole]) & (sizes > 0))
        kept: list[int] = []
        for part in parts[np.argsort(-sizes[parts], kind="stable")].tolist():
            if not overlap[part, kept].any():
                kept.append(part)
        if 1 < len(kept) <= _MOST_PARTS and sizes[kept].sum() == sizes[whole]:
            names = _names(lists, [whole, *sorted(kept)])
            told = " + ".join(f"{name} ({size:,})" for name, size in zip(names[1:], sizes[sorted(kept)], strict=True))
            text = f"{names[0]} ({sizes[whole]:,} images) is {told} and nothing else"
            yield _note(int(sizes[whole]), text, names), {frozenset((whole, part)) for part in kept}


def _between(target: AuditTarget, overlap: Int64s, told: set[frozenset[int]]) -> Iterator[Finding]:
    """Yield what lists of different families share: advice, for folds and versions share images by design."""
    lists = published_of(target)
    between = [one for one in target.compared or () if one.kind == "between" and frozenset(one.places) not in told]
    roles: dict[str, str] = {one.name: one.role for one in target.lists}
    alike: defaultdict[tuple[str, str], list[ComparedPair]] = defaultdict(list)
    for pair in between:
        alike[roles.get(pair.names[0], ""), roles.get(pair.names[1], "")].append(pair)
        told.add(frozenset(pair.places))
    for (one, two), pairs in alike.items():
        members = sorted({place for pair in pairs for place in pair.places})
        if len(pairs) <= (_SHOWN if one == two else _MOST_PARTS):
            yield from (_shares(target, overlap, pair, roles) for pair in pairs)
            continue
        times = np.bincount(np.concatenate([lists.lists[place].unique for place in members]))
        count, names = int((times > 1).sum()), _names(lists, members)
        kinds = " or ".join(dict.fromkeys(role for role in (one, two) if role))
        several = f"in several of {len(members)} {kinds} lists: ".replace("  ", " ")
        text = f"{counted(count, 'image')} {several}{joined(names)}"
        yield _note(count, text, names, of=int((times > 0).sum()))
    sides = [[place for name, place in lists.place.items() if roles.get(name) == role] for role in ("train", "test")]
    if min(map(len, sides)) > 1 and not overlap[np.ix_(*sides)].any():
        counts = [len(np.unique(np.concatenate([lists.lists[place].unique for place in side]))) for side in sides]
        text = (
            f"no image of the {len(sides[0])} train lists ({counts[0]:,} images) is in any of the "
            f"{len(sides[1])} test lists ({counts[1]:,} images)"
        )
        yield _note(0, text, ())


def _shares(target: AuditTarget, overlap: Int64s, pair: ComparedPair, roles: Mapping[str, str]) -> Finding:
    one, two = pair.names
    trained = roles.get(two) == "train"
    first, second = (two, one) if trained else (one, two)
    count, of = int(overlap[pair.places]), len((pair.first if trained else pair.second).unique)
    text = f"{first} holds {count:,} of the {counted(of, 'image')} of {second}"
    if roles.get(first) == "train" and roles.get(second) in ("val", "test"):
        text += ": do not train on one family and test on the other"
    images = target.shared(pair.first, pair.second)
    note = _note(count, text, pair.names, of=of)
    return replace(note, examples=target.examples(images, [pair.first, pair.second])[:1], pairs=(pair.names,))


def _in_sources(target: AuditTarget) -> Iterator[Finding]:
    """Yield how many test images each training part of a given dataset holds."""
    tests: Bools = target.mask(target.with_role("test"))
    for source, held in zip(target.sources, target.positions >= 0, strict=True):
        count = int((tests & held).sum())
        if count and "train" in source.raw.part:
            of = int(tests.sum())
            text = f"a detector trained on {source.name} has seen {count:,} of the {counted(of, 'test image')}"
            yield _note(count, text, [one.name for one in target.with_role("test")], of=of)


def known_and_unknown_images_are_apart(target: AuditTarget) -> Iterator[Finding]:
    """PL17: no image is in a list that is said to be in-distribution and in one that is said to be out of it."""
    for inside, outside in product(target.with_role("id"), target.with_role("ood")):
        images = target.shared(inside, outside)
        about = f"{outside.name} and {inside.name}"
        names = (outside.name, inside.name)
        if not len(images):
            yield Finding(
                "pass", about, text="no image is both in and out of distribution", lists=names, pairs=(names,)
            )
            continue
        text = f"{len(images):,} of {counted(len(outside.unique), 'out-of-distribution image')} also in-distribution"
        examples = target.examples(images, [outside, inside])
        yield Finding(
            "fail", about, len(images), text, examples, of=len(outside.unique), lists=names, pairs=(names,),
            like="the lists share images",
        )  # fmt: skip


CHECKS: dict[str, Check] = {
    "PL7": groups_stand_on_one_side,
    "PL14": relations_are_told,
    "PL17": known_and_unknown_images_are_apart,
}
