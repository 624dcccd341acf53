"""Decisions applied to any manifest: images leave a part, or move between near and far; the result is a new version."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from curation.canonical import sha256_of_lines
from curation.decisions.cleaned_lists import Coverage, Variant, as_cleaned, coverage_of, left_out_by
from curation.decisions.decision import Action, Decision, Stage
from curation.decisions.replay import Ineffective
from curation.decisions.resolution import Resolution
from curation.errors import DecisionError, UsageError
from curation.manifest.header import Figure, Header, PartEntry, Rule, Supersedes, classes_in
from curation.manifest.manifest import Manifest
from curation.manifest.overlay import Overlay
from curation.manifest.soundness import PART_NAME, VERSION, check_header
from curation.manifest.views import count_annotated, count_objects, locate_images
from curation.sources.source import Source

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Staleness:
    """What of some decisions does not fit a manifest. Images are sorted, each once.

    Attributes
    ----------
    gone : tuple of str
        Images that stand in no part that the decision speaks of, nor, for candidates, in any part or available source.
    unheard : dict of str to int
        Decisions by data set that speak of no part of the manifest.
    other_manifests : dict of str to int
        Decisions by the digest of the manifest that they were made on, where it is another one.
    """

    gone: tuple[str, ...]
    unheard: dict[str, int]
    other_manifests: dict[str, int]

    def __bool__(self) -> bool:
        """Whether anything is stale."""
        return bool(self.gone or self.unheard or self.other_manifests)

    def notes(self) -> list[str]:
        """Return one sentence for each kind of staleness."""
        told = []
        if self.gone:
            more = ", …" if len(self.gone) > _SHOWN else ""
            first = ", ".join(self.gone[:_SHOWN])
            told.append(f"{len(self.gone)} images are in no part that their decisions speak of: {first}{more}.")
        told += [f"{n} decisions speak of {name!r}, which is no part." for name, n in self.unheard.items()]
        told += [f"{n} decisions were made on {digest}." for digest, n in self.other_manifests.items()]
        return told


def find_stale(
    manifest: Manifest, decisions: Iterable[Decision], sources: Mapping[str, Source] | None = None
) -> Staleness:
    """Return which decisions are stale on a manifest.

    Parameters
    ----------
    sources : mapping of str to Source, optional
        Where candidates that stand in no part may be.
    """
    rows = list(decisions)
    listed = {name: set(ids) for name, ids in manifest.lists.items()}
    anywhere = set().union(*listed.values())
    spoken = {dataset: parts_spoken_of(manifest.header, dataset) for dataset in {one.dataset for one in rows}}
    gone = set()
    for one in rows:
        places = [listed.get(part, set()) for part in spoken[one.dataset]]
        is_candidate = one.stage == "candidate" and one.image_id in anywhere
        if spoken[one.dataset] and not is_candidate and not any(one.image_id in place for place in places):
            gone.add(one)
    found = images_in(sources or {}, {one.image_id for one in gone if one.stage == "candidate"})
    unheard = Counter(one.dataset for one in rows if not spoken[one.dataset])
    others = Counter(one.manifest for one in rows if one.manifest not in ("", manifest.digest))
    return Staleness(
        gone=tuple(sorted({one.image_id for one in gone} - set(found))),
        unheard=dict(sorted(unheard.items())),
        other_manifests=dict(sorted(others.items())),
    )


def parts_spoken_of(header: Header, dataset: str) -> tuple[str, ...]:
    """Return the parts that a decision's `dataset` means, in the order of the header.

    The part of that name; else the parts of a pool (``coco-near`` and ``coco-far`` of ``coco``); else those with a
    source of that data set or namespace. ``""`` means all.
    """
    names = [part.name for part in header.parts]
    if dataset in names:
        return (dataset,)
    if not dataset:
        return tuple(names)
    if pool := [name for name in names if name.startswith(f"{dataset}-")]:
        return tuple(pool)
    slots = {one.name for one in header.sources if dataset in (one.dataset, one.namespace)}
    return tuple(part.name for part in header.parts if slots & set(part.sources))


def images_in(sources: Mapping[str, Source], images: Iterable[str]) -> dict[str, str]:
    """Return for those of some images that a source holds the name of the first that does."""
    asked = set(images)
    found: dict[str, str] = {}
    for name, source in sources.items():
        prefix = f"{source.namespace}:"
        if any(image.startswith(prefix) for image in asked):
            held = asked.intersection(f"{prefix}{native}" for native in source.images.native.tolist())
            found |= {image: name for image in sorted(held) if image not in found}
    return found


def changed_entry(
    header: Header,
    entry: PartEntry,
    ids: Sequence[str],
    removed: Collection[str],
    added: Collection[str],
    sources: Mapping[str, Source],
    overlay: Overlay | None = None,
) -> PartEntry:
    """Return the entry of a part with another list: its length, digest, and counts where its sources are given.

    Raises
    ------
    ManifestError
        An image is in none of the part's sources, or a class has no role in the manifest.
    """
    annotated, boxes = count_part(Manifest(header, {entry.name: tuple(ids)}, overlay), entry, sources)
    return msgspec.structs.replace(
        entry,
        selection=f"{entry.selection} By decision {len(removed)} images left and {len(added)} joined.",
        images=len(ids),
        annotated_images=annotated,
        boxes=boxes,
        sha256=sha256_of_lines(ids),
        repeats=len(ids) - len(set(ids)),
    )


def changed_figures(header: Header, parts: Sequence[PartEntry], changed: Collection[str]) -> tuple[Figure, ...]:
    """Return the figures of a manifest after some parts have changed.

    Numbers of images are those of the new lists. What else cannot be told to belong to unchanged parts alone is no
    longer obtained: its name does not begin with that of such a part.
    """
    if not changed:
        return header.figures
    images = {part.name: part.images for part in parts}
    unchanged = tuple(f"{name}." for name in images if name not in changed)
    return tuple(
        figure if figure.name.startswith(unchanged) else _after_review(figure, header.version, images)
        for figure in header.figures
    )


def _after_review(figure: Figure, version: str, images: Mapping[str, int | None]) -> Figure:
    part, _, what = figure.name.rpartition(".")
    if part in images and what == "images":
        obtained, why = images[part], "the list was changed by decisions of reviewers"
        same = obtained == figure.paper
        return msgspec.structs.replace(figure, obtained=obtained, explanation="" if same else why)
    why = f"not counted since the lists of version {version} were changed by decisions of reviewers"
    return msgspec.structs.replace(figure, obtained=None, explanation=why)


def count_part(
    manifest: Manifest, entry: PartEntry, sources: Mapping[str, Source]
) -> tuple[int | None, dict[str, int]]:
    """Return annotated images and objects by role of a part; None and nothing where a source is not given."""
    if not set(entry.sources) <= set(sources):
        return None, {}
    header = msgspec.structs.replace(manifest.header, parts=(msgspec.structs.replace(entry, subset_of=""),))
    once = Manifest(header, {entry.name: tuple(dict.fromkeys(manifest.lists[entry.name]))}, manifest.overlay)
    images = locate_images(once, entry.name, sources)
    if any(one.objects is None for one in images.sources):
        return count_annotated(images), {}
    boxes, annotated = count_objects(classes_in(header, entry), entry.view, images)
    return annotated, boxes


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
        self.overlay = manifest.overlay
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
            change = Change(name, tuple(sorted(before - self.now[name])), tuple(sorted(self.now[name] - before)))
            if change.removed or change.added:
                found.append(change)
        return tuple(found)

    def ordered(self, part: str) -> tuple[str, ...]:
        """Return the images of a part in its order; what joins a list whose order carries meaning comes last."""
        if self.entries[part].order == "code_point":
            return tuple(sorted(self.now[part]))
        kept = [one for one in self.before[part] if one in self.now[part]]
        return (*kept, *sorted(self.now[part] - set(kept)))


@dataclass(frozen=True, slots=True)
class Application:
    """A new version of a manifest, what changed, and what did not act.

    Attributes
    ----------
    manifest : Manifest
    changes : tuple of Change
        In the order of the parts; unchanged ones not among them.
    ineffective : tuple of Ineffective
        Decisions that found their image neither where they could take it from nor where they would put it.
    staleness : Staleness
    shared : tuple of str
        Images that stand in the near and in the far part.
    coverage : tuple of Coverage
        How many images of each part that decisions speak of were judged, before anything was left out.
    """

    manifest: Manifest
    changes: tuple[Change, ...]
    ineffective: tuple[Ineffective, ...]
    staleness: Staleness
    shared: tuple[str, ...]
    coverage: tuple[Coverage, ...]


def apply_decisions(
    manifest: Manifest,
    resolution: Resolution,
    *,
    version: str,
    near: Mapping[str, str] | None = None,
    far: Mapping[str, str] | None = None,
    sources: Mapping[str, Source] | None = None,
    reason: str = "",
    strict: bool = False,
    variant: Variant | None = None,
    name: str = "",
) -> Application:
    """Return a new version of a manifest with decisions carried out; its header pins their digest.

    ``remove`` takes an image out of the parts that the decision speaks of (its part; of a pool the near and the far
    part, where they are named; see `curation.decisions.application.parts_spoken_of`), and out of their subsets.
    ``to_near`` and ``keep_near`` move it from the far part, or else from the one part that the decision names, to the
    near part; ``to_far`` the other way. ``add_near`` and ``add_far`` add it. A near or far part that does not exist is
    made like the part that its first image comes from. Order of decisions and repeats change nothing.

    Parameters
    ----------
    resolution : Resolution
    version : str
        Greater than that of `manifest`.
    near, far : mapping of str to str, optional
        Part that is near, and far, by the `dataset` of decisions; under ``""`` for all others.
    sources : mapping of str to Source, optional
        By the names in the header. Parts that change are counted anew where their sources are here; else their counts
        are dropped.
    reason : str
        Why there is a new version, for `supersedes`.
    strict : bool
        Refuse stale decisions, undecided conflicts, and images in both near and far.
    variant : {"minus-remove", "minus-remove-and-unsure", "judged-keep-only"}, optional
        Make a list of its own, cleaned in this way, that supersedes none: its name, its notes and its rule say what
        is left out, and how many images were judged.
    name : str
        Of a list of its own, in place of the one that is made.

    Raises
    ------
    DecisionError
        See `strict`; or a list that must contain another would no longer do so.
    MissingListError
        A list of the manifest is not available.
    UsageError
        The version is not greater, or decisions need a near or far part that is not named.
    """
    _check_version(version, manifest, must_be_later=variant is None)
    for part in manifest.header.parts:
        manifest.ids(part.name)
    staleness = find_stale(manifest, resolution.decisions, sources)
    work = PartSets(manifest, dict(near or {}), dict(far or {}), dict(sources or {}))
    coverage = coverage_on(manifest, resolution)
    work.replay(resolution.decisions)
    if variant is not None:
        _require_judged(manifest, coverage, staleness)
        for one in coverage:
            work.now[one.part] -= left_out_by(variant, one, work.now[one.part])
    work.keep_subsets()
    shared = work.shared()
    if strict:
        _refuse_doubtful(resolution, staleness, shared)
    changes = work.changes()
    made = _reviewed(work, changes, resolution, version, reason)
    if variant is not None:
        reviewers = sorted({one.reviewer for one in resolution.decisions if one.reviewer})
        made = as_cleaned(made, manifest, coverage, variant, name=name, reviewers=reviewers)
        check_header(made.header, where=made.header.name)
    return Application(made, changes, tuple(work.ineffective), staleness, shared, coverage)


def next_version(manifest: Manifest, version: str, reason: str) -> Application:
    """Return a version whose lists are those of the manifest, for what else reviewers change.

    Raises
    ------
    MissingListError
        A list of the manifest is not available.
    UsageError
        The version is not greater.
    """
    _check_version(version, manifest, must_be_later=True)
    for part in manifest.header.parts:
        manifest.ids(part.name)
    made = msgspec.structs.replace(
        manifest.header,
        version=version,
        origin="reviewed",
        supersedes=Supersedes(version=manifest.header.version, digest=manifest.digest, reason=reason),
        completes=None,
    )
    return Application(replace(manifest, header=made), (), (), Staleness((), {}, {}), (), ())


def _require_judged(manifest: Manifest, coverage: Sequence[Coverage], staleness: Staleness) -> None:
    """Refuse verdicts of which none is on an image: a list that they leave as it is would pass for a cleaned one."""
    if any(one.total for one in coverage):
        return
    example = next((ids[0] for ids in manifest.lists.values() if ids), "no image")
    raise DecisionError(
        "No verdict is on an image of the list",
        where=f"{manifest.header.name} {manifest.header.version}",
        expected=f"decisions on images such as {example}",
        found=" ".join(staleness.notes())[:300] or "no decision",
        hint="curation review summary FILE … --dataset NAME, with the data set of the list",
    )


def coverage_on(manifest: Manifest, resolution: Resolution) -> tuple[Coverage, ...]:
    """Return how far verdicts cover each part of a manifest that they speak of."""
    datasets = {one.dataset for one in resolution.decisions} | {one.dataset for one in resolution.undecided}
    spoken = {dataset: parts_spoken_of(manifest.header, dataset) for dataset in datasets}
    return coverage_of(manifest.lists, spoken, resolution)


def _reviewed(work: PartSets, changes: Sequence[Change], resolution: Resolution, version: str, reason: str) -> Manifest:
    """Return the new version: changed lists in their order, counts anew, provenance."""
    header = work.header
    changed = {one.part: one for one in changes}
    lists = {name: work.ordered(name) if name in changed else work.before[name] for name in work.entries}
    parts = tuple(
        changed_entry(
            header, entry, lists[name], changed[name].removed, changed[name].added, work.sources, work.overlay
        )
        if name in changed
        else entry
        for name, entry in work.entries.items()
    )
    base = Manifest(header, {})
    review = {
        "review_rule": resolution.rule,
        "review_near": _named(work.near),
        "review_far": _named(work.far),
    }
    rule = Rule(
        protocol=header.rule.protocol,
        algorithm_version=header.rule.algorithm_version,
        parameters=header.rule.parameters | review,
    )
    made = msgspec.structs.replace(
        header,
        version=version,
        origin="reviewed",
        parts=parts,
        rule=rule,
        figures=changed_figures(header, parts, set(changed)),
        notes=(*header.notes, _note(resolution, changes, header.version)),
        supersedes=Supersedes(version=header.version, digest=base.digest, reason=reason or "decisions of reviewers"),
        decisions=resolution.digest,
        completes=None,
    )
    return Manifest(made, lists, work.overlay)


def _named(parts: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{dataset}={part}" if dataset else part for dataset, part in sorted(parts.items()))


def _note(resolution: Resolution, changes: Sequence[Change], version: str) -> str:
    told = [f"{one.part} lost {len(one.removed)} and gained {len(one.added)} images" for one in changes]
    conflicts = f"{len(resolution.conflicts)} conflicts, rule {resolution.rule}"
    if resolution.undecided:
        conflicts += f", {len(resolution.undecided)} undecided"
    return (
        f"Reviewed from version {version}: {len(resolution.decisions)} decisions ({conflicts}); "
        f"{'; '.join(told) or 'no list changed'}."
    )


def _check_version(version: str, manifest: Manifest, *, must_be_later: bool) -> None:
    base = manifest.header.version
    if not re.fullmatch(VERSION, version) or (must_be_later and _numbers(version) <= _numbers(base)):
        raise UsageError(
            "The version is not greater than that of the manifest" if must_be_later else "The version is malformed",
            where="--version",
            expected=f"MAJOR.MINOR.PATCH behind {base}" if must_be_later else "MAJOR.MINOR.PATCH",
            found=repr(version[:40]),
            hint="other lists deserve a new major version: `curation diff` says which step" if must_be_later else None,
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in version.split("."))


def _refuse_doubtful(resolution: Resolution, staleness: Staleness, shared: Sequence[str]) -> None:
    problems = [*staleness.notes(), *(f"undecided: {one.text()}." for one in resolution.undecided[:_SHOWN])]
    if shared:
        problems.append(f"{len(shared)} images would be near and far: {', '.join(shared[:_SHOWN])}.")
    if problems:
        raise DecisionError(
            "The decisions are not beyond doubt",
            found=" ".join(problems),
            hint="mend them, or leave out --strict",
        )
