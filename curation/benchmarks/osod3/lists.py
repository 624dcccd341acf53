"""Rectifying Open-Set Object Detection (2023): open-set problems with defined unknown classes.

OSOD-III: known and unknown classes are sub-classes of the same super-class. The problems of the paper are the cases of
``osod3.toml``; the rule `curation.benchmarks.rules.superclass` selects the images. This module adds the two unknown
clusters of MTSD, the authors' class lists, and the texts of the headers.

The authors' splits cannot be regenerated. Splits made here follow the order of a hash; their origin is ``regenerated``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from msgspec.structs import replace

from curation.benchmarks.benchmark import SourceSlot, benchmark_facts, declared_parameters
from curation.benchmarks.osod3.class_lists import authors_parts
from curation.benchmarks.parts import Part, compared, manifest_of, require_images, showing, source_entry, unread_entry
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, packaged_file
from curation.benchmarks.rules.class_parts import Convention, cut_classes, rotation, split_classes
from curation.benchmarks.rules.superclass import (
    PAPER,
    VIEWS,
    SuperclassParameters,
    hidden_boxes,
    image_parts,
    images_of_parts,
)
from curation.core.canonical import sha256_of_lines
from curation.core.errors import ProtocolError, UsageError
from curation.manifest.header import (
    ClassEntry,
    ClassRole,
    Figure,
    LabelView,
    ParameterValue,
    PartEntry,
    PartRole,
    Supersedes,
)
from curation.manifest.manifest import Manifest
from curation.sources.mtsd import OTHER_SIGN
from curation.sources.source import Categories, Source

FACTS = benchmark_facts(__package__)
CUB_CLASSES, PARTS = 200, 4
_CLUSTERS = ("known", "unknown1", "unknown2")
_Settings = Mapping[str, Any]


def choose_slots(parameters: _Settings) -> tuple[SourceSlot, ...]:
    """Return the sources of the chosen problem.

    Raises
    ------
    ProtocolError
        A changed parameter has no effect.
    """
    for param in declared_parameters(__package__):
        default = param.read(param.default)
        problems = FACTS["uses"].get(param.name, (parameters["problem"],))
        expected = "" if parameters["problem"] in problems else f"problem={' or '.join(problems)}"
        if parameters.get("published") and param.name in ("graph_images", "weighting", "components"):
            expected = "published alone: with the authors' lists nothing is split or cut"
        if expected and parameters.get(param.name, default) != default:
            raise ProtocolError(
                f"{param.name} has no effect on this problem",
                where=f"--set {param.name}={str(parameters[param.name])[:60]}",
                expected=expected,
                found=f"problem={parameters['problem']}",
            )
    return _case(parameters).slots


def _case(parameters: _Settings) -> BenchmarkFile:
    """Return the case of ``osod3.toml`` for a problem."""
    problem = parameters["problem"]
    superclass = f"-{parameters.get('superclass', 'animal')}" if problem == "openimages" else ""
    return packaged_file(f"osod3/{problem}{superclass}")


def _settings(case: BenchmarkFile, parameters: _Settings) -> SuperclassParameters:
    """Return the parameters of the rule."""
    same = {name: parameters[name] for name in ("rotation", "weighting", "components", "graph_images")}
    share, salt = Decimal(parameters["val_fraction"]), str(parameters["seed"])
    return replace(case.parameters_as(SuperclassParameters), val=share, salt=salt, **same)


class ProblemClasses(NamedTuple):
    """The classes of a rotation or case.

    Attributes
    ----------
    entries : tuple of ClassEntry
    recorded : dict
        Further facts for the manifest's rule: the class parts, the cut.
    parts : sequence of sequence of str
        The parts or clusters, by class name.
    counts : dict of str to int
        Figures of the case that depend on classes alone, by their names in its table ``expect``.
    selected_by : tuple of ClassEntry
        The classes with the roles that select the images: both unknown clusters of MTSD are unknown in every case.
    """

    entries: tuple[ClassEntry, ...]
    recorded: dict[str, ParameterValue]
    parts: Sequence[Sequence[str]]
    counts: dict[str, int]
    selected_by: tuple[ClassEntry, ...]


def build(sources: Mapping[str, Source], parameters: _Settings) -> Manifest:
    """Return the manifest of a rotation or case.

    Raises
    ------
    ProtocolError
        The sources lack classes of the super-class, a part is empty, or a changed parameter has no effect.
    """
    slots, case = choose_slots(parameters), _case(parameters)
    if missing := [slot.name for slot in slots if slot.name not in sources]:
        raise ProtocolError("A source is missing", expected=" ".join(f"--source {name}=PATH" for name in missing))
    settings, problem = _settings(case, parameters), parameters["problem"]
    by_role = {case.role(slot.name): (slot.name, sources[slot.name]) for slot in slots}
    (_, train), (_, test) = by_role["train"], by_role["test"]
    classes = (
        _signs(train, test, settings, parameters)
        if problem == "mtsd"
        else _classes_in_four(train.categories, case, settings, parameters)
    )
    views, words = _views(case, parameters), _words(parameters)
    parts = image_parts(by_role, classes.entries, settings, views, words, selected_by=classes.selected_by)
    hint = "are these the annotations of this data set?"
    require_images((part for part in parts if part.entry.name != "val"), {"train": hint, "test": hint})
    counts = {"images": len(train.images) + len(test.images), "train": len(train.images), "test": len(test.images)}
    counts = classes.counts | {f"{problem}.{name}": count for name, count in counts.items()}
    figures = _expected_figures(case, counts)
    figures += [hidden_boxes(train, classes.entries)] if problem == "openimages" else []
    figures += [_images_of_other_clusters(parts[-1], test, classes.entries)] if problem == "mtsd" else []
    return _manifest(
        classes,
        parameters,
        parts,
        origin="as_published" if parameters["published"] else "regenerated",
        sources=[source_entry(slot.name, sources[slot.name]) for slot in slots],
        figures=(*figures, *images_of_parts(train, classes.selected_by, classes.parts)),
        notes=(FACTS["words"]["notes"]["authors" if parameters["published"] else "ours"],),
    )


def declare(sources: Mapping[str, Source], parameters: _Settings) -> Manifest:
    """Return the manifest of a rotation without lists: classes of each role, views and rules of the parameters.

    ``curation build`` completes it from the reader's own box files. Classes outside the super-class are not listed;
    the completed manifest has all 601.

    Parameters
    ----------
    sources : mapping of str to Source
        Not read.
    parameters : mapping
        Parameters with ``problem=openimages``.

    Raises
    ------
    UsageError
        Another problem, whose classes are known only from its sources.
    """
    if parameters["problem"] != "openimages":
        raise UsageError(
            "Only problems of Open Images have a header without sources",
            where=f"--set problem={parameters['problem']}",
            expected="problem=openimages",
        )
    case = _case(parameters)
    keys = (*case.classes.leaves([*case.classes.groups]), *case.classes.of("ignored"))
    names = [FACTS["names"][key.removeprefix("/m/")] for key in keys]
    classes = _classes_in_four(Categories.counted(names, keys), case, _settings(case, parameters), parameters)
    selections, source_of = _words(parameters), {case.role(name): name for name in case.sources}
    roles: tuple[PartRole, ...] = ("train", "val", "test")
    note = "{}-annotations-bbox.csv and class-descriptions-boxable.csv, from your own disk"
    # Version 1.0.0 stated that group boxes are ignored whatever the parameters.
    before, corrected = (
        _manifest(
            classes,
            parameters,
            [
                PartEntry(
                    name=role, role=role, sources=(source_of[role],), selection=selections[role], view=views[role]
                )
                for role in roles
            ],
            origin="declared",
            sources=[
                unread_entry(slot.name, slot.dataset, slot.part, note=note.format(slot.part)) for slot in case.slots
            ],
            figures=_expected_figures(case, classes.counts),
            notes=(
                FACTS["words"]["notes"]["ours"],
                "The lists need the box files of Open Images: `curation build` completes them.",
            ),
        )
        for views in (VIEWS, _views(case, parameters))
    )
    link = Supersedes(before.header.version, before.digest, FACTS["correction"]["reason"])
    header = replace(corrected.header, version=FACTS["correction"]["version"], supersedes=link)
    return Manifest(header=header, lists=corrected.lists)


def _manifest(
    classes: ProblemClasses, parameters: _Settings, parts: Iterable[Part | PartEntry], **facts: Any
) -> Manifest:
    words = _words(parameters)
    return manifest_of(
        parts,
        name=words["name"],
        title=words["title"],
        paper=PAPER,
        taxonomy="OSOD-III",
        classes=classes.entries,
        protocol="osod3",
        parameters={**parameters, **classes.recorded},
        **facts,
    )


def _expected_figures(case: BenchmarkFile, counts: Mapping[str, int]) -> list[Figure]:
    """Return the obtained figures with those of the paper."""
    return [compared(name, counts[name], each.value, each.place, each.because) for name, each in case.expect.items()]


def _words(parameters: _Settings) -> dict[str, str]:
    """Return name and title of the manifest, and a sentence on the images of each part."""
    words = {name: text.format(**parameters) for name, text in FACTS["words"][parameters["problem"]].items()}
    return (
        words
        if float(parameters["val_fraction"])
        else words | {"train": words["train"].replace(", less those of val", "")}
    )


def _views(case: BenchmarkFile, parameters: _Settings) -> dict[str, LabelView]:
    """Return the label view of each part; boxes of Open Images are treated as the parameters say."""
    treated = {"ignored": "inner_nodes", "crowd": "group_of", "depiction": "depiction"}
    changes = {label: parameters[name] for label, name in treated.items() if parameters["problem"] == "openimages"}
    return {role: replace(case.views[role], **changes) for role in VIEWS}


def _leaves(categories: Categories, labels: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the names of Open Images classes by their label names (MIDs), which are the only exact keys."""
    name_of = dict(zip(categories.keys or categories.names, categories.names, strict=True))
    if missing := [label for label in labels if label not in name_of]:
        raise ProtocolError(
            "The source lacks classes of the super-class",
            where="Open Images",
            expected=f"all {len(labels)} classes",
            found=f"{len(missing)} missing, such as {', '.join(missing[:3])}",
            hint="class-descriptions-boxable.csv beside the boxes names all 601",
        )
    return {label: (name_of[label],) for label in labels}


