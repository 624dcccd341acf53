"""Small COCO files for the tests of the OWOD evaluation."""

from collections.abc import Sequence
from pathlib import Path

from tests.worlds.coco_file import coco_content, write_json


def truth_file(
    folder: Path,
    classes: Sequence[str],
    n_images: int,
    objects: Sequence[tuple[int, str]],
    *,
    name: str = "{:012d}.jpg",
) -> Path:
    """Write a COCO file; images and categories are numbered from 1, all objects (image, class) have one box."""
    images = {k: name.format(k) for k in range(1, n_images + 1)}
    rows = [(image, kind, [10, 10, 20, 20]) for image, kind in objects]
    return write_json(folder / "truth.json", coco_content(images, rows, classes, size=(99, 99)))
