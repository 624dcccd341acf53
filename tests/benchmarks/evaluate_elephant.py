"""Speed of the Elephant evaluation at full size, against faster-coco-eval and pycocotools on the same detections.

4,952 closed and 23,008 wilderness images, 20 classes, above a million detections, 47 levels, three recalls. The files
are generated: objects and scores are drawn to look like a detector's (many low scores, boxes near objects, false
positives anywhere). Each ratio compares like with like in one process: arrays or records that are loaded already
against the same, and files against files.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from curation.benchmarks.elephant.evaluation import evaluate_elephant
from curation.evaluation.curves import average_precision_by_level
from curation.evaluation.matching import thresholds
from curation.evaluation.open_set import wilderness_impact, wilderness_levels
from curation.evaluation.problem import Detections, GroundTruth, Scene, classes_of_source
from curation.evaluation.readers import read_coco_results
from curation.evaluation.truth import ground_truth
from curation.sources.coco import read_coco
from curation.storage import write_bytes
from tests.benchmarks.measured import measured
from tests.evaluation.worlds import match

CLOSED, WILDERNESS, CLASSES = 4_952, 23_008, 20
OBJECTS_PER_IMAGE = {"closed": 3, "wilderness": 7}
DETECTIONS_PER_IMAGE = {"closed": 44, "wilderness": 36}
FIRST_NUMBER = {"closed": 1, "wilderness": 100_000}
MEASURED_LEVELS = (0, 23, 46)
REPEATS = 3


@dataclass(frozen=True)
class Files:
    """The generated files of one part."""

    truth: Path
    results: Path


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, seconds or ratio, what is required, and whether it is met."""
    files = {part: _files(out, part) for part in ("closed", "wilderness")}
    from_files, columns = _timed(lambda: _read(files))
    profile = _best(lambda: _profile(*columns))
    whole = _best(lambda: evaluate_elephant(Scene(*columns)))
    truth, results = _records(files)
    theirs, theirs_at_half, loading = _faster(out, truth, results)
    by_level = _pycocotools(truth, results)
    fitted = np.polynomial.Polynomial.fit(list(by_level), list(by_level.values()), 1)
    all_levels = float(sum(fitted(level) for level in range(47)))
    n = len(columns[1]) + len(columns[3])
    note = (
        f"{len(by_level)} of 47 levels measured ({', '.join(f'{k}: {s:.1f} s' for k, s in by_level.items())}), "
        "a line through them summed over all levels; IoU 0.5 and one area range only, records loaded and indexed"
    )
    return [
        measured(f"variant paper from arrays, {n} detections, 47 levels, 3 recalls", profile),
        measured("every variant and table from arrays", whole),
        measured("variant paper from files", from_files + profile),
        measured("faster-coco-eval AP, records loaded", theirs),
        measured("faster-coco-eval AP at IoU 0.5 and one area range only, records loaded", theirs_at_half),
        measured("faster-coco-eval AP from files", loading + theirs),
        measured("pycocotools, level by level", all_levels, note=note),
        measured("variant paper / faster-coco-eval, loaded", profile / theirs, most=1.0),
        measured("variant paper / faster-coco-eval at IoU 0.5 only, loaded", profile / theirs_at_half, most=1.0),
        measured("every variant and table / faster-coco-eval, loaded", whole / theirs, most=1.0),
        measured("variant paper / faster-coco-eval, from files", (from_files + profile) / (loading + theirs), most=1.0),
        measured("pycocotools level by level / variant paper", all_levels / profile, least=20.0, note=note),
    ]


def _read(files: dict[str, Files]) -> tuple[GroundTruth, Detections, GroundTruth, Detections]:
    source = read_coco(files["closed"].truth)
    known = classes_of_source(source)
    closed = ground_truth(source, known).truth
    wild = ground_truth(read_coco(files["wilderness"].truth), known).truth
    inside = read_coco_results(files["closed"].results, closed).detections
    return closed, inside, wild, read_coco_results(files["wilderness"].results, wild).detections


def _profile(closed: GroundTruth, inside: Detections, wild: GroundTruth, outside: Detections) -> dict[str, Any]:
    matches = match(closed, inside)
    points = thresholds(matches, inside)
    levels = wilderness_levels(closed.n_images, wild.n_images)
    return {
        **average_precision_by_level(closed.classes, inside, matches, outside, levels),
        **wilderness_impact(closed.classes, matches, points, outside, levels),
    }


def _faster(out: Path, truth: dict[str, Any], results: list[dict[str, Any]]) -> tuple[float, float, float]:
    """Return seconds of faster-coco-eval's AP, default and at IoU 0.5 alone, from loaded records; and of loading."""
    from faster_coco_eval import COCO, COCOeval_faster

    truth_file, results_file = out / "merged_truth.json", out / "merged_results.json"
    write_bytes(truth_file, json.dumps(truth).encode())
    write_bytes(results_file, json.dumps(results).encode())

    def load() -> tuple[Any, Any]:
        annotated = COCO(str(truth_file))
        return annotated, annotated.loadRes(str(results_file))

    def evaluate(*, only_half: bool) -> None:
        evaluation = COCOeval_faster(annotated, detected, "bbox")
        if only_half:
            _only_half(evaluation)
        evaluation.evaluate()
        evaluation.accumulate()

    with contextlib.redirect_stdout(io.StringIO()):
        loading, (annotated, detected) = _timed(load)
        default = _timed(lambda: evaluate(only_half=False))[0]
        return default, _timed(lambda: evaluate(only_half=True))[0], loading


