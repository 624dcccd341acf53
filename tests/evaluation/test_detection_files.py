"""Detections as CSV and as YOLO's label files: the columns of COCO results, and one error for each mistake."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import curation
from curation.core.errors import CurationError, CurationWarning, PredictionError
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


SIZES = {201: (200, 100), 7: (50, 400)}


def shares(one: dict[str, Any]) -> list[float]:
    width, height = SIZES[one["image_id"]]
    x1, y1, x2, y2 = corners(one["bbox"])
    return [x1 / width, y1 / height, x2 / width, y2 / height]


def supervision(one: dict[str, Any], name: str) -> str:
    # CSVSink: the corners, class, confidence and tracker, then data and custom columns.
    position = int(one["category_id"] == 5)
    cells = [*corners(one["bbox"]), position, one["score"], "", name or position, FILES[one["image_id"]]]
    return ",".join(map(str, cells))


SINK = "x_min,y_min,x_max,y_max,class_id,confidence,tracker_id"


OTHER_TABLES = {
    "supervision": [f"{SINK},class_name,file_name", *(supervision(one, NAMES[one["category_id"]]) for one in FOUND)],
    "supervision without names": [f"{SINK},frame,image", *(supervision(one, "") for one in FOUND)],
    "Open Images": [
        "ImageID,LabelName,Score,XMin,XMax,YMin,YMax",
        *(
            f"{FILES[one['image_id']][:-4]},{NAMES[one['category_id']]},{one['score']},{x1},{x2},{y1},{y2}"
            for one in FOUND
            for x1, y1, x2, y2 in [shares(one)]
        ),
    ],
    "pandas of YOLOv5": [
        "xmin,ymin,xmax,ymax,confidence,class,name,path",
        *(
            f"{','.join(map(str, corners(one['bbox'])))},{one['score']},{int(one['category_id'] == 5)},"
            f"{NAMES[one['category_id']]},/data/val/{FILES[one['image_id']]}"
            for one in FOUND
        ),
    ],
    "sides": [
        "image_name,label,x,y,width,height,conf",
        *(
            f"{FILES[one['image_id']]},{NAMES[one['category_id']]},{','.join(map(str, one['bbox']))},{one['score']}"
            for one in FOUND
        ),
    ],
}


@pytest.mark.parametrize("form", OTHER_TABLES)
@pytest.mark.filterwarnings("ignore:.*are read as the truth's classes counted from 0")
def test_tables_of_other_tools_say_what_coco_results_say(form: str, tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text("\n".join(OTHER_TABLES[form]) + "\n")
    same_as_coco_results(path, tmp_path)


def test_classes_that_are_counted_from_0_are_said(tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text("\n".join(OTHER_TABLES["supervision without names"]))
    with pytest.warns(CurationWarning, match="from 0: 0 as cat, 1 as potted plant"):
        read_detections(path, PART.truth)


def nested(form: str) -> dict[str, Any]:
    """Return the files of a form by their names."""
    by_image = {number: [one for one in FOUND if one["image_id"] == number] for number in FILES}

    def lists(rows: list[dict[str, Any]], boxes: str, label: Any) -> dict[str, Any]:
        found = {boxes: [[*corners(one["bbox"])] for one in rows], "scores": [one["score"] for one in rows]}
        return found | {"labels": [label(one["category_id"]) for one in rows]}

    def position(number: int) -> int:
        return int(number == 5)

    if form == "MMDetection":
        return {f"{FILES[number][:-4]}.json": lists(rows, "bboxes", position) for number, rows in by_image.items()}
    if form == "Ultralytics":
        names = {number: f"{FILES[number][:-4]}.json" for number in by_image}
        return {
            names[number]: [
                {"name": NAMES[one["category_id"]], "class": position(one["category_id"]), "confidence": one["score"]}
                | {"box": dict(zip(("x1", "y1", "x2", "y2"), corners(one["bbox"]), strict=True))}
                for one in rows
            ]
            for number, rows in by_image.items()
        }
    if form == "COCO with scores":
        # Numbers of its own: names and files say what they are.
        photos = [{"id": number + 1000, "file_name": name} for number, name in FILES.items()]
        categories = [{"id": number + 50, "name": name} for number, name in NAMES.items()]
        rows = [one | {"image_id": one["image_id"] + 1000, "category_id": one["category_id"] + 50} for one in FOUND]
        return {"found.json": {"images": photos, "annotations": rows, "categories": categories}}
    records = {number: lists(rows, "boxes", lambda number: number) for number, rows in by_image.items()}
    if form == "torchmetrics by image":
        return {"found.json": {str(number): record for number, record in records.items()}}
    listed = [{"image_id": number} | record for number, record in records.items()]
    return {"found.json": {"preds": listed, "target": []} if form == "torchmetrics with its target" else listed}


FORMS = ("MMDetection", "Ultralytics", "COCO with scores", "torchmetrics", "torchmetrics by image",
         "torchmetrics with its target")  # fmt: skip


def write_nested(folder: Path, files: dict[str, Any]) -> Path:
    below = folder / "out" / "preds"
    below.mkdir(parents=True)
    for name, content in files.items():
        (below / name).write_text(json.dumps(content))
    return folder / "out" if len(files) > 1 else below / "found.json"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore:.*are read as the truth's classes counted from 0")
def test_nested_detections_say_what_coco_results_say(form: str, tmp_path: Path) -> None:
    same_as_coco_results(write_nested(tmp_path, nested(form)), tmp_path)


def test_nested_lines_are_read(tmp_path: Path) -> None:
    [listed] = nested("torchmetrics").values()
    (tmp_path / "found.jsonl").write_text("".join(json.dumps(record) + "\n" for record in listed))
    same_as_coco_results(tmp_path / "found.jsonl", tmp_path)


DAMAGES: dict[str, Any] = {
    "no image": lambda record: [record.pop("image_id"), record.pop("file_name", None)],
    "a score too few": lambda record: record["scores"].pop(),
    "no labels": lambda record: record.pop("labels"),
    "a box of three": lambda record: record["boxes"][0].pop(),
    "a text in a box": lambda record: record["boxes"][0].__setitem__(0, "1"),
    "a flag as score": lambda record: record["scores"].__setitem__(0, True),
    "a label of a half": lambda record: record["labels"].__setitem__(0, 0.5),
    "a class that is none": lambda record: record["labels"].__setitem__(0, 77),
    "no list": lambda record: record.update(boxes={"a": 1}),
    "a score of 5": lambda record: record["scores"].__setitem__(0, 5),
    "an image that is none": lambda record: record.update(image_id=999),
    "a side beyond any number": lambda record: record["boxes"][0].__setitem__(0, 10**400),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_wrong_nested_record_is_one_error(damage: str, tmp_path: Path) -> None:
    files = nested("torchmetrics")
    DAMAGES[damage](files["found.json"][0])
    with pytest.raises(CurationError):
        read_detections(write_nested(tmp_path, files), PART.truth)


def parquet_of(path: Path, **changes: Any) -> Path:
    columns = {name: [one[name] for one in FOUND] for name in FOUND[0]} | changes
    parquet.write_table(pyarrow.table({name: values for name, values in columns.items() if values is not None}), path)
    return path


def test_parquet_says_what_coco_results_say(tmp_path: Path) -> None:
    same_as_coco_results(parquet_of(tmp_path / "found.parquet"), tmp_path)
    sides = np.array([corners(one["bbox"]) for one in FOUND], np.float32)
    names = {"x_min": sides[:, 0], "y_min": sides[:, 1], "x_max": sides[:, 2], "y_max": sides[:, 3]}
    changes = names | {"bbox": None, "category_id": None, "class_name": [NAMES[one["category_id"]] for one in FOUND]}
    changes |= {"image_id": None, "file_name": [FILES[one["image_id"]] for one in FOUND], "pixels": [b"x"] * 3}
    same_as_coco_results(parquet_of(tmp_path / "sides.parquet", **changes), tmp_path)


WRONG_COLUMNS: list[dict[str, Any]] = [
    {"bbox": None}, {"score": ["high"] * 3}, {"score": [None] * 3}, {"image_id": [999] * 3}, {"category_id": [77] * 3},
    {"bbox": [[1.0, 2.0, 3.0]] * 3}, {"bbox": [None] * 3}, {"image_id": None}, {"category_id": None},
    {"score": [5.0] * 3}, {"category_id": [3.5] * 3}, {"bbox": [[1.0, 2.0, -3.0, 4.0]] * 3},
]  # fmt: skip


@pytest.mark.parametrize("changes", WRONG_COLUMNS, ids=str)
def test_a_wrong_parquet_file_is_one_error(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(CurationError):
        read_detections(parquet_of(tmp_path / "found.parquet", **changes), PART.truth)


def test_a_damaged_parquet_file_is_one_error(tmp_path: Path) -> None:
    data = parquet_of(tmp_path / "found.parquet").read_bytes()
    for size in (0, 3, 50, len(data) // 2, len(data) - 1):
        (tmp_path / "cut.parquet").write_bytes(data[:size])
        with pytest.raises(CurationError):
            read_detections(tmp_path / "cut.parquet", PART.truth)


def rewritten(folder: Path, form: str) -> Path:
    """Replace the boxes of label files by polygons (the corners, and one point between), keypoints or corners."""
    for file in (folder / "labels").glob("*.txt"):
        lines = []
        for line in file.read_text().splitlines():
            label, cx, cy, w, h, score = map(float, line.split())
            x1, y1, x2, y2 = cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2
            values = [x1, y1, x2, y1, x2, y2, x1, y2]
            values += [x1, y1 + h / 2] if form == "polygons" else []
            values = [cx, cy, w, h, 0.5, 0.5, 2] if form == "keypoints" else values
            lines.append(" ".join(map(str, (int(label), *values, score))))
        file.write_text("\n".join(lines) + "\n")
    return folder


def test_label_files_of_segmentation_and_pose_say_what_coco_results_say(tmp_path: Path) -> None:
    with pytest.warns(CurationWarning, match="3 detections are polygons, and are scored as the boxes around them"):
        same_as_coco_results(rewritten(write_yolo(tmp_path / "segments"), "polygons"), tmp_path)
    names = "names: [cat, potted plant]\nkpt_shape: [1, 3]\n"
    same_as_coco_results(rewritten(write_yolo(tmp_path / "pose", names), "keypoints"), tmp_path)
    with pytest.raises(PredictionError, match="OBB"):
        read_detections(rewritten(write_yolo(tmp_path / "oriented"), "corners"), PART.truth)


NO_BOXES = {
    "rbox": ({"rbox": [1, 2, 3, 4, 0.3], "poly": [1] * 8}, "OBB"),
    "five": ({"bbox": [1, 2, 3, 4, 0.3]}, "OBB"),
    "masks": ({"segmentation": {"size": [3, 4], "counts": "12"}}, "toBbox"),
}


@pytest.mark.parametrize("form", NO_BOXES)
def test_results_without_upright_boxes_are_named(form: str, tmp_path: Path) -> None:
    fields, words = NO_BOXES[form]
    (tmp_path / "found.json").write_text(json.dumps([{"image_id": 201, "category_id": 3, "score": 0.5} | fields]))
    with pytest.raises(PredictionError) as refused:
        read_detections(tmp_path / "found.json", PART.truth)
    assert words in str(refused.value.hint)


HEADER = "image_id,category_id,x,y,w,h,score\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER.replace("image_id", "photo"), "lacks a column"),
        (HEADER.replace("category_id,", ""), "lacks a column"),
        (HEADER.replace("score", "p") + "201,3,1,2,3,4,0.5\n", "has no score"),
        (HEADER.replace("w,h", "wide,high"), "lacks a column"),
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
        (HEADER.replace("category_id", "class") + "201,1,1,2,3,4,0.5\n", "Column class has numbers"),
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
