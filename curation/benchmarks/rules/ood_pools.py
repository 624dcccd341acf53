"""Pools of images that are out of distribution for the ID classes, and their near, far and farther splits.

A pool has a start list of images without an ID class. The automatic stage removes images by category and makes others
near; then recorded decisions apply (`curation.benchmarks.rules.replay`). All other images are far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import Part, Selection, images_with, make_part
from curation.benchmarks.rules.benchmark_file import entries_by_role
from curation.benchmarks.rules.replay import Replayed, contradictions, decisions_in, is_pinned_only, replay
from curation.core.errors import ProtocolError
from curation.manifest.header import ClassEntry, LabelView, PartEntry, Treatment
from curation.review.decisions.decision import Decision
from curation.signals.hierarchy import open_wordnet
from curation.signals.hierarchy.class_lists import DATASETS, synset_map
from curation.signals.hierarchy.hierarchy import descendants
from curation.sources.datasets import COCO_CATEGORIES, family
from curation.sources.source import Source

_WORDS = fact("curation.benchmarks.findmeifyoucan", "words", dict[str, str])
_NOTHING = Replayed((), (), (), (), ())
_SHOWN = 3
Ids = tuple[str, ...]
Start = Literal["published", "rule", "own"]
"""Start of the splits: the published list, all images that the rule accepts, or a user pool's list if any."""


