"""Annotation files of data sets."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.sources.openimages_files import DESCRIPTIONS, HEADER, ROWS
from tests.sources.test_cub200 import TEXTS as CUB
from tests.sources.test_mtsd import PHOTOS as MTSD
from tests.torture.readers.target import Files, Target, call, json_bytes, opened, reader

COCO = {
    "info": {"year": 2017},
    "images": [{"id": n, "file_name": f"{n:012d}.jpg", "width": 64, "height": 48} for n in (9, 25, 30, 139)],
    "annotations": [
        {"id": n + 1, "image_id": image, "category_id": kind, "bbox": [1.5, 2, 10 + n, 12], "area": 80.25,
         "iscrowd": n % 2,
         "segmentation": [[1, 2, 3, 4, 5, 6]]}
        for n, (image, kind) in enumerate(((9, 1), (9, 18), (25, 18), (139, 22)))
    ],
    "categories": [{"id": 1, "name": "person", "supercategory": "person"}, {"id": 18, "name": "dog"},
                   {"id": 22, "name": "elephant"}],
}  # fmt: skip


VOC = (
    b"<annotation><folder>VOC2007</folder><filename>000001.jpg</filename><size><width>50</width><height>40</height>"
    b"<depth>3</depth></size><object><name>dog</name><pose>Left</pose><truncated>0</truncated><difficult>1</difficult>"
    b"<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>20.5</xmax><ymax>30</ymax></bndbox></object><object><name>cat</name>"
    b"<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>20</xmax><ymax>30</ymax></bndbox><part><name>head</name></part></object>"
    b"</annotation>"
)


@cache
def source() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.json")
        path.write_bytes(json_bytes(COCO))
        return call("sources.coco:read_coco")(path, dataset="coco", part="val2017")


def _openimages(**extra: str) -> Files:
    files = {
        "train-annotations-bbox.csv": "\n".join((HEADER, *ROWS)) + "\n",
        "class-descriptions-boxable.csv": DESCRIPTIONS,
    } | extra
    return {name: text.encode() for name, text in files.items()}


def _mtsd() -> Files:
    files = {f"annotations/{key}.json": json_bytes(photo) for key, photo in MTSD.items()}
    return {"splits/train.txt": "".join(f"{key}\n" for key in MTSD).encode(), **files}


_WNIDS = b"n02119022/n02119022_1.JPEG\nn02119022/n02119022_10.JPEG\nn02114367/n02114367_5.JPEG\n"
_FILES_OF_WNIDS = {"n02119022": ["n02119022_1.JPEG"], "n02114367": ["n02114367_5.JPEG"]}
_SOLUTION = b"""ImageId,PredictionString
ILSVRC2012_val_00000001,n02119022 1 2 3 4 
ILSVRC2012_val_00000002,n02114367 1 2 3 4 
"""  # noqa: W291
_ROTATIONS = """ImageID,Subset,OriginalURL,OriginalLandingURL,License,AuthorProfileURL,Author,Title,\
OriginalSize,OriginalMD5,Thumbnail300KURL,Rotation
000002b66c9c498e,train,u,u,l,a,A,T,1,m,t,0.0
00166893b16a03ab,train,u,u,l,a,A,T,1,m,t,
"""


def targets() -> list[Target]:
    """Return the targets of this module."""
    coco = {"t.json": json_bytes(COCO)}
    voc = {"Annotations/000001.xml": VOC, "Annotations/000002.xml": VOC}
    listed = {"ImageSets/Main/test.txt": b"000001\n000002 -1\n"}
    birds = {name: text.encode() for name, text in CUB.items()}
    rows = b"image,split,classes\na.jpg,train,cat;dog\nb.jpg,train,\n"
    read_coco, imagenet = "sources.coco:read_coco", "sources.imagenet:read_imagenet"
    return [
        reader("coco", coco, read_coco, dataset="coco", part="val2017", weight=5),
        reader("coco, boxes dropped", coco, read_coco, dataset="custom", part="x", bad_boxes="drop"),
        reader("coco, renumbered", coco, "extensions.diagnosis.renumbering:renumber"),
        reader("voc", voc | listed, "sources.voc:read_voc", "voc2007", "test", weight=5),
        opened("open images", _openimages(), "openimages", weight=5),
        opened("open images, with lists", _openimages(**{"image_ids_and_rotation.csv": _ROTATIONS}), "openimages"),
        opened("mtsd", _mtsd(), "mtsd", weight=3),
        opened("cub200", birds, "cub200", weight=3),
        reader("imagenet, list", {"train.txt": _WNIDS}, imagenet, part="train"),
        reader("imagenet, json", {"train.json": json_bytes(_FILES_OF_WNIDS)}, imagenet, part="train"),
        reader("imagenet, solution", {"LOC_val_solution.csv": _SOLUTION}, imagenet, part="val"),
        opened("table, csv", {"t.csv": rows}, "custom"),
        opened("table, numbers", {"t.tsv": b"image_id\tcategory_ids\n9\t1 18\n25\t22\n"}, "coco", "train2017"),
    ]
