"""The rule ``hierarchy``: known, negative and unknown classes for images with one class each.

After Large-Scale Open-Set Classification Protocols for ImageNet (WACV 2023). Training and validation images show known
and negative classes, test images known, negative and unknown ones. Classes are named as in the sources, as groups, or
as super-classes: synsets of WordNet, which stand for the classes of the sources below them.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
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
    draft,
    listed,
    other_spellings,
    quoted,
    quoted_key,
    source_tables,
)
from curation.core.errors import HierarchyError, ProtocolError, UsageError
from curation.core.ids import ilsvrc2012_classes
from curation.core.wording import did_you_mean, examples
from curation.evaluation.class_scores import NEGATIVE, UNKNOWN
from curation.manifest.header import ClassEntry, ClassRole, Header, LabelView, Order, Paper
from curation.manifest.manifest import Manifest
from curation.manifest.views import class_positions
from curation.signals.hierarchy.class_lists import placed
from curation.signals.hierarchy.hierarchy import ancestors, label, leaves_under, node_of
from curation.signals.hierarchy.wordnet import imagenet_dag, imagenet_tree, open_wordnet
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
Cut = Annotated[str, Meta(pattern=r"^(whole|halves|sixths|[KNU]{2,100})\Z")]
_USUAL = {"train": Decimal("0.7"), "val": Decimal("0.1"), "test": Decimal("0.2")}
_USUAL_OF_TRAIN = {"train": Decimal("0.8"), "val": Decimal("0.2")}
_SHOWN, _SEED = 20, 42


class HierarchyParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[parameters]`` of the rule.

    Attributes
    ----------
    parts : {"shares", "source"}
        Whether the images of a source are distributed by the shares, or keep the parts of its folders ``train``,
        ``val`` and ``test``.
    train, val, test : Decimal, optional
        Shares of each class's images, which sum to 1; `train` and `val` alone if the test part has separate images.
    cut : str
        How the n sorted classes of each known group or super-class are cut: ``whole`` (all are known), ``halves``
        (the first n // 2 are known, others negative), or a pattern such as ``KKNU``, repeated along them: K for
        known, N for negative, U for unknown; ``sixths`` is KNKUKN.
    tree : {"wordnet", "imagenet", "published"}
        The classes that super-classes contain: those of the sources, in WordNet; the 1,000 of ILSVRC-2012, with or
        without images in the sources; or these in the tree of the published protocols, where a synset has one parent.
    draw : {"hash", "scikit-learn"}
        Which images of a class are for training: the first by hash rank; or those of scikit-learn's
        ``train_test_split``, stratified by class, in its order, as in the published protocols.
    seed : int
        Seed of the draw ``scikit-learn``.
    missing : {"refuse", "report", "restrict"}
        Classes without images: an error; left out with a note, and all others keep role and label; or super-classes
        contain only classes of the training images, as in the authors' code, so that other classes change roles.
    salt : str
        Salt of the hash rank; by default the name of the benchmark.
    """

    parts: Literal["shares", "source"] = "shares"
    train: Decimal | None = None
    val: Decimal | None = None
    test: Decimal | None = None
    cut: Cut = "whole"
    tree: Literal["wordnet", "imagenet", "published"] = "wordnet"
    draw: Literal["hash", "scikit-learn"] = "hash"
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = _SEED
    missing: Literal["refuse", "report", "restrict"] = "refuse"
    salt: str = ""

    def __post_init__(self) -> None:
        """Raise `ValueError` for invalid shares, or a salt or seed of another draw."""
        shares = [share for share in (self.train, self.val, self.test) if share is not None]
        if not all(share.is_finite() and 0 <= share <= 1 for share in shares) or 0 in (self.train, self.test):
            raise ValueError("shares are decimals from 0 to 1; only that of val may be 0")
        if self.salt if self.draw == "scikit-learn" else self.seed != _SEED:
            raise ValueError('a salt for draw = "hash", a seed for draw = "scikit-learn"')


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
    """The sorted classes by role. Labels: the position of a known class, `NEGATIVE` and `UNKNOWN` for others."""

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
        The remedy for a class in two roles.

    Raises
    ------
    ProtocolError
        A class is in two roles.
    """
    by_letter: dict[str, list[str]] = {"K": [], "N": [*negative], "U": [*unknown]}
    for leaves in known:
        half = len(leaves) // 2
        patterns = {"whole": "K", "halves": "K" * half + "N" * (len(leaves) - half), "sixths": "KNKUKN"}
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
    """Return the manifest of a benchmark file of this rule, with the parts train, val and test.

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
    refuse_unused(
        benchmark, {"views": "views of boxes elsewhere", "classes.tasks": "known, negative and unknown classes"}
    )
    expected = '[sources.images]; or [sources.train], [sources.test], perhaps [sources.val]; or names with as = "ROLE"'
    by_use = benchmark.by_role(sources, _NEED, expected, (IMAGES,), ("train", "test"), USES)
    selection = select(benchmark, by_use, sources)
    classes = selection.roles.entries(benchmark.classes.aliases)
    order: Order = "listed" if benchmark.parameters.get("draw") == "scikit-learn" else "code_point"
    made = [
        make_part(name, name, images, classes, view=LabelView(), rule=rule, order=order)
        for name, images, rule in selection.parts
    ]
    require_images(made, {"val": "val = 0 in [parameters], with its share added to train; or more images"})
    benchmark = msgspec.structs.replace(benchmark, notes=(*benchmark.notes, *selection.notes))
    return manifest_of_file(benchmark, made, sources, classes, parameters, taxonomy="OSC")


