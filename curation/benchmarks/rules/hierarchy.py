"""The rule ``hierarchy``: known, negative and unknown classes of images with one class each.

After Large-Scale Open-Set Classification Protocols for ImageNet (WACV 2023). Training and validation images show known
and negative classes, test images known, negative and unknown ones. Classes are named as in the sources, as groups, or
as super-classes: synsets of WordNet, whose leaves among the classes of the sources are meant.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, cycle
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import Selection, all_images, hash_rank, make_part, manifest_of_file, require_images
from curation.benchmarks.rules.benchmark_file import (
    BenchmarkFile,
    decimal_text,
    entries_by_role,
    refuse_unused,
    require_named,
    stated_in,
    wrong_sources,
)
from curation.benchmarks.rules.class_parts import quotas
from curation.benchmarks.rules.starting import (
    StartOptions,
    alias_lines,
    array,
    beginning,
    listed,
    other_spellings,
    quoted,
    quoted_key,
    source_tables,
)
from curation.core.errors import HierarchyError, ProtocolError, UsageError
from curation.core.wording import did_you_mean, examples
from curation.evaluation.class_scores import NEGATIVE, UNKNOWN
from curation.manifest.header import ClassEntry, ClassRole, Header, LabelView, Paper
from curation.manifest.manifest import Manifest
from curation.manifest.views import class_positions
from curation.signals.hierarchy.class_lists import placed
from curation.signals.hierarchy.hierarchy import ancestors, label, leaves_under, node_of
from curation.signals.hierarchy.wordnet import open_wordnet
from curation.sources.class_folders import part_of_images
from curation.sources.imagenet import class_of_images
from curation.sources.source import Int64s, Source

if TYPE_CHECKING:
    from curation.signals.hierarchy.hierarchy import Graph

PartName = Literal["train", "val", "test"]
ROLES: tuple[ClassRole, ...] = ("known", "negative", "unknown")
SEEN: tuple[ClassRole, ...] = ("known", "negative")
"""Roles of the classes that training and validation images show."""
USES: tuple[PartName, ...] = ("train", "val", "test")
IMAGES = "images"
"""Role of a source whose images are distributed to all three parts."""
CUTS = {
    "whole": "each superclass is wholly known, negative or unknown",
    "halves": "the sorted leaves of the known superclass: the first len // 2 are known, the rest negative",
    "sixths": "of each mixed superclass's sorted leaves, counted from 0: even places are known, odd multiples of 3 "
    "unknown, other odd ones negative (K N K U K N)",
}
"""Cuts by name. Any pattern of the letters K, N and U is a cut too, repeated along each superclass's sorted leaves."""
SIXTHS = "KNKUKN"
Cut = Annotated[str, Meta(pattern=rf"^({'|'.join(CUTS)}|[KNU]{{2,100}})\Z")]
_USUAL = {"train": Decimal("0.7"), "val": Decimal("0.1"), "test": Decimal("0.2")}
_USUAL_OF_TRAIN = {"train": Decimal("0.8"), "val": Decimal("0.2")}
_SHOWN = 20


class HierarchyParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[parameters]`` of the rule.

    Attributes
    ----------
    parts : {"shares", "source"}
        Whether the images of a source are distributed by the shares, or keep the parts of its folders ``train``,
        ``val`` and ``test``.
    train, val, test : Decimal, optional
        Shares of each class's images, which sum to 1; of a source that has a test part beside it, `train` and `val`.
    cut : str
        How the classes of each known group or super-class are cut: ``whole``, ``halves``, ``sixths``, or a pattern
        such as ``KKNU``, repeated along its sorted classes.
    salt : str
        Of the hash rank; by default the name of the benchmark.
    """

    parts: Literal["shares", "source"] = "shares"
    train: Decimal | None = None
    val: Decimal | None = None
    test: Decimal | None = None
    cut: Cut = "whole"
    salt: str = ""

    def __post_init__(self) -> None:
        """Refuse shares that no split can have."""
        shares = [share for share in (self.train, self.val, self.test) if share is not None]
        if not all(share.is_finite() and 0 <= share <= 1 for share in shares) or 0 in (self.train, self.test):
            raise ValueError("shares are decimals from 0 to 1; only that of val may be 0")


PARAMETERS = HierarchyParameters
USUAL_SOURCES = (IMAGES, *USES)
_NEED = "one source, or a training and a test source"


def score_words(_: Header) -> list[str]:
    """Return the options of `evaluate MANIFEST`."""
    return ["--scores", "FILE", "--part", "test"]


PARTS = (
    ("train", "images of known and negative classes"),
    ("val", "other images of the same classes"),
    ("test", "images of known, negative and unknown classes"),
)
PAPER = fact("curation.benchmarks.imagenet", "paper", Paper)


@dataclass(frozen=True, slots=True)
class RolePartition:
    """The classes by role, each sorted; a known class's label is its place, the others' `NEGATIVE` and `UNKNOWN`."""

    known: tuple[str, ...]
    negative: tuple[str, ...]
    unknown: tuple[str, ...]

    def labels(self) -> dict[str, int]:
        """Return the label of every class."""
        return (
            dict.fromkeys(self.negative, NEGATIVE)
            | dict.fromkeys(self.unknown, UNKNOWN)
            | {name: label for label, name in enumerate(self.known)}
        )

    def entries(self, aliases: Mapping[str, tuple[str, ...]]) -> tuple[ClassEntry, ...]:
        """Return the classes with their roles: known ones indexed from 0 in sorted order, the others -1."""
        return entries_by_role({role: getattr(self, role) for role in ROLES}, aliases)


def partition_classes(
    known: Sequence[Sequence[str]], negative: Sequence[str], unknown: Sequence[str], cut: str, *, hint: str
) -> RolePartition:
    """Return the classes by role.

    Parameters
    ----------
    known : sequence of sequences of str
        The sorted classes of each known super-class, which `cut` distributes.
    hint : str
        What to do about a class in two roles.

    Raises
    ------
    ProtocolError
        A class would be in two roles.
    """
    by_letter: dict[str, list[str]] = {"K": [], "N": [*negative], "U": [*unknown]}
    for leaves in known:
        half = len(leaves) // 2
        patterns = {"whole": "K", "halves": "K" * half + "N" * (len(leaves) - half), "sixths": SIXTHS}
        for leaf, letter in zip(leaves, cycle(patterns.get(cut, cut)), strict=False):
            by_letter[letter].append(leaf)
    roles = {role: tuple(sorted(set(names))) for role, names in zip(ROLES, by_letter.values(), strict=True)}
    for role, other in combinations(ROLES, 2):
        if both := sorted(set(roles[role]) & set(roles[other])):
            raise ProtocolError(
                f"Classes would be {role} and {other} at once", found=f"{len(both)}, the first {both[0]}", hint=hint
            )
    return RolePartition(*roles.values())


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a benchmark file of this rule: parts train, val and test.

    Parameters
    ----------
    sources : mapping of str to Source
        One in the role ``images``, or one each in the roles ``train``, ``test`` and perhaps ``val``; each image shows
        one class.
    parameters : mapping
        ``file``: the benchmark file as `read_benchmark_file` returns it.

    Raises
    ------
    ProtocolError
        The sources do not fit the file; the message says which class, source or share.
    """
    benchmark = stated_in(parameters["file"])
    settings = benchmark.parameters_as(HierarchyParameters)
    refuse_unused(
        benchmark, {"views": "views of boxes elsewhere", "classes.tasks": "known, negative and unknown classes"}
    )
    expected = (
        "[sources.images]; or [sources.train], [sources.test] and perhaps [sources.val]; of another name, with as ="
    )
    by_use = benchmark.by_role(sources, _NEED, expected, (IMAGES,), ("train", "test"), USES)
    if not (pools := _pools(by_use, sources, keep=settings.parts == "source")):
        raise ProtocolError(
            "There are no parts to keep",
            where="[parameters] parts",
            expected="one source: a folder train, and a folder test or val (valid), each with class folders",
            found=", ".join(by_use),
            hint='parts = "shares" in [parameters]',
        )
    names = dict.fromkeys(name for source in sources.values() for name in source.categories.names)
    roles, unassigned = roles_of(benchmark, settings.cut, tuple(sorted(names)))
    classes = roles.entries(benchmark.classes.aliases)
    made = [
        make_part(part, part, Selection(slot, sources[slot], positions), classes, view=LabelView(), rule=selection)
        for part, slot, positions, selection in _distribute(benchmark, settings, pools, classes)
    ]
    require_images(made, {"val": "val = 0 in [parameters], with its share added to train; or more images"})
    if unassigned:
        names_of_some = ", ".join(unassigned[:_SHOWN])
        note = f"Classes of the sources without a role, left out ({len(unassigned)}): {names_of_some}."
        benchmark = msgspec.structs.replace(benchmark, notes=(*benchmark.notes, note))
    return manifest_of_file(
        benchmark, made, sources, classes, parameters, taxonomy="OSC", algorithm_version=1, after=PAPER
    )


