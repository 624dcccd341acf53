"""Rectifying Open-Set Object Detection (2023): problems in which it is defined what an unknown is.

OSOD-III: known and unknown classes are sub-classes of one super-class. The paper's three data sets:

* Open Images: the sub-classes of Animal (96) and Vehicle (24) in four equal parts; part q is known, the others unknown.
  Training images show a known class and keep known boxes; validation images show a known class and keep known and
  unknown boxes; test images show a known or unknown class.
* CUB-200: four parts of 50 species; part i is unknown, the others known. Training images of unknown species go.
* MTSD: three clusters that share the minimum co-occurrence; the largest is known. Training images with a sign of an
  unknown cluster go.

The authors' splits cannot be regenerated: a split made here is this project's, by hash rank, and says so; their own
class lists, files ``category_t1.txt``, ``category_t2.txt``, …, come in by the parameter ``published``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from curation.benchmarks.benchmark import SourceSlot, benchmark_facts, declared_parameters, declared_slots, fact
from curation.benchmarks.osod3.class_lists import INNER_NODES, NAMES, SUPERCLASSES, published_parts, superclass_labels
from curation.benchmarks.parts import (
    Part,
    Selection,
    compared,
    make_part,
    manifest_of,
    require_images,
    rule_note,
    showing,
    source_entry,
    unread_entry,
)
from curation.benchmarks.rules.class_parts import cut_classes, rotation, split_classes
from curation.benchmarks.rules.superclass import (
    PAPER,
    TEST_VIEW,
    TRAIN_VIEW,
    hidden_boxes,
    images_of_parts,
    train_and_val,
)
from curation.core.canonical import sha256_of_lines
from curation.core.errors import ProtocolError, UsageError
from curation.manifest.header import (
    ClassEntry,
    ClassRole,
    Figure,
    LabelView,
    Origin,
    ParameterValue,
    PartEntry,
    PartRole,
    SourceEntry,
    Supersedes,
)
from curation.manifest.manifest import Manifest
from curation.sources.mtsd import OTHER_SIGN
from curation.sources.source import Categories, Source

FACTS = benchmark_facts(__package__)
CUB_IMAGES = fact(__package__, "cub_images", dict[str, int])
CUB_CLASSES, PARTS = 200, 4
MTSD_CLUSTERS = tuple(FACTS["mtsd_clusters"])


class Selected(NamedTuple):
    """A part of the Open Images problems: source, roles of which an image shows a class, and the rule in words."""

    source: str
    shows: tuple[str, ...]
    rule: str


SELECTED: dict[PartRole, Selected] = {name: Selected(**facts) for name, facts in FACTS["open_images"].items()}

_CONCERNS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("superclass", "inner_nodes", "group_of", "depiction"), ("openimages",)),
    "rotation": ("openimages", "cub"),
    **dict.fromkeys(("case", "graph_images", "weighting", "components"), ("mtsd",)),
    "val_fraction": ("cub", "mtsd"),
}


def check_effects(parameters: Mapping[str, Any]) -> None:
    """Raise `ProtocolError` if a parameter that has no effect was changed: the manifest would be another than meant."""
    unused = {
        name: f"problem={' or '.join(problems)}"
        for name, problems in _CONCERNS.items()
        if parameters["problem"] not in problems
    }
    if parameters["superclass"] not in SUPERCLASSES:
        unused["inner_nodes"] = f"superclass={' or '.join(SUPERCLASSES)}: of others the inner nodes are not known"
    if parameters["published"]:
        drawn = ("graph_images", "weighting", "components")
        unused |= dict.fromkeys(drawn, "published alone: with the authors' lists nothing is split or cut")
    for param in declared_parameters(__package__):
        if param.name in unused and parameters[param.name] != param.read(param.default):
            raise ProtocolError(
                f"{param.name} has no effect on this problem",
                where=f"--set {param.name}={str(parameters[param.name])[:60]}",
                expected=unused[param.name],
                found=f"problem={parameters['problem']}",
            )


_PAPER_CLASSES = {"animal": 96, "vehicle": 24}
_CLUSTERS = ("known", "unknown1", "unknown2")
_Settings = Mapping[str, Any]
ALGORITHM_VERSION = 1
SLOTS = declared_slots(__package__)
_DATASETS = {"openimages": "openimages", "cub": "cub200", "mtsd": "mtsd"}


def choose_slots(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources of the chosen problem, all of them required."""
    check_effects(parameters)
    dataset = _DATASETS[parameters["problem"]]
    return tuple(msgspec.structs.replace(slot, required=True) for slot in SLOTS if slot.dataset == dataset)