class SelectedPart(NamedTuple):
    """A part before its list is made: its images in the order of the draw, and how they are selected."""

    name: PartName
    images: Selection
    rule: str


class SelectedImages(NamedTuple):
    """The classes by role, the parts, and notes on classes that are left out."""

    roles: RolePartition
    parts: list[SelectedPart]
    notes: tuple[str, ...]


def select(benchmark: BenchmarkFile, by_use: Mapping[str, str], sources: Mapping[str, Source]) -> SelectedImages:
    """Return the classes of a benchmark file and the images of each part.

    Parameters
    ----------
    by_use : mapping of str to str
        Names of the sources by role; a part without its source is left out.

    Raises
    ------
    ProtocolError
        As `build`.
    """
    settings = benchmark.parameters_as(HierarchyParameters)
    if not (pools := _pools(by_use, sources, keep=settings.parts == "source")):
        raise ProtocolError(
            "The source has no parts to keep",
            where="[parameters] parts",
            expected="one source: a folder train, and a folder test or val (valid), each with class folders",
            found=", ".join(by_use),
            hint='parts = "shares" in [parameters]',
        )
    offered = sorted({name for source in sources.values() for name in source.categories.names})
    leaves: Sequence[str] = offered if settings.tree == "wordnet" else ilsvrc2012_classes()
    if settings.missing == "restrict":
        available = _class_counts(pools[IMAGES if IMAGES in pools else "train"])
        leaves = [name for name in leaves if name in available]
    roles, unassigned = roles_of(benchmark, leaves)
    parts, notes = _select_parts(benchmark, settings, pools, roles.entries(benchmark.classes.aliases))
    if unassigned and settings.tree == "wordnet":
        names_of_some = ", ".join(unassigned[:_SHOWN])
        notes.append(f"Classes of the sources without a role, left out ({len(unassigned)}): {names_of_some}.")
    return SelectedImages(roles, parts, tuple(dict.fromkeys(notes)))


class _Pool(NamedTuple):
    """Images from which parts are selected: those of a source or one of its folders."""

    slot: str
    source: Source
    positions: Int64s
    origin: str


