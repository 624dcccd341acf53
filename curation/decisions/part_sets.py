"""`PartSets`: the images of a manifest's parts while decisions take them out, move them and add them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import msgspec

from curation.decisions.decision import Action, Decision, Stage
from curation.decisions.replay import Ineffective
from curation.decisions.staleness import images_in, parts_spoken_of
from curation.errors import DecisionError, UsageError
from curation.manifest.header import PartEntry
from curation.manifest.manifest import PART_NAME, Manifest
from curation.sources.source import Source

_NEAR: tuple[Action, ...] = ("keep_near", "to_near", "add_near")
_ORDER: tuple[tuple[Stage, Action], ...] = (
    ("auto_override", "remove"),
    ("manual", "remove"),
    ("auto_override", "keep_near"),
    ("manual", "to_near"),
    ("manual", "to_far"),
    ("candidate", "add_near"),
    ("candidate", "add_far"),
)
"""Removals first: what conflicting verdicts remove and move is removed, however often that is done."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one part: ids taken out and put in, sorted."""

    part: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


class PartSets:
    """The images of every part while decisions change them.

    Parameters
    ----------
    manifest : Manifest
        With all its lists.
    near, far : dict of str to str
        See `curation.decisions.application.apply_decisions`.
    sources : dict of str to Source

    Attributes
    ----------
    entries : dict of str to PartEntry
        Those of the manifest, then those made.
    before : dict of str to tuple of str
        Lists of the manifest; of parts that were made, empty.
    now : dict of str to set of str
    ineffective : list of Ineffective
        Decisions that found no image to act on.
    """

    def __init__(
        self, manifest: Manifest, near: dict[str, str], far: dict[str, str], sources: dict[str, Source]
    ) -> None:
        self.header = manifest.header
        self.near, self.far, self.sources = near, far, sources
        self.entries: dict[str, PartEntry] = {part.name: part for part in manifest.header.parts}
        self.before: dict[str, tuple[str, ...]] = {name: manifest.lists[name] for name in self.entries}
        self.now = {name: set(ids) for name, ids in self.before.items()}
        self.ineffective: list[Ineffective] = []
        for name in (*near.values(), *far.values()):
            if not re.fullmatch(PART_NAME, name):
                raise UsageError("A part has no such name", expected=PART_NAME, found=repr(name[:80]))

    def replay(self, decisions: Iterable[Decision]) -> None:
        """Carry out decisions: removals, moves to near, moves to far, additions; each as one operation on sets."""
        asked: dict[tuple[Stage, Action], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for one in decisions:
            asked[one.stage, one.action][one.dataset].add(one.image_id)
        for stage, action in _ORDER:
            missed: set[str] = set()
            for dataset, images in sorted(asked[stage, action].items()):
                if parts_spoken_of(self.header, dataset):
                    missed |= self._act(stage, action, dataset, images)
            if missed:
                why = "have no image to act on"
                self.ineffective.append(Ineffective(stage, action, why, tuple(sorted(missed))))

    def _act(self, stage: Stage, action: Action, dataset: str, images: set[str]) -> set[str]:
        """Carry out one action on some images and return those that it did not find."""
        if action == "remove":
            return self._remove(dataset, images)
        target, other = self._near_and_far(action, dataset)
        if stage == "candidate":
            return self._add(target, images)
        return self._move(dataset, images, target, other)

    def _remove(self, dataset: str, images: set[str]) -> set[str]:
        missed = set(images)
        for name in self._reviewed_parts(dataset):
            missed -= self.now[name]
            self.now[name] -= images
        return missed

    def _reviewed_parts(self, dataset: str) -> tuple[str, ...]:
        """Return the parts that removals act on: of a pool whose near and far are named, those two alone."""
        near, far = self._named_for(dataset)
        named = tuple(name for name in (near, far) if name in self.now)
        pool = dataset not in self.entries and dataset != ""
        return named if pool and named else parts_spoken_of(self.header, dataset)

    def _named_for(self, dataset: str) -> tuple[str, str]:
        default = self.near.get("", ""), self.far.get("", "")
        return self.near.get(dataset, default[0]), self.far.get(dataset, default[1])

    def _move(self, dataset: str, images: set[str], target: str, other: str) -> set[str]:
        origins = [name for name in (other, dataset) if name in self.now and name != target]
        missed = images - self.now.get(target, set())
        for name in dict.fromkeys(origins):
            moved = missed & self.now[name]
            if moved:
                self._put(target, moved, name)
                self.now[name] -= moved
                missed -= moved
        return missed

    def _add(self, target: str, images: set[str]) -> set[str]:
        missed = images - self.now.get(target, set())
        # Where images stood before anything was removed: a candidate may come from a part that lost it.
        for name, ids in list(self.before.items()):
            if found := missed.intersection(ids):
                self._put(target, found, name)
                missed -= found
        for image, slot in sorted(images_in(self.sources, missed).items()):
            self._put(target, {image}, "", slot)
            missed.discard(image)
        return missed

    def _put(self, target: str, images: Collection[str], origin: str, slot: str = "") -> None:
        """Put images into a part, made like their origin where it is new, whose sources then hold them."""
        if target not in self.entries:
            if not origin:
                raise UsageError(
                    f"The part {target!r} does not exist, and no part shows how to make it",
                    expected=", ".join(self.entries),
                )
            selection = f"By decision, from {origin}."
            self.entries[target] = msgspec.structs.replace(
                self.entries[origin], name=target, selection=selection, subset_of="", repeats=0
            )
            self.before[target], self.now[target] = (), set()
        self.now[target] |= set(images)
        slots = {slot} if slot else self._slots_of(images, self.entries[origin])
        entry = self.entries[target]
        more = [one.name for one in self.header.sources if one.name in slots - set(entry.sources)]
        self.entries[target] = msgspec.structs.replace(entry, sources=(*entry.sources, *more))

    def _slots_of(self, images: Collection[str], origin: PartEntry) -> set[str]:
        namespaces = {image.partition(":")[0] for image in images}
        entries = {one.name: one for one in self.header.sources}
        slots = {slot for slot in origin.sources if entries[slot].namespace in namespaces}
        if slots <= set(self.sources):
            return set(images_in({slot: self.sources[slot] for slot in sorted(slots)}, images).values())
        return slots

    def _near_and_far(self, action: Action, dataset: str) -> tuple[str, str]:
        """Return the part that an action puts images into, and the opposite one, ``""`` where it is not named."""
        near, far = self._named_for(dataset)
        target, other = (near, far) if action in _NEAR else (far, near)
        if not target:
            option = "--near" if action in _NEAR else "--far"
            raise UsageError(
                f"Decisions {action} of {dataset or 'all parts'} need the name of a part",
                expected=f"one of {', '.join(self.entries)}, or a new one",
                hint=f"{option} PART",
            )
        if target == other:
            raise UsageError("The near and the far part are the same", found=target)
        return target, other

    def keep_subsets(self) -> None:
        """Take what a part lost out of its subsets; an image put into a subset alone is an error."""
        for _ in self.entries:
            for name, entry in self.entries.items():
                if entry.subset_of:
                    lost = set(self.before[entry.subset_of]) - self.now[entry.subset_of]
                    self.now[name] -= lost & set(self.before[name])
        for name, entry in self.entries.items():
            outside = self.now[name] - self.now[entry.subset_of] if entry.subset_of else set()
            if outside:
                raise DecisionError(
                    f"Part {name!r} would hold images that {entry.subset_of!r}, which contains it, does not",
                    where=f"{self.header.name} {self.header.version}",
                    found=f"{len(outside)}, the first {min(outside)}",
                    hint="choose another part for --near or --far",
                )

    def shared(self) -> tuple[str, ...]:
        """Return the images that stand both in a near part and in the far part of the same decisions."""
        both: set[str] = set()
        for dataset in {*self.near, *self.far}:
            near, far = self._named_for(dataset)
            both |= self.now.get(near, set()) & self.now.get(far, set())
        return tuple(sorted(both))

    def changes(self) -> tuple[Change, ...]:
        """Return what became of each part that changed, in the order of the parts, new ones last."""
        found = []
        for name in self.entries:
            before = set(self.before[name])
            change = Change(
                name, tuple(sorted(before - self.now[name])), tuple(sorted(self.now[name] - before))
            )
            if change.removed or change.added:
                found.append(change)
        return tuple(found)

    def ordered(self, part: str) -> tuple[str, ...]:
        """Return the images of a part in its order; what joins a list whose order carries meaning comes last."""
        if self.entries[part].order == "code_point":
            return tuple(sorted(self.now[part]))
        kept = [one for one in self.before[part] if one in self.now[part]]
        return (*kept, *sorted(self.now[part] - set(kept)))
