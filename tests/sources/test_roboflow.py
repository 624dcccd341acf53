"""Exports of Roboflow: a folder per part, each with its COCO JSON beside the photos."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import curation
from curation.benchmarks.rules.starting import start_benchmark
from curation.core.errors import CurationWarning
from curation.evaluation.inputs import Reading
from curation.sources.opening import open_path, parts_at
from tests.shell import Shell


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Return an export with 3 training and 2 test images."""
    for number, (part, count) in enumerate((("test", 2), ("train", 3)), 1):
        folder = tmp_path / "export" / part
        folder.mkdir(parents=True)
        images = [{"id": n, "file_name": f"{part}_{n}.jpg", "width": 9, "height": 9} for n in range(count)]
        box = {"category_id": number, "bbox": [1, 1, 4, 4], "area": 16, "iscrowd": 0}
        categories = [{"id": 0, "name": "things"}, {"id": 1, "name": "bolt"}, {"id": 2, "name": "nut"}]
        boxes = [box | {"id": n, "image_id": n} for n in range(count)]
        content = {"images": images, "annotations": boxes, "categories": categories}
        (folder / "_annotations.coco.json").write_text(json.dumps(content))
    return tmp_path / "export"


def test_a_root_a_folder_and_a_file_are_one_source(export: Path) -> None:
    """Each has the images of its part; as truth too."""
    assert parts_at(export, "things") == ("test", "train")
    for path in (export, export / "train", export / "train" / "_annotations.coco.json"):
        source = open_path(path, dataset="things", part="train")
        assert (source.image_ids.tolist(), source.part) == (["things:0", "things:1", "things:2"], "train")
    for path in (export, export / "test"):
        assert len(Reading().open(path).images) == 2


def test_a_root_of_several_parts_asks_for_one(export: Path, shell: Shell) -> None:
    """The advice names a part, and works."""
    words = ["init", "wilderness", "--out", str(export.parent / "mine.toml"), "--source"]
    text = shell.err(*words, f"closed={export}", "--source", f"wild@train={export}")
    assert f"--source closed@test={export}" in text
    shell.data(*words, f"closed@test={export}", "--source", f"wild@train={export}", "--json")


def test_fiftyone_exports_labels_beside_data(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    classes = [{"id": 1, "name": "truck", "supercategory": None}, {"id": 2, "name": "truvk", "supercategory": None}]
    boxes = [{"id": n, "image_id": 1, "category_id": 1 + (n == 9), "bbox": [1, 2, 3, 4]} for n in range(1, 10)]
    image = {"id": 1, "file_name": "a.jpg", "width": None, "height": None, "coco_url": None}
    content = {"info": None, "images": [image], "annotations": boxes, "categories": classes}
    (tmp_path / "labels.json").write_text(json.dumps(content))
    source = curation.open_source("mine", tmp_path, part="val")
    assert (len(source.images), source.boxes_by_class()) == (1, {"truck": 8, "truvk": 1})
    with pytest.warns(CurationWarning, match=r"may be mistakes, with their boxes: 'truvk' \(1\) like 'truck'"):
        start_benchmark("tasks", source=tmp_path, name="me/x", n_tasks=1)
