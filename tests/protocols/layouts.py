"""Drawn annotations in the layouts that users have: COCO JSON, a Roboflow export, a YOLO and a VOC folder."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.sources.test_voc import an_object, document
from tests.worlds.coco_file import coco_content

LAYOUTS = ("coco", "roboflow", "yolo", "voc")
Boxes = Mapping[str, Sequence[str]]


def shown(rng: random.Random, names: Sequence[str], count: int, first: str, most: int = 3) -> dict[str, list[str]]:
    """Return images with up to `most` classes each, in no order."""
    images = [f"{first}{number:03d}" for number in range(count)]
    rng.shuffle(images)
    return {image: [rng.choice(names) for _ in range(rng.randint(0, most))] for image in images}


def as_coco(images: Boxes, names: Sequence[str]) -> dict[str, Any]:
    """Return the annotations as COCO JSON: the classes of an image side by side."""
    rows = [(image, name, [20 * k, 5, 15, 15]) for image, shows in images.items() for k, name in enumerate(shows)]
    numbers = {name: number for number, name in enumerate(names, 1)}
    return coco_content(images.keys(), rows, numbers, size=(99, 99))


def lay(folder: Path, layout: str, parts: Mapping[str, Boxes], names: Sequence[str]) -> dict[str, str]:
    """Write the parts ``train`` and ``test`` in a layout and return the path of each, to be given as a source."""
    root = folder / "data"
    if layout == "coco":
        for part, images in parts.items():
            write(folder / f"{part}.json", json.dumps(as_coco(images, names)))
        return {part: f"{part}.json" for part in parts}
    if layout == "roboflow":
        # Its category 0 is a root without boxes.
        for part, images in parts.items():
            write(root / part / "_annotations.coco.json", json.dumps(as_coco(images, ["things", *names])))
        return dict.fromkeys(parts, "data")
    for part, images in parts.items():
        for image, shows in images.items():
            if layout == "yolo":
                labels = [f"{names.index(name)} {(20 * k + 7.5) / 99} {12.5 / 99} {15 / 99} {15 / 99}\n"
                          for k, name in enumerate(shows)]  # fmt: skip
                write(root / part / "labels" / f"{image}.txt", "".join(labels))
                photo(root / part / "images" / f"{image}.png")
            else:
                boxes = [an_object(name=name, xmin=20 * k + 1, ymin=6, xmax=20 * k + 15, ymax=20)
                         for k, name in enumerate(shows)]  # fmt: skip
                size = "<width>99</width><height>99</height>"
                write(root / "Annotations" / f"{image}.xml", document(*boxes, stem=image, size=size))
        if layout == "voc":
            write(root / "ImageSets" / "Main" / f"{part}.txt", "".join(f"{image}\n" for image in images))
    if layout == "yolo":
        listed = "".join(f"{part}: {part}/images\n" for part in parts)
        write(root / "data.yaml", f"{listed}names: {json.dumps(list(names))}\n")
    return dict.fromkeys(parts, "data")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def photo(path: Path) -> None:
    """Write a photo of its own: equal ones prove that two images are one."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.frombytes("L", (99, 99), random.Random(path.stem).randbytes(99 * 99)).save(path)
