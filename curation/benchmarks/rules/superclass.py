"""The rule ``superclass``: known and unknown classes belong to one super-class, or are clusters that rarely co-occur.

After Rectifying Open-Set Object Detection (2023). The parts are ``train``, images that show a known class; ``val``,
such images of another source, or a share of them; and ``test``, images that show a known or unknown class.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import (
    Part,
    Selection,
    images_with,
    images_with_roles,
    in_roles,
    make_part,
    manifest_of_file,
    require_classes,
    require_images,
    showing,
    used_classes,
)
from curation.benchmarks.rules.benchmark_file import (
    BenchmarkFile,
    Classes,
    class_entries,
    decimal_text,
    parameter_text,
    refuse_unused,
    require_named,
    stated_in,
    wrong_sources,
)
from curation.benchmarks.rules.class_parts import Convention, cut_classes, rotation, split_classes, split_share
from curation.benchmarks.rules.starting import (
    StartOptions,
    absent_lines,
    alias_lines,
    array,
    beginning,
    by_class,
    object_counts,
    other_names,
    quoted,
    quoted_key,
    source_tables,
)
from curation.core.columns import distinct
from curation.core.errors import CurationError, CutError, PresenceOnlyError, ProtocolError, UsageError
from curation.core.wording import did_you_mean
from curation.manifest.header import ClassEntry, Figure, Header, LabelView, Paper, ParameterValue, PartRole
from curation.manifest.manifest import Manifest
from curation.signals.cooccurrence.cut import ComponentsPolicy
from curation.signals.cooccurrence.graph import Weighting
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
_NEED = "a source of training images, one of test images, and at most one for validation"


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
    benchmark = stated_in(parameters["file"])
    settings = benchmark.parameters_as(SuperclassParameters)
    expected = '[sources.NAME] with as = "train", as = "test", as = "val"; or [sources.train], …'
    names = benchmark.by_role(sources, _NEED, expected, ("train", "test"), USUAL_SOURCES)
    _refuse_unused(benchmark, settings, names)
    for source in sources.values():
        require_boxes(source)
    train, test = sources[names["train"]], sources[names["test"]]
    graph = [train] if settings.graph_images == "train" else [*sources.values()]
    classes, parts, recorded = _problem(benchmark, settings, sources, graph)
    known, unknown = ([entry.name for entry in classes if entry.role == role] for role in ("known", "unknown"))
    for name, source in sources.items():
        require_classes(benchmark, [*known, *unknown], name, source)
    require_classes(benchmark, known, names["test"], test, scored=True)
    return manifest_of_file(
        benchmark,
        _parts(classes, {role: (name, sources[name]) for role, name in names.items()}, settings, benchmark),
        sources,
        classes,
        {**parameters, **recorded},
        taxonomy="OSOD-III",
        algorithm_version=1,
        after=PAPER,
        figures=(hidden_boxes(train, classes), *images_of_parts(train, classes, parts)),
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


def _refuse_unused(benchmark: BenchmarkFile, settings: SuperclassParameters, roles: Mapping[str, str]) -> None:
    """Raise `ProtocolError` for a key that has no effect."""
    if bool(settings.superclass) == bool(settings.cut):
        raise ProtocolError(
            "A benchmark has a super-class, or a cut",
            where="[parameters]",
            expected='superclass = "GROUP" with a group of [classes.groups], or cut = N',
            found="both" if settings.cut else "neither",
        )
    unused = {f"views.{name}": ", ".join(USUAL_SOURCES) for name in benchmark.views if name not in USUAL_SOURCES}
    unused |= dict.fromkeys(("classes.tasks", "classes.synsets"), "known and unknown classes by superclass or cut")
    if settings.cut:
        words = "with superclass; a cut makes its own clusters"
        keys = ("parameters.parts", "parameters.uneven", "classes.known", "classes.unknown", "classes.groups")
        unused |= dict.fromkeys(keys, words)
    else:
        unused |= dict.fromkeys(
            [f"parameters.{key}" for key in ("weighting", "components", "graph_images")], "with cut"
        )
        if benchmark.classes.known or benchmark.classes.unknown:
            words = "where [classes] lists neither known nor unknown classes"
            unused |= {f"parameters.{key}": words for key in ("parts", "rotation", "convention", "uneven")}
    if "val" in roles:
        unused["parameters.val"] = f"without a source of validation images, such as {roles['val']}"
    refuse_unused(benchmark, unused)


def _problem(
    benchmark: BenchmarkFile, settings: SuperclassParameters, sources: Mapping[str, Source], graph: Sequence[Source]
) -> tuple[tuple[ClassEntry, ...], Sequence[Sequence[str]], dict[str, ParameterValue]]:
    """Return the classes, the parts or clusters, and what the manifest's rule states beyond the file."""
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
        try:
            parts, recorded = cut_classes(
                graph, members, settings.cut, weighting=settings.weighting, components=settings.components,
                aliases=aliases,
            )  # fmt: skip
        except CutError as error:
            error.where = "[parameters] cut"
            error.hint = (
                'components = "giant" in [parameters] cuts the largest one, "cut" takes the graph as it is'
                if "falls apart" in error.what
                else "a super-class in place of the cut: superclass in [parameters], a group in [classes.groups]"
            )
            raise
    else:
        if settings.superclass not in classes.groups:
            raise ProtocolError(
                "The super-class is not a group of the benchmark file",
                where="[parameters] superclass",
                expected=f"a group of [classes.groups]: {', '.join(classes.groups) or 'there is none'}"[:300],
                found=repr(settings.superclass)[:80],
                hint=did_you_mean(settings.superclass, classes.groups, form='superclass = "{}"'),
            )
        members = classes.leaves((settings.superclass,))
        inside = [name for name in members if name not in outside]
        if classes.known or classes.unknown:
            parts = _stated_parts(classes, inside, settings.superclass)
        else:
            salt = settings.salt or benchmark.name
            try:
                parts = split_classes(inside, parts=settings.parts, seed=salt, uneven=settings.uneven)
            except ProtocolError as error:
                fewer = f"parts = {len(inside)}" if len(inside) > 1 else None
                uneven = 'uneven = "first" in [parameters]: each of the first parts has one more'
                error.where, error.hint = "[parameters] parts", uneven if len(inside) > settings.parts else fewer
                raise
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
    require_named(benchmark, "aliases", {*stated, *used})
    require_named(benchmark, "absent", {*known, *unknown})
    negative = (*classes.of("negative"), *(name for name in used if name not in stated))
    by_role = Classes(
        known=known, unknown=unknown, negative=negative, ignored=classes.of("ignored"), aliases=classes.aliases
    )
    entries = class_entries(msgspec.structs.replace(benchmark, classes=by_role))
    return entries, parts, recorded


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
    both = (known or rest, unknown or rest)
    if not all(both) or (known and unknown and rest):
        raise ProtocolError(
            "Each class of the super-class has one role, and both known and unknown ones are needed",
            where="[classes]",
            expected=f"each class of {group} in known, unknown, negative or ignored; or no list unknown: all others",
            found=f"{len(both[0])} known, {len(both[1])} unknown"
            + (f"; no role: {', '.join(rest[:5])}" if all(both) else ""),
        )
    return both