class ProblemClasses(NamedTuple):
    """The classes of a rotation or case.

    Attributes
    ----------
    name, title : str
        Of the manifest.
    entries : tuple of ClassEntry
    recorded : dict
        What the manifest's rule states beyond the parameters: the class parts, the cut.
    parts : sequence of sequence of str
        The parts or clusters, by class name.
    figures : tuple of Figure
    every_unknown : tuple of ClassEntry
        MTSD: the classes with both unknown clusters unknown, whatever the case; else empty.
    """

    name: str
    title: str
    entries: tuple[ClassEntry, ...]
    recorded: dict[str, ParameterValue]
    parts: Sequence[Sequence[str]]
    figures: tuple[Figure, ...]
    every_unknown: tuple[ClassEntry, ...] = ()


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a rotation or case.

    Raises
    ------
    ProtocolError
        The sources lack classes of the super-class, a part comes out empty, or a changed parameter has no effect.
    """
    needed = [slot.name for slot in choose_slots(parameters)]
    if missing := [name for name in needed if name not in sources]:
        raise ProtocolError("A source is missing", expected=" ".join(f"--source {name}=PATH" for name in missing))
    make = {"openimages": _open_images, "cub": _cub, "mtsd": _mtsd}[parameters["problem"]]
    roles, parts, figures = make(sources, parameters)
    require_images(
        (part for part in parts if part.entry.name != "val"),
        dict.fromkeys(("train", "test"), "are these the annotations of that data set?"),
    )
    return _manifest(
        roles,
        parameters,
        parts,
        origin="as_published" if parameters["published"] else "regenerated",
        sources=[source_entry(slot, sources[slot]) for slot in needed],
        figures=(*figures, *images_of_parts(sources[needed[0]], roles.every_unknown or roles.entries, roles.parts)),
        notes=(FACTS["notes"]["authors" if parameters["published"] else "ours"],),
    )


def declare(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return a rotation's manifest without lists: classes of each role, views and rules, as the parameters say.

    ``curation build`` completes it from the reader's own box files. Classes outside the super-class are not listed;
    the completed manifest has all 601.

    Parameters
    ----------
    sources : mapping of str to Source
        None is read.
    parameters : mapping
        Of ``problem=openimages``, with ``superclass`` animal or vehicle.

    Raises
    ------
    UsageError
        Another problem or super-class: its classes are known from its sources alone.
    """
    superclass = parameters["superclass"]
    if parameters["problem"] != "openimages" or superclass not in SUPERCLASSES:
        raise UsageError(
            "Only Open Images animals and vehicles are known without their sources",
            where=f"--set problem={parameters['problem']}",
            expected=f"problem=openimages, superclass={' or '.join(SUPERCLASSES)}",
            found=str(superclass)[:80],
        )
    roles = open_images_classes(_categories_alone(superclass), parameters)
    manifests = [
        _manifest(
            roles,
            parameters,
            [
                PartEntry(name=name, role=name, sources=(slot,), selection=rule, view=views[name])
                for name, (slot, _, rule) in SELECTED.items()
            ],
            origin="declared",
            sources=[_unread(slot) for slot in SLOTS if slot.dataset == "openimages"],
            notes=(
                FACTS["notes"]["ours"],
                "The lists need the box files of Open Images: `curation build` completes them.",
            ),
        )
        for views in ({"train": TRAIN_VIEW, "val": TEST_VIEW, "test": TEST_VIEW}, _views(parameters))
    ]
    # Version 1.0.0 said of every rule that group boxes are ignored.
    before, corrected = manifests
    link = Supersedes(before.header.version, before.digest, FACTS["correction"]["reason"])
    header = msgspec.structs.replace(corrected.header, version=FACTS["correction"]["version"], supersedes=link)
    return Manifest(header=header, lists=corrected.lists)


def _categories_alone(superclass: str) -> Categories:
    keys = (*SUPERCLASSES[superclass], *INNER_NODES[superclass])
    return Categories.counted([NAMES[key] for key in keys], keys)


def _unread(slot: SourceSlot) -> SourceEntry:
    note = f"{slot.part}-annotations-bbox.csv and class-descriptions-boxable.csv, from your own disk"
    return unread_entry(slot.name, slot.dataset, slot.part, note=note)


