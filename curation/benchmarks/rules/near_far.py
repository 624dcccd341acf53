"""The rule ``near-far``: images without an in-distribution class that are near, far, or farther from these classes.

After FindMeIfYouCan (2025). The parts of a source are ``SOURCE-rule``, the images that the start rule accepts;
``SOURCE-start``, if there is a list of start images; and ``SOURCE-near`` and ``SOURCE-far``, or ``SOURCE-farther`` for
a source that is farther as a whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import Part, images_with, manifest_of_file
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, ClassNames, refuse_unused, require_named, stated_in
from curation.benchmarks.rules.ood_pools import OodPair, OodPool, Splits, pair_lists
from curation.benchmarks.rules.replay import read_decisions_file as read_decisions_file
from curation.benchmarks.rules.replay import read_recorded as read_recorded
from curation.benchmarks.rules.starting import (
    StartOptions,
    alias_lines,
    by_class,
    draft,
    listed,
    object_counts,
    other_names,
    quoted,
    quoted_key,
    require_usable,
    source_tables,
)
from curation.core.errors import ProtocolError, UsageError
from curation.core.wording import did_you_mean
from curation.manifest.header import Header, Paper
from curation.manifest.manifest import Manifest
from curation.review.decisions.resolution import recorded_digest
from curation.signals.hierarchy import open_wordnet
from curation.signals.hierarchy.class_lists import DATASETS
from curation.signals.hierarchy.related_classes import ClassKin, class_kin, kinship, nearest_known
from curation.sources.source import Source

NEAR_FAR, FARTHER, CANDIDATES, START_LIST = ROLES = ("near-far", "farther", "candidates", "start-list")
_NAME, _NAMES_OF_POOLS = re.compile("[a-z0-9][a-z0-9_]{0,31}"), "a word of up to 32 letters, digits and _"
NEAR_WUP = 0.82
"""Minimum Wu-Palmer similarity of a near category for `init`, as for proposals; the paper does not state one."""
_VARIOUS = "various"
"""The ID class of a category that is near to several ID classes."""
_Reasons = dict[Annotated[str, Meta(min_length=1)], str]


class NearFarParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[parameters]`` of the rule.

    Attributes
    ----------
    near : dict of str to dict of str to str
        By source, the categories whose images are near, each with the ID class concerned, or ``various``.
    remove : dict of str to dict of str to str
        By source, the categories whose images are removed, each with the ID class concerned, or ``various``; they are
        removed even if they are near.
    pools : dict of str to str
        By source, its name in parts and decisions, if it differs from the name of the source.
    whole : tuple of str
        Sources that start from all images; others start from images without an annotation of an ID class.
    id_names : dict of str to tuple of str
        By source, the categories that are ID classes, if they differ from the names and aliases of the classes.
    reasons : dict of str to tuple of str
        By source, the reasons for which removals of the manual stage count among the decisions; by default all do.
    id_objects : {"unknown", "ignore"}
        How to treat objects of an ID class that remain in a split.
    """

    near: dict[str, _Reasons] = {}
    remove: dict[str, _Reasons] = {}
    pools: dict[str, Annotated[str, Meta(pattern=rf"^{_NAME.pattern}\Z")]] = {}
    whole: tuple[str, ...] = ()
    id_names: dict[str, ClassNames] = {}
    reasons: dict[str, tuple[str, ...]] = {}
    id_objects: Literal["unknown", "ignore"] = "unknown"


