"""A list of textures, a table of somebody's verdicts on half of it, and scores of its images and of ID ones."""

import random
from pathlib import Path

from curation.core.canonical import sha256_of_lines
from curation.manifest.header import SCHEMA_VERSION, Header, LabelView, Paper, PartEntry, Rule, SourceEntry
from curation.manifest.manifest import Manifest
from curation.sources.datasets import licence_facts

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
    textures_manifest().save(folder / "textures")


def textures_manifest() -> Manifest:
    """Return the list of textures as a manifest, in its order."""
    ids, facts = tuple(f"dtd:{path.removesuffix('.jpg')}" for path in TEXTURES), licence_facts("dtd")
    source = SourceEntry(
        name="textures",
        dataset="textures",
        part="list",
        namespace="dtd",
        licence=facts.licence,
        media_redistributable=facts.media_redistributable,
        files=(),
    )
    part = PartEntry(
        name="textures",
        role="test",
        sources=("textures",),
        selection="The published list, in its order.",
        view=LabelView(),
        order="listed",
        images=len(ids),
        sha256=sha256_of_lines(ids),
    )
    header = Header(
        schema_version=SCHEMA_VERSION,
        name="textures",
        version="1.0.0",
        title="A list of textures",
        paper=Paper(title="A list", authors="not stated", year=0, venue="not stated", bibtex=""),
        taxonomy="OSC",
        origin="as_published",
        classes=(),
        parts=(part,),
        sources=(source,),
        rule=Rule(protocol="as_published", algorithm_version=1, parameters={"textures": "test_textures.txt"}),
    )
    return Manifest(header, {"textures": ids})
