"""What the Elephant paper and its code state, beside what was obtained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from curation.benchmarks.elephant.facts import FIGURES, OFFICIAL_FIGURES, TRAINING_FIGURES
from curation.benchmarks.parts import Part
from curation.manifest.header import Figure, PartEntry
from curation.sources.source import Source

_TRAIN_IMAGES = "number of images of the split, as in the authors' custom_voc_*.json"
CLOSED_FIGURES, WILDERNESS_FIGURES, VAL2017_FIGURES = (FIGURES[group] for group in ("closed", "wilderness", "val2017"))


def figures_of(parts: Mapping[str, Part], sources: Mapping[str, Source]) -> tuple[Figure, ...]:
    """Return every figure of the paper that these sources bear on, with what was obtained and why it differs."""
    coco = sources["coco"]
    obtained = {**_closed(parts["closed"]), **_wilderness(parts, coco)}
    figures = [_figure(name, obtained[name], *CLOSED_FIGURES[name], _closed_reason()) for name in CLOSED_FIGURES]
    figures += [
        _figure(name, obtained[name], *WILDERNESS_FIGURES[name], _wilderness_reason(name, obtained[name], coco))
        for name in WILDERNESS_FIGURES
    ]
    if coco.part == "val2017":
        reason = "the source is not the official val2017"
        figures += [
            _figure("val2017.images", len(coco.images), *VAL2017_FIGURES["val2017.images"], reason),
            _figure(
                "val2017.wilderness_images",
                obtained["wilderness.images"],
                *VAL2017_FIGURES["val2017.wilderness_images"],
                reason,
            ),
        ]
    return (*figures, *_training(parts, sources))


def official_part(figures: Sequence[Figure]) -> str:
    """Return the official part of COCO whose figures are all met, ``""`` where there is none."""
    met = {one.name for one in figures if one.paper is not None and one.obtained == one.paper}
    return next((part for part, names in OFFICIAL_FIGURES.items() if met.issuperset(names)), "")


def declared_figures(closed: Part, wr1: PartEntry) -> tuple[Figure, ...]:
    """Return the figures of a manifest whose wilderness is not available yet, but for WR1 where that is pinned."""
    obtained = {**_closed(closed), "wr1.images": wr1.images}
    figures = [_figure(name, obtained[name], *CLOSED_FIGURES[name], _closed_reason()) for name in CLOSED_FIGURES]
    waiting = "not computed yet: needs instances_train2017.json"
    figures += [_figure(name, obtained.get(name), *WILDERNESS_FIGURES[name], waiting) for name in WILDERNESS_FIGURES]
    return tuple(figures)


def level_count(closed: int, wilderness: int) -> int:
    """Return the number of levels k = 0, 1, … with ``k * closed // 10 <= wilderness``."""
    # k*N//10 <= W exactly when k*N <= 10*W + 9.
    return (10 * wilderness + 9) // closed + 1


def _figure(name: str, obtained: int | None, paper: int, place: str, reason: str) -> Figure:
    return Figure(
        name=name,
        paper=paper,
        obtained=obtained,
        place=place,
        explanation="" if obtained == paper else reason,
    )


def _closed(part: Part) -> dict[str, int | None]:
    boxes, difficult = part.boxes or 0, part.entry.boxes["difficult"]
    return {
        "closed.images": part.entry.images,
        "closed.boxes": boxes,
        "closed.non_difficult_boxes": boxes - difficult,
        "closed.difficult_boxes": difficult,
    }


def _wilderness(parts: Mapping[str, Part], coco: Source) -> dict[str, int | None]:
    entry = parts["wilderness"].entry
    images, annotated = entry.images or 0, entry.annotated_images or 0
    wr1 = parts.get("wr1")
    shown = np.zeros(len(coco.images), np.bool_)
    shown[coco.class_pairs()[0]] = True
    return {
        "coco.images": len(coco.images),
        "coco.annotated_images": int(shown.sum()),
        "wilderness.images": images,
        "wilderness.annotated_images": annotated,
        "wilderness.unannotated_images": images - annotated,
        "wilderness.levels": level_count(len(parts["closed"].ids), images),
        "wr1.images": None if wr1 is None else wr1.entry.images,
        "wr1.non_crowd_boxes": None if wr1 is None else wr1.non_crowd_boxes,
    }


def _closed_reason() -> str:
    return "the closed source is not VOC2007 test, or a file of it that leaves out objects or their difficult flag"


def _wilderness_reason(name: str, obtained: int | None, coco: Source) -> str:
    if obtained is None:
        return "a presence-only source has no boxes" if coco.objects is None else "this part was not asked for"
    if coco.objects is None:
        return "a presence table: classes may be missed, images without annotation may be missing"
    if coco.part != "train2017":
        return f"counted in COCO {coco.part or 'data of another part'}; the paper's wilderness is train2017"
    if name.startswith("wr1") or name.endswith("levels"):
        return "follows from the wilderness or the closed part, which differ from the paper's"
    return "the source is not the official instances_train2017.json"


def _training(parts: Mapping[str, Part], sources: Mapping[str, Source]) -> list[Figure]:
    figures = []
    for slot, (images, boxes, persons) in TRAINING_FIGURES.items():
        if slot not in parts:
            continue
        objects = sources[slot].require_objects("A training part")
        names = sources[slot].categories.names
        n_persons = int((objects.category == names.index("person")).sum()) if "person" in names else 0
        reason = "the source is not the official split, or leaves out its difficult objects"
        figures += [
            _figure(f"{slot}.images", len(parts[slot].ids), images, _TRAIN_IMAGES, reason),
            _figure(f"{slot}.boxes", len(objects), boxes, f"annotations of the authors' file of {slot}", reason),
            _figure(f"{slot}.persons", n_persons, persons, f"annotations of the authors' file of {slot}", reason),
        ]
    return figures
