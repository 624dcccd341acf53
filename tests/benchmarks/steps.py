"""Steps past one machine's memory: presence of classes in ten million rows, by one worker or two; box CSV."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from curation.core.writing import replacing
from tests.benchmarks.own_process import Clock

ROWS, TENTH = 10_000_000, 1_000_000
BOX_ROWS, BOX_IMAGES, CLASSES = 4_000_000, 440_000, 601
_CHUNK = 1_000_000
_GROUP = 100_000
"""Rows of a row group of Parquet: a worker holds one of them."""


def presence(folder: Path, clock: Clock, rows: int, workers: int) -> int:
    """Return how many boxes of a Parquet file were counted by image and class."""
    from curation.extensions.diagnosis.presence import presence as scan

    out = Path(mkdtemp(dir=folder))
    with clock:
        counted = sum(scan(folder / f"{rows}.parquet", out=out / "out", workers=workers).boxes.values())
    shutil.rmtree(out)
    return counted


def open_images(folder: Path, clock: Clock) -> int:
    """Return how many images a box CSV of Open Images names, read with every check and its digest."""
    from curation.sources.opening import open_path

    with clock:
        source = open_path(folder / "openimages", dataset="openimages", part="train")
    return len(source.images)


def open_images_pandas(folder: Path, clock: Clock) -> int:
    """Return the same by ``read_csv`` and ``groupby``: no digest, no check."""
    import pandas

    with clock:
        frame = pandas.read_csv(folder / "openimages" / "train-annotations-bbox.csv")
        groups = frame.groupby(["ImageID", "LabelName"]).size()
    return len(groups.index.get_level_values(0).unique())


def draw(folder: Path, clock: Clock) -> None:
    """Write detections as Parquet, of both sizes, and a box CSV of Open Images."""
    import pyarrow
    from pyarrow import parquet

    def batch(start: int, stop: int) -> Any:
        numbers = np.arange(start, stop)
        scores = (numbers % 997 / 997).astype(np.float32)
        return pyarrow.table({"image_id": numbers // 50, "category_id": numbers * 7919 % 80, "score": scores})

    for rows in (TENTH, ROWS):
        if not (path := folder / f"{rows}.parquet").exists():
            with replacing(path) as partial, parquet.ParquetWriter(partial, batch(0, 1).schema) as writer:
                for start in range(0, rows, _CHUNK):
                    writer.write_table(batch(start, start + _CHUNK), row_group_size=_GROUP)
    if not (path := folder / "openimages" / "train-annotations-bbox.csv").exists():
        with replacing(path.with_name("class-descriptions-boxable.csv")) as partial:
            partial.write_text("".join(f"{_label(one)},Class {one}\n" for one in range(CLASSES)))
        with replacing(path) as partial:
            _write_boxes(partial)


def _label(number: int) -> str:
    return f"/m/0{number:04x}"


def _write_boxes(path: Path) -> None:
    import pyarrow
    from pyarrow import csv

    columns = (
        *("ImageID", "Source", "LabelName", "Confidence", "XMin", "XMax", "YMin", "YMax"),
        *("IsOccluded", "IsTruncated", "IsGroupOf", "IsDepiction", "IsInside"),
    )
    rng = np.random.default_rng(6)
    keys = np.unique(rng.integers(0, 2**64, BOX_IMAGES, dtype=np.uint64, endpoint=False))
    image = np.sort(np.concatenate([np.arange(BOX_IMAGES), rng.integers(0, BOX_IMAGES, BOX_ROWS - BOX_IMAGES)]))
    natives = pyarrow.array([f"{key:016x}" for key in keys.tolist()])
    shares = pyarrow.array([f"{share / 1_000_000:.6f}" for share in range(1_000_001)])
    labels, origins = pyarrow.array([_label(one) for one in range(CLASSES)]), pyarrow.array(["xclick", "activemil"])
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    with path.open("wb") as stream:
        stream.write(f"{','.join(columns)}\n".encode())
        for start in range(0, BOX_ROWS, _CHUNK):
            corners = np.sort(rng.integers(0, 1_000_001, (2, _CHUNK, 2)), axis=2)
            by_machine = rng.random(_CHUNK) < 0.1
            # A few classes have most of the boxes; nobody set the flags of boxes that a machine made.
            skewed = (CLASSES * rng.random(_CHUNK) ** 3).astype(np.int64)
            flags = np.where(by_machine, -1, rng.random((5, _CHUNK)) < 0.1).astype(np.int8)
            values = [natives.take(image[start : start + _CHUNK]), origins.take(by_machine.astype(np.int64))]
            values += [labels.take(skewed), pyarrow.array(np.ones(_CHUNK, np.int8))]
            values += [shares.take(side) for axis in corners for side in axis.T]
            csv.write_csv(pyarrow.table([*values, *map(pyarrow.array, flags)], list(columns)), stream, options)