def _species(categories: Categories) -> dict[str, tuple[str, ...]]:
    """Return the two names of each species by its number, "001" to "200"; the authors use all three."""
    if len(categories) != CUB_CLASSES:
        n = str(len(categories))
        raise ProtocolError("CUB has 200 species", where="cub-train", expected=str(CUB_CLASSES), found=n)
    # The order is that of the class ids, not of the lines.
    by_id = sorted(zip(categories.numbers, categories.names, strict=True))
    return {f"{number:03}": (name, f"{number:03}.{name}") for number, (_, name) in enumerate(by_id, 1)}


def _classes_in_four(
    categories: Categories, case: BenchmarkFile, settings: SuperclassParameters, parameters: _Settings
) -> ProblemClasses:
    """Return the roles of all classes of Open Images or CUB: one of four parts is known, or unknown in CUB.

    The parts are split here, or are the authors' lists. Inner nodes of Open Images (plain Car, Bird) are ``ignored``.
    """
    recorded: dict[str, ParameterValue] = {}
    convention: Convention = "part_unknown" if parameters["problem"] == "cub" else "part_known"
    if convention == "part_unknown":
        names = _species(categories)
    else:
        labels = case.classes.groups[settings.superclass]
        names = _leaves(categories, labels)
        recorded = {"superclass_classes": len(labels), "superclass_digest": sha256_of_lines(labels)}
    recorded["superclass_members"] = tuple(sorted(name for name, *_ in names.values()))
    parts, digests = (
        authors_parts(names, PARTS, parameters["published"], equal=True)
        if parameters["published"]
        else (split_classes(tuple(names), parts=PARTS, seed=settings.salt), {})
    )
    recorded |= {f"part_{number}": part for number, part in enumerate(parts, 1)} | digests
    known, unknown = rotation(parts, settings.rotation, convention)
    # The authors' classes of CUB are in the order of their numbers.
    by_role = (sorted(known) if convention == "part_unknown" else known, unknown)
    known_names, unknown_names, *by_name = ([names[key][0] for key in part] for part in (*by_role, *parts))
    entries = _entries(categories, known_names, unknown_names, case.classes.of("ignored"))
    counts = {"superclass.classes": len(names), "known.classes": len(known), "unknown.classes": len(unknown)}
    return ProblemClasses(entries, recorded, by_name, counts, entries)