def _pools(by_use: Mapping[str, str], sources: Mapping[str, Source], *, keep: bool) -> dict[str, _Pool]:
    """Return the images by use: ``images``, or ``train``, ``test`` and perhaps ``val``.

    Parameters
    ----------
    by_use : mapping of str to str
        Names of the sources.
    keep : bool
        Whether to use the folders of a single source; empty without a folder ``train`` and another one.
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


def _select_parts(
    benchmark: BenchmarkFile, settings: HierarchyParameters, pools: Mapping[str, _Pool], classes: Sequence[ClassEntry]
) -> tuple[list[SelectedPart], list[str]]:
    """Return the parts, and notes on classes without images or outside ILSVRC-2012."""
    shares = _shares(settings, pools)
    is_drawn = settings.draw == "scikit-learn"
    labels_of = {use: _class_of(pool, classes) for use, pool in pools.items()}
    rows_of: dict[PartName, Int64s] = {
        part: _sorted_rows(pools[part], labels_of[part]) if is_drawn else np.arange(len(labels_of[part]))
        for part in USES
        if part in pools and part not in shares
    }
    split_use = IMAGES if IMAGES in pools else "train"
    if shares and split_use in pools:
        pool, labels = pools[split_use], labels_of[split_use]
        rows_of |= (
            _draw(pool, labels, classes, shares, settings.seed)
            if is_drawn
            else _split(pool, labels, shares, settings.salt or benchmark.name)
        )
    parts, notes = [], []
    for part in USES:
        if part not in rows_of:
            continue
        use, roles = split_use if part in shares else part, ROLES if part == "test" else SEEN
        pool, labels, rows = pools[use], labels_of[use], rows_of[part]
        # Known classes come first, then negative ones: those of a part are the first of them.
        entries = [entry for entry in classes if entry.role in roles]
        rows = rows[np.isin(labels[rows], np.arange(len(entries)))]
        rule = f"Images of {', '.join(roles[:-1])} and {roles[-1]} classes in {pool.origin}"
        if part in shares:
            rule += f": a share of {decimal_text(shares[part])} of each class, by " + (
                f"scikit-learn's train_test_split with the seed {settings.seed}, in its order"
                if is_drawn
                else "the rank of sha256(salt + id)"
            )
        allowed = {*np.unique(labels[rows]).tolist()} if part != "val" else range(len(entries))
        lacking = [entry.name for number, entry in enumerate(entries) if number not in allowed]
        lacking = [name for name in lacking if name not in benchmark.classes.absent]
        if lacking and settings.missing == "refuse":
            raise _no_images(part, pool, settings, lacking, entries)
        if lacking:
            notes.append(f"Without an image in {pool.slot}: {', '.join(lacking)}.")
        if settings.tree != "wordnet" and (extra := sorted({*pool.source.categories.names} - {*ilsvrc2012_classes()})):
            notes.append(
                f"Not of ILSVRC-2012, left out of {pool.slot}: {', '.join(extra[:_SHOWN])} ({len(extra)} classes)."
            )
        parts.append(SelectedPart(part, Selection(pool.slot, pool.source, pool.positions[rows]), f"{rule}."))
    return parts, notes


def _shares(settings: HierarchyParameters, pools: Mapping[str, _Pool]) -> dict[PartName, Decimal]:
    """Return the share of each part that is split off; empty if every part has separate images."""
    usual = _usual_shares(pools)
    chosen = {part: share for part in USES if (share := getattr(settings, part)) is not None}
    shares = dict(chosen or usual)
    if shares.keys() != usual.keys() or sum(shares.values()) != bool(usual):
        raise ProtocolError(
            "The shares do not fit the sources",
            where=f"[parameters] {', '.join(chosen)}",
            expected="no shares: every part has a separate source of images"
            if not usual
            else "shares that sum to 1, such as " + ", ".join(f"{part} = {share}" for part, share in usual.items()),
            found=", ".join(f"{part} = {decimal_text(share)}" for part, share in chosen.items()),
        )
    if shares and settings.draw == "scikit-learn" and not (shares.get("val") and "test" not in shares):
        raise ProtocolError(
            "The draw scikit-learn splits into train and val only",
            where="[parameters] draw",
            expected="a training source, with shares of train and val, and a test source",
            hint='draw = "hash"',
        )
    return {part: shares[part] for part in USES if shares.get(part)}


def _usual_shares(pools: Mapping[str, _Pool]) -> dict[str, Decimal]:
    return {} if "val" in pools else dict(_USUAL if IMAGES in pools else _USUAL_OF_TRAIN)


def _split(pool: _Pool, labels: Int64s, shares: Mapping[PartName, Decimal], salt: str) -> dict[PartName, Int64s]:
    """Return the rows of a pool for each part: the part's share of each class, in the order of the hash rank."""
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


