"""The lists of OpenOOD 1.5's ImageNet-1K part, as far as rules define them (Zhang et al., arXiv 2306.09301).

A classifier of the 1,000 ILSVRC classes is tested on ILSVRC's validation images, and on images of no such class: *near*
ones, of the Semantic Shift Benchmark's hard classes and of NINCO; *far* ones, of iNaturalist, DTD and Open Images. Each
set follows from the files of its authors. Two sets are split into a part for the choice of hyper-parameters and the
rest. Only the lists of the former part define the split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from curation.benchmarks.benchmark import benchmark_facts, declared_slots, fact
from curation.benchmarks.parts import Part, Selection, all_images, compared, make_part, manifest_of, source_entry
from curation.benchmarks.published import classes_in_roles
from curation.core.canonical import sha256_of_lines
from curation.core.errors import ProtocolError
from curation.core.ids import ilsvrc2012_classes
from curation.manifest.header import ClassEntry, LabelView, Order, Paper
from curation.manifest.manifest import Manifest
from curation.sources.source import Source

SLOTS = declared_slots(__name__)
_CUT = {"imagenet": ("imagenet-val", "val_imagenet"), "openimage_o": ("openimage_o", "val_openimage_o")}
"""Sources of a set and of its part for hyper-parameters."""
_HARD = "curation.extensions.benchmarks.ssb"


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the sets that follow from the sources, each compared with the published one.

    Raises
    ------
    ProtocolError
        No source is given, or a list for hyper-parameters comes without its set, or has images outside of it.
    """
    classes = classes_in_roles({"known": ilsvrc2012_classes(), "unknown": _unknown(sources)})
    parts = list(_parts(sources, classes))
    if not parts:
        raise ProtocolError("No source is given", expected=" ".join(f"--source {slot.name}=PATH" for slot in SLOTS))
    published_sets = fact(__name__, "sets", dict[str, str])
    differing = {
        part.entry.name
        for part in parts
        if part.entry.name in published_sets and sha256_of_lines(sorted(part.ids)) != published_sets[part.entry.name]
    }
    figures = [
        compared(
            figure["name"], len(part.ids), figure["paper"][0], figure["place"], "the source is another set of images"
        )
        for part in parts
        for figure in benchmark_facts(__name__)["published"]["imagenet"]["figures"]
        if figure["name"] == f"{part.entry.name}.images"
    ]
    equal = [part.entry.name for part in parts if part.entry.name in published_sets.keys() - differing]
    notes = [f"Equal to OpenOOD's published list as a set: {', '.join(equal)}."] if equal else []
    if differing:
        notes.append(f"Differs from OpenOOD's published list: {', '.join(sorted(differing))}.")
    return manifest_of(
        parts,
        name="openood/imagenet-1k",
        title="OpenOOD 1.5, ImageNet-1K: sets made from the files of ILSVRC, SSB, NINCO, MOS and ViM",
        paper=fact(__name__, "paper", Paper),
        taxonomy="OSC",
        classes=classes,
        sources=[source_entry(slot.name, sources[slot.name]) for slot in SLOTS if slot.name in sources],
        protocol="openood",
        algorithm_version=1,
        parameters=parameters,
        figures=figures,
        notes=notes,
    )


def _unknown(sources: Mapping[str, Source]) -> list[str]:
    """Return the distinct classes of the OOD sources; the hard ones for SSB."""
    names = {name for slot in ("ninco", "textures") if slot in sources for name in sources[slot].categories.names}
    return sorted(names | (set(hard_classes()) if "ssb" in sources else set()))


def hard_classes() -> list[str]:
    """Return the wnids of SSB's 980 hard classes."""
    names: list[str] = benchmark_facts(_HARD)["problems"]["imagenet"]["classes"]["hard"]
    return names


def _parts(sources: Mapping[str, Source], classes: tuple[ClassEntry, ...]) -> Iterator[Part]:
    published = {part["name"]: part for part in benchmark_facts(__name__)["published"]["imagenet"]["parts"]}

    def part(name: str, slot: str, positions: Any, rule: str = "") -> Part:
        facts = published.get(name, {"role": "test", "selection": rule})
        selected = Selection(slot, sources[slot], positions)
        order: Order = "listed" if name == "textures" else "code_point"
        return make_part(name, facts["role"], selected, classes, view=LabelView(), rule=facts["selection"], order=order)

    for name, (slot, cut) in _CUT.items():
        if cut in sources and slot not in sources:
            raise ProtocolError("A source is missing", where=f"source {cut}", expected=f"--source {slot}=PATH")
        if cut in sources:
            all_ids, cut_ids = sources[slot].image_ids, sources[cut].image_ids
            if not np.isin(cut_ids, all_ids).all():
                raise ProtocolError(
                    "A list for hyper-parameters has images that its set lacks",
                    where=f"source {cut}",
                    expected=f"images of source {slot}",
                    found=str(cut_ids[~np.isin(cut_ids, all_ids)][0]),
                )
            yield part(name, slot, np.flatnonzero(~np.isin(all_ids, cut_ids)))
            yield part(cut, slot, np.flatnonzero(np.isin(all_ids, cut_ids)))
        elif slot in sources:
            rule = f"{name} and {cut} of OpenOOD together: which image is of which, only its lists say."
            yield part(f"{name}-and-val", slot, all_images(sources[slot]), rule)
    if "ssb" in sources:
        image, category = sources["ssb"].class_pairs()
        position = sources["ssb"].categories.index()
        hard = [position[name] for name in hard_classes() if name in position]
        yield part("ssb_hard", "ssb", image[np.isin(category, hard)])
    for name in ("ninco", "inaturalist", "textures"):
        if name in sources:
            yield part(name, name, all_images(sources[name]))
