"""COCO annotation files of drawn scenes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = tuple[Any, ...]
"""An object: image id, class, box ``x, y, w, h``, and more fields where there are any (they replace those made)."""


def coco_content(
    images: Iterable[int | str] | Mapping[int | str, str] | Mapping[int, str] | Mapping[str, str],
    rows: Iterable[Row],
    classes: Sequence[str] | Mapping[str, int],
    *,
    size: tuple[int, int] = (640, 480),
) -> dict[str, Any]:
    """Return the content of a file: images by id (with file names, or named by it), objects, numbers of the classes.

    Classes without numbers are numbered from 1. An object's area is that of its box, and it is no crowd.
    """
    names = images if isinstance(images, Mapping) else {one: file_name(one) for one in images}
    numbers = classes if isinstance(classes, Mapping) else {one: k for k, one in enumerate(classes, 1)}
    return {
        "images": [{"id": one, "file_name": name, "width": size[0], "height": size[1]} for one, name in names.items()],
        "annotations": [
            {
                "id": place,
                "image_id": image,
                "category_id": numbers[name],
                "bbox": list(box),
                "area": box[2] * box[3],
                "iscrowd": 0,
                **(more[0] if more else {}),
            }
            for place, (image, name, box, *more) in enumerate(rows, 1)
        ],
        "categories": [{"id": number, "name": name} for name, number in numbers.items()],
    }


def file_name(image: int | str) -> str:
    return f"{image:012d}.jpg" if isinstance(image, int) else f"{image}.jpg"


def write_json(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def write_all(folder: Path, content: Mapping[str, object]) -> dict[str, Path]:
    """Write ``NAME.json`` for each, and return the paths by name."""
    return {name: write_json(folder / f"{name}.json", one) for name, one in content.items()}