def _draw(
    pool: _Pool, labels: Int64s, classes: Sequence[ClassEntry], shares: Mapping[PartName, Decimal], seed: int
) -> dict[PartName, Int64s]:
    """Return rows of a pool for training and validation, as scikit-learn draws them from sorted classes and files."""
    seen = sorted((entry.name, number) for number, entry in enumerate(classes) if entry.role in SEEN)
    rank = np.full(len(classes) + 1, -1)
    rank[[number for _, number in seen]] = np.arange(len(seen))
    if not len(rows := _sorted_rows(pool, rank[labels])):
        return {"train": rows, "val": rows}
    sizes = np.bincount(rank[labels[rows]])
    train, val = split_sizes(sizes[sizes > 0], train_size=float(shares["train"]), seed=seed)
    return {"train": rows[train], "val": rows[val]}


def _sorted_rows(pool: _Pool, rank: Int64s) -> Int64s:
    """Return the rows of a pool sorted by the rank of their class, then file name, without rank -1."""
    rows = np.flatnonzero(rank >= 0)
    images, positions = pool.source.images, pool.positions[rows]
    pairs = zip(images.file_names[positions].tolist(), images.native[positions].tolist(), strict=True)
    names = [name or native for name, native in pairs]
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    rows = rows[by_name]
    return rows[np.argsort(rank[rows], kind="stable")]


def split_sizes(sizes: Int64s, *, train_size: float = 0.8, seed: int = 42) -> tuple[Int64s, Int64s]:
    """Return the positions of the training and validation items, in scikit-learn's order.

    The items are grouped by class, the classes sorted.

    Parameters
    ----------
    sizes : ndarray of int64
        Number of items of each class.
    train_size : float
        Share of the items for training, in (0, 1).
    seed : int

    Raises
    ------
    ProtocolError
        A class has one item, or a side would have fewer items than there are classes
        (scikit-learn refuses the same).
    """
    n = int(sizes.sum())
    n_train = int(np.floor(train_size * n))
    if not len(sizes) or sizes.min() < 2 or min(n_train, n - n_train) < len(sizes):
        raise ProtocolError(
            "The classes are too small for a stratified split",
            expected="at least two items of every class, and at least as many items on each side as there are classes",
            found=f"{len(sizes)} classes, the smallest of {int(sizes.min()) if len(sizes) else 0} items; "
            f"{n_train} and {n - n_train} items",
        )
    # The generator, its calls and their order are part of the published lists.
    random = np.random.RandomState(seed)
    in_train = _allotted(sizes, n_train, random)
    in_val = _allotted(sizes - in_train, n - n_train, random)
    starts = np.cumsum(sizes) - sizes
    train, val = [], []
    for start, size, first, second in zip(
        starts.tolist(), sizes.tolist(), in_train.tolist(), in_val.tolist(), strict=True
    ):
        shuffled = start + random.permutation(size)
        train.append(shuffled[:first])
        val.append(shuffled[first : first + second])
    return (
        np.asarray(random.permutation(np.concatenate(train)), np.int64),
        np.asarray(random.permutation(np.concatenate(val)), np.int64),
    )


