"""YOLO folders as truth: what an export wrote comes back, and one error for each mistake."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.cli import main
from curation.core.errors import CurationError
from curation.sources.opening import open_source, parts_at

image = pytest.importorskip("PIL.Image")
SIZES = {"a_1": (200, 100), "b_2": (50, 400), "c_3": (64, 64)}
BOXES = {"a_1": [(0, (10, 20, 30, 40)), (1, (100, 0, 50, 50))], "b_2": [(1, (5, 100, 20, 200))]}
YAML = "path: /home/somebody/datasets/toy\ntrain: images/train\nval: images/val\nnc: 2\nnames:\n  0: cat\n  1: dog\n"


def write_yolo(root: Path, *, images: str = "images/val", labels: str = "labels/val", yaml: str = YAML) -> Path:
    for folder in (images, labels):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "data.yaml").write_text(yaml)
    for stem, (width, height) in SIZES.items():
        image.new("L", (width, height)).save(root / images / f"{stem}.png")
        lines = [
            f"{number} {(x + w / 2) / width} {(y + h / 2) / height} {w / width} {h / height}\n"
            for number, (x, y, w, h) in BOXES.get(stem, [])
        ]
        if lines:
            (root / labels / f"{stem}.txt").write_text("".join(lines))
    return root


@pytest.mark.parametrize(
    ("images", "labels", "val"),
    [
        ("images/val", "labels/val", "images/val"),
        ("val/images", "val/labels", "../val/images"),
        ("images", "labels", "[images]"),
        ("photos", "photos", "photos"),
        ("images", "labels", "val.txt"),
    ],
)
def test_boxes_sizes_and_classes_are_those_of_the_files(images: str, labels: str, val: str, tmp_path: Path) -> None:
    yaml = YAML.replace("val: images/val", f"val: {val}").replace("train: images/train\n", "")
    root = write_yolo(tmp_path / "toy", images=images, labels=labels, yaml=yaml)
    if val == "val.txt":
        (root / val).write_text("".join(f"./{images}/{stem}.png\n" for stem in SIZES))
    for path in (root, root / "data.yaml"):
        source = open_source(path, dataset="toy", part="val")
        assert source.image_ids.tolist() == [f"toy:{stem}" for stem in SIZES]
        assert [*zip(source.images.widths, source.images.heights, strict=True)] == [*SIZES.values()]
        assert (source.categories.names, source.categories.numbers) == (("cat", "dog"), (0, 1))
        assert source.has_category_ids
        objects = source.require_objects("a test")
        expected = [(n, number, box) for n, stem in enumerate(SIZES) for number, box in BOXES.get(stem, [])]
        assert [(one, two) for one, two, _ in expected] == [*zip(objects.image, objects.category, strict=True)]
        assert np.allclose(objects.boxes, [box for *_, box in expected])
    assert parts_at(root, "toy") == ("val",)
    assert len(curation.open_source("toy", root).images) == 3


def test_label_files_without_a_photo_are_counted(tmp_path: Path) -> None:
    root = write_yolo(tmp_path)
    (root / "labels/val/gone.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    (root / "labels/val/classes.txt").write_text("cat\ndog\n")
    assert open_source(root, dataset="toy", part="val").dropped == {"label files without a photo": 1}


def test_a_polygon_is_the_box_around_it(tmp_path: Path) -> None:
    root = write_yolo(tmp_path)
    (root / "labels/val/c_3.txt").write_text("1 0.25 0.5 0.5 0.25 0.75 0.5 0.5 0.75\n")
    objects = open_source(root, dataset="toy", part="val").require_objects("a test")
    assert objects.boxes[-1].tolist() == [16, 16, 32, 32]


def test_a_yolo_truth_gives_the_numbers_of_coco_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_yolo(tmp_path / "toy")
    numbers = {stem: n for n, stem in enumerate(SIZES, 1)}
    truth = {
        "images": [
            {"id": numbers[stem], "file_name": f"{stem}.png", "width": w, "height": h} for stem, (w, h) in SIZES.items()
        ],
        "annotations": [
            {"id": n, "image_id": numbers[stem], "category_id": number, "bbox": box, "area": box[2] * box[3]}
            for n, (stem, number, box) in enumerate(
                ((stem, number, box) for stem, boxes in BOXES.items() for number, box in boxes), 1
            )
        ],
        "categories": [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}],
    }
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    (tmp_path / "found.csv").write_text(
        "image,category,x,y,w,h,score\na_1.png,cat,11,20,30,40,0.9\na_1.png,dog,0,0,50,50,0.8\nb_2.png,dog,5,90,20,200,0.7\n"
    )
    told = []
    for given in (["--truth", str(tmp_path / "truth.json")], ["--truth", str(root), "--image-set", "val"]):
        assert main(["evaluate", "coco", *given, "--detections", str(tmp_path / "found.csv"), "--json"]) == 0
        told.append([(one["measure"], one["value"]) for one in json.loads(capsys.readouterr().out)["measures"]])
    assert told[0] == told[1]
    assert dict(told[0])["AP50"] > 50


def broken(root: Path, what: str) -> None:
    label = root / "labels/val/c_3.txt"
    yaml = root / "data.yaml"

    def listing(line: str) -> None:
        yaml.write_text("val: v.txt\nnames: [cat, dog]\n")
        (root / "v.txt").write_text(line)

    changes: dict[str, Any] = {
        "no yaml": yaml.unlink,
        "no part": lambda: yaml.write_text("names: [cat, dog]\n"),
        "other part": lambda: yaml.write_text("test: images/val\nnames: [cat, dog]\n"),
        "no folder": lambda: yaml.write_text("val: pictures\nnames: [cat, dog]\n"),
        "outside": lambda: yaml.write_text(f"val: {root.parent}\nnames: [cat, dog]\n"),
        "list outside": lambda: listing("../x.png"),
        "list of nothing": lambda: listing("images/x.png"),
        "wrong nc": lambda: yaml.write_text(YAML.replace("nc: 2", "nc: 3")),
        "tag": lambda: yaml.write_text("val: !!python/name:os.system images/val\n"),
        "empty folder": lambda: shutil.rmtree(root / "images/val") or (root / "images/val").mkdir(),
        "no labels": lambda: shutil.rmtree(root / "labels"),
        "broken photo": lambda: (root / "images/val/c_3.png").write_bytes(b"no photo"),
        "twice": lambda: shutil.copy(root / "images/val/c_3.png", root / "images/val/c_3.jpg"),
        "confidence": lambda: label.write_text("0 0.5 0.5 0.1 0.1 0.9\n"),
        "class": lambda: label.write_text("2 0.5 0.5 0.1 0.1\n"),
        "pixels": lambda: label.write_text("0 30 20 10 10\n"),
        "words": lambda: label.write_text("cat 0.5 0.5 0.1 0.1\n"),
        "few": lambda: label.write_text("0 0.5 0.5\n"),
        "bytes": lambda: label.write_bytes(b"\xff\xfe0 0.5"),
    }
    changes[what]()


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("no yaml", "no data.yaml, which names its classes"),
        ("no part", "train, val or test: a folder of photos"),
        ("other part", "--image-set test"),
        ("no folder", "toy/pictures"),
        ("outside", "a folder of photos below"),
        ("list outside", "leads outside"),
        ("list of nothing", "No photo of the part has a label file"),
        ("wrong nc", "another number of classes"),
        ("tag", "YAML cannot be read"),
        ("empty folder", "There are no photos of part 'val'"),
        ("no labels", "labels/val/a_1.txt"),
        ("broken photo", "c_3.png"),
        ("twice", "carry the same stem"),
        ("confidence", "go to --detections"),
        ("class", "0 to 1"),
        ("pixels", "shares of the image"),
        ("words", "c_3.txt: line 1"),
        ("few", "another number of values"),
        ("bytes", "not UTF-8"),
    ],
)
def test_a_wrong_folder_is_one_error_that_says_what_was_looked_for(what: str, words: str, tmp_path: Path) -> None:
    root = write_yolo(tmp_path / "toy")
    broken(root, what)
    with pytest.raises(CurationError) as refused:
        curation.evaluate.coco(truth=root, image_set="val", detections=tmp_path / "none.csv")
    assert words in str(refused.value), refused.value