def _parts(
    classes: Sequence[ClassEntry],
    by_role: Mapping[str, tuple[str, Source]],
    settings: SuperclassParameters,
    benchmark: BenchmarkFile,
) -> list[Part]:
    # The paper drops boxes of inner nodes; here a class may be negative, which does so.
    tested_view = msgspec.structs.replace(TEST_VIEW, ignored="ignore")
    views = {"train": TRAIN_VIEW, "val": tested_view, "test": tested_view, **benchmark.views}

    alone = settings.train_unknown == "leave-out"
    rule, tested = "Images with a known class" + " and none of an unknown one" * alone, ["known", "unknown"]
    shows = {"train": (["known"], ["unknown"] * alone), "val": (["known"], []), "test": (tested, [])}
    words = {"train": f"{rule}.", "val": "Images with a known class.", "test": "Images with a known or unknown class."}
    in_order: tuple[PartRole, ...] = ("train", "val", "test")
    chosen = {
        role: Selection(*by_role[role], showing(by_role[role][1], classes, *shows[role]))
        for role in in_order
        if role in by_role
    }
    made = []
    if settings.val and "val" not in by_role:
        salt = f"{settings.salt or benchmark.name}/val/"
        texts = rule, f"a share of {decimal_text(settings.val)} by hash rank"
        made = train_and_val(chosen.pop("train"), classes, settings.val, salt, texts, views)
    made += [make_part(role, role, each, classes, view=views[role], rule=words[role]) for role, each in chosen.items()]
    split_off = "val = 0 in [parameters], or more training images"
    require_images(made, {} if "val" in by_role else {"val": split_off})
    for role in ("known", "unknown"):
        if not images_with_roles(chosen["test"].source, classes, role).any():
            raise ProtocolError(
                f"No test image shows an {role} class" if role == "unknown" else "No test image shows a known class",
                where=f"source {chosen['test'].slot}",
                expected=", ".join(entry.name for entry in classes if entry.role == role)[:300],
                found=f"{len(chosen['test'].positions)} images, all of them with the others",
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
    counts = []
    for part in map(set, parts):
        spellings = [{entry.name, *entry.aliases} for entry in classes]
        of_part = {name for names in spellings if names & part for name in names}
        counts.append(int(images_with(source, of_part).sum()))
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
        expected = "--source train=PATH --source test=PATH, and perhaps --source val=PATH"
        raise wrong_sources("superclass", _NEED, expected, sources, UsageError)
    for source in sources.values():
        require_boxes(source)
    counts = {role: object_counts({role: source}) for role, source in sources.items()}
    train, test = ([name for name, (n, _) in counts[role].items() if n] for role in ("train", "test"))
    renamed = other_names([name for name in train if name not in test], [name for name in test if name not in train])
    aliases = by_class(renamed)
    common = [name for name in train if name in test or name in aliases]
    refused: CurationError = ProtocolError(
        "The training images and the test images share too few classes",
        expected="two classes or more that both show",
        found=", ".join(common) or f"{', '.join(train[:3])} in train, {', '.join(test[:3])} in test",
    )
    used = dict.fromkeys(name for several in counts.values() for name, (n, _) in several.items() if n)
    others = [name for name in used if name not in {*common, *renamed}]
    for (members, groups, settings), val in product(_drafts(common), [""] if "val" in sources else ["0.1", "0"]):
        lines = [
            *beginning("superclass", options.name),
            *source_tables(sources, options.name),
            "",
            "[classes]",
            *absent_lines(members, aliases, sources),
            *([] if groups else ["# Classes that train or test images do not show.", f"negative = {array(others)}"]),
            *alias_lines(aliases),
            *(["# Super-classes; a group may contain other groups.", "[classes.groups]"] if groups else []),
            *(f"{quoted_key(group)} = {array(names)}" for group, names in groups.items()),
            "",
            "[parameters]",
            *settings,
            *(["# Share of the training images that validates.", f"val = {val}"] if val else []),
            "# Training images that show an unknown class too: keep them without its boxes, or leave-out.",
            'train_unknown = "keep"',
        ]
        file = msgspec.convert(tomllib.loads("\n".join(lines)), BenchmarkFile)
        try:
            build(sources, {"file": parameter_text(file, SuperclassParameters)})
        except CurationError as error:
            refused = error
            continue
        return lines
    raise refused


def _drafts(common: Sequence[str]) -> Iterator[tuple[Sequence[str], Mapping[str, Sequence[str]], list[str]]]:
    """Yield the classes that may be known or unknown, the groups and the parameters that a file may have."""
    if groups := wordnet_groups(common):
        largest = next(iter(groups))
        members = Classes(groups=groups).leaves((largest,))
        yield members, groups, _parameters_of_group(members, largest)
    for clusters, components in product((3, 2), ("error", "giant")):
        yield (
            common,
            {},
            [
                "# Clusters of classes that share few images, the largest first; rotation says which one is known.",
                f"cut = {clusters}",
                "rotation = 1",
                "# Groups of classes that never meet: refuse them (error), add the small ones to the largest cluster",
                "# (giant), or cut the graph as it is (cut).",
                f"components = {quoted(components)}",
            ],
        )
    if len(common) >= 2:
        yield common, {"every class": common}, _parameters_of_group(common, "every class")


def _parameters_of_group(members: Sequence[str], name: str) -> list[str]:
    # The paper has four parts.
    parts = next((parts for parts in (4, 3, 2) if len(members) % parts == 0), min(4, len(members)))
    return [
        f"# A group of [classes.groups]: its {len(members)} classes are known or unknown, all others are left out.",
        f"superclass = {quoted(name)}",
        "# The classes fall into so many parts; one of them is known, the others are unknown.",
        f"parts = {parts}",
        "rotation = 1",
        "# A number of classes that does not divide: refuse, or give each of the first parts one more.",
        f"uneven = {quoted('first' if len(members) % parts else 'refuse')}",
    ]
