"""BDD100K: the labels of 2018 and of 2020 say the same of the same photo."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.errors import (
    AnnotationFormatError,
    BoxError,
    CurationError,
    DuplicateIdError,
    MissingFileError,
    UsageError,
)
from curation.sources.bdd100k import read_bdd100k
from curation.sources.opening import open_source, parts_at
from curation.sources.source import Source

NAMES = ("b1c66a42-6f7d68ca", "b1c81faa-3df17267")
ATTRIBUTES = {"weather": "overcast", "scene": "city street", "timeofday": "daytime"}
CAR = {"x1": 45.240919, "y1": 254.530367, "x2": 357.805838, "y2": 487.906215}
LAMP = {"x1": 1125.902264, "y1": 133.184488, "x2": 1156.978645, "y2": 210.875445}
WALKER = {"x1": 10, "y1": 20, "x2": 30, "y2": 80}
LANE = {"vertices": [[0, 0], [1, 1]], "types": "LL", "closed": False}
TEN = ("rider", "car", "truck", "bus", "train")


def labels_2018() -> list[dict[str, Any]]:
    flags = {"occluded": False, "truncated": False, "trafficLightColor": "none"}
    manual = {"manualShape": True, "manualAttributes": True}
    return [
        {
            "category": "traffic light",
            "attributes": flags | {"trafficLightColor": "green"},
            **manual,
            "box2d": LAMP,
            "id": 0,
        },
        {"category": "car", "attributes": flags | {"truncated": True}, **manual, "box2d": CAR, "id": 4},
        {"category": "person", "attributes": flags | {"occluded": True}, **manual, "box2d": WALKER, "id": 5},
        {"category": "drivable area", "attributes": {"areaType": "direct"}, **manual, "poly2d": [LANE], "id": 8},
        {"category": "lane", "attributes": {"laneStyle": "solid"}, **manual, "poly2d": [LANE], "id": 9},
    ]


def write_2018(root: Path, part: str = "val") -> Path:
    frames = [
        {"name": f"{NAMES[0]}.jpg", "attributes": ATTRIBUTES, "timestamp": 10000, "labels": labels_2018()},
        {"name": f"{NAMES[1]}.jpg", "attributes": ATTRIBUTES, "timestamp": 10000, "labels": []},
    ]
    return dumped(root / "labels" / f"bdd100k_labels_images_{part}.json", frames)


def write_2020(root: Path, part: str = "val") -> Path:
    flags = {"occluded": False, "truncated": False, "trafficLightColor": "NA"}
    labels = [
        {"id": "0", "attributes": flags | {"trafficLightColor": "G"}, "category": "traffic light", "box2d": LAMP},
        {"id": "1", "attributes": flags | {"truncated": True}, "category": "car", "box2d": CAR},
        {"id": "2", "attributes": flags | {"occluded": True}, "category": "pedestrian", "box2d": WALKER},
    ]
    frames = [
        {"name": f"{NAMES[0]}.jpg", "attributes": ATTRIBUTES, "timestamp": 10000, "labels": labels},
        {"name": f"{NAMES[1]}.jpg", "attributes": ATTRIBUTES, "timestamp": 10000},
    ]
    return dumped(root / "labels" / "det_20" / f"det_{part}.json", frames)


def write_photos(root: Path, part: str = "val") -> Path:
    folder = root / "labels" / "100k" / part
    for name, labels in zip(NAMES, (labels_2018(), []), strict=True):
        for label in labels:
            label["category"] = {"lane": "lane/single white", "drivable area": "area/drivable"}.get(
                label["category"], label["category"]
            )
        frame = {"timestamp": 10000, "objects": labels}
        dumped(folder / f"{name}.json", {"name": name, "frames": [frame], "attributes": ATTRIBUTES})
    return folder


def dumped(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def told(source: Source) -> dict[str, Any]:
    objects = source.require_objects("the test")
    return {
        "images": source.image_ids.tolist(),
        "files": source.images.file_names.tolist(),
        "image": objects.image.tolist(),
        "numbers": [source.categories.numbers[place] for place in objects.category.tolist()],
        "boxes": objects.boxes.tolist(),
        "occluded": objects.occluded.tolist(),
        "truncated": objects.truncated.tolist(),
    }


def test_the_published_layouts_say_the_same(tmp_path: Path) -> None:
    first, second, third = (
        open_source(write(tmp_path / name), dataset="bdd100k", part="val", cache=tmp_path / "cache")
        for name, write in (("a", write_2018), ("b", write_2020), ("c", write_photos))
    )
    assert told(first) == told(second) == told(third)
    facts = told(first)
    assert facts["images"] == [f"bdd100k:{name}" for name in NAMES]
    assert facts["files"] == [f"{name}.jpg" for name in NAMES]
    assert facts["numbers"] == [9, 3, 1]
    assert facts["truncated"] == [False, True, False]
    assert facts["occluded"] == [False, False, True]
    assert facts["boxes"][1] == [CAR["x1"], CAR["y1"], CAR["x2"] - CAR["x1"], CAR["y2"] - CAR["y1"]]
    assert first.images.widths.tolist() == [1280, 1280]
    assert first.images.heights.tolist() == [720, 720]
    assert first.categories.names == ("person", *TEN, "motorcycle", "bicycle", "traffic light", "traffic sign")
    assert second.categories.names == ("pedestrian", *TEN, "motorcycle", "bicycle", "traffic light", "traffic sign")
    assert first.dropped == {"label without box: drivable area": 1, "label without box: lane": 1}
    assert second.dropped == {}
    assert third.dropped == {"label without box: area": 1, "label without box: lane": 1}


def test_further_categories_follow_the_ten(tmp_path: Path) -> None:
    labels = [{"category": name, "box2d": WALKER} for name in ("trailer", "bike", "other vehicle", "motor")]
    source = read_bdd100k(dumped(tmp_path / "det_val.json", {"frames": [{"name": "a.jpg", "labels": labels}]}))
    assert source.part == "val"
    assert source.categories.names[6:] == ("motor", "bike", "traffic light", "traffic sign", "other vehicle", "trailer")
    assert told(source)["numbers"] == [12, 8, 11, 7]


def test_a_root_is_searched_and_two_kinds_of_labels_are_refused(tmp_path: Path) -> None:
    write_2020(tmp_path / "bdd100k")
    write_2020(tmp_path / "bdd100k", "train")
    assert parts_at(tmp_path, "bdd100k") == ("train", "val")
    assert read_bdd100k(tmp_path, "train").part == "train"
    write_2018(tmp_path / "bdd100k")
    with pytest.raises(UsageError, match="several kinds") as caught:
        read_bdd100k(tmp_path, "val")
    assert "det_val.json" in str(caught.value.found)
    with pytest.raises(MissingFileError) as missing:
        read_bdd100k(tmp_path, "test")
    assert missing.value.found == "labels of train, val"
    with pytest.raises(MissingFileError):
        open_source(tmp_path / "bdd100k" / "labels" / "absent", dataset="bdd100k", part="val", cache=False)


def test_coco_json_of_bdd100k_keeps_its_reader(tmp_path: Path) -> None:
    path = dumped(
        tmp_path / "bdd.json", {"images": [{"id": 1}], "annotations": [], "categories": [{"id": 1, "name": "car"}]}
    )
    assert open_source(path, dataset="bdd100k", part="val", cache=False).categories.names == ("car",)


@pytest.mark.parametrize(
    ("frames", "error"),
    [
        ([{"name": "a.jpg", "labels": [{"category": "car", "box2d": WALKER | {"x2": 5}}]}], BoxError),
        ([{"name": "a.jpg", "labels": [{"category": "car", "box2d": WALKER | {"x2": 1e300}}]}], BoxError),
        ([{"name": "a.jpg", "labels": [{"category": "car", "box2d": {"x1": 1}}]}], AnnotationFormatError),
        ([{"name": "a.jpg", "labels": [{"category": "car", "box2d": WALKER | {"x1": "1"}}]}], AnnotationFormatError),
        ([{"name": "a.jpg", "labels": [{"category": "\x1b[2J", "box2d": WALKER}]}], AnnotationFormatError),
        ([{"name": "a.jpg", "labels": [{"box2d": WALKER}]}], AnnotationFormatError),
        ([{"name": "a.jpg"}, {"name": "x/a.jpg"}], DuplicateIdError),
        ([{"name": ""}], AnnotationFormatError),
        ([{"labels": []}], AnnotationFormatError),
        ([{"name": "a\x00.jpg"}], AnnotationFormatError),
        ({"frames": 7}, AnnotationFormatError),
        ([7], AnnotationFormatError),
    ],
)
def test_malformed_labels_are_refused(tmp_path: Path, frames: Any, error: type[CurationError]) -> None:
    path = dumped(tmp_path / "det_val.json", frames)
    with pytest.raises(error):
        open_source(path, dataset="bdd100k", part="val", cache=False)


def test_a_cut_file_is_refused_and_a_bad_box_may_be_left_out(tmp_path: Path) -> None:
    path = write_2018(tmp_path)
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(AnnotationFormatError, match="malformed"):
        read_bdd100k(path, "val")
    path.write_text(text.replace("357.805838", "1.5"))
    with pytest.raises(BoxError) as caught:
        read_bdd100k(path, "val")
    assert caught.value.where == f"bdd100k_labels_images_val.json: {NAMES[0]}.jpg: labels[1]"
    source = read_bdd100k(path, "val", bad_boxes="drop")
    assert source.dropped["box negative in size"] == 1
    assert told(source)["numbers"] == [9, 1]
