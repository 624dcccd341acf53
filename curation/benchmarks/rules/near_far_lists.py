"""Near, far and farther splits of images: from a start list, categories that remove or are near, and decisions.

A start list of images without an ID class; the automatic stage, which removes images by category and calls others near;
then recorded decisions (`curation.benchmarks.rules.ood_pools.replay`). What is not near is far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import Part, Selection, images_with, make_part
from curation.benchmarks.rules.ood_pools import (
    OodPair,
    OodPool,
    Replayed,
    contradictions,
    decisions_of,
    disregarded,
    id_class_overlaps,
    is_pinned_only,
    replay,
    unmatched_datasets,
)
from curation.core.errors import ProtocolError
from curation.manifest.header import ClassEntry, LabelView, PartEntry, Treatment
from curation.review.decisions.decision import Decision
from curation.sources.datasets import COCO_CATEGORIES, family
from curation.sources.source import Int64s, Source

_RULES = fact("curation.benchmarks.findmeifyoucan", "rules", dict[str, str])
OWN_START = "own"
"""Value of the parameter ``start`` of a user's pool."""
_SHOWN = 3

Ids = tuple[str, ...]
_NOTHING = Replayed((), (), (), (), ())


@dataclass(frozen=True, slots=True)
class Splits:
    """One pool with its splits.

    Attributes
    ----------
    pool : Pool
    sources : mapping of str to Source
        Those that are given, by slot.
    decisions : tuple of Decision
        Those that the pool takes into account.
    rule : tuple of str or None
        What the start rule lets in; None without a rule or a source.
    start : tuple of str or None
        The start list; None where it is unavailable.
    outcome : Replayed
        Empty where no split can be had.
    missing : str
        Why no split can be had, ``""`` where they can.
    notes : tuple of str
    """

    pool: OodPool
    sources: Mapping[str, Source]
    decisions: tuple[Decision, ...]
    rule: Ids | None
    start: Ids | None
    outcome: Replayed = _NOTHING
    missing: str = ""
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> dict[str, Ids]:
        """Start images by split."""
        return self._by_part(self.outcome.near, self.outcome.far)

    @property
    def added(self) -> dict[str, Ids]:
        """Accepted candidates by split."""
        return self._by_part(self.outcome.added_near, self.outcome.added_far)

    @property
    def shared(self) -> Ids:
        """Images in both splits."""
        if not self.pool.has_near:
            return ()
        near, far = (set(self.images(part)) for part in self.pool.parts)
        return tuple(sorted(near & far))

    def images(self, part: str) -> Ids:
        """Return the ids of a split, sorted."""
        return tuple(sorted({*self.kept[part], *self.added[part]}))

    def missing_of(self, part: str) -> str:
        """Return why a split cannot be made, ``""`` where it can."""
        candidate = self.pool.candidates
        if not self.missing and self.added[part] and candidate not in self.sources:
            return f"needs --source {candidate}=PATH, from which images were added"
        return self.missing

    def selection(self, slot: str, ids: Sequence[str], subject: str) -> Selection:
        """Return where some images lie; one that the source lacks is a `ProtocolError`."""
        return Selection(slot, self.sources[slot], require_positions(self.sources[slot], ids, subject, slot))

    def selections(self, part: str) -> list[Selection]:
        """Return where the images of a split lie."""
        start, candidate = self.pool.start, self.pool.candidates
        if candidate == start:
            return [self.selection(start, self.images(part), part)]
        added = sorted(set(self.added[part]) - set(self.kept[part]))
        start_images = self.selection(start, self.kept[part], part)
        return [start_images, self.selection(candidate, added, part)] if added else [start_images]

    def constraints(self, part: str) -> tuple[set[str], set[str]]:
        """Return the images that a split must contain by the decisions, and those that it must not.

        Near must contain what was added as near or kept as near; no split what was removed automatically or moved to
        the other one; far nothing that was removed by hand, which does not touch near.
        """

        def of(*kinds: tuple[str, str]) -> set[str]:
            return {decision.image_id for decision in self.decisions if (decision.stage, decision.action) in kinds}

        removed, kept_near = ("auto_override", "remove"), ("auto_override", "keep_near")
        if part == self.pool.near_part:
            return of(("candidate", "add_near"), kept_near), of(removed, ("manual", "to_far"))
        return of(("candidate", "add_far")), of(removed, kept_near, ("manual", "remove"), ("manual", "to_near"))

    def _by_part(self, near: Ids, far: Ids) -> dict[str, Ids]:
        if self.pool.has_near:
            return {self.pool.near_part: near, self.pool.far_part: far}
        return {self.pool.far_part: tuple(sorted({*near, *far}))}


