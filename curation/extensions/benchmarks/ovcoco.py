"""OV-COCO (OVR-CNN, CVPR 2021; classes of Bansal et al., ECCV 2018): images of base and novel classes, and AP50.

The authors keep all annotations of the chosen classes, crowd included, then the images that still have an annotation
(ipynb/001 and 003). This gives three files of val2017: seen, unseen, and all, the union of both. AP50 is computed on
all images (generalized), or for base and novel classes on the images of each group (constrained).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import Part, Selection, compared, images_with, make_part, manifest_of, source_entry
from curation.core.canonical import sha256_of_lines
from curation.core.errors import EvaluationError, PredictionError, ProtocolError
from curation.core.process import stage
from curation.evaluation.coco_precision import coco_precision
from curation.evaluation.inputs import POLICY, READING, Policy, Reading, Truth, about, detections_of
from curation.evaluation.measures import Measure, Measured, Value
from curation.evaluation.problem import Bools, Detections, GroundTruth, KnownClasses
from curation.evaluation.result import Column, Report, Result, Scored, Tidy, stem_of, truth_digests
from curation.evaluation.truth import ground_truth
from curation.manifest.header import ClassEntry, LabelView, Paper, PartRole
from curation.manifest.manifest import Manifest
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.source import Source

_ROOM = __name__
PAPER = fact(_ROOM, "paper", Paper)
VAL, TRAIN, SEEN_FILE = "val", "train", "seen-file"
BASE, NOVEL = (tuple(fact(_ROOM, "classes", dict[str, list[str]])[group]) for group in ("base", "novel"))
LEFT_OUT = tuple(name for _, name, _ in COCO_CATEGORIES if name not in (*BASE, *NOVEL))
"""The 15 classes of COCO that are neither base nor novel."""
GROUPS = {"seen": BASE, "unseen": NOVEL, "all": (*BASE, *NOVEL)}
"""Classes of each list: it contains the images that show at least one of them."""
SIZES = fact(_ROOM, "sizes", dict[str, int])
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


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the lists of a validation part and, if given, of a training part.

    Raises
    ------
    ProtocolError
        The file of base classes has objects of other classes, or the validation part shows no class.
    """
    chosen = {slot: sources[slot] for slot in (VAL, TRAIN, SEEN_FILE) if slot in sources}
    parts = [_part(group, "test", group, VAL, sources[VAL]) for group in GROUPS]
    if not len(parts[-1].ids):
        raise ProtocolError(
            "No image of the source shows a class of the benchmark",
            where=f"source {VAL}",
            expected="COCO instances with its 80 classes",
            found=f"{len(sources[VAL].images)} images, classes {', '.join(sources[VAL].categories.names[:5])}, …",
        )
    if SEEN_FILE in chosen:
        _require_seen(chosen[SEEN_FILE])
    parts += [_part(slot, "train", "seen", slot, chosen[slot]) for slot in (TRAIN, SEEN_FILE) if slot in chosen]
    return manifest_of(
        parts,
        name=f"ovcoco/{sources[VAL].part or 'custom'}",
        title="OV-COCO: base and novel classes of COCO",
        paper=PAPER,
        taxonomy="OVD",
        classes=CLASSES,
        sources=tuple(source_entry(slot, source) for slot, source in chosen.items()),
        protocol="ovcoco",
        algorithm_version=1,
        parameters=dict(parameters),
        figures=[
            compared(
                f"{part.entry.name}.images",
                len(part.ids),
                SIZES[part.entry.name],
                "ovr-cnn#17, on val2017",
                "the source is another part of COCO",
            )
            for part in parts
            if part.entry.name in SIZES
        ],
        notes=_notes(chosen),
    )


def _part(name: str, role: PartRole, group: str, slot: str, source: Source) -> Part:
    selected = Selection(slot, source, np.flatnonzero(images_with(source, GROUPS[group])))
    return make_part(name, role, selected, CLASSES, view=_VIEWS[group], rule=_RULE.format(classes=_WORDS[group]))


def _require_seen(source: Source) -> None:
    """Refuse a file of base classes that has annotations of others: a detector trained on it has seen them."""
    counts = Counter(source.categories.names[category] for category in source.class_pairs()[1].tolist())
    others = {name: counts[name] for name in source.categories.names if counts[name] and name not in BASE}
    if others:
        raise ProtocolError(
            "The file of base classes holds labels of other classes",
            where=f"source {SEEN_FILE}: {source.files[0].name if source.files else source.dataset}",
            expected="annotations of the 48 base classes alone",
            found=f"{_counted(others)}; {len(others.keys() & set(NOVEL))} of them novel",
            hint="build the part train from instances_train2017.json and export it: its label view drops them",
        )


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in counts.items())[:300]


