"""A small COCO and a small VOC, in their files, and the lists of every protocol that selects from them.

The lists are made by loops over the annotations of the JSON files, from the rules as the specifications print them.
Image numbers run up to COCO's highest, so that the order of CPython's sets is no order of numbers. Some images have no
annotation, some show a class in a crowd region alone.
"""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.worlds.drawing import Draws
from tests.worlds.photo_classes import BDD, COCO, NEAR, REMOVED, TASKS, VOC

SIZES = {"coco-train2017": 700, "coco-val2017": 260, "voc2007-test": 60, "voc2007-trainval": 30, "voc2012-trainval": 25}
FILES = {"coco-train2017": "instances_train2017.json", "coco-val2017": "instances_val2017.json"}
VAL_SIZE, EXEMPLARS = 20, 3
RATIOS = ("0.5", "1")
File = dict[str, Any]


def drawn(name: str) -> File:
    """Return the content of one annotation file."""
    draws = Draws(f"photos/{name}")
    of_coco = name.startswith("coco")
    names = COCO if of_coco else dict(enumerate(VOC, 1))
    numbers: list[int] = []
    while len(numbers) < SIZES[name]:
        number = 1 + draws.below(581_929 if of_coco else 9_963)
        if number not in numbers:
            numbers.append(number)
    images, annotations = [], []
    for number in numbers:
        stem = f"{number:012d}" if of_coco else f"2008_{number:06d}" if "2012" in name else f"{number:06d}"
        if "2012" in name:
            number += 2008_000000
        images.append({"id": number, "file_name": f"{stem}.jpg", "width": 640, "height": 480})
        shown = 0 if of_coco and draws.one_in(12) else 1 + draws.below(3)
        # A third of the images without a person or any other class of VOC, so that every list has some.
        choices = [k for k, one in names.items() if not of_coco or number % 3 or one not in VOC.values()]
        for _ in range(shown):
            box = [draws.below(300), draws.below(200), 10 + draws.below(300), 10 + draws.below(200)]
            annotations.append(
                {
                    "image_id": number,
                    "category_id": draws.among(choices),
                    "bbox": box,
                    "area": box[2] * box[3],
                    "iscrowd": int(of_coco and draws.one_in(8)),
                    "ignore": int(not of_coco and draws.one_in(7)),
                }
            )
    # Annotations in an order of their own: the open-world lists follow it.
    annotations.sort(key=lambda one: sha256(f"{name}/{one['image_id']}/{one['bbox']}".encode()).digest())
    for serial, annotation in enumerate(annotations, 1):
        annotation["id"] = serial
    categories = [{"id": k, "name": one, "supercategory": "thing"} for k, one in names.items()]
    return {"images": images, "annotations": annotations, "categories": categories}


def files(folder: Path) -> dict[str, Path]:
    """Write every annotation file; the keys are names of sources."""
    paths = {name: folder / FILES.get(name, f"{name}.json") for name in SIZES}
    for name, path in paths.items():
        path.write_text(json.dumps(drawn(name)), encoding="utf-8")
    return paths


class Photos:
    """One file, as the rules look at it."""

    def __init__(self, name: str) -> None:
        self.content = drawn(name)
        self.namespace = name.partition("-")[0]
        self.natives = {one["id"]: one["file_name"].removesuffix(".jpg") for one in self.content["images"]}
        self.names = {one["id"]: one["name"] for one in self.content["categories"]}

    def ids(self, numbers: Iterable[int]) -> list[str]:
        return [f"{self.namespace}:{self.natives[number]}" for number in numbers]

    def classes_of(self) -> dict[str, set[str]]:
        """Return what each annotated image shows, by COCO's names."""
        found: dict[str, set[str]] = {}
        for one in self.content["annotations"]:
            name = self.names[one["category_id"]]
            (identity,) = self.ids([one["image_id"]])
            found.setdefault(identity, set()).add(VOC.get(name, name))
        return found

    def all(self) -> list[int]:
        return [one["id"] for one in self.content["images"]]

    def showing(self, classes: Collection[str]) -> list[int]:
        """Return the images with an annotation of any of some classes, in the order of first annotations."""
        shown: dict[int, set[str]] = {}
        for one in self.content["annotations"]:
            shown.setdefault(one["image_id"], set()).add(self.names[one["category_id"]])
        return [number for number, found in shown.items() if found & set(classes)]

    def without(self, classes: Collection[str]) -> list[int]:
        """Return the images without any annotation of some classes; those without annotations are among them."""
        bad = set(self.showing(classes))
        return [number for number in self.all() if number not in bad]


def ranked(ids: Iterable[str], salt: str) -> list[str]:
    """Return the ids by falling rank: the order of sha256(salt + id)."""
    return sorted(ids, key=lambda one: sha256((salt + one).encode()).digest())


