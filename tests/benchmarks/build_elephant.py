"""Speed and memory of building the Elephant manifest from a COCO file and a VOC folder of the real size.

Every measurement runs in a fresh process, which reports the seconds between its imports and its result, and the peak of
its memory. They take turns, and the median counts, since a shared machine is never quiet for long.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.large_files import KNOWN, coco_file, voc_folder
from tests.benchmarks.measured import Parts, measured
from tests.benchmarks.own_process import peak_gib

REPEATS = 5
_ROOT = Path(__file__).parents[2]


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, seconds, MiB or ratio, what is required, and whether it is met."""
    coco_file(out)
    voc_folder(out)
    runs: dict[str, list[dict[str, float]]] = {}
    for turn in range(REPEATS):
        shutil.rmtree(out / "build-cache", ignore_errors=True)
        for what in ("decode", "first", "cached", "parts"):
            runs.setdefault(what, []).append(_measure(what, out))
        # Twenty seconds each: the first and the last turn have to do.
        if turn in (0, REPEATS - 1):
            runs.setdefault("pycocotools", []).append(_measure("pycocotools", out))
    parts = runs.pop("parts")
    seconds = {what: statistics.median(one["seconds"] for one in many) for what, many in runs.items()}
    peak = {what: max(one["peak_mib"] for one in many) for what, many in runs.items()}
    ratios = [one["seconds"] / alone["seconds"] for one, alone in zip(runs["first"], runs["decode"], strict=True)]
    spread = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
    size = coco_file(out).stat().st_size
    return [
        measured(f"typed decode alone, {size / 1e6:.0f} MB", seconds["decode"], "s"),
        measured("first build from COCO JSON and VOC XML", seconds["first"], "s"),
        measured("second build, cached", seconds["cached"], "s"),
        measured("pycocotools COCO() and getImgIds of 20 classes", seconds["pycocotools"], "s"),
        measured("typed decode alone, peak memory", peak["decode"], "MiB"),
        measured("first build, peak memory", peak["first"], "MiB", most=1536),
        measured("second build, peak memory", peak["cached"], "MiB"),
        measured("pycocotools, peak memory", peak["pycocotools"], "MiB"),
        measured(
            "first build / typed decode", statistics.median(ratios), "ratio", most=1.5, note=f"each round: {spread}"
        ),
        *(measured(f"core-seconds: {name}", statistics.median(one[name] for one in parts), "s") for name in parts[0]),
        measured("pycocotools / first build", seconds["pycocotools"] / seconds["first"], "ratio", least=5),
        measured("first build / second build", seconds["first"] / seconds["cached"], "ratio", least=10),
    ]


def _measure(what: str, out: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.build_elephant", what, str(out)],
        check=True,
        capture_output=True,
        text=True,
        cwd=_ROOT,
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
    )
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def decode(out: Path) -> float:
    """Return the seconds of reading the file and decoding its records with msgspec, masks skipped, and no more."""
    import msgspec

    # Declared here, so that the yardstick stays what it is when the reader changes.
    image = msgspec.defstruct("image", [("id", int), ("file_name", str), ("width", int), ("height", int)], gc=False)
    box = tuple[float, float, float, float]
    fields = [("id", int), ("image_id", int), ("category_id", int), ("bbox", box), ("area", float), ("iscrowd", int)]
    annotation = msgspec.defstruct("annotation", fields, gc=False)
    category = msgspec.defstruct("category", [("id", int), ("name", str), ("supercategory", str)], gc=False)
    lists = [("images", list[image]), ("annotations", list[annotation]), ("categories", list[category])]  # type: ignore[valid-type]
    whole = msgspec.defstruct("whole", lists, gc=False)
    start = time.perf_counter()
    content: Any = msgspec.json.decode(coco_file(out).read_bytes(), type=whole)
    seconds = time.perf_counter() - start
    assert len(content.annotations) == 860_001
    return seconds


def build(out: Path) -> float:
    """Return the seconds from files to a written manifest."""
    from curation.benchmarks.registry import find_benchmark
    from curation.manifest.manifest import write_manifest
    from curation.sources.opening import open_source

    shutil.rmtree(out / "build-manifest", ignore_errors=True)
    coco_path, voc_path = coco_file(out), voc_folder(out)
    start = time.perf_counter()
    voc = open_source(voc_path, dataset="voc2007", part="test", cache=out / "build-cache")
    coco = open_source(coco_path, dataset="coco", part="train2017", cache=out / "build-cache")
    elephant = find_benchmark("elephant")
    parameters = {parameter.name: parameter.read(parameter.default) for parameter in elephant.parameters}
    manifest = elephant.build({"voc2007-test": voc, "coco": coco}, parameters)
    write_manifest(manifest, out / "build-manifest")
    seconds = time.perf_counter() - start
    assert len(manifest.ids("wilderness")) == 23_008
    return seconds


def parts(out: Path) -> dict[str, float]:
    """Return the core-seconds of what a first build is made of, step after step, and of the typed decode beside it.

    What `parse_coco` takes besides decoding and columns are its checks; the digest is taken beside it in a first build.
    """
    from curation.benchmarks.registry import find_benchmark
    from curation.manifest.manifest import write_manifest
    from curation.sources import coco
    from curation.sources.content import FileContent
    from curation.sources.opening import open_source

    shutil.rmtree(out / "build-manifest", ignore_errors=True)
    coco_path, voc_path = coco_file(out), voc_folder(out)
    part = Parts()
    with part("read"):
        data = coco_path.read_bytes()
    with part("digest"):
        hashlib.sha256(data).digest()
    with part("decoded"):
        coco.decode_instances(data, coco_path.name)
    content = FileContent(coco_path)
    assert content.sha256
    with part("parsed"):
        source = coco.parse_coco(content, dataset="coco", part="train2017")
    with part("VOC XML"):
        voc = open_source(voc_path, dataset="voc2007", part="test", cache=None)
    with part("rule"):
        elephant = find_benchmark("elephant")
        given = {parameter.name: parameter.read(parameter.default) for parameter in elephant.parameters}
        manifest = elephant.build({"voc2007-test": voc, "coco": source}, given)
    with part("written"):
        write_manifest(manifest, out / "build-manifest")
    found = part.seconds
    decoded, parsed = found.pop("decoded"), found.pop("parsed")
    return {
        "file read": found["read"],
        "digest (on another core)": found["digest"],
        "annotations decoded": decoded,
        "columns and checks": parsed - decoded,
        "VOC XML": found["VOC XML"],
        "rule": found["rule"],
        "manifest written": found["written"],
    }


def pycocotools(out: Path) -> float:
    """Return the seconds of pycocotools' index and the image lists of the 20 known classes."""
    from pycocotools.coco import COCO

    start = time.perf_counter()
    coco = COCO(str(coco_file(out)))
    known: set[int] = set()
    for number in KNOWN:
        known |= set(coco.getImgIds(catIds=[number]))
    assert len(set(coco.imgs) - known) == 23_008
    return time.perf_counter() - start


MEASURES = {"decode": decode, "first": build, "cached": build, "pycocotools": pycocotools}


def main(what: str, out: str) -> None:
    """Print seconds and peak memory of one measurement as JSON, or the core-seconds of its parts."""
    if what == "parts":
        print(json.dumps(parts(Path(out))))
        return
    seconds = MEASURES[what](Path(out))
    print(json.dumps({"seconds": seconds, "peak_mib": 1024 * peak_gib()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