class OodPool(msgspec.Struct, frozen=True, kw_only=True):
    """An OOD source with its near and far split. The order of the fields is part of a paper's digest.

    Attributes
    ----------
    name : str
        Its name in decisions (`dataset`), and the first word of its parts: ``coco-near``, ``coco-far``.
    dataset : str
        Dataset of its images.
    start, candidates, published : str
        Names of the sources: images to start from, images that decisions may add (``""`` for none; may be the former),
        and the list of start images (``""`` for none).
    rule : bool
        Whether an image may start only if it has no annotation of an ID class (crowd included).
    id_names : tuple of str
        Names of ID classes in this source; empty for all names and aliases of the classes.
    remove, near : dict of str to str
        Categories whose images are removed, or near, each with the reason: the ID class concerned. Removal wins.
    distance : {"far", "farther"}
        Name of the remaining images.
    reasons : tuple of str
        If not empty, only removals of the manual stage for one of these reasons count among the decisions.
    """

    name: str
    dataset: str
    start: str
    candidates: str
    published: str = ""
    rule: bool = True
    id_names: tuple[str, ...] = ()
    remove: dict[str, str] = {}
    near: dict[str, str] = {}
    distance: Literal["far", "farther"] = "far"
    reasons: tuple[str, ...] = ()

    @property
    def near_part(self) -> str:
        """Name of the near split."""
        return f"{self.name}-near"

    @property
    def far_part(self) -> str:
        """Name of the split that is not near."""
        return f"{self.name}-{self.distance}"

    @property
    def has_near(self) -> bool:
        """Whether there is a near split; a pool that is farther as a whole has none."""
        return self.distance != "farther"

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the splits."""
        return (self.near_part, self.far_part) if self.has_near else (self.far_part,)

    def concerns(self, decision: Decision) -> bool:
        """Return whether a decision refers to this pool or one of its splits."""
        return decision.dataset in (self.name, *self.parts)

    def counts(self, decision: Decision) -> bool:
        """Return whether the pool applies a decision that refers to it."""
        is_removal = (decision.stage, decision.action) == ("manual", "remove")
        return not self.reasons or (is_removal and decision.reason in self.reasons)


class OodPair(msgspec.Struct, frozen=True, kw_only=True):
    """The ID classes of a detector, and the pools that are out of distribution for it.

    Attributes
    ----------
    name : str
        Name of the manifest.
    id_classes : tuple of str
        In the order of their index.
    pools : tuple of OodPool
    title : str
    aliases : dict of str to tuple of str
        Other names of a class in the annotation files.
    synsets : str
        Synset map that has the names of the ID classes (``voc``, ``coco``, ``openimages``), for overlap by hierarchy.
    """

    name: str
    id_classes: tuple[str, ...]
    pools: tuple[OodPool, ...]
    title: str = ""
    aliases: dict[str, tuple[str, ...]] = {}
    synsets: str = ""

    def names(self) -> dict[str, str]:
        """Return the class of every name of an ID class, including aliases."""
        class_names = {name: name for name in self.id_classes}
        return class_names | {alias: name for name in self.id_classes for alias in self.aliases.get(name, ())}

    def id_names(self, pool: OodPool) -> tuple[str, ...]:
        """Return the names of ID classes in a pool."""
        return pool.id_names or tuple(self.names())


@dataclass(frozen=True, slots=True)
class Splits:
    """A pool with its splits.

    Attributes
    ----------
    pool : OodPool
    sources : mapping of str to Source
        The available sources, by name.
    decisions : tuple of Decision
        The decisions that the pool applies.
    rule : tuple of str or None
        The images that the start rule accepts; None without a rule or a source.
    start : tuple of str or None
        The start list; None if it is unavailable.
    outcome : Replayed
        Empty if the splits cannot be made.
    missing : str
        The reason why the splits cannot be made, or ``""``.
    """

    pool: OodPool
    sources: Mapping[str, Source]
    decisions: tuple[Decision, ...]
    rule: Ids | None
    start: Ids | None
    outcome: Replayed = _NOTHING
    missing: str = ""

    @property
    def retained(self) -> dict[str, Ids]:
        """Start images by split."""
        return self._by_part(self.outcome.near, self.outcome.far)

    @property
    def added(self) -> dict[str, Ids]:
        """Accepted candidates by split."""
        return self._by_part(self.outcome.added_near, self.outcome.added_far)

    def images(self, part: str) -> Ids:
        """Return the ids of a split, sorted."""
        return tuple(sorted({*self.retained[part], *self.added[part]}))

    def missing_of(self, part: str) -> str:
        """Return the reason why a split cannot be made, or ``""``."""
        candidate = self.pool.candidates
        if not self.missing and self.added[part] and candidate not in self.sources:
            return f"needs --source {candidate}=PATH, from which images were added"
        return self.missing

    def selections(self, part: str) -> list[Selection]:
        """Return the images of a split by source and position."""
        start, candidate = self.pool.start, self.pool.candidates
        if candidate == start:
            return [locate(self.sources, start, self.images(part), part)]
        added = sorted(set(self.added[part]) - set(self.retained[part]))
        start_images = locate(self.sources, start, self.retained[part], part)
        return [start_images, locate(self.sources, candidate, added, part)] if added else [start_images]

    def constraints(self, part: str) -> tuple[set[str], set[str]]:
        """Return the images that the decisions require in a split, and those that they exclude.

        Near requires images that were added as near or kept as near. Both exclude images that were removed
        automatically or moved to the other split. Far also excludes manual removals, which do not affect near.
        """

        def images_of(*kinds: tuple[str, str]) -> set[str]:
            return {decision.image_id for decision in self.decisions if (decision.stage, decision.action) in kinds}

        removed, kept_near = ("auto_override", "remove"), ("auto_override", "keep_near")
        if part == self.pool.near_part:
            return images_of(("candidate", "add_near"), kept_near), images_of(removed, ("manual", "to_far"))
        outside = images_of(removed, kept_near, ("manual", "remove"), ("manual", "to_near"))
        return images_of(("candidate", "add_far")), outside

    def _by_part(self, near: Ids, far: Ids) -> dict[str, Ids]:
        if self.pool.has_near:
            return {self.pool.near_part: near, self.pool.far_part: far}
        return {self.pool.far_part: tuple(sorted({*near, *far}))}


class PairLists(NamedTuple):
    """The splits of a pair's pools, with their parts, classes and notes for a manifest."""

    splits: list[Splits]
    classes: tuple[ClassEntry, ...]
    parts: list[Part | PartEntry]
    notes: tuple[str, ...]