class _Pool(NamedTuple):
    """Images that parts are taken of: those of a source, or of one of its folders."""

    slot: str
    source: Source
    positions: Int64s
    origin: str


def _pools(by_use: Mapping[str, str], sources: Mapping[str, Source], *, keep: bool) -> dict[str, _Pool]:
    """Return the images by what they are used for: ``images``, or ``train``, ``test`` and perhaps ``val``.

    Parameters
    ----------
    by_use : mapping of str to str
        Names of the sources.
    keep : bool
        Whether to take the folders of one source; without a folder ``train`` and another there are none.
    """
    if not keep:
        return {
            use: _Pool(name, sources[name], all_images(sources[name]), f"source {name}") for use, name in by_use.items()
        }
    if IMAGES not in by_use:
        return {}
    name = by_use[IMAGES]
    folder_part = part_of_images(sources[name])
    offered = [part for part in USES if (folder_part == part).any()]
    # As in the paper: without a test part, the validation images test, and val is a share of the training images.
    folders = {part: part for part in offered} if "test" in offered else {"train": "train", "test": "val"}
    if "train" not in offered or len(offered) == 1:
        return {}
    return {
        use: _Pool(name, sources[name], np.flatnonzero(folder_part == part), f"folder {part}")
        for use, part in folders.items()
    }


def _distribute(
    benchmark: BenchmarkFile, settings: HierarchyParameters, pools: Mapping[str, _Pool], classes: Sequence[ClassEntry]
) -> Iterator[tuple[PartName, str, Int64s, str]]:
    """Yield each part: its name, the source, the positions of its images, and how they are selected."""
    shares = _shares(settings, pools)
    salt = settings.salt or benchmark.name
    class_of = {use: _class_of(pool, classes) for use, pool in pools.items()}
    split_use = IMAGES if IMAGES in pools else "train"
    chosen = _split(pools[split_use], class_of[split_use], shares, salt) if shares else {}
    for part in USES:
        if part not in chosen and part not in pools:
            continue
        use = split_use if part in chosen else part
        pool, roles = pools[use], ROLES if part == "test" else SEEN
        rows = chosen.get(part, np.arange(len(pool.positions)))
        # Known classes come first, then negative ones: those of a part are the first of them.
        entries = [entry for entry in classes if entry.role in roles]
        rows = rows[np.isin(class_of[use][rows], np.arange(len(entries)))]
        selection = f"Images of {', '.join(roles[:-1])} and {roles[-1]} classes in {pool.origin}"
        if part in chosen:
            selection += f": a share of {decimal_text(shares[part])} of each class, by the rank of sha256(salt + id)"
        _require_images(part, pool, class_of[use][rows], entries, benchmark.classes.absent)
        yield part, pool.slot, pool.positions[rows], f"{selection}."


def _shares(settings: HierarchyParameters, pools: Mapping[str, _Pool]) -> dict[PartName, Decimal]:
    """Return the share of each part that is split off; none where every part has images of its own."""
    usual = _usual_shares(pools)
    chosen = {part: share for part in USES if (share := getattr(settings, part)) is not None}
    shares = dict(chosen or usual)
    if shares.keys() != usual.keys() or sum(shares.values()) != bool(usual):
        raise ProtocolError(
            "The shares do not fit the sources",
            where=f"[parameters] {', '.join(chosen)}",
            expected="no shares: every part has images of its own"
            if not usual
            else "shares that sum to 1, such as " + ", ".join(f"{part} = {share}" for part, share in usual.items()),
            found=", ".join(f"{part} = {decimal_text(share)}" for part, share in chosen.items()),
        )
    return {part: shares[part] for part in USES if shares.get(part)}


