"""The rule ``superclass``: known and unknown classes belong to one super-class, or are clusters that rarely co-occur.

After Rectifying Open-Set Object Detection (2023). The parts are ``train``, images with a known class; ``val``, such
images of another source, or a share of the training images; and ``test``, images with a known or unknown class.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import chain, product
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import (
    Part,
    Selection,
    images_showing,
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
    ROLES,
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
    by_class,
    draft,
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
from curation.manifest.views import class_positions
from curation.signals.cooccurrence.cut import ComponentsPolicy
from curation.signals.cooccurrence.graph import Weighting
from curation.signals.hierarchy.class_lists import wordnet_groups
from curation.sources.source import Source

_PAPER = "curation.benchmarks.osod3"
PAPER = fact(_PAPER, "paper", Paper)
VIEWS = fact(_PAPER, "views", dict[str, LabelView])


class SuperclassParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[parameters]`` of the rule.

    Attributes
    ----------
    superclass : str
        A group of ``[classes.groups]``: its classes are known or unknown.
    cut : int
        Instead of `superclass`: the number of clusters of a normalized cut of the classes' co-occurrence.
    parts : int
        The number of parts that the classes are divided into, in the order of a hash.
    rotation : int
        The part that is known; of a cut, the cluster that is known, where 1 is the largest.
    convention : {"part_known", "part_unknown"}
        Whether part `rotation` is known and the others unknown, or the other way round.
    uneven : {"refuse", "first"}
        If the parts cannot be equal: refuse, or give each of the first parts one more class.
    val : Decimal
        Share of the training images that becomes the validation part; 0 for none. No effect with a source ``val``.
    stratify : bool
        Select that share for each class separately; for images with one object.
    train_unknown : {"keep", "leave-out"}
        Training images that also show an unknown class: keep them without its boxes, or leave them out.
    weighting : {"counts", "binary", "jaccard", "pmi"}
        For a cut: the weight of an edge.
    components : {"error", "giant", "cut"}
        For a cut: a disconnected graph is rejected; or its largest component is cut and the rest added to the largest
        cluster; or the complete graph is cut.
    graph_images : {"train", "all"}
        For a cut: whether classes co-occur on training images, or on images of all sources.
    salt : str
        Salt for the order of the classes and of the validation images; by default the name of the benchmark.
    """

    superclass: str = ""
    cut: Annotated[int, Meta(ge=0, le=1000)] = 0
    parts: Annotated[int, Meta(ge=2, le=1000)] = 4
    rotation: Annotated[int, Meta(ge=1, le=1000)] = 1
    convention: Convention = "part_known"
    uneven: Literal["refuse", "first"] = "refuse"
    val: Decimal = Decimal("0.1")
    stratify: bool = False
    train_unknown: Literal["keep", "leave-out"] = "keep"
    weighting: Weighting = "counts"
    components: ComponentsPolicy = "error"
    graph_images: Literal["train", "all"] = "train"
    salt: str = ""

    def __post_init__(self) -> None:
        """Raise `ValueError` for a share that leaves too few training images."""
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
    ("val", "images of the validation source that show a known class, or a share of the training images by hash rank"),
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
    settings = msgspec.structs.replace(settings, salt=settings.salt or benchmark.name)
    by_role = {role: (name, sources[name]) for role, name in names.items()}
    (_, train), (_, test) = by_role["train"], by_role["test"]
    benchmark, keys = _with_names(benchmark, sources.values())
    graph = [train] if settings.graph_images == "train" else [*sources.values()]
    classes, parts, recorded = _problem(benchmark, settings, sources, graph, keys)
    known, unknown = ([entry.name for entry in classes if entry.role == role] for role in ("known", "unknown"))
    for name, source in sources.items():
        require_classes(benchmark, [*known, *unknown], name, source)
    require_classes(benchmark, known, names["test"], test, scored=True)
    # The paper drops boxes of inner nodes; here a class may be negative, which does so.
    tested_view = msgspec.structs.replace(VIEWS["test"], ignored="ignore")
    views = {"train": VIEWS["train"], "val": tested_view, "test": tested_view, **benchmark.views}
    made = image_parts(by_role, classes, settings, views, _selections(settings, is_split="val" not in names))
    require_images(made, {} if "val" in names else {"val": "val = 0 in [parameters], or more training images"})
    for role in ("known", "unknown"):
        if not images_with_roles(test, classes, role).any():
            raise ProtocolError(
                f"No test image shows {'an' if role == 'unknown' else 'a'} {role} class",
                where=f"source {names['test']}",
                expected=", ".join(entry.name for entry in classes if entry.role == role)[:300],
                found=f"{len(made[-1].ids)} images, none of which shows such a class",
                hint="another rotation in [parameters], or other lists in [classes]",
            )
    return manifest_of_file(
        benchmark,
        made,
        sources,
        classes,
        {**parameters, **recorded},
        taxonomy="OSOD-III",
        figures=(hidden_boxes(train, classes), *images_of_parts(train, classes, parts)),
    )


