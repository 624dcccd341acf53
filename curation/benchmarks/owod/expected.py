"""What the papers state of the open-world benchmarks, beside what was obtained, and what a reader must know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curation.benchmarks.owod.splits import COCO_TRAIN, COCO_VAL, OFFICIAL_IMAGES, Split
from curation.benchmarks.parts import Part
from curation.benchmarks.selection import shown
from curation.manifest.header import Figure
from curation.sources.source import Source

_UNANNOTATED = {
    COCO_TRAIN: (1_021, "118,287 images of train2017 less 117,266 annotated ones"),
    COCO_VAL: (48, 'paper: "48 incompletely labeled images"; they are those of val2017 without annotation'),
}
_LISTED = 100
"""Images without annotation are named one by one up to this number."""


def figures_of(
    split: Split,
    parts: Sequence[Part],
    sources: Mapping[str, Source],
    parameters: Mapping[str, Any],
    selected: Mapping[str, int],
) -> tuple[Figure, ...]:
    """Return every published figure that these sources bear on, with what was obtained and why it differs.

    Parameters
    ----------
    selected : mapping of str to int
        Images that each task selects before validation images are taken out.
    """
    obtained = _obtained(split, parts, sources) | {f"{task}-selection": size for task, size in selected.items()}
    reasons = {
        name: _reason(name, size, obtained[name], split, sources, parameters)
        for name, size in split.sizes.items()
        if name in obtained
    }
    return _figures(split, obtained, reasons, sources)


def declared_figures(split: Split, tested: Sequence[Part], sources: Mapping[str, Source]) -> tuple[Figure, ...]:
    """Return the published figures: those of the test lists computed, the others to be met on completion."""
    obtained = _obtained(split, tested, sources)
    later = "to be computed from the training source"
    return _figures(split, obtained, {name: "" if name in obtained else later for name in split.sizes}, sources)


def _obtained(split: Split, parts: Sequence[Part], sources: Mapping[str, Source]) -> dict[str, int]:
    mixed = split.first_test in sources
    return {part.entry.name: len(part.ids) for part in parts} | (_test_selections(split, sources) if mixed else {})


def _figures(
    split: Split, obtained: Mapping[str, int], reasons: Mapping[str, str], sources: Mapping[str, Source]
) -> tuple[Figure, ...]:
    """Return a figure for each name that has a reason, an empty one included."""
    sizes = (
        Figure(
            name=f"{name}.images",
            paper=split.sizes[name],
            obtained=obtained.get(name),
            place=split.place,
            explanation=reason,
        )
        for name, reason in reasons.items()
    )
    return (*sizes, *_unannotated(sources))


def notes_of(
    split: Split, parts: Sequence[Part], sources: Mapping[str, Source], parameters: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return what a reader of the manifest must know."""
    notes = []
    train = sources.get(split.train)
    if train is not None and train.objects is None:
        notes.append(
            "APPROXIMATE: the training lists come from a table of image and class, not from the annotations. An image "
            "is missing where the table misses its class."
        )
    if train is not None and not split.first_train and split.validation_rule(parameters) == "hash":
        notes.append(
            "The validation lists are this project's (hash rank): the authors' random ones have no stated seed. With "
            "others taken out, the training lists are others too; --set val=published takes the authors'."
        )
    test = sources[split.test]
    without = np.flatnonzero(np.bincount(test.class_pairs()[0], minlength=len(test.images)) == 0)
    if not split.first_test and 0 < len(without) <= _LISTED:
        ids = ", ".join(sorted(test.images.native[without].tolist()))
        notes.append(
            f"{len(without)} images of the test source carry no annotation and are left out, so that false detections "
            f"on them go unpunished: {ids}."
        )
    if any(part.entry.repeats for part in parts):
        notes.append(
            "The test list names images again, as published: an evaluation has to say what it does about that."
        )
    if split.name == "reowod":
        notes.append(
            "The classes of the tasks are those of the published lists (ORE's: VOC's classes first), not those of the "
            "row 'semantic split' of Table 2: --set split=table2 takes these."
        )
    if split.name == "m-owodb":
        notes.append(
            "VOC images are annotated for 20 of the 80 classes: their unknown objects are not in the ground truth."
        )
    return tuple(notes)


def _test_selections(split: Split, sources: Mapping[str, Source]) -> dict[str, int]:
    """Return the images that each task adds to a mixed test list."""
    what = shown(sources[split.test], split.classes)
    sizes = {}
    for number, task in enumerate(split.tasks):
        labels = [place for place, one in enumerate(split.classes) if one.name in task.introduced]
        size = len(what.of(labels)) if number else len(sources[split.first_test].images)
        sizes[f"{task.name}-test-selection"] = size
    return sizes


def _unannotated(sources: Mapping[str, Source]) -> list[Figure]:
    figures = []
    for slot, (size, place) in _UNANNOTATED.items():
        if slot in sources and sources[slot].objects is not None:
            source = sources[slot]
            without = int((np.bincount(source.class_pairs()[0], minlength=len(source.images)) == 0).sum())
            figures.append(
                Figure(
                    name=f"{slot}.unannotated_images",
                    paper=size,
                    obtained=without,
                    place=place,
                    explanation="" if without == size else f"this file holds {len(source.images)} images",
                )
            )
    return figures


def _reason(
    name: str,
    paper: int,
    obtained: int,
    split: Split,
    sources: Mapping[str, Source],
    parameters: Mapping[str, Any],
) -> str:
    if obtained == paper:
        return ""
    train = sources.get(split.train)
    if "test" in name:
        return "another test file" if parameters["repeats"] == "keep" else "another test file, or each image once"
    if train is not None and train.objects is None:
        return "the table misses classes that are painted over by another, so that images are missing; none is extra"
    if train is not None and len(train.images) != OFFICIAL_IMAGES[COCO_TRAIN]:
        return f"the training file holds {len(train.images)} images, not {OFFICIAL_IMAGES[COCO_TRAIN]}"
    if name.endswith("-val"):
        return f"--set val_size={parameters['val_size']}"
    return "other images are set apart for validation than the authors' own (--set val=published takes theirs)"