def _usual_shares(pools: Mapping[str, _Pool]) -> dict[str, Decimal]:
    return {} if "val" in pools else dict(_USUAL if IMAGES in pools else _USUAL_OF_TRAIN)


def _split(pool: _Pool, labels: Int64s, shares: Mapping[PartName, Decimal], salt: str) -> dict[PartName, Int64s]:
    """Return rows of a pool for each part: of each class so many as its share, in the order of the hash rank."""
    order = hash_rank(pool.source.image_ids[pool.positions].tolist(), salt)
    order = order[np.argsort(labels[order], kind="stable")]
    rows: dict[PartName, list[Int64s]] = {part: [] for part in shares}
    for of_class in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        ends = np.cumsum(quotas(len(of_class), [*shares.values()]))[:-1]
        for part, piece in zip(shares, np.split(of_class, ends), strict=True):
            rows[part].append(piece)
    return {part: np.concatenate(pieces) for part, pieces in rows.items()}


def _class_of(pool: _Pool, classes: Sequence[ClassEntry]) -> Int64s:
    """Return the position in `classes` of each image's class, shape (n,); -1 for a class without a role."""
    positions = class_positions(classes, pool.source)[class_of_images(pool.source)[pool.positions]]
    return positions.astype(np.int64)


def _require_images(
    part: PartName, pool: _Pool, labels: Int64s, entries: Sequence[ClassEntry], absent: Collection[str]
) -> None:
    """Raise `ProtocolError` where a class of a part has no image in it; validation images may lack classes."""
    present = {*np.unique(labels).tolist()}
    lacking = [entry.name for number, entry in enumerate(entries) if number not in present and entry.name not in absent]
    if part == "val" or not lacking:
        return
    used, listed_names = {entry.name for entry in entries}, array(lacking[:_SHOWN])
    others = [name for name in pool.source.categories.names if name not in used]
    otherwise = f"in [classes] ignored = {listed_names} in place of their roles, or absent = {listed_names} beside them"
    form = f"[classes.aliases] {quoted_key(lacking[0])} = [{quoted('{}')}]"
    raise ProtocolError(
        f"Classes have no image in the part {part}",
        where=f"source {pool.slot}, {pool.origin}",
        expected=f"images of each of the {len(entries)} classes",
        found=f"no images of {listed_names}"[:300],
        hint=did_you_mean(lacking[0], others, otherwise, form),
    )


class _SuperClass(NamedTuple):
    """A super-class that a role lists, by its position in the role."""

    role: str
    position: int
    text: str
    node: str


