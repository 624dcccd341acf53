"""COCO's classes among the 500 of Open Images by real CLIP embeddings of their names.

The array has no names beside it. A row that equals the embedding of the same prompt for a class of LVIS or COCO names
itself; that each such name is one of Open Images' 601 is the proof of the method.
"""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from curation.similarity.class_overlap import NearClass, nearest_classes, read_class_embeddings
from curation.similarity.embeddings import Embeddings
from curation.sources.coco_categories import COCO_CATEGORIES
from tests.real_files import provided, real_files

COCO = [name for _, name, _ in COCO_CATEGORIES]


def rows_of(folder: Path, file: str, names: list[str]) -> Embeddings:
    return read_class_embeddings(folder / "data/clip_text" / file, names, "ViT-B/32")


@provided
def open_images(shared: Path) -> Embeddings:
    """The 500 rows, named where a name is known; a name that two rows share (benches, mice) counts once."""
    info = json.loads((shared / "data/clip_text/lvis_v1_train_cat_info.json").read_text())
    known = (
        rows_of(shared, "lvis_v1_clip_a+cname.npy", [one["name"].replace("_", " ") for one in info]),
        rows_of(shared, "coco_clip_a+cname.npy", COCO),
    )
    numbered = rows_of(shared, "oid_clip_a+cname.npy", [f"row {number}" for number in range(500)])
    names: dict[str, str] = {}
    for classes in known:
        for one in nearest_classes(numbered, classes):
            if one.similarity > 0.999 and one.other not in names.values():
                names.setdefault(one.name, one.other)
    return rows_of(shared, "oid_clip_a+cname.npy", [names.get(one, one) for one in numbered.ids])


@provided
def near(shared: Path, open_images: Embeddings) -> dict[str, list[NearClass]]:
    found = nearest_classes(rows_of(shared, "coco_clip_a+cname.npy", COCO), open_images, 3)
    return {name: found[3 * place : 3 * place + 3] for place, name in enumerate(COCO)}


@real_files("clip_text")
def check_names_that_rows_give_themselves_are_classes_of_open_images(
    shared: Path, open_images: Embeddings
) -> None:
    with (shared / "data/openimages/class-descriptions-boxable.csv").open(encoding="utf-8") as lines:
        boxable = {row[1].lower() for row in csv.reader(lines)}
    named = [one for one in open_images.ids if not one.startswith("row ")]
    assert len(named) > 200
    assert set(named) <= boxable


@real_files("clip_text")
def check_shared_classes_are_their_own_nearest(near: dict[str, list[NearClass]]) -> None:
    for name in ("airplane", "couch", "person", "traffic light", "stop sign", "teddy bear", "wine glass"):
        assert near[name][0].other == name
        assert near[name][0].margin > 0.03


@real_files("clip_text")
@pytest.mark.parametrize(
    ("coco", "expected"),
    [
        ("potted plant", "flowerpot"),
        ("donut", "doughnut"),
        ("skis", "ski"),
        ("sports ball", "ball"),
        ("dining table", "table"),
    ],
)
def check_classes_of_another_name(near: dict[str, list[NearClass]], coco: str, expected: str) -> None:
    assert near[coco][0].other == expected
    assert near[coco][0].similarity > 0.9


@real_files("clip_text")
@pytest.mark.parametrize(
    ("coco", "second"),
    [("cat", "dog"), ("bicycle", "motorcycle"), ("fork", "knife"), ("surfboard", "skateboard")],
)
def check_kindred_classes_come_second(near: dict[str, list[NearClass]], coco: str, second: str) -> None:
    assert [one.other for one in near[coco][:2]] == [coco, second]


@real_files("clip_text")
def check_seats_are_near_a_couch(near: dict[str, list[NearClass]]) -> None:
    assert near["couch"][2].other == "loveseat"


@real_files("clip_text")
def check_a_class_that_open_images_lacks_has_no_near_one(near: dict[str, list[NearClass]]) -> None:
    for name in ("frisbee", "toothbrush", "parking meter"):
        assert near[name][0].similarity < 0.88
    known = [near[name][0].similarity for name in ("zebra", "pizza", "umbrella")]
    assert np.min(known) > 0.99
