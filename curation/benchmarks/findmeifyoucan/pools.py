"""`Splits`: what becomes of one OOD source: start list, automatic stage, replayed decisions, candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from curation.benchmarks.findmeifyoucan.decisions import decisions_of, is_pinned_only
from curation.benchmarks.findmeifyoucan.pairs import PAIRS, Pair, Pool
from curation.benchmarks.findmeifyoucan.rules import (
    candidates,
    category_counts,
    images_with,
    located,
    positions_in,
    start_by_rule,
    wanted_categories,
)
from curation.benchmarks.parts import Selection, all_images
from curation.decisions.decision import Decision
from curation.decisions.replay import Replayed, replay
from curation.errors import ProtocolError
from curation.sources.source import Source

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