def roles_of(benchmark: BenchmarkFile, cut: str, names: Sequence[str]) -> tuple[RolePartition, tuple[str, ...]]:
    """Return the classes of each role, and the classes of the sources that have none.

    A name is a class of the sources, a group of such names, or a super-class of WordNet. A super-class takes the
    classes at or below it that no role names; where one super-class is inside another, the inner one decides.

    Parameters
    ----------
    names : sequence of str
        The classes of the sources.

    Raises
    ------
    ProtocolError
        A name is none of these, a class has two roles, no class is known or unknown, or a class has no place in
        WordNet where super-classes are used.
    """
    classes = benchmark.classes
    alias_of = {alias: name for name, several in classes.aliases.items() for alias in several}
    available = dict.fromkeys(alias_of.get(name, name) for name in names)
    roles = (*ROLES, "ignored")
    # A list for each name of a role: a cut is made in each group and each super-class.
    members: dict[str, list[list[str]]] = {role: [] for role in roles}
    unresolved: list[tuple[str, int, str]] = []
    for role in roles:
        for position, listed_name in enumerate(getattr(classes, role)):
            texts = classes.leaves((listed_name,))
            members[role].append([text for text in texts if text in available or text in classes.absent])
            unresolved += [(role, position, text) for text in texts if text not in members[role][-1]]
    assigned = [name for role in roles for group in members[role] for name in dict.fromkeys(group)]
    if repeated := [name for name in dict.fromkeys(assigned) if assigned.count(name) > 1]:
        raise ProtocolError("A class is listed twice", where="[classes]", found=", ".join(repeated[:3]))
    require_named(benchmark, "aliases", available)
    if not isinstance(classes.synsets, str):
        require_named(benchmark, "synsets", {*available, *assigned})
    if unresolved or classes.synsets:
        _add_super_classes(benchmark, unresolved, [*available], {*assigned}, members)
    hint = "in place of one of the super-classes, list its classes"
    known = [sorted(group) for group in members["known"]]
    negative, unknown = ([name for group in members[role] for name in group] for role in ("negative", "unknown"))
    partition = partition_classes(known, negative, unknown, cut, hint=hint)
    with_role = {*partition.labels(), *(name for group in members["ignored"] for name in group)}
    roleless = [name for name in available if name not in with_role]
    for role in ("known", "unknown"):
        if not getattr(partition, role):
            raise ProtocolError(
                f"No class is {role}",
                where=f"[classes] {role}",
                expected=f"classes of the sources, such as {', '.join((roleless or [*available])[:5])}",
                found=f"{role} = {array(getattr(classes, role)[:5])}",
                hint=f"{role} = {array(roleless[:5])}" if roleless else None,
            )
    return partition, tuple(name for name in available if name not in partition.labels())


def _add_super_classes(
    benchmark: BenchmarkFile,
    unresolved: Sequence[tuple[str, int, str]],
    names: Sequence[str],
    assigned: Collection[str],
    members: Mapping[str, list[list[str]]],
) -> None:
    """Add to the lists of each role those of some classes that are not named and lie at or below its super-classes."""
    graph, node_of_class, absent = place_in_wordnet(benchmark, names)
    nodes = [
        _SuperClass(role, position, text, _node(graph, benchmark, role, text, names))
        for role, position, text in unresolved
    ]
    free = [name for name in names if name not in assigned] if nodes else []
    leaves = {node_of_class[name] for name in free if name in node_of_class}
    below = {each: {*leaves_under(graph, each.node, leaves), each.node} for each in nodes}
    above = {each: ancestors(graph, [each.node]) - {each.node} for each in nodes}
    used: set[_SuperClass] = set()
    for name in free:
        owners = [each for each in nodes if node_of_class.get(name) in below[each]]
        used.update(owners)
        deciding = [each for each in owners if not any(each.node in above[other] for other in owners)]
        if len({each.role for each in deciding}) > 1:
            raise ProtocolError(
                "A class lies below super-classes of several roles",
                where="[classes]",
                expected="one of them inside the other",
                found=f"{name} below {' and '.join(f'{each.text} ({each.role})' for each in deciding)}",
                hint=f"list {quoted(name)} itself in one role",
            )
        for each in deciding[:1]:
            members[each.role][each.position].append(name)
    if unplaced := [name for name in free if name not in node_of_class]:
        first = unplaced[0]
        sense = next(iter(placed(open_wordnet(), [[_first_sense(first)]])[1][0].nodes), "dog.n.01")
        raise ProtocolError(
            "Classes without a role have no place in WordNet, so that no super-class can decide about them",
            where="[classes.synsets]",
            expected="a synset of each of them",
            found=f"{examples(unplaced)}; {first}: {absent[first]}",
            hint=f'[classes.synsets] {quoted_key(first)} = "{sense}"; or ignored = [{quoted(first)}] leaves it out',
        )
    for each in nodes:
        if each not in used:
            raise ProtocolError(
                "No class that is not listed itself lies at or below a super-class",
                where=f"[classes] {each.role}: {each.text}",
                expected=f"one of the classes {', '.join(names)}"[:300] + ", a group, or a synset above some of them",
                found=f"{each.text}, the synset {label(graph, each.node)}",
                hint=did_you_mean(each.text, names, f"remove {quoted(each.text)}"),
            )


