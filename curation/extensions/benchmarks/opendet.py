"""VOC-COCO, the open-set benchmark of OpenDet (Han et al., CVPR 2022), as far as its rule is deterministic.

A detector that knows the 20 VOC classes is tested on VOC2007 test joined with images of COCO train2017. *Ranges*:
images with a class among the first 20, 40 or 60 of the others (in the order of the open-world tasks), none beyond, and
no person. *Wilderness*: images with none of the 20. The rules define pools. The authors drew images from
them without a seed, so only their lists name these images. Our parts are drawn by hash rank, in the published sizes,
and nested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import (
    Part,
    Selection,
    Shown,
    all_images,
    compared,
    hash_rank,
    make_part,
    manifest_of,
    show_classes,
    source_entry,
    voc_classes,
)
from curation.benchmarks.published import drafts
from curation.core.errors import ProtocolError
from curation.manifest.header import ClassEntry, LabelView, Paper, PartRole
from curation.manifest.manifest import Manifest
from curation.sources.source import Int64s, Source

_ROOM = __name__
ALGORITHM_VERSION = 1
CLOSED, COCO = "voc2007-test", "coco"
PAPER = fact(_ROOM, "paper", Paper)
RANGES = {int(count): size for count, size in fact(_ROOM, "ranges", dict[str, int]).items()}
WILDERNESS = fact(_ROOM, "wilderness", tuple[int, ...])
OTHERS = fact(_ROOM, "others", tuple[str, ...])
RECIPES = drafts(_ROOM, classes=voc_classes())
"""The lists as their authors published them."""

_RULES = fact(_ROOM, "rules", dict[str, str])


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the pools of VOC-COCO, and selections from them in the authors' sizes.

    Parameters
    ----------
    sources : mapping of str to Source
        ``voc2007-test`` with boxes and ``coco``.
    parameters : mapping
        ``salt`` of the hash rank.

    Raises
    ------
    ProtocolError
        No image of the COCO source belongs to any pool.
    """
    closed, coco = sources[CLOSED], sources[COCO]
    closed.require_objects("The closed part")
    classes = voc_classes(coco)
    presence = show_classes(coco, classes)
    pools: dict[str, tuple[Int64s, tuple[int, ...]]] = {
        f"range-{count}": (range_pool(presence, classes, count), (size,)) for count, size in RANGES.items()
    }
    pools["wilderness"] = (wilderness_pool(presence, classes), WILDERNESS)
    if not any(len(pool) for pool, _ in pools.values()):
        raise ProtocolError(
            "No image of the COCO source belongs to the benchmark",
            where=f"source {COCO}: {coco.files[0].name}",
            expected="COCO instances with its 80 classes",
            found=f"{len(coco.images)} images, classes {', '.join(coco.categories.names[:5])}, …",
        )

    def part(name: str, positions: Int64s, rule: str, subset_of: str = "") -> Part:
        role: PartRole = "wilderness" if name.startswith("wilderness") else "test"
        selected = Selection(COCO, coco, positions)
        return make_part(name, role, selected, classes, view=LabelView(), rule=rule, subset_of=subset_of)

    every, rule = Selection(CLOSED, closed, all_images(closed)), fact(_ROOM, "closed_rule", str)
    parts = [make_part("closed", "test", every, classes, view=LabelView(), rule=rule)]
    figures = []
    for name, (pool, sizes) in pools.items():
        count = name.removeprefix("range-")
        parts.append(part(name, pool, _RULES["range" if count != name else "wilderness"].format(count=count)))
        salt = f"{parameters['salt']}/{name}/"
        ranked = pool[hash_rank(coco.image_ids[pool].tolist(), salt)]
        for size in sizes:
            fits = size <= len(pool)
            if fits:
                drawn = _RULES["drawn"].format(size=size, pool=name, salt=salt)
                parts.append(part(f"{name}-{size}", ranked[:size], drawn, subset_of=name))
            figures.append(
                compared(
                    f"{name}-{size}.images",
                    size if fits else None,
                    size,
                    "the authors' lists less VOC2007 test (4,952)",
                    "the pool of this source is smaller",
                )
            )
    approximate = "" if coco.objects is not None else "-approximate"
    return manifest_of(
        parts,
        name=f"voc-coco/{coco.part or 'custom'}{approximate}",
        title=f"VOC-COCO (OpenDet): pools of COCO {coco.part}, drawn by hash rank".replace(" ,", ","),
        paper=PAPER,
        taxonomy="OSOD-I",
        classes=classes,
        sources=[source_entry(slot, sources[slot]) for slot in (CLOSED, COCO)],
        protocol="voc-coco",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**parameters, "wilderness_evidence": "presence" if approximate else "boxes"},
        figures=figures,
        notes=(
            "The drawn parts are this project's: the authors' lists are random and unseeded. Compare with "
            "`curation verify --published`, which says how many of theirs lie in a pool.",
        ),
    )


def range_pool(what: Shown, classes: tuple[ClassEntry, ...], count: int) -> Int64s:
    """Return the images with one of the first `count` other classes, none of the later, and no person."""
    label = {entry.name: index for index, entry in enumerate(classes)}
    within = what.mask([label[name] for name in OTHERS[:count]])
    barred = what.mask([label["person"], *(label[name] for name in OTHERS[count:])])
    return np.flatnonzero(within & ~barred)


def wilderness_pool(what: Shown, classes: tuple[ClassEntry, ...]) -> Int64s:
    """Return the annotated images that show none of the known classes."""
    known = what.mask([index for index, entry in enumerate(classes) if entry.role == "known"])
    return np.sort(what.order[~known[what.order]])
