"""Small COCO files for the tests of the OWOD evaluation."""

import json
from collections.abc import Sequence
from pathlib import Path


def truth_file(
    folder: Path,
    classes: Sequence[str],
    n_images: int,
    objects: Sequence[tuple[int, str]],
    *,
    name: str = "{:012d}.jpg",
) -> Path:
    """Write a COCO file; images and categories are numbered from 1, all objects (image, class) have one box."""
    data = {
        "images": [
            {"id": k, "file_name": name.format(k), "width": 99, "height": 99} for k in range(1, n_images + 1)
        ],
        "annotations": [
            {
                "id": k,
                "image_id": image,
                "category_id": classes.index(kind) + 1,
                "bbox": [10, 10, 20, 20],
                "area": 400,
                "iscrowd": 0,
            }
            for k, (image, kind) in enumerate(objects, 1)
        ],
        "categories": [{"id": k, "name": kind} for k, kind in enumerate(classes, 1)],
    }
    path = folder / "truth.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path