def _manifest(
    roles: ProblemClasses,
    parameters: Mapping[str, Any],
    parts: Iterable[Part | PartEntry],
    *,
    origin: Origin,
    sources: Iterable[SourceEntry],
    figures: Iterable[Figure] = (),
    notes: Iterable[str],
) -> Manifest:
    # A super-class that the user defines does not belong to the paper.
    is_users = parameters["problem"] == "openimages" and parameters["superclass"].startswith("[")
    return manifest_of(
        parts,
        name=roles.name,
        title=roles.title,
        paper=None if is_users else PAPER,
        taxonomy="OSOD-III",
        origin=origin,
        classes=roles.entries,
        sources=sources,
        protocol="osod3",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**parameters, **roles.recorded},
        figures=(*roles.figures, *figures),
        notes=(*([rule_note("superclass", PAPER)] if is_users else ()), *notes),
    )


def _open_images(
    sources: Mapping[str, Source], parameters: Mapping[str, Any]
) -> tuple[ProblemClasses, list[Part], list[Figure]]:
    train = sources["openimages-train"]
    roles, views = open_images_classes(train.categories, parameters), _views(parameters)
    parts = []
    for name, (slot, roles_shown, rule) in SELECTED.items():
        chosen = Selection(slot, sources[slot], showing(sources[slot], roles.entries, roles_shown))
        parts.append(make_part(name, name, chosen, roles.entries, view=views[name], rule=rule))
    return roles, parts, [hidden_boxes(train, roles.entries)]


def _cub(
    sources: Mapping[str, Source], parameters: Mapping[str, Any]
) -> tuple[ProblemClasses, list[Part], list[Figure]]:
    train, test = sources["cub-train"], sources["cub-test"]
    roles = cub_classes(train.categories, parameters)
    test_rule = "All official test images: the same list in all four cases."
    tested = Selection("cub-test", test, np.arange(len(test.images)))
    known = showing(train, roles.entries, (), ["unknown"])
    test_part = make_part("test", "test", tested, roles.entries, view=TEST_VIEW, rule=test_rule)
    rule = "Official training images of known classes"
    parts = [*_train_and_val(Selection("cub-train", train, known), roles, parameters, rule, per_class=True), test_part]
    obtained = {"images": len(train.images) + len(test.images), "train": len(train.images), "test": len(test.images)}
    figures = [
        compared(f"cub.{name}", obtained[name], number, "CUB-200-2011", "another set of images was given")
        for name, number in CUB_IMAGES.items()
    ]
    return roles, parts, figures


def _mtsd(
    sources: Mapping[str, Source], parameters: Mapping[str, Any]
) -> tuple[ProblemClasses, list[Part], list[Figure]]:
    train, test = sources["mtsd-train"], sources["mtsd-val"]
    roles = mtsd_classes(train, test, parameters)
    chosen = showing(train, roles.every_unknown, ["known"], ["unknown"])
    rule = "Training images with a sign of a known class and none of either unknown cluster"
    test_images = showing(test, roles.every_unknown, ["known", "unknown"])
    parts = [
        *_train_and_val(Selection("mtsd-train", train, chosen), roles, parameters, rule, per_class=False),
        make_part(
            "test", "test", Selection("mtsd-val", test, test_images), roles.entries, view=TEST_VIEW,
            rule="Official validation images (test is published without annotations) with a sign of a known or unknown "
            "cluster: the same list in all three cases.",
        ),
    ]  # fmt: skip
    hidden = Figure(
        name="test.other_clusters_images",
        paper=None,
        obtained=len(test_images) - len(showing(test, roles.entries, ["known", "unknown"])),
        place="test images",
        explanation="images of the test list that show neither a known class nor one that is unknown in this case",
    )
    return roles, parts, [hidden]


def _train_and_val(
    chosen: Selection, roles: ProblemClasses, parameters: Mapping[str, Any], rule: str, *, per_class: bool
) -> list[Part]:
    share, seed = parameters["val_fraction"], parameters["seed"]
    words = rule, f"a share of {share}{' of each class' if per_class else ''} by hash rank (seed {seed})"
    views = {"train": TRAIN_VIEW, "val": TEST_VIEW}
    return train_and_val(chosen, roles.entries, share, f"{seed}/val/", words, views, per_class=per_class)


def _views(parameters: Mapping[str, Any]) -> dict[PartRole, LabelView]:
    """Return the label view of each part of the Open Images problems."""
    treated = {"ignored": "inner_nodes", "crowd": "group_of", "depiction": "depiction"}
    chosen = {label: parameters[name] for label, name in treated.items()}
    return {name: msgspec.structs.replace(TRAIN_VIEW if name == "train" else TEST_VIEW, **chosen) for name in SELECTED}


