"""Drawn annotation files, and what detectors call their images: ids, paths, file names, stems, positions."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Reference = dict[str, Any]
STEMS = {
    "plain": "{}", "four digits": "{:04d}", "twelve digits": "{:012d}", "word": "img-{:x}", "dots": "b.v{0}_0.9{0}",
    "frame": "frame_{:05d}", "coco14": "COCO_val2014_{:012d}",
}  # fmt: skip
FOLDERS = ([""], ["images/"], ["a/", "b/"], ["x/a/", "x/b/", "y/a/"], ["val2017/"], ["", "sub/"], ["train/", "val/"])
SUFFIXES = ([".jpg"], [".png"], [".jpg", ".png"], [".JPG"])
IDS = ("order0", "order1", "shuffled", "stem numbers", "text stems", "text positions", "text paths", "words", "sparse")
NUMBERS = ("positions from 0", "positions from 1", "texts of positions", "stem numbers")
"""Forms that are numbers alone: only boxes can tell what they mean."""


@dataclass(frozen=True)
class World:
    """An annotation file: the file name and id of each image, and the images of which the part has boxes."""

    files: list[str]
    ids: list[Any]
    part: list[int]


def stem_of(file: str) -> str:
    return file.rsplit("/", 1)[-1].rsplit(".", 1)[0]


def number_of(file: str) -> int | str:
    """Return what Ultralytics writes as ``image_id``."""
    stem = stem_of(file)
    return int(stem) if stem.isdigit() else stem


def world(rng: random.Random) -> World:
    n = rng.randint(4, 30)
    pattern, folders, suffixes = STEMS[rng.choice([*STEMS])], rng.choice(FOLDERS), rng.choice(SUFFIXES)
    start = rng.choice([0, 1, 7])
    numbers = list(range(start, start + n)) if rng.random() < 0.5 else rng.sample(range(3 * n + 1), n)
    if len(folders) > 1 and rng.random() < 0.6:
        # Counters in each folder: equal stems.
        some = numbers[: max(1, n // len(folders))]
        files = [f"{folder}{pattern.format(k)}{rng.choice(suffixes)}" for folder in folders for k in some]
    else:
        files = [f"{rng.choice(folders)}{pattern.format(k)}{rng.choice(suffixes)}" for k in numbers]
    if rng.random() < 0.5:
        files.sort()
    else:
        rng.shuffle(files)
    n, order = len(files), list(range(len(files)))
    rng.shuffle(order)
    kind, stems = rng.choice(IDS), [number_of(file) for file in files]
    ids: list[Any] = {
        "order0": list(range(n)), "order1": list(range(1, n + 1)), "shuffled": [k + 1 for k in order],
        "stem numbers": stems, "text stems": [stem_of(file) for file in files], "words": [f"id-{k:03d}" for k in order],
        "text positions": [str(k) for k in order], "text paths": files, "sparse": [9000 + 7 * k for k in order],
    }[kind]  # fmt: skip
    if len(set(ids)) < n or len(set(map(type, ids))) > 1:
        ids = list(range(1, n + 1))
    share = rng.choice([1, 1, 1, 0.6])
    return World(files, ids, [row for row in range(n) if rng.random() < share] or [0])


def forms(world: World) -> Iterator[tuple[str, list[Reference]]]:
    """Yield what a detector may call each image, and the name of the form."""
    files, ids = world.files, world.ids
    bases = [file.rsplit("/", 1)[-1] for file in files]
    alone: dict[str, list[Any]] = {
        "ids": ids,
        "texts of ids": [str(value) for value in ids],
        "paths": files,
        "file names": bases,
        "stems": [stem_of(file) for file in files],
        "paths without suffix": [file.rsplit(".", 1)[0] for file in files],
        "positions from 0": list(range(len(files))),
        "positions from 1": list(range(1, len(files) + 1)),
        "texts of positions": [str(row) for row in range(len(files))],
        "stem numbers": [number_of(file) for file in files],
    }
    for form, values in alone.items():
        yield form, [{"image_id": value} for value in values]
    names = {
        "named paths": files,
        "named file names": bases,
        "absolute paths": [f"/data/set 1/{file}" for file in files],
        "Windows paths": ["C:\\data\\" + file.replace("/", "\\") for file in files],
        "last folder and name": ["/".join(file.split("/")[-2:]) for file in files],
        "another folder": [f"elsewhere/{base}" for base in bases],
    }
    for form, values in names.items():
        yield form, [{"file_name": value} for value in values]
    both = {
        "new Ultralytics": (alone["stem numbers"], bases),
        "ids and paths": (ids, files),
        "ids and file names": (ids, bases),
        "positions and paths": (alone["positions from 0"], files),
    }
    for form, (first, second) in both.items():
        yield form, [{"image_id": a, "file_name": b} for a, b in zip(first, second, strict=True)]