def pair_lists(
    pair: OodPair, sources: Mapping[str, Source], *, decisions: str, start: Start, id_objects: str
) -> PairLists:
    """Return the splits of every pool of a pair as parts of a manifest, as far as its sources are available.

    Parameters
    ----------
    decisions : str
        As `curation.benchmarks.rules.replay.read_recorded` returns them.
    id_objects : {"unknown", "ignore"}
        How to treat objects of an ID class that remain in a split.

    Raises
    ------
    ProtocolError
        A start list has images that the rule rejects or the source lacks; a decision keeps an image as near that is not
        in the start list.
    PresenceOnlyError
        The source of the start list has no boxes.
    """
    splits = [split_pool(pair, pool, sources, decisions, start) for pool in pair.pools]
    classes = _classes(pair, sources)
    parts = [part for split in splits for part in _parts(split, classes, start, id_objects)]
    return PairLists(splits, classes, parts, tuple(_notes(pair, splits, decisions)))


def split_pool(pair: OodPair, pool: OodPool, sources: Mapping[str, Source], decisions: str, start: Start) -> Splits:
    """Return the splits of a pool (see `pair_lists`)."""
    on_pool = (decision for decision in decisions_in(decisions) if pool.concerns(decision))
    by_rule, start_list, missing = _start(pair, pool, sources, start)
    splits = Splits(pool, sources, tuple(filter(pool.counts, on_pool)), by_rule, start_list, missing=missing)
    if start_list is None:
        return splits
    if is_pinned_only(decisions):
        return replace(splits, missing="needs --decisions FILE: the manifest pins their digest")
    source = sources[pool.start]
    outcome = replay(
        start_list,
        remove=set(source.image_ids[images_with(source, pool.remove)].tolist()).intersection(start_list),
        near=set(source.image_ids[images_with(source, pool.near)].tolist()).intersection(start_list),
        decisions=splits.decisions,
        where=f"pool {pool.name}",
    )
    return replace(splits, outcome=outcome)


def _start(
    pair: OodPair, pool: OodPool, sources: Mapping[str, Source], start: Start
) -> tuple[Ids | None, Ids | None, str]:
    """Return the images that the rule accepts, the start list, and the reason if the list is missing."""
    source = sources.get(pool.start)
    if source is None:
        return None, None, f"needs --source {pool.start}=PATH"
    # A table of image and class lacks classes, and would accept images. An image without annotation is kept (VOS,
    # process_coco_ood.py).
    source.require_objects("A start list")
    by_rule = tuple(source.image_ids[~images_with(source, pair.id_names(pool))].tolist()) if pool.rule else None
    if pool.published in sources and start == "rule":
        raise ProtocolError(
            "A published start list is given but not requested",
            where=f"--source {pool.published}",
            found="--set start=rule",
            hint="--set start=published",
        )
    if pool.published in sources:
        return by_rule, _listed(pool, sources, by_rule, is_own=start == "own"), ""
    if by_rule is not None and start != "published":
        return by_rule, by_rule, ""
    if start == "own":
        return None, tuple(source.image_ids.tolist()), ""
    no_rule = "" if pool.rule else ", for which there is no rule"
    return by_rule, None, f"needs --source {pool.published}=LIST, the published start list{no_rule}"


def _listed(pool: OodPool, sources: Mapping[str, Source], by_rule: Ids | None, *, is_own: bool) -> Ids:
    listed = tuple(sources[pool.published].image_ids.tolist())
    locate(sources, pool.start, listed, f"the list {pool.published}")
    outside = sorted(set(listed) - set(by_rule)) if by_rule is not None else []
    if outside:
        raise ProtocolError(
            f"The {'' if is_own else 'published '}start list has images that the start rule refuses",
            where=f"--source {pool.published}",
            expected=f"a subset of the {len(by_rule or ())} images without an ID class",
            found=f"{len(outside)} others, the first {', '.join(outside[:3])}",
            hint=f'whole = ["{pool.start}"] in [parameters] starts from any image'
            if is_own
            else "is it the list of the other ID set (VOC, BDD100k)?",
        )
    return listed


