"""Twelve small photos with boxes, a manifest of two parts, and proposals: enough for every step of a review."""

import json
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

from curation.manifest.header import ClassEntry, LabelView
from curation.manifest.manifest import Manifest
from curation.review.app.images import ReviewImages, arranged, source_images
from curation.review.proposals.proposal import Evidence, Proposal
from curation.sources.opening import open_path
from curation.sources.photos import PhotoFolder
from curation.sources.source import Source
from tests.worlds.listed_manifest import manifest_of_lists

WIDTH, HEIGHT = 96, 64
COUNT = 12
NAMES = {1: "person", 24: "zebra", 59: "pizza"}
BOX = [12.0, 8.0, 48.0, 32.0]


def coco_id(number: int) -> str:
    return f"coco:{number:012d}"


@dataclass(frozen=True)
class ReviewWorld:
    annotations: Path
    photos: Path

    def source(self) -> Source:
        return open_path(self.annotations, dataset="coco", part="val2017")

    def images(self, proposals: list[Proposal] | None = None, *, batch_size: int = 5) -> ReviewImages:
        found = source_images({"coco": self.source()}, {"": PhotoFolder(self.photos)})
        return arranged(found, self.proposals() if proposals is None else proposals, batch_size=batch_size)

    def proposals(self) -> list[Proposal]:
        """Images 12, 11, 10 hold a person; 9, 8 a zebra: proposed in this order, the others not at all."""
        made = []
        for rank, number in enumerate((12, 11, 10, 9, 8), 1):
            near = rank > 3
            evidence = Evidence(
                kind="near_kinship" if near else "label_name",
                detail="zebra is near horse" if near else "person (1 object)",
                score="0.92" if near else "",
                threshold="0.82" if near else "",
                id_class="horse" if near else "person",
            )
            made.append(
                Proposal(
                    image_id=coco_id(number),
                    proposal="near" if near else "remove",
                    reason="near: zebra" if near else "remove: person",
                    evidence=(evidence,),
                    rank=rank,
                )
            )
        return made


def category_of(number: int) -> int:
    return 1 if number >= 10 else 24 if number >= 8 else 59


def write_world(folder: Path) -> ReviewWorld:
    photos = folder / "photos"
    photos.mkdir(parents=True)
    for number in range(1, COUNT + 1):
        photo = Image.new("RGB", (WIDTH, HEIGHT), (20 * number, 200 - 10 * number, 90))
        ImageDraw.Draw(photo).rectangle((12, 8, 60, 40), fill=(250, 10 * number, 0))
        photo.save(photos / f"{number:012d}.jpg")
    content = {
        "images": [
            {"id": n, "file_name": f"{n:012d}.jpg", "width": WIDTH, "height": HEIGHT} for n in range(1, COUNT + 1)
        ],
        "annotations": [
            {
                "id": n,
                "image_id": n,
                "category_id": category_of(n),
                "bbox": BOX,
                "area": BOX[2] * BOX[3],
                "iscrowd": int(n == 1),
            }
            for n in range(1, COUNT + 1)
        ],
        "categories": [{"id": n, "name": name, "supercategory": "thing"} for n, name in NAMES.items()],
    }
    path = folder / "instances_val2017.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return ReviewWorld(path, photos)


def two_parts(source: Source) -> Manifest:
    """Return a manifest: near holds images 8 to 12, far 1 to 7; pizza boxes are unknown, persons are dropped."""
    lists = {"far": [coco_id(n) for n in range(1, 8)], "near": [coco_id(n) for n in range(8, 13)]}
    classes = (
        ClassEntry(name="person", role="known", index=0),
        ClassEntry(name="zebra", role="unknown", index=-1),
        ClassEntry(name="pizza", role="unknown", index=-1),
    )
    view = LabelView(known="drop", unknown="keep")
    return manifest_of_lists(lists, name="pair", source="coco", namespace="coco", classes=classes, view=view)
