"""A small world on disk, in the layouts that VOC and COCO really have: photos, XML, image sets, instances JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from tqdm import tqdm

from curation.demo.scenes import HEIGHT, WIDTH, Mask, Thing, draw_scene
from curation.demo.shapes import Pixels, Rng, pillow
from curation.storage import write_bytes, write_text

KNOWN = ("aeroplane", "boat", "bottle", "car", "sheep", "tvmonitor")
COCO_CATEGORIES = {
    "car": (3, "car", "vehicle"),
    "aeroplane": (5, "airplane", "vehicle"),
    "truck": (8, "truck", "vehicle"),
    "boat": (9, "boat", "vehicle"),
    "sheep": (20, "sheep", "animal"),
    "elephant": (22, "elephant", "animal"),
    "bear": (23, "bear", "animal"),
    "zebra": (24, "zebra", "animal"),
    "kite": (38, "kite", "sports"),
    "surfboard": (42, "surfboard", "sports"),
    "bottle": (44, "bottle", "kitchen"),
    "pizza": (59, "pizza", "food"),
    "tvmonitor": (72, "tv", "electronic"),
    "laptop": (73, "laptop", "electronic"),
    "vase": (86, "vase", "indoor"),
}
UNKNOWN = tuple(name for name in COCO_CATEGORIES if name not in KNOWN)
_COCO_NUMBERS = np.arange(9, 10_000)
MOST_COCO_IMAGES = len(_COCO_NUMBERS)
_POSES = ("Unspecified", "Left", "Right", "Frontal", "Rear")
_HARD_TO_SEE = 11  # pixels
_EMPTY, _UNKNOWN_ONLY = 0.04, 0.6
_WITH_HERD, _HERDS = 0.06, ("elephant", "zebra", "kite")


@dataclass(frozen=True, slots=True)
class World:
    """Where the two datasets lie, and a file of the class names (``known``, ``unknown``)."""

    voc_root: Path
    coco_root: Path
    classes: Path

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
    world = World(folder / "VOCdevkit" / "VOC2007", folder / "coco", folder / "classes.json")
    streams = np.random.SeedSequence(seed).spawn(3)
    numbers = iter(range(1, n_train + n_test + 1))
    for part, count, stream in (("train", n_train, streams[0]), ("test", n_test, streams[1])):
        stems = [f"{next(numbers):06d}" for _ in range(count)]
        _write_voc(world.voc_root, part, stems, np.random.default_rng(stream))
    _write_coco(world.coco_root, n_coco, np.random.default_rng(streams[2]))
    write_text(
        world.classes, json.dumps({"known": KNOWN, "unknown": UNKNOWN}, indent=1) + "\n", guarded=False
    )
    return world


def _write_voc(root: Path, part: str, stems: list[str], rng: Rng) -> None:
    for stem in tqdm(stems, desc=f"drawing VOC {part}", disable=None):
        scene, things = _scene_with_things(_drawn(KNOWN, rng), rng)
        _write_photo(root / "JPEGImages" / f"{stem}.jpg", scene)
        objects = "".join(_voc_object(thing, str(rng.choice(_POSES))) for thing in things)
        text = (
            f"<annotation>\n<folder>VOC2007</folder>\n<filename>{stem}.jpg</filename>\n<size><width>{WIDTH}</width>"
            f"<height>{HEIGHT}</height><depth>3</depth></size>\n<segmented>0</segmented>\n{objects}</annotation>\n"
        )
        write_text(root / "Annotations" / f"{stem}.xml", text, guarded=False)
    write_text(
        root / "ImageSets" / "Main" / f"{part}.txt", "".join(f"{stem}\n" for stem in stems), guarded=False
    )


def _drawn(names: tuple[str, ...], rng: Rng) -> list[str]:
    """Return one to three names."""
    return [str(rng.choice(names)) for _ in range(int(rng.integers(1, 4)))]


def _scene_with_things(names: list[str], rng: Rng) -> tuple[Pixels, list[Thing]]:
    """Return a scene in which at least one thing can be seen: every VOC image has an object."""
    while True:
        scene, things = draw_scene(names, rng)
        if things:
            return scene, things


def _voc_object(thing: Thing, pose: str) -> str:
    x, y, width, height = thing.box
    difficult = thing.hidden > 0.35 or min(width, height) < _HARD_TO_SEE
    return (
        f"<object><name>{escape(thing.name)}</name><pose>{pose}</pose><truncated>{int(thing.hidden > 0.1)}</truncated>"
        f"<difficult>{int(difficult)}</difficult><bndbox><xmin>{x + 1}</xmin><ymin>{y + 1}</ymin>"
        f"<xmax>{x + width}</xmax><ymax>{y + height}</ymax></bndbox></object>\n"
    )


def _write_coco(root: Path, n_images: int, rng: Rng) -> None:
    # Real COCO numbers are scattered; some coincide with VOC's as integers, which must do no harm.
    numbers = sorted(int(number) for number in rng.choice(_COCO_NUMBERS, n_images, replace=False))
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number in tqdm(numbers, desc="drawing COCO train2017", disable=None):
        scene, things = _coco_scene(rng)
        name = f"{number:012d}.jpg"
        _write_photo(root / "train2017" / name, scene)
        images.append({"license": 1, "file_name": name, "height": HEIGHT, "width": WIDTH, "id": number})
        annotations += [_coco_annotation(thing, number) for thing in things]
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
    write_text(root / "annotations" / "instances_train2017.json", json.dumps(content), guarded=False)


def _coco_scene(rng: Rng) -> tuple[Pixels, list[Thing]]:
    """Return a scene that is empty (1 in 25), of unknown things only (3 in 5), or has known ones too."""
    draw = rng.random()
    if draw < _EMPTY:
        return draw_scene([], rng)
    herd = str(rng.choice(_HERDS)) if rng.random() < _WITH_HERD else None
    names = _drawn(UNKNOWN, rng)
    if draw >= _EMPTY + _UNKNOWN_ONLY:
        names = [*names[:2], str(rng.choice(KNOWN))]
    return draw_scene(names, rng, herd=herd)


def _coco_annotation(thing: Thing, image: int) -> dict[str, Any]:
    x, y, width, height = thing.box
    outline: Any = [[x, y, x + width, y, x + width, y + height, x, y + height]]
    return {
        "segmentation": run_lengths(thing.mask) if thing.crowd else outline,
        "area": float(thing.mask.sum()) if thing.crowd else float(width * height),
        "iscrowd": int(thing.crowd),
        "image_id": image,
        "bbox": [float(x), float(y), float(width), float(height)],
        "category_id": COCO_CATEGORIES[thing.name][0],
    }


def run_lengths(mask: Mask) -> dict[str, Any]:
    """Return COCO's uncompressed run-length code: lengths down the columns, beginning with what is outside."""
    column = np.concatenate([[False], mask.ravel(order="F")])
    changes = np.flatnonzero(column[1:] != column[:-1])
    return {"counts": np.diff([0, *changes.tolist(), mask.size]).tolist(), "size": list(mask.shape)}


def _write_photo(path: Path, scene: Pixels) -> None:
    stream = BytesIO()
    pillow("Image").fromarray(scene).save(stream, "JPEG", quality=90)
    write_bytes(path, stream.getvalue(), guarded=False)