def locate(sources: Mapping[str, Source], slot: str, ids: Sequence[str], subject: str) -> Selection:
    """Return the positions of images in a source; raise `ProtocolError` if the source lacks an image."""
    source, requested = sources[slot], set(ids)
    # Open Images has 1.7 million images: only the requested ones become keys.
    positions = {image: position for position, image in enumerate(source.image_ids.tolist()) if image in requested}
    if absent := [image for image in ids if image not in positions]:
        raise ProtocolError(
            f"{len(absent)} of the {len(ids)} images of {subject} are not in the source",
            where=f"--source {slot}: {source.files[0].name if source.files else source.dataset}",
            expected="every one of them",
            found=", ".join(absent[:3]),
            hint="give the annotations of the complete part of the data set from which the list was made",
        )
    return Selection(slot, source, np.array([positions[image] for image in ids], np.int64))


def _classes(pair: OodPair, sources: Mapping[str, Source]) -> tuple[ClassEntry, ...]:
    """Return the ID classes, then every other category of the sources (and always of COCO) as unknown."""
    others: dict[str, None] = {}
    for pool in pair.pools:
        if family(pool.dataset) == "coco":
            others |= dict.fromkeys(name for _, name, _ in COCO_CATEGORIES)
        for slot in (pool.start, pool.candidates):
            if slot in sources:
                others |= dict.fromkeys(sources[slot].categories.names)
    id_names = pair.names()
    unknown = [name for name in others if name not in id_names]
    return entries_by_role({"known": pair.id_classes, "unknown": unknown}, pair.aliases)


def _parts(split: Splits, classes: Sequence[ClassEntry], start: Start, id_objects: str) -> Iterator[Part | PartEntry]:
    """Yield the lists of a pool; an unavailable list has no images and no digest."""
    pool = split.pool
    # Every annotation is an unknown object, crowd and group boxes included.
    left_over: Treatment = "ignore" if id_objects == "ignore" else "rename:unknown"
    view = LabelView(known=left_over, unknown="rename:unknown", crowd="keep", difficult="keep")
    words = {"start": pool.start, "published": pool.published, "near": ", ".join(pool.near) or "none"}

    def part(name: str, kind: str, selected: list[Selection] | None, subset_of: str = "") -> Part | PartEntry:
        rule = _WORDS[kind].format(**words)
        if selected is not None:
            return make_part(name, "test", selected, classes, view=view, rule=rule, subset_of=subset_of)
        slots = dict.fromkeys(slot for slot in (pool.start, pool.candidates) if slot)
        return PartEntry(name=name, role="test", sources=tuple(slots), selection=rule, view=view, subset_of=subset_of)

    def located(ids: Ids | None) -> list[Selection] | None:
        return None if ids is None else [locate(split.sources, pool.start, ids, f"pool {pool.name}")]

    rule_part = f"{pool.name}-rule" if pool.rule else ""
    if rule_part:
        yield part(rule_part, "rule", located(split.rule))
    is_published = start == "published" and (split.start is not None or split.rule is not None)
    if is_published or (start == "own" and pool.published in split.sources):
        kind = "start" if is_published else "user_start"
        yield part(f"{pool.name}-start", kind, located(split.start), rule_part)
    for name in pool.parts:
        kind = "near" if name == pool.near_part else pool.distance
        yield part(name, kind, None if split.missing_of(name) else split.selections(name))