def _notes(sources: Mapping[str, Source]) -> tuple[str, ...]:
    notes = ["background, which the authors' list of seen classes names, is not a class of COCO."]
    if TRAIN in sources:
        both = int((images_with(sources[TRAIN], GROUPS["seen"]) & images_with(sources[TRAIN], GROUPS["unseen"])).sum())
        notes.append(
            f"{both:,} images of the part train show a novel object too, unlabelled: the ordinary case of the "
            "benchmark, no fault of the list."
        )
    return tuple(notes)


SETTINGS = {"generalized": ("all",), "constrained": ("seen", "unseen")}
"""Lists that are scored in each setting."""
VARIANTS = fact(_ROOM, "evaluation", dict[str, Any])["variants"]
OUTSIDE = "left out: detections of the 15 classes that are neither base nor novel"
MEASURES = fact(_ROOM, "measures", tuple[Measure, ...])
REPORT = Report(
    "ovcoco",
    MEASURES,
    # 2: if a truth does not use COCO's numbers, these no longer identify classes that it lacks.
    # 3: numbers are in %.
    algorithm=3,
    files=("measures", "lists", "average_precision"),
    places=("case", "variant"),
    tidy=(
        Tidy(
            "lists",
            (
                Column("list"),
                Column("images", "count"),
                Column("sha256", "digest", "digest"),
                *(Column(name, "count") for name in ("objects", "crowd", "detections")),
            ),
            title="Images that were scored",
        ),
        Tidy("average_precision", (Column("class"), Column("group"), Column("AP50", "%")), title="AP50 of each class"),
    ),
)


def evaluate(
    *,
    truth: Annotated[Truth, "FILE"],
    detections: Path,
    setting: Literal["generalized", "constrained", "all"] = "generalized",
    variant: Literal["ovr-cnn", "detic", "all"] = "ovr-cnn",
    outside: Literal["error", "drop"] = "error",
    reading: Reading = READING,
    policy: Policy = POLICY,
) -> Result:
    """Score open-vocabulary detection on COCO: AP50 of the 17 novel, the 48 base and all 65 classes.

    Parameters
    ----------
    truth : Path or Source
        instances_val2017.json, or a file of all 65 classes; images are chosen from it by the rule of the lists
    detections : Path
        COCO results (a JSON list, or one record a line), a table (.csv), or a folder of label files of YOLO
        (data.yaml, labels/STEM.txt) or of VOC results (comp4_det_test_CLASS.txt); may be compressed by gzip
    setting : {"generalized", "constrained", "all"}
        images with a class of either kind, 65 classes together; or base classes on images with a base class, and novel
        ones on images with a novel class
    variant : {"ovr-cnn", "detic", "all"}
        how a mean takes a class without objects: left out, or the mean is undefined
    outside : {"error", "drop"}
        detections of the 15 classes that are neither base nor novel: refuse, or leave out and report
    reading : Reading
    policy : Policy

    Raises
    ------
    MissingFileError, EvaluationError, PredictionError
        A file is not there, or does not hold what it should.
    """
    with stage("reading ground truth"):
        source = reading.open(truth, "val2017")
        known = _classes(source)
        part = ground_truth(source, known, None)
    with stage("reading detections"):
        read = detections_of(detections, part, policy)
    is_scored = read.detections.label < len(GROUPS["all"])
    if n := int((~is_scored).sum()):
        if outside == "error":
            counts = Counter(known.names[label] for label in read.detections.label[~is_scored].tolist())
            raise PredictionError(
                "The detections hold classes that are neither base nor novel",
                where=str(detections),
                expected="detections of the 65 classes of OV-COCO",
                found=f"{n:,} of {_counted({name: counts[name] for name in LEFT_OUT if counts[name]})}",
                hint="--on-error outside=drop leaves them out and reports them",
            )
        read = replace(read, detections=read.detections.take(is_scored), reported={**read.reported, OUTSIDE: n})
    facts = about(known, {"test": {"truth": part.file, "detections": read.file}}, option_files={})
    chosen = [name for name in VARIANTS if variant in (name, "all")]
    scored = []
    for name in (offered for offered in SETTINGS if setting in (offered, "all")):
        with stage(f"COCO evaluation, {name}"):
            tables = _tables(name, part.truth, read.detections, source)
        scored += [
            Scored(
                case=name,
                variant=variant_name,
                method=stem_of(read.file),
                truth=truth_digests(facts),
                predictions={"test": read.file},
                settings={"setting": name, "outside": outside},
                operating_point={"iou": ">= 0.5"},
                found=Measured(list(_means(name, variant_name, tables["average_precision"])), tables),
            )
            for variant_name in chosen
        ]
    facts |= {"outside": outside, "variants": {key: VARIANTS[key] for key in chosen}}
    return Result(REPORT, facts, scored=scored)


