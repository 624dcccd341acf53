"""Plain COCO AP from two JSON files: ours (with every check) against engines used as their manuals say.

Small is as large as COCO val2017 and a detector's answer to it. One object in a hundred is a crowd.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from curation.core.writing import write_bytes
from tests.benchmarks.own_process import Clock

SIZES = {
    "small": (5_000, 80, 36_781, 144_000),
    "large": (5_000, 80, 36_781, 1_440_000),
    "lvis": (5_000, 1_203, 50_000, 600_000),
}
"""Images, classes, objects, detections."""


def ours(folder: Path, clock: Clock, size: str) -> list[float]:
    """Return the twelve numbers."""
    from curation.evaluation.problem import classes_of_source
    from curation.evaluation.readers import read_detections
    from curation.evaluation.truth import ground_truth
    from curation.extensions.detection_ap.coco_summary import STATISTICS, coco_average_precision
    from curation.sources.coco import read_coco

    for engine in ("hotcoco", "ultrafast_pycocotools"):
        with contextlib.suppress(ImportError):
            __import__(engine)
    truth, results = _paths(folder, size)
    with clock:
        source = read_coco(truth)
        part = ground_truth(source, classes_of_source(source)).truth
        found = coco_average_precision(part, read_detections(results, part).detections)
    return [found[name] for name in STATISTICS]


def hotcoco(folder: Path, clock: Clock, size: str) -> list[float]:
    """Return the twelve numbers."""
    from hotcoco import COCO, COCOeval

    truth, results = _paths(folder, size)
    with clock, contextlib.redirect_stdout(io.StringIO()):
        annotated = COCO(str(truth))
        evaluation = COCOeval(annotated, annotated.load_res(str(results)), "bbox")
        evaluation.run()
    return [float(number) for number in evaluation.stats[:12]]


def ultrafast(folder: Path, clock: Clock, size: str) -> list[float]:
    """Return the twelve numbers."""
    from ultrafast_pycocotools.coco import COCO
    from ultrafast_pycocotools.cocoeval import COCOeval

    truth, results = _paths(folder, size)
    with clock, contextlib.redirect_stdout(io.StringIO()):
        annotated = COCO(str(truth))
        evaluation = COCOeval(annotated, annotated.loadRes(str(results)), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [float(number) for number in evaluation.stats[:12]]


def read_detections(folder: Path, clock: Clock) -> int:
    """Return how many detections of the large file our reader takes, every check included."""
    from curation.evaluation.problem import classes_of_source
    from curation.evaluation.readers import read_detections
    from curation.evaluation.truth import ground_truth
    from curation.sources.coco import read_coco

    truth, results = _paths(folder, "large")
    source = read_coco(truth)
    part = ground_truth(source, classes_of_source(source)).truth
    with clock:
        found = read_detections(results, part).detections
    return len(found)


def loaded_by_hotcoco(folder: Path, clock: Clock) -> None:
    """Load the same detections with hotcoco."""
    from hotcoco import COCO

    truth, results = _paths(folder, "large")
    annotated = COCO(str(truth))
    with clock:
        annotated.load_res(str(results))


def loaded_by_ultrafast(folder: Path, clock: Clock) -> None:
    """Load the same detections with ultrafast-pycocotools."""
    from ultrafast_pycocotools.coco import COCO

    truth, results = _paths(folder, "large")
    with contextlib.redirect_stdout(io.StringIO()):
        annotated = COCO(str(truth))
        with clock:
            annotated.loadRes(str(results))


def draw(folder: Path, clock: Clock, size: str) -> None:
    """Write annotations, and results: some detections near each object, of falling quality, the rest anywhere."""
    truth, results = _paths(folder, size)
    if truth.exists() and results.exists():
        return
    images, classes, objects, detections = SIZES[size]
    rng = np.random.default_rng(17)
    image = np.sort(rng.integers(1, images + 1, objects))
    # Some classes are frequent: as in COCO, where a person is on every second image.
    label = 1 + (classes * rng.random(objects) ** 2.5).astype(np.int64)
    boxes = _boxes(rng, objects)
    columns = zip(image.tolist(), label.tolist(), boxes.tolist(), (rng.random(objects) < 0.01).tolist(), strict=True)
    names = ("id", "image_id", "category_id", "bbox", "area", "iscrowd")
    # A mask has some of its box.
    rows = ((n, i, c, box, 0.7 * box[2] * box[3], int(crowd)) for n, (i, c, box, crowd) in enumerate(columns, 1))
    content = {
        "images": [{"id": n, "file_name": f"{n:012d}.jpg", "width": 640, "height": 640} for n in range(1, images + 1)],
        "annotations": [dict(zip(names, row, strict=True)) for row in rows],
        "categories": [{"id": number, "name": f"class {number:04d}"} for number in range(1, classes + 1)],
    }
    write_bytes(truth, json.dumps(content).encode())
    near = np.repeat(np.arange(objects), 2)
    moved = boxes[near] + rng.normal(0, 0.08, (len(near), 4)) * boxes[near][:, [2, 3, 2, 3]]
    moved[:, 2:] = np.maximum(moved[:, 2:], 1)
    guessed = np.where(rng.random(len(near)) < 0.85, label[near], rng.integers(1, classes + 1, len(near)))
    far = detections - len(near)
    found = (
        np.concatenate([image[near], rng.integers(1, images + 1, far)]),
        np.concatenate([guessed, rng.integers(1, classes + 1, far)]),
        np.vstack([moved, _boxes(rng, far)]).round(2),
        np.concatenate([rng.beta(5, 2, len(near)), rng.beta(1, 12, far)]).round(5),
    )
    write_results(results, found)


def write_results(path: Path, columns: tuple[Any, Any, Any, Any]) -> None:
    """Write image ids, category ids, boxes and scores as COCO results, by image."""
    order = np.argsort(columns[0], kind="stable")
    names = ("image_id", "category_id", "bbox", "score")
    rows = zip(*(column[order].tolist() for column in columns), strict=True)
    write_bytes(path, json.dumps([dict(zip(names, row, strict=True)) for row in rows]).encode())


def _paths(folder: Path, size: str) -> tuple[Path, Path]:
    return folder / "coco" / f"{size}_truth.json", folder / "coco" / f"{size}_results.json"


def _boxes(rng: np.random.Generator, n: int) -> Any:
    size = np.exp(rng.uniform(np.log(8), np.log(450), (n, 2)))
    return np.hstack([rng.uniform(0, 1, (n, 2)) * (640 - size), size]).round(2)