def elephant() -> dict[str, list[str]]:
    """Return the lists of the Elephant protocol: sections 1.3 and 1.4."""
    closed, coco = Photos("voc2007-test"), Photos("coco-train2017")
    known = set(coco.showing(set(VOC.values())))
    lists = {"closed": closed.ids(closed.all()), "wilderness": coco.ids(coco.without(set(VOC.values())))}
    wild = [number for number in coco.all() if number not in known]
    # The notebook's list(set(coco.imgs) - known)[:n] on CPython; the numbers enter ascending, or as listed.
    orders: dict[str, list[int]] = {
        "": list(set(dict.fromkeys(sorted(coco.all()))) - known),
        "-as-listed": list(set(dict.fromkeys(coco.all())) - known),
        "-id": sorted(wild),
    }
    for ratio in RATIOS:
        n = int(float(ratio) * len(closed.all()))
        part = "wr" + ratio
        for suffix, order in orders.items():
            lists[part + suffix] = coco.ids(order[:n])
        lists[part + "-hash"] = ranked(coco.ids(wild), "elephant/wilderness-ratio")[:n]
    return {name: sorted(ids) for name, ids in lists.items()}


def open_world(split: str) -> dict[str, list[str]]:
    """Return the lists of an open-world benchmark: sections 2.3, 2.6 and 5.1."""
    train, test = Photos("coco-train2017"), Photos("coco-val2017")
    tasks = TASKS[split]
    selected = [train.ids(train.showing(classes)) for classes in tasks]
    lists: dict[str, list[str]] = {}
    held_out: list[str] = []
    if split in ("reowod", "table2"):
        for place, selection in enumerate(selected, 1):
            left = [one for one in selection if one not in held_out]
            chosen = ranked(left, "owod/val/")[:VAL_SIZE]
            lists[f"t{place}-val"] = chosen
            held_out += chosen
    training = [[one for one in selection if one not in held_out] for selection in selected]
    voc: list[Photos] = []
    if split == "m-owodb":
        voc = [Photos("voc2007-trainval"), Photos("voc2012-trainval")]
        training[0] = [one for photos in voc for one in photos.ids(photos.all())]
        closed = Photos("voc2007-test")
        tested = closed.ids(closed.all())
        tested += [one for classes in tasks[1:] for one in test.ids(test.showing(classes))]
    else:
        tested = test.ids(test.showing(set(COCO.values())))
    shows = {one: names for photos in [*voc, train] for one, names in photos.classes_of().items()}
    for place, selection in enumerate(training, 1):
        if place > 1:
            pool = {one for listed in training[:place] for one in listed}
            known = [name for classes in tasks[:place] for name in classes]
            lists[f"t{place}-finetune"] = exemplars(pool, known, shows)
        lists[f"t{place}-train"] = selection
        lists[f"t{place}-test"] = tested
    return {name: sorted(set(ids)) for name, ids in lists.items()}


def exemplars(pool: Collection[str], known: Sequence[str], shows: dict[str, set[str]]) -> list[str]:
    """Return images that show every known class often enough: the rarest class first, each by hash rank."""
    order = ranked(pool, "owod/finetune/")
    having = {name: [one for one in order if name in shows[one]] for name in known}
    taken: list[str] = []
    for name in sorted(known, key=lambda one: (len(having[one]), known.index(one))):
        lacking = EXEMPLARS - sum(one in taken for one in having[name])
        free = [one for one in having[name] if one not in taken]
        taken += free[: max(lacking, 0)]
    return taken


def find_me(pair: str) -> dict[str, list[str]]:
    """Return the rule's list of COCO and its splits by categories alone: sections 1.1 and 1.3."""
    coco = Photos("coco-val2017")
    start = coco.without(set(VOC.values()) if pair == "voc" else BDD)
    lists = {"coco-rule": start}
    if pair == "voc":
        removed = set(coco.showing(REMOVED))
        lists["coco-near"] = [one for one in coco.showing(NEAR) if one in start and one not in removed]
        lists["coco-far"] = [one for one in start if one not in removed and one not in lists["coco-near"]]
    else:
        lists["coco-farther"] = start
    return {name: sorted(coco.ids(numbers)) for name, numbers in lists.items()}


LISTS: dict[str, Callable[[], dict[str, list[str]]]] = {
    "elephant": elephant,
    "reowod": lambda: open_world("reowod"),
    "table2": lambda: open_world("table2"),
    "s-owodb": lambda: open_world("s-owodb"),
    "m-owodb": lambda: open_world("m-owodb"),
    "voc": lambda: find_me("voc"),
    "bdd": lambda: find_me("bdd"),
}


def told(lists: dict[str, Sequence[str]] | dict[str, list[str]]) -> dict[str, Any]:
    """Return each list as its length, its digest and its ends: all of it would be long to read."""
    return {
        name: {
            "images": len(ids),
            "sha256": sha256("".join(f"{one}\n" for one in ids).encode()).hexdigest(),
            "ends": [*ids[:2], *ids[-1:]],
        }
        for name, ids in lists.items()
    }


def expected() -> dict[str, Any]:
    return {name: told(make()) for name, make in LISTS.items()}
