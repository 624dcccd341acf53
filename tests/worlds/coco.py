"""COCO's twelve numbers on the objects of the OSOD-III world, by a matcher in loops (not pycocotools)."""

from pathlib import Path
from typing import Any

from tests.worlds import osod3, osod3_reference
from tests.worlds.coco_file import coco_content, write_all

NAMES = (*osod3.KNOWN, *osod3.HIDDEN, *osod3.OUTSIDE)


def files(folder: Path) -> dict[str, Path]:
    """Write ground truth and detections with numbers for ids."""
    things, guesses = osod3.drawn()
    rows = [(thing.image, thing.label, thing.box, {"iscrowd": int(thing.crowd)}) for thing in things]
    images = {k: f"{k}.jpg" for k in range(1, osod3.N_IMAGES + 1)}
    content: dict[str, Any] = {
        "truth": coco_content(images, rows, NAMES),
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
    return write_all(folder, content)


def expected() -> dict[str, Any]:
    things, guesses = osod3.drawn()
    return osod3_reference.coco_numbers(things, guesses, NAMES, osod3.N_IMAGES)
