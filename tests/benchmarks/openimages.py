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

    Each reading is a process of its own, so that its peak memory is its own; the best of some is taken, as other work
    on the machine only ever adds to a time.
    """
    boxes_file(out)
    ours, peak, images = _best(_OURS, out)
    groups, _, found = _best(_PANDAS_GROUPS, out)
    assert images == found == IMAGES
    masks, _, _ = _best(_MASKS, out)
    cached, cached_peak, _ = _best(_CACHED, out)
    return [
        _row(f"read {ROWS:,} rows", ours, "s"),
        _row("peak memory of it", peak, "GiB", most=2),
        _row("pandas.read_csv + groupby(ImageID)", groups, "s"),
        _row("pandas / ours", groups / ours, "ratio", least=3),
        _row("selection for four rotations, rows read", masks, "s"),
        _row("read again from the cache", cached, "s"),
        _row("peak memory of that", cached_peak, "GiB", most=2),
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


_OURS = """
from curation.sources.openimages import read_openimages
start = time.perf_counter()
source = read_openimages(folder / "openimages", "train")
seconds, count = time.perf_counter() - start, len(source.images)
"""
_PANDAS_GROUPS = """
import pandas
start = time.perf_counter()
frame = pandas.read_csv(folder / "openimages" / "train-annotations-bbox.csv")
groups = frame.groupby("ImageID").size()
seconds, count = time.perf_counter() - start, len(groups)
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


def _best(code: str, folder: Path) -> tuple[float, float, int]:
    """Return least seconds, most memory in GiB, and the count, of some processes that run a piece of code."""
    command = [sys.executable, "-c", _BEFORE + code + _AFTER, str(folder)]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    found = [
        subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.split()
        for _ in range(REPEATS)
    ]
    return (
        min(float(one[0]) for one in found),
        max(float(one[1]) for one in found),
        int(found[0][2]),
    )


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
