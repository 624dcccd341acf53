"""ID classes and the pools of images that are to be out of distribution for them; recorded decisions on these.

Recorded decisions are one parameter of a manifest: which image, which decision, for which reason; no more.
`id_class_overlaps` says which ID classes are called near, or annotated in an OOD split. `replay` applies decisions to a
start list in the order of the code of FindMeIfYouCan, as pure algebra of sets: the automatic stage with its overrides
(``get_images_to_near_and_remove``), the first manual stage (``remove_and_split_manual_inspection``), then the accepted
candidates. The order of decisions inside a stage, and repeats, change nothing.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from curation.core.errors import CurationError, DecisionConflictError, DecisionError, ProtocolError
from curation.core.wording import examples
from curation.manifest.header import DIGEST, NAME
from curation.review.decisions.application import Ineffective
from curation.review.decisions.decision import Action, Decision, Stage, check_decision
from curation.review.decisions.files import read_decisions
from curation.review.decisions.resolution import recorded_form, resolve
from curation.signals.hierarchy import open_wordnet
from curation.signals.hierarchy.class_lists import DATASETS, synset_map
from curation.signals.hierarchy.hierarchy import descendants
from curation.sources.datasets import family, namespace_of
from curation.sources.source_specs import SourceSlot

_MOST = 10_000_000
_Slot = Annotated[str, Meta(pattern=r"^([a-z0-9][a-z0-9_.-]{0,31})?\Z")]
_COCO_PARTS = {"coco-val2017": "val2017", "coco-train2017": "train2017"}


class Wanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which categories the authors looked for among the candidates, by their number of annotations (recorded only).

    Attributes
    ----------
    more_than : int
    less_than : int or None
        None for no upper bound.
    """

    more_than: Annotated[int, Meta(ge=0, le=_MOST)]
    less_than: Annotated[int, Meta(ge=0, le=_MOST)] | None = None


class OodPool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One OOD source of a pair, from which a near and a far split come.

    Attributes
    ----------
    name : str
        What decisions call it (`dataset`), and the first word of its parts: ``coco-near``, ``coco-far``.
    dataset : str
        Of its images; gives the namespace of their ids.
    start, candidates, published : str
        Names of the sources: images to start from, images to add from (``""`` for none; may be the former), and the
        published list of start images.
    rule : bool
        Whether an image may start only if it has no annotation of an ID class (crowd included).
    id_names : tuple of str
        Names of ID classes in this source, for the rule and for candidates; empty for all names and aliases of the
        pair's classes.
    remove, near : dict of str to str
        Categories whose images are removed, or near, each with the reason: the ID class concerned. Removal wins.
    distance : {"far", "farther"}
        What the rest is called.
    reasons : tuple of str
        Where given, only removals of the manual stage for one of these reasons count among the decisions.
    wanted_near, wanted_far : Wanted or None
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_]{0,31}\Z")]
    dataset: str
    start: _Slot = ""
    candidates: _Slot = ""
    published: _Slot = ""
    rule: bool = True
    id_names: tuple[str, ...] = ()
    remove: dict[str, str] = {}
    near: dict[str, str] = {}
    distance: Literal["far", "farther"] = "far"
    reasons: tuple[str, ...] = ()
    wanted_near: Wanted | None = None
    wanted_far: Wanted | None = None

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
        """Whether there is a near split; of a pool that is farther as a whole there is none."""
        return self.distance != "farther"

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the splits."""
        return (self.near_part, self.far_part) if self.has_near else (self.far_part,)


class OodPair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ID classes of a detector, and the pools that are to be out of distribution for it.

    Attributes
    ----------
    name, title : str
        Of the manifest.
    id_classes : tuple of str
        In the order of their index.
    aliases : dict of str to tuple of str
        Other names of a class in the annotation files.
    synsets : str
        Synset map that knows the names of the ID classes (``voc``, ``coco``, ``openimages``), for overlap by hierarchy.
    pools : tuple of Pool
    """

    name: Annotated[str, Meta(pattern=rf"^{NAME}\Z", max_length=100)]
    id_classes: Annotated[tuple[str, ...], Meta(min_length=1)]
    pools: Annotated[tuple[OodPool, ...], Meta(min_length=1)]
    title: str = ""
    aliases: dict[str, tuple[str, ...]] = {}
    synsets: str = ""

    def names(self) -> dict[str, str]:
        """Return every name of an ID class, aliases included, with the class."""
        class_names = {name: name for name in self.id_classes}
        return class_names | {alias: name for name in self.id_classes for alias in self.aliases.get(name, ())}

    def id_names(self, pool: OodPool) -> tuple[str, ...]:
        """Return the names that mean an ID class in a pool."""
        return pool.id_names or tuple(self.names())

    def slots(self) -> tuple[SourceSlot, ...]:
        """Return the sources that a build may read; those of several pools once."""
        slots: dict[str, SourceSlot] = {}
        for pool in self.pools:
            for name, meaning in (
                (pool.start, f"images that {pool.name} starts from: COCO JSON or a root"),
                (pool.candidates, f"images that {pool.name} may gain by decision"),
                (pool.published, f"published start list of {pool.name}: ids, one a line, or the authors' JSON"),
            ):
                part = name if name == pool.published else _COCO_PARTS.get(name, "")
                if name:
                    slots.setdefault(name, SourceSlot(name, pool.dataset, part, False, meaning))
        return tuple(slots.values())


