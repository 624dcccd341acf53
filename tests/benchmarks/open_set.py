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
    from curation.evaluation.readers import read_detections
    from curation.evaluation.truth import ground_truth
    from curation.sources.coco import read_coco
    from tests.evaluation.worlds import match

    with clock:
        sources = {part: read_coco(_paths(folder, part)[0]) for part in PARTS}
        known = classes_of_source(sources["closed"])
        truths = {part: ground_truth(source, known).truth for part, source in sources.items()}
        found = {part: read_detections(_paths(folder, part)[1], truth).detections for part, truth in truths.items()}
        match(truths["closed"], found["closed"])


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
