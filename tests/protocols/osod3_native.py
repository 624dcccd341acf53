"""Open Images and MTSD drawn in their native layouts, at a size at which protocols are run."""

from pathlib import Path

import numpy as np

from tests.protocols.osod3_world import INNER_NODES, SUPERCLASSES
from tests.sources.openimages_files import HEADER

LABELS = (*SUPERCLASSES["vehicle"], *INNER_NODES["vehicle"], "/m/0tree", "/m/0wheel", "/m/0person")
PARTS = {"train": 20_000, "validation": 1_000, "test": 2_500}


def write_open_images(root: Path) -> Path:
    """Write box CSVs of three parts, class descriptions and image sizes; one box in nine is around a group."""
    root.mkdir(parents=True)
    descriptions = [f"{label},Thing {place}\n" for place, label in enumerate(LABELS)]
    (root / "class-descriptions-boxable.csv").write_text("".join(descriptions))
    frequency = 1 / np.arange(1, len(LABELS) + 1) ** 0.7
    for number, (part, images) in enumerate(PARTS.items()):
        rng = np.random.default_rng(number)
        label = rng.choice(len(LABELS), (images, 4), p=frequency / frequency.sum())
        left, top = rng.integers(0, 60, (2, images, 4)) / 100
        wide, high = rng.integers(10, 40, (2, images, 4)) / 100
        group = rng.random((images, 4)) < 1 / 9
        rows, sizes = [HEADER], ["image_id,width,height"]
        for image in range(images):
            name = f"{number:04x}{image:012x}"
            sizes.append(f"{name},1024,768")
            for box in range(1 + image % 4):
                x, y, w, h = (float(one[image, box]) for one in (left, top, wide, high))
                rows.append(
                    f"{name},xclick,{LABELS[label[image, box]]},1,{x:.6f},{x + w:.6f},{y:.6f},{y + h:.6f},"
                    f"0,0,{int(group[image, box])},0,0"
                )
        (root / f"{part}-annotations-bbox.csv").write_text("\n".join(rows) + "\n")
        (root / f"{part}-image-sizes.csv").write_text("\n".join(sizes) + "\n")
    return root
