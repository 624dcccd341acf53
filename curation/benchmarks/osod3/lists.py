"""Rectifying Open-Set Object Detection (2023): problems in which it is defined what an unknown is.

OSOD-III: known and unknown classes are sub-classes of one super-class. The paper's three data sets:

* Open Images: the sub-classes of Animal (96) and Vehicle (24) in four equal parts; part q is known, the others unknown.
  Training images show a known class and keep known boxes; validation images show a known class and keep known and
  unknown boxes; test images show a known or unknown class.
* CUB-200: four parts of 50 species; part i is unknown, the others known. Training images of unknown species go.
* MTSD: three clusters that share the minimum co-occurrence; the largest is known. Training images with a sign of an
  unknown cluster go.

The authors' splits cannot be regenerated: a split made here is this project's, by hash rank, and says so; their own
class lists come in by the parameter ``published``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from curation.benchmarks.benchmark import SourceSlot
from curation.benchmarks.osod3.classes import ProblemClasses, cub_roles, mtsd_roles, open_images_roles
from curation.benchmarks.osod3.problems import (
    AUTHORS,
    CUB_IMAGES,
    INNER_NODES,
    NAMES,
    OURS,
    PAPER,
    SELECTED,
    SUPERCLASSES,
    TEST_VIEW,
    TRAIN_VIEW,
    check_effects,
)
from curation.benchmarks.parts import Part, Selection, compared, make_part, manifest_of, source_entry, unread_entry
from curation.benchmarks.selection import hash_rank
from curation.errors import ProtocolError, UsageError
from curation.manifest.header import ClassEntry, Figure, LabelView, Origin, PartEntry, PartRole, SourceEntry
from curation.manifest.manifest import Manifest
from curation.manifest.views import class_positions
from curation.sources.datasets import facts_of
from curation.sources.source import Bools, Categories, Images, Int64s, Source

ALGORITHM_VERSION = 1
SLOTS = (
    SourceSlot("openimages-train", "openimages", "train", False, "Open Images boxes, training images"),
    SourceSlot("openimages-validation", "openimages", "validation", False, "Open Images boxes, validation images"),
    SourceSlot("openimages-test", "openimages", "test", False, "Open Images boxes, test images"),
    SourceSlot("cub-train", "cub200", "train", False, "CUB-200-2011, official training images"),
    SourceSlot("cub-test", "cub200", "test", False, "CUB-200-2011, official test images"),
    SourceSlot("mtsd-train", "mtsd", "train", False, "MTSD fully annotated, training images"),
    SourceSlot("mtsd-val", "mtsd", "val", False, "MTSD fully annotated, validation images (the annotated test set)"),
)
_DATASETS = {"openimages": "openimages", "cub": "cub200", "mtsd": "mtsd"}


def choose_slots(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources of the chosen problem, all of them required."""
    check_effects(parameters)
    dataset = _DATASETS[parameters["problem"]]
    return tuple(replace(slot, required=True) for slot in SLOTS if slot.dataset == dataset)


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of one rotation or case.

    Raises
    ------
    ProtocolError
        The sources lack classes of the super-class, a part comes out empty, or a changed parameter has no effect.
    """
    needed = [slot.name for slot in choose_slots(parameters)]
    if missing := [name for name in needed if name not in sources]:
        raise ProtocolError("A source is missing", expected=" ".join(f"--source {name}=PATH" for name in missing))
    builders = {"openimages": _open_images, "cub": _cub, "mtsd": _mtsd}
    roles, parts, figures = builders[parameters["problem"]](sources, parameters)
    for part in parts:
        if not part.ids and part.entry.name != "val":
            raise ProtocolError(
                f"Part {part.entry.name} has no images",
                where=", ".join(part.entry.sources),
                expected="images with boxes of the super-class",
                hint="are these the annotations of that data set?",
            )
    return _manifest(
        roles,
        parameters,
        parts,
        origin="as_published" if roles.published else "regenerated",
        sources=[source_entry(slot, sources[slot]) for slot in needed],
        figures=(*figures, *_images_of_parts(sources[needed[0]], roles)),
        notes=(AUTHORS if roles.published else OURS,),
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
    roles = open_images_roles(_classes_alone(superclass), parameters)
    # Published so: what becomes of group boxes, drawings and inner nodes the completed manifest says (`_views`).
    views = {"train": TRAIN_VIEW, "val": TEST_VIEW, "test": TEST_VIEW}
    parts = [
        PartEntry(name=name, role=name, sources=(slot,), selection=rule, view=views[name])
        for name, (slot, _, rule) in SELECTED.items()
    ]
    return _manifest(
        roles,
        parameters,
        parts,
        origin="declared",
        sources=[_unread(slot) for slot in SLOTS if slot.dataset == "openimages"],
        notes=(OURS, "The lists need the box files of Open Images: `curation build` completes them."),
    )


def _classes_alone(superclass: str) -> Source:
    keys = (*SUPERCLASSES[superclass], *INNER_NODES[superclass])
    none, texts = np.empty(0, np.int32), np.empty(0, np.str_)
    facts = facts_of("openimages")
    return Source(
        dataset="openimages",
        part="",
        namespace="openimages",
        images=Images(native=texts, numbers=none.astype(np.int64), file_names=texts, widths=none, heights=none),
        categories=Categories(
            tuple(range(1, len(keys) + 1)), tuple(NAMES[key] for key in keys), ("",) * len(keys), keys
        ),
        objects=None,
        presence=np.empty((0, 2), np.int32),
        files=(),
        licence=facts.licence,
        media_redistributable=facts.media_redistributable,
    )


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
    return manifest_of(
        parts,
        name=roles.name,
        title=roles.title,
        paper=PAPER,
        taxonomy="OSOD-III",
        origin=origin,
        classes=roles.entries,
        sources=sources,
        protocol="osod3",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**parameters, **roles.recorded},
        figures=(*roles.figures, *figures),
        notes=notes,
    )


def _images_of_parts(source: Source, roles: ProblemClasses) -> list[Figure]:
    """Return how many training images show a class of each part: the parts are very unequal in the paper too."""
    counts = images_by_part(source, roles.every_unknown or roles.entries, roles.parts)
    words = [f"{count:,}" for count in counts]
    ratio = f"; the largest has {max(counts) / min(counts):.1f} times the smallest" if all(counts) else ""
    return [
        Figure(
            name=f"part_{place}.train_images",
            paper=None,
            obtained=count,
            place="training images that show a class of the part",
            explanation=f"of {' / '.join(words)}{ratio}",
        )
        for place, count in enumerate(counts, 1)
    ]


def _open_images(
    sources: Mapping[str, Source], parameters: Mapping[str, Any]
) -> tuple[ProblemClasses, list[Part], list[Figure]]:
    train = sources["openimages-train"]
    roles, views = open_images_roles(train, parameters), _views(parameters)
    parts = []
    for name, (slot, wanted, rule) in SELECTED.items():
        chosen = Selection(slot, sources[slot], images_with_role(sources[slot], roles.entries, wanted))
        parts.append(make_part(name, name, chosen, roles.entries, view=views[name], rule=rule))
    return roles, parts, [_hidden(train, roles)]


def _cub(
    sources: Mapping[str, Source], parameters: Mapping[str, Any]
) -> tuple[ProblemClasses, list[Part], list[Figure]]:
    train, test, seed = sources["cub-train"], sources["cub-test"], parameters["seed"]
    roles = cub_roles(train, parameters)
    shown, rule = np.arange(len(test.images)), "All official test images: the same list in all four cases."
    tested = Selection("cub-test", test, shown)
    known = images_without_role(train, roles.entries, ("unknown",))
    if parameters["cub_source"] == "train_only":
        share = float(parameters["test_fraction"])
        chosen, left = split_share(train, np.arange(len(train.images)), share, f"{seed}/test/", per_class=True)
        tested, known = Selection("cub-train", train, chosen), np.intersect1d(known, left)
        rule = (
            f"A share of {parameters['test_fraction']} of the official training images of each class by hash rank "
            f"(seed {seed}): the same list in all four cases, under the reading that CUB's test part is not annotated."
        )
    test_part = make_part("test", "test", tested, roles.entries, view=TEST_VIEW, rule=rule)
    rule = "Official training images of known classes"
    parts = [*_train_and_val(Selection("cub-train", train, known), roles, parameters, rule, per_class=True), test_part]
    obtained = {
        "images": len(train.images) + len(test.images),
        "train": len(train.images),
        "test": len(test.images),
    }
    figures = [
        compared(f"cub.{name}", obtained[name], number, "CUB-200-2011", "another set of images was given")
        for name, number in CUB_IMAGES.items()
    ]
    return roles, parts, figures


def _mtsd(
    sources: Mapping[str, Source], parameters: Mapping[str, Any]
) -> tuple[ProblemClasses, list[Part], list[Figure]]:
    train, test = sources["mtsd-train"], sources["mtsd-val"]
    roles = mtsd_roles(train, test, parameters)
    without = images_without_role(train, roles.every_unknown, ("unknown",))
    chosen = np.intersect1d(without, images_with_role(train, roles.entries, ("known",)))
    rule = "Training images with a sign of a known class and none of either unknown cluster"
    shown = images_with_role(test, roles.every_unknown, ("known", "unknown"))
    parts = [
        *_train_and_val(Selection("mtsd-train", train, chosen), roles, parameters, rule, per_class=False),
        make_part(
            "test", "test", Selection("mtsd-val", test, shown), roles.entries, view=TEST_VIEW,
            rule="Official validation images (test is published without annotations) with a sign of a known or unknown "
            "cluster: the same list in all three cases.",
        ),
    ]  # fmt: skip
    hidden = Figure(
        name="test.other_clusters_images",
        paper=None,
        obtained=len(shown) - len(images_with_role(test, roles.entries, ("known", "unknown"))),
        place="test images",
        explanation="images of the test list that show neither a known class nor one that is unknown in this case",
    )
    return roles, parts, [hidden]


def _train_and_val(
    chosen: Selection, roles: ProblemClasses, parameters: Mapping[str, Any], rule: str, *, per_class: bool
) -> list[Part]:
    """Return the training part and, by hash rank, the share of its images that validates."""
    share, seed = parameters["val_fraction"], parameters["seed"]
    held, kept = split_share(chosen.source, chosen.positions, float(share), f"{seed}/val/", per_class=per_class)
    train, val = (Selection(chosen.slot, chosen.source, images) for images in (kept, held))
    told = f"a share of {share}{' of each class' if per_class else ''} by hash rank (seed {seed})"
    return [
        make_part("train", "train", train, roles.entries, view=TRAIN_VIEW, rule=f"{rule}, less those of val."),
        make_part("val", "val", val, roles.entries, view=TEST_VIEW, rule=f"{rule}: {told}."),
    ]


def _views(parameters: Mapping[str, Any]) -> dict[PartRole, LabelView]:
    """Return the label view of each part of the Open Images problems."""
    treated = {"ignored": "inner_nodes", "crowd": "group_of", "depiction": "depiction"}
    chosen = {label: parameters[name] for label, name in treated.items()}
    return {name: msgspec.structs.replace(TRAIN_VIEW if name == "train" else TEST_VIEW, **chosen) for name in SELECTED}


def _hidden(source: Source, roles: ProblemClasses) -> Figure:
    boxes, images = hidden_unknown(source, roles.entries)
    return Figure(
        name="train.hidden_unknown_boxes",
        paper=None,
        obtained=boxes,
        place="training images",
        explanation=f"boxes of unknown classes on {images} training images, unlabelled in training",
    )


def images_with_role(source: Source, classes: Sequence[ClassEntry], roles: Sequence[str]) -> Int64s:
    """Return the images with at least one box of a class in one of some roles, in file order."""
    return np.flatnonzero(_shown(source, classes, roles))


def images_without_role(source: Source, classes: Sequence[ClassEntry], roles: Sequence[str]) -> Int64s:
    """Return the images without any box of a class in one of some roles, in file order."""
    return np.flatnonzero(~_shown(source, classes, roles))


def hidden_unknown(source: Source, classes: Sequence[ClassEntry]) -> tuple[int, int]:
    """Return how many boxes of unknown classes lie on images with a known one, and on how many images."""
    known = _shown(source, classes, ("known",))
    image, category = source.class_pairs()
    unknown = _in_roles(source, classes, ("unknown",))[category] & known[image]
    return int(unknown.sum()), len(np.unique(image[unknown]))


def split_share(source: Source, images: Int64s, share: float, salt: str, *, per_class: bool) -> tuple[Int64s, Int64s]:
    """Return a share of some images by hash rank, and the others, both in file order.

    Parameters
    ----------
    share : float
        From 0 to 0.5.
    salt : str
        Of the hash rank.
    per_class : bool
        Take the share of each class's images apart (images with one object); else of all.
    """
    ids = source.image_ids
    groups = [images]
    if per_class:
        image, category = source.class_pairs()
        of_image = np.full(len(source.images), -1, np.int64)
        of_image[image[::-1]] = category[::-1]
        groups = [images[of_image[images] == number] for number in np.unique(of_image[images]).tolist()]
    held: list[int] = []
    for group in groups:
        # Rounded to the nearest image, and never the whole class.
        size = min(int(share * len(group) + 0.5), max(0, len(group) - 1))
        ranked = hash_rank(ids[group].tolist(), salt)
        held += group[ranked[:size]].tolist()
    chosen = np.zeros(len(source.images), np.bool_)
    chosen[held] = True
    return images[chosen[images]], images[~chosen[images]]


def images_by_part(source: Source, classes: Sequence[ClassEntry], parts: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """Return for each part how many images show a class of it, by name or alias."""
    image, category = source.class_pairs()
    position = class_positions(classes, source)[category]
    counts = []
    for part in parts:
        named = set(part)
        chosen = [not named.isdisjoint((entry.name, *entry.aliases)) for entry in classes]
        wanted = np.array([*chosen, False], np.bool_)
        counts.append(len(np.unique(image[wanted[position]])))
    return tuple(counts)


def _shown(source: Source, classes: Sequence[ClassEntry], roles: Sequence[str]) -> Bools:
    image, category = source.class_pairs()
    shown = np.zeros(len(source.images), np.bool_)
    shown[image[_in_roles(source, classes, roles)[category]]] = True
    return shown


def _in_roles(source: Source, classes: Sequence[ClassEntry], roles: Sequence[str]) -> Bools:
    """Return which categories of a source have one of some roles."""
    position = class_positions(classes, source)
    wanted = np.array([*(entry.role in roles for entry in classes), False], np.bool_)
    return wanted[position]
