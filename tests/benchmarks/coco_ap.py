"""Plain COCO AP from two JSON files: ours (with every check) against hotcoco used as its manual says.

As large as COCO val2017 and a detector's answer to it: 5,000 images, 80 classes, about 36,800 objects of which one in a
hundred is a crowd, 200,000 detections. The files are generated. Both sides start at the same files and end at the
twelve numbers, which must agree. Each run is a process of its own, modules loaded; they take turns; medians are told,
and the peak of each process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from curation.storage import write_bytes
from tests.benchmarks.measured import measured

IMAGES, CLASSES, OBJECTS, DETECTIONS = 5_000, 80, 36_781, 200_000
REPEATS = 7
_ROOT = Path(__file__).parents[2]

_OURS = """
from curation.evaluation.coco_engine import STATISTICS, coco_average_precision
from curation.evaluation.problem import classes_of_source
from curation.evaluation.readers import read_coco_results
from curation.evaluation.truth import ground_truth
from curation.sources.coco import read_coco
import hotcoco
start = clocks()
source = read_coco(truth)
part = ground_truth(source, classes_of_source(source)).truth
read = clocks()
detections = read_coco_results(results, part).detections
loaded = clocks()
found = coco_average_precision(part, detections, engine="hotcoco")
steps = [read - start, loaded - read, clocks() - loaded]
numbers = [found[name] for name in STATISTICS]
"""
_THEIRS = """
import contextlib, io
from hotcoco import COCO, COCOeval
start = clocks()
annotated = COCO(str(truth))
read = clocks()
detected = annotated.load_res(str(results))
loaded = clocks()
evaluation = COCOeval(annotated, detected, "bbox")
with contextlib.redirect_stdout(io.StringIO()):
    evaluation.run()
steps = [read - start, loaded - read, clocks() - loaded]
numbers = [float(number) for number in evaluation.stats[:12]]
"""
_PARTS = """
from curation.evaluation import coco_engine
from curation.evaluation.problem import classes_of_source
from curation.evaluation.readers import read_coco_results
from curation.evaluation.result_records import Records
from curation.evaluation.truth import ground_truth
from curation.input_files import InputFile
from curation.sources.coco import decode_instances, read_coco
from tests.benchmarks.measured import Parts
import contextlib, io
from hotcoco import COCO, COCOeval
part, quiet = Parts(), contextlib.redirect_stdout(io.StringIO())
with part("digest of truth"):
    first = InputFile(truth)
    assert first.sha256
with part("digest of found"):
    second = InputFile(results)
    assert second.sha256
with part("truth decoded"): decode_instances(first.data, "truth")
with part("truth read"): source = read_coco(truth)
with part("truth chosen"): known = ground_truth(source, classes_of_source(source)).truth
with part("found decoded"): Records.of_plain(second.data)
with part("found read"): found = read_coco_results(results, known).detections
with part("order"): coco_engine.coco_decided_by_order(known, found)
with part("handed over"): evaluation = coco_engine._in_hotcoco(known, found)
with part("evaluated"), quiet: evaluation.run()
with part("their files"):
    annotated = COCO(str(truth))
    detected = annotated.load_res(str(results))
with part("their evaluation"), quiet: COCOeval(annotated, detected, "bbox").run()
s = part.seconds
names = {
    "truth: decoded": s["truth decoded"],
    "truth: checks, columns, classes": s["truth read"] - s["truth decoded"] - s["digest of truth"] + s["truth chosen"],
    "detections: decoded": s["found decoded"],
    "detections: checks": s["found read"] - s["found decoded"] - s["digest of found"],
    "files read, digests": s["digest of truth"] + s["digest of found"],
    "what input order decides": s["order"],
    "columns handed to hotcoco": s["handed over"],
    "hotcoco's evaluation": s["evaluated"],
    "hotcoco's own reading": s["their files"],
    "hotcoco's own evaluation": s["their evaluation"],
}
print(json.dumps(names))
"""
_BEFORE = """
import json, sys, time, numpy; from pathlib import Path
truth, results = map(Path, sys.argv[1:])
def clocks(): return numpy.array([time.perf_counter(), time.process_time()])
"""
_AFTER = """
from tests.benchmarks.own_process import peak_gib
print(json.dumps([numbers, [step.tolist() for step in steps], 1024 * peak_gib()]))
"""


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, seconds or ratio, what is required, and whether it is met."""
    files = _files(out / "coco_ap")
    steps: dict[str, list[Any]] = {"ours": [], "theirs": []}
    peak = {"ours": 0.0, "theirs": 0.0}
    parts = []
    for _ in range(REPEATS):
        parts.append(json.loads(_printed(_PARTS, files)))
        found = {"ours": _spent(_OURS, files), "theirs": _spent(_THEIRS, files)}
        assert np.allclose(found["ours"][0], found["theirs"][0], rtol=0, atol=1e-12)
        for side, (_, spent, mib) in found.items():
            steps[side].append(spent)
            peak[side] = max(peak[side], mib)
    # Repetition, step, and clock: seconds that pass and seconds of all cores together.
    ours, theirs = (np.array(steps[side]) for side in ("ours", "theirs"))
    ratio = statistics.median((ours.sum(axis=1) / theirs.sum(axis=1))[:, 0].tolist())
    rows = []
    for side, name in ((ours, "ours"), (theirs, "hotcoco")):
        of_steps = np.median(side, axis=0)
        for step, seconds in zip(("annotations", "detections", "evaluation"), of_steps, strict=True):
            rows.append(measured(f"{name}: {step}", seconds[0], "s"))
        rows.append(measured(f"{name}: files to numbers", float(np.median(side.sum(axis=1)[:, 0])), "s"))
        rows.append(measured(f"{name}: all cores", float(np.median(side.sum(axis=1)[:, 1])), "s"))
    rows += [measured(f"core-seconds: {name}", statistics.median(one[name] for one in parts), "s") for name in parts[0]]
    return [
        *rows,
        measured("ours / hotcoco, files to numbers", ratio, "ratio", most=1.1),
        measured("ours, peak memory", peak["ours"], "MiB", most=200),
        measured("hotcoco, peak memory", peak["theirs"], "MiB"),
    ]