def require_boxes(source: Source) -> None:
    """Raise `PresenceOnlyError` for a source of image classes without boxes."""
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
            "A benchmark has either a super-class or a cut",
            where="[parameters]",
            expected='superclass = "GROUP" with a group of [classes.groups], or cut = N',
            found="both" if settings.cut else "neither",
        )
    unused = {f"views.{name}": ", ".join(USUAL_SOURCES) for name in benchmark.views if name not in USUAL_SOURCES}
    unused |= dict.fromkeys(("classes.tasks", "classes.synsets"), "known and unknown classes by superclass or cut")
    if settings.cut:
        keys = ("parameters.parts", "parameters.uneven", "classes.known", "classes.unknown", "classes.groups")
        unused |= dict.fromkeys(keys, "only with superclass; a cut makes clusters instead")
    else:
        unused |= {f"parameters.{key}": "only with cut" for key in ("weighting", "components", "graph_images")}
        if benchmark.classes.known or benchmark.classes.unknown:
            condition = "only if [classes] lists neither known nor unknown classes"
            unused |= {f"parameters.{key}": condition for key in ("parts", "rotation", "convention", "uneven")}
    if "val" in roles:
        condition = f"only without a source of validation images, such as {roles['val']}"
        unused |= dict.fromkeys(("parameters.val", "parameters.stratify"), condition)
    refuse_unused(benchmark, unused)


def _with_names(benchmark: BenchmarkFile, sources: Iterable[Source]) -> tuple[BenchmarkFile, dict[str, str]]:
    """Return the file with class keys replaced by names of the sources, and the replaced key of each name.

    Keys identify the classes of some datasets, such as ``/m/0jbk`` in Open Images.
    """
    classes, categories = benchmark.classes, [source.categories for source in sources]
    name_of = {key: name for each in categories for key, name in zip(each.keys, each.names, strict=False)}

    def source_names(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name_of.get(name, name) for name in names)

    lists = {field: source_names(getattr(classes, field)) for field in (*ROLES, "absent")}
    groups = {group: source_names(members) for group, members in classes.groups.items()}
    listed = {*chain(*classes.groups.values(), *(getattr(classes, role) for role in ROLES))}
    keys = {name_of[key]: key for key in sorted(listed & name_of.keys())}
    aliases = {name_of.get(name, name): others for name, others in classes.aliases.items()}
    for name, key in keys.items():
        aliases[name] = tuple(each for each in dict.fromkeys((key, *aliases.get(name, ()))) if each != name)
    renamed = msgspec.structs.replace(classes, groups=groups, aliases=aliases, **lists)
    return msgspec.structs.replace(benchmark, classes=renamed), keys


def _problem(
    benchmark: BenchmarkFile,
    settings: SuperclassParameters,
    sources: Mapping[str, Source],
    graph: Sequence[Source],
    keys: Mapping[str, str],
) -> tuple[tuple[ClassEntry, ...], Sequence[Sequence[str]], dict[str, ParameterValue]]:
    """Return the classes, the parts or clusters, and further facts for the manifest's rule."""
    classes = benchmark.classes
    outside = {*classes.of("negative"), *classes.of("ignored")}
    used = used_classes(benchmark, sources.values())
    recorded: dict[str, ParameterValue] = {}
    if settings.cut:
        members = tuple(name for name in used if name not in outside)
        parts, recorded = _clusters(benchmark, settings, graph, members)
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
            parts = _hashed_parts({keys.get(name, name): name for name in inside}, settings)
    if settings.rotation > len(parts):
        message, expected = "There are fewer parts than the rotation says", f"1 to {len(parts)}"
        raise ProtocolError(message, where="[parameters] rotation", expected=expected, found=str(settings.rotation))
    known, unknown = rotation(parts, settings.rotation, settings.convention)
    if left_out := sorted({*members} - {*known, *unknown}):
        recorded["superclass_left_out"] = tuple(left_out)
        recorded["superclass_left_out_because"] = "negative or ignored in the benchmark file"
    recorded |= {"superclass_members": tuple(sorted(members))}
    recorded |= {f"part_{number}": tuple(part) for number, part in enumerate(parts, 1)}
    with_role = {*known, *unknown, *outside}
    require_named(benchmark, "aliases", {*with_role, *used})
    require_named(benchmark, "absent", {*known, *unknown})
    negative = (*classes.of("negative"), *(name for name in used if name not in with_role))
    by_role = Classes(
        known=known, unknown=unknown, negative=negative, ignored=classes.of("ignored"), aliases=classes.aliases
    )
    entries = class_entries(msgspec.structs.replace(benchmark, classes=by_role))
    return entries, parts, recorded


