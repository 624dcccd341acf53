"""A small world on disk, in the layouts that VOC and COCO really have: photos, XML, image sets, instances JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from tqdm import tqdm

from curation.demo.shapes import HEIGHT, PROPORTIONS, WIDTH, Pixels, Rng, draw_background, draw_thing
from curation.storage import make_folder, write_bytes, write_text

KNOWN = ("aeroplane", "boat", "bottle", "car", "sheep", "tvmonitor")
COCO_CATEGORIES = {
    "car": (3, "car", "vehicle"),
    "aeroplane": (5, "airplane", "vehicle"),
    "truck": (8, "truck", "vehicle"),
    "boat": (9, "boat", "vehicle"),
    "sheep": (20, "sheep", "animal"),
    "elephant": (22, "elephant", "animal"),
    "zebra": (24, "zebra", "animal"),
    "kite": (38, "kite", "sports"),
    "bottle": (44, "bottle", "kitchen"),
    "pizza": (59, "pizza", "food"),
    "tvmonitor": (72, "tv", "electronic"),
    "laptop": (73, "laptop", "electronic"),
    "vase": (86, "vase", "indoor"),
}
UNKNOWN = tuple(name for name in COCO_CATEGORIES if name not in KNOWN)
_POSES = ("Unspecified", "Left", "Right", "Frontal", "Rear")


@dataclass(frozen=True, slots=True)
class Thing:
    """One drawn object: its name, its box ``x, y, w, h`` in whole pixels, and how much of it is hidden."""

    name: str
    box: tuple[int, int, int, int]
    hidden: float


@dataclass(frozen=True, slots=True)
class World:
    """Where the two datasets lie."""

    voc_root: Path
    coco_root: Path

    @property
    def coco_json(self) -> Path:
        """The annotation file of the wilderness."""
        return self.coco_root / "annotations" / "instances_train2017.json"


def draw_world(
    folder: Path, *, n_train: int = 160, n_test: int = 140, n_coco: int = 330, seed: int = 2020
) -> World:
    """Return a world drawn into `folder`: VOC2007 train and test, and a COCO train2017 with a wilderness.

    Parameters
    ----------
    n_train, n_test : int
        VOC images, all with known things.
    n_coco : int
        COCO images; about three in five show unknown things only, a few show nothing and have no annotation.
    seed : int
        The same seed draws the same bytes.
    """
    world = World(folder / "VOCdevkit" / "VOC2007", folder / "coco")
    streams = np.random.SeedSequence(seed).spawn(3)
    numbers = iter(range(1, n_train + n_test + 1))
    for part, count, stream in (("train", n_train, streams[0]), ("test", n_test, streams[1])):
        stems = [f"{next(numbers):06d}" for _ in range(count)]
        _write_voc(world.voc_root, part, stems, np.random.default_rng(stream))
    _write_coco(world.coco_root, n_coco, np.random.default_rng(streams[2]))
    return world


def draw_scene(names: list[str], rng: Rng) -> tuple[Pixels, list[Thing]]:
    """Return a photo, shape (120, 160, 3), uint8, with these things in it, drawn one over the other."""
    scene = draw_background(rng)
    owner = np.full(scene.shape[:2], -1)
    placed: list[tuple[str, tuple[int, int, int, int], int]] = []
    for position, name in enumerate(names):
        height = int(rng.uniform(20, 52) / PROPORTIONS[name] ** 0.5)
        width = int(height * PROPORTIONS[name] * rng.uniform(0.9, 1.1))
        x, y = int(rng.integers(0, WIDTH - width)), int(rng.integers(0, HEIGHT - height))
        colours, coverage = draw_thing(name, width, height, rng)
        alpha = coverage[..., None] / 255.0
        region = scene[y : y + height, x : x + width]
        scene[y : y + height, x : x + width] = (region * (1 - alpha) + colours * alpha).astype(np.uint8)
        owner[y : y + height, x : x + width][coverage > 127] = position
        placed.append((name, (x, y, width, height), int((coverage > 127).sum())))
    things = [
        Thing(name, box, 1 - int((owner == position).sum()) / max(size, 1))
        for position, (name, box, size) in enumerate(placed)
    ]
    return scene, things


def _write_voc(root: Path, part: str, stems: list[str], rng: Rng) -> None:
    for stem in tqdm(stems, desc=f"drawing VOC {part}", disable=None):
        scene, things = draw_scene([str(rng.choice(KNOWN)) for _ in range(int(rng.integers(1, 4)))], rng)
        _write_photo(root / "JPEGImages" / f"{stem}.jpg", scene)
        objects = "".join(_voc_object(thing, str(rng.choice(_POSES))) for thing in things)
        text = (
            f"<annotation>\n<folder>VOC2007</folder>\n<filename>{stem}.jpg</filename>\n<size><width>{WIDTH}</width>"
            f"<height>{HEIGHT}</height><depth>3</depth></size>\n<segmented>0</segmented>\n{objects}</annotation>\n"
        )
        write_text(root / "Annotations" / f"{stem}.xml", text)
    write_text(root / "ImageSets" / "Main" / f"{part}.txt", "".join(f"{stem}\n" for stem in stems))


def _voc_object(thing: Thing, pose: str) -> str:
    x, y, width, height = thing.box
    return (
        f"<object><name>{escape(thing.name)}</name><pose>{pose}</pose><truncated>{int(thing.hidden > 0.2)}</truncated>"
        f"<difficult>{int(thing.hidden > 0.5)}</difficult><bndbox><xmin>{x + 1}</xmin><ymin>{y + 1}</ymin>"
        f"<xmax>{x + width}</xmax><ymax>{y + height}</ymax></bndbox></object>\n"
    )


def _write_coco(root: Path, n_images: int, rng: Rng) -> None:
    # Real COCO numbers are scattered; some coincide with VOC's as integers, which must do no harm.
    numbers = sorted(int(number) for number in rng.choice(np.arange(9, 2000), n_images, replace=False))
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number in tqdm(numbers, desc="drawing COCO train2017", disable=None):
        scene, things = draw_scene(_coco_names(rng), rng)
        name = f"{number:012d}.jpg"
        _write_photo(root / "train2017" / name, scene)
        images.append({"license": 1, "file_name": name, "height": HEIGHT, "width": WIDTH, "id": number})
        annotations += [_coco_annotation(thing, number, rng) for thing in things]
    rng.shuffle(images)
    for serial, annotation in enumerate(annotations, start=1):
        annotation["id"] = serial
    content = {
        "info": {"description": "a drawn world, for the demo of curation"},
        "licenses": [{"id": 1, "name": "CC0", "url": "https://creativecommons.org/publicdomain/zero/1.0/"}],
        "images": images,
        "annotations": annotations,
        "categories": [
            {"supercategory": group, "id": number, "name": name}
            for number, name, group in COCO_CATEGORIES.values()
        ],
    }
    write_text(root / "annotations" / "instances_train2017.json", json.dumps(content))


def _coco_names(rng: Rng) -> list[str]:
    draw = rng.random()
    if draw < 0.04:
        return []
    unknown = [str(rng.choice(UNKNOWN)) for _ in range(int(rng.integers(1, 4)))]
    return unknown if draw < 0.62 else [*unknown, str(rng.choice(KNOWN))]


def _coco_annotation(thing: Thing, image: int, rng: Rng) -> dict[str, Any]:
    x, y, width, height = thing.box
    crowd = bool(rng.random() < 0.02)
    outline: Any = [[x, y, x + width, y, x + width, y + height, x, y + height]]
    return {
        "segmentation": {"counts": [0, WIDTH * HEIGHT], "size": [HEIGHT, WIDTH]} if crowd else outline,
        "area": float(width * height),
        "iscrowd": int(crowd),
        "image_id": image,
        "bbox": [float(x), float(y), float(width), float(height)],
        "category_id": COCO_CATEGORIES[thing.name][0],
    }


def _write_photo(path: Path, scene: Pixels) -> None:
    from io import BytesIO

    from PIL import Image

    make_folder(path.parent)
    stream = BytesIO()
    Image.fromarray(scene).save(stream, "JPEG", quality=90)
    write_bytes(path, stream.getvalue())