PARAMETERS = NearFarParameters
_KNOWN_ALONE = "known alone: every other class is unknown"
_UNUSED = {f"classes.{key}": _KNOWN_ALONE for key in ("negative", "unknown", "ignored", "tasks")} | {
    "views": "none: id_objects in [parameters] says what objects of an ID class are"
}
USUAL_SOURCES = ("id", "ood")
PARTS = (
    ("SOURCE-rule", "images without an ID class by their annotations"),
    ("SOURCE-start", "where the review by eye began, if a list of start images is given"),
    ("SOURCE-near, SOURCE-far", "with a category that is near, and the rest, after the decisions"),
    ("SOURCE-farther", "all of a source that is farther as a whole"),
)
PAPER = fact("curation.benchmarks.findmeifyoucan", "paper", Paper)


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a benchmark file of this rule.

    Parameters
    ----------
    sources : mapping of str to Source
        At least one in the role ``near-far`` or ``farther``, with boxes.
    parameters : mapping
        ``file``: the benchmark file as `read_benchmark_file` returns it; ``decisions`` as `read_recorded` does.

    Raises
    ------
    ProtocolError
        The file is inconsistent, the sources or decisions do not fit it, or a split is empty.
    PresenceOnlyError
        A source has no boxes.
    """
    benchmark = stated_in(parameters["file"])
    settings = benchmark.parameters_as(NearFarParameters)
    pair = pair_of_file(benchmark)
    pools = tuple(pool for pool in pair.pools if pool.start in sources)
    if not pools:
        expected = " or ".join(f"--source {pool.start}=PATH" for pool in pair.pools)
        raise UsageError("No source of images is given", expected=expected, found=", ".join(sources) or "none")
    pair = msgspec.structs.replace(pair, pools=pools)
    for pool in pools:
        _require_categories(pair, pool, sources[pool.start])
    decisions = parameters["decisions"]
    made = pair_lists(pair, sources, decisions=decisions, start="own", id_objects=settings.id_objects)
    for split in made.splits:
        _require_images(split)
    digest = recorded_digest(decisions)
    return manifest_of_file(
        benchmark,
        [part for part in made.parts if isinstance(part, Part)],
        sources,
        made.classes,
        parameters,
        taxonomy="OSOD-II",
        notes=made.notes,
        origin="reviewed" if digest else "regenerated",
        decisions=digest,
    )


def score_words(header: Header) -> tuple[str, ...]:
    """Return the options by which `evaluate` scores a manifest of this rule: a file of detections for each split."""
    parts = [part.name for part in header.parts if part.name.endswith(("-near", "-far", "-farther"))]
    return (*(option for part in parts for option in ("--detections", f"{part}=FILE")), "--scores", "ID_FILE")


def pair_of_file(benchmark: BenchmarkFile) -> OodPair:
    """Return the ID classes and the pools of OOD images that a benchmark file states.

    Raises
    ------
    ProtocolError
        The file is inconsistent; the message names the table, the expected and the actual value.
    """
    settings, classes = benchmark.parameters_as(NearFarParameters), benchmark.classes
    roles = {name: benchmark.role(name) for name in benchmark.sources}
    # Images to start from, and images that decisions may add, belong to the source with their dataset.
    helpers = {(role, benchmark.dataset(name)): name for name, role in roles.items()}
    pair = OodPair(
        name=benchmark.name,
        title=benchmark.title,
        id_classes=classes.of("known"),
        aliases=classes.aliases,
        synsets=classes.synsets if isinstance(classes.synsets, str) else "",
        pools=tuple(
            OodPool(
                name=settings.pools.get(name, name),
                dataset=(dataset := benchmark.dataset(name)),
                start=name,
                # Where only removals count, no image is added.
                candidates="" if name in settings.reasons else helpers.get((CANDIDATES, dataset), name),
                published=helpers.get((START_LIST, dataset), ""),
                rule=name not in settings.whole,
                id_names=settings.id_names.get(name, ()),
                remove=settings.remove.get(name, {}),
                near=settings.near.get(name, {}),
                distance="farther" if role == FARTHER else "far",
                reasons=settings.reasons.get(name, ()),
            )
            for name, role in roles.items()
            if role in (NEAR_FAR, FARTHER)
        ),
    )
    for field, expected, value in _problems(benchmark, settings, pair):
        raise ProtocolError("The benchmark file is inconsistent", where=field, expected=expected, found=value[:200])
    refuse_unused(benchmark, _UNUSED)
    require_named(benchmark, "aliases", pair.id_classes)
    return pair


def _problems(benchmark: BenchmarkFile, settings: NearFarParameters, pair: OodPair) -> Iterator[tuple[str, str, str]]:
    """Yield the key of each inconsistency, the expected and the actual value."""
    classes, pools = benchmark.classes, {pool.start: pool for pool in pair.pools}
    if not pair.id_classes:
        yield "[classes]", 'the ID classes, such as known = ["cat", "dog"]', "no known class"
    if classes.synsets and pair.synsets not in DATASETS:
        yield "[classes] synsets", f"the name of a map: {', '.join(DATASETS)}", pair.synsets or "a table"
    for name in benchmark.sources:
        if (role := benchmark.role(name)) not in ROLES:
            yield (
                f"[sources] {name}",
                f"as = one of {', '.join(map(quoted, ROLES))}",
                f"as = {_with_near(role, ROLES)}",
            )
        elif name in pools and not _NAME.fullmatch(pools[name].name):
            yield f"[sources] {name}", f"{_NAMES_OF_POOLS}: decisions name the source by it", name
    if not pools:
        roles = ", ".join(f"{name} as {benchmark.role(name)}" for name in benchmark.sources)
        yield "[sources]", f'a table with as = "{NEAR_FAR}" or as = "{FARTHER}"', roles
    datasets = [pool.dataset for pool in pair.pools]
    for name in (name for name in benchmark.sources if name not in pools):
        if datasets.count(dataset := benchmark.dataset(name)) != 1:
            expected = f'the dataset of exactly one source with as = "{NEAR_FAR}" or as = "{FARTHER}"'
            yield f"[sources] {name}", expected, dataset
    for key in ("near", "remove", "reasons", "whole", "pools", "id_names"):
        for name in getattr(settings, key):
            if name not in pools:
                yield f"[parameters] {key}", f"a source such as {', '.join(pools)}", _with_near(name, pools)
    for key in ("near", "remove"):
        for name, reasons in getattr(settings, key).items():
            for category, reason in reasons.items():
                if reason not in (*pair.id_classes, _VARIOUS):
                    expected = f"the ID class concerned: one of {', '.join(pair.id_classes)}"[:300]
                    yield f"[parameters.{key}.{name}] {category}", expected, _with_near(reason, pair.id_classes)
    for pool in pair.pools:
        if pool.near and not pool.has_near:
            yield f"pool {pool.name}: near", "none in a pool that is farther as a whole", next(iter(pool.near))
    names = [*pair.id_classes, *(alias for several in pair.aliases.values() for alias in several)]
    for field, values in {"aliases": names, "pools": [pool.name for pool in pair.pools]}.items():
        yield from ((field, "each once", f"{name} twice") for name, n in Counter(values).items() if n > 1)
    names += [name for pool in pair.pools for name in (*pool.id_names, *pool.remove, *pool.near)]
    for name in names:
        if not 0 < len(name) <= 200 or not name.isprintable() or name != name.strip():
            yield "names", "printable names of 1 to 200 characters without outer blanks", name


def _with_near(name: str, names: Collection[str]) -> str:
    return repr(name) + (did_you_mean(name, names, "", "; did you mean '{}'?") or "")


def _require_categories(pair: OodPair, pool: OodPool, source: Source) -> None:
    """Raise `ProtocolError` for a category that the source lacks, or an ID class that it spells differently."""
    there = source.categories.names
    for key in ("near", "remove"):
        for category in getattr(pool, key):
            if category not in there:
                raise ProtocolError(
                    "A source has no such category",
                    where=f"[parameters.{key}.{pool.start}] {category[:80]}",
                    expected=f"one of {', '.join(there)}"[:300],
                    found=_with_near(category, there),
                )
    ids, listed_names = pair.id_names(pool), {*pool.near, *pool.remove}
    folded = {name.casefold(): owner for name, owner in pair.names().items()}
    for category in there:
        owner = folded.get(category.casefold())
        if owner and category not in ids and category not in listed_names and pool.rule:
            raise ProtocolError(
                "A source spells an ID class differently: its images would be out of distribution",
                where=f"source {pool.start}: category {category}",
                expected="each ID class under one of its names",
                found=f"{category!r} beside {owner!r}",
                hint=f"[classes.aliases] {quoted_key(owner)} = [{quoted(category)}]",
            )


def _require_images(split: Splits) -> None:
    """Raise `ProtocolError` for a split that cannot be made or is empty."""
    pool = split.pool
    if split.missing:
        raise ProtocolError("A split cannot be made", where=f"source {pool.start}", found=split.missing)
    for part in pool.parts:
        if split.missing_of(part):
            raise ProtocolError(
                "Decisions add images from a source that is not given",
                where=f"part {part}",
                expected=f"--source {pool.candidates}=PATH",
                found=f"{len(split.added[part])} added images",
            )
        if not split.images(part):
            ways = f"categories in [parameters.near.{pool.start}], decisions, or as = {quoted(FARTHER)}"
            counts = {name: len(split.images(name)) for name in pool.parts} | {"removed": len(split.outcome.removed)}
            raise ProtocolError(
                f"No image is {part.rpartition('-')[2]}",
                where=f"source {pool.start}",
                expected=f"an image in each of {', '.join(pool.parts)}",
                found=", ".join(f"{name} {n}" for name, n in counts.items()),
                hint=ways if part == pool.near_part else f"fewer categories in near and remove of {pool.start}",
            )


def start(sources: Mapping[str, Source], options: StartOptions) -> list[str]:
    """Return the lines of a draft file: ID classes, and relations of other categories to them by WordNet.

    A category that is an ID class under another name becomes an alias. A category below or above an ID class is
    removed, since its images show or may show that class. A category similar to an ID class is near.

    Raises
    ------
    UsageError
        The source ``id`` or a second source is missing.
    ProtocolError
        The ID source has no objects, or no image of another source remains.
    """
    id_name, *_ = USUAL_SOURCES
    if id_name not in sources or len(sources) < 2:
        raise UsageError(
            "The rule near-far needs the ID classes and at least one source of other images",
            expected="--source id=PATH --source ood=PATH",
            found=", ".join(sources),
        )
    counts = object_counts({id_name: sources[id_name]})
    known = [name for name, (objects, _) in counts.items() if objects]
    if not known:
        raise ProtocolError("The source has no objects", where=f"source {id_name}", expected="annotated classes")
    require_usable(known, f"source {id_name}")
    others = {name: source for name, source in sources.items() if name != id_name}
    if strange := [name for name in others if not _NAME.fullmatch(name)]:
        raise UsageError(
            "Decisions cannot refer to this source", expected=f"{_NAMES_OF_POOLS}: --source zoo=PATH", found=strange[0]
        )
    aliases: dict[str, str] = {}
    tables: list[str] = []
    roles = {}
    for name, source in others.items():
        source.require_objects("A start list")
        counted = object_counts({name: source})
        kin = class_kin([label for label, (n, _) in counted.items() if n], known, datasets=DATASETS)
        renamed = other_names(known, [*counted], kin)
        aliases |= renamed
        remove = {label: kin.relatives[label] for label in kin.of("below", "above") if label not in renamed}
        near = _similar(kin, {*remove, *renamed, *known})
        for label in (*renamed, *remove, *near):
            require_usable([label], f"source {name}")
        remaining = ~images_with(source, {*known, *renamed, *remove})
        if not remaining.any():
            raise ProtocolError(
                "No image without ID classes remains",
                where=f"source {name}",
                expected="images without an ID class, its sub-classes and its super-classes",
                found=f"{len(remaining)} images, each with an ID class or a sub-class or super-class of an ID class",
                hint=f"--source {name}=PATH of images of other classes, or fewer ID classes in the file",
            )
        shows_near = images_with(source, near)
        near = near if (remaining & shows_near).any() and (remaining & ~shows_near).any() else {}
        roles[name] = NEAR_FAR if near else FARTHER
        relations = {"below": "is a kind of", "above": "may be a"}
        tables += _table(
            f"remove.{quoted_key(name)}",
            "Categories whose images are removed: they show an ID class, or may show one.",
            {label: (its.known[0], relations[its.relation]) for label, its in remove.items()},
            counted,
        )
        title = f"Categories whose images are near: Wu-Palmer similarity {NEAR_WUP} or more in WordNet."
        near_rows = {label: (owner, f"{score:.2f} similar to") for label, (owner, score) in near.items()}
        tables += _table(f"near.{quoted_key(name)}", title, near_rows, counted)
        if kin.unknown.absent:
            tables += ["", f"# Not judged in {name}, since WordNet lacks these names or has several meanings of them:"]
            tables += [f"#   {quoted(label)}: {why}" for label, why in kin.unknown.absent.items()]
        if not near:
            more = f'as = "{NEAR_FAR}", and categories in [parameters.near.{quoted_key(name)}]'
            tables += ["", f"# {name} is not split, for lack of near images or of others. Your own split: {more}."]
    remarks = ["{:,} objects on {:,} images".format(*counts[name]) for name in known]
    classes = ["# In-distribution classes: those that your detector knows.", *listed("known", known, remarks)]
    classes += alias_lines(by_class(aliases))
    parameters = ["# Objects of an ID class that a split still has: unknown, or ignore.", 'id_objects = "unknown"']
    return draft("near-far", options, source_tables(others, options.name, roles), classes, [*parameters, *tables])


def _similar(kin: ClassKin, apart: Collection[str]) -> dict[str, tuple[str, float]]:
    """Return the categories that are similar to an ID class, with the class and the similarity."""
    nodes = {name: node for name, node in kin.unknown.nodes.items() if name not in apart}
    owners = {node: name for name, node in reversed(kin.known.nodes.items())}
    if not nodes or not owners:
        return {}
    every = list(dict.fromkeys([*nodes.values(), *owners]))
    graph = kinship(open_wordnet().nouns(every, instances=True), every)
    scored = nearest_known(graph, list(nodes.values()), list(owners)[::-1])
    return {name: (owners[node], score) for name, (node, score) in zip(nodes, scored, strict=True) if score >= NEAR_WUP}


def _table(
    name: str, meaning: str, rows: Mapping[str, tuple[str, str]], counts: Mapping[str, tuple[int, int]]
) -> list[str]:
    if not rows:
        return []
    lines = [
        f"{quoted_key(label)} = {quoted(owner)}  # {how} {owner}; {counts[label][1]:,} images"
        for label, (owner, how) in rows.items()
    ]
    return ["", f"# {meaning}", f"[parameters.{name}]", *lines]