def _classes(source: Source) -> KnownClasses:
    """Return base and novel classes, then the classes left out, which a detector of 80 classes also has.

    Raises
    ------
    EvaluationError
        The truth has no category of a base or novel class.
    """
    numbers = dict(zip(source.categories.names, source.categories.category_ids, strict=True))
    missing = [name for name in GROUPS["all"] if name not in numbers]
    if missing:
        raise EvaluationError(
            f"The truth has no category of {len(missing)} of the 65 classes",
            where=", ".join(record.name for record in source.files),
            expected="the 48 base and 17 novel classes of OV-COCO",
            found="none for " + ", ".join(missing)[:300],
            hint="give instances_val2017.json; a file of seen or unseen classes alone lacks the others",
        )
    coco = {name: number for number, name, _ in COCO_CATEGORIES}
    # COCO's number identifies a class that the truth lacks only if the truth uses COCO's numbers.
    is_coco = all(numbers[name] == coco[name] for name in GROUPS["all"])
    lent = {name: coco[name] for name in LEFT_OUT if is_coco and coco[name] not in numbers.values()}
    names = (*BASE, *NOVEL, *LEFT_OUT)
    return KnownClasses(names, tuple(numbers.get(name, lent.get(name)) for name in names), "OV-COCO")


def _tables(setting: str, truth: GroundTruth, results: Detections, source: Source) -> dict[str, dict[str, list[Any]]]:
    """Return AP50 of each class in a setting, in %, and facts about the scored lists."""
    lists: list[dict[str, Any]] = []
    classes: list[dict[str, Any]] = []
    for group in SETTINGS[setting]:
        names = GROUPS[group]
        ids = source.image_ids[images_with(source, GROUPS[group])].tolist()
        objects, guesses = _restricted(truth, results, np.isin(truth.image_ids, ids), names)
        precision = np.full((101, len(names)), np.nan)
        for label, figures in coco_precision(objects, guesses).items():
            precision[:, label] = figures[0]
        lists.append(
            {
                "list": group,
                "images": objects.n_images,
                "sha256": sha256_of_lines(sorted(ids)),
                "objects": len(objects.label),
                "crowd": int(objects.crowd.sum()),
                "detections": len(guesses),
            }
        )
        classes += [
            {
                "class": name,
                "group": "base" if name in BASE else "novel",
                "AP50": None if np.isnan(value) else 100 * value,
            }
            for name, value in zip(names, precision.mean(axis=0).tolist(), strict=True)
        ]
    tables = {"lists": lists, "average_precision": classes}
    return {name: {key: [row[key] for row in rows] for key in rows[0]} for name, rows in tables.items()}


def _restricted(
    truth: GroundTruth, detections: Detections, images: Bools, names: tuple[str, ...]
) -> tuple[GroundTruth, Detections]:
    """Return ground truth and detections restricted to some images and classes."""
    first = truth.classes.index(names[0])
    labels = np.full(len(truth.classes) + 1, -1, np.int32)
    labels[first : first + len(names)] = np.arange(len(names))
    new_row = np.where(images, np.cumsum(images) - 1, -1).astype(np.int32)
    rows = np.flatnonzero((new_row[truth.image] >= 0) & (labels[truth.label] >= 0))
    cells = truth.federated
    if cells is not None:
        cells = np.column_stack([new_row[cells[:, 0]], labels[cells[:, 1]], cells[:, 2]]).astype(np.int32)
        cells = cells[(cells[:, :2] >= 0).all(axis=1)]
    objects = replace(
        truth,
        image_numbers=truth.image_numbers[images],
        classes=names,
        class_numbers=truth.class_numbers[first : first + len(names)],
        image=new_row[truth.image[rows]],
        label=labels[truth.label[rows]],
        boxes=truth.boxes[rows],
        crowd=truth.crowd[rows],
        difficult=truth.difficult[rows],
        areas=truth.areas[rows],
        original=None,
        index=None,
        part_positions=None,
        federated=cells,
    )
    retained = detections.take((new_row[detections.image] >= 0) & (labels[detections.label] >= 0))
    return objects, replace(retained, image=new_row[retained.image], label=labels[retained.label])


def _means(setting: str, variant: str, table: Mapping[str, list[Any]]) -> Iterator[Value]:
    """Yield the means of a variant, with a reason for each undefined mean."""
    values = dict(zip(table["class"], table["AP50"], strict=True))
    for key, names in {"AP50_novel": NOVEL, "AP50_base": BASE, "AP50_all": GROUPS["all"]}.items():
        if key == "AP50_all" and setting == "constrained":
            continue
        known = [values[name] for name in names if values[name] is not None]
        without = [name for name in names if values[name] is None]
        if not known or (without and variant == "detic"):
            yield Value(key, None, undefined=f"no object, crowd aside, of {', '.join(without)}"[:300])
        else:
            yield Value(key, float(np.mean(known)))
