"""`Splits`: what becomes of one OOD source: start list, automatic stage, replayed decisions, candidates.

Then the automatic steps on columns, and recorded decisions as one parameter of a manifest: which image, which verdict,
for which reason; no more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from curation.benchmarks.findmeifyoucan.pairs import PAIRS, Pair, Pool
from curation.benchmarks.parts import Selection, all_images
from curation.benchmarks.selection import hash_rank
from curation.decisions.decision import Decision, check_decision
from curation.decisions.files import read_decisions
from curation.decisions.replay import Replayed, replay
from curation.decisions.resolution import recorded_form, resolve
from curation.errors import DecisionConflictError, DecisionError, ProtocolError
from curation.manifest.header import DIGEST
from curation.sources.source import Bools, Int64s, Source

_SHOWN = 5
Ids = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Splits:
    """One pool with its splits.

    Attributes
    ----------
    pool : Pool
    sources : mapping of str to Source
        Those that are given, by slot.
    rule : tuple of str or None
        What the start rule lets in; None where there is no rule or no source.
    start : tuple of str or None
        The start list; None where it cannot be had.
    decisions : tuple of Decision
        Those that the pool takes into account.
    outcome : Replayed or None
        None where no split can be had.
    missing : str
        Why no split can be had, ``""`` where they can.
    proposed : mapping of str to tuple of str
        Candidates by split, where they were asked for.
    notes : tuple of str
    """

    pool: Pool
    sources: Mapping[str, Source]
    rule: Ids | None
    start: Ids | None
    decisions: tuple[Decision, ...]
    outcome: Replayed | None
    missing: str = ""
    proposed: Mapping[str, Ids] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def removed(self) -> Ids:
        """Start images that are in neither split."""
        return tuple(self.outcome.removed) if self.outcome else ()

    @property
    def kept(self) -> dict[str, Ids]:
        """Start images by split."""
        return self._by_part(self.outcome.near, self.outcome.far) if self.outcome else self._by_part((), ())

    @property
    def added(self) -> dict[str, Ids]:
        """Accepted candidates by split."""
        if self.outcome is None:
            return self._by_part((), ())
        return self._by_part(self.outcome.added_near, self.outcome.added_far)

    @property
    def shared(self) -> Ids:
        """Images that stand in both splits."""
        if not self.pool.has_near:
            return ()
        near, far = (set(self.images(part)) for part in self.pool.parts)
        return tuple(sorted(near & far))

    def images(self, part: str) -> Ids:
        """Return the ids of a split, sorted."""
        return tuple(sorted({*self.kept[part], *self.added[part]}))

    def missing_of(self, part: str) -> str:
        """Return why a split cannot be had, ``""`` where it can."""
        if self.missing:
            return self.missing
        candidate = self.pool.candidates
        if self.added[part] and candidate not in self.sources:
            return f"needs --source {candidate}=PATH, from which images were added"
        return ""

    def selections(self, part: str) -> list[Selection]:
        """Return where the images of a split lie; an added one that its source lacks is a `ProtocolError`."""
        start, candidate = self.pool.start, self.pool.candidates
        source = self.sources[start]
        kept = positions_in(source, self.kept[part], part, start)
        added = sorted(set(self.added[part]) - set(self.kept[part]))
        if candidate == start:
            both = np.union1d(kept, positions_in(source, added, part, start))
            return [Selection(start, source, both)]
        selected = [Selection(start, source, kept)]
        if added:
            other = self.sources[candidate]
            selected.append(Selection(candidate, other, positions_in(other, added, part, candidate)))
        return selected

    def constraints(self, part: str) -> tuple[set[str], set[str]]:
        """Return the images that a split must contain by the decisions, and those that it must not (spec of 2.3).

        Near must contain what was added as near or kept as near; no split what was removed automatically or moved to
        the other one; far nothing that was removed by hand, which does not touch near.
        """
        images: dict[tuple[str, str], set[str]] = {}
        for one in self.decisions:
            images.setdefault((one.stage, one.action), set()).add(one.image_id)

        def of(*keys: tuple[str, str]) -> set[str]:
            return {image for key in keys for image in images.get(key, ())}

        removed, kept_near = ("auto_override", "remove"), ("auto_override", "keep_near")
        if part == self.pool.near_part:
            return of(("candidate", "add_near"), kept_near), of(removed, ("manual", "to_far"))
        excluded = of(removed, kept_near, ("manual", "remove"), ("manual", "to_near"))
        return of(("candidate", "add_far")), excluded

    def _by_part(self, near: Sequence[str], far: Sequence[str]) -> dict[str, Ids]:
        if self.pool.has_near:
            return {self.pool.near_part: tuple(near), self.pool.far_part: tuple(far)}
        return {self.pool.far_part: tuple(sorted({*near, *far}))}


def split_pool(pair: Pair, pool: Pool, sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Splits:
    """Return what becomes of a pool, as far as its sources are given.

    Raises
    ------
    ProtocolError
        A published start list has images that the rule refuses, or that the source lacks; a decision keeps as near what
        is not in the start list; with ``shared=refuse``, an image is in both splits.
    PresenceOnlyError
        The source of the start list has no boxes.
    """
    rule, start, missing = _start(pair, pool, sources, parameters)
    decisions = decisions_of(parameters["decisions"], pool)
    if start is None:
        return Splits(pool, sources, rule, None, decisions, None, missing)
    if is_pinned_only(parameters["decisions"]):
        missing = "needs --decisions FILE: the manifest pins their digest"
        return Splits(pool, sources, rule, start, decisions, None, missing)
    source = sources[pool.start]
    outcome = replay(
        start,
        remove=_started_with(source, start, pool.remove),
        near=_started_with(source, start, pool.near),
        decisions=decisions,
        where=f"pool {pool.name}",
    )
    splits = Splits(pool, sources, rule, start, decisions, outcome)
    _check_shared(splits, parameters)
    proposed, told = _candidates(pair, splits, parameters) if parameters["candidates"] else ({}, ())
    notes = (*_notes(pool, source, sources, outcome), *_shared_note(splits), *told)
    return replace(splits, proposed=proposed, notes=notes)


def _start(
    pair: Pair, pool: Pool, sources: Mapping[str, Source], parameters: Mapping[str, Any]
) -> tuple[Ids | None, Ids | None, str]:
    """Return what the rule gives, the start list, and why there is none."""
    source = sources.get(pool.start)
    if source is None:
        return None, None, f"needs --source {pool.start}=PATH"
    source.require_objects("A start list")
    ids = source.image_ids
    positions = start_by_rule(source, pair.id_names(pool)) if pool.rule else all_images(source)
    by_rule = tuple(ids[positions].tolist()) if pool.rule else None
    by_hand = parameters["start"] == "rule"
    if pool.published in sources and not by_hand:
        return by_rule, _published(pool, sources, by_rule), ""
    if pool.published in sources:
        raise ProtocolError(
            "A published start list is given and not asked for",
            where=f"--source {pool.published}",
            found="--set start=rule",
            hint="--set start=published",
        )
    own = pair.name not in {one.name for one in PAIRS.values()}
    if own or (by_hand and pool.rule):
        return by_rule, tuple(ids[positions].tolist()), ""
    no_rule = "" if pool.rule else ", for which there is no rule"
    return by_rule, None, f"needs --source {pool.published}=LIST, the published start list{no_rule}"


def _published(pool: Pool, sources: Mapping[str, Source], by_rule: Ids | None) -> Ids:
    listed = tuple(sources[pool.published].image_ids.tolist())
    positions_in(sources[pool.start], listed, f"the list {pool.published}", pool.start)
    outside = sorted(set(listed) - set(by_rule)) if by_rule is not None else []
    if outside:
        raise ProtocolError(
            "The published start list has images that the start rule refuses",
            where=f"--source {pool.published}",
            expected=f"a subset of the {len(by_rule or ())} images without an ID class",
            found=f"{len(outside)} others, the first {', '.join(outside[:3])}",
            hint="is it the list of the other ID set (VOC, BDD100k)?",
        )
    return listed


def _started_with(source: Source, start: Sequence[str], categories: Mapping[str, str]) -> set[str]:
    positions, _ = located(source, start)
    shown = images_with(source, tuple(categories))[positions].tolist()
    return {one for one, has in zip(start, shown, strict=True) if has}


def _notes(pool: Pool, source: Source, sources: Mapping[str, Source], outcome: Replayed) -> tuple[str, ...]:
    named = {"remove": pool.remove, "near": pool.near, "id_names": pool.id_names}
    notes = [f"{pool.name}: {one}" for one in outcome.notes]
    for field_name, names in named.items():
        absent = [name for name in names if name not in set(source.categories.names)]
        if absent:
            notes.append(
                f"{pool.name}: {field_name} names what is no category of the source, without effect: "
                f"{', '.join(absent)}."
            )
    taken = (*outcome.added_near, *outcome.added_far)
    if taken and pool.candidates in sources:
        _, absent = located(sources[pool.candidates], taken)
        if absent:
            raise ProtocolError(
                "Decisions add images that the source of candidates lacks",
                where=f"--source {pool.candidates}",
                expected="every added image",
                found=f"{len(absent)}, the first {', '.join(absent[:3])}",
            )
    return tuple(notes)


def _check_shared(splits: Splits, parameters: Mapping[str, Any]) -> None:
    if splits.shared and parameters["shared"] == "refuse":
        raise ProtocolError(
            "Decisions put an image into the near and into the far split",
            where=f"pool {splits.pool.name}",
            expected="disjoint splits",
            found=", ".join(splits.shared[:_SHOWN]),
            hint="take one of the two decisions back, or --set shared=report to keep the published splits",
        )


def _shared_note(splits: Splits) -> tuple[str, ...]:
    if not splits.shared:
        return ()
    return (
        f"{splits.pool.name}: near and far share {len(splits.shared)} images, by decision: "
        f"{', '.join(splits.shared[:_SHOWN])}.",
    )


def _candidates(pair: Pair, splits: Splits, parameters: Mapping[str, Any]) -> tuple[dict[str, Ids], tuple[str, ...]]:
    """Return the images to show to a reviewer by split, and what they were looked for with."""
    pool = splits.pool
    source = splits.sources.get(pool.candidates)
    if source is None and pool.candidates:
        return {}, (f"{pool.name}: candidates need --source {pool.candidates}=PATH; none are listed.",)
    if source is None or not (pool.wanted_near or pool.wanted_far):
        return {}, (f"{pool.name}: no split wants more categories; no candidates are listed.",)
    start = splits.sources[pool.start]
    counts = [
        category_counts(start, positions_in(start, splits.kept[part], part, pool.start)) if part in splits.kept else {}
        for part in (pool.near_part, pool.far_part)
    ]
    wanted = dict(zip((pool.near_part, pool.far_part), wanted_categories(pool, *counts), strict=True))
    refused = {*pool.remove, *pair.id_names(pool)}
    found: dict[str, Ids] = {}
    for part in pool.parts:
        positions = candidates(
            source,
            wanted[part],
            refused,
            _taken(splits, part, parameters["scan"]),
            most=parameters["candidates"],
            scan=parameters["scan"],
            salt=f"{parameters['salt']}/{part}/",
        )
        found[part] = tuple(source.image_ids[positions].tolist())
    told = "; ".join(f"{part}: {', '.join(names) or 'none'}" for part, names in wanted.items() if part in found)
    return found, (f"{pool.name}: candidates were looked for by the categories {told}.",)


def _taken(splits: Splits, part: str, scan: str) -> set[str]:
    """Return the images that are not to be proposed for a split."""
    start = set(splits.start or ())
    if scan == "official_scan":
        return start | set(splits.added[part])
    return start | {one.image_id for one in splits.decisions}


SCANS = {
    "whole_image": "every annotation of an image is looked at; the first by hash rank",
    "official_scan": "annotations in file order until there are so many candidates: one whose ID class is annotated "
    "later in the file is still among them",
}


def start_by_rule(source: Source, id_names: Collection[str]) -> Int64s:
    """Return the positions of the images without an annotation of an ID class, in file order.

    Crowd regions count as annotations; an image without any annotation is kept (VOS, ``process_coco_ood.py``).

    Raises
    ------
    PresenceOnlyError
        The source has no boxes: a table of image and class misses classes, and would let images in.
    """
    source.require_objects("The start rule")
    return np.flatnonzero(~images_with(source, id_names))


def images_with(source: Source, names: Collection[str]) -> Bools:
    """Return for each image whether it has an annotation of one of some categories, named as the source does."""
    image, category = source.class_pairs()
    chosen = _categories(source, names)
    shown = np.zeros(len(source.images), np.bool_)
    shown[image[chosen[category]]] = True
    return shown


def positions_in(source: Source, ids: Sequence[str], what: str, slot: str) -> Int64s:
    """Return where some images lie in a source; one that does not is a `ProtocolError`."""
    found, absent = located(source, ids)
    if absent:
        raise ProtocolError(
            f"{len(absent)} of the {len(ids)} images of {what} are not in the source",
            where=f"--source {slot}: {source.files[0].name if source.files else source.dataset}",
            expected="every one of them",
            found=", ".join(absent[:3]),
            hint="give the annotations of the whole part of the data set that the list was made from",
        )
    return found


def located(source: Source, ids: Sequence[str]) -> tuple[Int64s, list[str]]:
    """Return the positions of those of the images that a source has, in the order asked for, and the others."""
    asked = set(ids)
    # Open Images has 1.7 million images: only those asked for become keys.
    place = {one: position for position, one in enumerate(source.image_ids.tolist()) if one in asked}
    found = [place[one] for one in ids if one in place]
    return np.array(found, np.int64), [one for one in ids if one not in place]


def category_counts(source: Source, positions: Int64s) -> dict[str, int]:
    """Return how many annotations of each category some images have, by the source's names, zeros included."""
    chosen = np.zeros(len(source.images), np.bool_)
    chosen[positions] = True
    image, category = source.class_pairs()
    counts = np.bincount(category[chosen[image]], minlength=len(source.categories)).tolist()
    return dict(zip(source.categories.names, counts, strict=True))


