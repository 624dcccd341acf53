"""Evaluations of open-set detectors: Elephant's command beside its reading and one matching, OWOD beside plain loops.

The plain evaluator is written as such evaluators usually are: a dict of objects by image for each class, a loop over
the detections by falling score, NumPy for the overlaps of one detection. It computes less: area AP, TP and FP, and
which detections lie on an unknown object.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from curation.core.writing import write_bytes
from curation.evaluation.problem import UNKNOWN, ClassRoles, Detections, GroundTruth
from curation.sources.identity import ImageIndex
from tests.benchmarks.coco_ap import write_results
from tests.benchmarks.own_process import Clock

PARTS = {"closed": (4_952, 1, 3, 44), "wilderness": (23_008, 100_000, 7, 36)}
"""Images, number of the first, objects and detections of an image."""
IMAGES, CLASSES, KNOWN, OBJECTS, DETECTIONS = 4_952, 80, 40, 36_781, 500_000


def elephant(folder: Path, clock: Clock) -> None:
    """Run the command with ``--out``, without figures."""
    out = folder / "elephant-result"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "curation", "evaluate", "elephant", "--out", str(out)]
    for part in PARTS:
        truth, results = _paths(folder, part)
        command += ["--truth", f"{part}={truth}", "--detections", f"{part}={results}"]
    with clock:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def elephant_least(folder: Path, clock: Clock) -> None:
    """Read the same four files, and match the closed part once."""
    from curation.evaluation.problem import classes_of_source
    from curation.evaluation.readers import read_coco_results
    from curation.evaluation.truth import ground_truth
    from curation.sources.coco import read_coco
    from tests.evaluation.worlds import match

    with clock:
        sources = {part: read_coco(_paths(folder, part)[0]) for part in PARTS}
        known = classes_of_source(sources["closed"])
        truths = {part: ground_truth(source, known).truth for part, source in sources.items()}
        found = {part: read_coco_results(_paths(folder, part)[1], truth).detections for part, truth in truths.items()}
        match(truths["closed"], found["closed"])


def owod(folder: Path, clock: Clock) -> list[float]:
    """Return TP, AP and detections on unknown objects, each summed over the classes, under variant ``clean``."""
    from curation.benchmarks.registry import variants_of
    from curation.evaluation.open_world import evaluate_task
    from curation.evaluation.truth import Part, TaskTruth

    truth, detections = _drawn()
    classes = truth.classes[:-1]
    task = ClassRoles("bench", classes[: KNOWN // 2], classes[KNOWN // 2 :], None, "drawn")
    part = Part(truth, (), {}, IMAGES)
    given = TaskTruth(task, part, np.ones(IMAGES, np.int64), np.zeros(IMAGES, bool), "error", 0)
    variants = tuple(variant for variant in variants_of("owod") if variant.name == "clean")
    with clock:
        table = evaluate_task(given, detections, variants)["clean"].tables["classes"]
    return [float(sum(table["tp"])), sum(table["AP"]) / 100, float(sum(n or 0 for n in table["on_unknown"]))]


def owod_plain(folder: Path, clock: Clock) -> list[float]:
    """Return the same by loops over classes, images and detections."""
    truth, detections = _drawn()
    with clock:
        per_class = [_plain_class(truth, detections, label) for label in range(len(truth.classes))]
    return np.sum(per_class, axis=0).tolist()


def _plain_class(truth: GroundTruth, detections: Detections, label: int) -> tuple[float, float, float]:
    unknown = len(truth.classes) - 1
    objects: list[dict[int, list[Any]]] = [{} for _ in truth.classes]
    for other, image, box in zip(truth.label.tolist(), truth.image.tolist(), truth.boxes.tolist(), strict=True):
        if other in (label, unknown):
            objects[other].setdefault(image, []).append(box)
    boxes_of = {image: np.array(boxes) for image, boxes in objects[label].items()}
    unknowns = {image: np.array(boxes) for image, boxes in objects[unknown].items()}
    taken = {image: [False] * len(boxes) for image, boxes in boxes_of.items()}
    rows = np.flatnonzero(detections.label == label)
    rows = rows[np.argsort(-detections.scores[rows], kind="stable")]
    tp, on_unknown = np.zeros(len(rows)), 0
    for rank, row in enumerate(rows):
        box, image = detections.boxes[row], int(detections.image[row])
        if image in boxes_of:
            overlap = _overlaps(box, boxes_of[image])
            for best in np.argsort(-overlap, kind="stable"):
                if overlap[best] < 0.5:
                    break
                if not taken[image][best]:
                    taken[image][best] = True
                    tp[rank] = 1
                    break
        if label != unknown and image in unknowns:
            on_unknown += bool(_overlaps(box, unknowns[image]).max() >= 0.5)
    return float(tp.sum()), _area(tp, sum(map(len, objects[label].values()))), float(on_unknown)


def _overlaps(box: Any, boxes: Any) -> Any:
    left, top = np.maximum(boxes[:, 0], box[0]), np.maximum(boxes[:, 1], box[1])
    right = np.minimum(boxes[:, 0] + boxes[:, 2], box[0] + box[2])
    bottom = np.minimum(boxes[:, 1] + boxes[:, 3], box[1] + box[3])
    common = np.maximum(right - left, 0) * np.maximum(bottom - top, 0)
    return common / (boxes[:, 2] * boxes[:, 3] + box[2] * box[3] - common)


def _area(tp: Any, n: int) -> float:
    recall = np.concatenate([[0], np.cumsum(tp) / n, [1]])
    precision = np.concatenate([[0], np.cumsum(tp) / np.arange(1, len(tp) + 1), [0]])
    for k in range(len(precision) - 1, 0, -1):
        precision[k - 1] = max(precision[k - 1], precision[k])
    steps = np.flatnonzero(recall[1:] != recall[:-1])
    return float(((recall[steps + 1] - recall[steps]) * precision[steps + 1]).sum())


def _drawn() -> tuple[GroundTruth, Detections]:
    """Return objects and detections that look like a detector's: some near objects, many low-scored anywhere."""
    rng = np.random.default_rng(3)
    image = np.sort(rng.integers(0, IMAGES, OBJECTS))
    label = np.minimum(rng.integers(0, CLASSES, OBJECTS), KNOWN)
    boxes = _boxes(rng, OBJECTS)
    truth = GroundTruth(
        image_numbers=np.arange(1, IMAGES + 1),
        classes=(*(f"class {k:02d}" for k in range(KNOWN)), UNKNOWN),
        class_numbers=tuple(range(KNOWN + 1)),
        image=image.astype(np.int32),
        label=label.astype(np.int32),
        boxes=boxes,
        crowd=np.zeros(OBJECTS, bool),
        difficult=np.zeros(OBJECTS, bool),
        areas=boxes[:, 2] * boxes[:, 3],
        original=tuple(f"kind {k}" for k in rng.integers(0, CLASSES - KNOWN, OBJECTS).tolist()),
        index=ImageIndex(np.arange(1, IMAGES + 1), tuple(f"{k:012d}.jpg" for k in range(1, IMAGES + 1))),
    )
    near = rng.integers(0, OBJECTS, DETECTIONS // 4)
    guessed = np.where(rng.random(len(near)) < 0.6, label[near], rng.integers(0, KNOWN + 1, len(near)))
    far = DETECTIONS - len(near)
    detections = Detections(
        np.concatenate([image[near], rng.integers(0, IMAGES, far)]).astype(np.int32),
        np.concatenate([guessed, rng.integers(0, KNOWN + 1, far)]).astype(np.int32),
        np.vstack([np.abs(boxes[near] + rng.normal(0, 8, (len(near), 4))) + 1, _boxes(rng, far)]).round(2),
        np.concatenate([rng.beta(4, 2, len(near)), rng.beta(1, 12, far)]).round(5),
    )
    return truth, detections


def draw(folder: Path, clock: Clock) -> None:
    """Write truth and results of Elephant's two parts: three detections near each object, the rest anywhere."""
    for part, (images, first, objects, detections) in PARTS.items():
        truth, results = _paths(folder, part)
        if truth.exists() and results.exists():
            continue
        rng, closed = np.random.default_rng(20), part == "closed"
        image = np.sort(rng.integers(0, images, images * objects)) + first
        boxes = _boxes(rng, len(image))
        label = rng.integers(1, 21, len(image)) if closed else np.full(len(image), -1)
        columns = zip(image.tolist(), label.tolist(), boxes.tolist(), strict=True)
        names = ("id", "image_id", "category_id", "bbox", "area", "iscrowd", "difficult")
        rows = ((n, i, c, box, box[2] * box[3], 0, int(n % 5 == 0)) for n, (i, c, box) in enumerate(columns, 1))
        numbers = range(first, first + images)
        content = {
            "images": [{"id": n, "file_name": f"{n:012d}.jpg", "width": 500, "height": 500} for n in numbers],
            "annotations": [dict(zip(names, row, strict=True)) for row in rows],
            "categories": [{"id": c, "name": f"class {c:02d}"} for c in (*range(1, 21), -1)],
        }
        write_bytes(truth, json.dumps(content).encode())
        near = np.repeat(np.arange(len(image)), 3)
        far = images * detections - len(near)
        moved = boxes[near] + rng.normal(0, 9, (len(near), 4))
        moved[:, 2:] = np.maximum(moved[:, 2:], 1)
        right = rng.random(len(near)) < (0.85 if closed else 0.0)
        guessed = np.where(right, label[near], rng.integers(1, 21, len(near)))
        strength = (5, 2) if closed else (2, 4)
        found = (
            np.concatenate([image[near], rng.integers(0, images, far) + first]),
            np.concatenate([guessed, rng.integers(1, 21, far)]),
            np.vstack([moved, _boxes(rng, far)]).round(2),
            np.concatenate([rng.beta(*strength, len(near)), rng.beta(1, 12, far)]).round(5),
        )
        write_results(results, found)


def _paths(folder: Path, part: str) -> tuple[Path, Path]:
    return folder / "elephant" / f"{part}_truth.json", folder / "elephant" / f"{part}_results.json"


def _boxes(rng: np.random.Generator, n: int) -> Any:
    size = rng.uniform(20, 240, (n, 2))
    return np.hstack([rng.uniform(0, 1, (n, 2)) * (500 - size), size]).round(2)
