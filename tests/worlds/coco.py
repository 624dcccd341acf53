"""COCO's twelve numbers on the objects of the OSOD-III world, by a matcher in loops (not pycocotools)."""

import json
from pathlib import Path
from typing import Any

from tests.worlds import osod3, osod3_reference

NAMES = (*osod3.KNOWN, *osod3.HIDDEN, *osod3.OUTSIDE)


def files(folder: Path) -> dict[str, Path]:
    """Write ground truth and detections with numbers for ids."""
    things, guesses = osod3.drawn()
    content: dict[str, Any] = {
        "truth": {
            "images": [
                {"id": k, "file_name": f"{k}.jpg", "width": 640, "height": 480}
                for k in range(1, osod3.N_IMAGES + 1)
            ],
            "annotations": [
                {
                    "id": k,
                    "image_id": thing.image,
                    "category_id": NAMES.index(thing.label) + 1,
                    "bbox": list(thing.box),
                    "area": thing.box[2] * thing.box[3],
                    "iscrowd": int(thing.crowd),
                }
                for k, thing in enumerate(things, 1)
            ],
            "categories": [{"id": k, "name": name} for k, name in enumerate(NAMES, 1)],
        },
        "detections": [
            {
                "image_id": guess.image,
                "category_id": NAMES.index(guess.label) + 1,
                "bbox": list(guess.box),
                "score": guess.score / 100,
            }
            for guess in guesses
            if guess.label in NAMES
        ],
    }
    paths = {name: folder / f"{name}.json" for name in content}
    for name, path in paths.items():
        path.write_text(json.dumps(content[name]), encoding="utf-8")
    return paths


def expected() -> dict[str, Any]:
    things, guesses = osod3.drawn()
    return osod3_reference.coco_numbers(things, guesses, NAMES, osod3.N_IMAGES)
