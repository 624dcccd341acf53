"""Leak check of a generated corpus of 100,000 images that holds planted copies: recall, precision, time and memory.

The images have the spectrum of photos (`tests.leaks.leak_world.picture`). The corpus is written as tar shards of 1,000
images, about 6 kB each, and removed at the end.
"""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from PIL import Image

from curation.leaks.run import ALTERATIONS, wilson
from tests.benchmarks.measured import measured
from tests.benchmarks.own_process import spent_by
from tests.leaks.leak_world import jpeg, picture, write_benchmark, write_tar

BENCHMARK, EACH, CORPUS, SHARD = 2_000, 400, 100_000, 1_000
_CHECK = """
import json
from curation.leaks.run import leaks
began = clocks()
shards = sorted((folder / "shards").glob("*.tar"))[:{shards}]
found = leaks(folder / "manifest", corpus=shards, photos=folder / "photos", plant={plant}, workers=1)
spent = clocks() - began
(folder / "found.json").write_text(json.dumps({{
    "pairs": [(one.benchmark, one.corpus, one.kind) for one in found.evidence], **found.json_data()}}))
count = found.data["corpus"]["images"]
"""


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, value, unit, what is required, whether it is met."""
    folder = out / "leaks"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _write(folder)
        tenth = spent_by(_CHECK.format(shards=CORPUS // SHARD // 10, plant=EACH), folder)
        whole = spent_by(_CHECK.format(shards=CORPUS // SHARD, plant=EACH), folder)
        found = json.loads((folder / "found.json").read_text())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    each = (whole.cores - tenth.cores) / (whole.count - tenth.count) * 1000
    note = f"{BENCHMARK:,} benchmark images, {whole.count:,} of the corpus, 96 x 96, one process"
    return [
        *_recall(found["pairs"]),
        *_precision(found),
        measured("an image of the corpus", each, "ms", f"{note}; processor time"),
        measured("all", whole.seconds, "s", note),
        measured("memory, 100,000 / 10,000 images", whole.gib / tenth.gib, "", f"{whole.gib:.2f} GiB", most=1.2),
    ]


def _write(folder: Path) -> None:
    """Write the benchmark, and the shards: altered copies of the first images lie scattered among unrelated ones."""
    _, photos = write_benchmark(folder, BENCHMARK)
    (folder / "shards").mkdir()
    copies: dict[int, tuple[str, bytes]] = {}
    for number, (name, data) in enumerate(photos.items()):
        if number < EACH * len(ALTERATIONS):
            how = [*ALTERATIONS][number % len(ALTERATIONS)]
            # 7 has no divisor in common with the corpus: every copy has a place of its own.
            place = 7 * 61 * number % CORPUS
            altered = ALTERATIONS[how](Image.open(io.BytesIO(data)).convert("RGB"), name)
            copies[place] = f"{how}-{name[5:]}.jpg", altered
    for shard in range(CORPUS // SHARD):
        numbers = range(shard * SHARD, (shard + 1) * SHARD)
        members = (copies.get(one) or (f"other-{one}.jpg", jpeg(picture(1_000_000 + one))) for one in numbers)
        write_tar(folder / "shards" / f"{shard:05d}.tar", members)


def _told(corpus: str) -> tuple[str, str]:
    """Return what was done to a corpus image, and the benchmark image that it is a copy of."""
    how, _, native = corpus.rpartition("/")[2].removesuffix(".jpg").rpartition("-")
    return how, f"coco:{native}"


def _recall(pairs: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    right = {corpus for benchmark, corpus, _ in pairs if _told(corpus)[1] == benchmark}
    counts = Counter(_told(corpus)[0] for corpus in right)
    rows = []
    for how in ALTERATIONS:
        low, high = wilson(counts[how], EACH)
        note = f"{counts[how]} of {EACH}, {low:.2%} to {high:.2%}"
        rows.append(measured(f"recall, {how}", counts[how] / EACH, "share", note, least=0.99))
    return rows


def _precision(found: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for kind in ("perceptual", "mirrored"):
        pairs = [(benchmark, corpus) for benchmark, corpus, one in found["pairs"] if one == kind]
        right = sum(_told(corpus)[1] == benchmark for benchmark, corpus in pairs)
        low, high = wilson(right, len(pairs))
        note = f"{right} of {len(pairs)} pairs, {low:.2%} to {high:.2%}"
        rows.append(measured(f"precision, {kind}", right / len(pairs), "share", note, least=0.99))
    planted = found["planted"]["alterations"]
    told = ", ".join(f"{how} {one['low']:.2%} to {one['high']:.2%}" for how, one in planted.items())
    estimates = measured(
        "recall as the report estimates it, lowest", min(one["recall"] for one in planted.values()), "share"
    )
    return [*rows, estimates | {"note": told}]