def open_images_classes(categories: Categories, parameters: _Settings) -> ProblemClasses:
    """Return the roles of all classes of Open Images in a rotation; classes are found by MID, never by name.

    Known: part `rotation` of four of the super-class's leaves. Unknown: the other three. ``ignored``: the inner nodes
    of animal and vehicle (plain Car, Bird); of another super-class they are ``negative`` like every class outside.
    """
    word, number = parameters["superclass"], parameters["rotation"]
    labels = superclass_labels(word)
    name_of = dict(zip(categories.keys or categories.names, categories.names, strict=True))
    if missing := [label for label in labels if label not in name_of]:
        raise ProtocolError(
            "The source has no class of the super-class",
            where="Open Images",
            expected=f"all {len(labels)} classes of {word[:40]}",
            found=f"{len(missing)} missing, such as {', '.join(missing[:3])}",
            hint="class-descriptions-boxable.csv beside the boxes names all 601",
        )
    parts, recorded = _parts_of_four({label: (name_of[label],) for label in labels}, parameters)
    known, unknown = rotation(parts, number, "part_known")
    inner = [name_of[label] for label in INNER_NODES.get(word, ()) if label in name_of]
    short = "custom" if word.startswith("[") else word
    paper, count = _PAPER_CLASSES.get(word), len(labels)
    return ProblemClasses(
        f"osod3/openimages-{short}-{number}",
        f"OSOD-III, Open Images {short}, rotation {number}: part {number} known",
        _entries(categories, [name_of[label] for label in known], [name_of[label] for label in unknown], inner),
        {
            "superclass_classes": count,
            "superclass_digest": sha256_of_lines(labels),
            "superclass_members": tuple(sorted(name_of[label] for label in labels)),
            **recorded,
        },
        [[name_of[label] for label in part] for part in parts],
        (
            Figure(name="superclass.classes", paper=paper, obtained=count, place="paper, sub-classes of Open Images",
                   explanation="" if paper in (None, count) else "another super-class"),
            Figure(name="known.classes", paper=None if paper is None else paper // 4, obtained=len(known),
                   place="paper, four parts of equal size"),
        ),
    )  # fmt: skip


def cub_classes(categories: Categories, parameters: _Settings) -> ProblemClasses:
    """Return the roles of the 200 species in a case: part `rotation` of four is unknown, the others are known.

    Parts are of class numbers ("001" to "200"), as the authors name them.
    """
    case, names = parameters["rotation"], categories.names
    if len(names) != CUB_CLASSES:
        raise ProtocolError("CUB has 200 species", where="cub-train", expected=str(CUB_CLASSES), found=str(len(names)))
    # By the file's own class ids: the order of its lines is free.
    by_id = [name for _, name in sorted(zip(categories.numbers, names, strict=True))]
    name_of = {f"{number:03}": name for number, name in enumerate(by_id, 1)}
    parts, recorded = _parts_of_four({key: (name, f"{key}.{name}") for key, name in name_of.items()}, parameters)
    known, unknown = rotation(parts, case, "part_unknown")
    return ProblemClasses(
        f"osod3/cub-{case}",
        f"OSOD-III, CUB-200-2011, case {case}: part {case} unknown",
        _entries(categories, [name_of[label] for label in sorted(known)], [name_of[label] for label in unknown]),
        {"superclass_members": tuple(sorted(names)), **recorded},
        [[name_of[label] for label in part] for part in parts],
        (
            Figure(name="known.classes", paper=150, obtained=len(known), place="paper, species of CUB-200"),
            Figure(name="unknown.classes", paper=50, obtained=len(unknown), place="paper, species of CUB-200"),
        ),
    )


def _parts_of_four(
    keys: Mapping[str, Sequence[str]], parameters: _Settings
) -> tuple[tuple[tuple[str, ...], ...], dict[str, ParameterValue]]:
    """Return the four parts by key, split here or as the authors' lists name them, and what the rule states of them.

    Parameters
    ----------
    keys : mapping of str to sequence of str
        The classes, with other names that the authors' lists may use.
    """
    if not parameters["published"]:
        parts = split_classes(tuple(keys), parts=PARTS, seed=parameters["seed"])
        return parts, {f"part_{number}": part for number, part in enumerate(parts, 1)}
    parts, digests = _authors_lists(keys, PARTS, parameters)
    sizes = [len(part) for part in parts]
    # The authors' parts are equal: others would be known and unknown classes the wrong way round, or another list.
    if max(sizes) - min(sizes) > (len(keys) % PARTS > 0):
        raise ProtocolError(
            "The authors' lists are not the parts of this problem",
            where="--set published",
            expected=f"{PARTS} lists of equal size",
            found=f"lists of {', '.join(map(str, sizes))}",
        )
    recorded: dict[str, ParameterValue] = {f"part_{number}": part for number, part in enumerate(parts, 1)}
    return parts, {**recorded, "published_digests": digests}