def _spent(code: str, files: tuple[Path, Path]) -> tuple[list[float], list[list[float]], float]:
    numbers, steps, mib = json.loads(_printed(code + _AFTER, files))
    return numbers, steps, mib


def _printed(code: str, files: tuple[Path, Path]) -> str:
    command = [sys.executable, "-c", _BEFORE + code, *map(str, files)]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=files[0].parent)
    return done.stdout.splitlines()[-1]


def _files(folder: Path) -> tuple[Path, Path]:
    """Return annotations and results, written on first use."""
    truth, results = folder / "truth.json", folder / "results.json"
    if not (truth.exists() and results.exists()):
        rng = np.random.default_rng(17)
        image = np.sort(rng.integers(1, IMAGES + 1, OBJECTS))
        # Some classes are frequent: as in COCO, where a person is on every second image.
        label = 1 + (CLASSES * rng.random(OBJECTS) ** 2.5).astype(np.int64)
        boxes = _boxes(rng, OBJECTS)
        write_bytes(truth, json.dumps(_truth(rng, image, label, boxes)).encode())
        write_bytes(results, json.dumps(_results(rng, image, label, boxes)).encode())
    return truth, results


def _boxes(rng: np.random.Generator, n: int) -> Any:
    size = np.exp(rng.uniform(np.log(8), np.log(450), (n, 2)))
    return np.hstack([rng.uniform(0, 1, (n, 2)) * (640 - size), size]).round(2)


def _truth(rng: np.random.Generator, image: Any, label: Any, boxes: Any) -> dict[str, Any]:
    crowd = (rng.random(len(image)) < 0.01).astype(int).tolist()
    columns = zip(image.tolist(), label.tolist(), boxes.tolist(), crowd, strict=True)
    annotations = [
        {
            "id": number,
            "image_id": one,
            "category_id": category,
            "bbox": box,
            # A mask has some of its box.
            "area": 0.7 * box[2] * box[3],
            "iscrowd": is_crowd,
        }
        for number, (one, category, box, is_crowd) in enumerate(columns, 1)
    ]
    return {
        "images": [
            {"id": number, "file_name": f"{number:012d}.jpg", "width": 640, "height": 640}
            for number in range(1, IMAGES + 1)
        ],
        "annotations": annotations,
        "categories": [{"id": number, "name": f"class {number:02d}"} for number in range(1, CLASSES + 1)],
    }


def _results(rng: np.random.Generator, image: Any, label: Any, boxes: Any) -> list[dict[str, Any]]:
    """Return two detections near each object, of falling quality, and the rest anywhere with low scores."""
    near = np.repeat(np.arange(len(image)), 2)
    n_far = DETECTIONS - len(near)
    moved = boxes[near] + rng.normal(0, 0.08, (len(near), 4)) * boxes[near][:, [2, 3, 2, 3]]
    moved[:, 2:] = np.maximum(moved[:, 2:], 1)
    guessed = np.where(rng.random(len(near)) < 0.85, label[near], rng.integers(1, CLASSES + 1, len(near)))
    columns = (
        np.concatenate([image[near], rng.integers(1, IMAGES + 1, n_far)]),
        np.concatenate([guessed, rng.integers(1, CLASSES + 1, n_far)]),
        np.vstack([moved, _boxes(rng, n_far)]).round(2),
        np.concatenate([rng.beta(5, 2, len(near)), rng.beta(1, 12, n_far)]).round(5),
    )
    order = np.argsort(columns[0], kind="stable")
    return [
        {"image_id": one, "category_id": category, "bbox": box, "score": score}
        for one, category, box, score in zip(*(column[order].tolist() for column in columns), strict=True)
    ]
