"""Small Open Images, CUB and MTSD in their files, and OSOD-III's lists by loops over those rows.

Vehicles are those of the committed manifests, by MID. MTSD's clusters are the best cut of all, found by a look at every
partition of eight signs. Validation images are the first share by hash rank, as the package documents.
"""

import json
from collections.abc import Callable, Collection, Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.worlds import graphs
from tests.worlds.drawing import Draws
from tests.worlds.photos import ranked

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
STRANGERS = ("/m/0k4j", "/m/019jd", "/m/0tree")
"""Car and boat, which are inner nodes of the tree, and a class that is no vehicle."""
OPEN_IMAGES = {"train": 260, "validation": 60, "test": 120}
CUB_IMAGES = 1_300
SIGN_IMAGES = {"train": 240, "val": 90}
SIGNS = tuple(f"regulatory--sign-{letter}--g1" for letter in "abcdefgh")
HEADER = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
Shown = dict[str, list[str]]


@cache
def vehicles() -> list[str]:
    path = MANIFESTS / "osod3/openimages-vehicle-1/1.0.0/manifest.json"
    classes = json.loads(path.read_text(encoding="utf-8"))["classes"]
    return sorted(one["aliases"][0] for one in classes if one["role"] in ("known", "unknown"))


@cache
def open_images(part: str) -> Shown:
    """Return the labels on each image, by its hexadecimal id."""
    draws = Draws(f"species/{part}")
    labels = [*vehicles(), *STRANGERS, *STRANGERS, *STRANGERS]
    return {
        f"{draws.below(2**64):016x}": [draws.among(labels) for _ in range(1 + draws.below(3))]
        for _ in range(OPEN_IMAGES[part])
    }


@cache
def cub() -> list[tuple[str, int, bool]]:
    """Return name, class number and whether it is an official training image, of each image in the order of its id."""
    draws = Draws("species/cub")
    return [
        (f"Bird_{1 + k % 200:03d}_{k:04d}_{draws.below(9999)}", 1 + k % 200, bool(draws.below(2)))
        for k in range(CUB_IMAGES)
    ]


@cache
def signs(part: str) -> Shown:
    """Return the signs on each image; three groups keep to themselves most of the time."""
    draws = Draws(f"species/signs/{part}")
    groups = (SIGNS[:4], SIGNS[4:6], SIGNS[6:])
    found = {}
    for place in range(SIGN_IMAGES[part]):
        group = draws.among((groups[0], groups[0], *groups))
        shown = [draws.among(group) for _ in range(1 + draws.below(3))]
        if draws.one_in(8):
            shown.append(draws.among(SIGNS))
        if draws.one_in(9):
            shown = ["other-sign"]
        found[f"{part}-{place:04d}"] = [*shown, "other-sign"]
    return found


def files(folder: Path) -> dict[str, Path]:
    """Write the three data sets in their native layouts; the keys are roots."""
    roots = {name: folder / name for name in ("openimages", "cub", "mtsd")}
    for root in roots.values():
        root.mkdir()
    labels = [*vehicles(), *STRANGERS]
    names = "".join(f"{label},Thing {place}\n" for place, label in enumerate(labels))
    (roots["openimages"] / "class-descriptions-boxable.csv").write_text(names)
    for part in OPEN_IMAGES:
        rows = [HEADER]
        for image, shown in open_images(part).items():
            rows += [
                f"{image},xclick,{label},1,0.1,0.{2 + place},0.1,0.5,0,0,{int(place == 2)},0,0"
                for place, label in enumerate(shown)
            ]
        (roots["openimages"] / f"{part}-annotations-bbox.csv").write_text("\n".join(rows) + "\n")
    birds = list(enumerate(cub(), 1))
    texts = {
        "images": [f"{k} {number:03d}.Bird_{number:03d}/{name}.jpg" for k, (name, number, _) in birds],
        "image_class_labels": [f"{k} {number}" for k, (_, number, _) in birds],
        "train_test_split": [f"{k} {int(train)}" for k, (_, _, train) in birds],
        "bounding_boxes": [f"{k} 10.0 20.0 30.0 40.0" for k, _ in birds],
        "classes": [f"{number} {number:03d}.Bird_{number:03d}" for number in range(1, 201)],
    }
    for name, lines in texts.items():
        (roots["cub"] / f"{name}.txt").write_text("\n".join(lines) + "\n")
    for name in ("splits", "annotations"):
        (roots["mtsd"] / name).mkdir()
    for part in SIGN_IMAGES:
        for key, shown in signs(part).items():
            objects = [
                {
                    "key": str(place),
                    "label": label,
                    "bbox": {"xmin": 9 * place, "ymin": 1, "xmax": 9 * place + 5, "ymax": 9},
                    "properties": {},
                }
                for place, label in enumerate(shown)
            ]
            content = {"width": 640, "height": 480, "ispano": False, "objects": objects}
            (roots["mtsd"] / "annotations" / f"{key}.json").write_text(json.dumps(content))
        (roots["mtsd"] / "splits" / f"{part}.txt").write_text("".join(f"{key}\n" for key in signs(part)))
    return roots


