"""The Semantic Shift Benchmark (Vaze et al., ICLR 2022): unknown classes, easy or hard to tell from known ones.

Known and unknown classes come from the same data set. *Easy* unknown classes share few attributes with any known class,
*hard* ones many; CUB, Stanford Cars and FGVC Aircraft have *medium* ones between, which count as hard in benchmarking.
A classifier of the known classes is tested on known images together with the easy, or with the hard unknown ones.

The lists of CUB follow exactly from its files and the official split. The known images of ImageNet are ILSVRC's
validation images; the unknown ones are the 50 files of each class that the authors list.

Many hard classes of ImageNet are related to a known one in WordNet, as the authors intended. Two variants of this
package leave out those below a known class, or also those above one, to show their effect on a score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import structs

from curation.benchmarks.benchmark import benchmark_facts, declared_parameters, declared_slots, fact, stated_parameters
from curation.benchmarks.parts import Part, Selection, compared, images_with, make_part, manifest_of, source_entry
from curation.benchmarks.published import classes_in_roles
from curation.core.errors import ProtocolError
from curation.core.ids import ilsvrc2012_classes
from curation.manifest.header import LabelView, Paper, PartRole
from curation.manifest.manifest import Manifest
from curation.signals.hierarchy.related_classes import NOT_PROVEN, class_kin
from curation.sources.source import Source
from curation.sources.source_specs import SourceSlot

PAPER = fact(__name__, "paper", Paper)
PROBLEMS: Mapping[str, Any] = benchmark_facts(__name__)["problems"]
SLOTS = declared_slots(__name__)
SLOTS_OF = {"cub": ("cub-train", "cub-test"), "imagenet": ("imagenet-val", "imagenet-21k")}
"""Sources of each data set; the source of the known images is first."""
_VARIANTS = {"descendants": ("hard-without-descendants", "below"), "all": ("hard-without-kin", "below or above")}
"""Name of the manifest without related classes, and their position relative to a known class."""
_MEDIUM = "Medium unknown classes count as hard in benchmarking: part test-hard holds both."
LEVELS = {"easy": ("easy",), "hard": ("medium", "hard")}
"""Unknown classes of each test set."""


def choose_slots(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources of the dataset, which are all required."""
    names = SLOTS_OF[parameters["problem"]]
    return tuple(structs.replace(slot, required=True) for slot in SLOTS if slot.name in names)


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the lists of a data set: known and unknown images by difficulty, and the two test sets.

    Raises
    ------
    ProtocolError
        A source is missing, or lacks one of the classes.
    """
    problem = parameters["problem"]
    if missing := [slot for slot in SLOTS_OF[problem] if slot not in sources]:
        raise ProtocolError("A source is missing", expected=" ".join(f"--source {slot}=PATH" for slot in missing))
    first, second = SLOTS_OF[problem]
    levels, left_out = _without_kin(_classes_of(problem, sources[second]), parameters)
    unknown_names = [name for level, names in levels.items() if level != "known" for name in names]
    classes = classes_in_roles({"known": levels["known"], "unknown": unknown_names})

    def images(slot: str, level: str) -> Selection:
        return Selection(slot, sources[slot], np.flatnonzero(images_with(sources[slot], levels[level])))

    def part(name: str, selected: Sequence[Selection], rule: str, role: PartRole = "test") -> Part:
        return make_part(name, role, selected, classes, view=LabelView(), rule=rule)

    parts = []
    if problem == "cub":
        parts.append(part("train", [images(first, "known")], "Official training images of known classes.", "train"))
    known = images(second if problem == "cub" else first, "known")
    parts.append(part("known", [known], "Test images of known classes."))
    unknown = {level: images(second, level) for level in levels if level != "known"}
    for level, unknowns in unknown.items():
        parts.append(part(level, [unknowns], f"Test images of {level} unknown classes."))
    for name, held in LEVELS.items():
        if chosen := [unknown[level] for level in held if level in unknown]:
            parts.append(part(f"test-{name}", [known, *chosen], f"The known images and the {name} unknown ones."))
    variant, kin = _VARIANTS.get(parameters["without_kin"], ("", ""))
    title = f", hard, without the {len(left_out)} classes {kin} a known one in WordNet 3.0" if variant else ""
    sizes = {made.entry.name: len(made.ids) for made in parts}
    return manifest_of(
        parts,
        name=f"ssb/{variant or problem}",
        title=f"Semantic Shift Benchmark: {problem}{title}",
        paper=PAPER,
        taxonomy="OSC",
        protocol="ssb",
        parameters=stated_parameters(parameters, declared_parameters(__name__)),
        classes=classes,
        sources=tuple(source_entry(slot, sources[slot]) for slot in SLOTS_OF[problem]),
        # The variants of this package differ in size from the paper's lists; digests lock them.
        figures=[
            compared(
                f"{name}.images", sizes.get(name), size, PROBLEMS[problem]["place"],
                "the source is another set of images",
            )
            for name, size in ({} if variant else PROBLEMS[problem]["sizes"]).items()
        ],
        notes=_notes_on(left_out, kin) if variant else (_MEDIUM,) if "medium" in levels else (),
    )  # fmt: skip


def _without_kin(
    levels: Mapping[str, tuple[str, ...]], parameters: Mapping[str, Any]
) -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the classes by level without those related to known classes, and the removed classes."""
    which = parameters["without_kin"]
    if which == "none":
        return levels, ()
    if parameters["problem"] != "imagenet":
        raise ProtocolError(
            "Only the classes of imagenet are synsets of WordNet",
            where=f"--set without_kin={which}",
            expected="--set problem=imagenet",
            found=f"problem={parameters['problem']}",
        )
    left_out = set(class_kin(levels["hard"], levels["known"]).kin(which))
    retained = {"known": levels["known"], "hard": tuple(name for name in levels["hard"] if name not in left_out)}
    return retained, tuple(sorted(left_out))


