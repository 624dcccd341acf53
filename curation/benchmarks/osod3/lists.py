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

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from curation.benchmarks.benchmark import SourceSlot
from curation.benchmarks.osod3.classes import ClassRoles, cub_roles, open_images_roles
from curation.benchmarks.osod3.facts import AUTHORS, CUB_IMAGES, OURS, PAPER, SELECTED, TEST_VIEW, TRAIN_VIEW
from curation.benchmarks.osod3.parameters import check_effects
from curation.benchmarks.osod3.selection import (
    hidden_unknown,
    images_by_part,
    images_with_role,
    images_without_role,
    split_share,
)
from curation.benchmarks.osod3.signs import mtsd_roles
from curation.benchmarks.parts import Part, Selection, make_part, manifest_of, source_entry
from curation.errors import ProtocolError
from curation.manifest.header import Figure, LabelView
from curation.manifest.manifest import Manifest
from curation.sources.source import Source

ALGORITHM_VERSION = 1
_OPEN_IMAGES = ("openimages-train", "openimages-validation", "openimages-test")
_CUB = ("cub-train", "cub-test")
_MTSD = ("mtsd-train", "mtsd-val")
SLOTS = (
    SourceSlot("openimages-train", "openimages", "train", False, "Open Images boxes, training images"),
    SourceSlot("openimages-validation", "openimages", "validation", False, "Open Images boxes, validation images"),
    SourceSlot("openimages-test", "openimages", "test", False, "Open Images boxes, test images"),
    SourceSlot("cub-train", "cub200", "train", False, "CUB-200-2011, official training images"),
    SourceSlot("cub-test", "cub200", "test", False, "CUB-200-2011, official test images"),
    SourceSlot("mtsd-train", "mtsd", "train", False, "MTSD fully annotated, training images"),
    SourceSlot("mtsd-val", "mtsd", "val", False, "MTSD fully annotated, validation images (the annotated test set)"),
)
_BY_PROBLEM = {"openimages": _OPEN_IMAGES, "cub": _CUB, "mtsd": _MTSD}


def choose_slots(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources of the chosen problem, all of them required."""
    check_effects(parameters)
    names = _BY_PROBLEM[parameters["problem"]]
    return tuple(
        SourceSlot(one.name, one.dataset, one.part, True, one.meaning, one.usual_part)
        for one in SLOTS
        if one.name in names
    )


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of one rotation or case.

    Raises
    ------
    ProtocolError
        The sources lack classes of the super-class, a part comes out empty, or a changed parameter has no effect.
    """
    check_effects(parameters)
    problem = parameters["problem"]
    missing = [name for name in _BY_PROBLEM[problem] if name not in sources]
    if missing:
        raise ProtocolError("A source is missing", expected=" ".join(f"--source {name}=PATH" for name in missing))
    builders = {"openimages": _open_images, "cub": _cub, "mtsd": _mtsd}
    roles, parts, figures = builders[problem](sources, parameters)
    for part in parts:
        if not part.ids and part.entry.name != "val":
            raise ProtocolError(
                f"Part {part.entry.name} has no images",
                where=", ".join(part.entry.sources),
                expected="images with boxes of the super-class",
                hint="are these the annotations of that data set?",
            )
    return manifest_of(
        parts,
        name=roles.name,
        title=roles.title,
        paper=PAPER,
        taxonomy="OSOD-III",
        origin="as_published" if roles.published else "regenerated",
        classes=roles.entries,
        sources=tuple(source_entry(slot, sources[slot]) for slot in _BY_PROBLEM[problem]),
        protocol="osod3",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**parameters, **roles.recorded},
        figures=(*roles.figures, *figures, *_images_of_parts(sources[_BY_PROBLEM[problem][0]], roles)),
        notes=(AUTHORS if roles.published else OURS,),
    )


def _images_of_parts(source: Source, roles: ClassRoles) -> list[Figure]:
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
) -> tuple[ClassRoles, list[Part], list[Figure]]:
    roles = open_images_roles(sources[_OPEN_IMAGES[0]], parameters)
    treated: dict[str, Any] = {
        "ignored": parameters["inner_nodes"],
        "crowd": parameters["group_of"],
        "depiction": parameters["depiction"],
    }
    train, test = _views(treated)
    parts = []
    for name, (slot, wanted, rule) in SELECTED.items():
        source, view = sources[slot], train if name == "train" else test
        chosen = Selection(slot, source, images_with_role(source, roles.entries, wanted))
        parts.append(make_part(name, name, chosen, roles.entries, view=view, rule=rule))
    return roles, parts, [_hidden(sources[_OPEN_IMAGES[0]], roles)]


def _cub(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> tuple[ClassRoles, list[Part], list[Figure]]:
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
    share = float(parameters["val_fraction"])
    held, kept = split_share(train, known, share, f"{seed}/val/", per_class=True)
    rule = "Official training images of known classes"
    parts = [
        make_part(
            "train", "train", Selection("cub-train", train, kept), roles.entries, view=TRAIN_VIEW,
            rule=f"{rule}, less those of val.",
        ),
        make_part(
            "val", "val", Selection("cub-train", train, held), roles.entries, view=TEST_VIEW,
            rule=f"{rule}: a share of {parameters['val_fraction']} of each class by hash rank (seed {seed}).",
        ),
    ]  # fmt: skip
    parts.append(test_part)
    obtained = {
        "images": len(train.images) + len(test.images),
        "train": len(train.images),
        "test": len(test.images),
    }
    figures = [
        Figure(name=f"cub.{name}", paper=number, obtained=obtained[name], place="CUB-200-2011",
               explanation="" if number == obtained[name] else "another set of images was given")
        for name, number in CUB_IMAGES.items()
    ]  # fmt: skip
    return roles, parts, figures


def _mtsd(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> tuple[ClassRoles, list[Part], list[Figure]]:
    train, test, seed = sources["mtsd-train"], sources["mtsd-val"], parameters["seed"]
    roles = mtsd_roles(train, test, parameters)
    without = images_without_role(train, roles.every_unknown, ("unknown",))
    with_known = set(images_with_role(train, roles.entries, ("known",)).tolist())
    chosen = without[[place in with_known for place in without.tolist()]]
    share = float(parameters["val_fraction"])
    held, kept = split_share(train, chosen, share, f"{seed}/val/", per_class=False)
    rule = "Training images with a sign of a known class and none of either unknown cluster"
    shown = images_with_role(test, roles.every_unknown, ("known", "unknown"))
    parts = [
        make_part(
            "train", "train", Selection("mtsd-train", train, kept), roles.entries, view=TRAIN_VIEW,
            rule=f"{rule}, less those of val.",
        ),
        make_part(
            "val", "val", Selection("mtsd-train", train, held), roles.entries, view=TEST_VIEW,
            rule=f"{rule}: a share of {parameters['val_fraction']} by hash rank (seed {seed}).",
        ),
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


def _views(treated: Mapping[str, Any]) -> tuple[LabelView, LabelView]:
    return msgspec.structs.replace(TRAIN_VIEW, **treated), msgspec.structs.replace(TEST_VIEW, **treated)


def _hidden(source: Source, roles: ClassRoles) -> Figure:
    boxes, images = hidden_unknown(source, roles.entries)
    return Figure(
        name="train.hidden_unknown_boxes",
        paper=None,
        obtained=boxes,
        place="training images",
        explanation=f"boxes of unknown classes on {images} training images, unlabelled in training",
    )
