"""A small drawn world on disk, in the layouts that VOC and COCO really have: photos, XML, image sets, instances JSON.

A photo is sky and ground with up to three things beside each other. Six kinds of things a VOC detector knows; six it
does not know and may mistake for them (a truck for a car, a vase for a bottle, a laptop for a screen).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from curation.storage import write_bytes, write_text

Rng = np.random.Generator

WIDTH, HEIGHT = 160, 120
MOST_COCO_IMAGES = 9_991
_COLUMN = 53  # pixels, a third of a photo
_COCO = {"aeroplane": (5, "airplane"), "boat": (9, "boat"), "bottle": (44, "bottle"), "car": (3, "car"),
         "sheep": (20, "sheep"), "tvmonitor": (72, "tv"), "elephant": (22, "elephant"), "kite": (38, "kite"),
         "laptop": (73, "laptop"), "truck": (8, "truck"), "vase": (86, "vase"), "zebra": (24, "zebra")}  # fmt: skip
KNOWN, UNKNOWN = tuple(_COCO)[:6], tuple(_COCO)[6:]

_PAINTS = {"pale": (225, 225, 222), "grey": (128, 128, 134), "dark": (35, 35, 38), "screen": (70, 115, 175),
           "glass": (45, 110, 65), "paint": (200, 60, 50)}  # fmt: skip
_THINGS = {
    "aeroplane": "2.1: pale oval 0 .38 1 .68, grey shape .4 .5 .6 .5 .3 1 .2 1, paint shape 0 0 .1 0 .2 .5 .06 .5",
    "boat": "1: dark box .48 0 .52 .72, pale shape .54 .03 .54 .64 .97 .64, paint shape 0 .7 1 .7 .84 1 .16 1",
    "bottle": ".44: glass box .35 0 .65 .4, glass box 0 .34 1 1, pale box 0 .6 1 .8",
    "car": "1.9: paint shape .2 .42 .34 .05 .75 .05 .85 .42, paint box 0 .38 1 .82, dark oval .1 .62 .32 1, "
    "dark oval .66 .62 .88 1",
    "sheep": "1.3: dark box .2 .66 .27 1, dark box .6 .66 .67 1, pale oval .04 .1 .86 .8, dark oval .78 .15 1 .55",
    "tvmonitor": "1.3: dark box 0 0 1 .8, screen box .06 .08 .94 .72, dark box .44 .8 .56 .92, dark box .25 .9 .75 1",
    "elephant": "1.35: grey box .12 .55 .25 1, grey box .64 .55 .77 1, grey oval 0 .1 .82 .8, grey oval .62 0 .98 .5, "
    "grey box .9 .25 1 .85",
    "kite": ".85: pale shape .5 0 1 .45 .5 .82, paint shape .5 0 0 .45 .5 .82, paint shape .5 .78 .66 1 .34 1",
    "laptop": "1.3: dark box .06 0 .94 .76, screen box .12 .07 .88 .68, grey shape .06 .78 .94 .78 1 1 0 1",
    "truck": "1.95: pale box 0 0 .66 .76, paint box .68 .25 1 .82, dark oval .03 .62 .25 1, dark oval .74 .62 .96 1",
    "vase": ".5: glass box .3 0 .7 .3, glass oval 0 .25 1 1, pale box .1 .6 .9 .68",
    "zebra": "1.3: dark box .12 .6 .19 1, dark box .7 .6 .77 1, pale oval 0 .25 .85 .75, pale shape .66 .4 .84 0 1 .2, "
    "dark box .2 .3 .25 .7, dark box .4 .3 .45 .7, dark box .6 .3 .65 .7",
}
"""Width over height of each thing, and what it is drawn of, in coordinates from 0 to 1."""


class Thing(NamedTuple):
    """One object of a photo: its name, and its box ``x, y, w, h`` in whole pixels."""

    name: str
    box: tuple[int, int, int, int]


class World(NamedTuple):
    """Where the two datasets are, and a file of the class names (``known``, ``unknown``)."""

    voc_root: Path
    coco_root: Path
    classes: Path

    @property
    def coco_json(self) -> Path:
        """The annotation file of the wilderness."""
        return self.coco_root / "annotations" / "instances_train2017.json"


def draw_world(folder: Path, *, n_train: int = 160, n_test: int = 140, n_coco: int = 330, seed: int = 2020) -> World:
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
    rng = np.random.default_rng(seed)
    _write_voc(world.voc_root, "train", range(1, n_train + 1), rng)
    _write_voc(world.voc_root, "test", range(n_train + 1, n_train + n_test + 1), rng)
    _write_coco(world, n_coco, rng)
    write_text(world.classes, json.dumps({"known": KNOWN, "unknown": UNKNOWN}, indent=1) + "\n", guarded=False)
    return world


def _write_voc(root: Path, part: str, numbers: Sequence[int], rng: Rng) -> None:
    for number in tqdm(numbers, desc=f"drawing VOC {part}", disable=None):
        stem = f"{number:06d}"
        things = _draw_photo(root / "JPEGImages" / f"{stem}.jpg", _several(KNOWN, rng), rng)
        objects = "".join(
            f"<object><name>{name}</name><pose>Unspecified</pose><truncated>0</truncated><difficult>0</difficult><bndbox>"
            f"<xmin>{x + 1}</xmin><ymin>{y + 1}</ymin><xmax>{x + w}</xmax><ymax>{y + h}</ymax></bndbox></object>\n"
            for name, (x, y, w, h) in things
        )
        size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>\n"
        text = f"<annotation>\n<filename>{stem}.jpg</filename>\n{size}{objects}</annotation>\n"
        write_text(root / "Annotations" / f"{stem}.xml", text, guarded=False)
    lines = "".join(f"{number:06d}\n" for number in numbers)
    write_text(root / "ImageSets" / "Main" / f"{part}.txt", lines, guarded=False)


def _write_coco(world: World, n_images: int, rng: Rng) -> None:
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    # Real COCO numbers are scattered; some coincide with VOC's as integers, which must do no harm.
    numbers = sorted((rng.choice(MOST_COCO_IMAGES, n_images, replace=False) + 9).tolist())
    for number in tqdm(numbers, desc="drawing COCO train2017", disable=None):
        chance, name = rng.random(), f"{number:012d}.jpg"
        names = [] if chance < 0.04 else _several(UNKNOWN, rng)
        if chance >= 0.64:
            names = [*names[:2], str(rng.choice(KNOWN))]
        images.append({"license": 1, "file_name": name, "height": HEIGHT, "width": WIDTH, "id": number})
        for thing, (x, y, w, h) in _draw_photo(world.coco_root / "train2017" / name, names, rng):
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": _COCO[thing][0],
                    "bbox": [x, y, w, h],
                    "area": w * h,
                    "iscrowd": 0,
                    "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]],
                }
            )
    content = {
        "info": {"description": "a drawn world, for the demo of curation"},
        "licenses": [{"id": 1, "name": "CC0", "url": "https://creativecommons.org/publicdomain/zero/1.0/"}],
        "images": images,
        "annotations": annotations,
        "categories": [{"id": number, "name": name} for number, name in sorted(_COCO.values())],
    }
    write_text(world.coco_json, json.dumps(content), guarded=False)


def _several(names: Sequence[str], rng: Rng) -> list[str]:
    """Return one to three names."""
    return [str(name) for name in rng.choice(names, int(rng.integers(1, 4)))]


def _draw_photo(path: Path, names: Sequence[str], rng: Rng) -> list[Thing]:
    """Draw things beside each other into a photo, and return them."""
    from PIL import Image

    horizon = int(rng.integers(38, 62))
    scene = np.empty((HEIGHT, WIDTH, 3))
    scene[:horizon] = np.array([158, 192, 222]) + rng.normal(0, 12, 3)
    scene[horizon:] = np.array([112, 142, 84]) + rng.normal(0, 12, 3)
    photo, things = Image.fromarray(scene.clip(0, 255).astype(np.uint8)), []
    for column, name in zip(rng.permutation(3).tolist(), names, strict=False):
        thing = _drawn(name, rng)
        x = column * _COLUMN + int(rng.integers(1, _COLUMN - thing.width))
        y = int(rng.integers(8, HEIGHT - thing.height))
        photo.paste(thing, (x, y), thing)
        left, top, right, bottom = thing.getbbox()
        things.append(Thing(name, (x + left, y + top, right - left, bottom - top)))
    noisy = np.asarray(photo) * rng.uniform(0.85, 1.12) + rng.normal(0, rng.uniform(3, 8), scene.shape)
    stream = BytesIO()
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(stream, "JPEG", quality=90)
    write_bytes(path, stream.getvalue(), guarded=False)
    return things


def _drawn(name: str, rng: Rng) -> Any:
    """Return a drawing of a thing as an RGBA image; no two are equal."""
    from PIL import Image, ImageDraw, ImageOps

    proportion, _, shapes = _THINGS[name].partition(": ")
    width = float(proportion) * rng.uniform(0.85, 1.15) * rng.uniform(26, 50)
    height = width / float(proportion)
    scale = min(1, (_COLUMN - 4) / width, 70 / height)
    size = (round(width * scale), round(height * scale))
    image = Image.new("RGBA", size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    shade = rng.normal(0, 30, 3)
    colours = {
        paint: tuple((np.array(rgb) + shade).clip(0, 255).astype(int).tolist()) for paint, rgb in _PAINTS.items()
    }
    for paint, kind, points in _shapes(shapes, size):
        {"oval": pen.ellipse, "box": pen.rectangle, "shape": pen.polygon}[kind](points, fill=colours[paint])
    return ImageOps.mirror(image) if rng.random() < 0.5 else image


def _shapes(text: str, size: tuple[int, int]) -> Iterator[tuple[str, str, list[tuple[float, float]]]]:
    for shape in text.split(", "):
        paint, kind, *numbers = shape.split()
        pairs = zip(map(float, numbers[::2]), map(float, numbers[1::2]), strict=True)
        yield paint, kind, [(x * (size[0] - 1), y * (size[1] - 1)) for x, y in pairs]


def read_photo(path: Path) -> npt.NDArray[np.uint8]:
    """Return the pixels of a photo, shape (height, width, 3)."""
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image)
