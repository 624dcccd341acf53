"""Reading 15.9 million generated box rows of Open Images, against pandas.read_csv + groupby on the same file."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import numpy as np

from curation.storage import replacing
from tests.benchmarks.measured import measured
from tests.benchmarks.own_process import Spent, spent_by

ROWS = 15_900_000
IMAGES = 1_743_042
CLASSES = 601
REPEATS = 5
_AT_ONCE = 1_000_000
_COLUMNS = (
    *("ImageID", "Source", "LabelName", "Confidence", "XMin", "XMax", "YMin", "YMax"),
    *("IsOccluded", "IsTruncated", "IsGroupOf", "IsDepiction", "IsInside"),
)


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, value, unit, what is required, and whether it is met.

    Each piece of work is a process of its own, so that its peak memory is its own. They take turns, and medians are
    told; beside the seconds that pass those of all cores together, to which other work on the machine adds less.

    pandas reads the 13 columns with its default engine and counts the boxes of each image and class, as is asked for
    when images are chosen by their classes; it computes no digest. Ours includes the SHA-256 of the file, which takes
    one core and cannot be divided: where that core alone takes longer than a third of pandas, no reading is 3 times
    faster. So the reading is also told without it.
    """
    size = boxes_file(out).stat().st_size
    codes = {"read": _READ, "undigested": _UNDIGESTED + _READ, "digest": _DIGEST, "cached": _CACHED}
    found = _medians(codes | {"pandas": _PANDAS, "by_image": _BY_IMAGE}, out)
    assert found["read"].count == found["pandas"].count == found["by_image"].count == IMAGES
    return [
        *_seconds("pandas, groupby(ImageID, LabelName)", found["pandas"]),
        *_seconds("pandas, groupby(ImageID)", found["by_image"]),
        *_compared("first reading", found, "read", least=3),
        *_compared("first reading without the digest", found, "undigested", least=3),
        *_compared("digest alone", found, "digest"),
        measured("digest alone: speed", size / 1e6 / found["digest"].seconds, "MB/s", note=_instructions()),
        *_compared("reading from the cache", found, "cached", least=3),
    ]


def _seconds(what: str, spent: Spent, most: float | None = None) -> list[dict[str, Any]]:
    return [
        measured(what, spent.seconds, "s"),
        measured(f"{what}: all cores", spent.cores, "s"),
        measured(f"{what}: peak memory", spent.gib, "GiB", most=most),
    ]


def _compared(what: str, found: dict[str, Spent], name: str, least: float | None = None) -> list[dict[str, Any]]:
    seconds = found[name].seconds
    by_class, by_image = (found[peer].seconds / seconds for peer in ("pandas", "by_image"))
    return [
        *_seconds(what, found[name], most=2),
        measured(f"pandas by image and class / {what}", by_class, "ratio", least=least),
        measured(f"pandas by image / {what}", by_image, "ratio"),
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

    generator = np.random.default_rng(6)
    keys = np.unique(generator.integers(0, 2**64, IMAGES, dtype=np.uint64, endpoint=False))
    assert len(keys) == IMAGES
    extra = generator.integers(0, IMAGES, ROWS - IMAGES)
    image = np.sort(np.concatenate([np.arange(IMAGES), extra]))
    natives = pyarrow.array([f"{key:016x}" for key in keys.tolist()])
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
            by_machine = generator.random(n) < 0.1
            columns = [natives.take(rows), origins.take(by_machine.astype(np.int64))]
            columns += [labels.take(skewed), pyarrow.array(np.ones(n, np.int8))]
            columns += [shares.take(values) for axis in corners for values in axis.T]
            # Nobody set the flags of boxes that a machine made.
            flags = np.where(by_machine, -1, generator.random((5, n)) < 0.1).astype(np.int8)
            columns += [pyarrow.array(flag) for flag in flags]
            csv.write_csv(pyarrow.table(columns, list(_COLUMNS)), stream, options)


_READ = """
from curation.sources.opening import open_source
start = clocks()
source = open_source(folder / "openimages", dataset="openimages", part="train", cache=False)
spent, count = clocks() - start, len(source.images)
"""
_UNDIGESTED = """
from types import SimpleNamespace
from curation.sources.openimages import streamed_csv
nothing = SimpleNamespace(update=lambda data: None, hexdigest=lambda: "0" * 64)
streamed_csv.hashlib = SimpleNamespace(sha256=lambda: nothing)
"""
_PANDAS = """
import pandas
start = clocks()
frame = pandas.read_csv(folder / "openimages" / "train-annotations-bbox.csv")
groups = frame.groupby(["ImageID", "LabelName"]).size()
spent, count = clocks() - start, groups.index.levshape[0]
"""
_BY_IMAGE = """
import pandas
start = clocks()
frame = pandas.read_csv(folder / "openimages" / "train-annotations-bbox.csv")
groups = frame.groupby("ImageID").size()
spent, count = clocks() - start, len(groups)
"""
_DIGEST = """
import hashlib
start = clocks()
with open(folder / "openimages" / "train-annotations-bbox.csv", "rb") as stream:
    hashlib.file_digest(stream, "sha256")
spent, count = clocks() - start, 1
"""
_CACHED = """
from curation.sources.opening import open_source
where = {"dataset": "openimages", "part": "train", "cache": folder / "cache"}
# The first opening writes the cache where an earlier run did not; a process of its own keeps its memory out.
code = "import sys; from pathlib import Path; from curation.sources.opening import open_source as o; "
code += "o(Path(sys.argv[1]) / 'openimages', dataset='openimages', part='train', cache=Path(sys.argv[1]) / 'cache')"
subprocess.run([sys.executable, "-c", code, str(folder)], check=True)
start = clocks()
source = open_source(folder / "openimages", **where)
spent, count = clocks() - start, len(source.images)
"""


def _medians(codes: dict[str, str], folder: Path) -> dict[str, Spent]:
    found: dict[str, list[Spent]] = {name: [] for name in codes}
    for _ in range(REPEATS):
        for name, code in codes.items():
            found[name].append(spent_by(code, folder))
    return {
        name: Spent(
            statistics.median(one.seconds for one in runs),
            statistics.median(one.cores for one in runs),
            statistics.median(one.gib for one in runs),
            runs[0].count,
        )
        for name, runs in found.items()
    }


def _instructions() -> str:
    """Return whether the processor has instructions for SHA-256, where the system says so."""
    facts = Path("/proc/cpuinfo")
    if not facts.exists():
        return ""
    return "with sha_ni" if " sha_ni " in facts.read_text() else "the processor lacks sha_ni"