def _allotted(sizes: Int64s, draws: int, random: np.random.RandomState) -> Int64s:
    """Return the number of draws for each class: scikit-learn's ``_approximate_mode``."""
    # The order of the two operations affects the rounding for some classes.
    share = sizes / sizes.sum() * draws
    floored = np.floor(share)
    needed = int(draws - floored.sum())
    if needed > 0:
        remainder = share - floored
        for value in np.sort(np.unique(remainder))[::-1]:
            (tied,) = np.where(remainder == value)
            added = min(len(tied), needed)
            floored[random.choice(tied, size=added, replace=False)] += 1
            needed -= added
            if needed == 0:
                break
    return np.asarray(floored, np.int64)


def _no_images(
    part: PartName, pool: _Pool, settings: HierarchyParameters, lacking: Sequence[str], entries: Sequence[ClassEntry]
) -> ProtocolError:
    """Return the error for classes of a part that have no image in it."""
    used, listed_names = {entry.name for entry in entries}, array(lacking[:_SHOWN])
    others = [name for name in pool.source.categories.names if name not in used]
    otherwise = f"in [classes], ignored = {listed_names} instead of their roles, or absent = {listed_names} in addition"
    form = f"[classes.aliases] {quoted_key(lacking[0])} = [{quoted('{}')}]"
    if settings.tree != "wordnet":
        others, otherwise = [], 'missing = "report" in [parameters], or --set missing=report, leaves them out'
    return ProtocolError(
        f"Classes have no image in the part {part}",
        where=f"source {pool.slot}, {pool.origin}",
        expected=f"images of each of the {len(entries)} classes",
        found=f"no images of {listed_names}"[:300],
        hint=did_you_mean(lacking[0], others, otherwise, form),
    )


_GRAPHS: dict[str, Callable[[], Graph]] = {
    "wordnet": lambda: open_wordnet().all_nouns(),
    "imagenet": imagenet_dag,
    "published": imagenet_tree,
}


class _SuperClass(NamedTuple):
    """A super-class that a role lists, by its position in the role."""

    role: str
    position: int
    text: str
    node: str