def _signs(train: Source, test: Source, settings: SuperclassParameters, parameters: _Settings) -> ProblemClasses:
    """Return the roles of the sign classes in a case.

    The clusters are those of a normalized cut of the classes' co-occurrence into three, or the authors' own lists.
    Known is the largest cluster, unknown1 the smallest and unknown2 the one between, as in the paper (230, 55, 115);
    ``other-sign`` is in no cluster.
    """
    signs = sorted({*train.categories.names, *test.categories.names} - {OTHER_SIGN})
    if parameters["published"]:
        lists, recorded = authors_parts(dict.fromkeys(signs, ()), len(_CLUSTERS), parameters["published"])
    else:
        graph = (train, test) if settings.graph_images == "all" else (train,)
        (known, second, third), recorded = cut_classes(
            graph, signs, settings.cut, weighting=settings.weighting, components=settings.components
        )
        lists = (known, third, second)
    clusters, case = dict(zip(_CLUSTERS, lists, strict=True)), parameters["case"]
    unknown_clusters = ("unknown1", "unknown2") if case == "unknown12" else (case,)
    unknown = [name for cluster in unknown_clusters for name in clusters[cluster]]
    left_out = sorted({*signs} - {*clusters["known"], *unknown})
    recorded = {
        "superclass_members": tuple(signs),
        "superclass_left_out": tuple(left_out),
        "superclass_left_out_because": "classes of the other unknown cluster, deleted in this case" if left_out else "",
        **recorded,
        **{f"{name}_classes": len(names) for name, names in clusters.items()},
    }
    categories = Categories.counted((*signs, OTHER_SIGN))
    entries, selected_by = (
        _entries(categories, clusters["known"], names) for names in (unknown, [*unknown, *left_out])
    )
    counts = {f"{name}.classes": len(names) for name, names in clusters.items()}
    return ProblemClasses(entries, recorded, lists, counts, selected_by)