def faults_of(pair: OodPair) -> Iterator[tuple[str, str, str]]:
    """Yield field, expectation and value of whatever in a declaration does not hold together."""
    for name in sorted(set(pair.aliases) - set(pair.id_classes)):
        yield "aliases", "names of ID classes", name
    if pair.synsets and pair.synsets not in DATASETS:
        yield "synsets", ", ".join(DATASETS), pair.synsets
    names = [*pair.id_classes, *(alias for several in pair.aliases.values() for alias in several)]
    listed = {"id_classes": pair.id_classes, "aliases": names, "pools: name": [pool.name for pool in pair.pools]}
    for field, values in listed.items():
        yield from ((field, "each once", f"{name} twice") for name, n in Counter(values).items() if n > 1)
    for pool in pair.pools:
        names += [
            *pool.id_names,
            *(name for pairs in (pool.remove, pool.near) for pair in pairs.items() for name in pair),
        ]
        if not pool.has_near and (pool.near or pool.wanted_near):
            yield f"pool {pool.name}: near", "none in a pool that is farther as a whole", next(iter(pool.near), "")
        try:
            namespace_of(pool.dataset)
        except CurationError:
            yield f"pool {pool.name}: dataset", "a lower-case word such as openimages", pool.dataset
    for name in names:
        if not 0 < len(name) <= 200 or not name.isprintable() or name != name.strip():
            yield "names", "printable names of 1 to 200 characters without outer blanks", name