def split_pool(pair: OodPair, pool: OodPool, sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Splits:
    """Return the splits of a pool, as far as its sources are given.

    Parameters
    ----------
    parameters : mapping
        ``decisions``, ``start`` and ``id_objects``, as ``findmeifyoucan.toml`` declares them; the start of a user's
        pool is `OWN_START`: a list of start images where one is given, else what the rule lets in.

    Raises
    ------
    ProtocolError
        A published start list has images that the rule refuses, or that the source lacks; a decision keeps as near what
        is not in the start list.
    PresenceOnlyError
        The source of the start list has no boxes.
    """
    rule, start, missing = _start(pair, pool, sources, parameters["start"])
    splits = Splits(pool, sources, decisions_of(parameters["decisions"], pool), rule, start, missing=missing)
    if start is None:
        return splits
    if is_pinned_only(parameters["decisions"]):
        return replace(splits, missing="needs --decisions FILE: the manifest pins their digest")
    source = sources[pool.start]
    outcome = replay(
        start,
        remove=set(source.image_ids[images_with(source, pool.remove)].tolist()).intersection(start),
        near=set(source.image_ids[images_with(source, pool.near)].tolist()).intersection(start),
        decisions=splits.decisions,
        where=f"pool {pool.name}",
    )
    splits = replace(splits, outcome=outcome)
    notes = _notes(pool, source, outcome)
    if shared := splits.shared:
        notes += [f"{pool.name}: near and far share {len(shared)} images, by decision: {', '.join(shared[:5])}."]
    return replace(splits, notes=tuple(notes))


def _start(
    pair: OodPair, pool: OodPool, sources: Mapping[str, Source], start: str
) -> tuple[Ids | None, Ids | None, str]:
    """Return what the rule gives, the start list, and why there is none."""
    source = sources.get(pool.start)
    if source is None:
        return None, None, f"needs --source {pool.start}=PATH"
    # A table of image and class misses classes, and would let images in. An image without annotation is kept (VOS,
    # process_coco_ood.py).
    source.require_objects("A start list")
    every = tuple(source.image_ids.tolist())
    by_rule = tuple(source.image_ids[~images_with(source, pair.id_names(pool))].tolist()) if pool.rule else None
    if pool.published in sources and start == "rule":
        raise ProtocolError(
            "A published start list is given and not asked for",
            where=f"--source {pool.published}",
            found="--set start=rule",
            hint="--set start=published",
        )
    if pool.published in sources:
        return by_rule, _published(pool, sources, by_rule, is_own=start == OWN_START), ""
    if start == OWN_START or (start == "rule" and pool.rule):
        return by_rule, every if by_rule is None else by_rule, ""
    no_rule = "" if pool.rule else ", for which there is no rule"
    return by_rule, None, f"needs --source {pool.published}=LIST, the published start list{no_rule}"


def _published(pool: OodPool, sources: Mapping[str, Source], by_rule: Ids | None, *, is_own: bool) -> Ids:
    listed = tuple(sources[pool.published].image_ids.tolist())
    require_positions(sources[pool.start], listed, f"the list {pool.published}", pool.start)
    outside = sorted(set(listed) - set(by_rule)) if by_rule is not None else []
    if outside:
        raise ProtocolError(
            f"The {'' if is_own else 'published '}start list has images that the start rule refuses",
            where=f"--source {pool.published}",
            expected=f"a subset of the {len(by_rule or ())} images without an ID class",
            found=f"{len(outside)} others, the first {', '.join(outside[:3])}",
            hint=f'whole = ["{pool.name}"] in [parameters] starts from any image'
            if is_own
            else "is it the list of the other ID set (VOC, BDD100k)?",
        )
    return listed


def _notes(pool: OodPool, source: Source, outcome: Replayed) -> list[str]:
    listed_names = {"remove": pool.remove, "near": pool.near, "id_names": pool.id_names}
    notes = [f"{pool.name}: {note}" for note in outcome.notes]
    for field_name, names in listed_names.items():
        if absent := [name for name in names if name not in source.categories.names]:
            # A note of the manifest: other words are another digest.
            remark = f"{field_name} names what is no category of the source, without effect"
            notes.append(f"{pool.name}: {remark}: {', '.join(absent)}.")
    return notes


def require_positions(source: Source, ids: Sequence[str], subject: str, slot: str) -> Int64s:
    """Return where some images lie in a source; one that does not is a `ProtocolError`."""
    requested = set(ids)
    # Open Images has 1.7 million images: only those asked for become keys.
    positions = {image: position for position, image in enumerate(source.image_ids.tolist()) if image in requested}
    if absent := [image for image in ids if image not in positions]:
        raise ProtocolError(
            f"{len(absent)} of the {len(ids)} images of {subject} are not in the source",
            where=f"--source {slot}: {source.files[0].name if source.files else source.dataset}",
            expected="every one of them",
            found=", ".join(absent[:3]),
            hint="give the annotations of the whole part of the data set that the list was made from",
        )
    return np.array([positions[image] for image in ids], np.int64)


def classes_of(pair: OodPair, sources: Mapping[str, Source]) -> tuple[ClassEntry, ...]:
    """Return the ID classes, then every other category of the sources (of COCO always), unknown."""
    known = tuple(
        ClassEntry(name=name, role="known", index=index, aliases=pair.aliases.get(name, ()))
        for index, name in enumerate(pair.id_classes)
    )
    id_names = pair.names()
    others: dict[str, None] = {}
    for pool in pair.pools:
        if family(pool.dataset) == "coco":
            others |= dict.fromkeys(name for _, name, _ in COCO_CATEGORIES if name not in id_names)
        for slot in (pool.start, pool.candidates):
            if slot in sources:
                others |= dict.fromkeys(n for n in sources[slot].categories.names if n not in id_names)
    return (*known, *(ClassEntry(name=name, role="unknown", index=-1) for name in others))


def parts_of(split: Splits, classes: Sequence[ClassEntry], parameters: Mapping[str, Any]) -> list[Part | PartEntry]:
    """Return the lists of a pool; an unavailable list has no images and no digest."""
    pool = split.pool
    # Every annotation is an unknown object, crowd and group boxes included.
    left_over: Treatment = "ignore" if parameters["id_objects"] == "ignore" else "rename:unknown"
    view = LabelView(known=left_over, unknown="rename:unknown", crowd="keep", difficult="keep")
    words = {"start": pool.start, "published": pool.published, "near": ", ".join(pool.near) or "none"}

    def made(name: str, kind: str, selected: list[Selection] | None, subset_of: str = "") -> Part | PartEntry:
        rule = _RULES[kind].format(**words)
        if selected is not None:
            return make_part(name, "test", selected, classes, view=view, rule=rule, subset_of=subset_of)
        slots = dict.fromkeys(slot for slot in (pool.start, pool.candidates) if slot)
        return PartEntry(name=name, role="test", sources=tuple(slots), selection=rule, view=view, subset_of=subset_of)

    def located_in(ids: Ids | None, slot: str) -> list[Selection] | None:
        return None if ids is None else [split.selection(slot, ids, f"pool {pool.name}")]

    parts: list[Part | PartEntry] = []
    by_rule = f"{pool.name}-rule" if pool.rule else ""
    if by_rule:
        parts.append(made(by_rule, "rule", located_in(split.rule, pool.start)))
    if parameters["start"] != "rule" and (split.start is not None or split.rule is not None):
        kind = "user_start" if parameters["start"] == OWN_START else "start"
        parts.append(made(f"{pool.name}-start", kind, located_in(split.start, pool.start), by_rule))
    for part in pool.parts:
        kind = "near" if part == pool.near_part else pool.distance
        parts.append(made(part, kind, None if split.missing_of(part) else split.selections(part)))
    return parts


def notes_of(pair: OodPair, splits: Sequence[Splits], parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a reader must know: overlaps with ID classes, what has no effect, shared images."""
    notes = []
    if not parameters["decisions"]:
        notes.append(
            "No decisions were given: near and far are what the category lists say, a proposal and no judgement."
        )
    elif is_pinned_only(parameters["decisions"]):
        notes.append(
            "The decisions are named by their digest: `curation build` completes the splits with --decisions FILE."
        )
    notes += [
        f"Overlap: {overlap}"
        for pool in pair.pools
        for overlap in id_class_overlaps(pair, pool, "near list", dict.fromkeys(pool.near, 0))
    ]
    for split in splits:
        notes += [f"Overlap: {overlap}" for overlap in _annotated(pair, split)]
        notes += split.notes
        if left := disregarded(parameters["decisions"], split.pool):
            notes.append(
                f"{split.pool.name}: {left} decisions do not count: of this pool only manual removals for the reason "
                f"{' or '.join(map(repr, split.pool.reasons))} do."
            )
    if differing := contradictions(parameters["decisions"]):
        more = f"; and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        notes.append(
            f"Verdicts contradict each other on {len(differing)} images, and all are replayed, in the order of the "
            f"steps: {'; '.join(differing[:_SHOWN])}{more}."
        )
    unmatched = unmatched_datasets(parameters["decisions"], [split.pool for split in splits])
    if unmatched:
        listed = ", ".join(f"{n} of {name!r}" for name, n in unmatched.items())
        notes.append(f"Decisions on no pool of this manifest: {listed}.")
    return tuple(notes)


def _annotated(pair: OodPair, split: Splits) -> Iterator[str]:
    """Yield the overlaps found in the annotations of the splits that are available."""
    for part in split.pool.parts:
        counts: Counter[str] = Counter()
        for selection in () if split.missing_of(part) else split.selections(part):
            chosen, categories = np.zeros(len(selection.source.images), np.bool_), selection.source.categories
            chosen[selection.positions] = True
            image, category = selection.source.class_pairs()
            used = np.bincount(category[chosen[image]], minlength=len(categories)).tolist()
            counts.update(dict(zip(categories.names, used, strict=True)))
        yield from id_class_overlaps(pair, split.pool, part, +counts)