def _notes_on(left_out: Sequence[str], kin: str) -> tuple[str, ...]:
    return (
        f"A variant of ours, not of the authors, who meant hard classes to be near: {len(left_out)} of "
        f"{len(PROBLEMS['imagenet']['classes']['hard'])} hard classes are left out, each {kin} a known class in "
        f"WordNet 3.0, all parents kept: {', '.join(left_out)}.",
        f"{'; '.join(NOT_PROVEN)}.",
    )


def declare(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the header of a variant without related classes.

    The lists of SSB's authors may not be passed on: a variant is locked by their digests, and built from their file.

    Raises
    ------
    ProtocolError
        The lists are those of the authors, which are built.
    """
    if parameters["without_kin"] == "none":
        raise ProtocolError(
            "Lists of the authors are built, not declared",
            where="--header-only",
            expected="--set without_kin=descendants or all",
        )
    made = build(sources, parameters)
    return Manifest(header=structs.replace(made.header, origin="declared"), lists={})


def _classes_of(problem: str, source: Source) -> dict[str, tuple[str, ...]]:
    """Return the names of the known classes and of the unknown ones by difficulty, sorted within each."""
    facts = PROBLEMS[problem]["classes"]
    if problem == "imagenet":
        return {"known": tuple(ilsvrc2012_classes()), **{level: tuple(names) for level, names in facts.items()}}
    # The order is that of the class ids of the file, not of its lines. The authors count them from 0.
    names = [name for _, name in sorted(zip(source.categories.numbers, source.categories.names, strict=True))]
    size = sum(map(len, facts.values()))
    if len(names) != size:
        raise ProtocolError(
            "The source has other classes than the benchmark",
            where=f"source {SLOTS_OF[problem][1]}",
            expected=f"{size} classes",
            found=str(len(names)),
        )
    return {level: tuple(names[number] for number in numbers) for level, numbers in facts.items()}