def place_in_wordnet(benchmark: BenchmarkFile, names: Sequence[str]) -> tuple[Graph, dict[str, str], dict[str, str]]:
    """Return WordNet, the synset of each class, and why others have none.

    The synset is that of ``[classes.synsets]``, else that of the name if it has one meaning.

    Raises
    ------
    ProtocolError
        A value of ``[classes.synsets]`` is no synset.
    """
    stated = benchmark.classes.synsets
    maps, synsets = ((stated,), {}) if isinstance(stated, str) else ((), stated)
    texts = [synsets.get(name, name) for name in names]
    wordnet = open_wordnet()
    _, (matches,) = placed(wordnet, [texts], maps)
    if wrong := [name for name in names if name in synsets and synsets[name] not in matches.nodes]:
        raise ProtocolError(
            "A synset of the benchmark file is not in WordNet",
            where=f"[classes.synsets] {wrong[0]}",
            expected="a noun synset such as dog.n.01 or n02084071",
            found=f"{synsets[wrong[0]]!r:.80}: {matches.absent[synsets[wrong[0]]]}"[:300],
            hint=f"curation hierarchy find {shlex.quote(wrong[0])}",
        )
    text_of = dict(zip(names, texts, strict=True))
    nodes, absent = (
        {name: by_text[text] for name, text in text_of.items() if text in by_text}
        for by_text in (matches.nodes, matches.absent)
    )
    return wordnet.all_nouns(), nodes, absent


def _node(graph: Graph, benchmark: BenchmarkFile, role: str, text: str, names: Sequence[str]) -> str:
    try:
        return node_of(graph, text)
    except HierarchyError as error:
        raise ProtocolError(
            "A name is no class of the sources, no group, and no synset of WordNet",
            where=f"[classes] {role}",
            expected=f"one of {', '.join(names)}"[:200] + "; a group of [classes.groups]; or a synset such as dog.n.01",
            found=f"{text!r:.80}" + (f": {error.found}" if error.found else ""),
            hint=did_you_mean(text, [*names, *benchmark.classes.groups], error.hint),
        ) from None


def _first_sense(name: str) -> str:
    """Return the name of the synset that a class name may mean first: ``sea_lion.n.01`` of ``Sea lion``."""
    return f"{name.strip().lower().replace(' ', '_')}.n.01"


def start(sources: Mapping[str, Source], options: StartOptions) -> list[str]:
    """Return the lines of a file to begin with.

    Known and negative classes are the two halves of the largest super-class of WordNet that leaves others unknown;
    where names do not resolve, halves of the classes in their order.

    Raises
    ------
    UsageError
        The sources are neither one nor a training and a test source.
    ProtocolError
        No two classes have enough images.
    """
    if {*sources} not in ({IMAGES}, {"train", "test"}, {*USES}):
        expected = "--source PATH, or --source train=PATH --source test=PATH"
        raise wrong_sources("hierarchy", _NEED, expected, sources, UsageError)
    by_use = {name: name for name in sources}
    pools = _pools(by_use, sources, keep=True) or _pools(by_use, sources, keep=False)
    sides = {use: _class_counts(pools[use]) for use in (IMAGES, *USES) if use in pools}
    aliases = {} if IMAGES in pools else other_spellings(sides["train"], sides["test"])
    every = sorted({name for side in sides.values() for name in side} - {*aliases.values()})
    counts = {name: tuple(side[name] + side[aliases.get(name, "")] for side in sides.values()) for name in every}
    # Of one source, a class needs images for the training and the test part.
    shared = {name: quotas(n[0], [*_USUAL.values()])[::2] if IMAGES in pools else n for name, n in counts.items()}
    seen = [name for name, n in shared.items() if all(n)]
    further = [name for name, n in shared.items() if IMAGES not in pools and n[-1] and not n[0]]
    graph, nodes, synsets = _proposed_synsets(seen)
    known, negative, note = _proposed_roles(graph, seen, nodes, further)
    unknown = [name for name in (*seen, *further) if name not in {*known, *negative}]
    if not known or not unknown:
        raise ProtocolError(
            "No two classes have enough images for known and unknown ones",
            where=", ".join(sources),
            expected="two classes with three images each; or with training and test images, or one and another to test",
            found=", ".join(f"{name}: {' and '.join(map(str, n))}" for name, n in [*counts.items()][:5]),
        )
    ignored = [name for name in counts if name not in {*known, *negative, *unknown}]
    roles = {"known": known, "negative": negative, "unknown": unknown, "ignored": ignored}
    words = [side if side == IMAGES else f"{side} images" for side in sides]
    remarks = {
        name: " and ".join(f"{n:,} {word}" for n, word in zip(numbers, words, strict=True))
        + (f" of {graph.nodes[name]['name']}" if name in graph else "")
        for name, numbers in counts.items()
    }
    return [
        *beginning("hierarchy", options.name),
        *source_tables(sources, options.name),
        "",
        "[classes]",
        f"# {note}",
        "# A role may also list a group, or a super-class such as \"animal.n.01\": its classes by [classes.synsets].",
        *(line for role, names in roles.items() for line in listed(role, names, [remarks[name] for name in names])),
        *alias_lines({name: [alias] for name, alias in aliases.items()}),
        *(["# What the names mean in WordNet, as far as super-classes are listed: correct them.", "[classes.synsets]"]
          if synsets else []),
        *(f"{quoted_key(name)} = {quoted(synset)}" for name, synset in synsets.items()),
        "",
        "[parameters]",
        *_proposed_shares(pools, [counts[name][0] for name in (*known, *negative)]),
    ]  # fmt: skip