def _authors_lists(
    keys: Mapping[str, Sequence[str]], number: int, parameters: _Settings
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Return the authors' lists by key, each sorted, and their digests; `keys` as `_parts_of_four` takes them."""
    published = published_parts(parameters["published"])
    by_name = {name: key for key, names in keys.items() for name in (key, *names)}
    strange = [name for part in published.parts for name in part if name not in by_name]
    listed = {by_name.get(name) for part in published.parts for name in part}
    missing = [key for key in keys if key not in listed]
    if strange or missing or len(published.parts) != number:
        raise ProtocolError(
            "The authors' lists are not those of this problem",
            where="--set published",
            expected=f"{number} lists that hold its {len(keys)} classes",
            found=f"{len(published.parts)} lists; {len(strange)} other classes: {', '.join(strange[:2]) or '-'}; "
            f"{len(missing)} classes not listed: {', '.join(missing[:2]) or '-'}",
            hint="choose --set problem and --set superclass as the lists are",
        )
    return tuple(tuple(sorted(by_name[name] for name in part)) for part in published.parts), published.sha256


def mtsd_classes(train: Source, test: Source, parameters: _Settings) -> ProblemClasses:
    """Return the roles of the sign classes in a case.

    The clusters are those of a normalized cut of the classes' co-occurrence into three, or the authors' own lists.
    Known is the largest cluster, unknown1 the smallest and unknown2 the one between, as in the paper (230, 55, 115);
    ``other-sign`` is in none.
    """
    signs = sorted({*train.categories.names, *test.categories.names} - {OTHER_SIGN})
    if len(signs) < len(_CLUSTERS):
        raise ProtocolError("There are too few sign classes to cut", expected="at least 3", found=str(len(signs)))
    if parameters["published"]:
        lists, digests = _authors_lists(dict.fromkeys(signs, ()), len(_CLUSTERS), parameters)
        clusters = dict(zip(_CLUSTERS, lists, strict=True))
        recorded: dict[str, ParameterValue] = {"published_digests": digests}
    else:
        graph = (train, test) if parameters["graph_images"] == "all" else (train,)
        settings = {name: parameters[name] for name in ("weighting", "components")}
        (known, second, third), recorded = cut_classes(graph, signs, len(_CLUSTERS), **settings)
        clusters = {"known": known, "unknown1": third, "unknown2": second}
    case = parameters["case"]
    unknown_clusters = ("unknown1", "unknown2") if case == "unknown12" else (case,)
    left_out = [name for cluster in _CLUSTERS[1:] if cluster not in unknown_clusters for name in clusters[cluster]]
    known, names = clusters["known"], (*signs, OTHER_SIGN)
    unknown = [name for cluster in unknown_clusters for name in clusters[cluster]]
    return ProblemClasses(
        f"osod3/mtsd-{case}",
        f"OSOD-III, Mapillary traffic signs, {case}",
        _entries(names, known, unknown),
        {
            "superclass_members": tuple(signs),
            "superclass_left_out": tuple(sorted(left_out)),
            "superclass_left_out_because": "classes of the other unknown cluster, deleted in this case"
            if left_out
            else "",
            **recorded,
            **{f"{name}_classes": len(names) for name, names in clusters.items()},
        },
        [clusters[name] for name in _CLUSTERS],
        tuple(
            compared(
                f"{name}.classes",
                len(clusters[name]),
                paper,
                "paper, clusters of MTSD",
                "the authors' images, graph and solver are not known",
            )
            for name, paper in zip(_CLUSTERS, MTSD_CLUSTERS, strict=True)
        ),
        every_unknown=_entries(names, known, [*unknown, *left_out]),
    )


def _entries(
    categories: Categories | Sequence[str], known: Sequence[str], unknown: Sequence[str], ignored: Sequence[str] = ()
) -> tuple[ClassEntry, ...]:
    """Return an entry for every class: known ones first, by index; those without a role are ``negative``.

    A source that tells its classes apart by keys, such as the MIDs of Open Images, has them as aliases.
    """
    names, keys = (categories.names, categories.keys) if isinstance(categories, Categories) else (categories, ())
    key_of = dict(zip(names, keys or names, strict=True))
    index = {name: number for number, name in enumerate(known)}
    listed: dict[ClassRole, Sequence[str]] = {"unknown": unknown, "known": known, "ignored": ignored}
    role = {name: each for each, several in listed.items() for name in several}
    return tuple(
        ClassEntry(
            name=name,
            role=role.get(name, "negative"),
            index=index.get(name, -1),
            aliases=() if key_of[name] == name else (key_of[name],),
        )
        for name in (*known, *(name for name in names if name not in index))
    )