def wanted_categories(
    pool: Pool, near: Mapping[str, int], far: Mapping[str, int]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the categories that the near and the far split want more images of, in the order of the source.

    Parameters
    ----------
    near, far : mapping of str to int
        Annotations by category of the interim splits, after the manual stage (``get_categories_to_add``). What the far
        split wants, the near one does not.
    """
    for_far = tuple(name for name, n in far.items() if pool.wanted_far and n in pool.wanted_far)
    for_near = tuple(
        name for name, n in near.items() if pool.wanted_near and n in pool.wanted_near and name not in for_far
    )
    return for_near, for_far


def candidates(
    source: Source,
    wanted: Collection[str],
    refused: Collection[str],
    taken: Collection[str],
    *,
    most: int,
    scan: str,
    salt: str,
) -> Int64s:
    """Return the positions of images to show to a reviewer: they have a wanted category and no refused one.

    Parameters
    ----------
    source : Source
    wanted, refused : collection of str
        Categories; those refused are the removed ones and the names of ID classes.
    taken : collection of str
        Image ids never proposed: those of the start list, and those decided upon.
    most : int
        How many at most.
    scan : {"whole_image", "official_scan"}
        See `SCANS`.
    salt : str
        Of the hash ranks under ``whole_image``.

    Returns
    -------
    ndarray of int64
        In the order of their rank, or of their first wanted annotation.
    """
    first_wanted = _first_annotation(source, wanted)
    first_refused = _first_annotation(source, refused)
    held = set(taken)
    free = np.array([one not in held for one in source.image_ids.tolist()], np.bool_)
    if scan == "official_scan":
        return _scanned(first_wanted, first_refused, free, most, _never(source))
    never = _never(source)
    chosen = np.flatnonzero(free & (first_wanted < never) & (first_refused == never))
    return chosen[hash_rank(source.image_ids[chosen].tolist(), salt)[:most]]


def _scanned(first_wanted: Int64s, first_refused: Int64s, free: Bools, most: int, end: int) -> Int64s:
    """Return the candidates that are alive when the scan first has as many as it may."""
    # An annotation that is both wanted and refused discards the image: it never becomes a candidate.
    becomes = np.flatnonzero(free & (first_wanted < first_refused))
    if not len(becomes) or most < 1:
        return becomes[:0]
    born, dead = first_wanted[becomes], first_refused[becomes]
    moments = np.concatenate([born, dead])
    change = np.concatenate([np.ones(len(born), np.int64), -np.ones(len(dead), np.int64)])
    order = np.argsort(moments, kind="stable")
    full = np.flatnonzero(np.cumsum(change[order]) >= most)
    stop = moments[order][full[0]] if len(full) else end - 1
    alive = (born <= stop) & (dead > stop)
    return becomes[alive][np.argsort(born[alive], kind="stable")]


def _first_annotation(source: Source, names: Collection[str]) -> Int64s:
    """Return the place of each image's first annotation of some categories; their number where it has none."""
    image, category = source.class_pairs()
    first = np.full(len(source.images), _never(source), np.int64)
    rows = np.flatnonzero(_categories(source, names)[category])
    # Of repeated indices the last assignment stays, so the rows run backwards.
    first[image[rows[::-1]]] = rows[::-1]
    return first


def _never(source: Source) -> int:
    return len(source.class_pairs()[0])


def _categories(source: Source, names: Collection[str]) -> Bools:
    chosen = set(names)
    return np.array([name in chosen for name in source.categories.names], np.bool_)


_RESOLVE = "curation review summary {} --rule {} --out RESOLVED.jsonl, and build with that file"
_Group = tuple[str, str, str, str, tuple[str, ...]]


def read_recorded(text: str, *, allow_conflicts: bool = False) -> str:
    """Return recorded decisions in the form that a manifest holds, or ``""``, or the digest that pins them.

    The form is JSON: rows ``[dataset, stage, action, reason, [image, …]]``, sorted, images sorted and once. Reviewers
    and dates stay in the decisions file.

    Parameters
    ----------
    text : str
        A file (see `curation.decisions.files.read_decisions`), the form itself, or ``sha256:…`` of it, with which a
        declared manifest says which decisions complete it.
    allow_conflicts : bool
        Take all verdicts of a file that contradict each other, as the authors' code does. Those of the authors' own
        format are always taken, and told (`contradictions`): their published lists contradict each other once.

    Raises
    ------
    MissingFileError
        There is no such file.
    DecisionError, DecisionConflictError, ProtocolError
        It holds no decisions, its last line is cut off, or verdicts contradict each other and may not.
    """
    if not text or re.fullmatch(DIGEST, text):
        return text
    if text.startswith("["):
        return recorded_form(_parsed(text))
    file = read_decisions(Path(text))
    if file.torn:
        raise DecisionError(
            "The last line of the decisions is cut off",
            where=file.name,
            found=ascii(file.torn),
            hint=_RESOLVE.format(file.name, "error"),
        )
    allowed = allow_conflicts or file.format == "selection"
    try:
        resolution = resolve(file.decisions, rule="error", allow_conflicts=allowed)
    except DecisionConflictError as error:
        mended = _RESOLVE.format(file.name, "majority")
        error.hint = f"{mended}; or curation build … --on-error conflicts=keep replays them all"
        raise
    return recorded_form(resolution.decisions)


def read_decisions_file(path: Path, allow_conflicts: bool) -> tuple[str, tuple[str, ...]]:
    """Return a file's decisions as `read_recorded` does, and what `contradictions` tells of them."""
    # A name such as sha256:… or [] would be taken for the decisions themselves.
    text = read_recorded(str(path.absolute()), allow_conflicts=allow_conflicts)
    return text, contradictions(text)


def contradictions(text: str) -> tuple[str, ...]:
    """Return in words the images on which verdicts of one stage differ, in the form of `recorded_form`."""
    if not text or is_pinned_only(text):
        return ()
    return tuple(
        f"{one.image_id} ({one.dataset}, {one.stage}): {' and '.join(action for action, _ in one.votes)}"
        for one in resolve(_parsed(text), allow_conflicts=True).conflicts
    )


def is_pinned_only(text: str) -> bool:
    """Return whether decisions are named by their digest and not available."""
    return bool(re.fullmatch(DIGEST, text))


def decisions_of(text: str, pool: Pool) -> tuple[Decision, ...]:
    """Return the decisions that speak of a pool, or of one of its splits, and that the pool takes into account."""
    return tuple(one for one in _speaking(text, pool) if _is_heard(one, pool))


def disregarded(text: str, pool: Pool) -> int:
    """Return the number of decisions that speak of a pool and that it does not take into account."""
    return sum(not _is_heard(one, pool) for one in _speaking(text, pool))


def unheard_datasets(text: str, pools: Sequence[Pool]) -> dict[str, int]:
    """Return the number of decisions by data set that speak of none of some pools."""
    heard = {name for pool in pools for name in (pool.name, *pool.parts)}
    counts: dict[str, int] = {}
    if text and not is_pinned_only(text):
        for one in _parsed(text):
            if one.dataset not in heard:
                counts[one.dataset] = counts.get(one.dataset, 0) + 1
    return dict(sorted(counts.items()))


def _speaking(text: str, pool: Pool) -> list[Decision]:
    if not text or is_pinned_only(text):
        return []
    return [one for one in _parsed(text) if one.dataset in (pool.name, *pool.parts)]


def _is_heard(one: Decision, pool: Pool) -> bool:
    is_removal = (one.stage, one.action) == ("manual", "remove")
    return not pool.reasons or (is_removal and one.reason in pool.reasons)


def _parsed(text: str) -> list[Decision]:
    try:
        groups = msgspec.convert(json.loads(text), type=tuple[_Group, ...])
        decisions = [
            msgspec.convert(
                {"image_id": image, "dataset": dataset, "stage": stage, "action": action, "reason": reason},
                type=Decision,
            )
            for dataset, stage, action, reason, images in groups
            for image in images
        ]
    except (ValueError, RecursionError) as error:
        raise ProtocolError(
            "The decisions are not in the form that a manifest holds",
            where="--set decisions",
            expected="[[dataset, stage, action, reason, [image, …]], …]",
            found=str(error)[:200],
            hint="--decisions FILE reads a file",
        ) from None
    for one in decisions:
        check_decision(one, where="--set decisions")
    return decisions