def roles_of(
    benchmark: BenchmarkFile, names: Sequence[str], graph: Graph | None = None
) -> tuple[RolePartition, tuple[str, ...]]:
    """Return the classes of each role, and the classes of the sources without a role.

    A name is a class of the sources, a group of such names, or a super-class of WordNet. A super-class
    contains the classes at or below it that no role names; if a super-class is inside another, the inner one decides.

    Parameters
    ----------
    names : sequence of str
        The classes to divide: those of the sources, or of ILSVRC-2012.
    graph : networkx.DiGraph, optional
        Graph of the super-classes; by default that of the parameter ``tree``.

    Raises
    ------
    ProtocolError
        A name is none of these, a class has two roles, no class is known or unknown, or super-classes are used and a
        class is not in WordNet.
    """
    classes, settings = benchmark.classes, benchmark.parameters_as(HierarchyParameters)
    alias_of = {alias: name for name, several in classes.aliases.items() for alias in several}
    available = dict.fromkeys(alias_of.get(name, name) for name in names)
    roles = (*ROLES, "ignored")
    # A list for each name of a role: each group and each super-class is cut separately.
    members: dict[str, list[list[str]]] = {role: [] for role in roles}
    unresolved: list[tuple[str, int, str]] = []
    for role in roles:
        for position, listed_name in enumerate(getattr(classes, role)):
            texts = classes.leaves((listed_name,))
            members[role].append([text for text in texts if text in available or text in classes.absent])
            unresolved += [(role, position, text) for text in texts if text not in members[role][-1]]
    assigned = [name for role in roles for group in members[role] for name in dict.fromkeys(group)]
    if repeated := [name for name in dict.fromkeys(assigned) if assigned.count(name) > 1]:
        *_, last = (role for role in roles if any(repeated[0] in group for group in members[role]))
        raise ProtocolError("A class is listed twice", where=f"[classes] {last}", found=", ".join(repeated[:3]))
    require_named(benchmark, "absent", {*available, *assigned})
    require_named(benchmark, "aliases", available)
    if not isinstance(classes.synsets, str):
        require_named(benchmark, "synsets", {*available, *assigned})
    if unresolved or classes.synsets:
        graph = _GRAPHS[settings.tree]() if graph is None else graph
        is_restricted = settings.missing == "restrict"
        _add_super_classes(
            benchmark, graph, unresolved, [*available], {*assigned}, members, is_restricted=is_restricted
        )
    hint = "list the classes of a super-class instead of its name"
    known = [sorted(group) for group in members["known"]]
    negative, unknown = ([name for group in members[role] for name in group] for role in ("negative", "unknown"))
    partition = partition_classes(known, negative, unknown, settings.cut, hint=hint)
    with_role = {*partition.labels(), *(name for group in members["ignored"] for name in group)}
    roleless = [name for name in available if name not in with_role]
    for role in ("known", "unknown") if settings.missing != "restrict" else ("known",):
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
    graph: Graph,
    unresolved: Sequence[tuple[str, int, str]],
    names: Sequence[str],
    assigned: Collection[str],
    members: Mapping[str, list[list[str]]],
    *,
    is_restricted: bool,
) -> None:
    """Add to each role the unnamed classes at or below its super-classes.

    With restricted classes a super-class may be empty; otherwise an empty one is an error.
    """
    node_of_class, absent = _nodes_of_classes(benchmark, graph, names)
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
        # The first sense of a name: sea_lion.n.01 for "Sea lion".
        sense = f"{first.strip().lower().replace(' ', '_')}.n.01"
        sense = next(iter(placed(graph, [[sense]])[1][0].nodes), "dog.n.01")
        raise ProtocolError(
            "Classes without a role are not in WordNet, so that super-classes cannot decide about them",
            where="[classes.synsets]",
            expected="a synset of each of them",
            found=f"{examples(unplaced)}; {first}: {absent[first]}",
            hint=f'[classes.synsets] {quoted_key(first)} = "{sense}"; or ignored = [{quoted(first)}] leaves it out',
        )
    for each in () if is_restricted else nodes:
        if each not in used:
            raise ProtocolError(
                "No unlisted class is at or below a super-class",
                where=f"[classes] {each.role}: {each.text}",
                expected=f"one of the classes {', '.join(names)}"[:300] + ", a group, or a synset above some of them",
                found=f"{each.text}, the synset {label(graph, each.node)}",
                hint=did_you_mean(each.text, names, f"remove {quoted(each.text)}"),
            )