def _clusters(
    benchmark: BenchmarkFile, settings: SuperclassParameters, graph: Sequence[Source], members: Sequence[str]
) -> tuple[Sequence[Sequence[str]], dict[str, ParameterValue]]:
    """Return the clusters of classes on the images of `graph`, and the facts on the cut for the manifest's rule."""
    seen = used_classes(benchmark, graph)
    if unseen := [name for name in members if name not in seen]:
        raise ProtocolError(
            "No training image shows a class of the cut",
            where=f"class {unseen[0]}",
            expected="classes that training images show",
            found=f"{len(unseen)} others: {', '.join(unseen)}"[:300],
            hint=f'negative = ["{unseen[0]}"] in [classes], or graph_images = "all" in [parameters]',
        )
    aliases = {alias: name for name, others in benchmark.classes.aliases.items() for alias in others}
    weighting, components = settings.weighting, settings.components
    try:
        return cut_classes(graph, members, settings.cut, weighting=weighting, components=components, aliases=aliases)
    except CutError as error:
        error.where = "[parameters] cut"
        error.hint = "use a super-class instead: superclass in [parameters], with a group in [classes.groups]"
        if "not connected" in error.what:
            error.hint = 'components = "giant" in [parameters] cuts the largest one, "cut" cuts the complete graph'
        elif "with no other" in error.what:
            error.hint = f"list them as negative in [classes], or {error.hint}"
        raise


def _hashed_parts(names: Mapping[str, str], settings: SuperclassParameters) -> tuple[tuple[str, ...], ...]:
    """Return the parts of classes in the order of a hash of their names in the file, the keys of `names`."""
    try:
        parts = split_classes([*names], parts=settings.parts, seed=settings.salt, uneven=settings.uneven)
    except ProtocolError as error:
        fewer = f"parts = {len(names)}" if len(names) > 1 else None
        uneven = 'uneven = "first" in [parameters]: each of the first parts has one more'
        error.where, error.hint = "[parameters] parts", uneven if len(names) > settings.parts else fewer
        raise
    return tuple(tuple(names[name] for name in part) for part in parts)


def _stated_parts(classes: Classes, inside: Sequence[str], group: str) -> tuple[tuple[str, ...], ...]:
    """Return the known and the unknown classes that a file lists; a missing list contains all other classes."""
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


def _selections(settings: SuperclassParameters, *, is_split: bool) -> dict[str, str]:
    """Return a sentence on the images of each part; `is_split`: val is a share of the training images."""
    rule = "Images with a known class" + " and none of an unknown one" * (settings.train_unknown == "leave-out")
    train, val = f"{rule}.", "Images with a known class."
    if is_split and settings.val:
        share = f"a share of {decimal_text(settings.val)}{' of each class' * settings.stratify} by hash rank"
        train, val = f"{rule}, less those of val.", f"{rule}: {share}."
    return {"train": train, "val": val, "test": "Images with a known or unknown class."}


