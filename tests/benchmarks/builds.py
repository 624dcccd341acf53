"""Manifests from annotation files of the real size, beside one typed decode of the larger file; commands."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from curation.core.writing import write_text
from curation.sources.datasets import COCO_CATEGORIES
from tests.benchmarks.large_files import coco_file, voc_folder
from tests.benchmarks.own_process import Clock


def draw(folder: Path, clock: Clock) -> None:
    """Write COCO's training and validation annotations and VOC's."""
    coco_file(folder)
    voc_folder(folder)
    path = folder / "instances_val2017.json"
    if path.exists():
        return
    # Ids beyond those of the training file.
    first, images, objects = 900_000, 5_000, 36_781
    numbers = range(first, first + images)
    names = ("id", "image_id", "category_id", "bbox", "area", "iscrowd")
    rows = (
        (k + 1, first + k * images // objects, COCO_CATEGORIES[k * k % 80][0], [k % 500, k % 300, 20, 30], 600, 0)
        for k in range(objects)
    )
    content = {
        "images": [{"id": n, "file_name": f"{n:012d}.jpg", "width": 640, "height": 480} for n in numbers],
        "annotations": [dict(zip(names, row, strict=True)) for row in rows],
        "categories": [{"id": n, "name": name, "supercategory": parent} for n, name, parent in COCO_CATEGORIES],
    }
    write_text(path, json.dumps(content))


def decode(folder: Path, clock: Clock) -> None:
    """Read the training file and decode its records with msgspec, masks skipped, and no more."""
    import msgspec

    # Declared here, so that the yardstick stays what it is when the reader changes.
    image = msgspec.defstruct("image", [("id", int), ("file_name", str), ("width", int), ("height", int)], gc=False)
    box = tuple[float, float, float, float]
    fields = [("id", int), ("image_id", int), ("category_id", int), ("bbox", box), ("area", float), ("iscrowd", int)]
    annotation = msgspec.defstruct("annotation", fields, gc=False)
    category = msgspec.defstruct("category", [("id", int), ("name", str), ("supercategory", str)], gc=False)
    lists = [("images", list[image]), ("annotations", list[annotation]), ("categories", list[category])]  # type: ignore[valid-type]
    whole = msgspec.defstruct("whole", lists, gc=False)
    with clock:
        content: Any = msgspec.json.decode(coco_file(folder).read_bytes(), type=whole)
    assert len(content.annotations) == 860_001


def build(folder: Path, clock: Clock, benchmark: str) -> list[int]:
    """Return how many parts and ids a written manifest has: `elephant` from COCO and VOC, or `owod`'s four tasks."""
    from curation.benchmarks.building import read_parameters
    from curation.benchmarks.registry import find_benchmark
    from curation.manifest.manifest import write_manifest
    from curation.sources.opening import open_path

    train, validation = coco_file(folder), folder / "instances_val2017.json"
    files = {
        "elephant": {"voc2007-test": (voc_folder(folder), "voc2007", "test"), "coco": (train, "coco", "train2017")},
        "owod": {"coco-train2017": (train, "coco", "train2017"), "coco-val2017": (validation, "coco", "val2017")},
    }
    out = folder / f"{benchmark}-manifest"
    shutil.rmtree(out, ignore_errors=True)
    rule = find_benchmark(benchmark)
    with clock:
        sources = {
            name: open_path(path, dataset=dataset, part=part)
            for name, (path, dataset, part) in files[benchmark].items()
        }
        manifest = rule.build(sources, read_parameters(rule, {}))
        write_manifest(manifest, out)
    return [len(manifest.header.parts), sum(len(manifest.ids(part)) for part in manifest.parts)]


def command(folder: Path, clock: Clock, *arguments: str) -> None:
    """Run a command of the package, from the start of Python to its end."""
    with clock:
        subprocess.run([sys.executable, "-m", "curation", *arguments], check=True, stdout=subprocess.DEVNULL)
