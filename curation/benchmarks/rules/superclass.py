"""The rule ``superclass``: known and unknown classes belong to one super-class, or are clusters that rarely co-occur.

After Rectifying Open-Set Object Detection (2023). The parts are ``train``, images that show a known class; ``val``,
such images of another source, or a share of them; and ``test``, images that show a known or unknown class.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from itertools import product
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import (
    Part,
    Selection,
    images_with_roles,
    in_roles,
    make_part,
    manifest_of_file,
    require_classes,
    showing,
    used_classes,
)
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, Classes, class_entries, decimal_text, stated_in
from curation.benchmarks.rules.class_parts import Convention, cut_classes, rotation, split_classes, split_share
from curation.benchmarks.rules.starting import (
    StartOptions,
    beginning,
    object_counts,
    other_names,
    quoted,
    quoted_key,
    source_tables,
)
from curation.core.columns import distinct
from curation.core.errors import CurationError, CutError, PresenceOnlyError, ProtocolError, UsageError
from curation.manifest.header import ClassEntry, Figure, Header, LabelView, Paper, ParameterValue, PartRole
from curation.manifest.manifest import Manifest
from curation.manifest.views import class_positions
from curation.signals.cooccurrence.cut import ComponentsPolicy
from curation.signals.cooccurrence.graph import Partition, Weighting
from curation.signals.hierarchy.class_lists import wordnet_groups
from curation.sources.source import Source

_PAPER = "curation.benchmarks.osod3"
PAPER = fact(_PAPER, "paper", Paper)
TRAIN_VIEW, TEST_VIEW = fact(_PAPER, "views", dict[str, LabelView]).values()


class SuperclassParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[parameters]`` of the rule.

    Attributes
    ----------
    superclass : str
        A group of ``[classes.groups]``: its classes are known or unknown.
    cut : int
        In place of `superclass`: the number of clusters of a normalized cut of the classes' co-occurrence.
    parts, rotation : int
        The classes fall into `parts` parts in the order of a hash; part `rotation` is known. Of a cut, cluster
        `rotation` is known; the first one is the largest.
    convention : {"part_known", "part_unknown"}
        Whether part `rotation` is known and the others unknown, or the other way round.
    uneven : {"refuse", "first"}
        A number of classes that does not divide by `parts`: refuse it, or give each of the first parts one more.
    val : Decimal
        Share of the training images that validates; 0 for none. Without effect beside a source ``val``.
    train_unknown : {"keep", "leave-out"}
        Training images that show an unknown class too: keep them without its boxes, or leave them out.
    weighting : {"counts", "binary", "jaccard", "pmi"}
        Of the cut: what an edge weighs.
    components : {"error", "giant", "cut"}
        Of the cut: a graph that falls apart is refused; or its largest component is cut, and the rest added to the
        largest cluster; or it is cut as it is.
    graph_images : {"train", "all"}
        Of the cut: whether classes co-occur on training images, or on images of all sources.
    salt : str
        Of the order of the classes and of the validation images; by default the name of the benchmark.
    """

    superclass: str = ""
    cut: Annotated[int, Meta(ge=0, le=1000)] = 0
    parts: Annotated[int, Meta(ge=2, le=1000)] = 4
    rotation: Annotated[int, Meta(ge=1, le=1000)] = 1
    convention: Convention = "part_known"
    uneven: Literal["refuse", "first"] = "refuse"
    val: Decimal = Decimal("0.1")
    train_unknown: Literal["keep", "leave-out"] = "keep"
    weighting: Weighting = "counts"
    components: ComponentsPolicy = "error"
    graph_images: Literal["train", "all"] = "train"
    salt: str = ""

    def __post_init__(self) -> None:
        """Refuse a share that leaves too few training images."""
        if not (self.val.is_finite() and 0 <= self.val <= Decimal("0.5")):
            raise ValueError("val is a share from 0 to 0.5")


PARAMETERS = SuperclassParameters
USUAL_SOURCES: tuple[PartRole, ...] = ("train", "test", "val")


def score_words(_: Header) -> list[str]:
    """Return the options of `evaluate MANIFEST`."""
    return ["--detections", "FILE"]


