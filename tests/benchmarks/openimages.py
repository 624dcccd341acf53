"""Reading 15.9 million generated box rows of Open Images, against pandas.read_csv + groupby on the same file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from curation.storage import replacing

ROWS = 15_900_000
IMAGES = 1_743_042
CLASSES = 601
REPEATS = 3
_ROOT = Path(__file__).parents[2]
_AT_ONCE = 1_000_000
_COLUMNS = (
    *("ImageID", "Source", "LabelName", "Confidence", "XMin", "XMax", "YMin", "YMax"),
    *("IsOccluded", "IsTruncated", "IsGroupOf", "IsDepiction", "IsInside"),
)


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, value, unit, what is required, and whether it is met.

    Each piece of work is a process of its own, so that its peak memory is its own. They take turns, and the best of
    some is taken: other work on the machine only ever adds to a time.
    """
    boxes_file(out)
    found = _best(
        {"read": _READ, "digest": _DIGEST, "pandas": _PANDAS, "masks": _MASKS, "cached": _CACHED}, out
    )
    seconds = {name: one[0] for name, one in found.items()}
    assert found["read"][2] == found["pandas"][2] == IMAGES
    return [
        _row(f"read {ROWS:,} rows, digest of the file included", seconds["read"], "s"),
        _row("peak memory of it", found["read"][1], "GiB", most=2),
        _row("the digest alone (SHA-256, one core)", seconds["digest"], "s"),
        _row("pandas.read_csv + groupby(ImageID), no digest", seconds["pandas"], "s"),
        _row("peak memory of it", found["pandas"][1], "GiB"),
        _row("pandas / first reading", seconds["pandas"] / seconds["read"], "ratio", least=3),
        _row("read again, from the cache", seconds["cached"], "s"),
        _row("peak memory of it", found["cached"][1], "GiB", most=2),
        _row("pandas / reading again", seconds["pandas"] / seconds["cached"], "ratio", least=3),
        _row("selection for four rotations, rows read", seconds["masks"], "s"),
    ]


def boxes_file(folder: Path) -> Path:
    """Return a generated ``train-annotations-bbox.csv`` with its class descriptions, written on first use."""
    root = folder / "openimages"
    path = root / "train-annotations-bbox.csv"
    if not path.exists():
        with replacing(root / "class-descriptions-boxable.csv") as partial:
            partial.write_text("".join(f"{_label(one)},Class {one}\n" for one in range(CLASSES)))
        with replacing(path) as partial:
            _write(partial)
    return path


def _label(number: int) -> str:
    return f"/m/0{number:04x}"


def _write(path: Path) -> None:
    import pyarrow
    from pyarrow import csv

    from curation.sources.hex_ids import hex_texts

    generator = np.random.default_rng(6)
    keys = np.unique(generator.integers(0, 2**64, IMAGES, dtype=np.uint64, endpoint=False))
    assert len(keys) == IMAGES
    extra = generator.integers(0, IMAGES, ROWS - IMAGES)
    image = np.sort(np.concatenate([np.arange(IMAGES), extra]))
    natives = pyarrow.array(hex_texts(keys))
    shares = pyarrow.array([f"{one / 1_000_000:.6f}" for one in range(1_000_001)])
    labels = pyarrow.array([_label(one) for one in range(CLASSES)])
    origins = pyarrow.array(["xclick", "activemil"])
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    with path.open("wb") as stream:
        stream.write(f"{','.join(_COLUMNS)}\n".encode())
        for start in range(0, ROWS, _AT_ONCE):
            rows = image[start : start + _AT_ONCE]
            n = len(rows)
            corners = np.sort(generator.integers(0, 1_000_001, (2, n, 2)), axis=2)
            # A few classes have most of the boxes, as in the real file.
            skewed = (CLASSES * generator.random(n) ** 3).astype(np.int64)
            columns = [natives.take(rows), origins.take((generator.random(n) < 0.1).astype(np.int64))]
            columns += [labels.take(skewed), pyarrow.array(np.ones(n, np.int8))]
            columns += [shares.take(values) for axis in corners for values in axis.T]
            columns += [pyarrow.array((generator.random(n) < 0.1).astype(np.int8)) for _ in range(5)]
            csv.write_csv(pyarrow.table(columns, list(_COLUMNS)), stream, options)


_READ = """
from curation.sources.openimages import read_openimages
start = time.perf_counter()
source = read_openimages(folder / "openimages", "train")
seconds, count = time.perf_counter() - start, len(source.images)
"""
_PANDAS = """
import pandas
start = time.perf_counter()
frame = pandas.read_csv(folder / "openimages" / "train-annotations-bbox.csv")
groups = frame.groupby("ImageID").size()
seconds, count = time.perf_counter() - start, len(groups)
"""
_DIGEST = """
import hashlib
start = time.perf_counter()
with open(folder / "openimages" / "train-annotations-bbox.csv", "rb") as stream:
    hashlib.file_digest(stream, "sha256")
seconds, count = time.perf_counter() - start, 1
"""
_MASKS = """
from curation.sources.openimages import read_openimages
from curation.sources.presence_masks import presence_masks
source = read_openimages(folder / "openimages", "train")
quarters = [range(24 * number, 24 * number + 24) for number in range(4)]
start = time.perf_counter()
masks = presence_masks(source, quarters)
chosen = [((masks & numpy.uint64(1 << q)) != 0).sum() for q in range(4)] + [(masks != 0).sum()]
seconds, count = time.perf_counter() - start, len(masks)
"""
_CACHED = """
from curation.sources.opening import open_source
where = {"dataset": "openimages", "part": "train", "cache": folder / "cache"}
# The first opening writes the cache where an earlier run did not; a process of its own keeps its memory out.
code = "import sys; from pathlib import Path; from curation.sources.opening import open_source as o; "
code += "o(Path(sys.argv[1]) / 'openimages', dataset='openimages', part='train', cache=Path(sys.argv[1]) / 'cache')"
subprocess.run([sys.executable, "-c", code, str(folder)], check=True)
start = time.perf_counter()
source = open_source(folder / "openimages", **where)
seconds, count = time.perf_counter() - start, len(source.images)
"""
_BEFORE = (
    "import resource, subprocess, sys, time, numpy; from pathlib import Path; folder = Path(sys.argv[1])\n"
)
# Linux counts in KiB, macOS in bytes.
_AFTER = """
unit = 2**30 if sys.platform == "darwin" else 2**20
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, count)
"""


def _best(codes: dict[str, str], folder: Path) -> dict[str, tuple[float, float, int]]:
    """Return least seconds, most memory in GiB, and the count, of some processes for each piece of code."""
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    found: dict[str, list[list[str]]] = {name: [] for name in codes}
    for _ in range(REPEATS):
        for name, code in codes.items():
            command = [sys.executable, "-c", _BEFORE + code + _AFTER, str(folder)]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
            found[name].append(done.stdout.split())
    return {
        name: (min(float(one[0]) for one in all_), max(float(one[1]) for one in all_), int(all_[0][2]))
        for name, all_ in found.items()
    }


def _row(
    what: str, value: float, unit: str, *, most: float | None = None, least: float | None = None
) -> dict[str, Any]:
    required = f"at most {most:g}" if most is not None else f"at least {least:g}" if least is not None else ""
    met = None if not required else bool(value <= most if most is not None else value >= (least or 0))
    return {
        "what": what,
        "value": round(value, 6),
        "unit": unit,
        "required": required,
        "met": met,
        "note": "",
    }
