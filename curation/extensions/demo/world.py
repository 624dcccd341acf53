"""A small drawn world on disk in the layouts of VOC and COCO: photos, XML, image sets, instances JSON.

A photo shows sky and ground with up to three things side by side. A VOC detector knows six kinds of things, and may
mistake the nine others for them (a truck for a car, a vase for a bottle, a laptop for a screen).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from curation.core.writing import write_bytes, write_text

Rng = np.random.Generator
Pixels = npt.NDArray[np.uint8]

WIDTH, HEIGHT = 160, 120
MOST_COCO_IMAGES = 9_991
_COLUMN = 53  # pixels, a third of a photo
_FACTS = tomllib.loads(files(__package__).joinpath("things.toml").read_text(encoding="utf-8"))
_THINGS: dict[str, dict[str, Any]] = _FACTS["things"]
KNOWN, UNKNOWN = tuple(_THINGS)[:6], tuple(_THINGS)[6:]


class Thing(NamedTuple):
    """One object of a photo: its name, and its box ``x, y, w, h`` in whole pixels."""

    name: str
    box: tuple[int, int, int, int]


class World(NamedTuple):
    """Paths of the two datasets, and of a file with the class names (``known``, ``unknown``)."""

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
        boxes = _write_photo(root / "JPEGImages" / f"{stem}.jpg", _several(KNOWN, rng), rng)
        objects = "".join(
            f"<object><name>{name}</name><pose>Unspecified</pose><truncated>0</truncated><difficult>0</difficult><bndbox>"
            f"<xmin>{x + 1}</xmin><ymin>{y + 1}</ymin><xmax>{x + w}</xmax><ymax>{y + h}</ymax></bndbox></object>\n"
            for name, (x, y, w, h) in boxes
        )
        size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>\n"
        text = f"<annotation>\n<filename>{stem}.jpg</filename>\n{size}{objects}</annotation>\n"
        write_text(root / "Annotations" / f"{stem}.xml", text, guarded=False)
    lines = "".join(f"{number:06d}\n" for number in numbers)
    write_text(root / "ImageSets" / "Main" / f"{part}.txt", lines, guarded=False)


def _write_coco(world: World, n_images: int, rng: Rng) -> None:
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    # As in COCO, the numbers are scattered; some equal numbers of VOC.
    numbers = sorted((rng.choice(MOST_COCO_IMAGES, n_images, replace=False) + 9).tolist())
    for number in tqdm(numbers, desc="drawing COCO train2017", disable=None):
        chance, name = rng.random(), f"{number:012d}.jpg"
        names = [] if chance < 0.04 else _several(UNKNOWN, rng)
        if chance >= 0.64:
            names = [*names[:2], str(rng.choice(KNOWN))]
        images.append({"license": 1, "file_name": name, "height": HEIGHT, "width": WIDTH, "id": number})
        for kind, (x, y, w, h) in _write_photo(world.coco_root / "train2017" / name, names, rng):
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": _THINGS[kind]["coco"][0],
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
        "categories": [
            {"id": number, "name": name} for number, name in sorted(facts["coco"] for facts in _THINGS.values())
        ],
    }
    write_text(world.coco_json, json.dumps(content), guarded=False)


def _several(names: Sequence[str], rng: Rng) -> list[str]:
    """Return one to three names."""
    return [str(name) for name in rng.choice(names, int(rng.integers(1, 4)))]


def _write_photo(path: Path, names: Sequence[str], rng: Rng) -> list[Thing]:
    from PIL import Image

    pixels, boxes = draw_scene(names, rng)
    stream = BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=90)
    write_bytes(path, stream.getvalue(), guarded=False)
    return boxes


def draw_scene(names: Sequence[str], rng: Rng) -> tuple[Pixels, list[Thing]]:
    """Return a photo of up to three things side by side, shape (HEIGHT, WIDTH, 3), and their boxes."""
    horizon = int(rng.integers(38, 62))
    scene = np.empty((HEIGHT, WIDTH, 3))
    scene[:horizon] = np.array([158, 192, 222]) + rng.normal(0, 12, 3)
    scene[horizon:] = np.array([112, 142, 84]) + rng.normal(0, 12, 3)
    boxes = []
    for column, name in zip(rng.permutation(3).tolist(), names, strict=False):
        proportion = _THINGS[name]["proportion"] * rng.uniform(0.85, 1.15)
        width = min(rng.uniform(26, 50), 70 * proportion, _COLUMN - 4)
        size = (round(width), max(8, round(width / proportion)))
        x = column * _COLUMN + int(rng.integers(1, _COLUMN - size[0]))
        y = int(rng.integers(4, HEIGHT - size[1]))
        colours, cover = draw_thing(name, *size, rng)
        window = scene[y : y + size[1], x : x + size[0]]
        window += cover[..., None] * (colours - window)
        rows, columns = np.flatnonzero(cover.any(axis=1)), np.flatnonzero(cover.any(axis=0))
        left, top = int(columns[0]), int(rows[0])
        boxes.append(Thing(name, (x + left, y + top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top)))
    noisy = scene * rng.uniform(0.85, 1.12) + rng.normal(0, rng.uniform(3, 8), scene.shape)
    return noisy.clip(0, 255).astype(np.uint8), boxes


def draw_thing(name: str, width: int, height: int, rng: Rng) -> tuple[Pixels, npt.NDArray[np.float64]]:
    """Return colours, shape (height, width, 3), and coverage from 0 to 1, shape (height, width); no two are equal."""
    from PIL import Image, ImageDraw

    image = Image.new("RGBA", (width, height), (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    shade = rng.normal(0, 30, 3)
    for shape in _THINGS[name]["drawn"]:
        paint, kind, *corners = shape.split()
        points = [float(at) * (size - 1) for at, size in zip(corners, image.size * (len(corners) // 2), strict=True)]
        colour = tuple((np.array(_FACTS["paints"][paint]) + shade).clip(0, 255).astype(int).tolist())
        {"oval": pen.ellipse, "box": pen.rectangle, "shape": pen.polygon}[kind](points, fill=colour)
    pixels = np.asarray(image)[:, :: -1 if rng.random() < 0.5 else 1]
    return pixels[..., :3], pixels[..., 3] / 255


def read_picture(path: Path) -> Pixels:
    """Return the pixels of a photo, shape (height, width, 3)."""
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image)
