"""Open Images and MTSD drawn in their native layouts, at a size at which protocols are run."""

import json
from pathlib import Path

import numpy as np

from curation.benchmarks.osod3.lists import INNER_NODES, SUPERCLASSES
from tests.sources.openimages_files import HEADER

LABELS = (*SUPERCLASSES["vehicle"], *INNER_NODES["vehicle"], "/m/0tree", "/m/0wheel", "/m/0person")
PARTS = {"train": 20_000, "validation": 1_000, "test": 2_500}
SIGNS = tuple(f"regulatory--sign-{place:03}--g1" for place in range(400))
GROUPS = (SIGNS[:230], SIGNS[230:285], SIGNS[285:])


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


def write_signs(root: Path, images: int = 6_000) -> Path:
    """Write splits and one JSON an image: three groups of signs that keep to themselves but for one sign in fifty."""
    rng = np.random.default_rng(7)
    (root / "annotations").mkdir(parents=True)
    (root / "splits").mkdir()
    keys: dict[str, list[str]] = {"train": [], "val": [], "test": ["unannotated"]}
    chances = [1 / np.arange(1, len(group) + 1) ** 0.5 for group in GROUPS]
    for image in range(images):
        which = int(rng.choice(3, p=(0.58, 0.14, 0.28)))
        group, chance = GROUPS[which], chances[which]
        shown = [group[place] for place in rng.choice(len(group), int(rng.integers(2, 6)), p=chance / chance.sum())]
        # Every sign is met, each beside the next of its group, so that no group falls apart.
        if image < len(SIGNS):
            own = next(one for one in GROUPS if SIGNS[image] in one)
            shown = [SIGNS[image], own[(own.index(SIGNS[image]) + 1) % len(own)]]
        shown = [SIGNS[int(rng.integers(400))] if rng.random() < 0.02 else one for one in shown]
        key = f"k{image:05}"
        keys["val" if image % 5 == 4 else "train"].append(key)
        objects = [_sign(label, place) for place, label in enumerate([*shown, "other-sign"])]
        photo = {"width": 2048, "height": 1536, "ispano": False, "objects": objects}
        if image % 100 == 0:
            photo["ispano"] = True
            objects.append(
                _sign(SIGNS[0], 9) | {"bbox": {"xmin": 2040, "ymin": 5, "xmax": 12, "ymax": 40, "cross_boundary": {}}}
            )
        (root / "annotations" / f"{key}.json").write_text(json.dumps(photo))
    for part, names in keys.items():
        (root / "splits" / f"{part}.txt").write_text("".join(f"{name}\n" for name in names))
    return root


def _sign(label: str, place: int) -> dict[str, object]:
    box = {"xmin": 100 * place + 10.5, "ymin": 20, "xmax": 100 * place + 60, "ymax": 90.25}
    return {"key": str(place), "label": label, "bbox": box, "properties": {"occluded": place == 1}}
