"""Forms in which others write lists of train, val and test; each writes the same names into a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from PIL import Image

Parts = Mapping[str, Sequence[str]]


def write(folder: Path, name: str, lines: Sequence[str]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def lists(folder: Path, parts: Parts) -> None:
    for part, names in parts.items():
        write(folder, f"{part}.txt", names)


def labelled(folder: Path, parts: Parts) -> None:
    for part, names in parts.items():
        write(folder, f"{part}_list.txt", [f"{name} {sum(map(ord, name)) % 7}" for name in names])


def pairs(folder: Path, parts: Parts) -> None:
    for part, names in parts.items():
        write(folder, f"{part}.lst", [f"images/{name} masks/{name}" for name in names])


def tables(folder: Path, parts: Parts) -> None:
    for part, names in parts.items():
        write(folder, f"{part}.csv", ["image,age", *(f"{name},{sum(map(ord, name)) % 90}" for name in names)])


def groups(folder: Path, parts: Parts) -> None:
    folder.mkdir()
    (folder / "splits.json").write_text(json.dumps(parts))


def shards(folder: Path, parts: Parts, pieces: int = 1) -> None:
    """Write Parquet, the lists of train in several files."""
    folder.mkdir(exist_ok=True)
    for part, names in parts.items():
        count = pieces if part == "train" else 1
        for at in range(count):
            table = pa.table({"image": [{"bytes": b"x", "path": name} for name in names[at::count]]})
            pa.parquet.write_table(table, folder / f"{part}-{at:05}-of-{count:05}.parquet")


def split_column(folder: Path, parts: Parts) -> None:
    write(folder, "meta.csv", ["image,split", *(f"{name},{part}" for part, names in parts.items() for name in names)])


def folds(folder: Path, parts: Parts) -> None:
    rows = [f"{name},{fold}" for fold, names in enumerate(parts.values()) for name in names]
    write(folder, "folds.csv", ["filename,fold", *rows])


def columns(folder: Path, parts: Parts) -> None:
    longest = max(map(len, parts.values()))
    rows = [",".join(names[row] if row < len(names) else "" for names in parts.values()) for row in range(longest)]
    write(folder, "fold_0.csv", [",".join(f"{part}_slide_path" for part in parts), *rows])


def clam(folder: Path, parts: Parts) -> None:
    stems = [[Path(name).stem for name in names] for names in parts.values()]
    longest = max(map(len, stems))
    rows = [
        ",".join([str(row), *(names[row] if row < len(names) else "" for names in stems)]) for row in range(longest)
    ]
    write(folder, "splits_0.csv", [",train,val,test", *rows])


def yolo(folder: Path, parts: Parts) -> None:
    """Photos count anew in each folder; a name says what a photo shows."""
    for part, names in parts.items():
        for at, name in enumerate(names):
            photo = folder / f"images/{part}/{at:04}.png"
            photo.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.random.default_rng(list(name.encode())).integers(0, 256, (6, 6, 3), np.uint8)
            Image.fromarray(pixels).save(photo)
            write(folder, f"labels/{part}/{at:04}.txt", [] if at % 3 else ["0 0.5 0.5 0.2 0.2"])
    write(folder, "data.yaml", [*(f"{part}: images/{part}" for part in parts), "names: [cell]"])
