"""Detections as CSV and as YOLO's label files: the columns of COCO results, and one error for each mistake."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.core.errors import CurationError, PredictionError
from curation.evaluation.problem import classes_of_source
from curation.evaluation.readers import read_detections
from curation.evaluation.truth import ground_truth

TRUTH: dict[str, Any] = {
    "images": [
        {"id": 201, "width": 200, "height": 100, "file_name": "val/test_0201.png"},
        {"id": 7, "width": 50, "height": 400, "file_name": "val/test_0007.png"},
    ],
    "annotations": [
        {"id": 1, "image_id": 201, "category_id": 3, "bbox": [10, 20, 30, 40], "area": 1200, "iscrowd": 0},
        {"id": 2, "image_id": 7, "category_id": 5, "bbox": [5, 100, 20, 200], "area": 4000, "iscrowd": 0},
    ],
    "categories": [{"id": 3, "name": "cat"}, {"id": 5, "name": "potted plant"}],
}
FOUND = [
    {"image_id": 201, "category_id": 3, "bbox": [12.0, 20.0, 30.0, 40.0], "score": 0.75},
    {"image_id": 201, "category_id": 5, "bbox": [100.0, 0.0, 50.0, 50.0], "score": 0.5},
    {"image_id": 7, "category_id": 5, "bbox": [5.0, 96.0, 20.0, 200.0], "score": 0.25},
]
PART = ground_truth(source := curation.open_source("coco", TRUTH), classes_of_source(source))
NAMES = {3: "cat", 5: "potted plant"}
FILES = {201: "test_0201.png", 7: "test_0007.png"}
ROWS = {
    "image_id,category_id,x,y,w,h,score": lambda one: (one["image_id"], one["category_id"], *one["bbox"]),
    "score,image,class,bbox": lambda one: (FILES[one["image_id"]], NAMES[one["category_id"]], f'"{one["bbox"]}"'),
    "file_name,category,category_id,x1,y1,x2,y2,score": lambda one: (
        f"/data/val/{FILES[one['image_id']]}", NAMES[one["category_id"]], one["category_id"], *corners(one["bbox"]),
    ),
    "image,class,xmin,ymin,xmax,ymax,score,comment": lambda one: (
        FILES[one["image_id"]][:-4], NAMES[one["category_id"]], *corners(one["bbox"]),
    ),
}  # fmt: skip


def corners(box: list[float]) -> tuple[float, ...]:
    return box[0], box[1], box[0] + box[2], box[1] + box[3]


def table_of(header: str) -> str:
    lines = [header]
    for one in FOUND:
        cells = [*map(str, ROWS[header](one))]
        cells.insert(0 if header.startswith("score") else len(cells), str(one["score"]))
        lines.append(",".join(cells + [""] * (header.count(",") + 1 - len(cells) - 3 * (header.endswith("bbox")))))
    return "\n".join(lines) + "\n"


def write_yolo(folder: Path, names: str = "names: [cat, potted plant]\n") -> Path:
    sizes = {one["id"]: np.array([one["width"], one["height"]] * 2) for one in TRUTH["images"]}
    (folder / "labels").mkdir(parents=True)
    (folder / "data.yaml").write_text(names)
    for number, name in FILES.items():
        lines = []
        for one in FOUND:
            if one["image_id"] == number:
                x, y, w, h = one["bbox"] / sizes[number]
                lines.append(f"{int(one['category_id'] == 5)} {x + w / 2} {y + h / 2} {w} {h} {one['score']}\n")
        (folder / "labels" / f"{name[:-4]}.txt").write_text("".join(lines))
    return folder


def same_as_coco_results(path: Path, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    results.write_text(json.dumps(FOUND))
    expected, found = (read_detections(one, PART.truth).detections for one in (results, path))

    def rows(one: Any) -> list[tuple[Any, ...]]:
        return sorted(zip(one.image, one.label, *np.round(one.boxes, 9).T, one.scores, strict=True))

    assert rows(found) == rows(expected)


@pytest.mark.parametrize("header", ROWS)
def test_a_table_says_what_coco_results_say(header: str, tmp_path: Path) -> None:
    text = table_of(header)
    for name, data in {
        "found.csv": text.encode(),
        "bom.csv": b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
        "packed.csv.gz": gzip.compress(text.encode()),
        "found.tsv": text.encode() if "bbox" in header else text.replace(",", "\t").encode(),
    }.items():
        if name.endswith(".tsv") and "bbox" in header:
            continue
        path = tmp_path / name
        path.write_bytes(data)
        same_as_coco_results(path, tmp_path)


@pytest.mark.parametrize("names", ["names: [cat, potted plant]\n", "nc: 2\nnames:\n  0: cat\n  1: potted plant\n"])
def test_label_files_say_what_coco_results_say(names: str, tmp_path: Path) -> None:
    folder = write_yolo(tmp_path / "yolo", names)
    same_as_coco_results(folder, tmp_path)
    same_as_coco_results(folder / "labels", tmp_path)
    (folder / "data.yaml").rename(folder / "labels" / "data.yaml")
    (folder / "labels" / "classes.txt").write_text("cat\npotted plant\n")
    same_as_coco_results(folder / "labels", tmp_path)


HEADER = "image_id,category_id,x,y,w,h,score\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER.replace("image_id", "photo"), "lacks a column"),
        (HEADER.replace("category_id,", ""), "lacks a column"),
        (HEADER.replace("score", "p") + "201,3,1,2,3,4,0.5\n", "has no score"),
        (HEADER.replace("w,h", "width,height"), "lacks a column"),
        (HEADER.replace("score", "bbox,score"), "states boxes twice"),
        (HEADER.replace("x,y", "x,x"), "Two columns of the table have one name"),
        (HEADER + "201,3,1,2,3,4,0.5\n201,3,1,2,3,high,0.5\n", "row 3"),
        (HEADER + "201,3,1,2,3,,0.5\n", "column h cannot be read"),
        (HEADER + "201,cat,1,2,3,4,0.5\n", "column category with names"),
        (HEADER + "201,3,1,2,3,4,50\n", "outside [0, 1]"),
        (HEADER + "201,3,1,2,-3,4,0.5\n", "impossible box"),
        (HEADER + "202,3,1,2,3,4,0.5\n", "image_id 202"),
        (HEADER + "201,4,1,2,3,4,0.5\n", "category_id 4"),
        (HEADER + "201,3,1,2,3\n", "table cannot be read"),
        (HEADER.replace("category_id", "class") + "201,1,1,2,3,4,0.5\n", "Column class holds numbers"),
        (HEADER.replace("category_id", "class") + "201,lion,1,2,3,4,0.5\n", "category 'lion'"),
        ("image_id,category_id,bbox,score\n" + '201,3,"[1, 2, 3]",0.5\n', "four numbers"),
        (HEADER + "201,3,1,2,3,4,nan\n", "column score cannot be read"),
    ],
)
def test_a_wrong_table_is_one_error_that_names_its_row(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text(text)
    with pytest.raises(CurationError) as refused:
        read_detections(path, PART.truth)
    assert words in str(refused.value)
    assert "found.csv" in str(refused.value.where)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("0 0.5 0.5 0.1 0.1", "save_conf=True"),
        ("0 0.5 0.5 0.1", "not a detection"),
        ("2 0.5 0.5 0.1 0.1 0.5", "classes 0 to 1"),
        ("-1 0.5 0.5 0.1 0.1 0.5", "classes 0 to 1"),
        ("0.5 0.5 0.5 0.1 0.1 0.5", "cannot be read"),
        ("cat 0.5 0.5 0.1 0.1 0.5", "cannot be read"),
        ("0 0.5 0.5 nan 0.1 0.5", "cannot be read"),
        ("0 100 50 20 20 0.5", "not in shares"),
        ("0 0.5 0.5 -0.1 0.1 0.5", "impossible box"),
        ("0 0.5 0.5 0.1 0.1 50", "outside [0, 1]"),
        ("0 0.5 0.5 0.1 0.1 0.5 0.5", "not a detection"),
        ("\x00" * 100, "cannot be read"),
    ],
)
def test_a_wrong_line_is_one_error_that_names_it(line: str, words: str, tmp_path: Path) -> None:
    folder = write_yolo(tmp_path / "yolo")
    file = folder / "labels" / "test_0007.txt"
    file.write_text(file.read_text() + "\n" + line + "\n")
    with pytest.raises(CurationError) as refused:
        read_detections(folder, PART.truth)
    assert words in str(refused.value)
    assert str(refused.value.where).endswith("test_0007.txt: line 3")


def test_an_id_is_no_stem_of_another_file(tmp_path: Path) -> None:
    truth = TRUTH | {"images": [one | {"file_name": f"{208 - one['id']}.jpg"} for one in TRUTH["images"]]}
    part = ground_truth(opened := curation.open_source("coco", truth), classes_of_source(opened)).truth
    names = {"image_id": {201: "201", 7: "7"}, "file_name": {201: "7.jpg", 7: "201.jpg"}, "image": {201: "7", 7: "201"}}
    for column, name_of in names.items():
        rows = (f"{name_of[one['image_id']]},{one['category_id']},1,2,3,4,0.5\n" for one in FOUND)
        path = tmp_path / f"{column}.csv"
        path.write_text("".join([HEADER.replace("image_id", column), *rows]))
        if column == "image_id":
            with pytest.raises(PredictionError, match=r"201.jpg\) or 201 \(7.jpg"):
                read_detections(path, part)
            continue
        found = read_detections(path, part).detections
        assert part.image_numbers[found.image].tolist() == [one["image_id"] for one in FOUND]
