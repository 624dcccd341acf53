"""`apply_decisions`: remove images from the parts of a manifest, or move them between near and far: a new version."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import msgspec

from curation.core.canonical import sha256_of_lines
from curation.core.errors import DecisionError, UsageError
from curation.core.tables import grouped
from curation.core.wording import counted, examples, slug
from curation.manifest.header import (
    PART_NAME,
    VERSION,
    Figure,
    Header,
    ParameterValue,
    PartEntry,
    Supersedes,
    classes_in,
    version_numbers,
)
from curation.manifest.manifest import Manifest
from curation.manifest.validation import check_header
from curation.manifest.views import count_annotated, locate_images, select_objects
from curation.review.decisions.decision import Action, Decision, Stage
from curation.review.decisions.resolution import Resolution
from curation.sources.source import Source

_SHOWN = 3


Variant = Literal["minus-remove", "minus-remove-and-unsure", "judged-keep-only"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)

UNJUDGED = "Unjudged is not clean"
"""Note on every result from which decisions removed images."""
FOR_WHOM = "A verdict holds for the ID classes that its reviewer had in mind, not for others."


@dataclass(frozen=True, slots=True)
class Coverage:
    """The decisions on the images of a part, each image once.

    Attributes
    ----------
    judged : dict of str to list of str
        Images by action, in the order of the part: ``remove`` if a current decision removes the image, else ``unsure``
        if decisions differ and no rule decides, else the action.
    """

    part: str
    images: int
    judged: Mapping[str, list[str]]

    def of(self, action: str) -> int:
        """Return the number of images with an action."""
        return len(self.judged.get(action, ()))

    @property
    def total(self) -> int:
        """Number of judged images."""
        return sum(map(len, self.judged.values()))

    @property
    def unjudged(self) -> int:
        """Number of unjudged images."""
        return self.images - self.total

    def left(self, variant: Variant) -> int:
        """Return the number of images of a variant of the list."""
        if variant == "judged-keep-only":
            return self.of("keep")
        unsure = self.of("unsure") if variant == "minus-remove-and-unsure" else 0
        return self.images - self.of("remove") - unsure

    def data(self) -> dict[str, str | int]:
        """Return the counts as plain data."""
        return {
            "part": self.part,
            "images": self.images,
            "judged": self.total,
            "unjudged": self.unjudged,
            **{action: self.of(action) for action in ("keep", "remove", "unsure")},
            **{variant: self.left(variant) for variant in VARIANTS},
        }

    def text(self) -> str:
        """Return the counts as one sentence."""
        counts = ", ".join(f"{len(images):,} {action}" for action, images in sorted(self.judged.items()))
        return (
            f"{UNJUDGED}: {self.total:,} of {self.images:,} images of {self.part} were judged ({counts or 'none'}), "
            f"{self.unjudged:,} were not."
        )


def parts_spoken_of(header: Header, dataset: str) -> tuple[str, ...]:
    """Return the parts that a decision's `dataset` refers to, in the order of the header.

    The part of that name; else the parts of a pool (``coco-near`` and ``coco-far`` of ``coco``); else those with a
    source of that data set or namespace. ``""`` means all.
    """
    names = tuple(part.name for part in header.parts)
    if dataset in names:
        return (dataset,)
    if not dataset:
        return names
    if pool := tuple(name for name in names if name.startswith(f"{dataset}-")):
        return pool
    slots = {source.name for source in header.sources if dataset in (source.dataset, source.namespace)}
    return tuple(part.name for part in header.parts if slots & set(part.sources))


def coverage_on(manifest: Manifest, resolution: Resolution) -> tuple[Coverage, ...]:
    """Return the coverage of each part that decisions apply to, without candidates for addition."""
    datasets = {row.dataset for row in resolution.decisions} | {row.dataset for row in resolution.undecided}
    spoken = {dataset: parts_spoken_of(manifest.header, dataset) for dataset in datasets}
    unsure = [(row.dataset, row.image_id, "unsure") for row in resolution.undecided]
    decided = [(row.dataset, row.image_id, row.action) for row in resolution.decisions if row.stage != "candidate"]
    # The last entry counts: a decision overrides an open conflict, and a removal overrides any other decision.
    action_of = {
        (part, image): action
        for dataset, image, action in [*unsure, *sorted(decided, key=lambda row: row[2] == "remove")]
        for part in spoken[dataset]
    }
    coverage = []
    for part, ids in manifest.lists.items():
        if any(part in parts for parts in spoken.values()):
            images = dict.fromkeys(ids)
            judged = grouped((id_ for id_ in images if (part, id_) in action_of), lambda id_: action_of[part, id_])  # noqa: B023
            coverage.append(Coverage(part, len(images), judged))
    return tuple(coverage)


def left_out_by(variant: Variant, coverage: Coverage, now: Collection[str]) -> set[str]:
    """Return the images that a variant leaves out of a part, in addition to those that decisions remove."""
    if variant == "minus-remove":
        return set()
    if variant == "minus-remove-and-unsure":
        return set(coverage.judged.get("unsure", ()))
    return set(now) - set(coverage.judged.get("keep", ()))


def as_cleaned(
    made: Manifest,
    base: Manifest,
    coverage: Sequence[Coverage],
    variant: Variant,
    *,
    name: str,
    reviewers: Sequence[str],
) -> Manifest:
    """Return a reviewed manifest as a separate list, whose name and notes state what was judged and left out.

    Unjudged is not clean: if a reviewer judged 373 of 5,160 images and removed 72, then 4,787 of the remaining 5,088
    images are still unjudged.

    Parameters
    ----------
    made : Manifest
        The reviewed manifest, without the images left out.
    base : Manifest
        The original manifest, which is not superseded.
    name : str
        ``""`` for the name of `base`, the reviewer and the variant, such as ``textures-ninco-minus-72``.
    """
    header = made.header
    review_parameters: dict[str, ParameterValue] = {
        "review_variant": variant,
        "review_of": (f"{base.header.name}@{base.header.version}", base.digest),
        "review_judged": tuple(f"{row.part}={row.total}" for row in coverage),
        "review_unjudged": tuple(f"{row.part}={row.unjudged}" for row in coverage),
    }
    removed, unsure, to_keep = (sum(row.of(action) for row in coverage) for action in ("remove", "unsure", "keep"))
    without = f"without {removed:,} images removed"
    ending, words = {
        "minus-remove": (f"minus-{removed}", without),
        "minus-remove-and-unsure": (f"minus-{removed}-and-{unsure}-unsure", f"{without} and {unsure:,} unsure ones"),
        "judged-keep-only": (f"judged-keep-{to_keep}", f"the {to_keep:,} images judged to stay"),
    }[variant]
    meaning = "This list is not clean: what the verdicts remove is gone, and images that nobody judged are in it."
    if variant == "judged-keep-only":
        meaning = (
            "Every image left in a judged part was judged to stay: it is clean by these verdicts, and by no others."
        )
    who = ", ".join(reviewers) or "reviewers who are not named"
    by = slug(reviewers[0], "-") if len(reviewers) == 1 else ""
    return Manifest(
        msgspec.structs.replace(
            header,
            name=name or f"{base.header.name}-{by or 'reviewed'}-{ending}",
            title=f"{header.title}: {words} by verdicts of {who}",
            rule=msgspec.structs.replace(header.rule, parameters=header.rule.parameters | review_parameters),
            notes=(*header.notes, *(row.text() for row in coverage), meaning, FOR_WHOM),
            supersedes=None,
        ),
        made.lists,
    )


def judged_counts(header: Header) -> dict[str, int]:
    """Return the number of judged images of each part that a cleaned list states; empty for other manifests."""
    entries = header.rule.parameters.get("review_judged")
    texts = [str(text).rpartition("=") for text in entries] if isinstance(entries, tuple) else []
    return {part: int(count) for part, _, count in texts if count.isascii() and count.isdigit() and len(count) < 19}


@dataclass(frozen=True, slots=True)
class Staleness:
    """Decisions that do not fit a manifest. Images are sorted, each once.

    Attributes
    ----------
    gone : tuple of str
        Images in no part that the decision applies to, nor, for candidates, in any part or available source.
    unmatched_datasets : dict of str to int
        Decisions by data set that apply to no part of the manifest.
    other_manifests : dict of str to int
        Decisions made on another manifest, by its digest.
    """

    gone: tuple[str, ...]
    unmatched_datasets: dict[str, int]
    other_manifests: dict[str, int]

    def __bool__(self) -> bool:
        """Return whether any decision is stale."""
        return bool(self.gone or self.unmatched_datasets or self.other_manifests)

    def notes(self) -> list[str]:
        """Return one sentence for each kind of staleness."""
        first, gone, others = examples(self.gone), len(self.gone), self.other_manifests.items()
        return [
            *([f"{counted(gone, 'image')} in no part that their decisions apply to: {first}."] if gone else []),
            *(f"{counted(n, 'decision')} on {name!r}, not a part." for name, n in self.unmatched_datasets.items()),
            *(f"{counted(n, 'decision')} made on another manifest, {digest}." for digest, n in others),
        ]


def find_stale(
    manifest: Manifest, decisions: Iterable[Decision], sources: Mapping[str, Source] | None = None
) -> Staleness:
    """Return the decisions that are stale on a manifest.

    Parameters
    ----------
    sources : mapping of str to Source, optional
        Where to look for candidates that are in no part.
    """
    rows = list(decisions)
    spoken = {dataset: parts_spoken_of(manifest.header, dataset) for dataset in {row.dataset for row in rows}}
    images_of = {dataset: _listed(manifest, parts) for dataset, parts in spoken.items()}
    anywhere = _listed(manifest, manifest.lists)
    gone = {
        row
        for row in rows
        if spoken[row.dataset]
        and row.image_id not in (anywhere if row.stage == "candidate" else images_of[row.dataset])
    }
    candidates = images_in(sources or {}, {row.image_id for row in gone if row.stage == "candidate"})
    unmatched_datasets = Counter(row.dataset for row in rows if not spoken[row.dataset])
    others = Counter(row.manifest for row in rows if row.manifest not in ("", manifest.digest))
    return Staleness(
        gone=tuple(sorted({row.image_id for row in gone} - set(candidates))),
        unmatched_datasets=dict(sorted(unmatched_datasets.items())),
        other_manifests=dict(sorted(others.items())),
    )


def _listed(manifest: Manifest, parts: Iterable[str]) -> set[str]:
    return {image for part in parts for image in manifest.lists.get(part, ())}


def images_in(sources: Mapping[str, Source], images: Iterable[str]) -> dict[str, str]:
    """Return the first source that contains each image; images in no source are left out."""
    wanted_images = set(images)
    source_of: dict[str, str] = {}
    for name, source in sources.items():
        prefix = f"{source.namespace}:"
        if any(image.startswith(prefix) for image in wanted_images):
            held = wanted_images.intersection(f"{prefix}{native}" for native in source.images.native.tolist())
            source_of |= {image: name for image in sorted(held) if image not in source_of}
    return source_of


def changed_figures(header: Header, parts: Sequence[PartEntry], changed: Collection[str]) -> tuple[Figure, ...]:
    """Return the figures of a manifest after some parts have changed.

    Numbers of images are those of the new lists. Every other figure loses its value, unless its name begins with that
    of an unchanged part.
    """
    images = {part.name: part.images for part in parts}
    unchanged = tuple(f"{name}." for name in images if name not in changed)
    uncounted = f"not counted since the lists of version {header.version} were changed by decisions of reviewers"
    made = []
    for figure in header.figures:
        part, _, measure = figure.name.rpartition(".")
        obtained, why = figure.obtained, figure.explanation
        if changed and not figure.name.startswith(unchanged):
            obtained, why = None, uncounted
            if part in images and measure == "images":
                obtained = images[part]
                why = "" if obtained == figure.paper else "the list was changed by decisions of reviewers"
        made.append(msgspec.structs.replace(figure, obtained=obtained, explanation=why))
    return tuple(made)


def count_part(
    manifest: Manifest, entry: PartEntry, sources: Mapping[str, Source]
) -> tuple[int | None, dict[str, int]]:
    """Return annotated images and objects by role of a part; None and an empty dict if a source is missing."""
    if not set(entry.sources) <= set(sources):
        return None, {}
    header = msgspec.structs.replace(manifest.header, parts=(msgspec.structs.replace(entry, subset_of=""),))
    once = Manifest(header, {entry.name: tuple(dict.fromkeys(manifest.lists[entry.name]))})
    images = locate_images(once, entry.name, sources)
    if any(source.objects is None for source in images.sources):
        return count_annotated(images), {}
    objects = select_objects(classes_in(header, entry), entry.view, images)
    return objects.annotated_images(), objects.counts()


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
"""The order of replay, removals first: if decisions both remove and move an image, it is removed."""


@dataclass(frozen=True, slots=True)
class Ineffective:
    """Decisions with the same stage and action that could not act: images, each once and sorted, and why."""

    stage: Stage
    action: Action
    why: str
    images: tuple[str, ...]

    def text(self) -> str:
        """Return this as one sentence with the first few ids."""
        return f"{len(self.images)} images of {self.stage} {self.action} {self.why}: {examples(self.images)}."


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a part: ids removed and added, sorted."""

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
        See `curation.review.decisions.application.apply_decisions`.
    sources : dict of str to Source

    Attributes
    ----------
    entries : dict of str to PartEntry
        Parts of the manifest, then new parts.
    before : dict of str to tuple of str
        Lists of the manifest; empty for new parts.
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
                raise UsageError("Invalid name of a part", expected=PART_NAME, found=repr(name[:80]))

    def replay(self, decisions: Iterable[Decision]) -> None:
        """Carry out decisions: removals, moves to near, moves to far, additions; each as one operation on sets."""
        by_action: dict[tuple[Stage, Action], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for row in decisions:
            if parts_spoken_of(self.header, row.dataset):
                by_action[row.stage, row.action][row.dataset].add(row.image_id)
        for stage, action in _ORDER:
            missed: set[str] = set()
            for dataset, images in sorted(by_action[stage, action].items()):
                if action == "remove":
                    missed |= self._remove(dataset, images)
                else:
                    target, other = self._target(action, dataset)
                    missing = images - self.now.get(target, set())
                    origins = [name for name in (other, dataset) if name != target]
                    is_added = stage == "candidate"
                    missed |= self._add(missing, target) if is_added else self._move(missing, target, origins)
            if missed:
                self.ineffective.append(Ineffective(stage, action, "have no image to act on", tuple(sorted(missed))))

    def _near_and_far(self, dataset: str) -> tuple[str, str]:
        """Return the near and the far part of a data set, ``""`` for a part without a name."""
        return self.near.get(dataset, self.near.get("", "")), self.far.get(dataset, self.far.get("", ""))

    def _target(self, action: Action, dataset: str) -> tuple[str, str]:
        """Return the part that an action puts images into, and the opposite one."""
        near, far = self._near_and_far(dataset)
        target, other, option = (near, far, "--near") if action in _NEAR else (far, near, "--far")
        if not target or target == other:
            message = f"Decisions {action} need the name of a part; near and far may not be the same"
            expected = f"one of {', '.join(self.entries)}, or a new one"
            raise UsageError(message, where=dataset or "all parts", expected=expected, hint=f"{option} PART")
        return target, other

    def _remove(self, dataset: str, images: set[str]) -> set[str]:
        """Remove images from the parts of a data set: for a pool with named near and far parts, from these two."""
        near_and_far = [name for name in self._near_and_far(dataset) if name in self.now]
        is_pool = dataset not in self.entries and dataset != ""
        parts = near_and_far if is_pool and near_and_far else parts_spoken_of(self.header, dataset)
        missed = images.difference(*(self.now[name] for name in parts))
        for name in parts:
            self.now[name] -= images
        return missed

    def _move(self, images: set[str], target: str, origins: Sequence[str]) -> set[str]:
        """Move images from the first part that has them to another one; return images without a part."""
        for name in origins:
            if moved := images & self.now.get(name, set()):
                self._put(target, moved, self._slots_of(moved, name), like=name)
                self.now[name] -= moved
                images = images - moved
        return images

    def _add(self, images: set[str], target: str) -> set[str]:
        """Add images of any original part, or of a source, to a part; return images without either."""
        for name, ids in list(self.before.items()):
            if matches := images.intersection(ids):
                self._put(target, matches, self._slots_of(matches, name), like=name)
                images = images - matches
        if in_sources := images_in(self.sources, images):
            self._put(target, set(in_sources), set(in_sources.values()))
        return images - in_sources.keys()

    def _put(self, target: str, images: set[str], slots: set[str], *, like: str = "") -> None:
        """Put images of some sources into a part; a new part is a copy of the entry of another one."""
        if target not in self.entries:
            if not like:
                message = f"The part {target!r} does not exist, and no part shows how to make it"
                raise UsageError(message, expected=", ".join(self.entries))
            self.entries[target] = msgspec.structs.replace(
                self.entries[like], name=target, selection=f"By decision, from {like}.", subset_of="", repeats=0
            )
            self.before[target], self.now[target] = (), set()
        self.now[target] |= images
        entry = self.entries[target]
        more = [source.name for source in self.header.sources if source.name in slots - set(entry.sources)]
        self.entries[target] = msgspec.structs.replace(entry, sources=(*entry.sources, *more))

    def _slots_of(self, images: set[str], part: str) -> set[str]:
        """Return the sources of a part that contain some images; by namespace if a source is missing."""
        namespaces = {image.partition(":")[0] for image in images}
        of_part = [source for source in self.header.sources if source.name in self.entries[part].sources]
        slots = {source.name for source in of_part if source.namespace in namespaces}
        if slots <= self.sources.keys():
            return set(images_in({slot: self.sources[slot] for slot in sorted(slots)}, images).values())
        return slots

    def keep_subsets(self) -> None:
        """Remove from subsets what their supersets lost; refuse images that are in a subset only."""
        subsets = {name: entry.subset_of for name, entry in self.entries.items() if entry.subset_of}
        for _ in subsets:
            for name, superset in subsets.items():
                self.now[name] -= set(self.before[name]) & set(self.before[superset]) - self.now[superset]
        for name, superset in subsets.items():
            if outside := self.now[name] - self.now[superset]:
                message = f"Part {name!r} would hold images that {superset!r}, of which it is a subset, does not"
                excess, hint = f"{len(outside)}, the first {min(outside)}", "choose another part for --near or --far"
                raise DecisionError(message, where=f"{self.header.name} {self.header.version}", found=excess, hint=hint)

    def shared(self) -> tuple[str, ...]:
        """Return the images in both the near and the far part of a data set."""
        both = [self._near_and_far(dataset) for dataset in {*self.near, *self.far}]
        return tuple(sorted(set().union(*(self.now.get(near, set()) & self.now.get(far, set()) for near, far in both))))

    def changes(self) -> tuple[Change, ...]:
        """Return the change of each changed part, in the order of the parts, new parts last."""
        sets = [(name, set(self.before[name]), self.now[name]) for name in self.entries]
        return tuple(
            Change(name, tuple(sorted(before - now)), tuple(sorted(now - before)))
            for name, before, now in sets
            if before != now
        )

    def ordered(self, part: str) -> tuple[str, ...]:
        """Return the images of a part in its order; in lists with a meaningful order, new images come last."""
        if self.entries[part].order == "code_point":
            return tuple(sorted(self.now[part]))
        remaining = [image for image in self.before[part] if image in self.now[part]]
        return (*remaining, *sorted(self.now[part] - set(remaining)))


@dataclass(frozen=True, slots=True)
class Application:
    """A new version of a manifest, with its changes and the decisions without effect.

    Attributes
    ----------
    base, manifest : Manifest
        The manifest before and after the decisions.
    resolution : Resolution
    changes : tuple of Change
        Changed parts, in the order of the parts.
    ineffective : tuple of Ineffective
        Decisions whose image is neither in a part to take it from nor in the target part.
    staleness : Staleness
    shared : tuple of str
        Images in both the near and the far part.
    coverage : tuple of Coverage
        Judged images of each part that decisions apply to, before any removal.
    """

    base: Manifest
    manifest: Manifest
    resolution: Resolution
    changes: tuple[Change, ...]
    ineffective: tuple[Ineffective, ...]
    staleness: Staleness
    shared: tuple[str, ...]
    coverage: tuple[Coverage, ...]

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.manifest.header.name,
            "version": self.manifest.header.version,
            "digest": self.manifest.digest,
            "supersedes": {"version": self.base.header.version, "digest": self.base.digest},
            "changes": msgspec.to_builtins(self.changes),
            "ineffective": msgspec.to_builtins(self.ineffective),
            "shared": list(self.shared),
            "staleness": msgspec.to_builtins(self.staleness),
            "coverage": {"note": UNJUDGED, "parts": [part.data() for part in self.coverage]},
            "resolution": self.resolution.data(),
        }


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
    notes: Sequence[str] = (),
) -> Application:
    """Return a new version of a manifest with decisions applied; its header records their digest.

    ``remove`` removes an image from the parts that the decision applies to (its part; for a pool, the named near and
    far parts; see `curation.review.decisions.application.parts_spoken_of`), and from their subsets. ``to_near`` and
    ``keep_near`` move it to the near part, from the far part or else from the part of the decision; ``to_far`` moves it
    the other way. ``add_near`` and ``add_far`` add it. A new near or far part is a copy of the entry of the part of its
    first image. The order and repetition of decisions have no effect.

    Parameters
    ----------
    resolution : Resolution
    version : str
        Version of the new manifest, greater than that of `manifest`.
    near, far : mapping of str to str, optional
        Near and far part by the `dataset` of decisions; ``""`` for all other data sets.
    sources : mapping of str to Source, optional
        By the names in the header. Changed parts are counted again if their sources are given; otherwise their counts
        are dropped.
    reason : str
        Reason for the new version, for `supersedes`.
    strict : bool
        Refuse stale decisions, undecided conflicts, and images in both near and far.
    variant : {"minus-remove", "minus-remove-and-unsure", "judged-keep-only"}, optional
        Make a separate cleaned list that supersedes no other: its name, notes and rule state what is left out, and the
        number of judged images.
    name : str
        Name of a separate list, instead of the generated one.
    notes : sequence of str
        Further notes of the manifest.

    Raises
    ------
    DecisionError
        See `strict`; or a list would no longer contain its subset.
    MissingListError
        A list of the manifest is not available.
    UsageError
        The version is not greater, or decisions need a near or far part without a name.
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
        for covered in coverage:
            work.now[covered.part] -= left_out_by(variant, covered, work.now[covered.part])
    work.keep_subsets()
    shared = work.shared()
    doubts = [*staleness.notes(), *(f"undecided: {doubt.text()}." for doubt in resolution.undecided[:_SHOWN])]
    doubts += [f"{len(shared)} images would be near and far: {examples(shared)}."] if shared else []
    if strict and doubts:
        hint = "resolve them, or leave out --strict"
        raise DecisionError("Unresolved or stale decisions", found=" ".join(doubts), hint=hint)
    changes = work.changes()
    made = _reviewed(work, changes, resolution, version, reason, notes)
    if variant is not None:
        reviewers = sorted({row.reviewer for row in resolution.decisions if row.reviewer})
        made = as_cleaned(made, manifest, coverage, variant, name=name, reviewers=reviewers)
        check_header(made.header, where=made.header.name)
    return Application(manifest, made, resolution, changes, tuple(work.ineffective), staleness, shared, coverage)


def _require_judged(manifest: Manifest, coverage: Sequence[Coverage], staleness: Staleness) -> None:
    """Refuse decisions without an image of the list: the unchanged list would look like a cleaned one."""
    if any(covered.total for covered in coverage):
        return
    example = next((ids[0] for ids in manifest.lists.values() if ids), "no image")
    raise DecisionError(
        "No decision is on an image of the list",
        where=f"{manifest.header.name} {manifest.header.version}",
        expected=f"decisions on images such as {example}",
        found=" ".join(staleness.notes())[:300] or "no decision",
        hint="curation review summary FILE … --dataset NAME, with the data set of the list",
    )


def _reviewed(
    work: PartSets, changes: Sequence[Change], resolution: Resolution, version: str, reason: str, notes: Sequence[str]
) -> Manifest:
    """Return the new version: changed lists in their order, new counts, provenance."""
    header = work.header
    changed = {diff.part: diff for diff in changes}
    lists = {name: work.ordered(name) if name in changed else work.before[name] for name in work.entries}
    parts = list(work.entries.values())
    for index, entry in enumerate(parts):
        if entry.name in changed:
            change, ids = changed[entry.name], lists[entry.name]
            annotated, boxes = count_part(Manifest(header, {entry.name: ids}), entry, work.sources)
            parts[index] = msgspec.structs.replace(
                entry,
                selection=f"{entry.selection} By decision {len(change.removed)} images left and "
                f"{len(change.added)} joined.",
                images=len(ids),
                annotated_images=annotated,
                boxes=boxes,
                sha256=sha256_of_lines(ids),
                repeats=len(ids) - len(set(ids)),
            )
    part_names = {
        f"review_{which}": tuple(f"{name}={part}" if name else part for name, part in sorted(parts_of.items()))
        for which, parts_of in (("near", work.near), ("far", work.far))
    }
    parameters = {**header.rule.parameters, "review_rule": resolution.rule, **part_names}
    changed_parts = [f"{diff.part} lost {len(diff.removed)} and gained {len(diff.added)} images" for diff in changes]
    undecided = f", {len(resolution.undecided)} undecided" if resolution.undecided else ""
    note = (
        f"Reviewed from version {header.version}: {len(resolution.decisions)} decisions "
        f"({len(resolution.conflicts)} conflicts, rule {resolution.rule}{undecided}); "
        f"{'; '.join(changed_parts) or 'no list changed'}."
    )
    digest = Manifest(header, {}).digest
    made = msgspec.structs.replace(
        header,
        version=version,
        origin="reviewed",
        supersedes=Supersedes(version=header.version, digest=digest, reason=reason or "decisions of reviewers"),
        completes=None,
        parts=tuple(parts),
        rule=msgspec.structs.replace(header.rule, parameters=parameters),
        figures=changed_figures(header, parts, set(changed)),
        notes=(*header.notes, note, *notes),
        decisions=resolution.digest,
    )
    return Manifest(made, lists)


def _check_version(version: str, manifest: Manifest, *, must_be_later: bool) -> None:
    base = manifest.header.version
    if re.fullmatch(VERSION, version) and (not must_be_later or version_numbers(version) > version_numbers(base)):
        return
    raise UsageError(
        f"The version is malformed, or not greater than {base} of the manifest",
        where="--version",
        expected="MAJOR.MINOR.PATCH",
        found=repr(version[:40]),
        hint=f"--version {version_numbers(base)[0] + 1}.0.0 if lists change",
    )