def quarters(items: Iterable[str]) -> list[list[str]]:
    """Return four parts by the order of sha256(seed:item): section 1.2."""
    order = sorted(items, key=lambda one: sha256(f"100:{one}".encode()).hexdigest())
    size = len(order) // 4
    return [order[k * size : (k + 1) * size] for k in range(4)]


def showing(shown: Shown, wanted: Collection[str], namespace: str) -> list[str]:
    return [f"{namespace}:{image}" for image, labels in shown.items() if set(labels) & set(wanted)]


def of_vehicles(rotation: int) -> dict[str, list[str]]:
    """Return the lists of one rotation: known is part `rotation` (section 1.3)."""
    known = quarters(vehicles())[rotation - 1]
    return {
        "train": showing(open_images("train"), known, "openimages"),
        "val": showing(open_images("validation"), known, "openimages"),
        "test": showing(open_images("test"), vehicles(), "openimages"),
    }


def held_out(ids: list[str]) -> list[str]:
    """Return the tenth that validates: rounded to the nearest image, and never all."""
    size = min(int(len(ids) / 10 + 0.5), max(0, len(ids) - 1))
    return ranked(ids, "100/val/")[:size]


def of_birds(case: int) -> dict[str, list[str]]:
    """Return the lists of one case: unknown is part `case` (section 2)."""
    unknown = {int(one) for one in quarters(f"{number:03d}" for number in range(1, 201))[case - 1]}
    train: list[str] = []
    val: list[str] = []
    for number in range(1, 201):
        mine = [f"cub200:{name}" for name, one, training in cub() if one == number and training]
        if number not in unknown:
            held = held_out(mine)
            val += held
            train += [one for one in mine if one not in held]
    return {"train": train, "val": val, "test": [f"cub200:{name}" for name, _, training in cub() if not training]}


@cache
def clusters() -> list[list[str]]:
    """Return known, unknown1 and unknown2: the largest cluster, the smallest, and the one between (3.4, 3.6)."""
    n = len(SIGNS)
    table = [[0] * n for _ in range(n)]
    for shown in (*signs("train").values(), *signs("val").values()):
        for a in range(n):
            for b in range(n):
                table[a][b] += a != b and SIGNS[a] in shown and SIGNS[b] in shown
    values = [(value, labels) for labels in graphs.partitions(n, 3) if (value := graphs.ncut(table, labels))]
    lowest = min(value for value, _ in values)
    (best,) = [labels for value, labels in values if value == lowest]
    found = [[name for name, label in zip(SIGNS, best, strict=True) if label == k] for k in range(3)]
    largest, middle, smallest = sorted(found, key=lambda one: (-len(one), one[0]))
    return [largest, smallest, middle]


def of_signs() -> dict[str, list[str]]:
    """Return the lists of all three cases: no training image shows a sign of either unknown cluster (3.6)."""
    known, *unknown = clusters()
    barred = set(showing(signs("train"), [one for cluster in unknown for one in cluster], "mtsd"))
    chosen = [one for one in showing(signs("train"), known, "mtsd") if one not in barred]
    held = held_out(chosen)
    return {
        "train": [one for one in chosen if one not in held],
        "val": held,
        "test": showing(signs("val"), SIGNS, "mtsd"),
    }


LISTS: dict[str, Callable[[], dict[str, list[str]]]] = {
    **{f"openimages-vehicle-{k}": lambda k=k: of_vehicles(k) for k in (1, 2, 3, 4)},  # type: ignore[misc]
    **{f"cub-{k}": lambda k=k: of_birds(k) for k in (1, 2, 3, 4)},  # type: ignore[misc]
    **{f"mtsd-{case}": of_signs for case in ("unknown1", "unknown2", "unknown12")},
}


def lists(name: str) -> dict[str, list[str]]:
    return {part: sorted(ids) for part, ids in LISTS[name]().items()}


def expected() -> dict[str, Any]:
    return {name: lists_told(lists(name)) for name in LISTS} | {"clusters": clusters()}


def lists_told(found: dict[str, list[str]]) -> dict[str, Any]:
    """Return the length and the digest of each list."""
    return {
        part: {"images": len(ids), "sha256": sha256("".join(f"{one}\n" for one in ids).encode()).hexdigest()}
        for part, ids in found.items()
    }
