"""The worked example of the OSOD-III protocol, checkable by hand, and small random problems."""

from pathlib import Path
from typing import Any

import numpy as np

from tests.worlds.coco_file import coco_content, write_all

KNOWN, UNKNOWN = ["cat", "dog", "fox"], ["lynx"]
NAMES = [*KNOWN, *UNKNOWN, "teapot"]
OBJECTS: list[tuple[int, str, list[float], int]] = [
    (1, "cat", [10, 10, 100, 100], 0),
    (1, "lynx", [200, 10, 100, 100], 0),
    (2, "dog", [10, 10, 80, 80], 0),
    (2, "lynx", [300, 200, 50, 50], 0),
    (2, "teapot", [100, 300, 60, 60], 0),
    (3, "cat", [50, 50, 60, 60], 1),
    (3, "cat", [200, 200, 40, 40], 0),
]
DETECTIONS: list[tuple[int, str, float, list[float]]] = [
    (1, "cat", 0.90, [10, 10, 100, 100]),
    (1, "cat", 0.80, [200, 10, 100, 100]),
    (1, "unknown", 0.70, [200, 10, 100, 90]),
    (1, "dog", 0.60, [10, 10, 100, 100]),
    (2, "dog", 0.95, [10, 10, 80, 80]),
    (2, "dog", 0.50, [12, 10, 80, 80]),
    (2, "unknown", 0.99, [100, 300, 60, 60]),
    (2, "fox", 0.05, [300, 200, 50, 40]),
    (3, "cat", 0.85, [60, 60, 20, 20]),
    (3, "cat", 0.30, [200, 200, 40, 40]),
]


def write_world(
    folder: Path,
    objects: list[tuple[int, str, list[float], int]] = OBJECTS,
    detections: list[tuple[int, str, float, list[float]]] = DETECTIONS,
    *,
    images: int = 3,
    text_ids: bool = False,
) -> dict[str, Path]:
    """Write ``gt.json``, ``detections.json`` and ``classes.json``; ids are numbers, or hexadecimal texts."""

    def name(image: int) -> int | str:
        return f"{image:016x}" if text_ids else image

    rows = [(name(image), label, box, {"iscrowd": crowd}) for image, label, box, crowd in objects]
    truth = coco_content({name(k): f"{k}.jpg" for k in range(1, images + 1)}, rows, NAMES)
    found = [
        {"image_id": name(image), "category": label, "score": score, "bbox": box}
        for image, label, score, box in detections
    ]
    classes = {"known": KNOWN, "unknown": UNKNOWN}
    return write_all(folder, {"gt": truth, "detections": found, "classes": classes})


def random_world(seed: int, images: int = 6) -> tuple[list[Any], list[Any]]:
    """Objects and detections near them, with crowds, ties, outside classes and unknown detections."""
    rng = np.random.default_rng(seed)
    objects: list[Any] = []
    detections: list[Any] = []
    for image in range(1, images + 1):
        for _ in range(int(rng.integers(0, 5))):
            box = [float(x) for x in (*rng.integers(0, 200, 2), *rng.integers(20, 120, 2))]
            objects.append((image, NAMES[int(rng.integers(5))], box, int(rng.random() < 0.15)))
        near = [one[2] for one in objects if one[0] == image]
        for _ in range(int(rng.integers(0, 9))):
            box = near[int(rng.integers(len(near)))] if near and rng.random() < 0.8 else [5.0, 5.0, 60.0, 60.0]
            moved = [float(x) for x in np.array(box) + rng.integers(-12, 13, 4)]
            moved[2:] = [max(5.0, side) for side in moved[2:]]
            label = [*KNOWN, "unknown"][int(rng.integers(4))]
            detections.append((image, label, round(float(rng.random()), 1), moved))
    return objects, detections
