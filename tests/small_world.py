"""A small pair of datasets in native layouts, for tests of whole commands: VOC2007 XML and COCO JSON."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.benchmarks.elephant import lists as elephant
from curation.manifest.manifest import write_manifest
from curation.sources.coco import read_coco
from curation.sources.voc import read_voc

KNOWN = {"aeroplane": 5, "bird": 16, "cat": 17, "dog": 18, "person": 1}
UNKNOWN = {"elephant": 22, "zebra": 24, "pizza": 59}
COCO_NAMES = {5: "airplane", 16: "bird", 17: "cat", 18: "dog", 1: "person", 22: "elephant", 24: "zebra", 59: "pizza"}
SIZE = 320


@dataclass(frozen=True)
class SmallWorld:
    """Where the files lie, and what stands in them."""

    voc_root: Path
    coco_json: Path
    closed: list[str]
    wilderness: list[int]
    with_known: list[int]

    def arguments(self) -> list[str]:
        """Return the options that name both as sources."""
        return ["--source", f"voc2007-test={self.voc_root}", "--source", f"coco={self.coco_json}"]


def write_small_world(folder: Path, *, n_closed: int = 40, n_wilderness: int = 60, seed: int = 7) -> SmallWorld:
    """Write both datasets; every fifth wilderness image has no annotation, every seventh VOC object is difficult."""
    rng = random.Random(seed)
    closed = _write_voc(folder / "VOCdevkit" / "VOC2007", n_closed, rng)
    wilderness, with_known = _write_coco(folder / "coco" / "annotations", n_wilderness, rng)
    return SmallWorld(
        folder / "VOCdevkit" / "VOC2007",
        folder / "coco" / "annotations" / "instances_train2017.json",
        closed,
        wilderness,
        with_known,
    )


def _corners(rng: random.Random) -> tuple[int, int, int, int]:
    x, y = rng.randint(1, SIZE // 2), rng.randint(1, SIZE // 2)
    return x, y, x + rng.randint(20, SIZE // 2 - 1), y + rng.randint(20, SIZE // 2 - 1)


def _write_voc(root: Path, n_images: int, rng: random.Random) -> list[str]:
    (root / "Annotations").mkdir(parents=True)
    (root / "ImageSets" / "Main").mkdir(parents=True)
    stems = [f"{number:06d}" for number in range(1, 2 * n_images, 2)]
    serial = 0
    for stem in stems:
        objects = ""
        for _ in range(rng.randint(1, 4)):
            serial += 1
            x1, y1, x2, y2 = _corners(rng)
            objects += (
                f"<object><name>{rng.choice(sorted(KNOWN))}</name><pose>Left</pose><truncated>0</truncated>"
                f"<difficult>{int(serial % 7 == 0)}</difficult><bndbox><xmin>{x1}</xmin><ymin>{y1}</ymin>"
                f"<xmax>{x2}</xmax><ymax>{y2}</ymax></bndbox></object>"
            )
        (root / "Annotations" / f"{stem}.xml").write_text(
            f"<annotation><folder>VOC2007</folder><filename>{stem}.jpg</filename><size><width>{SIZE}</width>"
            f"<height>{SIZE}</height><depth>3</depth></size>{objects}</annotation>",
            encoding="utf-8",
        )
    (root / "ImageSets" / "Main" / "test.txt").write_text("".join(f"{stem}\n" for stem in stems))
    return stems


def _write_coco(folder: Path, n_wilderness: int, rng: random.Random) -> tuple[list[int], list[int]]:
    folder.mkdir(parents=True)
    numbers = rng.sample(range(9, 580_000), n_wilderness + n_wilderness // 2)
    wilderness, with_known = numbers[:n_wilderness], numbers[n_wilderness:]
    annotations: list[dict[str, object]] = []

    def add(image: int, category: int, crowd: int = 0) -> None:
        x1, y1, x2, y2 = _corners(rng)
        box = [x1 + 0.25, y1 + 0.5, x2 - x1 + 0.0, y2 - y1 + 0.75]
        annotations.append(
            {
                "id": len(annotations) + 1,
                "image_id": image,
                "category_id": category,
                "bbox": box,
                "area": box[2] * box[3] / 2,
                "iscrowd": crowd,
                "segmentation": [[x1, y1, x2, y1, x2, y2]],
            }
        )

    for position, image in enumerate(wilderness):
        for _ in range(0 if position % 5 == 4 else rng.randint(1, 3)):
            add(image, rng.choice(sorted(UNKNOWN.values())))
    for position, image in enumerate(with_known):
        add(image, rng.choice(sorted(KNOWN.values())), crowd=int(position % 6 == 0))
        add(image, rng.choice(sorted(UNKNOWN.values())))
    images = [{"id": number, "file_name": f"{number:012d}.jpg", "width": SIZE, "height": SIZE} for number in numbers]
    rng.shuffle(images)
    content = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": n, "name": name, "supercategory": "thing"} for n, name in COCO_NAMES.items()],
    }
    (folder / "instances_train2017.json").write_text(json.dumps(content), encoding="utf-8")
    return wilderness, with_known


def write_detections(truth_json: Path, results_json: Path, *, seed: int = 1) -> None:
    """Write COCO results near the objects of an exported truth file, some of them wrong."""
    rng = random.Random(seed)
    truth = json.loads(truth_json.read_text(encoding="utf-8"))
    known = sorted(category["id"] for category in truth["categories"] if category["id"] > 0)
    results = []
    for annotation in truth["annotations"]:
        label = annotation["category_id"] if annotation["category_id"] in known else rng.choice(known)
        if rng.random() < 0.2:
            label = rng.choice(known)
        x, y, width, height = annotation["bbox"]
        box = [x + rng.uniform(-9, 9), y + rng.uniform(-9, 9), width, height]
        results.append(
            {
                "image_id": annotation["image_id"],
                "category_id": label,
                "bbox": box,
                "score": round(rng.uniform(0.05, 1), 4),
            }
        )
    results_json.write_text(json.dumps(results), encoding="utf-8")


def write_elephant(world: SmallWorld, parameters: Mapping[str, Any]) -> Path:
    """Build the Elephant manifest of both datasets beside them, and return its folder."""
    sources = {
        "voc2007-test": read_voc(world.voc_root, "voc2007", "test"),
        "coco": read_coco(world.coco_json, dataset="coco", part="train2017"),
    }
    folder = world.coco_json.parents[2] / "manifest"
    write_manifest(elephant.build(sources, parameters), folder)
    return folder