def _images_of_other_clusters(tested: Part, test: Source, classes: Sequence[ClassEntry]) -> Figure:
    return Figure(
        name="test.other_clusters_images",
        paper=None,
        obtained=len(tested.ids) - len(showing(test, classes, ["known", "unknown"])),
        place="test images",
        explanation="images of the test list that show neither a known class nor one that is unknown in this case",
    )


def _entries(
    categories: Categories, known: Sequence[str], unknown: Sequence[str], ignored: Sequence[str] = ()
) -> tuple[ClassEntry, ...]:
    """Return an entry for every class: known ones first, by index; classes without a role are ``negative``.

    Keys of a source, such as the MIDs of Open Images, become aliases; `ignored` contains keys.
    """
    key_of = dict(zip(categories.names, categories.keys or categories.names, strict=True))
    listed: dict[ClassRole, Sequence[str]] = {"ignored": ignored, "unknown": unknown, "known": known}
    role = {name: each for each, several in listed.items() for name in several}
    return tuple(
        ClassEntry(
            name=name,
            role=role.get(name, role.get(key_of[name], "negative")),
            index=number if number < len(known) else -1,
            aliases=() if key_of[name] == name else (key_of[name],),
        )
        for number, name in enumerate(dict.fromkeys((*known, *categories.names)))
    )
