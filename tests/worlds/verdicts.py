"""A list of textures, a table of somebody's verdicts on half of it, and scores of its images and of ID ones."""

import random
from pathlib import Path

from tests.worlds.listed_manifest import manifest_of_lists

CLASSES = ("banded", "dotted", "woven")
TEXTURES = [f"{name}/{name}_{number:04d}.jpg" for name in CLASSES for number in range(20)]
SAID = ["i", "i", *"o" * 20, "u", "u", "u", *"o" * 5]
"""Of the first 30 images of the list; the others are unjudged."""


def lay(folder: Path) -> None:
    """Draw imglists of ID images and textures, a table of verdicts on some, and scores of all."""
    rng = random.Random(3)
    ids = [f"imagenet_1k/val/ILSVRC2012_val_{number:08d}.JPEG" for number in range(1, 101)]
    (folder / "lists").mkdir()
    (folder / "scores").mkdir()
    textures = [f"texture/{path}" for path in TEXTURES]
    for name, paths, label in (("imagenet", ids, 0), ("textures", textures, -1)):
        (folder / f"lists/test_{name}.txt").write_text("".join(f"{path} {label}\n" for path in paths))
        rows = "".join(f"{path},{rng.gauss(label + 2.5 * (path == textures[0]), 1):.6f}\n" for path in paths)
        (folder / f"scores/{name}.csv").write_text(f"image,score\n{rows}")
    rows = [f"{number},textures/images/{TEXTURES[number]},{code}" for number, code in enumerate(SAID)]
    gone = "990,textures/images/bubbly/bubbly_0001.jpg,i"
    lines = ["index,image_location,decision", *rows, gone, "999,textures/images/woven/woven_0019.jpg,"]
    (folder / "textures.csv").write_text("".join(f"{line}\n" for line in lines))
    ids = [f"dtd:{path.removesuffix('.jpg')}" for path in TEXTURES]
    made = manifest_of_lists({"textures": ids}, name="textures", source="textures", namespace="dtd", order="listed")
    made.save(folder / "textures")