def id_class_of(pair: OodPair, pool: OodPool, categories: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return for each category that is an ID class how it is one, in words, and which; others are left out.

    Parameters
    ----------
    categories : iterable of str
        Names in the pool's source. Kinship is looked up only where the pair names the synset map of its ID classes and
        there is one of the pool's data set.
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
    """Return the categories of the pool's data set whose synset lies at or below that of an ID class."""
    dataset = family(pool.dataset)
    if not pair.synsets or dataset not in DATASETS:
        return {}
    of_id, of_ood = synset_map(pair.synsets), synset_map(dataset)
    # Only what lies above the two maps' synsets: the whole of WordNet takes seconds.
    graph = open_wordnet().nouns({*of_id.values(), *of_ood.values()})
    kinds: dict[str, tuple[str, str]] = {}
    for name in (candidate for candidate in pair.id_classes if candidate in of_id):
        below = descendants(graph, [of_id[name]]) | {of_id[name]}
        for category, synset in of_ood.items():
            if synset in below:
                kinds.setdefault(category, ("is a kind of", name))
    return kinds


_RESOLVE = "curation review summary {} --rule {} --out RESOLVED.jsonl, and build with that file"
_Group = tuple[str, str, str, str, tuple[str, ...]]


def read_recorded(text: str, *, allow_conflicts: bool = False) -> str:
    """Return recorded decisions in the form that a manifest holds, or ``""``, or the digest that pins them.

    The form is JSON: rows ``[dataset, stage, action, reason, [image, …]]``, sorted, images sorted and once. Reviewers
    and dates stay in the decisions file.

    Parameters
    ----------
    text : str
        A file (see `curation.review.decisions.files.read_decisions`), the form itself, or ``sha256:…`` of it, with
        which a declared manifest says which decisions complete it.
    allow_conflicts : bool
        Take all verdicts of a file that contradict each other, as the authors' code does. Those of the authors' own
        format are always taken, and reported (`contradictions`): their published lists contradict each other once.

    Raises
    ------
    MissingFileError
        No such file.
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
            hint=_RESOLVE.format(shlex.quote(text), "error"),
        )
    allowed = allow_conflicts or file.format == "selection"
    try:
        resolution = resolve(file.decisions, rule="error", allow_conflicts=allowed)
    except DecisionConflictError as error:
        mended = _RESOLVE.format(shlex.quote(text), "majority")
        error.hint = f"{mended}; or curation build … --on-error conflicts=keep replays them all"
        raise
    return recorded_form(resolution.decisions)


def read_decisions_file(path: Path, allow_conflicts: bool) -> tuple[str, tuple[str, ...]]:
    """Return a file's decisions as `read_recorded` does, and what `contradictions` tells of them."""
    # A name such as sha256:… or [] would be taken for the decisions themselves.
    text = read_recorded(str(path.absolute()), allow_conflicts=allow_conflicts)
    return text, contradictions(text)


def contradictions(text: str) -> tuple[str, ...]:
    """Return in words the images on which decisions of one stage differ, in the form of `recorded_form`."""
    return tuple(
        f"{case.image_id} ({case.dataset}, {case.stage}): {' and '.join(action for action, _ in case.votes)}"
        for case in resolve(_recorded(text), allow_conflicts=True).conflicts
    )


def is_pinned_only(text: str) -> bool:
    """Return whether decisions are named by their digest and not available."""
    return bool(re.fullmatch(DIGEST, text))


def decisions_of(text: str, pool: OodPool) -> tuple[Decision, ...]:
    """Return the decisions on a pool, or on one of its splits, that the pool takes into account."""
    return tuple(decision for decision in _recorded(text) if is_on(decision, pool) and is_counted(decision, pool))


def disregarded(text: str, pool: OodPool) -> int:
    """Return the number of decisions on a pool that it does not take into account."""
    return sum(is_on(decision, pool) and not is_counted(decision, pool) for decision in _recorded(text))


def unmatched_datasets(text: str, pools: Sequence[OodPool]) -> dict[str, int]:
    """Return the number of decisions by data set that are on none of some pools."""
    unmatched = (decision.dataset for decision in _recorded(text) if not any(is_on(decision, pool) for pool in pools))
    return dict(sorted(Counter(unmatched).items()))


def is_on(decision: Decision, pool: OodPool) -> bool:
    """Return whether a decision is on a pool, or on one of its splits."""
    return decision.dataset in (pool.name, *pool.parts)


def is_counted(decision: Decision, pool: OodPool) -> bool:
    """Return whether a pool takes a decision on it into account."""
    is_removal = (decision.stage, decision.action) == ("manual", "remove")
    return not pool.reasons or (is_removal and decision.reason in pool.reasons)


def _recorded(text: str) -> list[Decision]:
    return _parsed(text) if text and not is_pinned_only(text) else []


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
    for decision in decisions:
        check_decision(decision, where="--set decisions")
    return decisions


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a start list becomes. All ids are sorted.

    Attributes
    ----------
    near, far : tuple of str
        Start images by split, those added not among them.
    removed : tuple of str
        Start images that are in neither.
    added_near, added_far : tuple of str
        Accepted candidates, also those that stand in the start list.
    ineffective : tuple of Ineffective
        Decisions that found no image to act on, or that another overrides.
    shared : tuple of str
        Images that end in near and in far.
    """

    near: tuple[str, ...]
    far: tuple[str, ...]
    removed: tuple[str, ...]
    added_near: tuple[str, ...]
    added_far: tuple[str, ...]
    ineffective: tuple[Ineffective, ...] = ()
    shared: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return `ineffective` in words."""
        return tuple(row.text() for row in self.ineffective)


def replay(
    start: Iterable[str],
    *,
    remove: Collection[str],
    near: Collection[str],
    decisions: Iterable[Decision],
    where: str = "",
) -> Replayed:
    """Return the near and the far split of a start list after the automatic stage and all decisions.

    Parameters
    ----------
    start : iterable of str
        Ids of the start list B.
    remove, near : collection of str
        Images of B that show a category to remove, and one that is near; removal wins.
    decisions : iterable of Decision
        Those that speak of this list, resolved (`curation.review.decisions.resolution.resolve`).
    where : str
        What is replayed, for messages.

    Notes
    -----
    With the recorded sets of `auto_override`, R = (remove ∪ removed) − kept near and
    N = ((near ∪ kept near) − removed) − R; then far = B − R − N. Of the manual stage, removals act on far alone, then
    far images move to near, then near images to far.

    Raises
    ------
    DecisionError
        An image that is to be near is not in the start list (a ``KeyError`` in the authors' code).
    """
    listed = set(start)
    asked: dict[tuple[Stage, Action], set[str]] = defaultdict(set)
    for row in decisions:
        asked[row.stage, row.action].add(row.image_id)
    found: list[Ineffective] = []

    def tell(stage: Stage, action: Action, why: str, images: Collection[str]) -> None:
        if images:
            found.append(Ineffective(stage, action, why, tuple(sorted(images))))

    kept, dropped = asked["auto_override", "keep_near"], asked["auto_override", "remove"]
    removed = (set(remove) | dropped) - kept
    is_near = ((set(near) | kept) - dropped) - removed
    if outside := is_near - listed:
        raise DecisionError(
            "Images that are to be near are not in the start list",
            where=where,
            expected="every image of keep_near among those that the start rule and list let in",
            found=f"{len(outside)}: {examples(sorted(outside))}",
            hint="is it the start list that the decisions were made on?",
        )
    tell("auto_override", "remove", "are not in the start list", dropped - listed)
    tell("auto_override", "keep_near", "are also removed by an override, and stay far", kept & dropped)
    now = {"near": is_near, "far": listed - removed - is_near, "removed": listed & removed}
    steps: tuple[tuple[Action, str, str, str], ...] = (
        ("remove", "far", "near", "removed"),
        ("to_near", "far", "near", "near"),
        ("to_far", "near", "far", "far"),
    )
    for action, origin, other, target in steps:
        images = asked["manual", action]
        tell("manual", action, f"are not in {origin} but in {other}", images & now[other])
        tell("manual", action, "were removed before", images & now["removed"])
        tell("manual", action, "are not in the start list", images - listed)
        moved = images & now[origin]
        now[origin] -= moved
        now[target] |= moved
    added_near, added_far = asked["candidate", "add_near"], asked["candidate", "add_far"]
    tell("candidate", "add_near", "stand in the start list", added_near & listed)
    tell("candidate", "add_far", "stand in the start list", added_far & listed)
    tell("candidate", "add_near", "are added to far too", added_near & added_far)
    shared = (now["near"] | added_near) & (now["far"] | added_far)
    lists = (now["near"], now["far"], now["removed"], added_near, added_far)
    near_now, far_now, removed_now, *added = (tuple(sorted(ids)) for ids in lists)
    return Replayed(near_now, far_now, removed_now, added[0], added[1], tuple(found), tuple(sorted(shared)))