def _class_counts(pool: _Pool) -> Counter[str]:
    """Return how many images each class has."""
    return Counter(
        np.array(pool.source.categories.names, object)[class_of_images(pool.source)[pool.positions]].tolist()
    )


def _proposed_synsets(names: Sequence[str]) -> tuple[Graph, dict[str, str], dict[str, str]]:
    """Return WordNet, the node that each name means or may mean first, and the names of these nodes."""
    wordnet = open_wordnet()
    _, (clear, first) = placed(wordnet, [names, [*map(_first_sense, names)]])
    graph = wordnet.all_nouns()
    nodes = {name: node for name in names if (node := clear.nodes.get(name) or first.nodes.get(_first_sense(name)))}
    return graph, nodes, {name: str(graph.nodes[node]["name"]) for name, node in nodes.items() if name != node}


def _proposed_roles(
    graph: Graph, seen: Sequence[str], nodes: Mapping[str, str], further: Sequence[str]
) -> tuple[list[str], list[str], str]:
    """Return known and negative classes among those that are seen in training, and the reason."""
    if further:
        return [*seen], [], "Classes with training images are known, others unknown."
    below: dict[str, list[str]] = {}
    for name in seen:
        for node in ancestors(graph, [nodes[name]]) if name in nodes else ():
            below.setdefault(node, []).append(name)
    # A super-class of at most two thirds, so that a third is unknown; of equal ones that with the most ancestors.
    fitting = [node for node, several in below.items() if 1 < len(several) <= 2 * len(seen) // 3]
    if fitting:
        node = max(fitting, key=lambda node: (len(below[node]), len(ancestors(graph, [node])), node))
        half = (len(below[node]) + 1) // 2
        note = (
            f"Super-class {graph.nodes[node]['name']}: the first half is known, the other negative; others are unknown."
        )
        return below[node][:half], below[node][half:], note
    half = max(len(seen) // 2, 1)
    quarter = (len(seen) - half) // 2
    return [*seen[:half]], [*seen[half : half + quarter]], "The first half is known, the next quarter negative."


def _proposed_shares(pools: Mapping[str, _Pool], sizes: Sequence[int]) -> list[str]:
    """Return the lines of the parameters: the source's own parts, or shares under which val is not empty."""
    lines = []
    if folders := [f"{use} is the {pool.origin}" for use, pool in pools.items() if pool.origin.startswith("folder")]:
        lines = [f'# {", ".join(folders)}; "shares" distributes all images anew.', 'parts = "source"']
    if not (shares := _usual_shares(pools)):
        return lines
    if not any(quotas(size, [*shares.values()])[1] for size in sizes):
        shares |= {"train": shares["train"] + shares["val"], "val": Decimal(0)}
    subject = "images" if IMAGES in pools else "training images"
    return [*lines, f"# Shares of each class's {subject}, by hash rank.", *(f"{k} = {v}" for k, v in shares.items())]
