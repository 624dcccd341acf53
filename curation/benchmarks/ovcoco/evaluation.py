"""AP50 of base and novel classes: on all images together (generalized), and on the images of each (constrained)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from curation.benchmarks.ovcoco.lists import BASE, GROUPS, LEFT_OUT, NOVEL, images_showing
from curation.benchmarks.ovcoco.report import CONSTRAINED, GENERALIZED, REPORT, VARIANTS
from curation.canonical import sha256_of_lines
from curation.errors import EvaluationError, PredictionError
from curation.evaluation.coco_engine import Engine, coco_decided_by_order, coco_precision
from curation.evaluation.inputs import POLICY, READING, Policy, Reading, Truth, about, detections_of
from curation.evaluation.problem import Bools, Detections, GroundTruth, KnownClasses
from curation.evaluation.result import Result
from curation.evaluation.truth import ground_truth
from curation.progress import stage
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.source import Source

Setting = Literal["generalized", "constrained", "all"]
Variant = Literal["ovr-cnn", "detic", "all"]
OUTSIDE = "left out: detections of the 15 classes that are neither base nor novel"


def evaluate(
    *,
    truth: Annotated[Truth, "FILE"],
    detections: Path,
    setting: Setting = "generalized",
    variant: Variant = "ovr-cnn",
    outside: Literal["error", "drop"] = "error",
    reading: Reading = READING,
    policy: Policy = POLICY,
    engine: Engine | None = None,
) -> Result:
    """Score open-vocabulary detection on COCO: AP50 of the 17 novel, the 48 base and all 65 classes.

    Parameters
    ----------
    truth : Path or Source
        instances_val2017.json, or a file of all 65 classes; images are chosen from it by the rule of the lists
    detections : Path
        COCO results, as a JSON list or one record a line, or a folder of VOC results (comp4_det_test_CLASS.txt); may be
        compressed by gzip
    setting : {"generalized", "constrained", "all"}
        images with a class of either kind, 65 classes together; or base classes on images with a base class, and novel
        ones on images with a novel class
    variant : {"ovr-cnn", "detic", "all"}
        how a mean takes a class without objects: left out, or the mean is undefined
    outside : {"error", "drop"}
        detections of the 15 classes that are neither base nor novel: refuse, or leave out and report
    reading : Reading
    policy : Policy
    engine : {"hotcoco", "pycocotools", "both"}, optional
        default: hotcoco where installed

    Returns
    -------
    Result
        Sections ``SETTING/VARIANT``.

    Raises
    ------
    MissingFileError, EvaluationError, PredictionError
        A file is not there, or does not hold what it should.
    MissingExtraError, EngineDisagreementError, UsageError
        See `curation.evaluation.coco_engine.coco_precision`.
    """
    with stage("reading ground truth"):
        source = reading.open(truth, "val2017")
        known = _classes(source)
        source, notes = reading.boxed(source)
        part = ground_truth(source, known, reading.images_of(source))
    with stage("reading detections"):
        read = detections_of(detections, part, reading.policy_of(policy))
    kept = read.detections.label < len(GROUPS["all"])
    if n := int((~kept).sum()):
        if outside == "error":
            raise _outside_error(read.detections, known, str(detections), n)
        read = replace(read, detections=read.detections.take(kept), reported={**read.reported, OUTSIDE: n})
    wanted = (GENERALIZED, CONSTRAINED) if setting == "all" else (setting,)
    variants = tuple(VARIANTS) if variant == "all" else (variant,)
    showing = {group: _positions(source, group, part.truth) for group in GROUPS}
    sections: dict[str, Any] = {}
    for name in wanted:
        with stage(f"COCO evaluation, {name}"):
            found = _scored(name, part.truth, read.detections, showing, source, engine)
        sections |= {f"{name}/{variant}": _section(name, variant, found) for variant in variants}
    inputs = {"test": {"truth": part.file, "detections": read.file}}
    more = {"outside": outside, "settings": list(wanted), "variants": {one: VARIANTS[one] for one in variants}}
    return Result(REPORT, about(known, inputs, option_files={}) | more, sections, notes=notes)


def _classes(source: Source) -> KnownClasses:
    """Return base and novel classes, then those left out, which a detector of 80 classes has too.

    Raises
    ------
    EvaluationError
        The truth has no category of a base or novel class.
    """
    own = dict(zip(source.categories.names, source.categories.numbers, strict=True))
    missing = [name for name in GROUPS["all"] if name not in own]
    if missing:
        raise EvaluationError(
            f"The truth has no category of {len(missing)} of the 65 classes",
            where=", ".join(record.name for record in source.files),
            expected="the 48 base and 17 novel classes of OV-COCO",
            found="none for " + ", ".join(missing)[:300],
            hint="give instances_val2017.json; a file of seen or unseen classes alone lacks the others",
        )
    coco = {name: number for number, name, _ in COCO_CATEGORIES}
    # Of a class that the truth lacks, COCO's number says something only where the truth numbers classes as COCO does.
    is_coco = all(own[name] == coco[name] for name in GROUPS["all"])
    lent = {name: coco[name] for name in LEFT_OUT if is_coco and coco[name] not in own.values()}
    names = (*BASE, *NOVEL, *LEFT_OUT)
    return KnownClasses(names, tuple(own.get(name, lent.get(name)) for name in names), "OV-COCO")


def _outside_error(found: Detections, known: KnownClasses, where: str, n: int) -> PredictionError:
    counts = np.bincount(found.label, minlength=len(known.names)).tolist()
    told = [
        f"{name} ({count:,})" for name, count in zip(known.names, counts, strict=True) if count and name in LEFT_OUT
    ]
    return PredictionError(
        "The detections hold classes that are neither base nor novel",
        where=where,
        expected="detections of the 65 classes of OV-COCO",
        found=f"{n:,} of {', '.join(told)}"[:300],
        hint="--on-error outside=drop leaves them out and reports them",
    )


def _positions(source: Source, group: str, truth: GroundTruth) -> Bools:
    """Return which images of the truth belong to a list: the truth has them by number, the source in file order."""
    by_name = truth.image_names is not None
    keys = source.images.native.tolist() if by_name else source.images.numbers.tolist()
    chosen = images_showing(source, group).tolist()
    wanted = {key for key, there in zip(keys, chosen, strict=True) if there}
    listed = truth.image_names if truth.image_names is not None else truth.image_numbers.tolist()
    return np.array([one in wanted for one in listed], np.bool_)


def _scored(
    setting: str,
    truth: GroundTruth,
    found: Detections,
    showing: dict[str, Bools],
    source: Source,
    engine: Engine | None,
) -> dict[str, Any]:
    """Return AP50 of each class in one setting, and what was scored together."""
    groups = {"all": GROUPS["all"]} if setting == GENERALIZED else {"seen": BASE, "unseen": NOVEL}
    ap50: dict[str, float | None] = {}
    counts: dict[str, Any] = {}
    by_order = []
    for group, names in groups.items():
        objects, guesses = _restricted(truth, found, showing[group], names)
        precision = np.full((101, len(names)), -1.0)
        for place, one in coco_precision(objects, guesses, engine=engine).items():
            precision[:, place] = one[0]
        values = precision.mean(axis=0).tolist()
        ap50 |= {name: None if value < 0 else value for name, value in zip(names, values, strict=True)}
        ids = sorted(source.image_ids[np.flatnonzero(images_showing(source, group))].tolist())
        counts[group] = {
            "images": objects.n_images,
            "sha256": sha256_of_lines(ids),
            "objects": len(objects.label),
            "crowd": int(objects.crowd.sum()),
            "detections": len(guesses),
        }
        by_order.append(coco_decided_by_order(objects, guesses))
    return {"AP50": ap50, "lists": counts, "decided_by_order": by_order}


def _restricted(
    truth: GroundTruth, found: Detections, images: Bools, names: tuple[str, ...]
) -> tuple[GroundTruth, Detections]:
    """Return ground truth and detections of some images and classes alone."""
    first = truth.classes.index(names[0])
    labels = np.full(len(truth.classes) + 1, -1, np.int32)
    labels[first : first + len(names)] = np.arange(len(names))
    place = np.where(images, np.cumsum(images) - 1, -1).astype(np.int32)
    rows = np.flatnonzero((place[truth.image] >= 0) & (labels[truth.label] >= 0))
    said = truth.federated
    if said is not None:
        said = np.column_stack([place[said[:, 0]], labels[said[:, 1]], said[:, 2]]).astype(np.int32)
        said = said[(said[:, :2] >= 0).all(axis=1)]
    objects = replace(
        truth,
        image_numbers=truth.image_numbers[images],
        classes=names,
        class_numbers=truth.class_numbers[first : first + len(names)],
        image=place[truth.image[rows]],
        label=labels[truth.label[rows]],
        boxes=truth.boxes[rows],
        crowd=truth.crowd[rows],
        difficult=truth.difficult[rows],
        areas=truth.areas[rows],
        original=None,
        image_names=None,
        federated=said,
    )
    kept = found.take((place[found.image] >= 0) & (labels[found.label] >= 0))
    return objects, replace(kept, image=place[kept.image], label=labels[kept.label])


def _section(setting: str, variant: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return the means of one variant, with the reasons of those that are undefined."""
    values = found["AP50"]
    groups = {"AP50_novel": NOVEL, "AP50_base": BASE}
    if setting == GENERALIZED:
        groups["AP50_all"] = GROUPS["all"]
    numbers, undefined = dict[str, float | None](), dict[str, str]()
    for key, names in groups.items():
        known = [values[name] for name in names if values[name] is not None]
        without = [name for name in names if values[name] is None]
        if not known or (without and variant == "detic"):
            numbers[key] = None
            undefined[key] = f"no object, crowd aside, of {', '.join(without)}"[:300]
        else:
            numbers[key] = float(np.mean(known))
    return {
        "setting": setting,
        "variant": variant,
        **numbers,
        "undefined": undefined,
        "AP50_per_class": values,
        "lists": found["lists"],
        "decided_by_order": found["decided_by_order"],
    }
