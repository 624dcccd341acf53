"""What the Elephant protocol states before any file is read: its paper, its classes, its rules in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curation.manifest.header import ClassEntry, LabelView, Paper, Supersedes
from curation.sources.coco_categories import COCO_CATEGORIES
from curation.sources.datasets import COCO_NAMES_OF_VOC
from curation.sources.source import Source

PAPER = Paper(
    title="The Overlooked Elephant of Object Detection: Open Set",
    authors="Akshay Dhamija, Manuel Günther, Jonathan Ventura, Terrance Boult",
    year=2020,
    venue="WACV",
    bibtex=(
        "@inproceedings{dhamija2020overlooked, title={The Overlooked Elephant of Object Detection: Open Set}, "
        'author={Dhamija, Akshay and G{\\"u}nther, Manuel and Ventura, Jonathan and Boult, Terrance}, '
        "booktitle={Proceedings of the IEEE/CVF Winter Conference on Applications of Computer Vision (WACV)}, "
        "year={2020}}"
    ),
)

KNOWN = tuple(COCO_NAMES_OF_VOC.items())
"""VOC name and COCO name of the 20 known classes; the category id in the output is the place in this list, from 1."""

UNKNOWN = tuple(sorted({name for _, name, _ in COCO_CATEGORIES} - set(COCO_NAMES_OF_VOC.values())))
"""The 60 COCO classes that VOC lacks. They have no category id of their own: their objects become unknown, -1."""

CLOSED, COCO = "voc2007-test", "coco"
TRAINING = ("voc2007-train", "voc2007-val", "voc2012-train", "voc2012-val")

TEST_VIEW = LabelView()
# The notebook deletes the difficult flag, so the paper's detectors were trained on difficult objects too.
TRAINING_VIEW = LabelView(difficult="keep")

CLOSED_RULE = (
    "All images of VOC2007 test. Difficult objects are kept and flagged: ignored by the paper's reading, ordinary "
    "ground truth in the official code, which deletes the flag."
)
WILDERNESS_RULE = (
    "Images without any annotation of the 20 known classes, whatever its size, crowd regions included; images without "
    "any annotation are in (Protocol_Creator.ipynb, cell 10: all images minus the union of getImgIds per class)."
)
TRAINING_RULE = (
    "All images; difficult objects are ordinary ground truth, as in the authors' custom_voc_*.json."
)
LEVELS = "level k uses the first k*N//10 wilderness images by ascending id, N = images of the closed part"

WR1: Mapping[str, Any] = {
    "images": 4952,
    "annotated_images": 4716,
    "sha256": "sha256:bb2490698ee3a1c2a118e722cc10ab2007327d7937e0b1ae5435a3f9e6cc426b",
}
"""Part wr1 of as many images as VOC2007 test has: the list that converted copies of it, the images without annotation
and the order of CPython's set give together (docs/wr1.md)."""

DECLARED_VERSION = "1.1.0"
DECLARED_BEFORE = Supersedes(
    version="1.0.0",
    digest="sha256:676cb8cc8a3c5672d939b759014ff447b77baeca949c267a956f5f89fac1b266",
    reason="WR1, lost with the authors' files, is proved from public lists: its list is here, exact",
)
DECLARED_NOTES = (
    "WR1 is exact: 4,716 images that two groups published as converted copies, and the 236 images without annotation "
    "whose number mod 131072 is at most 24883 (docs/wr1.md). `curation build` has to reach the digest of this list.",
    "Of the full wilderness 22,990 images are certain and 18 more are open; the paper's 23,008 needs all of them "
    "(docs/wr1.md). The lists of wilderness and wr1-hash need instances_train2017.json: `curation build` completes "
    "them and checks them.",
)

ORDER_RULES = {
    "cpython_set": (
        "the iteration order of CPython's set of image numbers, set(coco.imgs) - known, as the notebook takes it "
        "(emulated; CPython 3.7 to 3.13), the numbers entering in ascending order"
    ),
    "cpython_set_as_listed": (
        "the iteration order of CPython's set of image numbers, set(coco.imgs) - known, the numbers entering in the "
        "order of the COCO file, which the notebook does"
    ),
    "hash": "the rank of sha256(salt + id): nested, stable when data grows",
    "id": "ascending image id",
}
ORDER_SUFFIX = {"cpython_set": "", "cpython_set_as_listed": "-as-listed", "hash": "-hash", "id": "-id"}


def class_entries(coco: Source | None = None) -> tuple[ClassEntry, ...]:
    """Return the 20 known classes with ids 1 to 20, then every other class as unknown, by name."""
    known = [
        ClassEntry(name=voc, role="known", index=index, aliases=() if voc == name else (name,))
        for index, (voc, name) in enumerate(KNOWN, start=1)
    ]
    named = {name for pair in KNOWN for name in pair}
    others = {*UNKNOWN, *(coco.categories.names if coco is not None else ())} - named
    return (*known, *(ClassEntry(name=name, role="unknown", index=-1) for name in sorted(others)))