def image_parts(
    by_role: Mapping[str, tuple[str, Source]],
    classes: Sequence[ClassEntry],
    settings: SuperclassParameters,
    views: Mapping[str, LabelView],
    selections: Mapping[str, str],
    *,
    selected_by: Sequence[ClassEntry] = (),
) -> list[Part]:
    """Return the parts ``train``, ``val`` (from a separate source, or a share of the training images) and ``test``.

    Parameters
    ----------
    by_role : mapping of str to (str, Source)
        Name and source in the roles ``train``, ``test`` and perhaps ``val``.
    settings : SuperclassParameters
        The settings, with the salt of the hash ranks.
    selections : mapping of str to str
        A sentence on the images of each part.
    selected_by : sequence of ClassEntry
        The roles that select the images, if they differ from those of `classes`.
    """
    never = ["unknown"] * (settings.train_unknown == "leave-out")
    shows = {"train": (["known"], never), "val": (["known"], []), "test": (["known", "unknown"], [])}
    chosen = {
        role: Selection(name, source, showing(source, selected_by or classes, *shows[role]))
        for role, (name, source) in by_role.items()
    }
    if settings.val and "val" not in by_role:
        train, share, salt = chosen["train"], float(settings.val), f"{settings.salt}/val/"
        val, rest = split_share(train.source, train.positions, share, salt, per_class=settings.stratify)
        chosen |= {"train": replace(train, positions=rest), "val": replace(train, positions=val)}
    in_order: tuple[PartRole, ...] = ("train", "val", "test")
    return [
        make_part(role, role, chosen[role], classes, view=views[role], rule=selections[role])
        for role in in_order
        if role in chosen
    ]


def hidden_boxes(source: Source, classes: Sequence[ClassEntry]) -> Figure:
    """Return the number of boxes of unknown classes on training images with a known class, as a figure."""
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
    """Return the number of training images with a class of each part; the parts are very unequal in the paper too."""
    position, counts = class_positions(classes, source), []
    for part in map(set, parts):
        is_inside = np.array([*(entry.name in part for entry in classes), False], np.bool_)
        counts.append(int(images_showing(source, is_inside[position]).sum()))
    listed = " / ".join(f"{count:,}" for count in counts)
    ratio = f"; the largest has {max(counts) / min(counts):.1f} times the smallest" if all(counts) else ""
    return [
        Figure(
            name=f"part_{number}.train_images",
            paper=None,
            obtained=count,
            place="training images that show a class of the part",
            explanation=f"of {listed}{ratio}",
        )
        for number, count in enumerate(counts, 1)
    ]


def start(sources: Mapping[str, Source], options: StartOptions) -> list[str]:
    """Return the lines of the first draft file that builds.

    If WordNet has the class names, it defines the groups, and the largest group is the super-class. Else the classes
    are clustered by a cut; if they do not co-occur, all of them form a super-class.

    Raises
    ------
    UsageError
        A source is missing, or its name is not its role.
    ProtocolError
        No draft builds; the message is that of the last one.
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
        expected="at least two classes that both show",
        found=", ".join(common) or f"{', '.join(train[:3])} in train, {', '.join(test[:3])} in test",
    )
    used = dict.fromkeys(name for several in counts.values() for name, (n, _) in several.items() if n)
    others = [name for name in used if name not in {*common, *renamed}]
    for (members, groups, settings), val in product(_drafts(common), [""] if "val" in sources else ["0.1", "0"]):
        classes = [
            *absent_lines(members, aliases, sources),
            *([] if groups else ["# Classes that train or test images do not show.", f"negative = {array(others)}"]),
            *alias_lines(aliases),
            *(["# Super-classes; a group may contain other groups.", "[classes.groups]"] if groups else []),
            *(f"{quoted_key(group)} = {array(names)}" for group, names in groups.items()),
        ]
        parameters = [
            *settings,
            *(["# Share of the training images that becomes the part val.", f"val = {val}"] if val else []),
            "# Training images that also show an unknown class: keep them without its boxes, or leave-out.",
            'train_unknown = "keep"',
        ]
        lines = draft("superclass", options, source_tables(sources, options.name), classes, parameters)
        file = msgspec.convert(tomllib.loads("\n".join(lines)), BenchmarkFile)
        try:
            build(sources, {"file": parameter_text(file, SuperclassParameters)})
        except CurationError as error:
            refused = error
            continue
        return lines
    raise refused


def _drafts(common: Sequence[str]) -> Iterator[tuple[Sequence[str], Mapping[str, Sequence[str]], list[str]]]:
    """Yield drafts: the classes that may be known or unknown, the groups and the parameters of a file."""
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
                "# If some classes never co-occur with the others: refuse (error), add the small groups to the largest",
                "# cluster (giant), or cut the complete graph (cut).",
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
        "# Number of parts of the classes; one part is known, the others are unknown.",
        f"parts = {parts}",
        "rotation = 1",
        "# If the parts cannot be equal: refuse, or give each of the first parts one more class (first).",
        f"uneven = {quoted('first' if len(members) % parts else 'refuse')}",
    ]