PARTS = (
    ("train", "images of the training source that show a known class"),
    ("val", "the same of the validation source, or a share of the training images by hash rank"),
    ("test", "images of the test source that show a known or unknown class"),
)


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a benchmark file of this rule.

    Parameters
    ----------
    sources : mapping of str to Source
        With boxes: one in the role ``train``, one in the role ``test``, and perhaps one in the role ``val``.
    parameters : mapping
        ``file``: the benchmark file as `read_benchmark_file` returns it.

    Raises
    ------
    ProtocolError
        The sources do not fit the file; the message says which class, source or parameter.
    """
    return _manifest(stated_in(parameters["file"]), sources, parameters)


def _manifest(benchmark: BenchmarkFile, sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    settings = benchmark.parameters_as(SuperclassParameters)
    names = _names_by_role(benchmark, sources)
    _check_effects(benchmark, settings, names)
    graph = [sources[names["train"]]] if settings.graph_images == "train" else list(sources.values())
    problem = _problem(benchmark, settings, sources, graph)
    for name, source in sources.items():
        require_boxes(source)
        require_classes(benchmark, problem.named, name, source)
    _require_scored(problem.entries, names["test"], sources[names["test"]])
    by_role = {role: (name, sources[name]) for role, name in names.items()}
    parts = _parts(problem.entries, by_role, settings, benchmark)
    train = sources[names["train"]]
    return manifest_of_file(
        benchmark,
        parts,
        sources,
        problem.entries,
        {**parameters, **problem.recorded},
        taxonomy="OSOD-III",
        algorithm_version=1,
        after=PAPER,
        figures=(hidden_boxes(train, problem.entries), *images_of_parts(train, problem.entries, problem.parts)),
    )


def require_boxes(source: Source) -> None:
    """Raise `PresenceOnlyError` for a source of image classes, which has nothing to detect."""
    if source.objects is None:
        raise PresenceOnlyError(
            "The rule superclass needs boxes",
            where=f"source {source.title}",
            expected="annotations with boxes: COCO JSON, YOLO or VOC",
            found="a class for each image",
            hint='rule = "hierarchy" takes image classes: curation init hierarchy',
        )


def _names_by_role(benchmark: BenchmarkFile, sources: Mapping[str, Source]) -> dict[str, str]:
    """Return the name of the source in each role."""
    roles = [benchmark.role(name) for name in sources]
    if not {"train", "test"} <= {*roles} <= {*USUAL_SOURCES} or len({*roles}) < len(roles):
        raise ProtocolError(
            "The rule superclass needs a source of training images, one of test images, and at most one for validation",
            where="[sources]",
            expected='[sources.NAME] with as = "train", as = "test", as = "val"; or [sources.train], …',
            found=", ".join(f"{name} as {role}" for name, role in zip(sources, roles, strict=True))[:300],
        )
    return dict(zip(roles, sources, strict=True))


def _check_effects(benchmark: BenchmarkFile, settings: SuperclassParameters, roles: Mapping[str, str]) -> None:
    """Raise `ProtocolError` for a key that has no effect: the author of the file expects one."""
    classes = benchmark.classes
    if bool(settings.superclass) == bool(settings.cut):
        raise ProtocolError(
            "A benchmark has a super-class, or a cut",
            where="[parameters]",
            expected='superclass = "GROUP" with a group of [classes.groups], or cut = N',
            found="both" if settings.cut else "neither",
        )
    reasons = {}
    if settings.cut:
        reasons = dict.fromkeys(("parts", "uneven"), "with superclass; a cut makes its own clusters")
    else:
        reasons = dict.fromkeys(("weighting", "components", "graph_images"), "with cut")
        if classes.known or classes.unknown:
            words = "where [classes] lists neither known nor unknown classes"
            reasons |= dict.fromkeys(("parts", "rotation", "convention", "uneven"), words)
    if "val" in roles:
        reasons["val"] = f"without a source of validation images, such as {roles['val']}"
    usual = SuperclassParameters()
    unused = [
        (f"[parameters] {name}", why)
        for name, why in reasons.items()
        if getattr(settings, name) != getattr(usual, name)
    ]
    keys = ("tasks", "synsets", *(("known", "unknown", "groups") if settings.cut else ()))
    unused += [
        (f"[classes] {name}", f"not with {'cut' if settings.cut else 'superclass'}")
        for name in keys
        if getattr(classes, name)
    ]
    unused += [(f"[views.{name}]", ", ".join(USUAL_SOURCES)) for name in benchmark.views if name not in USUAL_SOURCES]
    for where, expected in unused:
        raise ProtocolError(
            "A key of the benchmark file has no effect", where=where, expected=expected, hint="remove it"
        )


class Problem(NamedTuple):
    """The classes of a benchmark.

    Attributes
    ----------
    entries : tuple of ClassEntry
    named : tuple of str
        The known and the unknown classes.
    parts : sequence of sequence of str
        The parts or clusters.
    recorded : dict
        What the manifest's rule states beyond the file: members, parts, the cut.
    """

    entries: tuple[ClassEntry, ...]
    named: tuple[str, ...]
    parts: Sequence[Sequence[str]]
    recorded: dict[str, ParameterValue]


def _problem(
    benchmark: BenchmarkFile, settings: SuperclassParameters, sources: Mapping[str, Source], graph: Sequence[Source]
) -> Problem:
    classes = benchmark.classes
    aliases = {alias: name for name, others in classes.aliases.items() for alias in others}
    outside = {*classes.of("negative"), *classes.of("ignored")}
    used = used_classes(benchmark, sources.values())
    recorded: dict[str, ParameterValue] = {}
    if settings.cut:
        members = tuple(name for name in used if name not in outside)
        if unseen := [name for name in members if name not in used_classes(benchmark, graph)]:
            raise ProtocolError(
                "No training image shows a class that is to be clustered",
                where=f"class {unseen[0]}",
                expected="classes that training images show",
                found=f"{len(unseen)} others: {', '.join(unseen)}"[:300],
                hint=f'negative = ["{unseen[0]}"] in [classes], or graph_images = "all" in [parameters]',
            )
        parts, recorded = _clusters(graph, members, settings, aliases)
    else:
        members = _members(classes, settings.superclass)
        inside = [name for name in members if name not in outside]
        if classes.known or classes.unknown:
            parts = _stated_parts(classes, inside, settings.superclass)
        else:
            parts = _split(inside, settings, benchmark.name)
    if settings.rotation > len(parts):
        where, expected = "[parameters] rotation", f"1 to {len(parts)}"
        raise ProtocolError("There is no such part", where=where, expected=expected, found=str(settings.rotation))
    known, unknown = rotation(parts, settings.rotation, settings.convention)
    if left_out := sorted({*members} - {*known, *unknown}):
        recorded["superclass_left_out"] = tuple(left_out)
        recorded["superclass_left_out_because"] = "negative or ignored in the benchmark file"
    recorded |= {"superclass_members": tuple(sorted(members))}
    recorded |= {f"part_{number}": tuple(part) for number, part in enumerate(parts, 1)}
    stated = {*known, *unknown, *outside}
    for key, names, allowed in (
        ("aliases", classes.aliases, {*stated, *used}),
        ("absent", classes.absent, {*known, *unknown}),
    ):
        if strange := [name for name in names if name not in allowed]:
            raise ProtocolError(
                "A class of the benchmark file has no role"
                if key == "aliases"
                else "No known or unknown class is absent",
                where=f"[classes] {key}: {strange[0]}"[:200],
                expected=", ".join(sorted(allowed))[:300],
            )
    negative = (*classes.of("negative"), *(name for name in used if name not in stated))
    by_role = msgspec.structs.replace(classes, known=known, unknown=unknown, negative=negative, groups={})
    by_role = msgspec.structs.replace(by_role, ignored=classes.of("ignored"))
    return Problem(
        class_entries(msgspec.structs.replace(benchmark, classes=by_role)), (*known, *unknown), parts, recorded
    )


def _members(classes: Classes, group: str) -> tuple[str, ...]:
    """Return the classes of a group."""
    if group not in classes.groups:
        near = get_close_matches(group, classes.groups, 1)
        raise ProtocolError(
            "The super-class is not a group of the benchmark file",
            where="[parameters] superclass",
            expected=f"a group of [classes.groups]: {', '.join(classes.groups) or 'there is none'}"[:300],
            found=repr(group)[:80],
            hint=f'superclass = "{near[0]}"' if near else None,
        )
    return classes.leaves((group,))


def _split(classes: Sequence[str], settings: SuperclassParameters, name: str) -> tuple[tuple[str, ...], ...]:
    try:
        return split_classes(classes, parts=settings.parts, seed=settings.salt or name, uneven=settings.uneven)
    except ProtocolError as error:
        raise ProtocolError(
            error.what,
            where="[parameters] parts",
            expected=error.expected,
            found=f"{len(classes)} classes of {settings.superclass}",
            hint='uneven = "first" in [parameters]: each of the first parts has one more'
            if len(classes) > settings.parts
            else f"parts = {len(classes)}"
            if len(classes) > 1
            else None,
        ) from None


def _stated_parts(classes: Classes, inside: Sequence[str], group: str) -> tuple[tuple[str, ...], ...]:
    """Return the known and the unknown classes that a file lists; of one list alone, the other has the rest."""
    known, unknown = classes.of("known"), classes.of("unknown")
    if strange := [name for name in (*known, *unknown) if name not in inside]:
        raise ProtocolError(
            "A class does not belong to the super-class",
            where=f"[classes] {'known' if strange[0] in known else 'unknown'}",
            expected=f"classes of {group}: {', '.join(inside)}"[:300],
            found=", ".join(strange[:5]),
        )
    rest = tuple(name for name in inside if name not in (*known, *unknown))
    if known and unknown and rest:
        raise ProtocolError(
            "Classes of the super-class have no role",
            where="[classes]",
            expected=f"each class of {group} in known, unknown, negative or ignored",
            found=", ".join(rest[:5]),
            hint="without the list unknown, all classes of the super-class that are not known are unknown",
        )
    both = (known or rest, unknown or rest)
    if not all(both):
        raise ProtocolError(
            "Every class of the super-class has one role",
            where="[classes]",
            expected="some known and some unknown classes",
            found=f"{len(both[0])} known, {len(both[1])} unknown",
        )
    return both


def _require_scored(classes: Sequence[ClassEntry], name: str, source: Source) -> None:
    """Raise `ProtocolError` for a known class that the test source has no category for: its detections have no id."""
    for entry in classes:
        if entry.role == "known" and not {entry.name, *entry.aliases} & {*source.categories.names}:
            raise ProtocolError(
                "The test source has no category of a known class, which cannot be scored",
                where=f"source {name}: class {entry.name}",
                expected=f"one of the categories {', '.join(source.categories.names)}"[:300],
                hint=f'negative = ["{entry.name}"] in [classes] leaves the class out',
            )


def _parts(
    classes: Sequence[ClassEntry],
    by_role: Mapping[str, tuple[str, Source]],
    settings: SuperclassParameters,
    benchmark: BenchmarkFile,
) -> list[Part]:
    # The paper drops boxes of inner nodes; here a class may be negative, which does so.
    tested_view = msgspec.structs.replace(TEST_VIEW, ignored="ignore")
    views = {"train": TRAIN_VIEW, "val": tested_view, "test": tested_view, **benchmark.views}

    def selected(role: str, shows: Sequence[str], never: Sequence[str] = ()) -> Selection:
        name, source = by_role[role]
        return Selection(name, source, showing(source, classes, shows, never))

    alone = settings.train_unknown == "leave-out"
    train = selected("train", ["known"], ["unknown"] if alone else [])
    rule = "Images with a known class" + " and none of an unknown one" * alone
    made = [make_part("train", "train", train, classes, view=views["train"], rule=f"{rule}.")]
    if "val" in by_role:
        words = "Images with a known class."
        made.append(make_part("val", "val", selected("val", ["known"]), classes, view=views["val"], rule=words))
    elif settings.val:
        salt, share = f"{settings.salt or benchmark.name}/val/", decimal_text(settings.val)
        made = train_and_val(train, classes, settings.val, salt, (rule, f"a share of {share} by hash rank"), views)
    words = "Images with a known or unknown class."
    tested = selected("test", ["known", "unknown"])
    made.append(make_part("test", "test", tested, classes, view=views["test"], rule=words))
    for part in made:
        if not part.ids:
            is_share = part.entry.name == "val" and "val" not in by_role
            raise ProtocolError(
                f"Part {part.entry.name} has no images",
                where=f"source {part.entry.sources[0]}",
                expected=rule if part.entry.role == "train" else words,
                found=f"{len(by_role['train' if is_share else part.entry.name][1].images)} images",
                hint="val = 0 in [parameters], or more training images" if is_share else None,
            )
    for role in ("known", "unknown"):
        if not images_with_roles(tested.source, classes, role).any():
            raise ProtocolError(
                f"No test image shows an {role} class" if role == "unknown" else "No test image shows a known class",
                where=f"source {tested.slot}",
                expected=", ".join(entry.name for entry in classes if entry.role == role)[:300],
                found=f"{len(tested.positions)} images, all of them with the others",
                hint="another rotation in [parameters], or other lists in [classes]",
            )
    return made


def train_and_val(
    chosen: Selection,
    classes: Sequence[ClassEntry],
    share: Decimal,
    salt: str,
    words: tuple[str, str],
    views: Mapping[str, LabelView],
    *,
    per_class: bool = False,
) -> list[Part]:
    """Return the training part and, by hash rank, the share of its images that validates.

    Parameters
    ----------
    chosen : Selection
        The images of both.
    words : (str, str)
        What the images show, and which of them validate.
    views : mapping of str to LabelView
        Of ``train`` and ``val``.
    """
    held, train_images = split_share(chosen.source, chosen.positions, float(share), salt, per_class=per_class)
    train, val = (Selection(chosen.slot, chosen.source, images) for images in (train_images, held))
    rule, share_rule = words
    return [
        make_part("train", "train", train, classes, view=views["train"], rule=f"{rule}, less those of val."),
        make_part("val", "val", val, classes, view=views["val"], rule=f"{rule}: {share_rule}."),
    ]


def _clusters(
    sources: Sequence[Source], names: Sequence[str], settings: SuperclassParameters, aliases: Mapping[str, str]
) -> tuple[Partition, dict[str, ParameterValue]]:
    try:
        return cut_classes(
            sources, names, settings.cut, weighting=settings.weighting, components=settings.components, aliases=aliases
        )
    except CutError as error:
        is_apart = "falls apart" in error.what
        raise ProtocolError(
            error.what,
            where="[parameters] cut",
            expected=error.expected,
            found=error.found,
            hint='components = "giant" in [parameters] cuts the largest one, "cut" takes the graph as it is'
            if is_apart
            else "a super-class in place of the cut: superclass in [parameters], a group in [classes.groups]",
        ) from None


def hidden_boxes(source: Source, classes: Sequence[ClassEntry]) -> Figure:
    """Return how many boxes of unknown classes lie on training images with a known one."""
    image, category = source.class_pairs()
    known = images_with_roles(source, classes, "known")
    unknown = in_roles(source, classes, "unknown")[category] & known[image]
    n_images = len(distinct(image[unknown]))
    return Figure(
        name="train.hidden_unknown_boxes",
        paper=None,
        obtained=int(unknown.sum()),
        place="training images",
        explanation=f"boxes of unknown classes on {n_images} training images, unlabelled in training",
    )


def images_of_parts(source: Source, classes: Sequence[ClassEntry], parts: Sequence[Sequence[str]]) -> list[Figure]:
    """Return how many training images show a class of each part: the parts are very unequal in the paper too."""
    image, category = source.class_pairs()
    position = class_positions(classes, source)[category]
    counts = []
    for part in map(set, parts):
        of_part = [not part.isdisjoint((entry.name, *entry.aliases)) for entry in classes]
        counts.append(len(distinct(image[np.array([*of_part, False], np.bool_)[position]])))
    words = " / ".join(f"{count:,}" for count in counts)
    ratio = f"; the largest has {max(counts) / min(counts):.1f} times the smallest" if all(counts) else ""
    return [
        Figure(
            name=f"part_{number}.train_images",
            paper=None,
            obtained=count,
            place="training images that show a class of the part",
            explanation=f"of {words}{ratio}",
        )
        for number, count in enumerate(counts, 1)
    ]


class _Draft(NamedTuple):
    """Classes and parameters of a file to begin with."""

    members: Sequence[str]
    groups: Mapping[str, Sequence[str]]
    parameters: Sequence[str]


def start(sources: Mapping[str, Source], options: StartOptions) -> list[str]:
    """Return the lines of a file to begin with, the first that builds.

    Groups are those of WordNet where it has the class names, the largest of them is the super-class; else the classes
    are clustered by a cut; where they do not co-occur, all of them are one super-class.

    Raises
    ------
    UsageError
        A source is missing, or has another name than its role.
    ProtocolError
        No such file builds; the message is that of the last one.
    """
    if not {"train", "test"} <= sources.keys() <= {*USUAL_SOURCES}:
        raise UsageError(
            "The rule superclass needs training images and test images",
            expected="--source train=PATH --source test=PATH, and perhaps --source val=PATH",
            found=", ".join(sources),
        )
    for source in sources.values():
        require_boxes(source)
    train, test = (
        [name for name, (n, _) in object_counts({"": sources[role]}).items() if n] for role in ("train", "test")
    )
    renamed = other_names([name for name in train if name not in test], [name for name in test if name not in train])
    aliases = {name: alias for alias, name in renamed.items()}
    common = [name for name in train if name in test or name in aliases]
    refused: CurationError | None = None
    for draft, val in product(_drafts(common), [""] if "val" in sources else ["0.1", "0"]):
        lines = _lines(draft, val, sources, aliases, options.name)
        try:
            _manifest(msgspec.convert(tomllib.loads("\n".join(lines)), BenchmarkFile), sources, {})
        except ProtocolError as error:
            refused = error
            continue
        return lines
    raise refused or ProtocolError(
        "The training images and the test images share too few classes",
        expected="two classes or more that both show",
        found=", ".join(common) or f"{', '.join(train[:3])} in train, {', '.join(test[:3])} in test",
    )


def _drafts(common: Sequence[str]) -> Iterator[_Draft]:
    """Yield what a file may hold, for the classes that training and test images show."""
    groups = wordnet_groups(common)
    if groups:
        largest = next(iter(groups))
        yield _draft_of_group(Classes(groups=groups).leaves((largest,)), groups, largest)
    for clusters, components in product((3, 2), ("error", "giant")):
        words = [
            "# Clusters of classes that share few images, the largest first; rotation says which one is known.",
            f"cut = {clusters}",
            "rotation = 1",
            "# Groups of classes that never meet: refuse them (error), add the small ones to the largest cluster",
            "# (giant), or cut the graph as it is (cut).",
            f"components = {quoted(components)}",
        ]
        yield _Draft(common, {}, words)
    if len(common) >= 2:
        yield _draft_of_group(common, {"every class": common}, "every class")


def _draft_of_group(members: Sequence[str], groups: Mapping[str, Sequence[str]], name: str) -> _Draft:
    # The paper has four parts.
    parts = next((parts for parts in (4, 3, 2) if len(members) % parts == 0), min(4, len(members)))
    words = [
        f"# A group of [classes.groups]: its {len(members)} classes are known or unknown, all others are left out.",
        f"superclass = {quoted(name)}",
        "# The classes fall into so many parts; one of them is known, the others are unknown.",
        f"parts = {parts}",
        "rotation = 1",
        "# A number of classes that does not divide: refuse, or give each of the first parts one more.",
        f"uneven = {quoted('first' if len(members) % parts else 'refuse')}",
    ]
    return _Draft(members, groups, words)


def _lines(draft: _Draft, val: str, sources: Mapping[str, Source], aliases: Mapping[str, str], name: str) -> list[str]:
    absent = [
        member
        for member in draft.members
        if any(not {member, aliases.get(member)} & {*source.categories.names} for source in sources.values())
    ]
    negative = []
    if not draft.groups:
        used = object_counts(sources).items()
        known = {*draft.members, *aliases.values()}
        negative = [f"negative = [{', '.join(quoted(label) for label, (n, _) in used if n and label not in known)}]"]
        negative.insert(0, "# Classes that the training images or the test images do not show.")
    return [
        *beginning("superclass", name),
        *source_tables(sources, name),
        "",
        "[classes]",
        "# Known and unknown classes that a source has no category for.",
        f"absent = [{', '.join(map(quoted, absent))}]",
        *negative,
        "# Other names of a class in the sources.",
        "[classes.aliases]",
        *(f"{quoted_key(member)} = [{quoted(alias)}]" for member, alias in aliases.items()),
        *(["# Super-classes; a group may contain other groups.", "[classes.groups]"] if draft.groups else []),
        *(f"{quoted_key(group)} = [{', '.join(map(quoted, members))}]" for group, members in draft.groups.items()),
        "",
        "[parameters]",
        *draft.parameters,
        *(["# Share of the training images that validates.", f"val = {val}"] if val else []),
        "# Training images that show an unknown class too: keep them without its boxes, or leave-out.",
        'train_unknown = "keep"',
    ]