def _only_half(evaluation: Any) -> None:
    evaluation.params.iouThrs = np.array([0.5])
    evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]


def _pycocotools(truth: dict[str, Any], results: list[dict[str, Any]]) -> dict[int, float]:
    """Return seconds of one AP evaluation at a few levels, closed images and the first n_k wilderness images."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    sizes = wilderness_levels(CLOSED, WILDERNESS).images
    seconds = {}
    with contextlib.redirect_stdout(io.StringIO()):
        annotated = COCO()
        annotated.dataset = truth
        annotated.createIndex()
        detected = annotated.loadRes(results)
        for level in MEASURED_LEVELS:
            last = FIRST_NUMBER["wilderness"] + int(sizes[level])

            def evaluate(last: int = last) -> None:
                evaluation = COCOeval(annotated, detected, "bbox")
                evaluation.params.imgIds = [image["id"] for image in truth["images"] if image["id"] < last]
                _only_half(evaluation)
                evaluation.evaluate()
                evaluation.accumulate()

            seconds[level] = _timed(evaluate)[0]
    return seconds


def _records(files: dict[str, Files]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return both parts as one COCO data set (image numbers are distinct), known objects only, and all results."""
    parts = [json.loads(one.truth.read_bytes()) for one in files.values()]
    truth = {
        "info": {},
        "images": [image for part in parts for image in part["images"]],
        "annotations": parts[0]["annotations"],
        "categories": [category for category in parts[0]["categories"] if category["id"] > 0],
    }
    return truth, [row for one in files.values() for row in json.loads(one.results.read_bytes())]


def _files(out: Path, part: str) -> Files:
    files = Files(out / f"truth_{part}.json", out / f"results_{part}.json")
    if not (files.truth.exists() and files.results.exists()):
        rng = np.random.default_rng(20)
        n_images = {"closed": CLOSED, "wilderness": WILDERNESS}[part]
        known = part == "closed"
        image = np.sort(rng.integers(0, n_images, n_images * OBJECTS_PER_IMAGE[part]))
        boxes = _boxes(rng, len(image))
        label = rng.integers(1, CLASSES + 1, len(image)) if known else np.full(len(image), -1)
        write_bytes(files.truth, json.dumps(_truth(part, n_images, image, label, boxes)).encode())
        write_bytes(files.results, json.dumps(_results(rng, part, n_images, image, label, boxes)).encode())
    return files


def _boxes(rng: np.random.Generator, n: int) -> Any:
    size = rng.uniform(20, 240, (n, 2))
    return np.hstack([rng.uniform(0, 1, (n, 2)) * (500 - size), size]).round(2)


def _truth(part: str, n_images: int, image: Any, label: Any, boxes: Any) -> dict[str, Any]:
    first = FIRST_NUMBER[part]
    columns = zip(image.tolist(), label.tolist(), boxes.tolist(), strict=True)
    return {
        "images": [
            {"id": first + k, "file_name": f"{first + k:012d}.jpg", "width": 500, "height": 500}
            for k in range(n_images)
        ],
        "annotations": [
            {
                "id": k,
                "image_id": first + i,
                "category_id": c,
                "bbox": box,
                "area": box[2] * box[3],
                "iscrowd": 0,
                "difficult": int(k % 5 == 0),
            }
            for k, (i, c, box) in enumerate(columns, 1)
        ],
        "categories": [
            *({"id": c, "name": f"class {c:02d}"} for c in range(1, CLASSES + 1)),
            {"id": -1, "name": "unknown"},
        ],
    }


def _results(
    rng: np.random.Generator, part: str, n_images: int, image: Any, label: Any, boxes: Any
) -> list[dict[str, Any]]:
    """Return three detections near each object, of falling quality, and the rest anywhere with low scores."""
    near = np.repeat(np.arange(len(image)), 3)
    n_far = n_images * DETECTIONS_PER_IMAGE[part] - len(near)
    moved = boxes[near] + rng.normal(0, 9, (len(near), 4))
    moved[:, 2:] = np.maximum(moved[:, 2:], 1)
    right = rng.random(len(near)) < (0.85 if part == "closed" else 0.0)
    guessed = np.where(right, label[near], rng.integers(1, CLASSES + 1, len(near)))
    strength = (5, 2) if part == "closed" else (2, 4)
    image_id = np.concatenate([image[near], rng.integers(0, n_images, n_far)]) + FIRST_NUMBER[part]
    category = np.concatenate([guessed, rng.integers(1, CLASSES + 1, n_far)])
    scores = np.concatenate([rng.beta(*strength, len(near)), rng.beta(1, 12, n_far)]).round(5)
    all_boxes = np.vstack([moved, _boxes(rng, n_far)]).round(2)
    order = np.argsort(image_id, kind="stable")
    columns = zip(*(column[order].tolist() for column in (image_id, category, all_boxes, scores)), strict=True)
    return [{"image_id": i, "category_id": c, "bbox": box, "score": s} for i, c, box, s in columns]


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _best(work: Callable[[], Any]) -> float:
    return min(_timed(work)[0] for _ in range(REPEATS))
