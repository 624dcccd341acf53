"""Speed of the four tasks of RE-OWOD, all lists, views and counts, from a COCO file of train2017's size.

The yardstick and the fresh process a measurement are those of `tests.benchmarks.build_elephant`.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from curation.sources.datasets import COCO_CATEGORIES
from curation.storage import write_text
from tests.benchmarks.build_elephant import decode
from tests.benchmarks.large_files import coco_file
from tests.benchmarks.measured import measured

REPEATS = 5
_ROOT = Path(__file__).parents[2]


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, seconds or ratio, what is required, and whether it is met."""
    coco_file(out)
    _val_file(out)
    runs: dict[str, list[float]] = {"decode": [], "first": [], "cached": []}
    for _ in range(REPEATS):
        shutil.rmtree(out / "owod-cache", ignore_errors=True)
        for what, many in runs.items():
            many.append(_measure(what, out))
    ratios = [one / alone for one, alone in zip(runs["first"], runs["decode"], strict=True)]
    spread = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
    seconds = {what: statistics.median(many) for what, many in runs.items()}
    return [
        measured("typed decode alone", seconds["decode"], "s"),
        measured("four tasks from COCO JSON: lists, views, counts, written", seconds["first"], "s"),
        measured("the same from the cache", seconds["cached"], "s", most=2),
        measured("four tasks / typed decode", statistics.median(ratios), "ratio", most=2, note=f"each round: {spread}"),
    ]


def build(out: Path) -> float:
    """Return the seconds from files to a written manifest."""
    from curation.benchmarks.building import read_parameters
    from curation.benchmarks.registry import find_benchmark
    from curation.manifest.manifest import write_manifest
    from curation.sources.opening import open_source

    shutil.rmtree(out / "owod-manifest", ignore_errors=True)
    start = time.perf_counter()
    sources = {
        "coco-train2017": open_source(coco_file(out), dataset="coco", part="train2017", cache=out / "owod-cache"),
        "coco-val2017": open_source(_val_file(out), dataset="coco", part="val2017", cache=out / "owod-cache"),
    }
    benchmark = find_benchmark("owod")
    manifest = benchmark.build(sources, read_parameters(benchmark, {}))
    write_manifest(manifest, out / "owod-manifest")
    seconds = time.perf_counter() - start
    assert len(manifest.header.parts) == 15
    return seconds


def _val_file(out: Path) -> Path:
    """Return a file of val2017's size whose ids lie beyond those of the training file."""
    path = out / "instances_val2017.json"
    if not path.exists():
        images = [
            {"id": 900_000 + k, "file_name": f"{900_000 + k:012d}.jpg", "width": 640, "height": 480}
            for k in range(5_000)
        ]
        annotations = [
            {
                "id": k + 1,
                "image_id": 900_000 + k * 4_952 // 36_781,
                "category_id": COCO_CATEGORIES[k * k % 80][0],
                "bbox": [k % 500, k % 300, 20, 30],
                "area": 600,
                "iscrowd": 0,
            }
            for k in range(36_781)
        ]
        categories = [{"id": number, "name": name, "supercategory": parent} for number, name, parent in COCO_CATEGORIES]
        write_text(path, json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def _measure(what: str, out: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.build_owod", what, str(out)],
        check=True,
        capture_output=True,
        text=True,
        cwd=_ROOT,
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
    )
    return float(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    print({"decode": decode, "first": build, "cached": build}[sys.argv[1]](Path(sys.argv[2])))
