"""OV-COCO (OVR-CNN, CVPR 2021; classes of Bansal et al., ECCV 2018): which images show base and novel classes.

The authors keep the annotations of the wanted classes, crowd included and nothing else asked, then the images that
still have one (ipynb/001 and 003). Three files come of val2017: seen, unseen, and all, which is both together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from curation.benchmarks.facts import fact
from curation.benchmarks.parts import Part, Selection, compared, make_part, manifest_of, source_entry
from curation.benchmarks.selection import shown
from curation.errors import ProtocolError
from curation.manifest.header import ClassEntry, Figure, LabelView, Paper, PartRole
from curation.manifest.manifest import Manifest
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.source import Bools, Source

PAPER = fact(__package__, "paper", Paper)
VAL, TRAIN, SEEN_FILE = "val", "train", "seen-file"
BASE, NOVEL = (tuple(fact(__package__, "classes", dict[str, list[str]])[group]) for group in ("base", "novel"))
LEFT_OUT = tuple(name for _, name, _ in COCO_CATEGORIES if name not in (*BASE, *NOVEL))
"""The 15 classes of COCO that are neither base nor novel."""
GROUPS = {"seen": BASE, "unseen": NOVEL, "all": (*BASE, *NOVEL)}
"""Classes of each list: an image belongs to it that shows one of them."""
SIZES = fact(__package__, "sizes", dict[str, int])
CLASSES = tuple(
    ClassEntry(
        name=name,
        role="known" if name in BASE else "unknown" if name in NOVEL else "ignored",
        index=-1 if name in LEFT_OUT else number,
    )
    for number, name, _ in COCO_CATEGORIES
)
"""Base classes are known, novel ones unknown; both keep COCO's ids, since detectors name them."""
_VIEWS = {
    "seen": LabelView(unknown="drop", ignored="drop"),
    "unseen": LabelView(known="drop", unknown="keep", ignored="drop"),
    "all": LabelView(unknown="keep", ignored="drop"),
}
_RULE = "Images with an annotation of {classes}, crowd included."
_WORDS = {"seen": "a base class", "unseen": "a novel class", "all": "a base or a novel class"}


def images_showing(source: Source, group: str) -> Bools:
    """Return which images of a source belong to a list, shape (n,): ``seen``, ``unseen`` or ``all``."""
    wanted = [place for place, entry in enumerate(CLASSES) if entry.name in GROUPS[group]]
    return shown(source, CLASSES).mask(wanted)


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the lists of a validation part, and of a training part where it is given.

    Raises
    ------
    ProtocolError
        The file that is to hold base classes alone has objects of others, or the validation part shows no class.
    """
    given = {slot: sources[slot] for slot in (VAL, TRAIN, SEEN_FILE) if slot in sources}
    parts = [_part(group, "test", group, VAL, sources[VAL]) for group in GROUPS]
    if not len(parts[-1].ids):
        raise ProtocolError(
            "No image of the source shows a class of the benchmark",
            where=f"source {VAL}",
            expected="COCO instances with its 80 classes",
            found=f"{len(sources[VAL].images)} images, classes {', '.join(sources[VAL].categories.names[:5])}, …",
        )
    if SEEN_FILE in given:
        _require_seen(given[SEEN_FILE])
    parts += [_part(slot, "train", "seen", slot, given[slot]) for slot in (TRAIN, SEEN_FILE) if slot in given]
    return manifest_of(
        parts,
        name=f"ovcoco/{sources[VAL].part or 'custom'}",
        title="OV-COCO: base and novel classes of COCO",
        paper=PAPER,
        taxonomy="OVD",
        classes=CLASSES,
        sources=tuple(source_entry(slot, source) for slot, source in given.items()),
        protocol="ovcoco",
        algorithm_version=1,
        parameters=dict(parameters),
        figures=_figures(parts),
        notes=_notes(given),
    )


def _part(name: str, role: PartRole, group: str, slot: str, source: Source) -> Part:
    selected = Selection(slot, source, np.flatnonzero(images_showing(source, group)))
    return make_part(name, role, selected, CLASSES, view=_VIEWS[group], rule=_RULE.format(classes=_WORDS[group]))


def _require_seen(source: Source) -> None:
    """Refuse a file of base classes that has annotations of others: a detector trained on it has seen them."""
    _, category = source.class_pairs()
    counts = np.bincount(category, minlength=len(source.categories))
    others = {
        name: int(count)
        for name, count in zip(source.categories.names, counts.tolist(), strict=True)
        if count and name not in BASE
    }
    if others:
        novel = [name for name in others if name in NOVEL]
        raise ProtocolError(
            "The file of base classes holds labels of other classes",
            where=f"source {SEEN_FILE}: {source.files[0].name if source.files else source.dataset}",
            expected="annotations of the 48 base classes alone",
            found=", ".join(f"{name} ({count:,})" for name, count in others.items())[:300]
            + (f"; {len(novel)} of them novel" if novel else ""),
            hint="build the part train from instances_train2017.json and export it: its label view drops them",
        )


def _figures(parts: list[Part]) -> tuple[Figure, ...]:
    sizes = {part.entry.name: len(part.ids) for part in parts}
    return tuple(
        compared(f"{name}.images", sizes[name], size, "ovr-cnn#17, on val2017", "the source is another part of COCO")
        for name, size in SIZES.items()
    )


def _notes(given: Mapping[str, Source]) -> tuple[str, ...]:
    notes = ["background, which the authors' list of seen classes names, is no class of COCO."]
    if TRAIN in given:
        both = int((images_showing(given[TRAIN], "seen") & images_showing(given[TRAIN], "unseen")).sum())
        notes.append(
            f"{both:,} images of the part train show a novel object too, unlabelled: the ordinary case of the "
            "benchmark, no fault of the list."
        )
    return tuple(notes)
