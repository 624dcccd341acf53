"""A small ILSVRC2012, names alone, and the lists of P1, P2 and P3 by the published splitter's steps.

Which class plays which role stands in the committed manifests, which other tests hold against the paper's tables.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.worlds.drawing import Draws
from tests.worlds.species import lists_told

ROOT = Path(__file__).resolve().parents[2]
PROTOCOLS = ("p1", "p2", "p3")
VAL_IMAGES = 2_000
Ints = npt.NDArray[np.int64]


@cache
def classes() -> list[str]:
    """Return the 1,000 wnids, a line each in the package's list."""
    lines = (ROOT / "curation/core/ilsvrc2012_classes.txt").read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line.startswith("n")]


def roles(protocol: str) -> dict[str, list[str]]:
    path = ROOT / "manifests/imagenet" / protocol / "1.0.0/manifest.json"
    listed = json.loads(path.read_text(encoding="utf-8"))["classes"]
    return {
        role: sorted(one["name"] for one in listed if one["role"] == role) for role in ("known", "negative", "unknown")
    }


@cache
def train_names() -> dict[str, list[str]]:
    """Return 5, 10, 15 or 20 names a class, in code-point order: ``_10`` stands before ``_2``.

    Four fifths of them are whole numbers, so that a rounding of floating point is all that the two formulas differ in.
    """
    draws = Draws("imagenet/names")
    found = {}
    for wnid in classes():
        n, numbers = 5 * (1 + draws.below(4)), set[int]()
        while len(numbers) < n:
            numbers.add(draws.below(2_000))
        found[wnid] = sorted(f"{wnid}_{number}" for number in numbers)
    return found


@cache
def val_classes() -> dict[str, str]:
    """Return the class of each validation image: two a class, scattered."""
    return {f"ILSVRC2012_val_{k:08d}": classes()[7 * k % 1_000] for k in range(1, VAL_IMAGES + 1)}


def files(folder: Path) -> dict[str, Path]:
    """Write ``names.json`` and ``val.txt``."""
    paths = {"imagenet-train": folder / "names.json", "imagenet-val": folder / "val.txt"}
    names = {wnid: [f"{name}.JPEG" for name in listed] for wnid, listed in train_names().items()}
    paths["imagenet-train"].write_text(json.dumps(names), encoding="utf-8")
    place = {wnid: number for number, wnid in enumerate(classes())}
    lines = [f"{name}.JPEG {place[wnid]}\n" for name, wnid in val_classes().items()]
    paths["imagenet-val"].write_text("".join(lines), encoding="utf-8")
    return paths


def shares(sizes: Ints, draws: int, random: np.random.RandomState) -> Ints:
    """Return how many of each class are drawn: section 2.3, `approx`."""
    # The order of these two operations decides on the rounding of some classes.
    exact = sizes / sizes.sum() * draws
    floored = np.floor(exact)
    need = int(draws - floored.sum())
    left = exact - floored
    for value in sorted(set(left.tolist()), reverse=True):
        if need == 0:
            break
        tied = np.flatnonzero(left == value)
        more = min(len(tied), need)
        floored[random.choice(tied, size=more, replace=False)] += 1
        need -= more
    return floored.astype(np.int64)


def split(labels: Sequence[str], seed: int = 42) -> tuple[Ints, Ints]:
    """Return positions of training and validation images: section 2.3."""
    names = sorted(set(labels))
    n_train = int(0.8 * len(labels))
    own = [np.flatnonzero([one == name for one in labels]) for name in names]
    sizes = np.array([len(one) for one in own])
    random = np.random.RandomState(seed)
    in_train = shares(sizes, n_train, random)
    in_val = shares(sizes - in_train, len(labels) - n_train, random)
    train: list[int] = []
    val: list[int] = []
    for mine, n, m in zip(own, in_train, in_val, strict=True):
        order = mine[random.permutation(len(mine))].tolist()
        train += order[:n]
        val += order[n : n + m]
    return random.permutation(train), random.permutation(val)


def lists(protocol: str) -> dict[str, list[str]]:
    """Return training and validation images in the splitter's order, and test images by role and class."""
    parts, names = roles(protocol), train_names()
    pool = [(wnid, name) for role in ("known", "negative") for wnid in parts[role] for name in names[wnid]]
    train, val = split([wnid for wnid, _ in pool])
    test = [
        name
        for role in ("known", "negative", "unknown")
        for wnid in parts[role]
        for name, one in val_classes().items()
        if one == wnid
    ]
    found = {
        "train": [pool[place][1] for place in train.tolist()],
        "val": [pool[place][1] for place in val.tolist()],
        "test": test,
    }
    return {part: [f"imagenet:{name}" for name in listed] for part, listed in found.items()}


def expected() -> dict[str, Any]:
    return {f"{protocol}/sklearn-1.0": lists_told(lists(protocol)) for protocol in PROTOCOLS}