def _notes(pair: OodPair, splits: Sequence[Splits], decisions: str) -> Iterator[str]:
    """Yield notes for the reader: overlaps with ID classes, settings without effect, shared images."""
    if not decisions:
        yield "No decisions were given: near and far are what the category lists say, a proposal and no judgement."
    elif is_pinned_only(decisions):
        yield "The decisions are named by their digest: `curation build` completes the splits with --decisions FILE."
    for pool in pair.pools:
        for overlap in id_class_overlaps(pair, pool, "near list", dict.fromkeys(pool.near, 0)):
            yield f"Overlap: {overlap}"
    recorded = decisions_in(decisions)
    for split in splits:
        pool = split.pool
        yield from (f"Overlap: {overlap}" for overlap in _annotated(pair, split))
        yield from (f"{pool.name}: {note}" for note in split.outcome.notes)
        for key in () if split.missing else ("remove", "near", "id_names"):
            there = split.sources[pool.start].categories.names
            if absent := [name for name in getattr(pool, key) if name not in there]:
                # A note of the manifest: other words would change the digest.
                remark = f"{key} names what is no category of the source, without effect"
                yield f"{pool.name}: {remark}: {', '.join(absent)}."
        if pool.has_near and (shared := split.outcome.shared):
            yield f"{pool.name}: near and far share {len(shared)} images, by decision: {', '.join(shared[:5])}."
        if n_disregarded := sum(map(pool.concerns, recorded)) - len(split.decisions):
            yield (
                f"{pool.name}: {n_disregarded} decisions do not count: of this pool only manual removals for the "
                f"reason {' or '.join(map(repr, pool.reasons))} do."
            )
    if differing := contradictions(decisions):
        more = f"; and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        yield (
            f"Verdicts contradict each other on {len(differing)} images, and all are replayed, in the order of the "
            f"steps: {'; '.join(differing[:_SHOWN])}{more}."
        )
    unmatched = Counter(row.dataset for row in recorded if not any(split.pool.concerns(row) for split in splits))
    if unmatched:
        listed = ", ".join(f"{n} of {name!r}" for name, n in sorted(unmatched.items()))
        yield f"Decisions on no pool of this manifest: {listed}."


def _annotated(pair: OodPair, split: Splits) -> Iterator[str]:
    """Yield the overlaps in the annotations of the available splits."""
    for part in split.pool.parts:
        counts: Counter[str] = Counter()
        for selection in () if split.missing_of(part) else split.selections(part):
            chosen, categories = np.zeros(len(selection.source.images), np.bool_), selection.source.categories
            chosen[selection.positions] = True
            image, category = selection.source.class_pairs()
            used = np.bincount(category[chosen[image]], minlength=len(categories)).tolist()
            counts.update(dict(zip(categories.names, used, strict=True)))
        yield from id_class_overlaps(pair, split.pool, part, +counts)


def id_class_of(pair: OodPair, pool: OodPool, categories: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the ID class of each category that is one, with the relation in words; others are left out.

    Parameters
    ----------
    categories : iterable of str
        Names in the pool's source. Relations are looked up only if the pair names the synset map of its ID classes
        and the pool's dataset has a map.
    """
    by_name = {name.casefold(): ("is", name) for name in pair.id_classes}
    by_alias = {alias.casefold(): ("is another name of", owner) for alias, owner in pair.names().items()}
    kinds = _kinds(pair, pool)
    relations = {name: (by_alias | by_name).get(name.casefold()) or kinds.get(name) for name in categories}
    return {category: how for category, how in relations.items() if how}


def id_class_overlaps(pair: OodPair, pool: OodPool, where: str, counts: Mapping[str, int]) -> list[str]:
    """Return a sentence for each category that is an ID class: FindMeIfYouCan's code calls "Dog" near a VOC class.

    Parameters
    ----------
    where : str
        ``near list``, or the part whose images are annotated with the categories.
    counts : mapping of str to int
        Categories with their objects, of which the most come first; 0 for those of a list.
    """
    sentences = []
    relations = id_class_of(pair, pool, counts)
    for category in sorted(relations, key=lambda name: (-counts[name], name)):
        how, owner = relations[category]
        seen = f" ({counts[category]} objects)" if counts[category] else ""
        sentences.append(f"{pool.name}, {where}: {category!r}{seen} {how} the ID class {owner!r}.")
    return sentences


def _kinds(pair: OodPair, pool: OodPool) -> dict[str, tuple[str, str]]:
    """Return the categories of the pool's dataset whose synset is at or below that of an ID class."""
    dataset = family(pool.dataset)
    if not pair.synsets or dataset not in DATASETS:
        return {}
    of_id, of_ood = synset_map(pair.synsets), synset_map(dataset)
    # Only the synsets above those of the two maps: reading all of WordNet takes seconds.
    graph = open_wordnet().nouns({*of_id.values(), *of_ood.values()})
    kinds: dict[str, tuple[str, str]] = {}
    for name in (candidate for candidate in pair.id_classes if candidate in of_id):
        below = descendants(graph, [of_id[name]]) | {of_id[name]}
        for category, synset in of_ood.items():
            if synset in below:
                kinds.setdefault(category, ("is a kind of", name))
    return kinds
