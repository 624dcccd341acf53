"""Speed of the OWOD metrics of one task at full size, against a plainly written VOC evaluator on the same input.

4,952 images, 80 classes of which 40 are known, 500,000 detections. The peer is written as such evaluators usually are:
a dict of objects by image for each class, a loop over the detections by falling score, NumPy for the overlaps of one
detection. It computes less: area AP, TP and FP, and which detections lie on an unknown object.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from curation.benchmarks.registry import variants_of
from curation.evaluation.measures import Measured
from curation.evaluation.open_world import evaluate_task
from curation.evaluation.problem import UNKNOWN, ClassRoles, Detections, GroundTruth
from curation.evaluation.truth import Part, TaskTruth
from tests.benchmarks.measured import measured

IMAGES, CLASSES, KNOWN, OBJECTS, DETECTIONS = 4_952, 80, 40, 36_781, 500_000
REPEATS = 3
PROFILES = {one.name: one for one in variants_of("owod")}


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement; `out` is not used, the input is drawn in memory."""
    truth, detections = _drawn()
    ours = {
        name: _best(lambda name=name: evaluate_task(truth, detections, (PROFILES[name],))) for name in ("clean", "ore")
    }
    everything = _best(lambda: evaluate_task(truth, detections, tuple(PROFILES.values())))
    peer, plain = _timed(lambda: _plain_evaluator(truth.truth, detections))
    section = evaluate_task(truth, detections)["clean"]
    _check(section, plain)
    note = f"{DETECTIONS:,} detections, {IMAGES:,} images, {KNOWN} known classes and unknown, from arrays"
    rows = [measured(f"profile {name}", seconds, note=note) for name, seconds in ours.items()]
    rows += [
        measured("all three profiles", everything, note=note),
        measured("plain evaluator: AP, TP, FP, A-OSE", peer, note=note),
    ]
    rows += [measured(f"plain evaluator / profile {name}", peer / s, note=note, least=10.0) for name, s in ours.items()]
    return [*rows, measured("plain evaluator / all three profiles", peer / everything, note=note)]


def _plain_evaluator(truth: GroundTruth, detections: Detections) -> dict[str, dict[str, float]]:
    """Return AP, TP, FP and detections on unknown objects by class: loops over classes, images and detections."""
    unknown = len(truth.classes) - 1
    objects: list[dict[int, list[Any]]] = [{} for _ in truth.classes]
    for label, image, box in zip(truth.label.tolist(), truth.image.tolist(), truth.boxes.tolist(), strict=True):
        objects[label].setdefault(image, []).append(box)
    found = {}
    for label, name in enumerate(truth.classes):
        records = {
            image: {"boxes": np.array(boxes), "taken": [False] * len(boxes)} for image, boxes in objects[label].items()
        }
        unknowns = {image: np.array(boxes) for image, boxes in objects[unknown].items()}
        rows = np.flatnonzero(detections.label == label)
        rows = rows[np.argsort(-detections.scores[rows], kind="stable")]
        tp, on_unknown = np.zeros(len(rows)), 0
        for place, row in enumerate(rows):
            box, image = detections.boxes[row], int(detections.image[row])
            if image in records:
                overlap = _overlaps(box, records[image]["boxes"])
                for best in np.argsort(-overlap, kind="stable"):
                    if overlap[best] < 0.5:
                        break
                    if not records[image]["taken"][best]:
                        records[image]["taken"][best] = True
                        tp[place] = 1
                        break
            if label != unknown and image in unknowns:
                on_unknown += bool(_overlaps(box, unknowns[image]).max() >= 0.5)
        n = sum(map(len, objects[label].values()))
        found[name] = {"AP": _area(tp, n), "tp": float(tp.sum()), "on_unknown": float(on_unknown)}
    return found


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


def _check(measured_: Measured, plain: dict[str, dict[str, float]]) -> None:
    """Raise unless both computed the same: a ratio of two different things would mean nothing."""
    table = measured_.tables["classes"]
    for row in (dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)):
        theirs = plain[row["class"]]
        same = row["tp"] == theirs["tp"] and abs(row["AP"] - 100 * theirs["AP"]) < 1e-6
        if not same or (row["on_unknown"] or 0) != theirs["on_unknown"]:
            raise AssertionError(f"the two evaluators disagree on {row['class']}: {row} and {theirs}")


def _drawn() -> tuple[TaskTruth, Detections]:
    """Return objects and detections that look like a detector's: some near objects, many low-scored anywhere."""
    rng = np.random.default_rng(3)
    image = np.sort(rng.integers(0, IMAGES, OBJECTS))
    label = np.minimum(rng.integers(0, CLASSES, OBJECTS), KNOWN)
    boxes = _boxes(rng, OBJECTS)
    classes = tuple(f"class {k:02d}" for k in range(KNOWN))
    truth = GroundTruth(
        image_numbers=np.arange(1, IMAGES + 1),
        classes=(*classes, UNKNOWN),
        class_numbers=tuple(range(KNOWN + 1)),
        image=image.astype(np.int32),
        label=label.astype(np.int32),
        boxes=boxes,
        crowd=np.zeros(OBJECTS, bool),
        difficult=np.zeros(OBJECTS, bool),
        areas=boxes[:, 2] * boxes[:, 3],
        original=tuple(f"kind {k}" for k in rng.integers(0, CLASSES - KNOWN, OBJECTS).tolist()),
        image_stems=tuple(f"{k:012d}" for k in range(1, IMAGES + 1)),
    )
    near = rng.integers(0, OBJECTS, DETECTIONS // 4)
    right = rng.random(len(near)) < 0.6
    guessed = np.where(right, label[near], rng.integers(0, KNOWN + 1, len(near)))
    far = DETECTIONS - len(near)
    detections = Detections(
        np.concatenate([image[near], rng.integers(0, IMAGES, far)]).astype(np.int32),
        np.concatenate([guessed, rng.integers(0, KNOWN + 1, far)]).astype(np.int32),
        np.vstack([np.abs(boxes[near] + rng.normal(0, 8, (len(near), 4))) + 1, _boxes(rng, far)]).round(2),
        np.concatenate([rng.beta(4, 2, len(near)), rng.beta(1, 12, far)]).round(5),
    )
    task = ClassRoles("bench", classes[: KNOWN // 2], classes[KNOWN // 2 :], None, "drawn")
    part = Part(truth, (), {}, IMAGES)
    once = np.ones(IMAGES, np.int64)
    return TaskTruth(task, part, once, np.zeros(IMAGES, bool), "error", 0), detections


def _boxes(rng: np.random.Generator, n: int) -> Any:
    size = rng.uniform(20, 240, (n, 2))
    return np.hstack([rng.uniform(0, 1, (n, 2)) * (500 - size), size]).round(2)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _best(work: Callable[[], Any]) -> float:
    return min(_timed(work)[0] for _ in range(REPEATS))