def _nodes_of_classes(
    benchmark: BenchmarkFile, graph: Graph, names: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the synset of each class, and the reason for classes without one.

    The synset comes from ``[classes.synsets]``, else from the name if it has a single meaning.

    Raises
    ------
    ProtocolError
        A value of ``[classes.synsets]`` is not a synset.
    """
    declared = benchmark.classes.synsets
    maps, synsets = ((declared,), {}) if isinstance(declared, str) else ((), declared)
    texts = [synsets.get(name, name) for name in names]
    _, (matches,) = placed(graph, [texts], maps)
    if wrong := [name for name in names if name in synsets and synsets[name] not in matches.nodes]:
        raise ProtocolError(
            "A synset of the benchmark file is not in WordNet",
            where=f"[classes.synsets] {wrong[0]}",
            expected="a noun synset such as dog.n.01 or n02084071",
            found=f"{synsets[wrong[0]]!r:.80}: {matches.absent[synsets[wrong[0]]]}"[:300],
            hint=f"curation hierarchy find {shlex.quote(wrong[0])}",
        )
    text_of = dict(zip(names, texts, strict=True))
    nodes = {name: matches.nodes[text] for name, text in text_of.items() if text in matches.nodes}
    return nodes, {name: matches.absent[text] for name, text in text_of.items() if text in matches.absent}


def _node(graph: Graph, benchmark: BenchmarkFile, role: str, text: str, names: Sequence[str]) -> str:
    try:
        return node_of(graph, text)
    except HierarchyError as error:
        raise ProtocolError(
            "A name is not a class of the sources, a group, or a synset of WordNet",
            where=f"[classes] {role}",
            expected=f"one of {', '.join(names)}"[:200] + "; a group of [classes.groups]; or a synset such as dog.n.01",
            found=f"{text!r:.80}" + (f": {error.found}" if error.found else ""),
            hint=did_you_mean(text, [*names, *benchmark.classes.groups], error.hint),
        ) from None


def start(sources: Mapping[str, Source], options: StartOptions) -> list[str]:
    """Return the lines of a draft file.

    The known classes are those with training images, or the first half of them if the test part has no others.

    Raises
    ------
    UsageError
        The sources are neither a single one nor a training and a test source.
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
    # Without a class that is only in the test part: the first half is known, the next quarter negative, others unknown.
    half = len(seen) if further else max(len(seen) // 2, 1)
    quarter = (len(seen) - half) // 2
    known, negative, unknown = seen[:half], seen[half : half + quarter], [*seen[half + quarter :], *further]
    if not known or not unknown:
        raise ProtocolError(
            "No two classes have enough images for known and unknown ones",
            where=", ".join(sources),
            expected="two classes of three images each, or of training and test images, or one of test images only",
            found=", ".join(f"{name}: {' and '.join(map(str, n))}" for name, n in [*counts.items()][:5]),
        )
    ignored = [name for name in counts if name not in {*known, *negative, *unknown}]
    roles = {"known": known, "negative": negative, "unknown": unknown, "ignored": ignored}
    units = [side if side == IMAGES else f"{side} images" for side in sides]
    remarks = {
        name: " and ".join(f"{n:,} {unit}" for n, unit in zip(numbers, units, strict=True))
        for name, numbers in counts.items()
    }
    classes = [
        "# Change the roles of the classes as you need.",
        '# A role may also list a group, or a super-class such as "animal.n.01": its classes by [classes.synsets].',
        *(line for role, names in roles.items() for line in listed(role, names, [remarks[name] for name in names])),
        *alias_lines({name: [alias] for name, alias in aliases.items()}),
    ]
    shares = _proposed_shares(pools, [counts[name][0] for name in (*known, *negative)])
    return draft("hierarchy", options, source_tables(sources, options.name), classes, shares)


def _class_counts(pool: _Pool) -> Counter[str]:
    """Return the number of images of each class."""
    return Counter(
        np.array(pool.source.categories.names, object)[class_of_images(pool.source)[pool.positions]].tolist()
    )


def _proposed_shares(pools: Mapping[str, _Pool], sizes: Sequence[int]) -> list[str]:
    """Return the lines of the parameters: the parts of the source, or shares with a non-empty val."""
    lines = []
    if folders := [f"{use} is the {pool.origin}" for use, pool in pools.items() if pool.origin.startswith("folder")]:
        lines = [f'# {", ".join(folders)}; "shares" distributes all images anew.', 'parts = "source"']
    if not (shares := _usual_shares(pools)):
        return lines
    if not any(quotas(size, [*shares.values()])[1] for size in sizes):
        shares |= {"train": shares["train"] + shares["val"], "val": Decimal(0)}
    subject = "images" if IMAGES in pools else "training images"
    return [*lines, f"# Shares of each class's {subject}, by hash rank.", *(f"{k} = {v}" for k, v in shares.items())]
